/*
 * Random graphs run planned and interpreted: both must agree, to 1e-4 of the largest element for
 * floats, to one step for bytes. Seeds are printed with what is wrong; WEIR_TEST_SEED plays one.
 */
#include "onnx/onnx.h"

#include "base/buf.h"
#include "base/protobuf.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 64
#define N_GRAPHS   30
#define BYTES_MAX  ((size_t)16 << 20)

/** A graph that is written from the input on. */
struct graph {
    struct weir_rng rng;
    struct weir_buf nodes, weights;
    int n_names;

    struct {
        char name[16];
        int64_t c, h, w;
    } values[VALUES_MAX]; /* That a step may read. */

    int n_values;
};

static int64_t pick(struct graph *g, int64_t low, int64_t high)
{
    return low + (int64_t)weir_rng_below(&g->rng, (uint64_t)(high - low + 1));
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put_tensor(struct graph *g, const char *name, int type, const int64_t *dims, int rank,
                       const void *data, size_t n_bytes)
{
    size_t at = weir_protobuf_begin(&g->weights, 5);
    for (int i = 0; i < rank; i++) {
        weir_protobuf_put_varint(&g->weights, 1, (uint64_t)dims[i]);
    }
    weir_protobuf_put_varint(&g->weights, 2, (uint64_t)type);
    weir_protobuf_put_text(&g->weights, 8, name);
    weir_protobuf_put_bytes(&g->weights, 9, data, n_bytes);
    weir_protobuf_end(&g->weights, at);
}

static void new_name(struct graph *g, char out[16])
{
    (void)snprintf(out, 16, "v%d", g->n_names++);
}

/* Normal numbers around `mean`. */
static void put_floats(struct graph *g, char out[16], const int64_t *dims, int rank, double mean,
                       double deviation)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        n *= (size_t)dims[i];
    }
    float *values = malloc((n + 1) * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(mean + deviation * weir_rng_normal(&g->rng));
    }
    new_name(g, out);
    put_tensor(g, out, WEIR_DTYPE_FLOAT, dims, rank, values, n * sizeof *values);
    free(values);
}

static size_t begin_node(struct graph *g, const char *type, const char *const *in, int n_in,
                         char out[16])
{
    size_t at = weir_protobuf_begin(&g->nodes, 1);
    for (int i = 0; i < n_in; i++) {
        weir_protobuf_put_text(&g->nodes, 1, in[i]);
    }
    new_name(g, out);
    weir_protobuf_put_text(&g->nodes, 2, out);
    weir_protobuf_put_text(&g->nodes, 4, type);
    return at;
}

static void put_ints(struct graph *g, const char *name, const int64_t *values, int n)
{
    size_t at = weir_protobuf_begin(&g->nodes, 5);
    weir_protobuf_put_text(&g->nodes, 1, name);
    for (int i = 0; i < n; i++) {
        weir_protobuf_put_varint(&g->nodes, n > 1 ? 8 : 3, (uint64_t)values[i]);
    }
    weir_protobuf_put_varint(&g->nodes, 20, n > 1 ? 7 : 2);
    weir_protobuf_end(&g->nodes, at);
}

static void node(struct graph *g, const char *type, const char *const *in, int n_in, char out[16])
{
    size_t at = begin_node(g, type, in, n_in, out);
    weir_protobuf_end(&g->nodes, at);
}

static void keep(struct graph *g, const char *name, int64_t c, int64_t h, int64_t w)
{
    if (g->n_values < VALUES_MAX) {
        (void)snprintf(g->values[g->n_values].name, 16, "%s", name);
        g->values[g->n_values].c = c;
        g->values[g->n_values].h = h;
        g->values[g->n_values++].w = w;
    }
}

/* ---- steps ------------------------------------------------------------------------------------ */

