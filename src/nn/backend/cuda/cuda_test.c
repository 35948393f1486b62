/*
 * The back-end for GPUs against the reference: the same graph, weights and batches in both. It runs on
 * an emulated GPU, with and without a library's convolutions, and on a real one where there is one.
 *
 * Tolerances are those of compare_test.c; in bf16, where every tensor is rounded, and in TF32, losses
 * are compared along a training.
 */
#include "cuda_test.h"
#include "cuda_fixture.h"
#include "nn/net_file.h"
#include "nn/zoo.h"

#include <unistd.h>

#define TOLERANCE        1e-5
#define RANDOM_TOLERANCE 5e-4

static weir_status open_emulated(const struct weir_net_config *config, int32_t n_threads,
                                 void **out, struct weir_error *err)
{
    (void)n_threads;
    return cuda_open_on(&gpu_emulated_ops, config, out, err);
}

static weir_status open_bare(const struct weir_net_config *config, int32_t n_threads, void **out,
                             struct weir_error *err)
{
    (void)n_threads;
    return cuda_open_on(&gpu_emulated_bare_ops, config, out, err);
}

struct weir_backend gpus[N_GPUS];
static bool has_real;

static struct weir_graph *probe_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 1, 1});
    (void)weir_graph_linear(graph, "fc", x, 2, true);
    return graph;
}

static void find_gpus(void)
{
    struct weir_graph *graph = probe_graph();
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    struct weir_net_config config = {.batch = 1, .backend = &weir_cuda_backend};
    for (int i = 0; i < N_GPUS; i++) {
        gpus[i] = weir_cuda_backend;
    }
    gpus[0].open = open_emulated;
    gpus[1].open = open_bare;
    weir_status status = weir_net_create(graph, &config, &net, &err);
    has_real = status == WEIR_OK;
    printf("real GPU: %s\n", has_real ? "yes" : err.message);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    if (has_real) {
        setenv("CK_FORK", "no", 1); /* a driver does not survive a fork */
    }
    if (!has_real && status != WEIR_ERR_UNSUPPORTED) {
        exit(1); /* there is one, and it does not work */
    }
}

int n_gpus(void)
{
    return has_real ? N_GPUS : N_GPUS - 1;
}

struct weir_net *make_net(const struct weir_graph *graph, struct weir_net_config config)
{
    config.n_threads = 1;
    return compared_net(graph, config);
}

static struct net_pair make_pair(const struct weir_graph *graph, int i_gpu, int32_t batch,
                                 bool keeps_all)
{
    struct weir_net_config config = {
        .batch = batch, .n_slices = 2, .is_training = true, .backend = &weir_reference_backend};
    struct net_pair pair = {.nets[0] = make_net(graph, config)};
    config.backend = &gpus[i_gpu];
    config.keeps_all = keeps_all;
    pair.nets[1] = make_net(graph, config);
    return pair;
}

static void compare_step(const struct weir_graph *graph, const struct net_pair *pair, uint64_t step,
                         int32_t batch, double tolerance, const char *what)
{
    struct weir_step_result a, b;
    size_t n_out = (size_t)weir_graph_output_shape(graph).c;
    ck_assert_int_eq(weir_net_step(pair->nets[0], step, NULL, NULL, &a), WEIR_OK);
    ck_assert_int_eq(weir_net_step(pair->nets[1], step, NULL, NULL, &b), WEIR_OK);
    double d = distance(weir_net_output(pair->nets[0]), weir_net_output(pair->nets[1]),
                        n_out * (size_t)batch, 1e-6);
    ck_assert_msg(d <= tolerance, "%s: outputs differ by %g", what, d);
    ck_assert_double_eq_tol(a.loss, b.loss, tolerance * (1 + a.loss));
    ck_assert_int_eq(a.n_labelled, b.n_labelled);
    compare_params(pair, tolerance, what);
}

/* Two steps: the first is recorded, the second played. Then inference of all images and of some. */
void compare_on_gpu(const struct weir_graph *graph, int i_gpu, int32_t batch, double tolerance,
                    bool keeps_all, const char *what)
{
    char name[128];
    size_t n_out = (size_t)weir_graph_output_shape(graph).c;
    struct net_pair pair = make_pair(graph, i_gpu, batch, keeps_all);
    snprintf(name, sizeof name, "GPU %d, %s", i_gpu, what);
    compare_step(graph, &pair, 7, batch, tolerance, name);
    compare_step(graph, &pair, 8, batch, tolerance, name);
    compare_forward(&pair, n_out, batch, tolerance, name);
    compare_forward(&pair, n_out, batch - 2, tolerance, name);
    free_pair(&pair);
}

