/**
 * Arms: what came of the requests of a deployment, by version, while two of its versions are compared
 * (ion/policy_arms.h). An arm is the sum of the samples of its version and metric that hold from when the
 * comparison began: outcomes of requests (ion/outcome.h), and KPIs that name the version (ion/kpi.h). Whoever
 * stores or replaces a sample counts it in the same transaction, so that at any time an arm is what its
 * rows sum up to, and a server that is killed has lost nothing and counts nothing twice.
 */
#ifndef WEIR_ION_ARMS_H
#define WEIR_ION_ARMS_H

#include "ion/ion_step.h"
#include "ion/policy_arms.h"
#include "store/store.h"

struct weir_ab_arm; /* stats/ab.h */

struct weir_ion_arm {
    char *id; /**< "CANDIDATE/VERSION" */
    char *ion;
    char *candidate;
    char *deployment;
    char *model;
    int64_t version; /**< The candidate's, or the one that it is compared with. */
    char *metric;
    int64_t since_ms;
    int64_t n;
    double origin; /**< Subtracted from each value, so that sums of squares keep their digits. */
    double total, total2;
};

extern const struct weir_resource weir_ion_arm_resource;

/** What was sampled. Either the deployment is named, or the ION with the model. */
struct weir_ion_sample {
    const char *deployment;
    const char *ion, *model;
    int64_t version;
    const char *metric;
    int64_t time_ms; /**< When the request was answered, or the KPI held. */
};

/**
 * Count a sample that is stored in this transaction.
 * @param value  NULL: it is taken away.
 * @param old    The value that was stored for it before; NULL: none.
 */
weir_status weir_ion_arms_count(struct weir_txn *txn, const struct weir_ion_sample *sample,
                                const double *value, const double *old, struct weir_arena *arena,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The ION was saved: arms of comparisons that have begun are there, those of others go. */
weir_status weir_ion_arms_follow(struct weir_txn *txn, const struct weir_ion_state *state,
                                 struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** Of a candidate and the version that it is compared with; zeros if there are none yet. */
weir_status weir_ion_arms_read(struct weir_txn *txn, const struct weir_ion_state *state,
                               const struct weir_ion_candidate *candidate, struct weir_arena *arena,
                               struct weir_policy_arms *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
