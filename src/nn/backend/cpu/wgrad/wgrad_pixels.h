/**
 * Weight-gradient GEMM in bf16 over pixel pairs. The instructions multiply and add up bf16 pairs. A
 * pair here is the same pixel of two images: a packed pixel is one dword per channel, with both
 * images' values.
 *
 * Two neighbouring pixels of one image would do for a kernel of one tap only: the next tap would
 * need other neighbours paired. With two images, x is packed once for all taps. Each tap reads it
 * at another offset. Rows of x are as long as those of dy, with room for the padding (the pitch).
 * With a stride, x is packed in as many parts (stride phases) as the taps' pixels have different
 * remainders.
 *
 * wgrad_pixels.c packs x in chunks that stay in the second cache and takes the taps in turn. A
 * table says how dy is packed and how a block of sums is added up: by matrix registers
 * (wgrad_amx.c), or as its test has them (wgrad_amx_emulated.c). All files are compiled for
 * AVX-512.
 */
#ifndef WEIR_NN_WGRAD_PIXELS_H
#define WEIR_NN_WGRAD_PIXELS_H

#include "wgrad_private.h"

/* A panel: so many channels, one cache line per packed pixel. A block: two panels each of x and
 * dy. */
enum { PANEL_CHANNELS = 16, PIXEL_BYTES = 64, BLOCK_CHANNELS = 2 * PANEL_CHANNELS };

/* One axis of the image. In output i, tap t of the kernel meets input i * stride + phase + offset *
 * stride. */
struct axis {
    int32_t n_taps, stride, dilation, pad;
    int32_t low, high; /* least and largest offset */
    int32_t n_stride_phases;
};

/* Rows of some image pairs; rows of dy. */
struct chunk {
    size_t first_image_pair, n_bf16_pairs, first_h, n_h;
    size_t x_len, dy_len;     /* packed pixels of an image pair */
    size_t x_total, dy_total; /* packed pixels of a panel: of one stride phase; of all image
                                 pairs */
};

/* A GEMM: what is computed, by which kernels, and the current chunk. */
struct pixel_gemm {
    const struct op *op;
    const struct op_tile *tile;
    const struct pixel_gemm_kernels *kernels;
    struct axis h, w;
    size_t n_left, n_right; /* columns of x beyond those of dy */
    size_t pitch;           /* packed pixels from one row of x to the next */
    bool is_dense;          /* one tap, no padding: images follow without a gap */
    const uint16_t *zeros;
    struct chunk chunk;
};

/* Panels of x and dy that are multiplied, from their first pixels on: pixels of an image pair,
 * image pairs. */
struct panels {
    const char *x, *dy;
    size_t x_bytes, dy_bytes; /* from one panel to the next */
    size_t n_bf16_pairs, n_pixels;
    size_t x_pair, dy_pair; /* bytes from one to the next */
};

struct pixel_gemm_kernels {
    /** Called before and after a whole gradient. */
    void (*begin)(void), (*end)(void);
    /** Packs channels first .. first + n of the chunk's dy, with x's pitch, zeros where there is no
     *  pixel, and whole steps of PANEL_CHANNELS pixels. Panels lie dy_total pixels apart. `to` is
     *  aligned to a cache line. */
    void (*pack_dy)(const struct pixel_gemm *gemm, size_t first, size_t n, char *to);
    /** BLOCK_CHANNELS x BLOCK_CHANNELS sums = or += over all pixels; rows are channels of dy,
     *  columns channels of x. The next row of sums follows after `stride` floats, without
     *  alignment. */
    void (*sum_block)(const struct panels *panels, float *to, size_t stride, bool is_first);
};

/* The same pixel of both images of a pair. Where there is no second image, zeros. */
struct pixel_pair {
    const uint16_t *first, *second;
    size_t second_step; /* 1, or 0 */
};

static inline struct pixel_pair pixel_pair_at(struct pixel_pair from, size_t elems)
{
    return (struct pixel_pair){from.first + elems, from.second + elems * from.second_step,
                               from.second_step};
}

/** The first pixels of an image pair in x or dy, which has `elems` elements an image. */
struct pixel_pair pixel_pair_find(const struct pixel_gemm *gemm, const real *tensor,
                                  size_t i_image_pair, size_t elems);

/** run and scratch_bytes of struct wgrad_kernels, for ops of one group without a bias. */
void pixel_gemm_run(const struct pixel_gemm_kernels *kernels, const struct op *op,
                    const struct op_tile *tile);
size_t pixel_gemm_scratch_bytes(const struct pixel_gemm_kernels *kernels, const struct op *op);

#endif
