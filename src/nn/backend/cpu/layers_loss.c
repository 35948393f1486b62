#include "layers.h"

#include "nn/backend/cpu/vector/vector.h"
#include "nn/backend/reference/kernels.h"

weir_status fast_softmax_loss_forward(const struct op *op, const struct op_tile *tile)
{
    size_t n_classes = (size_t)op->in[0].c;
    if (tile->is_training && op->smoothing > 0) {
        return REF(softmax_loss_forward)(op, tile);
    }
    *tile->loss = (struct op_loss){0, 0, 0};
    for (int32_t n = 0; n < tile->n; n++) {
        const float *logits = tile->x[0] + (size_t)n * n_classes;
        int32_t label = tile->labels[n];
        if (label >= 0) {
            tile->loss->loss +=
                vector_kernels(op->type)->log_sum_exp(logits, n_classes) - (double)logits[label];
            tile->loss->n_correct += ref_argmax(logits, op->in[0].c) == label;
            tile->loss->n_labelled++;
        }
    }
    return WEIR_OK;
}

weir_status fast_softmax_loss_backward(const struct op *op, const struct op_tile *tile)
{
    size_t n_classes = (size_t)op->in[0].c;
    const double factor = tile->inv_n_labelled, rest = op->smoothing / (double)n_classes;
    for (int32_t n = 0; tile->dx[0] && n < tile->n; n++) {
        float *dx = tile->dx[0] + (size_t)n * n_classes;
        int32_t label = tile->labels[n];
        if (label >= 0) {
            vector_kernels(op->type)->softmax_backward(tile->x[0] + (size_t)n * n_classes,
                                                       n_classes, (float)rest, (float)factor, dx,
                                                       tile->dx_adds[0]);
            dx[label] -= (float)((1 - op->smoothing) * factor);
        } else if (!tile->dx_adds[0]) {
            memset(dx, 0, n_classes * sizeof(*dx));
        }
    }
    return WEIR_OK;
}
