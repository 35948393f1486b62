/* Losses. They are in f32. */
#include "context.h"

static struct gpu_loss_args loss_args(const struct op *op, const struct op_tile *tile)
{
    const struct cuda_op *state = cuda_op_of(op);
    return (struct gpu_loss_args){.x = tile->x[0],
                                  .labels = tile->labels,
                                  .dx = tile->dx[0],
                                  .step = state->context->step,
                                  .scale_of_loss = state->context->scale,
                                  .losses = state->image_losses,
                                  .sum = (struct gpu_loss *)(void *)tile->loss,
                                  .n = op->batch,
                                  .n_classes = op->n_classes,
                                  .dim = op->in[0].c,
                                  .is_training = tile->is_training,
                                  .adds = tile->dx_adds[0],
                                  .smoothing = (float)op->smoothing,
                                  .scale = op->scale,
                                  .margin = op->margin,
                                  .scores = op->scores,
                                  .saved = op->saved,
                                  .weights = op->params[OP_WEIGHT].value,
                                  .gradient = op->params[OP_WEIGHT].gradient};
}

_Static_assert(sizeof(struct gpu_loss) == sizeof(struct op_loss), "the GPU writes an op_loss");

static weir_status run(const struct op *op, enum gpu_kernel kernel, uint32_t n_blocks,
                       const struct gpu_loss_args *args)
{
    return cuda_launch(op, kernel, GPU_F32, n_blocks, 1, args, sizeof *args);
}

weir_status cuda_softmax_loss_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_loss_args args = loss_args(op, tile);
    WEIR_TRY(run(op, GPU_KERNEL_softmax_loss_forward, (uint32_t)op->batch, &args));
    return run(op, GPU_KERNEL_loss_sum, 1, &args);
}

weir_status cuda_softmax_loss_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_loss_args args = loss_args(op, tile);
    return args.dx ? run(op, GPU_KERNEL_softmax_loss_backward, (uint32_t)op->batch, &args)
                   : WEIR_OK;
}

weir_status cuda_margin_loss_refresh(const struct op *op, int32_t i_thread, void *scratch)
{
    struct op_tile none = {0};
    struct gpu_loss_args args = loss_args(op, &none);
    (void)i_thread;
    (void)scratch;
    return run(op, GPU_KERNEL_margin_refresh, (uint32_t)op->n_classes, &args);
}

weir_status cuda_margin_loss_forward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_loss_args args = loss_args(op, tile);
    uint64_t n_scores = (uint64_t)op->batch * (uint64_t)op->n_classes;
    WEIR_TRY(run(op, GPU_KERNEL_margin_scores, cuda_blocks(n_scores), &args));
    WEIR_TRY(run(op, GPU_KERNEL_margin_loss, (uint32_t)op->batch, &args));
    return run(op, GPU_KERNEL_loss_sum, 1, &args);
}

weir_status cuda_margin_loss_backward(const struct op *op, const struct op_tile *tile)
{
    struct gpu_loss_args args = loss_args(op, tile);
    uint64_t n = (uint64_t)op->batch * (uint64_t)op->in[0].c;
    return args.dx ? run(op, GPU_KERNEL_margin_backward, cuda_blocks(n), &args) : WEIR_OK;
}

weir_status cuda_margin_loss_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    struct gpu_loss_args args = loss_args(op, tile);
    return run(op, GPU_KERNEL_margin_weight_gradient, (uint32_t)op->n_classes, &args);
}
