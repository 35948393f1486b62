#include "job/job_step_fixture.h"

#include "base/rng.h"

#include <inttypes.h>

START_TEST(a_gang_runs_when_all_run_and_succeeds_when_all_workers_have)
{
    struct weir_job_state state = make_job("train", 3, 1, 0);
    place(&state, "a", 10);
    ck_assert_str_eq(state.job.state, "STARTING");
    ck_assert_int_eq(state.job.attempt, 1);
    run(&state, 0, 20);
    run(&state, 1, 21);
    ck_assert_str_eq(state.job.state, "STARTING");
    run(&state, 2, 22);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_int_eq(state.job.started_ms, 22);
    end(&state, 0, 0, 30);
    ck_assert_str_eq(state.job.state, "RUNNING");
    end(&state, 1, 0, 31);
    ck_assert_str_eq(state.job.state, "STOPPING");
    ck_assert_str_eq(state.tasks[2].desired, "stopped");
    end(&state, 2, 143, 32); /* The server was told to stop: how it ends does not matter. */
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
    ck_assert_int_eq(state.job.finished_ms, 32);
    ck_assert_int_eq(actions.items[actions.n - 1].type, WEIR_JOB_ACTION_ENDED);
    ck_assert_str_eq(actions.items[actions.n - 1].kind, "SUCCEEDED");
}

END_TEST

START_TEST(a_task_that_ends_before_it_was_seen_running_still_counts)
{
    struct weir_job_state state = make_job("command", 1, 0, 0);
    place(&state, "a", 10);
    end(&state, 0, 0, 11);
    ck_assert_str_eq(state.job.state, "SUCCEEDED");
    ck_assert_int_eq(state.job.started_ms, 11);
}

END_TEST

START_TEST(a_failing_worker_stops_the_gang_and_the_next_attempt_starts_after_the_back_off)
{
    struct weir_job_state state = make_job("train", 2, 0, 1);
    place(&state, "a", 10);
    run_all(&state, 20);
    end(&state, 1, 8, 100);
    ck_assert_str_eq(state.job.state, "RESTARTING");
    ck_assert_str_eq(state.job.reason, "worker 1 exited with 8");
    ck_assert_str_eq(state.tasks[0].state, "STOPPING");
    ck_assert_int_eq(weir_job_next_tick_ms(&state, 100), INT64_MAX); /* First the other must end. */
    end(&state, 0, 143, 150);
    ck_assert_str_eq(state.job.state, "RESTARTING");
    ck_assert_int_eq(weir_job_next_tick_ms(&state, 150), 1100);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, 1099);
    ck_assert_str_eq(state.job.state, "RESTARTING");
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, 1100);
    ck_assert_str_eq(state.job.state, "PENDING");
    place(&state, "b", 1200);
    ck_assert_int_eq(state.job.attempt, 2);
    ck_assert_int_eq(state.tasks[0].attempt, 2);
    /* A late report about the first attempt is ignored. */
    must(&state,
         (struct weir_job_event){
             .type = WEIR_JOB_EVENT_TASK_EXITED, .task = "t0", .attempt = 1, .exit_code = 1},
         1201);
    ck_assert_str_eq(state.job.state, "STARTING");
    run_all(&state, 1300);
    ck_assert_int_eq(state.job.started_ms, 20);
    end(&state, 0, 1, 1400);
    ck_assert_str_eq(state.job.state, "STOPPING"); /* No restart is left. */
    end(&state, 1, 0, 1500);
    ck_assert_str_eq(state.job.state, "FAILED");
    ck_assert_str_eq(state.job.reason, "worker 0 exited with 1");
}

END_TEST

START_TEST(a_lost_node_restarts_the_gang_and_an_end_after_the_back_off_goes_straight_on)
{
    struct weir_job_state state = make_job("train", 2, 0, 3);
    size_t wants[2];
    const char *nodes[] = {"a", "b"};
    ck_assert_uint_eq(weir_job_wants(&state, 0, wants), 2);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = 2},
         0);
    run_all(&state, 1);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "b"}, 1000);
    ck_assert_str_eq(state.tasks[1].state, "LOST");
    ck_assert_str_eq(state.tasks[0].state, "STOPPING");
    ck_assert_str_eq(state.job.reason, "worker 1 was lost: node b is lost");
    end(&state, 0, 143, 9000);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_ptr_null(state.tasks[1].node);
}

