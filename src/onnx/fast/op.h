/** Operators that fast/ prepares, by ONNX's type: op.c has the table. */
#ifndef WEIR_ONNX_FAST_OP_H
#define WEIR_ONNX_FAST_OP_H

#include "plan.h"

#include "onnx/ops/window.h"

/** What is left of a chain: the step at hand, and those that may be joined to it. */
struct fast_link {
    const size_t *steps;
    size_t n;
};

/**
 * Prepares the first step of a link, and perhaps some behind it.
 * *out_taken: how many steps are done; 0: none, the interpreter runs the first.
 */
typedef weir_status (*fast_prepare_fn)(struct fast_plan *plan, const struct fast_link *link,
                                       size_t *out_taken, struct weir_error *err);

/** NULL: there is none, or none that keeps NaN, if that is asked for. */
fast_prepare_fn fast_op_find(const char *type, bool keeps_nan);

static inline const struct onnx_step *fast_step(const struct fast_plan *plan,
                                                const struct fast_link *link, size_t i)
{
    return &plan->fast->onnx->steps[link->steps[i]];
}

/** A call with the step's attributes and, in `in`, its tensors, for onnx_int and its like. */
struct onnx_call fast_call(const struct fast_plan *plan, const struct onnx_step *step,
                           struct weir_tensor **in, size_t most);

/** Is input i there, of this type, of at least one dimension and not empty? */
bool fast_has_input(const struct fast_plan *plan, const struct onnx_step *step, size_t i,
                    enum weir_dtype dtype);

/** Are the step's tensors broadcast from their last dimensions on, as all are since opset 7? Before, an
 *  attribute may say at which axis the second stands. */
bool fast_broadcasts_from_last(const struct fast_plan *plan, const struct onnx_step *step);

/** Is a window of a size that others compute with in 32 bits without thinking? */
bool fast_is_usual(const struct window *window);

/** Does a window lie in the padding only? */
bool fast_has_bare_window(const struct window *window);

/** Floats of a constant of all plans, at least n; NULL if it is none. */
const float *fast_floats(const struct fast_plan *plan, int32_t value, size_t n);

fast_prepare_fn fast_activation_find(const char *type);

weir_status fast_prepare_conv(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_turned_conv(struct fast_plan *plan, const struct fast_link *link,
                                     size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_gemm(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_matmul(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_pool(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_global_pool(struct fast_plan *plan, const struct fast_link *link,
                                     size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_mean(struct fast_plan *plan, const struct fast_link *link,
                              size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_eltwise(struct fast_plan *plan, const struct fast_link *link,
                                 size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_binary(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_concat(struct fast_plan *plan, const struct fast_link *link,
                                size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_softmax(struct fast_plan *plan, const struct fast_link *link,
                                 size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_lrn(struct fast_plan *plan, const struct fast_link *link,
                             size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_batch_norm(struct fast_plan *plan, const struct fast_link *link,
                                    size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_transpose(struct fast_plan *plan, const struct fast_link *link,
                                   size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_quantize(struct fast_plan *plan, const struct fast_link *link,
                                  size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_dequantize(struct fast_plan *plan, const struct fast_link *link,
                                    size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_qlinear_conv(struct fast_plan *plan, const struct fast_link *link,
                                      size_t *out_taken, struct weir_error *err);
weir_status fast_prepare_qlinear_matmul(struct fast_plan *plan, const struct fast_link *link,
                                        size_t *out_taken, struct weir_error *err);

#endif
