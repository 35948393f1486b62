/**
 * Convolutions and linears by oneDNN, channels last. Weights are kept a second time in the blocked
 * layout the primitive likes, renewed by refresh. Training's backward likes another: it is kept a
 * third time, or written over forward's by refresh_backward.
 */
#ifndef WEIR_NN_ONEDNN_CONV_H
#define WEIR_NN_ONEDNN_CONV_H

#include "nn/backend/op.h"

weir_status conv_prepare(void *context, struct op *op, const int32_t *tile_sizes,
                         int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                         struct weir_error *err);
void conv_release(struct op *op);
weir_status conv_refresh(const struct op *op, int32_t i_thread, void *scratch);
weir_status conv_refresh_backward(const struct op *op, int32_t i_thread, void *scratch);
/** By Winograd: the kernels at their points. Others derive nothing. */
void conv_pack(const struct op *op, bool is_backward, void *to);
size_t conv_packed_bytes(const struct op *op);
weir_status conv_forward(const struct op *op, const struct op_tile *tile);
weir_status conv_backward(const struct op *op, const struct op_tile *tile);
weir_status conv_weight_gradient(const struct op *op, const struct op_tile *tile);
/** Linears of 4 M weights; where multiplying is fast and memory is far, convolutions of 1 M. */
bool conv_batches_slices(const struct op *op);
/** Of linears whose gradients are made by kernels of our own. */
int32_t conv_gradient_rows(const struct op *op);

#endif
