/* The step of a sweep, case by case: random histories are in sweep_property_test.c. */
#include "sweep/sweep_fixture.h"

static struct sweep_world world;

#define HEAD                                                                                       \
    "{\"name\":\"s\",\"seed\":1,\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{\"metric\":"  \
    "\"loss\",\"direction\":\"minimize\"},\"parameters\":{\"x\":{\"kind\":\"uniform\",\"min\":0,"  \
    "\"max\":1}},"

/* Trial 1 is best, and so on. */
static double by_number(const json_t *values, double resource, int64_t trial)
{
    (void)values;
    (void)resource;
    return (double)trial;
}

static double no_value(const json_t *values, double resource, int64_t trial)
{
    (void)values;
    (void)resource;
    (void)trial;
    return (double)NAN;
}

static const char *state_of(int64_t trial)
{
    return world.state.trials[trial - 1].row.state;
}

static void tell(struct weir_sweep_observation seen)
{
    world_apply(&world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_TICK,
                                                   .observations = &seen,
                                                   .n_observations = 1});
}

START_TEST(as_many_as_may_be_are_wanted_and_one_more_when_one_ends)
{
    world_open(&world, HEAD "\"trials\":4,\"parallel\":3}", by_number, 5);
    ck_assert_uint_eq(world.state.n_trials, 3);
    ck_assert_str_eq(state_of(3), "WANTED");
    world_start_all(&world);
    ck_assert_str_eq(state_of(3), "RUNNING");
    ck_assert_str_eq(world.state.trials[2].row.job, "job-3");
    tell(
        (struct weir_sweep_observation){.trial = 2, .job_state = "FAILED", .job_reason = "exit 1"});
    ck_assert_str_eq(state_of(2), "FAILED");
    ck_assert_str_eq(world.state.trials[1].row.reason, "exit 1");
    ck_assert_uint_eq(world.state.n_trials, 4);
    ck_assert_int_eq(world.last.items[0].type, WEIR_SWEEP_ACTION_START);
    ck_assert_int_eq(world.state.sweep.n_failed, 1);
    world_close(&world);
}

END_TEST

START_TEST(a_trial_whose_job_cannot_be_made_has_failed)
{
    world_open(&world, HEAD "\"trials\":1}", by_number, 5);
    world_apply(&world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_NOT_STARTED,
                                                   .trial = 1,
                                                   .note = "there is no dataset x"});
    ck_assert_str_eq(state_of(1), "FAILED");
    ck_assert_str_eq(world.state.sweep.state, "FAILED");
    ck_assert_str_eq(world.state.sweep.reason, "no trial has come to a value");
    ck_assert_str_eq(world.last.items[0].kind, "sweep_failed");
    world_close(&world);
}

END_TEST

START_TEST(the_best_third_goes_on_and_who_is_stopped_has_not_failed)
{
    world_open(&world,
               HEAD
               "\"trials\":6,\"parallel\":6,\"method\":{\"kind\":\"asha\",\"max_resource\":3}}",
               by_number, 100);
    world_run(&world);
    static const char *const states[] = {"SUCCEEDED", "STOPPED", "STOPPED",
                                         "STOPPED",   "STOPPED", "STOPPED"};
    for (int64_t i = 1; i <= 6; i++) {
        ck_assert_str_eq(state_of(i), states[i - 1]);
    }
    ck_assert_str_eq(world.state.trials[3].row.reason, "number 4 of 4 at step 1");
    ck_assert_str_eq(world.state.trials[0].row.reason, "it has come to step 3");
    ck_assert_str_eq(world.state.sweep.state, "SUCCEEDED");
    ck_assert_int_eq(world.state.sweep.best, 1);
    ck_assert_int_eq(world.state.sweep.n_stopped, 5);
    ck_assert_int_eq(world.state.sweep.n_failed, 0);
    ck_assert_double_eq(world.state.sweep.work, 9); /* the one that it did too much, too */
    world_close(&world);
}

END_TEST

