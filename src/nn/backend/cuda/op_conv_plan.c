/* Convolutions before they run: which kernels or library calls do them, and what memory they want. */
#include "op_conv.h"

#include <stdlib.h>

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
                                       .dilation = 1,
                                       .groups = 1};
    }
    return (struct gpu_conv_shape){.direction = direction,
                                   .type = conv->type,
                                   .n = op->batch,
                                   .c = library_c(conv),
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
                                   .groups = conv->conv.groups};
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
    conv->is_fused = conv->can_add = false;
    conv->forward = conv->input_gradient = conv->weight_gradient = NULL;
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
    /* All that is read, the padding too: it is not the same in front and behind, and some of the
     * library's engines take that in front for both. */
    b.block_h = conv->out.h + b.block_kernel_h - 1;
    b.block_w = conv->out.w + b.block_kernel_w - 1;
    b.packed_c = (4 * conv->in.c + vec - 1) / vec * vec;
    conv->packed_c = b.packed_c;
    conv->blocks = b;
}

/* Each direction that the library takes. */
static weir_status make_groups(const struct op *op, struct cuda_conv *conv, bool is_training)
{
    int32_t vec = cuda_vec(cuda_type(op));
    const struct gpu_direct_args args = direct_args(op);
    make_direct(conv);
    conv->is_depthwise = cuda_is_depthwise(&args, cuda_type(op));
    if (conv->is_depthwise) {
        conv->is_fused = !op->has_residual;
        return WEIR_OK;
    }
    if (conv->in.c % vec != 0 || conv->out.c % vec != 0) {
        return WEIR_OK;
    }
    const struct gpu_conv_shape gradient = shape_of(op, conv, GPU_CONV_WEIGHT_GRADIENT);
    weir_status statuses[] = {
        plan_forward(op, conv, NULL),
        is_training ? plan(conv, &gradient, &conv->weight_gradient, NULL) : WEIR_OK,
        is_training && op->wants_dx ? plan_input_gradient(op, conv, NULL) : WEIR_OK};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(statuses); i++) {
        if (statuses[i] != WEIR_OK && statuses[i] != WEIR_ERR_UNSUPPORTED) {
            return statuses[i];
        }
    }
    return WEIR_OK;
}

static weir_status make_plans(const struct op *op, struct cuda_conv *conv, bool is_training,
                              struct weir_error *err)
{
    if (conv->conv.groups > 1) {
        return make_groups(op, conv, is_training);
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
    bool is_dx_own = is_training && op->adds_dx && !conv->can_add && conv->input_gradient;
    if (copies_x(conv) || is_dx_own) {
        uint64_t n = has_blocks(conv) ? (uint64_t)op->batch * (uint64_t)conv->blocks.block_h *
                                            (uint64_t)conv->blocks.block_w
                                      : n_pixels(op, conv->in);
        conv->x_bytes = cuda_align(n * (size_t)library_c(conv) * elem_bytes);
    }
    if (copies_y(conv) || (op->has_residual && !conv->is_fused)) {
        conv->y_bytes = y_bytes * (copies_y(conv) && op->has_residual ? 2 : 1);
    }
    if (conv->weight_gradient) {
        conv->gradient_bytes = cuda_align(weight_elems(conv) * elem_bytes);
    }
    if (is_training && conv->is_depthwise) {
        const struct gpu_direct_args args = direct_args(op);
        conv->gradient_bytes = cuda_depthwise_scratch_bytes(&args, cuda_type(op));
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
