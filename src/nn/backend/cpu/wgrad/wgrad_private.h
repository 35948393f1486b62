/** What the bodies of wgrad_body.h share, whatever the type. */
#ifndef WEIR_NN_WGRAD_PRIVATE_H
#define WEIR_NN_WGRAD_PRIVATE_H

#include "wgrad.h"

#define WGRAD_ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* A kernel tap, and the outputs for which it meets a pixel of the image. */
struct wgrad_tap {
    int32_t down, right; /* output (h, w) meets input (h * stride + down, w * stride + right) */
    int32_t first_h, end_h, first_w, end_w;
};

/* Rows of outputs; the rows of all images of the batch follow one another. */
struct wgrad_rows {
    int32_t first, end;
};

/* Taps of a kernel: enough for 31 x 31. */
#define WGRAD_MAX_TAPS 1024

/* Where sums go: one row per channel of dy, with the channels of x. */
struct wgrad_target {
    float *at;
    size_t stride, n_rows, n_channels;
    bool is_first; /* overwrites what is there */
};

/** The op as a convolution: a linear's images become single pixels. */
struct op wgrad_form(const struct op *op);

struct wgrad_tap wgrad_tap(const struct op *op, int32_t i_tap);

/** How many of the rows have outputs for which the tap meets the image. */
size_t wgrad_count_rows(const struct op *op, const struct wgrad_tap *tap, struct wgrad_rows rows);

/** Scratch of the tables for vectors. */
size_t wgrad_vector_scratch_bytes(const struct op *op);

/** Rows at a time, so that x and dy stay in the second cache while the taps take turns. */
int32_t wgrad_rows_at_once(const struct op *op);

/** Parts of scratch: the sums (rows of taps of channels); a pixel of zeros; the packed panel. */
size_t wgrad_sums_bytes(const struct op *op);
size_t wgrad_zeros_bytes(const struct op *op);

/** Turns the sums, rows of taps of channels, into rows of channels of taps: the gradient. */
void wgrad_unravel(const struct op *op, const float *sums);

#endif