END_TEST

/** As `end`, with the task's last words. */
static void end_saying(struct weir_job_state *state, size_t i_task, int64_t code, const char *text)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt,
                                 .exit_code = code,
                                 .text = text},
         500);
}

static void hold(struct weir_job_state *state, size_t i_task, const char *text, int64_t now_ms)
{
    must(state,
         (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_HELD,
                                 .task = state->tasks[i_task].id,
                                 .attempt = state->tasks[i_task].attempt,
                                 .text = text},
         now_ms);
}

START_TEST(a_task_whose_place_is_held_goes_on_until_its_end_is_told)
{
    struct weir_job_state state = make_job("command", 2, 0, 0);
    place(&state, "n1", 1000);
    run_all(&state, 1001);
    actions = (struct weir_job_actions){0};
    hold(&state, 1, "held until noon for a look: its program failed with exit 3", 1002);
    ck_assert_str_eq(state.job.state, "RUNNING");
    ck_assert_str_eq(state.tasks[1].state, "RUNNING");
    ck_assert_ptr_nonnull(strstr(state.job.reason, "worker-1 is held until noon"));
    ck_assert_ptr_null(state.tasks[0].message);
    ck_assert_uint_eq(actions.n, 1);
    hold(&state, 1, state.tasks[1].message, 1003); /* agents tell it again */
    ck_assert_uint_eq(actions.n, 1);
    end(&state, 1, 3, 2000);
    end(&state, 0, 0, 2001);
    ck_assert_str_eq(state.job.state, "FAILED");
    hold(&state, 1, "too late", 2002);
    ck_assert_ptr_null(strstr(state.job.reason, "held"));
}

END_TEST

START_TEST(what_a_second_try_cannot_mend_is_not_tried_again)
{
    struct weir_job_state state = make_job("train", 1, 0, 3);
    place(&state, "a", 10);
    run(&state, 0, 20);
    end_saying(&state, 0, 4, "dataset \"x\" has no pictures");
    ck_assert_str_eq(state.job.state, "FAILED");
    ck_assert_str_eq(state.job.reason, "worker 0: dataset \"x\" has no pictures (exit 4)");
    ck_assert_int_eq(state.job.n_restarts, 0);
}

END_TEST

START_TEST(the_worker_that_cannot_be_mended_is_the_reason_even_if_another_told_its_end_first)
{
    struct weir_job_state state = make_job("train", 2, 0, 3);
    place(&state, "a", 10);
    run_all(&state, 20);
    end_saying(&state, 0, 9, "worker 1 is gone");
    ck_assert_str_eq(state.job.state, "RESTARTING");
    end_saying(&state, 1, 2, "epochs: expected a number");
    ck_assert_str_eq(state.job.state, "FAILED");
    ck_assert_str_eq(state.job.reason, "worker 1: epochs: expected a number (exit 2)");
}

END_TEST

START_TEST(a_command_is_restarted_after_an_error_only_if_asked_but_always_after_a_loss)
{
    struct weir_job_state state = make_job("command", 1, 0, 0);
    place(&state, "a", 10);
    end(&state, 0, 1, 20);
    ck_assert_str_eq(state.job.state, "FAILED");
    state = make_job("command", 1, 0, 1); /* asked: whatever the exit status means to it */
    place(&state, "a", 10);
    end(&state, 0, 2, 20);
    ck_assert_str_eq(state.job.state, "RESTARTING");
    state = make_job("command", 1, 0, 0);
    int64_t now_ms = 0;
    for (int i = 0; i < WEIR_JOB_LOSSES_MIN; i++) {
        place(&state, "a", now_ms);
        must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"},
             now_ms);
        ck_assert_str_eq(state.job.state, "RESTARTING");
        now_ms += 60000;
        must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, now_ms);
    }
    place(&state, "a", now_ms);
    must(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "a"}, now_ms);
    ck_assert_str_eq(state.job.state, "FAILED");
}

END_TEST

