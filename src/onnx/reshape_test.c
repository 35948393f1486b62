/*
 * A file whose inputs have other shapes than it says: a small graph as detectors have it, which halves a picture,
 * doubles it again by a transposed convolution and adds both ways, with its weights among its inputs. Its answers are
 * those of the interpreter, at sizes that are drawn (WEIR_TEST_SEED), more of them than plans are kept.
 */
#include "onnx_private.h"

#include "base/protobuf.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "fast/fast.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX  ((size_t)1 << 20)
#define CHANNELS  3
#define FEATURES  8
#define N_SHAPES  (2 * FAST_PLANS_MAX + 3)
#define TOLERANCE 1e-4F

/* ---- the file --------------------------------------------------------------------------------- */

static void put_port(struct weir_buf *graph, uint32_t field, const char *name, const int64_t *dims,
                     int rank)
{
    size_t port = weir_protobuf_begin(graph, field);
    weir_protobuf_put_text(graph, 1, name);
    size_t type = weir_protobuf_begin(graph, 2), tensor = weir_protobuf_begin(graph, 1);
    weir_protobuf_put_varint(graph, 1, WEIR_DTYPE_FLOAT);
    size_t shape = weir_protobuf_begin(graph, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = weir_protobuf_begin(graph, 1);
        weir_protobuf_put_varint(graph, 1, (uint64_t)dims[i]);
        weir_protobuf_end(graph, dim);
    }
    weir_protobuf_end(graph, shape);
    weir_protobuf_end(graph, tensor);
    weir_protobuf_end(graph, type);
    weir_protobuf_end(graph, port);
}

/* An initializer that stands among the inputs, too. */
static void put_weights(struct weir_buf *graph, struct weir_rng *rng, const char *name,
                        const int64_t dims[4])
{
    const size_t n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    WEIR_AUTO(weir_auto_free) float *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)weir_rng_normal(rng);
    }
    size_t tensor = weir_protobuf_begin(graph, 5);
    for (int i = 0; i < 4; i++) {
        weir_protobuf_put_varint(graph, 1, (uint64_t)dims[i]);
    }
    weir_protobuf_put_varint(graph, 2, WEIR_DTYPE_FLOAT);
    weir_protobuf_put_text(graph, 8, name);
    weir_protobuf_put_bytes(graph, 9, values, n * sizeof *values);
    weir_protobuf_end(graph, tensor);
    put_port(graph, 11, name, dims, 4);
}

static void put_node(struct weir_buf *graph, const char *type, const char *const in[2],
                     const char *out, uint64_t stride)
{
    size_t node = weir_protobuf_begin(graph, 1);
    for (int i = 0; i < 2 && in[i] != NULL; i++) {
        weir_protobuf_put_text(graph, 1, in[i]);
    }
    weir_protobuf_put_text(graph, 2, out);
    weir_protobuf_put_text(graph, 4, type);
    if (stride > 0) {
        size_t attribute = weir_protobuf_begin(graph, 5);
        weir_protobuf_put_text(graph, 1, "strides");
        weir_protobuf_put_varint(graph, 8, stride);
        weir_protobuf_put_varint(graph, 8, stride);
        weir_protobuf_put_varint(graph, 20, ONNX_ATTRIBUTE_INTS);
        weir_protobuf_end(graph, attribute);
    }
    weir_protobuf_end(graph, node);
}

/* down = Conv(x) of a stride, up = ConvTranspose(down), side = Conv(x), y = up + side; a Flatten behind it, if asked for. */
static void make_file(struct weir_rng *rng, bool is_flat, struct weir_buf *out)
{
    static const int64_t fixed[] = {10, CHANNELS, 8, 8}, answer[] = {10, FEATURES, 8, 8};
    static const int64_t down[] = {FEATURES, CHANNELS, 2, 2}, up[] = {FEATURES, FEATURES, 2, 2},
                         side[] = {FEATURES, CHANNELS, 1, 1};
    weir_buf_init(out, FILE_MAX);
    weir_protobuf_put_varint(out, 1, 4);
    size_t graph = weir_protobuf_begin(out, 7);
    put_node(out, "Conv", (const char *[]){"x", "w.down"}, "down", 2);
    put_node(out, "ConvTranspose", (const char *[]){"down", "w.up"}, "up", 2);
    put_node(out, "Conv", (const char *[]){"x", "w.side"}, "side", 0);
    put_node(out, "Add", (const char *[]){"up", "side"}, is_flat ? "sum" : "y", 0);
    if (is_flat) {
        put_node(out, "Flatten", (const char *[]){"sum", NULL}, "y", 0);
    }
    weir_protobuf_put_text(out, 2, "pyramid");
    put_port(out, 11, "x", fixed, 4);
    put_weights(out, rng, "w.down", down);
    put_weights(out, rng, "w.up", up);
    put_weights(out, rng, "w.side", side);
    put_port(out, 12, "y", answer, is_flat ? 2 : 4);
    put_port(out, 13, "up", answer, 4);
    weir_protobuf_end(out, graph);
    size_t opset = weir_protobuf_begin(out, 8);
    weir_protobuf_put_varint(out, 2, 9);
    weir_protobuf_end(out, opset);
    ck_assert_int_eq(out->status, WEIR_OK);
}

