/**
 * The key by which sibling queues are compared: the lower one is served first, the higher one loses
 * first. The members of struct order_key decide in turn.
 */
#ifndef WEIR_SCHED_ORDER_KEY_H
#define WEIR_SCHED_ORDER_KEY_H

#include "sched/model/cluster.h"

/** All by which sibling queues are compared, worked out once per change. */
struct order_key {
    bool is_over_share; /**< In a resource; by over_share_in_all in all of them. */
    bool is_over_quota, has_no_share;
    int32_t priority;
    int64_t dominant_with, dominant_without;
    int64_t allocatable[WEIR_SCHED_N_RESOURCES];
};

/**
 * The key of a queue that has `has`, and `with` together with its next waiting job. Of models only
 * those count that the job is about.
 */
void order_make_key(const struct cluster *cluster, int32_t queue,
                    const struct weir_sched_amount *has, const struct weir_sched_amount *with,
                    struct order_key *out);

/** Negative if a queue with key l is served before its sibling with r. */
int order_compare_keys(const struct order_key *l, const struct order_key *r);

#endif
