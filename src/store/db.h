/**
 * Databases: what the store asks of one, as a table of operations.
 *
 * Three nouns, as in every database. A *driver* is a kind of database (`databases.def`), with its operations in
 * `struct db_ops`. A `struct db` is one connection, and a `struct db_stmt` one prepared statement of it: each driver
 * has its own struct of that name, or none, and nobody else looks into it. store/connection.h's `struct connection`
 * stands before a `struct db` with a cache of statements; store/stmt.h, store/table.h and the writer go through the
 * table, and so does all SQL. A driver is one folder beside its line in `databases.def`.
 *
 * What the SQL outside of a driver may be is what the databases share; tests/lint/dialect.py refuses the rest.
 *
 * What a driver must hold:
 * - Parameters are `:name`, in any order and as often as the statement says; what has no value is NULL. Integers
 *   have 64 bits, reals are IEEE doubles, a truth value is an integer 0 or 1; text is UTF-8 and compares by its
 *   bytes, in =, ORDER BY, keys and ranges: the cursors of lists rely on it (PostgreSQL: COLLATE "C"). NULL sorts
 *   first. LIKE looks at case, and nothing in its pattern is escaped.
 * - A hint for one database's planner stands in a comment that begins with a plus sign, as in job/job.c; its driver
 *   makes it part of the statement.
 * - A reading transaction sees the commits before its first statement, and none that come later. A writing one sees
 *   all that is committed, and what it has written itself; a savepoint undoes the last part alone.
 * - A transaction function may run more than once and has no effect but on the database (store/store.h): a driver
 *   that must refuse a transaction for another's sake (a serialisation failure) answers DB_BUSY; the
 *   writer then runs each transaction of the group once more, alone, and one that fails alone is UNAVAILABLE.
 * - Writers: the store has one writing connection, which its thread owns, and groups what waits into one commit.
 *   `open` of it refuses a second one (DB's own lock), so that nobody else changes the database, and the store's
 *   change counter and its watches need not ask it. A driver that lets several servers write must tell each of the
 *   others' commits (PostgreSQL: LISTEN and NOTIFY in the commit): that duty is added to the table with it.
 * - Scope: `limit` makes every statement of a transaction, whatever its SQL is, read rows of its projects alone; an
 *   UPDATE or DELETE leaves out all others; a row that would come, go or become another project's breaks the whole
 *   transaction as DENIED. store/row_scope.h has the law, and scope_property_test.c holds it.
 * - Functions in SQL: beside those of the SQL standard instr(text, part); weir_now_ms(), the time of the
 *   database's clock; and weir_live (store/live.h), which answers with a live value in place of the stored one.
 * - Migrations are the driver's own. Those of src/store/migrations are SQLite's, and stay: what a released version has
 *   applied is never changed. A driver that comes later begins with one file that makes the tables as they are then,
 *   numbered as the last migration of that day; from there on each change is written for every driver.
 *
 * Threads: a `struct db` is used by one thread at a time; different ones at the same time.
 */
#ifndef WEIR_STORE_DB_H
#define WEIR_STORE_DB_H

#include "base/buf.h"
#include "base/kind.h"
#include "base/status.h"

/** With this begins, or is told, that the database is damaged: weir_store_error_is_damage. */
#define STORE_DAMAGED "the database is damaged"

struct connection;
struct live;
struct weir_row_scope;
struct weir_store_space;
struct weir_txn;

struct db;
struct db_stmt;

/** How an operation ended. A driver translates its codes into these; what they say to people is said once, by db_fail. */
enum db_end {
    DB_OK,      /**< Done; a step has come to the end of the rows. */
    DB_ROW,     /**< A step has come to a row. */
    DB_FULL,    /**< No room on the disk, or the largest size is reached. */
    DB_IO,      /**< Its disk failed. */
    DB_AWAY,    /**< It cannot be opened, or not be written: the file, its disk or its server. */
    DB_CORRUPT, /**< Damaged, or no database. */
    DB_NOMEM,
    DB_BUSY, /**< Another process has locked it; or the transaction is refused for another's sake. */
    DB_READ_ONLY, /**< A write in a reading transaction. */
    DB_TOO_LARGE, /**< A value or a statement. */
    DB_EXISTS,    /**< A unique column has that value. */
    DB_REFERENCE, /**< To what is not there; or to what would go. */
    DB_INVALID,   /**< Any other rule of a table. */
    DB_ERROR,     /**< The statement is wrong, or the driver is. */
};

/** What is done to a transaction and to the one savepoint in it. */
enum db_verb { DB_READ, DB_WRITE, DB_COMMIT, DB_ROLLBACK, DB_SAVE, DB_RELEASE, DB_UNDO };

struct db_config {
    const char *path;
    uint64_t max_bytes; /**< Size that it may grow to; 0: any. */
    bool is_reader;     /**< Refuses writes. Else it is the one connection that writes. */
};

/** One change of the tables. */
struct migration {
    int64_t version;
    const char *name;
    const char *sql; /**< NUL-terminated. */
};

/** After any end but DB_OK and DB_ROW a transaction may be undone (is_in_transaction tells) or go on, as the database
 *  has it; the connection stays good, and its statements must be reset. Nothing is NULL. */
