/**
 * Linears of few images in f32: kernels of our own, which read the weights as they lie in the slab,
 * once, at the speed of the memory they are in. oneDNN's matrix product packs them first: four
 * images of 9216 -> 4096 take it 15.5 ms forward and 15.9 back where these take 9.6 and 10.9 (of
 * which reading the weights is 6.6), 512 -> 10 takes it twice as long, and the weight gradient of
 * one image, 3136 -> 512, which is 6.4 MB to write, 0.63 ms.
 *
 * The sum for an element runs over the same lanes and in the same order for any number of images.
 */
#ifndef WEIR_NN_ONEDNN_LINEAR_H
#define WEIR_NN_ONEDNN_LINEAR_H

#include "nn/backend/op.h"

#include <stdbool.h>
#include <stddef.h>

/** Images beyond which oneDNN's product is as fast; forward and backward those of so few weights,
 * whose products are done before it has begun (128 -> 10, 16 images: 0.5 instead of 0.8 us, back
 * 0.5 instead of 1.2). */
#define LINEAR_MAX_IMAGES        4
#define LINEAR_FEW_WEIGHTS       4096
#define LINEAR_MAX_IMAGES_OF_FEW 32

/** n images of n_in elements, n_out rows of weights. */
struct linear_shape {
    size_t n, n_in, n_out;
};

/** The same source for three levels of x86-64, as the vector kernels (vector.h). */
struct linear_kernels {
    /** y = x weights' + bias; bias may be NULL. */
    void (*forward)(struct linear_shape s, const float *x, const float *weights, const float *bias,
                    float *y);
    /** dx (+)= dy weights; `adds` chooses between = and +=. */
    void (*backward)(struct linear_shape s, const float *dy, const float *weights, bool adds,
                     float *dx);
    /** gradient = dy' x, and bias_gradient = sums of dy; bias_gradient may be NULL. */
    void (*weight_gradient)(struct linear_shape s, const float *dy, const float *x, float *gradient,
                            float *bias_gradient);
};

extern const struct linear_kernels linear_kernels_v1, linear_kernels_v3, linear_kernels_v4;

/** The table for this machine. */
const struct linear_kernels *linear_kernels(void);

/** Are n images of the op done by these kernels, forward and backward? And their weight gradient?
 */
bool linear_is_small(const struct op *op, int32_t n);
bool linear_has_small_gradient(const struct op *op, int32_t n);

/** Of an op and tile for which linear_is_small. */
weir_status linear_forward(const struct op *op, const struct op_tile *tile);
weir_status linear_backward(const struct op *op, const struct op_tile *tile);

/** Of an op and tile for which linear_has_small_gradient. */
weir_status linear_weight_gradient(const struct op *op, const struct op_tile *tile);

#endif
