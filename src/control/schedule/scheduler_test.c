#include "control/schedule/scheduler_fixture.h"

#include "base/rng.h"

#include <inttypes.h>

static struct scheduler_fixture fixture;

static void set_up(void)
{
    scheduler_fixture_make(&fixture);
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

static const char *reason(const char *job)
{
    const char *text = job_state(&fixture, job).job.reason;
    return text != NULL ? text : "";
}

START_TEST(a_gang_starts_whole_or_not_at_all)
{
    heartbeat(&fixture, "a", 2);
    heartbeat(&fixture, "b", 2);
    char *fits = gang(&fixture, 4, 1), *next = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 4);
    ck_assert_str_eq(job_state(&fixture, fits).job.state, "STARTING");
    ck_assert_str_eq(job_state(&fixture, next).job.state, "PENDING");
    end_all(&fixture, fits);
    cancel(&fixture, next);

    char *large = gang(&fixture, 5, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(places(&fixture, large), "- - - - -");
    ck_assert_str_eq(reason(large),
                     "its 5 tasks start together or not at all: there is room for 4. Each needs "
                     "up to 1 CPU on one node");
}

END_TEST

START_TEST(a_reason_counts_what_is_free_though_it_is_kept_for_others)
{
    heartbeat(&fixture, "a", 2);
    char *running = gang(&fixture, 1, 1), *first = gang(&fixture, 2, 1),
         *large = gang(&fixture, 1, 2), *second = gang(&fixture, 2, 1);
    ck_assert_int_eq(cycle(&fixture), 1);
    run_all(&fixture, running);
    heartbeat(&fixture, "a", 2);
    ck_assert_int_eq(cycle(&fixture), 0);
    char *gangs[] = {first, second};
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(reason(gangs[i]),
                         "its 2 tasks start together or not at all: there is room for 1. Each "
                         "needs up to 1 CPU on one node");
    }
    ck_assert_str_eq(reason(large),
                     "a task needs 2 CPUs on one node; the most that is free on one is 1 CPU");
}

END_TEST

START_TEST(what_does_not_fit_waits_and_starts_when_there_is_room)
{
    heartbeat(&fixture, "a", 2);
    char *first = gang(&fixture, 1, 2), *second = gang(&fixture, 1, 2);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, first), "a");
    ck_assert_str_eq(places(&fixture, second), "-");
    ck_assert_str_eq(reason(first), "");
    ck_assert_ptr_nonnull(strstr(reason(second), "needs 2 CPUs on one node"));
    run_all(&fixture, first);
    ck_assert_int_eq(cycle(&fixture), 0);
    end_all(&fixture, first);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, second), "a");
    ck_assert_str_eq(reason(second), "");
    ck_assert_int_eq(job_state(&fixture, second).job.expected_start_ms, 0);
}

END_TEST

/* A project's small jobs, of which one ends and another comes every ten seconds. */
static char *stream(const char *oldest)
{
    run_all(&fixture, oldest);
    fixture.now_ms += 10000;
    heartbeat(&fixture, "a", 10);
    char *next =
        add_job(&fixture, (struct new_job){"command", "other", 1, 4000, 0, 0, 0, NULL, NULL});
    end_all(&fixture, oldest);
    (void)cycle(&fixture);
    return next;
}

START_TEST(small_jobs_of_other_projects_do_not_pass_a_gang_for_ever)
{
    char *small[32];
    heartbeat(&fixture, "a", 10);
    for (size_t i = 0; i < 2; i++) {
        small[i] =
            add_job(&fixture, (struct new_job){"command", "other", 1, 4000, 0, 0, 0, NULL, NULL});
    }
    ck_assert_int_eq(cycle(&fixture), 2);
    char *large = gang(&fixture, 2, 5);
    size_t n = 2;
    for (; n < 7; n++) { /* For nearly a minute they go on. */
        small[n] = stream(small[n - 2]);
        ck_assert_str_eq(places(&fixture, small[n]), "a");
    }
    small[n] = stream(small[n - 2]);
    ck_assert_str_eq(places(&fixture, small[n]), "-");
    ck_assert_ptr_nonnull(strstr(reason(small[n]), "kept for jobs before it"));
    ck_assert_ptr_nonnull(strstr(reason(large), "its 2 tasks start together"));
    ck_assert_ptr_nonnull(strstr(reason(large), "what gets free is kept for it"));
    run_all(&fixture, small[n - 1]);
    end_all(&fixture, small[n - 1]);
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, large), "a a");
}

