#include "plan.h"

#include <string.h>

/* How layers become ops: by layer, the op-making layer that takes it over, or itself. */
struct fusion {
    int32_t *swallowed_by; /* -1: stands for itself */
    int32_t *n_users;
    weir_value_t *residual; /* of an op that takes over an add; -1 = none */
    int32_t *norm;          /* of an op that takes over a batch norm; -1 = none */
};

static int32_t only_user(const struct weir_graph *graph, const struct fusion *fusion,
                         weir_value_t value)
{
    if (fusion->n_users[value] != 1) {
        return -1;
    }
    for (int32_t i = value + 1; i < graph->n_layers; i++) {
        for (int32_t j = 0; j < graph->layers[i].n_in; j++) {
            if (graph->layers[i].in[j] == value) {
                return i;
            }
        }
    }
    return -1;
}

/* relu, or add(any other value) -> relu, behind the layers that the op has so far (the last is
 * `i_last`), if no other layer reads the values between. */
static void fuse_tail(const struct weir_graph *graph, struct fusion *fusion, int32_t i_op,
                      int32_t i_last)
{
    int32_t next = only_user(graph, fusion, i_last);
    if (next < 0 || fusion->swallowed_by[next] >= 0) {
        return;
    }
    const struct graph_layer *layer = &graph->layers[next];
    if (layer->kind == LAYER_RELU) {
        fusion->swallowed_by[next] = i_op;
        return;
    }
    int32_t relu = layer->kind == LAYER_ADD ? only_user(graph, fusion, next) : -1;
    if (relu < 0 || graph->layers[relu].kind != LAYER_RELU || layer->in[0] == layer->in[1] ||
        graph->layers[i_op].kind == LAYER_LINEAR) {
        return;
    }
    fusion->residual[i_op] = layer->in[0] == i_last ? layer->in[1] : layer->in[0];
    fusion->swallowed_by[next] = i_op;
    fusion->swallowed_by[relu] = i_op;
}

static void fuse_one(const struct net_plan *plan, const struct weir_graph *graph,
                     struct fusion *fusion, int32_t i_layer)
{
    enum layer_kind kind = graph->layers[i_layer].kind;
    if (kind == LAYER_BATCH_NORM && fusion->swallowed_by[i_layer] < 0) {
        fuse_tail(graph, fusion, i_layer, i_layer);
    }
    if (plan->is_training || (kind != LAYER_CONV && kind != LAYER_LINEAR)) {
        return;
    }
    int32_t norm = only_user(graph, fusion, i_layer), last = i_layer;
    if (norm >= 0 && graph->layers[norm].kind == LAYER_BATCH_NORM) {
        fusion->swallowed_by[norm] = i_layer;
        fusion->norm[i_layer] = norm;
        last = norm;
    }
    fuse_tail(graph, fusion, i_layer, last);
}

/* The layer whose value an op makes: the last one it has taken over. */
static int32_t last_of(const struct weir_graph *graph, const struct fusion *fusion, int32_t i_layer)
{
    int32_t last = i_layer;
    for (int32_t i = i_layer + 1; i < graph->n_layers; i++) {
        last = fusion->swallowed_by[i] == i_layer ? i : last;
    }
    return last;
}

/* What a kind of op computes with. Small vectors whose rounding would show stay in f32. */
static enum weir_precision type_of(const struct net_plan *plan, enum layer_kind kind)
{
    bool is_f32 = kind == LAYER_L2_NORMALISE || kind == LAYER_LAYER_NORM || layer_is_loss(kind);
    return is_f32 ? WEIR_PRECISION_F32 : plan->precision;
}

