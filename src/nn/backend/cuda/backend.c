/*
 * The back-end for NVIDIA GPUs: channels last; convolutions and linears by cuDNN where it is there,
 * the rest by kernels of ours. A net is one slice, the whole batch: a task queues one kernel or a
 * few, and the net records them (gpu.h).
 */
#include "backend.h"

#include "context.h"
#include "nn/gpu_given.h"

#include <stdlib.h>

weir_status cuda_launch(const struct op *op, enum gpu_kernel kernel, enum gpu_type type,
                        uint32_t grid_x, uint32_t grid_y, const void *args, size_t args_bytes)
{
    struct gpu *gpu = cuda_op_of(op)->context->gpu;
    return gpu->ops->launch(gpu, kernel, type, grid_x, grid_y, args, args_bytes);
}

/* ---- contexts --------------------------------------------------------------------------------- */

static void cuda_close(void *context)
{
    struct cuda_context *self = context;
    struct gpu *gpu = self->gpu;
    if (gpu) {
        cuda_scale_free(self);
        gpu->ops->free(gpu, self->step);
        gpu->ops->free_pinned(gpu, self->host_step);
        gpu->ops->close(gpu);
    }
    free(self);
}

/* A job that has a share of a GPU is told how much of its memory. */
static weir_status memory_limit(const struct weir_net_config *config, size_t *out,
                                struct weir_error *err)
{
    if (config->gpu_memory_bytes > 0) {
        *out = config->gpu_memory_bytes;
        return WEIR_OK;
    }
    return weir_gpu_memory_given(out, err);
}

static weir_status make(struct cuda_context *self, const struct gpu_ops *ops,
                        const struct weir_net_config *config, struct weir_error *err)
{
    void *step, *host_step;
    size_t limit;
    WEIR_TRY(memory_limit(config, &limit, err));
    WEIR_TRY(ops->open(config->gpu, limit, &self->gpu, err));
    WEIR_TRY(ops->alloc(self->gpu, sizeof *self->step, &step, err));
    self->step = step;
    WEIR_TRY(ops->alloc_pinned(self->gpu, sizeof *self->host_step, &host_step, err));
    self->host_step = host_step;
    return cuda_scale_make(self, config, err);
}

weir_status cuda_open_on(const struct gpu_ops *ops, const struct weir_net_config *config,
                         void **out_context, struct weir_error *err)
{
    struct cuda_context *self = calloc(1, sizeof *self);
    if (!self) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for a GPU");
    }
    self->allows_tf32 = config->precision == WEIR_PRECISION_TF32;
    self->half = config->precision == WEIR_PRECISION_F16 ? GPU_F16 : GPU_BF16;
    weir_status status = make(self, ops, config, err);
    if (status != WEIR_OK) {
        cuda_close(self);
        return status;
    }
    *out_context = self;
    return WEIR_OK;
}

const struct gpu_ops *cuda_gpus = &gpu_cuda_ops;

static weir_status cuda_open(const struct weir_net_config *config, int32_t n_threads,
                             void **out_context, struct weir_error *err)
{
    (void)n_threads;
    return cuda_open_on(cuda_gpus, config, out_context, err);
}

static weir_status cuda_backend_probe(int32_t index, struct gpu_probe *out, struct weir_error *err)
{
    return cuda_gpus->probe(index, out, err);
}

static struct gpu *cuda_gpu(void *context)
{
    return ((struct cuda_context *)context)->gpu;
}

/* The pinned copy is free: whoever queued it before has waited for its uploads. */
static weir_status cuda_set_step(void *context, const struct backend_step *step)
{
    struct cuda_context *self = context;
    struct gpu *gpu = self->gpu;
    *self->host_step = (struct gpu_step){.step = step->step,
                                         .first_image = step->first_image,
                                         .inv_n_labelled = step->inv_n_labelled,
                                         .n_images = step->n_images};
    return gpu->ops->upload(gpu, self->step, self->host_step, sizeof *self->step);
}

/* ---- ops -------------------------------------------------------------------------------------- */

static bool is_conv(const struct op *op)
{
    return op->kind == LAYER_CONV || op->kind == LAYER_LINEAR;
}

static size_t sum_bytes(const struct op *op)
{
    uint64_t n_rows = (uint64_t)op->batch * (uint64_t)op->in[0].h * (uint64_t)op->in[0].w;
    if (op->kind == LAYER_BATCH_NORM && !op->is_folded) {
        return cuda_partial_bytes(cuda_type(op), n_rows, op->in[0].c);
    }
    return op->kind == LAYER_PRELU ? cuda_partial_bytes(GPU_TYPE_COUNT, n_rows, op->in[0].c) : 0;
}

