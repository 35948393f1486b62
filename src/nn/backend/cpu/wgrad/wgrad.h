/**
 * Weight gradients of convolutions and linears as products of matrices of our own: for each cell of
 * the kernel, the sum over pixels of dy's channels times those of the pixel of x that the cell
 * meets there. An image that a linear reads is one pixel of all its elements.
 *
 *     const struct wgrad_kernels *kernels = wgrad_choose(op);   // NULL: none is worth it
 *     if (kernels) { scratch = kernels->scratch_bytes(op); … kernels->run(op, tile); }
 *
 * With vectors, pixels are taken in panels, packed so that the inner loop reads straight on
 * whatever the number of channels: oneDNN's loops read channels-last tensors with strides that fill
 * a few sets of the first cache over and over (bf16, 64 -> 256 channels at 56 x 56, one Zen 4 core:
 * 134 GFLOP/s by oneDNN, see bench/README.md). Pixels whose cell lies in the padding are left out.
 * With the processor's matrix registers (wgrad_amx.c) pixels are packed once for all cells.
 * Either way sums of what is packed together are in f32 and added in order: the same bits whatever
 * thread runs it, but not whatever processor.
 */
#ifndef WEIR_NN_ONEDNN_PRODUCT_H
#define WEIR_NN_ONEDNN_PRODUCT_H

#include "nn/backend/op.h"

/** Pixels of a panel: what is packed for one pass of the inner loop fits in the first cache. */
#define WGRAD_PANEL_PIXELS_F32  192
#define WGRAD_PANEL_PIXELS_BF16 384

struct wgrad_kernels {
    /**
     * The gradient of op.gradient_batch images into op.params[OP_WEIGHT].gradient, row-major, and
     * that of a bias if the op has one. The tile's x[0], dy and scratch are used; scratch is of
     * scratch_bytes, 64-byte aligned.
     */
    void (*run)(const struct op *op, const struct op_tile *tile);
    size_t (*scratch_bytes)(const struct op *op);
};

/** What makes the op's gradient best on this machine; NULL: none of these can, or oneDNN is faster.
 */
const struct wgrad_kernels *wgrad_choose(const struct op *op);

/** For f32 with AVX-512; bf16 with its instructions for that; convolutions in bf16 of two images
 * and more with those, and with AMX. */
extern const struct wgrad_kernels wgrad_kernels_v4, wgrad_kernels_bf16, wgrad_kernels_bf16_pairs,
    wgrad_kernels_amx;

/** Has this machine the instructions of one of these? Asks the system for AMX, if it is that. */
bool wgrad_is_supported(const struct wgrad_kernels *kernels);

#endif
