/**
 * Groups of runs: those that a search finds, put together by a parameter, a tag or an attribute, each with
 * how many there are and what they measured.
 */
#ifndef WEIR_TRACK_RUN_GROUPS_H
#define WEIR_TRACK_RUN_GROUPS_H

#include "track/run_search.h"

/** Runs with the same value. */
struct weir_run_group {
    char *value; /**< NULL: the runs that have none. */
    int64_t n_runs;
    int64_t n_measured;           /**< Runs whose last measurement of the metric is a number. */
    double mean, least, greatest; /**< Of these; NaN without any. */
};

/** Read what to group by: "params.lr", "tags.`a b`", "status". @return INVALID for a metric, a time, a
 *  dataset, or a direction. Pure. */
weir_status weir_run_groups_parse(const char *text, struct weir_arena *arena,
                                  struct weir_search_order *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A page of groups, by their value: bytes compare, and the runs without one come first. Of the search, its
 * orders and with_texts do not count, and its cursor and limit are of groups.
 * @param metric  Whose last measurements are put together; NULL: of none.
 * @param out_next  NULL after the last.
 * @return INVALID for a cursor of another list; LIMIT. Cost: one look at every run that is found.
 */
weir_status weir_run_groups(struct weir_txn *txn, const struct weir_run_search *search,
                            const struct weir_search_order *by, const char *metric,
                            struct weir_arena *arena, struct weir_run_group **out, size_t *out_n,
                            char **out_next, struct weir_error *err) WEIR_MUST_CHECK;

#endif
