/*
 * Profile kai where it is coarser than the default one: one small cluster per rule, the outcome
 * worked out by hand from the rule that stands beside it.
 */
#include "sched/test/test_cluster.h"

#include "base/test_main.h"

#include <stdio.h>

static void run_on(struct test_cluster *cluster, const struct weir_sched_job *job, int32_t node)
{
    for (int t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        cluster->tasks[t].state = WEIR_SCHED_RUNNING;
        cluster->tasks[t].node = node;
    }
}

static struct weir_sched_job *running(struct test_cluster *cluster, int32_t queue, int n_devices,
                                      int32_t node)
{
    struct weir_sched_job *job = test_job(cluster, queue, 50, 1, n_devices);
    run_on(cluster, job, node);
    return job;
}

static void take_cpu(struct test_cluster *cluster, const struct weir_sched_job *job, int n_cores)
{
    cluster->tasks[job->first_task].demand.cpu_milli = n_cores * 1000LL;
}

/** One cycle of these actions. */
static struct weir_sched_plan *plan_of(const struct test_cluster *cluster, char *actions)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    profile.actions = actions;
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    return plan;
}

static bool is_done(const struct weir_sched_plan *plan, const struct weir_sched_job *job,
                    enum weir_sched_action_kind kind)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].kind == kind && plan->actions[i].task == job->first_task) {
            return true;
        }
    }
    return false;
}

/** Of two jobs for which there is no room together the first is bound. */
static void expect_only(const struct test_cluster *cluster, const struct weir_sched_job *first,
                        const struct weir_sched_job *second)
{
    struct weir_sched_plan *plan = plan_of(cluster, "allocate");
    ck_assert(is_done(plan, first, WEIR_SCHED_BIND));
    ck_assert(!is_done(plan, second, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
}

/** Over its share is who is so in every resource: here CPU and memory have no bound, so that the
 *  priority of the queue decides, although the first has more devices than its fair share. */
START_TEST(a_queue_above_its_share_of_devices_alone_is_not_put_back)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 3, 8, 8);
    int32_t node = test_node(&cluster, 4), root = test_queue(&cluster, -1, -1, 1, -1);
    int32_t high = test_queue(&cluster, root, 1, 0, -1), low = test_queue(&cluster, root, 1, 0, -1);
    cluster.queues[high].priority = 200;
    running(&cluster, high, 2, node);
    running(&cluster, low, 1, node);
    struct weir_sched_job *second = test_job(&cluster, low, 50, 1, 1);
    struct weir_sched_job *first = test_job(&cluster, high, 50, 1, 1);
    expect_only(&cluster, first, second);
    test_cluster_fini(&cluster);
}

END_TEST

/** All else equal the queue that may have less goes first; without bound is more than four. */
START_TEST(an_unbounded_queue_comes_after_one_of_the_size_of_the_cluster)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 3, 8, 8);
    test_node(&cluster, 4);
    int32_t root = test_queue(&cluster, -1, -1, 1, -1);
    int32_t unbounded = test_queue(&cluster, root, -1, 1, -1);
    int32_t bounded = test_queue(&cluster, root, 4, 1, -1);
    struct weir_sched_job *second = test_job(&cluster, unbounded, 50, 1, 4);
    struct weir_sched_job *first = test_job(&cluster, bounded, 50, 1, 4);
    expect_only(&cluster, first, second);
    test_cluster_fini(&cluster);
}

END_TEST

/** Both would be beyond their quota, and the second is older: but it may have no device at all. */
START_TEST(whoever_has_no_share_of_devices_comes_last)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 3, 8, 8);
    test_node(&cluster, 4);
    int32_t root = test_queue(&cluster, -1, -1, 1, -1);
    int32_t none = test_queue(&cluster, root, 0, 0, -1);
    int32_t some = test_queue(&cluster, root, 0, 1, -1);
    struct weir_sched_job *second = test_job(&cluster, none, 50, 1, 4);
    struct weir_sched_job *first = test_job(&cluster, some, 50, 1, 4);
    expect_only(&cluster, first, second);
    test_cluster_fini(&cluster);
}

END_TEST

/**
 * A department counts by the job of the queue that was first in it last, until its turn comes. The
 * first department has one device and counts by the three that its first queue wants next, 4 / 4,
 * not by the one of its second queue, 2 / 4: so the other department with 3 / 4 is served.
 */
