/* How much smaller than the input pictures become inside of a graph. */
#include "onnx_private.h"

#include <string.h>

/* Strides of windows over both sides of a picture are the same in all but a few models: the larger is taken. */
static int64_t stride_of(const struct onnx_step *step)
{
    const struct onnx_call call = {.node = step->node};
    size_t n;
    const int64_t *list = onnx_ints(&call, "strides", &n);
    int64_t most = 1;
    for (size_t i = 0; i < n; i++) {
        most = WEIR_MAX(most, list[i]);
    }
    return WEIR_MIN(most, (int64_t)STRIDE_MAX);
}

static bool is_type(const struct onnx_step *step, const char *type)
{
    return strcmp(step->node->type, type) == 0;
}

int64_t onnx_total_stride(const struct weir_onnx *onnx, struct weir_arena *arena)
{
    int64_t *strides = WEIR_ARENA_ARRAY(arena, onnx->n_values, int64_t), most = 1;
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        strides[onnx->input_values[i]] = 1;
    }
    for (size_t i = 0; i < onnx->n_steps; i++) {
        const struct onnx_step *step = &onnx->steps[i];
        int64_t stride = 0; /* none: it does not come from an input, or is of unknown size */
        for (size_t k = 0; step->op != NULL && k < step->node->n_in; k++) {
            stride = step->in[k] >= 0 ? WEIR_MAX(stride, strides[step->in[k]]) : stride;
        }
        bool is_turned = is_type(step, "ConvTranspose");
        bool grows = is_turned || is_type(step, "Resize") || is_type(step, "Upsample");
        stride = is_turned ? stride / stride_of(step) : grows ? 0 : stride * stride_of(step);
        stride = stride > STRIDE_MAX ? 0 : stride;
        for (size_t k = 0; k < step->node->n_out; k++) {
            if (step->out[k] >= 0) {
                strides[step->out[k]] = stride;
            }
        }
        most = WEIR_MAX(most, stride);
    }
    return most;
}
