/**
 * Golden check: does a model answer given inputs as it did where it was made?
 *
 *     {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}],
 *      "outputs": [{"name": "y", "shape": [1, 2], "datatype": "FP32", "data": [0.1, 0.9]}],
 *      "tolerance": 0.001}
 *
 * A request of the Open Inference Protocol with its answer. Outputs that are not there are not
 * compared. A value may differ by tolerance · (1 + |expected|); the default is 0.001.
 */
#ifndef WEIR_SERVE_GOLDEN_H
#define WEIR_SERVE_GOLDEN_H

#include "base/arena.h"
#include "serve/signature.h"

/** Runs the model. @return INVALID for text that is no such check; CORRUPT: the answer differs, and
 *  where; the model's own errors. */
weir_status golden_check(struct serve_model *model, const char *text, size_t len,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
