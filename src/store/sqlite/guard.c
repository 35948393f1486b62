/**
 * The guard of scopes (store/row_scope.h) on a connection of SQLite: views that ask of each row whether its project is in
 * scope, and a look at each row that is written.
 */
#include "base/hash.h"
#include "store/row_scope.h"
#include "store/scope_map.h"
#include "store/scope_proven.h"
#include "store/scope_sql.h"
#include "store/sqlite/sqlite.h"

#include <stdlib.h>
#include <string.h>

/** Answers that are kept: a power of two. */
#define ANSWERS 2048

/** Whether the owner with this key is in scope, as it was found in `round`. */
struct answer {
    uint64_t round;
    size_t owner;
    bool is_number, is_seen;
    int64_t number;
    size_t len; /* of text, which is not ended */
    char text[48];
};

/** Of one connection that hides rows. */
struct row_guard {
    sqlite3 *db;
    const struct scope_map *map;
    struct weir_txn *txn;  /**< That runs; NULL: none. */
    sqlite3_stmt **owners; /**< That find the project of one; NULL: not prepared. */
    int *columns; /**< Of each table, the one that says whose a row is, from 1; 0: not looked up. */
    const struct scope_table *table; /**< Of the row that was changed last; NULL: none was. */
    uint64_t round;                  /**< Grows when an answer may have become another. */
    struct answer answers[ANSWERS];
};

/* ---- whose a row is ---------------------------------------------------------------------------- */

/* The bytes of a text, which need not end with a NUL: nothing is copied. "" for what is no text. */
static const char *text_of(sqlite3_value *value, size_t *out_len)
{
    bool is_text = sqlite3_value_type(value) == SQLITE_TEXT;
    const char *text = is_text ? sqlite3_value_blob(value) : NULL;
    *out_len = text != NULL ? (size_t)sqlite3_value_bytes(value) : 0;
    return text != NULL ? text : "";
}

static bool sees_project(const struct weir_row_scope *scope, sqlite3_value *value)
{
    size_t len;
    const char *project = text_of(value, &len);
    bool sees = false;
    for (size_t i = 0; !sees && i < scope->n_projects; i++) {
        sees = strlen(scope->projects[i]) == len && memcmp(scope->projects[i], project, len) == 0;
    }
    return sees && sqlite3_value_type(value) == SQLITE_TEXT;
}

/* The place where the answer for this key is kept, made to be its; NULL: it is not one that is kept. */
static struct answer *answer_of(struct row_guard *guard, size_t owner, sqlite3_value *key,
                                bool *out_is_known)
{
    bool is_number = sqlite3_value_type(key) == SQLITE_INTEGER;
    int64_t number = is_number ? sqlite3_value_int64(key) : 0;
    size_t len;
    const char *text = text_of(key, &len);
    uint64_t hash = is_number ? (uint64_t)number * 0x9e3779b97f4a7c15u >> 40
                              : weir_hash_bytes(WEIR_HASH_BEGIN, text, len);
    struct answer *answer = &guard->answers[(hash + owner) % ANSWERS];
    *out_is_known = false;
    if (len > sizeof answer->text || (!is_number && sqlite3_value_type(key) != SQLITE_TEXT)) {
        return NULL;
    }
    *out_is_known = answer->round == guard->round && answer->owner == owner &&
                    answer->is_number == is_number && answer->number == number &&
                    answer->len == len && memcmp(answer->text, text, len) == 0;
    if (!*out_is_known) {
        answer->round = 0;
        answer->owner = owner;
        answer->is_number = is_number;
        answer->number = number;
        answer->len = len;
        memcpy(answer->text, text, len);
    }
    return answer;
}

/* Is what the owner with this key owns in the scope? SQLITE_OK, or what SQLite says. */
static int look_up(struct row_guard *guard, size_t owner, sqlite3_value *key, bool *out)
{
    sqlite3_stmt **stmt = &guard->owners[owner];
    int code = *stmt != NULL ? SQLITE_OK
                             : sqlite3_prepare_v3(guard->db, guard->map->owners[owner].sql, -1,
                                                  SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_bind_value(*stmt, 1, key);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_step(*stmt);
        *out = code == SQLITE_ROW &&
               weir_row_scope_sees(guard->txn->scope, (const char *)sqlite3_column_text(*stmt, 0));
        code = code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
    }
    sqlite3_reset(*stmt);
    return code;
}

