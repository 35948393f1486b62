/*
 * Operators in training mode. ONNX's own cases say what BatchNormalization gives for one batch; here
 * it is held to the law: a channel comes out with the mean `bias` and the deviation `scale`. Dropout
 * has no expected values but ONNX's reference's own generator's: it is held to its law, too.
 * Everything is asked of both ways to run, planned and interpreted.
 */
#include "onnx/onnx.h"

#include "base/buf.h"
#include "base/protobuf.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define OUTPUTS_MAX 3

/** A model that is written. */
struct writer {
    struct weir_buf graph;
};

static void begin(struct writer *w)
{
    weir_buf_init(&w->graph, (size_t)4 << 20);
}

static void put_constant(struct writer *w, const char *name, int type, const int64_t *dims,
                         int rank, const void *data, size_t n_bytes)
{
    size_t at = weir_protobuf_begin(&w->graph, 5);
    for (int i = 0; i < rank; i++) {
        weir_protobuf_put_varint(&w->graph, 1, (uint64_t)dims[i]);
    }
    weir_protobuf_put_varint(&w->graph, 2, (uint64_t)type);
    weir_protobuf_put_text(&w->graph, 8, name);
    weir_protobuf_put_bytes(&w->graph, 9, data, n_bytes);
    weir_protobuf_end(&w->graph, at);
}

/* Names, divided by spaces. */
static void put_names(struct writer *w, uint32_t number, const char *names)
{
    while (*names != '\0') {
        size_t len = strcspn(names, " ");
        weir_protobuf_put_bytes(&w->graph, number, names, len);
        names += len + (names[len] == ' ');
    }
}

static size_t begin_node(struct writer *w, const char *type, const char *in, const char *out)
{
    size_t at = weir_protobuf_begin(&w->graph, 1);
    put_names(w, 1, in);
    put_names(w, 2, out);
    weir_protobuf_put_text(&w->graph, 4, type);
    return at;
}

static void put_int(struct writer *w, const char *name, int64_t value)
{
    size_t at = weir_protobuf_begin(&w->graph, 5);
    weir_protobuf_put_text(&w->graph, 1, name);
    weir_protobuf_put_varint(&w->graph, 3, (uint64_t)value);
    weir_protobuf_put_varint(&w->graph, 20, 2);
    weir_protobuf_end(&w->graph, at);
}

static void node(struct writer *w, const char *type, const char *in, const char *out)
{
    weir_protobuf_end(&w->graph, begin_node(w, type, in, out));
}

static void put_port(struct writer *w, uint32_t number, const char *name, int type,
                     const int64_t *dims, int rank)
{
    size_t port = weir_protobuf_begin(&w->graph, number);
    weir_protobuf_put_text(&w->graph, 1, name);
    size_t outer = weir_protobuf_begin(&w->graph, 2), tensor = weir_protobuf_begin(&w->graph, 1);
    weir_protobuf_put_varint(&w->graph, 1, (uint64_t)type);
    size_t shape = weir_protobuf_begin(&w->graph, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = weir_protobuf_begin(&w->graph, 1);
        if (dims[i] < 0) {
            weir_protobuf_put_text(&w->graph, 2, "batch");
        } else {
            weir_protobuf_put_varint(&w->graph, 1, (uint64_t)dims[i]);
        }
        weir_protobuf_end(&w->graph, dim);
    }
    weir_protobuf_end(&w->graph, shape);
    weir_protobuf_end(&w->graph, tensor);
    weir_protobuf_end(&w->graph, outer);
    weir_protobuf_end(&w->graph, port);
}

/* An output whose type and shape the file does not say. */
static void put_output(struct writer *w, const char *name)
{
    size_t port = weir_protobuf_begin(&w->graph, 12);
    weir_protobuf_put_text(&w->graph, 1, name);
    weir_protobuf_end(&w->graph, port);
}

