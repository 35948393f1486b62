#include "store/stmt.h"

#include "base/hash.h"
#include "base/log.h"

#include "store/scope_proven.h"
#include "store/store_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/** Steps of the database's machine (store/db.h) from which on the log tells of one use of a statement: for who
 *  looks for what is slow, and for everybody. */
#define COSTLY_STEPS 100000
#define SLOW_STEPS   30000000

/** Longest statement. */
#define TEXT_MAX_BYTES (1 << 20)

/** After one of these the database may have undone the whole transaction, so it must not go on. */
static bool breaks_transaction(weir_status status)
{
    return status == WEIR_ERR_NOSPACE || status == WEIR_ERR_IO || status == WEIR_ERR_CORRUPT ||
           status == WEIR_ERR_NOMEM || status == WEIR_ERR_UNAVAILABLE;
}

static weir_status tell_broken(const struct weir_txn *txn, struct weir_error *err)
{
    if (err != NULL) {
        *err = txn->broken;
    }
    return txn->broken.status;
}

static weir_status end(struct weir_txn *txn, enum db_end end, const char *what,
                       struct weir_error *err)
{
    struct weir_error error = {0};
    if (end == DB_OK) {
        return WEIR_OK;
    }
    weir_status status = connection_end(txn->connection, end, what, &error);
    if (breaks_transaction(status) && txn->broken.status == WEIR_OK) {
        txn->broken = error;
    }
    if (err != NULL) {
        *err = error;
    }
    return status;
}

static void stmt_free(struct weir_stmt *stmt)
{
    if (stmt->handle != NULL) {
        stmt->ops->finalize(stmt->handle);
    }
    free(stmt->sql);
    free(stmt);
}

static struct weir_stmt *cache_find(struct connection *connection, const char *sql, uint64_t hash,
                                    enum stmt_kind kind)
{
    for (size_t i = 0; i < connection->n_stmts; i++) {
        struct weir_stmt *stmt = connection->stmts[i];
        if (stmt->hash == hash && stmt->txn == NULL && stmt->kind == kind &&
            strcmp(stmt->sql, sql) == 0) {
            return stmt;
        }
    }
    return NULL;
}

/** Keep a new statement, in place of the least recently used one if there is no room. */
static void cache_add(struct connection *connection, struct weir_stmt *stmt)
{
    size_t i_slot = connection->n_stmts;
    if (i_slot == STMT_CACHE_MAX) {
        uint64_t oldest = UINT64_MAX;
        for (size_t i = 0; i < STMT_CACHE_MAX; i++) {
            if (connection->stmts[i]->txn == NULL && connection->stmts[i]->last_use < oldest) {
                oldest = connection->stmts[i]->last_use;
                i_slot = i;
            }
        }
        if (i_slot == STMT_CACHE_MAX) {
            return; /* All are in use: this one lives until it is closed. */
        }
        stmt_free(connection->stmts[i_slot]);
    } else {
        connection->n_stmts++;
    }
    connection->stmts[i_slot] = stmt;
    stmt->is_cached = true;
}

/* The statement in `text`, which runs in place of `sql`. */
static weir_status stmt_new(struct weir_txn *txn, const char *sql, const char *text,
                            struct weir_stmt **out, struct weir_error *err)
{
    struct weir_stmt *stmt = calloc(1, sizeof(*stmt));
    char *copy = strdup(sql);
    if (stmt == NULL || copy == NULL) {
        free(stmt);
        free(copy);
        return weir_error_set(err, WEIR_ERR_NOMEM, "preparing a statement: out of memory");
    }
    stmt->sql = copy;
    stmt->ops = txn->connection->ops;
    enum db_end code = stmt->ops->prepare(txn->connection->db, text, &stmt->handle);
    if (code != DB_OK) {
        stmt_free(stmt);
        return end(txn, code, sql, err);
    }
    cache_add(txn->connection, stmt);
    *out = stmt;
    return WEIR_OK;
}

