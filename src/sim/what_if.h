/**
 * What the next cycle would do, and what it would do otherwise: a snapshot of a live system is
 * planned as it is and with a change, and the two plans are compared job by job.
 */
#ifndef WEIR_SIM_WHAT_IF_H
#define WEIR_SIM_WHAT_IF_H

#include "base/buf.h"
#include "base/json.h"
#include "sched/sched.h"

#define WEIR_SIM_KEEP INT64_MIN /**< This number stays as it is. */

/** A change of one job, or of one queue, or of both. */
struct weir_sim_change {
    const char *job;      /**< NULL: no job changes. */
    int64_t accelerators; /**< Of all its tasks together; it is asked for again, also if it runs. */
    int64_t priority;
    const char *queue;                        /**< NULL: no queue changes. */
    const char *model;                        /**< Of its accelerators of this one; NULL: of all. */
    int64_t quota_milli, limit_milli, weight; /**< Of accelerators; WEIR_SCHED_UNLIMITED. */
};

/** Begin with a change of nothing. */
void weir_sim_change_init(struct weir_sim_change *change);

/**
 * What a plan does with each job:
 *     {"jobs": [{"job", "queue", "outcome", "why"}], "counts": {"starts": …}}
 * Outcomes are "starts", "grows", "starts when room is free", "waits", "evicted", "shrinks",
 * "moves" and "stays".
 *
 * @param out  The caller owns it.
 * @return As weir_sched_plan.
 */
weir_status weir_sim_next(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_profile *profile, json_t **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The same for people who see the jobs of one queue alone: "why" names no job of another queue. With
 *  the plan itself, which the caller frees. */
weir_status weir_sim_next_plan(const struct weir_sched_snapshot *snapshot,
                               const struct weir_sched_profile *profile, json_t **out,
                               struct weir_sched_plan **out_plan,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What differs between the plan as it is and the plan with a change:
 *     {"before": counts, "after": counts,
 *      "jobs": [{"job", "queue", "before", "after", "why_before", "why_after"}],
 *      "queues": [{"queue", "model", "fair_share_before", "fair_share_after",
 *                  "allocated_before", "allocated_after"}]}
 * The changed job is there in any case. Amounts are accelerators: of all models ("model" is null),
 * and of each model of which a queue has a share.
 *
 * @param out  The caller owns it.
 * @return NOT_FOUND: no such job or queue, no node of this model; INVALID: accelerators that the
 *         tasks cannot share evenly, a number out of range, nothing to change.
 */
weir_status weir_sim_what_if(const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_profile *profile,
                             const struct weir_sim_change *change, json_t **out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