static weir_status cuda_prepare(void *context, struct op *op, const int32_t *tile_sizes,
                                int32_t n_tile_sizes, bool is_training, size_t *out_scratch_bytes,
                                struct weir_error *err)
{
    struct cuda_context *self = context;
    (void)tile_sizes;
    (void)n_tile_sizes;
    if (is_conv(op)) {
        return cuda_conv_prepare(self, op, is_training, out_scratch_bytes, err);
    }
    struct cuda_op *state = calloc(1, sizeof *state);
    if (!state) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for a layer");
    }
    op->state = state;
    state->context = self;
    *out_scratch_bytes = sum_bytes(op);
    if (is_training && op->knows_sign) {
        WEIR_TRY(self->gpu->ops->alloc(self->gpu, cuda_sign_bytes(op), &state->signs, err));
    }
    if (op->kind == LAYER_SOFTMAX_LOSS || op->kind == LAYER_MARGIN_LOSS) {
        void *losses;
        WEIR_TRY(self->gpu->ops->alloc(self->gpu, (size_t)op->batch * sizeof(struct gpu_loss),
                                       &losses, err));
        state->image_losses = losses;
    }
    return WEIR_OK;
}

static void cuda_release(struct op *op)
{
    struct cuda_op *state = op->state;
    if (!state) {
        return;
    }
    if (is_conv(op)) {
        cuda_conv_release(op);
    } else {
        state->context->gpu->ops->free(state->context->gpu, state->image_losses);
        state->context->gpu->ops->free(state->context->gpu, state->signs);
    }
    free(state);
    op->state = NULL;
}

static const struct op_kernels kernels[LAYER_KIND_COUNT] = {
    [LAYER_INPUT] = {.forward = cuda_input_forward},
    [LAYER_CAST] = {.forward = cuda_cast_forward, .backward = cuda_cast_backward},
    [LAYER_CONV] = {.forward = cuda_conv_forward,
                    .backward = cuda_conv_backward,
                    .weight_gradient = cuda_conv_weight_gradient,
                    .refresh = cuda_conv_refresh},
    [LAYER_LINEAR] = {.forward = cuda_conv_forward,
                      .backward = cuda_conv_backward,
                      .weight_gradient = cuda_conv_weight_gradient,
                      .refresh = cuda_conv_refresh},
    [LAYER_BATCH_NORM] = {.forward_sums = cuda_norm_sums,
                          .forward_combine = cuda_combine_nothing,
                          .forward = cuda_norm_forward,
                          .backward_sums = cuda_norm_backward_sums,
                          .backward_combine = cuda_combine_nothing,
                          .backward = cuda_norm_backward,
                          .refresh = cuda_norm_refresh},
    [LAYER_RELU] = {.forward = cuda_relu_forward, .backward = cuda_relu_backward},
    [LAYER_RELU6] = {.forward = cuda_relu_forward, .backward = cuda_relu_backward},
    [LAYER_PRELU] = {.forward = cuda_prelu_forward,
                     .backward = cuda_prelu_backward,
                     .weight_gradient = cuda_prelu_weight_gradient},
    [LAYER_MAX_POOL] = {.forward = cuda_max_pool_forward, .backward = cuda_max_pool_backward},
    [LAYER_AVG_POOL] = {.forward = cuda_avg_pool_forward, .backward = cuda_avg_pool_backward},
    [LAYER_GLOBAL_POOL] = {.forward = cuda_global_pool_forward,
                           .backward = cuda_global_pool_backward},
    [LAYER_ADD] = {.forward = cuda_add_forward, .backward = cuda_add_backward},
    [LAYER_CONCAT] = {.forward = cuda_concat_forward, .backward = cuda_concat_backward},
    [LAYER_DROPOUT] = {.forward = cuda_dropout_forward, .backward = cuda_dropout_backward},
    [LAYER_L2_NORMALISE] = {.forward = cuda_l2_normalise_forward,
                            .backward = cuda_l2_normalise_backward},
    [LAYER_FLATTEN] = {.forward = cuda_flatten_forward, .backward = cuda_flatten_backward},
    [LAYER_SCALE] = {.forward = cuda_scale_forward, .backward = cuda_scale_backward},
    [LAYER_LAYER_NORM] = {.forward = cuda_layer_norm_forward, .backward = cuda_layer_norm_backward},
    [LAYER_SOFTMAX_LOSS] = {.forward = cuda_softmax_loss_forward,
                            .backward = cuda_softmax_loss_backward},
    [LAYER_MARGIN_LOSS] = {.forward = cuda_margin_loss_forward,
                           .backward = cuda_margin_loss_backward,
                           .weight_gradient = cuda_margin_loss_weight_gradient,
                           .refresh = cuda_margin_loss_refresh},
};

const struct weir_backend weir_cuda_backend = {
    .name = "cuda",
    .is_channels_last = true,
    .can_fuse = true,
    .has_tf32 = true,
    .has_fp16 = true,
    .knows_signs = true,
    .kernels = kernels,
    .open = cuda_open,
    .close = cuda_close,
    .gpu = cuda_gpu,
    .set_step = cuda_set_step,
    .has_rule = cuda_has_rule,
    .update = cuda_update,
    .add = cuda_add,
    .probe = cuda_backend_probe,
    .unscale = cuda_unscale,
    .note_update = cuda_note_update,
    .get_scale = cuda_get_scale,
    .set_scale = cuda_set_scale,
    .prepare = cuda_prepare,
    .release = cuda_release,
};
