/* What a transaction in a scope sees, by whatever SQL, against what is there. */
#include "store/row_scope.h"

#include "store/event.h"
#include "store/identity.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/store_fixture.h"
#include "store/store_private.h"
#include "store/table.h"

#include "base/test_main.h"

#include <check.h>
#include <string.h>

static struct store_fixture fixture;
static const char *const mine[] = {"red"};
static const struct weir_row_scope red = {.projects = mine, .n_projects = 1};
static const struct weir_row_scope nothing = {.is_all = false};
static const struct weir_row_scope everything = {.is_all = true};

/* The store's own tables and a few that hang together; nothing is said of the others, as of experiments. */
#define WEIR_NOUN(name) extern const struct weir_noun weir_noun_##name;
#define WEIR_TABLE(...)
#include "store/nouns.def"
#undef WEIR_NOUN
#undef WEIR_TABLE
#define WEIR_NOUN(name) &weir_noun_##name,
#define WEIR_TABLE(...) &(const struct weir_noun){__VA_ARGS__},

// clang-format off
static const struct weir_noun *const nouns[] = {
#include "store/nouns.def"
    WEIR_TABLE("datasets", .project = "project", WEIR_SUBJECT(dataset, name))
    WEIR_TABLE("models", .project = "project", WEIR_SUBJECT(model, name))
    WEIR_TABLE("model_versions", WEIR_OF(model, models, name))
    WEIR_TABLE("model_tags", WEIR_OF(model, models, name))
    WEIR_TABLE("model_version_tags", WEIR_OF(version, model_versions, id))
    WEIR_TABLE("run_tags", WEIR_OF(run, runs, number))
};

// clang-format on

static const struct weir_noun *noun_at(size_t i)
{
    return i < WEIR_ARRAY_LEN(nouns) ? nouns[i] : NULL;
}

