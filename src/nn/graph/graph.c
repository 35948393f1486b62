#include "graph.h"

#include "base/grow.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>

/* A graph is built by a person or a file: these bounds only keep 32-bit arithmetic safe. */
#define GRAPH_MAX_LAYERS 4096
#define SHAPE_MAX_DIM    (1 << 20)
#define SHAPE_MAX_ELEMS  (1LL << 28)

struct weir_graph *weir_graph_create(void)
{
    struct weir_graph *graph = calloc(1, sizeof(*graph));
    if (graph) {
        graph->input = -1;
        graph->loss = -1;
    }
    return graph;
}

void weir_graph_destroy(struct weir_graph *graph)
{
    if (graph) {
        free(graph->layers);
        free(graph);
    }
}

const char *layer_kind_text(enum layer_kind kind)
{
    static const char *const texts[LAYER_KIND_COUNT] = {
        [LAYER_INPUT] = "input",
        [LAYER_CONV] = "conv",
        [LAYER_BATCH_NORM] = "batch_norm",
        [LAYER_RELU] = "relu",
        [LAYER_RELU6] = "relu6",
        [LAYER_PRELU] = "prelu",
        [LAYER_MAX_POOL] = "max_pool",
        [LAYER_AVG_POOL] = "avg_pool",
        [LAYER_GLOBAL_POOL] = "global_pool",
        [LAYER_LINEAR] = "linear",
        [LAYER_ADD] = "add",
        [LAYER_CONCAT] = "concat",
        [LAYER_DROPOUT] = "dropout",
        [LAYER_L2_NORMALISE] = "l2_normalise",
        [LAYER_FLATTEN] = "flatten",
        [LAYER_SCALE] = "scale",
        [LAYER_LAYER_NORM] = "layer_norm",
        [LAYER_SOFTMAX_LOSS] = "softmax_loss",
        [LAYER_MARGIN_LOSS] = "margin_loss",
        [LAYER_DETECT_LOSS] = "detect_loss",
        [LAYER_CAST] = "cast",
    };
    return texts[kind];
}

int64_t shape_elems(struct weir_shape shape)
{
    return (int64_t)shape.c * shape.h * shape.w;
}

/* Keeps the first failure; later ones are usually its consequences. */
static weir_value_t fail(struct weir_graph *graph, weir_status status, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

static weir_value_t fail(struct weir_graph *graph, weir_status status, const char *fmt, ...)
{
    if (graph->first.status == WEIR_OK) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(graph->first.message, sizeof(graph->first.message), fmt, args);
        va_end(args);
        graph->first.status = status;
    }
    return -1;
}

static bool is_shape_valid(struct weir_shape shape)
{
    return shape.c > 0 && shape.h > 0 && shape.w > 0 && shape.c <= SHAPE_MAX_DIM &&
           shape.h <= SHAPE_MAX_DIM && shape.w <= SHAPE_MAX_DIM &&
           (int64_t)shape.h * shape.w <= SHAPE_MAX_ELEMS && shape_elems(shape) <= SHAPE_MAX_ELEMS;
}

