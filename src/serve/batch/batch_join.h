/** Batch join: tensors of several requests as those of one batch, and back. Pure. */
#ifndef WEIR_SERVE_BATCH_JOIN_H
#define WEIR_SERVE_BATCH_JOIN_H

#include "serve/batch/batcher.h"

/** Are the inputs of these two alike, beside the first dimension? */
bool batch_can_join(struct weir_tensor *const *a, struct weir_tensor *const *b, size_t n_inputs);

/** New tensors of all rows, in order. @return NOMEM, LIMIT: nothing is left. */
weir_status batch_join(struct batch_request *const *requests, size_t n, size_t n_inputs,
                       struct weir_tensor **out) WEIR_MUST_CHECK;

/** Does each output have a first dimension of n_rows? */
bool batch_has_rows(struct weir_tensor *const *outputs, size_t n_outputs, int64_t n_rows);

/** Each request's rows of the outputs, as tensors of its own. @return NOMEM: nothing is left. */
weir_status batch_split(struct weir_tensor *const *outputs, size_t n_outputs,
                        struct batch_request *const *requests, size_t n) WEIR_MUST_CHECK;

/** Releases what is there, and sets it to NULL. */
void batch_release(struct weir_tensor **tensors, size_t n);

#endif
