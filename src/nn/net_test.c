/*
 * The net as its users see it: same bits for any number of threads, nothing allocated and no page
 * touched for the first time after warm-up, gradients announced once and in order.
 */
#include "nn/nn.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "random_graph_test.h"

#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZED 1 /* oneDNN's OpenMP run-time is not instrumented */
#else
#define IS_THREAD_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1 /* their allocators answer neither mallinfo2 nor a quiet page table */
#else
#define IS_SANITIZED 0
#endif

#define N_BACKENDS (IS_THREAD_SANITIZED ? 1 : 2)

static const struct weir_backend *const backends[2] = {&weir_reference_backend,
                                                       &weir_onednn_backend};

/* conv bn relu pool, a residual block, dropout: barriers, fillers, joins and tiles of two sizes. */
static struct weir_graph *small_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    struct weir_conv_params conv = {8, 3, 3, 1, 1, 1, false};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 10, 8});
    x = weir_graph_conv(graph, "conv1", x, &conv);
    x = weir_graph_batch_norm(graph, "bn1", x);
    x = weir_graph_relu(graph, "relu1", x);
    x = weir_graph_max_pool(graph, "pool", x, &(struct weir_pool_params){2, 2, 0});
    weir_value_t y = weir_graph_conv(graph, "conv2", x, &conv);
    y = weir_graph_batch_norm(graph, "bn2", y);
    y = weir_graph_add(graph, "add", y, x);
    y = weir_graph_relu(graph, "relu2", y);
    y = weir_graph_linear(graph, "fc1", y, 12, true);
    y = weir_graph_prelu(graph, "prelu", y);
    y = weir_graph_dropout(graph, "drop", y, 0.3f);
    y = weir_graph_linear(graph, "fc2", y, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", y);
    return graph;
}

/* Convolution, dropout, two linears: what has the same bits however the batch is shared. */
static struct weir_graph *plain_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 10, 8});
    x = weir_graph_conv(graph, "conv", x, &(struct weir_conv_params){8, 3, 3, 1, 1, 1, true});
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc1", x, 12, true);
    x = weir_graph_dropout(graph, "drop", x, 0.3f);
    x = weir_graph_linear(graph, "fc2", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

static struct weir_net *make_net(const struct weir_graph *graph, struct weir_net_config config)
{
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    weir_status status = weir_net_create(graph, &config, &net, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    weir_net_init_weights(net, 3);
    random_batch(net, graph, 8);
    return net;
}

static struct weir_net *training_net(const struct weir_graph *graph, int i_backend,
                                     int32_t n_threads)
{
    return make_net(graph, (struct weir_net_config){.batch = 11,
                                                    .n_slices = 4,
                                                    .n_threads = n_threads,
                                                    .is_training = true,
                                                    .seed = 5,
                                                    .backend = backends[i_backend]});
}

static struct weir_step_result train_step(struct weir_net *net, uint64_t step)
{
    struct weir_step_result result;
    size_t n;
    ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, &result), WEIR_OK);
    const float *gradients = weir_net_gradients(net, &n);
    float *weights = weir_net_weights(net, NULL);
    for (size_t i = 0; i < n; i++) {
        weights[i] -= 0.05f * gradients[i];
    }
    weir_net_weights_changed(net);
    return result;
}