END_TEST

START_TEST(what_asks_for_little_keeps_nobody_from_a_whole_cpu)
{
    heartbeat(&fixture, "a", 2);
    char *deployment = service_of_millis(&fixture, 1, 100);
    char *notebook = gang_of_millis(&fixture, 1, 100);
    ck_assert_int_eq(cycle(&fixture), 2);
    run_all(&fixture, deployment);
    run_all(&fixture, notebook);
    char *training = gang(&fixture, 2, 1), *job = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, training), "a a");
    ck_assert_ptr_nonnull(strstr(reason(job), "needs 1 CPU on one node"));
    char *half = service_of_millis(&fixture, 1, 300), *more = service_of_millis(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 1); /* Half a CPU is there for what is small, and no more. */
    ck_assert_str_eq(places(&fixture, half), "a");
    ck_assert_str_ne(reason(more), "");
    run_all(&fixture, training);
    end_all(&fixture, training);
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, job), "a");
}

END_TEST

START_TEST(who_came_first_goes_first_and_replicas_go_before_jobs)
{
    heartbeat(&fixture, "a", 1);
    char *first = gang(&fixture, 1, 1), *second = gang(&fixture, 1, 1);
    char *replica = service(&fixture, 1, 1);
    const char *const order[] = {replica, first, second};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(cycle(&fixture), 1);
        for (size_t k = i; k < 3; k++) {
            ck_assert_str_eq(places(&fixture, order[k]), (k == i ? "a" : "-"));
        }
        cancel(&fixture, order[i]);
        report(&fixture, order[i], 0, WEIR_JOB_EVENT_TASK_EXITED, 0);
    }
}

END_TEST

START_TEST(projects_share_what_is_there)
{
    char *jobs[8];
    heartbeat(&fixture, "a", 4);
    for (size_t i = 0; i < 8; i++) {
        jobs[i] = add_job(&fixture, (struct new_job){"command", i < 6 ? "default" : "other", 1,
                                                     1000, 0, 0, 0, NULL, NULL});
    }
    ck_assert_int_eq(cycle(&fixture), 4);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_str_eq(places(&fixture, jobs[i]), (i < 2 || i >= 6 ? "a" : "-"));
    }
}

END_TEST

START_TEST(a_small_job_does_not_pass_a_gang_that_waits_for_room)
{
    heartbeat(&fixture, "a", 2);
    char *running = gang(&fixture, 1, 1), *large = gang(&fixture, 2, 1);
    ck_assert_int_eq(cycle(&fixture), 1);
    run_all(&fixture, running);
    fixture.now_ms += 1000;
    heartbeat(&fixture, "a", 2);
    char *small = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    const char *kept = weir_arena_printf(
        &fixture.store.arena, "what is free is kept for jobs before it, first for job %s", large);
    ck_assert_int_eq(strncmp(reason(small), kept, strlen(kept)), 0);
    ck_assert_int_eq(job_state(&fixture, small).job.expected_start_ms, 0); /* Nobody knows. */
    end_all(&fixture, running);
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, large), "a a");
}

END_TEST

START_TEST(when_a_job_may_start_is_said_if_the_like_of_what_runs_has_run_before)
{
    heartbeat(&fixture, "a", 1);
    char *before = gang(&fixture, 1, 1);
    cycle(&fixture);
    run_all(&fixture, before);
    fixture.now_ms += 600000;
    end_all(&fixture, before);
    heartbeat(&fixture, "a", 1);
    char *running = gang(&fixture, 1, 1), *next = gang(&fixture, 1, 1);
    execute(&fixture, "UPDATE jobs SET name = 'job-001' WHERE id = 'job-002'");
    scheduler_restart(&fixture); /* The history is in the store. */
    ck_assert_int_eq(cycle(&fixture), 1);
    int64_t expected_ms = fixture.now_ms + 600000;
    fixture.now_ms += 100000;
    run_all(&fixture, running);
    heartbeat(&fixture, "a", 1);
    cycle(&fixture);
    struct weir_job waits = job_state(&fixture, next).job;
    ck_assert_int_eq(waits.expected_start_ms, expected_ms);
    ck_assert_ptr_nonnull(
        strstr(waits.reason, ". Would fit when job job-001 ends, about 00:36 UTC"));
    ck_assert_int_le(fixture.next_ms, expected_ms - 5000); /* it does not stay told for long */
    fixture.now_ms = expected_ms - 1000; /* It seems to run for longer than expected. */
    heartbeat(&fixture, "a", 1);
    cycle(&fixture);
    waits = job_state(&fixture, next).job;
    ck_assert_int_eq(waits.expected_start_ms, 0);
    ck_assert_ptr_null(strstr(waits.reason, "Would fit"));
}

