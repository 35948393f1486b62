/*
 * Nets that are not for training fold batch norms, sums and rectifiers into the convolutions before
 * them: against the training net's own forward pass, which does not, and against the reference.
 */
#include "net_fixture.h"

#include "dnn/dnn.h"
#include <math.h>
#include <string.h>

enum { BATCH = 5 };

/* Weights as after a long training: norms and statistics of their own. */
static void stir(struct weir_net *net)
{
    size_t n_params;
    const struct weir_param *params = weir_net_params(net, &n_params);
    float *weights = weir_net_weights(net, NULL);
    struct weir_rng rng;
    weir_rng_init(&rng, 23, 0);
    for (size_t i = 0; i < n_params; i++) {
        bool is_var = strstr(params[i].name, "running_var") != NULL;
        for (size_t j = 0; params[i].n_dims == 1 && j < params[i].n_elems; j++) {
            float value = 0.3f * (float)weir_rng_normal(&rng);
            weights[params[i].first_elem + j] += is_var ? fabsf(value) : value;
        }
    }
    weir_net_weights_changed(net);
}

static struct weir_net *tiled_like(const struct weir_graph *graph, struct weir_net *other,
                                   int i_form, int32_t n_row_tiles, int32_t n_threads)
{
    struct weir_net *net =
        make_net(graph, (struct weir_net_config){.batch = BATCH,
                                                 .n_threads = n_threads,
                                                 .n_slices = n_row_tiles > 1 ? 0 : 2,
                                                 .n_row_tiles = n_row_tiles,
                                                 .precision = form_precision(i_form),
                                                 .backend = form_backend(i_form)});
    size_t n;
    float *weights = weir_net_weights(other, &n);
    memcpy(weir_net_weights(net, NULL), weights, n * sizeof(float));
    weir_net_weights_changed(net);
    return net;
}

static struct weir_net *net_like(const struct weir_graph *graph, struct weir_net *other, int i_form)
{
    return tiled_like(graph, other, i_form, 1, 2);
}

/* The length of the difference over the length. */
static double distance(const float *a, const float *b, size_t n)
{
    double difference = 0, length = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        length += (double)a[i] * (double)a[i];
    }
    return sqrt(difference / length);
}

/* Nets with row tiles against one of whole images; the same bits for any number of threads. */
static void compare_row_tiles(const struct weir_graph *graph, struct weir_net *plain,
                              struct weir_net *folded, int i_form, double tolerance,
                              const char *what)
{
    size_t n_out = BATCH * (size_t)weir_graph_output_shape(graph).c;
    for (int32_t n_row_tiles = 2; n_row_tiles <= 4; n_row_tiles++) {
        uint64_t hash = 0;
        for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
            struct weir_net *net = tiled_like(graph, plain, i_form, n_row_tiles, n_threads);
            ck_assert_int_eq(weir_net_forward(net, BATCH, NULL), WEIR_OK);
            double d = distance(weir_net_output(folded), weir_net_output(net), n_out);
            ck_assert_msg(d <= tolerance, "%s: %d row tiles, %d threads differ by %g", what,
                          n_row_tiles, n_threads, d);
            const float *out = weir_net_output(net);
            uint64_t bits = weir_hash_bytes(WEIR_HASH_BEGIN, out, n_out * sizeof *out);
            ck_assert_msg(n_threads == 1 || bits == hash, "%s: %d row tiles: bits of %d threads",
                          what, n_row_tiles, n_threads);
            hash = bits;
            weir_net_destroy(net);
        }
    }
}

static void compare(const struct weir_graph *graph, int i_form, const char *what)
{
    double tolerance = form_precision(i_form) == WEIR_PRECISION_F32 ? 1e-5 : 0.02;
    struct weir_net *plain =
        make_net(graph, (struct weir_net_config){.batch = BATCH,
                                                 .n_threads = 2,
                                                 .n_slices = 2,
                                                 .is_training = true,
                                                 .precision = form_precision(i_form),
                                                 .backend = form_backend(i_form)});
    stir(plain);
    struct weir_net *folded = net_like(graph, plain, i_form), *oracle = net_like(graph, plain, 0);
    size_t n_out = BATCH * (size_t)weir_graph_output_shape(graph).c;
    ck_assert_int_eq(weir_net_forward(plain, BATCH, NULL), WEIR_OK);
    ck_assert_int_eq(weir_net_forward(folded, BATCH, NULL), WEIR_OK);
    ck_assert_int_eq(weir_net_forward(oracle, BATCH, NULL), WEIR_OK);
    double d = distance(weir_net_output(plain), weir_net_output(folded), n_out);
    ck_assert_msg(d <= tolerance, "%s: folded differs by %g", what, d);
    d = distance(weir_net_output(oracle), weir_net_output(folded), n_out);
    ck_assert_msg(d <= tolerance, "%s: differs from the reference by %g", what, d);
    if (form_backend(i_form) == &weir_onednn_backend) {
        compare_row_tiles(graph, plain, folded, i_form, tolerance, what);
    }
    weir_net_input(folded)[1] = NAN;
    ck_assert_int_eq(weir_net_forward(folded, BATCH, NULL), WEIR_OK);
    ck_assert_msg(isnan(weir_net_output(folded)[0]), "%s: NaN was lost", what);
    weir_net_destroy(plain);
    weir_net_destroy(folded);
    weir_net_destroy(oracle);
}

