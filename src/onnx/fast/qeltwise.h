/** Qeltwise: bytes to floats and back, and sums of bytes, element by element. CMakeLists.txt has the
 *  flags. Rounding is to the even. */
#ifndef WEIR_ONNX_FAST_QELTWISE_H
#define WEIR_ONNX_FAST_QELTWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qbytes {
    float scale;
    int32_t zero;
    bool is_signed;
};

void qeltwise_dequantize(const void *x, const struct qbytes *from, float *y, size_t n);
void qeltwise_quantize(const float *x, const struct qbytes *to, void *y, size_t n);
/** low and high bound the sum before it is quantised. */
void qeltwise_add(const void *a, const struct qbytes *of_a, const void *b,
                  const struct qbytes *of_b, float low, float high, const struct qbytes *to,
                  void *y, size_t n);

#endif