END_TEST

START_TEST(why_a_job_waits_is_said_in_words)
{
    char *job = gang(&fixture, 1, 3);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(reason(job), "no node has registered yet");
    heartbeat(&fixture, "a", 2);
    fixture.now_ms += SCHEDULER_NOTE_EVERY_MS;
    heartbeat(&fixture, "a", 2);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(reason(job), "a task needs 3 CPUs on one node; the largest node has 2 CPUs");
    heartbeat(&fixture, "b", 4);
    execute(&fixture, "UPDATE nodes SET is_draining = 1 WHERE name = 'b'");
    fixture.now_ms += SCHEDULER_NOTE_EVERY_MS;
    heartbeat(&fixture, "a", 2);
    heartbeat(&fixture, "b", 4);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(reason(job),
                     "no node that is large enough takes tasks now: of 2 nodes 1 are draining, 0 "
                     "silent, lost or not heard of since the server started, 0 unhealthy, "
                     "0 have no room for more tasks' files");
    fixture.now_ms += SCHEDULER_NOTE_EVERY_MS;
    heartbeat(&fixture, "a", 2);
    heartbeat(&fixture, "b", 4);
    execute(&fixture, "UPDATE nodes SET is_draining = 0, unhealthy = 'x' WHERE name = 'b'");
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_ptr_nonnull(strstr(reason(job), "1 unhealthy,"));
    execute(&fixture, "UPDATE nodes SET unhealthy = NULL WHERE name = 'b'");
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "b");
}

END_TEST

START_TEST(memory_counts_and_a_task_without_slots_always_fits)
{
    heartbeat(&fixture, "a", 1);
    const int64_t gib = (int64_t)1 << 30;
    char *first =
        add_job(&fixture, (struct new_job){"command", NULL, 1, 0, 5 * gib, 0, 0, NULL, NULL});
    char *second =
        add_job(&fixture, (struct new_job){"command", NULL, 1, 0, 5 * gib, 0, 0, NULL, NULL});
    char *absurd =
        add_job(&fixture, (struct new_job){"command", NULL, 1, 0, INT64_MAX, 0, 0, NULL, NULL});
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, first), "a");
    ck_assert_ptr_nonnull(strstr(reason(second), "needs 5.0 GiB of memory on one node"));
    ck_assert_ptr_nonnull(strstr(reason(absurd), "the largest node has 8.0 GiB of memory"));
    char *whole = gang(&fixture, 1, 1);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, whole), "a");
    heartbeat(&fixture, "a", 0); /* The node has become smaller than what runs on it. */
    char *none = gang(&fixture, 1, 0);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, none), "a");
}

END_TEST

START_TEST(replicas_start_one_by_one_and_after_their_back_off)
{
    heartbeat(&fixture, "a", 2);
    char *job = service(&fixture, 3, 1);
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, job), "a a -");
    cycle(&fixture);
    ck_assert_ptr_nonnull(strstr(reason(job), "needs 1 CPU"));
    heartbeat(&fixture, "b", 1);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "a a b");

    report(&fixture, job, 1, WEIR_JOB_EVENT_TASK_EXITED, 1);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(places(&fixture, job), "a - b");
    int64_t due_ms = job_state(&fixture, job).tasks[1].due_ms;
    ck_assert_int_eq(fixture.next_ms, due_ms);
    fixture.now_ms = due_ms - 1;
    ck_assert_int_eq(cycle(&fixture), 0);
    fixture.now_ms = due_ms;
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "a a b");
}

END_TEST

