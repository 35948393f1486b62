/*
 * Where the rules "binpack" and "spread" put a task, and whether at once: small clusters of which
 * each row says by which rule its last tasks must go where. The places were worked out by hand.
 */
#include "sched/test/test_cluster.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>

#define NODES_MAX  2
#define TASKS_MAX  6
#define NODES_MOST 8
#define ANY        (-1)

/** A task: its node, its first device, how many, thousandths of each, CPUs. */
#define RUNS(node, device, n, milli, cpu)                                                          \
    {                                                                                              \
        WEIR_SCHED_RUNNING, node, device, n, milli, cpu,                                           \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
#define LEAVES(node, device, n, milli, cpu)                                                        \
    {                                                                                              \
        WEIR_SCHED_RELEASING, node, device, n, milli, cpu,                                         \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }
/** One that waits: how many devices, thousandths, CPUs, and what is to become of it. */
#define BINDS(n, milli, cpu, node, device)                                                         \
    {                                                                                              \
        WEIR_SCHED_PENDING, 0, 0, n, milli, cpu,                                                   \
        {                                                                                          \
            WEIR_SCHED_BIND, node, device                                                          \
        }                                                                                          \
    }
#define PIPELINES(n, milli, cpu, node, device)                                                     \
    {                                                                                              \
        WEIR_SCHED_PENDING, 0, 0, n, milli, cpu,                                                   \
        {                                                                                          \
            WEIR_SCHED_PIPELINE, node, device                                                      \
        }                                                                                          \
    }

struct wanted {
    enum weir_sched_action_kind kind;
    int32_t node, device;
};

struct row {
    const char *rule;
    const char *spreads; /**< "": packs; else what is spread: "n" nodes, "c" CPU, "g" devices. */

    struct {
        int n_devices, cpu;
    } nodes[NODES_MAX];

    int n_mig; /**< Devices in parts of the first node. */

    struct {
        enum weir_sched_task_state state;
        int32_t node, device;
        int n_devices, milli, cpu;
        struct wanted wanted; /**< Of those that wait. */
    } tasks[TASKS_MAX];       /**< Until one without state and CPU. */
};

// clang-format off
static const struct row rows[] = {
    {"shares join the fullest device, and what leaves still fills it", "", {{2, 64}}, 0,
     {RUNS(0, 0, 1, 200, 1), LEAVES(0, 0, 1, 600, 1), RUNS(0, 1, 1, 500, 1),
      PIPELINES(1, 300, 1, 0, 0)}},
    {"a device that all leave is not shared with them", "", {{1, 64}}, 0,
     {LEAVES(0, 0, 1, 300, 1), PIPELINES(1, 500, 1, 0, 0)}},
    {"a free device comes before one that all leave", "", {{2, 64}}, 0,
     {LEAVES(0, 0, 1, 300, 1), BINDS(1, 500, 1, 0, 1)}},
    {"company that must be waited for is company", "", {{1, 64}, {1, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), LEAVES(0, 0, 1, 500, 1),
      PIPELINES(1, 500, 1, 0, 0)}},
    {"of nodes with as many whole devices the one where it starts at once", "", {{2, 64}, {2, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), LEAVES(0, 0, 1, 500, 1), RUNS(1, 0, 1, 100, 1),
      BINDS(1, 500, 1, 1, 0)}},
    {"a share starts beside one that runs, whoever else waits there", "", {{1, 10}}, 0,
     {RUNS(0, 0, 1, 200, 1), LEAVES(0, 0, 1, 100, 5),
      PIPELINES(1, 300, 8, 0, 0),
      BINDS(1, 300, 1, 0, 0)}},
    {"who joins one that waits waits with it", "", {{1, 64}}, 0,
     {LEAVES(0, 0, 1, 1000, 1), PIPELINES(1, 300, 1, 0, 0),
      PIPELINES(1, 300, 1, 0, 0)}},
    {"of several devices one with company is enough", "", {{3, 64}, {2, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), BINDS(2, 500, 1, 0, ANY)}},
    {"who must wait leaves what is free to others", "", {{2, 10}}, 0,
     {LEAVES(0, 1, 1, 1000, 6), PIPELINES(1, 1000, 6, 0, 1),
      BINDS(1, 1000, 1, 0, 0)}},
    {"a share that must wait leaves what is free to others as well", "", {{2, 10}}, 0,
     {LEAVES(0, 1, 1, 1000, 6), PIPELINES(1, 500, 6, 0, 1), BINDS(1, 1000, 1, 0, 0)}},
    {"the node with the fewest whole devices left is the fullest", "", {{4, 64}, {2, 64}}, 0,
     {RUNS(0, 0, 1, 100, 1), RUNS(0, 1, 1, 100, 1), RUNS(0, 2, 1, 100, 1),
      BINDS(1, 1000, 1, 0, 3)}},
    {"work without devices goes where there are none, not of parts either", "",
     {{0, 5}, {0, 10}}, 1, {BINDS(0, 0, 1, 1, ANY)}},
    {"also where CPUs are spread", "c", {{1, 20}, {0, 10}}, 0,
     {BINDS(0, 0, 1, 1, ANY)}},
    {"the node of which the greatest part of CPU is left", "c", {{0, 64}, {0, 10}}, 0,
     {RUNS(0, 0, 0, 0, 40), BINDS(0, 0, 1, 1, ANY)}},
    {"the node of which the greatest part of devices is left", "n", {{8, 64}, {2, 64}}, 0,
     {RUNS(0, 0, 1, 1000, 1), RUNS(0, 1, 1, 1000, 1),
      BINDS(1, 1000, 1, 1, ANY)}},
    {"where devices are spread, company draws nobody to a node", "g", {{2, 64}, {1, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), RUNS(1, 0, 1, 1000, 1), LEAVES(1, 0, 0, 0, 1),
      BINDS(1, 200, 1, 0, 1)}},
    {"where devices are spread, a share takes a free device before company", "g", {{3, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), RUNS(0, 1, 1, 200, 1), BINDS(1, 200, 1, 0, 2)}},
    {"then the emptiest", "g", {{2, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), RUNS(0, 1, 1, 200, 1), BINDS(1, 200, 1, 0, 1)}},
    {"and starts beside somebody before it waits for a device that somebody leaves", "g",
     {{2, 64}}, 0,
     {RUNS(0, 0, 1, 500, 1), LEAVES(0, 1, 1, 1000, 1), BINDS(1, 200, 1, 0, 0)}},
};

// clang-format on

static const struct weir_sched_extra mig = {"mig-1g.10gb", 4, 1000};

static bool is_there(const struct row *row, int t)
{
    return t < TASKS_MAX && row->tasks[t].cpu > 0;
}

static void build(struct test_cluster *cluster, const struct row *row)
{
    test_cluster_init(cluster, NODES_MAX, 2, TASKS_MAX, TASKS_MAX);
    for (int n = 0; n < NODES_MAX && row->nodes[n].cpu > 0; n++) {
        int32_t node = test_node(cluster, row->nodes[n].n_devices);
        cluster->nodes[node].cpu_milli = row->nodes[n].cpu * 1000;
        cluster->nodes[node].extras = &mig;
        cluster->nodes[node].n_extras = n == 0 ? row->n_mig : 0;
    }
    int32_t queue = test_queue(cluster, test_queue(cluster, -1, -1, 1, -1), -1, 1, -1);
    for (int t = 0; is_there(row, t); t++) {
        test_job(cluster, queue, 50, 1, row->tasks[t].n_devices);
        struct weir_sched_task *task = &cluster->tasks[t];
        task->state = row->tasks[t].state;
        task->demand.cpu_milli = row->tasks[t].cpu * 1000;
        task->demand.device_milli = row->tasks[t].milli;
        if (task->state != WEIR_SCHED_PENDING) {
            task->node = row->tasks[t].node;
            task->devices = row->tasks[t].n_devices > 0 ? &row->tasks[t].device : NULL;
        }
    }
}

static struct weir_sched_profile rules(const struct row *row)
{
    static char spread[] = "spread", allocate[] = "allocate";
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("kai", &profile, NULL), WEIR_OK);
    profile.actions = allocate;
    profile.placement = strchr(row->spreads, 'n') != NULL ? spread : profile.placement;
    profile.placement_cpu = strchr(row->spreads, 'c') != NULL ? spread : profile.placement_cpu;
    profile.placement_gpu = strchr(row->spreads, 'g') != NULL ? spread : profile.placement_gpu;
    return profile;
}

