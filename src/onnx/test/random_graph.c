#include "random_graph.h"

#include "tensor/convert.h"

#include "base/protobuf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)16 << 20)
#define ELEMS_MAX 20000
#define BOUND_MAX 1e18 /* So that sums of products stay far from infinity. */
#define FREE      (-1)

/* A test's memory is there, or it ends. */
static void must(weir_status status)
{
    if (status != WEIR_OK) {
        abort();
    }
}

/* ---- random choices --------------------------------------------------------------------------- */

int64_t graph_pick(struct random_graph *g, int64_t low, int64_t high)
{
    return low + (int64_t)weir_rng_below(&g->rng, (uint64_t)(high - low + 1));
}

bool graph_rarely(struct random_graph *g, int n)
{
    return weir_rng_below(&g->rng, (uint64_t)n) == 0;
}

static double draw_number(struct random_graph *g, enum value_kind kind)
{
    switch (kind) {
    case VALUE_NORMAL:
        return weir_rng_normal(&g->rng);
    case VALUE_OUTLIER:
        return weir_rng_normal(&g->rng) *
               (graph_rarely(g, 40) ? pow(10, (double)graph_pick(g, 3, 9)) : 1);
    case VALUE_SPECIAL:
        if (graph_rarely(g, 8)) {
            return graph_rarely(g, 2) ? (double)NAN : graph_rarely(g, 2) ? INFINITY : -INFINITY;
        }
        break;
    case VALUE_POSITIVE:
        return ldexp(1, (int)graph_pick(g, -1, 2));
    case VALUE_DYADIC:
        break;
    }
    return (double)graph_pick(g, -8, 8) / 4;
}

/* ---- values ----------------------------------------------------------------------------------- */

static bool is_float(enum weir_dtype dtype)
{
    return weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT;
}

/* Bits that a float's number may have, less a few for what rounding makes of sums. */
static int bits_of(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_FLOAT     ? 23
           : dtype == WEIR_DTYPE_DOUBLE  ? 50
           : dtype == WEIR_DTYPE_FLOAT16 ? 10
                                         : 7;
}

static double most_of(enum weir_dtype dtype)
{
    switch (weir_dtype_class(dtype)) {
    case WEIR_DTYPE_IS_UNSIGNED:
        return ldexp(1, (int)weir_dtype_bits(dtype)) - 1;
    case WEIR_DTYPE_IS_SIGNED:
        return ldexp(1, (int)weir_dtype_bits(dtype) - 1) - 1;
    case WEIR_DTYPE_IS_FLOAT:
        return dtype == WEIR_DTYPE_FLOAT16 ? 60000 : BOUND_MAX;
    default:
        return BOUND_MAX;
    }
}

static void fill_strings(struct random_graph *g, struct weir_tensor *tensor)
{
    static const char *const texts[] = {"", "a", "bc", "Weir", "7", "-1.5"};
    struct weir_tensor_string *to = tensor->data;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        const char *text = texts[graph_pick(g, 0, (int64_t)WEIR_ARRAY_LEN(texts) - 1)];
        to[i] = (struct weir_tensor_string){.bytes = text[0] != '\0' ? strdup(text) : NULL,
                                            .len = strlen(text)};
    }
}

static void fill(struct random_graph *g, struct weir_tensor *tensor, enum value_kind kind)
{
    size_t n_bytes = weir_dtype_bytes(tensor->dtype);
    bool is_whole = !is_float(tensor->dtype);
    bool is_unsigned = weir_dtype_class(tensor->dtype) == WEIR_DTYPE_IS_UNSIGNED;
    if (tensor->dtype == WEIR_DTYPE_STRING) {
        fill_strings(g, tensor);
        return;
    }
    for (size_t i = 0; i < tensor->n_elems; i++) {
        double number = tensor->dtype == WEIR_DTYPE_BOOL ? (double)graph_pick(g, 0, 1)
                        : is_whole ? (double)graph_pick(g, is_unsigned ? 0 : -4, 4)
                                   : draw_number(g, kind);
        if (is_whole && kind == VALUE_POSITIVE) {
            number = (double)graph_pick(g, 1, 3);
        }
        weir_elems_from_f64(tensor->dtype, &number, (char *)tensor->data + i * n_bytes, 1,
                            WEIR_OVERFLOW_SATURATES);
    }
}

