/**
 * Qproduct: convolutions and products of bytes, in whole numbers, so exact: differences to the zero
 * points as 16-bit numbers, sums in 32 bits. oneDNN's code for AVX2 loses what does not fit 16 bits.
 *
 * Pixels lie channels last. A product of matrices is a convolution of images of one pixel.
 */
#ifndef WEIR_ONNX_FAST_QPRODUCT_H
#define WEIR_ONNX_FAST_QPRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QPRODUCT_TERMS_MAX 33000 /* Whose sum of products fits 32 bits. */

enum qproduct_out { QPRODUCT_U8, QPRODUCT_S8, QPRODUCT_F32 };

struct qproduct_form {
    int64_t n, c, h, w, k, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t pad_h, pad_w, after_h, after_w;
};

/** y = clamp(sum * factor[k] + summand[k], low, high), rounded to the even and shifted by the zero
 *  point if it is of bytes. */
struct qproduct {
    struct qproduct_form form;
    const void *x;
    bool x_is_signed;
    int32_t x_zero;
    const int16_t *weights;        /**< Packed. */
    const float *factor, *summand; /**< By channel, filled up to a multiple of 16. */
    float low, high;
    enum qproduct_out out;
    int32_t y_zero;
    void *y;
    void *scratch;
};

/** Can this processor? */
bool qproduct_can(void);

size_t qproduct_weights_bytes(const struct qproduct_form *form);
/** Packs k x c x kernel weights less their zero points: q are values as in the file, widened. */
void qproduct_pack(const struct qproduct_form *form, const int16_t *values, int16_t *out);

size_t qproduct_scratch_bytes(const struct qproduct_form *form);
void qproduct_run(const struct qproduct *job, int32_t n_threads);

#endif
