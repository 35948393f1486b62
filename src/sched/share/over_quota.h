/**
 * What queues hold beyond what is theirs: why reclaim comes to an end. Of each resource it is
 * measured as four sums: what leaves hold above what they may be allocated (quota or fair share),
 * what all queues hold above it, and the same above their quotas. Sums are compared in this order,
 * accelerators before CPUs before memory before models.
 */
#ifndef WEIR_SCHED_OVER_QUOTA_H
#define WEIR_SCHED_OVER_QUOTA_H

#include "sched/share/reclaim.h"

/**
 * Whether less is borrowed than before `queue` took `amount` at the cost of these losses, all of
 * which is already in the queues' allocations. `scratch` is one per queue, zero before and after.
 * Cost: queues, and losses times depth.
 */
bool over_quota_is_less(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, const struct reclaim_loss *losses,
                        int32_t n_losses, struct weir_sched_amount *scratch);

#endif
