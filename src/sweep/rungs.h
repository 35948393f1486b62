/**
 * Rungs: amounts of work at which trials are compared, so that bad ones are stopped early.
 *
 * Successive halving without waiting (ASHA: Li et al., "A System for Massively Parallel Hyperparameter
 * Tuning", MLSys 2020). Rung k lies at min_resource * eta^k, below max_resource. A trial that comes to
 * a rung goes on if it is among the best 1/eta of the trials that have come there so far, else it is
 * stopped. That is decided at once, as jobs of any program can be stopped, but not all can go on: the
 * first ones at a rung, of fewer than eta, go on only if they are the best one there.
 *
 * With at_rung "wait" it is as the paper has it (algorithm 2): a trial that is not among the best waits at
 * its rung, and is promoted when it is, before any new trial is begun, from the highest rung that has
 * one to promote. For programs that go on from a checkpoint; others begin again.
 *
 * Pure.
 */
#ifndef WEIR_SWEEP_RUNGS_H
#define WEIR_SWEEP_RUNGS_H

#include "base/options.h"

/** More than any rungs have: 2^63 is beyond what is counted. */
#define WEIR_SWEEP_RUNGS_MAX 64

struct weir_sweep_rungs {
    double min_resource, max_resource; /**< max 0: as long as its job runs. */
    int64_t eta;                       /**< 0: there are no rungs. */
    const char *resource;              /**< "step", or the metric whose value counts. */
    const char *at_rung;               /**< "stop" or "wait". */
};

/** Options of a kind whose struct has the rungs as its member `rungs`, or of rungs alone. */
#define WEIR_SWEEP_RUNGS_OPTIONS(strct, member)                                                    \
    WEIR_OPT_JSON(strct, member.min_resource, "min-resource", F64, 0, "1", 1e-9, 1e15,             \
                  "Where the first rung lies: no trial is stopped before"),                        \
        WEIR_OPT_JSON(strct, member.max_resource, "max-resource", F64, 0, "0", 0, 1e15,            \
                      "A trial that goes beyond it is stopped, and has succeeded; jobs can name "  \
                      "it as {{max_resource}}; 0: there is no such end"),                          \
        WEIR_OPT_JSON(strct, member.eta, "eta", INT, 0, "3", 2, 1000,                              \
                      "One in so many goes on at a rung; the next lies so many times as far"),     \
        WEIR_OPT_JSON(strct, member.resource, "resource", TEXT, 0, "step", 0, 0,                   \
                      "What counts the work: step, that of the goal's metric, or the name of "     \
                      "another metric, such as epoch"),                                            \
    {                                                                                              \
        .name = "at-rung", .type = WEIR_OPTION_TEXT,                                               \
        .offset = offsetof(struct strct, member.at_rung), .fallback = "stop",                      \
        .doc = "What becomes of a trial that is not among the best: stop ends it, wait holds its " \
               "job until it is; then it goes on from its checkpoint, or begins anew if its "      \
               "program keeps none",                                                               \
        .words = WEIR_WORDS("stop", "wait")                                                        \
    }

/** Do trials wait at rungs? */
static inline bool weir_sweep_rungs_wait(const struct weir_sweep_rungs *rungs)
{
    return rungs->at_rung != NULL && rungs->at_rung[0] == 'w';
}

/** @return INVALID unless min_resource is less than max_resource. */
weir_status weir_sweep_rungs_check(const struct weir_sweep_rungs *rungs, const char *where,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Where rung k lies; INFINITY: there is none. */
double weir_sweep_rungs_level(const struct weir_sweep_rungs *rungs, size_t k);

/**
 * Does the trial go on?
 * @param values  Those of the trials that have come to the rung, the trial's own among them, in the
 *                order of their numbers; NaN is worse than any.
 * @param own     Index of the trial's own. Equal values: the lower index is better.
 * @param out_rank  Its place, from 1. May be NULL.
 */
bool weir_sweep_rungs_goes_on(const struct weir_sweep_rungs *rungs, const double *values, size_t n,
                              size_t own, bool maximizes, size_t *out_rank);

/** The place of a trial among those that have come to the rung, from 1, as above. */
size_t weir_sweep_rungs_rank(const double *values, size_t n, size_t own, bool maximizes);

/** Is `left` better than `right`? NaN is worse than any. */
bool weir_sweep_is_better(double left, double right, bool maximizes);

#endif