static bool is_name_taken(const struct weir_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->n_layers; i++) {
        if (strcmp(graph->layers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static struct weir_shape value_shape(const struct weir_graph *graph, weir_value_t value)
{
    return graph->layers[value].out;
}

/* Names, number of layers and inputs: what every builder checks before its own rules. */
static bool can_append(struct weir_graph *graph, enum layer_kind kind, const char *name,
                       const weir_value_t *in, int32_t n_in)
{
    if (graph->first.status != WEIR_OK) {
        return false;
    }
    if (!name || !*name || strlen(name) >= LAYER_NAME_MAX_BYTES) {
        fail(graph, WEIR_ERR_INVALID, "layer %d (%s): a name of 1 to %d bytes is needed",
             graph->n_layers, layer_kind_text(kind), LAYER_NAME_MAX_BYTES - 1);
        return false;
    }
    if (is_name_taken(graph, name)) {
        fail(graph, WEIR_ERR_EXISTS, "layer %s: there is a layer of that name already", name);
        return false;
    }
    if (graph->loss >= 0) {
        fail(graph, WEIR_ERR_INVALID, "layer %s: comes after the loss %s, which ends a graph", name,
             graph->layers[graph->loss].name);
        return false;
    }
    for (int32_t i = 0; i < n_in; i++) {
        if (in[i] < 0 || in[i] >= graph->n_layers) {
            fail(graph, WEIR_ERR_INVALID, "layer %s: input %d is not a value of this graph", name,
                 i);
            return false;
        }
    }
    if (graph->n_layers == GRAPH_MAX_LAYERS) {
        fail(graph, WEIR_ERR_LIMIT, "layer %s: more than %d layers", name, GRAPH_MAX_LAYERS);
        return false;
    }
    return true;
}

static bool grow(struct weir_graph *graph)
{
    if (weir_grow(&graph->layers, sizeof(*graph->layers), (size_t)graph->n_layers,
                  &graph->capacity) != WEIR_OK) {
        fail(graph, WEIR_ERR_NOMEM, "out of memory for a layer behind %d", graph->n_layers);
        return false;
    }
    return true;
}

static bool has_parameters(enum layer_kind kind)
{
    return kind == LAYER_CONV || kind == LAYER_LINEAR || kind == LAYER_BATCH_NORM ||
           kind == LAYER_PRELU || kind == LAYER_MARGIN_LOSS;
}

/* New layer with its inputs set and everything else zero, or NULL with the failure kept. */
static struct graph_layer *append(struct weir_graph *graph, enum layer_kind kind, const char *name,
                                  const weir_value_t *in, int32_t n_in, struct weir_shape out)
{
    if (!is_shape_valid(out)) {
        fail(graph, WEIR_ERR_INVALID,
             "layer %s (%s): the result would be %d x %d x %d; every side must be positive and one "
             "image at most 2^28 elements",
             name, layer_kind_text(kind), out.c, out.h, out.w);
        return NULL;
    }
    if (!grow(graph)) {
        return NULL;
    }
    struct graph_layer *layer = &graph->layers[graph->n_layers++];
    memset(layer, 0, sizeof(*layer));
    layer->kind = kind;
    memcpy(layer->name, name, strlen(name) + 1);
    layer->n_in = n_in;
    layer->is_trained = has_parameters(kind);
    for (int32_t i = 0; i < n_in; i++) {
        layer->in[i] = in[i];
        layer->is_trained = layer->is_trained || graph->layers[in[i]].is_trained;
    }
    layer->out = out;
    return layer;
}

static weir_value_t last_value(const struct weir_graph *graph)
{
    return graph->n_layers - 1;
}

weir_value_t weir_graph_input(struct weir_graph *graph, struct weir_shape shape)
{
    if (!can_append(graph, LAYER_INPUT, "input", NULL, 0)) {
        return -1;
    }
    if (!append(graph, LAYER_INPUT, "input", NULL, 0, shape)) {
        return -1;
    }
    graph->input = last_value(graph);
    return graph->input;
}

/* Rows (or columns) of outputs of a window that slides over `in` pixels; 0 if the window does not
 * fit. */
static int32_t slide(int32_t in, int64_t window, int32_t stride, int32_t pad)
{
    int64_t span = (int64_t)in + 2 * (int64_t)pad - window;
    return span < 0 ? 0 : (int32_t)(span / stride + 1);
}

static bool are_params_small(const int32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < 0 || values[i] > SHAPE_MAX_DIM) {
            return false;
        }
    }
    return true;
}

weir_value_t weir_graph_conv(struct weir_graph *graph, const char *name, weir_value_t x,
                             const struct weir_conv_params *p)
{
    if (!can_append(graph, LAYER_CONV, name, &x, 1)) {
        return -1;
    }
    const int32_t all[] = {p->k,     p->kernel_h, p->kernel_w, p->stride,
                           p->pad_h, p->pad_w,    p->groups,   p->dilation};
    if (!are_params_small(all, WEIR_ARRAY_LEN(all)) || p->k == 0 || p->kernel_h == 0 ||
        p->kernel_w == 0 || p->stride == 0) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: k, kernel and stride must be positive, pads not negative", name);
    }
    struct weir_shape in = value_shape(graph, x);
    int32_t groups = WEIR_MAX(p->groups, 1), dilation = WEIR_MAX(p->dilation, 1);
    int64_t extent_h = ((int64_t)p->kernel_h - 1) * dilation + 1;
    int64_t extent_w = ((int64_t)p->kernel_w - 1) * dilation + 1;
    if (p->pad_h >= extent_h || p->pad_w >= extent_w) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: padding %dx%d must be less than kernel %lldx%lld", name, p->pad_h,
                    p->pad_w, (long long)extent_h, (long long)extent_w);
    }
    if (in.c % groups != 0 || p->k % groups != 0) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: %d groups must divide its %d channels and k %d", name, groups, in.c,
                    p->k);
    }
    struct weir_shape out = {p->k, slide(in.h, extent_h, p->stride, p->pad_h),
                             slide(in.w, extent_w, p->stride, p->pad_w)};
    if ((int64_t)p->k * (in.c / groups) * p->kernel_h * p->kernel_w > SHAPE_MAX_ELEMS) {
        return fail(graph, WEIR_ERR_LIMIT, "layer %s: more than 2^28 weights", name);
    }
    struct graph_layer *layer = append(graph, LAYER_CONV, name, &x, 1, out);
    if (!layer) {
        return -1;
    }
    layer->conv = *p;
    layer->conv.groups = groups;
    layer->conv.dilation = dilation;
    return last_value(graph);
}

