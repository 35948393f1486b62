#include "store/event.h"
#include "store/store_fixture.h"
#include "store/store_private.h"

#include <string.h>

static const struct migration first = {1, "0001_first", "CREATE TABLE a (x TEXT);"};
static const struct migration second = {2, "0002_second",
                                        "CREATE TABLE b (x TEXT); INSERT INTO b VALUES ('y');"};

static struct store_fixture fixture;
static struct connection connection;
static const struct migration *store_migrations; /* of the driver */
static size_t store_n_migrations;

static void set_up(void)
{
    fixture_init(&fixture);
    ck_assert_int_eq(connection_open(fixture.path, 0, false, &connection, NULL), WEIR_OK);
    store_migrations = connection.ops->migrations(&store_n_migrations);
}

static void tear_down(void)
{
    connection_close(&connection);
    fixture_fini(&fixture);
}

static int64_t query(const char *sql)
{
    int64_t n;
    struct weir_txn txn = {.connection = &connection};
    ck_assert_int_eq(weir_txn_query_int(&txn, sql, WEIR_NO_BINDS, -1, &n, NULL), WEIR_OK);
    return n;
}

START_TEST(migrations_are_applied_once_and_in_order)
{
    const struct migration both[] = {first, second};
    ck_assert_int_eq(migrate(&connection, both, 1, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, both, 2, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, both, 2, NULL), WEIR_OK);
    ck_assert_int_eq(query("SELECT count(*) FROM schema_migrations"), 2);
    ck_assert_int_eq(query("SELECT count(*) FROM b"), 1);
}

END_TEST

START_TEST(a_changed_migration_is_refused)
{
    struct migration changed = first;
    changed.sql = "CREATE TABLE a (x TEXT, y TEXT);";
    ck_assert_int_eq(migrate(&connection, &first, 1, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, &changed, 1, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "0001_first"));
}

END_TEST

START_TEST(a_database_of_a_newer_version_is_refused)
{
    const struct migration both[] = {first, second};
    ck_assert_int_eq(migrate(&connection, both, 2, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, both, 1, &fixture.err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "newer Weir"));
}

END_TEST

START_TEST(a_migration_that_fails_leaves_no_trace)
{
    const struct migration wrong[] = {
        first, {2, "0002_wrong", "CREATE TABLE b (x TEXT); INSERT INTO nowhere VALUES (1);"}};
    const struct migration wrong_later[] = {first, second, {3, "0003_wrong", "DELETE FROM x;"}};
    ck_assert_int_lt(migrate(&connection, wrong, 2, &fixture.err), 0);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "0002_wrong"));
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "nowhere"));
    ck_assert_int_eq(query("SELECT count(*) FROM schema_migrations"), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM sqlite_master WHERE name IN ('a', 'b')"), 0);
    /* Nor do those before it: the program that made the database can go on with it. */
    ck_assert_int_eq(migrate(&connection, &first, 1, NULL), WEIR_OK);
    ck_assert_int_lt(migrate(&connection, wrong_later, 3, &fixture.err), 0);
    ck_assert_int_eq(migrate(&connection, &first, 1, NULL), WEIR_OK);
    const struct migration both[] = {first, second};
    ck_assert_int_eq(migrate(&connection, both, 2, NULL), WEIR_OK);
}

END_TEST

/* Numbers without a file: 25 was given away and never used, the others are given away, and their files may
 * not be there yet. One of before is applied all the same (migrate looks for each). */
static const int64_t absent[] = {25, 40, 43, 44, 45, 47};

START_TEST(the_migrations_of_this_build_apply_and_are_numbered_without_gaps)
{
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_uint_ge(store_n_migrations, 4);
    int64_t expected = 1;
    for (size_t i = 0; i < store_n_migrations; i++, expected++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(absent); k++) {
            expected += expected == absent[k] && store_migrations[i].version > absent[k];
        }
        ck_assert_int_eq(store_migrations[i].version, expected);
    }
}

END_TEST

