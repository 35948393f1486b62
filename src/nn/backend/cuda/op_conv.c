/*
 * Convolutions and linears. A linear is a convolution of pictures of one pixel.
 *
 * The library reads packed weights (K×R×S×C, of the op's type) and takes channels in whole vectors.
 * Where the tensors have others, they are copied to scratch memory with more. What it does not plan
 * (groups, or a machine without the library) is done by the direct kernels, on packed weights of the
 * true size.
 *
 * A first layer has few channels, and the library is slow with them. If its stride is 2, blocks of 2×2
 * pixels are taken for pixels of four times the channels: the same sums by a convolution with stride 1
 * and a kernel of half the size. ResNet's first layer: 7×7×3 becomes 4×4×12.
 */
#include "context.h"

#include <stdlib.h>

struct cuda_conv {
    struct cuda_op op;
    struct weir_conv_params conv; /* of a linear too */
    struct weir_shape in, out;
    enum gpu_type type;
    bool is_direct;
    struct gpu_block_args blocks; /* n > 0: the library gets blocks of pixels */
    int32_t packed_c, packed_k;   /* of a group's input; of the output */
    struct gpu_plan *forward, *input_gradient, *weight_gradient;
    bool is_fused; /* forward does bias, residual and ReLU too */
    bool can_add;  /* input_gradient adds */
    size_t workspace_bytes;
    void *packed;                            /* weights, on the GPU */
    float *bias;                             /* packed_k values; NULL: none */
    void *typed_bias;                        /* in the op's type */
    size_t x_bytes, y_bytes, gradient_bytes; /* scratch: x, y, packed gradient */
};

static const struct cuda_conv *conv_of(const struct op *op)
{
    return op->state;
}

static bool has_epilogue(const struct op *op, const struct cuda_conv *conv)
{
    return conv->bias || op->has_residual || op->has_relu;
}

static bool has_blocks(const struct cuda_conv *conv)
{
    return conv->blocks.n > 0;
}

static bool copies_x(const struct cuda_conv *conv)
{
    return !conv->is_direct && (has_blocks(conv) || conv->packed_c != conv->in.c);
}

static bool copies_y(const struct cuda_conv *conv)
{
    return !conv->is_direct && conv->packed_k != conv->out.c;
}

static size_t weight_elems(const struct cuda_conv *conv)
{
    size_t n = (size_t)conv->packed_k * (size_t)conv->packed_c;
    return has_blocks(conv)
               ? n * (size_t)conv->blocks.block_kernel_h * (size_t)conv->blocks.block_kernel_w
               : n * (size_t)conv->conv.kernel_h * (size_t)conv->conv.kernel_w;
}

static uint64_t n_pixels(const struct op *op, struct weir_shape shape)
{
    return (uint64_t)op->batch * (uint64_t)shape.h * (uint64_t)shape.w;
}

/* ---- scratch: x, y, packed gradient, workspace; each where it is needed ------------------------ */

static char *scratch_x(const struct op_tile *tile)
{
    return tile->scratch;
}

static char *scratch_y(const struct cuda_conv *conv, const struct op_tile *tile)
{
    return scratch_x(tile) + conv->x_bytes;
}

static char *scratch_gradient(const struct cuda_conv *conv, const struct op_tile *tile)
{
    return scratch_y(conv, tile) + conv->y_bytes;
}

static char *workspace(const struct cuda_conv *conv, const struct op_tile *tile)
{
    return scratch_gradient(conv, tile) + conv->gradient_bytes;
}

/* Rows with more channels, which are 0. */
static weir_status pad_rows(const struct op *op, uint64_t n_rows, const void *from, int32_t c_from,
                            void *to, int32_t c_to)
{
    struct gpu_copy_args args = {
        .from = from, .to = to, .n_rows = n_rows, .c_from = c_from, .c_to = c_to};
    uint64_t n = n_rows * (uint64_t)(c_to / cuda_vec(cuda_type(op)));
    return CUDA_RUN(op, pad_channels, n, args);
}

