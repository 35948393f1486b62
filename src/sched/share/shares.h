/**
 * What queues are entitled to and what that allows: fair shares down the tree, admission under
 * limits and quotas, and what is guaranteed. reclaim.h says who may take back from whom.
 */
#ifndef WEIR_SCHED_SHARES_H
#define WEIR_SCHED_SHARES_H

#include "sched/model/cluster.h"

/** A queue's share of one resource that holds now. */
static inline const struct weir_sched_share *shares_of(const struct cluster *cluster, int32_t queue,
                                                       int resource)
{
    return &cluster->queues[queue].shares[resource];
}

/** Whether a value is within a bound; -1 bounds nothing. */
static inline bool shares_is_within(int64_t value, int64_t bound)
{
    return bound < 0 || value <= bound;
}

/** Fill the queues' shares with those that hold now: a timed quota's, else their own. */
void shares_read(struct cluster *cluster);

/**
 * Divide the cluster among the roots, and every queue's share among its children. NOMEM. Cost: per
 * level and resource as division_give_rest.
 */
weir_status shares_divide(struct cluster *cluster) WEIR_MUST_CHECK;

/**
 * What a queue may be allocated of one resource: min(limit, max(quota, fair share)); -1 =
 * unlimited.
 */
int64_t shares_allocatable(const struct cluster *cluster, int32_t queue, int resource);

/**
 * What a queue may hold of one resource without being above its fair share; -1 = any amount. Of a
 * model it is never less than the quota: a task that may run on several models requests none of
 * them before it runs, so the division may have given less than what is held.
 */
int64_t shares_fair(const struct cluster *cluster, int32_t queue, int resource);

/**
 * Whether a queue and all above it may take `amount` more, of which `fixed` is non-preemptible.
 * @param wait  Out, if not: which queue may not and why. May be NULL.
 */
bool shares_admit(const struct cluster *cluster, int32_t queue,
                  const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed,
                  struct weir_sched_wait *wait);

/**
 * Whether the queues of a task may take what its devices count as on the node: by memory, and as
 * devices of the node's model. The rest of the task was admitted before. Cost: levels, if the task
 * asks by memory or there are shares of models.
 */
bool shares_admit_at(const struct cluster *cluster, int32_t task, int32_t node,
                     struct weir_sched_wait *wait);

/**
 * Whether `amount` is guaranteed to a queue: with it the queue stays within its quota, and so do
 * all queues above, without what the queues below those borrow. `is_allocated`: the queue holds it
 * already.
 */
bool shares_is_guaranteed(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount, bool is_allocated);

/**
 * Whether a queue holds no more of what `amount` counts than is guaranteed to it.
 * @param still_to_lose  Per queue, what it will lose beside; NULL: nothing.
 */
bool shares_holds_its_own(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount,
                          const struct weir_sched_amount *still_to_lose);

/**
 * Whether `amount` would be within the quotas of a queue and of all above it if they held nothing.
 */
bool shares_is_within_quotas(const struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount);

/**
 * The parts of node indices (cluster.index.parts), a bit each, in which shares_admit_at may admit
 * the task. Cost: models, and levels with shares of them.
 */
uint32_t shares_open_parts(const struct cluster *cluster, int32_t task);

#endif