static uint64_t hash_weights(struct weir_net *net)
{
    size_t n;
    const unsigned char *bytes = (const void *)weir_net_weights(net, &n);
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n * sizeof(float); i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

START_TEST(five_steps_give_the_same_bits_for_any_number_of_threads)
{
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        for (uint64_t seed = 0; seed < 6; seed++) {
            uint64_t hashes[4];
            struct weir_graph *graph = seed == 0 ? small_graph() : random_graph(seed, 6, NULL);
            for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
                struct weir_net *net = training_net(graph, i_backend, n_threads);
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

START_TEST(training_lowers_the_loss_to_nothing)
{
    struct weir_graph *graph = small_graph();
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
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

static long n_page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

struct growth {
    size_t n_bytes;
    long n_faults;
};

/* What fifty steps take from the allocator and from the kernel. */
static struct growth fifty_steps(struct weir_net *net)
{
    struct weir_step_result result;
    size_t bytes_before = mallinfo2().uordblks + mallinfo2().hblkhd;
    long faults_before = n_page_faults();
    for (uint64_t step = 0; step < 50; step++) {
        train_step(net, step);
        if (weir_net_forward(net, 11, &result) != WEIR_OK) {
            ck_abort();
        }
    }
    return (struct growth){mallinfo2().uordblks + mallinfo2().hblkhd - bytes_before,
                           n_page_faults() - faults_before};
}

/* Warm is a thread that has run every kind of task once; on a busy machine that may take a while.
 */
START_TEST(nothing_is_allocated_and_no_page_is_new_after_warm_up)
{
    struct weir_graph *graph = small_graph();
    for (int i_backend = 0; !IS_SANITIZED && i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
        struct growth growth = fifty_steps(net);
        for (int i = 0; i < 10 && (growth.n_bytes != 0 || growth.n_faults > 4); i++) {
            growth = fifty_steps(net);
        }
        ck_assert_uint_eq(growth.n_bytes, 0);
        /* Check's own messages between the steps may cost a page or two. */
        ck_assert_msg(growth.n_faults <= 4, "%ld page faults in 50 steps", growth.n_faults);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

static int n_threads_now(void)
{
    char line[256];
    int n = -1;
    FILE *status = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(status);
    while (fgets(line, sizeof(line), status)) {
        if (strncmp(line, "Threads:", 8) == 0) {
            n = (int)strtol(line + 8, NULL, 10);
        }
    }
    (void)fclose(status);
    return n;
}

/* A thread that was joined may be in the kernel's count for a moment longer. */
static void expect_threads(int n)
{
    uint64_t deadline_ns = weir_mono_ns() + 5000000000u;
    while (n_threads_now() != n && weir_mono_ns() < deadline_ns) {
        sched_yield();
    }
    ck_assert_int_eq(n_threads_now(), n);
}

START_TEST(a_net_has_the_threads_it_was_given_and_no_others)
{
    struct weir_graph *graph = small_graph();
    int n_before = n_threads_now();
    /* Sanitizers have threads of their own. */
    for (int i_backend = 0; !IS_SANITIZED && i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 3);
        train_step(net, 0);
        expect_threads(n_before + 2); /* the caller is the third */
        weir_net_destroy(net);
        expect_threads(n_before);
    }
    weir_graph_destroy(graph);
}

END_TEST

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

START_TEST(ready_ranges_cover_the_gradients_once_and_in_order)
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
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
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
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
        for (uint64_t step = 0; step < 5; step++) {
            train_step(net, step);
        }
        struct weir_net *single = make_net(
            graph,
            (struct weir_net_config){.batch = 1, .n_threads = 1, .backend = backends[i_backend]});
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
                ck_assert_float_eq_tol(weir_net_output(single)[k],
                                       weir_net_output(net)[i * RANDOM_GRAPH_CLASSES + k], 1e-5f);
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

/* Gradients of the images first .. first + n of eight, as one of several workers has them. */
static float *share_gradients(const struct weir_graph *graph, int i_backend, int32_t first,
                              int32_t n, int32_t n_parts, size_t *out_n)
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
    ck_assert_int_eq(weir_net_step(share, 3, NULL, NULL, NULL), WEIR_OK);
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
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        size_t n;
        float *whole = share_gradients(graph, i_backend, 0, 8, 4, &n);
        float *sum = share_gradients(graph, i_backend, 0, 2, 1, &n);
        for (int32_t first = 2; first < 8; first += 2) {
            float *share = share_gradients(graph, i_backend, first, 2, 1, &n);
            for (size_t i = 0; i < n; i++) {
                sum[i] += share[i];
            }
            free(share);
        }
        for (size_t i = 0; i < n; i++) { /* each share is a mean over a quarter of the batch */
            ck_assert_float_eq(whole[i], sum[i] / 4);
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

START_TEST(only_the_images_asked_for_count)
{
    struct weir_graph *graph = small_graph();
    for (int i_backend = 0; i_backend < N_BACKENDS; i_backend++) {
        struct weir_net *net = training_net(graph, i_backend, 2);
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

WEIR_TEST_MAIN("net", a_net_has_the_threads_it_was_given_and_no_others,
               running_statistics_follow_the_batch, only_the_images_asked_for_count,
               five_steps_give_the_same_bits_for_any_number_of_threads,
               training_lowers_the_loss_to_nothing,
               nothing_is_allocated_and_no_page_is_new_after_warm_up,
               ready_ranges_cover_the_gradients_once_and_in_order, announced_gradients_are_final,
               wrong_labels_change_nothing, a_batch_without_labels_has_no_gradient,
               not_a_number_stays_not_a_number,
               an_inference_net_with_the_same_weights_answers_as_the_training_net,
               gradients_made_of_parts_have_the_bits_of_the_sum_over_workers,
               gradients_lie_in_the_memory_the_caller_gave,
               parameters_are_named_and_ordered_as_the_header_says,
               initial_weights_depend_on_seed_and_name_alone)
