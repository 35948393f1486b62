/* The interpreter: one step after the other, by operators of any element type. */
#include "onnx_private.h"

#include <stdlib.h>

static size_t bytes_of(const struct weir_tensor *tensor)
{
    return tensor->owner != NULL ? 0 : tensor->n_elems * weir_dtype_bytes(tensor->dtype);
}

void onnx_drop(struct weir_onnx *onnx, int32_t value)
{
    if (value >= 0 && onnx->values[value] != NULL && !onnx->is_constant[value]) {
        size_t n_bytes = bytes_of(onnx->values[value]);
        onnx->budget.used_bytes -= WEIR_MIN(n_bytes, onnx->budget.used_bytes);
        weir_tensor_release(onnx->values[value]);
        onnx->values[value] = NULL;
    }
}

static weir_status take_outputs(struct weir_onnx *onnx, const struct onnx_step *step,
                                struct weir_tensor **out, weir_status status,
                                struct weir_error *err)
{
    for (size_t i = 0; i < step->node->n_out; i++) {
        if (status == WEIR_OK && step->out[i] >= 0 && out[i] == NULL) {
            status =
                weir_error_set(err, WEIR_ERR_UNSUPPORTED, "its output %zu is not supported", i);
        }
        if (status == WEIR_OK && step->out[i] >= 0) {
            onnx->values[step->out[i]] = out[i];
        } else {
            weir_tensor_release(out[i]);
        }
    }
    if (status != WEIR_OK) {
        const struct onnx_node *node = onnx->failed = step->node;
        return node->name[0] != '\0' || node->n_out == 0
                   ? weir_error_prefix(err, "node \"%.80s\" (%s): ", node->name, node->type)
                   : weir_error_prefix(err, "the node of \"%.80s\" (%s): ", node->out[0],
                                       node->type);
    }
    return WEIR_OK;
}

weir_status onnx_step_run(struct weir_onnx *onnx, const struct onnx_step *step,
                          struct weir_tensor *const *in, struct weir_error *err)
{
    WEIR_AUTO(weir_auto_free)
    struct weir_tensor **out = calloc(step->node->n_out, sizeof(struct weir_tensor *));
    if (out == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a node's outputs");
    }
    struct onnx_call call = {.op = step->op,
                             .node = step->node,
                             .opset = onnx->opset,
                             .in = in,
                             .n_in = step->node->n_in,
                             .out = out,
                             .n_out = step->node->n_out,
                             .budget = &onnx->budget};
    return take_outputs(onnx, step, out, step->op->run(&call, err), err);
}

static weir_status run_step(struct weir_onnx *onnx, size_t i_step, struct weir_error *err)
{
    const struct onnx_step *step = &onnx->steps[i_step];
    struct weir_tensor **in = calloc(step->node->n_in + 1, sizeof(struct weir_tensor *));
    if (in == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a node's inputs");
    }
    for (size_t i = 0; i < step->node->n_in; i++) {
        in[i] = step->in[i] >= 0 ? onnx->values[step->in[i]] : NULL;
    }
    weir_status status = onnx_step_run(onnx, step, in, err);
    free(in);
    WEIR_TRY(status);
    for (size_t i = 0; i < step->node->n_in; i++) {
        if (step->in[i] >= 0 && onnx->last_use[step->in[i]] == i_step) {
            onnx_drop(onnx, step->in[i]);
        }
    }
    return WEIR_OK;
}

static bool is_constant(const struct weir_onnx *onnx, const struct onnx_step *step)
{
    bool is = !onnx_node_draws(step->node);
    for (size_t i = 0; i < step->node->n_in; i++) {
        is = is && (step->in[i] < 0 || onnx->is_constant[step->in[i]]);
    }
    return is;
}

weir_status onnx_fold(struct weir_onnx *onnx, struct weir_error *err)
{
    onnx->budget = (struct onnx_budget){.most_bytes = onnx->limits.run_bytes};
    for (size_t i = 0; i < onnx->n_steps; i++) {
        struct onnx_step *step = &onnx->steps[i];
        if (!is_constant(onnx, step)) {
            continue;
        }
        WEIR_TRY(run_step(onnx, i, err));
        for (size_t k = 0; k < step->node->n_out; k++) {
            if (step->out[k] >= 0) {
                onnx->is_constant[step->out[k]] = true;
            }
        }
        step->op = NULL;
    }
    return WEIR_OK;
}

weir_status onnx_interpret(struct weir_onnx *onnx, struct weir_error *err)
{
    for (size_t i = 0; i < onnx->n_steps; i++) {
        if (onnx->steps[i].op != NULL) {
            WEIR_TRY(run_step(onnx, i, err));
        }
    }
    return WEIR_OK;
}
