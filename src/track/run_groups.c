#include "track/run_groups.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "track/run_search_private.h"

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
                            struct weir_search_sql *sql, struct weir_error *err)
{
    const char *value =
        orders[0].entity == WEIR_SEARCH_ATTRIBUTE ? orders[0].attribute->sql : "o0.value";
    weir_search_sql_put(sql, "SELECT ");
    weir_search_sql_put(sql, value);
    weir_search_sql_put(sql, n_orders > 1 ? ", count(*), count(" MEASURED "), avg(" MEASURED
                                            "), min(" MEASURED "), max(" MEASURED ")"
                                          : ", count(*), 0, NULL, NULL, NULL");
    weir_search_sql_put(sql, " FROM main.runs r");
    weir_search_sql_joins(sql, &weir_run_noun, orders, n_orders);
    weir_run_search_conditions(sql, search);
    if (search->cursor != NULL) {
        WEIR_TRY(put_after(sql, value, search->cursor, err));
    }
    weir_search_sql_put(sql, " GROUP BY 1 ORDER BY 1 LIMIT ?");
    weir_search_sql_bind(sql, WEIR_BIND_INT(NULL, (int64_t)search->limit + 1));
    return weir_run_search_check(sql, err);
}

static weir_status read_groups(struct weir_txn *txn, size_t limit,
                               const struct weir_search_sql *sql, struct weir_arena *arena,
                               struct weir_run_group **out, size_t *out_n, char **out_next,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    WEIR_TRY(weir_stmt_open(txn, sql->text.data, sql->binds, sql->n_binds, &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        if (*out_n == limit) {
            const char *last = (*out)[limit - 1].value;
            *out_next = last != NULL ? weir_arena_printf(arena, "=%s", last)
                                     : weir_arena_strdup(arena, "-");
            return WEIR_OK;
        }
        weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
        (*out)[(*out_n)++] = (struct weir_run_group){.value = weir_stmt_text(stmt, 0, arena),
                                                     .n_runs = weir_stmt_int(stmt, 1),
                                                     .n_measured = weir_stmt_int(stmt, 2),
                                                     .mean = weir_stmt_f64(stmt, 3),
                                                     .least = weir_stmt_f64(stmt, 4),
                                                     .greatest = weir_stmt_f64(stmt, 5)};
        WEIR_TRY(weir_arena_check(arena, "groups of runs", err));
    }
}

weir_status weir_run_groups(struct weir_txn *txn, const struct weir_run_search *search,
                            const struct weir_search_order *by, const char *metric,
                            struct weir_arena *arena, struct weir_run_group **out, size_t *out_n,
                            char **out_next, struct weir_error *err)
{
    const struct weir_search_order orders[2] = {*by, {.entity = WEIR_SEARCH_METRIC, .key = metric}};
    struct weir_search_sql sql;
    *out = NULL;
    *out_n = 0;
    *out_next = NULL;
    if (search->n_experiments == 0 && search->projects != NULL && search->n_projects == 0) {
        return WEIR_OK;
    }
    weir_search_sql_init(&sql, arena);
    weir_status status = make_sql(search, orders, metric != NULL ? 2 : 1, &sql, err);
    if (status == WEIR_OK) {
        status = read_groups(txn, search->limit, &sql, arena, out, out_n, out_next, err);
    }
    weir_search_sql_fini(&sql);
    return status;
}
