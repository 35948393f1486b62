/** CUDA's words for the processor, then all kernels, then their table. Included once for each type, with
 *  EMULATED_TABLE as the table's name. */
#include "emulated.h"
#include "nn/backend/cuda/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL(name, type)                                                                         \
    static void name##_block(const type a);                                                        \
    static void name(const void *args, size_t args_bytes)                                          \
    {                                                                                              \
        type copy;                                                                                 \
        if (args_bytes != sizeof copy) {                                                           \
            abort();                                                                               \
        }                                                                                          \
        memcpy(&copy, args, args_bytes);                                                           \
        name##_block(copy);                                                                        \
    }                                                                                              \
    static void name##_block(const type a)
#define INLINE      static inline
#define SHARED      static _Thread_local
#define EACH_THREAD for (THREAD = 0; THREAD < BLOCK_THREADS; THREAD++)
#define BARRIER
#define THREAD        emulated_place.thread
#define BLOCK         emulated_place.block
#define BLOCK_Y       emulated_place.block_y
#define BLOCKS        emulated_place.blocks
#define ALIGNED       __attribute__((aligned(16)))
#define ALIGNED_TO(n) __attribute__((aligned(n)))
#define UNROLL

/* Each file uses those before it. */
// clang-format off
#include "nn/backend/cuda/kernels/common.cu"
#include "nn/backend/cuda/kernels/elementwise.cu"
#include "nn/backend/cuda/kernels/norm.cu"
#include "nn/backend/cuda/kernels/pool.cu"
#include "nn/backend/cuda/kernels/conv.cu"
#include "nn/backend/cuda/kernels/depthwise.cu"
#include "nn/backend/cuda/kernels/loss.cu"
#include "nn/backend/cuda/kernels/scale.cu"
#include "nn/backend/cuda/kernels/update.cu"
// clang-format on

const emulated_kernel EMULATED_TABLE[GPU_KERNEL_COUNT] = {
#define GPU_KERNEL(name) [GPU_KERNEL_##name] = (name),
#include "nn/backend/cuda/kernels.def"
#undef GPU_KERNEL
};
