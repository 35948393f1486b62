#include "agent/node/plan.h"

#include "base/test_main.h"

#include <string.h>

/* Every state of the folder, enumerated: 2^8 flags, 3 reports, 4 desires. */
static struct plan_seen seen_of(unsigned i)
{
    return (struct plan_seen){
        .has_run = i & 1,
        .has_exit = i >> 1 & 1,
        .has_stop = i >> 2 & 1,
        .is_supervised = i >> 3 & 1,
        .is_crowded = i >> 4 & 1,
        .is_log_complete = i >> 5 & 1,
        .is_log_stuck = i >> 6 & 1,
        .is_forgotten = i >> 7 & 1,
        .reported = (enum plan_report)(i >> 8),
    };
}

START_TEST(in_every_state_the_promises_hold)
{
    for (unsigned i = 0; i < 3 * 256; i++) {
        for (int w = PLAN_DESIRED_UNKNOWN; w <= PLAN_DESIRED_ABSENT; w++) {
            struct plan_seen seen = seen_of(i);
            unsigned actions = agent_plan((enum plan_desired)w, &seen);
            if (seen.has_exit) { /* what has ended is never started or stopped again */
                ck_assert_uint_eq(actions & (PLAN_SUPERVISE | PLAN_STOP | PLAN_REPORT_RUNNING), 0);
            }
            if (seen.is_supervised) { /* one supervisor at a time */
                ck_assert_uint_eq(actions & PLAN_SUPERVISE, 0);
            }
            if (w == PLAN_DESIRED_UNKNOWN && !seen.has_run) { /* nothing on a mere guess */
                ck_assert_uint_eq(actions & (PLAN_SUPERVISE | PLAN_STOP), 0);
            }
            if (w == PLAN_DESIRED_RUN) {
                ck_assert_uint_eq(actions & PLAN_STOP, 0);
            }
            if (w == PLAN_DESIRED_RUN && seen.is_crowded && !seen.has_run) {
                ck_assert_uint_eq(actions & PLAN_SUPERVISE, 0);
            }
            if ((actions & PLAN_REMOVE) != 0) { /* nothing is lost with the folder */
                ck_assert(seen.has_exit && seen.reported == PLAN_REPORTED_EXIT &&
                          seen.is_log_complete && seen.is_forgotten);
            }
        }
    }
}

END_TEST

/* Doing what the plan says, over and over, ends: the folder is removed or the task runs. */
START_TEST(from_every_state_an_unwanted_attempt_is_removed_in_few_steps)
{
    for (unsigned i = 0; i < 3 * 256; i++) {
        struct plan_seen seen = seen_of(i);
        if (seen.is_supervised && seen.has_exit) {
            continue; /* for an instant only */
        }
        unsigned actions = 0;
        for (int step = 0; step < 12 && (actions & PLAN_REMOVE) == 0; step++) {
            actions = agent_plan(PLAN_DESIRED_ABSENT, &seen);
            if ((actions & PLAN_STOP) != 0) {
                seen.has_stop = true;
            }
            if ((actions & PLAN_SUPERVISE) != 0) {
                seen.is_supervised = true;
            } else if (seen.is_supervised) { /* the supervisor obeys the stop request */
                seen.has_exit = seen.has_stop;
                seen.is_supervised = !seen.has_exit;
            }
            if ((actions & PLAN_SHIP_LOG) != 0 && seen.has_exit) {
                seen.is_log_complete = true;
            }
            if ((actions & PLAN_REPORT_EXIT) != 0) {
                seen.reported = PLAN_REPORTED_EXIT;
                seen.is_forgotten = true;
            }
            if (seen.reported == PLAN_REPORTED_EXIT && step > 8) {
                seen.is_forgotten = true;
            }
        }
        ck_assert_msg((actions & PLAN_REMOVE) != 0, "state %u", i);
    }
}

END_TEST

START_TEST(a_desired_attempt_is_started_and_an_unattended_one_settled)
{
    struct plan_seen seen = {0};
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_SUPERVISE);
    seen.is_supervised = true;
    /* Before it runs its supervisor says in the log what is waited for. */
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_SHIP_LOG);
    seen.has_run = true;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_REPORT_RUNNING | PLAN_SHIP_LOG);
    seen.reported = PLAN_REPORTED_RUNNING;
    seen.is_supervised = false; /* it died */
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_UNKNOWN, &seen), PLAN_SUPERVISE | PLAN_SHIP_LOG);
}

END_TEST

START_TEST(the_exit_is_reported_after_the_log_unless_the_log_is_stuck)
{
    struct plan_seen seen = {.has_run = true, .has_exit = true};
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_SHIP_LOG);
    seen.is_log_stuck = true;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_SHIP_LOG | PLAN_REPORT_EXIT);
    seen.is_log_complete = true;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), PLAN_REPORT_EXIT);
    seen.reported = PLAN_REPORTED_EXIT;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen), 0);
    seen.is_forgotten = true;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_ABSENT, &seen), PLAN_REMOVE);
}

END_TEST

START_TEST(what_runs_is_asked_to_save_once_and_what_is_to_end_is_not)
{
    struct plan_seen seen = {.has_run = true, .is_supervised = true, .is_to_save = true};
    ck_assert_uint_ne(agent_plan(PLAN_DESIRED_RUN, &seen) & PLAN_SAVE, 0);
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_STOP, &seen) & PLAN_SAVE, 0);
    seen.has_save = true;
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen) & PLAN_SAVE, 0);
    seen = (struct plan_seen){.is_to_save = true};
    ck_assert_uint_eq(agent_plan(PLAN_DESIRED_RUN, &seen) & PLAN_SAVE, 0);
}

END_TEST

WEIR_TEST_MAIN("agent plan", in_every_state_the_promises_hold,
               from_every_state_an_unwanted_attempt_is_removed_in_few_steps,
               a_desired_attempt_is_started_and_an_unattended_one_settled,
               the_exit_is_reported_after_the_log_unless_the_log_is_stuck,
               what_runs_is_asked_to_save_once_and_what_is_to_end_is_not)