static void add_activation(struct graph *g, char name[16])
{
    static const char *const types[] = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Elu"};
    char out[16];
    int64_t i = pick(g, 0, (int64_t)WEIR_ARRAY_LEN(types) + 1);
    if (i < (int64_t)WEIR_ARRAY_LEN(types)) {
        node(g, types[i], (const char *const[]){name}, 1, out);
    } else if (i == (int64_t)WEIR_ARRAY_LEN(types)) { /* swish */
        char gate[16];
        node(g, "Sigmoid", (const char *const[]){name}, 1, gate);
        node(g, "Mul", (const char *const[]){name, gate}, 2, out);
    } else {
        return;
    }
    memcpy(name, out, sizeof out);
}

static void add_norm(struct graph *g, char name[16], int64_t c)
{
    char in[4][16], out[16];
    put_floats(g, in[0], &c, 1, 1, 0.1);
    put_floats(g, in[1], &c, 1, 0, 0.1);
    put_floats(g, in[2], &c, 1, 0, 0.1);
    put_floats(g, in[3], &c, 1, 2, 0.1);
    node(g, "BatchNormalization", (const char *const[]){name, in[0], in[1], in[2], in[3]}, 5, out);
    memcpy(name, out, sizeof out);
}

/* The sum with an earlier value of the shape, if there is one. */
static void add_earlier(struct graph *g, char name[16], int64_t c, int64_t h, int64_t w)
{
    char out[16];
    for (int i = 0; i < g->n_values; i++) {
        if (g->values[i].c == c && g->values[i].h == h && g->values[i].w == w) {
            node(g, "Add", (const char *const[]){name, g->values[i].name}, 2, out);
            memcpy(name, out, sizeof out);
            return;
        }
    }
}

static void add_conv(struct graph *g, int from)
{
    int64_t c = g->values[from].c, h = g->values[from].h, w = g->values[from].w;
    int64_t kernel = pick(g, 0, 1) ? 3 : pick(g, 1, 3), stride = pick(g, 0, 3) ? 1 : 2;
    int64_t pads[4] = {pick(g, 0, 1), pick(g, 0, 1), pick(g, 0, 1), pick(g, 0, 1)};
    bool is_deep = pick(g, 0, 3) == 0;
    int64_t k = is_deep ? c : pick(g, 0, 1) ? c : pick(g, 1, 6) * 8, groups = is_deep ? c : 1;
    int64_t out_h = (h + pads[0] + pads[2] - kernel) / stride + 1;
    int64_t out_w = (w + pads[1] + pads[3] - kernel) / stride + 1;
    char weights[16], out[16];
    if (h + pads[0] + pads[2] < kernel || w + pads[1] + pads[3] < kernel) {
        return;
    }
    int64_t c_group = c / groups;
    put_floats(g, weights, (int64_t[]){k, c_group, kernel, kernel}, 4, 0,
               sqrt(2.0 / (double)(c_group * kernel * kernel)));
    size_t at = begin_node(g, "Conv", (const char *const[]){g->values[from].name, weights}, 2, out);
    put_ints(g, "pads", pads, 4);
    put_ints(g, "strides", (int64_t[]){stride, stride}, 2);
    put_ints(g, "group", &groups, 1);
    weir_protobuf_end(&g->nodes, at);
    if (pick(g, 0, 1)) {
        add_norm(g, out, k);
    }
    if (pick(g, 0, 1)) {
        add_earlier(g, out, k, out_h, out_w);
    }
    add_activation(g, out);
    keep(g, out, k, out_h, out_w);
}

static void add_pool(struct graph *g, int from)
{
    int64_t h = g->values[from].h, w = g->values[from].w, pad = pick(g, 0, 1);
    char out[16];
    if (h < 3 || w < 3) {
        return;
    }
    size_t at = begin_node(g, pick(g, 0, 1) ? "MaxPool" : "AveragePool",
                           (const char *const[]){g->values[from].name}, 1, out);
    put_ints(g, "kernel_shape", (int64_t[]){3, 3}, 2);
    put_ints(g, "strides", (int64_t[]){2, 2}, 2);
    put_ints(g, "pads", (int64_t[]){pad, pad, pad, pad}, 4);
    weir_protobuf_end(&g->nodes, at);
    keep(g, out, g->values[from].c, (h + 2 * pad - 3) / 2 + 1, (w + 2 * pad - 3) / 2 + 1);
}