START_TEST(cancelling_stops_the_tasks_and_a_second_time_is_refused)
{
    struct weir_job_state state = make_job("train", 2, 0, 3);
    const struct weir_job_event cancel = {.type = WEIR_JOB_EVENT_CANCEL, .text = "by ann"};
    place(&state, "a", 1);
    run_all(&state, 2);
    must(&state, cancel, 3);
    ck_assert_str_eq(state.job.state, "STOPPING");
    must(&state, cancel, 4);
    end(&state, 0, 143, 5);
    end(&state, 1, 143, 6);
    ck_assert_str_eq(state.job.state, "CANCELLED");
    ck_assert_str_eq(state.job.reason, "by ann");
    ck_assert_int_eq(step(&state, cancel, 7), WEIR_ERR_CONFLICT);
    state = make_job("train", 2, 0, 3);
    must(&state, cancel, 3);
    ck_assert_str_eq(state.job.state, "CANCELLED");
}

END_TEST

START_TEST(a_replica_restarts_alone_with_a_growing_back_off)
{
    struct weir_job_state state = make_job("predict", 2, 0, 0);
    place(&state, "a", 0);
    run_all(&state, 0);
    ck_assert_str_eq(state.job.state, "RUNNING");
    int64_t now_ms = 10, backoff_ms = 500;
    for (int i = 0; i < 200; i++) {
        end(&state, 1, 1, now_ms);
        ck_assert_str_eq(state.job.state, "RUNNING");
        ck_assert_str_eq(state.tasks[0].state, "RUNNING");
        size_t wants[2];
        ck_assert_uint_eq(weir_job_wants(&state, now_ms + backoff_ms - 1, wants), 0);
        ck_assert_int_eq(weir_job_next_tick_ms(&state, now_ms), now_ms + backoff_ms);
        now_ms += backoff_ms;
        place(&state, "a", now_ms);
        ck_assert_int_eq(state.tasks[1].attempt, i + 2);
        run(&state, 1, now_ms);
        backoff_ms = WEIR_MIN(backoff_ms * 2, 1000);
    }
    ck_assert_ptr_null(state.job.reason);
    now_ms += WEIR_JOB_STABLE_MS;
    end(&state, 1, 0, now_ms); /* Also when it ends well: a service never ends. */
    ck_assert_int_eq(state.tasks[1].due_ms, now_ms + 500);
    end(&state, 0, 0, now_ms);
    ck_assert_str_eq(state.job.state, "RESTARTING");
}

END_TEST

START_TEST(a_replica_that_cannot_start_is_tried_less_and_less_and_told_now_and_then)
{
    struct weir_job_state state = make_job("predict", 1, 0, 0);
    int64_t now_ms = 0, longest_ms = 0;
    size_t n_told = 0;
    for (int i = 0; i < 40; i++) {
        place(&state, "a", now_ms);
        actions = (struct weir_job_actions){0};
        end(&state, 0, 2, now_ms);
        for (size_t k = 0; k < actions.n; k++) {
            n_told += actions.items[k].type == WEIR_JOB_ACTION_EVENT;
        }
        int64_t next_ms = weir_job_next_tick_ms(&state, now_ms);
        longest_ms = WEIR_MAX(longest_ms, next_ms - now_ms);
        now_ms = next_ms;
    }
    ck_assert_int_eq(longest_ms, 60000);
    ck_assert_uint_eq(n_told, 7); /* 1 to 5, 20, 40 */
}

END_TEST

START_TEST(a_clock_that_is_set_back_does_not_lengthen_a_back_off)
{
    const int64_t hour_ms = 3600000, now_ms = 2 * hour_ms;
    size_t wants[2];
    struct weir_job_state gang = make_job("train", 1, 0, 3);
    place(&gang, "a", now_ms);
    end(&gang, 0, 1, now_ms);
    ck_assert_int_eq(weir_job_next_tick_ms(&gang, now_ms), now_ms + 1000);
    ck_assert_int_eq(weir_job_next_tick_ms(&gang, now_ms - hour_ms), now_ms - hour_ms);
    must(&gang, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, now_ms - hour_ms);
    ck_assert_str_eq(gang.job.state, "PENDING");
    struct weir_job_state service = make_job("predict", 1, 0, 0);
    place(&service, "a", now_ms);
    end(&service, 0, 1, now_ms);
    ck_assert_uint_eq(weir_job_wants(&service, now_ms, wants), 0);
    ck_assert_uint_eq(weir_job_wants(&service, now_ms - hour_ms, wants), 1);
}

END_TEST

