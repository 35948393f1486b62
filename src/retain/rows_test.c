#include "retain/retain_fixture.h"

#include <string.h>

/* Decisions seq `first` to `last`, one a minute from NOON_MS + first minutes on. */
struct span {
    int64_t first, last;
};

static weir_status add_decisions_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct span *span = context;
    for (int64_t i = span->first; i <= span->last; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "d%" PRId64, i);
        WEIR_TRY(weir_txn_exec(
            txn,
            "INSERT INTO decisions (id, seq, ion, pipeline, camera, frame, time_ms, verdict,"
            " model_version, gallery_version, list_revision, latency_us, durable_us) VALUES"
            " (:id, :seq, 'door', 'p', :camera, :seq, :time, :verdict, 1, 1, 1, 1, 1)",
            WEIR_BINDS(WEIR_BIND_TEXT("id", id), WEIR_BIND_INT("seq", i),
                       WEIR_BIND_TEXT("camera", i % 2 == 0 ? "east" : "west"),
                       WEIR_BIND_TEXT("verdict", i % 3 == 0 ? "grant" : "deny"),
                       WEIR_BIND_INT("time", NOON_MS + i * 60000)),
            NULL, err));
    }
    return WEIR_OK;
}

static void add_decisions(int64_t first, int64_t last)
{
    struct span span = {first, last};
    fixture_write(&fixture, add_decisions_in, &span);
}

START_TEST(decisions_older_than_the_policy_go_and_no_others)
{
    add_decisions(1, 3000);
    retain("decisions", "1d");
    now_ms = NOON_MS + 1000 * 60000 + DAY_MS;
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 2000);
    ck_assert_int_eq(ask("SELECT min(seq) FROM decisions"), 1001);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 2000);
    now_ms = NOON_MS + 10 * DAY_MS;
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 0);
    sweep_round(); /* of an empty table */
}

END_TEST

START_TEST(decisions_beyond_the_size_go_oldest_first)
{
    char text[32];
    add_decisions(1, 3000);
    (void)snprintf(text, sizeof text, "forever,%" PRId64 "B",
                   100 * weir_retain_rule(KIND("decisions"))->row_bytes);
    retain("decisions", text);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 100);
    ck_assert_int_eq(ask("SELECT min(seq) FROM decisions"), 2901);
    add_decisions(3001, 3007);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 100);
    ck_assert_int_eq(ask("SELECT max(seq) FROM decisions"), 3007);
}

END_TEST

/* One that arrived late, from a clock that is behind, takes no younger ones with it for long. */
START_TEST(a_decision_with_a_wrong_time_does_not_hold_up_the_others)
{
    add_decisions(1, 10);
    sql("UPDATE decisions SET time_ms = %" PRId64 " WHERE seq = 3", NOON_MS + 900 * DAY_MS);
    retain("decisions", "1d");
    now_ms = NOON_MS + 5 * 60000 + DAY_MS;
    sweep_round();
    ck_assert_int_eq(ask("SELECT min(seq) FROM decisions"), 6);
}

END_TEST

static void add_alert(const char *id, const char *state, int64_t resolved_ms)
{
    sql("INSERT INTO alerts (id, key, severity, kind, message, state, count, raised_ms, last_ms,"
        " acknowledged_ms, resolved_ms) VALUES ('%s', '%s', 'info', 'k', 'm', '%s', 1, 1, 1, 0,"
        " %" PRId64 ")",
        id, id, state, resolved_ms);
}

START_TEST(only_resolved_alerts_go)
{
    add_alert("open", "open", 0);
    add_alert("seen", "acknowledged", 0);
    add_alert("old", "resolved", NOON_MS - 91 * DAY_MS);
    add_alert("new", "resolved", NOON_MS - 89 * DAY_MS);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE id = 'old'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts"), 3);
    retain("alerts", "0B");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts"), 2);
}

END_TEST

