/**
 * Random histories of jobs on a few nodes. Law: a commit marks the topics of those nodes whose desired_revision it
 * counted up, and no others, so that an agent that waits for its node's topic alone misses nothing; what is undone
 * marks nothing.
 */
#include "job/job.h"

#include "base/rng.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define N_HISTORIES WEIR_TEST_TIMES(5, 2)
#define N_STEPS     150
#define N_NODES     6
#define N_JOBS      4
#define N_TASKS     3

static const char *const names[N_NODES] = {"a", "b", "gpu-1", "gpu-2", "node-00017", "node-00018"};

static struct store_fixture fixture;
static struct weir_rng rng;
static uint64_t told;

struct history {
    int64_t now_ms;
    int n_jobs; /* Made so far; the last N_JOBS are played with. */
    int64_t revisions[N_NODES];
    char job[24];

    enum { MAKES, BINDS, HAPPENS, ABANDONS, BEATS, N_DEEDS } deed;

    bool fails, is_tried;
};

static bool is_one_of(uint64_t n)
{
    return weir_rng_below(&rng, n) == 0;
}

static weir_status make(struct weir_txn *txn, struct history *history, struct weir_error *err)
{
    char ids[N_TASKS][48];
    struct weir_task tasks[N_TASKS];
    size_t n = 1 + (size_t)weir_rng_below(&rng, N_TASKS);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%s-%zu", history->job, i);
        tasks[i] = (struct weir_task){
            .id = ids[i], .rank = (int64_t)i, .role = "worker", .cpu_millis = 1000};
    }
    const struct weir_job job = {.id = history->job,
                                 .name = "j",
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{}",
                                 .is_service = is_one_of(3),
                                 .max_restarts = 2,
                                 .created_by = "ann"};
    return weir_job_create(txn, &job, tasks, n, history->now_ms, err);
}

static void choose_event(const struct weir_job_state *state, struct weir_job_event *out)
{
    static const enum weir_job_event_type types[] = {
        WEIR_JOB_EVENT_TASK_RUNNING, WEIR_JOB_EVENT_TASK_EXITED, WEIR_JOB_EVENT_TASK_LOST,
        WEIR_JOB_EVENT_NODE_LOST,    WEIR_JOB_EVENT_CANCEL,      WEIR_JOB_EVENT_EVICT,
        WEIR_JOB_EVENT_HOLD,         WEIR_JOB_EVENT_RELEASE,     WEIR_JOB_EVENT_TICK};
    const struct weir_task *task = &state->tasks[weir_rng_below(&rng, state->n_tasks)];
    *out = (struct weir_job_event){.type = types[weir_rng_below(&rng, WEIR_ARRAY_LEN(types))],
                                   .task = task->id,
                                   .attempt = task->attempt,
                                   .exit_code = (int64_t)weir_rng_below(&rng, 2),
                                   .text = "so",
                                   .node = names[weir_rng_below(&rng, N_NODES)]};
}

/* Of an event that does not fit the job nothing comes. */
static weir_status change(struct weir_txn *txn, struct history *history, struct weir_error *err)
{
    struct weir_job_state state;
    struct weir_job_actions actions = {0};
    struct weir_job_event event;
    size_t wants[N_TASKS];
    const char *place[N_TASKS];
    MUST(weir_job_load(txn, history->job, &fixture.arena, &state, err));
    if (history->deed == BINDS) {
        event = (struct weir_job_event){.type = WEIR_JOB_EVENT_BIND, .place = place};
        event.n_place = weir_job_wants(&state, history->now_ms, wants);
        for (size_t i = 0; i < event.n_place; i++) {
            place[i] = names[weir_rng_below(&rng, N_NODES)];
        }
        if (event.n_place == 0) {
            return WEIR_OK;
        }
    } else {
        choose_event(&state, &event);
    }
    weir_status status =
        weir_job_step(&state, &event, history->now_ms, &fixture.arena, &actions, err);
    return status == WEIR_OK ? weir_job_save(txn, &state, &actions, history->now_ms, err) : WEIR_OK;
}

