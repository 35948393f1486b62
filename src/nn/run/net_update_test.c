/** Weights that are updated while the backward pass runs, against a step and an update after it. */
#include "net_fixture.h"
#include "nn/optimizer.h"
#include "nn/profile.h"

#include <math.h>
#include <string.h>

static const char *const rules[] = {"sgd", "sgd:nesterov=1", "rmsprop", "adam", "adamw"};

/* A linear whose gradient several threads make, one behind it, and one that shares its input. */
static struct weir_graph *wide_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 10, 10});
    weir_value_t a = weir_graph_linear(graph, "wide", x, 1320, true);
    a = weir_graph_relu(graph, "relu", a);
    a = weir_graph_linear(graph, "narrow", a, 7, false);
    weir_value_t b = weir_graph_linear(graph, "beside", x, 7, true);
    x = weir_graph_add(graph, "add", a, b);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

/* A net and what updates it. */
struct update_case {
    struct weir_net *net;
    struct weir_optimizer *optimizer;
    float *weights;
    double lr;
    uint64_t step;
};

static struct update_case training_init(const struct weir_graph *graph,
                                        const struct weir_net_config *config, const char *rule,
                                        double momentum)
{
    struct weir_optimizer_config settings;
    struct update_case t = {.net = make_net(graph, *config), .lr = 0.05};
    size_t n_params;
    const struct weir_param *params = weir_net_params(t.net, &n_params);
    ck_assert_int_eq(weir_optimizer_parse(rule, &settings, NULL), WEIR_OK);
    settings.weight_decay = 0.01;
    settings.momentum = momentum;
    ck_assert_int_eq(weir_optimizer_create(&settings, params, n_params, &t.optimizer, NULL),
                     WEIR_OK);
    t.weights = weir_net_weights(t.net, NULL);
    return t;
}

static void training_fini(struct update_case *t)
{
    weir_optimizer_destroy(t->optimizer);
    weir_net_destroy(t->net);
}

static void update(void *context, const struct weir_gradients *gradients)
{
    struct update_case *t = context;
    weir_optimizer_apply_gradients(t->optimizer, t->weights, gradients, t->lr, t->step);
}

static struct weir_step_result take_step(struct update_case *t, bool is_at_once)
{
    struct weir_step_result result;
    if (is_at_once) {
        ck_assert_int_eq(weir_net_step_and_update(t->net, t->step, update, t, &result), WEIR_OK);
    } else {
        ck_assert_int_eq(weir_net_step(t->net, t->step, NULL, NULL, &result), WEIR_OK);
        weir_optimizer_update_net(t->optimizer, t->net, weir_net_gradients(t->net, NULL), t->lr,
                                  t->step);
    }
    t->step++;
    return result;
}

static bool have_same_states(const struct update_case *a, const struct update_case *b)
{
    size_t n_a, n_b;
    const struct weir_optimizer_state *as = weir_optimizer_states(a->optimizer, &n_a);
    const struct weir_optimizer_state *bs = weir_optimizer_states(b->optimizer, &n_b);
    for (size_t i = 0; i < n_a; i++) {
        if (memcmp(as[i].data, bs[i].data, as[i].n_elems * sizeof(float)) != 0) {
            return false;
        }
    }
    return n_a == n_b;
}

static void expect_same_bits(const struct weir_graph *graph, struct weir_net_config config,
                             const char *rule, double momentum)
{
    struct update_case after = training_init(graph, &config, rule, momentum);
    config.updates_in_backward = true;
    struct update_case meanwhile = training_init(graph, &config, rule, momentum);
    for (int i = 0; i < 4; i++) {
        struct weir_step_result a = take_step(&after, false), b = take_step(&meanwhile, true);
        ck_assert_msg(memcmp(&a.loss, &b.loss, sizeof(a.loss)) == 0 &&
                          hash_weights(after.net) == hash_weights(meanwhile.net) &&
                          have_same_states(&after, &meanwhile),
                      "%s, %s, batch %d of %d parts, step %d", rule,
                      config.backend == &weir_onednn_backend ? "onednn" : "reference", config.batch,
                      config.n_gradient_parts, i);
        /* What is refreshed is the new weights too. */
        ck_assert_int_eq(weir_net_forward(after.net, config.batch, &a), WEIR_OK);
        ck_assert_int_eq(weir_net_forward(meanwhile.net, config.batch, &b), WEIR_OK);
        ck_assert(memcmp(&a.loss, &b.loss, sizeof(a.loss)) == 0);
    }
    training_fini(&after);
    training_fini(&meanwhile);
}