/* The first c_to channels of rows. */
static weir_status cut_rows(const struct op *op, uint64_t n_rows, const void *from, int32_t c_from,
                            void *to, int32_t c_to, bool adds)
{
    struct gpu_copy_args args = {.from = from,
                                 .to = to,
                                 .n_rows = n_rows,
                                 .c_from = c_from,
                                 .c_to = c_to,
                                 .n_c = c_to,
                                 .adds = adds};
    int32_t vec = cuda_vec(cuda_type(op));
    uint64_t n = n_rows * (uint64_t)c_to;
    return c_to % vec == 0 ? CUDA_RUN(op, copy_channels, n / (uint64_t)vec, args)
                           : CUDA_RUN(op, copy_channels_1, n, args);
}

/* x with as many channels as the library wants. */
static weir_status packed_x(const struct op *op, const struct op_tile *tile, const void **out)
{
    const struct cuda_conv *conv = conv_of(op);
    *out = tile->x[0];
    if (!copies_x(conv)) {
        return WEIR_OK;
    }
    *out = scratch_x(tile);
    if (has_blocks(conv)) {
        struct gpu_block_args args = conv->blocks;
        args.x = tile->x[0];
        args.out = scratch_x(tile);
        uint64_t n = (uint64_t)args.n * (uint64_t)args.block_h * (uint64_t)args.block_w;
        return CUDA_RUN(op, pack_blocks, n, args);
    }
    return pad_rows(op, n_pixels(op, conv->in), tile->x[0], conv->in.c, scratch_x(tile),
                    conv->packed_c);
}

static weir_status packed_dy(const struct op *op, const struct op_tile *tile, const void **out)
{
    const struct cuda_conv *conv = conv_of(op);
    *out = tile->dy;
    if (!copies_y(conv)) {
        return WEIR_OK;
    }
    *out = scratch_y(conv, tile);
    return pad_rows(op, n_pixels(op, conv->out), tile->dy, conv->out.c, scratch_y(conv, tile),
                    conv->packed_k);
}

