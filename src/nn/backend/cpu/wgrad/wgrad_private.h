/** What wgrad.c works out for the bodies of wgrad_body.h, whatever the type. */
#ifndef WEIR_NN_ONEDNN_PRODUCT_PRIVATE_H
#define WEIR_NN_ONEDNN_PRODUCT_PRIVATE_H

#include "wgrad.h"

#define PRODUCT_ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* A cell of the kernel, and the outputs for which it meets a pixel of the picture. */
struct product_cell {
    int32_t down, right; /* output (h, w) meets input (h * stride + down, w * stride + right) */
    int32_t first_h, end_h, first_w, end_w;
};

/* Rows of outputs, of all images of the batch after one another. */
struct product_rows {
    int32_t first, end;
};

/* Of a kernel: enough for 31 x 31. */
#define PRODUCT_MAX_CELLS 1024

/* Where sums go: rows of channels of x, one row per channel of dy. */
struct product_place {
    float *at;
    size_t stride, n_rows, n_channels;
    bool is_first; /* overwrite what is there */
};

/** The op as a convolution: a linear's images are single pixels. */
struct op product_form(const struct op *op);

struct product_cell product_cell(const struct op *op, int32_t i_cell);

/** How many of the rows have outputs for which the cell meets the picture. */
size_t product_count_rows(const struct op *op, const struct product_cell *cell,
                          struct product_rows rows);

/** What the tables for vectors want as scratch. */
size_t product_vector_scratch_bytes(const struct op *op);

/** So many that x and dy stay in the second cache while the cells take turns. */
int32_t product_rows_at_once(const struct op *op);

/** Scratch: the sums, rows of cells of channels; a pixel of zeros; the packed panel. */
size_t product_sums_bytes(const struct op *op);
size_t product_zeros_bytes(const struct op *op);

/** Those rows into rows of channels of cells: the gradient. */
void product_unravel(const struct op *op, const float *sums);

#endif
