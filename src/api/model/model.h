/** Versions of models, for the routes beside those of models. */
#ifndef WEIR_API_MODEL_H
#define WEIR_API_MODEL_H

#include "api/core/call.h"

struct inspect_question;
struct weir_model_version;

/** What a model's file takes and gives. *out_signature stays NULL if the call waits for it: then return
 *  WEIR_OK, without an answer. */
weir_status api_inspect(struct api_call *call, const struct inspect_question *question,
                        char **out_signature, struct weir_error *err) WEIR_MUST_CHECK;

/** A version's number as a path has it. @return INVALID. */
weir_status api_read_version(const char *text, int64_t *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** A model version with its names and tags, and where it serves; a new reference. */
weir_status api_version_view(struct api_call *call, struct weir_txn *txn,
                             const struct weir_model_version *version, json_t **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
