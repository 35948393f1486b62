/**
 * Fast: runs a model's steps by oneDNN and kernels of its own, where it can, and by the interpreter
 * where it cannot.
 *
 * At load, steps that may become one are gathered into chains (chain.h). The first run with inputs
 * of a shape makes a plan (plan.h): step by step, an operator (op.h) looks at the tensors that are
 * there and either prepares actions or leaves the step to the interpreter. Further runs of that
 * shape repeat the actions. Plans of FAST_PLANS_MAX shapes are kept, the one used longest ago goes.
 *
 * Sums are made in f32, in another order than the interpreter's. NaN stays NaN: a run that met one
 * is done again by a plan that leaves to the interpreter what would make a number of it (alarm.h).
 */
#ifndef WEIR_ONNX_FAST_FAST_H
#define WEIR_ONNX_FAST_FAST_H

#include "onnx/onnx_private.h"

#include <stdio.h>

#define FAST_PLANS_MAX 8

struct fast;

/** For a model that is linked and folded; it is borrowed. NOMEM, INTERNAL. */
weir_status fast_create(struct weir_onnx *onnx, struct fast **out,
                        struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void fast_destroy(struct fast *fast);

/** Runs the model. The inputs fit the ports and are values of the model already; the outputs are
 *  references for the caller. */
weir_status fast_run(struct fast *fast, struct weir_tensor **out,
                     struct weir_error *err) WEIR_MUST_CHECK;

/** Begins to take the time of each action, from the next run on. */
void fast_profile(struct fast *fast);
/** Writes a line for each action of the plan that ran last: mean time, operator, node. */
void fast_profile_print(const struct fast *fast, FILE *out);
/** Steps of the plan that ran last which the interpreter runs. */
size_t fast_n_interpreted(const struct fast *fast);

#endif
