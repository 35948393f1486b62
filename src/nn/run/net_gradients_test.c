/** Gradients as their reader sees them: reported once and in order, final, made of parts. */
#include "net_fixture.h"

#include <string.h>

/* Convolution, dropout, two linears: what has the same bits however the batch is shared. */
static struct weir_graph *plain_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 10, 8});
    x = weir_graph_conv(graph, "conv", x,
                        &(struct weir_conv_params){.k = 8,
                                                   .kernel_h = 3,
                                                   .kernel_w = 3,
                                                   .stride = 1,
                                                   .pad_h = 1,
                                                   .pad_w = 1,
                                                   .has_bias = true});
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc1", x, 12, true);
    x = weir_graph_dropout(graph, "drop", x, 0.3f);
    x = weir_graph_linear(graph, "fc2", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

struct ranges {
    size_t next, n_calls, smallest;
    bool is_ordered;
};

static void note_range(void *context, size_t first_elem, size_t n_elems)
{
    struct ranges *ranges = context;
    ranges->is_ordered = ranges->is_ordered && first_elem == ranges->next && n_elems > 0;
    ranges->next = first_elem + n_elems;
    ranges->smallest = WEIR_MIN(ranges->smallest, n_elems);
    ranges->n_calls++;
}

START_TEST(buckets_cover_the_gradients_once_and_in_order)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct weir_graph *graph = random_graph(seed, 5, NULL);
        struct weir_net *net = training_net(graph, N_BACKENDS - 1, 1 + (int32_t)(seed % 3));
        size_t n, n_params, n_trainable = 0;
        const struct weir_param *params = weir_net_params(net, &n_params);
        for (size_t i = 0; i < n_params; i++) {
            n_trainable += params[i].is_trainable;
        }
        weir_net_gradients(net, &n);
        const size_t buckets[] = {1, 2048, (size_t)1 << 20};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(buckets); i++) {
            struct ranges ranges = {.smallest = SIZE_MAX, .is_ordered = true};
            weir_net_set_bucket_bytes(net, buckets[i]);
            ck_assert_int_eq(weir_net_step(net, 0, note_range, &ranges, NULL), WEIR_OK);
            ck_assert(ranges.is_ordered);
            ck_assert_uint_eq(ranges.next, n);
            if (i == 0) {
                ck_assert_uint_eq(ranges.n_calls, n_trainable);
            }
        }
        weir_net_destroy(net);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Copies what a range announces, at once: later it must not change any more. */
struct snapshot {
    struct weir_net *net;
    float *copy;
};

static void take_snapshot(void *context, size_t first_elem, size_t n_elems)
{
    struct snapshot *snapshot = context;
    memcpy(snapshot->copy + first_elem, weir_net_gradients(snapshot->net, NULL) + first_elem,
           n_elems * sizeof(float));
}

START_TEST(announced_gradients_are_final)
{
    struct weir_graph *graph = small_graph();
    struct weir_net *net = training_net(graph, N_BACKENDS - 1, 3);
    size_t n;
    weir_net_gradients(net, &n);
    struct snapshot snapshot = {net, calloc(n, sizeof(float))};
    weir_net_set_bucket_bytes(net, 1);
    for (uint64_t step = 0; step < 20; step++) {
        memset(weir_net_gradients(net, NULL), 0, n * sizeof(float));
        ck_assert_int_eq(weir_net_step(net, step, take_snapshot, &snapshot, NULL), WEIR_OK);
        ck_assert_int_eq(memcmp(snapshot.copy, weir_net_gradients(net, NULL), n * sizeof(float)),
                         0);
        train_step(net, step);
    }
    free(snapshot.copy);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

/* Gradients of the images first .. first + n of eight, as one of several workers has them.
 * n_labelled: over which they are a mean; 0: n. */
static float *share_gradients(const struct weir_graph *graph, int i_backend, int32_t first,
                              int32_t n, int32_t n_parts, int64_t n_labelled, size_t *out_n)
{
    struct weir_net *net = make_net(
        graph,
        (struct weir_net_config){
            .batch = 8, .n_threads = 2, .is_training = true, .backend = backends[i_backend]});
    struct weir_net *share =
        make_net(graph, (struct weir_net_config){.batch = n,
                                                 .n_threads = 2,
                                                 .n_slices = n,
                                                 .n_gradient_parts = n_parts,
                                                 .is_training = true,
                                                 .seed = 5,
                                                 .first_image = (uint32_t)first,
                                                 .backend = backends[i_backend]});
    const struct weir_shape shape = weir_graph_input_shape(graph);
    size_t image = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
    memcpy(weir_net_input(share), weir_net_input(net) + (size_t)first * image,
           (size_t)n * image * sizeof(float));
    for (int32_t i = 0; i < n; i++) {
        weir_net_labels(share)[i] = (first + i) % RANDOM_GRAPH_CLASSES;
    }
    weir_net_set_n_labelled(share, n_labelled);
    struct weir_step_result result;
    ck_assert_int_eq(weir_net_step(share, 3, NULL, NULL, &result), WEIR_OK);
    ck_assert_int_eq(result.n_labelled, n);
    const float *gradients = weir_net_gradients(share, out_n);
    float *copy = malloc(*out_n * sizeof *copy);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, gradients, *out_n * sizeof *copy);
    weir_net_destroy(share);
    weir_net_destroy(net);
    return copy;
}

