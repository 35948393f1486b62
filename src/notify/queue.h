/**
 * Deliveries: messages that wait for receivers, in the database. At most one of a receiver is sent at a
 * time; of one alert they go in the order in which they were decided. A try that fails is made again
 * after 1 s, 2 s, 4 s … 10 min, NOTIFY_TRIES_MAX times in all, about an hour; then the message is dead.
 * At NOTIFY_QUEUE_MAX that wait for one receiver a new one is left out. Either raises the alert
 * "receiver_failing", which the next message that goes through ends.
 */
#ifndef WEIR_NOTIFY_QUEUE_H
#define WEIR_NOTIFY_QUEUE_H

#include "notify/notify.h"

#define NOTIFY_QUEUE_MAX    1000
#define NOTIFY_TRIES_MAX    15
#define NOTIFY_TRIES_TOLD   5 /**< After so many the alert is raised, though it goes on. */
#define NOTIFY_LEASE_MS     60000
#define NOTIFY_RETRY_MAX_MS ((int64_t)600000)

/** Read: receiver, event, message; rule, project, alert, which may be NULL. *out_id (may be NULL): its
 *  identifier in the arena, NULL if it was left out. */
weir_status notify_queue_add(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                             int64_t now_ms, struct weir_arena *arena, char **out_id,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Who is to be served next: of each receiver the first delivery that may go, and from when on. */
struct notify_waiting {
    char *receiver;
    int64_t seq;
    int64_t due_ms; /**< Never later than the longest wait, whatever became of the wall clock. */
};

/** By due_ms. */
weir_status notify_queue_list(struct weir_txn *txn, int64_t now_ms, struct weir_arena *arena,
                              struct notify_waiting **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Begin a try: counted, and not to be tried again before its lease ends.
 * @return NOT_FOUND if it is done, gone, or not due.
 */
weir_status notify_queue_take(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                              struct weir_arena *arena, struct weir_alert_delivery *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** It went through. One that was given up meanwhile (notify_queue_forget) stays so, here and below. */
weir_status notify_queue_sent(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                              int64_t now_ms, struct weir_arena *arena,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** It did not. is_final: another try would be of no use. */
weir_status notify_queue_failed(struct weir_txn *txn, const struct weir_alert_delivery *delivery,
                                const char *error, bool is_final, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** It was cut short, because the server ends: due at once, and not counted. */
weir_status notify_queue_give_back(struct weir_txn *txn, int64_t seq, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The server starts: nothing is being sent; what was is due now. */
weir_status notify_queue_release(struct weir_txn *txn, int64_t now_ms,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The receiver is gone: what waits for it is dead, its alert is over. */
weir_status notify_queue_forget(struct weir_txn *txn, const char *receiver, int64_t now_ms,
                                struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** How long to wait after so many tries, 1 or more. Pure. */
int64_t notify_retry_ms(int64_t attempts);

#endif
