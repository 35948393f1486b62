/*
 * Least attained service: one small cluster each, the outcome written down by hand.
 */
#include "sched/test/test_workload.h"

#include "base/macros.h"
#include "base/test_main.h"

#define HOUR_MS INT64_C(3600000)

/** One queue for all, on a node of eight devices. */
static void build(struct test_cluster *cluster)
{
    test_cluster_init(cluster, 1, 2, 8, 16);
    test_node(cluster, 8);
    test_queue(cluster, -1, 8, 1, -1);
}

/** What has waited since long enough to be worth any eviction. */
static struct weir_sched_job *waiting_job(struct test_cluster *cluster, int n_devices,
                                          int64_t served_ms, int64_t waited_ms)
{
    struct weir_sched_job *job = test_job(cluster, 0, 50, 1, n_devices);
    job->queued_ms = TEST_NOW_MS - HOUR_MS;
    job->served_ms = served_ms;
    job->waited_ms = waited_ms;
    return job;
}

static bool evicts(const struct test_cluster *cluster, const struct weir_sched_profile *profile,
                   int32_t task)
{
    struct weir_sched_plan *plan = test_plan(cluster, profile);
    bool is_evicted = test_action(plan, task, WEIR_SCHED_EVICT) != NULL;
    weir_sched_plan_destroy(plan);
    return is_evicted;
}