static struct gpu_direct_args direct_args(const struct op *op)
{
    const struct cuda_conv *conv = conv_of(op);
    return (struct gpu_direct_args){.weights = conv->packed,
                                    .n = op->batch,
                                    .c = conv->in.c,
                                    .h = conv->in.h,
                                    .w = conv->in.w,
                                    .k = conv->out.c,
                                    .out_h = conv->out.h,
                                    .out_w = conv->out.w,
                                    .kernel_h = conv->conv.kernel_h,
                                    .kernel_w = conv->conv.kernel_w,
                                    .stride = conv->conv.stride,
                                    .pad_h = conv->conv.pad_h,
                                    .pad_w = conv->conv.pad_w,
                                    .dilation = conv->conv.dilation,
                                    .groups = conv->conv.groups};
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* Bias, residual and ReLU by a kernel of ours. */
static weir_status run_epilogue(const struct op *op, const struct op_tile *tile, const void *from)
{
    const struct cuda_conv *conv = conv_of(op);
    struct gpu_rows_args args = {.x = from,
                                 .residual = op->has_residual ? tile->x[1] : NULL,
                                 .out = tile->y,
                                 .shift = conv->bias,
                                 .n_rows = n_pixels(op, conv->out),
                                 .c = conv->out.c,
                                 .has_relu = op->has_relu};
    struct cuda_rows rows = cuda_rows(cuda_type(op), args.n_rows, args.c, false);
    return CUDA_RUN_ROWS(op, affine, rows, args);
}

static weir_status direct_forward(const struct op *op, const struct op_tile *tile, void *to)
{
    struct gpu_direct_args args = direct_args(op);
    args.x = tile->x[0];
    args.out = to;
    return CUDA_RUN(op, direct_forward, n_pixels(op, conv_of(op)->out) * (uint64_t)args.k, args);
}

static weir_status library_forward(const struct op *op, const struct op_tile *tile, void *to)
{
    const struct cuda_conv *conv = conv_of(op);
    struct gpu *gpu = conv->op.context->gpu;
    struct gpu_conv_tensors tensors = {.w = conv->packed,
                                       .y = to,
                                       .bias = conv->typed_bias,
                                       .residual = op->has_residual ? tile->x[1] : NULL,
                                       .workspace = workspace(conv, tile)};
    WEIR_TRY(packed_x(op, tile, &tensors.x));
    return gpu->ops->run_conv(gpu, conv->forward, &tensors);
}

/* A residual may be the memory of y: the sums of products go to scratch memory then. So they do
 * where y has other channels than the library's. */
weir_status cuda_conv_forward(const struct op *op, const struct op_tile *tile)
{
    const struct cuda_conv *conv = conv_of(op);
    if (conv->is_fused) {
        return library_forward(op, tile, tile->y);
    }
    void *own = scratch_y(conv, tile), *to = op->has_residual || copies_y(conv) ? own : tile->y;
    WEIR_TRY(conv->is_direct ? direct_forward(op, tile, to) : library_forward(op, tile, to));
    if (copies_y(conv)) {
        void *true_size = op->has_residual ? own : tile->y;
        if (op->has_residual) {
            true_size = (char *)own + conv->y_bytes / 2;
        }
        WEIR_TRY(cut_rows(op, n_pixels(op, conv->out), own, conv->packed_k, true_size, conv->out.c,
                          false));
        to = true_size;
    }
    return has_epilogue(op, conv) ? run_epilogue(op, tile, to) : WEIR_OK;
}

/* ---- backward --------------------------------------------------------------------------------- */

weir_status cuda_conv_backward(const struct op *op, const struct op_tile *tile)
{
    const struct cuda_conv *conv = conv_of(op);
    struct gpu *gpu = conv->op.context->gpu;
    bool adds = tile->dx_adds[0];
    if (!tile->dx[0]) {
        return WEIR_OK;
    }
    if (conv->is_direct) {
        struct gpu_direct_args args = direct_args(op);
        args.dy = tile->dy;
        args.out = tile->dx[0];
        args.adds = adds;
        return CUDA_RUN(op, direct_input_gradient, n_pixels(op, conv->in) * (uint64_t)conv->in.c,
                        args);
    }
    bool is_own = copies_x(conv) || (adds && !conv->can_add);
    void *to = is_own ? (void *)scratch_x(tile) : (void *)tile->dx[0];
    struct gpu_conv_tensors tensors = {
        .x = to, .w = conv->packed, .workspace = workspace(conv, tile)};
    WEIR_TRY(packed_dy(op, tile, &tensors.y));
    WEIR_TRY(gpu->ops->run_conv(gpu, conv->input_gradient, &tensors));
    return is_own ? cut_rows(op, n_pixels(op, conv->in), to, conv->packed_c, tile->dx[0],
                             conv->in.c, adds)
                  : WEIR_OK;
}

static struct gpu_pack_args pack_args(const struct op *op)
{
    const struct cuda_conv *conv = conv_of(op);
    return (struct gpu_pack_args){.slab = op->params[OP_WEIGHT].value,
                                  .packed = conv->packed,
                                  .gradient = op->params[OP_WEIGHT].gradient,
                                  .k = conv->out.c,
                                  .c = conv->in.c / conv->conv.groups,
                                  .rs = conv->conv.kernel_h * conv->conv.kernel_w,
                                  .packed_k = conv->packed_k,
                                  .packed_c = conv->packed_c};
}

static weir_status make_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    const struct cuda_conv *conv = conv_of(op);
    struct gpu *gpu = conv->op.context->gpu;
    if (conv->is_direct) {
        struct gpu_direct_args args = direct_args(op);
        args.x = tile->x[0];
        args.dy = tile->dy;
        args.out = op->params[OP_WEIGHT].gradient;
        return cuda_launch(op, GPU_KERNEL_direct_weight_gradient, cuda_type(op),
                           (uint32_t)op->params[OP_WEIGHT].n_elems, 1, &args, sizeof args);
    }
    struct gpu_pack_args args = pack_args(op);
    struct gpu_conv_tensors tensors = {.w = scratch_gradient(conv, tile),
                                       .workspace = workspace(conv, tile)};
    args.packed_gradient = tensors.w;
    WEIR_TRY(packed_x(op, tile, &tensors.x));
    WEIR_TRY(packed_dy(op, tile, &tensors.y));
    WEIR_TRY(gpu->ops->run_conv(gpu, conv->weight_gradient, &tensors));
    if (has_blocks(conv)) {
        struct gpu_block_args blocks = conv->blocks;
        blocks.weights = args;
        return CUDA_RUN(op, unpack_block_gradient, weight_elems(conv), blocks);
    }
    return CUDA_RUN(op, unpack_gradient, (uint64_t)args.k * (uint64_t)args.c, args);
}

