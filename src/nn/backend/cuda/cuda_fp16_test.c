/*
 * Nets in fp16 against the reference, which rounds what it writes to halves, gradients as if they were
 * multiplied by the loss scale; and the rule of that scale: planted overflows, growth, gradients that
 * are 0 without it, and a training that goes on from what was saved.
 */
#include "cuda_fixture.h"

static struct weir_backend rounding; /* the reference, which rounds to halves */

static struct weir_net_config config_of(struct weir_backend *backend, int32_t batch)
{
    rounding = weir_reference_backend;
    rounding.has_fp16 = true;
    return (struct weir_net_config){
        .batch = batch, .is_training = true, .precision = WEIR_PRECISION_F16, .backend = backend};
}

/* The length of the difference over the length. */
static double difference(const float *a, const float *b, size_t n)
{
    double apart = 0, length = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        length += (double)a[i] * (double)a[i];
    }
    return sqrt(apart / length);
}

/* Sums are made and rounded elsewhere: a step of a half, 2^-11, here and there. */
#define TOLERANCE 5e-3

double compare_in_halves(const struct weir_graph *graph, int i_gpu, enum weir_precision precision,
                         double tolerance, const char *what)
{
    size_t n_out = 5 * (size_t)weir_graph_output_shape(graph).c, n;
    struct weir_step_result results[2];
    struct weir_net_config config = config_of(&rounding, 5);
    config.precision = precision;
    config.loss_scale = 256; /* some of these nets have gradients of 100 and more */
    struct weir_net *expected = make_net(graph, config);
    config.backend = &gpus[i_gpu];
    struct weir_net *net = make_net(graph, config);
    ck_assert_int_eq(weir_net_forward(expected, 5, NULL), WEIR_OK);
    ck_assert_int_eq(weir_net_forward(net, 5, NULL), WEIR_OK);
    double d = difference(weir_net_output(expected), weir_net_output(net), n_out);
    ck_assert_msg(d < tolerance, "GPU %d, %s: inference differs by %g", i_gpu, what, d);
    ck_assert_int_eq(weir_net_step(expected, 7, NULL, NULL, &results[0]), WEIR_OK);
    ck_assert_int_eq(weir_net_step(net, 7, NULL, NULL, &results[1]), WEIR_OK);
    ck_assert_double_eq_tol(results[0].loss, results[1].loss, tolerance * results[0].loss);
    const float *gradients = weir_net_gradients(expected, &n);
    d = difference(gradients, weir_net_gradients(net, NULL), n);
    ck_assert_msg(d < 0.15, "GPU %d, %s: gradients differ by %g", i_gpu, what, d);
    weir_net_destroy(net);
    weir_net_destroy(expected);
    return d;
}

/* Where a value is as near to two halves, a maximum or a ReLU may be decided otherwise: the gradients of
 * a few nets are further apart. */
START_TEST(whole_networks_in_fp16)
{
    int n_nets = 0, n_far = 0;
    for (uint64_t seed = 400; seed < 400 + WEIR_TEST_TIMES(30, 6); seed++) {
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        char what[32];
        snprintf(what, sizeof what, "seed %d", (int)seed);
        for (int i_gpu = 0; i_gpu < n_gpus(); i_gpu++) {
            if (is_passed_over(i_gpu, seed)) {
                continue;
            }
            double d = compare_in_halves(graph, i_gpu, WEIR_PRECISION_F16, TOLERANCE, what);
            n_far += d > 4e-3;
            n_nets++;
        }
        weir_graph_destroy(graph);
    }
    ck_assert_msg(n_far <= n_nets / 4, "%d of %d are far apart", n_far, n_nets);
}

END_TEST

START_TEST(the_processor_refuses_fp16)
{
    struct weir_graph *graph = small_graph();
    struct weir_net_config config = config_of(NULL, 4);
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    const struct weir_backend *backends[] = {&weir_reference_backend, &weir_onednn_backend};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(backends); i++) {
        config.backend = backends[i];
        ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, "needs the back-end cuda"));
    }
    config.backend = &gpus[0];
    config.loss_scale = -1;
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_ERR_INVALID);
    weir_graph_destroy(graph);
}

END_TEST

/* How an update is made: by the GPU alone; by the processor, as the rule has none there; or of gradients
 * that the caller has, as those of several workers are. */
enum { BY_GPU, BY_PROCESSOR, OF_GIVEN, N_WAYS };

static const char *const rule_of[] = {"sgd", "lamb", "adam"};

static void step_and_update(struct weir_net *net, struct weir_optimizer *optimizer, int way,
                            uint64_t step)
{
    ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, NULL), WEIR_OK);
    const float *given = way == OF_GIVEN ? weir_net_gradients(net, NULL) : NULL;
    weir_optimizer_update_net(optimizer, net, given, 0.01, step);
}

