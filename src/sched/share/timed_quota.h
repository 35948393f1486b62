/** Shares that hold at a time of the day or week. Pure. */
#ifndef WEIR_SCHED_TIMED_QUOTA_H
#define WEIR_SCHED_TIMED_QUOTA_H

#include "sched/sched.h"

/** Whether a timed quota holds at this moment. */
bool timed_quota_holds(const struct weir_sched_timed_quota *timed, int64_t now_ms);

/**
 * The first timed quota of a queue that holds at the snapshot's now_ms; NULL: the queue's own
 * shares hold.
 */
const struct weir_sched_timed_quota *timed_quota_of(const struct weir_sched_snapshot *snapshot,
                                                    const struct weir_sched_queue *queue);

#endif
