#include "store/sqlite/sqlite.h"

#include "base/macros.h"
#include "store/store_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* migrations.inc is made by CMake from the names in migrations/: X(number, name) in order. */
#define X(number, name) extern const char weir_migration_##name[];
#include "migrations.inc"
#undef X

static const struct migration all_migrations[] = {
#define X(number, name) {number, #name, weir_migration_##name},
#include "migrations.inc"
#undef X
};

static const struct migration *migrations(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(all_migrations);
    return all_migrations;
}

/* ---- how it ended ------------------------------------------------------------------------------ */

static enum db_end end_of_rule(int code)
{
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return DB_EXISTS;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return DB_REFERENCE;
    default:
        return DB_INVALID;
    }
}

enum db_end sqlite_end(const struct db *db, int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
        return DB_OK;
    case SQLITE_ROW:
        return DB_ROW;
    case SQLITE_FULL:
        return DB_FULL;
    case SQLITE_IOERR:
        /* Not every path inside SQLite turns ENOSPC into SQLITE_FULL: the shared memory does not.
         */
        return db->handle != NULL && sqlite3_system_errno(db->handle) == ENOSPC ? DB_FULL : DB_IO;
    case SQLITE_CANTOPEN:
        return DB_AWAY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return DB_CORRUPT;
    case SQLITE_NOMEM:
        return DB_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return DB_BUSY;
    case SQLITE_READONLY:
        /* The writer's own file: nobody has to be refused anything, the disk has become read-only. */
        return db->handle != NULL && !db->is_reader ? DB_AWAY : DB_READ_ONLY;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return DB_READ_ONLY;
    case SQLITE_TOOBIG:
        return DB_TOO_LARGE;
    case SQLITE_CONSTRAINT:
        return end_of_rule(code);
    default:
        return DB_ERROR;
    }
}

weir_status sqlite_fail(const struct db *db, int code, const char *what, struct weir_error *err)
{
    const char *text = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
    return db_fail(sqlite_end(db, code), what, text, err);
}

static const char *message(const struct db *db)
{
    return sqlite3_errmsg(db->handle);
}

/* ---- whole statements -------------------------------------------------------------------------- */

static enum db_end exec(struct db *db, const char *sql)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return sqlite_end(db, code == SQLITE_OK ? code : sqlite3_extended_errcode(db->handle));
}

static enum db_end run(struct db *db, enum db_verb verb)
{
    static const char *const sql[] = {
        [DB_READ] = "BEGIN",
        [DB_WRITE] = "BEGIN IMMEDIATE",
        [DB_COMMIT] = "COMMIT",
        [DB_ROLLBACK] = "ROLLBACK",
        [DB_SAVE] = "SAVEPOINT one",
        [DB_RELEASE] = "RELEASE one",
        [DB_UNDO] = "ROLLBACK TO one; RELEASE one",
    };
    return exec(db, sql[verb]);
}

static bool is_in_transaction(const struct db *db)
{
    return sqlite3_get_autocommit(db->handle) == 0;
}

static int64_t n_changed(const struct db *db)
{
    return sqlite3_changes64(db->handle);
}

static int64_t n_changes(const struct db *db)
{
    return sqlite3_total_changes64(db->handle);
}

enum db_end sqlite_query_int(struct db *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    code = code == SQLITE_OK ? sqlite3_step(stmt) : code;
    if (code == SQLITE_ROW) {
        *out = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return code == SQLITE_ROW ? DB_OK : code == SQLITE_DONE ? DB_ERROR : sqlite_end(db, code);
}

static enum db_end has_table(struct db *db, const char *name, bool *out)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle,
                                  "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
                                  -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        code = sqlite3_step(stmt);
        *out = code == SQLITE_ROW;
    }
    sqlite3_finalize(stmt);
    return code == SQLITE_ROW || code == SQLITE_DONE ? DB_OK : sqlite_end(db, code);
}

static enum db_end each_table(struct db *db, void (*fn)(void *context, const char *name),
                              void *context)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db->handle,
                                  "SELECT name FROM sqlite_master WHERE type = 'table'"
                                  " AND name NOT LIKE 'sqlite_%' ORDER BY name",
                                  -1, &stmt, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        fn(context, (const char *)sqlite3_column_text(stmt, 0));
        code = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? DB_OK : sqlite_end(db, code);
}

/* ---- prepared ones: a db_stmt is a sqlite3_stmt ------------------------------------------------ */

static sqlite3_stmt *of(struct db_stmt *stmt)
{
    return (sqlite3_stmt *)stmt;
}

/* What stands in a comment for this database alone: in place, which makes it SQL. */
static void take_hints(char *sql)
{
    for (char *hint = strstr(sql, "/*+"), *end; hint != NULL; hint = strstr(end, "/*+")) {
        end = strstr(hint, "*/");
        if (end == NULL) {
            return;
        }
        memset(hint, ' ', 3);
        memset(end, ' ', 2);
    }
}

