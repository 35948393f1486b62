#include "store/store_private.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

weir_status connection_find(const char *path, struct weir_error *err)
{
    const struct db_ops *ops;
    WEIR_TRY(db_find(path, &ops, err));
    return ops->exists(path)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no database %s", path);
}

weir_status connection_open(const char *path, uint64_t max_bytes, bool is_reader,
                            struct connection *out, struct weir_error *err)
{
    struct connection connection = {.is_reader = is_reader};
    struct db_config config = {.path = path, .max_bytes = max_bytes, .is_reader = is_reader};
    WEIR_TRY(db_find(path, &connection.ops, err));
    WEIR_TRY(connection.ops->open(&config, &connection.db, err));
    *out = connection;
    return WEIR_OK;
}

void connection_close(struct connection *connection)
{
    for (size_t i = 0; i < connection->n_stmts; i++) {
        connection->ops->finalize(connection->stmts[i]->handle);
        free(connection->stmts[i]->sql);
        free(connection->stmts[i]);
    }
    connection->n_stmts = 0;
    connection->ops->unhide(connection);
    connection->ops->close(connection->db);
    connection->db = NULL;
}

void connection_release_stmts(struct connection *connection)
{
    for (size_t i = 0; i < connection->n_stmts; i++) {
        if (connection->stmts[i]->txn != NULL) {
            weir_log(WEIR_LOG_DEBUG, "store_statement_left_open",
                     WEIR_KV_STR("sql", connection->stmts[i]->sql));
            weir_stmt_close(connection->stmts[i]);
        }
    }
}

/* ---- what goes wrong --------------------------------------------------------------------------- */

bool weir_store_error_is_damage(const struct weir_error *err)
{
    return err->status == WEIR_ERR_CORRUPT && strstr(err->message, STORE_DAMAGED) != NULL;
}

weir_status connection_end(const struct connection *connection, enum db_end end, const char *what,
                           struct weir_error *err)
{
    if (end == DB_OK || end == DB_ROW) {
        return WEIR_OK;
    }
    struct weir_error told = {0};
    weir_status status = db_fail(end, what, connection->ops->message(connection->db), &told);
    if (end == DB_CORRUPT) {
        pulse_damaged(connection->pulse, told.message);
    } else if (end == DB_IO && connection->is_reader) {
        pulse_unread(connection->pulse, told.message);
    }
    if (err != NULL) {
        *err = told;
    }
    return status;
}

weir_status connection_exec(struct connection *connection, const char *sql, struct weir_error *err)
{
    return connection_end(connection, connection->ops->exec(connection->db, sql), sql, err);
}

weir_status connection_run(struct connection *connection, enum db_verb verb, struct weir_error *err)
{
    static const char *const what[] = {
        [DB_READ] = "beginning to read", [DB_WRITE] = "beginning to write",
        [DB_COMMIT] = "committing",      [DB_ROLLBACK] = "undoing a transaction",
        [DB_SAVE] = "a savepoint",       [DB_RELEASE] = "leaving a savepoint",
        [DB_UNDO] = "undoing a part",
    };
    return connection_end(connection, connection->ops->run(connection->db, verb), what[verb], err);
}

void connection_rollback(struct connection *connection)
{
    if (connection->ops->is_in_transaction(connection->db)) {
        (void)connection->ops->run(connection->db, DB_ROLLBACK);
    }
}

weir_status connection_check(struct connection *connection, bool (*is_over)(void *context),
                             void *context, char verdict[WEIR_ERROR_MESSAGE_BYTES],
                             struct weir_error *err)
{
    WEIR_TRY(connection_end(connection,
                            connection->ops->check(connection->db, is_over, context, verdict),
                            "checking the database", err));
    return verdict[0] == '\0'
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, STORE_DAMAGED ": %.200s", verdict);
}
