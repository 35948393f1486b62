/**
 * Jobs that follow others, replays that end early, queues that have their quota to themselves, and
 * what is said of guarantees: against schedules worked out by hand, and laws on random traces.
 */
#include "sim/replay.h"

#include "base/rng.h"
#include "sim/test_play.h"

static void check_job(const struct play *play, const char *name, int64_t submit_s, int64_t start_s,
                      int64_t end_s)
{
    const struct weir_sim_job_result *job = result(play, name);
    ck_assert_msg(job->submit_ms == submit_s * 1000, "%s: submitted at %lld ms, expected %lld s",
                  name, (long long)job->submit_ms, (long long)submit_s);
    check_times(play, name, start_s, end_s);
}

static const char two[] = "nodes:\n  - {name: n, accelerators: 2}\n";

/* Two devices. b thinks 20 s after a; c may not come before 500; d follows b at once, and finds b's
 * other follower e submitted before it, which takes both devices. */
static const char chain[] = "name,submit,duration,accelerators,after,think\n"
                            "a,0,100,1,,\nb,,10,2,a,20\nc,500,10,1,a,0\ne,,40,2,b,\nd,,5,1,b,1\n"
                            "x,3,107,1,,\n";

static const char *const every_profile[] = {"fifo", "fifo-skip", "sjf", "static", "kai", "default"};

START_TEST(a_job_comes_so_long_after_the_one_it_follows)
{
    struct play play;
    play_rows(&play, every_profile[_i], chain, two);
    check_job(&play, "a", 0, 0, 100);
    check_job(&play, "x", 3, 3, 110);
    check_job(&play, "b", 120, 120, 130);
    check_job(&play, "e", 130, 130, 170);
    check_job(&play, "d", 131, 170, 175);
    check_job(&play, "c", 500, 500, 510);
    ck_assert_int_eq(play.report.arrivals_ms, 500000);
    ck_assert_double_eq_tol(play.report.allocation_pct,
                            100.0 * (100 + 107 + 20 + 80 + 5) / (2 * 500), 1e-9);
    close_play(&play);
}

END_TEST

START_TEST(who_was_submitted_first_goes_first_whatever_its_place_in_the_file)
{
    static const char *const profiles[] = {"fifo", "fifo-skip", "las"};
    struct play play;
    /* early stands last in the file's order of time, late is submitted after it. */
    play_rows(&play, profiles[_i],
              "name,submit,duration,accelerators,after,think\n"
              "hold,0,100,1,,\nlate,,10,2,hold,0\nearly,50,10,2,,\nother,0,200,1,,\n",
              two);
    check_job(&play, "early", 50, 200, 210);
    check_job(&play, "late", 100, 210, 220);
    close_play(&play);
}

END_TEST

START_TEST(a_replay_ends_when_it_is_told_to)
{
    struct play play;
    open_rows(&play,
              "name,submit,duration,accelerators,busy_pct\n"
              "a,0,100,1,50\nb,10,20,1,\nc,20,40,2,\nd,90,10,1,\n",
              two);
    play.options.until_s = 80;
    run(&play, "fifo");
    ck_assert_int_eq(play.report.n_submitted, 3);
    ck_assert_int_eq(play.report.n_finished, 1);
    ck_assert_int_eq(play.report.n_running, 1);
    ck_assert_int_eq(play.report.n_never, 1);
    ck_assert_int_eq(play.report.span_ms, 80000);
    ck_assert_double_eq_tol(play.report.allocation_all_pct, 100.0 * (80 + 20) / 160, 1e-9);
    ck_assert_double_eq_tol(play.report.utilisation_pct, 100.0 * (40 + 20) / 160, 1e-9);
    /* c has waited 60 s of the 40 s it runs; the others not at all. */
    ck_assert_double_eq_tol(play.report.classes[0].slowdown.mean, (1 + 1 + 2.5) / 3, 1e-9);
    ck_assert_double_eq_tol(play.report.classes[0].slowdown.max, 2.5, 1e-9);
    weir_sim_report_fini(&play.report);
    play.options.until_s = 1000; /* longer than there is something to do */
    run(&play, "fifo");
    ck_assert_int_eq(play.report.n_finished, 4);
    ck_assert_double_eq_tol(play.report.utilisation_pct, 100.0 * (50 + 20 + 80 + 10) / 2000, 1e-9);
    ck_assert_double_eq_tol(play.report.classes[0].slowdown.mean, (1 + 1 + 3 + 6) / 4.0, 1e-9);
    close_play(&play);
}

END_TEST

