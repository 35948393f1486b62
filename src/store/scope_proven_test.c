/* Which tables are read past their views, case by case; and that nothing more is seen so, by random statements. */
#include "store/scope_proven.h"

#include "base/rng.h"
#include "base/test_seed.h"
#include "store/store_fixture.h"

#include <string.h>

static struct store_fixture fixture;
static struct weir_rng rng;
static const char *const projects[] = {"red", "blue"};
static const struct weir_row_scope both = {.projects = projects, .n_projects = 2};

// clang-format off
static const struct weir_noun nouns[] = {
    {"projects", .project = "name"},
    {"runs", .project = "project"},
    {"run_tags", WEIR_OF(run, runs, number)},
    {"latest_metrics", WEIR_OF(run, runs, number)},
    {"jobs", .project = "project"},
    {"tasks", WEIR_OF(job, jobs, id)},
    {"attempts", WEIR_OF(task, tasks, id)},
    {.table = "track_keys"},
};

// clang-format on

static const struct weir_noun *noun_at(size_t i)
{
    return i < WEIR_ARRAY_LEN(nouns) ? &nouns[i] : NULL;
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_exec(
        txn, "INSERT INTO projects (name, created_ms) VALUES ('red', 0), ('blue', 0), ('green', 0)",
        WEIR_NO_BINDS, NULL, err));
    MUST(weir_txn_exec(
        txn,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
        " INSERT INTO runs (number, id, name, project, kind, status, dataset_version, created_ms,"
        " finished_ms) SELECT i, 'r' || i, 'n' || i % 7, CASE i % 3 WHEN 0 THEN 'red' WHEN 1 THEN"
        " 'blue' ELSE 'green' END, 'train', 'FINISHED', 0, i, i FROM n",
        WEIR_NO_BINDS, NULL, err));
    MUST(weir_txn_exec(txn,
                       "INSERT INTO run_tags (run, key, value) SELECT number, number % 4, 'v' ||"
                       " number % 5 FROM runs",
                       WEIR_NO_BINDS, NULL, err));
    return weir_txn_exec(txn,
                         "INSERT INTO latest_metrics (run, key, step, time_ms, value, is_nan)"
                         " SELECT number, number % 2, 0, 0, number % 9, 0 FROM runs",
                         WEIR_NO_BINDS, NULL, err);
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

/* ---- cases --------------------------------------------------------------------------------------- */

/* Those that are read themselves; behind each "!" in the text stands the name of one. */
static const char *const cases[] = {
    "SELECT r.id FROM !runs r WHERE r.project = :project",
    "SELECT r.id FROM !runs r WHERE +r.project = :project AND (r.id = 'a' OR r.id = 'b') ORDER BY "
    "1",
    "SELECT r.id FROM !runs AS \"R\" WHERE R.project = :project LIMIT 1",
    "SELECT m.value FROM !runs r LEFT JOIN !latest_metrics m ON m.run = r.number AND m.key = 1 "
    "WHERE"
    " r.project = :project",
    "SELECT 1 FROM !latest_metrics m CROSS JOIN !runs r ON r.number = m.run WHERE r.project ="
    " :project",
    "SELECT (SELECT count(*) FROM !run_tags t WHERE t.run = r.number) FROM !runs r WHERE r.project "
    "="
    " :project AND EXISTS (SELECT 1 FROM !latest_metrics m WHERE m.run = r.number AND m.key ="
    " (SELECT id FROM track_keys k WHERE k.name = ?))",
    "SELECT a.node FROM !jobs j JOIN !tasks t ON t.job = j.id JOIN !attempts a ON a.task = t.id "
    "WHERE"
    " j.project = :project",
    /* through views: */
    "SELECT r.id FROM runs r WHERE r.id = :project",
    "SELECT r.id FROM runs r WHERE r.project = :project OR 1",
    "SELECT r.id FROM runs r WHERE r.project = :project AND r.id = 1 OR 1",
    "SELECT r.id FROM runs r WHERE NOT r.project = :project",
    "SELECT r.id FROM runs r WHERE r.project = :project COLLATE NOCASE",
    "SELECT r.id FROM runs r WHERE r.project = :project IS NULL",
    "SELECT r.id FROM runs r WHERE (r.project = :project OR 1)",
    "SELECT r.id FROM runs r WHERE r.project = :project2",
    "SELECT r.id FROM runs r WHERE r.project <> :project",
    "SELECT r.id FROM runs r LEFT JOIN jobs j ON r.project = :project",
    "SELECT 1 FROM !runs r WHERE r.project = :project UNION ALL SELECT 1 FROM runs r WHERE 1",
    "SELECT (SELECT count(*) FROM run_tags t WHERE t.run = r.number OR 1) FROM !runs r WHERE"
    " r.project = :project",
    "SELECT (SELECT count(*) FROM run_tags t WHERE t.key = r.number) FROM !runs r WHERE r.project ="
    " :project",
    "SELECT (SELECT count(*) FROM run_tags t) FROM !runs r WHERE r.project = :project",
    "SELECT m.value FROM latest_metrics m LEFT JOIN !runs r ON m.run = r.number WHERE r.project ="
    " :project",
    "SELECT 1 FROM runs r JOIN run_tags t ON t.run = r.number WHERE t.value = :project",
    /* of a form that is not looked into: */
    "SELECT 1 FROM runs r, run_tags t WHERE r.project = :project",
    "SELECT 1 FROM runs r WHERE r.project = :project AND EXISTS (SELECT 1 FROM run_tags t,"
    " (SELECT 1 AS number) r WHERE t.run = r.number)",
    "SELECT 1 FROM runs r WHERE r.project = :project AND EXISTS (SELECT 1 FROM json_each('[1]') r"
    " JOIN run_tags t ON t.run = r.number)",
    "WITH r AS (SELECT 1) SELECT 1 FROM runs r WHERE r.project = :project",
    "SELECT 1 FROM run_tags t FULL JOIN runs r ON t.run = r.number WHERE r.project = :project",
    "SELECT 1 FROM runs r JOIN run_tags r ON r.run = r.number WHERE r.project = :project",
    "SELECT count(*) FILTER (WHERE r.project = :project), max(r.name) FROM runs r",
    "SELECT 1 FROM runs r WHERE r.project = :project AND r.kind IS DISTINCT FROM 'x' OR 1 = 1",
    "SELECT 1 FROM runs r WHERE r.project = :project /*+ OR 1 = 1 */",
};