START_TEST(a_placement_that_does_not_fit_is_refused_and_changes_nothing)
{
    struct weir_job_state state = make_job("train", 2, 0, 0);
    const char *nodes[] = {"a", NULL};
    ck_assert_int_eq(
        step(&state,
             (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = 1}, 0),
        WEIR_ERR_INVALID);
    ck_assert_int_eq(
        step(&state,
             (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = 2}, 0),
        WEIR_ERR_INVALID);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.attempt, 0);
    ck_assert_int_eq(
        step(&state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_RUNNING, .task = "x"}, 0),
        WEIR_ERR_NOT_FOUND);
}

END_TEST

/* Random histories. */

/** As ck_assert, without the message that Check sends for every assertion that holds. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ck_abort_msg("%s", #condition);                                                        \
        }                                                                                          \
    } while (0)

#define N_NODES 3
#define N_STEPS 120
static const char *const node_names[N_NODES] = {"a", "b", "c"};

static struct weir_job_event random_event(struct weir_rng *rng, const struct weir_job_state *state,
                                          int64_t now_ms)
{
    const struct weir_task *task = &state->tasks[weir_rng_below(rng, state->n_tasks)];
    struct weir_job_event event = {
        .task = task->id,
        .attempt = task->attempt - (weir_rng_below(rng, 10) == 0 ? 1 : 0),
        .pid = 1 + (int64_t)weir_rng_below(rng, 1000),
        .exit_code = weir_rng_below(rng, 2) == 0 ? 0 : (int64_t)weir_rng_below(rng, 200),
        .node = node_names[weir_rng_below(rng, N_NODES)],
        .text = "something",
        .is_foreseen = weir_rng_below(rng, 4) == 0};
    size_t *wants = WEIR_ARENA_ARRAY(&arena, state->n_tasks, size_t);
    size_t n_wants = weir_job_wants(state, now_ms, wants);
    if (n_wants > 0 && weir_rng_below(rng, 2) == 0) {
        const char **nodes = WEIR_ARENA_ARRAY(&arena, n_wants, const char *);
        for (size_t i = 0; i < n_wants; i++) {
            bool is_left_out = weir_job_is_service(state) && weir_rng_below(rng, 4) == 0;
            nodes[i] = is_left_out ? NULL : node_names[weir_rng_below(rng, N_NODES)];
        }
        event.type = WEIR_JOB_EVENT_BIND;
        event.place = nodes;
        event.n_place = n_wants;
        return event;
    }

    static const enum weir_job_event_type types[] = {
        WEIR_JOB_EVENT_TASK_RUNNING, WEIR_JOB_EVENT_TASK_RUNNING, WEIR_JOB_EVENT_TASK_RUNNING,
        WEIR_JOB_EVENT_TASK_EXITED,  WEIR_JOB_EVENT_TASK_EXITED,  WEIR_JOB_EVENT_TASK_LOST,
        WEIR_JOB_EVENT_TICK,         WEIR_JOB_EVENT_TICK,         WEIR_JOB_EVENT_TICK};

    static const enum weir_job_event_type sent_back[] = {WEIR_JOB_EVENT_EVICT, WEIR_JOB_EVENT_HOLD,
                                                         WEIR_JOB_EVENT_RELEASE};

    uint64_t dice = weir_rng_below(rng, 40);
    event.type = dice == 0   ? WEIR_JOB_EVENT_CANCEL
                 : dice <= 2 ? WEIR_JOB_EVENT_NODE_LOST
                 : dice <= 5 ? sent_back[dice - 3]
                             : types[weir_rng_below(rng, WEIR_ARRAY_LEN(types))];
    return event;
}

static bool is_alive(const struct weir_task *task)
{
    return strcmp(task->state, "STARTING") == 0 || strcmp(task->state, "RUNNING") == 0 ||
           strcmp(task->state, "STOPPING") == 0;
}

static bool is_woken(const struct weir_job_actions *made, const char *node)
{
    for (size_t i = 0; i < made->n; i++) {
        if (made->items[i].type == WEIR_JOB_ACTION_WAKE_NODE &&
            strcmp(made->items[i].node, node) == 0) {
            return true;
        }
    }
    return false;
}

/** How often the history at hand was held: each may be one more attempt. */
static int64_t n_holds;

