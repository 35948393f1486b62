#include "base/deadline.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <errno.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int wait_until(struct timespec deadline)
{
    pthread_cond_t nobody_signals;
    pthread_cond_init(&nobody_signals, NULL);
    pthread_mutex_lock(&lock);
    int rc = 0;
    while (rc == 0) {
        rc = weir_cond_wait_until(&nobody_signals, &lock, &deadline);
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&nobody_signals);
    return rc;
}

START_TEST(a_wait_ends_at_its_deadline_and_not_before)
{
    uint64_t start_ns = weir_mono_ns();
    ck_assert_int_eq(wait_until(weir_deadline_after(30)), ETIMEDOUT);
    ck_assert_uint_ge(weir_mono_ns() - start_ns, 30000000);
    int64_t until_ms = weir_mono_ms() + 30;
    ck_assert_int_eq(wait_until(weir_deadline_at(until_ms)), ETIMEDOUT);
    ck_assert_int_ge(weir_mono_ms(), until_ms);
    ck_assert_int_eq(wait_until(weir_deadline_after(-5000)), ETIMEDOUT);
}

END_TEST

/* pthread_cond_timedwait refuses nanoseconds of a second or more. */
START_TEST(any_timeout_gives_a_deadline_that_can_be_waited_for)
{
    for (int64_t timeout_ms = 0; timeout_ms < 3000; timeout_ms++) {
        int64_t early_ms = weir_mono_ms();
        struct timespec deadline = weir_deadline_after(timeout_ms);
        ck_assert(deadline.tv_nsec >= 0 && deadline.tv_nsec < 1000000000);
        int64_t deadline_ms = deadline.tv_sec * 1000 + deadline.tv_nsec / 1000000;
        ck_assert(deadline_ms >= early_ms + timeout_ms &&
                  deadline_ms <= weir_mono_ms() + timeout_ms);
    }
}

END_TEST

WEIR_TEST_MAIN("deadline", a_wait_ends_at_its_deadline_and_not_before,
               any_timeout_gives_a_deadline_that_can_be_waited_for)