static void add_concat(struct graph *g, int from)
{
    for (int i = 0; i < g->n_values; i++) {
        if (g->values[i].h == g->values[from].h && g->values[i].w == g->values[from].w) {
            char out[16];
            const char *const in[] = {g->values[i].name, g->values[from].name};
            size_t at = begin_node(g, "Concat", in, 2, out);
            put_ints(g, "axis", (int64_t[]){1}, 1);
            weir_protobuf_end(&g->nodes, at);
            if (g->values[i].c + g->values[from].c <= 96) {
                keep(g, out, g->values[i].c + g->values[from].c, g->values[i].h, g->values[i].w);
            }
            return;
        }
    }
}

static void add_scale(struct graph *g, int from)
{
    char scale[16], out[16];
    int64_t dims[] = {1, g->values[from].c, 1, 1};
    put_floats(g, scale, dims, 4, 1, 0.2);
    node(g, pick(g, 0, 1) ? "Mul" : "Add", (const char *const[]){g->values[from].name, scale}, 2,
         out);
    add_activation(g, out);
    keep(g, out, g->values[from].c, g->values[from].h, g->values[from].w);
}

/* ---- quantised -------------------------------------------------------------------------------- */

static void put_scale(struct graph *g, float scale, int type, int zero, char out[2][16])
{
    const uint8_t byte = (uint8_t)zero;
    new_name(g, out[0]);
    put_tensor(g, out[0], WEIR_DTYPE_FLOAT, NULL, 0, &scale, sizeof scale);
    new_name(g, out[1]);
    put_tensor(g, out[1], type, NULL, 0, &byte, 1);
}

/* x as bytes, and as floats again. */
static void add_bytes(struct graph *g, const char *x, float scale, int zero, char bytes[16],
                      char floats[16])
{
    char of[2][16];
    put_scale(g, scale, WEIR_DTYPE_UINT8, zero, of);
    node(g, "QuantizeLinear", (const char *const[]){x, of[0], of[1]}, 3, bytes);
    node(g, "DequantizeLinear", (const char *const[]){bytes, of[0], of[1]}, 3, floats);
}

static void put_byte_weights(struct graph *g, const int64_t dims[4], char out[16])
{
    int8_t bytes[48 * 48 * 9];
    float scales[48];
    char w[16], scale[16];
    size_t n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (int8_t)pick(g, -127, 127);
    }
    for (int64_t i = 0; i < dims[0]; i++) {
        scales[i] = 0.001F + 0.002F * weir_rng_f32(&g->rng);
    }
    new_name(g, w);
    put_tensor(g, w, WEIR_DTYPE_INT8, dims, 4, bytes, n);
    new_name(g, scale);
    put_tensor(g, scale, WEIR_DTYPE_FLOAT, dims, 1, scales, (size_t)dims[0] * sizeof *scales);
    size_t at = begin_node(g, "DequantizeLinear", (const char *const[]){w, scale}, 2, out);
    put_ints(g, "axis", (int64_t[]){0}, 1);
    weir_protobuf_end(&g->nodes, at);
}

/* A quantised convolution; its bytes are the graph's last value. */
static void add_quantised(struct graph *g)
{
    int64_t c = pick(g, 1, 20), k = pick(g, 1, 40), kernel = pick(g, 1, 3), stride = pick(g, 1, 2);
    int64_t pads[4] = {pick(g, 0, 1), pick(g, 0, 1), pick(g, 0, 1), pick(g, 0, 1)};
    int64_t dims[4] = {k, c, kernel, kernel}, h = pick(g, 4, 11);
    char bytes[16], x[16], w[16], bias[16], y[16], ignored[16];
    keep(g, "x", c, h, h);
    add_bytes(g, "x", 0.02F, (int)pick(g, 0, 255), bytes, x);
    put_byte_weights(g, dims, w);
    put_floats(g, bias, &k, 1, 0, 0.3);
    size_t at = begin_node(g, "Conv", (const char *const[]){x, w, bias}, 3, y);
    put_ints(g, "pads", pads, 4);
    put_ints(g, "strides", (int64_t[]){stride, stride}, 2);
    weir_protobuf_end(&g->nodes, at);
    if (pick(g, 0, 1)) {
        char relu[16];
        node(g, "Relu", (const char *const[]){y}, 1, relu);
        memcpy(y, relu, sizeof y);
    }
    add_bytes(g, y, 0.03F, (int)pick(g, 0, 200), bytes, ignored);
    keep(g, bytes, k, h, h);
}