START_TEST(a_task_goes_where_its_rule_says)
{
    const struct row *row = &rows[_i];
    struct weir_sched_profile profile = rules(row);
    struct test_cluster cluster;
    build(&cluster, row);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    int n_wanted = 0;
    for (int t = 0; is_there(row, t); t++) {
        n_wanted += row->tasks[t].state == WEIR_SCHED_PENDING;
    }
    ck_assert_msg(plan->n_actions == n_wanted, "%s: %d actions", row->rule, (int)plan->n_actions);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        const struct wanted *wanted = &row->tasks[action->task].wanted;
        int32_t device = action->n_devices > 0 ? action->devices[0] : ANY;
        ck_assert_msg(action->kind == wanted->kind && action->node == wanted->node &&
                          (wanted->device == ANY || device == wanted->device),
                      "%s: task %d: %s on node %d, device %d", row->rule, (int)action->task,
                      action->kind == WEIR_SCHED_BIND ? "bound" : "pipelined", (int)action->node,
                      (int)device);
    }
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

static const struct row packs = {.spreads = ""}, spreads_nodes = {.spreads = "nc"};

/** 350 MiB of a device are 0.18 of a large one, 0.59 of a medium and 0.88 of a small one. */
START_TEST(work_by_memory_stays_within_its_queue_on_the_node_that_it_gets)
{
    static const int mib[] = {600, 400, 2000};
    struct test_cluster cluster;
    struct weir_sched_profile profile = rules(&packs);
    test_cluster_init(&cluster, 3, 3, 4, 4);
    for (int n = 0; n < 3; n++) {
        test_node(&cluster, 1);
        cluster.nodes[n].device_memory_bytes = (int64_t)mib[n] << 20;
    }
    int32_t department = test_queue(&cluster, -1, 4, 1, -1);
    int32_t bounded = test_queue(&cluster, department, 1, 1, 1);
    int32_t open = test_queue(&cluster, department, 4, 1, -1);
    cluster.queues[bounded].shares[WEIR_SCHED_ACCELERATOR].limit = 500;
    for (int j = 0; j < 4; j++) {
        test_job(&cluster, j == 3 ? open : bounded, 50, 1, 1);
        cluster.tasks[j].demand.device_milli = 0;
        cluster.tasks[j].demand.device_memory_bytes = (int64_t)350 << 20;
    }
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    /* Two times 0.175 are within 0.5; a third is not, though a twin of another queue starts. */
    ck_assert_int_eq(plan->n_actions, 3);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        ck_assert_int_eq(plan->actions[i].kind, WEIR_SCHED_BIND);
        ck_assert_int_ne(plan->actions[i].task, 2);
        ck_assert(plan->actions[i].node == 2 || plan->actions[i].task == 3);
    }
    ck_assert_int_eq(plan->n_waits, 1);
    ck_assert_int_eq(plan->waits[0].code, WEIR_SCHED_WAIT_QUEUE_LIMIT);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

