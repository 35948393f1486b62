#include "vector.h"

const struct vector_kernels *vector_kernels(enum weir_precision type)
{
    if (type == WEIR_PRECISION_BF16) {
        return &vector_kernels_bf16;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return &vector_kernels_v4;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        return &vector_kernels_v3;
    }
#endif
    return &vector_kernels_v1;
}
