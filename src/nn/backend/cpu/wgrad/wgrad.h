/**
 * Wgrad: weight gradients of convolutions and linears by our own matrix products (GEMM). For each
 * kernel tap the gradient is a sum over pixels: dy's channels times the channels of the pixel of x
 * that the tap meets there. For a linear, an image is one pixel of all its elements.
 *
 *     const struct wgrad_kernels *kernels = wgrad_choose(op);   // NULL: none is worth it
 *     if (kernels) { scratch = kernels->scratch_bytes(op); … kernels->run(op, tile); }
 *
 * With vectors, pixels are packed in panels, so that the inner loop reads memory in order whatever
 * the number of channels. oneDNN's loops read channels-last tensors with strides that fill a few
 * sets of the first cache over and over (bf16, 64 -> 256 channels at 56 x 56, one Zen 4 core: 134
 * GFLOP/s by oneDNN, see bench/README.md). Pixels whose tap lies in the padding are left out. With
 * the processor's matrix registers (wgrad_amx.c) pixels are packed once for all taps.
 *
 * Either way, what is packed together is summed in f32, in order. The bits are the same whichever
 * thread runs it, but not on every processor.
 *
 * A training step of ResNet-50 beside one whose weight gradients are oneDNN's, on a Xeon with AMX,
 * by processor time: 1.06 times as fast in f32, 1.14 in bf16.
 */
#ifndef WEIR_NN_WGRAD_H
#define WEIR_NN_WGRAD_H

#include "nn/backend/op.h"

/** Pixels of a panel: what is packed for one pass of the inner loop fits in the first cache. */
#define WGRAD_PANEL_PIXELS_F32  192
#define WGRAD_PANEL_PIXELS_BF16 384

struct wgrad_kernels {
    /**
     * Makes the gradient of op.gradient_batch images in op.params[OP_WEIGHT].gradient, row-major,
     * and that of the bias if the op has one. It uses the tile's x[0], dy and scratch. Scratch has
     * scratch_bytes and is aligned to 64 bytes.
     */
    void (*run)(const struct op *op, const struct op_tile *tile);
    size_t (*scratch_bytes)(const struct op *op);
};

/** The kernels that make the op's gradient fastest on this machine; NULL: none can, or oneDNN is
 *  faster. */
const struct wgrad_kernels *wgrad_choose(const struct op *op);

/** v4: f32 with AVX-512. bf16: with AVX-512's bf16 instructions. amx: convolutions in bf16 with
 *  AMX. */
extern const struct wgrad_kernels wgrad_kernels_v4, wgrad_kernels_bf16, wgrad_kernels_amx;

/** Has this machine the instructions of these kernels? For AMX it asks the kernel for them. */
bool wgrad_is_supported(const struct wgrad_kernels *kernels);

#endif
