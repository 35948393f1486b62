/*
 * The copy that is kept must be the copy that would be made again: after each of many random changes
 * of a store both give the planner the same rows.
 */
#include "control/schedule/scheduler_fixture.h"

#include "base/rng.h"
#include "sched/test_snapshot.h"

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

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return snapshot_read(context, txn, fixture.now_ms, fixture.since_ms, err);
}

/* The rows, and what is not in them, as text. */
static char *describe(struct snapshot *snapshot)
{
    const struct weir_sched_snapshot *rows = snapshot_rows(snapshot, fixture.now_ms);
    json_t *document = weir_sched_snapshot_to_json(rows);
    char *text = json_dumps(document, JSON_SORT_KEYS);
    json_decref(document);
    char *out = weir_arena_printf(&fixture.store.arena, "%s pending %d revision %" PRId64, text,
                                  snapshot->n_pending, snapshot->revision);
    free(text);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &snapshot->nodes[i];
        out =
            weir_arena_printf(&fixture.store.arena, "%s\n%s %" PRId64 " %" PRId64 " %" PRId64 " %d",
                              out, node->facts.name, node->used_cpu_milli, node->used_memory_bytes,
                              node->text_bytes, node->is_lost);
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        const struct weir_job *job = &snapshot->jobs[i]->state.job;
        out = weir_arena_printf(&fixture.store.arena, "%s\n%s %s %s", out, job->id, job->state,
                                job->reason != NULL ? job->reason : "");
    }
    return out;
}

/* The scheduler's own copy, brought up to date, against one from nothing. */
static void compare(uint64_t seed, int step)
{
    struct snapshot fresh;
    struct weir_error *err = &fixture.store.err;
    snapshot_init(&fresh);
    MUST(scheduler_read(fixture.scheduler, fixture.now_ms, fixture.since_ms, err));
    fixture_read(&fixture.store, read_in, &fresh);
    char *rebuilt = describe(&fresh);
    snapshot_fini(&fresh);
    struct snapshot *kept = (struct snapshot *)scheduler_snapshot(fixture.scheduler);
    struct nominated places = kept->nominated; /* Of the last plan, not of the store. */
    kept->nominated = (struct nominated){0};
    char *text = describe(kept);
    kept->nominated = places;
    ck_assert_msg(strcmp(text, rebuilt) == 0, "seed %" PRIu64 ", step %d\nkept    %s\nrebuilt %s",
                  seed, step, text, rebuilt);
}

static bool is_open(const char *job)
{
    int phase = weir_job_phase_from_text(job_state(&fixture, job).job.state);
    return !weir_job_phase_is_final((enum weir_job_phase)phase);
}

static void change_nodes(struct weir_rng *rng)
{
    char *name = weir_arena_printf(&fixture.store.arena, "n%d", (int)weir_rng_below(rng, 9));
    switch (weir_rng_below(rng, 8)) {
    case 0:
        execute(&fixture, weir_arena_printf(&fixture.store.arena,
                                            "UPDATE nodes SET is_draining = 1 - is_draining"
                                            " WHERE name = '%s'",
                                            name));
        break;
    case 1:
        execute(&fixture, weir_arena_printf(&fixture.store.arena,
                                            "DELETE FROM nodes WHERE name = '%s' AND NOT EXISTS"
                                            " (SELECT 1 FROM tasks WHERE node = '%s')",
                                            name, name));
        break;
    default:
        heartbeat(&fixture, name, 1 + (int64_t)weir_rng_below(rng, 6));
    }
}

static void change_jobs(struct weir_rng *rng)
{
    uint64_t dice = weir_rng_below(rng, 8);
    size_t n = 1 + weir_rng_below(rng, 4);
    int64_t millis = 250 * (int64_t)weir_rng_below(rng, 9);
    if (dice < 3 || fixture.n_jobs == 0) {
        (void)add_job(&fixture,
                      (struct new_job){dice == 0 ? "predict" : "command",
                                       dice == 1 ? "other" : "default", n, millis,
                                       (int64_t)weir_rng_below(rng, 3) << 30, 0, 100, NULL, NULL});
        return;
    }
    char *job = weir_arena_printf(&fixture.store.arena, "job-%03d",
                                  1 + (int)weir_rng_below(rng, (uint64_t)fixture.n_jobs));
    if (!is_open(job)) {
        return;
    }
    size_t task = weir_rng_below(rng, job_state(&fixture, job).n_tasks);
    if (dice == 3) {
        cancel(&fixture, job);
    } else if (dice == 4) {
        run_all(&fixture, job);
    } else if (dice == 5) {
        report(&fixture, job, task, WEIR_JOB_EVENT_TASK_EXITED, (int64_t)weir_rng_below(rng, 2));
    } else if (dice == 6) {
        report(&fixture, job, task, WEIR_JOB_EVENT_TASK_LOST, 0);
    } else {
        job_event(&fixture, job, (struct weir_job_event){.type = WEIR_JOB_EVENT_TICK});
    }
}

START_TEST(the_kept_copy_is_the_one_that_would_be_made_anew)
{
    struct weir_rng rng;
    uint64_t seed = (uint64_t)_i;
    weir_rng_init(&rng, seed, 9);
    for (int step = 0; step < 80; step++) {
        fixture.now_ms += (int64_t)weir_rng_below(&rng, 3000);
        change_nodes(&rng);
        change_jobs(&rng);
        compare(seed, step);
        if (weir_rng_below(&rng, 3) == 0) {
            cycle(&fixture);
            compare(seed, step);
        }
    }
}

END_TEST

START_TEST(what_is_over_is_forgotten_and_what_did_not_change_is_not_looked_at)
{
    struct weir_error *err = &fixture.store.err;
    const struct snapshot *kept = scheduler_snapshot(fixture.scheduler);
    heartbeat(&fixture, "a", 1);
    char *first = gang(&fixture, 1, 1), *second = gang(&fixture, 1, 1);
    cycle(&fixture);
    cycle(&fixture);
    ck_assert(!kept->is_changed);
    fixture.now_ms += 1000;
    heartbeat(&fixture, "a", 1);
    MUST(scheduler_read(fixture.scheduler, fixture.now_ms, fixture.since_ms, err));
    ck_assert(!kept->is_changed); /* A heartbeat that tells nothing new. */
    ck_assert_int_eq(kept->n_jobs, 2);
    const struct snapshot_job *untouched = kept->jobs[0];
    untouched = strcmp(untouched->state.job.id, second) == 0 ? untouched : kept->jobs[1];
    cancel(&fixture, first);
    report(&fixture, first, 0, WEIR_JOB_EVENT_TASK_EXITED, 1);
    MUST(scheduler_read(fixture.scheduler, fixture.now_ms, fixture.since_ms, err));
    ck_assert(kept->is_changed);
    ck_assert_int_eq(kept->n_jobs, 1);
    ck_assert_ptr_eq(kept->jobs[0], untouched);
    ck_assert_str_eq(untouched->state.job.id, second);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_is_over_is_forgotten_and_what_did_not_change_is_not_looked_at};
    Suite *suite =
        weir_test_suite_with("snapshot", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests));
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_add_loop_test(random, the_kept_copy_is_the_one_that_would_be_made_anew, 0,
                        WEIR_TEST_TIMES(12, 4));
    suite_add_tcase(suite, random);
    return weir_test_run(suite);
}
