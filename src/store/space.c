#include "store/space.h"

#include "store/stmt.h"
#include "store/store_private.h"

#include <inttypes.h>
#include <stdio.h>

#define AUTO_VACUUM_INCREMENTAL 2

static const char sql_pages[] = "PRAGMA page_count";
static const char sql_free_pages[] = "PRAGMA freelist_count";
static const char sql_page_bytes[] = "PRAGMA page_size";
static const char sql_mode[] = "PRAGMA auto_vacuum";

weir_status weir_txn_space(struct weir_txn *txn, struct weir_store_space *out,
                           struct weir_error *err)
{
    int64_t n_pages, n_free, page_bytes, mode;
    WEIR_TRY(weir_txn_query_int(txn, sql_pages, WEIR_NO_BINDS, 0, &n_pages, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_free_pages, WEIR_NO_BINDS, 0, &n_free, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_page_bytes, WEIR_NO_BINDS, 0, &page_bytes, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_mode, WEIR_NO_BINDS, 0, &mode, err));
    *out = (struct weir_store_space){.bytes = n_pages * page_bytes,
                                     .free_bytes = n_free * page_bytes,
                                     .page_bytes = page_bytes,
                                     .can_shrink = mode == AUTO_VACUUM_INCREMENTAL};
    return WEIR_OK;
}

weir_status weir_txn_shrink(struct weir_txn *txn, int64_t n_pages, struct weir_error *err)
{
    char sql[64]; /* a pragma takes no parameters; and it gives a row for each page */
    (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%" PRId64 ")", n_pages);
    return connection_exec(txn->connection, sql, err);
}
