/*
 * The moving average against its formula in double precision, worked over the weights as they are
 * after each step, and trainings with one that are disturbed, shared or alone.
 */
#include "train/test_support.h"

#include "train/average.h"
#include "train/in_process.h"

#include <math.h>
#include <signal.h>

#define DECAY 0.9

static struct weir_train_config averaged(int workers, int servers, int epochs)
{
    struct weir_train_config config = fixture_config(workers, servers, epochs);
    config.optimizer.average_decay = DECAY;
    config.checkpoint.every_s = 1000;
    return config;
}

START_TEST(the_average_is_that_of_the_formula_and_swapping_twice_changes_nothing)
{
    struct weir_train_config config = averaged(1, 0, 1);
    const struct weir_net_config shape = {
        .batch = 1, .n_threads = 1, .backend = &weir_reference_backend};
    struct train_task task;
    struct train_average average;
    struct weir_net *net = NULL;
    size_t n = 0;
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_net_create(task.graph, &shape, &net, &fixture.err), WEIR_OK);
    weir_net_init_weights(net, 0);
    ck_assert_int_eq(train_average_init(&average, DECAY, net, &fixture.err), WEIR_OK);
    float *weights = weir_net_weights(net, &n);
    double *expected = WEIR_ARENA_ARRAY(&fixture.arena, n, double);
    for (size_t i = 0; i < n; i++) {
        expected[i] = (double)weights[i];
    }
    for (uint64_t step = 0; step < 150; step++) {
        weir_net_init_weights(net, step + 1);
        train_average_add(&average, net, step);
        double d = fmin(DECAY, (1.0 + (double)step) / (10.0 + (double)step));
        for (size_t i = 0; i < n; i++) {
            expected[i] = d * expected[i] + (1 - d) * (double)weights[i];
        }
    }
    const float *last = (const float *)(void *)weir_arena_memdup(&fixture.arena, weights, n * 4);
    train_average_swap(&average, net);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_eq_tol((double)weights[i], expected[i], 1e-6);
    }
    train_average_swap(&average, net);
    ck_assert_mem_eq(weights, last, n * sizeof *weights);
    train_average_fini(&average);
    weir_net_destroy(net);
    train_task_close(&task);
}

END_TEST

START_TEST(the_model_file_holds_the_average_whoever_trains)
{
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    struct weir_train_config config = averaged(1, 0, 2);
    struct train_task task;
    struct train_in_process_result result;
    size_t n = 0;
    fixture_train(&config, NULL);
    const float *alone = fixture_weights(&n);
    ck_assert_int_eq(train_task_open(&task, &config, &fixture.err), WEIR_OK);
    ck_assert_msg(train_in_process(&task, &result, &fixture.err) == WEIR_OK, "%s",
                  fixture.err.message);
    ck_assert_mem_eq(alone, weir_net_weights(result.net, NULL), n * sizeof *alone);
    weir_net_destroy(result.net);
    train_task_close(&task);
    config.optimizer.average_decay = 0;
    fixture_clear();
    fixture_train(&config, NULL);
    ck_assert_mem_ne(alone, fixture_weights(&n), n * sizeof *alone);
    fixture_write_model("", WITH_DROPOUT);
    config = averaged(2, 0, 2);
    fixture_clear();
    fixture_train(&config, NULL);
    const float *reduced = fixture_weights(&n);
    config.group.parameter_servers = 2;
    fixture_clear();
    fixture_train(&config, NULL);
    ck_assert_mem_eq(reduced, fixture_weights(&n), n * sizeof *reduced);
}

END_TEST

static void stop_in_the_middle(void *context, const struct weir_train_step *step)
{
    (void)context;
    if (step->rank == 0 && step->step == 7) {
        (void)raise(SIGTERM);
    }
}

START_TEST(a_stopped_training_goes_on_with_its_average_bit_for_bit)
{
    static const struct weir_train_hooks stopping = {.on_step = stop_in_the_middle};
    fixture_write_model(WITH_NORM, WITH_DROPOUT);
    for (int servers = 0; servers < 2; servers++) {
        struct weir_train_config config = averaged(2, servers, 3);
        size_t n = 0;
        config.data.validation = fixture.data;
        fixture_clear();
        fixture_train(&config, NULL);
        const char *expected = fixture_read(fixture.output, &n);
        fixture_clear();
        ck_assert_int_eq(weir_train_launch(&config, &stopping, &fixture.err), WEIR_ERR_CANCELLED);
        fixture_train(&config, NULL);
        fixture_expect_output(expected, n);
        config.optimizer.average_decay = 0.5;
        ck_assert_int_eq(weir_train_launch(&config, NULL, &fixture.err), WEIR_ERR_CONFLICT);
        ck_assert_ptr_nonnull(strstr(fixture.err.message, "average_decay"));
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("average", fixture_make, fixture_drop,
                    the_average_is_that_of_the_formula_and_swapping_twice_changes_nothing,
                    the_model_file_holds_the_average_whoever_trains,
                    a_stopped_training_goes_on_with_its_average_bit_for_bit)