static weir_value_t append_same_shape(struct weir_graph *graph, enum layer_kind kind,
                                      const char *name, weir_value_t x)
{
    if (!can_append(graph, kind, name, &x, 1) ||
        !append(graph, kind, name, &x, 1, value_shape(graph, x))) {
        return -1;
    }
    return last_value(graph);
}

weir_value_t weir_graph_batch_norm(struct weir_graph *graph, const char *name, weir_value_t x)
{
    return weir_graph_batch_norm_eps(graph, name, x, BATCH_NORM_EPS);
}

weir_value_t weir_graph_batch_norm_eps(struct weir_graph *graph, const char *name, weir_value_t x,
                                       double eps)
{
    if (graph->first.status == WEIR_OK && !(eps > 0 && eps < 1)) {
        return fail(graph, WEIR_ERR_INVALID, "layer %s: eps must be in (0, 1)", name ? name : "?");
    }
    weir_value_t y = append_same_shape(graph, LAYER_BATCH_NORM, name, x);
    if (y >= 0) {
        graph->layers[y].eps = eps;
    }
    return y;
}

weir_value_t weir_graph_relu(struct weir_graph *graph, const char *name, weir_value_t x)
{
    return append_same_shape(graph, LAYER_RELU, name, x);
}

weir_value_t weir_graph_relu6(struct weir_graph *graph, const char *name, weir_value_t x)
{
    return append_same_shape(graph, LAYER_RELU6, name, x);
}

weir_value_t weir_graph_prelu(struct weir_graph *graph, const char *name, weir_value_t x)
{
    return append_same_shape(graph, LAYER_PRELU, name, x);
}

/* Windows of a pool along one side. The rule of is_ceil is PyTorch's. */
static int32_t pool_slide(int32_t in, const struct weir_pool_params *p)
{
    if (!p->is_ceil) {
        return slide(in, p->kernel, p->stride, p->pad);
    }
    int64_t span = (int64_t)in + 2 * (int64_t)p->pad - p->kernel + p->stride - 1;
    int64_t n = span < 0 ? 0 : span / p->stride + 1;
    return (int32_t)((n - 1) * p->stride >= (int64_t)in + p->pad ? n - 1 : n);
}

