/* The law of wishes, on random clusters: each task starts on a node that nobody who has room beats, by sums that are worked
 * out here from what the test wished, and all start that have room. */
#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_outcome.h"

#define NODES_MOST 8
#define TASKS_MOST 24
#define N_SEEDS    WEIR_TEST_TIMES(400, 60)

static const struct weir_sched_label sorts[] = {{"sort", "a"}, {"sort", "b"}};

/* What each task wishes. */
struct wished {
    int32_t scores[NODES_MOST];
    int32_t domains[2][NODES_MOST];
    struct weir_sched_wish wishes[2];
    int sort;
};

static struct wished wished[TASKS_MOST];

static void wish(struct test_cluster *cluster, struct weir_rng *rng, int32_t t)
{
    struct weir_sched_task *task = &cluster->tasks[t];
    int32_t n_nodes = cluster->snapshot.n_nodes;
    task->labels = &sorts[wished[t].sort];
    task->n_labels = 1;
    if (weir_rng_below(rng, 4) == 0) {
        return;
    }
    for (int32_t i = 0; i < n_nodes; i++) {
        wished[t].scores[i] = (int32_t)weir_rng_below(rng, 5) - 2;
    }
    task->scores = weir_rng_below(rng, 3) > 0 ? wished[t].scores : NULL;
    task->n_wishes = (int32_t)weir_rng_below(rng, 3);
    task->wishes = wished[t].wishes;
    for (int32_t w = 0; w < task->n_wishes; w++) {
        for (int32_t i = 0; i < n_nodes; i++) {
            wished[t].domains[w][i] = (int32_t)weir_rng_below(rng, (uint64_t)n_nodes + 1) - 1;
        }
        wished[t].wishes[w] =
            (struct weir_sched_wish){.weight = (int32_t)weir_rng_below(rng, 7) - 3,
                                     .domains = wished[t].domains[w],
                                     .labels = &sorts[weir_rng_below(rng, 2)],
                                     .n_labels = (int32_t)weir_rng_below(rng, 2)};
    }
}

static void build(struct test_cluster *cluster, struct weir_rng *rng)
{
    int n_nodes = 2 + (int)weir_rng_below(rng, NODES_MOST - 1),
        n = 1 + (int)weir_rng_below(rng, TASKS_MOST);
    bool has_devices = weir_rng_below(rng, 2) == 0;
    memset(wished, 0, sizeof wished);
    test_cluster_init(cluster, n_nodes, 1, n, n);
    for (int i = 0; i < n_nodes; i++) {
        cluster->nodes[test_node(cluster, 4)].cpu_milli = 4000;
    }
    int32_t queue = test_queue(cluster, -1, -1, 1, -1);
    for (int32_t t = 0; t < n; t++) {
        test_job(cluster, queue, 50, 1, has_devices);
        wished[t].sort = (int)weir_rng_below(rng, 2);
        wish(cluster, rng, t);
    }
}

/* @param at  Where each task is; -1: nowhere. */
static int64_t sum_of(const struct test_cluster *cluster, int32_t t, int32_t node,
                      const int32_t *at)
{
    const struct weir_sched_task *task = &cluster->tasks[t];
    int64_t sum = task->scores != NULL ? wished[t].scores[node] : 0;
    for (int32_t w = 0; w < task->n_wishes; w++) {
        const struct weir_sched_wish *one = &wished[t].wishes[w];
        for (int32_t i = 0; i < cluster->snapshot.n_tasks; i++) {
            bool is_meant = one->n_labels == 0 || one->labels == &sorts[wished[i].sort];
            bool is_near =
                at[i] >= 0 && one->domains[node] >= 0 && one->domains[at[i]] == one->domains[node];
            sum += is_meant && is_near ? one->weight : 0;
        }
    }
    return sum;
}

static bool has_room(const struct test_cluster *cluster, int32_t node, const int32_t *at)
{
    int n = 0;
    for (int32_t i = 0; i < cluster->snapshot.n_tasks; i++) {
        n += at[i] == node;
    }
    return n < 4;
}

static int follow(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    int32_t at[TASKS_MOST];
    memset(at, -1, sizeof at);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        ck_assert_int_eq(action->kind, WEIR_SCHED_BIND);
        ck_assert(has_room(cluster, action->node, at));
        int64_t sum = sum_of(cluster, action->task, action->node, at);
        for (int32_t k = 0; k < cluster->snapshot.n_nodes; k++) {
            ck_assert_msg(!has_room(cluster, k, at) || sum_of(cluster, action->task, k, at) <= sum,
                          "task %d is on node %d, and rather were on %d", action->task,
                          action->node, k);
        }
        at[action->task] = action->node;
    }
    return plan->n_actions;
}

static const char *const profiles[] = {"default", "kai"};

START_TEST(each_starts_where_it_rather_is_and_none_waits_for_it)
{
    struct test_cluster cluster;
    struct weir_sched_profile profile;
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 0);
    build(&cluster, &rng);
    ck_assert_int_eq(weir_sched_profile_named(profiles[_i % 2], &profile, NULL), WEIR_OK);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    int n = WEIR_MIN(cluster.snapshot.n_tasks, 4 * cluster.snapshot.n_nodes);
    ck_assert_int_eq(follow(&cluster, plan), n);
    weir_sched_plan_destroy(plan);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("wishes", {each_starts_where_it_rather_is_and_none_waits_for_it, N_SEEDS})
