/* A job that is stopped for others, or held, and goes on. */
#include "job/job_step_fixture.h"

static void evict(struct weir_job_state *state, const char *task, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){
             .type = WEIR_JOB_EVENT_EVICT, .task = task, .text = "reclaimed by queue b"},
         now_ms);
}

static size_t n_wanted(const struct weir_job_state *state, int64_t now_ms)
{
    size_t wants[16];
    return weir_job_wants(state, now_ms, wants);
}

START_TEST(a_gang_that_is_evicted_stops_and_waits_again_without_a_restart)
{
    struct weir_job_state state = make_job("train", 2, 0, 0);
    place(&state, "a", 10);
    run_all(&state, 20);
    evict(&state, NULL, 1000);
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.job.outcome, "PENDING");
    ck_assert_str_eq(state.tasks[0].desired, "stopped");
    ck_assert_str_eq(state.tasks[1].desired, "stopped");
    ck_assert_uint_eq(n_wanted(&state, 1001), 0);
    end(&state, 0, 75, 1100);
    ck_assert_str_eq(state.job.state, "STOPPING");
    end(&state, 1, 75, 1200);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_str_eq(state.job.eviction, "reclaimed by queue b");
    ck_assert_str_eq(state.job.reason, "reclaimed by queue b");
    ck_assert_int_eq(state.job.n_evictions, 1);
    ck_assert_int_eq(state.job.n_restarts, 0);
    ck_assert_int_eq(state.job.queued_ms, 1200);
    ck_assert_uint_eq(n_wanted(&state, 1200), 2);
    place(&state, "b", 1300);
    ck_assert_int_eq(state.job.attempt, 2);
    ck_assert_ptr_null(state.job.eviction);
    run_all(&state, 1400);
    end(&state, 0, 0, 1500);
    end(&state, 1, 0, 1500);
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
}

END_TEST

START_TEST(a_training_that_ends_well_while_it_is_evicted_has_succeeded_a_command_has_not)
{
    const char *const kinds[] = {"train", "command"}, *const states[] = {"SUCCEEDED", "PENDING"};
    for (size_t i = 0; i < 2; i++) {
        struct weir_job_state state = make_job(kinds[i], 1, 0, 0);
        place(&state, "a", 10);
        run_all(&state, 20);
        evict(&state, NULL, 30);
        end(&state, 0, 0, 40);
        ck_assert_str_eq(state.job.state, states[i]);
    }
}

END_TEST

START_TEST(a_node_that_is_lost_meanwhile_does_not_make_it_a_restart)
{
    struct weir_job_state state = make_job("train", 2, 0, 0);
    place(&state, "a", 10);
    run_all(&state, 20);
    evict(&state, NULL, 30);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"}, 40);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_restarts, 0);
}

END_TEST

START_TEST(who_goes_back_can_be_cancelled_and_who_waits_cannot_be_evicted)
{
    struct weir_job_state state = make_job("train", 1, 0, 0);
    ck_assert_int_eq(step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_EVICT}, 5),
                     WEIR_ERR_CONFLICT);
    place(&state, "a", 10);
    evict(&state, NULL, 20);
    ck_assert_int_eq(step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_EVICT}, 25),
                     WEIR_ERR_CONFLICT);
    ck_assert_int_eq(state.job.n_evictions, 1);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "x"}, 30);
    end(&state, 0, 75, 40);
    ck_assert_str_eq(state.job.state, "CANCELLED");
}

END_TEST

START_TEST(a_replica_is_evicted_alone_and_waits_without_a_back_off)
{
    struct weir_job_state state = make_job("predict", 2, 0, 0);
    place(&state, "a", 10);
    run_all(&state, 20);
    evict(&state, state.tasks[1].id, 30);
    ck_assert_str_eq(state.tasks[0].state, "RUNNING");
    ck_assert_str_eq(state.tasks[1].state, "STOPPING");
    end(&state, 1, 75, 40);
    ck_assert_str_eq(state.tasks[1].state, "WAITING");
    ck_assert_int_eq(state.tasks[1].n_restarts, 0);
    ck_assert_uint_eq(n_wanted(&state, 40), 1);
    ck_assert_str_eq(state.job.state, "RUNNING");
}

END_TEST

START_TEST(a_held_job_stops_and_wants_no_node_until_it_is_released)
{
    const char *const kinds[] = {"train", "predict"};
    for (size_t i = 0; i < 2; i++) {
        struct weir_job_state state = make_job(kinds[i], 1, 0, 0);
        place(&state, "a", 10);
        run_all(&state, 20);
        must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held by ann"},
             30);
        end(&state, 0, 75, 40);
        must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, 100000);
        ck_assert_uint_eq(n_wanted(&state, 100000), 0);
        ck_assert_str_eq(state.job.reason, "held by ann");
        ck_assert_int_eq(state.job.n_evictions + state.job.n_restarts, 0);
        must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE}, 100010);
        ck_assert_ptr_null(state.job.reason);
        ck_assert_uint_eq(n_wanted(&state, 100010), 1);
        ck_assert_int_eq(
            step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE}, 100020),
            WEIR_ERR_CONFLICT);
    }
}

END_TEST

START_TEST(a_job_that_waits_can_be_held_and_one_that_ends_cannot)
{
    struct weir_job_state state = make_job("train", 1, 0, 0);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held"}, 10);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_uint_eq(n_wanted(&state, 20), 0);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE}, 30);
    place(&state, "a", 40);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "x"}, 50);
    ck_assert_int_eq(
        step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held"}, 60),
        WEIR_ERR_CONFLICT);
    ck_assert(!state.job.is_held);
}

END_TEST

WEIR_TEST_MAIN_WITH("evict", set_up, tear_down,
                    a_gang_that_is_evicted_stops_and_waits_again_without_a_restart,
                    a_training_that_ends_well_while_it_is_evicted_has_succeeded_a_command_has_not,
                    a_node_that_is_lost_meanwhile_does_not_make_it_a_restart,
                    who_goes_back_can_be_cancelled_and_who_waits_cannot_be_evicted,
                    a_replica_is_evicted_alone_and_waits_without_a_back_off,
                    a_held_job_stops_and_wants_no_node_until_it_is_released,
                    a_job_that_waits_can_be_held_and_one_that_ends_cannot)