START_TEST(convolutions_of_odd_shapes)
{
    static const struct {
        int32_t c, k, kernel, stride, pad, groups, dilation;
    } forms[] = {{3, 17, 3, 1, 1, 1, 1},   {16, 32, 3, 2, 1, 1, 1}, {17, 5, 5, 2, 0, 1, 1},
                 {24, 8, 1, 1, 0, 1, 1},   {8, 24, 1, 2, 0, 1, 1},  {33, 19, 7, 2, 3, 1, 1},
                 {17, 17, 3, 1, 1, 17, 1}, {12, 8, 3, 2, 1, 4, 1},  {16, 16, 3, 2, 3, 1, 3},
                 {6, 9, 3, 1, 2, 3, 2}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(forms); i++) {
        struct weir_conv_params p = {.k = forms[i].k,
                                     .kernel_h = forms[i].kernel,
                                     .kernel_w = forms[i].kernel,
                                     .stride = forms[i].stride,
                                     .pad_h = forms[i].pad,
                                     .pad_w = forms[i].pad,
                                     .has_bias = i % 2 == 0,
                                     .groups = forms[i].groups,
                                     .dilation = forms[i].dilation};
        char what[96];
        snprintf(what, sizeof what, "c %d, k %d, kernel %d, stride %d, groups %d", forms[i].c, p.k,
                 forms[i].kernel, p.stride, p.groups);
        struct weir_graph *graph = conv_graph(forms[i].c, &p);
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            compare_on_gpu(graph, i_gpu, 5, TOLERANCE, false, what);
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Few channels and stride 2: blocks of pixels. */
START_TEST(first_layers)
{
    static const struct {
        int32_t c, kernel_h, kernel_w, pad_h, pad_w;
    } forms[] = {{3, 7, 7, 3, 3}, {3, 3, 3, 0, 0}, {1, 5, 5, 1, 2},
                 {4, 4, 3, 1, 1}, {2, 2, 6, 0, 2}, {3, 3, 3, 1, 1}};

    for (int i = 0; i < (int)WEIR_ARRAY_LEN(forms) * n_gpus(); i++) {
        int form = i % (int)WEIR_ARRAY_LEN(forms);
        char what[32];
        struct weir_conv_params p = {.k = 5,
                                     .kernel_h = forms[form].kernel_h,
                                     .kernel_w = forms[form].kernel_w,
                                     .stride = 2,
                                     .pad_h = forms[form].pad_h,
                                     .pad_w = forms[form].pad_w,
                                     .has_bias = true};
        struct weir_graph *graph = weir_graph_create();
        weir_value_t x = weir_graph_input(graph, (struct weir_shape){forms[form].c, 14, 11});
        x = weir_graph_conv(graph, "conv", x, &p);
        x = weir_graph_relu(graph, "relu", x);
        x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
        weir_graph_softmax_loss(graph, "loss", x);
        snprintf(what, sizeof what, "form %d", form);
        compare_on_gpu(graph, i / (int)WEIR_ARRAY_LEN(forms), 5, TOLERANCE, true, what);
        weir_graph_destroy(graph);
    }
}

END_TEST

START_TEST(whole_networks_of_every_layer)
{
    for (uint64_t seed = 0; seed < WEIR_TEST_TIMES(60, 12); seed++) {
        char what[32];
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        snprintf(what, sizeof what, "seed %d", (int)seed);
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            compare_on_gpu(graph, i_gpu, 5, RANDOM_TOLERANCE, seed % 2 == 0, what);
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Folded batch norms, and residuals and ReLUs behind convolutions. */
START_TEST(inference_alone)
{
    for (uint64_t seed = 200; seed < 200 + WEIR_TEST_TIMES(30, 8); seed++) {
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        size_t n_out = (size_t)weir_graph_output_shape(graph).c;
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            struct weir_net_config config = {.batch = 5, .backend = &weir_reference_backend};
            struct net_pair pair = {.nets[0] = make_net(graph, config)};
            config.backend = &gpus[i_gpu];
            pair.nets[1] = make_net(graph, config);
            char what[64];
            snprintf(what, sizeof what, "GPU %d, seed %d", i_gpu, (int)seed);
            compare_forward(&pair, n_out, 5, RANDOM_TOLERANCE, what);
            compare_forward(&pair, n_out, 3, RANDOM_TOLERANCE, what);
            free_pair(&pair);
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

static const char *const rules[] = {"sgd", "sgd:nesterov=1", "rmsprop", "adam", "adamw", "lamb"};

struct weir_optimizer *make_optimizer(const char *rule, struct weir_net *net)
{
    struct weir_optimizer_config config;
    struct weir_optimizer *optimizer = NULL;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_optimizer_parse(rule, &config, &err), WEIR_OK);
    config.weight_decay = 0.01;
    size_t n_params;
    const struct weir_param *params = weir_net_params(net, &n_params);
    ck_assert_msg(weir_optimizer_create(&config, params, n_params, &optimizer, &err) == WEIR_OK,
                  "%s", err.message);
    return optimizer;
}

struct weir_graph *small_graph(void)
{
    struct weir_conv_params conv = {
        .k = 8, .kernel_h = 3, .kernel_w = 3, .stride = 1, .pad_h = 1, .pad_w = 1};
    struct weir_graph *graph = weir_graph_create();
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){3, 8, 8});
    x = weir_graph_conv(graph, "conv", x, &conv);
    x = weir_graph_batch_norm(graph, "norm", x);
    x = weir_graph_relu(graph, "relu", x);
    x = weir_graph_linear(graph, "fc", x, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

static double largest_difference(const float *a, const float *b, size_t n)
{
    return distance(a, b, n, 1e-3);
}

/* The same gradients in both, so that only the update differs; the state comes back by halves. */
START_TEST(updates_are_those_of_the_processor)
{
    for (int i = 0; i < (int)WEIR_ARRAY_LEN(rules) * n_gpus(); i++) {
        const char *rule = rules[i % (int)WEIR_ARRAY_LEN(rules)];
        struct weir_graph *graph = small_graph();
        struct weir_net_config config = {
            .batch = 6, .is_training = true, .backend = &gpus[i / (int)WEIR_ARRAY_LEN(rules)]};
        struct weir_net *a = make_net(graph, config), *b = make_net(graph, config);
        struct weir_optimizer *on_gpu = make_optimizer(rule, a), *here = make_optimizer(rule, b);
        size_t n_weights, n_states;
        for (uint64_t step = 0; step < 4; step++) {
            ck_assert_int_eq(weir_net_step(a, step, NULL, NULL, NULL), WEIR_OK);
            ck_assert_int_eq(weir_net_step(b, step, NULL, NULL, NULL), WEIR_OK);
            weir_optimizer_update_net(on_gpu, a, NULL, 0.01, step);
            weir_optimizer_update_net(here, b, weir_net_gradients(b, NULL), 0.01, step);
            if (step == 1) {
                (void)weir_optimizer_states(on_gpu, &n_states);
            }
        }
        ck_assert_int_eq(weir_net_wait(a), WEIR_OK);
        (void)weir_net_weights(a, &n_weights);
        double d =
            largest_difference(weir_net_weights(b, NULL), weir_net_weights(a, NULL), n_weights);
        ck_assert_msg(d < 1e-4, "%s: weights differ by %g", rule, d);
        weir_net_destroy(a); /* the state outlives the net */
        const struct weir_optimizer_state *states[] = {weir_optimizer_states(here, &n_states),
                                                       weir_optimizer_states(on_gpu, &n_states)};
        for (size_t k = 0; k < n_states; k++) {
            d = largest_difference(states[0][k].data, states[1][k].data, states[0][k].n_elems);
            ck_assert_msg(d < 1e-4, "%s: state %zu differs by %g", rule, k, d);
        }
        weir_optimizer_destroy(on_gpu);
        weir_optimizer_destroy(here);
        weir_net_destroy(b);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Losses of a training of a few steps. */
static void train(const struct weir_graph *graph, struct weir_net_config config, double *losses,
                  int n)
{
    struct weir_net *net = make_net(graph, config);
    struct weir_optimizer *optimizer = make_optimizer("sgd", net);
    for (int i = 0; i < n; i++) {
        struct weir_step_result result;
        ck_assert_int_eq(weir_net_step(net, (uint64_t)i, NULL, NULL, &result), WEIR_OK);
        weir_optimizer_update_net(optimizer, net, NULL, 0.05, (uint64_t)i);
        losses[i] = result.loss;
    }
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
}

#define TRAINING_STEPS 8

START_TEST(trainings_in_every_precision)
{
    static const enum weir_precision precisions[] = {WEIR_PRECISION_F32, WEIR_PRECISION_BF16,
                                                     WEIR_PRECISION_TF32};

    static const double tolerances[] = {1e-4, 3e-2, 1e-2};
    for (uint64_t seed = 300; seed < 303; seed++) {
        struct weir_graph *graph = random_graph(seed, 2, NULL);
        for (int i = 0; i < 3 * n_gpus(); i++) {
            double expected[TRAINING_STEPS], losses[TRAINING_STEPS];
            enum weir_precision precision = precisions[i % 3];
            struct weir_net_config config = {
                .batch = 6,
                .is_training = true,
                .precision = precision == WEIR_PRECISION_TF32 ? WEIR_PRECISION_F32 : precision,
                .backend = &weir_reference_backend};
            train(graph, config, expected, TRAINING_STEPS);
            config.precision = precision;
            config.backend = &gpus[i / 3];
            train(graph, config, losses, TRAINING_STEPS);
            for (int k = 0; k < TRAINING_STEPS; k++) {
                double d = fabs(losses[k] - expected[k]) / (0.1 + fabs(expected[k]));
                ck_assert_msg(d < tolerances[i % 3], "seed %d, GPU %d, %s, step %d: %g, not %g",
                              (int)seed, i / 3, weir_precision_text(precision), k, losses[k],
                              expected[k]);
            }
        }
        weir_graph_destroy(graph);
    }
}

END_TEST

/* The limit counts; a net that does not fit says so and leaves nothing. */
START_TEST(memory_beyond_the_limit_is_refused)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {
            .batch = 64, .is_training = true, .backend = &gpus[i], .gpu_memory_bytes = 100000};
        struct weir_net *net = NULL;
        struct weir_error err = {0};
        ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_NOMEM);
        ck_assert_ptr_nonnull(strstr(err.message, "100000"));
    }
    /* A job's share of a GPU. */
    setenv("WEIR_DEVICE_MEMORY", "4096", 1);
    struct weir_net_config config = {.batch = 4, .backend = &gpus[0]};
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_NOMEM);
    setenv("WEIR_DEVICE_MEMORY", "4 GB", 1);
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    unsetenv("WEIR_DEVICE_MEMORY");
    weir_graph_destroy(graph);
}

END_TEST

/* The caller's memory for gradients, and the ranges that were reported complete. */
struct gradients {
    float *memory;
    size_t n_reported;
};

static void *alloc_gradients(void *context, size_t size_bytes)
{
    struct gradients *g = context;
    g->memory = calloc(1, size_bytes + 64);
    return g->memory;
}

static void on_bucket(void *context, size_t first_elem, size_t n_elems)
{
    struct gradients *g = context;
    ck_assert_uint_eq(first_elem, g->n_reported);
    g->n_reported += n_elems;
}

/* As several workers need them: whole, in the order of the slab, in memory that others read. */
START_TEST(gradients_reach_the_caller)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct gradients g = {NULL, 0};
        struct weir_net_config config = {.batch = 6, .is_training = true, .backend = &gpus[i]};
        struct weir_net *plain = make_net(graph, config);
        config.alloc_gradients = alloc_gradients;
        config.alloc_context = &g;
        struct weir_net *net = make_net(graph, config);
        size_t n;
        struct weir_step_result result;
        weir_net_set_bucket_bytes(net, 64);
        ck_assert_int_eq(weir_net_step(plain, 0, NULL, NULL, &result), WEIR_OK);
        const float *expected = weir_net_gradients(plain, &n);
        for (uint64_t step = 0; step < 2; step++) {
            g.n_reported = 0;
            ck_assert_int_eq(weir_net_step(net, step, on_bucket, &g, &result), WEIR_OK);
            ck_assert_uint_eq(g.n_reported, n);
            ck_assert_ptr_eq(weir_net_gradients(net, NULL), g.memory);
            ck_assert_double_lt(distance(expected, g.memory, n, 1e-6), TOLERANCE);
        }
        weir_net_destroy(net);
        weir_net_destroy(plain);
        free(g.memory);
    }
    weir_graph_destroy(graph);
}

END_TEST

struct sent_weights {
    struct weir_net *net;
    const float *weights;
    int n_calls;
};

static weir_status fetch_weights(void *context, size_t first_elem, size_t n_elems)
{
    struct sent_weights *sent = context;
    memcpy(weir_net_weights(sent->net, NULL) + first_elem, sent->weights + first_elem,
           n_elems * sizeof(float));
    sent->n_calls++;
    return WEIR_OK;
}

/* Weights that servers send while the step begins are those that it computes with. */
START_TEST(pending_weights_are_fetched_before_a_step)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {.batch = 6, .is_training = true, .backend = &gpus[i]};
        struct weir_net *a = make_net(graph, config), *b = make_net(graph, config);
        size_t n, n_trainable = weir_net_n_trainable_elems(a);
        struct weir_step_result x, y;
        float *weights = weir_net_weights(a, &n);
        for (size_t k = 0; k < n_trainable; k++) {
            weights[k] *= 1.5f;
        }
        struct sent_weights sent = {b, weights, 0};
        weir_net_set_pending_weights(b, fetch_weights, &sent);
        weir_net_weights_changed(a);
        ck_assert_int_eq(weir_net_step(a, 0, NULL, NULL, &x), WEIR_OK);
        ck_assert_int_eq(weir_net_step(b, 0, NULL, NULL, &y), WEIR_OK);
        ck_assert_int_gt(sent.n_calls, 1);
        ck_assert_double_eq(x.loss, y.loss);
        weir_net_destroy(a);
        weir_net_destroy(b);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* What was fetched from a GPU that fails afterwards is old: no file of it is begun. */
START_TEST(weights_of_a_failed_gpu_are_not_saved)
{
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = {.batch = 4, .is_training = true, .backend = &gpus[0]};
    struct weir_net *net = make_net(graph, config);
    struct weir_optimizer *optimizer = make_optimizer("adam", net);
    struct weir_net_file_info info = {.graph = "{}"};
    struct weir_error err = {0};
    char path[] = "/tmp/weir-cuda-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    char file[sizeof path + 16];
    snprintf(file, sizeof file, "%s/weights", path);
    ck_assert_int_eq(weir_net_step(net, 0, NULL, NULL, NULL), WEIR_OK);
    weir_optimizer_update_net(optimizer, net, NULL, 0.1, 0);
    ck_assert_int_eq(weir_net_check_copies(net, &err), WEIR_OK);
    emulated_has_failed = true;
    ck_assert_int_eq(weir_net_file_save(file, net, &info, &err), WEIR_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.message, "last checkpoint"));
    ck_assert_int_ne(access(file, F_OK), 0);
    emulated_has_failed = false;
    ck_assert_int_eq(rmdir(path), 0);
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
}

