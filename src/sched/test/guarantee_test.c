/**
 * What is guaranteed is given within one cycle: on random full clusters whoever asks for no more
 * than its queue's quota has a place for all its tasks after one plan, and whoever has no more
 * keeps what it has. The test decides that from quotas and what runs alone; it knows nothing of how
 * room is made.
 */
#include "sched/sched.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_workload.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_SEED  1701 /**< Some of these need each of the rules in README.md. */
#define SEEDS       400
#define DEPARTMENTS 3
#define USERS       3
#define LEAVES      (DEPARTMENTS * USERS)
#define HOUR_MS     INT64_C(3600000)

static const uint64_t hard_seeds[] = {
    5541,  /**< A gang too large to go stands beside those of whom some may. */
    23931, /**< A small job stands behind a gang of its queue to which the same room is owed. */
};

#define N_HARD_SEEDS ((int)WEIR_ARRAY_LEN(hard_seeds))

struct shared {
    struct test_cluster cluster;
    struct weir_rng rng;
    int32_t leaves[LEAVES];
    int quota[LEAVES], used[LEAVES];
    int running[LEAVES]; /**< What of held runs. */
    int n_free;
    int32_t *node_of, *device_of; /**< Of the free devices, in a random order. */
};

/** Quotas of users add up to their department's, and those to the cluster. */
static void make_queues(struct shared *shared, int n_devices)
{
    int left = n_devices;
    for (int d = 0; d < DEPARTMENTS; d++) {
        int all = d + 1 < DEPARTMENTS ? n_devices / DEPARTMENTS : left, rest = all;
        int32_t parent = test_queue(&shared->cluster, -1, all, 1, -1);
        for (int u = 0; u < USERS; u++) {
            int own = u + 1 < USERS ? (int)weir_rng_below(&shared->rng, (uint64_t)rest + 1) : rest;
            shared->quota[d * USERS + u] = own;
            shared->leaves[d * USERS + u] = test_queue(&shared->cluster, parent, own, 1, -1);
            rest -= own;
        }
        left -= all;
    }
}

static void make_nodes(struct shared *shared)
{
    int n_nodes = 1 + (int)weir_rng_below(&shared->rng, 4);
    test_cluster_init(&shared->cluster, n_nodes, DEPARTMENTS * (USERS + 1), 200, 1000);
    struct weir_arena *arena = &shared->cluster.arena;
    shared->node_of = WEIR_ARENA_ARRAY(arena, 64, int32_t);
    shared->device_of = WEIR_ARENA_ARRAY(arena, 64, int32_t);
    for (int i = 0; i < n_nodes; i++) {
        int n_devices = 4 + 4 * (int)weir_rng_below(&shared->rng, 3);
        test_node(&shared->cluster, n_devices);
        for (int d = 0; d < n_devices; d++) {
            int at = (int)weir_rng_below(&shared->rng, (uint64_t)shared->n_free + 1);
            shared->node_of[shared->n_free] = shared->node_of[at];
            shared->device_of[shared->n_free++] = shared->device_of[at];
            shared->node_of[at] = i;
            shared->device_of[at] = d;
        }
    }
    make_queues(shared, shared->n_free);
}

/** Single tasks and gangs, some elastic, for users drawn unevenly, until the cluster is full. */
static void run_some(struct shared *shared)
{
    int favourite = (int)weir_rng_below(&shared->rng, LEAVES);
    for (int left = (int)weir_rng_below(&shared->rng, 3); shared->n_free > left;) {
        int most = shared->n_free - left, n = 1;
        if (weir_rng_below(&shared->rng, 4) == 0) {
            n = 1 + (int)weir_rng_below(&shared->rng, (uint64_t)(most < 8 ? most : 8));
        }
        int leaf = weir_rng_below(&shared->rng, 2) == 0 ? favourite
                                                        : (int)weir_rng_below(&shared->rng, LEAVES);
        struct weir_sched_job *job = test_job(&shared->cluster, shared->leaves[leaf], 50, n, 1);
        job->min_member = weir_rng_below(&shared->rng, 2) == 0 ? n : (n + 1) / 2;
        job->started_ms = TEST_NOW_MS - 1 - (int64_t)weir_rng_below(&shared->rng, 7200000);
        for (int t = job->first_task; t < job->first_task + n; t++) {
            shared->n_free--;
            shared->cluster.tasks[t].state = WEIR_SCHED_RUNNING;
            shared->cluster.tasks[t].node = shared->node_of[shared->n_free];
            shared->cluster.tasks[t].devices = &shared->device_of[shared->n_free];
        }
        shared->used[leaf] += n;
        shared->running[leaf] += n;
    }
}

