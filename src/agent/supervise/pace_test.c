#include "agent/supervise/pace.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <stdbool.h>

#define N_LOOKS 4000

/* An event comes `gap` after the last look, or while it waits. Looks are where the wait is over. */
START_TEST(what_comes_after_quiet_is_looked_at_at_once_and_a_burst_is_bounded)
{
    static int64_t looks[N_LOOKS];
    struct weir_rng rng;
    uint64_t seed = test_seed(&rng);
    struct pace pace = {0};
    int64_t now = (int64_t)weir_rng_below(&rng, 1 << 20);
    for (size_t i = 0; i < N_LOOKS; i++) {
        bool is_busy = i % 500 < 400;
        int64_t gap = (int64_t)weir_rng_below(&rng, is_busy ? 4 : 1000);
        now += gap;
        int64_t wait_ms = pace_wait_ms(&pace, now);
        ck_assert_int_ge(wait_ms, 0);
        ck_assert_int_le(wait_ms, PACE_TICK_MS);
        if (gap >= 2 * PACE_TICK_MS || i < PACE_BURST) { /* one look is always back by then */
            ck_assert_msg(wait_ms == 0, "look %zu after %lld ms, seed %llu", i, (long long)gap,
                          (unsigned long long)seed);
        }
        now += wait_ms;
        looks[i] = now;
    }
    for (size_t i = 0; i < N_LOOKS; i++) {
        for (size_t j = i + 1; j < N_LOOKS && looks[j] - looks[i] < 2000; j++) {
            int64_t bound = PACE_BURST + 1 + (looks[j] - looks[i]) / PACE_TICK_MS;
            ck_assert_msg((int64_t)(j - i + 1) <= bound + 1, "%zu looks in %lld ms, seed %llu",
                          j - i + 1, (long long)(looks[j] - looks[i]), (unsigned long long)seed);
        }
    }
}

END_TEST

START_TEST(the_first_events_of_a_task_are_not_kept_waiting)
{
    struct pace pace = {0};
    for (int i = 0; i < PACE_BURST; i++) {
        ck_assert_int_eq(pace_wait_ms(&pace, 1000), 0);
    }
    ck_assert_int_eq(pace_wait_ms(&pace, 1000), PACE_TICK_MS);
    ck_assert_int_eq(pace_wait_ms(&pace, 1020), PACE_TICK_MS); /* the burst goes on */
    ck_assert_int_eq(pace_wait_ms(&pace, 1020 + PACE_TICK_MS * PACE_BURST), 0);
}

END_TEST

WEIR_TEST_MAIN("agent pace", what_comes_after_quiet_is_looked_at_at_once_and_a_burst_is_bounded,
               the_first_events_of_a_task_are_not_kept_waiting)