static void fill_op(struct net_plan *plan, const struct weir_graph *graph,
                    const struct fusion *fusion, int32_t i_layer, struct plan_op *to)
{
    const struct graph_layer *layer = &graph->layers[i_layer];
    struct op *op = &to->op;
    to->i_layer = i_layer;
    op->kind = layer->kind;
    memcpy(op->name, layer->name, sizeof(op->name));
    op->n_in = layer->n_in;
    op->conv = layer->conv;
    op->pool = layer->pool;
    op->eps = layer->eps;
    op->rate = layer->rate;
    op->scale = layer->scale;
    op->margin = layer->margin;
    op->n_classes = layer->kind == LAYER_MARGIN_LOSS   ? layer->n_classes
                    : layer->kind == LAYER_DETECT_LOSS ? 1
                                                       : layer->out.c;
    op->n_values = layer->n_values;
    op->initial_factor = layer->initial_factor;
    op->initial_bias = layer->initial_bias;
    op->is_channels_last = plan->is_channels_last;
    op->type = type_of(plan, layer->kind);
    op->convolution = plan->convolution;
    op->batch = plan->batch;
    op->n_slices = plan->n_slices;
    op->gradient_batch = plan->batch / (plan_has_parts(op) ? plan->n_gradient_parts : 1);
    for (int32_t i = 0; i < layer->n_in; i++) {
        to->in[i] = layer->in[i];
    }
    to->out = last_of(graph, fusion, i_layer);
    op->has_relu = to->out != i_layer && graph->layers[to->out].kind == LAYER_RELU;
    op->knows_sign =
        plan->knows_signs && plan->is_training && op->kind == LAYER_BATCH_NORM && op->has_relu;
    if (fusion->residual[i_layer] >= 0) {
        op->has_residual = true;
        to->in[op->n_in++] = fusion->residual[i_layer];
    }
    for (int32_t i = 0; i < op->n_in; i++) {
        op->in[i] = graph->layers[to->in[i]].out;
    }
    op->out = layer->out;
}

/* An f32 input in C, H, W order needs no op, unless channels come last. */
static bool needs_conversion(const struct net_plan *plan, struct weir_shape shape)
{
    return plan->precision != WEIR_PRECISION_F32 ||
           (plan->is_channels_last && shape.c > 1 && (shape.h > 1 || shape.w > 1));
}

/* An op that no layer asks for, between those that make `value` and read `out`. */
static void add_between(struct net_plan *plan, const struct weir_graph *graph, enum layer_kind kind,
                        weir_value_t value, weir_value_t out)
{
    struct plan_op *o = &plan->ops[plan->n_ops++];
    *o = (struct plan_op){.op = {.kind = kind,
                                 .n_in = 1,
                                 .in = {plan->shapes[value]},
                                 .out = plan->shapes[out],
                                 .is_channels_last = plan->is_channels_last,
                                 .type = plan->types[out],
                                 .batch = plan->batch,
                                 .n_slices = plan->n_slices,
                                 .gradient_batch = plan->batch},
                          .in = {value},
                          .out = out,
                          .i_layer = -1};
    memcpy(o->op.name, graph->layers[value % graph->n_layers].name, sizeof(o->op.name));
}

/* The value of this type: itself, or its cast, made here unless an op before has. */
static weir_value_t cast_of(struct net_plan *plan, const struct weir_graph *graph,
                            weir_value_t value, enum weir_precision type)
{
    weir_value_t cast = graph->n_layers + value;
    if (plan->types[value] == type) {
        return value;
    }
    for (int32_t i = 0; i < plan->n_ops; i++) {
        if (plan->ops[i].out == cast) {
            return cast;
        }
    }
    plan->types[cast] = type;
    add_between(plan, graph, LAYER_CAST, value, cast);
    return cast;
}

/* A linear's weights are for C, H, W order. Where channels come last it reads images made flat, as
 * they are less to move than its weights and their gradient would be. */
static bool wants_flat(const struct net_plan *plan, enum layer_kind kind, struct weir_shape in)
{
    return kind == LAYER_LINEAR && plan->is_channels_last && in.c > 1 && (in.h > 1 || in.w > 1);
}

static weir_value_t flat_of(struct net_plan *plan, const struct weir_graph *graph,
                            weir_value_t value)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        const struct plan_op *o = &plan->ops[i];
        if (o->i_layer < 0 && o->op.kind == LAYER_FLATTEN && o->in[0] == value) {
            return o->out;
        }
    }
    weir_value_t flat = plan->n_values++;
    plan->shapes[flat] = (struct weir_shape){(int32_t)op_elems(plan->shapes[value]), 1, 1};
    plan->types[flat] = plan->types[value];
    add_between(plan, graph, LAYER_FLATTEN, value, flat);
    return flat;
}

static void add_op(struct net_plan *plan, const struct weir_graph *graph,
                   const struct fusion *fusion, int32_t i_layer)
{
    struct plan_op o = {0};
    int32_t norm = fusion->norm[i_layer];
    fill_op(plan, graph, fusion, i_layer, &o);
    if (norm >= 0) {
        struct plan_op *folded = &plan->ops[plan->n_ops++];
        fill_op(plan, graph, fusion, norm, folded);
        folded->op.is_folded = true;
        folded->op.n_in = 0; /* reads nothing */
        o.op.norm = &folded->op;
    }
    for (int32_t j = 0; j < o.op.n_in; j++) {
        o.in[j] = cast_of(plan, graph, o.in[j], o.op.type);
    }
    if (wants_flat(plan, o.op.kind, o.op.in[0])) {
        o.in[0] = flat_of(plan, graph, o.in[0]);
        o.op.in[0] = plan->shapes[o.in[0]];
    }
    plan->types[o.out] = o.op.type;
    plan->ops[plan->n_ops++] = o;
}

