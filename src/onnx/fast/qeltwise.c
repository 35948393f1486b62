#include "qeltwise.h"

#include <math.h>

#define PIECE 256 /* Numbers that are floats in between. */

void qeltwise_dequantize(const void *x, const struct qbytes *from, float *y, size_t n)
{
    const uint8_t *u8 = x;
    const int8_t *s8 = x;
    const float scale = from->scale, zero = (float)from->zero;
    if (from->is_signed) {
        for (size_t i = 0; i < n; i++) {
            y[i] = ((float)s8[i] - zero) * scale;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            y[i] = ((float)u8[i] - zero) * scale;
        }
    }
}

void qeltwise_quantize(const float *x, const struct qbytes *to, void *y, size_t n)
{
    uint8_t *u8 = y;
    int8_t *s8 = y;
    const float scale = to->scale, zero = (float)to->zero;
    const float low = to->is_signed ? -128 : 0, high = to->is_signed ? 127 : 255;
    if (to->is_signed) {
        for (size_t i = 0; i < n; i++) {
            float value = rintf(x[i] / scale) + zero;
            value = value > low ? value : low;
            s8[i] = (int8_t)(int32_t)(value < high ? value : high);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            float value = rintf(x[i] / scale) + zero;
            value = value > low ? value : low;
            u8[i] = (uint8_t)(int32_t)(value < high ? value : high);
        }
    }
}

void qeltwise_add(const void *a, const struct qbytes *of_a, const void *b,
                  const struct qbytes *of_b, float low, float high, const struct qbytes *to,
                  void *y, size_t n)
{
    float sum[PIECE], other[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        size_t n_here = n - at < PIECE ? n - at : PIECE;
        qeltwise_dequantize((const char *)a + at, of_a, sum, n_here);
        qeltwise_dequantize((const char *)b + at, of_b, other, n_here);
        for (size_t i = 0; i < n_here; i++) {
            float value = sum[i] + other[i];
            value = value > low ? value : low;
            sum[i] = value < high ? value : high;
        }
        qeltwise_quantize(sum, to, (char *)y + at, n_here);
    }
}
