/* From names to numbers: each value has a number, and each node becomes a step. */
#include "onnx_private.h"

#include "names.h"

#include <string.h>

/* ONNX's own domain has two names. */
static bool is_own_domain(const char *domain)
{
    return domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

/* The version that the model names of a domain; 0: it names none. */
static int64_t opset_of(const struct onnx_model *model, const char *domain)
{
    int64_t version = 0;
    for (size_t i = 0; i < model->n_opsets; i++) {
        const char *other = model->opsets[i].domain;
        bool is_it = is_own_domain(domain) ? is_own_domain(other) : strcmp(other, domain) == 0;
        version = is_it ? model->opsets[i].version : version;
    }
    return version;
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

/* Weir has operators of ONNX's own domain. Of another it names domain and version: other executors
 * have some of those. */
static weir_status refuse_op(const struct weir_onnx *onnx, const struct onnx_node *node,
                             struct weir_error *err)
{
    const int64_t version = opset_of(onnx->model, node->domain);
    const char *domain = is_own_domain(node->domain) ? "" : node->domain;
    if (version < 1) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "node \"%.80s\" (%s) is of the domain \"%s\", of which the model names "
            "no set of operators",
            node->name, node->type, domain[0] != '\0' ? domain : "ai.onnx");
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "operator %s%s%.80s of opset %lld (node \"%.80s\") is not %s", domain,
                          domain[0] != '\0' ? "." : "", node->type, (long long)version, node->name,
                          domain[0] == '\0' && onnx_op_is_known(node->type)
                              ? "supported in so old a form: convert the model to opset 13"
                              : "supported");
}

static weir_status find_op(const struct weir_onnx *onnx, const struct onnx_node *node,
                           const struct onnx_op **out, struct weir_error *err)
{
    const struct onnx_op *op = is_own_domain(node->domain) && onnx->opset >= 1
                                   ? onnx_op_find(node->type, onnx->opset)
                                   : NULL;
    if (op == NULL) {
        return refuse_op(onnx, node, err);
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
    struct onnx_step *step = &onnx->steps[i_step];
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
    struct onnx_step *step = &onnx->steps[i_step];
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
    onnx->steps = WEIR_ARENA_ARRAY(arena, onnx->n_steps, struct onnx_step);
    onnx->inputs = WEIR_ARENA_ARRAY(arena, graph->n_inputs, struct weir_onnx_port);
    onnx->input_values = WEIR_ARENA_ARRAY(arena, graph->n_inputs, int32_t);
    onnx->outputs = WEIR_ARENA_ARRAY(arena, graph->n_outputs, struct weir_onnx_port);
    onnx->output_values = WEIR_ARENA_ARRAY(arena, graph->n_outputs, int32_t);
    return weir_arena_check(arena, "an ONNX model", err);
}

weir_status onnx_link(struct weir_onnx *onnx, struct weir_error *err)
{
    onnx->opset = opset_of(onnx->model, "");
    WEIR_TRY(make_room(onnx, err));
    struct onnx_names names = onnx_names_make(&onnx->model->arena, onnx->n_values);
    WEIR_TRY(add_initializers(onnx, &names, err));
    WEIR_TRY(add_inputs(onnx, &names, err));
    for (size_t i = 0; i < onnx->n_steps; i++) {
        WEIR_TRY(link_step(onnx, &names, i, err));
    }
    return link_outputs(onnx, &names, err);
}
