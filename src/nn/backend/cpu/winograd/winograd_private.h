/** How a call is cut into blocks. For winograd's own files. */
#ifndef WEIR_NN_WINOGRAD_PRIVATE_H
#define WEIR_NN_WINOGRAD_PRIVATE_H

#include "winograd.h"

#include "base/macros.h"

enum {
    WINOGRAD_OUT = 4,     /**< A patch's results are so many in a row … */
    WINOGRAD_IN = 6,      /**< … and what it reads. */
    WINOGRAD_POINTS = 36, /**< Of a patch or a kernel. */
    WINOGRAD_LANES = 16,
    WINOGRAD_PANEL =
        32, /**< Output channels whose kernels lie together, and are computed together. */
};

/** Patches that are taken to their points together, and the memory of that. */
struct winograd_blocks {
    size_t n_patches;         /**< Of all pictures. */
    size_t n_across, n_image; /**< Of a row of patches, and of a picture. */
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