START_TEST(a_department_finds_its_place_before_the_queues_in_it)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 5, 8, 8);
    test_node(&cluster, 4);
    int32_t upper = test_queue(&cluster, -1, 4, 0, -1), other = test_queue(&cluster, -1, 4, 0, -1);
    int32_t first = test_queue(&cluster, upper, 4, 0, -1);
    int32_t second = test_queue(&cluster, upper, 4, 0, -1);
    int32_t third = test_queue(&cluster, other, 4, 0, -1);
    struct weir_sched_job *small = test_job(&cluster, first, 50, 1, 1);
    test_job(&cluster, first, 50, 1, 3);
    struct weir_sched_job *last = test_job(&cluster, second, 50, 1, 1);
    struct weir_sched_job *large = test_job(&cluster, third, 50, 1, 3);
    struct weir_sched_plan *plan = plan_of(&cluster, "allocate");
    ck_assert(is_done(plan, small, WEIR_SCHED_BIND));
    ck_assert(is_done(plan, large, WEIR_SCHED_BIND));
    ck_assert(!is_done(plan, last, WEIR_SCHED_BIND));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/**
 * Queues that lose are judged by all they have. Fair shares are 2, 2 and the rest, 3: both losers
 * are above theirs and above their quota, 3 > 2 and 4 > 0, though without its next job the first is
 * within it. Their dominant shares without those are equal, 2 / 2 and 3 / 3; with them 3 / 2 is
 * more than 4 / 3, so the first loses.
 */
START_TEST(a_queue_loses_by_what_it_has_not_by_what_it_keeps)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 4, 16, 16);
    int32_t node = test_node(&cluster, 7), root = test_queue(&cluster, -1, -1, 1, -1);
    int32_t taker = test_queue(&cluster, root, 2, 0, -1);
    int32_t quota = test_queue(&cluster, root, 2, 0, -1);
    int32_t lent = test_queue(&cluster, root, 0, 1, -1);
    running(&cluster, quota, 1, node);
    running(&cluster, quota, 1, node);
    struct weir_sched_job *loser = running(&cluster, quota, 1, node);
    for (int i = 0; i < 4; i++) {
        running(&cluster, lent, 1, node);
    }
    struct weir_sched_job *job = test_job(&cluster, taker, 50, 1, 1);
    test_job(&cluster, taker, 50, 1, 5); /* Beyond its share: only asks. */
    struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
    ck_assert(is_done(plan, job, WEIR_SCHED_PIPELINE));
    ck_assert(is_done(plan, loser, WEIR_SCHED_EVICT));
    ck_assert_int_eq(plan->n_actions, 2);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** A job without devices takes back cores only if its queue is within its fair share of devices as
 *  well: with a quota of two of them it is, with one it is not. */
