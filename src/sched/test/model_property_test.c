/*
 * What must hold of shares of models whatever the cluster: random clusters of three models live
 * through rounds of plans, and who has how much of what is counted here, from the actions alone.
 */
#include "sched/test/test_seeds.h"
#include "sched/test/test_workload.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>

#define ROUNDS_MAX      60
#define ROUNDS_REST     40
#define ROUNDS_WORKLOAD 200 /* Work that leaves takes its time. */
#define QUEUES_MAX      16
#define N_MODELS        3

static int seeds(void)
{
    return test_seeds(100);
}

static const char *const models[N_MODELS] = {"A", "B", "C"};
static const struct weir_sched_label labels[N_MODELS][2] = {{{"model", "A"}, {"new", "no"}},
                                                            {{"model", "B"}, {"new", "yes"}},
                                                            {{"model", "C"}, {"new", "yes"}}};
static const struct weir_sched_label is_new = {"new", "yes"};

/** Of a queue: by model, all of it and what is not preemptible. */
struct account {
    int64_t all[N_MODELS], fixed[N_MODELS], total;
};

static void add_shares(struct test_cluster *cluster, struct weir_rng *rng, int32_t queue)
{
    struct weir_sched_model_share *shares =
        WEIR_ARENA_ARRAY(&cluster->arena, N_MODELS, struct weir_sched_model_share);
    int32_t n = 0;
    for (int m = 0; m < N_MODELS; m++) {
        if (weir_rng_below(rng, 3) == 0) {
            int64_t quota =
                weir_rng_below(rng, 4) == 0 ? -1 : (int64_t)weir_rng_below(rng, 8) * 1000;
            int64_t limit =
                weir_rng_below(rng, 2) == 0 ? -1 : (int64_t)weir_rng_below(rng, 10) * 1000;
            shares[n++] = (struct weir_sched_model_share){
                models[m], {quota, (int64_t)weir_rng_below(rng, 4), limit}};
        }
    }
    cluster->queues[queue].models = shares;
    cluster->queues[queue].n_models = n;
}

/** Nodes get models, queues shares of some, a third of the jobs must run on one model and some on
 * one of two. */
static void add_models(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        int m = (int)weir_rng_below(rng, N_MODELS);
        cluster->nodes[i].model = models[m];
        cluster->nodes[i].labels = labels[m];
        cluster->nodes[i].n_labels = 2;
    }
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        add_shares(cluster, rng, q);
    }
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        const struct weir_sched_label *wanted = NULL;
        switch (weir_rng_below(rng, 4)) {
        case 0:
            wanted = &labels[weir_rng_below(rng, N_MODELS)][0];
            break;
        case 1:
            wanted = &is_new;
            break;
        default:
            break;
        }
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            cluster->tasks[t].selector = wanted;
            cluster->tasks[t].n_selector = wanted != NULL;
        }
    }
}

static const struct weir_sched_share *share_of(const struct test_cluster *cluster, int32_t queue,
                                               int model)
{
    static const struct weir_sched_share none = {-1, 1, -1};
    const struct weir_sched_queue *given = &cluster->queues[queue];
    for (int32_t i = 0; i < given->n_models; i++) {
        if (strcmp(given->models[i].model, models[model]) == 0) {
            return &given->models[i].share;
        }
    }
    return &none;
}

static int model_of(const struct test_cluster *cluster, int32_t node)
{
    int m = 0;
    while (strcmp(cluster->nodes[node].model, models[m]) != 0) {
        m++;
    }
    return m;
}

/** Where each task will be, and for what job of another queue it is taken away; -1. */
static int32_t *places_of(struct test_cluster *cluster, const struct weir_sched_plan *plan,
                          int32_t **out_takers)
{
    size_t n = (size_t)cluster->snapshot.n_tasks + 1;
    int32_t *places = WEIR_ARENA_ARRAY(&cluster->arena, n, int32_t);
    *out_takers = WEIR_ARENA_ARRAY(&cluster->arena, n, int32_t);
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        const struct weir_sched_task *task = &cluster->tasks[t];
        bool is_going = task->is_leaving || task->state == WEIR_SCHED_RELEASING;
        places[t] = is_going ? (task->nomination != NULL ? task->nomination->node : -1)
                    : weir_sched_task_has_node(task->state) ? task->node
                                                            : -1;
        (*out_takers)[t] = -1;
    }
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        const struct weir_sched_task *task = &cluster->tasks[action->task];
        bool was_going = task->is_leaving || task->state == WEIR_SCHED_RELEASING;
        bool is_place = action->kind == WEIR_SCHED_BIND || action->kind == WEIR_SCHED_PIPELINE;
        if (is_place) {
            places[action->task] = action->node;
        } else if (!was_going) {
            places[action->task] = -1;
            bool is_reclaim = action->reason == WEIR_SCHED_EVICT_RECLAIM;
            (*out_takers)[action->task] = is_reclaim ? action->by_job : -1;
        }
    }
    return places;
}

