/* Layers that take each element, row or image by itself. */
#include "context.h"

static uint64_t n_elems(const struct op *op)
{
    return (uint64_t)op->batch * op_elems(op->out);
}

static uint64_t n_rows(const struct op *op)
{
    return (uint64_t)op->batch * (uint64_t)op->out.h * (uint64_t)op->out.w;
}

/* A thread of a flat kernel takes a vector. */
static weir_status run_flat(const struct op *op, enum gpu_kernel kernel, enum gpu_type type,
                            const struct gpu_flat_args *args)
{
    uint64_t n = args->n / (uint64_t)cuda_vec(type) + 1;
    return cuda_launch(op, kernel, type, cuda_blocks(n), 1, args, sizeof *args);
}

/* to (+)= factor * from */
static weir_status copy(const struct op *op, const void *from, float factor, void *to, bool adds)
{
    struct gpu_flat_args args = {
        .x = from, .out = to, .n = n_elems(op), .scale = factor, .adds = adds};
    if (from == to && !adds && factor == 1) {
        return WEIR_OK;
    }
    return run_flat(op, GPU_KERNEL_scale, cuda_type(op), &args);
}

weir_status cuda_input_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_copy_args args = {.from = tile->x[0],
                                 .to = tile->y,
                                 .n_rows = n_rows(op),
                                 .c_from = op->out.c,
                                 .c_to = op->out.c,
                                 .hw = op->out.h * op->out.w};
    return CUDA_RUN(op, input_forward, args.n_rows, args);
}

/* Between f32 and halves; both kernels are those of halves. */
static weir_status cast(const struct op *op, bool is_to_f32, const void *from, void *to, bool adds)
{
    struct gpu_flat_args args = {.x = from, .out = to, .n = n_elems(op), .adds = adds};
    return run_flat(op, is_to_f32 ? GPU_KERNEL_cast_to_f32 : GPU_KERNEL_cast_from_f32,
                    cuda_op_of(op)->context->half, &args);
}

weir_status cuda_cast_forward(const struct op *op, const struct op_tile *tile)
{
    return cast(op, op->type == WEIR_PRECISION_F32, tile->x[0], tile->y, false);
}

weir_status cuda_cast_backward(const struct op *op, const struct op_tile *tile)
{
    return tile->dx[0]
               ? cast(op, op->type != WEIR_PRECISION_F32, tile->dy, tile->dx[0], tile->dx_adds[0])
               : WEIR_OK;
}

static float limit_of(const struct op *op)
{
    return op->kind == LAYER_RELU6 ? 6 : 0;
}

weir_status cuda_relu_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_flat_args args = {
        .x = tile->x[0], .out = tile->y, .n = n_elems(op), .limit = limit_of(op)};
    return run_flat(op, GPU_KERNEL_clip_forward, cuda_type(op), &args);
}

weir_status cuda_relu_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_flat_args args = {.y = tile->y,
                                 .dy = tile->dy,
                                 .out = tile->dx[0],
                                 .n = n_elems(op),
                                 .limit = limit_of(op),
                                 .adds = tile->dx_adds[0]};
    return tile->dx[0] ? run_flat(op, GPU_KERNEL_clip_backward, cuda_type(op), &args) : WEIR_OK;
}

/* PReLUs take one channel at a time. */
static weir_status run_prelu(const struct op *op, enum gpu_kernel kernel, bool is_sum,
                             struct gpu_rows_args *args)
{
    args->n_rows = n_rows(op);
    args->c = op->out.c;
    args->slope = op->params[OP_WEIGHT].value;
    struct cuda_rows rows = cuda_rows(GPU_TYPE_COUNT, args->n_rows, args->c, is_sum);
    return cuda_launch(op, kernel, cuda_type(op), rows.grid_x, rows.grid_y, args, sizeof *args);
}

weir_status cuda_prelu_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_rows_args args = {.x = tile->x[0], .out = tile->y};
    return run_prelu(op, GPU_KERNEL_prelu_forward, false, &args);
}

/* The slopes' gradient first: dx may be the memory of dy. */
weir_status cuda_prelu_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_rows_args sums = {.x = tile->x[0], .dy = tile->dy, .partials = tile->scratch};
    struct gpu_rows_args args = {
        .x = tile->x[0], .dy = tile->dy, .out = tile->dx[0], .adds = tile->dx_adds[0]};
    struct cuda_rows rows = cuda_rows(GPU_TYPE_COUNT, n_rows(op), op->out.c, true);
    WEIR_TRY(run_prelu(op, GPU_KERNEL_prelu_sums, true, &sums));
    WEIR_TRY(cuda_end_columns(op, tile->scratch, rows.grid_x, op->out.c,
                              op->params[OP_WEIGHT].gradient));
    return args.out ? run_prelu(op, GPU_KERNEL_prelu_backward, false, &args) : WEIR_OK;
}

/* Backward has made it. */
weir_status cuda_prelu_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    (void)op;
    (void)tile;
    return WEIR_OK;
}

static weir_status drop(const struct op *op, const struct op_tile *tile, const void *from, void *to,
                        bool adds)
{
    struct gpu_flat_args args = {.x = from,
                                 .out = to,
                                 .n = n_elems(op),
                                 .scale = (float)(1 / (1 - (double)op->rate)),
                                 .rate = op->rate,
                                 .adds = adds,
                                 .step = cuda_op_of(op)->context->step,
                                 .key = op->dropout_key,
                                 .image_elems = op_elems(op->out),
                                 .c = op->out.c,
                                 .hw = op->out.h * op->out.w};
    (void)tile;
    return run_flat(op, GPU_KERNEL_dropout, cuda_type(op), &args);
}

