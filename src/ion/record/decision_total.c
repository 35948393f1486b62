#include "ion/decision_total.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* By the key's beginning, or a part of it: the rows are few. */
static const char sql_totals[] =
    "SELECT ion, pipeline, model_version, gallery_version, is_sandbox, n_made, n_kept, first_ms,"
    " last_ms FROM decision_totals WHERE ion = :ion AND pipeline = :pipeline"
    " AND (:model < 0 OR model_version = :model) AND (:gallery < 0 OR gallery_version = :gallery)"
    " ORDER BY last_ms DESC, model_version DESC, gallery_version DESC, is_sandbox";
static const char sql_since[] = "SELECT value FROM counters WHERE name = 'decisions_counted_ms'";

weir_status weir_decision_totals(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 int64_t model_version, int64_t gallery_version,
                                 struct weir_arena *arena, struct weir_decision_total **out,
                                 size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(
        weir_stmt_open(txn, sql_totals,
                       WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline),
                                  WEIR_BIND_INT("model", model_version),
                                  WEIR_BIND_INT("gallery", gallery_version)),
                       &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
        (*out)[(*out_n)++] = (struct weir_decision_total){
            .ion = weir_stmt_text(stmt, 0, arena),
            .pipeline = weir_stmt_text(stmt, 1, arena),
            .model_version = weir_stmt_int(stmt, 2),
            .gallery_version = weir_stmt_int(stmt, 3),
            .is_sandbox = weir_stmt_int(stmt, 4) != 0,
            .n_made = weir_stmt_int(stmt, 5),
            .n_kept = weir_stmt_int(stmt, 6),
            .first_ms = weir_stmt_int(stmt, 7),
            .last_ms = weir_stmt_int(stmt, 8),
        };
        WEIR_TRY(weir_arena_check(arena, "a pipeline's totals", err));
    }
}

weir_status weir_decisions_counted_since(struct weir_txn *txn, int64_t *out_ms,
                                         struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_since, WEIR_NO_BINDS, 0, out_ms, err);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Newest first; of the same time, as the list of one total has them. */
static int compare(const void *a, const void *b)
{
    const struct weir_decision *x = a, *y = b;
    if (x->time_ms != y->time_ms) {
        return x->time_ms > y->time_ms ? -1 : 1;
    }
    return -strcmp(x->id, y->id);
}

struct page {
    struct weir_decision *items;
    size_t n, limit;
};

/* Merge, and keep the newest limit + 1: one more says that there is a next page. */
static void merge(struct page *page, const struct weir_decision *more, size_t n,
                  struct weir_arena *arena)
{
    struct weir_decision *all = WEIR_ARENA_ARRAY(arena, page->n + n + 1, struct weir_decision);
    for (size_t i = 0; i < page->n; i++) {
        all[i] = page->items[i];
    }
    for (size_t i = 0; i < n; i++) {
        all[page->n + i] = more[i];
    }
    qsort(all, page->n + n, sizeof *all, compare);
    page->items = all;
    page->n = WEIR_MIN(page->n + n, page->limit + 1);
}

/* *out_ms: no decision of the page is newer. */
static weir_status read_cursor(const char *cursor, int64_t *out_ms, struct weir_error *err)
{
    char *end = NULL;
    *out_ms = cursor != NULL ? strtoll(cursor, &end, 10) : INT64_MAX;
    return cursor == NULL || (end != cursor && *end == '~')
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "\"%.80s\" is not a cursor", cursor);
}

weir_status weir_decisions_of_totals(struct weir_txn *txn, const struct weir_decision_total *totals,
                                     size_t n, const char *cursor, size_t limit,
                                     struct weir_arena *arena, struct weir_decision **out,
                                     size_t *out_n, char **out_next, struct weir_error *err)
{
    struct page page = {.limit = limit};
    int64_t newest_ms;
    WEIR_TRY(read_cursor(cursor, &newest_ms, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_decision_total *total = &totals[i];
        if (page.n > limit && total->last_ms < page.items[limit].time_ms) {
            break; /* nothing of it, or of those behind it, is that new */
        }
        const struct weir_query query = {
            WEIR_FILTERS(WEIR_FILTER_INT("time_ms", LE, newest_ms),
                         WEIR_FILTER_TEXT("ion", EQ, total->ion),
                         WEIR_FILTER_TEXT("pipeline", EQ, total->pipeline),
                         WEIR_FILTER_INT("model_version", EQ, total->model_version),
                         WEIR_FILTER_INT("gallery_version", EQ, total->gallery_version),
                         WEIR_FILTER_INT("is_sandbox", EQ, total->is_sandbox)),
            .order_by = "time_ms", .is_descending = true, .limit = limit + 1, .cursor = cursor};
        void *items;
        size_t n_more;
        WEIR_TRY(
            weir_txn_list(txn, &weir_decision_resource, &query, arena, &items, &n_more, NULL, err));
        merge(&page, items, n_more, arena);
    }
    bool has_more = page.n > limit;
    *out = page.items;
    *out_n = has_more ? limit : page.n;
    *out_next = has_more ? weir_arena_printf(arena, "%" PRId64 "~%s", page.items[limit - 1].time_ms,
                                             page.items[limit - 1].id)
                         : NULL;
    return WEIR_OK;
}