/* ---- the model -------------------------------------------------------------------------------- */

static void put_port(struct weir_buf *to, uint32_t number, const char *name, int type,
                     const int64_t *dims, int rank)
{
    size_t port = weir_protobuf_begin(to, number);
    weir_protobuf_put_text(to, 1, name);
    size_t outer = weir_protobuf_begin(to, 2), tensor = weir_protobuf_begin(to, 1);
    weir_protobuf_put_varint(to, 1, (uint64_t)type);
    size_t shape = rank > 0 ? weir_protobuf_begin(to, 2) : 0;
    for (int i = 0; i < rank; i++) {
        size_t dim = weir_protobuf_begin(to, 1);
        if (dims[i] < 0) {
            weir_protobuf_put_text(to, 2, "batch");
        } else {
            weir_protobuf_put_varint(to, 1, (uint64_t)dims[i]);
        }
        weir_protobuf_end(to, dim);
    }
    if (rank > 0) {
        weir_protobuf_end(to, shape);
    }
    weir_protobuf_end(to, tensor);
    weir_protobuf_end(to, outer);
    weir_protobuf_end(to, port);
}

static void put_model(struct graph *g, int out_type, struct weir_buf *to)
{
    const int64_t dims[] = {-1, g->values[0].c, g->values[0].h, g->values[0].w};
    weir_protobuf_put_varint(to, 1, 8);
    size_t graph = weir_protobuf_begin(to, 7);
    ck_assert_int_eq(weir_buf_append(to, g->nodes.data, g->nodes.len), WEIR_OK);
    ck_assert_int_eq(weir_buf_append(to, g->weights.data, g->weights.len), WEIR_OK);
    put_port(to, 11, "x", WEIR_DTYPE_FLOAT, dims, 4);
    put_port(to, 12, g->values[g->n_values - 1].name, out_type, NULL, 0);
    weir_protobuf_end(to, graph);
    size_t opset = weir_protobuf_begin(to, 8);
    weir_protobuf_put_text(to, 1, "");
    weir_protobuf_put_varint(to, 2, 14);
    weir_protobuf_end(to, opset);
    ck_assert_int_eq(to->status, WEIR_OK);
}

/* ---- both ways -------------------------------------------------------------------------------- */

static struct weir_onnx *load(const struct weir_buf *model, bool only_interprets)
{
    const struct weir_onnx_limits limits = {.n_threads = 2, .only_interprets = only_interprets};
    struct weir_onnx *onnx;
    struct weir_error err;
    ck_assert_msg(weir_onnx_load(model->data, model->len, &limits, &onnx, &err) == WEIR_OK, "%s",
                  err.message);
    return onnx;
}

static struct weir_tensor *run(struct weir_onnx *onnx, struct weir_tensor *x)
{
    struct weir_tensor *y;
    struct weir_error err;
    ck_assert_msg(weir_onnx_run(onnx, &x, &y, &err) == WEIR_OK, "%s", err.message);
    return y;
}