/* A run of a job, with n metrics. */
static void add_run(const char *id, const char *job, int64_t finished_ms, int n)
{
    sql("INSERT INTO runs (id, name, project, kind, status, job, dataset_version, created_ms,"
        " finished_ms) VALUES ('%s', 'n', 'p', 'train', 'FINISHED', '%s', 0, 1, %" PRId64 ")",
        id, job, finished_ms);
    for (int i = 0; i < n; i++) {
        sql("INSERT INTO metrics (run, key, step, time_ms, value, is_nan) SELECT number, 1, %d, 1, "
            "1, 0"
            " FROM runs WHERE id = '%s'",
            i, id);
    }
    sql("INSERT INTO latest_metrics (run, key, step, time_ms, value, is_nan) SELECT number, 1, 1, "
        "1, 1, 0"
        " FROM runs WHERE id = '%s' AND %d > 0",
        id, n);
    sql("INSERT INTO run_parameters (run, key, value) SELECT number, 2, 'x' FROM runs WHERE id = "
        "'%s'",
        id);
    sql("INSERT INTO run_tags (run, key, value) SELECT number, 2, 'x' FROM runs WHERE id = '%s'",
        id);
}

/* A model version of a run, offered to a link in this state. */
static void add_candidate(const char *id, const char *run, const char *state)
{
    sql("INSERT INTO models (name, project, created_ms) VALUES ('m', 'p', 0) ON CONFLICT DO "
        "NOTHING");
    sql("INSERT INTO model_versions (id, model, version, run, blob, bytes, dataset_version,"
        " created_ms) VALUES ('v%s', 'm', (SELECT count(*) + 1 FROM model_versions), '%s', 'b', 1, "
        "0, 0)",
        id, run);
    sql("INSERT INTO ions (name, project, document, state, revision, list_revision, n_decisions,"
        " n_served, created_ms, updated_ms) VALUES ('door', 'p', '{}', 'ACTIVE', 1, 1, 0, 0, 0, 0)"
        " ON CONFLICT DO NOTHING");
    sql("INSERT INTO ion_candidates (id, ion, link, model, model_version, version, blob, state,"
        " served_seq, served_ms, created_ms, updated_ms) VALUES ('c%s', 'door', 'l%s', 'm', 'v%s', "
        "1,"
        " 'b', '%s', 0, 0, 0, 0)",
        id, id, id, state);
}

START_TEST(jobs_that_are_over_go_with_their_tasks_runs_and_metrics)
{
    int64_t old = NOON_MS - 91 * DAY_MS;
    add_job("gone", "train", "FAILED", old);
    add_task("t1", "gone", 1);
    add_run("r1", "gone", old, 200);
    add_job("made", "train", "SUCCEEDED", old); /* lineage of a model version */
    add_task("t2", "made", 1);
    add_run("r2", "made", old, 3);
    add_candidate("a", "r2", "RETIRED");
    add_job("runs", "train", "RUNNING", 0);
    add_run("r3", "runs", 0, 3);
    add_job("late", "command", "SUCCEEDED", NOON_MS - 89 * DAY_MS);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs WHERE id = 'gone'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs"), 3);
    ck_assert_int_eq(ask("SELECT count(*) FROM tasks"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM runs"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM metrics"), 6);
    retain("jobs", "0s,0B");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs"), 2);
}

END_TEST

START_TEST(the_job_that_made_a_dataset_version_stays)
{
    add_job("prepared", "command", "SUCCEEDED", 1);
    add_run("r1", "prepared", 1, 1);
    add_job("other", "command", "SUCCEEDED", 1);
    add_run("r2", "other", 1, 1);
    sql("INSERT INTO datasets (name, project, kind, path, is_uploaded, created_ms) VALUES ('d', "
        "'p',"
        " 'folder', '/d', 0, 0)");
    sql("INSERT INTO dataset_versions (id, dataset, version, digest, n_files, n_classes, bytes,"
        " created_ms, run) VALUES ('dv', 'd', 1, 'x', 1, 1, 1, 0, 'r1')");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs WHERE id = 'prepared'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM runs WHERE id = 'r1'"), 1);
}

