#include "base/deadline.h"

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

int weir_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                         const struct timespec *deadline)
{
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, deadline);
}

struct timespec weir_deadline_after(int64_t timeout_ms)
{
    struct timespec deadline;
    (void)clock_gettime(CLOCK_MONOTONIC, &deadline);
    if (timeout_ms > 0) {
        deadline.tv_sec += timeout_ms / 1000;
        deadline.tv_nsec += timeout_ms % 1000 * NS_PER_MS;
    }
    if (deadline.tv_nsec >= NS_PER_S) {
        deadline.tv_sec++;
        deadline.tv_nsec -= NS_PER_S;
    }
    return deadline;
}

struct timespec weir_deadline_at(int64_t mono_ms)
{
    return (struct timespec){.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * NS_PER_MS};
}
