/**
 * Apply: carry out a plan, job by job.
 *
 * A plan is one list of actions on tasks. Whoever carries it out works on jobs: the server writes a
 * job in one transaction, the simulator stops and starts jobs, a test looks at a gang as a whole.
 * weir_sched_apply does the part that all of them share. It hands out the plan as *parts*: all that
 * one job loses, then all that one job gets, then why a job waits.
 *
 *     const struct weir_sched_executor executor = {
 *         .evict = stop_tasks, .place = start_tasks, .wait = note_reason, .context = server};
 *     WEIR_TRY(weir_sched_apply(&snapshot, plan, &executor, err));
 *
 * All evictions are handed out before the first placement, so what is placed on evicted room finds
 * it left. Within each of the two steps jobs come in the order in which the plan first names them,
 * and a job's actions in the plan's order.
 *
 * A cluster that lives in memory alone needs no executor of its own: weir_sched_apply_to_rows
 * changes the rows of a snapshot as a real cluster would change them.
 *
 * Threads: all functions are re-entrant.
 */
#ifndef WEIR_SCHED_APPLY_H
#define WEIR_SCHED_APPLY_H

#include "base/arena.h"
#include "sched/sched.h"

/** What one step of a plan does to one job. Valid during the call. */
struct weir_sched_part {
    int32_t job;
    const struct weir_sched_action *const *actions; /**< In the plan's order; at least one. */
    int32_t n_actions;
};

/** An error ends weir_sched_apply, which returns it. */
typedef weir_status (*weir_sched_part_fn)(void *context, const struct weir_sched_part *part,
                                          struct weir_error *err);
typedef weir_status (*weir_sched_wait_fn)(void *context, const struct weir_sched_wait *wait,
                                          struct weir_error *err);

struct weir_sched_executor {
    weir_sched_part_fn evict; /**< EVICT and GRACE_REQUEST_CHECKPOINT. NULL: it can do neither. */
    weir_sched_part_fn place; /**< BIND and PIPELINE. NULL: it can do neither. */
    weir_sched_wait_fn wait;  /**< NULL: nobody wants to know. */
    void *context;
};

/** May this job start with what the part gives it: is nothing of it only promised (PIPELINE)? */
bool weir_sched_part_is_bound(const struct weir_sched_part *part);

/**
 * Hand out a plan to an executor.
 *
 * @param snapshot  The one that the plan was made of.
 * @return The executor's error; UNSUPPORTED, before anything is handed out, if the plan asks for a
 *         step for which the executor has no function; NOMEM.
 * Cost: linear in tasks, jobs and actions.
 */
weir_status weir_sched_apply(const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_plan *plan,
                             const struct weir_sched_executor *executor,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The rows of a snapshot, where they may be written. */
struct weir_sched_rows {
    const struct weir_sched_snapshot *snapshot;
    struct weir_sched_job *jobs;   /**< The snapshot's. */
    struct weir_sched_task *tasks; /**< The snapshot's. */
    struct weir_arena *arena;      /**< Where the tasks' devices and promises are put. */
};

/**
 * Carry a plan out on rows, at the snapshot's time. A bound task is RUNNING. An evicted task is
 * RELEASING; DONE if its time was up or it was idle. A task asked for a checkpoint is_leaving. A
 * pipelined task is PIPELINED, or has a promise if it still has to leave another node. What takes
 * time after that (a task that leaves, a checkpoint that is complete) is the caller's.
 * @return NOMEM.
 */
weir_status weir_sched_apply_to_rows(const struct weir_sched_rows *rows,
                                     const struct weir_sched_plan *plan,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