static weir_value_t append_pool(struct weir_graph *graph, enum layer_kind kind, const char *name,
                                weir_value_t x, const struct weir_pool_params *p)
{
    if (!can_append(graph, kind, name, &x, 1)) {
        return -1;
    }
    const int32_t all[] = {p->kernel, p->stride, p->pad};
    if (!are_params_small(all, WEIR_ARRAY_LEN(all)) || p->kernel == 0 || p->stride == 0) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: kernel and stride must be positive, padding not negative", name);
    }
    if (2 * p->pad > p->kernel) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: padding %d must be at most half the kernel %d", name, p->pad,
                    p->kernel);
    }
    struct weir_shape in = value_shape(graph, x);
    struct weir_shape out = {in.c, pool_slide(in.h, p), pool_slide(in.w, p)};
    struct graph_layer *layer = append(graph, kind, name, &x, 1, out);
    if (!layer) {
        return -1;
    }
    layer->pool = *p;
    return last_value(graph);
}

weir_value_t weir_graph_max_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params)
{
    return append_pool(graph, LAYER_MAX_POOL, name, x, params);
}

weir_value_t weir_graph_avg_pool(struct weir_graph *graph, const char *name, weir_value_t x,
                                 const struct weir_pool_params *params)
{
    return append_pool(graph, LAYER_AVG_POOL, name, x, params);
}

weir_value_t weir_graph_global_pool(struct weir_graph *graph, const char *name, weir_value_t x)
{
    if (!can_append(graph, LAYER_GLOBAL_POOL, name, &x, 1)) {
        return -1;
    }
    struct weir_shape out = {value_shape(graph, x).c, 1, 1};
    return append(graph, LAYER_GLOBAL_POOL, name, &x, 1, out) ? last_value(graph) : -1;
}

weir_value_t weir_graph_linear(struct weir_graph *graph, const char *name, weir_value_t x,
                               int32_t k, bool has_bias)
{
    if (!can_append(graph, LAYER_LINEAR, name, &x, 1)) {
        return -1;
    }
    if (k <= 0 || k > SHAPE_MAX_DIM || k * shape_elems(value_shape(graph, x)) > SHAPE_MAX_ELEMS) {
        return fail(graph, WEIR_ERR_INVALID,
                    "layer %s: k must be positive and the layer at most 2^28 weights", name);
    }
    struct graph_layer *layer =
        append(graph, LAYER_LINEAR, name, &x, 1, (struct weir_shape){k, 1, 1});
    if (!layer) {
        return -1;
    }
    layer->conv = (struct weir_conv_params){.k = k, .has_bias = has_bias};
    return last_value(graph);
}

weir_value_t weir_graph_add(struct weir_graph *graph, const char *name, weir_value_t a,
                            weir_value_t b)
{
    const weir_value_t in[2] = {a, b};
    if (!can_append(graph, LAYER_ADD, name, in, 2)) {
        return -1;
    }
    struct weir_shape sa = value_shape(graph, a), sb = value_shape(graph, b);
    if (sa.c != sb.c || sa.h != sb.h || sa.w != sb.w) {
        return fail(graph, WEIR_ERR_INVALID, "layer %s: cannot add %dx%dx%d and %dx%dx%d", name,
                    sa.c, sa.h, sa.w, sb.c, sb.h, sb.w);
    }
    return append(graph, LAYER_ADD, name, in, 2, sa) ? last_value(graph) : -1;
}

weir_value_t weir_graph_concat(struct weir_graph *graph, const char *name, const weir_value_t *xs,
                               int32_t n_xs)
{
    if (!can_append(graph, LAYER_CONCAT, name, xs, 0)) {
        return -1;
    }
    if (n_xs < 1 || n_xs > LAYER_MAX_INPUTS) {
        return fail(graph, WEIR_ERR_LIMIT, "layer %s: joins 1 to %d values, not %d", name,
                    LAYER_MAX_INPUTS, n_xs);
    }
    if (!can_append(graph, LAYER_CONCAT, name, xs, n_xs)) {
        return -1;
    }
    struct weir_shape out = value_shape(graph, xs[0]);
    for (int32_t i = 1; i < n_xs; i++) {
        struct weir_shape in = value_shape(graph, xs[i]);
        if (in.h != out.h || in.w != out.w) {
            return fail(graph, WEIR_ERR_INVALID,
                        "layer %s: input %d is %dx%d pixels, input 0 is %dx%d", name, i, in.h, in.w,
                        out.h, out.w);
        }
        out.c += in.c; /* at most 16 * 2^20 */
    }
    return append(graph, LAYER_CONCAT, name, xs, n_xs, out) ? last_value(graph) : -1;
}

