/**
 * What tasks use of their machines becomes metrics of the runs that they work for, so that a chart of
 * the loss and one of the processors share an axis.
 *
 *     system/cpu_cores                  processors that were busy, 1.5 = one and a half
 *     system/memory_bytes               memory, without the files that the kernel could forget
 *     system/gpu_N_utilization_percent  of each device that the task has as a whole
 *     system/gpu_N_memory_bytes
 *
 * Of a job with several tasks the name goes on with the task: "system/task_3/cpu_cores". The step is
 * the second of the run.
 */
#ifndef WEIR_CONTROL_TASK_USE_H
#define WEIR_CONTROL_TASK_USE_H

#include "control/control.h"

/** The use of one attempt, as its agent says it. Text is borrowed. */
struct task_use {
    const char *task;
    int64_t attempt;
    double cpu_cores;
    int64_t memory_bytes;
};

/** So many ranks of a job have their use kept; those behind them are like them. */
#define TASK_USE_RANKS_MAX 16

/**
 * Store it, in the caller's transaction. Attempts that are not the latest of their task, were not placed
 * on the node, or work for no run, are passed over.
 */
weir_status control_task_use(struct control *control, struct weir_txn *txn, const char *node,
                             const struct task_use *uses, size_t n,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
