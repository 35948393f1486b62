/**
 * Replays against schedules worked out by hand, laws of conservation, Little's law, and the table
 * that was measured on the Philly trace by a model written apart from this one.
 */
#include "sim/replay.h"

#include "base/rng.h"
#include "sim/test_play.h"
#include "trace_convert/formats.h"

#include <math.h>
#include <unistd.h>

static void open_philly(struct play *play, int64_t n_devices)
{
    struct weir_error err = {0};
    *play = (struct play){0};
    weir_sim_options_init(&play->options);
    ck_assert_int_eq(weir_sim_trace_load(data_path("philly/sia_philly.csv"), &convert_philly_csv,
                                         &play->trace, &err),
                     WEIR_OK);
    ck_assert_int_eq(weir_sim_cluster_uniform(n_devices, 8, &play->cluster, &err), WEIR_OK);
}

/** Device time held is work done, work lost and restarts; nothing is made or vanishes. */
static void check_conservation(const struct play *play)
{
    double done_h = 0, lost_h = 0, overhead_h = 0, in_system_s = 0;
    for (int32_t j = 0; j < play->trace.n_jobs; j++) {
        const struct weir_sim_job_result *job = &play->report.jobs[j];
        ck_assert_int_ge(job->end_ms, job->first_start_ms);
        done_h += (double)job->n_devices_milli * (double)play->trace.jobs[j].duration_ms / 3.6e9;
        lost_h += (double)job->lost_milli_ms / 3.6e9;
        overhead_h += (double)job->overhead_milli_ms / 3.6e9;
        in_system_s += (double)(job->end_ms -
                                (play->trace.jobs[j].submit_ms - play->trace.jobs[0].submit_ms)) /
                       1000;
    }
    ck_assert_int_eq(play->report.n_finished, play->trace.n_jobs);
    ck_assert_double_eq_tol(play->report.held_device_hours, done_h + lost_h + overhead_h,
                            1e-6 * (1 + done_h));
    /* Little: mean number in the system × time = sum of times in the system. */
    double integral_s = 0;
    for (int32_t i = 0; i < play->report.n_samples; i++) {
        int64_t end_ms = i + 1 < play->report.n_samples ? play->report.samples[i + 1].from_ms
                                                        : play->report.span_ms;
        integral_s += (play->report.samples[i].running + play->report.samples[i].waiting) *
                      (double)(end_ms - play->report.samples[i].from_ms) / 1000;
    }
    ck_assert_double_eq_tol(integral_s, in_system_s, 1e-6 * (1 + in_system_s));
}

/** What could have been helped is a part of the wait. */
static void check_waits(const struct play *play)
{
    for (int32_t q = 0; q < play->report.n_queues; q++) {
        const struct weir_sim_queue *queue = &play->report.queues[q];
        ck_assert_msg(queue->longest_unreclaimed_s <= queue->longest_below_s, "%s: %g of %g s",
                      queue->name, queue->longest_unreclaimed_s, queue->longest_below_s);
    }
}

static void close_lawful(struct play *play)
{
    check_conservation(play);
    check_waits(play);
    close_play(play);
}

static const char four[] = "nodes:\n  - {name: n, accelerators: 4}\n";

/* Four devices; a 0–100 s on 3, b asks for 2 at 10 s, c for 1 at 20 s, d for 2 at 30 s. */
static const char rows[] = "name,submit,duration,accelerators\n"
                           "a,0,100,3\nb,10,50,2\nc,20,40,1\nd,30,10,2\n";

START_TEST(fifo_blocks_behind_the_first_that_does_not_fit)
{
    struct play play;
    play_rows(&play, "fifo", rows, four);
    check_times(&play, "a", 0, 100);
    check_times(&play, "b", 100, 150);
    check_times(&play, "c", 100, 140);
    check_times(&play, "d", 140, 150); /* b and c hold 3 until 140 */
    ck_assert_double_eq_tol(play.report.classes[0].waiting.mean, (0 + 90 + 80 + 110) / 4.0, 1e-9);
    ck_assert_double_eq_tol(play.report.classes[0].completion.max, 140, 1e-9);
    close_lawful(&play);
}

