/*
 * Ageing: one small cluster each, the outcome written down by hand.
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
static struct weir_sched_job *waiting_job(struct test_cluster *cluster, int n_devices)
{
    struct weir_sched_job *job = test_job(cluster, 0, 50, 1, n_devices);
    job->queued_ms = TEST_NOW_MS - HOUR_MS;
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

START_TEST(a_job_that_waited_longer_than_the_bound_goes_before_its_priority)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_job *urgent = waiting_job(&cluster, 8);
    struct weir_sched_job *old = waiting_job(&cluster, 8);
    urgent->priority = old->priority + 1;
    old->queued_ms = TEST_NOW_MS - profile.ageing_bound_ms;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 0, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    old->queued_ms--;
    plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(test_action(plan, 1, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    urgent->queued_ms = old->queued_ms - 1; /* Both waited too long: the one that waited longer. */
    urgent->priority = old->priority - 1;
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
    waiting_job(&cluster, 8)->priority = old->priority + 1;
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

START_TEST(a_job_that_waited_too_long_takes_from_its_own_priority_and_below)
{
    struct test_cluster cluster;
    build(&cluster);
    struct weir_sched_profile profile = test_profile_default();
    profile.move_victims = false;
    struct weir_sched_job *running = test_running_job(&cluster, 0, 0, 8, 0);
    struct weir_sched_job *old = waiting_job(&cluster, 8);
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
    struct weir_sched_job *elastic = test_job(&cluster, 0, 50, 2, 1);
    large->priority = elastic->priority - 1;
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
    first->priority = 30;
    second->priority = 40;
    first->expected_run_ms = fixed->expected_run_ms = HOUR_MS;
    second->expected_run_ms = 10 * HOUR_MS;
    fixed->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    test_job(&cluster, 1, 50, 2, 1); /* Of the reservation. */
    waiting_job(&cluster, 1);
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

WEIR_TEST_MAIN("ageing", a_job_that_waited_longer_than_the_bound_goes_before_its_priority,
               who_started_for_its_age_is_not_preempted_before_it_ran_as_long_as_it_waited,
               a_job_that_waited_too_long_takes_from_its_own_priority_and_below,
               whoever_has_waited_too_long_takes_what_is_lent_but_nothing_that_is_guaranteed,
               whoever_has_not_started_yet_goes_first_for_who_has_waited_too_long,
               nobody_is_evicted_so_that_another_job_grows,
               who_was_not_needed_stays_though_its_place_is_reserved_for_later)