static float *copy_of(struct weir_net *net)
{
    size_t n = weir_net_n_trainable_elems(net);
    float *copy = malloc(n * sizeof *copy);
    memcpy(copy, weir_net_weights(net, NULL), n * sizeof *copy);
    return copy;
}

/* From a scale that is too large: it halves and the weights stay, until gradients are finite. Then it
 * doubles after three updates, is too large again, and so on. */
START_TEST(the_scale_follows_its_rule)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < N_WAYS * n_gpus(); i++) {
        int way = i % N_WAYS, n_skips = 0, n_doubled = 0;
        struct weir_net_config config = config_of(&gpus[i / N_WAYS], 6);
        config.loss_scale = 0x1p28F;
        config.loss_scale_steps = 3;
        struct weir_net *net = make_net(graph, config);
        struct weir_optimizer *optimizer = make_optimizer(rule_of[way], net);
        for (uint64_t step = 0; step < 30; step++) {
            float *before = copy_of(net);
            struct weir_loss_scale old = weir_net_loss_scale(net);
            step_and_update(net, optimizer, way, step);
            struct weir_loss_scale now = weir_net_loss_scale(net);
            size_t n = weir_net_n_trainable_elems(net) * sizeof *before;
            bool is_skipped = memcmp(before, weir_net_weights(net, NULL), n) == 0;
            bool is_due = old.n_good == 2;
            ck_assert_uint_eq(now.n_skipped, old.n_skipped + is_skipped);
            ck_assert_float_eq(now.scale, is_skipped ? old.scale / 2
                                          : is_due   ? old.scale * 2
                                                     : old.scale);
            ck_assert_uint_eq(now.n_good, is_skipped || is_due ? 0 : old.n_good + 1);
            for (size_t k = 0; k < n / sizeof *before; k++) {
                ck_assert(isfinite(weir_net_weights(net, NULL)[k]));
            }
            n_skips += is_skipped;
            n_doubled += !is_skipped && is_due;
            free(before);
        }
        ck_assert_int_gt(n_skips, 5);
        ck_assert_int_gt(n_doubled, 2);
        weir_optimizer_destroy(optimizer);
        weir_net_destroy(net);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* What a checkpoint has: weights, the optimiser's state, the scale. */
static void go_on(struct weir_net *from, struct weir_optimizer *state_from, struct weir_net *to,
                  struct weir_optimizer *state_to)
{
    size_t n, n_states;
    const struct weir_loss_scale scale = weir_net_loss_scale(from);
    const float *weights = weir_net_weights(from, &n);
    memcpy(weir_net_weights(to, NULL), weights, n * sizeof *weights);
    weir_net_weights_changed(to);
    const struct weir_optimizer_state *states = weir_optimizer_states(state_from, &n_states);
    for (size_t i = 0; i < n_states; i++) {
        ck_assert_int_eq(weir_optimizer_restore(state_to, states[i].name, states[i].data,
                                                states[i].n_elems, NULL),
                         WEIR_OK);
    }
    ck_assert_int_eq(weir_net_set_loss_scale(to, &scale), WEIR_OK);
}

/* Updates are skipped and the scale doubles on both sides of the place where the second goes on. */
START_TEST(a_training_goes_on_with_the_same_bits)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i++) {
        struct weir_net_config config = config_of(&gpus[i], 6);
        config.loss_scale = 0x1p24F;
        config.loss_scale_steps = 2;
        struct weir_net *a = make_net(graph, config), *b;
        struct weir_optimizer *state_a = make_optimizer("adam", a), *state_b;
        for (uint64_t step = 0; step < 9; step++) {
            step_and_update(a, state_a, BY_GPU, step);
        }
        config.loss_scale = 0;
        b = make_net(graph, config);
        state_b = make_optimizer("adam", b);
        go_on(a, state_a, b, state_b);
        for (uint64_t step = 9; step < 20; step++) {
            step_and_update(a, state_a, BY_GPU, step);
            step_and_update(b, state_b, BY_GPU, step);
        }
        struct weir_loss_scale x = weir_net_loss_scale(a), y = weir_net_loss_scale(b);
        ck_assert_float_eq(x.scale, y.scale);
        ck_assert_uint_eq(x.n_good, y.n_good);
        ck_assert_uint_eq(x.n_skipped, y.n_skipped);
        size_t n;
        const float *weights = weir_net_weights(a, &n);
        ck_assert_mem_eq(weights, weir_net_weights(b, NULL), n * sizeof *weights);
        const struct weir_loss_scale wrong = {.scale = NAN};
        ck_assert_int_eq(weir_net_set_loss_scale(b, &wrong), WEIR_ERR_INVALID);
        weir_optimizer_destroy(state_a);
        weir_optimizer_destroy(state_b);
        weir_net_destroy(a);
        weir_net_destroy(b);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* Each class is a pattern of its own, in noise. */
static void draw_batch(struct weir_net *net, const struct weir_graph *graph, uint64_t step)
{
    struct weir_shape s = weir_graph_input_shape(graph);
    size_t len = (size_t)s.c * (size_t)s.h * (size_t)s.w;
    float *input = weir_net_input(net);
    struct weir_rng rng;
    weir_rng_init(&rng, step, 31);
    for (int32_t i = 0; i < weir_net_batch(net); i++) {
        int32_t label = (int32_t)weir_rng_below(&rng, RANDOM_GRAPH_CLASSES);
        struct weir_rng pattern;
        weir_rng_init(&pattern, (uint64_t)label, 32);
        for (size_t j = 0; j < len; j++) {
            input[(size_t)i * len + j] =
                (float)(0.25 * weir_rng_normal(&pattern) + weir_rng_normal(&rng));
        }
        weir_net_labels(net)[i] = label;
    }
}

/* Steps of a training, and of how many of its last the loss is the mean. */
#define TRAIN_STEPS WEIR_TEST_TIMES(80, 40)
#define MEAN_STEPS  WEIR_TEST_TIMES(40, 20)

/* The emulated GPU without a library has nothing of its own to show in a training. */
static bool trains(int i_gpu)
{
    return i_gpu != 1;
}

/* Mean loss of the last steps. */
static double train(const struct weir_graph *graph, struct weir_net_config config, const char *rule,
                    double learning_rate, int64_t n_labelled)
{
    struct weir_net *net = make_net(graph, config);
    struct weir_optimizer *optimizer = make_optimizer(rule, net);
    double sum = 0;
    weir_net_set_n_labelled(net, n_labelled);
    for (uint64_t step = 0; step < TRAIN_STEPS; step++) {
        struct weir_step_result result;
        draw_batch(net, graph, step);
        ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, &result), WEIR_OK);
        weir_optimizer_update_net(optimizer, net, NULL, learning_rate, step);
        sum += step >= TRAIN_STEPS - MEAN_STEPS ? result.loss : 0;
    }
    weir_optimizer_destroy(optimizer);
    weir_net_destroy(net);
    return sum / MEAN_STEPS;
}