static struct weir_onnx *load(const struct writer *w, bool only_interprets)
{
    const struct weir_onnx_limits limits = {.n_threads = 2, .only_interprets = only_interprets};
    struct weir_onnx *onnx;
    struct weir_error err;
    struct weir_buf model;
    weir_buf_init(&model, (size_t)4 << 20);
    weir_protobuf_put_varint(&model, 1, 8);
    weir_protobuf_put_bytes(&model, 7, w->graph.data, w->graph.len);
    size_t opset = weir_protobuf_begin(&model, 8);
    weir_protobuf_put_text(&model, 1, "");
    weir_protobuf_put_varint(&model, 2, 15);
    weir_protobuf_end(&model, opset);
    ck_assert_int_eq(model.status, WEIR_OK);
    ck_assert_msg(weir_onnx_load(model.data, model.len, &limits, &onnx, &err) == WEIR_OK, "%s",
                  err.message);
    weir_buf_fini(&model);
    return onnx;
}

static void run(struct weir_onnx *onnx, struct weir_tensor *const *in, struct weir_tensor **out)
{
    struct weir_error err;
    ck_assert_msg(weir_onnx_run(onnx, in, out, &err) == WEIR_OK, "%s", err.message);
}

static void release(struct weir_tensor **tensors)
{
    for (size_t i = 0; i < OUTPUTS_MAX; i++) {
        weir_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

static struct weir_tensor *tensor_of(enum weir_dtype dtype, int32_t rank, const int64_t *dims)
{
    struct weir_tensor *tensor;
    struct weir_error err;
    ck_assert_int_eq(weir_tensor_create(dtype, rank, dims, &tensor, &err), WEIR_OK);
    return tensor;
}

static void fill(struct weir_tensor *tensor, uint64_t seed, double mean, double deviation)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 7);
    for (size_t i = 0; i < tensor->n_elems; i++) {
        ((float *)tensor->data)[i] = (float)(mean + deviation * weir_rng_normal(&rng));
    }
}

static bool is_equal(const struct weir_tensor *a, const struct weir_tensor *b)
{
    return a->dtype == b->dtype && a->n_elems == b->n_elems &&
           memcmp(a->data, b->data, a->n_elems * weir_dtype_bytes(a->dtype)) == 0;
}

/* ---- dropout ---------------------------------------------------------------------------------- */

#define N_DROPPED 40000

/* y, mask = Dropout(x, ratio, training): constants but x. */
static void put_dropout(struct writer *w, float ratio, const int64_t *seed)
{
    const int64_t dims[] = {-1, N_DROPPED / 10};
    const uint8_t is_training = 1;
    begin(w);
    size_t at = begin_node(w, "Dropout", "x ratio training", "y mask");
    if (seed != NULL) {
        put_int(w, "seed", *seed);
    }
    weir_protobuf_end(&w->graph, at);
    put_constant(w, "ratio", WEIR_DTYPE_FLOAT, NULL, 0, &ratio, sizeof ratio);
    put_constant(w, "training", WEIR_DTYPE_BOOL, NULL, 0, &is_training, 1);
    put_port(w, 11, "x", WEIR_DTYPE_FLOAT, dims, 2);
    put_output(w, "y");
    put_output(w, "mask");
}

static struct weir_tensor *make_x(void)
{
    struct weir_tensor *x = tensor_of(WEIR_DTYPE_FLOAT, 2, (const int64_t[]){10, N_DROPPED / 10});
    fill(x, 1, 3, 1);
    return x;
}

static const float ratios[] = {0.1F, 0.5F, 0.9F};

