/**
 * Golden check: does a model answer given inputs as it did where it was made?
 *
 *     {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}],
 *      "outputs": [{"name": "y", "shape": [1, 2], "datatype": "FP32", "data": [0.1, 0.9]}],
 *      "tolerance": 0.001}
 *
 * A request of the Open Inference Protocol with its answer, or an array of such cases. Outputs that
 * are not there are not compared, but one of each case is. A value may differ by
 * tolerance · (1 + |expected|); the default is 0.001 for floats, and 0 for integers. Members of other names are passed over: a
 * replica's answer, with the request's inputs put beside its outputs, is a case.
 *
 * A version's cases are kept as a blob beside its file. The server checks them when the version is
 * pushed, and every replica before the version takes traffic there: another processor, executor or
 * library may answer otherwise.
 */
#ifndef WEIR_SERVE_GOLDEN_H
#define WEIR_SERVE_GOLDEN_H

#include "base/arena.h"
#include "serve/signature.h"

#define GOLDEN_MAX_BYTES ((size_t)16 << 20) /**< Of a file; the server refuses more. */
#define GOLDEN_CASES_MAX 256

/** Runs the model on each case. @return INVALID for text that is no such check; LIMIT over
 *  GOLDEN_CASES_MAX; CORRUPT: the answer differs, and which output where; the model's own errors. */
weir_status golden_check(struct serve_model *model, const char *text, size_t len,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The inputs of the first case, references for the caller. @return INVALID, as golden_check. */
weir_status golden_first(struct serve_model *model, const char *text, size_t len,
                         struct weir_tensor **in, struct weir_error *err) WEIR_MUST_CHECK;

#endif
