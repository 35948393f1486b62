/**
 * Vector kernels: the loops between oneDNN's calls, channels last, written so that a compiler
 * vectorises them. The same source is compiled for three levels of x86-64 (vector_body.h); the
 * machine chooses once. A tensor is `n_pixels` rows (images x height x width) of `c` channels.
 *
 * Sums over pixels run in f32 over at most VECTOR_CHUNK pixels and in double beyond, so that the
 * error does not grow with the image.
 */
#ifndef WEIR_NN_ONEDNN_VECTOR_H
#define WEIR_NN_ONEDNN_VECTOR_H

#include "../graph.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_CHUNK 32

/**
 * g = dy where y > 0 (y NULL: everywhere); dx (+)= scale * g + x_factor * x + shift, and
 * residual_dx (+)= g. dx and residual_dx may be NULL or be the memory of dy; `adds` and
 * `residual_adds` choose between = and +=.
 */
struct norm_gradient {
    const float *dy, *y, *x;
    size_t n_pixels, c;
    const float *scale, *x_factor, *shift;
    float *dx, *residual_dx;
    bool adds, residual_adds;
};

struct vector_kernels {
    /** sum[c] and squares[c] of x. */
    void (*norm_sums)(const float *x, size_t n_pixels, size_t c, double *sum, double *squares);
    /** y = scale * x + shift (+ residual, if not NULL), then ReLU if asked for. */
    void (*norm_apply)(const float *x, const float *residual, float *y, size_t n_pixels, size_t c,
                       const float *scale, const float *shift, bool has_relu);
    /** g = dy where y > 0 (y NULL: everywhere): sum[c] of g and of g * (x - mean). */
    void (*norm_backward_sums)(const float *dy, const float *y, const float *x, size_t n_pixels,
                               size_t c, const float *mean, double *sum, double *products);
    /** See struct norm_gradient. */
    void (*norm_backward)(const struct norm_gradient *job);
    void (*relu)(const float *x, float *y, size_t n);
    void (*relu_backward)(const float *dy, const float *y, float *dx, bool adds, size_t n);
    void (*add)(const float *a, const float *b, float *y, size_t n);
    void (*prelu)(const float *x, const float *slope, float *y, size_t n_pixels, size_t c);
    /** dx may be NULL. slope_sum[c] = sum of dy * x where x < 0. */
    void (*prelu_backward)(const float *dy, const float *x, const float *slope, float *dx,
                           bool adds, size_t n_pixels, size_t c, double *slope_sum);
    /** One image. winners may be NULL; else h * W + w of the largest cell, per output element. */
    void (*max_pool)(const float *x, struct weir_shape in, struct weir_shape out,
                     const struct weir_pool_params *pool, float *y, int32_t *winners);
    /** One image; dx is added to. */
    void (*max_pool_backward)(const float *dy, const int32_t *winners, struct weir_shape in,
                              struct weir_shape out, const struct weir_pool_params *pool,
                              float *dx);
};

/** The table for this machine. */
const struct vector_kernels *vector_kernels(void);

extern const struct vector_kernels vector_kernels_v1, vector_kernels_v3, vector_kernels_v4;

#endif
