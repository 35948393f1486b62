/*
 * A graph as ONNX nodes, layer by layer. A value of the graph is an image, [N, C, H, W] in ONNX, or a
 * vector, [N, C]; where a layer wants the other form of a value, a node makes it.
 *
 * Padding is written out, with what a last window that is partly outside needs behind the image:
 * ceil_mode has had several meanings.
 */
#include "nn/onnx_file.h"

#include "nn/backend/op.h"
#include "nn/graph/graph.h"
#include "onnx_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES (LAYER_NAME_MAX_BYTES + 32)

/** What is known of a value. */
struct value {
    bool is_vector;       /* In ONNX it has two dimensions. */
    bool has_other;       /* The other form was made too. */
    weir_value_t same_as; /* Of a dropout: what it reads; else itself. */
};

struct exporter {
    const struct weir_graph *graph;
    struct weir_net *net;
    struct weir_buf *buf; /* The graph's message. */
    struct value *values;
    bool has_axes; /* The initializer "axes:2,3" is there. */
};

static const struct graph_layer *layer_of(const struct exporter *e, weir_value_t value)
{
    return &e->graph->layers[value];
}

static weir_value_t source(const struct exporter *e, weir_value_t value)
{
    return e->values[value].same_as;
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Layers' own names have no rule, so what is made beside them ends in ":…". */
static const char *name_of(const char *layer, const char *suffix, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%s%s", layer, suffix);
    return out;
}

static const char *value_name(const struct exporter *e, weir_value_t value, char out[NAME_BYTES])
{
    weir_value_t at = source(e, value);
    return at == e->graph->input ? "input" : name_of(layer_of(e, at)->name, ":out", out);
}

/* ---- parameters ------------------------------------------------------------------------------- */

static const struct weir_param *find_param(const struct exporter *e, const char *name)
{
    size_t n;
    const struct weir_param *params = weir_net_params(e->net, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(params[i].name, name) == 0) {
            return &params[i];
        }
    }
    return NULL;
}

/* Reads a parameter in a node, and writes it, with ones behind its dimensions. */
static void put_param_as(struct exporter *e, const char *layer, const char *suffix, size_t n_ones,
                         struct weir_buf *node)
{
    char name[NAME_BYTES];
    const struct weir_param *param = find_param(e, name_of(layer, suffix, name));
    if (param == NULL) {
        node->status = WEIR_ERR_INTERNAL;
        return;
    }
    int64_t dims[8];
    size_t rank = 0;
    for (; rank < (size_t)param->n_dims; rank++) {
        dims[rank] = param->dims[rank];
    }
    for (size_t i = 0; i < n_ones; i++) {
        dims[rank++] = 1;
    }
    onnx_put_input(node, name);
    onnx_put_initializer(e->buf, name, ONNX_FLOAT, dims, rank,
                         weir_net_weights(e->net, NULL) + param->first_elem,
                         param->n_elems * sizeof(float));
}

static void put_param(struct exporter *e, const char *layer, const char *suffix,
                      struct weir_buf *node)
{
    put_param_as(e, layer, suffix, 0, node);
}

/* A constant of one number, read in a node. */
static void put_number(struct exporter *e, const char *layer, const char *suffix, float value,
                       struct weir_buf *node)
{
    char name[NAME_BYTES];
    onnx_put_input(node, name_of(layer, suffix, name));
    onnx_put_initializer(e->buf, name, ONNX_FLOAT, NULL, 0, &value, sizeof value);
}

/* ---- nodes ------------------------------------------------------------------------------------ */

/* A node is written beside the graph, whose message meanwhile gets its initializers. */
static void begin(struct weir_buf *node, size_t *begun, const char *type, const char *name)
{
    weir_buf_init(node, (size_t)64 << 10);
    *begun = onnx_begin_node(node, type, name);
}

static void finish(struct exporter *e, struct weir_buf *node, size_t begun)
{
    onnx_end(node, begun);
    if (node->status != WEIR_OK && e->buf->status == WEIR_OK) {
        e->buf->status = node->status;
    }
    (void)weir_buf_append(e->buf, node->data, node->len);
    weir_buf_fini(node);
}

/* A node of one input and no attributes. */
static void put_simple(struct exporter *e, const char *type, const char *name, const char *in,
                       const char *out)
{
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, type, name);
    onnx_put_input(&node, in);
    onnx_put_output(&node, out);
    finish(e, &node, begun);
}

