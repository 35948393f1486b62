/**
 * GPU: the seam between the kernels of this back-end and the libraries that run them.
 *
 * A `struct gpu` is one GPU as one net uses it: its own stream, its own count of memory. Everything
 * that is queued runs in the order of the calls. Two implementations fill the table: gpu_cuda.c
 * (NVIDIA's driver, NVRTC, cuDNN, cuBLAS and NCCL, loaded at run time), and, in tests, gpu_emulated.c,
 * which runs the same kernels on the processor. Whatever cannot run as a library call (`plan_conv`
 * answers UNSUPPORTED) is done by a kernel of ours.
 *
 * Addresses on the GPU are never read or written by the processor.
 *
 * Threads: one thread at a time uses a gpu; any thread may, after `enter`.
 *
 * Errors: UNSUPPORTED (a library is not there, with its name and what to do), NOMEM (of the GPU, or
 * beyond the limit), INTERNAL (a library failed; the GPU is not to be used any more).
 */
#ifndef WEIR_NN_CUDA_GPU_H
#define WEIR_NN_CUDA_GPU_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Kernels of kernels.cu, each compiled for f32, bf16 and fp16. */
enum gpu_kernel {

#define GPU_KERNEL(name) GPU_KERNEL_##name,
#include "kernels.def"
#undef GPU_KERNEL
    GPU_KERNEL_COUNT
};

/** Type of the elements of tensors. Sums are f32 always. */
enum gpu_type {
    GPU_F32,  /**< Products in f32. */
    GPU_TF32, /**< f32 in memory; factors of products are rounded to 10 bits of fraction. */
    GPU_BF16,
    GPU_F16, /**< IEEE half. */
    GPU_TYPE_COUNT
};

/** Is it one of two bytes? */
static inline bool gpu_is_half(enum gpu_type type)
{
    return type == GPU_BF16 || type == GPU_F16;
}

/** Threads of a block: all kernels are written for it. */
#define GPU_BLOCK 256

/** What a convolution computes. Layouts: x, y N×H×W×C; w K×R×S×(C / groups). */
enum gpu_conv_direction {
    GPU_CONV_FORWARD,        /**< y from x and w. */
    GPU_CONV_INPUT_GRADIENT, /**< x from y and w. */
    GPU_CONV_WEIGHT_GRADIENT /**< w from x and y. */
};

struct gpu_conv_shape {
    enum gpu_conv_direction direction;
    enum gpu_type type;      /**< Of x, w, y and the bias. */
    int32_t n, c, h, w;      /**< x. c is a multiple of 8 for halves, of 4 otherwise. */
    int32_t k, out_h, out_w; /**< y. k as c. */
    int32_t kernel_h, kernel_w;
    int32_t stride, pad_h, pad_w, dilation;
    int32_t groups;    /**< 1, or a divisor of c and k. */
    bool adds;         /**< INPUT_GRADIENT: x += instead of x =. */
    bool has_bias;     /**< FORWARD: k values of the same type. */
    bool has_residual; /**< FORWARD: added to y before the ReLU; may be the memory of y. */
    bool has_relu;     /**< FORWARD. */
};

/** A planned library call. */
struct gpu_plan;

/** Addresses of a convolution's tensors; those it does not use are NULL. */
struct gpu_conv_tensors {
    const void *x, *w, *y, *bias, *residual; /**< The direction says which of x, w, y is written. */
    void *workspace;
};

struct gpu;

/* ---- groups: GPUs, each of one rank, that sum arrays ------------------------------------------- */

#define GPU_PLACE_BYTES 96

/** A GPU, told without opening it. */
struct gpu_probe {
    char place[GPU_PLACE_BYTES]; /**< Host and slot: equal for the same GPU only. */
};

/** One rank makes it and gives it to the others. */
struct gpu_group_id {
    char bytes[128];
};

struct gpu_group {
    struct gpu_group_id id;
    int rank, size;
    int timeout_ms; /**< Longest wait for the others, in each call that waits. */
    /** Asked while waiting, often: a status other than OK ends the wait and becomes its result. NULL:
     *  nobody knows better. It must not block. */
    weir_status (*check)(void *context);
    void *context; /**< Borrowed while the group is open. */
};

struct gpu_ops {
    const char *name;
    /**
     * Opens GPU `index`, modulo their number, of those that this process may use.
     * @param memory_limit  Bytes that `alloc` may have given out at a time; 0: all there is.
     */
    weir_status (*open)(int32_t index, size_t memory_limit, struct gpu **out,
                        struct weir_error *err);
    /** Waits, then frees everything but memory, which its owners have freed. */
    void (*close)(struct gpu *gpu);
    /** Makes the calling thread one that uses the gpu. */
    void (*enter)(struct gpu *gpu);

    /** Zeroed memory, aligned to 256 bytes. 0 bytes give NULL. */
    weir_status (*alloc)(struct gpu *gpu, size_t size_bytes, void **out, struct weir_error *err);
    void (*free)(struct gpu *gpu, void *at);
    /** Zeroed memory of the processor that copies from and to the GPU need not pass on. */
    weir_status (*alloc_pinned)(struct gpu *gpu, size_t size_bytes, void **out,
                                struct weir_error *err);
    void (*free_pinned)(struct gpu *gpu, void *at);

