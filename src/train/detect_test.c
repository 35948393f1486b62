/* A detector is trained like any other model; its figures are those of their definition. */
#include "train/detect.h"

#include "train/task.h"
#include "train/test_support.h"

#include <math.h>
#include <stdlib.h>

static struct weir_train_config detector(int workers, int epochs)
{
    struct weir_train_config config = fixture_config(workers, 0, epochs);
    config.model.name = (char *)"face-detect";
    config.model.input = (char *)"1,48,64";
    config.model.backend = (char *)"onednn";
    config.data.scenes = 24;
    config.loop.batch_size = 8;
    config.optimizer.name = (char *)"adam";
    config.optimizer.learning_rate = 0.003;
    return config;
}

START_TEST(its_loss_falls_and_it_is_measured)
{
    struct weir_train_config config = detector(1, 6);
    config.data.validation = fixture.data;
    fixture_train(&config, &fixture_hooks);
    double first = 0, last = 0;
    for (int i = 0; i < 3; i++) { /* an epoch */
        first += fixture.trace->losses[i];
        last += fixture.trace->losses[15 + i];
    }
    ck_assert_msg(last < 0.5 * first, "from %g to %g", first / 3, last / 3);
    struct weir_net_file *file = NULL;
    ck_assert_int_eq(weir_net_file_open(fixture.output, &file, NULL), WEIR_OK);
    const char *training = weir_net_file_info(file)->training;
    ck_assert_ptr_nonnull(strstr(training, "\"recall\":"));
    ck_assert_ptr_nonnull(strstr(training, "\"precision\":"));
    ck_assert_str_eq(weir_net_file_info(file)->labels[0], "face");
    ck_assert(weir_graph_is_detector(weir_net_file_graph(file)));
    weir_net_file_close(file);
}

END_TEST

START_TEST(two_workers_learn_the_same)
{
    struct weir_train_config config = detector(2, 2);
    double losses[6];
    fixture_train(&config, &fixture_hooks);
    memcpy(losses, fixture.trace->losses, sizeof losses);
    fixture_clear();
    config.group.workers = 1;
    fixture_train(&config, &fixture_hooks);
    /* The first loss is of the same weights and scenes; then batch norms see other shares. */
    ck_assert_msg(fabs(losses[0] / fixture.trace->losses[0] - 1) < 0.05, "%g and %g", losses[0],
                  fixture.trace->losses[0]);
    ck_assert_msg(fabs(losses[5] / fixture.trace->losses[5] - 1) < 0.5, "%g and %g", losses[5],
                  fixture.trace->losses[5]);
}

END_TEST

/* Counts made at random; recall by summing up anew for each threshold that there is. */
START_TEST(figures_are_those_of_their_definition)
{
    struct weir_rng rng;
    double counts[TRAIN_DETECT_COUNTS] = {0};
    double *wrong = counts + 1 + TRAIN_DETECT_WIDTHS, *right = wrong + TRAIN_DETECT_BINS;
    weir_rng_init(&rng, (uint64_t)_i, 5);
    counts[0] = 100;
    for (int w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        counts[1 + w] = 300;
        for (int b = 0; b < TRAIN_DETECT_BINS; b++) {
            right[w * TRAIN_DETECT_BINS + b] = (double)weir_rng_below(&rng, 2);
        }
    }
    for (int b = 0; b < TRAIN_DETECT_BINS; b++) {
        wrong[b] = (double)weir_rng_below(&rng, 3);
    }
    double best = 0;
    for (int from = TRAIN_DETECT_BINS; from >= 0; from--) {
        double n_wrong = 0, n_right = 0;
        for (int b = from; b < TRAIN_DETECT_BINS; b++) {
            n_wrong += wrong[b];
            for (int w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
                n_right += right[w * TRAIN_DETECT_BINS + b];
            }
        }
        best = n_wrong <= 10 ? fmax(best, n_right / 1200) : best;
    }
    struct train_found found = train_detect_found(counts);
    ck_assert(found.is_known);
    ck_assert_double_eq_tol(found.recall_10, best, 1e-9);
    ck_assert(found.recall_30 <= found.recall_10 && found.recall_10 <= found.recall_1);
    double mean = 0;
    for (int w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        mean += found.by_width[w] / TRAIN_DETECT_WIDTHS;
    }
    ck_assert_double_eq_tol(mean, best, 1e-9);
}

END_TEST

/* As if a net had said of each square what it should, and of all others that they are hardly faces. */
START_TEST(what_is_said_is_compared_with_what_is_shown)
{
    struct weir_train_config config = detector(1, 1);
    struct train_task task;
    struct weir_net *net = NULL;
    config.model.input = (char *)"1,192,320";
    ck_assert_msg(train_task_open(&task, &config, &fixture.err) == WEIR_OK, "%s",
                  fixture.err.message);
    const struct weir_net_config planned = {.batch = 1, .n_threads = 1};
    ck_assert_int_eq(weir_net_create(task.graph, &planned, &net, NULL), WEIR_OK);
    size_t n_values = (size_t)weir_graph_output_shape(task.graph).c;
    float *said = (float *)weir_net_output(net);
    double counts[TRAIN_DETECT_COUNTS] = {0}, n_faces = 0;
    for (uint64_t i = 0; i < 24; i++) {
        ck_assert(train_detect_target(net, task.dataset, 0, i));
        for (size_t k = 0; k < n_values; k++) {
            float target = weir_net_targets(net)[k];
            bool is_score = k < n_values / 15;
            said[k] = !is_score ? (isnan(target) ? 0 : target) : target >= 0.6F ? 4 : -3;
        }
        ck_assert_int_eq(train_detect_count(net, task.dataset, 0, i, counts, NULL), WEIR_OK);
    }
    struct train_found found = train_detect_found(counts);
    for (int w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
        n_faces += counts[1 + w];
    }
    ck_assert_double_ge(n_faces, 24);
    ck_assert_double_ge(found.recall_30, 0.9); /* two may lie on one another */
    ck_assert_double_ge(found.precision, 0.99);
    weir_net_destroy(net);
    train_task_close(&task);
}

