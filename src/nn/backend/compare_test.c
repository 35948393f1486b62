/*
 * The oneDNN back-end against the reference: the same graph, weights and batch in both; loss,
 * outputs, every gradient, running statistics and inference must agree. And both against the slope
 * of the loss along a random direction.
 *
 * Tolerance: 1e-5 of the largest element of each tensor (f32 sums of up to 2000 terms in another
 * order; the worst seen is 2e-6), of the gradient of a bias twice that: its terms cancel (worst seen
 * 1.1e-5, with AVX2 alone). Batch norms of a few values divide by small deviations, so random
 * networks get 5e-4 (worst seen: below 1e-4).
 */
#include "compare_nets.h"
#include "op.h"
#include "test_backends.h"

#define TOLERANCE        1e-5
#define RANDOM_TOLERANCE 5e-4
/* Winograd's rounding is several times that of direct sums (worst seen 1.4e-5). */
#define WINOGRAD_FACTOR 4

static struct weir_net *make_net(const struct weir_graph *graph, const struct weir_backend *backend,
                                 enum weir_convolution convolution, int32_t batch, int32_t n_slices)
{
    return compared_net(graph, (struct weir_net_config){.batch = batch,
                                                        .n_threads = 2,
                                                        .n_slices = n_slices,
                                                        .is_training = true,
                                                        .convolution = convolution,
                                                        .backend = backend});
}

/* The reference convolves directly; oneDNN may use Winograd. */
static struct net_pair make_pair(const struct weir_graph *graph, int32_t batch,
                                 enum weir_convolution convolution)
{
    struct net_pair pair = {0};
    for (int i = 0; i < 2; i++) {
        pair.nets[i] =
            make_net(graph, backends[i], i == 0 ? WEIR_CONVOLUTION_DIRECT : convolution, batch, 2);
    }
    return pair;
}

static void compare_pair(const struct weir_graph *graph, struct net_pair *pair, int32_t batch,
                         double tolerance, const char *what)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_net_step(pair->nets[i], 7, NULL, NULL, &pair->results[i]), WEIR_OK);
    }
    size_t n_out = (size_t)weir_graph_output_shape(graph).c;
    double d = distance(weir_net_output(pair->nets[0]), weir_net_output(pair->nets[1]),
                        n_out * (size_t)batch, 1e-6);
    ck_assert_msg(d <= tolerance, "%s: outputs differ by %g", what, d);
    ck_assert_double_eq_tol(pair->results[0].loss, pair->results[1].loss,
                            tolerance * (1 + pair->results[0].loss));
    ck_assert_int_eq(pair->results[0].n_labelled, batch - 1);
    ck_assert_int_eq(pair->results[1].n_labelled, batch - 1);
    compare_params(pair, tolerance, what);
    compare_forward(pair, n_out, batch, tolerance, what);
    compare_forward(pair, n_out, batch - 2, tolerance, what);
    free_pair(pair);
}

static void compare_backends(const struct weir_graph *graph, int32_t batch, double tolerance,
                             const char *what)
{
    struct net_pair pair = make_pair(graph, batch, WEIR_CONVOLUTION_DIRECT);
    compare_pair(graph, &pair, batch, tolerance, what);
    pair = make_pair(graph, batch, other_convolution());
    compare_pair(graph, &pair, batch, WINOGRAD_FACTOR * tolerance, what);
}

static const int32_t odd_channels[] = {1, 3, 17, 19, 33};
static const int32_t odd_kernels[] = {1, 3, 5, 7};

START_TEST(convolutions_of_odd_shapes)
{
    int n_cases = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(odd_channels); i++) {
        for (size_t j = 0; j < WEIR_ARRAY_LEN(odd_kernels); j++) {
            for (int32_t stride = 1; stride <= 2; stride++) {
                if ((i + j + (size_t)stride) % WEIR_TEST_TIMES(1, 2) != 0) {
                    continue;
                }
                int32_t c = odd_channels[i], size = odd_kernels[j];
                int32_t k = odd_channels[(i + j + (size_t)stride) % WEIR_ARRAY_LEN(odd_channels)];
                int32_t pad = n_cases++ % 3 == 0 ? 0 : size / 2;
                struct weir_conv_params p = {.k = k,
                                             .kernel_h = size,
                                             .kernel_w = size,
                                             .stride = stride,
                                             .pad_h = pad,
                                             .pad_w = pad,
                                             .has_bias = n_cases % 2 == 0};
                char what[96];
                snprintf(what, sizeof(what), "c %d, k %d, kernel %d, stride %d, pad %d", c, k, size,
                         stride, pad);
                struct weir_graph *graph = conv_graph(c, &p);
                compare_backends(graph, 5, TOLERANCE, what);
                weir_graph_destroy(graph);
            }
        }
    }
}