END_TEST

START_TEST(fifo_skip_passes_over_who_does_not_fit)
{
    struct play play;
    play_rows(&play, "fifo-skip", rows, four);
    check_times(&play, "c", 20, 60);
    check_times(&play, "b", 100, 150);
    check_times(&play, "d", 100, 110);
    close_lawful(&play);
}

END_TEST

START_TEST(sjf_takes_the_shortest_that_fits)
{
    struct play play;
    play_rows(&play, "sjf",
              "name,submit,duration,accelerators\na,0,100,4\nlong,1,50,4\nshort,2,20,4\n", four);
    check_times(&play, "short", 100, 120);
    check_times(&play, "long", 120, 170);
    close_lawful(&play);
}

END_TEST

START_TEST(las_evicts_who_got_much_for_who_got_nothing_and_loses_since_the_checkpoint)
{
    struct play play;
    open_rows(&play, "name,submit,duration,accelerators\nold,0,1000,4\nnew,300,50,4\n", four);
    play.options.las_threshold_s = 400; /* 100 s on 4 devices */
    play.options.checkpoint_every_s = 70;
    play.options.preempt_cost_s = 20;
    run(&play, "las");
    check_times(&play, "new", 300, 350);
    /* old: 280 of 300 s are saved; it restarts at 350, works from 370 for 720 s. */
    check_times(&play, "old", 0, 1090);
    ck_assert_int_eq(result(&play, "old")->n_evictions, 1);
    ck_assert_int_eq(result(&play, "old")->lost_milli_ms, (int64_t)4000 * 20000);
    ck_assert_int_eq(result(&play, "old")->overhead_milli_ms, (int64_t)4000 * 20000);
    close_lawful(&play);
}

END_TEST

START_TEST(queues_of_a_trace_can_be_made_one)
{
    struct play play;
    open_rows(&play,
              "name,submit,duration,accelerators,queue\n"
              "guest,0,1000,4,b\nowner,500,100,2,a\n",
              four);
    play.options.is_one_queue = true;
    run(&play, "kai"); /* Which would take a's half back for it. */
    check_times(&play, "guest", 0, 1000);
    check_times(&play, "owner", 1000, 1100);
    ck_assert_int_eq(play.report.n_queues, 1);
    close_lawful(&play);
}

END_TEST

START_TEST(the_scheduler_places_gangs_whole_and_shares_devices)
{
    struct play play;
    play_rows(&play, "kai",
              "name,submit,duration,accelerators,tasks\n"
              "half1,0,100,0.5,\nhalf2,0,100,0.5,\ngang,5,50,4,2\none,10,10,1,\n",
              "nodes:\n  - {name: n, count: 2, accelerators: 4}\n");
    check_times(&play, "half1", 0, 100);
    check_times(&play, "half2", 0, 100);
    check_times(&play, "gang", 100, 150); /* needs both nodes whole */
    check_times(&play, "one", 10, 20);
    close_lawful(&play);
}

END_TEST

START_TEST(a_queue_takes_its_quota_back_and_the_borrower_pays)
{
    struct play play;
    open_rows(&play,
              "name,submit,duration,accelerators,queue,tasks\n"
              "guest1,0,1000,2,b,1\nguest2,1,1000,2,b,1\nowner,500,100,2,a,1\n",
              "nodes:\n  - {name: n, accelerators: 4}\n"
              "queues:\n  - {name: a, quota: 2}\n  - {name: b, quota: 2}\n");
    play.options.checkpoint_every_s = 100;
    run(&play, "kai");
    check_times(&play, "owner", 500, 600);
    const struct weir_sim_job_result *evicted = result(&play, "guest1")->n_evictions > 0
                                                    ? result(&play, "guest1")
                                                    : result(&play, "guest2");
    ck_assert_int_eq(play.report.n_evictions, 1);
    ck_assert_int_eq(evicted->n_evictions, 1);
    ck_assert_double_eq_tol(play.report.queues[0].guarantee_kept, 1, 1e-9);
    ck_assert_double_eq_tol(play.report.queues[0].longest_below_s, 0, 1e-9);
    close_lawful(&play);
}

