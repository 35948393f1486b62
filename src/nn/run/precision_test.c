/*
 * Whole networks in bf16: against the reference, whose values are rounded as bf16 would be, and a
 * training against the same one in f32. Rounding at other places (a fused norm rounds once where
 * layers of their own round three times) moves values by half a percent, so vectors are compared as
 * a whole: the length of the difference over the length.
 */
#include "net_fixture.h"

#include <math.h>
#include <string.h>

static double distance(const float *a, const float *b, size_t n)
{
    double difference = 0, length = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        length += (double)a[i] * (double)a[i];
    }
    return sqrt(difference / length);
}

static struct weir_net *form_net(const struct weir_graph *graph, int i_form)
{
    return make_net(graph, (struct weir_net_config){.batch = 5,
                                                    .n_threads = 2,
                                                    .n_slices = 2,
                                                    .is_training = true,
                                                    .seed = 4,
                                                    .precision = form_precision(i_form),
                                                    .backend = form_backend(i_form)});
}

/* Forward, step and gradients of oneDNN (form 3) against the reference in bf16 (form 2). */
static void compare_forms(const struct weir_graph *graph, double tolerance, const char *what)
{
    struct weir_net *nets[2] = {form_net(graph, 2), form_net(graph, 3)};
    struct weir_step_result results[2];
    size_t n_out = 5 * (size_t)weir_graph_output_shape(graph).c, n;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_net_forward(nets[i], 5, NULL), WEIR_OK);
    }
    double d = distance(weir_net_output(nets[0]), weir_net_output(nets[1]), n_out);
    ck_assert_msg(d <= tolerance, "%s: inference differs by %g", what, d);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_net_step(nets[i], 7, NULL, NULL, &results[i]), WEIR_OK);
    }
    ck_assert_double_eq_tol(results[0].loss, results[1].loss, tolerance * results[0].loss);
    d = distance(weir_net_output(nets[0]), weir_net_output(nets[1]), n_out);
    ck_assert_msg(d <= tolerance, "%s: outputs differ by %g", what, d);
    const float *gradients = weir_net_gradients(nets[0], &n);
    d = distance(gradients, weir_net_gradients(nets[1], NULL), n);
    ck_assert_msg(d <= 4 * tolerance, "%s: gradients differ by %g", what, d);
    weir_net_destroy(nets[0]);
    weir_net_destroy(nets[1]);
}

START_TEST(whole_networks_of_every_layer)
{
    for (uint64_t seed = 0; has_form(3) && seed < 40; seed++) {
        char what[32];
        struct weir_graph *graph = random_graph(seed, 1 + (int)(seed % 5), NULL);
        snprintf(what, sizeof(what), "seed %d", (int)seed);
        compare_forms(graph, 0.02, what);
        weir_graph_destroy(graph);
    }
}

END_TEST

/* Pictures of five classes: each a pattern of its own, in noise. */
static void draw_batch(struct weir_net *net, const struct weir_graph *graph, uint64_t step)
{
    struct weir_shape s = weir_graph_input_shape(graph);
    size_t len = (size_t)s.c * (size_t)s.h * (size_t)s.w;
    struct weir_rng rng;
    weir_rng_init(&rng, step, 31);
    for (int32_t i = 0; i < weir_net_batch(net); i++) {
        int32_t label = (int32_t)weir_rng_below(&rng, RANDOM_GRAPH_CLASSES);
        struct weir_rng pattern;
        weir_rng_init(&pattern, (uint64_t)label, 32);
        for (size_t j = 0; j < len; j++) {
            weir_net_input(net)[(size_t)i * len + j] =
                (float)(0.5 * weir_rng_normal(&pattern) + weir_rng_normal(&rng));
        }
        weir_net_labels(net)[i] = label;
    }
}

/* Mean loss of the last 50 of 250 steps. */
static double train(const struct weir_graph *graph, enum weir_precision precision)
{
    struct weir_net *net = make_net(graph, (struct weir_net_config){.batch = 32,
                                                                    .n_threads = 2,
                                                                    .is_training = true,
                                                                    .seed = 9,
                                                                    .label_smoothing = 0.1,
                                                                    .precision = precision});
    double sum = 0;
    for (uint64_t step = 0; step < 250; step++) {
        draw_batch(net, graph, step);
        struct weir_step_result result = train_step(net, step);
        sum += step >= 200 ? result.loss : 0;
    }
    weir_net_destroy(net);
    return sum / 50;
}

START_TEST(a_training_ends_at_the_loss_of_f32)
{
    struct weir_graph *graph = small_graph();
    if (has_form(3)) {
        double f32 = train(graph, WEIR_PRECISION_F32), bf16 = train(graph, WEIR_PRECISION_BF16);
        ck_assert_double_lt(f32, 0.8);
        ck_assert_double_eq_tol(bf16, f32, 0.005 * f32);
    }
    weir_graph_destroy(graph);
}

END_TEST

START_TEST(precisions_have_names)
{
    enum weir_precision precision = WEIR_PRECISION_F32;
    struct weir_error err = {0};
    ck_assert_int_eq(weir_precision_parse("bf16", &precision, &err), WEIR_OK);
    ck_assert_int_eq(precision, WEIR_PRECISION_BF16);
    ck_assert_int_eq(weir_precision_parse("f32", &precision, &err), WEIR_OK);
    ck_assert_int_eq(precision, WEIR_PRECISION_F32);
    ck_assert_int_eq(weir_precision_parse("f16", &precision, &err), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "precision must be f32, bf16, tf32 or fp16, not \"f16\"");
    ck_assert_str_eq(weir_precision_text(WEIR_PRECISION_BF16), "bf16");
}

END_TEST

WEIR_TEST_MAIN("precision", whole_networks_of_every_layer, a_training_ends_at_the_loss_of_f32,
               precisions_have_names)