static weir_status act(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct history *history = context;
    weir_status status = WEIR_OK;
    if (history->deed == MAKES) {
        status = make(txn, history, err);
    } else if (history->deed == ABANDONS) {
        status = weir_job_abandon(txn, history->job, "so", "ann", history->now_ms, err);
    } else if (history->deed == BEATS) {
        const struct weir_node node = {.name = (char *)names[weir_rng_below(&rng, N_NODES)],
                                       .cpu_slots = 4};
        status = weir_node_heartbeat(txn, &node, history->now_ms, err);
    } else {
        status = change(txn, history, err);
    }
    return status == WEIR_OK && history->fails ? weir_error_set(err, WEIR_ERR_PEER, "gone")
                                               : status;
}

static weir_status read_revisions(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t *out = context;
    for (size_t i = 0; i < N_NODES; i++) {
        struct weir_node node;
        MUST(weir_txn_get(txn, &weir_node_resource, names[i], &fixture.arena, &node, err));
        out[i] = node.desired_revision;
    }
    return WEIR_OK;
}

static void note_marks(void *context, uint64_t change_number, uint64_t marks)
{
    (void)context;
    (void)change_number;
    told |= marks;
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    for (size_t i = 0; i < N_NODES; i++) {
        const struct weir_node node = {.name = (char *)names[i], .cpu_slots = 4};
        MUST(weir_node_heartbeat(txn, &node, 1, err));
    }
    return WEIR_OK;
}

static weir_status do_nothing(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)context;
    (void)err;
    return WEIR_OK;
}

/* @return How many nodes it counted up. */
static size_t take_step(struct history *history, int seed, int step)
{
    int64_t revisions[N_NODES];
    uint64_t changed = 0;
    size_t n = 0;
    history->now_ms += (int64_t)weir_rng_below(&rng, 8000);
    history->deed = is_one_of(3) ? BINDS : weir_rng_below(&rng, N_DEEDS);
    history->deed = history->n_jobs == 0 ? MAKES : history->deed;
    history->fails = is_one_of(6);
    history->is_tried = is_one_of(8);
    int64_t of = history->n_jobs - 1 - (int64_t)weir_rng_below(&rng, N_JOBS);
    (void)snprintf(history->job, sizeof history->job, "j%lld",
                   history->deed == MAKES ? (long long)history->n_jobs
                                          : (long long)WEIR_MAX(of, (int64_t)0));
    told = 0;
    weir_status status = history->is_tried
                             ? weir_store_try(fixture.store, act, history, &fixture.err)
                             : weir_store_write(fixture.store, act, history, &fixture.err);
    history->n_jobs += history->deed == MAKES && status == WEIR_OK && !history->is_tried;
    fixture_write(&fixture, do_nothing, NULL); /* behind the watches of the one before */
    fixture_read(&fixture, read_revisions, revisions);
    for (size_t i = 0; i < N_NODES; i++) {
        changed |= revisions[i] != history->revisions[i] ? weir_node_topic(names[i]) : 0;
        n += revisions[i] != history->revisions[i];
    }
    ck_assert_msg(told == changed, "seed %d, step %d, deed %d: told %llx, counted up %llx", seed,
                  step, (int)history->deed, (unsigned long long)told, (unsigned long long)changed);
    memcpy(history->revisions, revisions, sizeof revisions);
    return n;
}

START_TEST(who_waits_for_a_node_is_told_of_its_changes_alone)
{
    struct history history = {.now_ms = 1000};
    size_t n = 0;
    int watch;
    uint64_t all = 0;
    for (size_t i = 0; i < N_NODES; i++) { /* else the law says less */
        ck_assert_uint_eq(all & weir_node_topic(names[i]), 0);
        ck_assert_uint_eq(weir_node_topic(names[i]) & WEIR_TOPIC_GENERAL, 0);
        all |= weir_node_topic(names[i]);
    }
    fixture_make(&fixture, populate);
    weir_rng_init(&rng, (uint64_t)_i, 0);
    fixture_read(&fixture, read_revisions, history.revisions);
    ck_assert_int_eq(weir_store_watch(fixture.store, note_marks, NULL, &watch, NULL), WEIR_OK);
    for (int step = 0; step < N_STEPS; step++) {
        n += take_step(&history, _i, step);
    }
    ck_assert_uint_gt(n, N_STEPS / 10);
    fixture_fini(&fixture);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("wake");
    TCase *tcase = tcase_create("wake");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, who_waits_for_a_node_is_told_of_its_changes_alone, 0, N_HISTORIES);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
