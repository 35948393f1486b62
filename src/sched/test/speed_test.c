/*
 * How long decisions take, printed; and that what is decided is right at that size. Times are not
 * asserted: the machine that runs the tests has other things to do.
 */
#include "sched/test/test_cluster.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <stdio.h>

static struct weir_sched_profile rules(const char *name)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(name, &profile, NULL), WEIR_OK);
    return profile;
}

/** Plan, print the time and count the actions of a kind. */
static int32_t timed(const char *what, struct test_cluster *cluster,
                     enum weir_sched_action_kind kind, bool apply)
{
    struct weir_sched_profile profile = rules("kai");
    uint64_t start = weir_mono_ns();
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    double ms = (double)(weir_mono_ns() - start) / 1e6;
    ck_assert_ptr_nonnull(plan);
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        n += plan->actions[i].kind == kind;
    }
    printf("%s: %.2f ms, %d of its kind, %.0f decisions/s\n", what, ms, (int)n,
           (double)plan->n_decisions / ms * 1000);
    (void)fflush(stdout);
    if (apply) {
        test_apply(cluster, plan);
    }
    weir_sched_plan_destroy(plan);
    return n;
}

static void fill(struct test_cluster *cluster, int n_nodes, int n_jobs, int n_more)
{
    test_cluster_init(cluster, n_nodes, 4, n_jobs + n_more, n_jobs + n_more * 16);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, 8);
    }
    int32_t root = test_queue(cluster, -1, -1, 1, -1);
    test_queue(cluster, root, 1000, 1, -1);
    test_queue(cluster, root, 1000, 1, -1);
    for (int i = 0; i < n_jobs; i++) {
        test_job(cluster, 1, 50, 1, 1);
    }
}

START_TEST(one_accelerator_jobs_fill_a_cluster_and_give_way)
{
    struct test_cluster cluster;
    fill(&cluster, 500, 4000, 3);
    ck_assert_int_eq(timed("4000 jobs on 500 nodes", &cluster, WEIR_SCHED_BIND, true), 4000);
    ck_assert_int_eq(timed("idle cycle, 4000 running", &cluster, WEIR_SCHED_BIND, false), 0);
    test_job(&cluster, 2, 50, 1, 1);
    ck_assert_int_eq(timed("reclaim of one", &cluster, WEIR_SCHED_EVICT, true), 1);
    timed("the cycle after", &cluster, WEIR_SCHED_BIND, true);
    struct weir_sched_job *gang = test_job(&cluster, 2, 50, 10, 9);
    ck_assert_int_eq(timed("too large for any node", &cluster, WEIR_SCHED_EVICT, false), 0);
    for (int t = 0; t < gang->n_tasks; t++) {
        cluster.tasks[gang->first_task + t].demand.n_devices = 8;
    }
    gang->priority = 100;
    gang->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    timed("gang of 10 x 8 reclaims", &cluster, WEIR_SCHED_EVICT, false);
    cluster.queues[2].shares[WEIR_SCHED_ACCELERATOR].quota = 0;
    cluster.queues[2].shares[WEIR_SCHED_ACCELERATOR].weight = 0;
    ck_assert_int_le(timed("gang of 10 x 8 may not", &cluster, WEIR_SCHED_EVICT, false), 1);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(what_cannot_be_helped_is_said_at_once)
{
    struct test_cluster cluster;
    fill(&cluster, 500, 4000, 64);
    timed("4000 jobs again", &cluster, WEIR_SCHED_BIND, true);
    test_job(&cluster, 1, 75, 501, 8); /* One node more than there is. */
    ck_assert_int_eq(timed("gang of 501 x 8 of 500 nodes", &cluster, WEIR_SCHED_EVICT, false), 0);
    cluster.jobs[4000].n_tasks = cluster.jobs[4000].min_member = 500;
    cluster.snapshot.n_tasks--;
    ck_assert_int_eq(timed("gang of 500 x 8 preempts", &cluster, WEIR_SCHED_EVICT, false), 4000);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(a_large_cluster_is_planned_in_one_go)
{
    struct test_cluster cluster;
    fill(&cluster, 5000, 50000, 0);
    ck_assert_int_eq(timed("50000 tasks on 5000 nodes", &cluster, WEIR_SCHED_BIND, true), 40000);
    ck_assert_int_eq(timed("10000 wait", &cluster, WEIR_SCHED_BIND, false), 0);
    test_cluster_fini(&cluster);
    fill(&cluster, 10000, 60000, 100);
    timed("60000 tasks on 10000 nodes", &cluster, WEIR_SCHED_BIND, true);
    for (int i = 0; i < 100; i++) {
        test_job(&cluster, 2, 50, 1, 2);
    }
    ck_assert_int_eq(timed("100 arrive at 10000 nodes", &cluster, WEIR_SCHED_BIND, false), 100);
    test_cluster_fini(&cluster);
}

END_TEST

/** All nodes are full of jobs of one device, but the first two have one free each, which the jobs
 * of other nodes may not use: for a job of two, one of the fourteen oldest must move, out of more
 * than a search could look at. */
START_TEST(who_is_in_the_way_moves_in_a_large_cluster)
{
    enum { N_NODES = 5000, N_JOBS = 8 * N_NODES - 2 };

    static const int32_t devices[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const struct weir_sched_label old = {"model", "old"};
    struct weir_sched_profile profile = rules("default");
    struct test_cluster cluster;
    fill(&cluster, N_NODES, N_JOBS, 1);
    for (int32_t at = 2; at < N_NODES; at++) {
        cluster.nodes[at].labels = &old;
        cluster.nodes[at].n_labels = 1;
    }
    for (int32_t t = 0; t < N_JOBS; t++) {
        int32_t slot = t < 14 ? t / 7 * 8 + t % 7 : t + 2;
        cluster.tasks[t].state = WEIR_SCHED_RUNNING;
        cluster.tasks[t].node = slot / 8;
        cluster.tasks[t].devices = &devices[slot % 8];
        cluster.tasks[t].selector = &old;
        cluster.tasks[t].n_selector = t >= 14;
    }
    int32_t wide = test_job(&cluster, 1, 50, 1, 2)->first_task;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    int32_t from = -1, to = -1, n_moved = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        bool is_wide = action->task == wide, goes = action->kind == WEIR_SCHED_EVICT;
        ck_assert_int_le(action->node, 1);
        ck_assert(goes || action->kind == WEIR_SCHED_PIPELINE);
        n_moved += goes;
        from = is_wide ? action->node : from;
        to = !is_wide && !goes ? action->node : to;
    }
    ck_assert_int_eq(n_moved, 1);
    ck_assert_int_eq(from + to, 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("speed", one_accelerator_jobs_fill_a_cluster_and_give_way,
               what_cannot_be_helped_is_said_at_once, a_large_cluster_is_planned_in_one_go,
               who_is_in_the_way_moves_in_a_large_cluster)
