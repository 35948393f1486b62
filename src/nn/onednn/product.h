/**
 * Weight gradients of convolutions and linears as products of matrices of our own: for each cell of
 * the kernel, the sum over pixels of dy's channels times those of the pixel of x that the cell
 * meets there. An image that a linear reads is one pixel of all its elements.
 *
 *     const struct product_kernels *kernels = product_kernels(op->type);   // NULL: none here
 *     if (kernels && product_can(op)) { scratch = product_scratch_bytes(op); … kernels->run(…); }
 *
 * Pixels are taken in panels, packed so that the inner loop reads straight on whatever the number
 * of channels: oneDNN's loops read channels-last tensors with strides that fill a few sets of the
 * first cache over and over (bf16, 64 -> 256 channels at 56 x 56, one Zen 4 core: 134 GFLOP/s by
 * oneDNN, see bench/README.md). Pixels whose cell lies in the padding are left out. Sums of a panel
 * are in f32, panels are added in order: the same bits whatever thread runs it.
 */
#ifndef WEIR_NN_ONEDNN_PRODUCT_H
#define WEIR_NN_ONEDNN_PRODUCT_H

#include "../op.h"

/** Pixels of a panel: what is packed for one pass of the inner loop fits in the first cache. */
#define PRODUCT_PIXELS_F32  192
#define PRODUCT_PIXELS_BF16 384

struct product_kernels {
    /**
     * The gradient of op.gradient_batch images into op.params[OP_WEIGHT].gradient, row-major, and
     * that of a bias if the op has one. The tile's x[0], dy and scratch are used; scratch is of
     * product_scratch_bytes, 64-byte aligned.
     */
    void (*run)(const struct op *op, const struct op_tile *tile);
};

/** For this machine and type; NULL where it has no AVX-512, or none for bf16. */
const struct product_kernels *product_kernels(enum weir_precision type);

/** Is the op one of those that run can do, and worth it? */
bool product_can(const struct op *op);

size_t product_scratch_bytes(const struct op *op);

extern const struct product_kernels product_kernels_v4, product_kernels_bf16;

#endif
