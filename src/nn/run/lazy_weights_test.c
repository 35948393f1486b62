/*
 * Weights that are fetched while the next step's forward pass runs: the bits of a net that had them
 * before. Until a layer's weights are fetched, NaNs lie in their place, which no loss would
 * survive.
 */
#include "net_fixture.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { STEPS = 5, MOST_CALLS = 256 };

/* Where weights are while they are pending. */
struct road {
    struct weir_net *net;
    float *weights;
    size_t n_elems;
    pthread_mutex_t lock;
    size_t first[MOST_CALLS], n[MOST_CALLS];
    int n_calls;
    weir_status status; /* of a call, if it is not the last layer's */
    const float *watched;
    float watched_before, watched_at_last;
};

static weir_status fetch_weights(void *context, size_t first_elem, size_t n_elems)
{
    struct road *road = context;
    pthread_mutex_lock(&road->lock);
    ck_assert_int_lt(road->n_calls, MOST_CALLS);
    road->first[road->n_calls] = first_elem;
    road->n[road->n_calls++] = n_elems;
    pthread_mutex_unlock(&road->lock);
    if (first_elem == 0 && road->watched) {
        road->watched_at_last = *road->watched;
    }
    memcpy(weir_net_weights(road->net, NULL) + first_elem, road->weights + first_elem,
           n_elems * sizeof(float));
    return first_elem == 0 ? WEIR_OK : road->status;
}

static void road_init(struct road *road, struct weir_net *net)
{
    *road = (struct road){.net = net};
    (void)weir_net_gradients(net, &road->n_elems);
    road->weights = calloc(road->n_elems + 1, sizeof(float));
    ck_assert_ptr_nonnull(road->weights);
    pthread_mutex_init(&road->lock, NULL);
}

static void road_fini(struct road *road)
{
    pthread_mutex_destroy(&road->lock);
    free(road->weights);
}

/* By Winograd too, where possible: weights are packed just before the layer. */
static struct weir_net *net_of(const struct weir_graph *graph, int i_form, int32_t n_threads)
{
    if (i_form < N_FORMS) {
        return training_net(graph, i_form, n_threads);
    }
    return make_net(graph, (struct weir_net_config){.batch = 11,
                                                    .n_slices = 4,
                                                    .n_threads = n_threads,
                                                    .is_training = true,
                                                    .seed = 5,
                                                    .convolution = other_convolution(),
                                                    .backend = backends[N_BACKENDS - 1]});
}

static int next_of(int i_form)
{
    return i_form < N_FORMS ? next_form(i_form) : N_FORMS + 1;
}

static int last_form(void)
{
    return N_BACKENDS > 1 ? N_FORMS : N_FORMS - 1;
}

/* A step whose new weights stay on the road. */
static struct weir_step_result take_step(struct road *road, uint64_t step)
{
    struct weir_step_result result;
    float *weights = weir_net_weights(road->net, NULL);
    ck_assert_int_eq(weir_net_step(road->net, step, NULL, NULL, &result), WEIR_OK);
    const float *gradients = weir_net_gradients(road->net, NULL);
    for (size_t i = 0; i < road->n_elems; i++) {
        road->weights[i] = weights[i] - 0.05f * gradients[i];
    }
    size_t n_params;
    const struct weir_param *params = weir_net_params(road->net, &n_params);
    for (size_t i = 0; i < n_params && params[i].is_trainable; i++) {
        for (size_t k = 0; k < params[i].n_elems; k++) {
            weights[params[i].first_elem + k] = NAN; /* not in the gaps, which stay zero */
        }
    }
    road->n_calls = 0;
    weir_net_set_pending_weights(road->net, fetch_weights, road);
    return result;
}

/* Every trainable parameter was asked for, and none twice. */
static void check_calls(const struct road *road)
{
    size_t n_params, n_found = 0;
    const struct weir_param *params = weir_net_params(road->net, &n_params);
    for (size_t i = 0; i < n_params && params[i].is_trainable; i++) {
        int n_times = 0;
        for (int k = 0; k < road->n_calls; k++) {
            size_t end = road->first[k] + road->n[k];
            n_times += params[i].first_elem >= road->first[k] &&
                       params[i].first_elem + params[i].n_elems <= end;
        }
        ck_assert_msg(n_times == 1, "%s was asked for %d times", params[i].name, n_times);
        n_found++;
    }
    ck_assert_uint_ge(n_found, (size_t)road->n_calls);
}