static void check_invariants(const struct weir_job_state *state)
{
    bool is_service = weir_job_is_service(state);
    int phase = weir_job_phase_from_text(state->job.state);
    REQUIRE(phase >= 0);
    size_t n_alive = 0;
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        REQUIRE(weir_task_phase_from_text(task->state) >= 0);
        n_alive += is_alive(task);
        if (is_alive(task)) {
            REQUIRE(task->node != NULL);
            REQUIRE(strcmp(task->desired,
                           strcmp(task->state, "STOPPING") == 0 ? "stopped" : "running") == 0);
            REQUIRE(is_service || task->attempt == state->job.attempt);
        }
        if (!is_service && (phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING)) {
            REQUIRE(strcmp(task->state, "WAITING") != 0);
            REQUIRE(strcmp(task->state, "STOPPING") != 0);
        }
    }
    REQUIRE(!(weir_job_phase_is_final((enum weir_job_phase)phase) && n_alive > 0));
    REQUIRE(!(phase == WEIR_JOB_PENDING && n_alive > 0));
    REQUIRE((phase == WEIR_JOB_STOPPING) == (state->job.outcome != NULL));
    REQUIRE((state->job.finished_ms != 0) == weir_job_phase_is_final((enum weir_job_phase)phase));
    REQUIRE(is_service || state->job.n_restarts <=
                              WEIR_MAX(state->job.max_restarts, (int64_t)WEIR_JOB_LOSSES_MIN));
    REQUIRE(is_service ||
            state->job.attempt <= state->job.n_restarts + 1 + state->job.n_evictions + n_holds);
}

/** What an agent must hear of: attempts, desires and places that changed. */
static void check_change(const struct weir_task *before, const struct weir_task *after,
                         const struct weir_job_actions *made)
{
    REQUIRE(after->attempt >= before->attempt);
    bool has_started =
        strcmp(after->state, "STARTING") == 0 && strcmp(before->state, "STARTING") != 0;
    REQUIRE(!has_started || after->attempt > before->attempt);
    if (has_started) {
        REQUIRE(is_woken(made, after->node));
    }
    if (is_alive(before) && strcmp(before->desired, "running") == 0 &&
        strcmp(after->desired, "stopped") == 0) {
        REQUIRE(is_woken(made, before->node));
    }
}

/** Only what ran by right and failed is a restart; what was stopped for others is not, nor what ended with a node that
 *  ends as foreseen, which takes back the failure that came of it. */
static void check_restarts(const struct weir_job *before, const struct weir_job *after,
                           const struct weir_job_event *event)
{
    bool ran = strcmp(before->state, "STARTING") == 0 || strcmp(before->state, "RUNNING") == 0;
    int64_t n = after->n_restarts - before->n_restarts;
    REQUIRE(n == 0 || (n == 1 && ran && !event->is_foreseen) ||
            (n == -1 && event->is_foreseen && strcmp(before->state, "RESTARTING") == 0));
    REQUIRE(after->n_evictions == before->n_evictions || n <= 0);
}

static size_t n_ended(const struct weir_job_actions *made)
{
    size_t n = 0;
    for (size_t i = 0; i < made->n; i++) {
        n += made->items[i].type == WEIR_JOB_ACTION_ENDED;
    }
    return n;
}

/** After the storm: everything that is told to run runs and ends well. Must end, or run for ever.
 */
static size_t calm_down(struct weir_job_state *state, int64_t now_ms)
{
    size_t n = 0;
    for (int i = 0; i < 50; i++) {
        struct weir_job_actions made = {0};
        size_t wants[16];
        now_ms += 100000;
        must(state, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK}, now_ms);
        if (state->job.is_held) {
            must(state, (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE}, now_ms);
        }
        if (weir_job_wants(state, now_ms, wants) > 0) {
            place(state, "a", now_ms);
        }
        for (size_t k = 0; k < state->n_tasks; k++) {
            struct weir_task *task = &state->tasks[k];
            bool ends = strcmp(task->state, "STOPPING") == 0 ||
                        (strcmp(task->state, "RUNNING") == 0 && !weir_job_is_service(state));
            struct weir_job_event event = {.type = ends ? WEIR_JOB_EVENT_TASK_EXITED
                                                        : WEIR_JOB_EVENT_TASK_RUNNING,
                                           .task = task->id,
                                           .attempt = task->attempt};
            REQUIRE(weir_job_step(state, &event, now_ms, &arena, &made, &err) == WEIR_OK);
        }
        n += n_ended(&made);
    }
    return n;
}