static struct weir_tensor *make(enum weir_dtype dtype, int rank, const int64_t *dims)
{
    struct weir_tensor *tensor;
    struct weir_error err;
    must(weir_tensor_create(dtype, rank, dims, &tensor, &err));
    return tensor;
}

static int new_value(struct random_graph *g)
{
    if (g->n_values == GRAPH_VALUES_MAX) {
        return -1;
    }
    struct random_value *value = &g->values[g->n_values];
    *value = (struct random_value){.is_exact = true};
    (void)snprintf(value->name, sizeof value->name, "v%d", g->n_values);
    return g->n_values++;
}

/* What may be told of numbers that are drawn in the same way again. */
static void describe(struct random_value *value)
{
    bool is_whole = !is_float(value->now->dtype), is_dyadic = value->kind == VALUE_DYADIC ||
                                                              value->kind == VALUE_SPECIAL ||
                                                              value->kind == VALUE_POSITIVE;
    value->is_exact = is_whole || is_dyadic;
    value->is_special = !is_whole && value->kind == VALUE_SPECIAL;
    value->is_nonzero = value->kind == VALUE_POSITIVE;
    value->grid = is_whole ? 0 : -2;
    value->bound = is_whole || is_dyadic ? 4 : value->kind == VALUE_OUTLIER ? 6e9 : 6;
}

int graph_given(struct random_graph *g, bool is_constant, enum weir_dtype dtype, int rank,
                const int64_t *dims, enum value_kind kind)
{
    int at = new_value(g);
    if (at >= 0) {
        struct random_value *value = &g->values[at];
        bool fits = g->batch == 0 || (rank > 1 && dims[0] == g->batch);
        value->is_constant = is_constant || !fits || dtype == WEIR_DTYPE_STRING;
        value->is_input = !value->is_constant;
        value->kind = kind;
        value->now = make(dtype, rank, dims);
        fill(g, value->now, kind);
        describe(value);
    }
    return at;
}

int graph_constant(struct random_graph *g, enum weir_dtype dtype, int rank, const int64_t *dims,
                   const double *numbers)
{
    int at = graph_given(g, true, dtype, rank, dims, VALUE_DYADIC);
    if (at >= 0) {
        struct random_value *value = &g->values[at];
        weir_elems_from_f64(dtype, numbers, value->now->data, value->now->n_elems,
                            WEIR_OVERFLOW_SATURATES);
        value->is_fixed = true;
        value->bound = 0;
        for (size_t i = 0; i < value->now->n_elems; i++) {
            value->bound = fmax(value->bound, fabs(numbers[i]));
            value->is_exact = value->is_exact && fmod(numbers[i] * 16, 1) == 0;
        }
        value->grid = is_float(dtype) ? -4 : 0;
    }
    return at;
}

int graph_ints(struct random_graph *g, int n, const int64_t *numbers)
{
    const int64_t dims = n;
    double values[16];
    for (int i = 0; i < n && i < 16; i++) {
        values[i] = (double)numbers[i];
    }
    return graph_constant(g, WEIR_DTYPE_INT64, 1, &dims, values);
}

/* ---- attributes ------------------------------------------------------------------------------- */

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT, ATTRIBUTE_TEXT, ATTRIBUTE_INTS = 7 };

static size_t begin_attribute(struct random_graph *g, const char *name, uint64_t type)
{
    size_t at = weir_protobuf_begin(&g->attributes, 5);
    weir_protobuf_put_text(&g->attributes, 1, name);
    weir_protobuf_put_varint(&g->attributes, 20, type);
    return at;
}

void graph_set_int(struct random_graph *g, const char *name, int64_t value)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_INT);
    weir_protobuf_put_varint(&g->attributes, 3, (uint64_t)value);
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_ints(struct random_graph *g, const char *name, int n, const int64_t *values)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_INTS);
    for (int i = 0; i < n; i++) {
        weir_protobuf_put_varint(&g->attributes, 8, (uint64_t)values[i]);
    }
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_float(struct random_graph *g, const char *name, double value)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_FLOAT);
    weir_protobuf_put_float(&g->attributes, 2, (float)value);
    weir_protobuf_end(&g->attributes, at);
}