/** A job that waits; of a user within its quota if is_owed. @return Its index; -1: nobody has so
 *  much left. */
static int32_t grace_step(struct shared *shared, bool is_owed)
{
    int leaf = (int)weir_rng_below(&shared->rng, LEAVES);
    int left = shared->quota[leaf] - shared->used[leaf];
    if (is_owed != (left > 0)) {
        return -1;
    }
    int n = 1 + (int)weir_rng_below(&shared->rng, is_owed ? (uint64_t)left : 4);
    shared->used[leaf] += is_owed ? n : 0;
    test_job(&shared->cluster, shared->leaves[leaf], 50, n, 1);
    return shared->cluster.snapshot.n_jobs - 1;
}

static int count_placed(const struct weir_sched_plan *plan, const struct weir_sched_job *job)
{
    int n = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        bool is_given = action->kind == WEIR_SCHED_BIND || action->kind == WEIR_SCHED_PIPELINE;
        n += is_given && action->task >= job->first_task &&
             action->task < job->first_task + job->n_tasks;
    }
    return n;
}

static int leaf_of(const struct shared *shared, int32_t task)
{
    const struct weir_sched_job *job = shared->cluster.jobs;
    while (task >= job->first_task + job->n_tasks) {
        job++;
    }
    int leaf = 0;
    while (shared->leaves[leaf] != job->queue) {
        leaf++;
    }
    return leaf;
}

/** Tasks that others have reclaimed from queues that hold no more than their quota. */
static int count_wronged(const struct shared *shared, const struct weir_sched_plan *plan)
{
    int n = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        if (action->kind != WEIR_SCHED_EVICT || action->reason != WEIR_SCHED_EVICT_RECLAIM) {
            continue;
        }
        int leaf = leaf_of(shared, action->task);
        bool is_moved = false;
        for (int32_t k = 0; k < plan->n_actions; k++) {
            is_moved = is_moved || (k != i && plan->actions[k].task == action->task);
        }
        n += !is_moved && shared->running[leaf] <= shared->quota[leaf];
    }
    return n;
}

/** One node of eight devices, of which the next n go to a job that runs. */
static void run_on(struct test_cluster *cluster, int32_t queue, int n, int *used)
{
    static const int32_t devices[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct weir_sched_job *job = test_job(cluster, queue, 50, n, 1);
    job->started_ms = TEST_NOW_MS - HOUR_MS;
    for (int t = job->first_task; t < job->first_task + n; t++) {
        cluster->tasks[t].state = WEIR_SCHED_RUNNING;
        cluster->tasks[t].node = 0;
        cluster->tasks[t].devices = &devices[(*used)++];
    }
}

static void expect_places(const struct test_cluster *cluster, const struct weir_sched_job *jobs[],
                          int n_jobs)
{
    struct weir_sched_profile profile = test_profile_default();
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    for (int i = 0; i < n_jobs; i++) {
        ck_assert_msg(count_placed(plan, jobs[i]) == jobs[i]->n_tasks, "%s has %d of %d",
                      jobs[i]->name, count_placed(plan, jobs[i]), (int)jobs[i]->n_tasks);
    }
    weir_sched_plan_destroy(plan);
}

/** A job that borrows in its department takes one device from a gang of five, and with it the other
 *  four are free: one of them is owed to the job behind it. */
START_TEST(what_a_gang_leaves_beyond_the_need_is_given_in_the_same_cycle)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 7, 5, 12);
    test_node(&cluster, 8);
    int32_t first = test_queue(&cluster, -1, 4, 1, -1), second = test_queue(&cluster, -1, 4, 1, -1),
            third = test_queue(&cluster, -1, 0, 1, -1);
    int32_t borrower = test_queue(&cluster, first, 1, 1, -1);
    test_queue(&cluster, first, 3, 1, -1);
    int32_t owner = test_queue(&cluster, second, 4, 1, -1);
    int32_t loser = test_queue(&cluster, third, 0, 1, -1);
    run_on(&cluster, borrower, 1, &used);
    run_on(&cluster, owner, 2, &used);
    run_on(&cluster, loser, 5, &used);
    const struct weir_sched_job *before = test_job(&cluster, borrower, 50, 1, 1);
    const struct weir_sched_job *owed = test_job(&cluster, owner, 50, 1, 1);
    expect_places(&cluster, (const struct weir_sched_job *[]){before, owed}, 2);
    test_cluster_fini(&cluster);
}

