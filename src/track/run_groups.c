#include "track/run_groups.h"

#include "store/stmt.h"
#include "track/run_search_private.h"
#include "track/search_page.h"

#include <string.h>

#define MEASURED "CASE o1.is_nan WHEN 0 THEN o1.value END"

weir_status weir_run_groups_parse(const char *text, struct weir_arena *arena,
                                  struct weir_search_order *out, struct weir_error *err)
{
    WEIR_TRY(weir_search_parse_order(text, &weir_run_noun, arena, out, err));
    bool is_text = out->entity == WEIR_SEARCH_PARAMETER || out->entity == WEIR_SEARCH_TAG ||
                   (out->entity == WEIR_SEARCH_ATTRIBUTE && !out->attribute->is_number);
    return is_text && !out->is_descending
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "runs are grouped by a parameter, a tag or an attribute that is "
                                "text, as params.lr, tags.team or status; got \"%.80s\"",
                                text);
}

/* A cursor is the last value behind "="; "-" stands for the runs that have none. */
static weir_status put_after(struct weir_search_sql *sql, const char *value, const char *cursor,
                             struct weir_error *err)
{
    if (cursor[0] != '=' && strcmp(cursor, "-") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "this cursor is of another list");
    }
    weir_search_sql_put(sql, " AND ");
    weir_search_sql_put(sql, value);
    weir_search_sql_put(sql, cursor[0] == '-' ? " IS NOT NULL" : " > ?");
    if (cursor[0] == '=') {
        weir_search_sql_bind(sql, WEIR_BIND_TEXT(NULL, cursor + 1));
    }
    return WEIR_OK;
}

/* The joins are "o0", of the value, and "o1", of the metric; "?" are bound as they stand. */
static weir_status make_sql(const struct weir_run_search *search,
                            const struct weir_search_order orders[2], size_t n_orders,
                            const struct weir_search_page *page, struct weir_search_sql *sql,
                            struct weir_error *err)
{
    const char *value =
        orders[0].entity == WEIR_SEARCH_ATTRIBUTE ? orders[0].attribute->sql : "o0.value";
    weir_search_sql_put(sql, "SELECT ");
    weir_search_sql_put(sql, value);
    weir_search_sql_put(sql, n_orders > 1 ? ", count(*), count(" MEASURED "), avg(" MEASURED
                                            "), min(" MEASURED "), max(" MEASURED ")"
                                          : ", count(*), 0, NULL, NULL, NULL");
    weir_search_sql_put(sql, " FROM runs r");
    weir_search_sql_joins(sql, &weir_run_noun, orders, n_orders);
    weir_run_search_conditions(sql, search);
    if (page->cursor != NULL) {
        WEIR_TRY(put_after(sql, value, page->cursor, err));
    }
    weir_search_sql_put(sql, " GROUP BY 1 ORDER BY 1");
    return weir_search_page_limit(page, sql, err);
}

static void read_group(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct weir_run_group *)out_item =
        (struct weir_run_group){.value = weir_stmt_text(stmt, 0, arena),
                                .n_runs = weir_stmt_int(stmt, 1),
                                .n_measured = weir_stmt_int(stmt, 2),
                                .mean = weir_stmt_f64(stmt, 3),
                                .least = weir_stmt_f64(stmt, 4),
                                .greatest = weir_stmt_f64(stmt, 5)};
}

static char *group_cursor(const struct weir_stmt *stmt, struct weir_arena *arena)
{
    const char *value = weir_stmt_peek(stmt, 0, NULL);
    return value != NULL ? weir_arena_printf(arena, "=%s", value) : weir_arena_strdup(arena, "-");
}

static const struct weir_search_rows group_rows = {.name = "groups of runs",
                                                   .item_bytes = sizeof(struct weir_run_group),
                                                   .read = read_group,
                                                   .cursor = group_cursor};

weir_status weir_run_groups(struct weir_txn *txn, const struct weir_run_search *search,
                            const struct weir_search_order *by, const char *metric,
                            struct weir_arena *arena, struct weir_run_group **out, size_t *out_n,
                            char **out_next, struct weir_error *err)
{
    const struct weir_search_order orders[2] = {*by, {.entity = WEIR_SEARCH_METRIC, .key = metric}};
    struct weir_search_sql sql;
    struct weir_search_page page = {
        .rows = &group_rows, .cursor = search->cursor, .limit = search->limit};
    if (search->n_experiments > 0 || search->projects == NULL || search->n_projects > 0) {
        weir_search_sql_init(&sql, arena);
        weir_status status = make_sql(search, orders, metric != NULL ? 2 : 1, &page, &sql, err);
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