static void put_flatten(struct exporter *e, const char *name, const char *in, const char *out)
{
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, "Flatten", name);
    onnx_put_input(&node, in);
    onnx_put_output(&node, out);
    onnx_put_int(&node, "axis", 1);
    finish(e, &node, begun);
}

/* [N, C] to [N, C, 1, 1]. */
static void put_unsqueeze(struct exporter *e, const char *name, const char *in, const char *out)
{
    static const int64_t axes[] = {2, 3};
    struct weir_buf node;
    size_t begun;
    if (!e->has_axes) {
        onnx_put_initializer(e->buf, "axes:2,3", ONNX_INT64, (int64_t[]){2}, 1, axes, sizeof axes);
        e->has_axes = true;
    }
    begin(&node, &begun, "Unsqueeze", name);
    onnx_put_input(&node, in);
    onnx_put_input(&node, "axes:2,3");
    onnx_put_output(&node, out);
    finish(e, &node, begun);
}

/* The name of a value as a vector or as an image; made where it is not there yet. */
static const char *take(struct exporter *e, weir_value_t value, bool is_vector,
                        char out[NAME_BYTES])
{
    weir_value_t at = source(e, value);
    struct value *known = &e->values[at];
    if (known->is_vector == is_vector) {
        return value_name(e, at, out);
    }
    char from[NAME_BYTES];
    const char *layer = layer_of(e, at)->name;
    (void)name_of(layer, is_vector ? ":vector" : ":image", out);
    if (!known->has_other) {
        known->has_other = true;
        (is_vector ? put_flatten : put_unsqueeze)(e, out, value_name(e, at, from), out);
    }
    return out;
}

/* ---- layers ----------------------------------------------------------------------------------- */

/** A layer's node, with its first input and its output. */
struct layer_node {
    struct weir_buf buf;
    size_t begun;
};

static void begin_layer(struct exporter *e, struct layer_node *node, const char *type,
                        weir_value_t value, bool is_vector)
{
    char in[NAME_BYTES], out[NAME_BYTES];
    const struct graph_layer *layer = layer_of(e, value);
    const char *from = take(e, layer->in[0], is_vector, in);
    begin(&node->buf, &node->begun, type, layer->name);
    onnx_put_input(&node->buf, from);
    onnx_put_output(&node->buf, name_of(layer->name, ":out", out));
    e->values[value].is_vector = is_vector;
}

static bool is_vector_in(const struct exporter *e, weir_value_t value)
{
    return e->values[source(e, layer_of(e, value)->in[0])].is_vector;
}

static void put_conv(struct exporter *e, weir_value_t value)
{
    const struct graph_layer *layer = layer_of(e, value);
    const struct weir_conv_params *p = &layer->conv;
    struct layer_node node;
    begin_layer(e, &node, "Conv", value, false);
    put_param(e, layer->name, ".weight", &node.buf);
    if (p->has_bias) {
        put_param(e, layer->name, ".bias", &node.buf);
    }
    onnx_put_ints(&node.buf, "kernel_shape", (int64_t[]){p->kernel_h, p->kernel_w}, 2);
    onnx_put_ints(&node.buf, "strides", (int64_t[]){p->stride, p->stride}, 2);
    onnx_put_ints(&node.buf, "dilations", (int64_t[]){p->dilation, p->dilation}, 2);
    onnx_put_ints(&node.buf, "pads", (int64_t[]){p->pad_h, p->pad_w, p->pad_h, p->pad_w}, 4);
    onnx_put_int(&node.buf, "group", p->groups);
    finish(e, &node.buf, node.begun);
}

static void put_linear(struct exporter *e, weir_value_t value)
{
    const struct graph_layer *layer = layer_of(e, value);
    struct layer_node node;
    begin_layer(e, &node, "Gemm", value, true);
    put_param(e, layer->name, ".weight", &node.buf);
    if (layer->conv.has_bias) {
        put_param(e, layer->name, ".bias", &node.buf);
    }
    onnx_put_int(&node.buf, "transB", 1);
    finish(e, &node.buf, node.begun);
}

static void put_batch_norm(struct exporter *e, weir_value_t value)
{
    static const char *const params[] = {".weight", ".bias", ".running_mean", ".running_var"};
    const struct graph_layer *layer = layer_of(e, value);
    struct layer_node node;
    begin_layer(e, &node, "BatchNormalization", value, is_vector_in(e, value));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(params); i++) {
        put_param(e, layer->name, params[i], &node.buf);
    }
    onnx_put_float(&node.buf, "epsilon", (float)layer->eps);
    finish(e, &node.buf, node.begun);
}

