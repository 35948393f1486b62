/**
 * Over-quota use: what queues hold beyond what is theirs. It is why reclaim comes to an end.
 *
 * Four sums measure it for each resource: what leaves hold above what they may be allocated (quota
 * or fair share), what all queues hold above that, and both again above the quotas. Sums are
 * compared in this order, accelerators before CPUs before memory before models.
 */
#ifndef WEIR_SCHED_OVER_QUOTA_H
#define WEIR_SCHED_OVER_QUOTA_H

#include "sched/share/reclaim.h"

/**
 * Whether over-quota use is less than before `queue` took `amount` at the cost of these losses. All
 * of that is already in the queues' allocations.
 * @param scratch  One per queue, zero before and after.
 *
 * Cost: queues, and losses times depth.
 */
bool over_quota_is_less(const struct cluster *cluster, int32_t queue,
                        const struct weir_sched_amount *amount, const struct reclaim_loss *losses,
                        int32_t n_losses, struct weir_sched_amount *scratch);

#endif