static int is_in_scope(struct row_guard *guard, size_t owner, sqlite3_value *key, bool *out)
{
    bool is_known;
    *out = guard->txn == NULL || guard->txn->scope == NULL;
    if (*out || sqlite3_value_type(key) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    if (owner == SCOPE_PROJECT) {
        *out = sees_project(guard->txn->scope, key);
        return SQLITE_OK;
    }
    struct answer *answer = answer_of(guard, owner, key, &is_known);
    if (is_known) {
        *out = answer->is_seen;
        return SQLITE_OK;
    }
    int code = look_up(guard, owner, key, out);
    if (answer != NULL && code == SQLITE_OK) {
        answer->is_seen = *out;
        answer->round = guard->round;
    }
    return code;
}

/* ---- what is read ------------------------------------------------------------------------------ */

/* weir_scoped(): has the transaction that runs a scope? One answer while a statement runs. */
static void sql_scoped(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    const struct row_guard *guard = sqlite3_user_data(context);
    (void)n_values;
    (void)values;
    sqlite3_result_int(context, guard->txn != NULL && guard->txn->scope != NULL);
}

/* weir_sees(OWNER, KEY): is what it owns in the scope of the transaction that runs? Both say nothing of
 * the row: SQLite puts what a column is compared with in its place (r.project = 'red' makes it 'red' of every row). */
static void sql_sees(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    struct row_guard *guard = sqlite3_user_data(context);
    bool sees;
    (void)n_values;
    int code = is_in_scope(guard, (size_t)sqlite3_value_int(values[0]), values[1], &sees);
    if (code != SQLITE_OK) {
        sqlite3_result_error_code(context, code);
    } else {
        sqlite3_result_int(context, sees);
    }
}

static bool put_condition(const void *context, const char *table, const char *name, size_t len,
                          struct weir_buf *out)
{
    const struct connection *connection = context;
    const struct scope_table *found =
        connection->guard != NULL ? scope_map_table(connection->map, table) : NULL;
    if (found == NULL || found->kind == SCOPE_TABLE_OF_PLATFORM) {
        return false;
    }
    weir_buf_puts(out, "NOT weir_scoped()");
    if (found->kind == SCOPE_TABLE_OF_PROJECTS) {
        weir_buf_printf(out, " OR weir_sees(%zu, %.*s.\"%s\")", found->i_owner, (int)len, name,
                        found->column);
    }
    return true;
}

weir_status sqlite_write_scoped(const struct connection *connection, bool is_proven,
                                const char *sql, struct weir_buf *out, struct weir_error *err)
{
    if (is_proven && connection->guard != NULL) {
        return scope_proven_write(connection->map, sql, out, err);
    }
    return scope_sql_write(sql, put_condition, connection, out, err);
}

static weir_status hide_table(struct connection *connection, const char *table,
                              struct weir_error *err)
{
    struct weir_buf sql;
    weir_status status = WEIR_OK;
    weir_buf_init(&sql, 1024);
    weir_buf_printf(&sql, "CREATE TEMP VIEW \"%s\" AS SELECT * FROM main.\"%s\" t WHERE ", table,
                    table);
    if (put_condition(connection, table, "t", 1, &sql)) {
        status = connection_exec(connection, sql.data, err);
    }
    weir_buf_fini(&sql);
    return status;
}

static weir_status hide_tables(struct connection *connection, struct weir_error *err)
{
    const struct scope_map *map = connection->map;
    WEIR_TRY(connection_exec(connection, "PRAGMA query_only = OFF", err));
    for (size_t i = 0; i < map->n_tables; i++) {
        WEIR_TRY(hide_table(connection, map->tables[i].name, err));
    }
    return connection->is_reader ? connection_exec(connection, "PRAGMA query_only = ON", err)
                                 : WEIR_OK;
}

weir_status sqlite_hide(struct connection *connection, struct weir_error *err)
{
    const struct scope_map *map = connection->map;
    struct row_guard *guard = calloc(1, sizeof *guard);
    connection->guard = guard;
    if (guard != NULL) {
        guard->owners = calloc(map->n_owners, sizeof(sqlite3_stmt *));
        guard->columns = calloc(map->n_tables, sizeof *guard->columns);
    }
    if (guard == NULL || guard->owners == NULL || guard->columns == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "setting up scopes: out of memory");
    }
    guard->db = connection->db->handle;
    guard->map = map;
    /* Deterministic: while a statement runs the answer stays, so that what it asks of one key is asked once. */
    const int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC;
    int code =
        sqlite3_create_function(guard->db, "weir_sees", 2, flags, guard, sql_sees, NULL, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_create_function(guard->db, "weir_scoped", 0, flags, guard, sql_scoped, NULL,
                                       NULL);
    }
    return code == SQLITE_OK ? hide_tables(connection, err)
                             : sqlite_fail(connection->db, code, "setting up scopes", err);
}