void graph_set_text(struct random_graph *g, const char *name, const char *text)
{
    size_t at = begin_attribute(g, name, ATTRIBUTE_TEXT);
    weir_protobuf_put_text(&g->attributes, 4, text);
    weir_protobuf_end(&g->attributes, at);
}

/* ---- the file --------------------------------------------------------------------------------- */

static void put_tensor(struct weir_buf *to, const struct random_value *value)
{
    const struct weir_tensor *tensor = value->now;
    size_t at = weir_protobuf_begin(to, 5);
    for (int i = 0; i < tensor->rank; i++) {
        weir_protobuf_put_varint(to, 1, (uint64_t)tensor->dims[i]);
    }
    weir_protobuf_put_varint(to, 2, (uint64_t)tensor->dtype);
    weir_protobuf_put_text(to, 8, value->name);
    if (tensor->dtype == WEIR_DTYPE_STRING) {
        const struct weir_tensor_string *text = tensor->data;
        for (size_t i = 0; i < tensor->n_elems; i++) {
            weir_protobuf_put_bytes(to, 6, text[i].bytes != NULL ? text[i].bytes : "", text[i].len);
        }
    } else {
        weir_protobuf_put_bytes(to, 9, tensor->data,
                                tensor->n_elems * weir_dtype_bytes(tensor->dtype));
    }
    weir_protobuf_end(to, at);
}

/* rank -1: the shape is not said; a dimension FREE: neither. */
static void put_port(struct weir_buf *to, uint32_t number, const char *name, enum weir_dtype dtype,
                     int rank, const int64_t *dims)
{
    size_t port = weir_protobuf_begin(to, number);
    weir_protobuf_put_text(to, 1, name);
    size_t outer = weir_protobuf_begin(to, 2), tensor = weir_protobuf_begin(to, 1);
    weir_protobuf_put_varint(to, 1, (uint64_t)dtype);
    if (rank >= 0) {
        size_t shape = weir_protobuf_begin(to, 2);
        for (int i = 0; i < rank; i++) {
            size_t dim = weir_protobuf_begin(to, 1);
            if (dims[i] == FREE) {
                weir_protobuf_put_text(to, 2, "batch");
            } else {
                weir_protobuf_put_varint(to, 1, (uint64_t)dims[i]);
            }
            weir_protobuf_end(to, dim);
        }
        weir_protobuf_end(to, shape);
    }
    weir_protobuf_end(to, tensor);
    weir_protobuf_end(to, outer);
    weir_protobuf_end(to, port);
}

static void put_opset(struct weir_buf *to, int opset)
{
    size_t at = weir_protobuf_begin(to, 8);
    weir_protobuf_put_text(to, 1, "");
    weir_protobuf_put_varint(to, 2, (uint64_t)opset);
    weir_protobuf_end(to, at);
}

static struct weir_onnx *load(const struct weir_buf *model)
{
    const struct weir_onnx_limits limits = {
        .run_bytes = BYTES_MAX, .n_threads = 1, .only_interprets = true};
    struct weir_onnx *onnx;
    struct weir_error err;
    return weir_onnx_load(model->data, model->len, &limits, &onnx, &err) == WEIR_OK ? onnx : NULL;
}

/* A model of the one node, whose inputs have any shape. */
static struct weir_onnx *load_alone(const struct random_graph *g, const struct random_step *step)
{
    struct weir_buf model;
    weir_buf_init(&model, BYTES_MAX);
    weir_protobuf_put_varint(&model, 1, 8);
    size_t graph = weir_protobuf_begin(&model, 7);
    must(weir_buf_append(&model, step->node.data, step->node.len));
    for (int i = 0; i < step->n_in; i++) {
        bool is_new = step->in[i] >= 0;
        for (int k = 0; k < i; k++) {
            is_new = is_new && step->in[k] != step->in[i];
        }
        if (is_new) {
            const struct random_value *value = &g->values[step->in[i]];
            put_port(&model, 11, value->name, value->now->dtype, -1, NULL);
        }
    }
    for (int i = 0; i < step->n_out; i++) {
        put_port(&model, 12, g->values[step->out[i]].name, WEIR_DTYPE_NONE, -1, NULL);
    }
    weir_protobuf_end(&model, graph);
    put_opset(&model, g->opset);
    struct weir_onnx *onnx = load(&model);
    weir_buf_fini(&model);
    return onnx;
}

