#include "store/sqlite/sqlite.h"

#include "base/file.h"
#include "base/log.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** How long a statement waits for another process's lock (a person with the sqlite3 shell). */
#define BUSY_TIMEOUT_MS 5000

/** What a savepoint may need to go back by lies in memory up to so much, then in a file. With more SQLite fails: it writes
 *  what it has kept by one call, which takes 128 KiB less one byte. */
#define SAVEPOINT_MEMORY_BYTES 131071

/** "WEIR": marks our files, so that another program's database is not taken for ours. */
#define APPLICATION_ID 0x57454952

bool sqlite_exists(const char *path)
{
    return weir_path_exists(path);
}

static weir_status must(struct db *db, const char *sql, struct weir_error *err)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? WEIR_OK
                             : sqlite_fail(db, sqlite3_extended_errcode(db->handle), sql, err);
}

static weir_status query_int(struct db *db, const char *sql, int64_t *out, struct weir_error *err)
{
    return sqlite_query_int(db, sql, out) == DB_OK
               ? WEIR_OK
               : sqlite_fail(db, sqlite3_extended_errcode(db->handle), sql, err);
}

/** Claim a new file as ours; refuse one that another program has written. */
static weir_status check_owner(struct db *db, struct weir_error *err)
{
    int64_t id, n_tables;
    WEIR_TRY(query_int(db, "PRAGMA application_id", &id, err));
    if (id == APPLICATION_ID) {
        return WEIR_OK;
    }
    WEIR_TRY(query_int(db, "SELECT count(*) FROM sqlite_master", &n_tables, err));
    if (id != 0 || n_tables != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "this is the database of another program");
    }
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", APPLICATION_ID);
    return must(db, sql, err);
}

static weir_status set_up_writer(struct db *db, uint64_t max_bytes, struct weir_error *err)
{
    /* Before the first table, or it has no effect: then the file can shrink (store/space.h). */
    WEIR_TRY(must(db, "PRAGMA auto_vacuum = INCREMENTAL", err));
    WEIR_TRY(check_owner(db, err));
    /* FULL: a commit is on disk when it returns, also when the machine loses power. */
    WEIR_TRY(must(db,
                  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                  "PRAGMA journal_size_limit = 67108864",
                  err));
    if (max_bytes != 0) {
        int64_t page_bytes;
        WEIR_TRY(query_int(db, "PRAGMA page_size", &page_bytes, err));
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %llu",
                       (unsigned long long)WEIR_MAX(max_bytes / (uint64_t)page_bytes, 1));
        WEIR_TRY(must(db, sql, err));
    }
    return WEIR_OK;
}

/* Before the first connection of the process: later SQLite refuses it, and files do as well. */
static void configure_once(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, SAVEPOINT_MEMORY_BYTES);
}

/* The file PATH.lock, held by the connection that writes. */
static weir_status lock(struct db *db, const char *path, struct weir_error *err)
{
    char lock_path[4096];
    int len = snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    if (len < 0 || (size_t)len >= sizeof(lock_path)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "database path is longer than %zu bytes",
                              sizeof(lock_path));
    }
    weir_status status = weir_file_lock(lock_path, &db->lock_fd, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, status, "database %s: another server has it open", path);
    }
    return status;
}

static weir_status set_up(struct db *db, const struct db_config *config, struct weir_error *err)
{
    int code = sqlite3_open_v2(config->path, &db->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_EXRESCODE,
                               NULL);
    if (code != SQLITE_OK) {
        return sqlite_fail(db, code, "opening", err);
    }
    sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    WEIR_TRY(must(db,
                  "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
                  "PRAGMA cell_size_check = ON; PRAGMA case_sensitive_like = ON",
                  err));
    return config->is_reader ? must(db, "PRAGMA query_only = ON", err)
                             : set_up_writer(db, config->max_bytes, err);
}

weir_status sqlite_open(const struct db_config *config, struct db **out, struct weir_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, configure_once);
    struct db *db = calloc(1, sizeof *db);
    if (db == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening the database: out of memory");
    }
    db->is_reader = config->is_reader;
    db->lock_fd = -1;
    weir_status status;
    if (!config->is_reader) {
        WEIR_TRY_GOTO(lock(db, config->path, err), status, fail);
    }
    status = set_up(db, config, err);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "database %s: ", config->path);
        goto fail;
    }
    *out = db;
    return WEIR_OK;

fail:
    sqlite_close(db);
    return status;
}

void sqlite_close(struct db *db)
{
    if (sqlite3_close(db->handle) != SQLITE_OK) {
        weir_log(WEIR_LOG_ERROR, "store_close_failed",
                 WEIR_KV_STR("error", sqlite3_errmsg(db->handle)));
    }
    if (db->lock_fd >= 0) {
        (void)close(db->lock_fd);
    }
    free(db);
}
