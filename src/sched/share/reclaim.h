/**
 * Who may take back from whom: queues that are below their share from queues above theirs. A
 * reclaim is judged by the resources that it is about.
 */
#ifndef WEIR_SCHED_RECLAIM_H
#define WEIR_SCHED_RECLAIM_H

#include "sched/share/shares.h"

/** Whether a queue that takes `amount` more stays within its fair share, and with `fixed` within
 * its quota: only then it may reclaim. */
bool reclaim_may_ask(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed);

/** One thing that a reclaim takes from a queue. */
struct reclaim_loss {
    int32_t queue;
    struct weir_sched_amount amount;
    struct weir_sched_amount asked; /**< What it asks for then: of models those it must run on. */
    bool is_unfair;                 /**< Set by reclaim_mark_unfair. */
};

/**
 * Mark those of the losses to which `queue` has no right, each judged after those before it to
 * which it has: what reclaim_is_fair would refuse. As there the losses are missing from the
 * queues' allocations, `amount` is in `queue`'s, and `remaining` is scratch.
 */
void reclaim_mark_unfair(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, struct reclaim_loss *losses,
                         int32_t n_losses, struct weir_sched_amount *remaining);

/**
 * Mark the leaf queues from which `queue` could take anything for `amount` more than it has, as all
 * stand now: reclaim_is_fair refuses every loss of the others, whatever else is lost.
 * Cost: queues times depth.
 */
void reclaim_mark_losers(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, bool *out_may_lose);

/**
 * Whether `queue` may take `amount` at the cost of these losses, in this order. The losses are
 * already missing from the queues' allocations, and `amount` is already in `queue`'s. Queues are
 * compared just below their common ancestor; in their devices of a model the highest from there
 * down to their own that have a quota of it. Where guarantees come first, what is guaranteed to the
 * queue that would lose (shares_is_guaranteed) is never taken.
 * `remaining` is scratch, one per queue.
 */
bool reclaim_is_fair(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, bool is_fixed,
                     const struct reclaim_loss *losses, int32_t n_losses,
                     struct weir_sched_amount *remaining);

#endif