static void put_relu(struct exporter *e, weir_value_t value)
{
    struct layer_node node;
    begin_layer(e, &node, "Relu", value, is_vector_in(e, value));
    finish(e, &node.buf, node.begun);
}

static void put_relu6(struct exporter *e, weir_value_t value)
{
    const char *name = layer_of(e, value)->name;
    struct layer_node node;
    begin_layer(e, &node, "Clip", value, is_vector_in(e, value));
    put_number(e, name, ":least", 0, &node.buf);
    put_number(e, name, ":most", 6, &node.buf);
    finish(e, &node.buf, node.begun);
}

static void put_prelu(struct exporter *e, weir_value_t value)
{
    bool is_vector = is_vector_in(e, value);
    struct layer_node node;
    begin_layer(e, &node, "PRelu", value, is_vector);
    put_param_as(e, layer_of(e, value)->name, ".weight", is_vector ? 0 : 2, &node.buf);
    finish(e, &node.buf, node.begun);
}

static void put_scale(struct exporter *e, weir_value_t value)
{
    const struct graph_layer *layer = layer_of(e, value);
    struct layer_node node;
    begin_layer(e, &node, "Mul", value, is_vector_in(e, value));
    put_number(e, layer->name, ":factor", layer->scale, &node.buf);
    finish(e, &node.buf, node.begun);
}

static void put_global_pool(struct exporter *e, weir_value_t value)
{
    struct layer_node node;
    begin_layer(e, &node, "GlobalAveragePool", value, false);
    finish(e, &node.buf, node.begun);
}

static void put_flatten_layer(struct exporter *e, weir_value_t value)
{
    struct layer_node node;
    begin_layer(e, &node, "Flatten", value, is_vector_in(e, value));
    onnx_put_int(&node.buf, "axis", 1);
    finish(e, &node.buf, node.begun);
    e->values[value].is_vector = true;
}

/* add and concat: vectors if all are, else images. */
static void put_sum_or_concat(struct exporter *e, weir_value_t value, const char *type)
{
    const struct graph_layer *layer = layer_of(e, value);
    char name[NAME_BYTES];
    const char *names[LAYER_MAX_INPUTS];
    char taken[LAYER_MAX_INPUTS][NAME_BYTES];
    bool is_vector = true;
    for (int32_t i = 0; i < layer->n_in; i++) {
        is_vector = is_vector && e->values[source(e, layer->in[i])].is_vector;
    }
    for (int32_t i = 0; i < layer->n_in; i++) {
        names[i] = take(e, layer->in[i], is_vector, taken[i]);
    }
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, type, layer->name);
    for (int32_t i = 0; i < layer->n_in; i++) {
        onnx_put_input(&node, names[i]);
    }
    onnx_put_output(&node, name_of(layer->name, ":out", name));
    if (layer->kind == LAYER_CONCAT) {
        onnx_put_int(&node, "axis", 1);
    }
    finish(e, &node, begun);
    e->values[value].is_vector = is_vector;
}

/* ---- pools ------------------------------------------------------------------------------------ */

/* Padding behind the last pixel, so that `out` windows fit. */
static int64_t pad_behind(const struct weir_pool_params *p, int32_t in, int32_t out)
{
    int64_t needed = (int64_t)(out - 1) * p->stride + p->kernel - in - p->pad;
    return p->is_ceil ? WEIR_MAX(needed, 0) : p->pad;
}

/* Of an average that counts padding, but none beyond p->pad: what the operator's mean over whole
 * windows is multiplied with. */
static void put_window_factors(struct exporter *e, const struct graph_layer *layer,
                               struct weir_shape in)
{
    char name[NAME_BYTES], mean[NAME_BYTES], out[NAME_BYTES];
    const struct op op = {.pool = layer->pool, .in = {in}};
    size_t n = (size_t)layer->out.h * (size_t)layer->out.w;
    float *factors = malloc(n * sizeof *factors);
    if (factors == NULL) {
        e->buf->status = WEIR_ERR_NOMEM;
        return;
    }
    for (int32_t h = 0; h < layer->out.h; h++) {
        for (int32_t w = 0; w < layer->out.w; w++) {
            double whole = (double)layer->pool.kernel * layer->pool.kernel;
            factors[(size_t)h * (size_t)layer->out.w + (size_t)w] =
                (float)(whole / op_pool_divisor(&op, h, w));
        }
    }
    onnx_put_initializer(e->buf, name_of(layer->name, ":factors", name), ONNX_FLOAT,
                         (int64_t[]){1, 1, layer->out.h, layer->out.w}, 4, factors,
                         n * sizeof *factors);
    free(factors);
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, "Mul", name);
    onnx_put_input(&node, name_of(layer->name, ":mean", mean));
    onnx_put_input(&node, name);
    onnx_put_output(&node, name_of(layer->name, ":out", out));
    finish(e, &node, begun);
}

