/*
 * What must hold whatever the cluster: random clusters live through rounds of plans, and what a
 * plan says is summed up here from the actions alone. Seeds are printed with each failure.
 */
#include "sched/test/test_outcome.h"
#include "sched/test/test_seeds.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdbool.h>
#include <stdio.h>

#define ROUNDS_MAX      40
#define ROUNDS_WORKLOAD 200 /* Work that leaves takes its time. */
#define DEVICE_UNITS    1000
#define N_EMPTY         1000 /* More than SOLVER_LARGE. */
#define LARGE_EVERY     10

/** Clusters of each kind; the slow run asks for more. */
static int seeds(void)
{
    return test_seeds(150);
}

static void add_devices(int32_t *used, int32_t first, const struct weir_sched_demand *demand,
                        const int32_t *devices)
{
    for (int32_t i = 0; i < demand->n_devices; i++) {
        used[first + devices[i]] += demand->device_milli;
    }
}

/** Nothing is over-allocated: not while evicted work is still there, and not when it has left. */
static void check_room(struct test_cluster *cluster, const struct outcome *outcomes)
{
    const struct weir_sched_snapshot *snapshot = &cluster->snapshot;
    int32_t *first = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)snapshot->n_nodes + 1, int32_t);
    for (int32_t n = 0; n < snapshot->n_nodes; n++) {
        first[n + 1] = first[n] + snapshot->nodes[n].n_devices;
    }
    for (int is_now = 0; is_now < 2; is_now++) {
        int32_t n_all = first[snapshot->n_nodes];
        int32_t *used = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_all + 1, int32_t);
        int64_t *cpu = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)snapshot->n_nodes + 1, int64_t);
        int64_t *memory = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)snapshot->n_nodes + 1, int64_t);
        for (int32_t t = 0; t < snapshot->n_tasks; t++) {
            int32_t node = is_now ? outcomes[t].now : outcomes[t].future;
            const struct weir_sched_demand *demand = &snapshot->tasks[t].demand;
            if (node >= 0) {
                cpu[node] += demand->cpu_milli;
                memory[node] += demand->memory_bytes;
                add_devices(used, first[node], demand,
                            is_now ? outcomes[t].now_devices : outcomes[t].future_devices);
            }
        }
        for (int32_t d = 0; d < n_all; d++) {
            ck_assert_int_le(used[d], DEVICE_UNITS);
        }
        for (int32_t n = 0; n < snapshot->n_nodes; n++) {
            ck_assert_int_le(cpu[n], snapshot->nodes[n].cpu_milli);
            ck_assert_int_le(memory[n], snapshot->nodes[n].memory_bytes);
        }
    }
}

static int64_t milli_of(const struct weir_sched_task *task)
{
    return (int64_t)task->demand.n_devices * task->demand.device_milli;
}

/** Devices of each queue and of all above it: of all its tasks that `which` says, or of those of
 *  non-preemptible jobs. */
enum which {
    BEFORE, /**< What runs, and what the plan places: an action may evict after another placed. */
    AFTER,
};

static void sum_queues(const struct test_cluster *cluster, const struct outcome *outcomes,
                       enum which which, bool only_fixed, int64_t *out)
{
    const struct weir_sched_snapshot *snapshot = &cluster->snapshot;
    memset(out, 0, (size_t)snapshot->n_queues * sizeof *out);
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        bool is_fixed = job->preemptibility == WEIR_SCHED_NON_PREEMPTIBLE;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            bool counts = outcomes[t].future >= 0 || (which == BEFORE && outcomes[t].now >= 0);
            for (int32_t q = job->queue; q >= 0 && counts && (is_fixed || !only_fixed);
                 q = snapshot->queues[q].parent) {
                out[q] += milli_of(&snapshot->tasks[t]);
            }
        }
    }
}

/** No limit is exceeded, and non-preemptible work does not borrow. */
static void check_queues(const struct test_cluster *cluster, const struct outcome *outcomes,
                         const struct weir_sched_plan *plan)
{
    int64_t all[16], fixed[16];
    sum_queues(cluster, outcomes, AFTER, false, all);
    sum_queues(cluster, outcomes, AFTER, true, fixed);
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        const struct weir_sched_share *share = &cluster->queues[q].shares[WEIR_SCHED_ACCELERATOR];
        ck_assert_int_eq(all[q], plan->queues[q].allocated.of[WEIR_SCHED_ACCELERATOR]);
        ck_assert(share->limit < 0 || all[q] <= share->limit);
        ck_assert(share->quota < 0 || fixed[q] <= share->quota);
    }
}

