#include "sched/forecast/backfill.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "sched/test/test_cluster.h"

#include <stdio.h>

#define HOUR_MS ((int64_t)3600000)

static struct weir_sched_profile rules(int64_t depth, int64_t ageing_ms)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    profile.backfill_depth = depth;
    profile.ageing_bound_ms = ageing_ms;
    profile.actions = "allocate";
    return profile;
}

/** One queue without bounds on nodes of 8 devices. */
static void arrange(struct test_cluster *cluster, int n_nodes, int n_jobs)
{
    test_cluster_init(cluster, n_nodes, 2, n_jobs, n_jobs * 8);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, 8);
    }
    test_queue(cluster, -1, -1, 1, -1);
}

/** A job whose tasks run on nodes from `node` on since an hour, each on the first devices. */
static struct weir_sched_job *running(struct test_cluster *cluster, int32_t node, int n_tasks,
                                      int n_devices, int64_t left_ms)
{
    static const int32_t devices[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct weir_sched_job *job = test_job(cluster, 0, 50, n_tasks, n_devices);
    job->started_ms = TEST_NOW_MS - HOUR_MS;
    job->expected_run_ms = left_ms > 0 ? HOUR_MS + left_ms : 0;
    for (int t = 0; t < n_tasks; t++) {
        cluster->tasks[job->first_task + t].state = WEIR_SCHED_RUNNING;
        cluster->tasks[job->first_task + t].node = node + t;
        cluster->tasks[job->first_task + t].devices = devices;
    }
    return job;
}

static bool is_bound(const struct weir_sched_plan *plan, int32_t task)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].task == task && plan->actions[i].kind == WEIR_SCHED_BIND) {
            return true;
        }
    }
    return false;
}

static const struct weir_sched_wait *wait_of(const struct weir_sched_plan *plan, int32_t job)
{
    for (int32_t i = 0; i < plan->n_waits; i++) {
        if (plan->waits[i].job == job) {
            return &plan->waits[i];
        }
    }
    return NULL;
}

