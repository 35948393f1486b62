/*
 * NUMA zones: small nodes worked out by hand from the rules in zones.h, and random ones against a
 * search through all sets of zones.
 */
#include "sched/place/zones.h"
#include "sched/test/test_cluster.h"
#include "sched/test/test_seeds.h"

#include "base/test_main.h"

#include <stdio.h>

#define GIB ((int64_t)1 << 30)

/** One node of n zones that are alike, and a queue without bounds. */
static void init(struct test_cluster *cluster, enum weir_sched_numa_policy policy, int n_zones,
                 struct weir_sched_numa_zone zone)
{
    test_cluster_init(cluster, 1, 1, 32, 64);
    int32_t node = test_node(cluster, zone.n_devices < 0 ? 0 : n_zones * zone.n_devices);
    struct weir_sched_numa_zone *zones =
        WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_zones, struct weir_sched_numa_zone);
    for (int z = 0; z < n_zones; z++) {
        zones[z] = zone;
    }
    cluster->nodes[node].zones = zones;
    cluster->nodes[node].n_zones = n_zones;
    cluster->nodes[node].numa_policy = policy;
    test_queue(cluster, -1, -1, 1, -1);
}

static struct weir_sched_task *add(struct test_cluster *cluster, int n_devices, int n_cpus)
{
    struct weir_sched_job *job = test_job(cluster, 0, 50, 1, n_devices);
    struct weir_sched_task *task = &cluster->tasks[job->first_task];
    task->demand.cpu_milli = n_cpus * 1000LL;
    task->demand.numa_aligned = true;
    return task;
}

static void run(struct weir_sched_task *task, const int32_t *devices, uint32_t zones)
{
    task->state = WEIR_SCHED_RUNNING;
    task->node = 0;
    task->devices = devices;
    task->zones = zones;
}

/** @param actions  NULL: the profile's own. */
static struct weir_sched_plan *plan_with(const struct test_cluster *cluster, const char *name,
                                         char *actions)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(name, &profile, NULL), WEIR_OK);
    profile.actions = actions == NULL ? profile.actions : actions;
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    return plan;
}

static struct weir_sched_plan *plan_by(const struct test_cluster *cluster, const char *name)
{
    return plan_with(cluster, name, NULL);
}

/** The action that binds the task; NULL. */
static const struct weir_sched_action *bind_of(const struct test_cluster *cluster,
                                               const struct weir_sched_plan *plan,
                                               const struct weir_sched_task *task)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].kind == WEIR_SCHED_BIND &&
            plan->actions[i].task == task - cluster->tasks) {
            return &plan->actions[i];
        }
    }
    return NULL;
}

static const char *const profiles[] = {"default", "kai"};

static void expect_zones_to_blame(const struct test_cluster *cluster,
                                  const struct weir_sched_plan *plan,
                                  const struct weir_sched_task *task, int could_if_empty)
{
    for (int32_t i = 0; i < plan->n_waits; i++) {
        const struct weir_sched_wait *wait = &plan->waits[i];
        if (cluster->jobs[wait->job].first_task == task - cluster->tasks) {
            ck_assert_int_eq(wait->code, WEIR_SCHED_WAIT_ZONES);
            ck_assert_int_eq(wait->have, could_if_empty);
            ck_assert_int_eq(wait->object, task - cluster->tasks);
            ck_assert_ptr_nonnull(strstr(wait->text, "NUMA"));
            return;
        }
    }
    ck_abort_msg("the task's job does not wait");
}