static void count_on(const struct test_cluster *cluster, const struct weir_sched_job *job,
                     int32_t task, int32_t node, struct account *accounts)
{
    const struct weir_sched_demand *demand = &cluster->tasks[task].demand;
    int64_t milli = (int64_t)demand->n_devices * demand->device_milli;
    bool is_fixed = job->preemptibility == WEIR_SCHED_NON_PREEMPTIBLE;
    for (int32_t q = job->queue; q >= 0; q = cluster->queues[q].parent) {
        int m = model_of(cluster, node);
        accounts[q].total += milli;
        accounts[q].all[m] += milli;
        accounts[q].fixed[m] += is_fixed ? milli : 0;
    }
}

/** With `with_running` also where something runs that leaves: what moves counts at both places, for
 *  a plan's actions follow each other. */
static void sum_up(const struct test_cluster *cluster, const int32_t *places, bool with_running,
                   struct account *accounts)
{
    memset(accounts, 0, QUEUES_MAX * sizeof *accounts);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            const struct weir_sched_task *task = &cluster->tasks[t];
            if (places[t] >= 0) {
                count_on(cluster, job, t, places[t], accounts);
            }
            if (with_running && task->state == WEIR_SCHED_RUNNING && task->node != places[t]) {
                count_on(cluster, job, t, task->node, accounts);
            }
        }
    }
}

/** Nothing is above a limit, nor what is not preemptible above a quota; and the plan's account of
 *  each model agrees. */
static void check_bounds(const struct test_cluster *cluster, const int32_t *places,
                         const struct weir_sched_plan *plan)
{
    struct account accounts[QUEUES_MAX];
    const char *names[WEIR_SCHED_MODELS_MAX];
    int32_t n_names = weir_sched_models(&cluster->snapshot, names);
    sum_up(cluster, places, false, accounts);
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        for (int m = 0; m < N_MODELS; m++) {
            const struct weir_sched_share *share = share_of(cluster, q, m);
            ck_assert(share->limit < 0 || accounts[q].all[m] <= share->limit);
            ck_assert(share->quota < 0 || accounts[q].fixed[m] <= share->quota);
            for (int32_t i = 0; i < n_names; i++) {
                ck_assert(strcmp(names[i], models[m]) != 0 ||
                          plan->queues[q].allocated.of[WEIR_SCHED_FIRST_MODEL + i] ==
                              accounts[q].all[m]);
            }
        }
    }
}

static bool is_at_or_above(const struct test_cluster *cluster, int32_t queue, int32_t below)
{
    while (below >= 0 && below != queue) {
        below = cluster->queues[below].parent;
    }
    return below >= 0;
}

/** What is reclaimed of a model was above the quota of it that counts: some queue on the way up to
 *  where the taker's begins had more than its quota, or none has one; and some queue had too much
 * of the model or in all. Asked of a plan that only reclaims: one that allocates first may evict
 * what it has just placed, which its actions do not show. */
