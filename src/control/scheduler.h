/**
 * Scheduler: gives nodes to the tasks that want one, by the planner (sched/sched.h).
 *
 * A cycle has three steps. *Read* brings the copy of jobs and nodes up to date, in one read
 * transaction (snapshot.h). *Plan* asks weir_sched_plan what should start where, outside of any
 * transaction. *Commit* writes what was planned: each job is bound only if it is still at the
 * revision that was planned with, and its nodes still take tasks; what has moved meanwhile is left
 * out and planned again. Many jobs share a transaction, and one that cannot be written fails alone.
 * So a crash leaves each job as it was before or as it is after.
 *
 *     WEIR_TRY(scheduler_read(scheduler, now_ms, since_ms, err));
 *     WEIR_TRY(scheduler_plan(scheduler, now_ms, err));
 *     next_ms = scheduler_commit(scheduler, now_ms, since_ms);
 *
 * The rules are the profile "default". While no queue is set (job/queue.h) projects share what is there
 * evenly and nothing is evicted. Once one is, its shares hold: what is lent is reclaimed for whom it is
 * guaranteed or whose fair share it is, and in a queue higher priority preempts lower. Who is evicted is
 * asked to end, saves what it has, and waits again; a job that says that it can save is asked that first, and
 * ended when it has answered, or its time is over (job/job_step.h); nothing is moved to tidy up. A gang starts whole or
 * not at all. In a project replicas of services go first, then whoever came first. For the first waiting jobs room
 * is held, so that smaller ones do not pass a large gang for ever; and for the first of a project that
 * was not served for a minute, whatever other projects send.
 *
 * Why a job waits and when it may start is written to it (reason, expected_start_ms): at once if
 * nothing was said yet, else at most every SCHEDULER_NOTE_EVERY_MS. A start is told only if it
 * follows the end of a job that runs and whose like has run before (run_history.h).
 *
 * Owned by one thread, the engine's; it waits for nothing but the store. Memory: aborts if there is
 * none, but for a plan that has none: then nothing is planned, and the next cycle tries again.
 */
#ifndef WEIR_CONTROL_SCHEDULER_H
#define WEIR_CONTROL_SCHEDULER_H

#include "control/control.h"
#include "control/queue_sample.h"
#include "control/snapshot.h"
#include "store/store.h"

#define SCHEDULER_NOTE_EVERY_MS 5000
#define SCHEDULER_NOTES_MAX                                                                        \
    1024 /**< Reasons written in one cycle; the others' wait for the next. */
#define SCHEDULER_BATCH_JOBS       128 /**< Bound in one transaction. */
#define SCHEDULER_DEVICES_AGAIN_MS 100 /**< So is one whose devices were not free after all. */
#define SCHEDULER_AGAIN_MS         1000 /**< A job that could not be bound is left alone for so long. */

struct scheduler;

struct scheduler_config {
    struct weir_store *store;
    struct control_listener listener;    /**< Copied. */
    const char *state_dir, *server_url;  /**< Borrowed. */
    const struct weir_registry *drivers; /**< The drivers of clusters; NULL: weir_drivers. */
    /** How the writing of a job went that was written alone, because it or one beside it could not
     *  be. A job that failed is left alone for so long as this says, in milliseconds. NULL: errors
     *  are logged, and it is tried again after SCHEDULER_AGAIN_MS. */
    int64_t (*wrote)(void *context, const char *job, weir_status status,
                     const struct weir_error *err);
    void *context;
};

struct scheduler *scheduler_create(const struct scheduler_config *config);
void scheduler_destroy(struct scheduler *scheduler);

/**
 * Bring the copy up to date.
 * @param since_ms  Since when nodes could report (struct weir_node_watch).
 * @return The store's error; the next reading goes on from there.
 */
weir_status scheduler_read(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** The copy: to find jobs that are due, or that were on a lost node. Valid
 *  until the next call of a function here. */
const struct snapshot *scheduler_snapshot(const struct scheduler *scheduler);

/**
 * Plan, if anything has changed or time asks for it. @return NOMEM; INVALID if the planner does not
 * accept the rows, which would be a mistake of this program.
 */
weir_status scheduler_plan(struct scheduler *scheduler, int64_t now_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Write what was planned. Errors are told to config.wrote, or logged.
 * @return When the next cycle is due though nothing changes; now_ms: at once; INT64_MAX: never.
 */
int64_t scheduler_commit(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms);

/**
 * Ask of clusters what the last plan had no place for, and give back what nothing needs (schedule/demand.h). After the
 * commit.
 *
 * @param out_next_ms   When to do it again though nothing changes; INT64_MAX: never.
 * @param out_is_asked  Something is wanted, or given back, that was not.
 * @return As weir_sched_plan, or the store's error.
 */
weir_status scheduler_demand(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms,
                             int64_t *out_next_ms, bool *out_is_asked,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** What each queue has by the copy (queue_sample.h). The samples lie in the arena; their texts are valid
 *  until the next call of a function here. */
void scheduler_sample_queues(struct scheduler *scheduler, int64_t now_ms, struct weir_arena *arena,
                             struct weir_queue_sample **out, size_t *out_n);

/** What the nodes of the copy have, and the memory that projects have of it by these samples. In the arena. */
void scheduler_past_now(const struct scheduler *scheduler, const struct weir_queue_sample *samples,
                        size_t n, struct weir_arena *arena, struct weir_past_now *out);

/** Tasks that the last commit asked to end for others. */
int32_t scheduler_n_evicted(const struct scheduler *scheduler);

/** Tasks bound by the last commit. */
int32_t scheduler_n_bound(const struct scheduler *scheduler);

#endif
