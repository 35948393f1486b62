/** Pages of events, which are many: of each query, which index it enters. */
#include "store/event.h"

#include "base/grow.h"
#include "store/row_scope.h"
#include "store/stmt.h"
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

/** The pages of one project after another, made one: to its end, and one event more if there is one. */
struct pages {
    struct weir_event *events;
    size_t n, cap;
    bool has_more;
    int64_t last_seq; /**< With it the page ends so far, or before it. 0: it is not full. */
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
    if (own.query.n_filters + 2 > WEIR_QUERY_FILTERS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a query of events has at most %d filters",
                              WEIR_QUERY_FILTERS_MAX - 2);
    }
    own.filters[own.query.n_filters++] = WEIR_FILTER_TEXT("project", EQ, project);
    if (pages->last_seq > 0) {
        own.filters[own.query.n_filters++] = own.query.is_descending
                                                 ? WEIR_FILTER_INT("seq", GT, pages->last_seq)
                                                 : WEIR_FILTER_INT("seq", LT, pages->last_seq);
    }
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

/** A project, and when it was last told something. */
struct turn {
    const char *project;
    int64_t newest_seq;
};

static int compare_turns(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    return (x->newest_seq < y->newest_seq) - (x->newest_seq > y->newest_seq);
}

/* The projects in the order in which their newest events came: what the first ones have leaves little to be read of
 * the others. */
static weir_status take_turns(struct weir_txn *txn, const struct weir_row_scope *scope,
                              struct weir_arena *arena, struct turn **out, struct weir_error *err)
{
    static const char sql[] =
        "SELECT seq FROM events WHERE project = :project ORDER BY seq DESC LIMIT 1";
    struct turn *turns = weir_arena_calloc(arena, scope->n_projects + 1, sizeof *turns);
    WEIR_TRY(weir_arena_check(arena, "events", err));
    for (size_t i = 0; i < scope->n_projects; i++) {
        turns[i].project = scope->projects[i];
        WEIR_TRY(weir_txn_query_int(txn, sql,
                                    WEIR_BINDS(WEIR_BIND_TEXT("project", turns[i].project)), 0,
                                    &turns[i].newest_seq, err));
    }
    qsort(turns, scope->n_projects, sizeof *turns, compare_turns);
    *out = turns;
    return WEIR_OK;
}

/* In order, and without what a page of all has no room for: so what is read does not grow with the projects. */
static void cut(struct pages *pages, const struct weir_query *query)
{
    if (pages->n > 0) {
        qsort(pages->events, pages->n, sizeof *pages->events,
              query->is_descending ? compare_newest : compare_events);
    }
    size_t n = end_of(pages, query);
    if (n < pages->n) {
        pages->last_seq = pages->events[n - 1].seq;
        pages->n = n + 1;
    }
}

/* By the index of each project: whatever else is asked for enters none. */
static weir_status list_scoped(struct weir_txn *txn, struct asked *asked,
                               const struct weir_row_scope *scope, struct weir_arena *arena,
                               void **out_items, size_t *out_n, char **out_next,
                               struct weir_error *err)
{
    struct pages pages = {0};
    struct turn *turns;
    WEIR_TRY(take_turns(txn, scope, arena, &turns, err));
    for (size_t i = 0; i < asked->query.n_filters; i++) {
        asked->filters[i].is_common = is_word(&asked->filters[i]);
    }
    for (size_t i = 0; i < scope->n_projects; i++) {
        WEIR_TRY(add_page(txn, asked, turns[i].project, arena, &pages, err));
        cut(&pages, &asked->query);
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
    choose_index(&asked);
    if (scope != NULL && asked.query.condition == NULL && !has_subject(&asked)) {
        return list_scoped(txn, &asked, scope, arena, out_items, out_n, out_next, err);
    }
    return weir_txn_list(txn, &weir_event_resource, &asked.query, arena, out_items, out_n, out_next,
                         err);
}
