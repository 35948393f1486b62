/**
 * Reference kernels: every layer as its formula reads, one element at a time, with sums in double.
 * They are slow and obvious. Every other back-end is tested against them. They work in either
 * layout (op_at).
 *
 * In bf16 they round the weights that are multiplied. The net rounds what they write
 * (weir_backend.keeps_f32).
 *
 * They are compiled twice: as `…_f32` into the library, and as `…_f64` into their own test, which
 * compares gradients with finite differences in double precision.
 */
#ifndef WEIR_NN_REFERENCE_KERNELS_H
#define WEIR_NN_REFERENCE_KERNELS_H

#include "nn/backend/op.h"

#include <math.h>

#ifdef WEIR_REAL_IS_DOUBLE
#define REF(name) ref_##name##_f64
#else
#define REF(name) ref_##name##_f32
#endif

weir_status REF(conv_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(conv_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(conv_weight_gradient)(const struct op *op, const struct op_tile *tile);
weir_status REF(linear_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(linear_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(linear_weight_gradient)(const struct op *op, const struct op_tile *tile);

weir_status REF(batch_norm_sums)(const struct op *op, const struct op_tile *tile);
weir_status REF(batch_norm_combine)(const struct op *op);
weir_status REF(batch_norm_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(batch_norm_backward_sums)(const struct op *op, const struct op_tile *tile);
weir_status REF(batch_norm_backward_combine)(const struct op *op);
weir_status REF(batch_norm_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(batch_norm_refresh)(const struct op *op, int32_t i_thread, void *scratch);
weir_status REF(l2_normalise_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(l2_normalise_backward)(const struct op *op, const struct op_tile *tile);

weir_status REF(layer_norm_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(layer_norm_backward)(const struct op *op, const struct op_tile *tile);

/** Copies the caller's N, C, H, W input into the op's layout. */
weir_status REF(input_forward)(const struct op *op, const struct op_tile *tile);
/** Converts between types. In memory both are `real`. */
weir_status REF(cast_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(cast_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(relu_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(relu_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(relu6_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(relu6_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(prelu_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(prelu_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(prelu_weight_gradient)(const struct op *op, const struct op_tile *tile);
weir_status REF(dropout_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(dropout_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(add_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(add_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(concat_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(concat_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(flatten_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(flatten_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(scale_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(scale_backward)(const struct op *op, const struct op_tile *tile);

weir_status REF(max_pool_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(max_pool_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(avg_pool_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(avg_pool_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(global_pool_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(global_pool_backward)(const struct op *op, const struct op_tile *tile);

weir_status REF(softmax_loss_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(softmax_loss_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(margin_loss_refresh)(const struct op *op, int32_t i_thread, void *scratch);
weir_status REF(margin_loss_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(margin_loss_backward)(const struct op *op, const struct op_tile *tile);
weir_status REF(margin_loss_weight_gradient)(const struct op *op, const struct op_tile *tile);
weir_status REF(detect_loss_forward)(const struct op *op, const struct op_tile *tile);
weir_status REF(detect_loss_backward)(const struct op *op, const struct op_tile *tile);

/** The table of all kernels, by layer_kind. */
extern const struct op_kernels REF(kernels)[LAYER_KIND_COUNT];

/** Element i of the weights as a convolution or linear multiplies it: rounded to the op's type. */
static inline double ref_weight(const struct op *op, size_t i)
{
    real value = op->params[OP_WEIGHT].value[i];
    return op->type == WEIR_PRECISION_F32 ? (double)value
                                          : (double)op_rounded(op->type, (float)value);
}

/** dx = value, or dx += value if the tile says so. */
static inline void ref_put(const struct op_tile *tile, int32_t i_in, size_t at, double value)
{
    real *dx = tile->dx[i_in];
    dx[at] = (real)(tile->dx_adds[i_in] ? (double)dx[at] + value : value);
}

/** Index of the largest of n scores; the first of equals; -1 if one is NaN, so that NaN never
 *  counts as correct. */
static inline int32_t ref_argmax(const real *scores, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 0; i < n; i++) {
        if (isnan(scores[i])) {
            return -1;
        }
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}

#endif
