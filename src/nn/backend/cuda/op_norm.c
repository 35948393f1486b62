/* Batch norm with the add and ReLU behind it, and sums over rows. */
#include "context.h"

_Static_assert(GPU_BN_DX_SHIFT == (int)BN_DX_SHIFT && GPU_BN_BATCH_SCALE == (int)BN_BATCH_SCALE &&
                   GPU_BN_INV_STD == (int)BN_INV_STD,
               "kernels.h and op.h name the same rows");

/* As kernels/common.cu. */
#define SUM_VEC          4
#define ROW_COLUMNS      32
#define COMBINE_CHANNELS 8

/* Blocks of a kernel that sums: enough to fill a GPU, few enough to be added up fast. */
#define SUM_BLOCKS 528
/* Blocks of a kernel that writes. */
#define ROW_BLOCKS 8448
/* Rows of a thread, at least: it loads its channels' values once. */
#define THREAD_ROWS 4

struct cuda_rows cuda_rows(enum gpu_type type, uint64_t n_rows, int32_t n_channels, bool is_sum)
{
    int32_t vec = type < GPU_TYPE_COUNT ? cuda_vec(type) : 1;
    struct cuda_rows rows = {.is_vector = n_channels % vec == 0};
    int32_t n_vectors =
        rows.is_vector && vec > 1 ? n_channels / (is_sum ? SUM_VEC : vec) : n_channels;
    int32_t n_columns = WEIR_MIN(n_vectors, ROW_COLUMNS);
    uint64_t n_lanes = (uint64_t)(GPU_BLOCK / n_columns);
    rows.grid_y = (uint32_t)((n_vectors + n_columns - 1) / n_columns);
    uint64_t most = (is_sum ? SUM_BLOCKS : ROW_BLOCKS) / rows.grid_y;
    uint64_t wanted = (n_rows + n_lanes * THREAD_ROWS - 1) / (n_lanes * THREAD_ROWS);
    rows.grid_x = (uint32_t)WEIR_MAX(WEIR_MIN(wanted, most), (uint64_t)1);
    return rows;
}

size_t cuda_partial_bytes(enum gpu_type type, uint64_t n_rows, int32_t n_channels)
{
    return (size_t)cuda_rows(type, n_rows, n_channels, true).grid_x * 2 * (size_t)n_channels *
           sizeof(float);
}

static uint32_t combine_blocks(int32_t n_channels)
{
    return (uint32_t)((n_channels + COMBINE_CHANNELS - 1) / COMBINE_CHANNELS);
}

weir_status cuda_end_columns(const struct op *op, const void *partials, uint32_t n_blocks,
                             int32_t n_channels, float *gradient)
{
    struct gpu_combine_args end = {.partials = partials,
                                   .n_blocks = (int)n_blocks,
                                   .c = n_channels,
                                   .bias_gradient = gradient};
    return cuda_launch(op, GPU_KERNEL_column_combine, GPU_F32, combine_blocks(n_channels), 1, &end,
                       sizeof end);
}

weir_status cuda_column_sums(const struct op *op, const void *dy, uint64_t n_rows,
                             int32_t n_channels, void *scratch, float *gradient)
{
    struct cuda_rows rows = cuda_rows(cuda_type(op), n_rows, n_channels, true);
    struct gpu_rows_args sums = {.dy = dy, .partials = scratch, .n_rows = n_rows, .c = n_channels};
    WEIR_TRY(CUDA_RUN_ROWS(op, column_sums, rows, sums));
    return cuda_end_columns(op, scratch, rows.grid_x, n_channels, gradient);
}

/* ---- batch norm ------------------------------------------------------------------------------- */

static uint64_t n_rows(const struct op *op)
{
    return (uint64_t)op->batch * (uint64_t)op->in[0].h * (uint64_t)op->in[0].w;
}

static struct gpu_combine_args combine_args(const struct op *op, void *partials, uint32_t n_blocks)
{
    return (struct gpu_combine_args){.partials = partials,
                                     .n_blocks = (int)n_blocks,
                                     .c = op->in[0].c,
                                     .n_rows = (double)n_rows(op),
                                     .eps = op->eps,
                                     .momentum = BATCH_NORM_MOMENTUM,
                                     .weight = op->params[OP_WEIGHT].value,
                                     .bias = op->params[OP_BIAS].value,
                                     .saved = op->saved,
                                     .running_mean = op->params[OP_RUNNING_MEAN].value,
                                     .running_var = op->params[OP_RUNNING_VAR].value,
                                     .weight_gradient = op->params[OP_WEIGHT].gradient,
                                     .bias_gradient = op->params[OP_BIAS].gradient};
}

