/**
 * Linears of few images in f32, by kernels of our own. They read the weights once, as they lie in
 * the slab, at the speed of the memory that holds them.
 *
 * oneDNN's matrix product packs the weights first. Four images of 9216 -> 4096 take it 15.5 ms
 * forward and 15.9 backward; these kernels take 9.6 and 10.9, of which 6.6 is reading the weights.
 * 512 -> 10 takes it twice as long. The weight gradient of one image, 3136 -> 512, is 6.4 MB to
 * write and takes it 0.63 ms.
 *
 * A training step of 4 images beside one with oneDNN's, on a Xeon, by processor time: 1.07 times as
 * fast for LeNet, 1.11 for AlexNet.
 *
 * The sum of an element runs over the same lanes in the same order for any number of images.
 */
#ifndef WEIR_NN_CPU_LINEAR_H
#define WEIR_NN_CPU_LINEAR_H

#include "nn/backend/op.h"

#include <stdbool.h>
#include <stddef.h>

/** With more images than this, oneDNN's matrix product is as fast. With few weights our kernels
 *  have finished, forward and backward, before it has begun: 128 -> 10, 16 images, take 0.5 instead
 *  of 0.8 us, and 0.5 instead of 1.2 backward. */
#define LINEAR_MAX_IMAGES        4
#define LINEAR_FEW_WEIGHTS       4096
#define LINEAR_MAX_IMAGES_OF_FEW 32

/** n images of n_in elements; n_out rows of weights. */
struct linear_shape {
    size_t n, n_in, n_out;
};

/** Compiled for three levels of x86-64, as the vector kernels are (vector.h). */
struct linear_kernels {
    /** y = x weights' + bias. bias may be NULL. */
    void (*forward)(struct linear_shape s, const float *x, const float *weights, const float *bias,
                    float *y);
    /** dx (+)= dy weights. `adds` chooses between = and +=. */
    void (*backward)(struct linear_shape s, const float *dy, const float *weights, bool adds,
                     float *dx);
    /** gradient = dy' x, and bias_gradient = sums of dy. bias_gradient may be NULL. */
    void (*weight_gradient)(struct linear_shape s, const float *dy, const float *x, float *gradient,
                            float *bias_gradient);
};

extern const struct linear_kernels linear_kernels_v1, linear_kernels_v3, linear_kernels_v4;

/** The table for this machine. */
const struct linear_kernels *linear_kernels(void);

/** Do these kernels compute n images of the op, forward and backward? */
bool linear_is_small(const struct op *op, int32_t n);
bool linear_has_small_gradient(const struct op *op, int32_t n);

/** For an op and tile with linear_is_small. */
weir_status linear_forward(const struct op *op, const struct op_tile *tile);
weir_status linear_backward(const struct op *op, const struct op_tile *tile);

/** For an op and tile with linear_has_small_gradient. */
weir_status linear_weight_gradient(const struct op *op, const struct op_tile *tile);

#endif