/* Whoever looks late sees the same: values at rungs are those of the curve there. */
START_TEST(what_is_seen_late_is_judged_as_if_seen_at_once)
{
    static const struct weir_sweep_measure all[] = {
        {1, 1, 0.9}, {2, 2, 0.5}, {3, 3, 0.4}, {9, 9, 0.1}, {12, 12, 0.7}};
    world_open(&world, HEAD "\"trials\":1,\"method\":{\"kind\":\"asha\",\"max_resource\":10}}",
               by_number, 100);
    world_start_all(&world);
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "RUNNING", .measures = all, .n_measures = 5});
    const struct weir_sweep_trial_state *trial = &world.state.trials[0];
    ck_assert_uint_eq(trial->n_rungs, 3);
    ck_assert_double_eq(trial->rung_values[0], 0.9);
    ck_assert_double_eq(trial->rung_values[1], 0.4);
    ck_assert_double_eq(trial->rung_values[2], 0.1);
    ck_assert_str_eq(state_of(1), "STOPPING");
    ck_assert_double_eq(trial->row.value, 0.7);
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "CANCELLED"});
    ck_assert_str_eq(state_of(1), "SUCCEEDED");
    world_close(&world);
}

END_TEST

START_TEST(the_best_of_a_curve_is_kept_where_it_is_asked_for)
{
    static const struct weir_sweep_measure all[] = {{1, 1, 0.9}, {2, 2, 0.5}, {3, 3, 0.8}};
    world_open(&world,
               "{\"name\":\"s\",\"seed\":1,\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{"
               "\"metric\":\"loss\",\"direction\":\"minimize\",\"value\":\"best\"},\"parameters\":"
               "{\"x\":[1,2]},\"trials\":1}",
               by_number, 100);
    world_start_all(&world);
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "SUCCEEDED", .measures = all, .n_measures = 3, .last_value = 0.8});
    ck_assert_double_eq(world.state.sweep.best_value, 0.5);
    ck_assert_str_eq(world.state.sweep.state, "SUCCEEDED");
    world_close(&world);
}

END_TEST

START_TEST(who_stops_a_sweep_cancels_what_is_open)
{
    struct weir_error err = {0};
    const struct weir_sweep_event stop = {.type = WEIR_SWEEP_EVENT_STOP, .note = "stopped by ann"};
    world_open(&world, HEAD "\"trials\":9,\"parallel\":2}", by_number, 100);
    world_start(&world, 1);
    world_apply(&world, &stop);
    ck_assert_str_eq(world.state.sweep.state, "STOPPING");
    ck_assert_str_eq(state_of(1), "STOPPING");
    ck_assert_str_eq(state_of(2), "CANCELLED"); /* it had no job yet */
    ck_assert_uint_eq(world.last.n, 1);
    ck_assert_str_eq(world.last.items[0].message, "stopped by ann");
    world_start(&world, 2); /* the outbox is late */
    ck_assert_str_eq(state_of(2), "CANCELLED");
    ck_assert_int_eq(weir_sweep_step(&world.state, &stop, 1, &world.arena, &world.last, &err),
                     WEIR_ERR_CONFLICT);
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "CANCELLED"});
    ck_assert_str_eq(world.state.sweep.state, "CANCELLED");
    ck_assert_uint_eq(world.state.n_trials, 2);
    world_close(&world);
}

END_TEST

START_TEST(too_many_failures_end_it)
{
    world_open(&world, HEAD "\"trials\":9,\"parallel\":2,\"max_failures\":2}", by_number, 100);
    world_start_all(&world);
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "FAILED"});
    world_start_all(&world);
    tell((struct weir_sweep_observation){.trial = 2, .job_state = NULL});
    ck_assert_str_eq(world.state.sweep.state, "STOPPING");
    ck_assert_str_eq(world.state.trials[1].row.reason, "its job is not there any more");
    tell((struct weir_sweep_observation){.trial = 3, .job_state = "CANCELLED"});
    ck_assert_str_eq(world.state.sweep.state, "FAILED");
    ck_assert_str_eq(world.state.sweep.reason, "2 trials have failed (max_failures)");
    world_close(&world);
}

END_TEST

START_TEST(when_its_time_is_over_it_ends_with_what_it_has)
{
    world_open(&world, HEAD "\"trials\":9,\"parallel\":2,\"time_s\":10}", by_number, 100);
    ck_assert_int_eq(weir_sweep_next_tick_ms(&world.state), 11000);
    world_start_all(&world);
    world_work(&world);
    world_look(&world);
    world.now_ms = 11000;
    world_look(&world);
    ck_assert_str_eq(state_of(1), "STOPPING");
    world_run(&world);
    ck_assert_str_eq(world.state.sweep.state, "SUCCEEDED");
    ck_assert_str_eq(state_of(1), "STOPPED");
    ck_assert_int_eq(world.state.sweep.best, 1);
    world_close(&world);
}