END_TEST

START_TEST(the_job_of_a_pipeline_stays)
{
    add_job("current", "train", "FAILED", 1);
    add_job("other", "train", "FAILED", 1);
    sql("INSERT INTO ions (name, project, document, state, revision, list_revision, n_decisions,"
        " n_served, created_ms, updated_ms) VALUES ('x', 'p', '{}', 'ACTIVE', 1, 1, 0, 0, 0, 0)");
    sql("INSERT INTO ion_pipelines (id, ion, name, type, state, job, training, dataset_version,"
        " next_fire_ms, deployment_revision, gallery_version, updated_ms) VALUES"
        " ('x', 'x', 't', 'training', 'IDLE', 'current', 1, 0, 0, 0, 0, 0)");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs WHERE id = 'current'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM jobs"), 1);
}

END_TEST

START_TEST(curves_of_models_that_serve_or_wait_stay)
{
    static const char *const states[] = {"SERVING", "PENDING_REVIEW", "APPROVED", "RETIRED"};
    add_job("j", "train", "SUCCEEDED", 1);
    for (int i = 0; i < 4; i++) {
        char id[2] = {(char)('0' + i), '\0'};
        add_run(id, "j", 1, 5);
        add_candidate(id, id, states[i]);
    }
    retain("metrics", "0s,0B");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM metrics"), 15);
    ck_assert_int_eq(
        ask("SELECT count(*) FROM metrics WHERE run = (SELECT number FROM runs WHERE id = '3')"),
        0);
    ck_assert_int_eq(ask("SELECT count(*) FROM runs"), 4);
}

END_TEST

START_TEST(curves_of_models_that_have_a_name_stay)
{
    add_job("j", "train", "SUCCEEDED", 1);
    for (int i = 0; i < 2; i++) {
        char id[2] = {(char)('0' + i), '\0'};
        add_run(id, "j", 1, 5);
        add_candidate(id, id, "RETIRED");
    }
    sql("INSERT INTO model_aliases (id, model, alias, version, updated_ms) VALUES ('m:best', 'm',"
        " 'best', 1, 0)");
    retain("metrics", "0s,0B");
    sweep_round();
    ck_assert_int_eq(
        ask("SELECT count(*) FROM metrics WHERE run = (SELECT number FROM runs WHERE id = '0')"),
        5);
    ck_assert_int_eq(
        ask("SELECT count(*) FROM metrics WHERE run = (SELECT number FROM runs WHERE id = '1')"),
        0);
}

END_TEST

START_TEST(actions_that_wait_stay)
{
    for (int i = 0; i < 3; i++) {
        sql("INSERT INTO outbox (seq, key, kind, payload, state, attempts, due_ms, created_ms, "
            "done_ms)"
            " VALUES (%d, 'k%d', 'x', '{}', '%s', 0, 0, 0, 1)",
            i, i,
            i == 0   ? "pending"
            : i == 1 ? "done"
                     : "failed");
    }
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM outbox WHERE state = 'pending'"), 1);
}

END_TEST

/* The file's pages are used again: what comes and goes leaves it as large as it was. */
START_TEST(the_database_reaches_a_plateau)
{
    int64_t pages[12], n = 2000;
    char text[32];
    (void)snprintf(text, sizeof text, "forever,%" PRId64 "B",
                   n * weir_retain_rule(KIND("decisions"))->row_bytes);
    retain("decisions", text);
    for (int i = 0; i < 12; i++) {
        add_decisions(i * n + 1, (i + 1) * n);
        sweep_round();
        ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), n);
        pages[i] = ask("SELECT page_count FROM pragma_page_count");
    }
    ck_assert_int_gt(pages[1], pages[0]);
    ck_assert_int_le(pages[11], pages[3] + pages[3] / 20);
}

