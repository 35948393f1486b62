/* Arrays: tasks that are independent of each other. */
#include "job/array.h"

#include "base/rng.h"
#include "job/job_step_fixture.h"
#include "job/restart.h"

#include <stdio.h>
#include <string.h>

static struct weir_job_state make_array(size_t n_tasks, int64_t parallel, int64_t max_restarts)
{
    struct weir_job_state state = make_job("command", n_tasks, 0, max_restarts);
    state.job.is_array = true;
    state.job.parallel = parallel;
    return state;
}

static size_t n_ends(void)
{
    size_t n = 0;
    for (size_t i = 0; i < actions.n; i++) {
        n += actions.items[i].type == WEIR_JOB_ACTION_ENDED;
    }
    return n;
}

static size_t n_wanted(const struct weir_job_state *state, int64_t now_ms)
{
    size_t wants[16];
    return weir_job_wants(state, now_ms, wants);
}

START_TEST(tasks_start_when_there_is_room_for_them_and_the_job_ends_with_the_last)
{
    struct weir_job_state state = make_array(5, 2, 0);
    ck_assert_uint_eq(n_wanted(&state, 1), 2);
    place(&state, "n", 1);
    ck_assert_str_eq(state.job.state, "STARTING");
    ck_assert_uint_eq(n_wanted(&state, 2), 0);
    run(&state, 0, 2);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_int_eq(state.job.started_ms, 2);
    end(&state, 0, 0, 3);
    ck_assert_uint_eq(n_wanted(&state, 3), 1);
    for (int i = 0; i < 3; i++) {
        place(&state, "n", 4);
        end(&state, (size_t)i + 1, 0, 5);
    }
    ck_assert_str_eq(state.job.state, "RUNNING");
    end(&state, 4, 0, 6);
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
    ck_assert_uint_eq(n_ends(), 1);
}

END_TEST

START_TEST(one_that_fails_is_tried_again_and_the_others_go_on)
{
    struct weir_job_state state = make_array(3, 0, 1);
    place(&state, "n", 1);
    run_all(&state, 2);
    end(&state, 1, 7, 1000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(state.tasks[0].state, "RUNNING");
    ck_assert_str_eq(state.tasks[1].state, "WAITING");
    ck_assert_uint_eq(n_wanted(&state, 1001), 0); /* after its back-off */
    ck_assert_int_gt(weir_job_next_tick_ms(&state, 1001), 1001);
    place(&state, "m", 3000);
    ck_assert_int_eq(state.tasks[1].attempt, 2);
    ck_assert_int_eq(state.tasks[0].attempt, 1);
    end(&state, 1, 7, 4000); /* for good */
    ck_assert_str_eq(state.tasks[1].state, "EXITED");
    end(&state, 0, 0, 5000);
    end(&state, 2, 0, 5000);
    ck_assert_str_eq(state.job.state, "FAILED");
    ck_assert_ptr_nonnull(strstr(state.job.reason, "1 of 3 tasks failed; "));
}

END_TEST

START_TEST(a_lost_node_is_nobodys_fault_and_a_missing_program_is_not_tried_again)
{
    struct weir_job_state state = make_array(2, 0, 0);
    place(&state, "n", 1);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "n"}, 2);
    ck_assert_str_eq(state.tasks[0].state, "WAITING");
    ck_assert_str_eq(state.tasks[1].state, "WAITING");
    ck_assert_str_eq(state.job.state, "PENDING");
    place(&state, "m", 5000);
    end(&state, 0, WEIR_EXIT_NOT_FOUND, 6000);
    ck_assert_str_eq(state.tasks[0].state, "EXITED");
    end(&state, 1, 0, 6000);
    ck_assert_str_eq(state.job.state, "FAILED");
}

END_TEST

START_TEST(it_can_be_held_released_and_cancelled)
{
    struct weir_job_state state = make_array(3, 0, 0);
    place(&state, "n", 1);
    run_all(&state, 2);
    end(&state, 0, 0, 3);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_HOLD, .text = "held"}, 4);
    ck_assert_str_eq(state.tasks[1].desired, "stopped");
    end(&state, 1, 143, 5);
    end(&state, 2, 143, 5);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_str_eq(state.tasks[0].state, "EXITED"); /* what is done is done */
    ck_assert_uint_eq(n_wanted(&state, 6), 0);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE}, 7);
    ck_assert_uint_eq(n_wanted(&state, 8), 2);
    place(&state, "n", 8);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "enough"}, 9);
    end(&state, 1, 143, 10);
    ck_assert_str_eq(state.job.state, "STOPPING");
    end(&state, 2, 143, 10);
    ck_assert_str_eq(state.job.state, "CANCELLED");
}

END_TEST

/* Any history: no more at once than may be, none that has ended well again, and an end that tells. */
START_TEST(random_histories_run_each_task_until_it_has_ended_well_or_may_not_again)
{
    printf("seeds 1 to 200\n");
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, 45);
        size_t n_tasks = 1 + weir_rng_below(&rng, 8), n_failed = 0;
        int64_t parallel = (int64_t)weir_rng_below(&rng, 4), now_ms = 1;
        int64_t max_restarts = (int64_t)weir_rng_below(&rng, 3);
        struct weir_job_state state = make_array(n_tasks, parallel, max_restarts);
        for (int i = 0; i < 4000 && !weir_job_phase_is_final(weir_job_phase_of(&state)); i++) {
            size_t at = weir_rng_below(&rng, n_tasks);
            struct weir_task *task = &state.tasks[at];
            bool was_done = weir_task_phase_of(task) == WEIR_TASK_EXITED;
            now_ms += (int64_t)weir_rng_below(&rng, 3000);
            if (n_wanted(&state, now_ms) > 0) {
                place(&state, "n", now_ms);
            } else if (weir_task_is_alive(task)) {
                end(&state, at, weir_rng_below(&rng, 3) == 0, now_ms);
            }
            struct weir_array_count count = weir_array_count(&state);
            ck_assert(parallel == 0 || count.n_starting + count.n_running <= (size_t)parallel);
            ck_assert(!was_done || weir_task_phase_of(task) == WEIR_TASK_EXITED);
            ck_assert_int_le(task->n_restarts, max_restarts);
        }
        for (size_t i = 0; i < n_tasks; i++) {
            ck_assert_str_eq(state.tasks[i].state, "EXITED");
            ck_assert(state.tasks[i].exit_code == 0 || state.tasks[i].n_restarts == max_restarts);
            n_failed += state.tasks[i].exit_code != 0;
        }
        ck_assert_str_eq(state.job.state, n_failed > 0 ? "FAILED" : "SUCCEEDED");
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
        actions = (struct weir_job_actions){0};
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("array", set_up, tear_down,
                    tasks_start_when_there_is_room_for_them_and_the_job_ends_with_the_last,
                    one_that_fails_is_tried_again_and_the_others_go_on,
                    a_lost_node_is_nobodys_fault_and_a_missing_program_is_not_tried_again,
                    it_can_be_held_released_and_cancelled,
                    random_histories_run_each_task_until_it_has_ended_well_or_may_not_again)
