/**
 * How long jobs run, as far as is known, and whether maintenance or a reservation of a node allows
 * a run.
 */
#ifndef WEIR_SCHED_RUN_TIME_H
#define WEIR_SCHED_RUN_TIME_H

#include "sched/model/cluster.h"

#define RUN_TIME_NEVER INT64_MAX

/**
 * The longest that a job runs from its start: its time limit, else what is expected; 0 = unknown.
 */
int64_t run_time_bound_ms(const struct weir_sched_job *job);

/**
 * The time at which a running job, or one that starts at `now_ms`, probably ends: what is expected,
 * at most its limit; its limit if nothing is expected.
 *
 * A job of which nothing is known, or that outlived what was expected, counts as running for as
 * long again as it has run so far: at least ten minutes, at most a week more. A job that has not
 * run yet and of which nothing is known counts as running for a day.
 */
int64_t run_time_end_ms(const struct weir_sched_job *job, int64_t now_ms);

/** Fill cluster->times.reserved, which the cluster frees. NOMEM. */
weir_status run_time_init(struct cluster *cluster) WEIR_MUST_CHECK;

/** What keeps a job from starting on a node that is there. */
enum run_time_bar { RUN_TIME_FREE, RUN_TIME_CLOSED, RUN_TIME_RESERVED };

/** The same as run_time_is_allowed, with what bars the job and, if anything does, its span. */
enum run_time_bar run_time_bar(const struct cluster *cluster, int32_t job, int32_t node,
                               int64_t *out_from_ms, int64_t *out_until_ms);

/**
 * Whether a job may start on the node at cluster->times.at_ms. The node may not be closed before
 * the job has ended, nor reserved for others. For a job whose run time is not known, only its start
 * counts for maintenance; into a reservation for others it may not reach at all.
 */
bool run_time_is_allowed(const struct cluster *cluster, int32_t job, int32_t node);

/**
 * A number: jobs with equal numbers have equal answers of run_time_is_allowed. 0 if it is the same
 * for all jobs.
 */
uint64_t run_time_kind(const struct cluster *cluster, int32_t job);

#endif