void random_graph_write(const struct random_graph *g, struct weir_buf *to)
{
    weir_protobuf_put_varint(to, 1, 8);
    size_t graph = weir_protobuf_begin(to, 7);
    for (int i = 0; i < g->n_steps; i++) {
        must(weir_buf_append(to, g->steps[i].node.data, g->steps[i].node.len));
    }
    weir_protobuf_put_text(to, 2, "random");
    for (int i = 0; i < g->n_values; i++) {
        const struct random_value *value = &g->values[i];
        if (value->is_constant) {
            put_tensor(to, value);
        } else if (value->is_input) {
            int64_t dims[WEIR_TENSOR_RANK_MAX];
            memcpy(dims, value->now->dims, sizeof dims);
            dims[0] = g->batch > 0 ? FREE : dims[0];
            put_port(to, 11, value->name, value->now->dtype,
                     g->batch > 0 || g->seed % 3 != 0 ? value->now->rank : -1, dims);
        }
    }
    for (int i = 0; i < g->n_outputs; i++) {
        const struct random_value *value = &g->values[g->outputs[i]];
        put_port(to, 12, value->name,
                 value->now != NULL && g->is_common ? value->now->dtype : WEIR_DTYPE_NONE, -1,
                 NULL);
    }
    weir_protobuf_end(to, graph);
    put_opset(to, g->opset);
    must(to->status);
}

void random_graph_print(const struct random_graph *g, FILE *to)
{
    (void)fprintf(to, "opset %d, batch %lld\n", g->opset, (long long)g->batch);
    for (int i = 0; i < g->n_steps; i++) {
        const struct random_step *step = &g->steps[i];
        for (int k = 0; k < step->n_out; k++) {
            const struct random_value *value = &g->values[step->out[k]];
            (void)fprintf(to, "%s%s", k > 0 ? ", " : "", value->name);
            for (int d = -1; value->now != NULL && d < value->now->rank; d++) {
                (void)fprintf(to, d < 0 ? " %s" : "%.0s %lld", weir_dtype_name(value->now->dtype),
                              d < 0 ? 0LL : (long long)value->now->dims[d]);
            }
            (void)fprintf(to, "%s", value->is_exact ? " exact" : "");
        }
        (void)fprintf(to, " = %s(", step->type);
        for (int k = 0; k < step->n_in; k++) {
            const struct random_value *value = step->in[k] >= 0 ? &g->values[step->in[k]] : NULL;
            (void)fprintf(to, "%s%s%s", k > 0 ? ", " : "", value != NULL ? value->name : "-",
                          value == NULL        ? ""
                          : value->is_constant ? " const"
                          : value->is_input    ? " input"
                                               : "");
            for (int d = 0; value != NULL && value->now != NULL && d < value->now->rank &&
                            (value->is_constant || value->is_input);
                 d++) {
                (void)fprintf(to, " %lld", (long long)value->now->dims[d]);
            }
        }
        (void)fprintf(to, ")\n");
    }
    (void)fprintf(to, "outputs");
    for (int i = 0; i < g->n_outputs; i++) {
        (void)fprintf(to, " %s", g->values[g->outputs[i]].name);
    }
    (void)fprintf(to, "\n");
}

/* ---- computing -------------------------------------------------------------------------------- */

/* Relative noise of an element: some times what rounding makes of it. */
static double noise_of(enum weir_dtype dtype)
{
    return ldexp(1, dtype == WEIR_DTYPE_FLOAT16                      ? -9
                    : dtype == WEIR_DTYPE_BFLOAT16                   ? -6
                    : is_float(dtype) && weir_dtype_bits(dtype) < 16 ? -3
                                                                     : -20);
}