static void check_reclaims(struct test_cluster *cluster, const struct weir_sched_profile *profile)
{
    static char reclaim[] = "reclaim";
    struct weir_sched_profile only = *profile;
    only.actions = reclaim;
    struct weir_sched_plan *plan = test_plan(cluster, &only);
    ck_assert_ptr_nonnull(plan);
    int32_t *takers;
    const int32_t *places = places_of(cluster, plan, &takers);
    weir_sched_plan_destroy(plan);
    struct account before[QUEUES_MAX];
    sum_up(cluster, places, true, before);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        bool is_reclaimed = false, is_over = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (takers[t] < 0 || places[t] >= 0 || cluster->tasks[t].demand.n_devices == 0) {
                continue;
            }
            int m = model_of(cluster, cluster->tasks[t].node);
            bool has_quota = false, is_over_quota = false;
            int32_t taker = cluster->jobs[takers[t]].queue;
            for (int32_t q = job->queue; q >= 0 && !is_at_or_above(cluster, q, taker);
                 q = cluster->queues[q].parent) {
                int64_t quota = share_of(cluster, q, m)->quota;
                int64_t total = cluster->queues[q].shares[WEIR_SCHED_ACCELERATOR].quota;
                has_quota = has_quota || quota >= 0;
                is_over_quota = is_over_quota || (quota >= 0 && before[q].all[m] > quota);
                is_over = is_over || (total >= 0 && before[q].total > total);
            }
            ck_assert(!has_quota || is_over_quota);
            is_over = is_over || is_over_quota;
            is_reclaimed = true;
        }
        ck_assert(is_over || !is_reclaimed); /* A gang goes whole for one member's sake. */
    }
}

/** A waiting job that a queue's share of a model is in the way of is told which, and rightly. */
static void check_waits(const struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    const char *names[WEIR_SCHED_MODELS_MAX];
    (void)weir_sched_models(&cluster->snapshot, names);
    for (int32_t i = 0; i < plan->n_waits; i++) {
        const struct weir_sched_wait *wait = &plan->waits[i];
        if (wait->resource < WEIR_SCHED_FIRST_MODEL) {
            continue;
        }
        int m = 0;
        while (strcmp(models[m], names[wait->resource - WEIR_SCHED_FIRST_MODEL]) != 0) {
            m++;
        }
        const struct weir_sched_share *share = share_of(cluster, wait->object, m);
        bool is_limit = wait->code == WEIR_SCHED_WAIT_QUEUE_LIMIT;
        ck_assert(is_limit || wait->code == WEIR_SCHED_WAIT_QUEUE_QUOTA);
        ck_assert_int_eq(wait->have, is_limit ? share->limit : share->quota);
        ck_assert_int_gt(wait->need, wait->have);
        ck_assert_ptr_nonnull(strstr(wait->text, models[m]));
        ck_assert_ptr_nonnull(strstr(wait->text, cluster->queues[wait->object].name));
    }
}

/** @return How many tasks lose their place for good. */
static int32_t check_plan(struct test_cluster *cluster, const struct weir_sched_profile *profile,
                          const struct weir_sched_plan *plan)
{
    int32_t *takers, n_losses = 0;
    const int32_t *places = places_of(cluster, plan, &takers);
    check_bounds(cluster, places, plan);
    check_reclaims(cluster, profile);
    check_waits(cluster, plan);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        n_losses += plan->actions[i].kind == WEIR_SCHED_EVICT && places[plan->actions[i].task] < 0;
    }
    return n_losses;
}

static void hold_back(struct test_cluster *cluster, int32_t from, bool is_gated)
{
    for (int32_t t = cluster->jobs[from].first_task; t < cluster->snapshot.n_tasks; t++) {
        cluster->tasks[t].state = is_gated ? WEIR_SCHED_GATED : WEIR_SCHED_PENDING;
    }
}

/** Plan and apply until nothing changes. This profile forgets what it moved together when the next
 *  plan is made, so moves may come again; but nobody is robbed again and again.
 *  @return The last round in which somebody was. */
static int run_to_rest(struct test_cluster *cluster, const struct weir_sched_profile *profile)
{
    int last = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct weir_sched_plan *plan = test_plan(cluster, profile);
        ck_assert_ptr_nonnull(plan);
        last = check_plan(cluster, profile, plan) > 0 ? round : last;
        int32_t n_actions = plan->n_actions;
        test_apply(cluster, plan);
        weir_sched_plan_destroy(plan);
        if (n_actions == 0) {
            break;
        }
    }
    return last;
}

