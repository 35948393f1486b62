/** Pages of events, which are many: of each query, which index it enters. */
#include "store/event.h"

#include "base/grow.h"
#include "store/row_scope.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

/** A query with filters of its own. */
struct asked {
    struct weir_query query;
    struct weir_filter filters[WEIR_QUERY_FILTERS_MAX];
};

static bool is_word(const struct weir_filter *filter)
{
    return filter->op == WEIR_OP_EQ && filter->text != NULL;
}

static bool has_subject(const struct asked *asked)
{
    bool has = false;
    for (size_t i = 0; i < asked->query.n_filters; i++) {
        has =
            has || (is_word(&asked->filters[i]) && strcmp(asked->filters[i].field, "subject") == 0);
    }
    return has;
}

/* Nearly all events are "info": there is an index of the others alone. A topic has many, so whatever else is asked for
 * comes first. */
static void choose_index(struct asked *asked)
{
    struct weir_filter *topic = NULL;
    size_t n_others = 0;
    for (size_t i = 0; i < asked->query.n_filters; i++) {
        struct weir_filter *filter = &asked->filters[i];
        if (!is_word(filter)) {
            continue;
        }
        bool is_severity = strcmp(filter->field, "severity") == 0;
        if (strcmp(filter->field, "topic") == 0) {
            topic = filter;
        } else if (!is_severity) {
            n_others++;
        } else if (strcmp(filter->text, "info") != 0) {
            asked->query.condition = "severity <> 'info'";
            n_others++;
        }
    }
    if (topic != NULL) {
        topic->is_common = n_others > 0;
    }
}

/** The pages of one project after another, before they are made one. */
struct pages {
    struct weir_event *events;
    size_t n, cap;
    bool has_more;
};

static int compare_events(const void *a, const void *b)
{
    const struct weir_event *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int compare_newest(const void *a, const void *b)
{
    return compare_events(b, a);
}

static weir_status add_page(struct weir_txn *txn, const struct asked *asked, const char *project,
                            struct weir_arena *arena, struct pages *pages, struct weir_error *err)
{
    struct asked own = *asked;
    void *items;
    size_t n;
    char *next;
    if (own.query.n_filters == WEIR_QUERY_FILTERS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a query of events has at most %d filters",
                              WEIR_QUERY_FILTERS_MAX - 1);
    }
    own.filters[own.query.n_filters++] = WEIR_FILTER_TEXT("project", EQ, project);
    own.query.filters = own.filters;
    WEIR_TRY(weir_txn_list(txn, &weir_event_resource, &own.query, arena, &items, &n, &next, err));
    for (size_t i = 0; i < n; i++) {
        weir_arena_grow(arena, &pages->events, sizeof *pages->events, pages->n, &pages->cap);
        pages->events[pages->n++] = ((const struct weir_event *)items)[i];
    }
    pages->has_more = pages->has_more || next != NULL;
    return weir_arena_check(arena, "events", err);
}

/* Where the page that is made of all of them ends: as that of one would. */
static size_t end_of(const struct pages *pages, const struct weir_query *query)
{
    size_t n = 0, weight = 0;
    while (n < pages->n && n < query->limit &&
           (query->max_bytes == 0 || weight <= query->max_bytes)) {
        weight += weir_record_weight(&weir_event_resource, &pages->events[n++]);
    }
    return n;
}

/* By the index of each project: whatever else is asked for enters none. */
static weir_status list_scoped(struct weir_txn *txn, struct asked *asked,
                               const struct weir_row_scope *scope, struct weir_arena *arena,
                               void **out_items, size_t *out_n, char **out_next,
                               struct weir_error *err)
{
    struct pages pages = {0};
    for (size_t i = 0; i < asked->query.n_filters; i++) {
        asked->filters[i].is_common = is_word(&asked->filters[i]);
    }
    for (size_t i = 0; i < scope->n_projects; i++) {
        WEIR_TRY(add_page(txn, asked, scope->projects[i], arena, &pages, err));
    }
    if (pages.n > 0) {
        qsort(pages.events, pages.n, sizeof *pages.events,
              asked->query.is_descending ? compare_newest : compare_events);
    }
    size_t n = end_of(&pages, &asked->query);
    bool has_more = n < pages.n || (pages.has_more && n > 0);
    *out_items = pages.events;
    *out_n = n;
    if (out_next != NULL) {
        *out_next =
            has_more ? weir_arena_printf(arena, "%lld", (long long)pages.events[n - 1].seq) : NULL;
    }
    return WEIR_OK;
}

weir_status weir_events_list(struct weir_txn *txn, const struct weir_query *query,
                             struct weir_arena *arena, void **out_items, size_t *out_n,
                             char **out_next, struct weir_error *err)
{
    const struct weir_row_scope *scope = weir_txn_scope(txn);
    struct asked asked = {.query = *query};
    if (query->n_filters > WEIR_QUERY_FILTERS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a query has at most %d filters",
                              WEIR_QUERY_FILTERS_MAX);
    }
    for (size_t i = 0; i < query->n_filters; i++) {
        asked.filters[i] = query->filters[i];
    }
    asked.query.filters = asked.filters;
    asked.query.limit = query->limit != 0 ? query->limit : WEIR_QUERY_LIMIT_DEFAULT;
    if (scope != NULL && !has_subject(&asked)) {
        return list_scoped(txn, &asked, scope, arena, out_items, out_n, out_next, err);
    }
    choose_index(&asked);
    return weir_txn_list(txn, &weir_event_resource, &asked.query, arena, out_items, out_n, out_next,
                         err);
}
