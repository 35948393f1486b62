/* Pools. */
#include "context.h"

static struct gpu_pool_args pool_args(const struct op *op)
{
    return (struct gpu_pool_args){.argmax = op->argmax,
                                  .n = op->batch,
                                  .c = op->in[0].c,
                                  .h = op->in[0].h,
                                  .w = op->in[0].w,
                                  .out_h = op->out.h,
                                  .out_w = op->out.w,
                                  .kernel = op->pool.kernel,
                                  .stride = op->pool.stride,
                                  .pad = op->pool.pad,
                                  .is_pad_excluded = op->pool.is_pad_excluded};
}

/* `vector` for channels that vectors divide, `single` for others. */
static weir_status run(const struct op *op, enum gpu_kernel vector, enum gpu_kernel single,
                       struct weir_shape made, const struct gpu_pool_args *args)
{
    int32_t vec = cuda_vec(cuda_type(op));
    bool is_vector = op->in[0].c % vec == 0;
    uint64_t n = (uint64_t)op->batch * op_elems(made) / (is_vector ? (uint64_t)vec : 1);
    return cuda_launch(op, is_vector ? vector : single, cuda_type(op), cuda_blocks(n), 1, args,
                       sizeof *args);
}

#define RUN_FORWARD(op, tile, kernel)                                                              \
    struct gpu_pool_args args = pool_args(op);                                                     \
    args.x = (tile)->x[0];                                                                         \
    args.out = (tile)->y;                                                                          \
    args.argmax = (tile)->is_training ? args.argmax : NULL;                                        \
    return run(op, GPU_KERNEL_##kernel, GPU_KERNEL_##kernel##_1, op->out, &args)

#define RUN_BACKWARD(op, tile, kernel)                                                             \
    struct gpu_pool_args args = pool_args(op);                                                     \
    args.dy = (tile)->dy;                                                                          \
    args.out = (tile)->dx[0];                                                                      \
    args.adds = (tile)->dx_adds[0];                                                                \
    return args.out ? run(op, GPU_KERNEL_##kernel, GPU_KERNEL_##kernel##_1, op->in[0], &args)      \
                    : WEIR_OK

weir_status cuda_max_pool_forward(const struct op *op, const struct op_tile *tile)
{
    RUN_FORWARD(op, tile, max_pool_forward);
}

weir_status cuda_max_pool_backward(const struct op *op, const struct op_tile *tile)
{
    RUN_BACKWARD(op, tile, max_pool_backward);
}

weir_status cuda_avg_pool_forward(const struct op *op, const struct op_tile *tile)
{
    RUN_FORWARD(op, tile, avg_pool_forward);
}

weir_status cuda_avg_pool_backward(const struct op *op, const struct op_tile *tile)
{
    RUN_BACKWARD(op, tile, avg_pool_backward);
}

weir_status cuda_global_pool_forward(const struct op *op, const struct op_tile *tile)
{
    RUN_FORWARD(op, tile, global_pool_forward);
}

weir_status cuda_global_pool_backward(const struct op *op, const struct op_tile *tile)
{
    RUN_BACKWARD(op, tile, global_pool_backward);
}
