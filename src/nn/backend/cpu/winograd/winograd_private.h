/** How a call is cut into blocks. */
#ifndef WEIR_NN_WINOGRAD_PRIVATE_H
#define WEIR_NN_WINOGRAD_PRIVATE_H

#include "winograd.h"

#include "base/macros.h"

enum {
    WINOGRAD_OUT = 4,     /**< Results of a patch in a row. */
    WINOGRAD_IN = 6,      /**< Pixels in a row that a patch reads. */
    WINOGRAD_POINTS = 36, /**< Points of a patch or a kernel. */
    WINOGRAD_LANES = 16,
    WINOGRAD_PANEL =
        32, /**< Output channels whose kernels lie together and are computed together. */
};

/** Patches that are transformed together, and their memory. */
struct winograd_blocks {
    size_t n_patches;         /**< Of all images. */
    size_t n_across, n_image; /**< In a row of patches, and in an image. */
    size_t n_block;           /**< Patches of a block. */
    size_t in_row, in_point;  /**< Floats from one patch to the next, and from point to point. */
    size_t out_row, out_point;
    size_t n_part; /**< Gradient: output channels that are done together. */
};

struct winograd_blocks winograd_blocks(const struct winograd_form *form);
struct winograd_blocks winograd_gradient_blocks(const struct winograd_form *form);

static inline size_t winograd_round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

extern const struct winograd_kernels winograd_kernels_avx512;

#endif
