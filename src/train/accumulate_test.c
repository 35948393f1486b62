/*
 * Steps made of several runs against the same steps made at once, and against as many workers.
 */
#include "train/test_support.h"

#include <math.h>
#include <signal.h>

#define N_LOSSES 36

static struct weir_train_config in_runs(int workers, int servers, int n_runs)
{
    struct weir_train_config config = fixture_config(workers, servers, 6);
    config.loop.micro_batches = n_runs;
    config.loop.gradient_parts = 1;
    config.optimizer.label_smoothing = 0.1;
    config.checkpoint.every_s = 1000;
    return config;
}

static const float *weights_of(const struct weir_train_config *config)
{
    size_t n = 0;
    fixture_clear();
    fixture_train(config, &fixture_hooks);
    return fixture_weights(&n);
}

static size_t n_weights(void)
{
    size_t n = 0;
    (void)fixture_weights(&n);
    return n;
}

START_TEST(four_runs_learn_what_the_whole_batch_learns)
{
    static const int gangs[][2] = {{1, 4}, {2, 2}, {3, 2}, {1, 5}}; /* 16 pictures, cut unevenly */
    fixture_write_model("", WITH_DROPOUT);
    const struct weir_train_config whole = in_runs(1, 0, 1);
    const float *expected = weights_of(&whole);
    double losses[N_LOSSES];
    memcpy(losses, fixture.trace->losses, sizeof losses);
    for (size_t g = 0; g < WEIR_ARRAY_LEN(gangs); g++) {
        const struct weir_train_config config = in_runs(gangs[g][0], 0, gangs[g][1]);
        const float *weights = weights_of(&config);
        for (int i = 0; i < N_LOSSES; i++) {
            ck_assert_msg(fabs(losses[i] - fixture.trace->losses[i]) < 1e-4, "%d workers, step %d",
                          gangs[g][0], i);
        }
        for (size_t i = 0, n = n_weights(); i < n; i++) {
            ck_assert_double_eq_tol((double)weights[i], (double)expected[i], 1e-4);
        }
    }
}

END_TEST

START_TEST(runs_have_the_bits_of_as_many_workers)
{
    static const char *const names[] = {"reference", "onednn"};
    fixture_write_model("", WITH_DROPOUT);
    for (int i = 0; i < 2; i++) {
        struct weir_train_config runs = in_runs(1, 0, 4), workers = in_runs(4, 0, 1);
        runs.model.backend = workers.model.backend = (char *)names[i];
        const float *alone = weights_of(&runs);
        ck_assert_msg(memcmp(alone, weights_of(&workers), n_weights() * sizeof *alone) == 0, "%s",
                      names[i]);
    }
}

END_TEST

START_TEST(parameter_servers_take_the_sum_of_the_runs)
{
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    struct weir_train_config config = in_runs(2, 0, 2);
    const float *reduced = weights_of(&config);
    config.group.parameter_servers = 2;
    ck_assert_mem_eq(reduced, weights_of(&config), n_weights() * sizeof *reduced);
}

END_TEST

static void stop_in_the_middle(void *context, const struct weir_train_step *step)
{
    (void)context;
    if (step->rank == 0 && step->step == 7) {
        (void)raise(SIGTERM);
    }
}

START_TEST(a_stopped_training_in_runs_goes_on_bit_for_bit)
{
    static const struct weir_train_hooks stopping = {.on_step = stop_in_the_middle};
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    struct weir_train_config config = in_runs(2, 0, 3);
    config.optimizer.name = "lamb";
    config.optimizer.clip_norm = 1;
    config.optimizer.average_decay = 0.9;
    config.optimizer.schedule = "polynomial:power=2";
    config.optimizer.warmup_epochs = 1;
    const float *expected = weights_of(&config);
    fixture_clear();
    ck_assert_int_eq(weir_train_launch(&config, &stopping, &fixture.err), WEIR_ERR_CANCELLED);
    fixture_train(&config, NULL);
    size_t n = 0;
    ck_assert_mem_eq(expected, fixture_weights(&n), n_weights() * sizeof *expected);
}

END_TEST

START_TEST(a_picture_that_is_damaged_is_left_out_of_its_run)
{
    char path[160];
    fixture_write_model("", "");
    (void)snprintf(path, sizeof path, "%s/class-1/03.pgm", fixture.data);
    ck_assert_int_eq(truncate(path, 40), 0);
    const struct weir_train_config whole = in_runs(1, 0, 1), runs = in_runs(1, 0, 16);
    const float *expected = weights_of(&whole);
    const float *weights = weights_of(&runs); /* one run is the damaged picture's alone */
    for (size_t i = 0, n = n_weights(); i < n; i++) {
        ck_assert_double_eq_tol((double)weights[i], (double)expected[i], 1e-4);
    }
}

END_TEST

START_TEST(more_runs_than_pictures_are_refused)
{
    struct weir_train_config config = in_runs(2, 0, 9);
    ck_assert_int_eq(weir_train_config_check(&config, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "micro_batches"));
    config.loop.batch_size = 0; /* as many as there are, up to 64 */
    config.loop.micro_batches = 33;
    config.group.max_restarts = 0;
    ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "micro_batches"));
}

END_TEST

WEIR_TEST_MAIN_WITH("accumulate", fixture_make, fixture_drop,
                    four_runs_learn_what_the_whole_batch_learns,
                    runs_have_the_bits_of_as_many_workers,
                    parameter_servers_take_the_sum_of_the_runs,
                    a_stopped_training_in_runs_goes_on_bit_for_bit,
                    a_picture_that_is_damaged_is_left_out_of_its_run,
                    more_runs_than_pictures_are_refused)