END_TEST

START_TEST(kernels_that_are_not_square)
{
    struct weir_conv_params p = {.k = 19,
                                 .kernel_h = 5,
                                 .kernel_w = 3,
                                 .stride = 2,
                                 .pad_h = 2,
                                 .pad_w = 0,
                                 .has_bias = true};
    struct weir_graph *graph = conv_graph(17, &p);
    compare_backends(graph, 5, TOLERANCE, "5x3");
    weir_graph_destroy(graph);
}

END_TEST

/* Depthwise (one and two outputs a channel), groups, dilation, and both. */
START_TEST(convolutions_in_groups_and_with_gaps)
{
    static const struct {
        int32_t c, k, groups, dilation, stride, pad;
    } forms[] = {{17, 17, 17, 1, 1, 1}, {32, 32, 32, 1, 2, 1}, {3, 6, 3, 1, 1, 1},
                 {12, 8, 4, 1, 2, 1},   {32, 32, 2, 1, 1, 1},  {5, 7, 1, 2, 1, 2},
                 {16, 16, 1, 3, 2, 3},  {6, 9, 3, 2, 1, 2},    {16, 16, 16, 2, 1, 2}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        struct weir_conv_params p = {.k = forms[i].k,
                                     .kernel_h = 3,
                                     .kernel_w = 3,
                                     .stride = forms[i].stride,
                                     .pad_h = forms[i].pad,
                                     .pad_w = forms[i].pad,
                                     .has_bias = i % 2 == 0,
                                     .groups = forms[i].groups,
                                     .dilation = forms[i].dilation};
        char what[96];
        snprintf(what, sizeof(what), "c %d, k %d, groups %d, dilation %d", forms[i].c, p.k,
                 p.groups, p.dilation);
        struct weir_graph *graph = conv_graph(forms[i].c, &p);
        compare_backends(graph, 5, TOLERANCE, what);
        weir_graph_destroy(graph);
    }
}

END_TEST

static bool batch_all(const struct op *op)
{
    return op->kind == LAYER_LINEAR || op->conv.groups == 1;
}

/* Ops with weights take four slices at a time: five of one image, in two tiles. */
START_TEST(networks_whose_ops_batch_slices)
{
    struct weir_backend batching = weir_onednn_backend;
    batching.batches_slices = batch_all;
    for (uint64_t seed = 0; seed < WEIR_TEST_TIMES(30, 10); seed++) {
        char what[32];
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        struct net_pair pair = {
            .nets = {make_net(graph, &weir_reference_backend, WEIR_CONVOLUTION_AUTO, 5, 5),
                     make_net(graph, &batching, WEIR_CONVOLUTION_AUTO, 5, 5)}};
        snprintf(what, sizeof(what), "seed %d", (int)seed);
        compare_pair(graph, &pair, 5, RANDOM_TOLERANCE, what);
        weir_graph_destroy(graph);
    }
}

END_TEST