void sqlite_unhide(struct connection *connection)
{
    struct row_guard *guard = connection->guard;
    connection->guard = NULL;
    if (guard == NULL) {
        return;
    }
    for (size_t i = 0; guard->owners != NULL && i < connection->map->n_owners; i++) {
        sqlite3_finalize(guard->owners[i]);
    }
    free(guard->owners);
    free(guard->columns);
    free(guard);
}

/* ---- what is written --------------------------------------------------------------------------- */

/* The place of the column that says whose a row is, from 0: looked up when the first row is changed. */
static int column_of(struct row_guard *guard, const struct scope_table *table)
{
    int *i_column = &guard->columns[table - guard->map->tables];
    sqlite3_stmt *stmt = NULL;
    if (*i_column == 0 &&
        sqlite3_prepare_v2(guard->db,
                           "SELECT cid + 1 FROM pragma_table_info(?, 'main') WHERE name = ?", -1,
                           &stmt, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, table->name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(stmt, 2, table->column, -1, SQLITE_STATIC);
        *i_column = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : 0;
    }
    sqlite3_finalize(stmt);
    return *i_column - 1;
}

/* Are the row that goes and the row that comes of the scope? */
static bool is_allowed(struct row_guard *guard, const struct scope_table *table, int op,
                       const char **out_project)
{
    *out_project = NULL;
    if (table == NULL || table->kind != SCOPE_TABLE_OF_PROJECTS) {
        return table != NULL && table->kind == SCOPE_TABLE_OF_PLATFORM;
    }
    int i_column = column_of(guard, table);
    sqlite3_value *value = NULL;
    bool is_in = true;
    int code = SQLITE_OK;
    if (op != SQLITE_INSERT) {
        code = sqlite3_preupdate_old(guard->db, i_column, &value);
        code = code == SQLITE_OK ? is_in_scope(guard, table->i_owner, value, &is_in) : code;
    }
    if (op != SQLITE_DELETE && code == SQLITE_OK && is_in) {
        code = sqlite3_preupdate_new(guard->db, i_column, &value);
        code = code == SQLITE_OK ? is_in_scope(guard, table->i_owner, value, &is_in) : code;
        *out_project =
            table->i_owner == SCOPE_PROJECT ? (const char *)sqlite3_value_text(value) : NULL;
    }
    return code == SQLITE_OK && is_in;
}

/* Before a row is changed by a transaction in a scope, by whatever statement. What triggers and references of
 * the schema change behind it is theirs. */
static void check_row(void *context, sqlite3 *db, int op, const char *schema, const char *name,
                      sqlite3_int64 old_id, sqlite3_int64 new_id)
{
    struct row_guard *guard = context;
    const char *project;
    (void)old_id;
    (void)new_id;
    if (strcmp(schema, "main") != 0) {
        return;
    }
    if (guard->table == NULL || strcmp(guard->table->name, name) != 0) {
        guard->table = scope_map_table(guard->map, name);
    }
    if (sqlite3_preupdate_depth(db) == 0 && !is_allowed(guard, guard->table, op, &project)) {
        row_scope_deny(guard->txn, project);
    }
    guard->round += guard->table != NULL && guard->table->is_owner;
}

void sqlite_limit(struct weir_txn *txn, const struct weir_row_scope *scope)
{
    struct row_guard *guard = txn->connection->guard;
    txn->scope = scope;
    if (guard != NULL) {
        guard->txn = txn;
        guard->round++;
        (void)sqlite3_preupdate_hook(guard->db, scope != NULL ? check_row : NULL, guard);
    }
}

void sqlite_unlimit(struct weir_txn *txn)
{
    struct row_guard *guard = txn->connection->guard;
    if (guard != NULL) {
        guard->txn = NULL;
        (void)sqlite3_preupdate_hook(guard->db, NULL, NULL);
    }
}
