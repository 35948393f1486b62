/*
 * Rule fgd on whole clusters: what the index finds is what looking at every node finds; and plans
 * by it give away nothing twice, twice the same, and fill devices as they should.
 */
#include "sched/place/fgd_index.h"

#include "sched/test/test_cluster.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <stdio.h>

#define SEEDS 60

static struct weir_sched_profile fgd(void)
{
    static char rule[] = "fgd", actions[] = "allocate";
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    profile.placement = profile.placement_cpu = rule;
    profile.actions = actions;
    return profile;
}

/** The cheapest node that fits, by looking at all. */
static int32_t find_slowly(struct cluster *state, int32_t task)
{
    int32_t devices[16], best = -1;
    int64_t best_cost = INT64_MAX;
    for (int32_t i = 0; i < state->snapshot->n_nodes; i++) {
        struct assignment assignment = {.node = i, .devices = devices};
        fits_find(state, task, &assignment);
        int64_t cost = fgd_index_cost(state->fgd, task, i);
        if (assignment.when == FITS_NOW && cost < best_cost) {
            best_cost = cost;
            best = i;
        }
    }
    return best;
}

START_TEST(the_index_finds_what_looking_at_every_node_finds)
{
    struct weir_sched_profile profile = fgd();
    struct weir_rng rng;
    int32_t devices[16], n_found = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test_cluster cluster;
        struct cluster state;
        weir_rng_init(&rng, seed, 21);
        test_cluster_random(&cluster, &rng, 30);
        ck_assert_int_eq(cluster_init(&state, &cluster.snapshot, &profile), WEIR_OK);
        ck_assert_int_eq(fgd_index_create(&state, &state.fgd), WEIR_OK);
        for (int32_t t = 0; t < cluster.snapshot.n_tasks; t++) {
            size_t checkpoint = cluster_checkpoint(&state);
            struct assignment assignment = {.devices = devices};
            bool is_found = fgd_index_find(state.fgd, t, FITS_NOW, &assignment);
            int32_t slow = find_slowly(&state, t);
            ck_assert_msg(is_found == (slow >= 0) && (!is_found || assignment.node == slow),
                          "seed %d, task %d: %d, slowly %d", (int)seed, (int)t,
                          (int)assignment.node, (int)slow);
            if (is_found) {
                n_found++;
                cluster_place(&state, t, PHASE_BOUND, assignment.node, assignment.devices,
                              assignment.zones);
                if (weir_rng_below(&rng, 4) == 0) { /* The index must notice that as well. */
                    cluster_rollback(&state, checkpoint);
                }
            }
        }
        fgd_index_destroy(state.fgd);
        state.fgd = NULL;
        cluster_fini(&state);
        test_cluster_fini(&cluster);
    }
    ck_assert_int_gt(n_found, SEEDS * 10);
}

END_TEST

START_TEST(the_same_cluster_gives_the_same_plan)
{
    struct weir_sched_profile profile = fgd();
    struct weir_rng rng;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test_cluster cluster;
        weir_rng_init(&rng, seed, 22);
        test_cluster_random(&cluster, &rng, 30);
        struct weir_sched_plan *one = test_plan(&cluster, &profile);
        struct weir_sched_plan *other = test_plan(&cluster, &profile);
        ck_assert_ptr_nonnull(one);
        ck_assert_ptr_nonnull(other);
        ck_assert_int_eq(one->n_actions, other->n_actions);
        for (int32_t i = 0; i < one->n_actions; i++) {
            const struct weir_sched_action *l = &one->actions[i], *r = &other->actions[i];
            ck_assert(l->kind == r->kind && l->task == r->task && l->node == r->node);
            ck_assert_int_eq(l->n_devices, r->n_devices);
            ck_assert(l->n_devices == 0 ||
                      memcmp(l->devices, r->devices, (size_t)l->n_devices * sizeof(int32_t)) == 0);
        }
        weir_sched_plan_destroy(one);
        weir_sched_plan_destroy(other);
        test_cluster_fini(&cluster);
    }
}

