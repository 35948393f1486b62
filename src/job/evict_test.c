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

/* ---- a node that ends as foreseen ------------------------------------------------------------- */

static void lose(struct weir_job_state *state, const char *node, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST,
                                 .node = node,
                                 .text = "its allocation is over",
                                 .is_foreseen = true},
         now_ms);
}

static void end_with_node(struct weir_job_state *state, size_t i_task, int64_t code, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt,
                                 .exit_code = code,
                                 .is_foreseen = true},
         now_ms);
}

START_TEST(what_ends_with_a_node_that_ends_as_foreseen_waits_again_without_a_restart)
{
    const char *const kinds[] = {"train", "command", "predict"};
    for (size_t i = 0; i < 6; i++) {
        struct weir_job_state state = make_job(kinds[i % 3], 2, 0, 0);
        place(&state, "a", 10);
        run_all(&state, 20);
        if (i < 3) {
            lose(&state, "a", 30);
        } else {
            end_with_node(&state, 0, 143, 30);
            end_with_node(&state, 1, 143, 40);
        }
        bool is_service = strcmp(kinds[i % 3], "predict") == 0;
        ck_assert_str_eq(state.job.state, is_service ? "RESTARTING" : "PENDING");
        ck_assert_str_eq(state.job.eviction, i < 3 ? "its allocation is over" : "node a ends");
        ck_assert_int_eq(state.job.n_restarts, 0);
        ck_assert_int_eq(state.tasks[0].n_restarts, 0);
        ck_assert_int_gt(state.job.n_evictions, 0);
        ck_assert_uint_eq(n_wanted(&state, 40), 2);
    }
}

END_TEST

START_TEST(a_gang_goes_back_whole_when_one_of_its_nodes_ends)
{
    struct weir_job_state state = make_job("command", 2, 0, 0);
    const char *const nodes[] = {"a", "b"};
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = 2},
         10);
    run_all(&state, 20);
    lose(&state, "b", 30);
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.tasks[0].desired, "stopped");
    end(&state, 0, 143, 40);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_restarts, 0);
    ck_assert_int_eq(state.job.n_evictions, 1);
}

END_TEST

START_TEST(a_failure_that_comes_of_a_node_that_ends_is_taken_back)
{
    struct weir_job_state state = make_job("command", 2, 0, 3);
    const char *const nodes[] = {"a", "b"};
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = 2},
         10);
    run_all(&state, 20);
    end(&state, 0, 1, 30); /* it lost its peer */
    ck_assert_str_eq(state.job.state, "RESTARTING");
    ck_assert_int_eq(state.job.n_restarts, 1);
    end_with_node(&state, 1, 143, 40);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_restarts, 0);
    ck_assert_int_eq(state.job.n_evictions, 1);
}

END_TEST

START_TEST(what_ended_well_on_such_a_node_has_succeeded)
{
    struct weir_job_state state = make_job("command", 1, 0, 0);
    place(&state, "a", 10);
    run_all(&state, 20);
    end_with_node(&state, 0, 0, 30);
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
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

/* ---- asked to save first ---------------------------------------------------------------------- */

static struct weir_job_state make_saving(const char *kind, size_t n)
{
    struct weir_job_state state = make_job(kind, n, 0, 3);
    state.job.save_within_ms = 60000;
    place(&state, "a", 10);
    run_all(&state, 20);
    actions = (struct weir_job_actions){0};
    return state;
}

static void request(struct weir_job_state *state, int64_t now_ms)
{
    must(state, (struct weir_job_event){.type = WEIR_JOB_EVENT_ASK, .text = "reclaimed by queue b"},
         now_ms);
}

static void saved(struct weir_job_state *state, size_t i_task, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_SAVED,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt},
         now_ms);
}

/* The last event of this kind; "" if there is none. */
static const char *told(const char *kind)
{
    const char *message = "";
    for (size_t i = 0; i < actions.n; i++) {
        const struct weir_job_action *action = &actions.items[i];
        if (action->type == WEIR_JOB_ACTION_EVENT && strcmp(action->kind, kind) == 0) {
            message = action->message;
        }
    }
    return message;
}

START_TEST(a_gang_that_is_asked_runs_on_until_all_have_saved_and_is_evicted_then)
{
    struct weir_job_state state = make_saving("command", 2);
    request(&state, 1000);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(state.job.reason, "asked to save within 60 s: reclaimed by queue b");
    ck_assert_int_eq(state.tasks[1].asked_ms, 1000);
    ck_assert_str_eq(state.tasks[1].desired, "running");
    ck_assert_int_eq(
        step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_ASK, .text = "x"}, 1500),
        WEIR_ERR_CONFLICT);
    saved(&state, 0, 3000);
    ck_assert_str_eq(told("job_saved"), "");
    saved(&state, 1, 4000);
    ck_assert_str_eq(told("job_saved"), "Job j says that it has saved, 3.0 s after it was asked.");
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_EVICT}, 4100);
    ck_assert_str_eq(told("job_evicted"),
                     "Job j is stopped, since it has saved, and goes back to its queue: reclaimed "
                     "by queue b.");
    end(&state, 0, 0, 4200);
    end(&state, 1, 75, 4300);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_evictions, 1);
    ck_assert_int_eq(state.job.n_restarts, 0);
    place(&state, "b", 5000);
    ck_assert_int_eq(state.tasks[0].asked_ms + state.tasks[0].saved_ms, 0);
}

