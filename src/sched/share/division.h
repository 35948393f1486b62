/**
 * Divide an amount of one resource among the children of one queue: first the quotas, then the rest
 * by priority and weight, in whole units, then what rounding left, one unit at a time. Pure.
 */
#ifndef WEIR_SCHED_DIVISION_H
#define WEIR_SCHED_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#define DIVISION_PPM 1000000

/** One queue in the division of one resource. */
struct division_part {
    int64_t quota, limit; /**< -1 = unlimited. */
    int64_t weight;
    int64_t want; /**< Allocated and pending together, not yet cut by the limit. */
    int64_t usage_ppm;
    int32_t priority;
    int32_t age_rank;  /**< Creation order, the older the smaller. */
    int64_t share;     /**< In and out: what it has so far. */
    int64_t left_over; /**< Scratch: the part of a unit that rounding cut off, in 2^-30 units. */
    int64_t weight_in_round; /**< Scratch. */
};

/**
 * Step 1: give each queue up to its quota (all of `total` if that is unlimited). @return What
 * remains; at least 0, though quotas may promise more than there is.
 */
int64_t division_give_quota(struct division_part *parts, int32_t n, int64_t total);

/** How steps 2 and 3 divide. */
struct division_rule {
    int64_t unit;             /**< Shares are cut to multiples of it. */
    int64_t usage_weight_ppm; /**< k. */
};

/**
 * Steps 2 and 3: divide `amount`. The order of `parts` changes.
 * @return What no queue wants.
 *
 * Cost: n log n + n per round, at most n rounds a priority.
 */
int64_t division_give_rest(struct division_part *parts, int32_t n, int64_t amount,
                           const struct division_rule *rule);

#endif