static bool is_same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void play(uint64_t seed, bool is_service)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, is_service);
    size_t n_tasks = 1 + weir_rng_below(&rng, 4);
    size_t n_servers = is_service ? 0 : weir_rng_below(&rng, n_tasks);
    int64_t restarts = (int64_t)weir_rng_below(&rng, 5), now_ms = 1000;
    const char *kind = is_service ? "predict" : "train";
    struct weir_job_state state = make_job(kind, n_tasks, n_servers, restarts);
    struct weir_job_state replayed = make_job(kind, n_tasks, n_servers, restarts);
    size_t n_ends = 0;
    n_holds = 0;
    for (int i = 0; i < N_STEPS; i++) {
        struct weir_task before[8];
        memcpy(before, state.tasks, n_tasks * sizeof(before[0]));
        const struct weir_job was = state.job;
        now_ms += (int64_t)weir_rng_below(&rng, 3000);
        struct weir_job_event event = random_event(&rng, &state, now_ms);
        struct weir_job_actions made = {0}, made_again = {0};
        weir_status status = weir_job_step(&state, &event, now_ms, &arena, &made, &err);
        REQUIRE(weir_job_step(&replayed, &event, now_ms, &arena, &made_again, &err) == status);
        REQUIRE(status == WEIR_OK ||
                (status == WEIR_ERR_CONFLICT && event.type >= WEIR_JOB_EVENT_CANCEL));
        n_holds += status == WEIR_OK && event.type == WEIR_JOB_EVENT_HOLD;
        check_invariants(&state);
        check_restarts(&was, &state.job, &event);
        REQUIRE(made.n == made_again.n);
        for (size_t k = 0; k < made.n; k++) {
            REQUIRE(made.items[k].type == made_again.items[k].type);
            REQUIRE(is_same_text(made.items[k].message, made_again.items[k].message));
        }
        for (size_t k = 0; k < n_tasks; k++) {
            check_change(&before[k], &state.tasks[k], &made);
            REQUIRE(!event.is_foreseen || state.tasks[k].n_restarts <= before[k].n_restarts);
            REQUIRE(strcmp(state.tasks[k].state, replayed.tasks[k].state) == 0);
        }
        n_ends += n_ended(&made);
    }
    n_ends += calm_down(&state, now_ms);
    check_invariants(&state);
    if (weir_job_phase_is_final((enum weir_job_phase)weir_job_phase_from_text(state.job.state))) {
        REQUIRE(n_ends == 1);
    } else {
        REQUIRE(is_service);
        REQUIRE(strcmp(state.job.state, "RUNNING") == 0);
        REQUIRE(n_ends == 0);
    }
}

START_TEST(random_histories_keep_the_rules_end_and_replay_the_same)
{
    printf("seeds 1 to 400\n");
    for (uint64_t seed = 1; seed <= 400; seed++) {
        play(seed, false);
        play(seed, true);
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
        actions = (struct weir_job_actions){0};
    }
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "job_step", set_up, tear_down, a_gang_runs_when_all_run_and_succeeds_when_all_workers_have,
    a_task_that_ends_before_it_was_seen_running_still_counts,
    a_failing_worker_stops_the_gang_and_the_next_attempt_starts_after_the_back_off,
    a_lost_node_restarts_the_gang_and_an_end_after_the_back_off_goes_straight_on,
    a_task_whose_place_is_held_goes_on_until_its_end_is_told,
    what_a_second_try_cannot_mend_is_not_tried_again,
    the_worker_that_cannot_be_mended_is_the_reason_even_if_another_told_its_end_first,
    a_command_is_restarted_after_an_error_only_if_asked_but_always_after_a_loss,
    a_replica_that_cannot_start_is_tried_less_and_less_and_told_now_and_then,
    cancelling_stops_the_tasks_and_a_second_time_is_refused,
    a_replica_restarts_alone_with_a_growing_back_off,
    a_clock_that_is_set_back_does_not_lengthen_a_back_off,
    a_placement_that_does_not_fit_is_refused_and_changes_nothing,
    random_histories_keep_the_rules_end_and_replay_the_same)
