#include "job/changes.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;
static char seen[1024]; /* "ID STATE:RANK RANK; " of each job, in order */
static int64_t revision;

static weir_status add_job(struct weir_txn *txn, const char *id, size_t n_tasks,
                           struct weir_error *err)
{
    struct weir_task tasks[3] = {{0}};
    for (size_t i = 0; i < n_tasks; i++) {
        tasks[i] = (struct weir_task){.id = weir_arena_printf(&fixture.arena, "%s-%zu", id, i),
                                      .rank = (int64_t)i,
                                      .role = "worker",
                                      .cpu_millis = 2000,
                                      .memory_bytes = 5,
                                      .definition = "{\"argv\":[]}"};
    }
    const struct weir_job job = {
        .id = (char *)id, .name = "n", .project = "default", .kind = "train", .spec = "{}"};
    return weir_job_create(txn, &job, tasks, n_tasks, 1000, err);
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    MUST(weir_node_heartbeat(txn, &(struct weir_node){.name = "b", .cpu_slots = 4}, 1500, err));
    MUST(weir_node_heartbeat(txn, &(struct weir_node){.name = "a", .memory_bytes = 7}, 1600, err));
    MUST(add_job(txn, "j2", 2, err));
    MUST(add_job(txn, "j1", 3, err));
    return add_job(txn, "j3", 1, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
    seen[0] = '\0';
    revision = -1;
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static void see(void *context, const struct weir_job_state *state)
{
    (void)context;
    size_t len = strlen(seen);
    len +=
        (size_t)snprintf(seen + len, sizeof seen - len, "%s %s:", state->job.id, state->job.state);
    for (size_t i = 0; i < state->n_tasks; i++) {
        len += (size_t)snprintf(seen + len, sizeof seen - len, " %lld",
                                (long long)state->tasks[i].rank);
        ck_assert_int_eq(state->tasks[i].cpu_millis, 2000);
        ck_assert_int_eq(state->tasks[i].memory_bytes, 5);
        ck_assert_int_eq(state->tasks[i].definition_bytes, 11);
    }
    (void)snprintf(seen + len, sizeof seen - len, "; ");
}

static weir_status read_open(struct weir_txn *txn, void *context, struct weir_error *err)
{
    seen[0] = '\0';
    return weir_job_each_open(txn, see, context, &revision, err);
}

static weir_status read_changed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    seen[0] = '\0';
    return weir_job_each_changed(txn, revision, see, context, &revision, err);
}

static weir_status cancel(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_job_state state;
    struct weir_job_actions actions = {0};
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_CANCEL, .text = "x"};
    MUST(weir_job_load(txn, context, &fixture.arena, &state, err));
    MUST(weir_job_step(&state, &event, 2000, &fixture.arena, &actions, err));
    return weir_job_save(txn, &state, &actions, 2000, err);
}

static weir_status abandon(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_job_abandon(txn, context, "gone", "ann", 2000, err);
}

static weir_status read_succeeded(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int64_t *limit = context;
    seen[0] = '\0';
    return weir_job_each_succeeded(txn, *limit, see, NULL, err);
}

static weir_status succeed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "UPDATE jobs SET state = 'SUCCEEDED' WHERE id <> 'j1'", WEIR_NO_BINDS,
                         NULL, err);
}

START_TEST(what_has_ended_well_is_read_newest_first)
{
    int64_t two = 2, one = 1;
    fixture_read(&fixture, read_succeeded, &two);
    ck_assert_str_eq(seen, "");
    fixture_write(&fixture, succeed, NULL);
    fixture_read(&fixture, read_succeeded, &two);
    ck_assert_str_eq(seen, "j3 SUCCEEDED:; j2 SUCCEEDED:; ");
    fixture_read(&fixture, read_succeeded, &one);
    ck_assert_str_eq(seen, "j3 SUCCEEDED:; ");
}

END_TEST

