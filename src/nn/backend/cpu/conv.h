/**
 * Convolutions and linears by oneDNN, channels last.
 *
 * A primitive likes its weights in a blocked layout of its own choice. So the back-end keeps a
 * second copy of them, which refresh makes again. Training's backward likes another layout: a third
 * copy, or one that refresh_backward writes over forward's.
 *
 * The functions are those of struct weir_backend and struct op_kernels (op.h).
 */
#ifndef WEIR_NN_CPU_CONV_H
#define WEIR_NN_CPU_CONV_H

#include "nn/backend/op.h"

weir_status conv_prepare(void *context, struct op *op, const int32_t *tile_sizes,
                         int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                         struct weir_error *err);
void conv_release(struct op *op);
weir_status conv_refresh(const struct op *op, int32_t i_thread, void *scratch);
weir_status conv_refresh_backward(const struct op *op, int32_t i_thread, void *scratch);
/** Winograd: writes the kernels at their points. Other convolutions have no packed weights. */
void conv_pack(const struct op *op, bool is_backward, void *to);
size_t conv_packed_bytes(const struct op *op);
weir_status conv_forward(const struct op *op, const struct op_tile *tile);
weir_status conv_backward(const struct op *op, const struct op_tile *tile);
weir_status conv_weight_gradient(const struct op *op, const struct op_tile *tile);
/** True for linears of 4 M weights, and, where memory is far, for convolutions of 1 M. */
bool conv_batches_slices(const struct op *op);
/** Not 0 for linears whose gradients our own kernels make. */
int32_t conv_gradient_rows(const struct op *op);

#endif
