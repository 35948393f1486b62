/** How long jobs run as far as anybody knows, and when nodes are closed or kept for somebody. */
#ifndef WEIR_SCHED_RUN_TIME_H
#define WEIR_SCHED_RUN_TIME_H

#include "sched/model/cluster.h"

#define RUN_TIME_NEVER INT64_MAX

/** The longest a job runs from its start: its time limit, else what is expected; 0 = unknown. */
int64_t run_time_bound_ms(const struct weir_sched_job *job);

/**
 * When a running job (or one that starts at `now`) probably ends: what is expected, at most its
 * limit; its limit if nothing is expected. A job of which nothing is known, or that outlived what
 * was expected, is taken to run for as long again as it has run so far: at least ten minutes, at
 * most a week more. One that has not run yet and of which nothing is known is taken to run for a
 * day.
 */
int64_t run_time_end_ms(const struct weir_sched_job *job, int64_t now_ms);

/** Fill cluster->kept; the cluster frees it. */
weir_status run_time_init(struct cluster *cluster) WEIR_MUST_CHECK;

/** Whether a job may start on the node at cluster->at_ms: it is not closed then nor before the job
 *  has ended, nor kept for others. Of a job without bound only the start counts for closings; what
 *  is kept for others it may not reach into at all. */
bool run_time_is_allowed(const struct cluster *cluster, int32_t job, int32_t node);

/** A number that differs where run_time_is_allowed may differ; 0 if it differs for nobody. */
uint64_t run_time_kind(const struct cluster *cluster, int32_t job);

#endif