START_TEST(dropout_drops_the_share_that_its_ratio_says_and_scales_the_rest)
{
    const double ratio = ratios[_i], deviation = sqrt(ratio * (1 - ratio) / N_DROPPED);
    struct weir_tensor *x = make_x();
    for (int only_interprets = 0; only_interprets < 2; only_interprets++) {
        struct weir_tensor *out[OUTPUTS_MAX] = {NULL};
        struct writer w;
        put_dropout(&w, ratios[_i], &(int64_t){11});
        struct weir_onnx *onnx = load(&w, only_interprets);
        run(onnx, &x, out);
        ck_assert_int_eq(out[1]->dtype, WEIR_DTYPE_BOOL);
        ck_assert_uint_eq(out[1]->n_elems, N_DROPPED);
        int n_dropped = 0;
        for (size_t i = 0; i < N_DROPPED; i++) {
            bool is_kept = ((const uint8_t *)out[1]->data)[i] != 0;
            double given = ((const float *)x->data)[i], y = ((const float *)out[0]->data)[i];
            double expected = is_kept ? given / (1 - ratio) : 0;
            ck_assert_msg(fabs(y - expected) <= 1e-6 * fabs(expected), "element %zu: %g, not %g", i,
                          y, expected);
            n_dropped += !is_kept;
        }
        ck_assert_double_le(fabs((double)n_dropped / N_DROPPED - ratio), 5 * deviation);
        release(out);
        weir_onnx_free(onnx);
        weir_buf_fini(&w.graph);
    }
    weir_tensor_release(x);
}

END_TEST

/* What a model with the seed (NULL: none) gives for x in two runs. */
static void run_twice(struct weir_tensor *x, const int64_t *seed, bool only_interprets,
                      struct weir_tensor **first, struct weir_tensor **second)
{
    struct writer w;
    put_dropout(&w, 0.5F, seed);
    struct weir_onnx *onnx = load(&w, only_interprets);
    run(onnx, &x, first);
    run(onnx, &x, second);
    weir_onnx_free(onnx);
    weir_buf_fini(&w.graph);
}

START_TEST(a_seed_gives_one_mask_in_each_run_however_it_is_run)
{
    struct weir_tensor *planned[2][OUTPUTS_MAX] = {0}, *other[2][OUTPUTS_MAX] = {0};
    struct weir_tensor *interpreted[2][OUTPUTS_MAX] = {0}, *x = make_x();
    run_twice(x, &(int64_t){11}, false, planned[0], planned[1]);
    run_twice(x, &(int64_t){11}, true, interpreted[0], interpreted[1]);
    run_twice(x, &(int64_t){12}, false, other[0], other[1]);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(is_equal(planned[0][i], planned[1][i]));
        ck_assert(is_equal(planned[0][i], interpreted[0][i]));
        ck_assert(is_equal(planned[0][i], interpreted[1][i]));
        ck_assert(!is_equal(planned[0][i], other[0][i]));
    }
    for (size_t i = 0; i < 2; i++) {
        release(planned[i]);
        release(interpreted[i]);
        release(other[i]);
    }
    weir_tensor_release(x);
}

END_TEST

START_TEST(without_a_seed_each_run_has_a_mask_of_its_own)
{
    struct weir_tensor *first[OUTPUTS_MAX] = {NULL}, *second[OUTPUTS_MAX] = {NULL}, *x = make_x();
    run_twice(x, NULL, _i == 1, first, second);
    ck_assert(!is_equal(first[1], second[1]));
    release(first);
    release(second);
    weir_tensor_release(x);
}

END_TEST

/* A constant's dropout depends on constants alone, and yet is not computed once for all runs. */
START_TEST(a_constant_is_dropped_anew_in_each_run)
{
    float values[64], ratio = 0.5F;
    const int64_t n = 64;
    const uint8_t is_training = 1;
    struct weir_tensor *first[OUTPUTS_MAX] = {NULL}, *second[OUTPUTS_MAX] = {NULL};
    struct writer w;
    for (size_t i = 0; i < 64; i++) {
        values[i] = 1;
    }
    begin(&w);
    node(&w, "Dropout", "c ratio training", "d");
    node(&w, "Add", "x d", "y");
    put_constant(&w, "c", WEIR_DTYPE_FLOAT, &n, 1, values, sizeof values);
    put_constant(&w, "ratio", WEIR_DTYPE_FLOAT, NULL, 0, &ratio, sizeof ratio);
    put_constant(&w, "training", WEIR_DTYPE_BOOL, NULL, 0, &is_training, 1);
    put_port(&w, 11, "x", WEIR_DTYPE_FLOAT, &n, 1);
    put_output(&w, "y");
    struct weir_onnx *onnx = load(&w, _i == 1);
    struct weir_tensor *x = tensor_of(WEIR_DTYPE_FLOAT, 1, &n);
    run(onnx, &x, first);
    run(onnx, &x, second);
    ck_assert(!is_equal(first[0], second[0]));
    release(first);
    release(second);
    weir_tensor_release(x);
    weir_onnx_free(onnx);
    weir_buf_fini(&w.graph);
}

