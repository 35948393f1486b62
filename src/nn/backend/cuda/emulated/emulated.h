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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** With plain loops in place of the library's convolutions. All-reduces run as late as they may. */
extern const struct gpu_ops gpu_emulated_ops;
/** The same, but it plans no convolution: all are done by kernels of ours. All-reduces run as early as
 *  they may. */
extern const struct gpu_ops gpu_emulated_bare_ops;

/** While it is set, copies and waits fail, as those of a GPU that has failed do. */
extern _Atomic bool emulated_has_failed;

/* ---- groups (emulated_group.c): ranks are processes of one host ----------------------------------- */

#define EMULATED_GROUP_MAX 4

/** How many GPUs there are: ranks that are so many apart have the same. */
extern int emulated_n_gpus;
/** Not NULL: no GPU can be one of a group, and why. */
extern const char *emulated_group_lack;

/** A rank that is to be hit; -1: none. */
struct emulated_victim {
    int rank;
    bool fails_to_open; /**< It cannot open its group. */
    uint64_t n_sums;    /**< In this all-reduce of its group, counted from 1, it gets the signal, */
    int signal;
    int *n_left; /**< so many times; shared by all processes. NULL: it does not. */
};
extern struct emulated_victim emulated_victim;

struct emulated_group;
weir_status emulated_probe(int32_t index, struct gpu_probe *out, struct weir_error *err);
weir_status emulated_make_group_id(struct gpu *gpu, struct gpu_group_id *out,
                                   struct weir_error *err);
weir_status emulated_group_open(const struct gpu_group *config, struct emulated_group **out,
                                struct weir_error *err);
void emulated_group_close(struct emulated_group *group);
/** Waits for the others. `at` is readable and writable. */
weir_status emulated_group_sum(struct emulated_group *group, float *at, size_t n_elems,
                               struct weir_error *err);

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