END_TEST

/** What a plan does may leave room for more: the next plan comes after a cycle, until one does
 *  nothing. At 0 and 100 something starts, and 200 and 1,000 are ends; a cycle takes 30. */
START_TEST(a_plan_that_does_something_is_followed_by_another)
{
    struct play play;
    open_rows(&play, "name,submit,duration,accelerators\nlong,0,1000,1\nshort,100,100,1\n",
              "nodes:\n  - {name: n, accelerators: 2}\n");
    play.options.cycle_s = 30;
    run(&play, "default");
    check_times(&play, "short", 100, 200);
    ck_assert_int_eq(play.report.n_cycles, 6); /* 0, 30, 100, 130, 200, 1000 */
    close_lawful(&play);
}

END_TEST

START_TEST(an_elastic_job_grows_and_works_faster)
{
    struct play play;
    open_rows(&play,
              "name,submit,duration,accelerators,tasks,min_tasks\n"
              "first,0,100,2,1,\nelastic,0,100,1,4,2\n",
              four);
    play.options.resize_cost_s = 10;
    run(&play, "kai");
    check_times(&play, "first", 0, 100);
    /* 200 of 400 task seconds by 100 s with two, 10 s of pause, 50 s with four. */
    check_times(&play, "elastic", 0, 160);
    close_lawful(&play);
}

END_TEST

START_TEST(models_of_a_trace_find_their_nodes)
{
    struct play play;
    play_rows(&play, "kai",
              "name,submit,duration,accelerators,model\n"
              "x,0,10,1,A|B\ny,0,10,1,A|B\nz,0,10,1,C\n",
              "nodes:\n  - {name: b, accelerators: 1, model: B}\n"
              "  - {name: c, accelerators: 4, model: C}\n");
    check_times(&play, "z", 0, 10);
    ck_assert_int_eq(result(&play, "x")->end_ms + result(&play, "y")->end_ms, 30000);
    close_play(&play);
}

END_TEST

START_TEST(shares_of_models_hold_in_a_replay)
{
    struct play play;
    play_rows(&play, "kai",
              "name,submit,duration,accelerators,model,queue\n"
              "x,0,10,1,H,q\ny,0,10,1,H,q\nz,0,10,1,H|L,q\nfree,5,10,1,H,other\n",
              "nodes:\n  - {name: h, accelerators: 2, model: H}\n"
              "  - {name: l, accelerators: 4, model: L}\n"
              "queues:\n  - {name: q, models: {H: {limit: 1}}}\n  - {name: other}\n");
    check_times(&play, "x", 0, 10);
    check_times(&play, "y", 10, 20); /* An H is free, but not for this queue. */
    check_times(&play, "z", 0, 10);  /* On L. */
    check_times(&play, "free", 5, 15);
    close_play(&play);
}

END_TEST

START_TEST(a_time_limit_ends_a_run)
{
    struct play play;
    play_rows(&play, "kai",
              "name,submit,duration,accelerators,time_limit\n"
              "long,0,100,4,60\nshort,10,50,4,60\nnext,20,10,4,\n",
              four);
    check_times(&play, "long", 0, 60);
    check_times(&play, "short", 60, 110);
    check_times(&play, "next", 110, 120);
    ck_assert_int_eq(play.report.n_cut, 1);
    ck_assert_double_eq_tol(play.report.held_device_hours, 4 * 120.0 / 3600, 1e-9);
    close_play(&play);
}

END_TEST

START_TEST(what_can_never_run_is_counted_with_the_reason)
{
    struct play play;
    play_rows(&play, "kai",
              "name,submit,duration,accelerators,tasks\nhuge,0,10,8,1\nsmall,0,10,1,1\n", four);
    ck_assert_int_eq(play.report.n_finished, 1);
    ck_assert_int_eq(play.report.n_never, 1);
    ck_assert_ptr_nonnull(play.report.never_reason);
    close_play(&play);
}

