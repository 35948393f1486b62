/** Shares that hold at a time of the day or week. */
#ifndef WEIR_SCHED_WINDOWS_H
#define WEIR_SCHED_WINDOWS_H

#include "sched/sched.h"

/** Whether the window holds at this moment. */
bool window_holds(const struct weir_sched_window *window, int64_t now_ms, int32_t utc_offset_min);

/** The first window of a queue that holds at the snapshot's now_ms; NULL: its own shares hold. */
const struct weir_sched_window *window_of(const struct weir_sched_snapshot *snapshot,
                                          const struct weir_sched_queue *queue);

#endif