static struct weir_onnx *load(const struct weir_buf *file, bool only_interprets)
{
    const struct weir_onnx_limits limits = {.n_threads = 1, .only_interprets = only_interprets};
    struct weir_onnx *onnx;
    struct weir_error err;
    ck_assert_msg(weir_onnx_load(file->data, file->len, &limits, &onnx, &err) == WEIR_OK, "%s",
                  err.message);
    return onnx;
}

static void reshape(const struct weir_buf *file, const struct weir_onnx_port *said,
                    struct weir_buf *out)
{
    struct weir_error err;
    ck_assert_msg(weir_onnx_reshape(file->data, file->len, said, 1, out, &err) == WEIR_OK, "%s",
                  err.message);
}

static const struct weir_onnx_port any_size = {
    .name = "x", .rank = 4, .dims = {-1, CHANNELS, -1, -1}};

/* ---- runs ------------------------------------------------------------------------------------- */

static struct weir_tensor *picture(struct weir_rng *rng, int64_t n, int64_t height, int64_t width)
{
    const int64_t dims[] = {n, CHANNELS, height, width};
    struct weir_tensor *x;
    struct weir_error err;
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, 4, dims, &x, &err), WEIR_OK);
    for (size_t i = 0; i < x->n_elems; i++) {
        ((float *)x->data)[i] = (float)weir_rng_normal(rng);
    }
    return x;
}

static struct weir_tensor *run(struct weir_onnx *onnx, struct weir_tensor *x)
{
    struct weir_tensor *y;
    struct weir_error err;
    ck_assert_msg(weir_onnx_run(onnx, &x, &y, &err) == WEIR_OK, "%s", err.message);
    return y;
}

START_TEST(weights_among_the_inputs_are_constants)
{
    struct weir_rng rng;
    struct weir_buf file;
    size_t n_in;
    weir_rng_init(&rng, 1, 0);
    make_file(&rng, false, &file);
    struct weir_onnx *onnx = load(&file, false);
    const struct weir_onnx_port *in = weir_onnx_inputs(onnx, &n_in);
    ck_assert(n_in == 1 && strcmp(in[0].name, "x") == 0 && in[0].dims[0] == 10);
    struct weir_tensor *x = picture(&rng, 10, 8, 8);
    weir_tensor_release(run(onnx, x));
    ck_assert_uint_eq(fast_n_interpreted(onnx->fast), 0);
    weir_tensor_release(x);
    weir_onnx_free(onnx);
    weir_buf_fini(&file);
}

END_TEST

static void compare(struct weir_onnx *planned, struct weir_onnx *interpreted, struct weir_tensor *x)
{
    struct weir_tensor *a = run(planned, x), *b = run(interpreted, x);
    const float *got = a->data, *wanted = b->data;
    ck_assert(a->rank == 4 && a->dims[2] == x->dims[2] && a->dims[3] == x->dims[3]);
    ck_assert_uint_eq(a->n_elems, b->n_elems);
    for (size_t i = 0; i < a->n_elems; i++) {
        ck_assert_msg(fabsf(got[i] - wanted[i]) <= TOLERANCE, "%lld by %lld, y[%zu]: %g, not %g",
                      (long long)x->dims[3], (long long)x->dims[2], i, (double)got[i],
                      (double)wanted[i]);
    }
    weir_tensor_release(a);
    weir_tensor_release(b);
}