/* What the events of before are given is what new ones get. */
START_TEST(events_of_before_they_had_a_severity_get_it_by_their_kind)
{
    static const char *const kinds[] = {
        "ion_applied",      "ion_deleted",       "training_triggered", "training_queued",
        "training_started", "training_finished", "training_failed",    "review_wanted",
        "model_promoted",   "model_rejected",    "model_rolled_back",  "prediction_started",
        "prediction_ended", "gallery_changed",   "list_changed",       "job_submitted",
        "job_running",      "job_restarting",    "replica_restarting", "job_succeeded",
        "job_failed",       "job_cancelled",     "dataset_version",    "model_registered"};
    size_t n_before = 0;
    while (strstr(store_migrations[n_before].name, "event_severity") == NULL) {
        n_before++;
    }
    ck_assert_int_eq(migrate(&connection, store_migrations, n_before, NULL), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO events (seq, time_ms, topic, kind, message)"
                       " VALUES (%zu, 0, 't', '%s', 'm')",
                       i, kinds[i]);
        ck_assert_int_eq(connection_exec(&connection, sql, NULL), WEIR_OK);
    }
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM events WHERE kind = '%s' AND severity = '%s'",
                       kinds[i], weir_event_severity(kinds[i]));
        ck_assert_msg(query(sql) == 1, "%s", kinds[i]);
    }
}

END_TEST

static void migrate_before(const char *name)
{
    size_t n_before = 0;
    while (strstr(store_migrations[n_before].name, name) == NULL) {
        n_before++;
    }
    ck_assert_int_eq(migrate(&connection, store_migrations, n_before, NULL), WEIR_OK);
}

/* Events and alerts of before belong to whom what they are about belongs. */
START_TEST(events_of_before_get_the_project_of_their_subject)
{
    struct weir_error err;
    migrate_before("project_of_events");
    ck_assert_msg(
        connection_exec(
            &connection,
            "INSERT INTO projects (name, created_ms) VALUES ('p', 1), ('q', 1);"
            "INSERT INTO models (name, project, created_ms) VALUES ('m', 'p', 1), ('mm', 'q', 1);"
            "INSERT INTO experiments (id, project, name, created_ms, updated_ms) VALUES (70, 'q', "
            "'e', 1, 1);"
            "INSERT INTO runs (number, id, name, project, experiment, kind, status, "
            "dataset_version, created_ms, start_ms, finished_ms) VALUES (7, 'r', 'r', 'q', 70, "
            "'train', 'FINISHED', 0, 1, 1, 1);"
            "INSERT INTO events (seq, time_ms, topic, kind, message, subject) VALUES"
            " (1, 0, 't', 'k', 'p', 'model/m'), (2, 0, 't', 'k', 'p', 'model/m/3'),"
            " (3, 0, 't', 'k', 'q', 'model/mm'), (4, 0, 't', 'k', 'q', 'run/r'),"
            " (5, 0, 't', 'k', 'q', 'project/q'), (6, 0, 't', 'k', '', 'model/gone'),"
            " (7, 0, 't', 'k', '', 'node/m'), (8, 0, 't', 'k', '', NULL), (9, 0, 't', 'k', '', "
            "'m');"
            "INSERT INTO alerts (id, key, severity, kind, message, subject, state, count,"
            " raised_ms, last_ms, acknowledged_ms, resolved_ms) VALUES"
            " ('a', 'a', 'info', 'k', 'p', 'model/m/1', 'open', 1, 1, 1, 0, 0),"
            " ('b', 'b', 'info', 'k', '', 'node/n', 'open', 1, 1, 1, 0, 0)",
            &err) == WEIR_OK,
        "%s", err.message);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(query("SELECT count(*) FROM events WHERE coalesce(project, '') = message"), 9);
    ck_assert_int_eq(query("SELECT count(*) FROM alerts WHERE coalesce(project, '') = message"), 2);
}

END_TEST

