/* When an agent that has died is started again, by a clock that the test drives. */
#include "server/local_agent.h"

#include "base/test_main.h"

#include <string.h>

#define S ((int64_t)1000)

/** Look every second from `from_ms` on while no agent lives; the times at which it is started. */
static int starts_of(struct local_agent_pace *pace, int64_t from_ms, int64_t until_ms,
                     int64_t *out_ms, int max)
{
    int n = 0;
    for (int64_t now_ms = from_ms; now_ms < until_ms; now_ms += S) {
        if (local_agent_is_due(pace, false, now_ms) && n < max) {
            out_ms[n++] = now_ms;
        }
    }
    return n;
}

START_TEST(one_that_lives_is_left_alone)
{
    struct local_agent_pace pace;
    local_agent_pace_begin(&pace, 5 * S);
    for (int64_t now_ms = 5 * S; now_ms < 500 * S; now_ms += S) {
        ck_assert(!local_agent_is_due(&pace, true, now_ms));
    }
    ck_assert(local_agent_is_due(&pace, false, 500 * S)); /* the first time, at once */
}

END_TEST

START_TEST(one_that_was_just_started_has_time_to_come_up)
{
    struct local_agent_pace pace;
    local_agent_pace_begin(&pace, 5 * S);
    ck_assert(!local_agent_is_due(&pace, false, 5 * S));
    ck_assert(!local_agent_is_due(&pace, false, 6 * S - 1));
    ck_assert(local_agent_is_due(&pace, false, 6 * S));
    ck_assert(!local_agent_is_due(&pace, false, 6 * S));
}

END_TEST

START_TEST(one_that_dies_again_and_again_is_started_ever_more_seldom)
{
    struct local_agent_pace pace;
    int64_t at_ms[64] = {0};
    local_agent_pace_begin(&pace, 0);
    int n = starts_of(&pace, 0, 600 * S, at_ms, 64);
    ck_assert_int_ge(n, 600 / 30);
    for (int i = 2; i < n; i++) {
        int64_t gap_ms = at_ms[i] - at_ms[i - 1];
        ck_assert_int_ge(gap_ms, at_ms[i - 1] - at_ms[i - 2]); /* never sooner than before */
        ck_assert_int_le(gap_ms, 30 * S);
    }
    ck_assert_int_eq(at_ms[n - 1] - at_ms[n - 2], 30 * S);
    ck_assert_int_le(at_ms[1] - at_ms[0], 2 * S);
}

END_TEST

START_TEST(who_has_lived_for_a_while_is_no_crash_loop)
{
    struct local_agent_pace pace;
    int64_t at_ms[64] = {0};
    local_agent_pace_begin(&pace, 0);
    int n = starts_of(&pace, 0, 300 * S, at_ms, 64);
    int64_t now_ms = at_ms[n - 1] + 1 * S; /* the last start lives, but not for long */
    ck_assert(!local_agent_is_due(&pace, true, now_ms));
    n = starts_of(&pace, now_ms, now_ms + 120 * S, at_ms, 64);
    ck_assert_int_le(n, 5); /* every 30 s still */
    now_ms = at_ms[n - 1] + 2 * S;
    ck_assert(!local_agent_is_due(&pace, true, now_ms)); /* now it has lived for a while */
    n = starts_of(&pace, now_ms + S, now_ms + 20 * S, at_ms, 64);
    ck_assert_int_ge(n, 9); /* anew from the beginning: every second */
    ck_assert_int_eq(at_ms[0], now_ms + S);
    ck_assert_int_le(at_ms[1] - at_ms[0], 2 * S);
}

END_TEST

/* Killed whenever it is seen to run: looks are as often as is said. */
START_TEST(one_that_is_killed_as_soon_as_it_runs_is_back_within_a_second)
{
    struct local_agent_pace pace;
    int64_t now_ms = 100 * S, dead_ms = 0;
    local_agent_pace_begin(&pace, 0);
    for (int i = 0; i < 10; i++) {
        ck_assert(!local_agent_is_due(&pace, true, now_ms));
        for (dead_ms = now_ms; !local_agent_is_due(&pace, false, now_ms);) {
            now_ms += local_agent_look_ms(&pace, now_ms);
        }
        ck_assert_int_le(now_ms - dead_ms, 1 * S);
        now_ms += local_agent_look_ms(&pace, now_ms);
        ck_assert_int_le(now_ms - pace.started_ms, 200);
    }
}

END_TEST

WEIR_TEST_MAIN("local_agent", one_that_is_killed_as_soon_as_it_runs_is_back_within_a_second,
               one_that_lives_is_left_alone, one_that_was_just_started_has_time_to_come_up,
               one_that_dies_again_and_again_is_started_ever_more_seldom,
               who_has_lived_for_a_while_is_no_crash_loop)