static void compare_many(int i_form)
{
    for (uint64_t seed = 0; has_form(i_form) && seed < 40; seed++) {
        char what[32];
        struct weir_graph *graph =
            seed == 0 ? small_graph() : random_graph(seed, 1 + (int)(seed % 6), NULL);
        snprintf(what, sizeof(what), "seed %d", (int)seed);
        compare(graph, i_form, what);
        weir_graph_destroy(graph);
    }
}

START_TEST(row_tiles_are_for_inference_by_onednn)
{
    struct weir_graph *graph = small_graph();
    struct weir_error err = {0};
    struct weir_net *net = NULL;
    struct weir_net_config config = {.batch = 1, .n_row_tiles = 2, .is_training = true};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_UNSUPPORTED);
    config =
        (struct weir_net_config){.batch = 1, .n_row_tiles = 2, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "n_bands") != NULL, "%s", err.message);
    config.n_row_tiles = 17;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(folded_nets_answer_as_they_are_in_f32)
{
    compare_many(1);
}

END_TEST

START_TEST(folded_nets_answer_as_they_are_in_bf16)
{
    compare_many(3);
}

END_TEST

/* Check runs each test in a process of its own: here oneDNN has fast code for very little. */
START_TEST(an_old_processor_folds_too)
{
    if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41) == dnnl_success) {
        compare_many(1);
    }
}

END_TEST

/* x -> conv -> bn -> relu -> conv -> bn -> add x -> relu -> conv -> relu -> linear -> relu -> loss.
 */
START_TEST(what_is_folded_keeps_its_place_among_the_parameters)
{
    const struct weir_conv_params conv = {
        .k = 8, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1};
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){8, 9, 9}), y;
    x = weir_graph_conv(graph, "conv0", x, &conv);
    y = weir_graph_conv(graph, "conv1", x, &conv);
    y = weir_graph_batch_norm(graph, "bn1", y);
    y = weir_graph_relu(graph, "relu1", y);
    y = weir_graph_conv(graph, "conv2", y, &conv);
    y = weir_graph_batch_norm(graph, "bn2", y);
    y = weir_graph_add(graph, "add", x, y);
    y = weir_graph_relu(graph, "relu2", y);
    y = weir_graph_conv(graph, "conv3", y, &conv);
    y = weir_graph_relu(graph, "relu3", y);
    y = weir_graph_linear(graph, "fc", y, 5, true);
    y = weir_graph_relu(graph, "relu4", y);
    weir_graph_softmax_loss(graph, "loss", y);
    compare(graph, N_BACKENDS - 1, "by hand");
    struct weir_net *nets[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        nets[i] = make_net(
            graph, (struct weir_net_config){.batch = 1, .n_threads = 1, .backend = backends[i]});
    }
    const struct weir_param *a = weir_net_params(nets[0], &n[0]);
    const struct weir_param *b = weir_net_params(nets[1], &n[1]);
    ck_assert_uint_eq(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        ck_assert_str_eq(a[i].name, b[i].name);
        ck_assert_uint_eq(a[i].first_elem, b[i].first_elem);
    }
    weir_net_destroy(nets[0]);
    weir_net_destroy(nets[1]);
    weir_graph_destroy(graph);
}

END_TEST

WEIR_TEST_MAIN("fold", row_tiles_are_for_inference_by_onednn, folded_nets_answer_as_they_are_in_f32,
               folded_nets_answer_as_they_are_in_bf16, an_old_processor_folds_too,
               what_is_folded_keeps_its_place_among_the_parameters)