END_TEST

/** A gang goes for a job of one device. The gang behind that one, for which room is held, would
 * have more than the quota now; the job behind both would not. */
START_TEST(what_is_reserved_for_who_would_borrow_is_open_to_whom_it_is_guaranteed)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 1, 4, 16);
    test_node(&cluster, 4);
    int32_t queue = test_queue(&cluster, -1, 4, 1, -1);
    run_on(&cluster, queue, 4, &used);
    cluster.jobs[0].priority--;
    const struct weir_sched_job *first = test_job(&cluster, queue, 50, 1, 1);
    test_job(&cluster, queue, 50, 4, 1);
    const struct weir_sched_job *owed = test_job(&cluster, queue, 50, 1, 1);
    expect_places(&cluster, (const struct weir_sched_job *[]){first, owed}, 2);
    test_cluster_fini(&cluster);
}

END_TEST

/** The department's four are owed to one user; two others of it borrow two, and so does a gang of
 *  six from outside. When the gang goes there is room for all, but not within the department. */
START_TEST(those_who_borrow_in_the_own_department_go_even_if_others_leave_room)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 7, 5, 16);
    test_node(&cluster, 8);
    int32_t own = test_queue(&cluster, -1, 4, 1, -1), other = test_queue(&cluster, -1, 4, 1, -1);
    int32_t owner = test_queue(&cluster, own, 4, 1, -1);
    int32_t sister = test_queue(&cluster, own, 0, 1, -1);
    int32_t brother = test_queue(&cluster, own, 0, 1, -1);
    int32_t outside = test_queue(&cluster, other, 0, 1, -1);
    test_queue(&cluster, other, 4, 1, -1);
    run_on(&cluster, sister, 1, &used);
    run_on(&cluster, brother, 1, &used);
    run_on(&cluster, outside, 6, &used);
    const struct weir_sched_job *owed = test_job(&cluster, owner, 50, 4, 1);
    expect_places(&cluster, &owed, 1);
    test_cluster_fini(&cluster);
}

END_TEST

/** Two departments of four. In the first a user borrows what its sibling leaves, so that it has no
 * more than is its; in the second one is owed a device, for which there is no room as notebooks of
 * its own hold parts of two. */
START_TEST(what_is_lent_within_a_department_comes_back_to_others_to_whom_it_is_guaranteed)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 6, 16, 16);
    test_node(&cluster, 8);
    int32_t first = test_queue(&cluster, -1, 4, 1, -1), second = test_queue(&cluster, -1, 4, 1, -1);
    int32_t borrower = test_queue(&cluster, first, 2, 1, -1);
    test_queue(&cluster, first, 2, 1, -1);
    int32_t owner = test_queue(&cluster, second, 4, 1, -1);
    for (int i = 0; i < 8; i++) {
        run_on(&cluster, i < 4 ? borrower : owner, 1, &used);
        if (i >= 6) {
            cluster.jobs[i].preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
            cluster.tasks[i].demand.device_milli = 400;
        }
    }
    const struct weir_sched_job *owed = test_job(&cluster, owner, 50, 1, 1);
    expect_places(&cluster, &owed, 1);
    test_cluster_fini(&cluster);
}

END_TEST

/** A gang that has waited too long takes three devices of which one was lent. The job behind those
 *  is owed one then, and a third queue has one too many, as the gang has. */