START_TEST(a_node_with_as_much_text_as_it_is_told_of_gets_no_more)
{
    const size_t mib = (size_t)1 << 20;
    heartbeat(&fixture, "a", 9);
    for (int i = 0; i < 3; i++) {
        (void)add_job(&fixture,
                      (struct new_job){"command", NULL, 2, 0, 0, 0, 4 * mib - 3, NULL, NULL});
    }
    char *small = gang(&fixture, 1, 0);
    ck_assert_int_eq(cycle(&fixture), 6); /* 16 MiB are reached by the last of them. */
    ck_assert_int_eq(fixture.next_ms, fixture.now_ms);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_ptr_nonnull(strstr(reason(small), "1 have no room for more tasks' files"));
    heartbeat(&fixture, "b", 1);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, small), "b");
}

END_TEST

/* ---- between plan and commit ----------------------------------------------------------------- */

START_TEST(a_node_that_was_lost_since_the_plan_gets_nothing)
{
    heartbeat(&fixture, "a", 4);
    char *job = gang(&fixture, 2, 1);
    plan(&fixture);
    fixture.now_ms += weir_node_silent_ms();
    heartbeat(&fixture, "b", 4);
    ck_assert_int_eq(commit(&fixture), 0);
    ck_assert_int_eq(fixture.next_ms, fixture.now_ms); /* It is planned again at once, */
    ck_assert_str_eq(places(&fixture, job), "- -");
    ck_assert_int_eq(cycle(&fixture), 2); /* without the node. */
    ck_assert_str_eq(places(&fixture, job), "b b");
    ck_assert_int_eq(job_state(&fixture, job).job.attempt, 1);
}

END_TEST

START_TEST(a_node_that_was_drained_or_became_smaller_since_the_plan_gets_nothing)
{
    heartbeat(&fixture, "a", 4);
    char *job = gang(&fixture, 1, 4);
    plan(&fixture);
    execute(&fixture, "UPDATE nodes SET is_draining = 1");
    ck_assert_int_eq(commit(&fixture), 0);
    ck_assert_int_eq(cycle(&fixture), 0);
    execute(&fixture, "UPDATE nodes SET is_draining = 0");
    plan(&fixture);
    heartbeat(&fixture, "a", 3);
    ck_assert_int_eq(commit(&fixture), 0);
    heartbeat(&fixture, "a", 4);
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(places(&fixture, job), "a");
}

END_TEST

START_TEST(a_job_that_changed_since_the_plan_is_left_alone)
{
    heartbeat(&fixture, "a", 4);
    char *cancelled = gang(&fixture, 1, 1), *kept = gang(&fixture, 1, 1),
         *gone = gang(&fixture, 1, 1);
    plan(&fixture);
    cancel(&fixture, cancelled);
    execute(&fixture, "DELETE FROM tasks WHERE job = 'job-003'");
    execute(&fixture, "DELETE FROM jobs WHERE id = 'job-003'");
    ck_assert_int_eq(commit(&fixture), 1);
    ck_assert_str_eq(gone, "job-003");
    ck_assert_str_eq(job_state(&fixture, cancelled).job.state, "CANCELLED");
    ck_assert_str_eq(places(&fixture, cancelled), "-");
    ck_assert_str_eq(places(&fixture, kept), "a");
}

END_TEST

START_TEST(a_job_that_cannot_be_written_fails_alone_and_is_tried_again)
{
    heartbeat(&fixture, "a", 9);
    char *before = gang(&fixture, 1, 1), *broken = gang(&fixture, 1, 1),
         *after = gang(&fixture, 1, 1);
    fixture_alter(&fixture.store, "CREATE TRIGGER no BEFORE UPDATE ON jobs WHEN NEW.id = 'job-002'"
                                  " BEGIN SELECT RAISE(ABORT, 'no'); END");
    ck_assert_int_eq(cycle(&fixture), 2);
    ck_assert_str_eq(places(&fixture, before), "a");
    ck_assert_str_eq(places(&fixture, broken), "-");
    ck_assert_str_eq(places(&fixture, after), "a");
    ck_assert_int_eq(fixture.next_ms, fixture.now_ms + 1000);
    fixture_alter(&fixture.store, "DROP TRIGGER no");
    ck_assert_int_eq(cycle(&fixture), 0);
    fixture.now_ms += 1000;
    ck_assert_int_eq(cycle(&fixture), 1);
    ck_assert_str_eq(fixture.failed, broken); /* It is written alone, and told to have worked. */
    ck_assert_int_eq(fixture.failed_status, WEIR_OK);
}

END_TEST