START_TEST(whoever_is_above_its_share_of_anything_does_not_reclaim)
{
    for (int quota = 1; quota <= 2; quota++) {
        struct test_cluster cluster;
        test_cluster_init(&cluster, 1, 3, 8, 8);
        int32_t node = test_node(&cluster, 4), root = test_queue(&cluster, -1, -1, 1, -1);
        int32_t taker = test_queue(&cluster, root, quota, 0, -1);
        int32_t loser = test_queue(&cluster, root, 0, 0, -1);
        cluster.queues[taker].shares[WEIR_SCHED_CPU] = (struct weir_sched_share){8000, 1, -1};
        cluster.queues[loser].shares[WEIR_SCHED_CPU] = (struct weir_sched_share){0, 1, -1};
        running(&cluster, taker, 2, node);
        struct weir_sched_job *large = running(&cluster, loser, 0, node);
        take_cpu(&cluster, large, 62);
        struct weir_sched_job *job = test_job(&cluster, taker, 50, 1, 0);
        take_cpu(&cluster, job, 2);
        struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
        ck_assert_int_eq(is_done(plan, large, WEIR_SCHED_EVICT), quota == 2);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/** Cores are taken from whoever has more than its share of anything: here of devices, cores having
 *  no bound. */
START_TEST(whoever_is_above_its_share_of_anything_may_lose)
{
    for (int quota = 0; quota <= 1; quota++) {
        struct test_cluster cluster;
        test_cluster_init(&cluster, 1, 3, 8, 8);
        int32_t node = test_node(&cluster, 4), root = test_queue(&cluster, -1, -1, 1, -1);
        int32_t taker = test_queue(&cluster, root, 0, 0, -1);
        int32_t loser = test_queue(&cluster, root, quota, 0, -1);
        struct weir_sched_job *large = running(&cluster, loser, 1, node);
        take_cpu(&cluster, large, 64);
        struct weir_sched_job *job = test_job(&cluster, taker, 50, 1, 0);
        struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
        ck_assert_int_eq(is_done(plan, large, WEIR_SCHED_EVICT), quota == 0);
        ck_assert_int_eq(is_done(plan, job, WEIR_SCHED_PIPELINE), quota == 0);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/** Two devices of one node are wanted. One job on each node borrows, and one is of a queue that has
 *  what it is guaranteed, or less: without moving one of the latter there is no room. Only where
 * the queue has less it may not be a victim at all. */
START_TEST(work_of_a_queue_below_its_quota_is_not_moved_by_a_reclaim)
{
    for (int quota = 2; quota <= 3; quota++) {
        struct test_cluster cluster;
        test_cluster_init(&cluster, 2, 4, 8, 8);
        int32_t root = test_queue(&cluster, -1, -1, 1, -1);
        int32_t taker = test_queue(&cluster, root, 2, 0, -1);
        int32_t guarded = test_queue(&cluster, root, quota, 0, -1);
        int32_t borrower = test_queue(&cluster, root, 0, 0, -1);
        for (int i = 0; i < 2; i++) {
            int32_t node = test_node(&cluster, 2);
            running(&cluster, guarded, 1, node);
            running(&cluster, borrower, 1, node);
        }
        struct weir_sched_job *job = test_job(&cluster, taker, 50, 1, 2);
        struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
        ck_assert_int_eq(is_done(plan, job, WEIR_SCHED_PIPELINE), quota == 2);
        ck_assert_int_eq(plan->n_actions, quota == 2 ? 5 : 0); /* Two are lost, one moves. */
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/**
 * A gang of two goes for one job, and leaves a device over. Who comes next has no victim but the
 * first job, which waits for its place and has all its queue's quota: it is evicted on trial, gets
 * its place again, and so does the other. Without a quota of its own the other may not even try.
 */
START_TEST(whoever_waits_for_a_place_is_a_victim_too)
{
    for (int quota = 0; quota <= 1; quota++) {
        struct test_cluster cluster;
        test_cluster_init(&cluster, 1, 4, 8, 8);
        int32_t node = test_node(&cluster, 2), root = test_queue(&cluster, -1, -1, 1, -1);
        int32_t borrower = test_queue(&cluster, root, 0, 0, -1);
        int32_t first = test_queue(&cluster, root, 1, 0, -1);
        int32_t second = test_queue(&cluster, root, quota, 0, -1);
        struct weir_sched_job *gang = test_job(&cluster, borrower, 50, 2, 1);
        run_on(&cluster, gang, node);
        struct weir_sched_job *one = test_job(&cluster, first, 50, 1, 1);
        struct weir_sched_job *other = test_job(&cluster, second, 50, 1, 1);
        struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
        ck_assert(is_done(plan, gang, WEIR_SCHED_EVICT));
        ck_assert(is_done(plan, one, WEIR_SCHED_PIPELINE));
        ck_assert_int_eq(is_done(plan, other, WEIR_SCHED_PIPELINE), quota == 1);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/** The guard does not compare with a department that is entitled to nothing: the one above the
 *  taker is more than saturated (1 of 0), but the other has no share that could be more so. */
START_TEST(whoever_is_entitled_to_nothing_is_not_guarded)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 4, 8, 8);
    int32_t node = test_node(&cluster, 1);
    int32_t upper = test_queue(&cluster, -1, 0, 0, -1), other = test_queue(&cluster, -1, 0, 0, -1);
    int32_t taker = test_queue(&cluster, upper, 2, 0, -1);
    int32_t loser = test_queue(&cluster, other, 0, 0, -1);
    struct weir_sched_job *victim = running(&cluster, loser, 1, node);
    struct weir_sched_job *job = test_job(&cluster, taker, 50, 1, 1);
    struct weir_sched_plan *plan = plan_of(&cluster, "reclaim");
    ck_assert(is_done(plan, victim, WEIR_SCHED_EVICT));
    ck_assert(is_done(plan, job, WEIR_SCHED_PIPELINE));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** A share of a device, by thousandths or (0) by memory. */
static struct weir_sched_job *share(struct test_cluster *cluster, int32_t queue, int milli, int mib)
{
    struct weir_sched_job *job = test_job(cluster, queue, 50, 1, 1);
    cluster->tasks[job->first_task].demand.device_milli = milli;
    cluster->tasks[job->first_task].demand.device_memory_bytes = (int64_t)mib << 20;
    return job;
}

/** How many of n such shares are bound on one device of so much memory, below a limit. */
static int count_bound(int milli, int share_mib, int n, int device_mib, int limit)
{
    struct test_cluster cluster;
    int n_bound = 0;
    test_cluster_init(&cluster, 1, 1, 32, 32);
    int32_t node = test_node(&cluster, 1), queue = test_queue(&cluster, -1, 1, 1, limit);
    cluster.nodes[node].device_memory_bytes = (int64_t)device_mib << 20;
    for (int i = 0; i < n; i++) {
        share(&cluster, queue, milli, share_mib);
    }
    struct weir_sched_plan *plan = plan_of(&cluster, "allocate");
    for (int i = 0; i < n; i++) {
        n_bound += is_done(plan, &cluster.jobs[i], WEIR_SCHED_BIND);
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
    return n_bound;
}

/** A share takes whole MiB of a device of hundreds of MiB, and counts as hundredths of a device. */
START_TEST(shares_are_rounded)
{
    ck_assert_int_eq(count_bound(335, 0, 4, 100, -1), 3);  /* 33 each, not 33.5 */
    ck_assert_int_eq(count_bound(335, 0, 4, 1000, -1), 2); /* 335 of 1,000 */
    ck_assert_int_eq(count_bound(335, 0, 3, 100, 1), 2);   /* of a limit of 1 it is 0.34 */
    ck_assert_int_eq(count_bound(344, 0, 3, 100, 1), 2);   /* 34 each; 1.02 of 1 */
    ck_assert_int_eq(count_bound(334, 0, 3, 100, 1), 3);   /* 0.33 */
    ck_assert_int_eq(count_bound(145, 0, 8, 200, -1), 7);  /* 28 MiB: 0.145 * 200 in binary. */
    ck_assert_int_eq(count_bound(0, 100, 2, 199, -1), 1);  /* The device has 100 MiB. */
    ck_assert_int_eq(count_bound(0, 101, 1, 199, -1), 0);
    ck_assert_int_eq(count_bound(0, 251, 3, 1000, 1), 3); /* 0.26 of it where it is, 0.251 before */
    ck_assert_int_eq(count_bound(0, 251, 4, 1099, 1), 3);
    ck_assert_int_eq(count_bound(0, 250, 4, 1099, 1), 4);
}

END_TEST

/** A gang of which one member must wait for what leaves; whoever then joins the member that need
 *  not has no reason to wait. */
START_TEST(whoever_joins_a_member_that_only_waits_for_its_gang_starts)
{
    struct test_cluster cluster;
    test_cluster_init(&cluster, 1, 1, 8, 8);
    int32_t node = test_node(&cluster, 2), queue = test_queue(&cluster, -1, -1, 1, -1);
    struct weir_sched_job *leaves = running(&cluster, queue, 1, node);
    static const int32_t devices[] = {1};
    cluster.tasks[leaves->first_task].state = WEIR_SCHED_RELEASING;
    cluster.tasks[leaves->first_task].devices = devices;
    struct weir_sched_job *gang = test_job(&cluster, queue, 50, 2, 1);
    for (int t = 0; t < 2; t++) {
        cluster.tasks[gang->first_task + t].demand.device_milli = 600;
    }
    struct weir_sched_job *joins = share(&cluster, queue, 400, 0);
    struct weir_sched_job *waits = share(&cluster, queue, 400, 0);
    struct weir_sched_plan *plan = plan_of(&cluster, "allocate");
    ck_assert(is_done(plan, gang, WEIR_SCHED_PIPELINE));
    ck_assert(is_done(plan, joins, WEIR_SCHED_BIND));
    ck_assert(is_done(plan, waits, WEIR_SCHED_PIPELINE));
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("kai", a_queue_above_its_share_of_devices_alone_is_not_put_back,
               an_unbounded_queue_comes_after_one_of_the_size_of_the_cluster,
               whoever_has_no_share_of_devices_comes_last,
               a_department_finds_its_place_before_the_queues_in_it,
               a_queue_loses_by_what_it_has_not_by_what_it_keeps,
               whoever_is_above_its_share_of_anything_does_not_reclaim,
               whoever_is_above_its_share_of_anything_may_lose,
               work_of_a_queue_below_its_quota_is_not_moved_by_a_reclaim,
               whoever_waits_for_a_place_is_a_victim_too,
               whoever_is_entitled_to_nothing_is_not_guarded, shares_are_rounded,
               whoever_joins_a_member_that_only_waits_for_its_gang_starts)
