/**
 * What is guaranteed is given before what is lent: the default profile against the same without
 * `guarantee-first`, on clusters where a gang that borrows, or a queue that borrows beside, is in
 * the way. The meter that says who waited below a guarantee does not know the scheduler.
 */
#include "sim/replay.h"

#include "base/rng.h"
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

/** Singles and gangs of whole devices, three users in two departments: nobody ever waits for longer
 *  than from one cycle to the next for what is guaranteed. */
START_TEST(nobody_waits_below_a_guarantee_for_longer_than_a_cycle)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        char text[16384] = "submit,duration,accelerators,tasks,queue\n";
        size_t len = strlen(text);
        struct weir_rng rng;
        weir_rng_init(&rng, seed, 2);
        for (int j = 0; j < 200; j++) {
            int tasks = weir_rng_below(&rng, 5) > 0 ? 1 : 2 + (int)weir_rng_below(&rng, 5);
            len += (size_t)snprintf(
                text + len, sizeof text - len, "%d,%d,1,%d,u%d\n", (int)weir_rng_below(&rng, 8000),
                1 + (int)weir_rng_below(&rng, 1200), tasks, (int)weir_rng_below(&rng, 3));
        }
        struct play play;
        open_rows(&play, text,
                  "nodes:\n  - {name: n, count: 2, accelerators: 8}\n"
                  "queues:\n  - {name: d1, quota: 10}\n  - {name: d2, quota: 6}\n"
                  "  - {name: u0, parent: d1, quota: 6}\n  - {name: u1, parent: d1, quota: 4}\n"
                  "  - {name: u2, parent: d2, quota: 6}\n");
        play.options.cycle_s = 30;
        run_default(&play, true);
        for (int32_t q = 0; q < play.report.n_queues; q++) {
            ck_assert_msg(play.report.queues[q].longest_below_s <= 30, "seed %d, %s: %.0f s",
                          (int)seed, play.report.queues[q].name,
                          play.report.queues[q].longest_below_s);
        }
        ck_assert_int_gt(play.report.n_evictions, 0);
        close_play(&play);
    }
}

END_TEST

int main(void)
{
    const TTest *const made[] = {
        a_gang_beyond_its_guarantee_keeps_nobody_of_its_queue_from_theirs,
        a_user_takes_its_share_from_who_borrows_in_its_own_department,
        nobody_waits_below_a_guarantee_for_longer_than_a_cycle,
    };
    return weir_test_run(weir_test_suite("guarantee", made, sizeof made / sizeof made[0]));
}