START_TEST(a_plan_that_was_never_written_leaves_no_trace)
{
    heartbeat(&fixture, "a", 4);
    char *job = gang(&fixture, 3, 1);
    plan(&fixture);
    scheduler_restart(&fixture); /* The server was killed here. */
    ck_assert_str_eq(places(&fixture, job), "- - -");
    ck_assert_int_eq(cycle(&fixture), 3);
    scheduler_restart(&fixture);
    ck_assert_int_eq(cycle(&fixture), 0);
    ck_assert_str_eq(places(&fixture, job), "a a a");
    ck_assert_int_eq(job_state(&fixture, job).job.attempt, 1);
}

END_TEST

/* ---- how often ------------------------------------------------------------------------------- */

START_TEST(a_reason_is_written_at_once_and_then_now_and_then)
{
    heartbeat(&fixture, "a", 2);
    char *busy = gang(&fixture, 1, 1), *job = gang(&fixture, 1, 2);
    cycle(&fixture);
    char *first = weir_arena_strdup(&fixture.store.arena, reason(job));
    int64_t revision = job_state(&fixture, job).job.revision;
    ck_assert_ptr_nonnull(strstr(first, "free on one is 1 CPU"));
    cycle(&fixture); /* What it has written itself is nothing new. */
    ck_assert_int_eq(job_state(&fixture, job).job.revision, revision);

    heartbeat(&fixture, "b", 1);
    (void)gang(&fixture, 1, 1);
    heartbeat(&fixture, "a", 1);
    fixture.now_ms += 100;
    cycle(&fixture);
    ck_assert_str_eq(reason(job), first);
    ck_assert_int_eq(fixture.next_ms, 1000000 + SCHEDULER_NOTE_EVERY_MS);
    fixture.now_ms = fixture.next_ms;
    heartbeat(&fixture, "a", 1);
    heartbeat(&fixture, "b", 1);
    cycle(&fixture);
    ck_assert_str_ne(reason(job), first);
    ck_assert_str_eq(places(&fixture, busy), "a");
}

END_TEST

/* ---- at random ------------------------------------------------------------------------------- */

START_TEST(gangs_of_equal_tasks_start_exactly_when_they_fit)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 3);
    int64_t size = 1 + (int64_t)weir_rng_below(&rng, 3), room = 0;
    size_t n_nodes = weir_rng_below(&rng, 7), n_tasks = 1 + weir_rng_below(&rng, 10);
    for (size_t i = 0; i < n_nodes; i++) {
        char *name = weir_arena_printf(&fixture.store.arena, "n%zu", i);
        int64_t slots = (int64_t)weir_rng_below(&rng, 9);
        bool takes = weir_rng_below(&rng, 4) != 0;
        fixture.now_ms = takes ? 1000000 : 1000000 - weir_node_silent_ms();
        heartbeat(&fixture, name, slots);
        room += takes ? slots / size : 0;
    }
    fixture.now_ms = 1000000;
    char *job = gang(&fixture, n_tasks, size);
    bool fits = (int64_t)n_tasks <= room;
    ck_assert_int_eq(cycle(&fixture), fits ? (int32_t)n_tasks : 0);
    ck_assert_int_eq(reason(job)[0] == '\0', fits);
}

END_TEST

/* Every node has what its tasks take, with half a CPU beside where some take parts of one, and every gang is on nodes whole or not at all. */
static weir_status check_state(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t n;
    (void)context;
    MUST(weir_txn_query_int(
        txn,
        "SELECT count(*) FROM nodes n JOIN (SELECT node, sum(cpu_millis) AS used,"
        " sum(cpu_millis % 1000) AS parts FROM tasks"
        " WHERE state IN ('STARTING', 'RUNNING', 'STOPPING') GROUP BY node) t ON t.node = n.name"
        " WHERE t.used > n.cpu_slots * 1000 + 500 OR"
        " (t.parts = 0 AND t.used > n.cpu_slots * 1000)",
        WEIR_NO_BINDS, 0, &n, err));
    ck_assert_int_eq(n, 0);
    MUST(weir_txn_query_int(
        txn,
        "SELECT count(*) FROM jobs j WHERE kind = 'command'"
        " AND EXISTS (SELECT 1 FROM tasks t WHERE t.job = j.id AND t.state = 'WAITING')"
        " AND EXISTS (SELECT 1 FROM tasks t WHERE t.job = j.id AND t.state IN"
        " ('STARTING', 'RUNNING'))",
        WEIR_NO_BINDS, 0, &n, err));
    ck_assert_int_eq(n, 0);
    return WEIR_OK;
}