struct db_ops {
    /** All, in order. */
    const struct migration *(*migrations)(size_t *out_n);

    /** Is there a database? */
    bool (*exists)(const char *path);
    /**
     * Connect; a writing connection makes the database if it is missing.
     * @return CONFLICT if another process has the writing connection; CORRUPT if it is no database or another program's;
     *         db_fail's statuses. The message says which database.
     */
    weir_status (*open)(const struct db_config *config, struct db **out, struct weir_error *err);
    /** With its statements finalized. */
    void (*close)(struct db *db);
    /** What the database says of the last operation, which has failed. It lives until the next one. */
    const char *(*message)(const struct db *db);

    /** Run statements that take no values and give no rows, with ; between them. */
    enum db_end (*exec)(struct db *db, const char *sql);
    enum db_end (*run)(struct db *db, enum db_verb verb);
    bool (*is_in_transaction)(const struct db *db);
    int64_t (*n_changed)(const struct db *db); /**< Rows that the last statement has changed. */
    int64_t (*n_changes)(
        const struct db *db); /**< That all have, since it was opened; also what was undone. */
    enum db_end (*has_table)(struct db *db, const char *name, bool *out);
    /** Call fn with the name of each table that migrations have made, in the order of their names. */
    enum db_end (*each_table)(struct db *db, void (*fn)(void *context, const char *name),
                              void *context);

    /** Make one statement, which the caller keeps and finalizes. */
    enum db_end (*prepare)(struct db *db, const char *sql, struct db_stmt **out);
    int (*find_param)(struct db_stmt *stmt,
                      const char *name); /**< ":name"; from 1 on; 0: there is none. */
    /** Text is borrowed until the reset. NULL and NaN are NULL. */
    enum db_end (*bind_text)(struct db *db, struct db_stmt *stmt, int i_param, const char *text);
    /** The same, but text of malloc is taken: it is freed with the binding, and when that fails. */
    enum db_end (*bind_taken)(struct db *db, struct db_stmt *stmt, int i_param, char *text);
    enum db_end (*bind_int)(struct db *db, struct db_stmt *stmt, int i_param, int64_t value);
    enum db_end (*bind_f64)(struct db *db, struct db_stmt *stmt, int i_param, double value);
    enum db_end (*step)(struct db *db, struct db_stmt *stmt);
    /** Read the row, columns from 0 on; NULL reads as NULL, 0 and NaN. Text lives until the next step or reset. */
    const char *(*column_text)(struct db_stmt *stmt, int i_column, size_t *out_len);
    int64_t (*column_int)(struct db_stmt *stmt, int i_column);
    double (*column_f64)(struct db_stmt *stmt, int i_column);
    bool (*column_is_null)(struct db_stmt *stmt, int i_column);
    /** Steps of its machine since this was asked last, each some 20 to 50 ns; 0: it does not tell. */
    int64_t (*take_cost)(struct db_stmt *stmt);
    void (*reset)(struct db_stmt *stmt); /**< As it was prepared: no row, no values. */
    void (*finalize)(struct db_stmt *stmt);

    /** Let statements use the functions of ours. */
    enum db_end (*add_functions)(struct db *db, struct live *live);
    /** Set a connection up for transactions in scopes; and release what that took. */
    weir_status (*hide)(struct connection *connection, struct weir_error *err);
    void (*unhide)(struct connection *connection);
    /** Append the text that is prepared in place of `sql`, on a connection that serves scopes or not; is_proven: for a
     *  project of the scope (store/scope_proven.h). @return INTERNAL if it names a table past its scope. */
    weir_status (*write_scoped)(const struct connection *connection, bool is_proven,
                                const char *sql, struct weir_buf *out, struct weir_error *err);
    /** From now on the transaction is in this scope; NULL: it sees all. On a connection that was hidden from. */
    void (*limit)(struct weir_txn *txn, const struct weir_row_scope *scope);
    /** The transaction ends. */
    void (*unlimit)(struct weir_txn *txn);

    /** Look for damage. @param is_over  Asked now and then: true ends it with DB_ERROR. NULL: never.
     *  @param verdict  The first thing that is wrong, with DB_OK; "": nothing is. */
    enum db_end (*check)(struct db *db, bool (*is_over)(void *context), void *context,
                         char verdict[WEIR_ERROR_MESSAGE_BYTES]);
    /** Copy all, as it is at one moment, to `copy_path`, which is a database then, too. */
    weir_status (*copy)(struct db *db, const char *copy_path, struct weir_error *err);
    enum db_end (*space)(struct db *db, struct weir_store_space *out);
    enum db_end (*shrink)(struct db *db, int64_t n_pages); /**< weir_txn_shrink. */
};

/** The driver of a database: of "NAME://…" the one of that name; any other path is a file of SQLite.
 *  @return INVALID without such a driver; UNSUPPORTED if its library is not in this build. */
weir_status db_find(const char *path, const struct db_ops **out,
                    struct weir_error *err) WEIR_MUST_CHECK;

/** What an end means to the caller. `what` was tried, `text` is the database's message. */
weir_status db_fail(enum db_end end, const char *what, const char *text, struct weir_error *err);

extern const struct weir_registry db_kinds;

#endif
