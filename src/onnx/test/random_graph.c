#include "random_private.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH_BYTES_MAX ((size_t)16 << 20)
#define ELEMS_MAX       20000
#define BOUND_MAX       1e18 /* So that sums of products stay far from infinity. */
#define FREE            (-1)

void graph_must(weir_status status)
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

bool graph_is_float(enum weir_dtype dtype)
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
    bool is_whole = !graph_is_float(tensor->dtype);
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
    graph_must(weir_tensor_create(dtype, rank, dims, &tensor, &err));
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
    bool is_whole = !graph_is_float(value->now->dtype), is_dyadic = value->kind == VALUE_DYADIC ||
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
        value->grid = graph_is_float(dtype) ? -4 : 0;
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

/* ---- computing -------------------------------------------------------------------------------- */

double graph_noise_of(enum weir_dtype dtype)
{
    return ldexp(1, dtype == WEIR_DTYPE_FLOAT16                            ? -9
                    : dtype == WEIR_DTYPE_BFLOAT16                         ? -6
                    : graph_is_float(dtype) && weir_dtype_bits(dtype) < 16 ? -3
                                                                           : -20);
}

/* To what is relative to an element itself comes, for an exact sum of products, what is relative to these: who
 * multiplies them by a factor first rounds each. */
static struct weir_tensor *with_noise(struct random_graph *g, const struct random_value *of,
                                      struct weir_tensor *x)
{
    const double more = of->is_sum && of->is_exact ? ldexp(of->bound, -24) : 0;
    size_t n_bytes = weir_dtype_bytes(x->dtype);
    struct weir_tensor *y = make(x->dtype, x->rank, x->dims);
    for (size_t i = 0; i < x->n_elems; i++) {
        double value;
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * n_bytes, &value, 1);
        double noise = graph_noise_of(x->dtype) * (0.5 + 0.5 * weir_rng_f64(&g->rng));
        value *= 1 + (graph_rarely(g, 2) ? noise : -noise);
        value += graph_rarely(g, 2) ? more : -more;
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
        in[n++] = noise >= 0 && !step->is_exact && graph_is_float(given->dtype) &&
                          !g->values[step->in[i]].is_fixed
                      ? with_noise(g, &g->values[step->in[i]], given)
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
    value->is_special = result.is_special && graph_is_float(dtype);
    value->is_exact = result.is_exact;
    if (graph_is_float(dtype)) {
        bool is_narrow = value->bound <= ldexp(1, bits_of(dtype) + value->grid);
        value->is_exact = value->is_exact && is_narrow;
    }
    return value->now->n_elems <= ELEMS_MAX && value->bound <= most_of(dtype) &&
           largest_of(value->now) <= BOUND_MAX && (graph_is_float(dtype) || value->is_exact);
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

static bool is_one_of(const char *type, const char *const *types, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(type, types[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Does a step make sums of products, or arithmetic that may be done with them? */
static bool is_sum(const struct random_graph *g, const struct random_step *step)
{
    static const char *const products[] = {"Conv", "Gemm", "MatMul"};
    static const char *const sums[] = {"Add", "Sum", "Sub", "Mul", "Div", "BatchNormalization"};
    bool is = false;
    for (int i = 0; i < step->n_in; i++) {
        is = is || (step->in[i] >= 0 && g->values[step->in[i]].is_sum);
    }
    return is_one_of(step->type, products, WEIR_ARRAY_LEN(products)) ||
           (is && is_one_of(step->type, sums, WEIR_ARRAY_LEN(sums)));
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
    weir_buf_init(&step->node, GRAPH_BYTES_MAX);
    graph_put_node(g, step);
    step->alone = graph_load_alone(g, step);
    for (int i = 0; i < n_out; i++) {
        g->values[step->out[i]].is_exact = true; /* until it is known */
    }
    bool is_done = step->alone != NULL && compute_step(g, step);
    for (int i = 0; is_done && i < n_out; i++) {
        is_done = settle(&g->values[step->out[i]], result);
        g->values[step->out[i]].is_sum = is_sum(g, step);
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

/* ---- begin and end ---------------------------------------------------------------------------- */

void random_graph_begin(struct random_graph *g, uint64_t seed, bool is_common)
{
    static const int opsets[] = {6,  7,  9,  10, 11, 12, 13, 14, 15, 16,
                                 17, 18, 19, 20, 21, 22, 23, 24, 24};
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};
    *g = (struct random_graph){.seed = seed, .is_common = is_common};
    weir_rng_init(&g->rng, seed, 1);
    weir_buf_init(&g->attributes, GRAPH_BYTES_MAX);
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
