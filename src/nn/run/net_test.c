/*
 * The net as its users see it: same bits for any number of threads, and what labels, not-a-numbers
 * and the number of images asked for do to its answers.
 */
#include "net_fixture.h"
#include "nn/optimizer.h"

#include <math.h>
#include <string.h>

START_TEST(five_steps_give_the_same_bits_for_any_number_of_threads)
{
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        for (uint64_t seed = 0; seed < (i_form < 2 ? 6 : 3); seed++) {
            uint64_t hashes[4];
            struct weir_graph *graph = seed == 0 ? small_graph() : random_graph(seed, 6, NULL);
            for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
                struct weir_net *net = training_net(graph, i_form, n_threads);
                for (uint64_t step = 0; step < 5; step++) {
                    train_step(net, step);
                }
                hashes[n_threads] = hash_weights(net);
                weir_net_destroy(net);
            }
            ck_assert_uint_eq(hashes[1], hashes[2]);
            ck_assert_uint_eq(hashes[1], hashes[3]);
            weir_graph_destroy(graph);
        }
    }
}

END_TEST

START_TEST(five_steps_by_winograd_give_the_same_bits_for_any_number_of_threads)
{
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 11,
                                     .n_slices = 4,
                                     .is_training = true,
                                     .seed = 5,
                                     .convolution = other_convolution(),
                                     .backend = backends[N_BACKENDS - 1]};
    uint64_t hashes[4];
    for (config.n_threads = 1; N_BACKENDS > 1 && config.n_threads <= 3; config.n_threads++) {
        struct weir_net *net = make_net(graph, config);
        for (uint64_t step = 0; step < 5; step++) {
            train_step(net, step);
        }
        hashes[config.n_threads] = hash_weights(net);
        weir_net_destroy(net);
        ck_assert_uint_eq(hashes[config.n_threads], hashes[1]);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* Both answer for the first n images with the same bits. */
static void expect_same_outputs(struct weir_net *a, struct weir_net *b, int32_t n)
{
    ck_assert_int_eq(weir_net_forward(a, n, NULL), WEIR_OK);
    ck_assert_int_eq(weir_net_forward(b, 11, NULL), WEIR_OK);
    ck_assert_mem_eq(weir_net_output(a), weir_net_output(b),
                     (size_t)n * RANDOM_GRAPH_CLASSES * sizeof(float));
}

/* One net trains and answers in turns, the other only ever answers, with the first one's weights.
 */
START_TEST(answers_between_steps_by_winograd_are_of_the_weights_as_they_are)
{
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 11,
                                     .n_slices = 4,
                                     .n_threads = 2,
                                     .is_training = true,
                                     .seed = 5,
                                     .convolution = other_convolution(),
                                     .backend = backends[N_BACKENDS - 1]};
    struct weir_net *net = make_net(graph, config), *other = make_net(graph, config);
    size_t n;
    float *weights = weir_net_weights(net, &n), *others = weir_net_weights(other, NULL);
    for (uint64_t step = 0; step < 8; step++) {
        if (step % 3 == 2) {
            weights[step] += 0.5f;
            weir_net_weights_changed(net);
        } else {
            train_step(net, step);
        }
        memcpy(others, weights, n * sizeof(float));
        weir_net_weights_changed(other);
        expect_same_outputs(net, other, 7);
        expect_same_outputs(net, other, 11);
    }
    weir_net_destroy(net);
    weir_net_destroy(other);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(winograd_is_refused_in_bf16_and_by_the_reference)
{
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 2, .convolution = WEIR_CONVOLUTION_WINOGRAD};
    struct weir_error err = {0};
    struct weir_net *net = NULL;
    config.backend = &weir_reference_backend;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "convolution winograd"));
    config.backend = &weir_onednn_backend;
    config.precision = WEIR_PRECISION_BF16;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "convolution winograd"));
    ck_assert_ptr_null(net);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(training_lowers_the_loss_to_nothing)
{
    struct weir_graph *graph = small_graph();
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 2);
        struct weir_step_result first = train_step(net, 0), last = first;
        for (uint64_t step = 1; step < 100; step++) {
            last = train_step(net, step);
        }
        ck_assert_double_gt(first.loss, 1);
        ck_assert_double_lt(last.loss, 0.3);
        ck_assert_int_eq(last.n_labelled, 10); /* of 11: one has no label */
        ck_assert_int_ge(last.n_correct, 9);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(wrong_labels_change_nothing)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *net = training_net(graph, 0, 1);
    struct weir_step_result result;
    uint64_t before = hash_weights(net);
    weir_net_labels(net)[10] = RANDOM_GRAPH_CLASSES;
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_net_forward(net, 11, &result), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_net_forward(net, 10, &result), WEIR_OK); /* not among the first ten */
    ck_assert_int_eq(weir_net_forward(net, 11, NULL), WEIR_OK);    /* no labels are read */
    weir_net_labels(net)[10] = -2;
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_net_forward(net, 12, NULL), WEIR_ERR_INVALID);
    ck_assert_uint_eq(hash_weights(net), before); /* not even running statistics */
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_batch_without_labels_has_no_gradient)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *net = training_net(graph, N_BACKENDS - 1, 2);
    struct weir_step_result result;
    size_t n;
    for (int i = 0; i < 11; i++) {
        weir_net_labels(net)[i] = -1;
    }
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_OK);
    ck_assert_int_eq(result.n_labelled, 0);
    ck_assert_double_eq(result.loss, 0);
    const float *gradients = weir_net_gradients(net, &n);
    for (size_t i = 0; i < n; i++) {
        if (gradients[i] != 0) {
            ck_abort_msg("gradient %zu is %g", i, (double)gradients[i]);
        }
    }
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(not_a_number_stays_not_a_number)
{
    struct weir_graph *graph = small_graph();
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 2);
        struct weir_step_result result;
        weir_net_input(net)[37] = NAN;
        ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &result), WEIR_OK);
        ck_assert(isnan(result.loss));
        ck_assert_int_eq(result.n_correct, 0); /* the statistics spread it over the batch */
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(an_inference_net_with_the_same_weights_answers_as_the_training_net)
{
    struct weir_graph *graph = small_graph();
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 2);
        for (uint64_t step = 0; step < 5; step++) {
            train_step(net, step);
        }
        struct weir_net *single =
            make_net(graph, (struct weir_net_config){.batch = 1,
                                                     .n_threads = 1,
                                                     .precision = form_precision(i_form),
                                                     .backend = form_backend(i_form)});
        size_t n, n_single;
        float *weights = weir_net_weights(net, &n);
        memcpy(weir_net_weights(single, &n_single), weights, n * sizeof(float));
        ck_assert_uint_eq(n, n_single);
        ck_assert_ptr_null(weir_net_gradients(single, NULL));
        weir_net_weights_changed(single);
        ck_assert_int_eq(weir_net_forward(net, 7, NULL), WEIR_OK);
        const size_t n_in = 2 * 10 * 8;
        for (size_t i = 0; i < 7; i++) {
            memcpy(weir_net_input(single), weir_net_input(net) + i * n_in, n_in * sizeof(float));
            ck_assert_int_eq(weir_net_forward(single, 1, NULL), WEIR_OK);
            for (size_t k = 0; k < RANDOM_GRAPH_CLASSES; k++) {
                ck_assert_float_eq_tol(
                    weir_net_output(single)[k], weir_net_output(net)[i * RANDOM_GRAPH_CLASSES + k],
                    form_precision(i_form) == WEIR_PRECISION_F32 ? 1e-5f : 0.05f);
            }
        }
        struct weir_step_result result;
        ck_assert_int_eq(weir_net_step(single, 0, NULL, NULL, &result), WEIR_ERR_INVALID);
        weir_net_destroy(single);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(only_the_images_asked_for_count)
{
    struct weir_graph *graph = small_graph();
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        struct weir_net *net = training_net(graph, i_form, 2);
        for (int32_t n = 0; n <= 11; n++) { /* image 1 has no label */
            struct weir_step_result result;
            ck_assert_int_eq(weir_net_forward(net, n, &result), WEIR_OK);
            ck_assert_int_eq(result.n_labelled, n > 1 ? n - 1 : n);
        }
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* The weights after three steps of a rule, its updates made by the net's threads or by this one. */
static uint64_t hash_after(const char *rule, bool is_by_net, int32_t n_threads)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *net = training_net(graph, N_BACKENDS - 1, n_threads);
    struct weir_optimizer_config config;
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err = {0};
    size_t n_params, n;
    const struct weir_param *params = weir_net_params(net, &n_params);
    ck_assert_int_eq(weir_optimizer_defaults(rule, &config, &err), WEIR_OK);
    config.weight_decay = 0.01;
    ck_assert_int_eq(weir_optimizer_create(&config, params, n_params, &optimizer, &err), WEIR_OK);
    for (uint64_t step = 0; step < 3; step++) {
        ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, NULL), WEIR_OK);
        const float *gradients = weir_net_gradients(net, &n);
        if (is_by_net) {
            weir_optimizer_update_net(optimizer, net, gradients, 0.05, step);
        } else {
            weir_optimizer_update(optimizer, weir_net_weights(net, NULL), gradients, 0, n, 0.05,
                                  step);
            weir_net_weights_changed(net);
        }
    }
    uint64_t hash = hash_weights(net);
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    return hash;
}

