/**
 * SQLite's driver (store/db.h): one file, in write-ahead mode. The only header of Weir that includes sqlite3.h.
 */
#ifndef WEIR_STORE_SQLITE_SQLITE_H
#define WEIR_STORE_SQLITE_SQLITE_H

#include "store/db.h"

#define SQLITE_ENABLE_PREUPDATE_HOOK /* declares it; Debian's library has it */
#include <sqlite3.h>

struct db {
    sqlite3 *handle;
    bool is_reader;
    int lock_fd; /**< The writing connection holds it while it is open. -1: none. */
};

/** What a result code of SQLite's is. */
enum db_end sqlite_end(const struct db *db, int code);

/** db_fail of a result code. */
weir_status sqlite_fail(const struct db *db, int code, const char *what, struct weir_error *err);

/** The integer in the first column of the only row. */
enum db_end sqlite_query_int(struct db *db, const char *sql, int64_t *out);

/* sqlite/open.c */
bool sqlite_exists(const char *path);
weir_status sqlite_open(const struct db_config *config, struct db **out,
                        struct weir_error *err) WEIR_MUST_CHECK;
void sqlite_close(struct db *db);

/* sqlite/file.c */
enum db_end sqlite_check(struct db *db, bool (*is_over)(void *context), void *context,
                         char verdict[WEIR_ERROR_MESSAGE_BYTES]);
weir_status sqlite_copy(struct db *db, const char *copy_path,
                        struct weir_error *err) WEIR_MUST_CHECK;
enum db_end sqlite_space(struct db *db, struct weir_store_space *out);
enum db_end sqlite_shrink(struct db *db, int64_t n_pages);

/* sqlite/guard.c */
weir_status sqlite_hide(struct connection *connection, struct weir_error *err) WEIR_MUST_CHECK;
void sqlite_unhide(struct connection *connection);
weir_status sqlite_write_scoped(const struct connection *connection, bool is_proven,
                                const char *sql, struct weir_buf *out,
                                struct weir_error *err) WEIR_MUST_CHECK;
void sqlite_limit(struct weir_txn *txn, const struct weir_row_scope *scope);
void sqlite_unlimit(struct weir_txn *txn);

#endif