/* A session of before may be more than its token was, and the shared token of tasks is gone. */
START_TEST(sessions_and_task_tokens_of_before_end_with_the_upgrade)
{
    static const char *const rows[] = {
        "INSERT INTO users VALUES ('admin', 'person', 'admin', 0, 1), "
        "('agent', 'service', 'agent', 0, 1), ('worker', 'service', 'worker', 0, 1)",
        "INSERT INTO tokens VALUES ('ta', 'admin', 'n', 'admin', 'ha', 1, 0), "
        "('tn', 'agent', 'n', 'agent', 'hn', 1, 0), ('tw', 'worker', 'n', 'worker', 'hw', 1, 0), "
        "('tx', 'admin', 'n', 'worker', 'hx', 1, 0)",
        "INSERT INTO sessions VALUES ('s', 'admin', 'hs', 'c', 1, 9)",
        "INSERT INTO login_links VALUES ('l', 'admin', 'hl', 1, 9, 0)",
        "INSERT INTO projects VALUES ('p', '', 1)",
        "INSERT INTO nodes VALUES ('a', 1, 0, 0, NULL, NULL, 0, 1, 1, 1)",
        "INSERT INTO jobs VALUES ('j', 'j', 'p', 'train', '{}', 'RUNNING', NULL, NULL, 3, 0, 0, 0, "
        "NULL, NULL, 0, NULL, NULL, 1, 1, 0)",
        "INSERT INTO tasks VALUES ('t', 'j', 0, 'worker', 1, NULL, 'a', 3, 'RUNNING', 'running', "
        "1, "
        "-1, 0, NULL, 0, 0, 1, 0)",
        "INSERT INTO jobs VALUES ('d', 'd', 'p', 'predict', '{}', 'RUNNING', NULL, NULL, 2, 0, 0, "
        "0, NULL, NULL, 0, NULL, NULL, 1, 1, 0)",
        "INSERT INTO tasks VALUES ('r', 'd', 0, 'replica', 1, NULL, 'a', 2, 'RUNNING', 'running', "
        "1, "
        "-1, 0, NULL, 0, 0, 1, 0)",
    };
    migrate_before("sessions");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct weir_error err;
        ck_assert_msg(connection_exec(&connection, rows[i], &err) == WEIR_OK, "%s", err.message);
    }
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(query("SELECT count(*) FROM sessions"), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM login_links"), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM tokens WHERE id IN ('ta', 'tn')"), 2);
    ck_assert_int_eq(query("SELECT count(*) FROM tokens"), 2);
    ck_assert_int_eq(query("SELECT count(*) FROM users WHERE name = 'worker'"), 0);
    /* What runs is reported by the agent of where it runs. */
    ck_assert_int_eq(query("SELECT number FROM attempts WHERE task = 't' AND node = 'a'"), 3);
    /* What replicas of then decide is still taken (job/former.h). */
    ck_assert_int_eq(query("SELECT number FROM former_attempts WHERE task = 'r'"), 2);
    ck_assert_int_eq(query("SELECT count(*) FROM former_attempts"), 1);
}

END_TEST

/* What a job's later life needs of its kind is read off the kind once, and any kind may follow. */
START_TEST(jobs_of_before_get_the_facts_of_their_kind)
{
    struct weir_error err;
    migrate_before("kinds");
    ck_assert_msg(
        connection_exec(&connection,
                        "INSERT INTO projects VALUES ('p', '', 1);"
                        "INSERT INTO jobs (id, name, project, kind, spec, state, attempt, "
                        "max_restarts, n_restarts, due_ms, training, created_ms, started_ms, "
                        "finished_ms) VALUES "
                        "('t', 'j', 'p', 'train', '{}', 'RUNNING', 3, 0, 0, 0, 0, 1, 1, 0), "
                        "('r', 'j', 'p', 'predict', '{}', 'RUNNING', 3, 0, 0, 0, 0, 1, 1, 0), "
                        "('c', 'j', 'p', 'command', '{}', 'RUNNING', 3, 0, 0, 0, 0, 1, 1, 0)",
                        &err) == WEIR_OK,
        "%s", err.message);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE (id, kind, is_service, "
                           "has_known_exits) IN (VALUES ('t', 'train', 0, 1), "
                           "('r', 'predict', 1, 1), ('c', 'command', 0, 0))"),
                     3);
    ck_assert_int_eq(
        connection_exec(&connection, "UPDATE jobs SET kind = 'new' WHERE id = 't'", &err), WEIR_OK);
}

END_TEST