/* Ops in an order in which each comes after what it reads: that of the last layer it holds. */
static void list_ops(struct net_plan *plan, const struct weir_graph *graph,
                     const struct fusion *fusion)
{
    for (int32_t i = 0; i < graph->n_layers; i++) {
        int32_t first = fusion->swallowed_by[i] >= 0 ? fusion->swallowed_by[i] : i;
        if (last_of(graph, fusion, first) != i || (graph->layers[i].kind == LAYER_INPUT &&
                                                   !needs_conversion(plan, graph->layers[i].out))) {
            continue;
        }
        add_op(plan, graph, fusion, first);
        if (i == graph->loss) {
            plan->i_loss = plan->n_ops - 1;
        }
    }
    plan->output = cast_of(plan, graph, plan->output, WEIR_PRECISION_F32);
}

struct plan_op *plan_find_op(struct net_plan *plan, int32_t i_layer)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        if (plan->ops[i].i_layer == i_layer) {
            return &plan->ops[i];
        }
    }
    return NULL;
}

bool plan_has_parts(const struct op *op)
{
    return op->kind == LAYER_CONV || op->kind == LAYER_LINEAR;
}

bool plan_has_deferred(const struct op *op)
{
    return op->kind == LAYER_CONV || op->kind == LAYER_LINEAR || op->kind == LAYER_PRELU ||
           op->kind == LAYER_MARGIN_LOSS;
}

/* A value in no graph is another one in another form. */
static void mark_gradients(struct net_plan *plan, const struct weir_graph *graph)
{
    for (int32_t i = 0; i < plan->n_ops; i++) {
        const struct plan_op *o = &plan->ops[i];
        plan->needs_gradient[o->out] = o->out < graph->n_layers ? graph->layers[o->out].is_trained
                                                                : plan->needs_gradient[o->in[0]];
    }
}

weir_status plan_make_ops(struct net_plan *plan, const struct weir_graph *graph, bool can_fuse)
{
    size_t n = (size_t)graph->n_layers;
    struct fusion fusion = {.swallowed_by = calloc(n, sizeof(int32_t)),
                            .n_users = calloc(n, sizeof(int32_t)),
                            .residual = calloc(n, sizeof(weir_value_t)),
                            .norm = calloc(n, sizeof(int32_t))};
    /* In bf16 each value may have a cast of its own behind all those of the graph; then come those
     * that are made flat, one a layer at most. */
    size_t n_values = plan->precision == WEIR_PRECISION_F32 ? n : 2 * n, n_max = n_values + n;
    plan->ops = calloc(n_max, sizeof(*plan->ops));
    plan->shapes = calloc(n_max, sizeof(*plan->shapes));
    plan->types = calloc(n_max, sizeof(*plan->types));
    plan->needs_gradient = calloc(n_max, sizeof(*plan->needs_gradient));
    plan->is_recomputed = calloc(n_max, sizeof(*plan->is_recomputed));
    weir_status status = WEIR_ERR_NOMEM;
    if (fusion.swallowed_by && fusion.n_users && fusion.residual && fusion.norm && plan->ops &&
        plan->shapes && plan->types && plan->needs_gradient && plan->is_recomputed) {
        plan->n_values = (int32_t)n_values;
        plan->input = graph->input;
        plan->output = graph_output(graph);
        plan->i_loss = -1;
        for (int32_t i = 0; i < plan->n_values; i++) {
            plan->shapes[i] = graph->layers[i % graph->n_layers].out;
        }
        for (int32_t i = 0; i < graph->n_layers; i++) {
            fusion.swallowed_by[i] = -1;
            fusion.residual[i] = -1;
            fusion.norm[i] = -1;
            for (int32_t j = 0; j < graph->layers[i].n_in; j++) {
                fusion.n_users[graph->layers[i].in[j]]++;
            }
        }
        for (int32_t i = 0; can_fuse && i < graph->n_layers; i++) {
            fuse_one(plan, graph, &fusion, i);
        }
        list_ops(plan, graph, &fusion);
        mark_gradients(plan, graph);
        status = WEIR_OK;
    }
    free(fusion.swallowed_by);
    free(fusion.n_users);
    free(fusion.residual);
    free(fusion.norm);
    return status;
}
