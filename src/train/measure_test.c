/*
 * What is measured on data: normalisation, scores, the baseline. Each against the plain formula
 * over the same pictures.
 */
#include "train/test_support.h"

#include "stats/histogram.h"
#include "train/baseline.h"
#include "train/score.h"

#include <math.h>

#define N_PIXELS (TEST_SIDE * TEST_SIDE)

static struct train_task task;
static struct weir_train_config config;

static void setup(void)
{
    fixture_make();
    config = fixture_config(1, 0, 1);
    ck_assert_msg(train_task_open(&task, &config, &fixture.err) == WEIR_OK, "%s",
                  fixture.err.message);
}

static void teardown(void)
{
    train_task_close(&task);
    fixture_drop();
}

/** Bytes of a picture, as the file has them. */
static void read_pixels(size_t i_sample, double out[N_PIXELS])
{
    struct weir_image image = {0};
    ck_assert_int_eq(weir_dataset_read(task.dataset, i_sample, &image, &fixture.err), WEIR_OK);
    for (int i = 0; i < N_PIXELS; i++) {
        out[i] = image.pixels[i] / 255.0;
    }
    weir_image_fini(&image);
}

START_TEST(the_input_is_normalised_by_the_mean_and_deviation_of_all_pixels)
{
    double sum = 0, squares = 0, pixels[N_PIXELS], n = TEST_CLASSES * TEST_PER_CLASS * N_PIXELS;
    struct weir_net_input input;
    for (size_t s = 0; s < TEST_CLASSES * TEST_PER_CLASS; s++) {
        read_pixels(s, pixels);
        for (int i = 0; i < N_PIXELS; i++) {
            sum += pixels[i];
            squares += pixels[i] * pixels[i];
        }
    }
    ck_assert_int_eq(train_measure_input(&task, &input, &fixture.err), WEIR_OK);
    ck_assert_double_eq_tol((double)input.mean[0], sum / n, 1e-6);
    ck_assert_double_eq_tol((double)input.std[0], sqrt(squares / n - sum / n * sum / n), 1e-6);
}

END_TEST

static struct weir_net *net_of(int32_t batch)
{
    struct weir_net *net = NULL;
    const struct weir_net_config shape = {
        .batch = batch, .n_threads = 1, .backend = &weir_reference_backend};
    ck_assert_int_eq(weir_net_create(task.graph, &shape, &net, &fixture.err), WEIR_OK);
    weir_net_init_weights(net, 3);
    return net;
}

START_TEST(a_score_is_the_mean_over_every_picture_once)
{
    /* 7 does not divide 96: the last batch is not full. */
    struct weir_net *net = net_of(7), *one = net_of(1);
    const struct weir_net_input input = {
        .shape = {1, TEST_SIDE, TEST_SIDE}, .mean = {0.3f}, .std = {0.2f}};
    const struct train_score_config how = {.dataset = task.dataset, .input = &input};
    struct train_score score;
    double loss = 0, n_correct = 0, pixels[N_PIXELS];
    ck_assert_int_eq(train_score_measure(net, &how, &score, &fixture.err), WEIR_OK);
    for (size_t s = 0; s < TEST_CLASSES * TEST_PER_CLASS; s++) {
        read_pixels(s, pixels);
        for (int i = 0; i < N_PIXELS; i++) {
            weir_net_input(one)[i] = (float)((pixels[i] - 0.3) / 0.2);
        }
        ck_assert_int_eq(weir_net_forward(one, 1, NULL), WEIR_OK);
        const float *logits = weir_net_output(one);
        int label = weir_dataset_label(task.dataset, s), best = 0;
        double sum = 0;
        for (int c = 0; c < TEST_CLASSES; c++) {
            sum += exp((double)logits[c]);
            best = logits[c] > logits[best] ? c : best;
        }
        loss += log(sum) - (double)logits[label];
        n_correct += best == label;
    }
    double n = TEST_CLASSES * TEST_PER_CLASS;
    ck_assert_uint_eq(score.n, TEST_CLASSES * TEST_PER_CLASS);
    ck_assert_double_eq_tol(score.loss, loss / n, 1e-5);
    ck_assert_double_eq_tol(score.accuracy, n_correct / n, 1e-12);
    weir_net_destroy(net);
    weir_net_destroy(one);
}

END_TEST

START_TEST(genuine_scores_leave_the_picture_itself_out)
{
    /* Angles in the plane: 0 and 60 degrees of one person, 90 of another, 0 and 0 of a third. */
    const float vectors[] = {1, 0, 0.5f, 0.8660254f, 0, 1, 1, 0, 1, 0};
    const int32_t labels[] = {4, 4, 9, 2, 2};
    double scores[5];
    train_genuine_scores(vectors, labels, 5, 2, scores);
    ck_assert_double_eq_tol(scores[0], 0.5, 1e-7);
    ck_assert_double_eq_tol(scores[1], 0.5, 1e-7);
    ck_assert(isnan(scores[2]));
    ck_assert_double_eq_tol(scores[3], 1, 1e-7);
}

