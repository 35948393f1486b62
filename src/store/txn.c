#include "store/store_private.h"

#include <string.h>

/** Set while this thread runs a transaction function. */
static _Thread_local bool is_in_transaction;

weir_status txn_run(struct weir_txn *txn, weir_txn_fn fn, void *context, struct weir_error *err)
{
    is_in_transaction = true;
    weir_status status = row_scope_set(txn, txn->scope, err);
    status = status == WEIR_OK ? fn(txn, context, err) : status;
    row_scope_end(txn);
    is_in_transaction = false;
    if (txn->n_open > 0) {
        connection_release_stmts(txn->connection);
    }
    if (txn->broken.status != WEIR_OK) {
        /* Whatever fn made of it, its writes are gone. */
        if (err != NULL) {
            *err = txn->broken;
        }
        return txn->broken.status;
    }
    return status;
}

bool txn_is_running(void)
{
    return is_in_transaction;
}

void weir_txn_mark(struct weir_txn *txn, uint64_t marks)
{
    txn->marks |= marks;
}

int64_t txn_changes(const struct weir_txn *txn)
{
    return txn->connection->ops->n_changed(txn->connection->db);
}

weir_status txn_has_table(const struct weir_txn *txn, const char *name, bool *out,
                          struct weir_error *err)
{
    const struct connection *connection = txn->connection;
    return connection_end(connection, connection->ops->has_table(connection->db, name, out),
                          "looking for a table", err);
}

weir_status weir_txn_exec(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                          size_t n_binds, int64_t *out_changes, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql, binds, n_binds, &stmt, err));
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (out_changes != NULL) {
        *out_changes = txn_changes(txn);
    }
    return WEIR_OK;
}

weir_status weir_txn_query_int(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                               size_t n_binds, int64_t fallback, int64_t *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql, binds, n_binds, &stmt, err));
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = has_row && !weir_stmt_is_null(stmt, 0) ? weir_stmt_int(stmt, 0) : fallback;
    return WEIR_OK;
}

weir_status weir_txn_query_texts(struct weir_txn *txn, const char *sql,
                                 const struct weir_bind *binds, size_t n_binds,
                                 struct weir_arena *arena, char ***out, size_t *out_n,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql, binds, n_binds, &stmt, err));
    char **texts = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        if (n == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            char **grown = WEIR_ARENA_ARRAY(arena, cap, char *);
            if (n > 0) {
                memcpy(grown, texts, n * sizeof *grown);
            }
            texts = grown;
        }
        texts[n++] = weir_stmt_text(stmt, 0, arena);
        WEIR_TRY(weir_arena_check(arena, "a list", err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = texts;
    *out_n = n;
    return WEIR_OK;
}

/** A query as the server. */
struct query {
    const char *sql;
    const struct weir_bind *binds;
    size_t n_binds;
    struct weir_arena *arena;
    char **texts;
    size_t n;
    int64_t number;
};

static weir_status query_texts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct query *query = context;
    return weir_txn_query_texts(txn, query->sql, query->binds, query->n_binds, query->arena,
                                &query->texts, &query->n, err);
}

static weir_status query_int(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct query *query = context;
    return weir_txn_query_int(txn, query->sql, query->binds, query->n_binds, query->number,
                              &query->number, err);
}

weir_status weir_txn_query_texts_of_all(struct weir_txn *txn, const char *sql,
                                        const struct weir_bind *binds, size_t n_binds,
                                        struct weir_arena *arena, char ***out, size_t *out_n,
                                        struct weir_error *err)
{
    struct query query = {.sql = sql, .binds = binds, .n_binds = n_binds, .arena = arena};
    WEIR_TRY(weir_txn_as(txn, NULL, query_texts, &query, err));
    *out = query.texts;
    *out_n = query.n;
    return WEIR_OK;
}

weir_status weir_txn_query_int_of_all(struct weir_txn *txn, const char *sql,
                                      const struct weir_bind *binds, size_t n_binds,
                                      int64_t fallback, int64_t *out, struct weir_error *err)
{
    struct query query = {.sql = sql, .binds = binds, .n_binds = n_binds, .number = fallback};
    WEIR_TRY(weir_txn_as(txn, NULL, query_int, &query, err));
    *out = query.number;
    return WEIR_OK;
}

static const char sql_counter_bump[] =
    "INSERT INTO counters (name, value) VALUES (:name, 1)"
    " ON CONFLICT (name) DO UPDATE SET value = counters.value + 1";
static const char sql_counter_get[] = "SELECT value FROM counters WHERE name = :name";

weir_status weir_txn_next(struct weir_txn *txn, const char *counter, int64_t *out,
                          struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_counter_bump, WEIR_BINDS(WEIR_BIND_TEXT("name", counter)), NULL,
                           err));
    return weir_txn_query_int(txn, sql_counter_get, WEIR_BINDS(WEIR_BIND_TEXT("name", counter)), 0,
                              out, err);
}
