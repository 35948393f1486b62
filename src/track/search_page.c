#include "track/search_page.h"

#include "base/grow.h"

weir_status weir_search_page_limit(const struct weir_search_page *page, struct weir_search_sql *sql,
                                   struct weir_error *err)
{
    weir_search_sql_put(sql, " LIMIT ?");
    weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, (int64_t)page->limit + 1));
    if (page->skip > 0) {
        weir_search_sql_put(sql, " OFFSET ?");
        weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, page->skip));
    }
    return weir_search_sql_check(sql, err);
}

weir_status weir_search_page_sql(const struct weir_search_page *page, struct weir_search_sql *sql,
                                 struct weir_error *err)
{
    if (page->cursor != NULL) {
        WEIR_TRY(weir_search_sql_after(sql, &page->columns, page->cursor, err));
    }
    weir_search_sql_order(sql, &page->columns);
    return weir_search_page_limit(page, sql, err);
}

static char *cursor_of(const struct weir_search_page *page, const struct weir_stmt *stmt,
                       struct weir_arena *arena)
{
    return page->rows->cursor != NULL
               ? page->rows->cursor(stmt, arena)
               : weir_search_cursor(stmt, page->rows->n_columns, &page->columns, arena);
}

weir_status weir_search_page_read(struct weir_search_page *page, struct weir_txn *txn,
                                  const struct weir_search_sql *sql, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    const struct weir_search_rows *rows = page->rows;
    struct weir_arena *arena = sql->arena;
    size_t cap = 0, bytes = 0;
    bool has_row, is_full = false;
    char *cursor = NULL;
    page->items = NULL;
    page->n_items = 0;
    page->next = NULL;
    WEIR_TRY(weir_search_sql_open(sql, txn, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && !is_full) {
        weir_arena_grow(arena, &page->items, rows->item_bytes, page->n_items, &cap);
        void *item = (char *)page->items + page->n_items++ * rows->item_bytes;
        rows->read(stmt, arena, item);
        bytes += page->max_bytes > 0 ? rows->weigh(item) : 0;
        is_full = page->n_items == page->limit || bytes > page->max_bytes;
        if (is_full) {
            cursor = cursor_of(page, stmt, arena);
        }
        WEIR_TRY(weir_arena_check(arena, rows->name, err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    page->next = has_row ? cursor : NULL;
    return WEIR_OK;
}
