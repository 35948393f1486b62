/**
 * What queues are entitled to, and what that allows: fair shares down the tree, admission under
 * limits and quotas, and who may take back from whom. By profile like_kai a reclaim is judged by
 * all resources, else by those that it is about.
 */
#ifndef WEIR_SCHED_SHARES_H
#define WEIR_SCHED_SHARES_H

#include "sched/cluster.h"

/** Fill the queues' shares with those that hold now: their windows' or their own. */
void shares_read(struct cluster *cluster);

/** Divide the cluster among the roots, and every queue's share among its children.
 *  Cost: per level and resource as division_give_rest. */
weir_status shares_divide(struct cluster *cluster) WEIR_MUST_CHECK;

/** min(limit, max(quota, fair share)) of one resource; -1 = unlimited. */
int64_t shares_allocatable(const struct cluster *cluster, int32_t queue, int resource);

/**
 * What a queue may hold of one resource without being above its fair share; -1 = any amount. Of a
 * model never less than its quota: what may run on several models requests none of them before it
 * runs, so that the division may have given less than what is held.
 */
int64_t shares_fair(const struct cluster *cluster, int32_t queue, int resource);

/** Whether a queue and all above it may take `amount` more, of which `fixed` is non-preemptible. If
 *  not, *wait (may be NULL) says which may not and why. */
bool shares_admit(const struct cluster *cluster, int32_t queue,
                  const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed,
                  struct weir_sched_wait *wait);

/** The same for what a task's devices count as on the node, by memory and as those of its model;
 * the rest of it was admitted before. Cost: levels, if it asks by memory or there are shares of
 * models. */
bool shares_admit_at(const struct cluster *cluster, int32_t task, int32_t node,
                     struct weir_sched_wait *wait);

/** Whether `amount` is guaranteed to a queue: it stays within its quota with it, and so do all
 * above it, not counting what the queues below those borrow. `is_allocated`: it is part of what the
 * queue holds already. */
bool shares_is_guaranteed(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount, bool is_allocated);

/** Whether a queue holds no more of what `amount` counts than is guaranteed to it, with what it is
 *  still to lose (per queue; NULL: nothing). */
bool shares_holds_its_own(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount,
                          const struct weir_sched_amount *still_to_lose);

/** Whether `amount` would be within the quotas of a queue and of all above it if they held nothing.
 */
bool shares_is_within_quotas(const struct cluster *cluster, int32_t queue,
                             const struct weir_sched_amount *amount);

/** The parts of node indices (cluster.parts) in which shares_admit_at may admit the task, a bit
 * each. Cost: models, and levels with shares of them. */
uint32_t shares_open_parts(const struct cluster *cluster, int32_t task);

/** Whether a queue that takes `amount` more stays within its fair share, and with `fixed` within
 * its quota: only then it may reclaim. */
bool shares_may_reclaim(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount,
                        const struct weir_sched_amount *fixed);

/** One thing that a reclaim takes from a queue. */
struct shares_loss {
    int32_t queue;
    struct weir_sched_amount amount;
    struct weir_sched_amount asked; /**< What it asks for then: of models those it must run on. */
    bool is_unfair;                 /**< Set by shares_mark_unfair. */
};

/**
 * Mark those of the losses to which `queue` has no right, each judged after those before it to
 * which it has: what shares_reclaim_is_fair would refuse. As there the losses are missing from the
 * queues' allocations, `amount` is in `queue`'s, and `remaining` is scratch.
 */
void shares_mark_unfair(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, struct shares_loss *losses,
                        int32_t n_losses, struct weir_sched_amount *remaining);

/**
 * Whether jobs of `leaf` may be victims at all of `queue`, which asks for `amount` more, like_kai:
 * beyond its quota it takes from who is above its allocatable share in any resource; within it,
 * from who is above its quota of something that is asked for, or below none of them.
 */
bool shares_may_take_from(const struct cluster *cluster, int32_t queue,
                          const struct weir_sched_amount *amount, int32_t leaf);

/**
 * Mark the leaf queues from which `queue` could take anything for `amount` more than it has, as all
 * stand now: shares_reclaim_is_fair refuses every loss of the others, whatever else is lost.
 * Cost: queues times depth.
 */
void shares_mark_losers(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, bool *out_may_lose);

/**
 * Whether `queue` may take `amount` at the cost of these losses, in this order. The losses are
 * already missing from the queues' allocations, and `amount` is already in `queue`'s. Queues are
 * compared just below their common ancestor; in their devices of a model the highest from there
 * down to their own that have a quota of it. Where guarantees come first, what is guaranteed to the
 * queue that would lose (shares_is_guaranteed) is never taken.
 * `remaining` is scratch, one per queue.
 */
bool shares_reclaim_is_fair(const struct cluster *cluster, int32_t queue,
                            const struct weir_sched_amount *amount, bool is_fixed,
                            const struct shares_loss *losses, int32_t n_losses,
                            struct weir_sched_amount *remaining);

#endif