END_TEST

/* The same face to the left and to the right of where it is: neither covers the other, and one of them is wrong. */
START_TEST(a_face_that_is_told_of_twice_is_found_once)
{
    enum { FINE = 40 * 24, ALL = FINE + 20 * 12, STEP = 20 * 12 };

    struct weir_train_config config = detector(1, 1);
    struct train_task task;
    struct weir_net *net = NULL;
    config.model.input = (char *)"1,192,320";
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    const struct weir_net_config planned = {.batch = 1, .n_threads = 1};
    ck_assert_int_eq(weir_net_create(task.graph, &planned, &net, NULL), WEIR_OK);
    float *said = (float *)weir_net_output(net);
    double counts[TRAIN_DETECT_COUNTS] = {0}, n_wrong = 0, n_right = 0;
    int n_tried = 0;
    for (uint64_t i = 0; i < 24; i++) {
        ck_assert(train_detect_target(net, task.dataset, 0, i));
        const float *targets = weir_net_targets(net);
        size_t at = FINE;
        while (at < ALL - 1 && !(targets[at] >= 1 && (at - FINE) % 20 < 19)) {
            at++;
        }
        if (at == ALL - 1) {
            continue; /* no face of the coarse scale */
        }
        for (size_t k = 0; k < 15 * ALL; k++) {
            said[k] = k < ALL ? -9 : 0;
        }
        size_t place = ALL + 14 * FINE + at - FINE;
        float aside = 0.3F * 2 * expf(targets[place + 2 * STEP]);
        for (size_t k = 0; k < 14; k++) {
            said[place + k * STEP] = said[place + 1 + k * STEP] = targets[place + k * STEP];
        }
        said[at] = said[at + 1] = 3;
        said[place] -= aside;
        said[place + 1] += aside - 1;
        ck_assert_int_eq(train_detect_count(net, task.dataset, 0, i, counts, NULL), WEIR_OK);
        n_tried++;
    }
    for (int b = 0; b < TRAIN_DETECT_BINS; b++) {
        n_wrong += counts[1 + TRAIN_DETECT_WIDTHS + b];
        for (int w = 0; w < TRAIN_DETECT_WIDTHS; w++) {
            n_right += counts[1 + TRAIN_DETECT_WIDTHS + TRAIN_DETECT_BINS * (1 + w) + b];
        }
    }
    ck_assert_int_gt(n_tried, 8);
    ck_assert_double_ge(n_wrong, 0.8 * n_tried); /* another face may be where one was moved to */
    ck_assert_double_ge(n_right, 0.8 * n_tried);
    ck_assert_double_le(n_right, 1.2 * n_tried);
    weir_net_destroy(net);
    train_task_close(&task);
}

END_TEST

static void refuse(struct weir_train_config config, const char *sentence)
{
    struct train_task task;
    weir_status status = train_task_open(&task, &config, &fixture.err);
    train_task_close(&task);
    ck_assert_int_ne(status, WEIR_OK);
    ck_assert_msg(strstr(fixture.err.message, sentence) != NULL, "%s", fixture.err.message);
}

START_TEST(what_does_not_fit_is_said)
{
    struct weir_train_config config = detector(1, 1);
    config.data.augment = (char *)"face";
    refuse(config, "augment: face-detect is a detector");
    config = detector(1, 1);
    config.model.input = (char *)"3,48,64";
    refuse(config, "scenes are grey");
    config = detector(1, 1);
    config.data.face_box = (char *)"1,2,3";
    refuse(config, "face_box: \"1,2,3\"");
    config = detector(1, 1);
    config.data.backgrounds = (char *)"/nowhere";
    refuse(config, "backgrounds: /nowhere");
    config = detector(1, 1);
    config.model.backend = (char *)"cuda";
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "choose the back-end onednn"));
    config = fixture_config(1, 0, 1);
    config.data.backgrounds = fixture.data;
    refuse(config, "backgrounds: only a detector");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("detect");
    TCase *cases = tcase_create("detect");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, fixture_make, fixture_drop);
    tcase_add_test(cases, its_loss_falls_and_it_is_measured);
    tcase_add_test(cases, two_workers_learn_the_same);
    tcase_add_loop_test(cases, figures_are_those_of_their_definition, 0, 10);
    tcase_add_test(cases, what_is_said_is_compared_with_what_is_shown);
    tcase_add_test(cases, a_face_that_is_told_of_twice_is_found_once);
    tcase_add_test(cases, what_does_not_fit_is_said);
    suite_add_tcase(suite, cases);
    return weir_test_run(suite);
}
