/* Batches that are copied to the GPU while it computes. The emulated GPU copies them as late as it may. */
#include "cuda_fixture.h"

/* What batch `i` is. */
static void draw(struct weir_net *net, uint64_t i)
{
    size_t n = 3 * 8 * 8 * (size_t)weir_net_batch(net);
    float *input = weir_net_input(net);
    struct weir_rng rng;
    weir_rng_init(&rng, i, 77);
    for (size_t k = 0; k < n; k++) {
        input[k] = (float)weir_rng_normal(&rng);
    }
    for (int32_t k = 0; k < weir_net_batch(net); k++) {
        weir_net_labels(net)[k] = (int32_t)weir_rng_below(&rng, RANDOM_GRAPH_CLASSES);
    }
}

/* Counts the batches, and leaves out every third. */
struct source {
    struct weir_net *net;
    uint64_t i_next;
    int n_calls;
    bool is_filled;
};

static bool fill(void *context)
{
    struct source *source = context;
    source->n_calls++;
    source->is_filled = source->i_next % 3 != 0;
    if (source->is_filled) {
        draw(source->net, source->i_next);
    }
    return source->is_filled;
}

enum way {
    BY_HAND,     /* each batch before its step, which is awaited */
    QUEUED,      /* the same, and no step is awaited */
    AHEAD,       /* while the step before computes */
    AHEAD_QUEUED /* and no step is awaited */
};

#define STEPS 8

/* Weights after some steps. */
static float *weights_after(const struct weir_graph *graph, struct weir_backend *backend,
                            enum way way, size_t *out_n)
{
    struct weir_net_config config = {.batch = 6, .is_training = true, .backend = backend};
    struct weir_net *net = make_net(graph, config);
    struct weir_optimizer *optimizer = make_optimizer("sgd", net);
    struct source source = {.net = net};
    struct weir_step_result result, *wanted = way == QUEUED || way == AHEAD_QUEUED ? NULL : &result;
    if (way >= AHEAD) {
        weir_net_set_fill_ahead(net, fill, &source);
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        if (!source.is_filled) {
            draw(net, step);
        }
        source.is_filled = false;
        source.i_next = step + 1;
        ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, wanted), WEIR_OK);
        weir_optimizer_update_net(optimizer, net, NULL, 0.05, step);
    }
    ck_assert_int_eq(source.n_calls, way >= AHEAD ? STEPS : 0);
    weir_net_set_fill_ahead(net, NULL, NULL);
    const float *weights = weir_net_weights(net, out_n);
    float *copy = malloc(*out_n * sizeof *copy);
    memcpy(copy, weights, *out_n * sizeof *copy);
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    return copy;
}

START_TEST(a_batch_ahead_is_the_one_of_its_step)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        size_t n, n_other;
        float *expected = weights_after(graph, &gpus[i], BY_HAND, &n);
        for (enum way way = QUEUED; way <= AHEAD_QUEUED; way++) {
            float *weights = weights_after(graph, &gpus[i], way, &n_other);
            ck_assert_uint_eq(n, n_other);
            ck_assert_msg(memcmp(expected, weights, n * sizeof *weights) == 0, "GPU %d, way %d", i,
                          (int)way);
            free(weights);
        }
        free(expected);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* Whoever asks for the input after a batch was filled ahead writes another in its place; a forward pass
 * with an input of its own is one of those. */
START_TEST(a_new_input_takes_the_place_of_a_batch_ahead)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {.batch = 6, .is_training = true, .backend = &gpus[i]};
        struct weir_net *a = make_net(graph, config), *b = make_net(graph, config);
        struct source source = {.net = a, .i_next = 1};
        struct weir_step_result x, y;
        weir_net_set_fill_ahead(a, fill, &source);
        draw(a, 0);
        draw(b, 0);
        ck_assert_int_eq(weir_net_step(a, 0, NULL, NULL, &x), WEIR_OK);
        ck_assert_int_eq(weir_net_step(b, 0, NULL, NULL, &y), WEIR_OK);
        draw(a, 20);
        draw(b, 20);
        ck_assert_int_eq(weir_net_forward(a, 6, &x), WEIR_OK);
        ck_assert_int_eq(weir_net_forward(b, 6, &y), WEIR_OK);
        ck_assert_double_eq(x.loss, y.loss);
        draw(a, 21);
        draw(b, 21);
        ck_assert_int_eq(weir_net_step(a, 1, NULL, NULL, &x), WEIR_OK);
        ck_assert_int_eq(weir_net_step(b, 1, NULL, NULL, &y), WEIR_OK);
        ck_assert_double_eq(x.loss, y.loss);
        weir_net_destroy(a);
        weir_net_destroy(b);
    }
    weir_graph_destroy(graph);
}

END_TEST

size_t cuda_ahead_tests(const TTest **out)
{
    out[0] = a_batch_ahead_is_the_one_of_its_step;
    out[1] = a_new_input_takes_the_place_of_a_batch_ahead;
    return 2;
}