END_TEST

START_TEST(a_job_that_ends_without_the_metric_has_failed)
{
    world_open(&world, HEAD "\"trials\":1}", no_value, 1);
    world_start_all(&world);
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "SUCCEEDED", .last_value = (double)NAN});
    ck_assert_str_eq(world.state.trials[0].row.reason, "its job ended without metric \"loss\"");
    world_close(&world);
}

END_TEST

/* MLflow's client counts no steps unless it is told to: all of a curve is at step 0. */
START_TEST(a_program_that_counts_no_steps_has_its_last_value)
{
    static const struct weir_sweep_measure first = {0, 0, 0.9};
    world_open(&world, HEAD "\"trials\":1}", by_number, 100);
    world_start_all(&world);
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "RUNNING", .measures = &first, .n_measures = 1});
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "SUCCEEDED", .last_value = 0.3});
    ck_assert_double_eq(world.state.sweep.best_value, 0.3);
    world_close(&world);
}

END_TEST

START_TEST(a_value_that_is_no_number_is_worse_than_any)
{
    const double values[] = {(double)NAN, 3, (double)NAN, 2, 2, 9};
    const struct weir_sweep_rungs rungs = {.min_resource = 1, .eta = 3};
    static const size_t ranks[] = {5, 3, 6, 1, 2, 4};
    for (size_t i = 0; i < 6; i++) {
        size_t rank;
        ck_assert_int_eq(weir_sweep_rungs_goes_on(&rungs, values, 6, i, false, &rank), rank <= 2);
        ck_assert_uint_eq(rank, ranks[i]);
    }
}

END_TEST

/* ---- waiting at rungs ------------------------------------------------------------------------ */

#define WAITING                                                                                    \
    "\"method\":{\"kind\":\"asha\",\"min_resource\":1,\"max_resource\":9,\"eta\":3,\"at_rung\":"   \
    "\"wait\"},"

START_TEST(a_trial_waits_at_its_rung_until_it_is_among_the_best)
{
    /* The later a trial, the better: the first waits, and what comes overtakes it. */
    static const double order[] = {0, 5, 4, 3, 2, 1, 0, 0, 0};
    world_open(&world, HEAD WAITING "\"trials\":3,\"parallel\":1}", by_number, 9);
    world_start_all(&world);
    struct weir_sweep_measure measure = {1, 1, order[1]};
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "RUNNING", .measures = &measure, .n_measures = 1});
    ck_assert_str_eq(state_of(1), "PAUSING"); /* 1 of 1: none of one third */
    ck_assert_int_eq(world.last.items[0].type, WEIR_SWEEP_ACTION_HOLD);
    ck_assert_uint_eq(world.state.n_trials, 1); /* its job still runs */
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "PENDING", .is_held = false});
    ck_assert_str_eq(state_of(1), "PAUSING"); /* waiting for a node is not being held */
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "PENDING", .is_held = true});
    ck_assert_str_eq(state_of(1), "PAUSED");
    ck_assert_str_eq(state_of(2), "WANTED");
    ck_assert_int_eq(world.state.sweep.n_paused, 1);
    world_start_all(&world);
    measure.value = order[2];
    tell((struct weir_sweep_observation){
        .trial = 2, .job_state = "RUNNING", .measures = &measure, .n_measures = 1});
    tell((struct weir_sweep_observation){.trial = 2, .job_state = "PENDING", .is_held = true});
    world_start_all(&world);
    measure.value = order[3];
    tell((struct weir_sweep_observation){
        .trial = 3, .job_state = "RUNNING", .measures = &measure, .n_measures = 1});
    ck_assert_str_eq(state_of(3), "RUNNING"); /* number 1 of 3: it goes on at once */
    ck_assert_str_eq(state_of(2), "PAUSED");
    world_close(&world);
}

END_TEST

START_TEST(the_best_at_a_rung_goes_on_when_nothing_else_can_come)
{
    world_open(&world, HEAD WAITING "\"trials\":2,\"parallel\":2}", by_number, 20);
    world_run(&world);
    ck_assert_str_eq(world.state.sweep.state, "SUCCEEDED");
    ck_assert_str_eq(state_of(1), "SUCCEEDED"); /* the better one came to max_resource */
    ck_assert_str_eq(state_of(2), "STOPPED");
    ck_assert_ptr_nonnull(strstr(world.state.trials[1].row.reason, "number 2 of 2 at step 1"));
    ck_assert_int_eq(world.jobs[2].n_gone_on, 0);
    ck_assert_int_eq(world.jobs[1].n_made, 1);
    ck_assert_int_ge(world.jobs[1].n_gone_on, 1);
    world_close(&world);
}