weir_status cuda_conv_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    const struct cuda_conv *conv = conv_of(op);
    WEIR_TRY(make_weight_gradient(op, tile));
    return op->params[OP_BIAS].gradient
               ? cuda_column_sums(op, tile->dy, n_pixels(op, conv->out), conv->out.c, tile->scratch,
                                  op->params[OP_BIAS].gradient)
               : WEIR_OK;
}

/* ---- weights ---------------------------------------------------------------------------------- */

weir_status cuda_conv_refresh(const struct op *op, int32_t i_thread, void *scratch)
{
    const struct cuda_conv *conv = conv_of(op);
    struct gpu_pack_args args = pack_args(op);
    (void)i_thread;
    (void)scratch;
    args.bias = op->params[OP_BIAS].value;
    args.out_bias = conv->bias;
    args.out_bias_typed = conv->typed_bias;
    if (op->norm) {
        args.gamma = op->norm->params[OP_WEIGHT].value;
        args.beta = op->norm->params[OP_BIAS].value;
        args.mean = op->norm->params[OP_RUNNING_MEAN].value;
        args.var = op->norm->params[OP_RUNNING_VAR].value;
        args.eps = op->norm->eps;
    }
    if (has_blocks(conv)) {
        struct gpu_block_args blocks = conv->blocks;
        blocks.weights = args;
        return CUDA_RUN(op, pack_block_weights, weight_elems(conv), blocks);
    }
    return CUDA_RUN(op, pack_weights, (uint64_t)args.packed_k * (uint64_t)args.packed_c, args);
}

/* ---- plans ------------------------------------------------------------------------------------ */

static struct gpu_conv_shape shape_of(const struct op *op, const struct cuda_conv *conv,
                                      enum gpu_conv_direction direction)
{
    const struct gpu_block_args *blocks = &conv->blocks;
    if (has_blocks(conv)) {
        return (struct gpu_conv_shape){.direction = direction,
                                       .type = conv->type,
                                       .n = op->batch,
                                       .c = conv->packed_c,
                                       .h = blocks->block_h,
                                       .w = blocks->block_w,
                                       .k = conv->packed_k,
                                       .out_h = conv->out.h,
                                       .out_w = conv->out.w,
                                       .kernel_h = blocks->block_kernel_h,
                                       .kernel_w = blocks->block_kernel_w,
                                       .stride = 1,
                                       .pad_h = -blocks->first_h,
                                       .pad_w = -blocks->first_w,
                                       .dilation = 1,
                                       .pad_end_h = conv->out.h + blocks->block_kernel_h - 1 +
                                                    blocks->first_h - blocks->block_h,
                                       .pad_end_w = conv->out.w + blocks->block_kernel_w - 1 +
                                                    blocks->first_w - blocks->block_w};
    }
    return (struct gpu_conv_shape){.direction = direction,
                                   .type = conv->type,
                                   .n = op->batch,
                                   .c = conv->packed_c,
                                   .h = conv->in.h,
                                   .w = conv->in.w,
                                   .k = conv->packed_k,
                                   .out_h = conv->out.h,
                                   .out_w = conv->out.w,
                                   .kernel_h = conv->conv.kernel_h,
                                   .kernel_w = conv->conv.kernel_w,
                                   .stride = conv->conv.stride,
                                   .pad_h = conv->conv.pad_h,
                                   .pad_w = conv->conv.pad_w,
                                   .dilation = conv->conv.dilation,
                                   .pad_end_h = conv->conv.pad_h,
                                   .pad_end_w = conv->conv.pad_w};
}

static weir_status plan(struct cuda_conv *conv, const struct gpu_conv_shape *shape,
                        struct gpu_plan **out, struct weir_error *err)
{
    struct gpu *gpu = conv->op.context->gpu;
    size_t size_bytes = 0;
    WEIR_TRY(gpu->ops->plan_conv(gpu, shape, out, &size_bytes, err));
    conv->workspace_bytes = WEIR_MAX(conv->workspace_bytes, size_bytes);
    return WEIR_OK;
}