weir_value_t weir_graph_dropout(struct weir_graph *graph, const char *name, weir_value_t x,
                                float rate)
{
    if (graph->first.status == WEIR_OK && !(rate >= 0 && rate < 1)) {
        return fail(graph, WEIR_ERR_INVALID, "layer %s: dropout rate must be in [0, 1)",
                    name ? name : "?");
    }
    weir_value_t y = append_same_shape(graph, LAYER_DROPOUT, name, x);
    if (y >= 0) {
        graph->layers[y].rate = rate;
    }
    return y;
}

/* Losses and L2 normalisation work on vectors; an image would hide a forgotten pooling layer. */
static bool is_vector(struct weir_graph *graph, const char *name, weir_value_t x)
{
    struct weir_shape in = value_shape(graph, x);
    if (in.h != 1 || in.w != 1) {
        fail(graph, WEIR_ERR_INVALID,
             "layer %s: wants a vector per image, not %d x %d x %d (pool it or add a linear layer)",
             name, in.c, in.h, in.w);
        return false;
    }
    return true;
}

void weir_graph_set_initial(struct weir_graph *graph, weir_value_t x, float factor, float bias)
{
    if (graph->first.status != WEIR_OK) {
        return;
    }
    struct graph_layer *layer = &graph->layers[x];
    if (layer->kind != LAYER_CONV || !(factor > 0 && factor <= 1) || !isfinite(bias) ||
        (bias != 0 && !layer->conv.has_bias)) {
        fail(graph, WEIR_ERR_INVALID,
             "layer %s: a convolution begins with weights of 0 < factor <= 1, and with a bias only "
             "if it has one",
             layer->name);
        return;
    }
    layer->initial_factor = factor;
    layer->initial_bias = bias;
}

weir_value_t weir_graph_l2_normalise(struct weir_graph *graph, const char *name, weir_value_t x)
{
    if (!can_append(graph, LAYER_L2_NORMALISE, name, &x, 1) || !is_vector(graph, name, x)) {
        return -1;
    }
    return append_same_shape(graph, LAYER_L2_NORMALISE, name, x);
}

weir_value_t weir_graph_flatten(struct weir_graph *graph, const char *name, weir_value_t x)
{
    if (!can_append(graph, LAYER_FLATTEN, name, &x, 1)) {
        return -1;
    }
    int64_t n = shape_elems(value_shape(graph, x));
    if (n > SHAPE_MAX_DIM) {
        return fail(graph, WEIR_ERR_LIMIT, "layer %s: a vector of %lld elements; at most 2^20",
                    name, (long long)n);
    }
    return append(graph, LAYER_FLATTEN, name, &x, 1, (struct weir_shape){(int32_t)n, 1, 1})
               ? last_value(graph)
               : -1;
}

weir_value_t weir_graph_scale(struct weir_graph *graph, const char *name, weir_value_t x,
                              float factor)
{
    if (graph->first.status == WEIR_OK && !isfinite(factor)) {
        return fail(graph, WEIR_ERR_INVALID, "layer %s: the factor must be a number",
                    name ? name : "?");
    }
    weir_value_t y = append_same_shape(graph, LAYER_SCALE, name, x);
    if (y >= 0) {
        graph->layers[y].scale = factor;
    }
    return y;
}

weir_value_t weir_graph_layer_norm(struct weir_graph *graph, const char *name, weir_value_t x)
{
    return append_same_shape(graph, LAYER_LAYER_NORM, name, x);
}

void weir_graph_softmax_loss(struct weir_graph *graph, const char *name, weir_value_t logits)
{
    if (!can_append(graph, LAYER_SOFTMAX_LOSS, name, &logits, 1) ||
        !is_vector(graph, name, logits) ||
        !append(graph, LAYER_SOFTMAX_LOSS, name, &logits, 1, value_shape(graph, logits))) {
        return;
    }
    graph->loss = last_value(graph);
}