/* Their table is made anew, for a verdict more: nothing of a row is lost, and no index. */
/* A replica of before is started again with its project's datasets, and with nobody else's. */
START_TEST(tasks_of_before_get_the_folders_of_their_projects_datasets)
{
    struct weir_error err;
    migrate_before("senders");
    ck_assert_msg(
        connection_exec(
            &connection,
            "PRAGMA foreign_keys = OFF;"
            "INSERT INTO projects VALUES ('p', '', 1), ('q', '', 1), ('default', '', 1);"
            "INSERT INTO datasets (name, project, kind, path, is_uploaded, created_ms) VALUES"
            " ('own', 'p', 'folder', '/s/datasets/own', 1, 1),"
            " ('other', 'q', 'folder', '/s/datasets/other', 1, 1),"
            " ('far', 'p', 'folder', '/srv/far', 0, 1);"
            "INSERT INTO jobs (id, name, project, kind, spec, state, attempt, max_restarts, "
            "n_restarts, due_ms, training, created_ms, started_ms, finished_ms) VALUES"
            " ('j', 'j', 'p', 'train', '{}', 'RUNNING', 1, 0, 0, 0, 0, 1, 1, 0),"
            " ('d', 'd', 'default', 'predict', '{}', 'RUNNING', 1, 0, 0, 0, 0, 1, 1, 0);"
            "INSERT INTO tasks (id, job, rank, role, cpu_slots, definition, attempt, state, "
            "desired, "
            "pid, exit_code, signal, n_restarts, due_ms, started_ms, finished_ms) VALUES"
            " ('t', 'j', 0, 'worker', 1, '{\"paths\":[{\"path\":\"/s/datasets/own\"},"
            "{\"path\":\"/s/datasets/other\"},{\"path\":\"/srv/far\"}]}', 1, 'RUNNING', "
            "'running', 1, -1, 0, 0, 0, 0, 0),"
            " ('u', 'd', 0, 'replica', 1, '{\"paths\":[{\"path\":\"/s/demo/frames\"}]}', 1, "
            "'RUNNING', 'running', 1, -1, 0, 0, 0, 0, 0);"
            "INSERT INTO custom_roles (name, rights, created_by, created_ms, changed_by, "
            "changed_ms) VALUES"
            " ('a', 'read models,name models', 'x', 1, 'x', 1), ('b', 'name models,label models', "
            "'x', 1, 'x', 1),"
            " ('c', 'read models', 'x', 1, 'x', 1);",
            &err) == WEIR_OK,
        "%s", err.message);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(query("SELECT count(*) FROM tasks WHERE (id, json_extract(definition, "
                           "'$.folders')) IN (VALUES ('t', '[\"datasets/own\"]'), ('u', "
                           "'[\"demo\"]'))"),
                     2);
    ck_assert_int_eq(query("SELECT count(*) FROM custom_roles WHERE (name, rights) IN (VALUES "
                           "('a', 'read models,name models,label models'), ('b', 'name "
                           "models,label models'), ('c', 'read models'))"),
                     3);
}

END_TEST

/* Whole CPUs of before are as many thousands of thousandths, of what runs and of what is served. */
START_TEST(cpus_of_before_are_counted_in_thousandths)
{
    struct weir_error err;
    migrate_before("cpu_millis");
    ck_assert_msg(
        connection_exec(
            &connection,
            "PRAGMA foreign_keys = OFF;"
            "INSERT INTO tasks (id, job, rank, role, cpu_slots, attempt, state, desired, pid, "
            "exit_code, signal, n_restarts, due_ms, started_ms, finished_ms) VALUES"
            " ('a', 'j', 0, 'worker', 3, 1, 'RUNNING', 'running', 1, -1, 0, 0, 0, 0, 0),"
            " ('b', 'j', 1, 'parameter_server', 0, 1, 'EXITED', 'stopped', 1, 0, 0, 0, 0, 0, 0);"
            "INSERT INTO deployments (name, project, model, mirror, replicas_min, replicas_max, "
            "batch_max, delay_max_us, queue_max, cpus, memory_bytes, gpus, idle_after_ms, hold_ms, "
            "secret, state, state_ms, revision, n_wanted, n_started, n_failures, next_start_ms, "
            "more_ms, less_ms, created_ms, updated_ms) VALUES"
            " ('d', 'p', 'm', 0, 1, 1, 8, 1, 1, 2, 0, 0, 1, 1, 's', 'SERVING', 1, 1, 1, 1, 0, 0, "
            "0, 0, 1, 1)",
            &err) == WEIR_OK,
        "%s", err.message);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(
        query("SELECT count(*) FROM tasks WHERE (id, cpu_millis, cpu_slots) IN (VALUES "
              "('a', 3000, 3), ('b', 0, 0))"),
        2);
    ck_assert_int_eq(query("SELECT cpu_millis FROM deployments WHERE name = 'd'"), 2000);
}

END_TEST

