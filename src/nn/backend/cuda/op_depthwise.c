/* Depthwise convolutions by kernels of ours (kernels/depthwise.cu). */
#include "context.h"

/* As kernels/depthwise.cu and common.cu. */
#define STRIP       4
#define TAPS        3
#define ROW_COLUMNS 32

/* Blocks of the kernel that sums: enough to fill a GPU, few enough to be added up fast. */
#define SUM_BLOCKS 1056
/* Rows of dy that a thread adds up, at least. */
#define THREAD_ROWS 8

static uint64_t n_strips(const struct gpu_direct_args *args, int height, int width)
{
    return (uint64_t)args->n * (uint64_t)height * (uint64_t)((width + STRIP - 1) / STRIP) *
           (uint64_t)args->c;
}

bool cuda_is_depthwise(const struct gpu_direct_args *args, enum gpu_type type)
{
    return args->groups > 1 && args->groups == args->c && args->k == args->c &&
           args->c % cuda_vec(type) == 0 && n_strips(args, args->h, args->w) < UINT32_MAX &&
           n_strips(args, args->out_h, args->out_w) < UINT32_MAX;
}

weir_status cuda_depthwise_forward(const struct op *op, const struct gpu_direct_args *args)
{
    uint64_t n = n_strips(args, args->out_h, args->out_w) / (uint64_t)cuda_vec(cuda_type(op));
    return CUDA_RUN(op, depthwise_forward, n, *args);
}

weir_status cuda_depthwise_backward(const struct op *op, const struct gpu_direct_args *args)
{
    uint64_t n = n_strips(args, args->h, args->w) / (uint64_t)cuda_vec(cuda_type(op));
    return CUDA_RUN(op, depthwise_input_gradient, n, *args);
}

/* The grid of the kernel that sums. */
static void grid_of(const struct gpu_direct_args *args, enum gpu_type type, uint32_t *out_x,
                    uint32_t *out_y)
{
    uint32_t n_vectors = (uint32_t)(args->c / cuda_vec(type));
    uint32_t n_columns = WEIR_MIN(n_vectors, (uint32_t)ROW_COLUMNS);
    uint32_t n_taps = (uint32_t)(args->kernel_h * args->kernel_w);
    uint64_t n_rows = (uint64_t)args->n * (uint64_t)args->out_h * (uint64_t)args->out_w;
    uint64_t rows_of_block = (uint64_t)(GPU_BLOCK / n_columns) * THREAD_ROWS;
    *out_y = (n_vectors + ROW_COLUMNS - 1) / ROW_COLUMNS * ((n_taps + TAPS - 1) / TAPS);
    uint64_t wanted = (n_rows + rows_of_block - 1) / rows_of_block;
    *out_x = (uint32_t)WEIR_MAX(WEIR_MIN(wanted, (uint64_t)(SUM_BLOCKS / *out_y)), (uint64_t)1);
}

size_t cuda_depthwise_scratch_bytes(const struct gpu_direct_args *args, enum gpu_type type)
{
    uint32_t grid_x, grid_y;
    grid_of(args, type, &grid_x, &grid_y);
    return (size_t)grid_x * (size_t)(args->kernel_h * args->kernel_w) * (size_t)args->c *
           sizeof(float);
}

weir_status cuda_depthwise_gradient(const struct op *op, const struct gpu_direct_args *given,
                                    void *scratch)
{
    uint32_t grid_x, grid_y;
    struct gpu_direct_args args = *given;
    enum gpu_type type = cuda_type(op);
    grid_of(&args, type, &grid_x, &grid_y);
    args.partials = scratch;
    args.n_blocks = (int)grid_x;
    WEIR_TRY(cuda_launch(op, GPU_KERNEL_depthwise_weight_gradient, type, grid_x, grid_y, &args,
                         sizeof args));
    return CUDA_RUN(op, depthwise_combine,
                    (uint64_t)args.c * (uint64_t)(args.kernel_h * args.kernel_w), args);
}
