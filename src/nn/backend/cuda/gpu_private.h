/**
 * A GPU of NVIDIA, shared by the files that implement gpu_cuda_ops. gpu_cuda.c owns it; gpu_conv.c
 * owns its plans, gpu_group.c its group.
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

    /* gpu_group.c */
    struct nccl nccl;
    nccl_comm comm; /**< NULL: no group is open. */
    struct gpu_group group;
    cu_stream group_stream;
    cu_event before_group, behind_group; /**< Of the last all-reduce, and of the last join. */
    bool has_queued;                     /**< All-reduces since the last join. */

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

/** gpu_cuda.c: opens a driver that is loaded, and the GPU `index`, modulo their number. */
weir_status cuda_find_device(const struct cuda_driver *cu, int32_t index, cu_device *out,
                             struct weir_error *err);
void cuda_forget_records(struct cuda_gpu *gpu);

/** The functions of the table that gpu_group.c implements. */
weir_status cuda_probe(int32_t index, struct gpu_probe *out, struct weir_error *err);
weir_status cuda_make_group_id(struct gpu *gpu, struct gpu_group_id *out, struct weir_error *err);
weir_status cuda_open_group(struct gpu *gpu, const struct gpu_group *group, struct weir_error *err);
void cuda_close_group(struct gpu *gpu);
weir_status cuda_all_reduce(struct gpu *gpu, float *at, size_t n_elems);
weir_status cuda_join_group(struct gpu *gpu);
/** First in `wait` while a group is open: the lanes and the group's are done when it succeeds. */
weir_status cuda_wait_group(struct cuda_gpu *gpu);

/** The functions of the table that gpu_conv.c implements. */
weir_status cuda_plan_conv(struct gpu *gpu, const struct gpu_conv_shape *shape,
                           struct gpu_plan **out, size_t *out_workspace_bytes,
                           struct weir_error *err);
weir_status cuda_run_conv(struct gpu *gpu, const struct gpu_plan *plan,
                          const struct gpu_conv_tensors *tensors);
void cuda_plans_free(struct cuda_gpu *gpu);

#endif
