/**
 * Inside the store: a connection with its statement cache, and what a transaction is.
 * What the database itself is asked goes through the operations of its driver (store/db.h).
 */
#ifndef WEIR_STORE_STORE_PRIVATE_H
#define WEIR_STORE_STORE_PRIVATE_H

#include "base/buf.h"
#include "base/record.h"
#include "base/status.h"
#include "store/db.h"
#include "store/pulse.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/store.h"

/** Statements kept prepared per connection; beyond it the least recently used one goes. */
#define STMT_CACHE_MAX 256

/** By which text a statement runs. */
enum stmt_kind {
    STMT_SCOPED,   /**< One that holds to the scope. */
    STMT_PROVEN,   /**< One for a project that the scope has (store/scope_proven.h). */
    STMT_UNSCOPED, /**< Its own: it may name the tables themselves. */
};

struct weir_stmt {
    const struct db_ops *ops;
    struct db_stmt *handle;
    char *sql;            /**< As it was asked for: by this it is found again. Owned. */
    struct weir_txn *txn; /**< NULL while it lies in the cache. */
    uint64_t hash;
    uint64_t last_use;
    enum stmt_kind kind;
    const char *
        project; /**< PROVEN: is bound to its parameter, each time anew. Borrowed until it is closed. */
    bool is_cached;
};

/** One connection to the database; used by one thread at a time. */
struct connection {
    const struct db_ops *ops;
    struct db *db;
    struct weir_stmt *stmts[STMT_CACHE_MAX];
    size_t n_stmts;
    uint64_t n_uses;
    bool is_reader; /**< Refuses writes. */
    const struct scope_map
        *map;                /**< Whose the rows of tables are; NULL: it is not known. Borrowed. */
    struct row_guard *guard; /**< Hides rows that are out of scope; NULL: all are seen. Owned. */
    struct pulse *pulse;     /**< Is told what goes wrong; NULL: nobody is. Borrowed. */
};

struct weir_txn {
    struct connection *connection;
    const struct weir_row_scope *scope; /**< NULL: it sees all. Borrowed. */
    /** The failure after which the transaction comes to nothing; it stays: the database may have undone all of it, or it
     *  has changed a row that is out of its scope. */
    struct weir_error broken;
    size_t n_open;  /**< Statements opened and not closed. */
    uint64_t marks; /**< What it says that it changes. */
};

/** @return NOT_FOUND without a database of that path. */
weir_status connection_find(const char *path, struct weir_error *err) WEIR_MUST_CHECK;

/** Open a connection and set it up. `is_reader`: refuses writes; else it is the only one that does not. */
weir_status connection_open(const char *path, uint64_t max_bytes, bool is_reader,
                            struct connection *out, struct weir_error *err) WEIR_MUST_CHECK;
void connection_close(struct connection *connection);

