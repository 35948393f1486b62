/**
 * Space: how large the database is, and giving back to the disk what it no longer needs.
 *
 * Rows that are deleted leave free pages, which are used again before the file grows. Only where
 * much more is free than will be used soon is it worth moving pages about: weir_txn_shrink does
 * that a few pages at a time.
 */
#ifndef WEIR_STORE_SPACE_H
#define WEIR_STORE_SPACE_H

#include "base/status.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_store_space {
    int64_t bytes;      /**< Of the file, once its log is written into it. */
    int64_t free_bytes; /**< Of them, pages that hold nothing. */
    int64_t page_bytes;
    bool can_shrink; /**< False for a database that an earlier Weir has made. */
};

weir_status weir_txn_space(struct weir_txn *txn, struct weir_store_space *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Take up to n_pages free pages off the file's end, moving what lies there. In a write transaction;
 * the file is shorter once it is committed and the log written into it. No effect where can_shrink
 * is false. Cost: about a page read and a page written each.
 */
weir_status weir_txn_shrink(struct weir_txn *txn, int64_t n_pages,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
