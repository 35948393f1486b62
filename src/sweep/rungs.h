/**
 * Rungs: amounts of work at which trials are compared, so that bad ones are stopped early.
 *
 * Successive halving without waiting (ASHA: Li et al., "A System for Massively Parallel Hyperparameter
 * Tuning", MLSys 2020). Rung k lies at min_resource * eta^k, below max_resource. A trial that comes to
 * a rung goes on if it is among the best 1/eta of the trials that have come there so far, else it is
 * stopped. The paper leaves a trial at its rung until it is among them, and takes it up again from its
 * checkpoint; here it is decided at once, as jobs of any program can be stopped, but not all can go
 * on. So the first ones at a rung, of fewer than eta, go on only if they are the best one there.
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
                      "another metric, such as epoch")

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

/** Is `left` better than `right`? NaN is worse than any. */
bool weir_sweep_is_better(double left, double right, bool maximizes);

#endif
