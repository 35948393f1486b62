/**
 * Pages of runs and experiments, found by filters and orders (track/search.h), and what belongs to the runs
 * of a page, read in the order in which it is written.
 */
#ifndef WEIR_TRACK_RUN_SEARCH_H
#define WEIR_TRACK_RUN_SEARCH_H

#include "track/run.h"
#include "track/search.h"

extern const struct weir_search_noun weir_run_noun;
extern const struct weir_search_noun weir_experiment_noun;

enum weir_view { WEIR_VIEW_ACTIVE, WEIR_VIEW_DELETED, WEIR_VIEW_ALL };

struct weir_run_search {
    /** Only runs of these, whose rows the caller may see. */
    const int64_t *experiments;
    size_t n_experiments;
    const char *const *projects; /**< Without experiments: runs of these projects; NULL: of all. */
    size_t n_projects;
    const struct weir_search_node *filter; /**< NULL: none. */
    /** Ties go by start, latest first, then by identifier. */
    const struct weir_search_order *orders;
    size_t n_orders;
    enum weir_view view;
    const char *cursor; /**< *out_next of the page before; NULL: from the start. */
    int64_t skip;       /**< Runs that come before the page: to begin anywhere; with no cursor. */
    size_t limit;
    bool with_texts;  /**< Read `parameters` and `summary` of the records, too. */
    size_t max_bytes; /**< End the page with the row whose texts pass this; 0: none. */
};

struct weir_run_row {
    int64_t number;
    struct weir_run record; /**< Without parameters and summary unless with_texts. */
};

/**
 * A page of runs, of those that the transaction's scope has. With a filter or an order, and of one project or in a scope
 * of one, tables are read themselves (weir_stmt_open_proven).
 * @param out_next  NULL after the last.
 * @return INVALID for a cursor of another search; LIMIT.
 * Cost: of the page, ordered by start or, without a filter and in experiments that have an eighth of all
 *       runs or more, by one metric; else of all runs that fit. Runs that are skipped are walked past.
 */
weir_status weir_run_search(struct weir_txn *txn, const struct weir_run_search *search,
                            struct weir_arena *arena, struct weir_run_row **out, size_t *out_n,
                            char **out_next, struct weir_error *err) WEIR_MUST_CHECK;

/** How many runs there are in all pages; orders, cursor and limit do not count. @return INVALID, LIMIT. */
weir_status weir_run_count(struct weir_txn *txn, const struct weir_run_search *search,
                           struct weir_arena *arena, int64_t *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

struct weir_experiment_search {
    const char *const *projects; /**< NULL: all. */
    size_t n_projects;
    const struct weir_search_node *filter;
    /** Ties, and without: by the last change, latest first. */
    const struct weir_search_order *orders;
    size_t n_orders;
    enum weir_view view;
    const char *cursor;
    size_t limit;
};

weir_status weir_experiment_search(struct weir_txn *txn,
                                   const struct weir_experiment_search *search,
                                   struct weir_arena *arena, struct weir_experiment **out,
                                   size_t *out_n, char **out_next,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** What belongs to runs, many runs after another, without a copy of it. */
struct weir_run_reader;

enum weir_run_part { WEIR_RUN_METRICS, WEIR_RUN_PARAMETERS, WEIR_RUN_TAGS };

/** One item; what it points to lives until the next call. */
struct weir_run_item {
    const char *key;
    const char *text; /**< Of parameters and tags. */
    size_t text_len;
    double value; /**< Of metrics, the last one. */
    int64_t step, time_ms;
};

weir_status weir_run_reader_open(struct weir_txn *txn, struct weir_arena *arena,
                                 struct weir_run_reader **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
void weir_run_reader_close(struct weir_run_reader *reader); /**< NULL is accepted. */
/** For WEIR_AUTO. */
void weir_run_reader_auto_close(struct weir_run_reader **reader);

/** Begin with a run's part; items come by key number, in no order that means anything. */
weir_status weir_run_reader_begin(struct weir_run_reader *reader, enum weir_run_part part,
                                  int64_t run, struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_run_reader_next(struct weir_run_reader *reader, struct weir_run_item *out,
                                 bool *out_has, struct weir_error *err) WEIR_MUST_CHECK;

/** Has the run any input (weir_run_inputs)? Most have none. */
weir_status weir_run_reader_has_inputs(struct weir_run_reader *reader, int64_t run, bool *out,
                                       struct weir_error *err) WEIR_MUST_CHECK;

#endif
