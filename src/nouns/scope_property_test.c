/* Random statements on all tables of the real schema, in a random scope, against a database that holds the rows of
 * that scope alone: what is read is the same, what is changed is the same there, and no other row is touched. */
#include "nouns/nouns.h"

#include "base/hash.h"
#include "base/rng.h"
#include "base/test_seed.h"
#include "store/row_scope.h"
#include "store/sqlite/sqlite.h"
#include "store/store_fixture.h"
#include "store/store_private.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define N_PROJECTS   3
#define N_ROWS       6
#define TABLES_MAX   128
#define COLUMNS_MAX  48
#define N_STATEMENTS WEIR_TEST_TIMES(500, 150)
#define N_DENIED     3

struct column {
    char name[64];
    bool is_text, is_key;
};

struct table {
    char name[64];
    struct column columns[COLUMNS_MAX];
    size_t n_columns;
    int i_owner;     /* the column that says whose a row is; -1: of the platform */
    char owner[256]; /* SQL for the project of a row of table t */
};

static struct store_fixture fixture;
static struct weir_rng rng;
static sqlite3 *whole, *part; /* the database itself, and what the scope has of it */
static struct table tables[TABLES_MAX];
static size_t n_tables, n_made;
static const char *const all_projects[N_PROJECTS] = {"p0", "p1", "p2"};
static const char *in_scope[N_PROJECTS];
static struct weir_row_scope scope;

static size_t pick(size_t n)
{
    return (size_t)weir_rng_below(&rng, n);
}

static void must(sqlite3 *db, int code, const char *sql)
{
    ck_assert_msg(code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE, "%s: %s",
                  sqlite3_errmsg(db), sql);
}

