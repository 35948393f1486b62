#include "onnx/onnx.h"

#include "names.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

#define RUN_BYTES ((size_t)8 << 30)

/** A node whose operator is known and whose values are numbers. */
struct step {
    const struct onnx_node *node;
    const struct onnx_op *op;
    int32_t *in, *out; /* -1: left out */
};

struct weir_onnx {
    struct onnx_model *model;
    struct weir_onnx_limits limits;
    int64_t opset;
    size_t n_values;
    struct weir_tensor **values; /* By number. Constants stay; the rest lives during a run. */
    bool *is_constant;
    size_t *last_use; /* Step after which a value is not needed any more. */
    struct step *steps;
    size_t n_steps;
    struct weir_onnx_port *inputs, *outputs;
    int32_t *input_values, *output_values;
    size_t n_inputs, n_outputs;
    struct onnx_budget budget;
};

/* ---- load: names to numbers ------------------------------------------------------------------ */

static weir_status choose_opset(struct weir_onnx *onnx, struct weir_error *err)
{
    const struct onnx_model *model = onnx->model;
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (model->opsets[i].domain[0] == '\0' || strcmp(model->opsets[i].domain, "ai.onnx") == 0) {
            onnx->opset = model->opsets[i].version;
        }
    }
    return onnx->opset >= 1 ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_INVALID,
                                             "the model names no set of ONNX's operators");
}

static void make_port(const struct onnx_value *value, struct weir_onnx_port *port)
{
    *port = (struct weir_onnx_port){
        .name = value->name, .dtype = value->dtype, .rank = value->has_shape ? value->rank : -1};
    memcpy(port->dims, value->dims, sizeof port->dims);
}

static weir_status add_initializers(struct weir_onnx *onnx, struct onnx_names *names,
                                    struct weir_error *err)
{
    const struct onnx_graph *graph = &onnx->model->graph;
    for (size_t i = 0; i < graph->n_initializers; i++) {
        const struct onnx_initializer *from = &graph->initializers[i];
        int32_t number;
        if (!onnx_names_add(names, from->name, &number)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "two initializers are called \"%.80s\"",
                                  from->name);
        }
        onnx->values[number] = weir_tensor_retain(from->tensor);
        onnx->is_constant[number] = true;
    }
    return WEIR_OK;
}

/* Graph inputs that have an initializer have a default; they are constants here. */
static weir_status add_inputs(struct weir_onnx *onnx, struct onnx_names *names,
                              struct weir_error *err)
{
    const struct onnx_graph *graph = &onnx->model->graph;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        int32_t number;
        if (onnx_names_find(names, graph->inputs[i].name) >= 0) {
            continue;
        }
        if (!onnx_names_add(names, graph->inputs[i].name, &number)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "two inputs have one name");
        }
        if (graph->inputs[i].dtype == WEIR_DTYPE_NONE) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "input \"%.80s\" is no tensor but a sequence, a map or optional",
                                  graph->inputs[i].name);
        }
        make_port(&graph->inputs[i], &onnx->inputs[onnx->n_inputs]);
        onnx->input_values[onnx->n_inputs++] = number;
    }
    return WEIR_OK;
}

static weir_status find_op(const struct weir_onnx *onnx, const struct onnx_node *node,
                           const struct onnx_op **out, struct weir_error *err)
{
    const struct onnx_op *op =
        node->domain[0] == '\0' ? onnx_op_find(node->type, onnx->opset) : NULL;
    if (op == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "operator %s%s%.80s of opset %lld (node \"%.80s\") is not %s",
                              node->domain, node->domain[0] != '\0' ? "." : "", node->type,
                              (long long)onnx->opset, node->name,
                              node->domain[0] == '\0' && onnx_op_is_known(node->type)
                                  ? "supported in so old a form: convert the model to opset 13"
                                  : "supported");
    }
    if (node->n_in < op->n_in || node->n_out > op->n_out || node->n_out == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "node \"%.80s\": %s with %zu inputs and %zu outputs", node->name,
                              node->type, node->n_in, node->n_out);
    }
    *out = op;
    return WEIR_OK;
}

