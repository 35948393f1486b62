/**
 * Weight gradients in bf16 whose instructions multiply and add up pairs: of two images. A place is
 * a pixel of both; its channels are packed as dwords, a channel of both images each.
 *
 * Two neighbours of one image would do for a kernel of one cell only, as the next cell would want
 * them paired another way. So x is packed once for all cells, each of which reads it from another
 * place on, with rows as long as those of dy and room for the padding (the pitch). With a stride, x
 * is packed in as many parts (phases) as the cells' pixels leave different remainders.
 *
 * wgrad_pixels.c packs x in chunks that stay in the second cache and takes the cells in turn; how
 * dy is packed and how a block of sums is added up is the affair of a table: of matrix registers
 * (wgrad_amx.c) or of vectors (wgrad_bf16_pairs.c). All of them are compiled for AVX-512.
 */
#ifndef WEIR_NN_ONEDNN_PRODUCT_PLACES_H
#define WEIR_NN_ONEDNN_PRODUCT_PLACES_H

#include "wgrad_private.h"

/* A strip: so many channels, one cache line a place. A block: of two strips each of x and dy. */
enum { PANEL_CHANNELS = 16, PIXEL_BYTES = 64, BLOCK_CHANNELS = 2 * PANEL_CHANNELS };

/* One direction of the picture. Tap t of the kernel meets input i * stride + phase + offset *
 * stride in output i. */
struct axis {
    int32_t n_taps, stride, dilation, pad;
    int32_t low, high; /* least and largest offset */
    int32_t n_stride_phases;
};

/* Rows of some pairs of images, of all pictures dy. */
struct chunk {
    size_t first_image_pair, n_image_pairs, first_h, n_h;
    size_t x_len, dy_len;     /* places of a pair, packed */
    size_t x_total, dy_total; /* of a strip: of one phase; of all pairs */
};

/* What is computed, by whom, and where it is in it. */
struct pixel_gemm {
    const struct op *op;
    const struct op_tile *tile;
    const struct pixel_gemm_kernels *kernels;
    struct axis h, w;
    size_t n_left, n_right; /* columns of x beyond those of dy */
    size_t pitch;           /* places from a row of x to the next */
    bool is_dense;          /* one cell, no padding: images follow without a gap */
    const uint16_t *zeros;
    struct chunk chunk;
};

/* Packed places that belong together, from the first one of both on: those of a row, of so many
 * rows, of so many pairs. */
struct panels {
    const char *x, *dy;
    size_t x_bytes, dy_bytes; /* from a strip to the next */
    size_t n_image_pairs, n_rows, n_pixels;
    size_t x_pair, dy_pair, x_row, dy_row; /* bytes from one to the next */
};

struct pixel_gemm_kernels {
    /** dy has x's pitch, with zeros that meet what is not a pixel, in whole steps of PANEL_CHANNELS
     * places that are one row; else its pixels alone, and padding is left out. */
    bool is_padded;
    /** Places of a chunk, about: as many as CHUNK_BYTES hold between these. */
    size_t fewest, most;
    /** Around a whole gradient. */
    void (*begin)(void), (*end)(void);
    /** Channels first .. first + n of the chunk's dy; strips follow at dy_total places. `to` lies
     * on a cache line. */
    void (*pack_dy)(const struct pixel_gemm *gemm, size_t first, size_t n, char *to);
    /** BLOCK_CHANNELS x BLOCK_CHANNELS sums = or += over all places, rows of dy and columns of x; a row
     * of sums follows after `stride` floats, anywhere. */
    void (*sum_block)(const struct panels *panels, float *to, size_t stride, bool is_first);
};

/* The same pixel of both images of a pair; where there is no second, zeros for all of them. */
struct pixel_pair {
    const uint16_t *first, *second;
    size_t second_step; /* 1, or 0 */
};

static inline struct pixel_pair pixel_pair_at(struct pixel_pair from, size_t elems)
{
    return (struct pixel_pair){from.first + elems, from.second + elems * from.second_step,
                               from.second_step};
}

/** The first pixels of the pair's images in x or dy, which have `elems` an image. */
struct pixel_pair pixel_pair_find(const struct pixel_gemm *gemm, const real *tensor,
                                  size_t i_image_pair, size_t elems);

/** A place's n channels to one line of each strip; what is missing of the last block is zeros. `to`
 * and panel_bytes are multiples of PIXEL_BYTES. */
void pixel_pair_pack(struct pixel_pair pixels, size_t n, char *to, size_t panel_bytes);

/** As wgrad.h says of run and scratch_bytes, for ops of one group without a bias. */
void pixel_gemm_run(const struct pixel_gemm_kernels *kernels, const struct op *op,
                    const struct op_tile *tile);
size_t pixel_gemm_scratch_bytes(const struct pixel_gemm_kernels *kernels, const struct op *op);

#endif