END_TEST

/* A classifier's scores, in the histogram: of every picture, by the loss of its likeliest label. */
static void check_probabilities(struct weir_net *net, const json_t *score)
{
    struct weir_histogram hist, expected;
    double scores[TEST_CLASSES * TEST_PER_CLASS];
    ck_assert_int_eq(weir_histogram_from_json(score, &hist, &fixture.err), WEIR_OK);
    for (size_t s = 0; s < TEST_CLASSES * TEST_PER_CLASS; s++) {
        double pixels[N_PIXELS], least = INFINITY;
        struct weir_net_input input;
        ck_assert_int_eq(train_measure_input(&task, &input, &fixture.err), WEIR_OK);
        read_pixels(s, pixels);
        for (int i = 0; i < N_PIXELS; i++) {
            weir_net_input(net)[i] =
                (float)((pixels[i] - (double)input.mean[0]) / (double)input.std[0]);
        }
        for (int32_t label = 0; label < TEST_CLASSES; label++) {
            struct weir_step_result result;
            weir_net_labels(net)[0] = label;
            ck_assert_int_eq(weir_net_forward(net, 1, &result), WEIR_OK);
            least = fmin(least, result.loss);
        }
        scores[s] = exp(-least);
    }
    ck_assert_int_eq(weir_histogram_from_values(&expected, scores, WEIR_ARRAY_LEN(scores)),
                     WEIR_OK);
    ck_assert_uint_eq(hist.n, expected.n);
    ck_assert_double_eq_tol(hist.mean, expected.mean, 1e-4);
    ck_assert_double_eq_tol(hist.m2, expected.m2, 1e-4);
}

START_TEST(the_baseline_counts_the_brightness_of_every_picture)
{
    struct weir_net *net = net_of(8);
    struct weir_net_input input;
    struct weir_histogram hist, expected;
    double brightness[TEST_CLASSES * TEST_PER_CLASS], pixels[N_PIXELS];
    char *text = NULL;
    json_t *baseline = NULL;
    ck_assert_int_eq(train_measure_input(&task, &input, &fixture.err), WEIR_OK);
    ck_assert_int_eq(train_baseline(&task, &input, net, &fixture.arena, &text, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(weir_json_parse(text, strlen(text), "baseline", &baseline, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(
        weir_histogram_from_json(json_object_get(baseline, "brightness"), &hist, &fixture.err),
        WEIR_OK);
    check_probabilities(net, json_object_get(baseline, "score"));
    for (size_t s = 0; s < TEST_CLASSES * TEST_PER_CLASS; s++) {
        brightness[s] = 0;
        read_pixels(s, pixels);
        for (int i = 0; i < N_PIXELS; i++) {
            brightness[s] += pixels[i] / N_PIXELS;
        }
    }
    ck_assert_int_eq(
        weir_histogram_from_values(&expected, brightness, TEST_CLASSES * TEST_PER_CLASS), WEIR_OK);
    ck_assert_uint_eq(hist.n, expected.n);
    ck_assert_double_eq_tol(hist.mean, expected.mean, 1e-6);
    ck_assert_double_eq_tol(hist.m2, expected.m2, 1e-6);
    /* What else a picture looks like: once of each, and contrast as the pixels have it. */
    static const char *const looks[] = {"contrast", "sharpness", "entropy"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(looks); i++) {
        ck_assert_int_eq(
            weir_histogram_from_json(json_object_get(baseline, looks[i]), &hist, &fixture.err),
            WEIR_OK);
        ck_assert_uint_eq(hist.n, expected.n);
        ck_assert_double_gt(hist.mean, 0);
    }
    ck_assert_ptr_null(json_object_get(baseline, "embedding")); /* a classifier */
    json_decref(baseline);
    weir_net_destroy(net);
}

END_TEST

START_TEST(classes_that_are_not_the_models_are_named)
{
    const char *const names[] = {"class-0", "class-1", "unknown", "class-3"};
    ck_assert_int_eq(train_check_classes(task.dataset, names, 4, "validation", &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "unknown"));
    ck_assert_int_eq(train_check_classes(task.dataset, names, 2, "validation", &fixture.err),
                     WEIR_ERR_INVALID);
}

END_TEST

WEIR_TEST_MAIN_WITH("measure", setup, teardown,
                    the_input_is_normalised_by_the_mean_and_deviation_of_all_pixels,
                    a_score_is_the_mean_over_every_picture_once,
                    genuine_scores_leave_the_picture_itself_out,
                    the_baseline_counts_the_brightness_of_every_picture,
                    classes_that_are_not_the_models_are_named)