END_TEST

START_TEST(a_step_holds_the_writer_for_no_more_than_ten_milliseconds)
{
    add_decisions(1, 20000);
    retain("decisions", "0s");
    now_ms = NOON_MS + 99 * DAY_MS;
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 0);
    /* A neighbour may take the processor from a step: then a few are long. */
    ck_assert_int_gt(retainer->n_steps, 10);
    ck_assert_int_le(retainer->n_long_steps, WEIR_TEST_TIMES(retainer->n_steps / 10, INT64_MAX));
}

END_TEST

/* Events 1 to n, one a minute: of ten, six happen, one is an admin's act, three are refusals. */
static void add_events(int n)
{
    sql("WITH RECURSIVE one (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM one WHERE i < %d)"
        " INSERT INTO events (seq, time_ms, topic, kind, message) SELECT i, %" PRId64
        " + i * 60000, CASE WHEN i %% 10 >= 6 THEN 'audit' ELSE 'jobs' END,"
        " CASE WHEN i %% 10 < 6 THEN 'job_failed' WHEN i %% 10 = 6 THEN 'token_created'"
        " ELSE 'access_refused' END, 'm' FROM one",
        n, NOON_MS);
}

START_TEST(what_anybody_can_have_written_pushes_out_no_act_of_an_admin)
{
    char text[64];
    add_events(1000);
    (void)snprintf(text, sizeof text, "forever,%" PRId64 "B",
                   10 * weir_retain_rule(KIND("accesses"))->row_bytes);
    retain("accesses", text);
    retain("events", "0s");
    now_ms = NOON_MS + 500 * 60000;
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE kind = 'token_created'"), 100);
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE kind = 'access_refused'"), 10);
    ck_assert_int_eq(ask("SELECT min(seq) FROM events WHERE kind = 'access_refused'"), 969);
    ck_assert_int_eq(ask("SELECT min(seq) FROM events WHERE topic = 'jobs'"), 501);
    (void)snprintf(text, sizeof text, "forever,%" PRId64 "B",
                   weir_retain_rule(KIND("audit"))->row_bytes);
    retain("audit", text);
    sweep_round();
    ck_assert_int_eq(ask("SELECT seq FROM events WHERE kind = 'token_created'"), 996);
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE topic = 'audit'"), 11);
}

END_TEST

START_TEST(a_step_over_events_searches_none_that_stay)
{
    add_events(20000);
    retain("events", "0s");
    retain("accesses", "0s");
    now_ms = NOON_MS + 90 * DAY_MS;
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM events"), 2000);
    ck_assert_int_le(retainer->n_long_steps, WEIR_TEST_TIMES(retainer->n_steps / 10, INT64_MAX));
}

END_TEST

START_TEST(starts_of_jobs_that_are_over_are_forgotten_and_no_others)
{
    add_job("old", "command", "FAILED", NOON_MS - 8 * DAY_MS);
    add_job("new", "command", "FAILED", NOON_MS - 6 * DAY_MS);
    add_job("open", "predict", "RUNNING", 0);
    add_task("t1", "old", 3);
    add_task("t2", "new", 3);
    add_task("t3", "open", 3);
    for (int i = 1; i <= 3; i++) {
        sql("INSERT INTO attempts (task, number, node) VALUES ('t1', %d, 'n'), ('t2', %d, 'n'),"
            " ('t3', %d, 'n')",
            i, i, i);
    }
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM attempts WHERE task = 't1'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM attempts"), 6);
    ck_assert_int_eq(ask("SELECT count(*) FROM tasks"), 3);
    retain("attempts", "0B");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM attempts WHERE task = 't3'"), 3);
    ck_assert_int_eq(ask("SELECT count(*) FROM attempts"), 3);
}

END_TEST

