/**
 * Pages of models and of model versions, found by filters and orders (track/search.h). Deleted ones are
 * not found; of a transaction with a row scope only what that shows.
 */
#ifndef WEIR_TRACK_MODEL_SEARCH_H
#define WEIR_TRACK_MODEL_SEARCH_H

#include "track/search.h"
#include "track/track.h"

extern const struct weir_search_noun weir_model_noun; /**< name, times, tags. */
extern const struct weir_search_noun
    weir_version_noun; /**< name, version, run, source, times, tags. */

struct weir_model_search {
    const struct weir_search_node *filter; /**< NULL: none. */
    const struct weir_search_order *orders;
    size_t n_orders;
    const char *cursor; /**< *out_next of the page before; NULL: from the start. */
    size_t limit;
};

/** Models; ties, and without orders: by name. @return INVALID for a cursor of another search; LIMIT. */
weir_status weir_model_search(struct weir_txn *txn, const struct weir_model_search *search,
                              struct weir_arena *arena, struct weir_model **out, size_t *out_n,
                              char **out_next, struct weir_error *err) WEIR_MUST_CHECK;

/** Versions; ties, and without orders: by the last change, latest first, then by name and number. What is
 *  large (parameters, histograms, signature) is left out. */
weir_status weir_version_search(struct weir_txn *txn, const struct weir_model_search *search,
                                struct weir_arena *arena, struct weir_model_version **out,
                                size_t *out_n, char **out_next,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