#define CHECK(call) ck_assert_msg((call) == WEIR_OK, "%s", err->message)

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const sql[] = {
        "INSERT INTO projects (name, created_ms) VALUES ('red', 0), ('blue', 0)",
        "INSERT INTO datasets (name, project, kind, path, is_uploaded, created_by, created_ms)"
        " VALUES ('d-red', 'red', 'folder', '/r', 0, 'x', 0), ('d-blue', 'blue', 'folder', '/b', 0,"
        " 'x', 0)",
        "INSERT INTO models (name, project, created_ms) VALUES ('m-red', 'red', 0), ('m-blue',"
        " 'blue', 0)",
        "INSERT INTO model_versions (id, model, version, blob, bytes, dataset_version, created_ms)"
        " VALUES ('v-red', 'm-red', 1, '', 0, 0, 0), ('v-blue', 'm-blue', 1, '', 0, 0, 0)",
        "INSERT INTO model_version_tags (version, key, value) VALUES ('v-red', 'k', 'red'),"
        " ('v-blue', 'k', 'blue'), ('v-blue', 'l', 'blue')",
    };
    static const char *const subjects[] = {
        "model/m-red/3", "model/m-blue/1", "dataset/d-red", "node/n", "dataset/d-blue", NULL,
    };
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sql); i++) {
        CHECK(weir_txn_exec(txn, sql[i], WEIR_NO_BINDS, NULL, err));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(subjects); i++) {
        const struct weir_event event = {
            .topic = "t", .kind = "k", .subject = (char *)subjects[i], .message = "m"};
        CHECK(weir_event_append(txn, &event, NULL, err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = noun_at});
    fixture_write(&fixture, populate, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- reads ------------------------------------------------------------------------------------- */

static int64_t count(struct weir_txn *txn, const char *sql, struct weir_error *err)
{
    int64_t n;
    CHECK(weir_txn_query_int(txn, sql, WEIR_NO_BINDS, 0, &n, err));
    return n;
}

struct seen {
    int64_t projects, datasets, models, version_tags, events, joined;
};

static weir_status look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct seen *seen = context;
    seen->projects = count(txn, "SELECT count(*) FROM projects WHERE name <> 'default'", err);
    seen->datasets = count(txn, "SELECT count(*) FROM datasets", err);
    seen->models = count(txn, "SELECT count(*) FROM models", err);
    seen->version_tags = count(txn, "SELECT count(*) FROM model_version_tags", err);
    seen->events = count(txn, "SELECT count(*) FROM events", err);
    seen->joined =
        count(txn, "SELECT count(*) FROM datasets d JOIN models m ON m.project = d.project", err);
    return WEIR_OK;
}

static struct seen look_as(const struct weir_row_scope *scope)
{
    struct seen seen;
    struct weir_error err;
    ck_assert_int_eq(weir_store_read_scoped(fixture.store, scope, look, &seen, &err), WEIR_OK);
    return seen;
}

START_TEST(a_read_sees_its_projects_whatever_it_asks)
{
    struct seen all = look_as(&everything), one = look_as(&red), none = look_as(&nothing);
    ck_assert_int_eq(all.projects, 2);
    ck_assert_int_eq(all.joined, 2);
    ck_assert_int_eq(all.events, 6);
    ck_assert_int_eq(all.version_tags, 3);
    ck_assert_int_eq(one.projects, 1);
    ck_assert_int_eq(one.datasets, 1);
    ck_assert_int_eq(one.models, 1);
    ck_assert_int_eq(one.version_tags, 1);
    ck_assert_int_eq(one.joined, 1);
    ck_assert_int_eq(one.events, 2);
    ck_assert_int_eq(none.projects + none.datasets + none.models + none.version_tags + none.events,
                     0);
    ck_assert_int_eq(look_as(&everything).events, 6); /* the scope has ended with its read */
}

END_TEST

/* ---- writes ------------------------------------------------------------------------------------ */

static weir_status write_as_red(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static char name[] = "blue", note[] = "mine now", own[] = "red";
    struct weir_arena arena;
    struct weir_project project;
    const struct weir_project blue = {.name = name, .description = note};
    void *items;
    size_t n;
    int64_t n_counted;
    (void)context;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_txn_get(txn, &weir_project_resource, "blue", &arena, &project, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(
        weir_txn_update(txn, &weir_project_resource, &blue, WEIR_FIELDS("description"), err),
        WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_txn_delete(txn, &weir_project_resource, "blue", err), WEIR_ERR_NOT_FOUND);
    CHECK(weir_txn_get(txn, &weir_project_resource, own, &arena, &project, err));
    CHECK(weir_txn_list(txn, &weir_project_resource, NULL, &arena, &items, &n, NULL, err));
    ck_assert_uint_eq(n, 1);
    CHECK(weir_txn_count(txn, &weir_project_resource, NULL, &n_counted, err));
    ck_assert_int_eq(n_counted, 1);
    weir_arena_fini(&arena);
    return WEIR_OK;
}

START_TEST(a_write_reaches_no_row_of_others)
{
    struct weir_error err;
    ck_assert_int_eq(weir_store_write_scoped(fixture.store, &red, write_as_red, NULL, &err),
                     WEIR_OK);
}

END_TEST

/* ---- events and alerts --------------------------------------------------------------------------- */

static weir_status tell_of_blue(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_event event = {
        .topic = "t", .kind = "k", .subject = "model/m-blue", .message = "m"};
    const struct weir_alert alert = {
        .id = "a", .key = "key", .kind = "drift", .subject = "model/m-blue", .message = "m"};
    (void)context;
    CHECK(weir_event_append(txn, &event, NULL, err));
    CHECK(weir_alert_raise(txn, &alert, 1, NULL, err));
    ck_assert_int_eq(count(txn, "SELECT count(*) FROM alerts", err), 0);
    return WEIR_OK;
}

static weir_status lose_models(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    CHECK(weir_txn_exec(txn, "DELETE FROM model_version_tags", WEIR_NO_BINDS, NULL, err));
    CHECK(weir_txn_exec(txn, "DELETE FROM model_versions", WEIR_NO_BINDS, NULL, err));
    return weir_txn_exec(txn, "DELETE FROM models", WEIR_NO_BINDS, NULL, err);
}

static weir_status count_alerts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    *(int64_t *)context = count(txn, "SELECT count(*) FROM alerts WHERE project = 'blue'", err);
    return WEIR_OK;
}

/* What an act of red leads to is told to blue, and stays blue's when what it is about has gone. */
START_TEST(what_happened_belongs_to_whom_it_happened_to)
{
    static const char *const theirs[] = {"blue"};
    const struct weir_row_scope blue = {.projects = theirs, .n_projects = 1};
    struct weir_error err;
    int64_t n;
    ck_assert_int_eq(weir_store_write_scoped(fixture.store, &red, tell_of_blue, NULL, &err),
                     WEIR_OK);
    ck_assert_int_eq(look_as(&blue).events, 3);
    fixture_write(&fixture, lose_models, NULL);
    ck_assert_int_eq(look_as(&blue).events, 3);
    ck_assert_int_eq(look_as(&red).events, 2);
    ck_assert_int_eq(weir_store_read_scoped(fixture.store, &blue, count_alerts, &n, &err), WEIR_OK);
    ck_assert_int_eq(n, 1);
}

END_TEST

/* ---- another scope for a while ------------------------------------------------------------------- */

static weir_status count_models(struct weir_txn *txn, void *context, struct weir_error *err)
{
    *(int64_t *)context = count(txn, "SELECT count(*) FROM models", err);
    return WEIR_OK;
}

static weir_status see_as_others(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const theirs[] = {"blue", "red"};
    const struct weir_row_scope both = {.projects = theirs, .n_projects = 2};
    int64_t n;
    ck_assert_ptr_eq(weir_txn_scope(txn), context);
    CHECK(weir_txn_as(txn, NULL, count_models, &n, err));
    ck_assert_int_eq(n, 2);
    CHECK(weir_txn_as(txn, &both, count_models, &n, err));
    ck_assert_int_eq(n, 2);
    CHECK(weir_txn_as(txn, &nothing, count_models, &n, err));
    ck_assert_int_eq(n, 0);
    ck_assert_ptr_eq(weir_txn_scope(txn), context);
    CHECK(count_models(txn, &n, err));
    ck_assert_int_eq(n, 1);
    CHECK(weir_txn_query_int_of_all(txn, "SELECT count(*) FROM models", WEIR_NO_BINDS, 0, &n, err));
    ck_assert_int_eq(n, 2);
    return WEIR_OK;
}

START_TEST(a_transaction_sees_by_another_scope_for_a_while)
{
    struct weir_error err;
    void *own = (void *)&red;
    ck_assert_int_eq(weir_store_write_scoped(fixture.store, &red, see_as_others, own, &err),
                     WEIR_OK);
    ck_assert_int_eq(weir_store_read_scoped(fixture.store, &red, see_as_others, own, &err),
                     WEIR_OK);
}

END_TEST

static weir_status run_sql(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

struct counting {
    const char *sql;
    int64_t n;
};

static weir_status count_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct counting *counting = context;
    counting->n = count(txn, counting->sql, err);
    return WEIR_OK;
}

START_TEST(a_row_of_others_is_denied_and_undoes_all)
{
    static const char *const denied[] = {
        "INSERT INTO models (name, project, created_ms) VALUES ('n', 'blue', 0)",
        "UPDATE models SET project = 'blue'",
        "INSERT INTO model_tags (model, key, value) VALUES ('m-blue', 'k', 'v')",
        "INSERT OR REPLACE INTO model_version_tags (version, key, value) VALUES ('v-blue', 'k', "
        "'x')",
        "INSERT INTO models (name, project, created_ms) VALUES ('m-blue', 'red', 0)"
        " ON CONFLICT (name) DO UPDATE SET created_ms = 1",
    };
    struct weir_error err;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(denied); i++) {
        ck_assert_msg(weir_store_write_scoped(fixture.store, &red, run_sql, (void *)denied[i],
                                              &err) == WEIR_ERR_DENIED,
                      "%s", denied[i]);
    }
    ck_assert_int_eq(
        weir_store_write(fixture.store, run_sql, (void *)"SELECT * FROM main.models", &err),
        WEIR_ERR_INTERNAL);
    ck_assert_int_eq(look_as(&everything).models, 2);
    ck_assert_int_eq(look_as(&red).models, 1);
}