static weir_status is_news(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;

    const struct {
        struct weir_node node;
        int64_t now_ms, since_ms;
        bool is_news;
    } rows[] = {
        {{.name = "c", .cpu_slots = 4}, 1600, 0, true},
        {{.name = "b", .cpu_slots = 4}, 1600, 0, false},
        {{.name = "b", .cpu_slots = 5}, 1600, 0, true},
        {{.name = "b", .cpu_slots = 4, .memory_bytes = 1}, 1600, 0, true},
        {{.name = "b", .cpu_slots = 4}, 1500 + weir_node_silent_ms(), 0, true},
        {{.name = "b", .cpu_slots = 4}, 1600, 1501, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool out;
        MUST(weir_node_is_news(txn, &rows[i].node, rows[i].now_ms, rows[i].since_ms, &out, err));
        ck_assert_int_eq(out, rows[i].is_news);
    }
    return WEIR_OK;
}

START_TEST(a_heartbeat_is_news_of_a_node_that_is_new_other_or_was_silent)
{
    fixture_read(&fixture, is_news, NULL);
}

END_TEST

START_TEST(all_open_jobs_are_read_once_and_then_what_changed)
{
    fixture_read(&fixture, read_open, NULL);
    ck_assert_str_eq(seen, "j1 PENDING: 0 1 2; j2 PENDING: 0 1; j3 PENDING: 0; ");
    ck_assert_int_eq(revision, 3);
    fixture_read(&fixture, read_changed, NULL);
    ck_assert_str_eq(seen, "");
    ck_assert_int_eq(revision, 3);

    fixture_write(&fixture, cancel, "j2");
    fixture_write(&fixture, abandon, "j1");
    fixture_read(&fixture, read_changed, NULL);
    ck_assert_str_eq(seen, "j2 CANCELLED:; j1 CANCELLED:; ");
    ck_assert_int_eq(revision, 5);
    fixture_read(&fixture, read_open, NULL);
    ck_assert_str_eq(seen, "j3 PENDING: 0; ");
    ck_assert_int_eq(revision, 5);
}

END_TEST

static weir_status note(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int64_t *at = context;
    return weir_job_note_wait(txn, "j3", *at, "full", 9000, err);
}

static weir_status check_note(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_job job;
    MUST(weir_txn_get(txn, &weir_job_resource, "j3", &fixture.arena, &job, err));
    ck_assert_int_eq(job.revision, 3);
    ck_assert_int_eq(job.expected_start_ms, context != NULL ? 9000 : 0);
    ck_assert_int_eq(job.reason != NULL, context != NULL);
    return WEIR_OK;
}

START_TEST(why_a_job_waits_is_no_change_and_only_noted_at_its_revision)
{
    int64_t other = 2, own = 3;
    fixture_write(&fixture, note, &other);
    fixture_read(&fixture, check_note, NULL);
    fixture_write(&fixture, note, &own);
    fixture_read(&fixture, check_note, "noted");
}

END_TEST

static void see_node(void *context, const struct weir_node *node)
{
    (void)context;
    size_t len = strlen(seen);
    (void)snprintf(seen + len, sizeof seen - len, "%s %lld %lld %d %lld; ", node->name,
                   (long long)node->cpu_slots, (long long)node->memory_bytes, node->is_draining,
                   (long long)node->last_seen_ms);
}

static weir_status read_nodes(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_node node;
    MUST(weir_node_look(txn, "b", &fixture.arena, &node, err));
    ck_assert_int_eq(node.cpu_slots, 4);
    ck_assert_int_eq(weir_node_look(txn, "c", &fixture.arena, &node, err), WEIR_ERR_NOT_FOUND);
    return weir_node_each(txn, see_node, context, err);
}

static weir_status change_at_random(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const changes[] = {
        "INSERT INTO jobs (id, name, project, kind, spec, state, attempt, max_restarts, "
        "n_restarts, due_ms,"
        " training, created_ms, started_ms, finished_ms) SELECT 'r' || :i, 'n', 'default',"
        " CASE :i % 2 WHEN 0 THEN 'train' ELSE 'command' END, '{}', 'PENDING', 1, 0, :i % 3, 0, 0, "
        ":i, 0, 0",
        "UPDATE jobs SET state = CASE :i % 3 WHEN 0 THEN 'RUNNING' WHEN 1 THEN 'FAILED' ELSE "
        "'SUCCEEDED' END"
        " WHERE id IN (SELECT id FROM jobs WHERE id LIKE 'r%' ORDER BY (rowid * 7919 + :i) % 101 "
        "LIMIT 2)",
        "UPDATE jobs SET n_restarts = n_restarts + 1, reason = 'x'"
        " WHERE id IN (SELECT id FROM jobs ORDER BY (rowid * 7919 + :i) % 101 LIMIT 1)",
        "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE id LIKE 'r%'"
        " ORDER BY (rowid * 7919 + :i) % 101 LIMIT 1)",
    };
    int64_t *i = context;
    return weir_txn_exec(txn, changes[*i % 7 % 4], WEIR_BINDS(WEIR_BIND_INT("i", *i)), NULL, err);
}

static weir_status count_wrong(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char counted[] =
        "SELECT project, kind, state, count(*), sum(n_restarts) FROM jobs GROUP BY 1, 2, 3",
                      kept[] = "SELECT project, kind, state, n, n_restarts FROM job_totals";
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT (SELECT count(*) FROM (%s EXCEPT %s)) + (SELECT count(*) FROM (%s EXCEPT %s))",
        counted, kept, kept, counted);
    return weir_txn_query_int(txn, sql, WEIR_NO_BINDS, -1, context, err);
}

/* Whatever is done to jobs: the totals are those of counting them. */
START_TEST(jobs_are_counted_as_they_come_change_and_go)
{
    int64_t wrong;
    for (int64_t i = 1; i <= 300; i++) {
        fixture_write(&fixture, change_at_random, &i);
        fixture_read(&fixture, count_wrong, &wrong);
        ck_assert_int_eq(wrong, 0);
    }
}

END_TEST

START_TEST(nodes_are_read_by_name)
{
    fixture_read(&fixture, read_nodes, NULL);
    ck_assert_str_eq(seen, "a 0 7 0 1600; b 4 0 0 1500; ");
}

END_TEST

WEIR_TEST_MAIN_WITH("changes", set_up, tear_down, jobs_are_counted_as_they_come_change_and_go,
                    all_open_jobs_are_read_once_and_then_what_changed,
                    why_a_job_waits_is_no_change_and_only_noted_at_its_revision,
                    nodes_are_read_by_name, what_has_ended_well_is_read_newest_first,
                    a_heartbeat_is_news_of_a_node_that_is_new_other_or_was_silent)