START_TEST(what_is_given_up_to_who_waited_too_long_is_taken_back_in_the_same_cycle)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 3, 8, 24);
    test_node(&cluster, 8);
    int32_t loser = test_queue(&cluster, -1, 2, 1, -1), taker = test_queue(&cluster, -1, 4, 1, -1),
            third = test_queue(&cluster, -1, 2, 1, -1);
    run_on(&cluster, taker, 2, &used);
    cluster.jobs[0].preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    run_on(&cluster, loser, 3, &used);
    for (int i = 0; i < 3; i++) {
        run_on(&cluster, third, 1, &used);
    }
    struct weir_sched_job *due = test_job(&cluster, taker, 50, 3, 1);
    due->created_ms = TEST_NOW_MS - 100 * HOUR_MS;
    const struct weir_sched_job *owed = test_job(&cluster, loser, 50, 1, 1);
    expect_places(&cluster, (const struct weir_sched_job *[]){due, owed}, 2);
    test_cluster_fini(&cluster);
}

END_TEST

/** The same with what has only just been given: the one that is owed a device had it, and loses it
 *  together with a gang that borrows. It does not take it back from who took it, though that has
 * not started, but from a queue with one too many, if there is one, on whose node room is held for
 * a larger job. */
START_TEST(what_is_taken_back_is_not_taken_from_who_waited_too_long)
{
    for (int n_lent = 0; n_lent <= 1; n_lent++) {
        struct test_cluster cluster;
        int used = 0;
        test_cluster_init(&cluster, 2, 3, 12, 24);
        test_node(&cluster, 4);
        test_node(&cluster, 6);
        int32_t loser = test_queue(&cluster, -1, 2, 1, -1),
                taker = test_queue(&cluster, -1, 4, 1, -1),
                third = test_queue(&cluster, -1, 4 - n_lent, 1, -1);
        cluster.queues[third].priority++; /* First in order. */
        for (int i = 0; i < 4; i++) {
            run_on(&cluster, third, 1, &used);
            cluster.jobs[i].expected_run_ms = HOUR_MS + 1;
        }
        used = 0;
        run_on(&cluster, taker, 2, &used);
        cluster.jobs[4].preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
        for (int t = 0; t < 2; t++) {
            cluster.tasks[cluster.jobs[4].first_task + t].node = 1;
        }
        test_job(&cluster, third, 50, 1, 4);
        struct weir_sched_job *due = test_job(&cluster, taker, 50, 4, 1);
        due->created_ms = TEST_NOW_MS - 100 * HOUR_MS;
        test_job(&cluster, loser, 50, 3, 1);
        const struct weir_sched_job *owed = test_job(&cluster, loser, 50, 1, 1);
        struct weir_sched_profile profile = test_profile_default();
        profile.backfill_depth = 1;
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        ck_assert_int_eq(count_placed(plan, due), 4);
        ck_assert_int_eq(count_placed(plan, owed), n_lent);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

/** Two that have waited too long take a device each: the first the one that was just given to who
 * is owed it, the second that of a gang of three, which leaves two. */
START_TEST(what_a_gang_leaves_that_has_not_started_is_given_in_the_same_cycle)
{
    struct test_cluster cluster;
    int used = 0;
    test_cluster_init(&cluster, 1, 2, 8, 16);
    test_node(&cluster, 6);
    int32_t loser = test_queue(&cluster, -1, 2, 1, -1), taker = test_queue(&cluster, -1, 2, 1, -1);
    cluster.queues[loser].priority++; /* First in order. */
    run_on(&cluster, taker, 2, &used);
    cluster.jobs[0].preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
    for (int i = 0; i < 2; i++) {
        test_job(&cluster, taker, 50, 1, 1)->created_ms = TEST_NOW_MS - 100 * HOUR_MS;
    }
    test_job(&cluster, loser, 50, 3, 1);
    const struct weir_sched_job *owed = test_job(&cluster, loser, 50, 1, 1);
    struct weir_sched_profile profile = test_profile_default();
    profile.backfill_depth = 0;
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_int_eq(count_placed(plan, &cluster.jobs[1]), 1);
    ck_assert_int_eq(count_placed(plan, &cluster.jobs[2]), 1);
    ck_assert_int_eq(count_placed(plan, owed), 1);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** A gang is owed five of eight devices, of which one is free and four are lent. A job behind it in
 *  its queue would fit the free one, and with that the queue would have too much to be owed the
 *  other four: it starts only if they cannot be had. */
START_TEST(a_small_job_does_not_take_what_is_owed_to_a_gang_before_it)
{
    for (int is_stuck = 0; is_stuck <= 1; is_stuck++) {
        struct test_cluster cluster;
        int used = 0;
        test_cluster_init(&cluster, 1, 2, 4, 16);
        test_node(&cluster, 8);
        int32_t owner = test_queue(&cluster, -1, 5, 1, -1);
        int32_t borrower = test_queue(&cluster, -1, 3, 1, -1);
        run_on(&cluster, borrower, 3, &used);
        run_on(&cluster, borrower, 4, &used);
        for (int j = 0; j < 2 && is_stuck; j++) {
            cluster.jobs[j].preemptibility = WEIR_SCHED_NON_PREEMPTIBLE;
        }
        const struct weir_sched_job *gang = test_job(&cluster, owner, 50, 5, 1);
        const struct weir_sched_job *small = test_job(&cluster, owner, 50, 1, 1);
        struct weir_sched_profile profile = test_profile_default();
        profile.backfill_depth = 0;
        struct weir_sched_plan *plan = test_plan(&cluster, &profile);
        ck_assert_ptr_nonnull(plan);
        ck_assert_int_eq(count_placed(plan, gang), is_stuck ? 0 : 5);
        ck_assert_int_eq(count_placed(plan, small), is_stuck ? 1 : 0);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

START_TEST(whoever_is_guaranteed_has_a_place_after_one_plan_and_keeps_it)
{
    struct weir_sched_profile profile = test_profile_default();
    int n_requested = 0, n_missing = 0, n_wronged = 0;
    const char *only = getenv("WEIR_SCHED_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : FIRST_SEED;
    for (int round = 0; round < (only != NULL ? 1 : SEEDS + N_HARD_SEEDS); round++) {
        uint64_t seed = round < SEEDS ? first + (uint64_t)round : hard_seeds[round - SEEDS];
        struct shared shared = {0};
        weir_rng_init(&shared.rng, seed, 23);
        make_nodes(&shared);
        run_some(&shared);
        int32_t owed[3];
        for (int i = 0; i < 3; i++) {
            grace_step(&shared, false);
            owed[i] = grace_step(&shared, true);
        }
        struct weir_sched_plan *plan = test_plan(&shared.cluster, &profile);
        ck_assert_ptr_nonnull(plan);
        for (int i = 0; i < 3; i++) {
            const struct weir_sched_job *job = owed[i] < 0 ? NULL : &shared.cluster.jobs[owed[i]];
            n_requested += job != NULL;
            if (job != NULL && count_placed(plan, job) < job->n_tasks) {
                printf("seed %d: %s of %s, %d tasks, has %d\n", (int)seed, job->name,
                       shared.cluster.queues[job->queue].name, (int)job->n_tasks,
                       count_placed(plan, job));
                n_missing++;
            }
        }
        int n = count_wronged(&shared, plan);
        n_wronged += n;
        if (n > 0) {
            printf("seed %d: %d tasks were taken from what is guaranteed\n", (int)seed, n);
        }
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&shared.cluster);
    }
    printf("%d were owed a place\n", n_requested);
    ck_assert_int_eq(n_missing, 0);
    ck_assert_int_eq(n_wronged, 0);
    ck_assert_int_gt(n_requested, SEEDS / 2);
}

END_TEST

WEIR_TEST_MAIN("guarantee", what_a_gang_leaves_beyond_the_need_is_given_in_the_same_cycle,
               what_is_reserved_for_who_would_borrow_is_open_to_whom_it_is_guaranteed,
               those_who_borrow_in_the_own_department_go_even_if_others_leave_room,
               what_is_lent_within_a_department_comes_back_to_others_to_whom_it_is_guaranteed,
               what_is_given_up_to_who_waited_too_long_is_taken_back_in_the_same_cycle,
               what_is_taken_back_is_not_taken_from_who_waited_too_long,
               what_a_gang_leaves_that_has_not_started_is_given_in_the_same_cycle,
               a_small_job_does_not_take_what_is_owed_to_a_gang_before_it,
               whoever_is_guaranteed_has_a_place_after_one_plan_and_keeps_it)
