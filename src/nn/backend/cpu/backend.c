/*
 * The oneDNN back-end: channels last; convolutions and linears by oneDNN, one thread per call, the
 * rest by Weir's own vector kernels. What is small (embeddings) is left to the reference.
 */
#include "conv.h"
#include "layers.h"
#include "nn/backend/reference/kernels.h"
#include "primitive.h"

static const struct op_kernels kernels[LAYER_KIND_COUNT] = {
    [LAYER_INPUT] = {.forward = fast_input_forward},
    [LAYER_CAST] = {.forward = fast_cast_forward, .backward = fast_cast_backward},
    [LAYER_CONV] = {.forward = conv_forward,
                    .backward = conv_backward,
                    .weight_gradient = conv_weight_gradient,
                    .refresh = conv_refresh,
                    .refresh_backward = conv_refresh_backward,
                    .pack = conv_pack},
    [LAYER_LINEAR] = {.forward = conv_forward,
                      .backward = conv_backward,
                      .weight_gradient = conv_weight_gradient,
                      .refresh = conv_refresh},
    [LAYER_BATCH_NORM] = {.forward_sums = fast_norm_sums,
                          .forward_combine = fast_norm_combine,
                          .forward = fast_norm_forward,
                          .backward_sums = fast_norm_backward_sums,
                          .backward_combine = fast_norm_backward_combine,
                          .backward = fast_norm_backward,
                          .refresh = REF(batch_norm_refresh)},
    [LAYER_RELU] = {.forward = fast_relu_forward, .backward = fast_relu_backward},
    [LAYER_RELU6] = {.forward = fast_relu_forward, .backward = fast_relu_backward},
    [LAYER_PRELU] = {.forward = fast_prelu_forward,
                     .backward = fast_prelu_backward,
                     .weight_gradient = REF(prelu_weight_gradient)},
    [LAYER_MAX_POOL] = {.forward = fast_max_pool_forward, .backward = fast_max_pool_backward},
    [LAYER_AVG_POOL] = {.forward = fast_avg_pool_forward, .backward = fast_avg_pool_backward},
    [LAYER_GLOBAL_POOL] = {.forward = fast_global_pool_forward,
                           .backward = fast_global_pool_backward},
    [LAYER_ADD] = {.forward = fast_add_forward, .backward = fast_add_backward},
    [LAYER_CONCAT] = {.forward = fast_concat_forward, .backward = fast_concat_backward},
    [LAYER_DROPOUT] = {.forward = fast_dropout_forward, .backward = fast_dropout_backward},
    [LAYER_L2_NORMALISE] = {.forward = REF(l2_normalise_forward),
                            .backward = REF(l2_normalise_backward)},
    [LAYER_FLATTEN] = {.forward = fast_flatten_forward, .backward = fast_flatten_backward},
    [LAYER_SCALE] = {.forward = fast_scale_forward, .backward = fast_scale_backward},
    [LAYER_LAYER_NORM] = {.forward = REF(layer_norm_forward), .backward = REF(layer_norm_backward)},
    [LAYER_SOFTMAX_LOSS] = {.forward = fast_softmax_loss_forward,
                            .backward = fast_softmax_loss_backward},
    [LAYER_MARGIN_LOSS] = {.forward = REF(margin_loss_forward),
                           .backward = REF(margin_loss_backward),
                           .weight_gradient = REF(margin_loss_weight_gradient),
                           .refresh = REF(margin_loss_refresh)},
    [LAYER_DETECT_LOSS] = {.forward = REF(detect_loss_forward),
                           .backward = REF(detect_loss_backward)},
};

const struct weir_backend weir_onednn_backend = {
    .name = "onednn",
    .is_channels_last = true,
    .can_fuse = true,
    .has_winograd = true,
    .batches_slices = conv_batches_slices,
    .kernels = kernels,
    .gradient_rows = conv_gradient_rows,
    .is_rank_one = true,
    .packed_bytes = conv_packed_bytes,
    .open = dnn_open,
    .close = dnn_close,
    .prepare = conv_prepare,
    .release = conv_release,
    .enter_thread = dnn_enter_thread,
};
