/**
 * The wall clock was set, and what runs is to take no notice.
 *
 * Times in the database are by the wall clock. Some of them are counted with: since when a task runs, when
 * a back-off is over, when a node was heard of. When the clock is set while they count, they move by as
 * much, so that a span that has lasted for ten seconds still has. Times that only say when something was,
 * times that people chose by the calendar, and schedules stay as they are: set_clock_test.c says of each
 * column which it is.
 */
#ifndef WEIR_STORE_SET_CLOCK_H
#define WEIR_STORE_SET_CLOCK_H

#include "store/store.h"

/** Columns of a table that are counted with. 0 in one of them says "not yet", and stays. */
struct weir_counted_times {
    const char *table;
    const char *columns; /**< Separated by blanks. */
    const char *where;   /**< Rows whose times still count; NULL: all. */
};

const struct weir_counted_times *weir_counted_times(size_t *out_n);

/** Move all of them by so much. In a write transaction that sees all rows. */
weir_status weir_set_clock(struct weir_txn *txn, int64_t by_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Keep the offset of the steadied clock (base/clock.h) for the next process of this start of the machine: a clock
 *  that is set between two servers is noticed too. */
weir_status weir_clock_keep(struct weir_txn *txn, int64_t offset_ms, int64_t now_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** What was kept; 0: nothing, or the machine was started since. */
weir_status weir_clock_kept(struct weir_txn *txn, int64_t *out_offset_ms,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