static weir_status combine(const struct op *op, enum gpu_kernel kernel, void *partials,
                           uint32_t n_blocks)
{
    struct gpu_combine_args args = combine_args(op, partials, n_blocks);
    return cuda_launch(op, kernel, GPU_F32, combine_blocks(args.c), 1, &args, sizeof args);
}

weir_status cuda_norm_sums(const struct op *op, const struct op_tile *tile)
{
    struct gpu_rows_args args = {.x = tile->x[0],
                                 .pivot = op->params[OP_RUNNING_MEAN].value,
                                 .partials = tile->scratch,
                                 .n_rows = n_rows(op),
                                 .c = op->in[0].c};
    struct cuda_rows rows = cuda_rows(cuda_type(op), args.n_rows, args.c, true);
    WEIR_TRY(CUDA_RUN_ROWS(op, moments, rows, args));
    return combine(op, GPU_KERNEL_norm_combine, tile->scratch, rows.grid_x);
}

weir_status cuda_combine_nothing(const struct op *op)
{
    (void)op;
    return WEIR_OK;
}

/* A vector's signs are a byte; without vectors, an element's. */
size_t cuda_sign_bytes(const struct op *op)
{
    int32_t vec = cuda_vec(cuda_type(op));
    size_t n = (size_t)op->batch * op_elems(op->in[0]);
    return op->in[0].c % vec == 0 ? n / (size_t)vec : n;
}

static const float *saved_row(const struct op *op, int row)
{
    return op->saved + (size_t)row * (size_t)op->in[0].c;
}

weir_status cuda_norm_forward(const struct op *op, const struct op_tile *tile)
{
    bool is_training = tile->is_training;
    struct gpu_rows_args args = {.x = tile->x[0],
                                 .residual = op->has_residual ? tile->x[1] : NULL,
                                 .out = tile->y,
                                 .signs = is_training ? cuda_op_of(op)->signs : NULL,
                                 .scale = saved_row(op, is_training ? BN_BATCH_SCALE : BN_SCALE),
                                 .shift = saved_row(op, is_training ? BN_BATCH_SHIFT : BN_SHIFT),
                                 .n_rows = n_rows(op),
                                 .c = op->in[0].c,
                                 .has_relu = op->has_relu};
    struct cuda_rows rows = cuda_rows(cuda_type(op), args.n_rows, args.c, false);
    return CUDA_RUN_ROWS(op, affine, rows, args);
}

static struct gpu_rows_args backward_args(const struct op *op, const struct op_tile *tile)
{
    return (struct gpu_rows_args){.x = tile->x[0],
                                  .signs = cuda_op_of(op)->signs,
                                  .dy = tile->dy,
                                  .saved = op->saved,
                                  .n_rows = n_rows(op),
                                  .c = op->in[0].c};
}

weir_status cuda_norm_backward_sums(const struct op *op, const struct op_tile *tile)
{
    struct gpu_rows_args args = backward_args(op, tile);
    args.partials = tile->scratch;
    struct cuda_rows rows = cuda_rows(cuda_type(op), args.n_rows, args.c, true);
    WEIR_TRY(CUDA_RUN_ROWS(op, norm_backward_sums, rows, args));
    return combine(op, GPU_KERNEL_norm_backward_combine, tile->scratch, rows.grid_x);
}

weir_status cuda_norm_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_rows_args args = backward_args(op, tile);
    args.out = tile->dx[0];
    args.adds = tile->dx_adds[0];
    args.out_residual = op->has_residual ? tile->dx[1] : NULL;
    args.adds_residual = tile->dx_adds[1];
    struct cuda_rows rows = cuda_rows(cuda_type(op), args.n_rows, args.c, false);
    return args.out || args.out_residual ? CUDA_RUN_ROWS(op, norm_backward, rows, args) : WEIR_OK;
}

weir_status cuda_norm_refresh(const struct op *op, int32_t i_thread, void *scratch)
{
    struct gpu_combine_args args = combine_args(op, NULL, 0);
    (void)i_thread;
    (void)scratch;
    return op->is_folded ? WEIR_OK
                         : cuda_launch(op, GPU_KERNEL_norm_refresh, GPU_F32,
                                       cuda_blocks((uint64_t)args.c), 1, &args, sizeof args);
}
