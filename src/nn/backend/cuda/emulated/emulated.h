/**
 * An emulated GPU for tests: the kernels of kernels/ compiled for the processor, a block's threads one
 * after the other.
 *
 * Its memory can be touched only while a copy or a kernel runs: code that takes an address on the GPU
 * for one of the processor's ends in a fault. Recorded programs are kept as calls with copies of their
 * arguments, and are run from them.
 */
#ifndef WEIR_NN_CUDA_EMULATED_H
#define WEIR_NN_CUDA_EMULATED_H

#include "nn/backend/cuda/backend.h"

#include <stddef.h>

/** With plain loops in place of the library's convolutions. */
extern const struct gpu_ops gpu_emulated_ops;
/** The same, but it plans no convolution: all are done by kernels of ours. */
extern const struct gpu_ops gpu_emulated_bare_ops;

/** While it is set, copies and waits fail, as those of a GPU that has failed do. */
extern _Atomic bool emulated_has_failed;

/** The place of a block, and its grid; the kernels read it. Of the thread that runs them: several may use
 *  a GPU each. */
struct emulated_place {
    unsigned thread, block, block_y, blocks;
};
extern _Thread_local struct emulated_place emulated_place;

/** A kernel's block of all threads. `args_bytes` is checked. */
typedef void (*emulated_kernel)(const void *args, size_t args_bytes);
extern const emulated_kernel emulated_kernels_f32[GPU_KERNEL_COUNT];
extern const emulated_kernel emulated_kernels_bf16[GPU_KERNEL_COUNT];
extern const emulated_kernel emulated_kernels_f16[GPU_KERNEL_COUNT];

#endif
