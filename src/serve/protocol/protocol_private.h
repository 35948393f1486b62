/** What the protocols share. */
#ifndef WEIR_SERVE_PROTOCOL_PRIVATE_H
#define WEIR_SERVE_PROTOCOL_PRIVATE_H

#include "base/json_scan.h"
#include "serve/protocol/protocol.h"

/** The rows of the request's model, and of its version if it names one: at least one. NOT_FOUND. */
weir_status protocol_rows(const struct protocol_request *request,
                          const struct protocol_state *state, const struct version_row **out,
                          size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** The row that a request of this model and version would be computed by. NOT_FOUND, UNAVAILABLE. */
weir_status protocol_ready_row(const struct protocol_request *request,
                               const struct protocol_state *state, const struct version_row **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** {"error": "…"}: the form of most. */
void protocol_error_text(const struct weir_error *error, struct protocol_answer *answer);

/** "key": "text", with its quotes, in a JSON object. */
void protocol_put_member(struct weir_buf *out, const char *key, const char *text);

/** [1,3,224,224] */
void protocol_put_shape(struct weir_buf *out, int32_t rank, const int64_t *dims);

/** Is the body a picture by its Content-Type? */
bool protocol_is_picture(const struct protocol_request *request);

/** The body, a picture, as the model's input. UNSUPPORTED: the model takes none. */
weir_status protocol_read_picture(const void *bytes, size_t len, struct infer *infer,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** INVALID: the request must have a body that is JSON. */
weir_status protocol_check_json(const struct protocol_request *request,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