START_TEST(a_training_ends_at_the_loss_of_f32)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i += trains(i + 1) ? 1 : 2) {
        struct weir_net_config config = config_of(&gpus[i], 16);
        double half = train(graph, config, "sgd", 0.01, 0);
        config.precision = WEIR_PRECISION_F32;
        double whole = train(graph, config, "sgd", 0.01, 0);
        ck_assert_double_lt(whole, 1.2);
        ck_assert_double_eq_tol(half, whole, 0.01 * whole);
    }
    weir_graph_destroy(graph);
}

END_TEST

/* A mean over ten million images, as if others computed the rest: gradients far below 2^-24, which Adam
 * would not mind. Without a scale they are 0. */
START_TEST(gradients_below_what_halves_hold_train_with_a_scale)
{
    struct weir_graph *graph = small_graph();
    for (int i = 0; i < n_gpus(); i += trains(i + 1) ? 1 : 2) {
        struct weir_net_config config = config_of(&gpus[i], 16);
        const char *rule = "adamw:epsilon=1e-15"; /* whose weight decay is not in the gradient */
        double scaled = train(graph, config, rule, 0.01, 100000000);
        config.loss_scale = 1;
        double unscaled = train(graph, config, rule, 0.01, 100000000);
        config.precision = WEIR_PRECISION_F32;
        double whole = train(graph, config, rule, 0.01, 100000000);
        ck_assert_double_lt(whole, 1.2);
        ck_assert_double_eq_tol(scaled, whole, 0.1 * whole);
        ck_assert_msg(unscaled > 1.2 * whole, "%g without a scale, %g in f32", unscaled, whole);
    }
    weir_graph_destroy(graph);
}

END_TEST

size_t cuda_fp16_tests(const TTest **out)
{
    const TTest *const tests[] = {whole_networks_in_fp16,
                                  the_processor_refuses_fp16,
                                  the_scale_follows_its_rule,
                                  a_training_goes_on_with_the_same_bits,
                                  a_training_ends_at_the_loss_of_f32,
                                  gradients_below_what_halves_hold_train_with_a_scale};
    memcpy(out, tests, sizeof tests);
    return WEIR_ARRAY_LEN(tests);
}