END_TEST

/* An input says whether the model trains. The dropped value has memory that other values may take
 * after it, so that a plan made in training mode must not serve the other mode wrongly. */
START_TEST(an_input_turns_training_on_and_off_between_runs)
{
    const int64_t dims[] = {4, 8, 8, 8};
    const float ratio = 0.5F;
    static const bool modes[] = {true, false, true, false, false};
    struct writer w;
    begin(&w);
    node(&w, "Sigmoid", "x", "a");
    size_t at = begin_node(&w, "Dropout", "a ratio training", "d");
    put_int(&w, "seed", 5);
    weir_protobuf_end(&w.graph, at);
    node(&w, "Tanh", "x", "e");
    node(&w, "Abs", "e", "f");
    node(&w, "Tanh", "f", "g");
    node(&w, "Sub", "d g", "y");
    put_constant(&w, "ratio", WEIR_DTYPE_FLOAT, NULL, 0, &ratio, sizeof ratio);
    put_port(&w, 11, "x", WEIR_DTYPE_FLOAT, dims, 4);
    put_port(&w, 11, "training", WEIR_DTYPE_BOOL, NULL, 0);
    put_output(&w, "y");
    struct weir_onnx *planned = load(&w, false), *interpreted = load(&w, true);
    ck_assert_int_eq(weir_onnx_rows(planned, (char[WEIR_ONNX_ROWS_BYTES]){""}),
                     WEIR_ONNX_ROWS_MIXED);
    struct weir_tensor *in[2] = {tensor_of(WEIR_DTYPE_FLOAT, 4, dims),
                                 tensor_of(WEIR_DTYPE_BOOL, 0, NULL)};
    for (size_t k = 0; k < WEIR_ARRAY_LEN(modes); k++) {
        struct weir_tensor *a[OUTPUTS_MAX] = {NULL}, *b[OUTPUTS_MAX] = {NULL};
        fill(in[0], k + 1, 0, 1);
        *(uint8_t *)in[1]->data = modes[k];
        run(planned, in, a);
        run(interpreted, in, b);
        for (size_t i = 0; i < in[0]->n_elems; i++) {
            double got = ((const float *)a[0]->data)[i], expected = ((const float *)b[0]->data)[i];
            ck_assert_msg(fabs(got - expected) <= 1e-5, "run %zu, element %zu: %g, not %g", k, i,
                          got, expected);
        }
        release(a);
        release(b);
    }
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_onnx_free(planned);
    weir_onnx_free(interpreted);
    weir_buf_fini(&w.graph);
}

END_TEST

/* ---- batch normalisation ---------------------------------------------------------------------- */

#define CHANNELS 3
#define PIXELS   35

static const float scale[CHANNELS] = {1, 2, 0.5F}, bias[CHANNELS] = {0, -3, 8};
static const float given_mean[CHANNELS] = {1, 2, 3}, given_variance[CHANNELS] = {4, 5, 6};

