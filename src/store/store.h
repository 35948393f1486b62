/**
 * Store: the state of the control plane, in one SQLite file.
 *
 * Three nouns. A *store* is an open database: one writer thread and a few reader connections. A
 * *transaction* is a function that runs against it; what it wrote is durable when weir_store_write
 * returns, or was never there. A *watch* is told when something has been committed.
 *
 *     static weir_status add_project(struct weir_txn *txn, void *context, struct weir_error *err)
 *     {
 *         return weir_txn_insert(txn, &weir_project_resource, context, err);
 *     }
 *     …
 *     WEIR_TRY(weir_store_write(store, add_project, &project, err));
 *
 * Writes are queued; the writer runs all that wait inside one database transaction, and makes them
 * durable with one fsync. One that fails is undone alone: if it has written, all are run again, each
 * behind its own savepoint (which costs a copy of every page that is changed). If the commit itself
 * fails (disk full, I/O error) the waiting transactions are run again one by one. So a transaction
 * function may run more than once: it must have no effect but on the database and on its own
 * context, which it sets anew each time. It must not block, and not call weir_store_write
 * or weir_store_read. It runs on the writer thread while its caller waits, so it may use the
 * caller's arena.
 *
 * The SQL used is portable: keys made by clients (UUIDv7), upserts with ON CONFLICT, no rowid.
 * Records are read and written through store/table.h, everything else through store/stmt.h.
 *
 * All functions are safe from any thread, except inside a transaction function.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_store;
struct weir_txn;
struct weir_noun;

/** The i-th of the nouns (store/noun.h) that are known; NULL behind the last. Any thread. */
typedef const struct weir_noun *(*weir_noun_at_fn)(size_t i);

struct weir_store_config {
    const char *path;   /**< Database file; made if missing. `path`.lock is held while open. */
    size_t n_readers;   /**< Reader connections; 0 = 4, at most 64. */
    size_t max_queue;   /**< Waiting write transactions; 0 = 1024. One more is UNAVAILABLE. */
    uint64_t max_bytes; /**< Size the database may grow to; 0 = unlimited. Beyond: NOSPACE. */
    /** Says whose the rows of each table are (store/row_scope.h), and to which project a subject belongs. A table that it
     *  leaves out no scope sees. NULL: it knows none. Borrowed while open. */
    weir_noun_at_fn noun_at;
};

/**
 * Open the database, bring its tables up to date and start the writer.
 * @return CONFLICT if another process has it open; CORRUPT if the file is no database, is damaged
 * or belongs to another program; UNSUPPORTED if a newer Weir has written it; IO, NOSPACE, DENIED. A
 * failed migration leaves the database as it was.
 */
weir_status weir_store_open(const struct weir_store_config *config, struct weir_store **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Finish the transactions that wait, then close. No other call may be in progress or follow. NULL
 * is accepted. */
void weir_store_close(struct weir_store *store);

/**
 * Copy the database `path` into the new file `copy_path` as it is at one moment, beside whoever has
 * it open and writes, and check the copy. It holds one reader for that time; memory does not grow.
 * @return NOT_FOUND without a database, EXISTS if there is a `copy_path`, CORRUPT if the database
 * is damaged; NOSPACE, IO. On error a part of the copy may be left.
 */
weir_status weir_store_copy(const char *path, const char *copy_path,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Run `fn` as a read transaction on the database file `path`, on a connection of its own, beside whoever has it open.
 * Nothing is brought up to date. @return What fn returned; NOT_FOUND without a database, CORRUPT, IO.
 */
weir_status weir_store_look(const char *path,
                            weir_status (*fn)(struct weir_txn *txn, void *context,
                                              struct weir_error *err),
                            void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** A transaction: WEIR_OK commits, anything else undoes what it wrote and is what the caller gets.
 */
typedef weir_status (*weir_txn_fn)(struct weir_txn *txn, void *context, struct weir_error *err);

/**
 * Say what a transaction changes, for those who watch for that alone: bits whose meaning is the callers'.
 * They are told to the watches together with the commit; those of a transaction that is undone, or of a
 * run that is made again, are not. In a transaction function.
 */
void weir_txn_mark(struct weir_txn *txn, uint64_t marks);

/**
 * Run `fn` as a write transaction; return when it is durable, or undone.
 * @return What fn returned; UNAVAILABLE if the queue is full; NOSPACE, IO, CORRUPT from the
 * database (the transaction is undone and the store goes on working). Cost: one fsync, shared with
 * the transactions that waited at the same time. One that changed nothing costs none.
 */
weir_status weir_store_write(struct weir_store *store, weir_txn_fn fn, void *context,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Run `fn` as a write transaction that is always undone: what would come of it, by the same code that
 * does it. The database is as it was, whatever fn returned, and no watch is told.
 * @return As weir_store_write. Cost: none on the disk.
 */
weir_status weir_store_try(struct weir_store *store, weir_txn_fn fn, void *context,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Run `fn` on the calling thread against a snapshot: it sees all transactions committed before it
 * began and none that come later. Waits for a free reader connection. Writing in it is DENIED.
 */
weir_status weir_store_read(struct weir_store *store, weir_txn_fn fn, void *context,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The number of commits that changed something since the store was opened. */
uint64_t weir_store_change(struct weir_store *store);

/**
 * Wait until the change counter is greater than `after`, or timeout_ms has passed, or
 * weir_store_wake was called.
 * @return The counter. Read it *before* the query whose result you wait to see changed.
 */
uint64_t weir_store_wait(struct weir_store *store, uint64_t after, int64_t timeout_ms);

/** Let every weir_store_wait that waits now return at once: for shutting down. */
void weir_store_wake(struct weir_store *store);

/** Called on the writer thread after a commit, under no lock; must be quick and must not write. `marks`: all
 *  that weir_txn_mark was given by the transactions of this commit. */
typedef void (*weir_store_watch_fn)(void *context, uint64_t change, uint64_t marks);

/** At most this many watches at a time. */
#define WEIR_STORE_WATCHES_MAX 16

/** @return LIMIT if there are WEIR_STORE_WATCHES_MAX already; *out_watch names the watch. */
weir_status weir_store_watch(struct weir_store *store, weir_store_watch_fn fn, void *context,
                             int *out_watch, struct weir_error *err) WEIR_MUST_CHECK;

/** Remove a watch. Its function does not run any more when this returns. Not from a watch function.
 */
void weir_store_unwatch(struct weir_store *store, int watch);

#endif
