/**
 * Pages of a search: so many rows, in an order, and a cursor that says where the next page begins.
 *
 * The rows come from SQL that asks for one row more than the page holds; whether that row comes says
 * whether there is another page. A cursor holds what the last row of a page is ordered by.
 *
 *     struct weir_search_page page = {.rows = &run_rows, .cursor = cursor, .limit = 100};
 *     weir_search_columns_of(orders, n_orders, arena, &page.columns);
 *     weir_search_sql_put(&sql, "SELECT r.id … ");
 *     weir_search_sql_columns(&sql, &page.columns);
 *     weir_search_sql_put(&sql, " FROM runs r WHERE …");
 *     WEIR_TRY(weir_search_page_sql(&page, &sql, err));
 *     WEIR_TRY(weir_search_page_read(&page, txn, &sql, err));
 *     struct weir_run_row *runs = page.items;              page.n_items of them; page.next
 */
#ifndef WEIR_TRACK_SEARCH_PAGE_H
#define WEIR_TRACK_SEARCH_PAGE_H

#include "track/search.h"

/** What a row becomes. */
struct weir_search_rows {
    const char *name; /**< Of many, for messages: "runs". */
    size_t item_bytes;
    int n_columns; /**< Of the item; the columns of the order stand behind them. */
    /** Make the item, of which nothing is set, from the statement's row; its texts go into the arena. */
    void (*read)(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item);
    /** Bytes of an item, which count against max_bytes of a page; NULL where no page has such. */
    size_t (*weigh)(const void *item);
    /** The cursor that this row ends a page with; NULL: weir_search_cursor of the page's columns. */
    char *(*cursor)(const struct weir_stmt *stmt, struct weir_arena *arena);
};

struct weir_search_page {
    /* What is asked for. */
    const struct weir_search_rows *rows;
    struct weir_search_columns columns; /**< The order; none where the SQL has one of its own. */
    const char *cursor;                 /**< `next` of the page before; NULL: the first. */
    int64_t skip;                       /**< Rows before it that are passed over; 0: none. */
    size_t limit;                       /**< Items; 1 at least. */
    size_t max_bytes; /**< End the page with the item that passes this; 0: never. */
    /* What weir_search_page_read has read, in the arena of the SQL. */
    void *items;
    size_t n_items;
    char *next; /**< NULL: no row is behind this page. */
};

/**
 * Append " AND …" of the cursor, " ORDER BY …" and the limit: what ends the SQL of a page. The columns'
 * values and a condition stand before it.
 * @return INVALID for a cursor of another search, or if the SQL has become too long.
 */
weir_status weir_search_page_sql(const struct weir_search_page *page, struct weir_search_sql *sql,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The limit alone, for SQL with an order and cursors of its own. @return INVALID: it is too long. */
weir_status weir_search_page_limit(const struct weir_search_page *page, struct weir_search_sql *sql,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read the page. Each item is made in its place in the array, whose room doubles.
 * @return LIMIT when the arena is full; what weir_stmt_step returns. The page is then undefined.
 */
weir_status weir_search_page_read(struct weir_search_page *page, struct weir_txn *txn,
                                  const struct weir_search_sql *sql,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