static void add_node(const char *name, const char *allocation, int64_t left_ms)
{
    sql("INSERT INTO nodes (name, cpu_slots, memory_bytes, n_accelerators, is_draining, "
        "desired_revision,"
        " last_seen_ms, created_ms, left_ms, allocation) VALUES ('%s', 1, 1, 0, 0, 1, 0, 0, "
        "%" PRId64 ", nullif('%s', ''))",
        name, left_ms, allocation);
}

START_TEST(nodes_that_were_lent_go_when_they_have_left_and_no_task_names_them)
{
    add_node("gone", "a", NOON_MS - 2 * DAY_MS);
    add_node("late", "a", NOON_MS - DAY_MS / 2);
    add_node("there", "a", 0);
    add_node("named", "a", NOON_MS - 2 * DAY_MS);
    add_node("own", "", NOON_MS - 2 * DAY_MS);
    add_job("j", "command", "SUCCEEDED", NOON_MS);
    add_task("t1", "j", 1);
    sql("UPDATE tasks SET node = 'named'");
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM nodes"), 4);
    ck_assert_int_eq(ask("SELECT count(*) FROM nodes WHERE name = 'gone'"), 0);
}

END_TEST

static void add_report(const char *pipeline, const char *replica, int64_t time_ms)
{
    sql("INSERT INTO ion_replicas (id, ion, pipeline, replica, revision, state, served_revision,"
        " frames_taken, frames_decided, frames_waiting, last_frame_ms, backlog_ms, time_ms) VALUES"
        " ('x:%s:%s', 'x', '%s', '%s', 1, 'APPLIED', 1, 1, 1, 0, 0, 0, %" PRId64 ")",
        pipeline, replica, pipeline, replica, time_ms);
}

START_TEST(reports_of_replicas_that_are_gone_go)
{
    add_job("j", "predict", "RUNNING", 0);
    sql("INSERT INTO ions (name, project, document, state, revision, list_revision, n_decisions,"
        " n_served, created_ms, updated_ms) VALUES ('x', 'p', '{}', 'ACTIVE', 1, 1, 0, 0, 0, 0)");
    sql("INSERT INTO ion_pipelines (id, ion, name, type, state, job, training, dataset_version,"
        " next_fire_ms, deployment_revision, gallery_version, updated_ms) VALUES"
        " ('x:see', 'x', 'see', 'prediction', 'SERVING', 'j', 0, 0, 0, 1, 0, 0),"
        " ('x:off', 'x', 'off', 'prediction', 'REMOVED', NULL, 0, 0, 0, 1, 0, 0)");
    add_report("see", "j-0", NOON_MS - 2 * DAY_MS); /* silent, but wanted */
    add_report("see", "jj-0", NOON_MS - 2 * DAY_MS);
    add_report("off", "k-0", NOON_MS - 2 * DAY_MS);
    add_report("off", "k-1", NOON_MS - DAY_MS / 2);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM ion_replicas"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM ion_replicas WHERE replica IN ('j-0', 'k-1')"), 2);
}

END_TEST

/* Tables whose rows go with a kind's and are in none of its statements. */
static const char *cascaded(const char *kind)
{
    return strcmp(kind, "jobs") == 0 ? "'task_devices', 'usage_meters'" : "''";
}

/* By the database itself: the most indexes of a table that the kind deletes from. */
START_TEST(a_step_reckons_with_every_index_that_its_rows_stand_in)
{
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        const struct retain_kind *its = retain_kind(kind);
        char *tables = weir_arena_strdup(&fixture.arena, cascaded(its->rule->name));
        for (size_t i = 0; i < RETAIN_REMOVE_MAX && its->sql.remove[i] != NULL; i++) {
            const char *table = its->sql.remove[i] + strlen("DELETE FROM ");
            tables = weir_arena_printf(&fixture.arena, "%s, '%.*s'", tables,
                                       (int)strcspn(table, " "), table);
        }
        if (its->rule->row_bytes > 0) {
            const char *text = weir_arena_printf(
                &fixture.arena,
                "SELECT max(n) FROM (SELECT count(i.seq) + 1 AS n FROM sqlite_schema t"
                " LEFT JOIN pragma_index_list(t.name) i WHERE t.type = 'table'"
                " AND t.name IN (%s) GROUP BY t.name)",
                tables);
            ck_assert_msg(ask(text) == its->rule->n_entries, "%s: %d", its->rule->name,
                          (int)ask(text));
        }
    }
}