static void put_pool(struct exporter *e, weir_value_t value)
{
    const struct graph_layer *layer = layer_of(e, value);
    const struct weir_pool_params *p = &layer->pool;
    struct weir_shape in = layer_of(e, layer->in[0])->out;
    int64_t behind_h = pad_behind(p, in.h, layer->out.h),
            behind_w = pad_behind(p, in.w, layer->out.w);
    bool is_average = layer->kind == LAYER_AVG_POOL;
    bool counts_pad = is_average && !p->is_pad_excluded;
    bool is_beyond = counts_pad && (behind_h > p->pad || behind_w > p->pad);
    char taken[NAME_BYTES], out[NAME_BYTES];
    const char *from = take(e, layer->in[0], false, taken);
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, is_average ? "AveragePool" : "MaxPool", layer->name);
    onnx_put_input(&node, from);
    onnx_put_output(&node, name_of(layer->name, is_beyond ? ":mean" : ":out", out));
    onnx_put_ints(&node, "kernel_shape", (int64_t[]){p->kernel, p->kernel}, 2);
    onnx_put_ints(&node, "strides", (int64_t[]){p->stride, p->stride}, 2);
    onnx_put_ints(&node, "pads", (int64_t[]){p->pad, p->pad, behind_h, behind_w}, 4);
    if (is_average) {
        onnx_put_int(&node, "count_include_pad", counts_pad);
    }
    finish(e, &node, begun);
    if (is_beyond) {
        put_window_factors(e, layer, in);
    }
}

/* ---- norms over an image ---------------------------------------------------------------------- */

static void put_reduce(struct exporter *e, const char *type, const char *in, const char *out,
                       bool is_vector)
{
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, type, out);
    onnx_put_input(&node, in);
    onnx_put_output(&node, out);
    onnx_put_ints(&node, "axes", (int64_t[]){1, 2, 3}, is_vector ? 1 : 3);
    onnx_put_int(&node, "keepdims", 1);
    finish(e, &node, begun);
}

static void put_binary(struct exporter *e, const char *type, const char *a, const char *b,
                       const char *out)
{
    struct weir_buf node;
    size_t begun;
    begin(&node, &begun, type, out);
    onnx_put_input(&node, a);
    onnx_put_input(&node, b);
    onnx_put_output(&node, out);
    finish(e, &node, begun);
}

static const char *put_constant(struct exporter *e, const char *layer, const char *suffix,
                                float value, char out[NAME_BYTES])
{
    onnx_put_initializer(e->buf, name_of(layer, suffix, out), ONNX_FLOAT, NULL, 0, &value,
                         sizeof value);
    return out;
}

/* x / max(|x|, eps) */
static void put_l2_normalise(struct exporter *e, weir_value_t value)
{
    const char *layer = layer_of(e, value)->name;
    bool is_vector = is_vector_in(e, value);
    char in[NAME_BYTES], length[NAME_BYTES], eps[NAME_BYTES], bounded[NAME_BYTES], out[NAME_BYTES];
    const char *x = value_name(e, layer_of(e, value)->in[0], in);
    put_reduce(e, "ReduceL2", x, name_of(layer, ":length", length), is_vector);
    put_binary(e, "Max", length, put_constant(e, layer, ":eps", (float)L2_NORM_EPS, eps),
               name_of(layer, ":bounded", bounded));
    put_binary(e, "Div", x, bounded, name_of(layer, ":out", out));
    e->values[value].is_vector = is_vector;
}