weir_status cuda_dropout_forward(const struct op *op, const struct op_tile *tile)
{
    return tile->is_training ? drop(op, tile, tile->x[0], tile->y, false)
                             : copy(op, tile->x[0], 1, tile->y, false);
}

weir_status cuda_dropout_backward(const struct op *op, const struct op_tile *tile)
{
    return tile->dx[0] ? drop(op, tile, tile->dy, tile->dx[0], tile->dx_adds[0]) : WEIR_OK;
}

weir_status cuda_add_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_flat_args args = {
        .x = tile->x[0], .y = tile->x[1], .out = tile->y, .n = n_elems(op)};
    return run_flat(op, GPU_KERNEL_add_forward, cuda_type(op), &args);
}

/* The second first: dx[0] may be the memory of dy, which is then no longer needed as it was. */
weir_status cuda_add_backward(const struct op *op, const struct op_tile *tile)
{
    for (int i = 1; i >= 0; i--) {
        if (tile->dx[i]) {
            WEIR_TRY(copy(op, tile->dy, 1, tile->dx[i], tile->dx_adds[i]));
        }
    }
    return WEIR_OK;
}

/* n_c channels of every row. */
static weir_status copy_channels(const struct op *op, const struct gpu_copy_args *args)
{
    int32_t vec = cuda_vec(cuda_type(op));
    bool is_vector = args->c_from % vec == 0 && args->c_to % vec == 0 && args->at_from % vec == 0 &&
                     args->at_to % vec == 0 && args->n_c % vec == 0;
    uint64_t n = args->n_rows * (uint64_t)args->n_c / (is_vector ? (uint64_t)vec : 1);
    return is_vector ? CUDA_RUN(op, copy_channels, n, *args)
                     : CUDA_RUN(op, copy_channels_1, n, *args);
}

weir_status cuda_concat_forward(const struct op *op, const struct op_tile *tile)
{
    for (int32_t i = 0, first = 0; i < op->n_in; first += op->in[i++].c) {
        struct gpu_copy_args args = {.from = tile->x[i],
                                     .to = tile->y,
                                     .n_rows = n_rows(op),
                                     .c_from = op->in[i].c,
                                     .c_to = op->out.c,
                                     .at_to = first,
                                     .n_c = op->in[i].c};
        WEIR_TRY(copy_channels(op, &args));
    }
    return WEIR_OK;
}

/* Last input first: a value concatenated with itself is then added to. */
weir_status cuda_concat_backward(const struct op *op, const struct op_tile *tile)
{
    int32_t first = op->out.c;
    for (int32_t i = op->n_in - 1; i >= 0; i--) {
        first -= op->in[i].c;
        struct gpu_copy_args args = {.from = tile->dy,
                                     .to = tile->dx[i],
                                     .n_rows = n_rows(op),
                                     .c_from = op->out.c,
                                     .c_to = op->in[i].c,
                                     .at_from = first,
                                     .n_c = op->in[i].c,
                                     .adds = tile->dx_adds[i]};
        if (args.to) {
            WEIR_TRY(copy_channels(op, &args));
        }
    }
    return WEIR_OK;
}

static struct gpu_copy_args flatten_args(const struct op *op)
{
    return (struct gpu_copy_args){.n_rows = (uint64_t)op->batch * (uint64_t)op->in[0].h *
                                            (uint64_t)op->in[0].w,
                                  .c_from = op->in[0].c,
                                  .hw = op->in[0].h * op->in[0].w};
}

weir_status cuda_flatten_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_copy_args args = flatten_args(op);
    args.from = tile->x[0];
    args.to = tile->y;
    return CUDA_RUN(op, flatten_forward, n_elems(op), args);
}

weir_status cuda_flatten_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_copy_args args = flatten_args(op);
    args.from = tile->dy;
    args.to = tile->dx[0];
    args.adds = tile->dx_adds[0];
    return args.to ? CUDA_RUN(op, flatten_backward, n_elems(op), args) : WEIR_OK;
}

weir_status cuda_scale_forward(const struct op *op, const struct op_tile *tile)
{
    return copy(op, tile->x[0], op->scale, tile->y, false);
}

weir_status cuda_scale_backward(const struct op *op, const struct op_tile *tile)
{
    return tile->dx[0] ? copy(op, tile->dy, op->scale, tile->dx[0], tile->dx_adds[0]) : WEIR_OK;
}

/* A block for each image. */
static weir_status run_images(const struct op *op, enum gpu_kernel kernel,
                              const struct op_tile *tile, bool is_backward)
{
    struct gpu_vector_args args = {.x = tile->x[0],
                                   .dy = is_backward ? tile->dy : NULL,
                                   .out = is_backward ? tile->dx[0] : tile->y,
                                   .n = op->batch,
                                   .len = (int)op_elems(op->in[0]),
                                   .adds = is_backward && tile->dx_adds[0]};
    return args.out ? cuda_launch(op, kernel, GPU_F32, (uint32_t)op->batch, 1, &args, sizeof args)
                    : WEIR_OK;
}

weir_status cuda_l2_normalise_forward(const struct op *op, const struct op_tile *tile)
{
    return run_images(op, GPU_KERNEL_l2_normalise_forward, tile, false);
}

weir_status cuda_l2_normalise_backward(const struct op *op, const struct op_tile *tile)
{
    return run_images(op, GPU_KERNEL_l2_normalise_backward, tile, true);
}

weir_status cuda_layer_norm_forward(const struct op *op, const struct op_tile *tile)
{
    return run_images(op, GPU_KERNEL_layer_norm_forward, tile, false);
}

weir_status cuda_layer_norm_backward(const struct op *op, const struct op_tile *tile)
{
    return run_images(op, GPU_KERNEL_layer_norm_backward, tile, true);
}
