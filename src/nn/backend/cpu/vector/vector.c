#include "vector.h"

#include "nn/backend/cpu/cpu_level.h"

const struct vector_kernels *vector_kernels(enum weir_precision type)
{
    if (type == WEIR_PRECISION_BF16) {
        return &vector_kernels_bf16;
    }
    switch (cpu_level()) {
    case CPU_LEVEL_V4:
        return &vector_kernels_v4;
    case CPU_LEVEL_V3:
        return &vector_kernels_v3;
    case CPU_LEVEL_V1:
        break;
    }
    return &vector_kernels_v1;
}
