/*
 * Who goes, moves and stays for a job in profile kai, by the rules of search.h: one small cluster
 * per rule, the outcome worked out by hand from what stands beside it.
 */
#include "base/test_main.h"
#include "sched/test/test_fate.h"

#define WAITS (-1)

struct fixture {
    struct test_cluster cluster;
    int32_t root;
};

static void set_up(struct fixture *fixture)
{
    test_cluster_init(&fixture->cluster, 8, 8, 32, 128);
    fixture->root = test_queue(&fixture->cluster, -1, -1, 1, -1);
}

static int32_t queue_of(struct fixture *fixture, int quota, int weight)
{
    return test_queue(&fixture->cluster, fixture->root, quota, weight, -1);
}

static struct weir_sched_job *pending(struct fixture *fixture, int32_t queue, int priority,
                                      int n_tasks, int n_devices)
{
    return test_job(&fixture->cluster, queue, priority, n_tasks, n_devices);
}

/** A job of which every task runs, the i-th on nodes[i]. */
static struct weir_sched_job *running(struct fixture *fixture, int32_t queue, int priority,
                                      int n_devices, const int32_t *nodes, int n_tasks)
{
    struct weir_sched_job *job = pending(fixture, queue, priority, n_tasks, n_devices);
    for (int i = 0; i < n_tasks; i++) {
        fixture->cluster.tasks[job->first_task + i].state = WEIR_SCHED_RUNNING;
        fixture->cluster.tasks[job->first_task + i].node = nodes[i];
    }
    return job;
}

static struct weir_sched_job *running_one(struct fixture *fixture, int32_t queue, int n_devices,
                                          int32_t node)
{
    return running(fixture, queue, 50, n_devices, (int32_t[]){node}, 1);
}

static struct fate *plan_of(struct fixture *fixture, char *actions)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    profile.actions = actions;
    struct weir_sched_plan *plan = test_plan(&fixture->cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    struct fate *fates = fates_of(&fixture->cluster, plan);
    weir_sched_plan_destroy(plan);
    return fates;
}

/** Where the job's tasks will be after a cycle. */
static void expect(const struct fixture *fixture, const struct fate *fates,
                   const struct weir_sched_job *job, const int32_t *nodes)
{
    for (int32_t i = 0; i < job->n_tasks; i++) {
        int32_t task = job->first_task + i;
        ck_assert_msg(fates[task].future == nodes[i], "%s, task %d: on %d, not on %d", job->name,
                      (int)i, (int)fates[task].future, (int)nodes[i]);
    }
    (void)fixture;
}

static void expect_one(const struct fixture *fixture, const struct fate *fates,
                       const struct weir_sched_job *job, int32_t node)
{
    expect(fixture, fates, job, &node);
}

/** A device is free, and allocation was not asked. Whoever could go is put back where it was once
 * the job has the free device: the job waits for it, and nobody goes. */
