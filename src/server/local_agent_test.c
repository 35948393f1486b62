/* When an agent that has died is started again, by a clock that the test drives. */
#include "server/local_agent.h"

#include "base/test_main.h"

#include <string.h>

#define S ((int64_t)1000)

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

START_TEST(one_that_dies_again_and_again_is_started_each_second_and_told_each_minute)
{
    struct local_agent_pace pace;
    int n_told = 0, n = 0;
    local_agent_pace_begin(&pace, 0);
    for (int64_t now_ms = 0; now_ms < 600 * S; now_ms += S / 10) {
        if (local_agent_is_due(&pace, false, now_ms)) {
            n_told += local_agent_is_told(&pace);
            n++;
        }
    }
    ck_assert_int_eq(n, 599);
    ck_assert_int_eq(n_told, 10 + 9);
}

END_TEST

START_TEST(who_has_lived_for_a_while_is_told_of_anew)
{
    struct local_agent_pace pace;
    local_agent_pace_begin(&pace, 0);
    for (int64_t now_ms = S; now_ms < 20 * S; now_ms += S) {
        ck_assert(local_agent_is_due(&pace, false, now_ms));
    }
    ck_assert(!local_agent_is_told(&pace));
    ck_assert(!local_agent_is_due(&pace, true, 20 * S)); /* it lives, but not for long */
    ck_assert(local_agent_is_due(&pace, false, 20 * S));
    ck_assert(!local_agent_is_told(&pace));
    ck_assert(!local_agent_is_due(&pace, true, 22 * S)); /* now it has lived for a while */
    ck_assert(local_agent_is_due(&pace, false, 22 * S));
    ck_assert(local_agent_is_told(&pace));
}

END_TEST

/* Killed whenever it is seen to run: looks are as often as is said. */
START_TEST(one_that_is_killed_as_soon_as_it_runs_is_back_within_a_second)
{
    struct local_agent_pace pace;
    int64_t now_ms = 100 * S, dead_ms = 0;
    local_agent_pace_begin(&pace, 0);
    for (int i = 0; i < 100; i++) {
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
               one_that_dies_again_and_again_is_started_each_second_and_told_each_minute,
               who_has_lived_for_a_while_is_told_of_anew)
