/**
 * Which queues may take back from which: those below their share from those above theirs. A reclaim
 * is judged by the resources that it is about.
 */
#ifndef WEIR_SCHED_RECLAIM_H
#define WEIR_SCHED_RECLAIM_H

#include "sched/share/shares.h"

/**
 * Whether a queue may reclaim at all: with `amount` more it stays within its fair share, and with
 * `fixed` within its quota.
 */
bool reclaim_may_ask(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, const struct weir_sched_amount *fixed);

/** What a reclaim takes from one queue. */
struct reclaim_loss {
    int32_t queue;
    struct weir_sched_amount amount;
    struct weir_sched_amount asked; /**< What it asks for then: of models those it must run on. */
    bool is_unfair;                 /**< Set by reclaim_mark_unfair. */
};

/**
 * Mark the losses to which `queue` has no right: those that reclaim_is_fair would refuse. Each is
 * judged after the fair ones before it. The losses are missing from the queues' allocations
 * already, and `amount` is in that of `queue`.
 * @param remaining  Scratch, one per queue, zero before and after.
 */
void reclaim_mark_unfair(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, struct reclaim_loss *losses,
                         int32_t n_losses, struct weir_sched_amount *remaining);

/**
 * Mark the leaf queues that could lose anything to `queue` for `amount` more than it has, as all
 * stand now. reclaim_is_fair refuses every loss of the others, whatever else is lost. Cost: queues
 * times depth.
 */
void reclaim_mark_losers(const struct cluster *cluster, int32_t queue,
                         const struct weir_sched_amount *amount, bool *out_may_lose);

/**
 * Whether `queue` may take `amount` at the cost of these losses, in this order. The losses are
 * missing from the queues' allocations already, and `amount` is in that of `queue`.
 *
 * Queues are compared just below their common ancestor. In devices of a model, the highest queue
 * counts, from there down to their own, that has a quota of the model. Where guarantees come first,
 * what is guaranteed to a queue (shares_is_guaranteed) is never taken from it.
 *
 * @param remaining  Scratch, one per queue.
 */
bool reclaim_is_fair(const struct cluster *cluster, int32_t queue,
                     const struct weir_sched_amount *amount, bool is_fixed,
                     const struct reclaim_loss *losses, int32_t n_losses,
                     struct weir_sched_amount *remaining);

#endif