START_TEST(a_job_that_fits_beside_a_victim_takes_nothing_from_it)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t node = test_node(&fixture.cluster, 2);
    int32_t taker = queue_of(&fixture, 1, 0), lent = queue_of(&fixture, 0, 1);
    struct weir_sched_job *victim = running_one(&fixture, lent, 1, node);
    struct weir_sched_job *job = pending(&fixture, taker, 50, 1, 1);
    const struct fate *fates = plan_of(&fixture, "reclaim");
    expect_one(&fixture, fates, job, node);
    expect_one(&fixture, fates, victim, node);
    ck_assert(!fates[victim->first_task].is_evicted);
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** Without anybody who could go there is no scenario, even if there is room. */
START_TEST(where_nobody_could_go_there_is_nothing_to_search)
{
    struct fixture fixture;
    set_up(&fixture);
    test_node(&fixture.cluster, 2);
    struct weir_sched_job *job = pending(&fixture, queue_of(&fixture, 1, 0), 50, 1, 1);
    expect_one(&fixture, plan_of(&fixture, "reclaim"), job, WAITS);
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** Of an elastic job all have to go for four devices, its surplus first. In the scenario it comes
 *  back once, with its minimum: not with the third, for which there would be room as well. */
START_TEST(a_victim_comes_back_with_one_chunk)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t node = test_node(&fixture.cluster, 4), other = test_node(&fixture.cluster, 4);
    int32_t queue = queue_of(&fixture, 8, 1);
    struct weir_sched_job *fixed = running_one(&fixture, queue, 1, other);
    fixed->preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    struct weir_sched_job *elastic =
        running(&fixture, queue, 50, 1, (int32_t[]){node, node, node}, 3);
    elastic->min_member = 2;
    struct weir_sched_job *job = pending(&fixture, queue, 75, 1, 4);
    const struct fate *fates = plan_of(&fixture, "preempt");
    expect_one(&fixture, fates, job, node);
    expect(&fixture, fates, elastic, (int32_t[]){other, other, WAITS});
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** Room is made for preemptible work only by moving: others have preempt and reclaim. */
START_TEST(nobody_moves_for_work_that_is_not_preemptible)
{
    for (int priority = 50; priority <= 100; priority += 50) {
        struct fixture fixture;
        set_up(&fixture);
        int32_t queue = queue_of(&fixture, 8, 1);
        for (int i = 0; i < 2; i++) {
            running_one(&fixture, queue, 1, test_node(&fixture.cluster, 2));
        }
        struct weir_sched_job *job = pending(&fixture, queue, priority, 1, 2);
        const struct fate *fates = plan_of(&fixture, "consolidation");
        ck_assert_int_eq(fates[job->first_task].future >= 0, priority == 50);
        test_cluster_fini(&fixture.cluster);
    }
}

END_TEST

/** A gang that moves is placed task by task, and whoever stays where it was leaves the free devices
 *  of its node to the next: three fit on the first node so, and the second is free. */
START_TEST(a_gang_that_moves_gathers_where_most_of_it_is)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t first = test_node(&fixture.cluster, 3), second = test_node(&fixture.cluster, 3);
    int32_t queue = queue_of(&fixture, 8, 1);
    struct weir_sched_job *gang =
        running(&fixture, queue, 50, 1, (int32_t[]){first, first, second}, 3);
    struct weir_sched_job *job = pending(&fixture, queue, 50, 1, 3);
    const struct fate *fates = plan_of(&fixture, "consolidation");
    expect(&fixture, fates, gang, (int32_t[]){first, first, first});
    expect_one(&fixture, fates, job, second);
    ck_assert(!fates[gang->first_task].is_evicted && !fates[gang->first_task + 1].is_evicted);
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** Two tasks of a gang need a node each. Per node somebody of lower priority is in the way: the
 *  first is found for one task, and with it, as it is needed still, the second for both. */
START_TEST(a_gang_is_given_what_its_first_tasks_needed_and_more)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t queue = queue_of(&fixture, 16, 1);
    struct weir_sched_job *victims[3];
    for (int i = 0; i < 3; i++) {
        victims[i] = running_one(&fixture, queue, 2, test_node(&fixture.cluster, 2));
    }
    struct weir_sched_job *job = pending(&fixture, queue, 75, 2, 2);
    const struct fate *fates = plan_of(&fixture, "preempt");
    expect(&fixture, fates, job, (int32_t[]){1, 2}); /* The youngest go. */
    expect_one(&fixture, fates, victims[0], 0);
    expect_one(&fixture, fates, victims[1], WAITS);
    expect_one(&fixture, fates, victims[2], WAITS);
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** One task of twice the size of a victim, of which two run on each node, the youngest on different
 *  ones: the last to be popped shares its node with one that was, and only those two go. */
START_TEST(those_on_one_node_go_and_no_others)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t first = test_node(&fixture.cluster, 2), second = test_node(&fixture.cluster, 2);
    int32_t queue = queue_of(&fixture, 16, 1);
    struct weir_sched_job *a = running_one(&fixture, queue, 1, first);
    struct weir_sched_job *b = running_one(&fixture, queue, 1, second);
    struct weir_sched_job *c = running_one(&fixture, queue, 1, first);
    struct weir_sched_job *d = running_one(&fixture, queue, 1, second);
    struct weir_sched_job *job = pending(&fixture, queue, 75, 1, 2);
    const struct fate *fates = plan_of(&fixture, "preempt");
    expect_one(&fixture, fates, job, second);
    expect_one(&fixture, fates, a, first);
    expect_one(&fixture, fates, b, WAITS);
    expect_one(&fixture, fates, c, first);
    expect_one(&fixture, fates, d, WAITS);
    test_cluster_fini(&fixture.cluster);
}

END_TEST

/** What a job loses beyond its minimum is judged together up to as many as the minimum: both tasks
 *  above it may go although after the first its queue has no more than its share. */
START_TEST(what_one_job_loses_is_judged_together)
{
    struct fixture fixture;
    set_up(&fixture);
    int32_t node = test_node(&fixture.cluster, 5);
    int32_t taker = queue_of(&fixture, 2, 0), lent = queue_of(&fixture, 4, 0);
    struct weir_sched_job *elastic =
        running(&fixture, lent, 50, 1, (int32_t[]){node, node, node, node, node}, 5);
    elastic->min_member = 2;
    struct weir_sched_job *job = pending(&fixture, taker, 50, 1, 2);
    const struct fate *fates = plan_of(&fixture, "reclaim");
    expect_one(&fixture, fates, job, node);
    expect(&fixture, fates, elastic, (int32_t[]){node, node, node, WAITS, WAITS});
    test_cluster_fini(&fixture.cluster);
}

END_TEST

WEIR_TEST_MAIN("search", a_job_that_fits_beside_a_victim_takes_nothing_from_it,
               where_nobody_could_go_there_is_nothing_to_search, a_victim_comes_back_with_one_chunk,
               nobody_moves_for_work_that_is_not_preemptible,
               a_gang_that_moves_gathers_where_most_of_it_is,
               a_gang_is_given_what_its_first_tasks_needed_and_more,
               those_on_one_node_go_and_no_others, what_one_job_loses_is_judged_together)