static struct weir_tensor *with_noise(struct random_graph *g, struct weir_tensor *x)
{
    size_t n_bytes = weir_dtype_bytes(x->dtype);
    struct weir_tensor *y = make(x->dtype, x->rank, x->dims);
    for (size_t i = 0; i < x->n_elems; i++) {
        double value;
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * n_bytes, &value, 1);
        double noise = noise_of(x->dtype) * (0.5 + 0.5 * weir_rng_f64(&g->rng));
        value *= 1 + (graph_rarely(g, 2) ? noise : -noise);
        weir_elems_from_f64(x->dtype, &value, (char *)y->data + i * n_bytes, 1,
                            WEIR_OVERFLOW_SATURATES);
    }
    return y;
}

/* An Elu may take 1 from an exponential: what is left of small numbers is known to so much only. */
static void jitter(struct random_graph *g, struct weir_tensor *x)
{
    for (size_t i = 0; x->dtype == WEIR_DTYPE_FLOAT && i < x->n_elems; i++) {
        ((float *)x->data)[i] += ldexpf(graph_rarely(g, 2) ? 1 : -1, -23);
    }
}

/* noise -1: none. */
static struct weir_tensor *at_noise(const struct random_value *value, int noise)
{
    return noise >= 0 && value->noisy[noise] != NULL ? value->noisy[noise] : value->now;
}

static bool run_step(struct random_graph *g, struct random_step *step, int noise,
                     struct weir_tensor *out[GRAPH_OUT_MAX])
{
    struct weir_tensor *in[GRAPH_IN_MAX] = {NULL};
    struct weir_error err;
    int n = 0;
    for (int i = 0; i < step->n_in; i++) {
        bool is_new = step->in[i] >= 0;
        for (int k = 0; k < i; k++) {
            is_new = is_new && step->in[k] != step->in[i];
        }
        if (!is_new) {
            continue;
        }
        struct weir_tensor *given = at_noise(&g->values[step->in[i]], noise);
        if (given == NULL) {
            break;
        }
        in[n++] = noise >= 0 && !step->is_exact && is_float(given->dtype) &&
                          !g->values[step->in[i]].is_fixed
                      ? with_noise(g, given)
                      : weir_tensor_retain(given);
    }
    bool is_done = weir_onnx_run(step->alone, in, out, &err) == WEIR_OK;
    if (is_done && noise >= 0 && strcmp(step->type, "Elu") == 0) {
        jitter(g, out[0]);
    }
    for (int i = 0; i < n; i++) {
        weir_tensor_release(in[i]);
    }
    return is_done;
}

static void forget(struct random_value *value)
{
    weir_tensor_release(value->now);
    value->now = NULL;
    for (int k = 0; k < GRAPH_NOISES; k++) {
        weir_tensor_release(value->noisy[k]);
        value->noisy[k] = NULL;
    }
}

static bool is_there(const struct random_graph *g, const struct random_step *step)
{
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i] >= 0 && g->values[step->in[i]].now == NULL) {
            return false;
        }
    }
    return true;
}

static bool compute_step(struct random_graph *g, struct random_step *step)
{
    struct weir_tensor *out[GRAPH_OUT_MAX];
    if (!is_there(g, step) || !run_step(g, step, -1, out)) {
        return false;
    }
    for (int i = 0; i < step->n_out; i++) {
        g->values[step->out[i]].now = out[i];
    }
    for (int k = 0; k < GRAPH_NOISES && !g->values[step->out[0]].is_exact; k++) {
        if (!run_step(g, step, k, out)) {
            return false;
        }
        for (int i = 0; i < step->n_out; i++) {
            g->values[step->out[i]].noisy[k] = out[i];
        }
    }
    return true;
}

bool random_graph_compute(struct random_graph *g)
{
    bool is_whole = true;
    for (int i = 0; i < g->n_steps; i++) {
        for (int k = 0; k < g->steps[i].n_out; k++) {
            forget(&g->values[g->steps[i].out[k]]);
        }
        is_whole = compute_step(g, &g->steps[i]) && is_whole;
    }
    return is_whole;
}