/** The first two free devices lie in different zones, the next two in one. */
START_TEST(devices_are_chosen_within_a_zone)
{
    static const int32_t first[] = {0};
    struct test_cluster cluster;
    init(&cluster, WEIR_SCHED_NUMA_SINGLE, 2, (struct weir_sched_numa_zone){-1, -1, 2});
    run(add(&cluster, 1, 1), first, 1);
    const struct weir_sched_task *task = add(&cluster, 2, 1);
    struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
    const struct weir_sched_action *action = bind_of(&cluster, plan, task);
    ck_assert_ptr_nonnull(action);
    ck_assert_uint_eq(action->zones, 2);
    ck_assert_int_eq(action->devices[0], 2);
    ck_assert_int_eq(action->devices[1], 3);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** Six of 4 + 4 CPUs take all of the first zone: two are left, of the second. */
START_TEST(the_lowest_zone_is_used_up_first)
{
    struct test_cluster cluster;
    init(&cluster, WEIR_SCHED_NUMA_RESTRICTED, 2, (struct weir_sched_numa_zone){4000, -1, -1});
    const struct weir_sched_task *wide = add(&cluster, 0, 6), *large = add(&cluster, 0, 3);
    const struct weir_sched_task *small = add(&cluster, 0, 2);
    struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
    ck_assert_uint_eq(bind_of(&cluster, plan, wide)->zones, 3);
    ck_assert_ptr_null(bind_of(&cluster, plan, large));
    expect_zones_to_blame(&cluster, plan, large, 1);
    ck_assert_uint_eq(bind_of(&cluster, plan, small)->zones, 2);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** Five CPUs of zones of 4 need two: 0 and 3 have 1 + 4 left, 1 and 2 have 3 + 3. */
START_TEST(sets_of_zones_are_tried_by_their_lowest_first)
{
    struct test_cluster cluster;
    init(&cluster, WEIR_SCHED_NUMA_RESTRICTED, 4, (struct weir_sched_numa_zone){4000, -1, -1});
    run(add(&cluster, 0, 3), NULL, 1);
    run(add(&cluster, 0, 1), NULL, 2);
    run(add(&cluster, 0, 1), NULL, 4);
    const struct weir_sched_task *task = add(&cluster, 0, 5);
    struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
    ck_assert_uint_eq(bind_of(&cluster, plan, task)->zones, 9);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** Three of four devices need two zones, one CPU needs one: the kubelet would refuse the task. If
 *  only devices have zones, it is admitted. */
START_TEST(all_resources_need_the_same_number_of_zones)
{
    for (int has_cpus = 0; has_cpus < 2; has_cpus++) {
        struct test_cluster cluster;
        init(&cluster, WEIR_SCHED_NUMA_RESTRICTED, 2,
             (struct weir_sched_numa_zone){has_cpus ? 4000 : -1, -1, 2});
        const struct weir_sched_task *task = add(&cluster, 3, 1);
        struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
        const struct weir_sched_action *action = bind_of(&cluster, plan, task);
        ck_assert(has_cpus ? action == NULL : action != NULL && action->zones == 3);
        if (has_cpus) {
            expect_zones_to_blame(&cluster, plan, task, 0);
        }
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

START_TEST(best_effort_refuses_nobody)
{
    struct test_cluster cluster;
    init(&cluster, WEIR_SCHED_NUMA_BEST_EFFORT, 3, (struct weir_sched_numa_zone){4000, -1, -1});
    const struct weir_sched_task *fits = add(&cluster, 0, 3), *wide = add(&cluster, 0, 7);
    const struct weir_sched_task *large = add(&cluster, 0, 20);
    struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
    ck_assert_uint_eq(bind_of(&cluster, plan, fits)->zones, 1);
    ck_assert_uint_eq(bind_of(&cluster, plan, wide)->zones, 6);
    ck_assert_uint_eq(bind_of(&cluster, plan, large)->zones, 0);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/**
 * A task that runs in the second zone leaves the first; one of which the zone is not known is taken
 * to be in the first.
 */
START_TEST(zones_of_what_runs_are_taken_from_the_snapshot)
{
    for (uint32_t zones = 0; zones < 3; zones += 2) {
        struct test_cluster cluster;
        init(&cluster, WEIR_SCHED_NUMA_SINGLE, 2, (struct weir_sched_numa_zone){4000, -1, -1});
        run(add(&cluster, 0, 3), NULL, zones);
        const struct weir_sched_task *task = add(&cluster, 0, 4);
        struct weir_sched_plan *plan = plan_by(&cluster, profiles[_i]);
        ck_assert_uint_eq(bind_of(&cluster, plan, task)->zones, zones == 0 ? 2 : 1);
        weir_sched_plan_destroy(plan);
        test_cluster_fini(&cluster);
    }
}

END_TEST

enum { CPU, MEMORY, DEVICES, N_KINDS };

/** What the test knows of a node's zones. */
struct ledger {
    int n_zones;
    int64_t size[ZONES_MAX][N_KINDS], free[ZONES_MAX][N_KINDS];
};

static bool holds(int64_t (*of)[N_KINDS], int n_zones, uint32_t mask, int kind, int64_t need)
{
    int64_t sum = 0;
    for (int z = 0; z < n_zones; z++) {
        sum += (mask >> z & 1) != 0 ? of[z][kind] : 0;
    }
    return sum >= need;
}

/** "02" of zones 0 and 2: in the order of these words sets of a size are tried. */
static void word_of(uint32_t mask, char word[ZONES_MAX + 1])
{
    int n = 0;
    for (int z = 0; z < ZONES_MAX; z++) {
        if ((mask >> z & 1) != 0) {
            word[n++] = (char)('0' + z);
        }
    }
    word[n] = '\0';
}

/** The set of zones that the policy gives; 0: none. All needs are above 0. */
static uint32_t reference(struct ledger *ledger, bool is_single, const int64_t *need)
{
    int widths[N_KINDS];
    uint32_t found = 0;
    for (int kind = 0; kind < N_KINDS; kind++) {
        widths[kind] = ZONES_MAX + 1 + kind;
        for (uint32_t mask = 1; mask < 1U << ledger->n_zones; mask++) {
            int n = __builtin_popcount(mask);
            if (n < widths[kind] && holds(ledger->size, ledger->n_zones, mask, kind, need[kind])) {
                widths[kind] = n;
            }
        }
        if (!is_single && widths[kind] != widths[0]) {
            return 0;
        }
    }
    for (uint32_t mask = 1; mask < 1U << ledger->n_zones; mask++) {
        char word[ZONES_MAX + 1], best[ZONES_MAX + 1];
        bool is_good = __builtin_popcount(mask) == (is_single ? 1 : widths[0]);
        for (int kind = 0; kind < N_KINDS; kind++) {
            is_good = is_good && holds(ledger->free, ledger->n_zones, mask, kind, need[kind]);
        }
        word_of(mask, word);
        word_of(found, best);
        found = is_good && (found == 0 || strcmp(word, best) < 0) ? mask : found;
    }
    return found;
}

/** @return The zones of which something is taken. */
static uint32_t take(struct ledger *ledger, uint32_t mask, const int64_t *need)
{
    uint32_t taken = 0;
    for (int kind = 0; kind < N_KINDS; kind++) {
        int64_t rest = need[kind];
        for (int z = 0; z < ledger->n_zones; z++) {
            int64_t part = (mask >> z & 1) == 0 ? 0 : WEIR_MIN(rest, ledger->free[z][kind]);
            ledger->free[z][kind] -= part;
            rest -= part;
            taken |= part > 0 ? 1U << z : 0;
        }
        ck_assert_int_eq(rest, 0);
    }
    return taken;
}

static void check_random(uint64_t seed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 29);
    struct test_cluster cluster;
    struct ledger ledger = {.n_zones = 1 + (int)weir_rng_below(&rng, 5)};
    bool is_single = weir_rng_below(&rng, 3) == 0;
    struct weir_sched_numa_zone zone = {.cpu_milli = 1000 + 1000 * (int64_t)weir_rng_below(&rng, 8),
                                        .memory_bytes =
                                            GIB + GIB * (int64_t)weir_rng_below(&rng, 8),
                                        .n_devices = 1 + (int32_t)weir_rng_below(&rng, 4)};
    init(&cluster, is_single ? WEIR_SCHED_NUMA_SINGLE : WEIR_SCHED_NUMA_RESTRICTED, ledger.n_zones,
         zone);
    for (int z = 0; z < ledger.n_zones; z++) {
        ledger.size[z][CPU] = ledger.free[z][CPU] = zone.cpu_milli;
        ledger.size[z][MEMORY] = ledger.free[z][MEMORY] = zone.memory_bytes;
        ledger.size[z][DEVICES] = ledger.free[z][DEVICES] = zone.n_devices;
    }
    for (int z = 0; z < ledger.n_zones; z++) { /* Some CPUs of each are taken. */
        int n_cpus = (int)weir_rng_below(&rng, (uint64_t)zone.cpu_milli / 1000 + 1);
        struct weir_sched_task *task = add(&cluster, 0, n_cpus);
        task->demand.memory_bytes = 0;
        run(task, NULL, 1U << z);
        ledger.free[z][CPU] -= task->demand.cpu_milli;
    }
    struct weir_sched_task *tasks[16];
    for (int t = 0; t < 16; t++) { /* Mostly as wide in all resources. */
        int width = 1 + (int)weir_rng_below(&rng, 2);
        tasks[t] = add(&cluster,
                       (width - 1) * zone.n_devices + 1 +
                           (int)weir_rng_below(&rng, (uint64_t)zone.n_devices),
                       (int)((width - 1) * zone.cpu_milli / 1000) + 1 +
                           (int)weir_rng_below(&rng, (uint64_t)zone.cpu_milli / 1000));
        tasks[t]->demand.memory_bytes = (width - 1) * zone.memory_bytes + 1 +
                                        (int64_t)weir_rng_below(&rng, (uint64_t)zone.memory_bytes);
    }
    struct weir_sched_plan *plan = plan_with(&cluster, "kai", "allocate");
    for (int t = 0; t < 16; t++) {
        const struct weir_sched_demand *demand = &tasks[t]->demand;
        const int64_t need[N_KINDS] = {demand->cpu_milli, demand->memory_bytes, demand->n_devices};
        const struct weir_sched_action *action = bind_of(&cluster, plan, tasks[t]);
        uint32_t expected = reference(&ledger, is_single, need);
        expected = expected == 0 ? 0 : take(&ledger, expected, need);
        ck_assert_msg((action == NULL ? 0 : action->zones) == expected,
                      "seed %llu, task %d: zones %x, expected %x", (unsigned long long)seed, t,
                      action == NULL ? 0 : action->zones, expected);
        for (int32_t d = 0; action != NULL && d < action->n_devices; d++) {
            ck_assert((action->zones >> (action->devices[d] / zone.n_devices) & 1) != 0);
        }
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

START_TEST(zones_are_those_that_a_search_through_all_sets_finds)
{
    check_random((uint64_t)_i);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("zones", {devices_are_chosen_within_a_zone, WEIR_ARRAY_LEN(profiles)},
                     {the_lowest_zone_is_used_up_first, WEIR_ARRAY_LEN(profiles)},
                     {sets_of_zones_are_tried_by_their_lowest_first, WEIR_ARRAY_LEN(profiles)},
                     {all_resources_need_the_same_number_of_zones, WEIR_ARRAY_LEN(profiles)},
                     {best_effort_refuses_nobody, WEIR_ARRAY_LEN(profiles)},
                     {zones_of_what_runs_are_taken_from_the_snapshot, WEIR_ARRAY_LEN(profiles)},
                     {zones_are_those_that_a_search_through_all_sets_finds, test_seeds(300)})