static weir_status link_inputs(struct weir_onnx *onnx, const struct onnx_names *names,
                               size_t i_step, struct weir_error *err)
{
    struct step *step = &onnx->steps[i_step];
    for (size_t i = 0; i < step->node->n_in; i++) {
        const char *name = step->node->in[i];
        step->in[i] = name[0] != '\0' ? onnx_names_find(names, name) : -1;
        if (step->in[i] < 0 && (name[0] != '\0' || i < step->op->n_in)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "node \"%.80s\" (%s) reads \"%.80s\", which nothing before it "
                                  "makes",
                                  step->node->name, step->node->type, name);
        }
        if (step->in[i] >= 0) {
            onnx->last_use[step->in[i]] = i_step;
        }
    }
    return WEIR_OK;
}

static weir_status link_step(struct weir_onnx *onnx, struct onnx_names *names, size_t i_step,
                             struct weir_error *err)
{
    struct weir_arena *arena = &onnx->model->arena;
    struct step *step = &onnx->steps[i_step];
    step->node = &onnx->model->graph.nodes[i_step];
    WEIR_TRY(find_op(onnx, step->node, &step->op, err));
    step->in = WEIR_ARENA_ARRAY(arena, step->node->n_in, int32_t);
    step->out = WEIR_ARENA_ARRAY(arena, step->node->n_out, int32_t);
    WEIR_TRY(link_inputs(onnx, names, i_step, err));
    for (size_t i = 0; i < step->node->n_out; i++) {
        const char *name = step->node->out[i];
        step->out[i] = -1;
        if (name[0] != '\0' && !onnx_names_add(names, name, &step->out[i])) {
            return weir_error_set(err, WEIR_ERR_INVALID, "two nodes make \"%.80s\"", name);
        }
        if (step->out[i] >= 0) {
            onnx->last_use[step->out[i]] = i_step;
        }
    }
    return WEIR_OK;
}

static weir_status link_outputs(struct weir_onnx *onnx, const struct onnx_names *names,
                                struct weir_error *err)
{
    const struct onnx_graph *graph = &onnx->model->graph;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        int32_t number = onnx_names_find(names, graph->outputs[i].name);
        if (number < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "nothing makes the output \"%.80s\"",
                                  graph->outputs[i].name);
        }
        make_port(&graph->outputs[i], &onnx->outputs[i]);
        onnx->output_values[i] = number;
        onnx->last_use[number] = onnx->n_steps;
    }
    onnx->n_outputs = graph->n_outputs;
    return WEIR_OK;
}

static weir_status make_room(struct weir_onnx *onnx, struct weir_error *err)
{
    const struct onnx_graph *graph = &onnx->model->graph;
    struct weir_arena *arena = &onnx->model->arena;
    size_t n = graph->n_initializers + graph->n_inputs;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        n += graph->nodes[i].n_out;
    }
    onnx->n_values = n;
    onnx->n_steps = graph->n_nodes;
    onnx->values = WEIR_ARENA_ARRAY(arena, n, struct weir_tensor *);
    onnx->is_constant = WEIR_ARENA_ARRAY(arena, n, bool);
    onnx->last_use = WEIR_ARENA_ARRAY(arena, n, size_t);
    onnx->steps = WEIR_ARENA_ARRAY(arena, onnx->n_steps, struct step);
    onnx->inputs = WEIR_ARENA_ARRAY(arena, graph->n_inputs, struct weir_onnx_port);
    onnx->input_values = WEIR_ARENA_ARRAY(arena, graph->n_inputs, int32_t);
    onnx->outputs = WEIR_ARENA_ARRAY(arena, graph->n_outputs, struct weir_onnx_port);
    onnx->output_values = WEIR_ARENA_ARRAY(arena, graph->n_outputs, int32_t);
    return weir_arena_check(arena, "an ONNX model", err);
}

static weir_status link_graph(struct weir_onnx *onnx, struct weir_error *err)
{
    WEIR_TRY(choose_opset(onnx, err));
    WEIR_TRY(make_room(onnx, err));
    struct onnx_names names = onnx_names_make(&onnx->model->arena, onnx->n_values);
    WEIR_TRY(add_initializers(onnx, &names, err));
    WEIR_TRY(add_inputs(onnx, &names, err));
    for (size_t i = 0; i < onnx->n_steps; i++) {
        WEIR_TRY(link_step(onnx, &names, i, err));
    }
    return link_outputs(onnx, &names, err);
}

