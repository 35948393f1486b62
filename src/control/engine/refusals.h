/**
 * Refusals: deployments that refuse or fail their requests, by whatever their shares were set. A rollout of an ION has
 * its policies; of shares that people set, this tells by an alert (requests_fail).
 *
 * Looked at are the requests of the last one to two minutes, version by version: that surely more than a tenth
 * of them failed; that it surely refuses (4xx) more of them than the version with the largest other share
 * (ion/policy_refusal.h) in the same time, in which both had their shares; or, where no other version answers, that it surely refuses more than half. "Surely" is
 * the lower end of a 95 % interval (Wilson), of REFUSALS_LEAST requests at least. The finding is gone when
 * that is no longer so, also because no requests come.
 *
 * One thread's.
 */
#ifndef WEIR_CONTROL_REFUSALS_H
#define WEIR_CONTROL_REFUSALS_H

#include "control/rollout.h"
#include "watch/watch.h"

#define REFUSALS_LEAST      20
#define REFUSALS_WINDOW_MS  60000
#define REFUSALS_FAILED     0.1
#define REFUSALS_UNACCEPTED 0.5

/** Figures, without texts, when the two last windows began. */
struct refusals_window {
    struct weir_ion_figures before, last;
};

struct refusals_base {
    char *deployment;
    int64_t version, other;      /**< It is compared with `other`; 0: with none. */
    struct refusals_window own;  /**< Since it is looked at, or its counters began again. */
    struct refusals_window pair; /**< Since both are. */
    bool is_seen;
};

/** Start with {0}. */
struct refusals {
    struct refusals_base *items;
    size_t n, cap;
    int64_t turned_ms; /**< Monotonic: when the last window began. */
};

void refusals_fini(struct refusals *refusals);

/** What is wrong with a version, in words for "Version 2 of deployment d …"; NULL: nothing. Pure.
 *  @param own   What came of its requests.
 *  @param pair  The same since the other version answers too, and of that one.
 *  @param live_ppm  Its share; a million: no other version answers. */
const char *refusals_judge(const struct weir_ion_figures *own, const struct weir_ion_figures *pair,
                           int64_t live_ppm, struct weir_arena *arena);

/** Look at all deployments, and add what is found. */
void refusals_look(struct refusals *refusals, const struct control_figures *figures,
                   const struct weir_watch_seen *seen, int64_t mono_ms, struct weir_arena *arena,
                   struct weir_watch_findings *findings);

#endif