static void beat_all(struct weir_rng *rng)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        if (weir_rng_below(rng, 8) != 0) {
            heartbeat(&fixture, names[i], 2 + (int64_t)i);
        }
    }
}

/* Whole CPUs, tenths of one, or any part. */
static int64_t some_millis(struct weir_rng *rng, uint64_t most)
{
    uint64_t unit = (uint64_t[]){1000, 100, 1}[weir_rng_below(rng, 3)];
    return (int64_t)(unit * (1 + weir_rng_below(rng, most * 1000 / unit)));
}

static void disturb(struct weir_rng *rng)
{
    uint64_t dice = weir_rng_below(rng, 6);
    char *job = fixture.n_jobs == 0
                    ? NULL
                    : weir_arena_printf(&fixture.store.arena, "job-%03d",
                                        1 + (int)weir_rng_below(rng, (uint64_t)fixture.n_jobs));
    int phase = job == NULL ? WEIR_JOB_SUCCEEDED
                            : weir_job_phase_from_text(job_state(&fixture, job).job.state);
    bool is_open = !weir_job_phase_is_final((enum weir_job_phase)phase);
    if (dice < 2) {
        (void)gang_of_millis(&fixture, 1 + weir_rng_below(rng, 5), some_millis(rng, 3));
    } else if (dice == 2) {
        (void)service_of_millis(&fixture, 1 + weir_rng_below(rng, 3),
                                (int64_t)weir_rng_below(rng, 2) * some_millis(rng, 1));
    } else if (dice == 3 && is_open) {
        cancel(&fixture, job);
    } else if (dice == 4 && is_open) {
        run_all(&fixture, job);
        end_all(&fixture, job);
    } else if (is_open) {
        job_event(&fixture, job,
                  (struct weir_job_event){.type = WEIR_JOB_EVENT_NODE_LOST, .node = "b"});
    }
}

START_TEST(random_histories_with_crashes_never_leave_a_job_in_between)
{
    struct weir_rng rng;
    uint64_t seed = (uint64_t)_i;
    weir_rng_init(&rng, seed, 5);
    for (int step = 0; step < 60; step++) {
        fixture.now_ms += (int64_t)weir_rng_below(&rng, 4000);
        beat_all(&rng);
        plan(&fixture);
        if (weir_rng_below(&rng, 2) == 0) {
            disturb(&rng);
        }
        if (weir_rng_below(&rng, 5) == 0) {
            scheduler_restart(&fixture);
        } else {
            commit(&fixture);
        }
        fixture_read(&fixture.store, check_state, NULL);
        disturb(&rng);
    }
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_gang_starts_whole_or_not_at_all,
        a_reason_counts_what_is_free_though_it_is_kept_for_others,
        what_does_not_fit_waits_and_starts_when_there_is_room,
        what_asks_for_little_keeps_nobody_from_a_whole_cpu,
        small_jobs_of_other_projects_do_not_pass_a_gang_for_ever,
        who_came_first_goes_first_and_replicas_go_before_jobs,
        projects_share_what_is_there,
        a_small_job_does_not_pass_a_gang_that_waits_for_room,
        when_a_job_may_start_is_said_if_the_like_of_what_runs_has_run_before,
        why_a_job_waits_is_said_in_words,
        memory_counts_and_a_task_without_slots_always_fits,
        replicas_start_one_by_one_and_after_their_back_off,
        a_node_with_as_much_text_as_it_is_told_of_gets_no_more,
        a_node_that_was_lost_since_the_plan_gets_nothing,
        a_node_that_was_drained_or_became_smaller_since_the_plan_gets_nothing,
        a_job_that_changed_since_the_plan_is_left_alone,
        a_job_that_cannot_be_written_fails_alone_and_is_tried_again,
        a_plan_that_was_never_written_leaves_no_trace,
        a_reason_is_written_at_once_and_then_now_and_then,
    };
    Suite *suite =
        weir_test_suite_with("scheduler", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests));
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_add_loop_test(random, gangs_of_equal_tasks_start_exactly_when_they_fit, 0, 40);
    tcase_add_loop_test(random, random_histories_with_crashes_never_leave_a_job_in_between, 0,
                        WEIR_TEST_TIMES(12, 4));
    suite_add_tcase(suite, random);
    return weir_test_run(suite);
}
