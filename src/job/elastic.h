/**
 * Elastic: how many of its tasks a gang needs. Most need all. One with min_tasks below their number
 * is *elastic*: it begins with so many, the others follow as there is room, and it goes on without
 * those that it loses as long as so many are left. Once a task of it has ended well no other is
 * started: the work is coming to its end. It has succeeded when none is alive any more.
 *
 * Pure; any thread.
 */
#ifndef WEIR_JOB_ELASTIC_H
#define WEIR_JOB_ELASTIC_H

#include "job/job_step.h"

bool weir_job_is_elastic(const struct weir_job_state *state);

/** How many of the tasks that want a node must get one together. */
size_t weir_job_least(const struct weir_job_state *state, size_t n_wants);

/** Has a task ended well that nobody asked to end? */
bool weir_job_is_ending(const struct weir_job_state *state);

/** Have as many tasks of a gang run as it needs? */
bool weir_job_has_begun(const struct weir_job_state *state);

/** Does an elastic gang go on without this task? */
bool weir_job_may_lose(const struct weir_job_state *state, const struct weir_task *task);

/** Have the tasks that do a gang's work ended well? Parameter servers, servers and evaluators only
 *  serve them. */
bool weir_job_work_is_done(const struct weir_job_state *state);

/** The greatest attempt of the job and its tasks. */
int64_t weir_job_last_attempt(const struct weir_job_state *state);

/** BIND must name as many places as are wanted, and as many nodes as are needed. @return INVALID. */
weir_status weir_job_check_bind(const struct weir_job_state *state,
                                const struct weir_job_event *event, size_t n_wants,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