/** The driver's check. @return CORRUPT, with the first thing that is wrong in `verdict`. */
weir_status connection_check(struct connection *connection, bool (*is_over)(void *context),
                             void *context, char verdict[WEIR_ERROR_MESSAGE_BYTES],
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Of a store (pulse.h). NULL: no memory. Threads: any; notes are made by connections and the writer. */
struct pulse *pulse_create(const char *path);
void pulse_stop(struct pulse *pulse); /**< End the check. */
void pulse_destroy(struct pulse *pulse);
void pulse_damaged(struct pulse *pulse, const char *what);
void pulse_unread(struct pulse *pulse, const char *what);
void pulse_failed(struct pulse *pulse, const struct weir_error *error);
void pulse_wrote(struct pulse *pulse);
void pulse_read(struct pulse *pulse, struct weir_store_pulse *out);
/** Before migrations: compare how far the database has come with what the file beside it, PATH-end, says that it had: what was
 *  committed and is not there any more (a log that was removed) is damage. Then, after commits: note how far. The file is not
 *  synced: after a loss of power it may be behind, which says nothing. */
void pulse_compare_end(struct pulse *pulse, struct connection *connection);
void pulse_note_end(struct pulse *pulse, struct connection *connection);
/** In a transaction that has changed something: it moves the end. */
weir_status pulse_count_commit(struct connection *connection,
                               struct weir_error *err) WEIR_MUST_CHECK;
bool pulse_is_due(struct pulse *pulse); /**< Is a probe to write? */
weir_status pulse_check_start(struct pulse *pulse, struct weir_error *err) WEIR_MUST_CHECK;
weir_status pulse_beat(struct weir_txn *txn, void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** Run SQL without parameters or results. */
weir_status connection_exec(struct connection *connection, const char *sql,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Reset every statement that the transaction left open. */
void connection_release_stmts(struct connection *connection);

/** Begin a transaction, end it, and what is between. */
weir_status connection_run(struct connection *connection, enum db_verb verb,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Undo the transaction, if one is still there. */
void connection_rollback(struct connection *connection);

/** What the end of an operation means to the caller; `what` says what was tried. */
weir_status connection_end(const struct connection *connection, enum db_end end, const char *what,
                           struct weir_error *err);

/** Let the transaction, which begins or goes on, see by this scope; NULL or is_all: all. Then it ends. */
weir_status row_scope_set(struct weir_txn *txn, const struct weir_row_scope *scope,
                          struct weir_error *err) WEIR_MUST_CHECK;
void row_scope_end(struct weir_txn *txn);

/** The transaction has written past its scope and must not commit: DENIED. `project`: the row's; NULL: it is not told. */
void row_scope_deny(struct weir_txn *txn, const char *project);

/** Was it made of a project that the transaction's scope has now? */
bool row_scope_has_proven(const struct weir_txn *txn, struct weir_proven proven);

/** What changes too often for the disk (store/live.h). NULL: no memory. */
struct live;
struct live *live_create(void);
void live_destroy(struct live *live);
struct live *store_live(struct weir_store *store);

/** What weir_live(NAME, KEY, stored) is: of LIVE_INT and LIVE_F64, *out. */
enum live_answer { LIVE_UNKNOWN, LIVE_STORED, LIVE_NULL, LIVE_INT, LIVE_F64 };
enum live_answer live_answer(struct live *live, const char *name, const char *key, double *out);

/** Has this column live values? *out_key: SQL for the key of a row. */
bool live_is_column(const char *table, const char *column, const char **out_key);

/** Apply the migrations that are not there yet, in order and in one transaction: all of them, or the
 *  database stays as it was, for the program that made it. */
weir_status migrate(struct connection *connection, const struct migration *migrations,
                    size_t n_migrations, struct weir_error *err) WEIR_MUST_CHECK;

/** weir_stmt_open for the store's own SQL, which may name tables past their views. */
weir_status stmt_open_unscoped(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                               size_t n_binds, struct weir_stmt **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The parameter ":name", from 1 on; 0: there is none. */
int stmt_find_param(const struct weir_stmt *stmt, const char *name);

/** Bind a value by position (1, 2 …): for generated SQL. Text is borrowed until close. */
weir_status stmt_bind_text(struct weir_stmt *stmt, int i_param, const char *text,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Text of malloc, which is taken, also if this fails; NULL: it is null. */
weir_status stmt_bind_taken(struct weir_stmt *stmt, int i_param, char *text,
                            struct weir_error *err) WEIR_MUST_CHECK;
weir_status stmt_bind_int(struct weir_stmt *stmt, int i_param, int64_t value,
                          struct weir_error *err) WEIR_MUST_CHECK;
weir_status stmt_bind_f64(struct weir_stmt *stmt, int i_param, double value,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Is there a table of that name? */
weir_status txn_has_table(const struct weir_txn *txn, const char *name, bool *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Rows that the last statement of this connection changed. */
int64_t txn_changes(const struct weir_txn *txn);

/** Run a transaction function in txn->scope; the status is that of a failure that undoes everything, if there was
 * one. */
weir_status txn_run(struct weir_txn *txn, weir_txn_fn fn, void *context,
                    struct weir_error *err) WEIR_MUST_CHECK;

/** Is this thread inside a transaction function? Nesting would wait for itself. */
bool txn_is_running(void);

#endif
