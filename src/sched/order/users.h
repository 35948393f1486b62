/** Fairness among the users of one queue. */
#ifndef WEIR_SCHED_USERS_H
#define WEIR_SCHED_USERS_H

#include "sched/order/order.h"

/** Whether there are different users, so that it matters. Cost: jobs. */
bool users_differ(const struct cluster *cluster);

/** Number the users of each queue, for cluster.user_usage. Cost: jobs. */
weir_status users_number(struct cluster *cluster) WEIR_MUST_CHECK;

/**
 * What each waiting job's user has when it is the job's turn: the devices of what runs of the user
 * in the queue, and of the user's jobs that come before it. Jobs of the user with less go first;
 * jobs without a user count as one user's.
 *
 * @param is_listed, ranks  Per job: whether it waits, and its enum quantum_rank.
 * @param out   Per job its claim, in thousandths of a device; of listed jobs only.
 * @return NOMEM. Cost: O(listed * log listed), and looking for those that are.
 */
weir_status users_claim(const struct cluster *cluster, const bool *is_listed, const uint8_t *ranks,
                        struct order_job *out) WEIR_MUST_CHECK;

#endif