START_TEST(a_static_queue_has_its_quota_and_nothing_else)
{
    struct play play;
    open_rows(
        &play,
        "name,submit,duration,accelerators,queue\n"
        "a1,0,100,2,a\na2,10,50,3,a\na3,20,10,1,a\nb1,30,10,1,b\nhuge,31,10,2,b\nb2,32,5,1,b\n",
        "nodes:\n  - {name: n, accelerators: 4}\n"
        "queues:\n  - {name: a, quota: 3}\n  - {name: b, quota: 1}\n");
    run(&play, "static");
    check_job(&play, "a1", 0, 0, 100);
    check_job(&play, "a2", 10, 100, 150); /* 1 of its 3 was free, and so was b's */
    check_job(&play, "a3", 20, 150, 160); /* would have fitted: it stands behind a2 */
    check_job(&play, "b1", 30, 30, 40);
    check_job(&play, "b2", 32, 40, 45); /* what never fits blocks nobody */
    ck_assert_int_eq(play.report.n_never, 1);
    close_play(&play);
}

END_TEST

START_TEST(waiting_below_a_guarantee_is_counted_for_each_job)
{
    struct play play;
    /* a has 2 guaranteed. guest lets go of 1 at 50, of 2 at 90. a2 waits 10 to 50, a3 40 to 90. */
    play_rows(&play, "fifo",
              "name,submit,duration,accelerators,queue\n"
              "guest1,0,50,1,b\nguest2,0,90,2,b\nguest3,0,300,1,b\n"
              "a2,10,200,1,a\na3,40,200,1,a\na4,60,10,1,a\n",
              "nodes:\n  - {name: n, accelerators: 4}\n"
              "queues:\n  - {name: a, quota: 2}\n  - {name: b, quota: 2}\n");
    check_job(&play, "a3", 40, 90, 290);
    check_job(&play, "a4", 60, 90, 100); /* beyond its quota from 90 on, below it from 60 */
    ck_assert_double_eq_tol(play.report.queues[0].longest_below_s, 50, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[0].longest_unreclaimed_s, 50, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[1].longest_below_s, 0, 1e-9);
    close_play(&play);
}

END_TEST

START_TEST(a_share_and_a_minimum_count_as_what_fits_below_a_guarantee)
{
    static const char cluster[] = "nodes:\n  - {name: n, accelerators: 2}\n"
                                  "queues:\n  - {name: a, quota: 0.5}\n  - {name: b, quota: 1}\n"
                                  "  - {name: c, quota: 0.5}\n";
    struct play play;
    /* b holds all until 100. a's 0.4 fits 0.5, c's 0.6 does not; of b's own nothing is left. */
    play_rows(&play, "fifo-skip",
              "name,submit,duration,accelerators,queue\n"
              "b1,0,100,2,b\nb2,1,1,1,b\na,20,10,0.4,a\nc,30,10,0.6,c\n",
              cluster);
    ck_assert_double_eq_tol(play.report.queues[0].longest_below_s, 80, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[0].longest_unreclaimed_s, 80, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[1].longest_below_s, 0, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[2].longest_below_s, 0, 1e-9);
    close_play(&play);
    /* Two tasks do not fit b's quota of 1, one does, and one is enough. */
    play_rows(&play, "fifo",
              "name,submit,duration,accelerators,tasks,min_tasks,queue\n"
              "a,0,100,2,1,1,a\nb,10,10,1,2,1,b\n",
              cluster);
    ck_assert_double_eq_tol(play.report.queues[1].longest_below_s, 90, 1e-9);
    close_play(&play);
}

END_TEST

/** Three services that may not be moved hold parts of three devices and no more than their quotas,
 * so that a device in all is free, but not one. */
START_TEST(what_is_free_only_in_parts_is_not_to_be_had_for_a_whole_device)
{
    for (int is_part = 0; is_part <= 1; is_part++) {
        struct play play;
        open_rows(&play,
                  is_part ? "name,submit,duration,accelerators,queue,preemptible\n"
                            "b,0,100,0.6,b,no\nc,0,200,0.6,c,no\nd,0,300,0.8,d,no\n"
                            "e,5,400,0.4,a,no\na,10,50,0.4,a,no\n"
                          : "name,submit,duration,accelerators,queue,preemptible\n"
                            "b,0,100,0.6,b,no\nc,0,200,0.6,c,no\nd,0,300,0.8,d,no\n"
                            "a,10,50,1,a,no\n",
                  "nodes:\n  - {name: n, accelerators: 3}\n"
                  "queues:\n  - {name: a, quota: 1}\n  - {name: b, quota: 0.6}\n"
                  "  - {name: c, quota: 0.6}\n  - {name: d, quota: 0.8}\n");
        run(&play, "default");
        check_job(&play, "a", 10, is_part ? 10 : 100, is_part ? 60 : 150);
        ck_assert_double_eq_tol(play.report.queues[0].longest_below_s, is_part ? 0 : 90, 1e-9);
        ck_assert_double_eq_tol(play.report.queues[0].longest_unreclaimed_s, 0, 1e-9);
        close_play(&play);
    }
}

