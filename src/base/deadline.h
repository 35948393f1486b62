/**
 * Waiting with a deadline: condition variables on CLOCK_MONOTONIC, the clock that nobody sets.
 *
 *     struct timespec deadline = weir_deadline_after(timeout_ms);
 *     while (!is_there && rc == 0) {
 *         rc = pthread_cond_timedwait(&changed, &lock, &deadline);
 *     }
 */
#ifndef WEIR_BASE_DEADLINE_H
#define WEIR_BASE_DEADLINE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/** A condition variable whose timed waits take the deadlines below; pthread_cond_destroy ends it.
 */
void weir_cond_init(pthread_cond_t *cond);

/** timeout_ms from now; below 0: now. */
struct timespec weir_deadline_after(int64_t timeout_ms);

/** The moment when weir_mono_ms() is `mono_ms`. */
struct timespec weir_deadline_at(int64_t mono_ms);

#endif