static weir_status write_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char sql[512], expected[512];
    struct weir_buf out;
    size_t n = 0, k = 0;
    for (const char *c = context; *c != '\0'; c++) {
        k += *c == '!' ? (size_t)snprintf(expected + k, 6, "main.") : 0;
        if (*c != '!') {
            sql[n++] = expected[k++] = *c;
        }
    }
    sql[n] = expected[k] = '\0';
    weir_buf_init(&out, 4096);
    MUST(scope_proven_write(txn->connection->map, sql, &out, err));
    ck_assert_str_eq(out.data, expected);
    weir_buf_fini(&out);
    ck_assert_int_eq(scope_proven_write(txn->connection->map,
                                        "SELECT 1 FROM main.runs r WHERE"
                                        " r.project = :project",
                                        &out, err),
                     WEIR_ERR_INTERNAL);
    return WEIR_OK;
}

START_TEST(a_table_is_read_itself_where_its_rows_are_shown_to_be_of_the_project)
{
    fixture_read(&fixture, write_in, (void *)cases[_i]);
}

END_TEST

/* ---- what is seen -------------------------------------------------------------------------------- */

struct looking {
    char *sql;
    const char *project;
    bool is_proven;
    struct weir_proven proven; /* is_proven: of another transaction, or made up */
    char rows[4096];
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_proven proven =
        looking->proven.project != NULL ? looking->proven : weir_txn_proven(txn, looking->project);
    bool has_row;
    size_t n = 0;
    looking->rows[0] = '\0';
    if (looking->is_proven) {
        WEIR_TRY(weir_stmt_open_proven(txn, proven, looking->sql,
                                       WEIR_BINDS(WEIR_BIND_TEXT("project", "green")), &stmt, err));
    } else {
        WEIR_TRY(weir_stmt_open(txn, looking->sql,
                                WEIR_BINDS(WEIR_BIND_TEXT("project", looking->project)), &stmt,
                                err));
    }
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && n < sizeof looking->rows - 100) {
        n +=
            (size_t)snprintf(looking->rows + n, 99, "%s,", weir_stmt_text(stmt, 0, &fixture.arena));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

static const char *any(const char *const *texts, size_t n)
{
    return texts[weir_rng_below(&rng, (uint32_t)n)];
}

#define ANY(...)                                                                                   \
    any((const char *const[]){__VA_ARGS__},                                                        \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Parts that show it and parts that nearly do, in any order. */
static char *any_statement(void)
{
    char *where = weir_arena_printf(
        &fixture.arena, "%s%s%s AND :project <> ''",
        ANY("+r.project = :project", "r.project = :project", "r.id <> :project", "1",
            "NOT r.project = :project"),
        ANY(" AND ", " AND ", " OR "),
        ANY("r.name = 'n1'", "1", "r.project = 'green'", "r.id = 'r3' OR r.id <> 'r4'"));
    char *link = weir_arena_printf(
        &fixture.arena, "%s%s",
        ANY("t.run = r.number", "r.number = t.run", "t.key = r.number", "t.run > r.number"),
        ANY("", " AND t.value = 'v1'", " AND t.key = 0 OR t.key = 1", " OR t.key = 1",
            " IS NOT NULL", " + 1"));
    switch (weir_rng_below(&rng, 4)) {
    case 0:
        return weir_arena_printf(
            &fixture.arena,
            "SELECT r.id || (SELECT count(*) FROM run_tags t WHERE %s) FROM runs"
            " r WHERE %s ORDER BY 1",
            link, where);
    case 1:
        return weir_arena_printf(
            &fixture.arena,
            "SELECT r.id || ':' || coalesce(t.value, '') || coalesce(t.run, '')"
            " FROM runs r %s JOIN run_tags t ON %s WHERE %s ORDER BY 1",
            ANY("LEFT", "", "CROSS", "LEFT OUTER"), link, where);
    case 2:
        return weir_arena_printf(
            &fixture.arena,
            "SELECT t.value || t.run FROM run_tags t %s JOIN runs r ON %s WHERE"
            " %s UNION ALL SELECT r.id FROM runs r WHERE %s ORDER BY 1",
            ANY("LEFT", "", "CROSS"), link, where, ANY("1", where));
    default:
        return weir_arena_printf(
            &fixture.arena,
            "SELECT r.id FROM runs r WHERE %s AND EXISTS (SELECT 1 FROM run_tags"
            " t %s WHERE %s) ORDER BY 1",
            where,
            ANY("", "JOIN runs r ON r.number = t.run",
                "LEFT JOIN latest_metrics m ON m.run = t.run"),
            link);
    }
}

/* A tag of the run before one of the project: SQLite works out what is seen of the run with the project's name in the
 * place of the row's. */
static char neighbours[] = "SELECT t.value || t.run FROM run_tags t CROSS JOIN runs r ON r.number ="
                           " t.run + 1 WHERE r.project = :project ORDER BY 1";

/* The same as through views, whatever the text shows or does not. */
START_TEST(what_is_proven_is_what_the_scope_sees)
{
    size_t n_rows = 0;
    (void)test_seed(&rng);
    for (int i = 0; i < 300; i++) {
        struct looking views = {.sql = i == 0 ? neighbours : any_statement(),
                                .project = i == 0 ? "red" : ANY("red", "blue")};
        struct looking proven = views;
        proven.is_proven = true;
        ck_assert_msg(weir_store_read_scoped(fixture.store, &both, look_in, &views, &fixture.err) ==
                          WEIR_OK,
                      "%s", fixture.err.message);
        ck_assert_msg(
            weir_store_read_scoped(fixture.store, &both, look_in, &proven, &fixture.err) == WEIR_OK,
            "%s", fixture.err.message);
        ck_assert_msg(strcmp(views.rows, proven.rows) == 0, "%s\n%s\n%s", views.sql, views.rows,
                      proven.rows);
        n_rows += strlen(views.rows);
    }
    ck_assert_uint_gt(n_rows, 10000);
}

END_TEST

START_TEST(a_project_is_proven_by_the_scope_alone)
{
    static char sql[] = "SELECT id FROM runs r WHERE r.project = :project";
    static char of_none[] = "SELECT id FROM runs r";
    static const char *const made_up = "green";
    const struct weir_row_scope red = {.projects = projects, .n_projects = 1};
    const struct weir_row_scope blue = {.projects = projects + 1, .n_projects = 1};
    struct looking cases_of[] = {
        {.sql = sql, .project = "red", .is_proven = true},
        {.sql = sql, .project = "green", .is_proven = true},
        {.sql = sql, .project = "red", .is_proven = true, .proven = {&made_up}},
        {.sql = sql, .project = "red", .is_proven = true, .proven = {&projects[1]}},
        {.sql = of_none, .project = "red", .is_proven = true},
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases_of); i++) {
        ck_assert_int_eq(
            weir_store_read_scoped(fixture.store, &red, look_in, &cases_of[i], &fixture.err),
            i == 0 ? WEIR_OK : WEIR_ERR_INTERNAL);
    }
    ck_assert_int_eq(
        weir_store_read_scoped(fixture.store, &blue, look_in, &cases_of[3], &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_store_read(fixture.store, look_in, &cases_of[0], &fixture.err),
                     WEIR_ERR_INTERNAL);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("scope_proven");
    TCase *tests = tcase_create("scope_proven");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_table_is_read_itself_where_its_rows_are_shown_to_be_of_the_project,
                        0, WEIR_ARRAY_LEN(cases));
    tcase_add_test(tests, what_is_proven_is_what_the_scope_sees);
    tcase_add_test(tests, a_project_is_proven_by_the_scope_alone);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
