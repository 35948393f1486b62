/** Searches for logged models. */
#include "track/logged_model.h"

#include "store/stmt.h"
#include "track/search_page.h"

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
    .exists = {[WEIR_SEARCH_METRIC] = "EXISTS (SELECT 1 FROM logged_model_metrics x WHERE "
                                      "x.model = l.id AND x.key = ? AND x.is_nan = 0 AND ",
               [WEIR_SEARCH_PARAMETER] = "EXISTS (SELECT 1 FROM logged_model_params x WHERE "
                                         "x.model = l.id AND x.key = ? AND ",
               [WEIR_SEARCH_TAG] = "EXISTS (SELECT 1 FROM logged_model_tags x WHERE "
                                   "x.model = l.id AND x.key = ? AND "},
    .join = {[WEIR_SEARCH_METRIC] =
                 " LEFT JOIN (SELECT model, key, max(value) AS value, min(is_nan) AS is_nan FROM"
                 " logged_model_metrics GROUP BY model, key) o# ON o#.model = l.id AND"
                 " o#.key = ?",
             [WEIR_SEARCH_PARAMETER] =
                 " LEFT JOIN logged_model_params o# ON o#.model = l.id AND o#.key = ?",
             [WEIR_SEARCH_TAG] =
                 " LEFT JOIN logged_model_tags o# ON o#.model = l.id AND o#.key = ?"},
};

#define COLUMNS                                                                                    \
    "SELECT l.id, l.project, l.experiment, l.run, l.source_run, l.name, l.type, l.status,"         \
    " l.status_message, l.created_by, l.created_ms, l.updated_ms"
#define N_COLUMNS 12

static void read_row(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct weir_logged_model *)out_item =
        (struct weir_logged_model){.id = weir_stmt_text(stmt, 0, arena),
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

static const struct weir_search_rows rows = {.name = "models",
                                             .item_bytes = sizeof(struct weir_logged_model),
                                             .n_columns = N_COLUMNS,
                                             .read = read_row};

/* The values of "?" are bound in the order in which they stand: joins come before conditions. */
static weir_status make_sql(const struct weir_logged_model_search *search,
                            const struct weir_search_page *page, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    weir_search_sql_put(sql, COLUMNS);
    weir_search_sql_columns(sql, &page->columns);
    weir_search_sql_put(sql, " FROM logged_models l");
    weir_search_sql_joins(sql, &weir_logged_model_noun, search->orders, search->n_orders);
    weir_search_sql_put(sql, " WHERE l.deleted_ms = 0 AND l.experiment IN (");
    for (size_t i = 0; i < search->n_experiments; i++) {
        weir_search_sql_put(sql, i > 0 ? ", ?" : "?");
        weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, search->experiments[i]));
    }
    weir_search_sql_put(sql, ") AND ");
    weir_search_sql_filter(sql, &weir_logged_model_noun, search->filter);
    return weir_search_page_sql(page, sql, err);
}

weir_status weir_logged_model_search(struct weir_txn *txn,
                                     const struct weir_logged_model_search *search,
                                     struct weir_arena *arena, struct weir_logged_model **out,
                                     size_t *out_n, char **out_next, struct weir_error *err)
{
    struct weir_search_sql sql;
    struct weir_search_page page = {
        .rows = &rows, .cursor = search->cursor, .limit = search->limit};
    if (search->n_experiments > 0) {
        weir_search_columns_of(search->orders, search->n_orders, arena, &page.columns);
        weir_search_columns_add(&page.columns, "l.created_ms", true, WEIR_BIND_TYPE_INT);
        weir_search_columns_add(&page.columns, "l.id", false, WEIR_BIND_TYPE_TEXT);
        weir_search_sql_init(&sql, arena);
        weir_status status = make_sql(search, &page, &sql, err);
        if (status == WEIR_OK) {
            status = weir_search_page_read(&page, txn, &sql, err);
        }
        weir_search_sql_fini(&sql);
        WEIR_TRY(status);
    }
    *out = page.items;
    *out_n = page.n_items;
    *out_next = page.next;
    return WEIR_OK;
}
