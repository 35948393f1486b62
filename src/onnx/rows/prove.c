/* The walk over a graph: a state for each value. */
#include "rows.h"

#include "onnx/names.h"

#include "base/names.h"

#include <string.h>

struct proof {
    const struct onnx_model *model;
    const rows_constant_fn constant;
    const void *context;
    struct weir_arena *arena;
    struct onnx_names names;
    struct rows_state *states; /* By number. */
    int64_t opset;
    int32_t n_symbols;
};

/** NULL: there is none. */
static const struct rows_rule *rule_find(const char *type)
{
    const struct {
        const struct rows_rule *rules;
        size_t n;
    } tables[] = {{rows_each, rows_n_each},
                  {rows_moves, rows_n_moves},
                  {rows_shapes, rows_n_shapes},
                  {rows_sums, rows_n_sums},
                  {rows_windows, rows_n_windows}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(tables); i++) {
        for (size_t k = 0; k < tables[i].n; k++) {
            if (weir_words_have(tables[i].rules[k].types, type, strlen(type))) {
                return &tables[i].rules[k];
            }
        }
    }
    return NULL;
}

/* ---- what is there before the first node -------------------------------------------------------- */

static void set_constant(struct proof *proof, struct rows_state *state,
                         const struct weir_tensor *tensor)
{
    *state = (struct rows_state){.kind = ROWS_FLAT, .rank = tensor->rank, .constant = tensor};
    for (int32_t i = 0; i < tensor->rank; i++) {
        state->dims[i] = rows_number(tensor->dims[i]);
    }
    bool is_whole = tensor->dtype == WEIR_DTYPE_INT64 || tensor->dtype == WEIR_DTYPE_INT32 ||
                    tensor->dtype == WEIR_DTYPE_BOOL;
    if (is_whole && tensor->rank <= 1 && tensor->n_elems <= ROWS_VALUES_MAX) {
        struct rows_amount *values = WEIR_ARENA_ARRAY(
            proof->arena, WEIR_MAX(tensor->n_elems, (size_t)1), struct rows_amount);
        for (size_t i = 0; i < tensor->n_elems; i++) {
            int64_t number = tensor->dtype == WEIR_DTYPE_INT64 ? ((const int64_t *)tensor->data)[i]
                             : tensor->dtype == WEIR_DTYPE_INT32
                                 ? ((const int32_t *)tensor->data)[i]
                                 : ((const bool *)tensor->data)[i];
            values[i] = rows_number(number);
        }
        state->values = values;
        state->n_values = tensor->n_elems;
    }
}

static void set_input(struct proof *proof, struct rows_state *state, const struct onnx_value *value)
{
    struct rows_call call = {.n_symbols = &proof->n_symbols};
    *state = (struct rows_state){.kind = ROWS_MIXED, .why = ROWS_MIX};
    if (!value->has_shape || value->rank < 1 || value->dims[0] >= 0) {
        return;
    }
    state->kind = ROWS_ROWS;
    state->rank = value->rank;
    state->dims[0] = rows_n();
    for (int32_t i = 1; i < value->rank; i++) {
        state->dims[i] = value->dims[i] >= 0 ? rows_number(value->dims[i]) : rows_fresh(&call);
    }
}

static struct rows_state *add(struct proof *proof, const char *name)
{
    int32_t number;
    return onnx_names_add(&proof->names, name, &number) ? &proof->states[number] : NULL;
}

static const struct rows_state *find(const struct proof *proof, const char *name)
{
    int32_t number = name[0] != '\0' ? onnx_names_find(&proof->names, name) : -1;
    return number >= 0 ? &proof->states[number] : NULL;
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static bool has_graph(const struct onnx_node *node)
{
    for (size_t i = 0; i < node->n_attributes; i++) {
        if (node->attributes[i].type == ONNX_ATTRIBUTE_GRAPH ||
            node->attributes[i].type == ONNX_ATTRIBUTE_GRAPHS) {
            return true;
        }
    }
    return false;
}

static bool draws(const struct onnx_node *node)
{
    return strncmp(node->type, "Random", 6) == 0 || strcmp(node->type, "Multinomial") == 0 ||
           strcmp(node->type, "Bernoulli") == 0;
}

/* Is everything that goes in the same in each run, and no count of rows? */
static bool is_fixed(const struct rows_call *call)
{
    for (size_t i = 0; i < call->n_in; i++) {
        if (!rows_flat(call->in[i]) || rows_counts(call->in[i])) {
            return false;
        }
    }
    return true;
}

/* The first input that is mixed, or counts rows where no sizes are taken. */
static enum rows_verdict check_inputs(const struct rows_call *call, const struct rows_rule *rule,
                                      const struct rows_state **out_mixed)
{
    *out_mixed = NULL;
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        if (in != NULL && in->kind == ROWS_MIXED) {
            *out_mixed = in;
            return in->why;
        }
        bool takes_sizes =
            rule != NULL && ((i < 32 && (rule->sizes >> i & 1) != 0) || rule->sizes == UINT32_MAX);
        if (rows_counts(in) && !takes_sizes) {
            return rule != NULL ? ROWS_MIX : ROWS_UNSURE;
        }
    }
    return ROWS_APART;
}

