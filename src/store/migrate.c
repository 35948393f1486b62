#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "store/store_private.h"

#include <inttypes.h>
#include <string.h>

static const char sql_table[] = "CREATE TABLE IF NOT EXISTS schema_migrations ("
                                "version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL,"
                                "sha256 TEXT NOT NULL, applied_ms BIGINT NOT NULL)";
static const char sql_newer[] = "SELECT max(version) FROM schema_migrations";
static const char sql_applied[] = "SELECT sha256 FROM schema_migrations WHERE version = :version";
static const char sql_record[] = "INSERT INTO schema_migrations (version, name, sha256, applied_ms)"
                                 " VALUES (:version, :name, :sha256, :applied_ms)";

/** Is the migration there already, and still the one that was applied? */
static weir_status check_applied(struct weir_txn *txn, const struct migration *migration,
                                 const char *sha256, bool *out_is_applied, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql_applied,
                            WEIR_BINDS(WEIR_BIND_INT("version", migration->version)), &stmt, err));
    bool has_row;
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    if (has_row && strcmp(weir_stmt_peek(stmt, 0, NULL), sha256) != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "migration %s is not the one this database was made with: it was "
                              "changed after it had been applied",
                              migration->name);
    }
    *out_is_applied = has_row;
    return WEIR_OK;
}

static weir_status apply(struct connection *connection, struct weir_txn *txn,
                         const struct migration *migration, const char *sha256,
                         struct weir_error *err)
{
    WEIR_TRY(connection_end(connection, connection->ops->exec(connection->db, migration->sql),
                            "applying it", err));
    WEIR_TRY(weir_txn_exec(txn, sql_record,
                           WEIR_BINDS(WEIR_BIND_INT("version", migration->version),
                                      WEIR_BIND_TEXT("name", migration->name),
                                      WEIR_BIND_TEXT("sha256", sha256),
                                      WEIR_BIND_INT("applied_ms", weir_time_ms())),
                           NULL, err));
    weir_log(WEIR_LOG_DEBUG, "store_migrated", WEIR_KV_STR("migration", migration->name));
    return WEIR_OK;
}

/** In a transaction. */
static weir_status apply_missing(struct connection *connection, const struct migration *migrations,
                                 size_t n_migrations, struct weir_error *err)
{
    struct weir_txn txn = {.connection = connection};
    for (size_t i = 0; i < n_migrations; i++) {
        char sha256[WEIR_SHA256_TEXT_BYTES];
        weir_sha256(migrations[i].sql, strlen(migrations[i].sql), sha256);
        bool is_applied = false;
        WEIR_TRY(check_applied(&txn, &migrations[i], sha256, &is_applied, err));
        weir_status status =
            is_applied ? WEIR_OK : apply(connection, &txn, &migrations[i], sha256, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "migration %s: ", migrations[i].name);
        }
    }
    return WEIR_OK;
}

weir_status migrate(struct connection *connection, const struct migration *migrations,
                    size_t n_migrations, struct weir_error *err)
{
    WEIR_TRY(connection_exec(connection, sql_table, err));
    struct weir_txn txn = {.connection = connection};
    int64_t newest;
    WEIR_TRY(weir_txn_query_int(&txn, sql_newer, WEIR_NO_BINDS, 0, &newest, err));
    int64_t known = n_migrations > 0 ? migrations[n_migrations - 1].version : 0;
    if (newest > known) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the database was written by a newer Weir (migration %" PRId64
                              ", this one knows %" PRId64 "): upgrade Weir",
                              newest, known);
    }
    WEIR_TRY(connection_run(connection, DB_WRITE, err));
    weir_status status = apply_missing(connection, migrations, n_migrations, err);
    status = status == WEIR_OK ? connection_run(connection, DB_COMMIT, err) : status;
    if (status != WEIR_OK) {
        connection_rollback(connection);
    }
    return status;
}