END_TEST

/* A batch stays on the GPU until the caller asks for the input again. */
START_TEST(a_batch_is_kept_until_a_new_one_comes)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = {.batch = 4, .backend = &gpus[i]};
        struct weir_net *net = make_net(graph, config);
        float first[4 * RANDOM_GRAPH_CLASSES];
        float *input = weir_net_input(net);
        ck_assert_int_eq(weir_net_begin_forward(net, 4), WEIR_OK);
        ck_assert_int_eq(weir_net_wait(net), WEIR_OK);
        memcpy(first, weir_net_output(net), sizeof first);
        input[0] += 10;
        ck_assert_int_eq(weir_net_forward(net, 4, NULL), WEIR_OK);
        ck_assert_mem_eq(first, weir_net_output(net), sizeof first);
        input = weir_net_input(net);
        ck_assert_int_eq(weir_net_forward(net, 4, NULL), WEIR_OK);
        ck_assert_mem_ne(first, weir_net_output(net), sizeof first);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* ---- published nets ------------------------------------------------------------------------- */

/* ‖a - b‖ / ‖a‖, or over a length that counts as none. */
static double apart(const float *a, const float *b, size_t n, double least)
{
    double square = 0, difference = 0;
    for (size_t i = 0; i < n; i++) {
        square += (double)a[i] * a[i];
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return sqrt(difference) / fmax(sqrt(square), least);
}

/* How many parameters' gradients are further apart; they are named. */
static int count_far(const struct net_pair *pair, double tolerance, const char *what)
{
    size_t n_params;
    const struct weir_param *params = weir_net_params(pair->nets[0], &n_params);
    const float *a = weir_net_gradients(pair->nets[0], NULL);
    const float *b = weir_net_gradients(pair->nets[1], NULL);
    double square = 0, most = 0;
    int n_far = 0;
    size_t n = weir_net_n_trainable_elems(pair->nets[0]);
    for (size_t i = 0; i < n; i++) {
        square += (double)a[i] * a[i];
    }
    for (size_t i = 0; i < n_params; i++) {
        const struct weir_param *p = &params[i];
        /* That of a bias in front of a batch norm is 0 but for rounding. */
        double least = 0.1 * sqrt(square / (double)n * (double)p->n_elems);
        double d =
            p->is_trainable ? apart(a + p->first_elem, b + p->first_elem, p->n_elems, least) : 0;
        most = fmax(most, d);
        if (!(d <= tolerance)) {
            printf("%s: gradients of %s are %.2g apart\n", what, p->name, d);
            n_far++;
        }
    }
    printf("%s: gradients are at most %.2g apart\n", what, most);
    return n_far;
}

/* One step in both, and how many gradients are further apart. */
static int compare_published(const char *model, enum weir_precision precision, int32_t batch,
                             double tolerance)
{
    char what[64];
    struct weir_error err = {0};
    struct weir_graph *graph = NULL;
    const struct weir_shape shape = {3, 224, 224};
    weir_status built = weir_zoo_build(model, &shape, 1000, &graph, &err);
    ck_assert_msg(built == WEIR_OK, "%s", err.message);
    struct weir_net_config config = {.batch = batch, .is_training = true};
    struct net_pair pair = {.nets[0] = compared_net(graph, config)};
    config.backend = &gpus[N_GPUS - 1];
    config.precision = precision;
    pair.nets[1] = compared_net(graph, config);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_net_step(pair.nets[i], 0, NULL, NULL, &pair.results[i]), WEIR_OK);
    }
    (void)snprintf(what, sizeof what, "%s, %s", model, weir_precision_text(precision));
    int n_far = count_far(&pair, tolerance, what);
    ck_assert_double_eq_tol(pair.results[0].loss, pair.results[1].loss, tolerance);
    free_pair(&pair);
    weir_graph_destroy(graph);
    return n_far;
}

