/**
 * Past share: what a queue has had lately (job/past_use.h) beside what it is due.
 *
 * A queue is due its guarantee, and its part by weight of what its siblings' guarantees leave
 * of what is due above it: what it would have if all queues always asked for all. Accelerators count where there are any, else CPUs.
 */
#ifndef WEIR_CONTROL_PAST_SHARE_H
#define WEIR_CONTROL_PAST_SHARE_H

#include "base/arena.h"
#include "sched/sched.h"

/** How many times its due a queue has had; -1: nothing is due to it. Pure. Cost: queues × levels. */
double past_share(const struct weir_sched_snapshot *rows, int32_t queue);

/** "3.1 times its share of the CPUs of late (by a half-life of 7 days)"; NULL: no more than its share, or nothing is due
 *  to it. In the arena. */
const char *past_share_tell(const struct weir_sched_snapshot *rows, int32_t queue,
                            int64_t half_life_ms, struct weir_arena *arena);

#endif
