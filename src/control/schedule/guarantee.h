/**
 * Guarantees: are they more than the cluster has?
 *
 * What a queue is guaranteed holds while it is asked for, so guarantees of all queues together above
 * what the nodes have cannot be kept. A department counts as what its parts are guaranteed in all, or as
 * its own guarantee where that is more. A guarantee without a bound states no number and counts as
 * none. Quotas of times of the week are looked at at each time at which one of them begins or ends, as
 * far as GUARANTEE_TIMES_MAX of them.
 *
 * A node counts with its whole CPUs, not with the room that it has beside them for small tasks.
 * All nodes that the rows have count, also those that are draining or silent: they come back.
 *
 * Pure. Cost: times × queues.
 */
#ifndef WEIR_CONTROL_GUARANTEE_H
#define WEIR_CONTROL_GUARANTEE_H

#include "base/arena.h"
#include "sched/sched.h"

#define GUARANTEE_TIMES_MAX 1000

struct guarantee_sum {
    struct weir_sched_amount sum, capacity; /**< At the time at which most is missing. */
    int64_t at_ms;
    int32_t resource; /**< The largest part of it is missing; -1: all can be kept. */
};

/** Sum up. Rows without nodes miss nothing: nobody knows yet what there will be. */
void guarantee_look(const struct weir_sched_snapshot *rows, struct weir_arena *arena,
                    struct guarantee_sum *out);

/** A queue's share of a resource or model (of weir_sched_models) that holds at the rows' time; NULL: it
 *  has none of this model. */
const struct weir_sched_share *guarantee_share(const struct weir_sched_snapshot *rows,
                                               const struct weir_sched_queue *queue, int32_t r,
                                               const char *const *models);

/** What the nodes have; of models nothing. */
void guarantee_capacity(const struct weir_sched_snapshot *rows, struct weir_sched_amount *out);

/** How much of the resource is missing; 0: nothing. */
int64_t guarantee_missing(const struct guarantee_sum *sum);

/** Does another queue have some of it that it does not use? `used` and `named` as of guarantee_tell. */
bool guarantee_has_donors(const struct weir_sched_snapshot *rows, const struct guarantee_sum *sum,
                          const struct weir_sched_queue_share *used, const bool *named,
                          struct weir_arena *arena);

/**
 * A sentence: of what is too much guaranteed, and from which queues it could be taken, those first
 * that use the least of theirs. In the arena.
 *
 * @param used  Per row what the queue has, of a plan.
 * @param named  Per row: may it be named? NULL: all.
 */
const char *guarantee_tell(const struct weir_sched_snapshot *rows, const struct guarantee_sum *sum,
                           const struct weir_sched_queue_share *used, const bool *named,
                           struct weir_arena *arena);

#endif