END_TEST

START_TEST(a_trace_without_jobs_gives_an_empty_report)
{
    struct play play;
    play_rows(&play, "kai", "submit,accelerators\n", four);
    ck_assert_int_eq(play.report.n_jobs, 0);
    weir_sim_report_fini(&play.report);
    run(&play, "las");
    ck_assert_double_eq_tol(play.report.allocation_pct, 0, 1e-9);
    close_play(&play);
}

END_TEST

START_TEST(wrong_runs_are_refused)
{
    struct play play = {0};
    struct weir_error err = {0};
    open_rows(&play, "submit,accelerators\n0,1\n", four);
    ck_assert_int_eq(weir_sim_run(&play.trace, &play.cluster, &play.options, &play.report, &err),
                     WEIR_ERR_INVALID);
    ck_assert(strstr(err.message, "no run time") != NULL);
    play.options.cycle_s = NAN;
    ck_assert_int_eq(weir_sim_run(&play.trace, &play.cluster, &play.options, &play.report, &err),
                     WEIR_ERR_INVALID);
    ck_assert(strstr(err.message, "cycle: expected") != NULL);
    play.options.cycle_s = 1;
    play.options.profile = "best";
    weir_sim_trace_fini(&play.trace);
    ck_assert_int_eq(weir_sim_run(&play.trace, &play.cluster, &play.options, &play.report, &err),
                     WEIR_ERR_NOT_FOUND);
    weir_sim_cluster_fini(&play.cluster);
}

END_TEST

/** Random traces: every law holds under every profile, and the same run gives the same report. */
START_TEST(invariants_hold_on_random_traces)
{
    static const char *const profiles[] = {"fifo", "fifo-skip", "sjf", "las", "kai", "default"};
    for (uint64_t seed = 1; seed <= WEIR_TEST_TIMES(6, 2); seed++) {
        char text[16384] = "submit,duration,accelerators,tasks,min_tasks,queue,priority\n";
        size_t len = strlen(text);
        struct weir_rng rng;
        weir_rng_init(&rng, seed, 0);
        for (int j = 0; j < WEIR_TEST_TIMES(150, 90); j++) {
            int tasks = 1 + (int)weir_rng_below(&rng, 3);
            len += (size_t)snprintf(
                text + len, sizeof text - len, "%d,%d,%d,%d,%d,q%d,%d\n",
                (int)weir_rng_below(&rng, 3000), 1 + (int)weir_rng_below(&rng, 400),
                1 + (int)weir_rng_below(&rng, 4), tasks,
                1 + (int)weir_rng_below(&rng, (uint64_t)tasks), (int)weir_rng_below(&rng, 3),
                50 + 10 * (int)weir_rng_below(&rng, 3));
        }
        for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++) {
            struct play play;
            open_rows(&play, text, "nodes:\n  - {name: n, count: 4, accelerators: 4}\n");
            play.options.cycle_s = (double)(seed % 3) * 7;
            play.options.checkpoint_every_s = 50;
            play.options.preempt_cost_s = 3;
            play.options.resize_cost_s = 2;
            run(&play, profiles[p]);
            struct weir_sim_report first = play.report;
            run(&play, profiles[p]);
            ck_assert_mem_eq(first.jobs, play.report.jobs,
                             (size_t)play.trace.n_jobs * sizeof *first.jobs);
            ck_assert_int_le(play.report.samples[0].allocated, 16);
            weir_sim_report_fini(&first);
            close_lawful(&play);
        }
    }
}

END_TEST

/**
 * The measured table, in hours as it is rounded there. Its rows of passing over in order of arrival
 * are of a model that differs: a full scan of the queue, written apart (in another language), gives
 * the figures that stand here to more digits.
 */
static const struct {
    int gpus;
    const char *profile;
    double mean, p50, p99, mean_wait, max_wait, wait_large;
} measured[] = {
    {416, "fifo", 360.0, 350.5, 562, 356.3, 562, 390},
    {416, "fifo-skip", 136.339, 141.2347, 0, 0, 1972.2103, 425.703},
    {416, "sjf", 10.3, 0.97, 138, 6.7, 2093, 184},
    {512, "fifo", 135.8, 141.7, 254, 132.2, 251, 130},
    {512, "sjf", 7.0, 0.93, 111, 3.4, 1471, 64},
};