/* With the epilogue if the library can, else without. */
static weir_status plan_forward(const struct op *op, struct cuda_conv *conv, struct weir_error *err)
{
    struct gpu_conv_shape shape = shape_of(op, conv, GPU_CONV_FORWARD);
    if (has_epilogue(op, conv) && !copies_y(conv)) {
        shape.has_bias = conv->bias != NULL;
        shape.has_residual = op->has_residual;
        shape.has_relu = op->has_relu;
        conv->is_fused = plan(conv, &shape, &conv->forward, NULL) == WEIR_OK;
        if (conv->is_fused) {
            return WEIR_OK;
        }
        shape = shape_of(op, conv, GPU_CONV_FORWARD);
    }
    return plan(conv, &shape, &conv->forward, err);
}

/* The library adds to dx if it can and dx has its channels. */
static weir_status plan_input_gradient(const struct op *op, struct cuda_conv *conv,
                                       struct weir_error *err)
{
    struct gpu_conv_shape shape = shape_of(op, conv, GPU_CONV_INPUT_GRADIENT);
    shape.adds = op->adds_dx && !copies_x(conv);
    if (shape.adds && plan(conv, &shape, &conv->input_gradient, NULL) == WEIR_OK) {
        conv->can_add = true;
        return WEIR_OK;
    }
    shape.adds = false;
    return plan(conv, &shape, &conv->input_gradient, err);
}

static weir_status plan_backward(const struct op *op, struct cuda_conv *conv,
                                 struct weir_error *err)
{
    struct gpu_conv_shape shape = shape_of(op, conv, GPU_CONV_WEIGHT_GRADIENT);
    WEIR_TRY(plan(conv, &shape, &conv->weight_gradient, err));
    return op->wants_dx ? plan_input_gradient(op, conv, err) : WEIR_OK;
}

/* The direct kernels read weights of the true size. */
static void make_direct(struct cuda_conv *conv)
{
    conv->is_direct = true;
    conv->is_fused = false;
    conv->packed_c = conv->in.c / conv->conv.groups;
    conv->packed_k = conv->out.c;
    conv->workspace_bytes = 0;
    conv->blocks.n = 0;
}

/* floor(a / 2) */
static int32_t half(int32_t a)
{
    return a >= 0 ? a / 2 : -((1 - a) / 2);
}

/* Most channels of which four fit in two vectors of bf16. */
#define BLOCK_CHANNELS_MAX 4

static void choose_blocks(const struct op *op, struct cuda_conv *conv)
{
    const struct weir_conv_params *c = &conv->conv;
    int32_t vec = cuda_vec(cuda_type(op));
    if (c->stride != 2 || c->dilation != 1 || c->groups != 1 || op->wants_dx ||
        conv->in.c > BLOCK_CHANNELS_MAX || (c->kernel_h == 1 && c->kernel_w == 1)) {
        return;
    }
    struct gpu_block_args b = {.n = op->batch,
                               .h = conv->in.h,
                               .w = conv->in.w,
                               .c = conv->in.c,
                               .kernel_h = c->kernel_h,
                               .kernel_w = c->kernel_w,
                               .pad_h = c->pad_h,
                               .pad_w = c->pad_w,
                               .first_h = half(-c->pad_h),
                               .first_w = half(-c->pad_w)};
    b.block_kernel_h = half(c->kernel_h - 1 - c->pad_h) - b.first_h + 1;
    b.block_kernel_w = half(c->kernel_w - 1 - c->pad_w) - b.first_w + 1;
    /* No blocks beyond the last that is read. */
    b.block_h = WEIR_MIN((conv->in.h + 1) / 2, conv->out.h + b.block_kernel_h - 1 + b.first_h);
    b.block_w = WEIR_MIN((conv->in.w + 1) / 2, conv->out.w + b.block_kernel_w - 1 + b.first_w);
    b.packed_c = (4 * conv->in.c + vec - 1) / vec * vec;
    conv->packed_c = b.packed_c;
    conv->blocks = b;
}

static weir_status make_plans(const struct op *op, struct cuda_conv *conv, bool is_training,
                              struct weir_error *err)
{
    if (conv->conv.groups > 1) {
        make_direct(conv);
        return WEIR_OK;
    }
    weir_status status = plan_forward(op, conv, err);
    if (status == WEIR_OK && is_training) {
        status = plan_backward(op, conv, err);
    }
    if (status == WEIR_ERR_UNSUPPORTED) {
        make_direct(conv);
        status = WEIR_OK;
    }
    return status;
}

