/**
 * Vector kernels: the loops between oneDNN's calls, channels last, written so that a compiler
 * vectorises them. The same source is compiled for three levels of x86-64, and once more for
 * tensors of bf16 (vector_body.h, vector_pool_body.h). The machine is looked at once.
 *
 * A tensor is `n_pixels` rows (images x height x width) of `c` channels, of the table's type.
 * Arguments declared float are f32 in every table, and arithmetic is f32.
 *
 * Sums over pixels run in f32 over at most VECTOR_CHUNK pixels and in double beyond, so that the
 * error does not grow with the image. `adds` chooses between = and +=. y may be the memory of x,
 * and dx that of dy, element by element, except in pools, transposes and conversions.
 */
#ifndef WEIR_NN_CPU_VECTOR_H
#define WEIR_NN_CPU_VECTOR_H

#include "nn/backend/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_CHUNK 32

/**
 * g = dy where y > 0 (y NULL: everywhere); dx (+)= scale * g + x_factor * x + shift; residual_dx
 * (+)= g.
 *
 * dx and residual_dx may be NULL, or the memory of dy. `adds` and `residual_adds` choose between =
 * and +=. is_past: as in norm_apply, for results that are assigned and do not lie over dy.
 */
struct norm_gradient {
    const void *dy, *y, *x;
    size_t n_pixels, c;
    const float *scale, *x_factor, *shift;
    void *dx, *residual_dx;
    bool adds, residual_adds, is_past;
};

struct vector_kernels {
    size_t elem_bytes;
    /** Copies one image of the caller, C x HW, into HW x C. */
    void (*input)(const float *x, size_t c, size_t hw, void *y);
    /** Converts between f32 and the table's type. */
    void (*to_f32)(const void *x, float *y, bool adds, size_t n);
    void (*from_f32)(const float *x, void *y, bool adds, size_t n);

    /** sum[c] and squares[c] of x. */
    void (*norm_sums)(const void *x, size_t n_pixels, size_t c, double *sum, double *squares);
    /** y = scale * x + shift (+ residual, if not NULL), then ReLU if has_relu. is_past: y is
     *  neither x nor residual, and stores bypass the caches where the processor can. Through the
     *  caches, y would be read first and evicted before its next reader. */
    void (*norm_apply)(const void *x, const void *residual, void *y, size_t n_pixels, size_t c,
                       const float *scale, const float *shift, bool has_relu, bool is_past);
    /** g = dy where y > 0 (y NULL: everywhere): sum[c] of g and of g * (x - mean). */
    void (*norm_backward_sums)(const void *dy, const void *y, const void *x, size_t n_pixels,
                               size_t c, const float *mean, double *sum, double *products);
    /** See struct norm_gradient. */
    void (*norm_backward)(const struct norm_gradient *job);

    /** min(max(x, 0), ceiling), NaN passing; the gradient passes where 0 < y < ceiling. */
    void (*relu)(const void *x, void *y, float ceiling, size_t n);
    void (*relu_backward)(const void *dy, const void *y, void *dx, bool adds, float ceiling,
                          size_t n);
    void (*add)(const void *a, const void *b, void *y, size_t n);
    /** y (+)= factor * x; y (+)= factors[i] * x[i]. */
    void (*scale)(const void *x, float factor, void *y, bool adds, size_t n);
    void (*multiply)(const void *x, const float *factors, void *y, bool adds, size_t n);
    void (*prelu)(const void *x, const float *slope, void *y, size_t n_pixels, size_t c);
    /** dx may be NULL. slope_sum[c] = sum of dy * x where x < 0. */
    void (*prelu_backward)(const void *dy, const void *x, const float *slope, void *dx, bool adds,
                           size_t n_pixels, size_t c, double *slope_sum);
    /** Transposes rows x cols of `from` into cols x rows of `to`. */
    void (*transpose)(const void *from, size_t rows, size_t cols, bool adds, void *to);

    /** Pools of one image. Backward writes every element of dx. argmax may be NULL; else it gets h
     *  * W + w of the window's maximum, per output element. */
    void (*max_pool)(const struct op *op, const void *x, void *y, int32_t *argmax);
    void (*max_pool_backward)(const struct op *op, const void *dy, const int32_t *argmax, void *dx,
                              bool adds);
    void (*avg_pool)(const struct op *op, const void *x, void *y);
    void (*avg_pool_backward)(const struct op *op, const void *dy, void *dx, bool adds);
    void (*global_pool)(const void *x, size_t hw, size_t c, void *y);
    void (*global_pool_backward)(const void *dy, size_t hw, size_t c, void *dx, bool adds);

    /** log(sum(exp(x))) of n >= 1 floats, without overflow. NaN if one of them is NaN or
     *  +infinity. */
    double (*log_sum_exp)(const float *x, size_t n);
    /** dx (+)= (exp(x) / sum(exp(x)) - rest) * factor. */
    void (*softmax_backward)(const float *x, size_t n, float rest, float factor, float *dx,
                             bool adds);
};

/** The table for this machine and type. */
const struct vector_kernels *vector_kernels(enum weir_precision type);

/** Element `at` of a tensor of the op's type. */
static inline void *vector_at(const struct op *op, const void *tensor, size_t at)
{
    size_t elem_bytes = op->type == WEIR_PRECISION_BF16 ? sizeof(uint16_t) : sizeof(float);
    return (char *)(uintptr_t)tensor + at * elem_bytes;
}

extern const struct vector_kernels vector_kernels_v1, vector_kernels_v3, vector_kernels_v4,
    vector_kernels_bf16;

#endif
