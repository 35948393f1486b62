#include "onnx_private.h"

#include "fast/fast.h"

#include <stdlib.h>
#include <string.h>

#define RUN_BYTES ((size_t)8 << 30)

/* ---- run ------------------------------------------------------------------------------------- */

static weir_status check_input(const struct weir_onnx_port *port, const struct weir_tensor *tensor,
                               struct weir_error *err)
{
    bool fits = port->dtype == tensor->dtype && (port->rank < 0 || port->rank == tensor->rank);
    char wanted[WEIR_TENSOR_TEXT_BYTES], given[WEIR_TENSOR_TEXT_BYTES];
    for (int32_t i = 0; fits && i < port->rank; i++) {
        fits = port->dims[i] < 0 || port->dims[i] == tensor->dims[i];
    }
    return fits ? WEIR_OK
                : weir_error_set(err, WEIR_ERR_INVALID,
                                 "input \"%.80s\" is %s of %s, expected %s of %s (-1: any)",
                                 port->name,
                                 weir_tensor_dims_text(tensor->rank, tensor->dims, given),
                                 weir_dtype_name(tensor->dtype),
                                 weir_tensor_dims_text(WEIR_MAX(port->rank, 0), port->dims, wanted),
                                 weir_dtype_name(port->dtype));
}

static weir_status take_inputs(struct weir_onnx *onnx, struct weir_tensor *const *in,
                               struct weir_error *err)
{
    onnx->budget = (struct onnx_budget){.most_bytes = onnx->limits.run_bytes};
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        WEIR_TRY(check_input(&onnx->inputs[i], in[i], err));
        onnx->values[onnx->input_values[i]] = weir_tensor_retain(in[i]);
    }
    return WEIR_OK;
}

static weir_status run_interpreted(struct weir_onnx *onnx, struct weir_tensor **out,
                                   struct weir_error *err)
{
    WEIR_TRY(onnx_interpret(onnx, err));
    for (size_t i = 0; i < onnx->n_outputs; i++) {
        out[i] = weir_tensor_retain(onnx->values[onnx->output_values[i]]);
    }
    return WEIR_OK;
}

weir_status weir_onnx_run(struct weir_onnx *onnx, struct weir_tensor *const *in,
                          struct weir_tensor **out, struct weir_error *err)
{
    weir_status status = take_inputs(onnx, in, err);
    if (status == WEIR_OK) {
        status =
            onnx->fast != NULL ? fast_run(onnx->fast, out, err) : run_interpreted(onnx, out, err);
    }
    for (size_t i = 0; i < onnx->n_values; i++) {
        onnx_drop(onnx, (int32_t)i);
    }
    return status;
}

/* ---- load and free --------------------------------------------------------------------------- */

weir_status weir_onnx_load(const void *bytes, size_t n, const struct weir_onnx_limits *limits,
                           struct weir_onnx **out, struct weir_error *err)
{
    struct weir_onnx *onnx = calloc(1, sizeof *onnx);
    if (onnx == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    onnx->limits = limits != NULL ? *limits : onnx->limits;
    onnx->limits.run_bytes = onnx->limits.run_bytes > 0 ? onnx->limits.run_bytes : RUN_BYTES;
    weir_status status = onnx_model_read(bytes, n, &onnx->model, err);
    status = status == WEIR_OK ? onnx_link(onnx, err) : status;
    status = status == WEIR_OK ? onnx_fold(onnx, err) : status;
    if (status == WEIR_OK && !onnx->limits.only_interprets) {
        status = fast_create(onnx, &onnx->fast, err);
    }
    if (status != WEIR_OK) {
        weir_onnx_free(onnx);
        return status;
    }
    *out = onnx;
    return WEIR_OK;
}

void weir_onnx_free(struct weir_onnx *onnx)
{
    if (onnx != NULL) {
        fast_destroy(onnx->fast);
        for (size_t i = 0; onnx->values != NULL && i < onnx->n_values; i++) {
            weir_tensor_release(onnx->values[i]);
        }
        onnx_model_free(onnx->model);
        free(onnx);
    }
}

/* Dropout that a constant turns off does not train. */
static bool may_train(const struct weir_onnx *onnx, const struct onnx_step *step)
{
    const struct onnx_call call = {.node = step->node};
    if (step->op == NULL || !onnx_node_may_train(step->node)) {
        return step->op != NULL && strcmp(step->node->type, "BatchNormalization") == 0 &&
               onnx_int(&call, "training_mode", 0) != 0;
    }
    const struct weir_tensor *mode =
        onnx->is_constant[step->in[2]] ? onnx->values[step->in[2]] : NULL;
    return mode == NULL || (mode->n_elems > 0 && onnx_get(mode, 0) != 0);
}

bool weir_onnx_mixes_rows(const struct weir_onnx *onnx)
{
    bool mixes = false;
    for (size_t i = 0; !mixes && i < onnx->n_steps; i++) {
        mixes = may_train(onnx, &onnx->steps[i]);
    }
    return mixes;
}

const struct weir_onnx_port *weir_onnx_inputs(const struct weir_onnx *onnx, size_t *out_n)
{
    *out_n = onnx->n_inputs;
    return onnx->inputs;
}

const struct weir_onnx_port *weir_onnx_outputs(const struct weir_onnx *onnx, size_t *out_n)
{
    *out_n = onnx->n_outputs;
    return onnx->outputs;
}