/** The only action of a plan by the rules of `packs`. */
static struct weir_sched_action only_action(const struct test_cluster *cluster)
{
    struct weir_sched_profile profile = rules(&packs);
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    ck_assert_int_eq(plan->n_actions, 1);
    struct weir_sched_action action = plan->actions[0];
    weir_sched_plan_destroy(plan);
    return action;
}

START_TEST(work_that_is_aligned_goes_where_it_lies_in_the_fewest_zones)
{
    static const struct weir_sched_numa_zone small[] = {{2000, -1, -1}, {2000, -1, -1}};
    static const struct weir_sched_numa_zone large[] = {{4000, -1, -1}, {4000, -1, -1}};
    struct test_cluster cluster;
    test_cluster_init(&cluster, 3, 1, 1, 1);
    for (int n = 0; n < 3; n++) {
        test_node(&cluster, 0);
        cluster.nodes[n].numa_policy = WEIR_SCHED_NUMA_RESTRICTED;
        cluster.nodes[n].zones = n == 2 ? large : small;
        cluster.nodes[n].n_zones = n == 0 ? 0 : 2; /* Of the first nothing is known. */
    }
    test_job(&cluster, test_queue(&cluster, -1, -1, 1, -1), 50, 1, 0);
    cluster.tasks[0].demand.cpu_milli = 3000;
    cluster.tasks[0].demand.numa_aligned = true;
    struct weir_sched_action action = only_action(&cluster);
    ck_assert_int_eq(action.node, 2);
    ck_assert_uint_eq(action.zones, 1);
    test_cluster_fini(&cluster);
}

END_TEST

/** Two nodes of one rack, one with a task of the label that the waiting one looks for. */
static void build_company(struct test_cluster *cluster, enum weir_sched_task_state state)
{
    static const struct weir_sched_label rack = {"rack", "r1"}, app = {"app", "store"};
    test_cluster_init(cluster, 2, 1, 2, 2);
    for (int n = 0; n < 2; n++) {
        test_node(cluster, 2);
        cluster->nodes[n].labels = &rack;
        cluster->nodes[n].n_labels = 1;
    }
    int32_t queue = test_queue(cluster, -1, -1, 1, -1);
    for (int t = 0; t < 2; t++) {
        test_job(cluster, queue, 50, 1, 1);
        cluster->tasks[t].labels = cluster->tasks[t].affinity_labels = &app;
        cluster->tasks[t].n_labels = cluster->tasks[t].n_affinity_labels = 1;
    }
    cluster->tasks[0].state = state;
    cluster->tasks[0].node = state == WEIR_SCHED_GATED ? WEIR_SCHED_NONE : 0;
}