static enum rows_verdict run_rule(struct proof *proof, struct rows_call *call,
                                  const struct rows_state **out_mixed)
{
    const struct onnx_node *node = call->call.node;
    bool is_standard = node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
    const struct rows_rule *rule = is_standard && proof->opset >= 7 ? rule_find(node->type) : NULL;
    ROWS_TRY(check_inputs(call, rule, out_mixed));
    if (!is_standard || has_graph(node) || proof->opset < 7) {
        return ROWS_UNSURE;
    }
    if (draws(node)) {
        return ROWS_MIX;
    }
    for (size_t i = 0; rule != NULL && i < call->n_in; i++) {
        ROWS_KNOW(call->in[i] != NULL || node->in[i][0] == '\0');
    }
    bool is_whole = rule != NULL;
    for (size_t i = 0; is_whole && i < rule->least; i++) {
        is_whole = rows_in(call, i) != NULL;
    }
    enum rows_verdict verdict = is_whole ? rule->run(call) : ROWS_UNSURE;
    if (verdict != ROWS_APART && is_fixed(call) && !onnx_node_draws(node)) {
        for (size_t i = 0; i < call->n_out; i++) {
            call->out[i] = (struct rows_state){.kind = ROWS_FLAT, .rank = -1};
        }
        return ROWS_APART;
    }
    return verdict;
}

/* Constant's tensor, or what was computed from constants when the model was loaded. */
static const struct weir_tensor *constant_of(const struct proof *proof, size_t i_node, size_t i_out)
{
    const struct onnx_node *node = &proof->model->graph.nodes[i_node];
    if (strcmp(node->type, "Constant") == 0 && node->domain[0] == '\0') {
        const struct onnx_call call = {.node = node};
        const struct onnx_attribute *value = onnx_attribute(&call, "value");
        if (value != NULL && value->tensor != NULL) {
            return value->tensor;
        }
    }
    return proof->constant != NULL ? proof->constant(proof->context, i_node, i_out) : NULL;
}

static void run_node(struct proof *proof, size_t i_node)
{
    const struct onnx_node *node = &proof->model->graph.nodes[i_node];
    struct rows_state outs[ROWS_OUTS_MAX];
    const struct rows_state **in = WEIR_ARENA_ARRAY(proof->arena, node->n_in + 1,
                                                    const struct rows_state *),
                            *mixed = NULL;
    struct rows_call call = {.call = {.node = node, .opset = proof->opset},
                             .arena = proof->arena,
                             .in = in,
                             .n_in = node->n_in,
                             .n_out = WEIR_MIN(node->n_out, (size_t)ROWS_OUTS_MAX),
                             .out = outs,
                             .n_symbols = &proof->n_symbols};
    for (size_t i = 0; i < node->n_in; i++) {
        in[i] = find(proof, node->in[i]);
    }
    for (size_t i = 0; i < ROWS_OUTS_MAX; i++) {
        outs[i] = (struct rows_state){.kind = ROWS_FLAT, .rank = -1};
    }
    enum rows_verdict verdict = run_rule(proof, &call, &mixed);
    for (size_t i = 0; i < node->n_out; i++) {
        struct rows_state *out = node->out[i][0] != '\0' ? add(proof, node->out[i]) : NULL;
        const struct weir_tensor *constant = out != NULL ? constant_of(proof, i_node, i) : NULL;
        if (constant != NULL) {
            set_constant(proof, out, constant);
        } else if (out != NULL && (verdict != ROWS_APART || i >= ROWS_OUTS_MAX)) {
            *out = (struct rows_state){.kind = ROWS_MIXED,
                                       .cause = mixed != NULL ? mixed->cause : node,
                                       .why = verdict != ROWS_APART ? verdict : ROWS_UNSURE};
        } else if (out != NULL) {
            *out = outs[i];
        }
    }
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void begin(struct proof *proof)
{
    const struct onnx_graph *graph = &proof->model->graph;
    size_t n = graph->n_initializers + graph->n_inputs;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        n += graph->nodes[i].n_out;
    }
    proof->names = onnx_names_make(proof->arena, n);
    proof->states = WEIR_ARENA_ARRAY(proof->arena, n, struct rows_state);
    for (size_t i = 0; i < proof->model->n_opsets; i++) {
        const struct onnx_opset *opset = &proof->model->opsets[i];
        if (opset->domain[0] == '\0' || strcmp(opset->domain, "ai.onnx") == 0) {
            proof->opset = opset->version;
        }
    }
    for (size_t i = 0; i < graph->n_initializers; i++) {
        struct rows_state *state = add(proof, graph->initializers[i].name);
        if (state != NULL) {
            set_constant(proof, state, graph->initializers[i].tensor);
        }
    }
}

static enum rows_verdict judge(const struct proof *proof, const struct onnx_node **out_cause)
{
    const struct onnx_graph *graph = &proof->model->graph;
    const struct rows_amount n = rows_n();
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct rows_state *out = find(proof, graph->outputs[i].name);
        if (out != NULL && out->kind == ROWS_MIXED) {
            *out_cause = out->cause;
            return out->why;
        }
        ROWS_NEED(out != NULL && out->kind == ROWS_ROWS && out->axis == 0 &&
                  rows_equal(&out->dims[0], &n));
    }
    return ROWS_APART;
}

enum rows_verdict rows_prove(const struct onnx_model *model, rows_constant_fn constant,
                             const void *context, struct weir_arena *arena,
                             const struct onnx_node **out_cause)
{
    struct proof proof = {.model = model, .constant = constant, .context = context, .arena = arena};
    const struct onnx_graph *graph = &model->graph;
    size_t n_inputs = 0;
    *out_cause = NULL;
    begin(&proof);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        struct rows_state *state = add(&proof, graph->inputs[i].name);
        if (state != NULL) { /* else it has a default, and is a constant */
            set_input(&proof, state, &graph->inputs[i]);
            ROWS_NEED(state->kind == ROWS_ROWS);
            n_inputs++;
        }
    }
    ROWS_NEED(n_inputs > 0);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        run_node(&proof, i);
    }
    return judge(&proof, out_cause);
}