/* `in` ▸ BatchNormalization ▸ `out` in training mode, and its constants. */
static void put_norm(struct writer *w, const char *in, const char *out)
{
    const int64_t n = CHANNELS;
    size_t at = begin_node(w, "BatchNormalization", in, out);
    put_int(w, "training_mode", 1);
    weir_protobuf_end(&w->graph, at);
    put_constant(w, "s", WEIR_DTYPE_FLOAT, &n, 1, scale, sizeof scale);
    put_constant(w, "b", WEIR_DTYPE_FLOAT, &n, 1, bias, sizeof bias);
    put_constant(w, "m", WEIR_DTYPE_FLOAT, &n, 1, given_mean, sizeof given_mean);
    put_constant(w, "v", WEIR_DTYPE_FLOAT, &n, 1, given_variance, sizeof given_variance);
}

/** Mean and variance of a channel of N×C×H×W floats. */
static void moments_of(const struct weir_tensor *x, size_t c, double *out_mean,
                       double *out_variance)
{
    double sum = 0, squares = 0, n = (double)x->dims[0] * PIXELS;
    for (size_t i = 0; i < x->n_elems; i++) {
        double value = i / PIXELS % CHANNELS == c ? ((const float *)x->data)[i] : 0;
        sum += value;
        squares += value * value;
    }
    *out_mean = sum / n;
    *out_variance = squares / n - *out_mean * *out_mean;
}

static void check_norm(const struct weir_tensor *x, struct weir_tensor **out)
{
    ck_assert(out[0]->n_elems == x->n_elems);
    for (size_t c = 0; c < CHANNELS; c++) {
        double mean, variance, y_mean, y_variance;
        moments_of(x, c, &mean, &variance);
        moments_of(out[0], c, &y_mean, &y_variance);
        ck_assert_double_eq_tol(y_mean, bias[c], 1e-4);
        ck_assert_double_eq_tol(sqrt(y_variance), scale[c], 1e-4);
        ck_assert_double_eq_tol(((float *)out[1]->data)[c], 0.9 * given_mean[c] + 0.1 * mean, 1e-5);
        ck_assert_double_eq_tol(((float *)out[2]->data)[c],
                                0.9 * given_variance[c] + 0.1 * variance, 1e-5);
    }
}

START_TEST(a_channel_is_normalised_by_its_own_moments_and_moves_the_given_ones)
{
    static const int64_t batches[] = {2, 6, 1, 6};
    const int64_t free_dims[] = {-1, CHANNELS, 5, 7};
    struct writer w;
    begin(&w);
    put_norm(&w, "x s b m v", "y mean variance");
    put_port(&w, 11, "x", WEIR_DTYPE_FLOAT, free_dims, 4);
    put_output(&w, "y");
    put_output(&w, "mean");
    put_output(&w, "variance");
    struct weir_onnx *onnx = load(&w, _i == 1);
    for (size_t k = 0; k < WEIR_ARRAY_LEN(batches); k++) {
        struct weir_tensor *out[OUTPUTS_MAX] = {NULL};
        struct weir_tensor *x =
            tensor_of(WEIR_DTYPE_FLOAT, 4, (const int64_t[]){batches[k], CHANNELS, 5, 7});
        fill(x, k + 1, 2, 3);
        run(onnx, &x, out);
        check_norm(x, out);
        release(out);
        weir_tensor_release(x);
    }
    weir_onnx_free(onnx);
    weir_buf_fini(&w.graph);
}

END_TEST

