/*
 * --keep best against what is seen from outside: weights that a hook copied after each epoch, the
 * epochs' own lines, and the model of a training that nobody disturbed.
 */
#include "train/test_support.h"

#include "base/json.h"
#include "train/score.h"
#include "train/task.h"

#include <math.h>
#include <signal.h>

#define N_EPOCHS        8
#define STEPS_PER_EPOCH 6
#define WEIGHTS_MAX     8192

/** After each epoch, as rank 0 had them. */
static float (*copies)[WEIGHTS_MAX];

static void copy_weights(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->rank == 0 && (step->step + 1) % STEPS_PER_EPOCH == 0) {
        memcpy(copies[step->step / STEPS_PER_EPOCH], step->weights,
               step->n_weights * sizeof(float));
    }
}

static void kill_in_the_sixth_epoch(void *context, const struct weir_train_step *step)
{
    fixture_trace_step(context, step);
    if (step->attempt == 0 && step->rank == 0 && step->step == 5 * STEPS_PER_EPOCH + 2) {
        (void)raise(SIGKILL);
    }
}

static const struct weir_train_hooks copying = {.on_step = copy_weights};
static const struct weir_train_hooks killing = {.on_step = kill_in_the_sixth_epoch};

static void setup(void)
{
    fixture_make();
    copies = mmap(NULL, N_EPOCHS * sizeof *copies, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(copies, MAP_FAILED);
}

static void teardown(void)
{
    (void)munmap(copies, N_EPOCHS * sizeof *copies);
    fixture_drop();
}

/** A rate so high that epochs are better and worse than those before. */
static struct weir_train_config restless(int workers, int servers)
{
    struct weir_train_config config = fixture_config(workers, servers, N_EPOCHS);
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    config.data.validation = config.data.path;
    config.checkpoint.keep = (char *)"best";
    config.optimizer.learning_rate = 0.4;
    config.optimizer.schedule = (char *)"constant";
    return config;
}

/** The line of an epoch: {"event":"epoch",…}. From 1. NULL if there is none. */
static json_t *epoch_line(const char *event, int epoch)
{
    char path[160];
    size_t len = 0;
    (void)fflush(stdout);
    (void)snprintf(path, sizeof path, "%s/progress", fixture.dir);
    char *text = fixture_read(path, &len);
    json_t *found = NULL;
    for (char *line = text; line < text + len;) {
        char *end = memchr(line, '\n', (size_t)(text + len - line));
        ck_assert_ptr_nonnull(end);
        json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);
        const char *name = json_string_value(json_object_get(object, "event"));
        bool is_it = name != NULL && strcmp(name, event) == 0 &&
                     (int)json_number_value(json_object_get(object, "epoch")) == epoch;
        if (is_it && found == NULL) {
            found = json_incref(object);
        }
        json_decref(object);
        line = end + 1;
    }
    return found;
}

static double field(json_t *object, const char *key)
{
    ck_assert_msg(json_is_number(json_object_get(object, key)), "no %s", key);
    return json_number_value(json_object_get(object, key));
}

/** By the epochs' lines, from 1; each of which says whether it was the best up to there. */
static int best_epoch(void)
{
    int best = 0;
    double accuracy = -1, loss = 0;
    for (int epoch = 1; epoch <= N_EPOCHS; epoch++) {
        json_t *line = epoch_line("epoch", epoch);
        ck_assert_ptr_nonnull(line);
        double a = field(line, "validation_accuracy"), l = field(line, "validation_loss");
        bool is_best = a > accuracy || (a >= accuracy && l < loss);
        ck_assert_int_eq(json_is_true(json_object_get(line, "best")), is_best);
        if (is_best) {
            best = epoch;
            accuracy = a;
            loss = l;
        }
        json_decref(line);
    }
    return best;
}

START_TEST(the_model_is_that_of_the_epoch_that_measured_best)
{
    struct weir_train_config config = restless(2, 0);
    size_t n = 0;
    fixture_train(&config, &copying);
    int best = best_epoch();
    ck_assert_msg(best < N_EPOCHS, "the last epoch is the best: nothing was tried");
    const float *weights = fixture_weights(&n);
    ck_assert_uint_le(n, WEIGHTS_MAX);
    ck_assert_mem_eq(weights, copies[best - 1], n * sizeof *weights);
    ck_assert_mem_ne(weights, copies[N_EPOCHS - 1], n * sizeof *weights);
    json_t *kept = epoch_line("kept", best);
    ck_assert_ptr_nonnull(kept);
    json_decref(kept);
    config.group.parameter_servers = 1;
    fixture_clear();
    fixture_train(&config, NULL);
    ck_assert_mem_eq(weights, fixture_weights(&n), n * sizeof *weights);
}