/** Nobody is evicted whom nobody may evict, and nobody's guaranteed share is reclaimed. */
static void check_evictions(const struct test_cluster *cluster, const struct outcome *outcomes)
{
    int64_t before[16];
    sum_queues(cluster, outcomes, BEFORE, false, before);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->snapshot.jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (!outcomes[t].is_evicted || outcomes[t].reason == WEIR_SCHED_EVICT_STALE ||
                outcomes[t].reason == WEIR_SCHED_EVICT_TIME_LIMIT) {
                continue;
            }
            ck_assert_int_eq(job->preemptibility, WEIR_SCHED_PREEMPTIBLE);
            bool is_over = false;
            for (int32_t q = job->queue; q >= 0; q = cluster->queues[q].parent) {
                int64_t quota = cluster->queues[q].shares[WEIR_SCHED_ACCELERATOR].quota;
                is_over = is_over || (quota >= 0 && before[q] > quota);
            }
            ck_assert(outcomes[t].is_placed || outcomes[t].reason != WEIR_SCHED_EVICT_RECLAIM ||
                      is_over);
        }
    }
}

/** A gang runs whole or not at all: after the plan it has none, or at least its minimum. */
static void check_gangs(const struct test_cluster *cluster, const struct outcome *outcomes)
{
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->snapshot.jobs[j];
        int32_t n_future = 0, n_before = 0,
                min = job->min_member < 0 ? job->n_tasks : job->min_member;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            n_future += outcomes[t].future >= 0;
            n_before += weir_sched_task_has_node(cluster->tasks[t].state);
        }
        if (n_before > 0 && n_before < min) {
            continue; /* Was torn before: that is for the stale gangs' action. */
        }
        ck_assert(n_future == 0 || n_future >= min);
    }
}

/** Whoever waits is told why. */
static void check_waits(const struct test_cluster *cluster, const struct outcome *outcomes,
                        const struct weir_sched_plan *plan)
{
    int32_t at = 0;
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->snapshot.jobs[j];
        bool is_told = at < plan->n_waits && plan->waits[at].job == j;
        bool has_place = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            has_place = has_place || outcomes[t].future >= 0 || outcomes[t].is_evicted ||
                        outcomes[t].was_going || cluster->tasks[t].state == WEIR_SCHED_DONE ||
                        cluster->tasks[t].state == WEIR_SCHED_GATED;
        }
        ck_assert(has_place || is_told);
        if (is_told) {
            ck_assert_int_ne(plan->waits[at].code, WEIR_SCHED_WAIT_NONE);
            ck_assert_int_gt(strlen(plan->waits[at].text), 10);
            at++;
        }
    }
    ck_assert_int_eq(at, plan->n_waits);
}

static void check_plan(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    const struct outcome *outcomes = outcomes_of(cluster, plan);
    check_room(cluster, outcomes);
    check_queues(cluster, outcomes, plan);
    check_evictions(cluster, outcomes);
    check_gangs(cluster, outcomes);
    check_waits(cluster, outcomes, plan);
}

static int32_t count_evictions(const struct weir_sched_plan *plan)
{
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        n += plan->actions[i].kind == WEIR_SCHED_EVICT;
    }
    return n;
}

/** Plan and apply until nothing changes. @return Rounds it took. */
static int run_by(struct test_cluster *cluster, const struct weir_sched_profile *profile)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct weir_sched_plan *plan = test_plan_twice(cluster, profile);
        check_plan(cluster, plan);
        bool is_still = plan->n_actions == 0 || count_evictions(plan) == 0;
        int32_t n_actions = plan->n_actions;
        test_apply(cluster, plan);
        weir_sched_plan_destroy(plan);
        if (n_actions == 0 && is_still) {
            return round;
        }
    }
    return ROUNDS_MAX;
}

/** What is moved by "binpack" without kept places may go back as it came, and be moved for ever: in
 *  a scenario shares count what leaves a device, but not when they are placed again. Without moves
 *  it comes to rest. */
static int run_to_rest(struct test_cluster *cluster, const struct weir_sched_profile *profile)
{
    int n_rounds = run_by(cluster, profile);
    if (n_rounds == ROUNDS_MAX && strcmp(profile->placement, "binpack") == 0) {
        struct weir_sched_profile unmoved = *profile;
        unmoved.consolidation_max_moves = 0;
        unmoved.move_victims = false;
        n_rounds = run_by(cluster, &unmoved);
    }
    return n_rounds;
}