static weir_status bind_all(struct weir_stmt *stmt, const struct weir_bind *binds, size_t n_binds,
                            struct weir_error *err)
{
    for (size_t i = 0; i < n_binds; i++) {
        char name[64] = "";
        int i_param = (int)i + 1;
        if (binds[i].name != NULL) {
            (void)snprintf(name, sizeof(name), ":%s", binds[i].name);
            i_param = stmt_find_param(stmt, name);
        }
        if (i_param == 0) {
            return weir_error_set(err, WEIR_ERR_INTERNAL, "the statement has no parameter %s: %s",
                                  name, stmt->sql);
        }
        switch (binds[i].type) {
        case WEIR_BIND_TYPE_TEXT:
            WEIR_TRY(stmt_bind_text(stmt, i_param, binds[i].text, err));
            break;
        case WEIR_BIND_TYPE_INT:
            WEIR_TRY(stmt_bind_int(stmt, i_param, binds[i].i64, err));
            break;
        case WEIR_BIND_TYPE_F64:
            WEIR_TRY(stmt_bind_f64(stmt, i_param, binds[i].f64, err));
            break;
        }
    }
    int i_project = stmt->kind == STMT_PROVEN ? stmt_find_param(stmt, SCOPE_PROVEN_PARAMETER) : 0;
    if (stmt->kind == STMT_PROVEN && i_project == 0) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "the statement names no project: %s",
                              stmt->sql);
    }
    return i_project != 0 ? stmt_bind_text(stmt, i_project, stmt->project, err) : WEIR_OK;
}

/* As stmt_new, in a text that holds to the scope. */
static weir_status stmt_new_scoped(struct weir_txn *txn, const char *sql, bool is_proven,
                                   struct weir_stmt **out, struct weir_error *err)
{
    struct weir_buf text;
    weir_buf_init(&text, TEXT_MAX_BYTES);
    weir_status status =
        txn->connection->ops->write_scoped(txn->connection, is_proven, sql, &text, err);
    if (status == WEIR_OK) {
        status = stmt_new(txn, sql, text.data, out, err);
    }
    weir_buf_fini(&text);
    return status;
}

static weir_status open_stmt(struct weir_txn *txn, const char *sql, enum stmt_kind kind,
                             struct weir_stmt **out, struct weir_error *err)
{
    if (txn->broken.status != WEIR_OK) {
        return tell_broken(txn, err);
    }
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, sql);
    struct weir_stmt *stmt = cache_find(txn->connection, sql, hash, kind);
    if (stmt == NULL) {
        WEIR_TRY(kind == STMT_UNSCOPED
                     ? stmt_new(txn, sql, sql, &stmt, err)
                     : stmt_new_scoped(txn, sql, kind == STMT_PROVEN, &stmt, err));
        stmt->hash = hash;
        stmt->kind = kind;
    }
    stmt->txn = txn;
    stmt->last_use = ++txn->connection->n_uses;
    txn->n_open++;
    *out = stmt;
    return WEIR_OK;
}

/* Bind what was opened; on failure it is given back. */
static weir_status bind_opened(struct weir_stmt *stmt, const struct weir_bind *binds,
                               size_t n_binds, struct weir_stmt **out, struct weir_error *err)
{
    weir_status status = bind_all(stmt, binds, n_binds, err);
    if (status != WEIR_OK) {
        weir_stmt_close(stmt);
        return status;
    }
    *out = stmt;
    return WEIR_OK;
}

weir_status weir_stmt_open(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                           size_t n_binds, struct weir_stmt **out, struct weir_error *err)
{
    struct weir_stmt *stmt;
    WEIR_TRY(open_stmt(txn, sql, STMT_SCOPED, &stmt, err));
    return bind_opened(stmt, binds, n_binds, out, err);
}

weir_status weir_stmt_open_proven(struct weir_txn *txn, struct weir_proven proven, const char *sql,
                                  const struct weir_bind *binds, size_t n_binds,
                                  struct weir_stmt **out, struct weir_error *err)
{
    struct weir_stmt *stmt;
    if (!row_scope_has_proven(txn, proven)) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "the scope has no such project: %.300s", sql);
    }
    WEIR_TRY(open_stmt(txn, sql, STMT_PROVEN, &stmt, err));
    stmt->project = *proven.project;
    return bind_opened(stmt, binds, n_binds, out, err);
}

weir_status stmt_open_unscoped(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                               size_t n_binds, struct weir_stmt **out, struct weir_error *err)
{
    struct weir_stmt *stmt;
    WEIR_TRY(open_stmt(txn, sql, STMT_UNSCOPED, &stmt, err));
    return bind_opened(stmt, binds, n_binds, out, err);
}

weir_status weir_stmt_rebind(struct weir_stmt *stmt, const struct weir_bind *binds, size_t n_binds,
                             struct weir_error *err)
{
    stmt->ops->reset(stmt->handle);
    return bind_all(stmt, binds, n_binds, err);
}

