/**
 * Waiting with a deadline on CLOCK_MONOTONIC, the clock that nobody sets.
 *
 *     struct timespec deadline = weir_deadline_after(timeout_ms);
 *     while (!is_there && rc == 0) {
 *         rc = weir_cond_wait_until(&changed, &lock, &deadline);
 *     }
 */
#ifndef WEIR_BASE_DEADLINE_H
#define WEIR_BASE_DEADLINE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/**
 * pthread_cond_timedwait by the deadlines below, however the condition variable was made. By the clock of
 * its making, which is another one unless it was told, each wait would end at once.
 * @return 0, or ETIMEDOUT.
 */
int weir_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                         const struct timespec *deadline);

/** timeout_ms from now; below 0: now. */
struct timespec weir_deadline_after(int64_t timeout_ms);

/** The moment when weir_mono_ms() is `mono_ms`. */
struct timespec weir_deadline_at(int64_t mono_ms);

#endif