START_TEST(of_waiting_jobs_who_has_had_less_starts_and_of_equals_the_first)
{
    struct test_cluster cluster;
    build(&cluster);
    waiting_job(&cluster, 8, 16 * HOUR_MS, 0);
    waiting_job(&cluster, 8, 5 * HOUR_MS, 0);
    waiting_job(&cluster, 8, 4 * HOUR_MS, 0); /* From four to eight hours is one level. */
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 1);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);

    profile.service_base_ms = 0;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(in_the_last_level_who_has_waited_longest_in_all_starts)
{
    struct test_cluster cluster;
    build(&cluster);
    waiting_job(&cluster, 8, 4000 * HOUR_MS, 10 * HOUR_MS);
    waiting_job(&cluster, 8, 9000 * HOUR_MS, 11 * HOUR_MS);
    waiting_job(&cluster, 8, 5000 * HOUR_MS, 10 * HOUR_MS);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_job_is_evicted_for_a_lower_level_and_not_for_its_own)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    running->served_ms = 8 * HOUR_MS;
    struct weir_sched_job *waiting = waiting_job(&cluster, 8, 8 * HOUR_MS - 1, 0);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    ck_assert(evicts(&cluster, &profile, 0));
    waiting->served_ms++;
    ck_assert(!evicts(&cluster, &profile, 0));

    waiting->served_ms = 0;
    waiting->priority = running->priority - 1;
    ck_assert(!evicts(&cluster, &profile, 0));
    waiting->priority = running->priority;
    running->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    ck_assert(!evicts(&cluster, &profile, 0));
    running->preemptibility = WEIR_SCHED_PREEMPTIBLE;
    profile.service_base_ms = 0;
    ck_assert(!evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(in_the_last_level_a_job_is_evicted_for_who_has_waited_longer_by_a_day)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    running->served_ms = 4000 * HOUR_MS;
    running->waited_ms = 10 * HOUR_MS;
    struct weir_sched_job *waiting = waiting_job(&cluster, 8, 9000 * HOUR_MS, 34 * HOUR_MS);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    ck_assert(!evicts(&cluster, &profile, 0));
    waiting->waited_ms++;
    ck_assert(evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(work_that_no_checkpoint_holds_is_undone_only_for_who_waits_twice_as_long)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    running->served_ms = 8 * HOUR_MS;
    struct weir_sched_job *waiting = waiting_job(&cluster, 8, 0, 0);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    running->started_ms = TEST_NOW_MS - HOUR_MS;
    running->checkpoint_ms = TEST_NOW_MS - 600000; /* Three minutes, and half of fourteen. */
    waiting->queued_ms = TEST_NOW_MS - 14 * 60000 + 1000;
    ck_assert(!evicts(&cluster, &profile, 0));
    waiting->queued_ms -= 1000;
    ck_assert(evicts(&cluster, &profile, 0));
    running->checkpoint_ms = 0;
    ck_assert(!evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_larger_job_is_undone_for_a_smaller_one_only_if_less_device_time_is_given_up)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    running->served_ms = 8 * HOUR_MS;
    waiting_job(&cluster, 2, 0, 0); /* Half an hour of two devices is 7.5 minutes of eight. */
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    running->started_ms = TEST_NOW_MS - HOUR_MS;
    running->checkpoint_ms = TEST_NOW_MS - 180000 - 450000 - 1;
    ck_assert(!evicts(&cluster, &profile, 0));
    running->checkpoint_ms++;
    ck_assert(evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(of_victims_who_has_had_least_goes_last_though_it_loses_the_least)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_job *old = test_running_job(&cluster, 0, 0, 4, 0);
    struct weir_sched_job *young = test_running_job(&cluster, 0, 0, 4, 4);
    old->started_ms = TEST_NOW_MS - HOUR_MS / 2;
    young->started_ms = TEST_NOW_MS - 1000;
    young->served_ms = 4000;
    waiting_job(&cluster, 4, 0, 0)->priority = old->priority + 1;
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    old->served_ms = HOUR_MS - 1; /* Both are new. */
    ck_assert(evicts(&cluster, &profile, 1));
    old->served_ms++;
    ck_assert(evicts(&cluster, &profile, 0));
    ck_assert(!evicts(&cluster, &profile, 1));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_job_ages_twice_as_slowly_with_each_level)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_job *urgent = waiting_job(&cluster, 8, 0, 0);
    struct weir_sched_job *old = waiting_job(&cluster, 8, 2 * HOUR_MS, 0); /* Level 2. */
    urgent->priority = old->priority + 1;
    old->queued_ms = TEST_NOW_MS - 4 * profile.ageing_bound_ms;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    old->queued_ms -= 4;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(of_those_who_waited_too_long_who_waited_most_of_its_own_bounds_goes_first)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_job *little = waiting_job(&cluster, 8, 0, 0);
    struct weir_sched_job *much = waiting_job(&cluster, 8, 2 * HOUR_MS, 0); /* Level 2. */
    little->queued_ms = TEST_NOW_MS - 2 * profile.ageing_bound_ms;
    much->queued_ms = TEST_NOW_MS - 8 * profile.ageing_bound_ms;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND)); /* Of equals who waits longer. */
    weir_sched_plan_destroy(plan);
    little->queued_ms--;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(who_started_for_its_age_is_not_preempted_before_it_ran_as_long_as_it_waited)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *old = test_running_job(&cluster, 0, 0, 8, 0);
    waiting_job(&cluster, 8, 0, 0)->priority = old->priority + 1;
    int64_t waited_ms = profile.ageing_bound_ms + 1;
    old->started_ms = TEST_NOW_MS - waited_ms;
    old->queued_ms = old->started_ms - waited_ms;
    ck_assert(!evicts(&cluster, &profile, 0));
    old->started_ms--;
    old->queued_ms--;
    ck_assert(evicts(&cluster, &profile, 0));
    old->started_ms = TEST_NOW_MS;
    old->queued_ms = TEST_NOW_MS - profile.ageing_bound_ms;
    ck_assert(evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(who_started_for_its_age_is_preempted_once_it_has_come_to_its_next_level)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *old = test_running_job(&cluster, 0, 0, 8, 0);
    waiting_job(&cluster, 8, 0, 0)->priority = old->priority + 1;
    old->started_ms = TEST_NOW_MS - 450000; /* An hour of device time. */
    old->queued_ms = old->started_ms - 2 * profile.ageing_bound_ms - 2;
    old->served_ms = 2 * HOUR_MS - 1; /* From level 0 to level 1. */
    ck_assert(evicts(&cluster, &profile, 0));
    old->started_ms++;
    old->queued_ms++;
    ck_assert(!evicts(&cluster, &profile, 0)); /* It had an hour before. */
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(whoever_has_waited_too_long_takes_from_those_who_have_had_no_more)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    struct weir_sched_job *old = waiting_job(&cluster, 8, 0, 0);
    old->queued_ms = TEST_NOW_MS - profile.ageing_bound_ms;
    ck_assert(!evicts(&cluster, &profile, 0));
    old->queued_ms--;
    ck_assert(evicts(&cluster, &profile, 0));
    running->priority++;
    ck_assert(!evicts(&cluster, &profile, 0));
    running->priority--;
    running->queued_ms = running->started_ms - profile.ageing_bound_ms - 1; /* It was due itself. */
    ck_assert(!evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(nobody_is_evicted_so_that_another_job_grows)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *large = test_running_job(&cluster, 0, 0, 7, 0);
    large->served_ms = 8 * HOUR_MS;
    large->checkpoint_ms = TEST_NOW_MS;
    struct weir_sched_job *elastic = test_job(&cluster, 0, 50, 2, 1);
    elastic->queued_ms = TEST_NOW_MS - HOUR_MS;
    elastic->min_member = 1;
    struct weir_sched_task *first = &cluster.tasks[elastic->first_task];
    *first = (struct weir_sched_task){.name = first->name,
                                      .state = WEIR_SCHED_RUNNING,
                                      .node = 0,
                                      .devices = (const int32_t[]){7},
                                      .demand = first->demand};
    ck_assert(!evicts(&cluster, &profile, 0));
    elastic->min_member = 2; /* A gang that is torn. */
    ck_assert(evicts(&cluster, &profile, 0));
    test_cluster_fini(&cluster);
}

END_TEST

/** Of two victims the one that is tried first has a device that is reserved for a gang, so that the
 *  other has to go: then the first need not. */
START_TEST(who_was_not_needed_stays_though_its_place_is_reserved_for_later)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 2, 2, 8, 16);
    test_node(&cluster, 2);
    test_node(&cluster, 1);
    test_queue(&cluster, -1, 3, 1, -1);
    cluster.queues[test_queue(&cluster, -1, 0, 1, -1)].priority++; /* First in order. */
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *second = test_running_job(&cluster, 0, 0, 1, 0);
    struct weir_sched_job *first = test_running_job(&cluster, 0, 0, 1, 1);
    struct weir_sched_job *fixed = test_running_job(&cluster, 0, 1, 1, 0);
    first->served_ms = 64 * HOUR_MS;
    second->served_ms = 32 * HOUR_MS;
    first->expected_run_ms = fixed->expected_run_ms = HOUR_MS;
    second->expected_run_ms = 10 * HOUR_MS;
    fixed->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    test_job(&cluster, 1, 50, 2, 1); /* Of the reservation. */
    waiting_job(&cluster, 1, 0, 0);
    ck_assert(!evicts(&cluster, &profile, first->first_task));
    ck_assert(evicts(&cluster, &profile, second->first_task));
    test_cluster_fini(&cluster);
}