static void run(sqlite3 *db, const char *sql)
{
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

/* ---- the schema -------------------------------------------------------------------------------- */

/* What rows belong by, in words of its own: the first of these columns that a table has. */
static const struct {
    const char *column, *tables, *project; /* tables: only of those that begin so */
    bool is_number;
} rules[] = {
    {"name", "projects", "t.name", false},
    {"project", "", "t.project", false},
    {"model", "logged_model_", "(SELECT project FROM main.logged_models WHERE id = t.model)",
     false},
    {"model", "run_logged_models", "(SELECT project FROM main.logged_models WHERE id = t.model)",
     false},
    {"version", "model_version_tags",
     "(SELECT m.project FROM main.models m JOIN main.model_versions v ON v.model = m.name WHERE "
     "v.id = t.version)",
     false},
    {"version", "model_baselines",
     "(SELECT m.project FROM main.models m JOIN main.model_versions v ON v.model = m.name WHERE "
     "v.id = t.version)",
     false},
    {"model", "model_", "(SELECT project FROM main.models WHERE name = t.model)", false},
    {"ion", "", "(SELECT project FROM main.ions WHERE name = t.ion)", false},
    {"deployment", "", "(SELECT project FROM main.deployments WHERE name = t.deployment)", false},
    {"sweep", "", "(SELECT project FROM main.sweeps WHERE id = t.sweep)", false},
    {"service", "service_logins", "(SELECT project FROM main.services WHERE id = t.service)",
     false},
    {"job", "", "(SELECT project FROM main.jobs WHERE id = t.job)", false},
    {"task", "",
     "(SELECT j.project FROM main.jobs j JOIN main.tasks k ON k.job = j.id WHERE k.id = t.task)",
     false},
    {"dataset", "dataset_", "(SELECT project FROM main.datasets WHERE name = t.dataset)", false},
    {"run", "", "(SELECT project FROM main.runs WHERE id = t.run)", false},
    {"run", "", "(SELECT project FROM main.runs WHERE number = t.run)", true},
    {"experiment", "", "(SELECT project FROM main.experiments WHERE id = t.experiment)", true},
};

/* Of the platform, though it has such a column. */
static const char token[] = "tokens";

static bool fits(size_t i_rule, const struct table *table, const struct column *column)
{
    bool is_run = strcmp(rules[i_rule].column, "run") == 0;
    return strncmp(table->name, rules[i_rule].tables, strlen(rules[i_rule].tables)) == 0 &&
           strcmp(column->name, rules[i_rule].column) == 0 &&
           (!is_run || column->is_text != rules[i_rule].is_number);
}

static const struct weir_noun *noun_of(const char *table)
{
    const struct weir_noun *noun;
    size_t i = 0;
    while ((noun = weir_noun_at(i)) != NULL && strcmp(noun->table, table) != 0) {
        i++;
    }
    ck_assert_msg(noun != NULL, "%s has no noun", table);
    return noun;
}

/* By the rules; the noun must say as much: whether it is a project's, and by which column. */
static void find_owner(struct table *table)
{
    const struct weir_noun *noun = noun_of(table->name);
    const char *said = noun->project != NULL ? noun->project : noun->of.column;
    table->i_owner = -1;
    for (size_t r = 0; r < WEIR_ARRAY_LEN(rules) && table->i_owner < 0; r++) {
        for (size_t c = 0; c < table->n_columns && table->i_owner < 0; c++) {
            if (strcmp(table->name, token) != 0 && fits(r, table, &table->columns[c])) {
                table->i_owner = (int)c;
                (void)snprintf(table->owner, sizeof table->owner, "%s", rules[r].project);
            }
        }
    }
    const char *found = table->i_owner >= 0 ? table->columns[table->i_owner].name : NULL;
    ck_assert_msg((found == NULL && said == NULL) ||
                      (found != NULL && said != NULL && strcmp(found, said) == 0),
                  "%s: whose a row is, its noun says by %s, but it should by %s", table->name,
                  said != NULL ? said : "none", found != NULL ? found : "none");
}

static void read_schema(void)
{
    sqlite3_stmt *names, *columns;
    run(whole, "SELECT 1");
    must(whole,
         sqlite3_prepare_v2(whole,
                            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT"
                            " LIKE 'sqlite_%' ORDER BY name",
                            -1, &names, NULL),
         "names");
    must(whole,
         sqlite3_prepare_v2(whole, "SELECT name, type, pk FROM pragma_table_info(?)", -1, &columns,
                            NULL),
         "columns");
    for (n_tables = 0; sqlite3_step(names) == SQLITE_ROW; n_tables++) {
        struct table *table = &tables[n_tables];
        ck_assert_uint_lt(n_tables, TABLES_MAX);
        *table = (struct table){0};
        (void)snprintf(table->name, sizeof table->name, "%s",
                       (const char *)sqlite3_column_text(names, 0));
        (void)sqlite3_bind_text(columns, 1, table->name, -1, SQLITE_STATIC);
        while (sqlite3_step(columns) == SQLITE_ROW) {
            struct column *column = &table->columns[table->n_columns++];
            ck_assert_uint_lt(table->n_columns, COLUMNS_MAX);
            (void)snprintf(column->name, sizeof column->name, "%s",
                           (const char *)sqlite3_column_text(columns, 0));
            column->is_text = strcmp((const char *)sqlite3_column_text(columns, 1), "TEXT") == 0;
            column->is_key = sqlite3_column_int(columns, 2) > 0 ||
                             strcmp(column->name, "id") == 0 || strcmp(column->name, "number") == 0;
        }
        sqlite3_reset(columns);
        find_owner(table);
    }
    sqlite3_finalize(names);
    sqlite3_finalize(columns);
}

/* ---- random rows ------------------------------------------------------------------------------- */

/* SQL of a value that others may have, too; a key is new. */
static void put_value(struct weir_buf *sql, const struct column *column)
{
    size_t n = column->is_key ? ++n_made : pick(4);
    if (!column->is_key && n == 0) {
        weir_buf_puts(sql, column->is_text ? "''" : "0");
    } else if (column->is_text) {
        weir_buf_printf(sql, "'x%zu'", n);
    } else {
        weir_buf_printf(sql, "%zu", n);
    }
}

/* SQL for the key of some owner: what stands in its rule behind FROM and WHERE. */
static void put_owner(struct weir_buf *sql, const struct table *table)
{
    char rule[256], *from, *where, *schema;
    if (strncmp(table->owner, "(SELECT", 7) != 0) {
        weir_buf_printf(sql, "'%s'", all_projects[pick(N_PROJECTS)]);
        return;
    }
    (void)snprintf(rule, sizeof rule, "%s", table->owner);
    while ((schema = strstr(rule, "main.")) != NULL) {
        memmove(schema, schema + 5, strlen(schema + 5) + 1);
    }
    from = strstr(rule, " FROM ");
    where = strstr(rule, " WHERE ");
    *where = *strstr(where + 1, " = ") = '\0';
    weir_buf_printf(sql, "(SELECT %s%s ORDER BY 1 LIMIT 1 OFFSET %zu)", where + 7, from,
                    pick(N_ROWS));
}

static void put_row(struct weir_buf *sql, const struct table *table)
{
    weir_buf_puts(sql, "(");
    for (size_t c = 0; c < table->n_columns; c++) {
        weir_buf_puts(sql, c > 0 ? ", " : "");
        if ((int)c == table->i_owner) {
            put_owner(sql, table);
        } else {
            put_value(sql, &table->columns[c]);
        }
    }
    weir_buf_puts(sql, ")");
}

/* Of what a row's owner needs first. */
static int depth_of(const struct table *table)
{
    return table->i_owner < 0                                                                ? 3
           : strncmp(table->owner, "t.", 2) == 0                                             ? 0
           : strcmp(table->name, "tasks") == 0 || strcmp(table->name, "model_versions") == 0 ? 1
                                                                                             : 2;
}

static void populate(void)
{
    struct weir_buf sql;
    weir_buf_init(&sql, 1 << 20);
    run(whole, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA "
               "synchronous = OFF; BEGIN;"
               "DELETE FROM projects; INSERT INTO projects (name, created_ms) VALUES ('p0', 0), "
               "('p1', 0), ('p2', 0)");
    for (int depth = 0; depth < 3; depth++) {
        for (size_t i = 0; i < n_tables; i++) {
            for (int k = 0; depth_of(&tables[i]) == depth && k < N_ROWS; k++) {
                weir_buf_reset(&sql);
                weir_buf_printf(&sql, "INSERT OR IGNORE INTO \"%s\" VALUES ", tables[i].name);
                if (strcmp(tables[i].name, "projects") != 0) {
                    put_row(&sql, &tables[i]);
                    run(whole, sql.data);
                }
            }
        }
    }
    run(whole, "COMMIT");
    weir_buf_fini(&sql);
}

/* The other database: the same, without the rows that are out of scope. Children first. */
static void copy_part(void)
{
    struct weir_buf sql;
    weir_buf_init(&sql, 4096);
    ck_assert_int_eq(sqlite3_open(":memory:", &part), SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(part, "main", whole, "main");
    ck_assert_int_eq(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    sqlite3_backup_finish(backup);
    run(part, "PRAGMA foreign_keys = OFF");
    for (int depth = 2; depth >= 0; depth--) {
        for (size_t i = 0; i < n_tables; i++) {
            if (depth_of(&tables[i]) == depth) {
                weir_buf_reset(&sql);
                weir_buf_printf(
                    &sql, "DELETE FROM main.\"%s\" AS t WHERE %s IS NULL OR %s NOT IN ('%s', '%s')",
                    tables[i].name, tables[i].owner, tables[i].owner, in_scope[0],
                    in_scope[scope.n_projects - 1]);
                run(part, sql.data);
            }
        }
    }
    run(part, "PRAGMA foreign_keys = ON");
    weir_buf_fini(&sql);
}

/* ---- what is there ----------------------------------------------------------------------------- */

static uint64_t hash_of(sqlite3_stmt *stmt, int i_first)
{
    uint64_t hash = WEIR_HASH_BEGIN;
    for (int c = i_first; c < sqlite3_column_count(stmt); c++) {
        const char *text = (const char *)sqlite3_column_text(stmt, c);
        hash = weir_hash_text(weir_hash_text(hash, text != NULL ? text : "(null)"), "|");
    }
    return hash;
}

/** Sums of hashes: of all rows in scope, and of all others. */
struct picture {
    uint64_t inside, outside;
    size_t n_inside;
};

static bool is_in_scope(const char *project)
{
    bool is_in = false;
    for (size_t k = 0; k < scope.n_projects; k++) {
        is_in = is_in || (project != NULL && strcmp(project, in_scope[k]) == 0);
    }
    return is_in;
}

/** The statements that show all rows of a database: prepared once. */
static struct eye {
    sqlite3 *db;
    sqlite3_stmt *stmts[TABLES_MAX];
} eyes[3];

static struct eye *eye_of(sqlite3 *db)
{
    struct eye *eye = eyes;
    while (eye->db != NULL && eye->db != db) {
        eye++;
    }
    struct weir_buf sql;
    weir_buf_init(&sql, 4096);
    for (size_t i = 0; eye->db == NULL && i < n_tables; i++) {
        weir_buf_reset(&sql);
        weir_buf_printf(&sql, "SELECT %s, '%s', t.* FROM main.\"%s\" t",
                        tables[i].i_owner >= 0 ? tables[i].owner : "''", tables[i].name,
                        tables[i].name);
        must(db, sqlite3_prepare_v2(db, sql.data, -1, &eye->stmts[i], NULL), sql.data);
    }
    weir_buf_fini(&sql);
    eye->db = db;
    return eye;
}

static void look_at(sqlite3 *db, struct picture *out)
{
    struct eye *eye = eye_of(db);
    *out = (struct picture){0};
    for (size_t i = 0; i < n_tables; i++) {
        while (tables[i].i_owner >= 0 && sqlite3_step(eye->stmts[i]) == SQLITE_ROW) {
            const char *project = (const char *)sqlite3_column_text(eye->stmts[i], 0);
            bool is_inside = is_in_scope(project);
            if (project != NULL ||
                strncmp(tables[i].owner, "t.", 2) == 0) { /* else its owner has gone */
                *(is_inside ? &out->inside : &out->outside) += hash_of(eye->stmts[i], 1);
                out->n_inside += is_inside;
            }
        }
        sqlite3_reset(eye->stmts[i]);
    }
}

/* ---- random statements -------------------------------------------------------------------------- */

enum verb { SELECT, UPDATE, DELETE, INSERT, N_VERBS };

struct statement {
    struct weir_buf sql;
    enum verb verb;
    bool meets_others; /* what it does may depend on rows that it cannot see: a key that is taken */
};

static const struct table *any_table(void)
{
    const struct table *table;
    do {
        table = &tables[pick(n_tables)];
    } while (table->i_owner < 0);
    return table;
}

static const struct column *any_column(const struct table *table)
{
    return pick(3) == 0 ? &table->columns[table->i_owner] : &table->columns[pick(table->n_columns)];
}

static void put_constant(struct weir_buf *sql, const struct column *column)
{
    if (column->is_text && pick(4) == 0) {
        weir_buf_printf(sql, "'%s'", all_projects[pick(N_PROJECTS)]);
    } else {
        weir_buf_printf(sql, column->is_text ? "'x%zu'" : "%zu",
                        pick(2) ? pick(4) : pick(n_made + 1));
    }
}

static void put_condition(struct weir_buf *sql, const char *name, const struct table *table,
                          int depth)
{
    const struct column *column = any_column(table), *other;
    const struct table *source = any_table();
    switch (pick(depth > 0 ? 8 : 4)) {
    case 0:
        weir_buf_printf(sql, "%s.\"%s\" = ", name, column->name);
        put_constant(sql, column);
        return;
    case 1:
        weir_buf_printf(sql, "%s.\"%s\" <> ", name, column->name);
        put_constant(sql, column);
        return;
    case 2:
        weir_buf_printf(sql, "%s.\"%s\" IS NOT NULL", name, column->name);
        return;
    case 3:
        weir_buf_puts(sql, "1 = 1 /* all; WHERE ( */");
        return;
    case 4:
    case 5:
        other = any_column(source);
        weir_buf_printf(sql, "%s.\"%s\" %sIN (SELECT s.\"%s\" FROM \"%s\" s WHERE ", name,
                        column->name, pick(4) ? "" : "NOT ", other->name, source->name);
        put_condition(sql, "s", source, depth - 1);
        weir_buf_puts(sql, ")");
        return;
    case 6:
        weir_buf_printf(sql, "EXISTS (SELECT 1 FROM %s e%d WHERE e%d.\"%s\" = %s.\"%s\")",
                        source->name, depth, depth, any_column(source)->name, name, column->name);
        return;
    default:
        weir_buf_puts(sql, "(");
        put_condition(sql, name, table, depth - 1);
        weir_buf_puts(sql, pick(2) ? " OR " : " AND ");
        put_condition(sql, name, table, depth - 1);
        weir_buf_puts(sql, ")");
    }
}

static void put_select(struct weir_buf *sql)
{
    const struct table *a = any_table(), *b = any_table();
    const char *column = any_column(a)->name, *other = any_column(b)->name;
    switch (pick(6)) {
    case 0:
        weir_buf_printf(sql, "SELECT a.* FROM \"%s\" a WHERE ", a->name);
        break;
    case 1:
        weir_buf_printf(
            sql,
            "SELECT a.\"%s\", b.\"%s\" FROM %s a%s JOIN [%s] AS b ON b.\"%s\" = a.\"%s\" WHERE ",
            column, other, a->name, pick(2) ? " LEFT" : "", b->name, other, column);
        break;
    case 2:
        weir_buf_printf(sql,
                        "SELECT a.\"%s\", count(*), max(b.\"%s\") FROM %s a LEFT JOIN %s b ON "
                        "b.\"%s\" = a.\"%s\" WHERE ",
                        column, other, a->name, b->name, other, column);
        put_condition(sql, "a", a, 1);
        weir_buf_printf(sql, " GROUP BY a.\"%s\"", column);
        return;
    case 3:
        weir_buf_printf(
            sql,
            "WITH c AS (SELECT * FROM '%s') SELECT (SELECT count(*) FROM %s), a.* FROM c a WHERE ",
            a->name, b->name);
        break;
    case 4:
        weir_buf_printf(
            sql, "SELECT \"%s\" FROM %s UNION ALL SELECT a.\"%s\" FROM -- main.x\n `%s` a WHERE ",
            other, b->name, column, a->name);
        break;
    default:
        weir_buf_printf(sql, "SELECT DISTINCT a.\"%s\", 'main.' FROM %s a, %s b WHERE ", column,
                        a->name, b->name);
    }
    put_condition(sql, "a", a, 2);
}

static void put_update(struct statement *out)
{
    struct weir_buf *sql = &out->sql;
    const struct table *table = any_table(), *source = any_table();
    const struct column *column = any_column(table);
    bool has_alias = pick(2) != 0, has_from = pick(5) == 0;
    bool is_of_key = column->is_key || column == &table->columns[table->i_owner];
    char quoted[80];
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", table->name);
    out->meets_others = is_of_key;
    weir_buf_printf(sql, "%sUPDATE %s%s%s SET \"%s\" = ", pick(4) ? "" : "WITH u AS (SELECT 1) ",
                    out->meets_others && pick(2) ? "OR IGNORE " : "", quoted,
                    has_alias ? " AS t" : "", column->name);
    if (column == &table->columns[table->i_owner]) {
        put_owner(sql, table);
    } else {
        put_constant(sql, column);
    }
    if (has_from) {
        weir_buf_printf(sql, " FROM (SELECT count(*) AS n FROM %s) f", source->name);
    }
    if (pick(6) != 0) {
        weir_buf_puts(sql, " WHERE ");
        put_condition(sql, has_alias ? "t" : quoted, table, 2);
    }
    weir_buf_puts(sql, pick(3) ? "" : "; -- WHERE");
}

static void put_delete(struct weir_buf *sql)
{
    const struct table *table = any_table();
    char quoted[80];
    (void)snprintf(quoted, sizeof quoted, "[%s]", table->name);
    weir_buf_printf(sql, "DELETE /* FROM x */ FROM %s", quoted);
    if (pick(6) != 0) {
        weir_buf_puts(sql, " WHERE ");
        put_condition(sql, quoted, table, 2);
    }
}

static void put_insert(struct statement *out)
{
    static const char *const verbs[] = {"INSERT", "INSERT", "INSERT OR REPLACE", "REPLACE",
                                        "INSERT OR IGNORE"};
    struct weir_buf *sql = &out->sql;
    const struct table *table = any_table();
    size_t i_verb = pick(WEIR_ARRAY_LEN(verbs)), kind = pick(4);
    out->meets_others = i_verb >= 2 || kind > 0;
    weir_buf_printf(sql, "%s INTO %s ", verbs[i_verb], table->name);
    if (kind == 3) { /* all rows that it sees, again: all keys are taken */
        weir_buf_printf(sql, "SELECT * FROM %s AS a WHERE ", table->name);
        put_condition(sql, "a", table, 1);
    } else {
        weir_buf_puts(sql, "VALUES ");
        put_row(sql, table);
    }
    if (i_verb < 2 && kind == 2) {
        const struct column *column = any_column(table);
        weir_buf_printf(sql, " ON CONFLICT DO UPDATE SET \"%s\" = excluded.\"%s\"", column->name,
                        column->name);
    }
}

static void make_statement(struct statement *out)
{
    *out = (struct statement){.verb = (enum verb)pick(N_VERBS)};
    weir_buf_init(&out->sql, 1 << 16);
    switch (out->verb) {
    case SELECT:
        put_select(&out->sql);
        break;
    case UPDATE:
        put_update(out);
        break;
    case DELETE:
        put_delete(&out->sql);
        break;
    default:
        put_insert(out);
    }
}

/* ---- both runs ---------------------------------------------------------------------------------- */

struct trial {
    const struct statement *statement;
    uint64_t rows; /* of a SELECT */
    struct picture before, after;
    bool is_done;
};

static weir_status try_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct trial *trial = context;
    struct weir_stmt *stmt;
    bool has_row;
    trial->rows = 0;
    trial->is_done = false;
    if (trial->statement->verb != SELECT) {
        look_at(txn->connection->db->handle, &trial->before);
    }
    WEIR_TRY(weir_stmt_open(txn, trial->statement->sql.data, WEIR_NO_BINDS, &stmt, err));
    weir_status status;
    while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row) {
        trial->rows += hash_of((sqlite3_stmt *)stmt->handle, 0);
    }
    weir_stmt_close(stmt);
    WEIR_TRY(status);
    if (trial->statement->verb != SELECT) {
        look_at(txn->connection->db->handle, &trial->after);
    }
    trial->is_done = true;
    return WEIR_OK;
}

static void check_read(const struct trial *trial)
{
    sqlite3_stmt *stmt;
    uint64_t rows = 0;
    const char *sql = trial->statement->sql.data;
    must(part, sqlite3_prepare_v2(part, sql, -1, &stmt, NULL), sql);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        rows += hash_of(stmt, 0);
    }
    sqlite3_finalize(stmt);
    ck_assert_msg(rows == trial->rows, "it reads other rows than those in scope: %s", sql);
}