/** The same for a cluster that lives. At rest nothing is on its way. */
static int play_to_rest(struct test_cluster *cluster, const struct weir_sched_profile *profile,
                        struct weir_rng *rng)
{
    for (int round = 0; round < ROUNDS_WORKLOAD; round++) {
        struct weir_sched_plan *plan = test_plan_twice(cluster, profile);
        check_plan(cluster, plan);
        bool is_still = plan->n_actions == 0 && !test_workload_moves(cluster);
        test_workload_apply(cluster, plan, rng);
        weir_sched_plan_destroy(plan);
        if (is_still) {
            return round;
        }
    }
    return ROUNDS_WORKLOAD;
}

static void hold_back(struct test_cluster *cluster, int32_t from, bool is_gated)
{
    for (int32_t j = from; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            cluster->tasks[t].state = is_gated ? WEIR_SCHED_GATED : WEIR_SCHED_PENDING;
        }
    }
}

/** Tasks that ask for any part of a CPU or several, on nodes where CPUs are scarce. */
static void ask_for_parts(struct test_cluster *cluster, uint64_t seed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 12);
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        cluster->nodes[i].cpu_milli = 500 + (int64_t)weir_rng_below(&rng, 16000);
    }
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        cluster->tasks[t].demand.cpu_milli = (int64_t)weir_rng_below(&rng, 3001);
    }
}

static struct weir_sched_profile rules(bool is_fgd)
{
    static char fgd[] = "fgd";
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    if (is_fgd) {
        profile.placement = profile.placement_cpu = fgd;
    }
    return profile;
}

START_TEST(a_random_cluster_keeps_every_invariant_and_comes_to_rest)
{
    struct weir_sched_profile profile = rules(_i >= seeds());
    struct test_cluster cluster;
    struct weir_rng rng;
    uint64_t seed = (uint64_t)(_i % seeds());
    weir_rng_init(&rng, seed, 11);
    test_cluster_random(&cluster, &rng, 8);
    if (seed % 2 == 1) {
        ask_for_parts(&cluster, seed);
    }
    int32_t n_gated = cluster.snapshot.n_jobs / 2;
    hold_back(&cluster, n_gated, true); /* Half of the work comes when the other half runs. */
    int first = run_to_rest(&cluster, &profile);
    hold_back(&cluster, n_gated, false);
    int second = run_to_rest(&cluster, &profile);
    if (first == ROUNDS_MAX || second == ROUNDS_MAX) {
        printf("seed %llu does not come to rest by %s\n", (unsigned long long)seed,
               profile.placement);
    }
    ck_assert_int_lt(first, ROUNDS_MAX);
    ck_assert_int_lt(second, ROUNDS_MAX);
    test_cluster_fini(&cluster);
}

END_TEST

/** Nodes that hold nothing: the cluster counts as a large one, in which moves are looked for only
 *  among those that are in the way. */
static void make_large(struct test_cluster *cluster)
{
    const struct weir_sched_node *few = cluster->nodes;
    int32_t n = cluster->snapshot.n_nodes;
    cluster->nodes = WEIR_ARENA_ARRAY(&cluster->arena, n + N_EMPTY, struct weir_sched_node);
    cluster->snapshot.nodes = cluster->nodes;
    memcpy(cluster->nodes, few, (size_t)n * sizeof *few);
    for (int i = 0; i < N_EMPTY; i++) {
        struct weir_sched_node *node = &cluster->nodes[test_node(cluster, 0)];
        node->cpu_milli = node->memory_bytes = 0;
    }
}

START_TEST(a_living_cluster_keeps_every_invariant_and_comes_to_rest)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    struct test_cluster cluster;
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 11);
    test_cluster_random(&cluster, &rng, 8);
    if (_i % LARGE_EVERY == 0) {
        make_large(&cluster);
    } else if (_i % 2 == 1) {
        ask_for_parts(&cluster, (uint64_t)_i);
    }
    test_workload_random(&cluster, &rng);
    int32_t n_gated = cluster.snapshot.n_jobs / 2;
    hold_back(&cluster, n_gated, true);
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

WEIR_TEST_LOOPS_MAIN("property",
                     {a_random_cluster_keeps_every_invariant_and_comes_to_rest, 2 * seeds()},
                     {a_living_cluster_keeps_every_invariant_and_comes_to_rest, seeds()})