START_TEST(a_model_runs_with_the_shapes_that_were_said)
{
    struct weir_rng rng;
    struct weir_buf file, other;
    size_t n_in, n_out;
    const char *given = getenv("WEIR_TEST_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 2;
    printf("WEIR_TEST_SEED=%llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    make_file(&rng, false, &file);
    reshape(&file, &any_size, &other);
    struct weir_onnx *planned = load(&other, false), *interpreted = load(&other, true);
    const struct weir_onnx_port *in = weir_onnx_inputs(planned, &n_in);
    ck_assert(n_in == 1 && in->rank == 4 && in->dims[0] == -1 && in->dims[1] == CHANNELS &&
              in->dims[2] == -1 && in->dims[3] == -1 && in->dtype == WEIR_DTYPE_FLOAT);
    ck_assert_int_eq(weir_onnx_outputs(planned, &n_out)->rank, -1);
    for (int i = 0; i < N_SHAPES; i++) { /* each twice: the second time, a plan is repeated */
        const int64_t height = 2 * (int64_t)(1 + weir_rng_below(&rng, 12));
        const int64_t width = 2 * (int64_t)(1 + weir_rng_below(&rng, 12));
        struct weir_tensor *x = picture(&rng, 1 + (int64_t)weir_rng_below(&rng, 2), height, width);
        compare(planned, interpreted, x);
        compare(planned, interpreted, x);
        weir_tensor_release(x);
    }
    weir_onnx_free(planned);
    weir_onnx_free(interpreted);
    weir_buf_fini(&file);
    weir_buf_fini(&other);
}

END_TEST

START_TEST(shapes_that_the_file_says_itself_change_nothing)
{
    static const struct weir_onnx_port same = {.name = "x",
                                               .rank = 4,
                                               .dims = {10, CHANNELS, 8, 8}},
                                       unknown = {.name = "z", .rank = 1, .dims = {3}};

    struct weir_rng rng;
    struct weir_buf file, other;
    weir_rng_init(&rng, 3, 0);
    make_file(&rng, false, &file);
    reshape(&file, &same, &other);
    ck_assert_uint_eq(other.len, 0);
    weir_buf_fini(&other);
    reshape(&file, &unknown, &other);
    ck_assert_uint_eq(other.len, 0);
    weir_buf_fini(&other);
    weir_buf_fini(&file);
}

END_TEST

START_TEST(what_does_not_fit_is_named)
{
    static const struct weir_onnx_port flat = {.name = "x", .rank = 2, .dims = {-1, 3}};

    struct weir_rng rng;
    struct weir_buf file, other;
    struct weir_error err;
    struct weir_tensor *out;
    weir_rng_init(&rng, 4, 0);
    make_file(&rng, false, &file);
    ck_assert_int_eq(weir_onnx_reshape(file.data, file.len, &flat, 1, &other, &err),
                     WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "input \"x\" has 4 dimensions, and its shape was said with 2");
    reshape(&file, &any_size, &other);
    struct weir_onnx *onnx = load(&other, false);
    struct weir_tensor *odd = picture(&rng, 1, 12, 7), *even = picture(&rng, 1, 12, 8);
    ck_assert_int_eq(weir_onnx_run(onnx, &odd, &out, &err), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message,
                     "the node of \"y\" (Add): 1x8x12x6 and 1x8x12x7 do not fit each other; input "
                     "\"x\" is 7 by 12: its sides must be multiples of 2, the product of the "
                     "model's strides");
    weir_tensor_release(run(onnx, even)); /* it goes on */
    weir_tensor_release(odd);
    weir_tensor_release(even);
    weir_onnx_free(onnx);
    weir_buf_fini(&file);
    weir_buf_fini(&other);
}

END_TEST

START_TEST(a_graph_that_needs_no_size_is_known)
{
    struct weir_rng rng;
    for (int is_flat = 0; is_flat < 2; is_flat++) {
        struct weir_buf file, other;
        weir_rng_init(&rng, 5, 0);
        make_file(&rng, is_flat, &file);
        struct weir_onnx *onnx = load(&file, false);
        ck_assert_int_eq(weir_onnx_is_resizable(onnx), !is_flat);
        weir_onnx_free(onnx);
        reshape(&file, &any_size, &other);
        onnx = load(&other, false);
        ck_assert(!weir_onnx_is_resizable(onnx)); /* nothing is fixed any more */
        weir_onnx_free(onnx);
        weir_buf_fini(&file);
        weir_buf_fini(&other);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("reshape");
    TCase *tests = tcase_create("reshape");
    tcase_add_test(tests, weights_among_the_inputs_are_constants);
    tcase_add_test(tests, a_model_runs_with_the_shapes_that_were_said);
    tcase_add_test(tests, shapes_that_the_file_says_itself_change_nothing);
    tcase_add_test(tests, what_does_not_fit_is_named);
    tcase_add_test(tests, a_graph_that_needs_no_size_is_known);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
