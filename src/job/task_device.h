/**
 * Devices of tasks: which attempt has which device, one row each, so that none is given twice.
 *
 * A row is written in the transaction that places the attempt, and only if the device is ok and has
 * so much left. It goes when the node's agent says that the attempt's processes have ended: by the
 * report of its end, or by a heartbeat that does not name it any more. Nothing else frees a device.
 * An attempt that the server gives up without the agent's word (its node is lost, or its job cannot
 * be read) keeps its rows, which are then *left*: the device takes nobody else until the agent is
 * heard.
 */
#ifndef WEIR_JOB_TASK_DEVICE_H
#define WEIR_JOB_TASK_DEVICE_H

#include "job/job.h"

/** Devices that one task can have. */
#define WEIR_TASK_DEVICES_MAX 64

/** A whole device, or a whole slice of one, in thousandths. */
#define WEIR_DEVICE_WHOLE 1000

/**
 * The indices in "0,3" (weir_task.devices).
 * @param out  Room for WEIR_TASK_DEVICES_MAX.
 * @return How many; 0 also for NULL and for any other text.
 */
size_t weir_task_device_indices(const char *devices, int64_t *out);

/**
 * Write down the devices of the tasks that were placed at now_ms. After the step, before
 * weir_job_save.
 * @param out_is_given  False: one of them is not there, not ok, or has not so much left; then
 *                      nothing was written.
 */
weir_status weir_task_devices_give(struct weir_txn *txn, const struct weir_job_state *state,
                                   int64_t now_ms, bool *out_is_given,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** A device of an attempt, as its agent is told of it. Text lies in the caller's arena. */
struct weir_given_device {
    int64_t idx, milli, memory_bytes;
    char *id, *kind;
    char *details; /**< Of it, or of the device that it is a slice of; NULL. */
};

/** The devices of an attempt by index; `out` has room for WEIR_TASK_DEVICES_MAX. */
weir_status weir_task_devices_of(struct weir_txn *txn, const char *task, int64_t attempt,
                                 struct weir_arena *arena, struct weir_given_device *out,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** The agent says that the attempt has ended: what it had is free. */
weir_status weir_task_devices_end(struct weir_txn *txn, const char *task, int64_t attempt,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Rows of attempts that are given up are left from now on; weir_job_save does this. */
weir_status weir_task_devices_leave(struct weir_txn *txn, const struct weir_job_state *state,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** The same for all tasks of a job that cannot be loaded. */
weir_status weir_task_devices_abandon(struct weir_txn *txn, const char *job,
                                      struct weir_error *err) WEIR_MUST_CHECK;

struct weir_attempt_name {
    const char *task;
    int64_t attempt;
};

/**
 * The agent says which attempts have not ended on its node. Of all others that are left there, what
 * they had is free.
 * @param out_n_freed  Attempts that had something.
 */
weir_status weir_task_devices_settle(struct weir_txn *txn, const char *node,
                                     const struct weir_attempt_name *alive, size_t n_alive,
                                     size_t *out_n_freed, struct weir_error *err) WEIR_MUST_CHECK;

/** A device of which something is left. `node` is borrowed for the call. */
typedef void (*weir_device_left_fn)(void *context, const char *node, int64_t idx);

/** All of them, by node and index. */
weir_status weir_task_devices_each_left(struct weir_txn *txn, weir_device_left_fn fn, void *context,
                                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