void weir_graph_margin_loss(struct weir_graph *graph, const char *name, weir_value_t embedding,
                            int32_t n_classes, float scale, float margin)
{
    if (!can_append(graph, LAYER_MARGIN_LOSS, name, &embedding, 1) ||
        !is_vector(graph, name, embedding)) {
        return;
    }
    if (n_classes < 1 || n_classes > SHAPE_MAX_DIM || !(scale > 0) || !isfinite(scale) ||
        !(margin >= 0 && margin < 1.57f)) {
        fail(graph, WEIR_ERR_INVALID,
             "layer %s: wants 1 to 2^20 classes, a positive scale and a margin in [0, pi/2)", name);
        return;
    }
    /* The embedding is normalised by a layer of its own, so that inference nets have it too. */
    if (graph->layers[embedding].kind != LAYER_L2_NORMALISE) {
        char inner[LAYER_NAME_MAX_BYTES];
        int n = snprintf(inner, sizeof(inner), "%s.embedding", name);
        if (n >= (int)sizeof(inner)) {
            fail(graph, WEIR_ERR_INVALID, "layer %s: the name is too long", name);
            return;
        }
        embedding = weir_graph_l2_normalise(graph, inner, embedding);
    }
    if (!can_append(graph, LAYER_MARGIN_LOSS, name, &embedding, 1)) {
        return;
    }
    struct graph_layer *layer =
        append(graph, LAYER_MARGIN_LOSS, name, &embedding, 1, value_shape(graph, embedding));
    if (!layer) {
        return;
    }
    layer->n_classes = n_classes;
    layer->scale = scale;
    layer->margin = margin;
    graph->loss = last_value(graph);
}

void weir_graph_detect_loss(struct weir_graph *graph, const char *name, weir_value_t x,
                            int32_t n_values, float scale)
{
    if (!can_append(graph, LAYER_DETECT_LOSS, name, &x, 1) || !is_vector(graph, name, x)) {
        return;
    }
    struct weir_shape shape = value_shape(graph, x);
    if (n_values < 2 || shape.c % n_values != 0 || !(scale > 0) || !isfinite(scale)) {
        fail(graph, WEIR_ERR_INVALID,
             "layer %s: wants a positive scale, and 2 values or more of each square, which divide "
             "the "
             "%d that it reads",
             name, shape.c);
        return;
    }
    struct graph_layer *layer = append(graph, LAYER_DETECT_LOSS, name, &x, 1, shape);
    if (!layer) {
        return;
    }
    layer->n_values = n_values;
    layer->scale = scale;
    graph->loss = last_value(graph);
}

bool layer_is_loss(enum layer_kind kind)
{
    return kind == LAYER_SOFTMAX_LOSS || kind == LAYER_MARGIN_LOSS || kind == LAYER_DETECT_LOSS;
}

weir_value_t graph_output(const struct weir_graph *graph)
{
    return graph->loss >= 0 ? graph->layers[graph->loss].in[0] : graph->n_layers - 1;
}

weir_status weir_graph_check(const struct weir_graph *graph, struct weir_error *err)
{
    if (graph->first.status != WEIR_OK) {
        return weir_error_set(err, graph->first.status, "%s", graph->first.message);
    }
    if (graph->input < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the graph has no input");
    }
    if (graph->n_layers < 2) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the graph has an input but no layer");
    }
    bool *is_used = calloc((size_t)graph->n_layers, 1);
    if (!is_used) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    is_used[graph->n_layers - 1] = true;
    for (int32_t i = 0; i < graph->n_layers; i++) {
        for (int32_t j = 0; j < graph->layers[i].n_in; j++) {
            is_used[graph->layers[i].in[j]] = true;
        }
    }
    int32_t i_unused = 0;
    while (i_unused < graph->n_layers && is_used[i_unused]) {
        i_unused++;
    }
    free(is_used);
    if (i_unused < graph->n_layers) {
        return weir_error_set(err, WEIR_ERR_INVALID, "layer %s: nothing uses its value",
                              graph->layers[i_unused].name);
    }
    return WEIR_OK;
}
