/**
 * A GPU of NVIDIA, shared by the files that implement gpu_cuda_ops. gpu_cuda.c owns it; gpu_conv.c
 * owns its plans.
 */
#ifndef WEIR_NN_CUDA_GPU_PRIVATE_H
#define WEIR_NN_CUDA_GPU_PRIVATE_H

#include "gpu.h"
#include "library.h"

#define GPU_MODULES 3 /* f32, bf16, fp16 */

/** What `alloc` gave out: the driver does not say how large it was. */
struct gpu_allocation {
    struct gpu_allocation *next;
    void *at;
    size_t size_bytes;
};

struct cuda_gpu {
    struct gpu gpu; /**< First. */
    struct cuda_driver cu;
    struct cudnn dnn;
    bool has_cudnn;

    cu_device device;
    cu_context context; /**< The device's primary one: cuDNN uses it too. */
    cu_stream stream;   /**< The current lane. */
    cu_stream lanes[GPU_LANES];
    cu_event marks[GPU_MARKS];
    cu_event uploaded;       /**< Behind the last upload. */
    cu_stream ahead;         /**< The lane of uploads ahead. */
    cu_event arrived, taken; /**< Behind the last of them; behind the last that was taken. */
    cu_event begin, end;     /**< For measuring. */
    cu_module modules[GPU_MODULES];
    cu_function functions[GPU_MODULES][GPU_KERNEL_COUNT];
    cu_graph_exec records[GPU_RECORDS];
    bool is_recording;

    size_t memory_limit_bytes, memory_bytes;
    struct gpu_allocation *allocations;

    cudnn_handle cudnn;
    struct gpu_plan *plans;
};

static inline struct cuda_gpu *cuda_gpu_of(struct gpu *gpu)
{
    return (struct cuda_gpu *)gpu;
}

static inline cu_address cuda_address(const void *at)
{
    return (cu_address)(uintptr_t)at;
}

/** OK, or a log line with `call` and the driver's words, and INTERNAL. */
weir_status cuda_check(const struct cuda_gpu *gpu, cu_result result, const char *call);

/** The driver's words for a result. */
const char *cuda_words(const struct cuda_driver *cu, cu_result result);

/** The functions of the table that gpu_conv.c implements. */
weir_status cuda_plan_conv(struct gpu *gpu, const struct gpu_conv_shape *shape,
                           struct gpu_plan **out, size_t *out_workspace_bytes,
                           struct weir_error *err);
weir_status cuda_run_conv(struct gpu *gpu, const struct gpu_plan *plan,
                          const struct gpu_conv_tensors *tensors);
void cuda_plans_free(struct cuda_gpu *gpu);

#endif
