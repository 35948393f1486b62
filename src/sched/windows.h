/** Shares that hold at a time of the day or week. */
#ifndef WEIR_SCHED_WINDOWS_H
#define WEIR_SCHED_WINDOWS_H

#include "sched/sched.h"

/** Whether the window holds at this moment. */
bool window_holds(const struct weir_sched_window *window, int64_t now_ms, int32_t utc_offset_min);

/**
 * The snapshot with the shares that hold at its now_ms: of each queue those of its first window
 * that holds, else its own.
 * @param out_queues  What out->queues points to if there are windows, for free(); else NULL.
 * @return NOMEM. Cost: queues and windows.
 */
weir_status windows_apply(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_profile *profile, struct weir_sched_snapshot *out,
                          struct weir_sched_queue **out_queues) WEIR_MUST_CHECK;

#endif