START_TEST(whole_networks_of_every_layer)
{
    for (uint64_t seed = 0; seed < WEIR_TEST_TIMES(60, 20); seed++) {
        char what[32];
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        snprintf(what, sizeof(what), "seed %d", (int)seed);
        compare_backends(graph, 5, RANDOM_TOLERANCE, what);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Two channels of 1x3: mean 4, variance 40/6. Flattened in C, H, W order in either layout. */
START_TEST(a_picture_normalised_flattened_and_scaled_is_as_worked_by_hand)
{
    static const float picture[] = {1, 2, 3, 4, 5, 9};
    for (int i = 0; i < 2; i++) {
        struct weir_graph *graph = weir_graph_create();
        weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 1, 3});
        x = weir_graph_layer_norm(graph, "norm", x);
        x = weir_graph_flatten(graph, "flat", x);
        weir_graph_scale(graph, "scaled", x, -0.5f);
        struct weir_net_config config = {.batch = 2, .n_threads = 1, .backend = backends[i]};
        struct weir_net *net = NULL;
        struct weir_error err = {0};
        ck_assert_msg(weir_net_create(graph, &config, &net, &err) == WEIR_OK, "%s", err.message);
        memset(weir_net_input(net), 0, sizeof picture);
        memcpy(weir_net_input(net) + 6, picture, sizeof picture);
        ck_assert_int_eq(weir_net_forward(net, 2, NULL), WEIR_OK);
        for (int k = 0; k < 6; k++) {
            /* one grey has no contrast: nothing, not noise made large */
            ck_assert_double_eq_tol((double)weir_net_output(net)[k], 0, 1e-12);
            double expected = -0.5 * ((double)picture[k] - 4) / sqrt(40.0 / 6);
            ck_assert_double_eq_tol((double)weir_net_output(net)[6 + k], expected, 1e-5);
        }
        weir_net_destroy(net);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Loss with the trainable weights moved by h along `direction`. */
static double loss_at(struct weir_net *net, const float *start, const float *direction, size_t n,
                      double h)
{
    struct weir_step_result result;
    float *weights = weir_net_weights(net, NULL);
    for (size_t i = 0; i < n; i++) {
        weights[i] = (float)((double)start[i] + h * (double)direction[i]);
    }
    weir_net_weights_changed(net);
    ck_assert_int_eq(weir_net_step(net, 7, NULL, NULL, &result), WEIR_OK);
    return result.loss;
}

/*
 * gradient . direction = slope of the loss, through schedule, plan and kernels together. In f32,
 * with kinks of ReLU and max pool in the way, the quotient is good to about 1e-2: take the best of
 * three steps, as a wrong gradient is wrong for all.
 */
static void check_slope(struct weir_net *net, const char *what)
{
    size_t n;
    struct weir_step_result result;
    float *gradients = weir_net_gradients(net, &n);
    ck_assert_int_eq(weir_net_step(net, 7, NULL, NULL, &result), WEIR_OK);
    float *start = malloc(n * sizeof(float)), *direction = malloc(n * sizeof(float));
    struct weir_rng rng;
    weir_rng_init(&rng, 21, 0);
    double slope = 0, size = 0, best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        start[i] = weir_net_weights(net, NULL)[i];
        /* mostly along the gradient: a random direction alone has almost no slope */
        direction[i] = gradients[i] * (float)(1 + 0.5 * weir_rng_normal(&rng));
        slope += (double)direction[i] * (double)gradients[i];
        size += (double)direction[i] * (double)direction[i];
    }
    for (double h = 1e-2; h > 5e-5; h /= 5) {
        double step = h / sqrt(size);
        double quotient =
            (loss_at(net, start, direction, n, step) - loss_at(net, start, direction, n, -step)) /
            (2 * step);
        best = fmin(best, fabs(quotient / slope - 1));
    }
    ck_assert_msg(best < 1e-2, "%s: slope %g is off by a factor of 1 +- %g", what, slope, best);
    free(start);
    free(direction);
}

START_TEST(gradients_are_the_slope_of_the_loss)
{
    for (int i = 0; i < N_BACKENDS; i++) {
        for (uint64_t seed = 100; seed < 130; seed++) {
            char what[64];
            struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 4), NULL);
            struct weir_net *net = make_net(graph, backends[i], WEIR_CONVOLUTION_AUTO, 5, 2);
            snprintf(what, sizeof(what), "%s, seed %d", i == 0 ? "reference" : "onednn", (int)seed);
            check_slope(net, what);
            weir_net_destroy(net);
            weir_graph_destroy(graph);
        }
    }
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {gradients_are_the_slope_of_the_loss,
                                  convolutions_of_odd_shapes,
                                  kernels_that_are_not_square,
                                  convolutions_in_groups_and_with_gaps,
                                  whole_networks_of_every_layer,
                                  networks_whose_ops_batch_slices,
                                  a_picture_normalised_flattened_and_scaled_is_as_worked_by_hand};
    size_t n = IS_THREAD_SANITIZED ? 1 : WEIR_ARRAY_LEN(tests);
    return weir_test_run(weir_test_suite("compare", tests, n));
}
