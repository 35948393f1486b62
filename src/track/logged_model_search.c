/** Searches for logged models. */
#include "track/logged_model.h"

#include "base/grow.h"
#include "store/stmt.h"

static const struct weir_search_attribute attributes[] = {
    {"name", "l.name", false, false},
    {"model_id", "l.id", false, false},
    {"model_type", "l.type", false, true},
    {"status", "l.status", false, false},
    {"source_run_id", "l.source_run", false, true},
    {"creation_time", "l.created_ms", true, false},
    {"creation_timestamp", "l.created_ms", true, false},
    {"last_updated_time", "l.updated_ms", true, false},
    {"last_updated_timestamp", "l.updated_ms", true, false},
};

/* Runs and datasets may each have measured a key: an order goes by the greatest value. */
const struct weir_search_noun weir_logged_model_noun = {
    .name = "logged model",
    .attributes = attributes,
    .n_attributes = WEIR_ARRAY_LEN(attributes),
    .exists = {[WEIR_SEARCH_METRIC] = "EXISTS (SELECT 1 FROM main.logged_model_metrics x WHERE "
                                      "x.model = l.id AND x.key = ? AND x.is_nan = 0 AND x.value",
               [WEIR_SEARCH_PARAMETER] = "EXISTS (SELECT 1 FROM main.logged_model_params x WHERE "
                                         "x.model = l.id AND x.key = ? AND x.value",
               [WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM main.logged_model_tags x WHERE "
                                   "x.model = l.id AND x.key = ? AND x.value"},
    .join = {[WEIR_SEARCH_METRIC] =
                 " LEFT JOIN (SELECT model, key, max(value) AS value, min(is_nan) AS is_nan FROM"
                 " main.logged_model_metrics GROUP BY model, key) o# ON o#.model = l.id AND"
                 " o#.key = ?",
             [WEIR_SEARCH_PARAMETER] =
                 " LEFT JOIN main.logged_model_params o# ON o#.model = l.id AND o#.key = ?",
             [WEIR_SEARCH_TAG] =
                 " LEFT JOIN main.logged_model_tags o# ON o#.model = l.id AND o#.key = ?"},
};

#define COLUMNS                                                                                    \
    "SELECT l.id, l.project, l.experiment, l.run, l.source_run, l.name, l.type, l.status,"         \
    " l.status_message, l.created_by, l.created_ms, l.updated_ms"
#define N_COLUMNS 12

static struct weir_logged_model read_row(const struct weir_stmt *stmt, struct weir_arena *arena)
{
    return (struct weir_logged_model){.id = weir_stmt_text(stmt, 0, arena),
                                      .project = weir_stmt_text(stmt, 1, arena),
                                      .experiment = weir_stmt_int(stmt, 2),
                                      .run = weir_stmt_text(stmt, 3, arena),
                                      .source_run = weir_stmt_text(stmt, 4, arena),
                                      .name = weir_stmt_text(stmt, 5, arena),
                                      .type = weir_stmt_text(stmt, 6, arena),
                                      .status = weir_stmt_text(stmt, 7, arena),
                                      .status_message = weir_stmt_text(stmt, 8, arena),
                                      .created_by = weir_stmt_text(stmt, 9, arena),
                                      .created_ms = weir_stmt_int(stmt, 10),
                                      .updated_ms = weir_stmt_int(stmt, 11)};
}

/* The values of "?" are bound in the order in which they stand: joins come before conditions. */
static weir_status make_sql(const struct weir_logged_model_search *search,
                            const struct weir_search_columns *columns, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    weir_search_sql_put(sql, COLUMNS);
    weir_search_sql_columns(sql, columns);
    weir_search_sql_put(sql, " FROM logged_models l");
    weir_search_sql_joins(sql, &weir_logged_model_noun, search->orders, search->n_orders);
    weir_search_sql_put(sql, " WHERE l.deleted_ms = 0 AND l.experiment IN (");
    for (size_t i = 0; i < search->n_experiments; i++) {
        weir_search_sql_put(sql, i > 0 ? ", ?" : "?");
        weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, search->experiments[i]));
    }
    weir_search_sql_put(sql, ") AND ");
    weir_search_sql_filter(sql, &weir_logged_model_noun, search->filter);
    if (search->cursor != NULL) {
        WEIR_TRY(weir_search_sql_after(sql, columns, search->cursor, err));
    }
    weir_search_sql_order(sql, columns);
    weir_search_sql_put(sql, " LIMIT ?");
    weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, (int64_t)search->limit + 1));
    return sql->text.status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the search is too long");
}

/** A page being read. */
struct page {
    struct weir_arena *arena;
    struct weir_logged_model *models;
    size_t n, cap;
    char *next;
};

static weir_status read_page(struct weir_txn *txn, size_t limit,
                             const struct weir_search_columns *columns,
                             const struct weir_search_sql *sql, struct page *page,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql->text.data, sql->binds, sql->n_binds, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && page->n < limit) {
        weir_arena_grow(page->arena, &page->models, sizeof *page->models, page->n, &page->cap);
        page->models[page->n++] = read_row(stmt, page->arena);
        char *cursor =
            page->n == limit ? weir_search_cursor(stmt, N_COLUMNS, columns, page->arena) : NULL;
        WEIR_TRY(weir_arena_check(page->arena, "models", err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        page->next = has_row ? cursor : NULL;
    }
    return WEIR_OK;
}

weir_status weir_logged_model_search(struct weir_txn *txn,
                                     const struct weir_logged_model_search *search,
                                     struct weir_arena *arena, struct weir_logged_model **out,
                                     size_t *out_n, char **out_next, struct weir_error *err)
{
    struct weir_search_columns columns;
    struct weir_search_sql sql;
    struct page page = {.arena = arena};
    weir_search_columns_of(search->orders, search->n_orders, arena, &columns);
    weir_search_columns_add(&columns, "l.created_ms", true, WEIR_BIND_TYPE_INT);
    weir_search_columns_add(&columns, "l.id", false, WEIR_BIND_TYPE_TEXT);
    if (search->n_experiments > 0) {
        weir_search_sql_init(&sql, arena);
        weir_status status = make_sql(search, &columns, &sql, err);
        if (status == WEIR_OK) {
            status = read_page(txn, search->limit, &columns, &sql, &page, err);
        }
        weir_search_sql_fini(&sql);
        WEIR_TRY(status);
    }
    *out = page.models;
    *out_n = page.n;
    *out_next = page.next;
    return WEIR_OK;
}