END_TEST

/** What the model file says that was measured. */
static double saved_metric(const char *key)
{
    struct weir_net_file *file = NULL;
    json_error_t why;
    ck_assert_int_eq(weir_net_file_open(fixture.output, &file, &fixture.err), WEIR_OK);
    json_t *training = json_loads(weir_net_file_info(file)->training, 0, &why);
    double value = field(json_object_get(training, "metrics"), key);
    json_decref(training);
    weir_net_file_close(file);
    return value;
}

START_TEST(with_an_average_it_is_the_average_that_was_measured)
{
    struct weir_train_config config = restless(1, 0);
    struct train_task task;
    struct train_score score;
    struct weir_net *net = NULL;
    struct weir_net_file *file = NULL;
    const struct weir_net_config shape = {
        .batch = 8, .n_threads = 1, .backend = &weir_reference_backend};
    config.optimizer.average_decay = 0.5;
    fixture_train(&config, NULL);
    json_t *line = epoch_line("epoch", best_epoch());
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_net_file_load(fixture.output, &shape, &net, &file, &fixture.err),
                     WEIR_OK);
    const struct train_score_config how = {.dataset = task.validation,
                                           .input = &weir_net_file_info(file)->input};
    ck_assert_int_eq(train_score_measure(net, &how, &score, &fixture.err), WEIR_OK);
    ck_assert_double_eq_tol(score.accuracy, field(line, "validation_accuracy"), 1e-9);
    ck_assert_double_eq_tol(score.loss, field(line, "validation_loss"), 1e-6);
    ck_assert_double_eq_tol(saved_metric("validation_loss"), field(line, "validation_loss"), 1e-6);
    ck_assert_double_eq_tol(saved_metric("loss"), field(line, "loss"), 1e-6);
    json_decref(line);
    weir_net_destroy(net);
    weir_net_file_close(file);
    train_task_close(&task);
}

END_TEST

START_TEST(a_kill_after_the_best_epoch_changes_nothing)
{
    struct weir_train_config config = restless(2, 0);
    size_t len = 0;
    fixture_train(&config, NULL);
    const char *expected = fixture_read(config.output.file, &len);
    ck_assert_int_lt(best_epoch(), 6);
    fixture_clear();
    fixture_train(&config, &killing);
    ck_assert_int_eq(fixture.trace->n_attempts, 2);
    fixture_expect_output(expected, len);
}

END_TEST

START_TEST(what_another_training_left_is_not_taken_for_the_best)
{
    struct weir_train_config config = restless(1, 0);
    size_t len = 0;
    char path[160];
    config.loop.seed = 2;
    fixture_train(&config, NULL);
    const char *expected = fixture_read(config.output.file, &len);
    for (int damage = 0; damage < 2; damage++) {
        fixture_clear();
        config.loop.seed = 1;
        fixture_train(&config, NULL);
        for (int step = 0; step <= N_EPOCHS * STEPS_PER_EPOCH; step++) {
            (void)snprintf(path, sizeof path, "%s/step-%012d.safetensors", fixture.checkpoints,
                           step);
            (void)unlink(path);
        }
        (void)snprintf(path, sizeof path, "%s/best.safetensors", fixture.checkpoints);
        ck_assert_int_eq(damage == 1 ? truncate(path, 100) : access(path, R_OK), 0);
        config.loop.seed = 2;
        fixture_train(&config, NULL);
        fixture_expect_output(expected, len);
    }
}

END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct weir_train_config config = restless(1, 0);
    config.checkpoint.keep = (char *)"worst";
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "keep"));
    config = restless(1, 0);
    config.data.validation = NULL;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "validation"));
    config = restless(1, 0);
    config.group.rank = 0;
    config.checkpoint.dir = NULL;
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "checkpoint_dir"));
}

END_TEST

WEIR_TEST_MAIN_WITH("best", setup, teardown, the_model_is_that_of_the_epoch_that_measured_best,
                    with_an_average_it_is_the_average_that_was_measured,
                    a_kill_after_the_best_epoch_changes_nothing,
                    what_another_training_left_is_not_taken_for_the_best, what_cannot_be_is_refused)