static double largest_difference(const struct weir_tensor *a, const struct weir_tensor *b)
{
    double most = 1e-6, off = 0;
    ck_assert_int_eq(a->dtype, b->dtype);
    ck_assert_uint_eq(a->n_elems, b->n_elems);
    ck_assert_int_eq(a->rank, b->rank);
    ck_assert_mem_eq(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
    if (a->dtype == WEIR_DTYPE_UINT8) {
        for (size_t i = 0; i < a->n_elems; i++) {
            off = fmax(off, abs((int)((uint8_t *)a->data)[i] - (int)((uint8_t *)b->data)[i]));
        }
        return off;
    }
    for (size_t i = 0; i < a->n_elems; i++) {
        double x = ((float *)a->data)[i], y = ((float *)b->data)[i];
        most = fmax(most, fabs(y));
        off = fmax(off, fabs(x - y));
    }
    return off / most;
}

static void compare(struct graph *g, int out_type, double most, uint64_t seed)
{
    struct weir_buf model;
    weir_buf_init(&model, BYTES_MAX);
    put_model(g, out_type, &model);
    struct weir_onnx *planned = load(&model, false), *interpreted = load(&model, true);
    static const int64_t batches[] = {1, 3, 1, 6};
    for (size_t k = 0; k < WEIR_ARRAY_LEN(batches); k++) {
        const int64_t dims[] = {batches[k], g->values[0].c, g->values[0].h, g->values[0].w};
        struct weir_tensor *x;
        struct weir_error err;
        ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 4, dims, &x, &err), WEIR_OK);
        for (size_t i = 0; i < x->n_elems; i++) {
            ((float *)x->data)[i] = (float)weir_rng_normal(&g->rng);
        }
        struct weir_tensor *a = run(planned, x), *b = run(interpreted, x);
        double off = largest_difference(a, b);
        ck_assert_msg(off <= most, "seed %llu, %lld images: %g apart", (unsigned long long)seed,
                      (long long)batches[k], off);
        weir_tensor_release(a);
        weir_tensor_release(b);
        weir_tensor_release(x);
    }
    weir_onnx_free(planned);
    weir_onnx_free(interpreted);
    weir_buf_fini(&model);
}

static void begin(struct graph *g, uint64_t seed)
{
    *g = (struct graph){.n_values = 0};
    weir_rng_init(&g->rng, seed, 1);
    weir_buf_init(&g->nodes, BYTES_MAX);
    weir_buf_init(&g->weights, BYTES_MAX);
}

static void end(struct graph *g)
{
    weir_buf_fini(&g->nodes);
    weir_buf_fini(&g->weights);
}

static uint64_t seed_of(int i)
{
    const char *given = getenv("WEIR_TEST_SEED");
    return given != NULL ? strtoull(given, NULL, 10) : (uint64_t)i + 1;
}

START_TEST(random_graphs_come_out_as_interpreted)
{
    static void (*const steps[])(struct graph * g, int from) = {
        add_conv, add_conv, add_conv, add_conv, add_pool, add_concat, add_scale};
    uint64_t seed = seed_of(_i);
    struct graph g;
    begin(&g, seed);
    keep(&g, "x", pick(&g, 0, 1) ? 3 : pick(&g, 1, 4) * 8, pick(&g, 5, 13), pick(&g, 5, 13));
    for (int64_t n = pick(&g, 2, 9); n > 0; n--) {
        int from = (int)pick(&g, WEIR_MAX(g.n_values - 3, 0), g.n_values - 1);
        steps[pick(&g, 0, (int64_t)WEIR_ARRAY_LEN(steps) - 1)](&g, from);
    }
    if (g.n_values > 1) {
        compare(&g, WEIR_DTYPE_FLOAT, 1e-4, seed);
    }
    end(&g);
}

END_TEST

START_TEST(quantised_convolutions_are_at_most_a_step_apart)
{
    uint64_t seed = seed_of(_i);
    struct graph g;
    begin(&g, seed);
    add_quantised(&g);
    compare(&g, WEIR_DTYPE_UINT8, 1, seed);
    end(&g);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("fast");
    TCase *tests = tcase_create("fast");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, random_graphs_come_out_as_interpreted, 0, N_GRAPHS);
    tcase_add_loop_test(tests, quantised_convolutions_are_at_most_a_step_apart, 0, N_GRAPHS);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