static void describe(const struct op *op, struct cuda_conv *conv)
{
    int32_t vec = cuda_vec(cuda_type(op));
    conv->conv = op->conv;
    conv->in = op->in[0];
    conv->out = op->out;
    if (op->kind == LAYER_LINEAR) {
        conv->conv = (struct weir_conv_params){.k = op->out.c,
                                               .kernel_h = 1,
                                               .kernel_w = 1,
                                               .stride = 1,
                                               .has_bias = op->conv.has_bias};
        conv->in = (struct weir_shape){(int32_t)op_elems(op->in[0]), 1, 1};
    }
    conv->conv.groups = WEIR_MAX(conv->conv.groups, 1);
    conv->conv.dilation = WEIR_MAX(conv->conv.dilation, 1);
    conv->packed_c = (conv->in.c + vec - 1) / vec * vec;
    conv->packed_k = (conv->out.c + vec - 1) / vec * vec;
    conv->type = cuda_type(op);
    if (conv->type == GPU_F32 && conv->op.context->allows_tf32) {
        conv->type = GPU_TF32;
    }
    choose_blocks(op, conv);
}

/* Scratch memory: see the functions above. */
static size_t scratch_bytes(const struct op *op, struct cuda_conv *conv, bool is_training)
{
    size_t elem_bytes = cuda_elem_bytes(conv->type);
    size_t y_bytes = cuda_align(n_pixels(op, conv->out) * (size_t)conv->packed_k * elem_bytes);
    if (!conv->is_direct && (copies_x(conv) || (is_training && op->adds_dx && !conv->can_add))) {
        uint64_t n = has_blocks(conv) ? (uint64_t)op->batch * (uint64_t)conv->blocks.block_h *
                                            (uint64_t)conv->blocks.block_w
                                      : n_pixels(op, conv->in);
        conv->x_bytes = cuda_align(n * (size_t)conv->packed_c * elem_bytes);
    }
    if (copies_y(conv) || (op->has_residual && !conv->is_fused)) {
        conv->y_bytes = y_bytes * (copies_y(conv) && op->has_residual ? 2 : 1);
    }
    if (is_training && !conv->is_direct) {
        conv->gradient_bytes = cuda_align(weight_elems(conv) * elem_bytes);
    }
    size_t own = conv->x_bytes + conv->y_bytes + conv->gradient_bytes + conv->workspace_bytes;
    size_t sums = cuda_partial_bytes(cuda_type(op), n_pixels(op, conv->out), conv->out.c);
    return WEIR_MAX(own, sums);
}

weir_status cuda_conv_prepare(struct cuda_context *context, struct op *op, bool is_training,
                              size_t *out_scratch_bytes, struct weir_error *err)
{
    struct gpu *gpu = context->gpu;
    struct cuda_conv *conv = calloc(1, sizeof *conv);
    if (!conv) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for a convolution");
    }
    op->state = conv;
    conv->op.context = context;
    describe(op, conv);
    if (op->params[OP_BIAS].value || op->norm) {
        size_t n = (size_t)conv->packed_k;
        void *bias;
        WEIR_TRY(gpu->ops->alloc(gpu, n * sizeof(float), &bias, err));
        conv->bias = bias;
        WEIR_TRY(gpu->ops->alloc(gpu, n * cuda_elem_bytes(conv->type), &conv->typed_bias, err));
    }
    WEIR_TRY(make_plans(op, conv, is_training, err));
    WEIR_TRY(
        gpu->ops->alloc(gpu, weight_elems(conv) * cuda_elem_bytes(conv->type), &conv->packed, err));
    *out_scratch_bytes = scratch_bytes(op, conv, is_training);
    return WEIR_OK;
}

void cuda_conv_release(struct op *op)
{
    struct cuda_conv *conv = op->state;
    struct gpu *gpu = conv->op.context->gpu;
    gpu->ops->free(gpu, conv->packed);
    gpu->ops->free(gpu, conv->bias);
    gpu->ops->free(gpu, conv->typed_bias);
}
