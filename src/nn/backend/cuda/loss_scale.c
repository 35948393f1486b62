/* The loss scale lies on the GPU: the kernels of a step and of an update read and move it there. */
#include "context.h"

/* Blocks of a kernel over all gradients: a thread takes several if there are many. */
#define SCALE_BLOCKS 4096

static struct gpu_scale_args args_of(const struct cuda_context *self)
{
    return (struct gpu_scale_args){.scale = self->scale, .n_steps = self->n_scale_steps};
}

static weir_status launch(const struct cuda_context *self, enum gpu_kernel kernel,
                          const struct gpu_scale_args *args)
{
    size_t n_blocks = WEIR_MIN((size_t)args->n / GPU_BLOCK + 1, (size_t)SCALE_BLOCKS);
    return self->scale ? self->gpu->ops->launch(self->gpu, kernel, GPU_F32, (uint32_t)n_blocks, 1,
                                                args, sizeof *args)
                       : WEIR_OK;
}

weir_status cuda_unscale(void *context, float *gradients, size_t n_elems)
{
    struct gpu_scale_args args = args_of(context);
    args.gradients = gradients;
    args.n = n_elems;
    return launch(context, GPU_KERNEL_unscale, &args);
}

weir_status cuda_scale_check(struct cuda_context *context, const float *gradients, size_t n_elems)
{
    struct gpu_scale_args args = args_of(context);
    args.gradients = (float *)(uintptr_t)gradients; /* read only */
    args.n = n_elems;
    return launch(context, GPU_KERNEL_find_spoilt, &args);
}

weir_status cuda_scale_move(struct cuda_context *context)
{
    struct gpu_scale_args args = args_of(context);
    return launch(context, GPU_KERNEL_move_scale, &args);
}

weir_status cuda_note_update(void *context, bool is_finite)
{
    struct gpu_scale_args args = args_of(context);
    args.is_spoilt = !is_finite;
    return launch(context, GPU_KERNEL_move_scale, &args);
}

weir_status cuda_get_scale(void *context, struct weir_loss_scale *out)
{
    struct cuda_context *self = context;
    struct gpu_scale scale = {.scale = 1};
    if (self->scale) {
        WEIR_TRY(self->gpu->ops->download(self->gpu, &scale, self->scale, sizeof scale));
        WEIR_TRY(self->gpu->ops->wait(self->gpu));
    }
    *out = (struct weir_loss_scale){scale.scale, scale.n_good, scale.n_skipped};
    return WEIR_OK;
}

weir_status cuda_set_scale(void *context, const struct weir_loss_scale *scale)
{
    struct cuda_context *self = context;
    const struct gpu_scale to = {
        .scale = scale->scale, .n_good = scale->n_good, .n_skipped = scale->n_skipped};
    if (!self->scale) {
        return WEIR_OK;
    }
    WEIR_TRY(self->gpu->ops->upload(self->gpu, self->scale, &to, sizeof to));
    return self->gpu->ops->wait(self->gpu);
}

weir_status cuda_scale_make(struct cuda_context *context, const struct weir_net_config *config,
                            struct weir_error *err)
{
    void *scale = NULL;
    const struct weir_loss_scale first = {.scale = config->loss_scale > 0 ? config->loss_scale
                                                                          : BACKEND_LOSS_SCALE};
    if (config->precision != WEIR_PRECISION_F16 || !config->is_training) {
        return WEIR_OK;
    }
    WEIR_TRY(context->gpu->ops->alloc(context->gpu, sizeof *context->scale, &scale, err));
    context->scale = scale;
    context->n_scale_steps =
        config->loss_scale_steps > 0 ? config->loss_scale_steps : BACKEND_LOSS_SCALE_STEPS;
    weir_status status = cuda_set_scale(context, &first);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status, "the GPU does not take the loss scale");
}

void cuda_scale_free(struct cuda_context *context)
{
    context->gpu->ops->free(context->gpu, context->scale);
}
