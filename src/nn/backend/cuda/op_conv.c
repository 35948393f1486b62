/*
 * Convolutions and linears. A linear is a convolution of pictures of one pixel.
 *
 * The library reads packed weights (K×R×S×C, of the op's type) and takes channels in whole vectors.
 * Where the tensors have others, they are copied to scratch memory with more. What it does not plan
 * (a machine without the library) is done by the direct kernels, on packed weights of the true size.
 *
 * Groups: depthwise convolutions have kernels of their own (op_depthwise.c). For others the library is
 * asked direction by direction, on tensors as they are, and the direct kernels do the rest.
 *
 * A first layer has few channels, and the library is slow with them. If its stride is 2, blocks of 2×2
 * pixels are taken for pixels of four times the channels: the same sums by a convolution with stride 1
 * and a kernel of half the size. ResNet's first layer: 7×7×3 becomes 4×4×12.
 */
#include "op_conv.h"

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
    if (conv_of(op)->is_depthwise) {
        args.bias = conv_of(op)->is_fused ? conv_of(op)->bias : NULL;
        args.has_relu = conv_of(op)->is_fused && op->has_relu;
        return cuda_depthwise_forward(op, &args);
    }
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
        return conv->forward ? library_forward(op, tile, tile->y)
                             : direct_forward(op, tile, tile->y);
    }
    void *own = scratch_y(conv, tile), *to = op->has_residual || copies_y(conv) ? own : tile->y;
    WEIR_TRY(conv->forward ? library_forward(op, tile, to) : direct_forward(op, tile, to));
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
    if (!conv->input_gradient) {
        struct gpu_direct_args args = direct_args(op);
        args.dy = tile->dy;
        args.out = tile->dx[0];
        args.adds = adds;
        if (conv->is_depthwise) {
            return cuda_depthwise_backward(op, &args);
        }
        return CUDA_RUN(op, direct_input_gradient, n_pixels(op, conv->in) * (uint64_t)conv->in.c,
                        args);
    }
    bool is_own = copies_x(conv) || (adds && !conv->can_add);
    void *to = is_own ? (void *)scratch_x(tile) : (void *)tile->dx[0];
    struct gpu_conv_tensors tensors = {
        .x = to, .w = conv->packed, .workspace = workspace(conv, tile)};
    WEIR_TRY(packed_dy(op, tile, &tensors.y));
    WEIR_TRY(gpu->ops->run_conv(gpu, conv->input_gradient, &tensors));
    return is_own ? cut_rows(op, n_pixels(op, conv->in), to, library_c(conv), tile->dx[0],
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
    if (!conv->weight_gradient) {
        struct gpu_direct_args args = direct_args(op);
        args.x = tile->x[0];
        args.dy = tile->dy;
        args.out = op->params[OP_WEIGHT].gradient;
        if (conv->is_depthwise) {
            return cuda_depthwise_gradient(op, &args, tile->scratch);
        }
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
    if (conv->is_depthwise) {
        return CUDA_RUN(op, pack_depthwise, (uint64_t)args.k, args);
    }
    if (has_blocks(conv)) {
        struct gpu_block_args blocks = conv->blocks;
        blocks.weights = args;
        return CUDA_RUN(op, pack_block_weights, weight_elems(conv), blocks);
    }
    return CUDA_RUN(op, pack_weights, (uint64_t)args.packed_k * (uint64_t)args.packed_c, args);
}