END_TEST

/** Each job comes when the one it follows has ended and it has thought, or later if it says so. */
START_TEST(invariants_of_following_hold_on_random_traces)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        char text[16384] = "name,submit,duration,accelerators,queue,after,think\n";
        size_t len = strlen(text);
        struct weir_rng rng;
        weir_rng_init(&rng, seed, 1);
        for (int j = 0; j < 120; j++) {
            char after[16] = "";
            bool follows = j > 3 && weir_rng_below(&rng, 3) > 0;
            int think = follows ? (int)weir_rng_below(&rng, 60) : 0;
            if (follows) {
                (void)snprintf(after, sizeof after, "j%d", (int)weir_rng_below(&rng, (uint64_t)j));
            }
            len += (size_t)snprintf(
                text + len, sizeof text - len, "j%d,%d,%d,%d,q%d,%s,%d\n", j,
                (int)weir_rng_below(&rng, 2000), 1 + (int)weir_rng_below(&rng, 100),
                1 + (int)weir_rng_below(&rng, 3), (int)weir_rng_below(&rng, 2), after, think);
        }
        struct play play;
        open_rows(&play, text,
                  "nodes:\n  - {name: n, count: 2, accelerators: 4}\n"
                  "queues:\n  - {name: q0, quota: 4}\n  - {name: q1, quota: 4}\n");
        run(&play, every_profile[_i]);
        ck_assert_msg(play.report.n_finished == 120, "seed %d: %d finished", (int)seed,
                      play.report.n_finished);
        for (int32_t j = 0; j < 120; j++) {
            const struct weir_sim_job *job = &play.trace.jobs[j];
            int64_t submit_ms = job->submit_ms - play.trace.jobs[0].submit_ms;
            if (job->after >= 0) {
                int64_t end_ms = play.report.jobs[job->after].end_ms + job->think_ms;
                submit_ms = submit_ms > end_ms ? submit_ms : end_ms;
            }
            ck_assert_msg(play.report.jobs[j].submit_ms == submit_ms, "seed %d: %s", (int)seed,
                          job->name);
        }
        close_play(&play);
    }
}

END_TEST

START_TEST(whom_a_job_follows_must_be_named_above_it)
{
    static const struct {
        const char *rows, *part;
    } wrong[] = {
        {"name,submit,cpu,after\na,1,1,b\nb,2,1,\n", "line 2, column 4 (after): expected the name"},
        {"name,submit,cpu,after\na,1,1,a\n", "line 2, column 4 (after)"},
        {"name,submit,cpu,after\na,1,,\nb,2,1,a\n", "line 3, column 4 (after)"}, /* asks nothing */
        {"name,submit,cpu,think\na,1,1,5\n", "names no job"},
        {"name,submit,cpu,after\na,,1,\n", "line 2, column 2 (submit)"},
        {"name,submit,cpu,after,think\na,0,1,,\nb,,1,a,35000000000\nc,,1,b,35000000000\n",
         "line 4, column 5 (think): expected less"},
    };
    struct weir_error err = {0};
    struct weir_sim_trace trace;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(weir_sim_trace_parse(wrong[i].rows, strlen(wrong[i].rows), "rows",
                                              &weir_sim_csv, &trace, &err),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(err.message, wrong[i].part) != NULL, "%s", err.message);
    }
    static const char twice[] = "name,submit,cpu,after\na,5,1,\na,9,1,\nb,,1,a\n";
    ck_assert_int_eq(
        weir_sim_trace_parse(twice, strlen(twice), "rows", &weir_sim_csv, &trace, &err), WEIR_OK);
    ck_assert_int_eq(trace.jobs[2].after, 1); /* the last one of that name */
    weir_sim_trace_fini(&trace);
}

END_TEST

int main(void)
{
    enum { N_PROFILES = sizeof every_profile / sizeof every_profile[0] };

    const TTest *const made[] = {
        a_replay_ends_when_it_is_told_to,
        a_static_queue_has_its_quota_and_nothing_else,
        waiting_below_a_guarantee_is_counted_for_each_job,
        a_share_and_a_minimum_count_as_what_fits_below_a_guarantee,
        what_is_free_only_in_parts_is_not_to_be_had_for_a_whole_device,
        whom_a_job_follows_must_be_named_above_it,
    };
    Suite *suite = weir_test_suite("follow", made, sizeof made / sizeof made[0]);
    TCase *tcase = tcase_create("profiles");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_job_comes_so_long_after_the_one_it_follows, 0, N_PROFILES);
    tcase_add_loop_test(tcase, who_was_submitted_first_goes_first_whatever_its_place_in_the_file, 0,
                        3);
    tcase_add_loop_test(tcase, invariants_of_following_hold_on_random_traces, 0, N_PROFILES);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