static struct weir_net_config config_of(int i_form, int32_t batch, int32_t n_parts,
                                        int32_t n_threads)
{
    return (struct weir_net_config){.batch = batch,
                                    .n_threads = n_threads,
                                    .n_gradient_parts = n_parts,
                                    .is_training = true,
                                    .seed = 5,
                                    .precision = form_precision(i_form),
                                    .backend = form_backend(i_form)};
}

/* Batches that go to each kernel: of few images, of some, of many. */
START_TEST(the_bits_are_those_of_an_update_after_the_step)
{
    static const struct {
        int32_t batch, n_parts;
    } sizes[] = {{1, 1}, {2, 1}, {2, 2}, {6, 3}, {9, 1}, {12, 2}, {70, 1}};

    struct weir_graph *graph = wide_graph();
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        bool is_slow = form_backend(i_form) == &weir_reference_backend;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
            const struct weir_net_config config =
                config_of(i_form, sizes[i].batch, sizes[i].n_parts, 1 + (int32_t)(i % 3));
            for (size_t r = 0; r < WEIR_ARRAY_LEN(rules); r++) {
                if (is_slow ? sizes[i].batch < 70 && (i + r) % 5 == 0
                            : (i + r) % WEIR_TEST_TIMES(2, 8) == 0) {
                    expect_same_bits(graph, config, rules[r], r == 2 ? 0 : 0.9);
                }
            }
        }
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(the_bits_of_networks_of_every_kind_of_layer_are_the_same_too)
{
    for (int i_form = next_form(-1); i_form < N_FORMS; i_form = next_form(i_form)) {
        for (uint64_t seed = 0; seed < WEIR_TEST_TIMES(i_form < 2 ? 10 : 4, 2); seed++) {
            struct weir_graph *graph = seed == 0 ? small_graph() : random_graph(seed, 7, NULL);
            struct weir_net_config config =
                config_of(i_form, 6 + (int32_t)(seed % 2), 1, 1 + (int32_t)(seed % 3));
            config.n_slices = 4;
            expect_same_bits(graph, config, rules[seed % WEIR_ARRAY_LEN(rules)],
                             rules[seed % WEIR_ARRAY_LEN(rules)][0] == 's' ? 0.9 : 0.5);
            weir_graph_destroy(graph);
        }
    }
}

END_TEST

/* Keeps what it is given, and counts. */
struct notes {
    float *gradients;
    _Atomic int *n_calls;
};

static void note(void *context, const struct weir_gradients *gradients)
{
    struct notes *notes = context;
    for (size_t i = 0; i < gradients->n_elems; i++) {
        notes->gradients[gradients->first_elem + i] = gradients->scale * gradients->values[i];
        notes->n_calls[gradients->first_elem + i]++;
    }
}

START_TEST(every_parameter_is_applied_once_with_its_gradient)
{
    struct weir_graph *graphs[] = {wide_graph(), small_graph()};
    for (int i = 0; i < 4 * N_BACKENDS; i++) {
        struct weir_net_config config = config_of(i / 4, i % 4 < 2 ? 3 : 1, 1, 3);
        struct weir_net *after = make_net(graphs[i % 2], config);
        config.updates_in_backward = true;
        struct weir_net *net = make_net(graphs[i % 2], config);
        size_t n = weir_net_n_trainable_elems(net), n_params;
        struct notes notes = {calloc(n, sizeof(float)), calloc(n, sizeof(*notes.n_calls))};
        const float *expected = weir_net_gradients(after, NULL);
        const struct weir_param *params = weir_net_params(net, &n_params);
        ck_assert_int_eq(weir_net_step(after, 0, NULL, NULL, NULL), WEIR_OK);
        ck_assert_int_eq(weir_net_step_and_update(net, 0, note, &notes, NULL), WEIR_OK);
        for (size_t p = 0; p < n_params && params[p].is_trainable; p++) {
            size_t first = params[p].first_elem;
            ck_assert_msg(memcmp(notes.gradients + first, expected + first,
                                 params[p].n_elems * sizeof(float)) == 0,
                          "%s", params[p].name);
            for (size_t j = 0; j < params[p].n_elems; j++) {
                ck_assert_int_eq(notes.n_calls[first + j], 1);
            }
        }
        free(notes.gradients);
        free((void *)notes.n_calls);
        weir_net_destroy(after);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graphs[0]);
    weir_graph_destroy(graphs[1]);
}

END_TEST

