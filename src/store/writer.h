/**
 * The writer: one thread that owns the writing connection, a bounded queue of transactions before
 * it, and the change counter with its waiters and watches behind it. The contract is
 * store/store.h's.
 */
#ifndef WEIR_STORE_WRITER_H
#define WEIR_STORE_WRITER_H

#include "store/store.h"
#include "store/store_private.h"

struct writer;

/** Takes over the connection, also on failure. */
weir_status writer_start(struct connection *connection, size_t max_queue, struct writer **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Run what waits, stop the thread, close the connection. NULL is accepted. */
void writer_stop(struct writer *writer);

/** @param scope  NULL: it sees all.
 *  @param is_trial  Undo it, whatever fn returns. */
weir_status writer_submit(struct writer *writer, const struct weir_row_scope *scope, weir_txn_fn fn,
                          void *context, bool is_trial, struct weir_error *err) WEIR_MUST_CHECK;

uint64_t writer_change(struct writer *writer);
uint64_t writer_wait(struct writer *writer, uint64_t after, int64_t timeout_ms);
void writer_wake(struct writer *writer);
weir_status writer_watch(struct writer *writer, weir_store_watch_fn fn, void *context,
                         int *out_watch, struct weir_error *err) WEIR_MUST_CHECK;
void writer_unwatch(struct writer *writer, int watch);

#endif