/* (x - mean) / sqrt(mean of squares + eps) */
static void put_layer_norm(struct exporter *e, weir_value_t value)
{
    const char *layer = layer_of(e, value)->name;
    bool is_vector = is_vector_in(e, value);
    char in[NAME_BYTES], mean[NAME_BYTES], centred[NAME_BYTES], squares[NAME_BYTES];
    char variance[NAME_BYTES], eps[NAME_BYTES], sum[NAME_BYTES], root[NAME_BYTES], out[NAME_BYTES];
    const char *x = value_name(e, layer_of(e, value)->in[0], in);
    put_reduce(e, "ReduceMean", x, name_of(layer, ":mean", mean), is_vector);
    put_binary(e, "Sub", x, mean, name_of(layer, ":centred", centred));
    put_binary(e, "Mul", centred, centred, name_of(layer, ":squares", squares));
    put_reduce(e, "ReduceMean", squares, name_of(layer, ":variance", variance), is_vector);
    put_binary(e, "Add", variance, put_constant(e, layer, ":eps", (float)LAYER_NORM_EPS, eps),
               name_of(layer, ":sum", sum));
    put_simple(e, "Sqrt", root, sum, name_of(layer, ":root", root));
    put_binary(e, "Div", centred, root, name_of(layer, ":out", out));
    e->values[value].is_vector = is_vector;
}

/* ---- graph ------------------------------------------------------------------------------------ */

static void put_layer(struct exporter *e, weir_value_t value)
{
    switch (layer_of(e, value)->kind) {
    case LAYER_CONV:
        put_conv(e, value);
        break;
    case LAYER_BATCH_NORM:
        put_batch_norm(e, value);
        break;
    case LAYER_RELU:
        put_relu(e, value);
        break;
    case LAYER_RELU6:
        put_relu6(e, value);
        break;
    case LAYER_PRELU:
        put_prelu(e, value);
        break;
    case LAYER_MAX_POOL:
    case LAYER_AVG_POOL:
        put_pool(e, value);
        break;
    case LAYER_GLOBAL_POOL:
        put_global_pool(e, value);
        break;
    case LAYER_LINEAR:
        put_linear(e, value);
        break;
    case LAYER_ADD:
        put_sum_or_concat(e, value, "Add");
        break;
    case LAYER_CONCAT:
        put_sum_or_concat(e, value, "Concat");
        break;
    case LAYER_DROPOUT:
        e->values[value].same_as = source(e, layer_of(e, value)->in[0]);
        break;
    case LAYER_L2_NORMALISE:
        put_l2_normalise(e, value);
        break;
    case LAYER_FLATTEN:
        put_flatten_layer(e, value);
        break;
    case LAYER_SCALE:
        put_scale(e, value);
        break;
    case LAYER_LAYER_NORM:
        put_layer_norm(e, value);
        break;
    default: /* The input, and losses. */
        break;
    }
}

static void put_graph(struct exporter *e)
{
    const struct weir_graph *graph = e->graph;
    struct weir_shape in = weir_graph_input_shape(graph), out = weir_graph_output_shape(graph);
    char name[NAME_BYTES];
    onnx_put_port(e->buf, true, "input", (int64_t[]){0, in.c, in.h, in.w}, 4);
    for (int32_t i = 0; i < graph->n_layers; i++) {
        e->values[i] = (struct value){.same_as = i};
        put_layer(e, i);
    }
    put_simple(e, "Identity", "output", take(e, graph_output(graph), true, name), "output");
    onnx_put_port(e->buf, false, "output", (int64_t[]){0, out.c}, 2);
}

static weir_status export_graph(struct exporter *e, const struct weir_onnx_file_text *texts,
                                size_t n_texts, struct weir_buf *out, struct weir_error *err)
{
    struct weir_buf graph;
    weir_buf_init(&graph, out->max_bytes);
    e->buf = &graph;
    put_graph(e);
    onnx_put_model(out, &graph);
    for (size_t i = 0; i < n_texts; i++) {
        onnx_put_property(out, texts[i].key, texts[i].text);
    }
    weir_status status = graph.status != WEIR_OK ? graph.status : out->status;
    weir_buf_fini(&graph);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "the ONNX file cannot be made: %s (at most %zu MiB)",
                                weir_status_text(status), out->max_bytes >> 20);
}

weir_status weir_net_file_export_onnx(const struct weir_net_file *file,
                                      const struct weir_onnx_file_text *texts, size_t n_texts,
                                      struct weir_buf *out, struct weir_error *err)
{
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    struct exporter e = {.graph = weir_net_file_graph(file)};
    WEIR_TRY(weir_net_file_create_net(file, &config, &e.net, err));
    e.values = calloc((size_t)e.graph->n_layers, sizeof *e.values);
    weir_status status = e.values != NULL
                             ? export_graph(&e, texts, n_texts, out, err)
                             : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a graph");
    free(e.values);
    weir_net_destroy(e.net);
    return status;
}
