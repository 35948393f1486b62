#include "onnx_private.h"

#include "onnx/fast/fast.h"
#include "onnx/rows/rows.h"

#include "base/names.h"

#include <stdio.h>
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

/* A picture fails where two ways of it meet if the graph's strides do not divide its sides: says so. */
static void explain_sides(const struct weir_onnx *onnx, struct weir_tensor *const *in,
                          struct weir_error *err)
{
    static const char joins[] = "Add Sum Sub Mul Div Concat";
    struct weir_arena arena;
    if (onnx->failed == NULL ||
        !weir_words_have(joins, onnx->failed->type, strlen(onnx->failed->type))) {
        return;
    }
    weir_arena_init(&arena, 0);
    const int64_t stride = onnx_total_stride(onnx, &arena);
    weir_arena_fini(&arena);
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        const int64_t *dims = in[i]->dims;
        if (in[i]->rank == 4 && (dims[2] % stride != 0 || dims[3] % stride != 0)) {
            const struct weir_error said = *err;
            (void)weir_error_set(err, said.status,
                                 "%.700s; input \"%.80s\" is %lld by %lld: its sides must be "
                                 "multiples of %lld, the product of the model's strides",
                                 said.message, onnx->inputs[i].name, (long long)dims[3],
                                 (long long)dims[2], (long long)stride);
            return;
        }
    }
}

weir_status weir_onnx_run(struct weir_onnx *onnx, struct weir_tensor *const *in,
                          struct weir_tensor **out, struct weir_error *err)
{
    weir_status status = take_inputs(onnx, in, err);
    onnx->failed = NULL;
    if (status == WEIR_OK) {
        status =
            onnx->fast != NULL ? fast_run(onnx->fast, out, err) : run_interpreted(onnx, out, err);
    }
    for (size_t i = 0; i < onnx->n_values; i++) {
        onnx_drop(onnx, (int32_t)i);
    }
    if (status == WEIR_ERR_INVALID && err != NULL) {
        explain_sides(onnx, in, err);
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
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(onnx_model_read(bytes, n, &onnx->model, err), status, free_onnx);
    WEIR_TRY_GOTO(onnx_link(onnx, err), status, free_onnx);
    WEIR_TRY_GOTO(onnx_fold(onnx, err), status, free_onnx);
    if (!onnx->limits.only_interprets) {
        WEIR_TRY_GOTO(fast_create(onnx, &onnx->fast, err), status, free_onnx);
    }
    *out = onnx;
    return WEIR_OK;
free_onnx:
    weir_onnx_free(onnx);
    return status;
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

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct weir_tensor *constant_of(const void *context, size_t i_node, size_t i_out)
{
    const struct weir_onnx *onnx = context;
    int32_t value = onnx->steps[i_node].out[i_out];
    return value >= 0 && onnx->is_constant[value] ? onnx->values[value] : NULL;
}

static enum weir_onnx_rows prove(const struct onnx_model *model, const struct weir_onnx *onnx,
                                 char why[WEIR_ONNX_ROWS_BYTES])
{
    static const enum weir_onnx_rows kinds[] = {[ROWS_APART] = WEIR_ONNX_ROWS_APART,
                                                [ROWS_MIX] = WEIR_ONNX_ROWS_MIXED,
                                                [ROWS_UNSURE] = WEIR_ONNX_ROWS_UNSURE};
    const struct onnx_node *cause;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    enum rows_verdict verdict =
        rows_prove(model, onnx != NULL ? constant_of : NULL, onnx, &arena, &cause);
    weir_arena_fini(&arena);
    why[0] = '\0';
    if (verdict != ROWS_APART && cause != NULL) {
        (void)snprintf(why, WEIR_ONNX_ROWS_BYTES,
                       verdict == ROWS_MIX
                           ? "node \"%.80s\" (%.80s) makes an answer depend on the whole batch"
                           : "of node \"%.80s\" (%.80s) it is not known whether it keeps the rows "
                             "of a batch apart",
                       cause->name, cause->type);
    } else if (verdict != ROWS_APART) {
        (void)snprintf(why, WEIR_ONNX_ROWS_BYTES,
                       "the first dimension of an input or an output is no batch");
    }
    return kinds[verdict];
}

enum weir_onnx_rows weir_onnx_rows(const struct weir_onnx *onnx, char why[WEIR_ONNX_ROWS_BYTES])
{
    return prove(onnx->model, onnx, why);
}

enum weir_onnx_rows weir_onnx_rows_of_file(const void *bytes, size_t n,
                                           char why[WEIR_ONNX_ROWS_BYTES])
{
    struct onnx_model *model;
    struct weir_error lacks;
    if (onnx_model_read(bytes, n, &model, &lacks) != WEIR_OK) {
        (void)snprintf(why, WEIR_ONNX_ROWS_BYTES, "its graph cannot be read: %.200s",
                       lacks.message);
        return WEIR_ONNX_ROWS_UNSURE;
    }
    enum weir_onnx_rows rows = prove(model, NULL, why);
    onnx_model_free(model);
    return rows;
}

/* ---- ports ----------------------------------------------------------------------------------- */

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

bool weir_onnx_is_resizable(const struct weir_onnx *onnx)
{
    static const char fixing[] = "Reshape Flatten Gemm MatMul";
    const struct weir_onnx_port *port = onnx->inputs;
    bool is_fixed = onnx->n_inputs == 1 && port->rank == 4 &&
                    (port->dims[1] == 1 || port->dims[1] == 3) && port->dims[2] > 0 &&
                    port->dims[3] > 0;
    for (size_t i = 0; is_fixed && i < onnx->n_steps; i++) {
        const char *type = onnx->steps[i].node->type;
        is_fixed = onnx->steps[i].op == NULL || !weir_words_have(fixing, type, strlen(type));
    }
    return is_fixed;
}