void random_graph_draw(struct random_graph *g, int64_t batch)
{
    for (int i = 0; i < g->n_values; i++) {
        struct random_value *value = &g->values[i];
        if (value->is_input) {
            int64_t dims[WEIR_TENSOR_RANK_MAX];
            memcpy(dims, value->now->dims, sizeof dims);
            dims[0] = g->batch > 0 ? batch : dims[0];
            struct weir_tensor *now = make(value->now->dtype, value->now->rank, dims);
            fill(g, now, value->kind);
            weir_tensor_release(value->now);
            value->now = now;
        }
    }
}

/* ---- growing ---------------------------------------------------------------------------------- */

struct graph_result graph_moved(const struct random_graph *g, const int *in, int n)
{
    struct graph_result result = {.is_exact = true, .grid = 60};
    for (int i = 0; i < n; i++) {
        const struct random_value *value = in[i] >= 0 ? &g->values[in[i]] : NULL;
        if (value != NULL) {
            result.is_exact = result.is_exact && value->is_exact;
            result.is_special = result.is_special || value->is_special;
            result.bound = fmax(result.bound, value->bound);
            result.grid = WEIR_MIN(result.grid, value->grid);
        }
    }
    return result;
}

struct graph_result graph_inexact(const struct random_graph *g, const int *in, int n)
{
    struct graph_result result = graph_moved(g, in, n);
    result.is_exact = false;
    result.bound = 0;
    return result;
}

static double largest_of(const struct weir_tensor *tensor)
{
    double most = 0;
    for (size_t i = 0; tensor->dtype != WEIR_DTYPE_STRING && i < tensor->n_elems; i++) {
        double value;
        weir_elems_to_f64(tensor->dtype,
                          (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), &value,
                          1);
        most = isfinite(value) ? fmax(most, fabs(value)) : most;
    }
    return most;
}

/* Is it such that sums and products of it stay in range, and what is exact is so? */
static bool settle(struct random_value *value, struct graph_result result)
{
    enum weir_dtype dtype = value->now->dtype;
    value->bound = result.bound > 0 ? result.bound : 4 * largest_of(value->now);
    value->grid = result.grid;
    value->is_special = result.is_special && is_float(dtype);
    value->is_exact = result.is_exact;
    if (is_float(dtype)) {
        bool is_narrow = value->bound <= ldexp(1, bits_of(dtype) + value->grid);
        value->is_exact = value->is_exact && is_narrow;
    }
    return value->now->n_elems <= ELEMS_MAX && value->bound <= most_of(dtype) &&
           largest_of(value->now) <= BOUND_MAX && (is_float(dtype) || value->is_exact);
}

static void put_node(struct random_graph *g, struct random_step *step)
{
    size_t at = weir_protobuf_begin(&step->node, 1);
    for (int i = 0; i < step->n_in; i++) {
        weir_protobuf_put_text(&step->node, 1, step->in[i] >= 0 ? g->values[step->in[i]].name : "");
    }
    for (int i = 0; i < step->n_out; i++) {
        weir_protobuf_put_text(&step->node, 2, g->values[step->out[i]].name);
    }
    weir_protobuf_put_text(&step->node, 4, step->type);
    must(weir_buf_append(&step->node, g->attributes.data, g->attributes.len));
    weir_protobuf_end(&step->node, at);
    weir_buf_reset(&g->attributes);
}

/* Takes back the step and its outputs. */
static int undo(struct random_graph *g, struct random_step *step)
{
    for (int i = step->n_out - 1; i >= 0; i--) {
        forget(&g->values[step->out[i]]);
        g->n_values--;
    }
    weir_onnx_free(step->alone);
    weir_buf_fini(&step->node);
    return -1;
}