END_TEST

/** A gang as large as its queue's quota, of which something that cannot be evicted holds a part. */
START_TEST(whoever_has_waited_too_long_takes_what_is_lent_but_nothing_that_is_guaranteed)
{
    for (int n_lent = 0; n_lent <= 2; n_lent++) {
        struct test_cluster cluster;
        struct weir_sched_profile profile = test_profile_default();
        test_cluster_init(&cluster, 1, 2, 16, 32);
        test_node(&cluster, 8 + n_lent);
        test_queue(&cluster, -1, 4, 1, -1);
        test_queue(&cluster, -1, 4, 1, -1);
        test_running_job(&cluster, 0, 0, 1, 0)->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
        for (int d = 1; d < 8 + n_lent; d++) {
            test_running_job(&cluster, d < 4 ? 0 : 1, 0, 1, d);
        }
        struct weir_sched_job *gang = test_job(&cluster, 0, 50, 4, 1);
        gang->queued_ms = TEST_NOW_MS - profile.ageing_bound_ms - 1;
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        int n_own = 0, n_others = 0;
        for (int32_t t = 1; t < 8 + n_lent; t++) {
            bool is_evicted = test_action(plan, t, WEIR_SCHED_EVICT) != NULL;
            n_own += is_evicted && t < 4;
            n_others += is_evicted && t >= 4;
        }
        ck_assert_int_eq(n_own, n_lent > 0 ? 3 : 0);
        ck_assert_int_eq(n_others, n_lent > 0);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/** Two that have just got what is lent go before those who run, as they have not started. */
START_TEST(whoever_has_not_started_yet_goes_first_for_who_has_waited_too_long)
{
    struct test_cluster cluster;
    struct weir_sched_profile profile = test_profile_default();
    profile.backfill_depth = 0;
    test_cluster_init(&cluster, 1, 2, 16, 32);
    test_node(&cluster, 9);
    test_queue(&cluster, -1, 4, 1, -1);
    cluster.queues[test_queue(&cluster, -1, 4, 1, -1)].priority++; /* First in order. */
    for (int d = 0; d < 7; d++) {
        struct weir_sched_job *job = test_running_job(&cluster, d < 3 ? 0 : 1, 0, 1, d);
        job->preemptibility = d < 3 ? WEIR_SCHED_NON_PREEMPTIBLE : WEIR_SCHED_PREEMPTIBLE;
        job->started_ms = TEST_NOW_MS - 1000;
        job->served_ms = 1000 * HOUR_MS;
    }
    for (int i = 0; i < 2; i++) {
        test_job(&cluster, 1, 50, 1, 1)->created_ms = TEST_NOW_MS - HOUR_MS;
    }
    struct weir_sched_job *gang = test_job(&cluster, 0, 50, 2, 1);
    gang->queued_ms = TEST_NOW_MS - profile.ageing_bound_ms - 1;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(plan->n_actions, 2);
    ck_assert_ptr_nonnull(test_action(plan, gang->first_task, WEIR_SCHED_BIND));
    ck_assert_ptr_nonnull(test_action(plan, gang->first_task + 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("service", of_waiting_jobs_who_has_had_less_starts_and_of_equals_the_first,
               in_the_last_level_who_has_waited_longest_in_all_starts,
               a_job_is_evicted_for_a_lower_level_and_not_for_its_own,
               in_the_last_level_a_job_is_evicted_for_who_has_waited_longer_by_a_day,
               of_those_who_waited_too_long_who_waited_most_of_its_own_bounds_goes_first,
               who_started_for_its_age_is_not_preempted_before_it_ran_as_long_as_it_waited,
               who_started_for_its_age_is_preempted_once_it_has_come_to_its_next_level,
               a_job_ages_twice_as_slowly_with_each_level,
               work_that_no_checkpoint_holds_is_undone_only_for_who_waits_twice_as_long,
               a_larger_job_is_undone_for_a_smaller_one_only_if_less_device_time_is_given_up,
               of_victims_who_has_had_least_goes_last_though_it_loses_the_least,
               whoever_has_waited_too_long_takes_from_those_who_have_had_no_more,
               whoever_has_waited_too_long_takes_what_is_lent_but_nothing_that_is_guaranteed,
               whoever_has_not_started_yet_goes_first_for_who_has_waited_too_long,
               nobody_is_evicted_so_that_another_job_grows,
               who_was_not_needed_stays_though_its_place_is_reserved_for_later)