int stmt_find_param(const struct weir_stmt *stmt, const char *name)
{
    return stmt->ops->find_param(stmt->handle, name);
}

weir_status stmt_bind_text(struct weir_stmt *stmt, int i_param, const char *text,
                           struct weir_error *err)
{
    struct weir_txn *txn = stmt->txn;
    return end(txn, stmt->ops->bind_text(txn->connection->db, stmt->handle, i_param, text),
               "binding text", err);
}

weir_status stmt_bind_taken(struct weir_stmt *stmt, int i_param, char *text, struct weir_error *err)
{
    struct weir_txn *txn = stmt->txn;
    return end(txn, stmt->ops->bind_taken(txn->connection->db, stmt->handle, i_param, text),
               "binding text", err);
}

weir_status stmt_bind_int(struct weir_stmt *stmt, int i_param, int64_t value,
                          struct weir_error *err)
{
    struct weir_txn *txn = stmt->txn;
    return end(txn, stmt->ops->bind_int(txn->connection->db, stmt->handle, i_param, value),
               "binding an integer", err);
}

weir_status stmt_bind_f64(struct weir_stmt *stmt, int i_param, double value, struct weir_error *err)
{
    struct weir_txn *txn = stmt->txn;
    return end(txn, stmt->ops->bind_f64(txn->connection->db, stmt->handle, i_param, value),
               "binding a number", err);
}

weir_status weir_stmt_step(struct weir_stmt *stmt, bool *out_has_row, struct weir_error *err)
{
    if (stmt->txn->broken.status != WEIR_OK) {
        return tell_broken(stmt->txn, err);
    }
    enum db_end code = stmt->ops->step(stmt->txn->connection->db, stmt->handle);
    if (stmt->txn->broken.status != WEIR_OK) { /* it has changed a row that is out of scope */
        return tell_broken(stmt->txn, err);
    }
    if (code != DB_ROW) {
        WEIR_TRY(end(stmt->txn, code, stmt->sql, err));
    }
    *out_has_row = code == DB_ROW;
    return WEIR_OK;
}

char *weir_stmt_text(const struct weir_stmt *stmt, int i_column, struct weir_arena *arena)
{
    size_t len;
    const char *text = stmt->ops->column_text(stmt->handle, i_column, &len);
    return text != NULL ? weir_arena_memdup(arena, text, len) : NULL;
}

const char *weir_stmt_peek(const struct weir_stmt *stmt, int i_column, size_t *out_len)
{
    size_t len;
    return stmt->ops->column_text(stmt->handle, i_column, out_len != NULL ? out_len : &len);
}

int64_t weir_stmt_int(const struct weir_stmt *stmt, int i_column)
{
    return stmt->ops->column_int(stmt->handle, i_column);
}

double weir_stmt_f64(const struct weir_stmt *stmt, int i_column)
{
    return stmt->ops->column_f64(stmt->handle, i_column);
}

bool weir_stmt_is_null(const struct weir_stmt *stmt, int i_column)
{
    return stmt->ops->column_is_null(stmt->handle, i_column);
}

json_t *weir_stmt_json(const struct weir_stmt *stmt, int i_column)
{
    size_t len;
    const char *text = weir_stmt_peek(stmt, i_column, &len);
    return text != NULL ? json_loadb(text, len, 0, NULL) : NULL;
}

/** What reads more than it gives grows with what the database holds, until somebody notices: say so before. */
static void note_cost(struct weir_stmt *stmt)
{
    int64_t n_steps = stmt->ops->take_cost(stmt->handle);
    if (n_steps >= COSTLY_STEPS) {
        weir_log(n_steps >= SLOW_STEPS ? WEIR_LOG_INFO : WEIR_LOG_DEBUG, "store_statement_costly",
                 WEIR_KV_INT("steps", n_steps), WEIR_KV_STR("sql", stmt->sql));
    }
}

void weir_stmt_close(struct weir_stmt *stmt)
{
    if (stmt == NULL) {
        return;
    }
    note_cost(stmt);
    assert(stmt->txn != NULL && stmt->txn->n_open > 0);
    stmt->txn->n_open--;
    stmt->txn = NULL;
    if (!stmt->is_cached) {
        stmt_free(stmt);
        return;
    }
    stmt->ops->reset(stmt->handle);
}

void weir_stmt_auto_close(struct weir_stmt **stmt)
{
    weir_stmt_close(*stmt);
}