static enum db_end prepare(struct db *db, const char *sql, struct db_stmt **out)
{
    sqlite3_stmt *stmt = NULL;
    char *own = strstr(sql, "/*+") != NULL ? sqlite3_mprintf("%s", sql) : NULL;
    if (own != NULL) {
        take_hints(own);
    }
    int code = sqlite3_prepare_v3(db->handle, own != NULL ? own : sql, -1,
                                  SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
    sqlite3_free(own);
    if (code != SQLITE_OK || stmt == NULL) {
        return code != SQLITE_OK ? sqlite_end(db, sqlite3_extended_errcode(db->handle)) : DB_ERROR;
    }
    *out = (struct db_stmt *)stmt;
    return DB_OK;
}

static int find_param(struct db_stmt *stmt, const char *name)
{
    return sqlite3_bind_parameter_index(of(stmt), name);
}

static enum db_end bind_with(struct db *db, struct db_stmt *stmt, int i_param, const char *text,
                             sqlite3_destructor_type release)
{
    int code = text != NULL ? sqlite3_bind_text(of(stmt), i_param, text, -1, release)
                            : sqlite3_bind_null(of(stmt), i_param);
    return sqlite_end(db, code);
}

static enum db_end bind_text(struct db *db, struct db_stmt *stmt, int i_param, const char *text)
{
    return bind_with(db, stmt, i_param, text, SQLITE_STATIC);
}

static enum db_end bind_taken(struct db *db, struct db_stmt *stmt, int i_param, char *text)
{
    return bind_with(db, stmt, i_param, text, free);
}

static enum db_end bind_int(struct db *db, struct db_stmt *stmt, int i_param, int64_t value)
{
    return sqlite_end(db, sqlite3_bind_int64(of(stmt), i_param, value));
}

static enum db_end bind_f64(struct db *db, struct db_stmt *stmt, int i_param, double value)
{
    return sqlite_end(db, isnan(value) ? sqlite3_bind_null(of(stmt), i_param)
                                       : sqlite3_bind_double(of(stmt), i_param, value));
}

static enum db_end step(struct db *db, struct db_stmt *stmt)
{
    int code = sqlite3_step(of(stmt));
    return code == SQLITE_ROW ? DB_ROW : sqlite_end(db, code);
}

static const char *column_text(struct db_stmt *stmt, int i_column, size_t *out_len)
{
    const char *text = (const char *)sqlite3_column_text(of(stmt), i_column);
    *out_len = text != NULL ? (size_t)sqlite3_column_bytes(of(stmt), i_column) : 0;
    return text;
}

static int64_t column_int(struct db_stmt *stmt, int i_column)
{
    return sqlite3_column_int64(of(stmt), i_column);
}

static double column_f64(struct db_stmt *stmt, int i_column)
{
    return sqlite3_column_type(of(stmt), i_column) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(of(stmt), i_column);
}

static bool column_is_null(struct db_stmt *stmt, int i_column)
{
    return sqlite3_column_type(of(stmt), i_column) == SQLITE_NULL;
}

static int64_t take_cost(struct db_stmt *stmt)
{
    return sqlite3_stmt_status(of(stmt), SQLITE_STMTSTATUS_VM_STEP, 1);
}

static void reset(struct db_stmt *stmt)
{
    sqlite3_reset(of(stmt));
    sqlite3_clear_bindings(of(stmt));
}

static void finalize(struct db_stmt *stmt)
{
    sqlite3_finalize(of(stmt));
}

/* ---- functions in SQL ------------------------------------------------------------------------------- */

/* weir_live('TABLE.COLUMN', key, what the column holds) */
static void sql_live(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    double value;
    (void)n_values;
    switch (live_answer(sqlite3_user_data(context), (const char *)sqlite3_value_text(values[0]),
                        (const char *)sqlite3_value_text(values[1]), &value)) {
    case LIVE_UNKNOWN:
        sqlite3_result_error(context, "no such live column", -1);
        break;
    case LIVE_STORED:
        sqlite3_result_value(context, values[2]);
        break;
    case LIVE_NULL:
        sqlite3_result_null(context);
        break;
    case LIVE_INT:
        sqlite3_result_int64(context, (int64_t)value);
        break;
    case LIVE_F64:
        sqlite3_result_double(context, value);
        break;
    }
}

/* weir_now_ms() */
static void sql_now(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    (void)n_values;
    (void)values;
    sqlite3_result_int64(context, (int64_t)time(NULL) * 1000);
}

static enum db_end add_functions(struct db *db, struct live *live)
{
    int code = sqlite3_create_function(db->handle, "weir_now_ms", 0, SQLITE_UTF8, NULL, sql_now,
                                       NULL, NULL);
    if (code != SQLITE_OK) {
        return sqlite_end(db, code);
    }
    return sqlite_end(db, sqlite3_create_function(db->handle, "weir_live", 3, SQLITE_UTF8, live,
                                                  sql_live, NULL, NULL));
}

/* ---- the driver -------------------------------------------------------------------------------- */

static const struct db_ops ops = {
    .migrations = migrations,
    .exists = sqlite_exists,
    .open = sqlite_open,
    .close = sqlite_close,
    .message = message,
    .exec = exec,
    .run = run,
    .is_in_transaction = is_in_transaction,
    .n_changed = n_changed,
    .n_changes = n_changes,
    .has_table = has_table,
    .each_table = each_table,
    .prepare = prepare,
    .find_param = find_param,
    .bind_text = bind_text,
    .bind_taken = bind_taken,
    .bind_int = bind_int,
    .bind_f64 = bind_f64,
    .step = step,
    .column_text = column_text,
    .column_int = column_int,
    .column_f64 = column_f64,
    .column_is_null = column_is_null,
    .take_cost = take_cost,
    .reset = reset,
    .finalize = finalize,
    .add_functions = add_functions,
    .hide = sqlite_hide,
    .unhide = sqlite_unhide,
    .write_scoped = sqlite_write_scoped,
    .limit = sqlite_limit,
    .unlimit = sqlite_unlimit,
    .check = sqlite_check,
    .copy = sqlite_copy,
    .space = sqlite_space,
    .shrink = sqlite_shrink,
};

const struct weir_kind db_sqlite = {
    .name = "sqlite",
    .doc = "One file in the state folder, with its log beside it; one server has it open.",
    .ops = &ops,
};
