/** Fairness among the users of one queue: of equal jobs the one goes first whose user has less. */
#ifndef WEIR_SCHED_USERS_H
#define WEIR_SCHED_USERS_H

#include "sched/order/order.h"

/** Whether there are different users at all. Cost: jobs. */
bool users_differ(const struct cluster *cluster);

/** Number the users of each queue, for cluster.user_usage. Cost: jobs. */
weir_status users_number(struct cluster *cluster) WEIR_MUST_CHECK;

/**
 * Work out what each waiting job's user has when it is the job's turn: the devices of the user's
 * running work in the queue, and of the user's jobs that come before. Jobs without a user count as
 * one user's.
 *
 * @param is_listed, ranks  Per job: whether it waits, and its enum quantum_rank.
 * @param out   Per listed job its claim, in thousandths of a device.
 * @return NOMEM.
 *
 * Cost: O(listed * log listed), and a look at all jobs.
 */
weir_status users_claim(const struct cluster *cluster, const bool *is_listed, const uint8_t *ranks,
                        struct order_job *out) WEIR_MUST_CHECK;

#endif