/** Rounded at the last digit that is given: 0.01 h below 1 h, 0.1 h below 200 h, else 1 h. */
static void check_hours(const char *what, double seconds, double hours)
{
    double digit = hours < 1 ? 0.01 : hours == floor(hours) ? 1 : 0.1; /* as printed */
    double tolerance = digit * 0.5 + 1e-6;
    ck_assert_msg(hours == 0 || fabs(seconds / 3600 - hours) <= tolerance,
                  "%s: %.4f h, measured %.4f h", what, seconds / 3600, hours);
}

START_TEST(policies_give_the_measured_rows_of_philly)
{
    struct play play;
    open_philly(&play, measured[_i].gpus);
    run(&play, measured[_i].profile);
    const struct weir_sim_class *all = &play.report.classes[0],
                                *large = &play.report.classes[play.report.n_classes - 1];
    check_hours("mean", all->completion.mean, measured[_i].mean);
    check_hours("p50", all->completion.p50, measured[_i].p50);
    check_hours("p99", all->completion.p99, measured[_i].p99);
    check_hours("mean wait", all->waiting.mean, measured[_i].mean_wait);
    check_hours("max wait", all->waiting.max, measured[_i].max_wait);
    check_hours("mean wait of 8 and more", large->waiting.mean, measured[_i].wait_large);
    close_lawful(&play);
}

END_TEST

/** The first jobs of the trace on few devices: evictions, gangs over nodes, backlog. */
START_TEST(the_scheduler_keeps_the_invariants_on_a_part_of_philly)
{
    static const char *const profiles[] = {"kai", "default"};
    struct play play;
    open_philly(&play, 40);
    play.options.cycle_s = 300;
    play.options.recheck_s = 0;
    play.trace.n_jobs = 600;
    run(&play, profiles[_i]);
    ck_assert_int_gt(play.report.n_evictions, 0);
    ck_assert_double_le(play.report.jain, 1);
    for (int32_t i = 0; i < play.report.n_samples; i++) {
        ck_assert_double_le(play.report.samples[i].allocated, 40 + 1e-9);
    }
    close_lawful(&play);
}

END_TEST

int main(void)
{
    const TTest *const made[] = {
        fifo_blocks_behind_the_first_that_does_not_fit,
        fifo_skip_passes_over_who_does_not_fit,
        sjf_takes_the_shortest_that_fits,
        las_evicts_who_got_much_for_who_got_nothing_and_loses_since_the_checkpoint,
        queues_of_a_trace_can_be_made_one,
        the_scheduler_places_gangs_whole_and_shares_devices,
        a_queue_takes_its_quota_back_and_the_borrower_pays,
        a_plan_that_does_something_is_followed_by_another,
        an_elastic_job_grows_and_works_faster,
        models_of_a_trace_find_their_nodes,
        shares_of_models_hold_in_a_replay,
        a_time_limit_ends_a_run,
        what_can_never_run_is_counted_with_the_reason,
        a_trace_without_jobs_gives_an_empty_report,
        wrong_runs_are_refused,
        invariants_hold_on_random_traces,
    };
    if (weir_test_run(weir_test_suite("replay", made, sizeof made / sizeof made[0])) != 0) {
        return EXIT_FAILURE;
    }
    if (access(data_path("philly/sia_philly.csv"), R_OK) != 0) {
        (void)fprintf(stderr, "the traces are not there; their tests are skipped\n");
        return 77;
    }
    Suite *suite = suite_create("philly");
    TCase *tcase = tcase_create("measured rows");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, policies_give_the_measured_rows_of_philly, 0,
                        (int)(sizeof measured / sizeof measured[0]));
    tcase_add_loop_test(tcase, the_scheduler_keeps_the_invariants_on_a_part_of_philly, 0, 2);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
