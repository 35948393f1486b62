/**
 * Arrays: jobs of many tasks that are independent of each other, such as one for each part of some
 * data. Each task is placed when there is room for it, at most job.parallel at once. One that fails
 * is tried again as often as the job's max_restarts says, after 1 s, 2 s, 4 s … 60 s; one whose node
 * was lost WEIR_JOB_LOSSES_MIN times at least. The others go on whatever becomes of it. The job ends
 * with its last task: it has succeeded if all have, and else says how many have not, and what the
 * first of them said.
 *
 * Pure; any thread.
 */
#ifndef WEIR_JOB_ARRAY_H
#define WEIR_JOB_ARRAY_H

#include "job/job_step.h"

struct weir_array_count {
    size_t n_waiting, n_starting, n_running; /**< A task that is being stopped counts as running. */
    size_t n_failed, n_ended;                /**< Of all that have ended for good, failed ones. */
    const struct weir_task *failed;          /**< The first of them; NULL: none. */
};

struct weir_array_count weir_array_count(const struct weir_job_state *state);

/** May a task that has ended, and not well, be tried again? */
bool weir_array_may_retry(const struct weir_job *job, const struct weir_task *task);

/** How many tasks may be started now, beside those that are at it. */
size_t weir_array_room(const struct weir_job_state *state);

/** Why an array of which tasks have failed has failed: "2 of 500 tasks failed; command 7 …". In the
 *  arena. */
char *weir_array_reason(const struct weir_job_state *state, const struct weir_array_count *count,
                        struct weir_arena *arena);

#endif
