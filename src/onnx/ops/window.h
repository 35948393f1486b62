/** Windows: what convolutions and pools move over the spatial dimensions (behind N and C). */
#ifndef WEIR_ONNX_WINDOW_H
#define WEIR_ONNX_WINDOW_H

#include "onnx/op.h"

#define WINDOW_RANK_MAX 3

struct window {
    int32_t rank; /**< Spatial dimensions, 1 to 3. */
    int64_t in[WINDOW_RANK_MAX], out[WINDOW_RANK_MAX], kernel[WINDOW_RANK_MAX];
    int64_t stride[WINDOW_RANK_MAX], dilation[WINDOW_RANK_MAX];
    int64_t before[WINDOW_RANK_MAX], after[WINDOW_RANK_MAX]; /**< Padding. */
    size_t n_in, n_out, n_kernel; /**< Elements of a plane, and of the kernel. */
};

/**
 * Reads strides, dilations, pads and auto_pad; computes the output's size.
 * @param kernel   Size of the kernel; NULL: attribute kernel_shape.
 * @param is_ceil  A last window that is partly outside counts if it begins inside.
 */
weir_status window_read(const struct onnx_call *call, const struct weir_tensor *x,
                        const int64_t *kernel, bool is_ceil, struct window *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Turns a window that was read into that of a transposed convolution, which goes from the output to the
 *  input: reads output_padding and output_shape. Padding is cut from the output then; where it is less
 *  than zero, there are pixels that no window meets. */
weir_status window_turn(const struct onnx_call *call, struct window *window,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Dimensions of an output of n images of c planes. */
void window_out_dims(const struct window *window, int64_t n, int64_t c,
                     int64_t dims[WEIR_TENSOR_RANK_MAX]);

/** The input pixel that tap `tap` of the kernel meets at output `at`; -1: in the padding. */
int64_t window_meet(const struct window *window, size_t at, size_t tap);

/** How many taps of a window at `at` lie inside the image, or inside image and padding. */
size_t window_count(const struct window *window, size_t at, bool with_padding);

#endif