int graph_add(struct random_graph *g, const char *type, const int *in, int n_in, int n_out,
              struct graph_result result)
{
    struct random_step *step = &g->steps[g->n_steps];
    bool fits = g->n_steps < GRAPH_STEPS_MAX && g->n_values + n_out <= GRAPH_VALUES_MAX;
    for (int i = 0; i < n_in; i++) {
        fits = fits && (in[i] >= 0 || i > 0);
    }
    if (!fits) {
        weir_buf_reset(&g->attributes);
        return -1;
    }
    *step = (struct random_step){.type = type, .n_in = n_in, .n_out = n_out};
    memcpy(step->in, in, (size_t)n_in * sizeof *in);
    for (int i = 0; i < n_out; i++) {
        step->out[i] = new_value(g);
    }
    weir_buf_init(&step->node, BYTES_MAX);
    put_node(g, step);
    step->alone = load_alone(g, step);
    for (int i = 0; i < n_out; i++) {
        g->values[step->out[i]].is_exact = true; /* until it is known */
    }
    bool is_done = step->alone != NULL && compute_step(g, step);
    for (int i = 0; is_done && i < n_out; i++) {
        is_done = settle(&g->values[step->out[i]], result);
        step->is_exact = g->values[step->out[0]].is_exact;
    }
    if (!is_done) {
        return undo(g, step);
    }
    for (int i = 0; i < n_in; i++) {
        if (in[i] >= 0) {
            g->values[in[i]].n_readers++;
        }
    }
    g->n_steps++;
    return step->out[0];
}

void random_graph_close(struct random_graph *g)
{
    for (int i = 0; i < g->n_steps; i++) {
        for (int k = 0; k < g->steps[i].n_out; k++) {
            int value = g->steps[i].out[k];
            bool is_end = g->values[value].n_readers == 0;
            if (graph_rarely(g, is_end ? 1 : 6)) {
                g->outputs[g->n_outputs++] = value;
            }
        }
    }
}

/* ---- comparing -------------------------------------------------------------------------------- */

static double element(const struct weir_tensor *tensor, size_t i)
{
    double value;
    weir_elems_to_f64(tensor->dtype,
                      (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), &value, 1);
    return value;
}