/* ---- run ------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct weir_tensor *tensor)
{
    return tensor->owner != NULL ? 0 : tensor->n_elems * weir_dtype_bytes(tensor->dtype);
}

static void drop(struct weir_onnx *onnx, int32_t value)
{
    if (value >= 0 && onnx->values[value] != NULL && !onnx->is_constant[value]) {
        size_t n_bytes = bytes_of(onnx->values[value]);
        onnx->budget.used_bytes -= WEIR_MIN(n_bytes, onnx->budget.used_bytes);
        weir_tensor_release(onnx->values[value]);
        onnx->values[value] = NULL;
    }
}

static weir_status run_op(struct weir_onnx *onnx, const struct step *step, struct weir_tensor **in,
                          struct weir_tensor **out, struct weir_error *err)
{
    struct onnx_call call = {.op = step->op,
                             .node = step->node,
                             .opset = onnx->opset,
                             .in = in,
                             .n_in = step->node->n_in,
                             .out = out,
                             .n_out = step->node->n_out,
                             .budget = &onnx->budget};
    weir_status status = step->op->run(&call, err);
    for (size_t i = 0; i < call.n_out; i++) {
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
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_prefix(err, "node \"%.80s\" (%s): ", step->node->name,
                                                 step->node->type);
}

static weir_status run_step(struct weir_onnx *onnx, size_t i_step, struct weir_error *err)
{
    const struct step *step = &onnx->steps[i_step];
    size_t n = step->node->n_in + step->node->n_out + 1;
    struct weir_tensor **in = calloc(n, sizeof(struct weir_tensor *));
    if (in == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a node's inputs");
    }
    for (size_t i = 0; i < step->node->n_in; i++) {
        in[i] = step->in[i] >= 0 ? onnx->values[step->in[i]] : NULL;
    }
    weir_status status = run_op(onnx, step, in, in + step->node->n_in, err);
    free(in);
    for (size_t i = 0; status == WEIR_OK && i < step->node->n_in; i++) {
        if (step->in[i] >= 0 && onnx->last_use[step->in[i]] == i_step) {
            drop(onnx, step->in[i]);
        }
    }
    return status;
}

static bool is_constant(const struct weir_onnx *onnx, const struct step *step)
{
    bool is = true;
    for (size_t i = 0; i < step->node->n_in; i++) {
        is = is && (step->in[i] < 0 || onnx->is_constant[step->in[i]]);
    }
    return is;
}

/* Constants are computed once, and their steps are done for good. */
static weir_status fold_constants(struct weir_onnx *onnx, struct weir_error *err)
{
    onnx->budget = (struct onnx_budget){.most_bytes = onnx->limits.run_bytes};
    for (size_t i = 0; i < onnx->n_steps; i++) {
        struct step *step = &onnx->steps[i];
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

static weir_status run_steps(struct weir_onnx *onnx, struct weir_tensor *const *in,
                             struct weir_error *err)
{
    onnx->budget = (struct onnx_budget){.most_bytes = onnx->limits.run_bytes};
    for (size_t i = 0; i < onnx->n_inputs; i++) {
        WEIR_TRY(check_input(&onnx->inputs[i], in[i], err));
        onnx->values[onnx->input_values[i]] = weir_tensor_retain(in[i]);
    }
    for (size_t i = 0; i < onnx->n_steps; i++) {
        if (onnx->steps[i].op != NULL) {
            WEIR_TRY(run_step(onnx, i, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_onnx_run(struct weir_onnx *onnx, struct weir_tensor *const *in,
                          struct weir_tensor **out, struct weir_error *err)
{
    weir_status status = run_steps(onnx, in, err);
    for (size_t i = 0; status == WEIR_OK && i < onnx->n_outputs; i++) {
        out[i] = weir_tensor_retain(onnx->values[onnx->output_values[i]]);
    }
    for (size_t i = 0; i < onnx->n_values; i++) {
        drop(onnx, (int32_t)i);
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
    onnx->limits.run_bytes =
        limits != NULL && limits->run_bytes > 0 ? limits->run_bytes : RUN_BYTES;
    weir_status status = onnx_model_read(bytes, n, &onnx->model, err);
    status = status == WEIR_OK ? link_graph(onnx, err) : status;
    status = status == WEIR_OK ? fold_constants(onnx, err) : status;
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
        for (size_t i = 0; onnx->values != NULL && i < onnx->n_values; i++) {
            weir_tensor_release(onnx->values[i]);
        }
        onnx_model_free(onnx->model);
        free(onnx);
    }
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
