/**
 * Model: the model of a batch prediction, loaded, which answers for a few pictures at a time.
 *
 * Threads: one at a time.
 */
#ifndef WEIR_BATCH_MODEL_H
#define WEIR_BATCH_MODEL_H

#include "batch/spec.h"

#include "client/client.h"
#include "data/image.h"
#include "serve/infer.h"

struct batch_model;

/**
 * Fetches the model's file and loads it with the executor that its signature names.
 *
 * @param client  NULL: there is no server, and $.blob is a file.
 * @return Errors of the client, the signature and the executor. UNSUPPORTED: the model does not take
 *         a picture, or takes more beside it; or its outputs do not fit the format.
 */
weir_status batch_model_open(const struct batch_spec *spec, struct weir_client *client,
                             struct batch_model **out, struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void batch_model_close(struct batch_model *model);

const struct weir_signature *batch_model_signature(const struct batch_model *model);

/** Pictures of one run: the spec's batch size, or 1 of a model that does not take batches, or whose answer to
 *  a picture depends on the others. */
int64_t batch_model_batch(const struct batch_model *model);

/** Puts a picture at place i of the next run. LIMIT, UNSUPPORTED: it does not become an input. */
weir_status batch_model_put(struct batch_model *model, int64_t i, const struct weir_image *image,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Runs the first n places. *out: outputs by port, the model's until the next run. */
weir_status batch_model_run(struct batch_model *model, int64_t n, struct weir_tensor *const **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