END_TEST

START_TEST(who_releases_the_job_of_a_waiting_trial_lets_it_go_on)
{
    struct weir_sweep_measure measure = {1, 1, 5};
    world_open(&world, HEAD WAITING "\"trials\":9,\"parallel\":1}", by_number, 9);
    world_start_all(&world);
    tell((struct weir_sweep_observation){
        .trial = 1, .job_state = "RUNNING", .measures = &measure, .n_measures = 1});
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "PENDING", .is_held = true});
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "PENDING", .is_held = false});
    ck_assert_str_eq(state_of(1), "RUNNING");
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "CANCELLED"});
    ck_assert_str_eq(state_of(1), "CANCELLED");
    world_close(&world);
}

END_TEST

/* ---- a pause --------------------------------------------------------------------------------- */

static weir_status apply(enum weir_sweep_event_type type)
{
    struct weir_error err;
    const struct weir_sweep_event event = {.type = type, .note = "by ann"};
    return weir_sweep_step(&world.state, &event, world.now_ms, &world.arena, &world.last, &err);
}

START_TEST(a_paused_sweep_starts_none_and_its_time_stands_still)
{
    world_open(&world, HEAD "\"trials\":9,\"parallel\":2,\"time_s\":10}", by_number, 5);
    world_start_all(&world);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_RESUME), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_PAUSE), WEIR_OK);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_PAUSE), WEIR_ERR_CONFLICT);
    ck_assert_str_eq(world.state.sweep.state, "PAUSED");
    ck_assert_str_eq(world.state.sweep.reason, "by ann");
    ck_assert_str_eq(state_of(1), "RUNNING"); /* it goes on */
    world.now_ms += 3600000;
    tell((struct weir_sweep_observation){.trial = 1, .job_state = "FAILED"});
    ck_assert_uint_eq(world.state.n_trials, 2);
    ck_assert_int_eq(weir_sweep_next_tick_ms(&world.state), INT64_MAX);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_RESUME), WEIR_OK);
    ck_assert_str_eq(world.state.sweep.state, "RUNNING");
    ck_assert_ptr_null(world.state.sweep.reason);
    ck_assert_uint_eq(world.state.n_trials, 3);
    ck_assert_int_eq(weir_sweep_next_tick_ms(&world.state), 1000 + 3600000 + 10000);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_PAUSE), WEIR_OK);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_STOP), WEIR_OK);
    ck_assert_str_eq(world.state.sweep.state, "STOPPING");
    ck_assert_int_eq(world.state.sweep.paused_ms, 0);
    world_close(&world);
}

END_TEST

START_TEST(a_paused_sweep_with_nothing_left_is_over)
{
    world_open(&world, HEAD "\"trials\":2,\"parallel\":2}", by_number, 5);
    world_start_all(&world);
    ck_assert_int_eq(apply(WEIR_SWEEP_EVENT_PAUSE), WEIR_OK);
    world_run(&world);
    ck_assert_str_eq(world.state.sweep.state, "SUCCEEDED");
    ck_assert_ptr_null(world.state.sweep.reason);
    world_close(&world);
}

END_TEST

WEIR_TEST_MAIN("sweep_step", as_many_as_may_be_are_wanted_and_one_more_when_one_ends,
               a_trial_whose_job_cannot_be_made_has_failed,
               the_best_third_goes_on_and_who_is_stopped_has_not_failed,
               what_is_seen_late_is_judged_as_if_seen_at_once,
               the_best_of_a_curve_is_kept_where_it_is_asked_for,
               who_stops_a_sweep_cancels_what_is_open, too_many_failures_end_it,
               when_its_time_is_over_it_ends_with_what_it_has,
               a_job_that_ends_without_the_metric_has_failed,
               a_program_that_counts_no_steps_has_its_last_value,
               a_value_that_is_no_number_is_worse_than_any,
               a_trial_waits_at_its_rung_until_it_is_among_the_best,
               the_best_at_a_rung_goes_on_when_nothing_else_can_come,
               who_releases_the_job_of_a_waiting_trial_lets_it_go_on,
               a_paused_sweep_starts_none_and_its_time_stands_still,
               a_paused_sweep_with_nothing_left_is_over)
