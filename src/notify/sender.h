/**
 * The sender: a few threads that send what waits in the queue (queue.h), each one message at a time
 * and of one receiver at most one at a time. A receiver that is slow holds up one thread, and never
 * the code that raises alerts. It looks at the queue when it is notified, when a try is due, and every few
 * seconds in any case.
 */
#ifndef WEIR_NOTIFY_SENDER_H
#define WEIR_NOTIFY_SENDER_H

#include "base/clock.h"
#include "store/store.h"

struct weir_sender;

#define WEIR_SENDER_THREADS 4

struct weir_sender_config {
    struct weir_store *store;
    const struct weir_clock *clock; /**< NULL: the system's. */
    int64_t timeout_ms;             /**< Of one try; 0: 10 s. */
};

/** Start the threads. */
weir_status weir_sender_start(const struct weir_sender_config *config, struct weir_sender **out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Something waits. Any thread; NULL is accepted. */
void weir_sender_notify(struct weir_sender *sender);

/** Cut tries short and end the threads; weir_sender_notify may still be called. NULL is accepted. */
void weir_sender_stop(struct weir_sender *sender);

/** Free it, stopped. NULL is accepted. */
void weir_sender_destroy(struct weir_sender *sender);

#endif