START_TEST(updates_by_a_nets_threads_have_the_bits_of_one_thread)
{
    static const char *const rules[] = {"sgd", "adamw", "lars"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        uint64_t expected = hash_after(rules[i], false, 1);
        for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
            ck_assert_uint_eq(hash_after(rules[i], true, n_threads), expected);
        }
    }
}

END_TEST

/* Ranges of an update: all of the trainable part, each element once. */
static void count_range(void *context, size_t first_elem, size_t n_elems)
{
    unsigned char *counts = context;
    for (size_t i = first_elem; i < first_elem + n_elems; i++) {
        counts[i]++;
    }
}

START_TEST(an_update_covers_each_trainable_weight_once)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){700, 1, 1});
    x = weir_graph_linear(graph, "fc1", x, 300, true);
    x = weir_graph_linear(graph, "fc2", x, 7, true);
    weir_graph_softmax_loss(graph, "loss", x);
    struct weir_net *net = training_net(graph, N_BACKENDS - 1, 3);
    size_t n;
    weir_net_gradients(net, &n);
    unsigned char *counts = calloc(n, 1);
    weir_net_update(net, count_range, counts);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(counts[i] == 1, "element %zu: %d times", i, counts[i]);
    }
    free(counts);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

WEIR_TEST_MAIN("net", updates_by_a_nets_threads_have_the_bits_of_one_thread,
               an_update_covers_each_trainable_weight_once,
               five_steps_give_the_same_bits_for_any_number_of_threads,
               five_steps_by_winograd_give_the_same_bits_for_any_number_of_threads,
               answers_between_steps_by_winograd_are_of_the_weights_as_they_are,
               winograd_is_refused_in_bf16_and_by_the_reference,
               training_lowers_the_loss_to_nothing, wrong_labels_change_nothing,
               a_batch_without_labels_has_no_gradient, not_a_number_stays_not_a_number,
               an_inference_net_with_the_same_weights_answers_as_the_training_net,
               only_the_images_asked_for_count)