END_TEST

/* Nobody has said whose its rows are, or what they are of. */
START_TEST(a_table_without_a_noun_is_hidden_from_every_scope)
{
    static const char *const all_of[][3] = {
        {"SELECT count(*) FROM experiments WHERE id = 7",
         "INSERT INTO experiments (id, project, name, created_ms, updated_ms, deleted_ms) VALUES"
         " (8, 'red', 'f', 0, 0, 0)",
         "DELETE FROM experiments"},
        {"SELECT count(*) FROM run_tags",
         "INSERT INTO run_tags (run, key, value) VALUES (7, 8, 'x')", "DELETE FROM run_tags"}};
    struct weir_error err;
    fixture_alter(
        &fixture,
        "INSERT INTO runs (number, id, name, project, kind, status, finished_ms, dataset_version,"
        " created_ms) VALUES (7, 'r', 'n', 'red', 'train', 'FINISHED', 0, 0, 0);"
        "INSERT INTO run_tags VALUES (7, 7, 'x');"
        "INSERT INTO experiments (id, project, name, created_ms, updated_ms, deleted_ms)"
        " VALUES (7, 'red', 'e', 0, 0, 0)");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all_of); i++) {
        struct counting counting = {.sql = all_of[i][0]};
        ck_assert_int_eq(weir_store_read_scoped(fixture.store, &red, count_in, &counting, &err),
                         WEIR_OK);
        ck_assert_int_eq(counting.n, 0);
        ck_assert_int_eq(
            weir_store_write_scoped(fixture.store, &red, run_sql, (void *)all_of[i][1], &err),
            WEIR_ERR_DENIED);
        ck_assert_int_eq(
            weir_store_write_scoped(fixture.store, &red, run_sql, (void *)all_of[i][2], &err),
            WEIR_OK);
        ck_assert_int_eq(weir_store_read(fixture.store, count_in, &counting, &err), WEIR_OK);
        ck_assert_int_eq(counting.n, 1);
    }
}

END_TEST

START_TEST(a_scope_knows_its_projects)
{
    ck_assert(weir_row_scope_sees(NULL, "blue"));
    ck_assert(weir_row_scope_sees(&everything, NULL));
    ck_assert(weir_row_scope_sees(&red, "red"));
    ck_assert(!weir_row_scope_sees(&red, "blue"));
    ck_assert(!weir_row_scope_sees(&red, "re"));
    ck_assert(!weir_row_scope_sees(&red, NULL));
    ck_assert(!weir_row_scope_sees(&nothing, "red"));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("row_scope");
    TCase *tests = tcase_create("row_scope");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_read_sees_its_projects_whatever_it_asks);
    tcase_add_test(tests, a_write_reaches_no_row_of_others);
    tcase_add_test(tests, what_happened_belongs_to_whom_it_happened_to);
    tcase_add_test(tests, a_transaction_sees_by_another_scope_for_a_while);
    tcase_add_test(tests, a_row_of_others_is_denied_and_undoes_all);
    tcase_add_test(tests, a_table_without_a_noun_is_hidden_from_every_scope);
    tcase_add_test(tests, a_scope_knows_its_projects);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
