#include "store/store_private.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/** How long a statement waits for another process's lock (a person with the sqlite3 shell). */
#define BUSY_TIMEOUT_MS 5000

/** What a savepoint may need to go back by lies in memory up to so much, then in a file. With more SQLite fails: it writes
 *  what it has kept by one call, which takes 128 KiB less one byte. */
#define SAVEPOINT_MEMORY_BYTES 131071

/** "WEIR": marks our files, so that another program's database is not taken for ours. */
#define APPLICATION_ID 0x57454952

static weir_status status_from_code(const struct connection *connection, int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return WEIR_ERR_NOSPACE;
    case SQLITE_IOERR:
        /* Not every path inside SQLite turns ENOSPC into SQLITE_FULL: the shared memory does not.
         */
        if (connection->db != NULL && sqlite3_system_errno(connection->db) == ENOSPC) {
            return WEIR_ERR_NOSPACE;
        }
        return WEIR_ERR_IO;
    case SQLITE_CANTOPEN:
        return WEIR_ERR_IO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return WEIR_ERR_CORRUPT;
    case SQLITE_NOMEM:
        return WEIR_ERR_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return WEIR_ERR_UNAVAILABLE;
    case SQLITE_READONLY:
        /* The writer's own file: nobody has to be refused anything, the disk has become read-only. */
        return connection->db != NULL && !connection->is_reader ? WEIR_ERR_IO : WEIR_ERR_DENIED;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return WEIR_ERR_DENIED;
    case SQLITE_TOOBIG:
        return WEIR_ERR_LIMIT;
    case SQLITE_CONSTRAINT:
        break;
    default:
        return WEIR_ERR_INTERNAL;
    }
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return WEIR_ERR_EXISTS;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return WEIR_ERR_CONFLICT;
    default:
        return WEIR_ERR_INVALID;
    }
}

/* What is wrong with the database or its disk is told in words of their own; the statement that met it is for the log. */
static weir_status disk_error(const struct connection *connection, weir_status status, int code,
                              const char *what, const char *text, struct weir_error *err)
{
    struct weir_error told = {0};
    switch (status) {
    case WEIR_ERR_NOSPACE:
        (void)weir_error_set(&told, status,
                             "the database cannot grow: the disk is full or its maximum size is "
                             "reached: make room on the disk of the state folder");
        break;
    case WEIR_ERR_CORRUPT:
        (void)weir_error_set(&told, status,
                             STORE_DAMAGED " or is no database (%s): stop the server and `weir "
                                           "restore` the last backup",
                             text);
        pulse_damaged(connection->pulse, told.message);
        break;
    default:
        (void)weir_error_set(&told, status,
                             "the database's disk failed (%s): look at the disk of the state "
                             "folder (dmesg, mount)",
                             text);
        if ((code & 0xff) == SQLITE_IOERR && connection->is_reader) {
            pulse_unread(connection->pulse, told.message);
        }
    }
    weir_log(WEIR_LOG_DEBUG, "store_error", WEIR_KV_STR("error", text), WEIR_KV_STR("at", what));
    if (err != NULL) {
        *err = told;
    }
    return status;
}

bool weir_store_error_is_damage(const struct weir_error *err)
{
    return err->status == WEIR_ERR_CORRUPT && strstr(err->message, STORE_DAMAGED) != NULL;
}

weir_status connection_error(const struct connection *connection, int code, const char *what,
                             struct weir_error *err)
{
    weir_status status = status_from_code(connection, code);
    const char *text =
        connection->db != NULL ? sqlite3_errmsg(connection->db) : sqlite3_errstr(code);
    switch (status) {
    case WEIR_ERR_NOSPACE:
    case WEIR_ERR_CORRUPT:
    case WEIR_ERR_IO:
        return disk_error(connection, status, code, what, text, err);
    case WEIR_ERR_EXISTS:
        return weir_error_set(err, status, "%s: exists already (%s)", what, text);
    case WEIR_ERR_CONFLICT:
        return weir_error_set(
            err, status, "%s: refers to something that does not exist, or is referred to", what);
    case WEIR_ERR_DENIED:
        return weir_error_set(err, status, "%s: not allowed to write (%s)", what, text);
    case WEIR_ERR_UNAVAILABLE:
        return weir_error_set(err, status, "%s: another process has locked the database", what);
    default:
        return weir_error_set(err, status, "%s: %s", what, text);
    }
}

