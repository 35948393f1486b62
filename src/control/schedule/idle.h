/**
 * Idle: devices that nobody uses are taken back.
 *
 * A device is idle since it computes for less than WEIR_DEVICE_IDLE_PCT of the time
 * (weir_device.idle_since_ms); one that does not tell is not. A job is idle since the last of its
 * devices became so, but not for longer than its tasks have run. A queue may say for how long its jobs
 * may be (weir_queue.idle_after_ms): then the job is held, and `weir job resume` lets it wait for its
 * devices again. Services are left alone: what they wait for comes from outside.
 *
 * A program that browsers are brought to (job/service.h) is idle since the last request, whatever it
 * computes with. One that has been for too long is stopped: its folder stays.
 *
 * Any thread, in a transaction.
 */
#ifndef WEIR_CONTROL_IDLE_H
#define WEIR_CONTROL_IDLE_H

#include "control/control.h"

struct control_idle_job {
    char *id;
    char *text; /**< For event HOLD: why. */
};

/**
 * The jobs that have been idle for as long as their queues allow. Reads nothing but queues where none
 * of them sets a bound.
 *
 * @param out  In the control's arena, by identifier.
 */
weir_status control_idle_jobs(const struct control *control, struct weir_txn *txn,
                              struct control_idle_job **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Running services that nobody has used for as long as they, or else their queues, allow: by the last
 * request that the proxy noted, or their start.
 *
 * @param out  In the control's arena; the id of a service, and why it is to be stopped.
 */
weir_status control_idle_services(const struct control *control, struct weir_txn *txn,
                                  struct control_idle_job **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