    /** Queues a copy in lane 0. Memory of the processor is in use until `wait`, or, for an upload,
     *  `wait_uploads`. */
    weir_status (*upload)(struct gpu *gpu, void *to, const void *from, size_t size_bytes);
    weir_status (*download)(struct gpu *gpu, void *to, const void *from, size_t size_bytes);
    /** Queues an upload in a lane of its own, beside all others: behind the last `take_ahead`, and at any
     *  time before the next. Not in a record. */
    weir_status (*upload_ahead)(struct gpu *gpu, void *to, const void *from, size_t size_bytes);
    /** Queues a copy within the GPU in lane 0, behind the last `upload_ahead`. Not in a record. */
    weir_status (*take_ahead)(struct gpu *gpu, void *to, const void *from, size_t size_bytes);
    /** Returns when all that is queued, in any lane, is done. @return INTERNAL: what was queued has failed. */
    weir_status (*wait)(struct gpu *gpu);
    /** Returns when all queued uploads are done, those ahead too. */
    weir_status (*wait_uploads)(struct gpu *gpu);

    /** Queues a kernel: grid_x × grid_y blocks of GPU_BLOCK threads. `args` is its argument
     *  structure (kernels.h), which is copied. */
    weir_status (*launch)(struct gpu *gpu, enum gpu_kernel kernel, enum gpu_type type,
                          uint32_t grid_x, uint32_t grid_y, const void *args, size_t args_bytes);

    /**
     * Plans a convolution: the fastest algorithm of those that the library proposes, by measuring
     * them on memory of its own. A shape that was planned before costs nothing.
     * @param out  Lives as long as the gpu.
     * @return UNSUPPORTED: there is none.
     */
    weir_status (*plan_conv)(struct gpu *gpu, const struct gpu_conv_shape *shape,
                             struct gpu_plan **out, size_t *out_workspace_bytes,
                             struct weir_error *err);
    weir_status (*run_conv)(struct gpu *gpu, const struct gpu_plan *plan,
                            const struct gpu_conv_tensors *tensors);

    /**
     * Chooses the lane of kernels and convolutions from now on: 0, where everything else is queued, or
     * 1. What is queued in a lane runs in order; the lanes run beside each other, but for marks. Before
     * a copy, or the end of a record, lane 0 has waited for the last mark of lane 1.
     */
    void (*set_lane)(struct gpu *gpu, int lane);
    /** Marks a place in the current lane. `i_mark` 0 to GPU_MARKS - 1; its older place is forgotten. */
    weir_status (*mark)(struct gpu *gpu, int i_mark);
    /** What is queued in the current lane from now on runs after what lies before the mark. */
    weir_status (*wait_mark)(struct gpu *gpu, int i_mark);

    /** Begins to record what is queued instead of running it. */
    weir_status (*begin_record)(struct gpu *gpu);
    /** Ends it. `slot` 0 to GPU_RECORDS - 1; an older record of the slot is forgotten. */
    weir_status (*end_record)(struct gpu *gpu, int slot);
    /** Queues what was recorded. @return NOT_FOUND: nothing was. */
    weir_status (*replay)(struct gpu *gpu, int slot);

    /** Can GPU `index` be one of a group, and which is it? @return UNSUPPORTED: it or the library is
     *  not there. */
    weir_status (*probe)(int32_t index, struct gpu_probe *out, struct weir_error *err);
    weir_status (*make_group_id)(struct gpu *gpu, struct gpu_group_id *out, struct weir_error *err);
    /**
     * Meets the other ranks. They have other GPUs.
     * @return TIMEOUT, what check said, or INTERNAL with the library's words: no group is open then.
     */
    weir_status (*open_group)(struct gpu *gpu, const struct gpu_group *group,
                              struct weir_error *err);
    /** Forgets all records, gives up what is queued, and leaves. Without a group it does nothing. */
    void (*close_group)(struct gpu *gpu);
    /**
     * Queues an all-reduce in a lane of the group's own, behind what is queued in the current lane: n
     * f32 elements become their sums over the ranks, the same bits on all. All ranks make the same
     * calls in the same order.
     *
     * A rank that does not come shows in `wait`: it gives the group up after its timeout, or when
     * `check` or the library says so, and returns PEER or TIMEOUT, or INTERNAL. What is queued ends
     * then with undefined sums, records are forgotten, and gpu->group_failure has the reason; the GPU
     * goes on without a group.
     */
    weir_status (*all_reduce)(struct gpu *gpu, float *at, size_t n_elems);
    /** What is queued in the current lane from now on runs after all queued all-reduces. Before a copy,
     *  or the end of a record, lane 0 has joined. */
    weir_status (*join_group)(struct gpu *gpu);

    /** Bytes that `alloc` has given out. */
    size_t (*memory_bytes)(const struct gpu *gpu);
    /** "NVIDIA H200, driver 580.159, cuDNN 9.10.2": for figures. */
    void (*describe)(struct gpu *gpu, char *out, size_t size);
};

#define GPU_RECORDS 7
#define GPU_LANES   2
#define GPU_MARKS   5

/** Every implementation begins with it. */
struct gpu {
    const struct gpu_ops *ops;
    struct weir_error group_failure; /**< Why the last group was given up; OK: it was not. */
};

extern const struct gpu_ops gpu_cuda_ops;

#endif