START_TEST(shares_of_models_hold_in_a_random_cluster)
{
    static char fgd[] = "fgd";
    struct weir_sched_profile profile;
    struct test_cluster cluster;
    struct weir_rng rng;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    if (_i >= seeds()) {
        profile.placement = profile.placement_cpu = fgd;
    }
    weir_rng_init(&rng, (uint64_t)(_i % seeds()), 17);
    test_cluster_random(&cluster, &rng, 8);
    add_models(&cluster, &rng);
    int32_t n_gated = cluster.snapshot.n_jobs / 2;
    hold_back(&cluster, n_gated, true); /* Half of the work comes when the other half runs. */
    int first = run_to_rest(&cluster, &profile);
    hold_back(&cluster, n_gated, false);
    int second = run_to_rest(&cluster, &profile);
    if (first > ROUNDS_REST || second > ROUNDS_REST) {
        printf("seed %d does not come to rest by %s\n", _i % seeds(), profile.placement);
    }
    ck_assert_int_le(first, ROUNDS_REST);
    ck_assert_int_le(second, ROUNDS_REST);
    test_cluster_fini(&cluster);
}

END_TEST

/** For a cluster that lives and keeps places. At rest nothing is on its way. @return Rounds it
 * took. */
static int play_to_rest(struct test_cluster *cluster, const struct weir_sched_profile *profile,
                        struct weir_rng *rng)
{
    for (int round = 0; round < ROUNDS_WORKLOAD; round++) {
        struct weir_sched_plan *plan = test_plan(cluster, profile);
        ck_assert_ptr_nonnull(plan);
        check_plan(cluster, profile, plan);
        bool is_still = plan->n_actions == 0 && !test_workload_moves(cluster);
        test_workload_apply(cluster, plan, rng);
        weir_sched_plan_destroy(plan);
        if (is_still) {
            return round;
        }
    }
    return ROUNDS_WORKLOAD;
}

START_TEST(shares_of_models_hold_in_a_living_cluster)
{
    struct weir_sched_profile profile;
    struct test_cluster cluster;
    struct weir_rng rng;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    weir_rng_init(&rng, (uint64_t)_i, 17);
    test_cluster_random(&cluster, &rng, 8);
    test_workload_random(&cluster, &rng);
    add_models(&cluster, &rng);
    int32_t n_gated = cluster.snapshot.n_jobs / 2;
    hold_back(&cluster, n_gated, true); /* Half of the work comes when the other half runs. */
    int first = play_to_rest(&cluster, &profile, &rng);
    hold_back(&cluster, n_gated, false);
    int second = play_to_rest(&cluster, &profile, &rng);
    if (first == ROUNDS_WORKLOAD || second == ROUNDS_WORKLOAD) {
        printf("seed %d does not come to rest\n", _i);
    }
    ck_assert_int_lt(first, ROUNDS_WORKLOAD);
    ck_assert_int_lt(second, ROUNDS_WORKLOAD);
    test_cluster_fini(&cluster);
}

END_TEST

/** Bounds that nobody reaches change nothing. */
START_TEST(shares_that_bound_nothing_leave_plans_as_they_are)
{
    struct weir_sched_profile profile;
    struct test_cluster cluster;
    struct weir_rng rng;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    weir_rng_init(&rng, (uint64_t)_i, 17);
    test_cluster_random(&cluster, &rng, 8);
    add_models(&cluster, &rng);
    static const struct weir_sched_model_share wide = {"B", {-1, 1, 1000000}};
    for (int round = 0; round < 6; round++) {
        struct weir_sched_plan *plans[2];
        for (int i = 0; i < 2; i++) {
            for (int32_t q = 0; q < cluster.snapshot.n_queues; q++) {
                cluster.queues[q].models = &wide;
                cluster.queues[q].n_models = i;
            }
            plans[i] = test_plan(&cluster, &profile);
            ck_assert_ptr_nonnull(plans[i]);
        }
        ck_assert_int_eq(plans[0]->n_actions, plans[1]->n_actions);
        ck_assert_int_eq(plans[0]->n_waits, plans[1]->n_waits);
        for (int32_t i = 0; i < plans[0]->n_actions; i++) {
            const struct weir_sched_action *l = &plans[0]->actions[i], *r = &plans[1]->actions[i];
            ck_assert(l->kind == r->kind && l->task == r->task && l->node == r->node);
        }
        test_apply(&cluster, plans[0]);
        weir_sched_plan_destroy(plans[0]);
        weir_sched_plan_destroy(plans[1]);
    }
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("model_property", {shares_of_models_hold_in_a_random_cluster, 2 * seeds()},
                     {shares_of_models_hold_in_a_living_cluster, seeds()},
                     {shares_that_bound_nothing_leave_plans_as_they_are, seeds()})