static bool is_same_string(const struct weir_tensor *a, const struct weir_tensor *b, size_t i)
{
    const struct weir_tensor_string *x = a->data, *y = b->data;
    return x[i].len == y[i].len && (x[i].len == 0 || memcmp(x[i].bytes, y[i].bytes, x[i].len) == 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What noise does to an element; NaN: it may even make it finite, or not. */
static double swing(const struct random_value *value, size_t i)
{
    double most = 0, now = element(value->now, i);
    for (int k = 0; k < GRAPH_NOISES; k++) {
        double noisy = element(value->noisy[k], i);
        bool is_same = noisy == now || (isnan(noisy) && isnan(now));
        most = is_same ? most : fmax(most, fabs(noisy - now));
        if (!is_same && (!isfinite(noisy) || !isfinite(now))) {
            return (double)NAN;
        }
    }
    return most;
}

#define SWINGS 64 /* Swings that an element may be off. */

/* Noise on a few terms may cancel by chance; not that on a quarter of a tensor's elements. */
static double quarter(const struct random_value *value)
{
    size_t n = WEIR_MIN(value->now->n_elems, (size_t)64);
    double all[64];
    size_t n_all = 0;
    for (size_t i = 0; i < n; i++) {
        double of = swing(value, i * value->now->n_elems / n);
        if (isfinite(of)) {
            all[n_all++] = of;
        }
    }
    qsort(all, n_all, sizeof *all, by_size);
    return n_all > 0 ? all[n_all / 4] : 0;
}

double random_graph_tolerance(const struct random_graph *g, int i_out, size_t i)
{
    const struct random_value *value = &g->values[g->outputs[i_out]];
    if (value->is_exact) {
        return 0;
    }
    double now = fabs(element(value->now, i));
    return SWINGS * fmax(swing(value, i), quarter(value)) +
           4 * noise_of(value->now->dtype) * (isfinite(now) ? now : 0) + 1e-30;
}

/* How far element i is off, beyond what it may be; 0: not at all. */
static double distance(const struct random_value *value, const struct weir_tensor *is, size_t i,
                       double most)
{
    double want = element(value->now, i), got = element(is, i);
    if (got == want || (isnan(got) && isnan(want))) {
        return 0;
    }
    if (!value->is_exact && isnan(swing(value, i))) {
        return 0;
    }
    double off = fabs(got - want);
    return off <= most ? 0 : isnan(off) ? INFINITY : off;
}

#define RETRIES 16

/* What noise did may have been little by chance: is it near enough with more of it? */
static bool is_near(struct random_graph *g, struct random_value *value,
                    const struct weir_tensor *is, size_t i)
{
    double most = 0;
    for (int k = 0; k < RETRIES && !value->is_exact; k++) {
        must(random_graph_compute(g) ? WEIR_OK : WEIR_ERR_INTERNAL);
        double of = swing(value, i);
        if (isnan(of)) {
            return true;
        }
        most = fmax(most, of);
    }
    return !value->is_exact && distance(value, is, i, SWINGS * most) == 0;
}

static bool has_shape(const struct weir_tensor *a, const struct weir_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

bool random_graph_differs(struct random_graph *g, int i_out, const struct weir_tensor *is,
                          char what[160])
{
    struct random_value *value = &g->values[g->outputs[i_out]];
    if (!has_shape(value->now, is)) {
        (void)snprintf(what, 160, "%s: another type or shape", value->name);
        return true;
    }
    double base = value->is_exact || is->n_elems == 0 ? 0 : SWINGS * quarter(value);
    for (size_t i = 0; i < is->n_elems; i++) {
        if (is->dtype == WEIR_DTYPE_STRING ? is_same_string(value->now, is, i)
                                           : element(value->now, i) == element(is, i)) {
            continue;
        }
        double most = value->is_exact
                          ? 0
                          : fmax(base, SWINGS * swing(value, i)) +
                                4 * noise_of(is->dtype) * fabs(element(value->now, i)) + 1e-30;
        if (is->dtype == WEIR_DTYPE_STRING ||
            (distance(value, is, i, most) > 0 && !is_near(g, value, is, i))) {
            (void)snprintf(what, 160, "%s[%zu] is %.9g, not %.9g +- %.3g", value->name, i,
                           element(is, i), element(value->now, i), most);
            return true;
        }
    }
    return false;
}

/* ---- begin and end ---------------------------------------------------------------------------- */

void random_graph_begin(struct random_graph *g, uint64_t seed, bool is_common)
{
    static const int opsets[] = {6,  7,  9,  10, 11, 12, 13, 14, 15, 16,
                                 17, 18, 19, 20, 21, 22, 23, 24, 24};
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};
    *g = (struct random_graph){.seed = seed, .is_common = is_common};
    weir_rng_init(&g->rng, seed, 1);
    weir_buf_init(&g->attributes, BYTES_MAX);
    g->opset = is_common ? (int)graph_pick(g, 13, 21)
                         : opsets[graph_pick(g, 0, (int64_t)WEIR_ARRAY_LEN(opsets) - 1)];
    g->rank = graph_rarely(g, 2) ? 4 : (int)graph_pick(g, 0, 5);
    for (int i = 0; i < g->rank; i++) {
        g->dims[i] = graph_rarely(g, 60) ? 0
                     : i >= 2            ? graph_pick(g, 1, 7)
                              : sizes[graph_pick(g, 0, (int64_t)WEIR_ARRAY_LEN(sizes) - 1)];
    }
    if (g->rank >= 2 && graph_rarely(g, 2)) {
        g->dims[0] = graph_pick(g, 1, 3);
        g->dims[1] = graph_rarely(g, 2) ? g->dims[1] : 8 * graph_pick(g, 1, 4);
    }
    if (g->rank >= 2 && g->dims[0] > 0 && graph_rarely(g, 3)) {
        g->batch = g->dims[0];
    }
}

void random_graph_end(struct random_graph *g)
{
    for (int i = 0; i < g->n_steps; i++) {
        weir_onnx_free(g->steps[i].alone);
        weir_buf_fini(&g->steps[i].node);
    }
    for (int i = 0; i < g->n_values; i++) {
        forget(&g->values[i]);
    }
    weir_buf_fini(&g->attributes);
}