END_TEST

START_TEST(one_that_does_not_answer_is_said_not_to_have)
{
    struct weir_job_state state = make_saving("command", 2);
    request(&state, 1000);
    saved(&state, 0, 2000);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_EVICT}, 61000);
    ck_assert_str_eq(
        told("job_evicted"),
        "Job j did not say within 60 s that it has saved, is stopped, and goes back to "
        "its queue: reclaimed by queue b.");
}

END_TEST

/* How it ends, whether it said before that it saved, and what becomes of the job. */
START_TEST(the_end_of_a_task_that_was_asked_is_an_answer_unless_its_work_is_done)
{
    static const struct {
        const char *kind;
        int64_t exit_code;
        bool has_saved;
        const char *state;
    } ends[] = {{"command", 0, false, "SUCCEEDED"}, {"command", 0, true, "PENDING"},
                {"command", 1, false, "PENDING"},   {"train", 0, false, "SUCCEEDED"},
                {"train", 10, false, "PENDING"},    {"train", 10, true, "PENDING"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(ends); i++) {
        struct weir_job_state state = make_saving(ends[i].kind, 1);
        request(&state, 1000);
        if (ends[i].has_saved) {
            saved(&state, 0, 1500);
        }
        end(&state, 0, ends[i].exit_code, 2000);
        ck_assert_str_eq(state.job.state, ends[i].state);
        bool goes_back = strcmp(ends[i].state, "PENDING") == 0;
        ck_assert_int_eq(state.job.n_evictions, goes_back);
        ck_assert_int_eq(state.job.n_restarts, 0);
        ck_assert(!goes_back || strcmp(state.job.reason, "reclaimed by queue b") == 0);
    }
}

END_TEST

START_TEST(a_gang_goes_back_with_the_first_that_answers_by_its_end)
{
    struct weir_job_state state = make_saving("train", 2);
    request(&state, 1000);
    end(&state, 0, 10, 2000);
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.tasks[1].desired, "stopped");
    end(&state, 1, 10, 2100);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_evictions, 1);
}

END_TEST

START_TEST(a_task_of_an_array_is_asked_and_goes_back_alone)
{
    struct weir_job_state state = make_job("command", 2, 0, 3);
    state.job.is_array = true;
    state.job.save_within_ms = 60000;
    place(&state, "a", 10);
    run_all(&state, 20);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_ASK, .task = "t1", .text = "x"},
         1000);
    ck_assert_int_eq(state.tasks[0].asked_ms, 0);
    end(&state, 1, 3, 2000);
    ck_assert_str_eq(state.tasks[0].state, "RUNNING");
    ck_assert_str_eq(state.tasks[1].state, "WAITING");
    ck_assert_int_eq(state.tasks[1].n_restarts, 0);
}

END_TEST

START_TEST(what_cannot_save_or_does_not_run_is_not_asked)
{
    struct weir_job_state state = make_job("train", 1, 0, 3);
    const struct weir_job_event asks = {.type = WEIR_JOB_EVENT_ASK, .text = "x"};
    state.job.save_within_ms = 60000;
    ck_assert_int_eq(step(&state, asks, 5), WEIR_ERR_CONFLICT);
    state.job.save_within_ms = 0;
    place(&state, "a", 10);
    run_all(&state, 20);
    ck_assert_int_eq(step(&state, asks, 30), WEIR_ERR_CONFLICT);
    saved(&state, 0, 40); /* Nobody asked. */
    ck_assert_int_eq(state.tasks[0].saved_ms, 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("evict", set_up, tear_down,
                    a_gang_that_is_asked_runs_on_until_all_have_saved_and_is_evicted_then,
                    one_that_does_not_answer_is_said_not_to_have,
                    the_end_of_a_task_that_was_asked_is_an_answer_unless_its_work_is_done,
                    a_gang_goes_back_with_the_first_that_answers_by_its_end,
                    a_task_of_an_array_is_asked_and_goes_back_alone,
                    what_cannot_save_or_does_not_run_is_not_asked,
                    a_gang_that_is_evicted_stops_and_waits_again_without_a_restart,
                    a_training_that_ends_well_while_it_is_evicted_has_succeeded_a_command_has_not,
                    a_node_that_is_lost_meanwhile_does_not_make_it_a_restart,
                    who_goes_back_can_be_cancelled_and_who_waits_cannot_be_evicted,
                    a_replica_is_evicted_alone_and_waits_without_a_back_off,
                    what_ends_with_a_node_that_ends_as_foreseen_waits_again_without_a_restart,
                    a_gang_goes_back_whole_when_one_of_its_nodes_ends,
                    a_failure_that_comes_of_a_node_that_ends_is_taken_back,
                    what_ended_well_on_such_a_node_has_succeeded,
                    a_held_job_stops_and_wants_no_node_until_it_is_released,
                    a_job_that_waits_can_be_held_and_one_that_ends_cannot)