START_TEST(gradients_made_of_parts_have_the_bits_of_the_sum_over_workers)
{
    struct weir_graph *graph = plain_graph();
    for (int i = 0; i < 2 * N_BACKENDS; i++) {
        const int i_backend = i / 2;
        const int64_t n_all = i % 2 == 0 ? 0 : 8;
        size_t n;
        float *whole = share_gradients(graph, i_backend, 0, 8, 4, n_all, &n);
        float *sum = share_gradients(graph, i_backend, 0, 2, 1, n_all, &n);
        for (int32_t first = 2; first < 8; first += 2) {
            float *share = share_gradients(graph, i_backend, first, 2, 1, n_all, &n);
            for (size_t e = 0; e < n; e++) {
                sum[e] += share[e];
            }
            free(share);
        }
        for (size_t e = 0; e < n; e++) { /* 0: each share is a mean over a quarter of the batch */
            ck_assert_float_eq(whole[e], n_all == 0 ? sum[e] / 4 : sum[e]);
        }
        free(whole);
        free(sum);
    }
    weir_graph_destroy(graph);
}

END_TEST

static void *count_and_give(void *context, size_t size_bytes)
{
    void **memory = context;
    ck_assert_ptr_null(*memory);
    *memory = aligned_alloc(64, (size_bytes + 63) / 64 * 64);
    memset(*memory, 0, size_bytes);
    return *memory;
}

static void *give_nothing(void *context, size_t size_bytes)
{
    (void)context;
    (void)size_bytes;
    return NULL;
}

START_TEST(gradients_lie_in_the_memory_the_caller_gave)
{
    void *memory = NULL;
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 4,
                                     .n_threads = 2,
                                     .is_training = true,
                                     .backend = backends[N_BACKENDS - 1],
                                     .alloc_gradients = count_and_give,
                                     .alloc_context = &memory};
    struct weir_net *net = make_net(graph, config);
    ck_assert_ptr_eq(weir_net_gradients(net, NULL), memory);
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_OK);
    weir_net_destroy(net);
    free(memory);
    config.alloc_gradients = give_nothing;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, NULL), WEIR_ERR_NOMEM);
    weir_graph_destroy(graph);
}

END_TEST

/* The losses of two steps; another writer has changed the weights before the second. */
static void step_twice(struct weir_net *net, float *weights, struct weir_step_result out[2])
{
    size_t n = 0;
    weir_net_init_weights(net, 3);
    weir_net_weights_changed(net);
    ck_assert_ptr_eq(weir_net_weights(net, &n), weights);
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, &out[0]), WEIR_OK);
    for (size_t i = 0; i < weir_net_n_trainable_elems(net); i++) {
        weights[i] *= 0.5f;
    }
    weir_net_weights_changed(net);
    ck_assert_int_eq(weir_net_step(net, 1, NULL, NULL, &out[1]), WEIR_OK);
}

START_TEST(weights_lie_in_the_memory_the_caller_gave)
{
    void *memory = NULL;
    struct weir_step_result given[2], own[2];
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 4,
                                     .n_threads = 2,
                                     .is_training = true,
                                     .backend = backends[N_BACKENDS - 1],
                                     .alloc_weights = count_and_give,
                                     .alloc_context = &memory};
    struct weir_net *net = make_net(graph, config);
    ck_assert_ptr_nonnull(memory);
    step_twice(net, memory, given);
    weir_net_destroy(net);
    free(memory);
    config.alloc_weights = NULL;
    net = make_net(graph, config);
    step_twice(net, weir_net_weights(net, NULL), own);
    weir_net_destroy(net);
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq(given[i].loss, own[i].loss);
    }
    ck_assert_double_ne(own[0].loss, own[1].loss);
    config.alloc_weights = give_nothing;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, NULL), WEIR_ERR_NOMEM);
    weir_graph_destroy(graph);
}

END_TEST

WEIR_TEST_MAIN("net gradients", buckets_cover_the_gradients_once_and_in_order,
               announced_gradients_are_final,
               gradients_made_of_parts_have_the_bits_of_the_sum_over_workers,
               gradients_lie_in_the_memory_the_caller_gave,
               weights_lie_in_the_memory_the_caller_gave)
