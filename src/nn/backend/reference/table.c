#include "kernels.h"

const struct op_kernels REF(kernels)[LAYER_KIND_COUNT] = {
    [LAYER_INPUT] = {.forward = REF(input_forward)},
    [LAYER_CONV] = {.forward = REF(conv_forward),
                    .backward = REF(conv_backward),
                    .weight_gradient = REF(conv_weight_gradient)},
    [LAYER_BATCH_NORM] = {.forward_sums = REF(batch_norm_sums),
                          .forward_combine = REF(batch_norm_combine),
                          .forward = REF(batch_norm_forward),
                          .backward_sums = REF(batch_norm_backward_sums),
                          .backward_combine = REF(batch_norm_backward_combine),
                          .backward = REF(batch_norm_backward),
                          .refresh = REF(batch_norm_refresh)},
    [LAYER_CAST] = {.forward = REF(cast_forward), .backward = REF(cast_backward)},
    [LAYER_RELU] = {.forward = REF(relu_forward), .backward = REF(relu_backward)},
    [LAYER_RELU6] = {.forward = REF(relu6_forward), .backward = REF(relu6_backward)},
    [LAYER_PRELU] = {.forward = REF(prelu_forward),
                     .backward = REF(prelu_backward),
                     .weight_gradient = REF(prelu_weight_gradient)},
    [LAYER_MAX_POOL] = {.forward = REF(max_pool_forward), .backward = REF(max_pool_backward)},
    [LAYER_AVG_POOL] = {.forward = REF(avg_pool_forward), .backward = REF(avg_pool_backward)},
    [LAYER_GLOBAL_POOL] = {.forward = REF(global_pool_forward),
                           .backward = REF(global_pool_backward)},
    [LAYER_LINEAR] = {.forward = REF(linear_forward),
                      .backward = REF(linear_backward),
                      .weight_gradient = REF(linear_weight_gradient)},
    [LAYER_ADD] = {.forward = REF(add_forward), .backward = REF(add_backward)},
    [LAYER_CONCAT] = {.forward = REF(concat_forward), .backward = REF(concat_backward)},
    [LAYER_DROPOUT] = {.forward = REF(dropout_forward), .backward = REF(dropout_backward)},
    [LAYER_L2_NORMALISE] = {.forward = REF(l2_normalise_forward),
                            .backward = REF(l2_normalise_backward)},
    [LAYER_FLATTEN] = {.forward = REF(flatten_forward), .backward = REF(flatten_backward)},
    [LAYER_SCALE] = {.forward = REF(scale_forward), .backward = REF(scale_backward)},
    [LAYER_LAYER_NORM] = {.forward = REF(layer_norm_forward), .backward = REF(layer_norm_backward)},
    [LAYER_SOFTMAX_LOSS] = {.forward = REF(softmax_loss_forward),
                            .backward = REF(softmax_loss_backward)},
    [LAYER_MARGIN_LOSS] = {.forward = REF(margin_loss_forward),
                           .backward = REF(margin_loss_backward),
                           .weight_gradient = REF(margin_loss_weight_gradient),
                           .refresh = REF(margin_loss_refresh)},
    [LAYER_DETECT_LOSS] = {.forward = REF(detect_loss_forward),
                           .backward = REF(detect_loss_backward)},
};

#ifndef WEIR_REAL_IS_DOUBLE
/* Few, so that small layers too are made in several calls. */
static int32_t gradient_rows(const struct op *op)
{
    (void)op;
    return 3;
}

const struct weir_backend weir_reference_backend = {
    .name = "reference",
    .keeps_f32 = true,
    .kernels = REF(kernels),
    .gradient_rows = gradient_rows,
};
#endif