START_TEST(who_wants_company_of_its_kind_may_be_the_first)
{
    struct test_cluster cluster;
    build_company(&cluster, WEIR_SCHED_GATED);
    cluster.tasks[1].affinity_key = "rack";
    ck_assert_int_eq(only_action(&cluster).kind, WEIR_SCHED_BIND);
    test_cluster_fini(&cluster);
}

END_TEST

START_TEST(who_must_be_alone_waits_until_the_other_has_left)
{
    struct test_cluster cluster;
    build_company(&cluster, WEIR_SCHED_RELEASING);
    cluster.tasks[1].anti_affinity_key = "rack";
    ck_assert_int_eq(only_action(&cluster).kind, WEIR_SCHED_PIPELINE);
    test_cluster_fini(&cluster);
}

END_TEST

/** By seed: replicas of two sorts and others on equal nodes, by each rule; some run already, where they were put
 *  alone or all together. */
static void build_replicas(struct test_cluster *cluster, int seed, bool is_spread)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)seed, 0);
    int n_nodes = 2 + (int)weir_rng_below(&rng, 5), n = 1 + (int)weir_rng_below(&rng, 14);
    bool has_devices = weir_rng_below(&rng, 2) == 0;
    test_cluster_init(cluster, n_nodes, 1, n, n);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, 4);
    }
    int32_t queue = test_queue(cluster, -1, -1, 1, -1);
    for (int i = 0; i < n; i++) {
        test_job(cluster, queue, 50, 1, has_devices);
        cluster->tasks[i].demand.cpu_milli = 1000;
        cluster->tasks[i].spread = is_spread ? 1 + (int32_t)weir_rng_below(&rng, 2) : 0;
    }
}

static int count_binds(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                       int32_t spread, int32_t counts[])
{
    int n = 0;
    memset(counts, 0, NODES_MOST * sizeof counts[0]);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        bool is_one = action->kind == WEIR_SCHED_BIND &&
                      (spread < 0 || cluster->tasks[action->task].spread == spread);
        n += is_one;
        counts[action->node] += is_one;
    }
    return n;
}

/* As many start as without; and of each sort nowhere two more than elsewhere while there was room. */
START_TEST(replicas_lie_on_different_nodes_and_none_waits_for_it)
{
    static const struct row *const by[] = {&packs, &spreads_nodes};
    struct test_cluster spread, plain;
    int32_t counts[NODES_MOST];
    build_replicas(&spread, _i, true);
    build_replicas(&plain, _i, false);
    struct weir_sched_profile profile = rules(by[_i % 2]);
    struct weir_sched_plan *with = test_plan(&spread, &profile),
                           *without = test_plan(&plain, &profile);
    ck_assert_int_eq(count_binds(&spread, with, -1, counts),
                     count_binds(&plain, without, -1, counts));
    for (int32_t sort = 1; sort <= 2; sort++) {
        int32_t n = count_binds(&spread, with, sort, counts), most = 0;
        for (int32_t i = 0; i < spread.snapshot.n_nodes; i++) {
            most = WEIR_MAX(most, counts[i]);
        }
        int32_t even = (n + spread.snapshot.n_nodes - 1) / spread.snapshot.n_nodes;
        bool is_full = count_binds(&spread, with, -1, counts) >= 2 * spread.snapshot.n_nodes;
        ck_assert_msg(is_full || most <= even, "seed %d: %d of %d of sort %d on one of %d nodes",
                      _i, most, n, sort, spread.snapshot.n_nodes);
    }
    weir_sched_plan_destroy(with);
    weir_sched_plan_destroy(without);
    test_cluster_fini(&spread);
    test_cluster_fini(&plain);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("placement", {a_task_goes_where_its_rule_says, WEIR_ARRAY_LEN(rows)},
                     {work_by_memory_stays_within_its_queue_on_the_node_that_it_gets, 1},
                     {work_that_is_aligned_goes_where_it_lies_in_the_fewest_zones, 1},
                     {who_wants_company_of_its_kind_may_be_the_first, 1},
                     {who_must_be_alone_waits_until_the_other_has_left, 1},
                     {replicas_lie_on_different_nodes_and_none_waits_for_it, 100})