START_TEST(a_small_job_passes_a_gang_only_if_it_finishes_before_the_gang_can_start)
{
    static const struct {
        int64_t depth, limit_ms;
        bool starts;
    } rows[] = {{1, 0, false},          {1, HOUR_MS, true}, {1, HOUR_MS + 1, false},
                {1, HOUR_MS / 2, true}, {0, 0, true},       {0, 9 * HOUR_MS, true}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct test_cluster cluster;
        arrange(&cluster, 2, 3);
        running(&cluster, 0, 1, 8, HOUR_MS);
        test_job(&cluster, 0, 50, 2, 8);
        struct weir_sched_job *small = test_job(&cluster, 0, 50, 1, 1);
        small->time_limit_ms = rows[i].limit_ms;
        struct weir_sched_profile profile = rules(rows[i].depth, 0);
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        ck_assert_ptr_nonnull(plan);
        ck_assert_msg(is_bound(plan, small->first_task) == rows[i].starts, "row %zu", i);
        const struct weir_sched_wait *gang = wait_of(plan, 1);
        ck_assert_ptr_nonnull(gang);
        if (rows[i].depth > 0) {
            ck_assert_int_eq(gang->expected_start_ms, TEST_NOW_MS + HOUR_MS);
            ck_assert_int_eq(gang->after_job, 0);
        }
        if (rows[i].depth > 0 && !rows[i].starts) {
            ck_assert_int_eq(wait_of(plan, 2)->code, WEIR_SCHED_WAIT_RESERVED);
            ck_assert_int_eq(wait_of(plan, 2)->object, 1);
        }
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

START_TEST(what_is_not_reserved_is_given_however_long_it_is_used)
{
    struct test_cluster cluster;
    arrange(&cluster, 3, 3);
    running(&cluster, 0, 1, 8, HOUR_MS);
    running(&cluster, 1, 1, 2, HOUR_MS / 2);
    test_job(&cluster, 0, 50, 1, 8)->n_tasks = 1;
    cluster.nodes[2].is_cordoned = true;
    struct weir_sched_profile profile = rules(1, 0);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(wait_of(plan, 2)->expected_start_ms, TEST_NOW_MS + HOUR_MS / 2);
    ck_assert_int_eq(wait_of(plan, 2)->after_job, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
    arrange(&cluster, 3, 4); /* The same, with a node on which the gang has no use of six. */
    running(&cluster, 0, 1, 8, HOUR_MS / 2);
    running(&cluster, 1, 1, 2, HOUR_MS);
    cluster.nodes[2].is_cordoned = true;
    test_job(&cluster, 0, 50, 1, 8);
    struct weir_sched_job *six = test_job(&cluster, 0, 50, 1, 6);
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(wait_of(plan, 2)->expected_start_ms, TEST_NOW_MS + HOUR_MS / 2);
    ck_assert(is_bound(plan, six->first_task));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(the_sentence_says_what_is_needed_what_there_is_and_when)
{
    struct test_cluster cluster;
    arrange(&cluster, 1, 2);
    cluster.snapshot.now_ms = TEST_NOW_MS; /* 2023-11-14 22:13:20 UTC */
    running(&cluster, 0, 1, 2, HOUR_MS);
    test_job(&cluster, 0, 50, 1, 8);
    struct weir_sched_profile profile = rules(4, 0);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_str_eq(wait_of(plan, 1)->text,
                     "A task needs 8 accelerators on one node; the most that is free on one is 6 "
                     "accelerators. Would fit when job job-00000 ends, about 23:13 UTC.");
    weir_sched_plan_destroy(plan);
    cluster.jobs[0].expected_run_ms = 0; /* As long again as it has run. */
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(wait_of(plan, 1)->expected_start_ms, TEST_NOW_MS + HOUR_MS);
    weir_sched_plan_destroy(plan);
    cluster.jobs[0].time_limit_ms = 4 * HOUR_MS;
    cluster.jobs[0].expected_run_ms = 3 * HOUR_MS;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(strstr(wait_of(plan, 1)->text, "about 2023-11-15 00:13 UTC."));
    weir_sched_plan_destroy(plan);
    cluster.tasks[1].demand.n_devices = 9;
    plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(wait_of(plan, 1)->expected_start_ms, 0);
    ck_assert_ptr_null(strstr(wait_of(plan, 1)->text, "Would fit"));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(jobs_behind_each_other_get_times_behind_each_other)
{
    struct test_cluster cluster;
    arrange(&cluster, 1, 4);
    running(&cluster, 0, 1, 8, HOUR_MS);
    for (int i = 0; i < 3; i++) {
        test_job(&cluster, 0, 50, 1, 8)->time_limit_ms = 2 * HOUR_MS;
    }
    struct weir_sched_profile profile = rules(1, 0);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    for (int j = 1; j < 4; j++) {
        ck_assert_int_eq(wait_of(plan, j)->expected_start_ms, TEST_NOW_MS + (2 * j - 1) * HOUR_MS);
        ck_assert_int_eq(wait_of(plan, j)->after_job, j - 1);
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(who_is_at_a_limit_holds_no_room_but_learns_when_it_is_below)
{
    struct test_cluster cluster;
    arrange(&cluster, 2, 3);
    cluster.queues[0].shares[WEIR_SCHED_ACCELERATOR].limit = 8000;
    running(&cluster, 0, 1, 7, HOUR_MS);
    test_job(&cluster, 0, 50, 1, 8);
    struct weir_sched_job *small = test_job(&cluster, 0, 50, 1, 1);
    small->time_limit_ms = HOUR_MS / 2;
    struct weir_sched_profile profile = rules(4, 0);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(wait_of(plan, 1)->code, WEIR_SCHED_WAIT_QUEUE_LIMIT);
    ck_assert_int_eq(wait_of(plan, 1)->expected_start_ms, TEST_NOW_MS + HOUR_MS);
    ck_assert(is_bound(plan, small->first_task));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** Carry a plan out and let time pass to the next end; jobs run for what they state. How many have
 *  not started yet? */
static int32_t live(struct test_cluster *cluster, const struct weir_sched_plan *plan,
                    int32_t n_jobs, int64_t *starts)
{
    test_apply(cluster, plan);
    int64_t now = cluster->snapshot.now_ms, next = INT64_MAX;
    int32_t n_left = n_jobs;
    for (int32_t j = 0; j < n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        if (starts[j] == 0 && cluster->tasks[job->first_task].state == WEIR_SCHED_RUNNING) {
            starts[j] = job->started_ms = now;
        }
        n_left -= starts[j] > 0;
        if (cluster->tasks[job->first_task].state == WEIR_SCHED_RUNNING &&
            job->started_ms + job->time_limit_ms < next) {
            next = job->started_ms + job->time_limit_ms;
        }
    }
    cluster->snapshot.now_ms = next == INT64_MAX ? now + 1 : next;
    for (int32_t j = 0; j < n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (cluster->tasks[t].state == WEIR_SCHED_RUNNING &&
                job->started_ms + job->time_limit_ms <= cluster->snapshot.now_ms) {
                cluster->tasks[t].state = WEIR_SCHED_DONE;
                cluster->tasks[t].node = WEIR_SCHED_NONE;
            }
        }
    }
    return n_left;
}

START_TEST(the_first_in_the_order_starts_when_it_was_told_or_sooner)
{
    int n_told = 0, n_late = 0;
    for (uint64_t seed = 1; seed <= WEIR_TEST_TIMES(30, 10); seed++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, 1);
        struct test_cluster cluster;
        arrange(&cluster, 4, 40);
        int64_t starts[40] = {0}, told[40] = {0}, first[40] = {0};
        for (int j = 0; j < 40; j++) {
            bool is_gang = weir_rng_below(&rng, 3) == 0;
            struct weir_sched_job *job =
                test_job(&cluster, 0, 50, is_gang ? 1 + (int)weir_rng_below(&rng, 4) : 1,
                         is_gang ? 8 : 1 + (int)weir_rng_below(&rng, 8));
            job->time_limit_ms = (1 + (int64_t)weir_rng_below(&rng, 10)) * HOUR_MS;
        }
        struct weir_sched_profile profile = rules(40, 0);
        int32_t n_left = 40;
        for (int round = 0; round < 400 && n_left > 0; round++) {
            struct weir_sched_plan *plan = test_plan(&cluster, &profile);
            ck_assert_ptr_nonnull(plan);
            for (int32_t i = 0; i < plan->n_waits; i++) {
                int32_t j = plan->waits[i].job;
                int64_t start = plan->waits[i].expected_start_ms;
                ck_assert_msg(start > 0, "seed %d: job %d knows no time", (int)seed, (int)j);
                told[j] = i == 0 && told[j] == 0 ? start : told[j];
                first[j] = first[j] == 0 ? start : first[j];
            }
            n_left = live(&cluster, plan, 40, starts);
            weir_sched_plan_destroy(plan);
        }
        for (int j = 0; j < 40; j++) {
            ck_assert_msg(starts[j] > 0, "seed %d: job %d never started", (int)seed, j);
            ck_assert_msg(told[j] == 0 || starts[j] <= told[j],
                          "seed %d: job %d was told %lld and started %lld later", (int)seed, j,
                          (long long)told[j], (long long)(starts[j] - told[j]));
            n_told += first[j] > 0;
            n_late += first[j] > 0 && starts[j] > first[j];
        }
        test_cluster_fini(&cluster);
    }
    printf("of %d jobs that were told a time at once, %d started later\n", n_told, n_late);
}

END_TEST

START_TEST(whoever_waits_for_longer_than_the_bound_starts_within_what_is_stated)
{
    enum { N = 120 };

    const int64_t bound_ms = 20 * HOUR_MS, longest_ms = 4 * HOUR_MS;
    int64_t worst_without = 0;
    for (uint64_t seed = 1; seed <= WEIR_TEST_TIMES(20, 5); seed++) {
        for (int is_on = 0; is_on < 2; is_on++) {
            struct weir_rng rng;
            weir_rng_init(&rng, seed, 1);
            struct test_cluster cluster;
            arrange(&cluster, 2, N);
            int64_t starts[N] = {0};
            for (int j = 0; j < N; j++) { /* A gang of low priority, and ever more of high. */
                bool is_gang = j % 40 == 0;
                struct weir_sched_job *job =
                    test_job(&cluster, 0, is_gang ? 10 : 20, is_gang ? 2 : 1,
                             is_gang ? 8 : 1 + (int)weir_rng_below(&rng, 8));
                job->time_limit_ms = (1 + (int64_t)weir_rng_below(&rng, 4)) * HOUR_MS;
                job->queued_ms = job->created_ms = TEST_NOW_MS - j;
            }
            struct weir_sched_profile profile = rules(1, is_on ? bound_ms : 0);
            int32_t n_left = N;
            for (int round = 0; round < 400 && n_left > 0; round++) {
                struct weir_sched_plan *plan = test_plan(&cluster, &profile);
                ck_assert_ptr_nonnull(plan);
                n_left = live(&cluster, plan, N, starts);
                weir_sched_plan_destroy(plan);
            }
            for (int j = 0; j < N; j++) {
                int64_t n_before = 0, due = cluster.jobs[j].queued_ms + bound_ms;
                for (int k = j + 1; k < N; k++) { /* Those who waited longer, still at `due`. */
                    n_before += starts[k] == 0 || starts[k] > due;
                }
                int64_t waited = starts[j] - cluster.jobs[j].queued_ms;
                ck_assert_int_gt(starts[j], 0);
                if (!is_on && j == 0) {
                    worst_without = waited > worst_without ? waited : worst_without;
                }
                ck_assert_msg(!is_on || waited <= bound_ms + (n_before + 1) * longest_ms,
                              "seed %d: job %d waited %lld h behind %d", (int)seed, j,
                              (long long)(waited / HOUR_MS), (int)n_before);
            }
            test_cluster_fini(&cluster);
        }
    }
    printf("longest wait of the gang without ageing: %lld h\n",
           (long long)(worst_without / HOUR_MS));
}

END_TEST

START_TEST(ageing_goes_before_priority_but_not_above_a_limit)
{
    struct test_cluster cluster;
    arrange(&cluster, 1, 2);
    struct weir_sched_job *old = test_job(&cluster, 0, 10, 1, 8);
    struct weir_sched_job *high = test_job(&cluster, 0, 90, 1, 8);
    old->queued_ms = TEST_NOW_MS - HOUR_MS - 1;
    high->queued_ms = TEST_NOW_MS - HOUR_MS;
    for (int i = 0; i < 3; i++) { /* Off, on, and on above a limit that only the small one fits. */
        struct weir_sched_profile profile = rules(1, i > 0 ? HOUR_MS : 0);
        if (i == 2) {
            cluster.queues[0].shares[WEIR_SCHED_ACCELERATOR].limit = 4000;
            cluster.tasks[high->first_task].demand.n_devices = 4;
        }
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        ck_assert_int_eq(is_bound(plan, old->first_task), i == 1);
        ck_assert_int_eq(is_bound(plan, high->first_task), i != 1);
        weir_sched_plan_destroy(plan);
    }
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(times_for_many_waiting_jobs_are_found_fast)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 500, 2, 4200, 4000 + 200 * 16);
    for (int i = 0; i < 500; i++) {
        test_node(&cluster, 8);
    }
    test_queue(&cluster, -1, -1, 1, -1);
    for (int i = 0; i < 4000; i++) {
        test_job(&cluster, 0, 50, 1, 1);
    }
    struct weir_sched_profile profile = rules(8, 0);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    test_apply(&cluster, plan);
    weir_sched_plan_destroy(plan);
    for (int i = 0; i < 4000; i++) {
        cluster.jobs[i].started_ms = TEST_NOW_MS - 1000 * (1 + i * 7919 % 4000);
    }
    for (int i = 0; i < 200; i++) {
        test_job(&cluster, 0, 50, 16, 8);
    }
    uint64_t start = weir_mono_ns();
    plan = test_plan(&cluster, &profile);
    printf("72 times among 4000 running: %.2f ms\n", (double)(weir_mono_ns() - start) / 1e6);
    int n_known = 0;
    for (int32_t i = 0; i < plan->n_waits; i++) {
        n_known += plan->waits[i].expected_start_ms > 0;
    }
    ck_assert_int_eq(n_known, 72);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("backfill", a_small_job_passes_a_gang_only_if_it_finishes_before_the_gang_can_start,
               what_is_not_reserved_is_given_however_long_it_is_used,
               the_sentence_says_what_is_needed_what_there_is_and_when,
               jobs_behind_each_other_get_times_behind_each_other,
               who_is_at_a_limit_holds_no_room_but_learns_when_it_is_below,
               the_first_in_the_order_starts_when_it_was_told_or_sooner,
               whoever_waits_for_longer_than_the_bound_starts_within_what_is_stated,
               ageing_goes_before_priority_but_not_above_a_limit,
               times_for_many_waiting_jobs_are_found_fast)