START_TEST(decisions_of_before_labels_stay_as_they_are)
{
    static const char *const columns =
        "id, seq, ion, pipeline, replica, camera, frame, time_ms, verdict, person, score, "
        "threshold, "
        "model_version, gallery_version, list_revision, latency_us, durable_us, brightness, error, "
        "image, pack, pack_offset, pack_bytes";
    char sql[2048];
    migrate_before("labels");
    int64_t n_indexes =
        query("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'decisions'");
    ck_assert_int_eq(
        connection_exec(&connection,
                        "INSERT INTO decisions VALUES ('a', 1, 'x', 'p', 'r', 'c', 7, 8, 'grant', "
                        "'ann', 0.5, 0.25, 3, 4, 5, 6, 9, 0.125, NULL, 'f00d', 10, 11, 12)",
                        NULL),
        WEIR_OK);
    (void)snprintf(sql, sizeof sql, "CREATE TABLE kept AS SELECT %s FROM decisions", columns);
    ck_assert_int_eq(connection_exec(&connection, sql, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM (SELECT %s FROM decisions INTERSECT SELECT * FROM kept)",
                   columns);
    ck_assert_int_eq(query(sql), 1);
    ck_assert_int_eq(query("SELECT count(*) FROM decisions WHERE label IS NULL"), 1);
    ck_assert_int_eq(
        query("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'decisions'"),
        n_indexes + 12); /* of labels, pictures, versions, packs, verdicts, cameras, passages */
    ck_assert_int_eq(connection_exec(&connection, "UPDATE decisions SET verdict = 'label'", NULL),
                     WEIR_OK);
    ck_assert_int_ne(connection_exec(&connection, "UPDATE decisions SET verdict = 'maybe'", NULL),
                     WEIR_OK);
}

END_TEST

/* Decisions of before: `gap` numbers are missing at the front, as retention leaves them. */
static void count_decisions(int gap)
{
    char sql[1024];
    migrate_before("lineage");
    for (int i = 0; i < 5; i++) {
        (void)snprintf(
            sql, sizeof sql,
            "INSERT INTO decisions (id, seq, ion, pipeline, camera, frame, time_ms,"
            " verdict, model_version, gallery_version, list_revision, latency_us,"
            " durable_us) VALUES ('d%d', %d, 'x', 'p', 'c', %d, %d, 'grant', %d, 0, 0, 0,"
            " 0)",
            i, gap + i + 1, i, 100 + i, i < 2 ? 1 : 2);
        ck_assert_int_eq(connection_exec(&connection, sql, NULL), WEIR_OK);
    }
    (void)snprintf(sql, sizeof sql, "INSERT INTO counters VALUES ('decisions', %d)", gap + 5);
    ck_assert_int_eq(connection_exec(&connection, sql, NULL), WEIR_OK);
    ck_assert_int_eq(migrate(&connection, store_migrations, store_n_migrations, NULL), WEIR_OK);
    ck_assert_int_eq(
        query("SELECT count(*) FROM decision_totals WHERE (model_version, n_made, n_kept,"
              " first_ms, last_ms) IN (VALUES (1, 2, 2, 100, 101), (2, 3, 3, 102, 104))"),
        2);
}

START_TEST(decisions_of_before_are_counted)
{
    count_decisions(0);
    ck_assert_int_eq(query("SELECT value FROM counters WHERE name = 'decisions_counted_ms'"), 0);
}

END_TEST

START_TEST(that_decisions_of_before_had_gone_is_known)
{
    count_decisions(7);
    ck_assert_int_gt(query("SELECT value FROM counters WHERE name = 'decisions_counted_ms'"), 0);
}

END_TEST

WEIR_TEST_MAIN_WITH("migrate", set_up, tear_down, migrations_are_applied_once_and_in_order,
                    a_changed_migration_is_refused, a_database_of_a_newer_version_is_refused,
                    a_migration_that_fails_leaves_no_trace,
                    the_migrations_of_this_build_apply_and_are_numbered_without_gaps,
                    events_of_before_they_had_a_severity_get_it_by_their_kind,
                    events_of_before_get_the_project_of_their_subject,
                    sessions_and_task_tokens_of_before_end_with_the_upgrade,
                    jobs_of_before_get_the_facts_of_their_kind,
                    tasks_of_before_get_the_folders_of_their_projects_datasets,
                    cpus_of_before_are_counted_in_thousandths,
                    decisions_of_before_labels_stay_as_they_are, decisions_of_before_are_counted,
                    that_decisions_of_before_had_gone_is_known)
