#include "control/run_history.h"

#include "base/test_main.h"

#include <stdio.h>

static struct run_history history;

static void note(const char *project, const char *name, const char *ion, const char *state,
                 int64_t run_ms, int64_t revision)
{
    const struct weir_job job = {.project = (char *)project,
                                 .name = (char *)name,
                                 .ion = (char *)ion,
                                 .pipeline = ion != NULL ? (char *)"learn" : NULL,
                                 .state = (char *)state,
                                 .started_ms = 1000,
                                 .finished_ms = 1000 + run_ms,
                                 .revision = revision};
    run_history_note(&history, &job);
}

static int64_t expected(const char *project, const char *name, const char *ion)
{
    const struct weir_job job = {.project = (char *)project,
                                 .name = (char *)name,
                                 .ion = (char *)ion,
                                 .pipeline = ion != NULL ? (char *)"learn" : NULL};
    return run_history_expected_ms(&history, run_history_work(&job));
}

START_TEST(work_is_expected_to_take_as_long_as_the_last_time)
{
    ck_assert_int_eq(expected("p", "nightly", NULL), 0);
    note("p", "nightly", NULL, "SUCCEEDED", 500, 1);
    note("p", "nightly", NULL, "SUCCEEDED", 700, 3);
    note("p", "nightly", NULL, "SUCCEEDED", 600, 2); /* Older, told later. */
    note("p", "nightly", NULL, "FAILED", 5, 4);
    note("q", "nightly", NULL, "SUCCEEDED", 90, 5);
    ck_assert_int_eq(expected("p", "nightly", NULL), 700);
    ck_assert_int_eq(expected("q", "nightly", NULL), 90);
    ck_assert_int_eq(expected("q", "other", NULL), 0);
    const struct weir_job job = {.project = "p", .name = "nightly"},
                          other = {.project = "p", .name = "new"};
    int64_t least, most;
    ck_assert_int_eq(run_history_spread(&history, run_history_work(&job), 0, &least, &most), 3);
    ck_assert_int_eq(least, 500);
    ck_assert_int_eq(most, 700);
    ck_assert_int_eq(run_history_spread(&history, run_history_work(&other), 0, &least, &most), 0);
    ck_assert_int_eq(run_history_spread(&history, run_history_work(&job), 599, &least, &most), 2);
    ck_assert_int_eq(least, 600);
    ck_assert_int_eq(run_history_spread(&history, run_history_work(&job), 700, &least, &most), 0);
    for (int i = 0; i < 2 * RUN_HISTORY_RUNS_MAX; i++) { /* The last ones are told, each once. */
        note("p", "nightly", NULL, "SUCCEEDED", 1000 + i, 10 + i);
        note("p", "nightly", NULL, "SUCCEEDED", 1000 + i, 10 + i);
    }
    ck_assert_int_eq(run_history_spread(&history, run_history_work(&job), 0, &least, &most),
                     RUN_HISTORY_RUNS_MAX);
    ck_assert_int_eq(least, 1000 + RUN_HISTORY_RUNS_MAX);
    ck_assert_int_eq(most, 1000 + 2 * RUN_HISTORY_RUNS_MAX - 1);
    run_history_fini(&history);
}

END_TEST

START_TEST(trainings_of_a_pipeline_are_the_same_work_whatever_their_name)
{
    note("p", "door.learn.1", "door", "SUCCEEDED", 800, 1);
    ck_assert_int_eq(expected("p", "door.learn.2", "door"), 800);
    ck_assert_int_eq(expected("p", "gate.learn.1", "gate"), 0);
    ck_assert_int_eq(expected("p", "door.learn.1", NULL), 0);
    run_history_fini(&history);
}

END_TEST

START_TEST(one_too_many_takes_the_place_of_the_oldest)
{
    char name[16];
    for (int i = 0; i <= RUN_HISTORY_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        note("p", name, NULL, "SUCCEEDED", 10 + i, i + 1);
    }
    ck_assert_int_eq(history.n, RUN_HISTORY_MAX);
    ck_assert_int_eq(expected("p", "n0", NULL), 0);
    ck_assert_int_eq(expected("p", "n1", NULL), 11);
    ck_assert_int_eq(expected("p", name, NULL), 10 + RUN_HISTORY_MAX);
    run_history_fini(&history);
}

END_TEST

WEIR_TEST_MAIN("run_history", work_is_expected_to_take_as_long_as_the_last_time,
               trainings_of_a_pipeline_are_the_same_work_whatever_their_name,
               one_too_many_takes_the_place_of_the_oldest)