START_TEST(a_loss_that_is_no_number_leaves_the_weights_and_the_next_step_is_as_ever)
{
    struct weir_graph *graphs[] = {wide_graph(), small_graph()};
    for (int i = 0; i < 2 * N_BACKENDS; i++) {
        struct weir_net_config config = config_of(i / 2, 5, 1, 2);
        config.updates_in_backward = true;
        struct update_case t = training_init(graphs[i % 2], &config, "adam", 0);
        struct update_case other = training_init(graphs[i % 2], &config, "adam", 0);
        size_t n = weir_net_n_trainable_elems(t.net) * sizeof(float), n_all;
        float kept = weir_net_input(t.net)[7];
        (void)weir_net_weights(t.net, &n_all);
        weir_net_input(t.net)[7] = NAN;
        ck_assert(isnan(take_step(&t, true).loss));
        ck_assert_mem_eq(t.weights, other.weights, n);
        ck_assert(have_same_states(&t, &other));
        weir_net_input(t.net)[7] = kept;
        memcpy(t.weights, other.weights, n_all * sizeof(float)); /* running statistics */
        weir_net_weights_changed(t.net);
        t.step = other.step;
        for (int step = 0; step < 2; step++) {
            ck_assert(take_step(&t, true).loss == take_step(&other, true).loss);
        }
        ck_assert_uint_eq(hash_weights(t.net), hash_weights(other.net));
        training_fini(&t);
        training_fini(&other);
    }
    weir_graph_destroy(graphs[0]);
    weir_graph_destroy(graphs[1]);
}

END_TEST

static void *give(void *context, size_t size_bytes)
{
    (void)size_bytes;
    return context;
}

START_TEST(gradients_of_linears_have_no_memory_and_nobody_is_given_any)
{
    struct weir_graph *graph = wide_graph();
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net_config config = config_of(i_backend, 4, 2, 1);
        struct weir_net *after = make_net(graph, config), *refused = NULL;
        config.updates_in_backward = true;
        struct weir_net *net = make_net(graph, config);
        size_t n_linear = 300 * 1320 * sizeof(float), n_elems = 1;
        ck_assert_uint_lt(weir_net_memory_bytes(net) + n_linear, weir_net_memory_bytes(after));
        ck_assert_ptr_null(weir_net_gradients(net, &n_elems));
        ck_assert_uint_eq(n_elems, 0);
        weir_net_gradients(after, &n_elems);
        ck_assert_uint_eq(weir_net_n_trainable_elems(net), n_elems);
        ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_ERR_INVALID);
        ck_assert_int_eq(weir_net_step_and_update(after, 0, update, NULL, NULL), WEIR_ERR_INVALID);
        weir_net_destroy(after);
        weir_net_destroy(net);
        config.alloc_gradients = give;
        ck_assert_int_eq(weir_net_create(graph, &config, &refused, NULL), WEIR_ERR_INVALID);
        config.alloc_gradients = NULL;
        config.is_training = false;
        ck_assert_int_eq(weir_net_create(graph, &config, &refused, NULL), WEIR_ERR_INVALID);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_profile_counts_the_same_flop_wherever_weights_are_updated)
{
    struct weir_graph *graph = wide_graph();
    double flop[2];
    for (int i = 0; i < 2; i++) {
        struct weir_net_config config = config_of(N_BACKENDS - 1, 3, 1, 2);
        config.updates_in_backward = i == 1;
        struct update_case t = training_init(graph, &config, "sgd", 0.9);
        struct weir_profile *profile;
        struct weir_profile_sum sum;
        ck_assert_int_eq(weir_profile_create(t.net, 2, &profile, NULL), WEIR_OK);
        (void)take_step(&t, i == 1);
        (void)take_step(&t, i == 1);
        weir_profile_sum(profile, &sum);
        ck_assert_uint_eq(sum.n_lost, 0);
        flop[i] = sum.flop;
        weir_profile_destroy(profile);
        training_fini(&t);
    }
    ck_assert_double_gt(flop[0], 0);
    ck_assert_double_eq_tol(flop[0], flop[1], 1);
    weir_graph_destroy(graph);
}

END_TEST

WEIR_TEST_MAIN("net update", the_bits_are_those_of_an_update_after_the_step,
               the_bits_of_networks_of_every_kind_of_layer_are_the_same_too,
               every_parameter_is_applied_once_with_its_gradient,
               a_loss_that_is_no_number_leaves_the_weights_and_the_next_step_is_as_ever,
               gradients_of_linears_have_no_memory_and_nobody_is_given_any,
               a_profile_counts_the_same_flop_wherever_weights_are_updated)