/* Large shapes have engines of a library that small ones have not. The processor's back-end is the
 * oracle, since the reference would take hours; some rectifiers differ, and what they let through. */
START_TEST(published_nets_have_the_gradients_of_the_processor)
{
    int n_far = 0;
    if (has_real) {
        n_far += compare_published("resnet18", WEIR_PRECISION_F32, 8, 0.05);
        n_far += compare_published("resnet18", WEIR_PRECISION_TF32, 8, 0.3);
        n_far += compare_published("mobilenet_v2", WEIR_PRECISION_F32, 8, 0.05);
        n_far += compare_published("resnet50", WEIR_PRECISION_F32, 16, 0.1);
    }
    ck_assert_int_eq(n_far, 0);
}

END_TEST

#define TESTS_MAX 64

int main(int argc, char **argv)
{
    if (argc > 1) {
        return cuda_rank_main(argc, argv);
    }
    find_gpus();
    const TTest *const tests[] = {convolutions_of_odd_shapes,
                                  first_layers,
                                  whole_networks_of_every_layer,
                                  inference_alone,
                                  updates_are_those_of_the_processor,
                                  trainings_in_every_precision,
                                  memory_beyond_the_limit_is_refused,
                                  gradients_reach_the_caller,
                                  pending_weights_are_fetched_before_a_step,
                                  weights_of_a_failed_gpu_are_not_saved,
                                  a_batch_is_kept_until_a_new_one_comes,
                                  published_nets_have_the_gradients_of_the_processor};
    const TTest *all[TESTS_MAX];
    size_t n = WEIR_ARRAY_LEN(tests);
    memcpy(all, tests, sizeof tests);
    n += cuda_fp16_tests(all + n);
    n += cuda_ahead_tests(all + n);
    n += cuda_groups_tests(all + n);
    Suite *suite = weir_test_suite("cuda", all, n);
    suite_add_tcase(suite, cuda_group_cases());
    return weir_test_run(suite);
}