/* Neither a convolution in front of it takes it into itself, nor are its images run in pieces. */
START_TEST(a_batch_is_normalised_as_one_behind_a_convolution)
{
    const int64_t free_dims[] = {-1, CHANNELS, 5, 7}, kernel_dims[] = {CHANNELS, CHANNELS, 1, 1};
    const float kernel[CHANNELS * CHANNELS] = {1, 0, 2, 0, 1, 0, -1, 0, 1};
    struct writer w;
    begin(&w);
    node(&w, "Conv", "x k", "a");
    put_norm(&w, "a s b m v", "n");
    node(&w, "Identity", "n", "y");
    put_constant(&w, "k", WEIR_DTYPE_FLOAT, kernel_dims, 4, kernel, sizeof kernel);
    put_port(&w, 11, "x", WEIR_DTYPE_FLOAT, free_dims, 4);
    put_output(&w, "y");
    struct weir_onnx *onnx = load(&w, _i == 1);
    ck_assert_int_eq(weir_onnx_rows(onnx, (char[WEIR_ONNX_ROWS_BYTES]){""}), WEIR_ONNX_ROWS_MIXED);
    struct weir_tensor *x = tensor_of(WEIR_DTYPE_FLOAT, 4, (const int64_t[]){20, CHANNELS, 5, 7});
    for (uint64_t k = 1; k <= 3; k++) {
        struct weir_tensor *out[OUTPUTS_MAX] = {NULL};
        fill(x, k, 2, 3);
        run(onnx, &x, out);
        for (size_t c = 0; c < CHANNELS; c++) {
            double mean, variance;
            moments_of(out[0], c, &mean, &variance);
            ck_assert_double_eq_tol(mean, bias[c], 1e-4);
            ck_assert_double_eq_tol(sqrt(variance), scale[c], 1e-4);
        }
        release(out);
    }
    weir_tensor_release(x);
    weir_onnx_free(onnx);
    weir_buf_fini(&w.graph);
}

END_TEST

/* ONNX takes a list of numbers as one channel. */
START_TEST(a_list_of_numbers_is_one_channel)
{
    const int64_t n = 4, one = 1;
    const float values[] = {1, 2, 3, 6}, single = 1, none = 0; /* mean 3, variance 3.5 */
    struct weir_tensor *out[OUTPUTS_MAX] = {NULL}, *x = tensor_of(WEIR_DTYPE_FLOAT, 1, &n);
    struct writer w;
    begin(&w);
    size_t at = begin_node(&w, "BatchNormalization", "x s b m v", "y mean variance");
    put_int(&w, "training_mode", 1);
    weir_protobuf_end(&w.graph, at);
    put_constant(&w, "s", WEIR_DTYPE_FLOAT, &one, 1, &single, sizeof single);
    put_constant(&w, "b", WEIR_DTYPE_FLOAT, &one, 1, &none, sizeof none);
    put_constant(&w, "m", WEIR_DTYPE_FLOAT, &one, 1, &none, sizeof none);
    put_constant(&w, "v", WEIR_DTYPE_FLOAT, &one, 1, &none, sizeof none);
    put_port(&w, 11, "x", WEIR_DTYPE_FLOAT, &n, 1);
    put_output(&w, "y");
    put_output(&w, "mean");
    put_output(&w, "variance");
    memcpy(x->data, values, sizeof values);
    struct weir_onnx *onnx = load(&w, _i == 1);
    run(onnx, &x, out);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(((float *)out[0]->data)[i], (values[i] - 3) / sqrt(3.5), 1e-5);
    }
    ck_assert_double_eq_tol(*(float *)out[1]->data, 0.3, 1e-6);
    ck_assert_double_eq_tol(*(float *)out[2]->data, 0.35, 1e-6);
    release(out);
    weir_tensor_release(x);
    weir_onnx_free(onnx);
    weir_buf_fini(&w.graph);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("training");
    TCase *tests = tcase_create("training");
    tcase_add_loop_test(tests, dropout_drops_the_share_that_its_ratio_says_and_scales_the_rest, 0,
                        (int)WEIR_ARRAY_LEN(ratios));
    tcase_add_test(tests, a_seed_gives_one_mask_in_each_run_however_it_is_run);
    tcase_add_loop_test(tests, without_a_seed_each_run_has_a_mask_of_its_own, 0, 2);
    tcase_add_loop_test(tests, a_constant_is_dropped_anew_in_each_run, 0, 2);
    tcase_add_test(tests, an_input_turns_training_on_and_off_between_runs);
    tcase_add_loop_test(tests, a_channel_is_normalised_by_its_own_moments_and_moves_the_given_ones,
                        0, 2);
    tcase_add_loop_test(tests, a_batch_is_normalised_as_one_behind_a_convolution, 0, 2);
    tcase_add_loop_test(tests, a_list_of_numbers_is_one_channel, 0, 2);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
