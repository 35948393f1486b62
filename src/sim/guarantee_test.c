/**
 * What is guaranteed is given before what is lent: the default profile against the same without
 * `guarantee-first`, on clusters where a gang that borrows, or a queue that borrows beside, is in
 * the way. The meter that says who waited below a guarantee does not know the scheduler.
 */
#include "sim/replay.h"

#include "sim/test_play.h"

static void run_default(struct play *play, bool guarantee_first)
{
    struct weir_error err = {0};
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, &err), WEIR_OK);
    profile.guarantee_first = guarantee_first;
    play->options.sched = &profile;
    run(play, "default");
    play->options.sched = NULL;
}

static void check_start(const char *rows, const char *cluster, const char *job, int64_t first_s,
                        int64_t without_s)
{
    struct play play;
    open_rows(&play, rows, cluster);
    play.options.recheck_s = 0;
    run_default(&play, true);
    ck_assert_int_eq(result(&play, job)->first_start_ms, first_s * 1000);
    weir_sim_report_fini(&play.report);
    run_default(&play, false);
    ck_assert_int_eq(result(&play, job)->first_start_ms, without_s * 1000);
    close_play(&play);
}

START_TEST(a_gang_beyond_its_guarantee_keeps_nobody_of_its_queue_from_theirs)
{
    /* b has all four. a's gang asks for four, which a may not take back; a's single may. */
    check_start("name,submit,duration,accelerators,tasks,queue\n"
                "b1,0,1000,1,,b\nb2,0,1000,1,,b\nb3,0,1000,1,,b\nb4,0,1000,1,,b\n"
                "gang,10,50,1,4,a\nsingle,20,50,1,,a\n",
                "nodes:\n  - {name: n, accelerators: 4}\n"
                "queues:\n  - {name: a, quota: 2}\n  - {name: b, quota: 2}\n",
                "single", 20, 1050);
}

END_TEST

START_TEST(a_user_takes_its_share_from_who_borrows_in_its_own_department)
{
    /* d1 may not take from d2: it would have five of its four. u2 has four of its two, but d2, with
     * six of four, comes first in the order of victims. */
    check_start("name,submit,duration,accelerators,queue\n"
                "x1,0,1000,1,u2\nx2,0,1000,1,u2\nx3,0,1000,1,u2\nx4,0,1000,1,u2\n"
                "y1,0,1000,1,u3\ny2,0,1000,1,u3\ny3,0,1000,1,u3\ny4,0,1000,1,u3\n"
                "y5,0,1000,1,u3\ny6,0,1000,1,u3\nsingle,20,50,1,u1\n",
                "nodes:\n  - {name: n, accelerators: 10}\n"
                "queues:\n  - {name: d1, quota: 4, weight: 0}\n"
                "  - {name: u1, parent: d1, quota: 2}\n  - {name: u2, parent: d1, quota: 2}\n"
                "  - {name: d2, quota: 4}\n  - {name: u3, parent: d2, quota: 4}\n",
                "single", 20, 1000);
}

END_TEST

int main(void)
{
    const TTest *const made[] = {
        a_gang_beyond_its_guarantee_keeps_nobody_of_its_queue_from_theirs,
        a_user_takes_its_share_from_who_borrows_in_its_own_department,
    };
    return weir_test_run(weir_test_suite("guarantee", made, sizeof made / sizeof made[0]));
}
