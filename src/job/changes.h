/**
 * Reading for a copy in memory: all open jobs once, then only what has changed.
 *
 * The scheduler plans over all open jobs, tasks and nodes, many times a second. It keeps a copy of
 * them and brings it up to date here. Every change of a job gives it the next *revision*
 * (weir_job.revision), so the jobs that changed since the last reading are those of a greater one:
 *
 *     weir_job_each_open(txn, put, copy, &revision, err);              // the first time
 *     weir_job_each_changed(txn, revision, put, copy, &revision, err); // from then on
 *
 * Both are one statement, however many jobs and tasks there are.
 */
#ifndef WEIR_JOB_CHANGES_H
#define WEIR_JOB_CHANGES_H

#include "job/job.h"

/**
 * One job, with its tasks by rank. Set are of the job: id, name, project, kind, state, reason, ion,
 * pipeline, is_service, expected_start_ms, due_ms, n_restarts, created_by, created_ms, started_ms, finished_ms,
 * revision, priority, is_preemptible, time_limit_ms, min_tasks, placement, is_held,
 * eviction, n_evictions, queued_ms; of a task: id, rank, cpu_millis, memory_bytes, definition_bytes, node, state, exit_code,
 * signal, n_restarts, due_ms, started_ms, attempt, what it asks for of accelerators, and devices. What is borrowed is gone after the call. A job that is
 * over has no tasks here.
 */
typedef void (*weir_job_seen_fn)(void *context, const struct weir_job_state *state);

/** The jobs that are not over, by id. *out_revision: the greatest revision of any job. */
weir_status weir_job_each_open(struct weir_txn *txn, weir_job_seen_fn fn, void *context,
                               int64_t *out_revision, struct weir_error *err) WEIR_MUST_CHECK;

/** The jobs of a revision greater than `after`, also those that are over by now; oldest change
 *  first. *out_revision: the greatest of them, or `after`. */
weir_status weir_job_each_changed(struct weir_txn *txn, int64_t after, weir_job_seen_fn fn,
                                  void *context, int64_t *out_revision,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The last `limit` jobs that have SUCCEEDED, without their tasks; the newest first. */
weir_status weir_job_each_succeeded(struct weir_txn *txn, int64_t limit, weir_job_seen_fn fn,
                                    void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** One node: name, cpu_slots, memory_bytes, is_draining (also of one that leaves), last_seen_ms, unhealthy, labels, taints,
 *  accelerators, left_ms, the window, cluster, allocation, ends_ms and leaving are set. Borrowed. */
typedef void (*weir_node_seen_fn)(void *context, const struct weir_node *node);

/** All nodes by name, but those that were lent and have left. One statement. */
weir_status weir_node_each(struct weir_txn *txn, weir_node_seen_fn fn, void *context,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** One of them. @return NOT_FOUND. */
weir_status weir_node_look(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_node *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Say why a job waits, and when it may start (0: not known): no change of its state, so its
 * revision stays. Nothing happens if the job has another revision than this.
 */
weir_status weir_job_note_wait(struct weir_txn *txn, const char *id, int64_t revision,
                               const char *reason, int64_t expected_start_ms,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