weir_status connection_exec(struct connection *connection, const char *sql, struct weir_error *err)
{
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK) {
        return connection_error(connection, sqlite3_extended_errcode(connection->db), sql, err);
    }
    return WEIR_OK;
}

static weir_status query_int(struct connection *connection, const char *sql, int64_t *out,
                             struct weir_error *err)
{
    sqlite3_stmt *handle = NULL;
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &handle, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(handle);
    }
    if (code != SQLITE_ROW) {
        weir_status status =
            connection_error(connection, sqlite3_extended_errcode(connection->db), sql, err);
        sqlite3_finalize(handle);
        return status;
    }
    *out = sqlite3_column_int64(handle, 0);
    sqlite3_finalize(handle);
    return WEIR_OK;
}

/** Claim a new file as ours; refuse one that another program has written. */
static weir_status check_owner(struct connection *connection, struct weir_error *err)
{
    int64_t id, n_tables;
    WEIR_TRY(query_int(connection, "PRAGMA application_id", &id, err));
    if (id == APPLICATION_ID) {
        return WEIR_OK;
    }
    WEIR_TRY(query_int(connection, "SELECT count(*) FROM sqlite_master", &n_tables, err));
    if (id != 0 || n_tables != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "this is the database of another program");
    }
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", APPLICATION_ID);
    return connection_exec(connection, sql, err);
}

static weir_status set_up_writer(struct connection *connection, uint64_t max_bytes,
                                 struct weir_error *err)
{
    /* Before the first table, or it has no effect: then the file can shrink (store/space.h). */
    WEIR_TRY(connection_exec(connection, "PRAGMA auto_vacuum = INCREMENTAL", err));
    WEIR_TRY(check_owner(connection, err));
    /* FULL: a commit is on disk when it returns, also when the machine loses power. */
    WEIR_TRY(connection_exec(connection,
                             "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                             "PRAGMA journal_size_limit = 67108864",
                             err));
    if (max_bytes != 0) {
        int64_t page_bytes;
        WEIR_TRY(query_int(connection, "PRAGMA page_size", &page_bytes, err));
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %llu",
                       (unsigned long long)WEIR_MAX(max_bytes / (uint64_t)page_bytes, 1));
        WEIR_TRY(connection_exec(connection, sql, err));
    }
    return WEIR_OK;
}

/* Before the first connection of the process: later SQLite refuses it, and files do as well. */
static void configure_once(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, SAVEPOINT_MEMORY_BYTES);
}

weir_status connection_open(const char *path, uint64_t max_bytes, bool is_reader,
                            struct connection *out, struct weir_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct connection connection = {.is_reader = is_reader};
    (void)pthread_once(&once, configure_once);
    int code = sqlite3_open_v2(path, &connection.db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_EXRESCODE,
                               NULL);
    weir_status status;
    if (code != SQLITE_OK) {
        status = connection_error(&connection, code, "opening", err);
        goto fail;
    }
    sqlite3_busy_timeout(connection.db, BUSY_TIMEOUT_MS);
    WEIR_TRY_GOTO(connection_exec(&connection,
                                  "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
                                  "PRAGMA cell_size_check = ON",
                                  err),
                  status, fail);
    if (is_reader) {
        WEIR_TRY_GOTO(connection_exec(&connection, "PRAGMA query_only = ON", err), status, fail);
    } else {
        WEIR_TRY_GOTO(set_up_writer(&connection, max_bytes, err), status, fail);
    }
    *out = connection;
    return WEIR_OK;

fail:
    sqlite3_close(connection.db);
    (void)weir_error_prefix(err, "database %s: ", path);
    return status;
}

void connection_close(struct connection *connection)
{
    for (size_t i = 0; i < connection->n_stmts; i++) {
        sqlite3_finalize(connection->stmts[i]->handle);
        free(connection->stmts[i]->sql);
        free(connection->stmts[i]);
    }
    connection->n_stmts = 0;
    row_scope_release(connection);
    if (sqlite3_close(connection->db) != SQLITE_OK) {
        weir_log(WEIR_LOG_ERROR, "store_close_failed",
                 WEIR_KV_STR("error", sqlite3_errmsg(connection->db)));
    }
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