static void check_write(const struct trial *trial)
{
    const char *sql = trial->statement->sql.data;
    struct picture alone;
    ck_assert_msg(trial->before.outside == trial->after.outside, "it changes rows out of scope: %s",
                  sql);
    run(part, "SAVEPOINT one");
    int code = sqlite3_exec(part, sql, NULL, NULL, NULL);
    look_at(part, &alone);
    run(part, "ROLLBACK TO one; RELEASE one");
    /* A reference may lead to a row that is out of scope; alone, to none. */
    if (!trial->statement->meets_others && code != SQLITE_CONSTRAINT) {
        ck_assert_msg(code == SQLITE_OK, "alone it fails: %s: %s", sqlite3_errmsg(part), sql);
        ck_assert_msg(alone.inside == trial->after.inside,
                      "it leaves rows in scope that it should not: %s", sql);
    }
}

START_TEST(a_statement_reads_and_changes_rows_of_its_scope_alone)
{
    size_t n_done[N_VERBS] = {0}, n_denied = 0;
    struct picture first, last;
    look_at(whole, &first);
    ck_assert_uint_gt(first.n_inside, 60);
    /* Few statements are denied where they meet few rows: it goes on until some were. */
    for (int i = 0; i < N_STATEMENTS || (n_denied < N_DENIED && i < 20 * N_STATEMENTS); i++) {
        struct statement statement;
        struct weir_error err = {0};
        make_statement(&statement);
        struct trial trial = {.statement = &statement};
        weir_status status =
            statement.verb == SELECT
                ? weir_store_read_scoped(fixture.store, &scope, try_in, &trial, &err)
                : weir_store_try_scoped(fixture.store, &scope, try_in, &trial, &err);
        ck_assert_msg(status != WEIR_ERR_INTERNAL, "%s: %s", err.message, statement.sql.data);
        ck_assert_msg(statement.verb != SELECT || status == WEIR_OK, "%s: %s", err.message,
                      statement.sql.data);
        n_denied += status == WEIR_ERR_DENIED;
        n_done[statement.verb] += trial.is_done;
        if (trial.is_done) {
            (statement.verb == SELECT ? check_read : check_write)(&trial);
        }
        weir_buf_fini(&statement.sql);
    }
    look_at(whole, &last); /* all was undone */
    ck_assert(first.inside == last.inside && first.outside == last.outside);
    printf("done: %zu reads, %zu updates, %zu deletes, %zu inserts; denied %zu\n", n_done[SELECT],
           n_done[UPDATE], n_done[DELETE], n_done[INSERT], n_denied);
    for (int v = 0; v < N_VERBS; v++) {
        ck_assert_uint_gt(n_done[v], N_STATEMENTS / 40);
    }
    ck_assert_uint_ge(n_denied, N_DENIED);
}

END_TEST

static void set_up(void)
{
    (void)test_seed(&rng);
    n_made = 10;
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = weir_noun_at});
    ck_assert_int_eq(sqlite3_open(fixture.path, &whole), SQLITE_OK);
    scope = (struct weir_row_scope){.projects = in_scope, .n_projects = 1 + pick(2)};
    size_t first = pick(N_PROJECTS);
    for (size_t i = 0; i < scope.n_projects; i++) {
        in_scope[i] = all_projects[(first + i) % N_PROJECTS];
    }
    read_schema();
    populate();
    copy_part();
}

static void tear_down(void)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(eyes); i++) {
        for (size_t k = 0; k < n_tables; k++) {
            sqlite3_finalize(eyes[i].stmts[k]);
        }
    }
    sqlite3_close(part);
    sqlite3_close(whole);
    fixture_fini(&fixture);
}

int main(void)
{
    Suite *suite = suite_create("scope_property");
    TCase *tests = tcase_create("scope_property");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_statement_reads_and_changes_rows_of_its_scope_alone);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