END_TEST

static void must_compile(const char *statement)
{
    if (statement != NULL) {
        (void)ask(weir_arena_printf(&fixture.arena, "EXPLAIN %s", statement));
    }
}

/* Tables of few rows, which may be walked through, as plans name them. */
static const char *const few[] = {
    "SCAN alert_silences", /* made by people */
    "SCAN camera_minutes", /* at most 32 of a camera, of the last day */
    "SCAN d",              /* deployment_versions: at most 32 of a deployment */
    "SCAN ion_pipelines",  /* of documents */
    "SCAN ion_replicas",   /* those that are gone, for a day */
    NULL,
};

/* Steps hold the writer: what they ask again and again looks at the rows that go, and at no others. What a person asks
 * (its count, a project's) may. */
START_TEST(no_step_of_a_rule_walks_through_a_table)
{
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        const struct retain_sql *its = &retain_kind(kind)->sql;
        const char *const asked[] = {its->oldest,    its->keys,      its->first,     its->cut_old,
                                     its->cut_n,     its->remove[0], its->remove[1], its->remove[2],
                                     its->remove[3], its->remove[4], its->remove[5], its->remove[6],
                                     its->remove[7], its->remove[8], its->remove[9]};
        _Static_assert(RETAIN_REMOVE_MAX <= 10, "all of them are looked at");
        for (size_t i = 0; i < 5 + RETAIN_REMOVE_MAX; i++) {
            if (asked[i] != NULL) {
                fixture_refuse_walks(&fixture, asked[i], few);
            }
        }
    }
}

END_TEST

START_TEST(every_statement_of_every_rule_can_be_run)
{
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        const struct retain_sql *its = &retain_kind(kind)->sql;
        const char *const asked[] = {
            its->count, its->oldest,   its->keys,      its->first,         its->cut_old,
            its->cut_n, its->own_keys, its->own_count, its->own_remove[0], its->count_all};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(asked); i++) {
            must_compile(asked[i]);
        }
        for (size_t i = 0; i < RETAIN_REMOVE_MAX; i++) {
            must_compile(its->remove[i]);
        }
        bool is_rows = weir_retain_rule(kind)->row_bytes > 0;
        ck_assert_int_eq(is_rows, its->count != NULL);
        ck_assert_int_eq(is_rows && weir_retain_rule(kind)->is_of_project, its->own_keys != NULL);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "rows", retain_set_up, retain_tear_down, decisions_older_than_the_policy_go_and_no_others,
    decisions_beyond_the_size_go_oldest_first,
    a_decision_with_a_wrong_time_does_not_hold_up_the_others, only_resolved_alerts_go,
    jobs_that_are_over_go_with_their_tasks_runs_and_metrics,
    the_job_that_made_a_dataset_version_stays, the_job_of_a_pipeline_stays,
    curves_of_models_that_serve_or_wait_stay, curves_of_models_that_have_a_name_stay,
    actions_that_wait_stay, the_database_reaches_a_plateau,
    a_step_holds_the_writer_for_no_more_than_ten_milliseconds,
    a_step_reckons_with_every_index_that_its_rows_stand_in, no_step_of_a_rule_walks_through_a_table,
    every_statement_of_every_rule_can_be_run,
    what_anybody_can_have_written_pushes_out_no_act_of_an_admin,
    a_step_over_events_searches_none_that_stay,
    starts_of_jobs_that_are_over_are_forgotten_and_no_others, reports_of_replicas_that_are_gone_go,
    nodes_that_were_lent_go_when_they_have_left_and_no_task_names_them)
