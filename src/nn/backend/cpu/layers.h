/**
 * Layers between convolutions and linears, channels last, by the vector kernels. Each function is a
 * kernel of struct op_kernels (op.h).
 */
#ifndef WEIR_NN_CPU_LAYERS_H
#define WEIR_NN_CPU_LAYERS_H

#include "nn/backend/op.h"

weir_status fast_input_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_cast_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_cast_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_norm_sums(const struct op *op, const struct op_tile *tile);
weir_status fast_norm_combine(const struct op *op);
weir_status fast_norm_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_norm_backward_sums(const struct op *op, const struct op_tile *tile);
weir_status fast_norm_backward_combine(const struct op *op);
weir_status fast_norm_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_relu_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_relu_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_prelu_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_prelu_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_add_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_add_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_max_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_max_pool_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_avg_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_avg_pool_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_global_pool_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_global_pool_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_concat_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_concat_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_dropout_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_dropout_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_flatten_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_flatten_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_scale_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_scale_backward(const struct op *op, const struct op_tile *tile);
weir_status fast_softmax_loss_forward(const struct op *op, const struct op_tile *tile);
weir_status fast_softmax_loss_backward(const struct op *op, const struct op_tile *tile);

#endif
