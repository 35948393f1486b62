/**
 * Usage: the account of which project had how much of the cluster, and for how long.
 *
 * Each attempt of a task that is on a node, and each task that asks for one, has a *meter* in the store:
 * what it has or asks for, and until when that is counted. A meter is *rolled* forward every few seconds, the
 * more meters run the less often, and a last time in the transaction that ends the attempt, which deletes it.
 * What is counted goes into the account by hour, project, user, job and model in that same transaction.
 * So a kill at any point loses nothing that comes later, and nothing is counted twice: of attempts
 * that are over the account is the sum of (end - start) × devices, and of one that runs it lacks at most
 * what was since it was rolled: WEIR_USAGE_ROLL_MS to WEIR_USAGE_ROLL_MAX_MS.
 *
 * What is counted, in thousandths of a device (or CPU) times milliseconds:
 *
 * - *waited*: what tasks asked for that had no node. Asked for in all is waited and given.
 * - *given*: what they had. A MIG slice counts as one device, of the model "MODEL PROFILE".
 * - *used*: given × what the devices said of themselves when the meter was rolled, for as long as they spoke; the
 *   rest of given is *unknown*. Of a device that is shared it is the use of all who share it.
 * - *idle*: given, while the devices computed for less than WEIR_DEVICE_IDLE_PCT.
 * - *borrowed*: given, times the part of what its project had that was above its queue's guarantee at the
 *   last sample (queue_history.h).
 *
 * Times are the server's wall clock. If it is set back, what lies between is counted once.
 */
#ifndef WEIR_JOB_USAGE_H
#define WEIR_JOB_USAGE_H

#include "base/arena.h"
#include "job/job_step.h"
#include "store/store.h"

#define WEIR_USAGE_HOUR_MS ((int64_t)3600 * 1000)
#define WEIR_USAGE_DAY_MS  (24 * WEIR_USAGE_HOUR_MS)

/** A meter of a task that waits is rolled so often. */
#define WEIR_USAGE_WAIT_MS 60000

/** One of a task that runs: every 5 s where few run; with so much more for each, for rows that are rolled together share
 *  pages on the disk; but at least every 2 minutes. */
#define WEIR_USAGE_ROLL_MS     5000
#define WEIR_USAGE_EACH_MS     30
#define WEIR_USAGE_ROLL_MAX_MS 120000

/** What devices say is taken for the time since the meter was rolled, if their node was heard of no longer ago than this,
 *  and the meter was rolled when it was due, or so much later. */
#define WEIR_USAGE_FRESH_MS 15000

/** Meters that one call of weir_usage_roll_waiting or _running rolls: the next does the others. */
#define WEIR_USAGE_WAITING_MAX 256
#define WEIR_USAGE_RUNNING_MAX 1024

/**
 * Begin and end meters as the job now is. weir_job_save and weir_job_create call it; a task's devices
 * must have been given before (task_device.h).
 */
weir_status weir_usage_record(struct weir_txn *txn, const struct weir_job_state *state,
                              int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** End all meters of a job that was given up. */
weir_status weir_usage_end(struct weir_txn *txn, const char *job, int64_t now_ms,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Count what tasks that run had, of those that are due. *out_n: how many. Cost: a few statements for each. */
weir_status weir_usage_roll_running(struct weir_txn *txn, int64_t now_ms, int64_t *out_n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Count what tasks that wait asked for, of those that were not counted for WEIR_USAGE_WAIT_MS. *out_n:
 *  how many. */
weir_status weir_usage_roll_waiting(struct weir_txn *txn, int64_t now_ms, int64_t *out_n,
                                    struct weir_error *err) WEIR_MUST_CHECK;

#endif
