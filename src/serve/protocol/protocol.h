/**
 * Protocols: what clients of other servers speak, each a table of routes in a file of its own
 * (src/serve/protocol/NAME.c). A route reads bytes into tensors and writes tensors as bytes, or
 * answers a question about the models that are loaded. All of it is pure: no thread, no socket.
 *
 *     protocol_find("POST", segments, n, &request, &route)
 *     route->read(&request, &infer, err)  …compute…  route->write(&infer, &answer)
 *     protocol_answer_question(route, &request, &state, &answer, err)
 *
 * Errors are written by the protocol of the address, in its own form.
 */
#ifndef WEIR_SERVE_PROTOCOL_H
#define WEIR_SERVE_PROTOCOL_H

#include "base/buf.h"
#include "serve/infer.h"
#include "serve/replica/versions.h"

/** Of an answer; a larger one is LIMIT. */
#define PROTOCOL_ANSWER_MAX_BYTES ((size_t)256 << 20)

/** A request, taken apart. Borrowed. */
struct protocol_request {
    const char *model;        /**< From the path; NULL: it names none. */
    int64_t version;          /**< 0: it names none. */
    const char *content_type; /**< NULL: none. */
    int64_t json_bytes;       /**< Inference-Header-Content-Length; -1: the whole body is JSON. */
    int64_t n_top;            /**< How many labels a picture's answer has; 0: the default. */
    const char *body;
    size_t body_len;
    struct weir_arena *arena;
};

struct protocol_answer {
    int http_status;
    const char *content_type;
    struct weir_buf body;
    int64_t json_bytes; /**< Header Inference-Header-Content-Length; -1: none. */
};

/** What a host may do about models, beside answering. NULL functions are UNSUPPORTED. */
struct protocol_host {
    void *context;
    weir_status (*load)(void *context, const char *model, struct weir_error *err);
    weir_status (*unload)(void *context, const char *model, struct weir_error *err);
};

/** What a question is answered from. */
struct protocol_state {
    const struct versions_view *view;
    const struct protocol_host *host;
    bool is_ready; /**< Does the process take requests? */
};

struct protocol_route {
    const char *method;
    /** Segments of the path. {model} and {version} take any; "{model}:predict" what ends so; a last
     *  "*" takes the rest. */
    const char *pattern;
    /** An inference: both, or neither. */
    weir_status (*read)(const struct protocol_request *request, struct infer *infer,
                        struct weir_error *err);
    void (*write)(const struct infer *infer, struct protocol_answer *answer);
    /** A question. */
    weir_status (*answer)(const struct protocol_request *request,
                          const struct protocol_state *state, struct protocol_answer *answer,
                          struct weir_error *err);
    const char *says;  /**< The question always gets this JSON. */
    const char *lacks; /**< What is not there: the sentence of the UNSUPPORTED that it gets. */
};

struct protocol {
    const char *name;
    const char *doc;
    const struct protocol_route *routes;
    size_t n_routes;
    /** Writes the body of an error; the status is set. */
    void (*error)(const struct weir_error *error, struct protocol_answer *answer);
};

extern const struct protocol *const protocols[];
extern const size_t n_protocols;

/**
 * Finds the route of a path, and fills model and version from it.
 * @return NOT_FOUND: no such address; INVALID: another method, or a version that is no number.
 *         *out_protocol is written in any case: whose errors fit the address.
 */
weir_status protocol_find(const char *method, char *const *segments, size_t n_segments,
                          struct protocol_request *request, const struct protocol **out_protocol,
                          const struct protocol_route **out_route,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Answers a route that is no inference. Its own error, or UNSUPPORTED. */
weir_status protocol_answer_question(const struct protocol_route *route,
                                     const struct protocol_request *request,
                                     const struct protocol_state *state,
                                     struct protocol_answer *answer,
                                     struct weir_error *err) WEIR_MUST_CHECK;

void protocol_answer_init(struct protocol_answer *answer);
void protocol_answer_fini(struct protocol_answer *answer);
/** Sets status and body. */
void protocol_answer_error(const struct protocol *protocol, const struct weir_error *error,
                           struct protocol_answer *answer);

#endif
