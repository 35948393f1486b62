/**
 * Attempts: one start of one task. What the server must know of it to tell what its processes may
 * do, and which agent may report it.
 *
 * An attempt is *over* once its end was reported, a later attempt of the task was placed, or the
 * job is over. One that is lost (its node is silent) is not: its processes may live and have work
 * to hand in, until the task is placed again.
 */
#ifndef WEIR_JOB_ATTEMPT_H
#define WEIR_JOB_ATTEMPT_H

#include "job/job.h"

/** What an attempt works for. Text lies in the caller's arena; NULL where the job has none. */
struct weir_attempt {
    char *task;
    int64_t number;
    char *job;
    int64_t rank;
    char *kind; /**< Of the job. */
    bool is_service;
    char *run;
    int64_t experiment; /**< Of that run; 0 too where it has none. */
    char *ion;
    char *pipeline;
    char *project;
    char *created_by; /**< Who submitted the job; "system" for what nobody did by hand. */
    char *limited_to; /**< As that of the job. */
};

/** Where the last so many attempts of a task were placed is remembered; older ones are forgotten.
 */
#define WEIR_ATTEMPTS_KEPT 64

/** @return NOT_FOUND if there is no such task or attempt; CONFLICT if the attempt is over. */
weir_status weir_attempt_load(struct weir_txn *txn, const char *task, int64_t number,
                              struct weir_arena *arena, struct weir_attempt *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** NOT_FOUND unless this attempt was placed on this node. */
weir_status weir_attempt_check_node(struct weir_txn *txn, const char *task, int64_t number,
                                    const char *node, struct weir_error *err) WEIR_MUST_CHECK;

/** Remember the node of each task that was placed at now_ms; weir_job_save does. */
weir_status weir_attempts_record(struct weir_txn *txn, const struct weir_job_state *state,
                                 int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

#endif
