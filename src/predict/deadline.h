/** Waiting with a deadline: condition variables on the clock that nobody sets. */
#ifndef WEIR_PREDICT_DEADLINE_H
#define WEIR_PREDICT_DEADLINE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/** A condition variable whose timed waits count in CLOCK_MONOTONIC. */
static inline void deadline_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/** Now plus timeout_ms, for pthread_cond_timedwait on such a variable. */
static inline struct timespec deadline_after(int64_t timeout_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

#endif
