/**
 * Claims: what the threshold of a pipeline that recognises people can and cannot claim, as figures that each
 * say what they rest on.
 *
 * A replica measures by *searches*: an impostor's photo against the whole gallery. Its expected rate is the
 * share of searches that name somebody, so the gallery's size is in it. Photos of one person say nearly
 * the same: what a rate can claim rests on people, not on photos (stats/claim.h). Nobody's rate is taken
 * as lower than that.
 *
 * The *unknown* are the decisions that knew nobody. Each is one search. People who are enrolled and were not
 * recognised are among them, and a person who stays before a camera may be decided often: the figures err
 * towards too many. A photograph of somebody who is enrolled is known, and in none of them.
 */
#ifndef WEIR_ION_CLAIM_H
#define WEIR_ION_CLAIM_H

#include "base/arena.h"
#include "ion/threshold.h"

#define WEIR_UNKNOWN_DAYS 7 /**< Looked back on, today among them. */

/** Decisions of the last days that knew nobody, without those that were only tried. */
struct weir_unknown {
    int64_t n;
    double days; /**< That they came in, at least 1; NaN: the pipeline has decided nothing yet. */
};

/** Cost: a row for each day and for each pair of versions that decided. */
weir_status weir_unknown_count(struct weir_txn *txn, const char *ion, const char *pipeline,
                               int64_t now_ms, struct weir_unknown *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** A figure, and what it rests on. */
struct weir_claim {
    const char *name;
    double value; /**< NaN: not known. */
    const char *unit;
    const char *rests_on; /**< A sentence or more. */
};

#define WEIR_CLAIMS 6

/** The figures, in the order in which each rests on those before it; texts in the arena. Pure. */
void weir_claims_of(const struct weir_threshold *threshold, const struct weir_unknown *unknown,
                    struct weir_arena *arena, struct weir_claim out[WEIR_CLAIMS]);

#endif