END_TEST

static int32_t node_of(const struct weir_sched_plan *plan, int32_t task)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].task == task && plan->actions[i].kind == WEIR_SCHED_BIND) {
            return plan->actions[i].node;
        }
    }
    return WEIR_SCHED_NONE;
}

START_TEST(a_rare_model_is_kept_for_those_who_need_it)
{
    struct weir_sched_profile profile = fgd();
    static const struct weir_sched_label rare[] = {{"model", "rare"}};
    struct test_cluster cluster;
    test_cluster_init(&cluster, 9, 1, 40, 40);
    for (int i = 0; i < 9; i++) {
        test_node(&cluster, 4);
    }
    cluster.nodes[0].labels = rare; /* The first node would else be as good as any. */
    cluster.nodes[0].n_labels = 1;
    int32_t queue = test_queue(&cluster, -1, -1, 1, -1);
    for (int j = 0; j < 36; j++) {
        struct weir_sched_job *job = test_job(&cluster, queue, 50, 1, 1);
        if (j >= 32) {
            cluster.tasks[job->first_task].selector = rare;
            cluster.tasks[job->first_task].n_selector = 1;
        }
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    for (int32_t t = 0; t < 36; t++) {
        ck_assert_int_eq(node_of(plan, t) == 0, t >= 32);
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(work_without_devices_goes_where_there_are_none)
{
    struct weir_sched_profile profile = fgd();
    struct test_cluster cluster;
    test_cluster_init(&cluster, 4, 1, 2, 2);
    for (int i = 0; i < 3; i++) {
        test_node(&cluster, 8);
    }
    int32_t bare = test_node(&cluster, 0);
    int32_t queue = test_queue(&cluster, -1, -1, 1, -1);
    test_job(&cluster, queue, 50, 1, 0);
    test_job(&cluster, queue, 50, 1, 8);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    ck_assert_int_eq(node_of(plan, 0), bare);
    ck_assert_int_ge(node_of(plan, 1), 0);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** Time is printed, not asserted: the machine that runs the tests has other things to do. */
START_TEST(a_large_cluster_is_filled)
{
    struct weir_sched_profile profile = fgd();
    struct test_cluster cluster;
    struct weir_rng rng;

    enum { N_NODES = 2000, N_JOBS = 10000 };

    weir_rng_init(&rng, 1, 23);
    test_cluster_init(&cluster, N_NODES, 1, N_JOBS, N_JOBS);
    for (int i = 0; i < N_NODES; i++) {
        test_node(&cluster, 8);
    }
    int32_t queue = test_queue(&cluster, -1, -1, 1, -1);
    for (int j = 0; j < N_JOBS; j++) {
        struct weir_sched_job *job = test_job(&cluster, queue, 50, 1, 1);
        struct weir_sched_demand *demand = &cluster.tasks[job->first_task].demand;
        demand->cpu_milli = 1000 * (1 + (int64_t)weir_rng_below(&rng, 16));
        if (weir_rng_below(&rng, 2) == 0) {
            demand->device_milli = 100 * (1 + (int32_t)weir_rng_below(&rng, 9));
        }
    }
    uint64_t start = weir_mono_ns();
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    double ms = (double)(weir_mono_ns() - start) / 1e6;
    ck_assert_ptr_nonnull(plan);
    printf("%d tasks on %d nodes by fgd: %.0f ms, %.1f us each\n", (int)N_JOBS, (int)N_NODES, ms,
           ms * 1000 / N_JOBS);
    ck_assert_int_eq(plan->n_actions, N_JOBS);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_MAIN("fgd_index", the_index_finds_what_looking_at_every_node_finds,
               the_same_cluster_gives_the_same_plan, a_rare_model_is_kept_for_those_who_need_it,
               work_without_devices_goes_where_there_are_none, a_large_cluster_is_filled)
