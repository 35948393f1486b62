/**
 * Decision totals: how many decisions were made with each version of a model, and when the first and the
 * last. The database keeps them with each decision that comes or goes (migration 0055), so that nobody
 * counts rows, and what retention has deleted is known still.
 */
#ifndef WEIR_ION_DECISION_TOTAL_H
#define WEIR_ION_DECISION_TOTAL_H

#include "base/arena.h"
#include "ion/decision.h"

/** Decisions of one pipeline that were made with the same versions. */
struct weir_decision_total {
    char *ion;
    char *pipeline;
    int64_t model_version;
    int64_t gallery_version;   /**< 0: without one. */
    bool is_sandbox;           /**< They were only tried. */
    int64_t n_made;            /**< All that were ever stored. */
    int64_t n_kept;            /**< Those that are there. */
    int64_t first_ms, last_ms; /**< Of all that were made, by their own time. */
};

/**
 * The totals of an ION's pipeline, those with the newest decision first.
 *
 * @param model_version    -1: of all.
 * @param gallery_version  -1: of all.
 * Cost: a row for each pair of versions that decided.
 */
weir_status weir_decision_totals(struct weir_txn *txn, const char *ion, const char *pipeline,
                                 int64_t model_version, int64_t gallery_version,
                                 struct weir_arena *arena, struct weir_decision_total **out,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Since when all decisions are counted; 0: always. Of versions that decided before, some decisions may
 *  have been deleted uncounted. */
weir_status weir_decisions_counted_since(struct weir_txn *txn, int64_t *out_ms,
                                         struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A page of the decisions behind these totals, the newest first.
 *
 * @param totals  By last_ms, descending.
 * @param cursor  *out_next of the page before; NULL: from the newest on.
 * @param out_next  NULL after the last.
 * @return INVALID for a cursor that is none.
 * Cost: `limit` rows for each total whose time reaches into the page, by an index.
 */
weir_status weir_decisions_of_totals(struct weir_txn *txn, const struct weir_decision_total *totals,
                                     size_t n, const char *cursor, size_t limit,
                                     struct weir_arena *arena, struct weir_decision **out,
                                     size_t *out_n, char **out_next,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