START_TEST(weights_that_come_during_the_next_step_give_the_bits_of_those_that_came_before)
{
    for (int i_form = next_of(-1); i_form <= last_form(); i_form = next_of(i_form)) {
        for (uint64_t seed = 0; seed < (i_form % 2 == 0 ? 1 : 3); seed++) {
            struct weir_graph *graph = seed == 0 ? small_graph() : random_graph(seed, 6, NULL);
            struct weir_net *before = net_of(graph, i_form, 1);
            for (uint64_t step = 0; step < STEPS; step++) {
                train_step(before, step);
            }
            for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
                struct weir_net *net = net_of(graph, i_form, n_threads);
                struct road road;
                road_init(&road, net);
                for (uint64_t step = 0; step < STEPS; step++) {
                    take_step(&road, step);
                    if (step % 2 == 1) {
                        ck_assert_int_eq(weir_net_wait_weights(net), WEIR_OK);
                        check_calls(&road);
                    }
                }
                ck_assert_int_eq(weir_net_wait_weights(net), WEIR_OK);
                check_calls(&road);
                ck_assert_uint_eq(hash_weights(net), hash_weights(before));
                road_fini(&road);
                weir_net_destroy(net);
            }
            weir_net_destroy(before);
            weir_graph_destroy(graph);
        }
    }
}

END_TEST

START_TEST(the_front_computes_before_the_back_is_asked_for)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *net = training_net(graph, 0, 1);
    struct road road;
    road_init(&road, net);
    take_step(&road, 0);
    size_t n_params;
    const struct weir_param *params = weir_net_params(net, &n_params);
    for (size_t i = 0; i < n_params; i++) {
        if (strcmp(params[i].name, "bn1.running_mean") == 0) {
            road.watched = weir_net_weights(net, NULL) + params[i].first_elem;
            road.watched_before = *road.watched;
        }
    }
    ck_assert_ptr_nonnull(road.watched);
    road.watched_at_last = road.watched_before;
    struct weir_step_result result;
    ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, &result), WEIR_OK);
    check_calls(&road);
    ck_assert(isfinite(result.loss));
    ck_assert(road.watched_at_last != road.watched_before);
    for (int i = 1; i < road.n_calls; i++) {
        ck_assert_uint_lt(road.first[i], road.first[i - 1]);
    }
    road_fini(&road);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(a_forward_pass_asks_for_all_and_nobody_is_asked_twice)
{
    struct weir_graph *graph = small_graph();
    for (int i_form = next_of(-1); i_form <= last_form(); i_form = next_of(i_form)) {
        struct weir_net *net = net_of(graph, i_form, 2);
        struct weir_net *before = net_of(graph, i_form, 1);
        struct weir_step_result late, early;
        struct road road;
        road_init(&road, net);
        train_step(before, 0);
        take_step(&road, 0);
        ck_assert_int_eq(weir_net_forward(net, 11, &late), WEIR_OK);
        check_calls(&road);
        ck_assert_int_eq(weir_net_forward(before, 11, &early), WEIR_OK);
        ck_assert_double_eq(late.loss, early.loss);
        int n_calls = road.n_calls;
        ck_assert_int_eq(weir_net_wait_weights(net), WEIR_OK);
        ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, NULL), WEIR_OK);
        ck_assert_int_eq(road.n_calls, n_calls);
        road_fini(&road);
        weir_net_destroy(before);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(weights_that_cannot_come_fail_the_step)
{
    struct weir_graph *graph = small_graph();
    for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
        struct weir_net *net = training_net(graph, 0, n_threads);
        struct road road;
        road_init(&road, net);
        take_step(&road, 0);
        road.status = WEIR_ERR_PEER;
        ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, NULL), WEIR_ERR_PEER);
        take_step(&road, 1);
        ck_assert_int_eq(weir_net_wait_weights(net), WEIR_ERR_PEER);
        road_fini(&road);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        weights_that_come_during_the_next_step_give_the_bits_of_those_that_came_before,
        the_front_computes_before_the_back_is_asked_for,
        a_forward_pass_asks_for_all_and_nobody_is_asked_twice,
        weights_that_cannot_come_fail_the_step};
    return weir_test_run(weir_test_suite("arrival", tests, WEIR_ARRAY_LEN(tests)));
}
