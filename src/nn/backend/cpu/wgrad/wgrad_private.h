/** What wgrad.c works out for the bodies of wgrad_body.h, whatever the type. */
#ifndef WEIR_NN_ONEDNN_PRODUCT_PRIVATE_H
#define WEIR_NN_ONEDNN_PRODUCT_PRIVATE_H

#include "wgrad.h"

#define WGRAD_ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* A cell of the kernel, and the outputs for which it meets a pixel of the picture. */
struct wgrad_tap {
    int32_t down, right; /* output (h, w) meets input (h * stride + down, w * stride + right) */
    int32_t first_h, end_h, first_w, end_w;
};

/* Rows of outputs, of all images of the batch after one another. */
struct wgrad_rows {
    int32_t first, end;
};

/* Of a kernel: enough for 31 x 31. */
#define WGRAD_MAX_TAPS 1024

/* Where sums go: rows of channels of x, one row per channel of dy. */
struct wgrad_target {
    float *at;
    size_t stride, n_rows, n_channels;
    bool is_first; /* overwrite what is there */
};

/** The op as a convolution: a linear's images are single pixels. */
struct op wgrad_form(const struct op *op);

struct wgrad_tap wgrad_tap(const struct op *op, int32_t i_tap);

/** How many of the rows have outputs for which the cell meets the picture. */
size_t wgrad_count_rows(const struct op *op, const struct wgrad_tap *tap, struct wgrad_rows rows);

/** What the tables for vectors want as scratch. */
size_t wgrad_vector_scratch_bytes(const struct op *op);

/** So many that x and dy stay in the second cache while the cells take turns. */
int32_t wgrad_rows_at_once(const struct op *op);

/** Scratch: the sums, rows of cells of channels; a pixel of zeros; the packed panel. */
size_t wgrad_sums_bytes(const struct op *op);
size_t wgrad_zeros_bytes(const struct op *op);

/** Those rows into rows of channels of cells: the gradient. */
void wgrad_unravel(const struct op *op, const float *sums);

#endif
