/** Parameters: names and order, initial values, running statistics. */
#include "net_fixture.h"

#include <math.h>
#include <string.h>

START_TEST(parameters_are_named_and_ordered_as_the_header_says)
{
    static const char *const expected[] = {
        "fc2.weight",      "fc2.bias",         "prelu.weight",   "fc1.weight",
        "fc1.bias",        "bn2.weight",       "bn2.bias",       "conv2.weight",
        "bn1.weight",      "bn1.bias",         "conv1.weight",   "bn2.running_mean",
        "bn2.running_var", "bn1.running_mean", "bn1.running_var"};
    struct weir_graph *graph = small_graph();
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 1);
        size_t n, n_elems, n_gradients, end = 0, n_trained = 0;
        const struct weir_param *params = weir_net_params(net, &n);
        weir_net_weights(net, &n_elems);
        weir_net_gradients(net, &n_gradients);
        ck_assert_uint_eq(n, WEIR_ARRAY_LEN(expected));
        for (size_t i = 0; i < n; i++) {
            ck_assert_str_eq(params[i].name, expected[i]);
            ck_assert_uint_ge(params[i].first_elem, end);
            end = params[i].first_elem + params[i].n_elems;
            n_trained += params[i].is_trainable ? params[i].n_elems : 0;
            ck_assert_int_eq(params[i].is_trainable, end <= n_gradients);
            ck_assert_int_eq(params[i].is_decayed, params[i].n_dims > 1);
        }
        ck_assert_uint_le(end, n_elems);
        ck_assert_int_eq((int64_t)n_trained, weir_graph_n_parameters(graph));
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_convolution_may_begin_smaller_and_with_a_bias)
{
    float first[2][36], bias[2][4];
    for (int i = 0; i < 2; i++) {
        struct weir_graph *graph = weir_graph_create();
        const struct weir_conv_params params = {
            .k = 4, .kernel_h = 3, .kernel_w = 3, .stride = 1, .has_bias = true};
        weir_value_t x = weir_graph_input(graph, (struct weir_shape){1, 8, 8});
        x = weir_graph_conv(graph, "conv", x, &params);
        if (i == 1) {
            weir_graph_set_initial(graph, x, 0.25F, -2);
        }
        x = weir_graph_flatten(graph, "flat", x);
        weir_graph_detect_loss(graph, "loss", x, 2, 1);
        struct weir_net *net = training_net(graph, 0, 1);
        size_t n;
        const struct weir_param *p = weir_net_params(net, &n);
        ck_assert_uint_eq(n, 2);
        memcpy(first[i], weir_net_weights(net, NULL) + p[0].first_elem, sizeof first[i]);
        memcpy(bias[i], weir_net_weights(net, NULL) + p[1].first_elem, sizeof bias[i]);
        weir_net_destroy(net);
        weir_graph_destroy(graph);
    }
    for (int k = 0; k < 36; k++) {
        ck_assert_float_eq_tol(first[1][k], 0.25F * first[0][k], 1e-6F);
        ck_assert_float_eq(bias[k % 2][k % 4], k % 2 == 0 ? 0 : -2);
    }
}

END_TEST

START_TEST(initial_weights_depend_on_seed_and_name_alone)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *a = training_net(graph, 0, 1), *b = training_net(graph, N_BACKENDS - 1, 2);
    ck_assert_uint_eq(hash_weights(a), hash_weights(b));
    weir_net_init_weights(b, 4);
    ck_assert_uint_ne(hash_weights(a), hash_weights(b));
    /* conv2.weight: 8x8x3x3, deviation sqrt(2 / (8 * 9)) within 5 standard errors */
    size_t n;
    const struct weir_param *p = &weir_net_params(a, &n)[7];
    double squares = 0;
    for (size_t i = 0; i < p->n_elems; i++) {
        double w = weir_net_weights(a, NULL)[p->first_elem + i];
        squares += w * w;
    }
    ck_assert_double_eq_tol(squares / (double)p->n_elems * 36, 1, 5 * sqrt(2.0 / 576));
    weir_net_destroy(a);
    weir_net_destroy(b);
    weir_graph_destroy(graph);
}

END_TEST

/* Channel c of a batch of n images of 2 x 10 x 8. */
static void moments_of(const float *x, size_t n, size_t c, double *out_mean, double *out_unbiased)
{
    double sum = 0, squares = 0, count = (double)n * 80;
    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < 80; p++) {
            sum += x[(i * 2 + c) * 80 + p];
        }
    }
    *out_mean = sum / count;
    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < 80; p++) {
            double d = x[(i * 2 + c) * 80 + p] - *out_mean;
            squares += d * d;
        }
    }
    *out_unbiased = squares / (count - 1);
}

START_TEST(running_statistics_follow_the_batch)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 10, 8});
    x = weir_graph_batch_norm(graph, "bn", x);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
        size_t n;
        const struct weir_param *params = weir_net_params(net, &n);
        const float *weights = weir_net_weights(net, NULL);
        for (size_t i = 0; i < 11 * 2 * 80; i++) {
            weir_net_input(net)[i] += 3; /* a mean that matters */
        }
        ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_OK);
        ck_assert_str_eq(params[n - 2].name, "bn.running_mean");
        for (size_t c = 0; c < 2; c++) {
            double mean, unbiased;
            moments_of(weir_net_input(net), 11, c, &mean, &unbiased);
            ck_assert_double_eq_tol(weights[params[n - 2].first_elem + c], 0.1 * mean, 1e-6);
            ck_assert_double_eq_tol(weights[params[n - 1].first_elem + c], 0.9 + 0.1 * unbiased,
                                    1e-6);
        }
        /* Inference uses them at once, also if no one says that weights have changed. */
        float before[11 * RANDOM_GRAPH_CLASSES];
        ck_assert_int_eq(weir_net_forward(net, 11, NULL), WEIR_OK);
        memcpy(before, weir_net_output(net), sizeof(before));
        weir_net_weights_changed(net);
        ck_assert_int_eq(weir_net_forward(net, 11, NULL), WEIR_OK);
        ck_assert_int_eq(memcmp(before, weir_net_output(net), sizeof(before)), 0);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

WEIR_TEST_MAIN("params", parameters_are_named_and_ordered_as_the_header_says,
               a_convolution_may_begin_smaller_and_with_a_bias,
               initial_weights_depend_on_seed_and_name_alone, running_statistics_follow_the_batch)
