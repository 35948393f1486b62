/*
 * Why evictions come to an end: while no job arrives, ends or ages, every step that evicts improves
 * a quantity of its kind (README.md), which is worked out here from the actions alone.
 *
 *  - Consolidation, and whatever else only moves work: nobody loses its place, and more tasks have
 *    one.
 *  - Preemption: in the queue, and in no other, more tasks run of some priority, and no fewer of
 *    any higher one.
 *  - Reclaim: less is borrowed: the sums of what queues hold above their share, of leaves and then
 *    of all, and then above their quotas, in this order.
 *
 * Each kind is asked for alone, after allocation has nothing more to give, so that what is seen to
 * change is its work. Seeds are the numbers of the cases.
 */
#include "sched/test/test_seeds.h"
#include "sched/test/test_workload.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdio.h>

#define ROUNDS_MAX 60
#define N_MEASURES 4
#define HOUR_MS    INT64_C(3600000)

/** Clusters; the slow run asks for more. */
static int seeds(void)
{
    return test_seeds(150);
}

/** Of each task of a cluster whether it has or will have a place. */
struct placed {
    bool *is;
};

static struct placed placed_of(struct test_cluster *cluster)
{
    int32_t n = cluster->snapshot.n_tasks;
    struct placed placed = {WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n + 1, bool)};
    for (int32_t t = 0; t < n; t++) {
        placed.is[t] = weir_sched_task_has_node(cluster->tasks[t].state);
    }
    return placed;
}

/** Carry a plan out at once: what must leave has left, what waits for its room keeps its place. */
static void apply(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        struct weir_sched_task *task = &cluster->tasks[action->task];
        bool is_placed = action->kind == WEIR_SCHED_BIND || action->kind == WEIR_SCHED_PIPELINE;
        size_t size = (size_t)action->n_devices * sizeof(int32_t);
        task->state = action->kind == WEIR_SCHED_BIND ? WEIR_SCHED_RUNNING : WEIR_SCHED_PIPELINED;
        task->state = is_placed ? task->state : WEIR_SCHED_PENDING;
        task->node = is_placed ? action->node : WEIR_SCHED_NONE;
        task->devices = NULL;
        if (is_placed && size > 0) {
            task->devices = (const int32_t *)(const void *)weir_arena_memdup(&cluster->arena,
                                                                             action->devices, size);
        }
    }
}

static int64_t milli_of(const struct weir_sched_task *task)
{
    return (int64_t)task->demand.n_devices * task->demand.device_milli;
}

static bool loses(const struct test_cluster *cluster, const struct placed *before,
                  const struct placed *after)
{
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        if (before->is[t] && !after->is[t]) {
            return true;
        }
    }
    return false;
}

/** Where nobody loses its place. */
static void check_moves(const struct test_cluster *cluster, const struct placed *before,
                        const struct placed *after)
{
    int32_t n_more = 0;
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        n_more += after->is[t] && !before->is[t];
    }
    ck_assert_int_gt(n_more, 0);
}

/** How many more tasks of a queue's jobs of this priority and higher have a place than before. */
static int32_t gained_from(const struct test_cluster *cluster, int32_t queue, int32_t priority,
                           const struct placed *before, const struct placed *after)
{
    int32_t n = 0;
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            bool counts = job->queue == queue && job->priority >= priority;
            n += counts ? after->is[t] - before->is[t] : 0;
        }
    }
    return n;
}

/** The highest priority at which a queue's tasks with a place changed in number says by how much. */
static int32_t first_gain(const struct test_cluster *cluster, int32_t queue,
                          const struct placed *before, const struct placed *after)
{
    for (int32_t priority = 200; priority > 0; priority--) {
        bool is_any = false;
        for (int32_t j = 0; j < cluster->snapshot.n_jobs && !is_any; j++) {
            is_any = cluster->jobs[j].priority == priority;
        }
        int32_t n = is_any ? gained_from(cluster, queue, priority, before, after) : 0;
        if (n != 0) {
            return n;
        }
    }
    return 0;
}

static void check_preemption(const struct test_cluster *cluster, const struct placed *before,
                             const struct placed *after)
{
    bool is_any = false;
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        int32_t gain = first_gain(cluster, q, before, after);
        ck_assert_int_ge(gain, 0);
        is_any = is_any || gain > 0;
    }
    ck_assert(is_any);
}

static bool is_leaf(const struct test_cluster *cluster, int32_t queue)
{
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        if (cluster->queues[q].parent == queue) {
            return false;
        }
    }
    return true;
}

/** What is borrowed: above shares by leaves and by all queues, above quotas by the same. */
static void measure(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                    const struct placed *placed, int64_t out[N_MEASURES])
{
    int64_t has[16] = {0};
    memset(out, 0, N_MEASURES * sizeof *out);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            for (int32_t q = job->queue; q >= 0 && placed->is[t]; q = cluster->queues[q].parent) {
                has[q] += milli_of(&cluster->tasks[t]);
            }
        }
    }
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        const struct weir_sched_share *share = &cluster->queues[q].shares[WEIR_SCHED_ACCELERATOR];
        int64_t due = WEIR_MAX(share->quota, plan->queues[q].fair_share.of[WEIR_SCHED_ACCELERATOR]);
        due = share->limit < 0 ? due : WEIR_MIN(due, share->limit);
        int64_t above = WEIR_MAX(has[q] - due, 0), above_quota = WEIR_MAX(has[q] - share->quota, 0);
        out[0] += is_leaf(cluster, q) ? above : 0;
        out[1] += above;
        out[2] += is_leaf(cluster, q) ? above_quota : 0;
        out[3] += above_quota;
    }
}

/** Who else got something: at the end of a plan allocation lends what a reclaim freed beyond its
 *  need, which is not the reclaim's doing. */
static void take_back_lent(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                           const struct placed *before, struct placed *after)
{
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        bool is_reclaimer = false;
        for (int32_t i = 0; i < plan->n_actions; i++) {
            is_reclaimer = is_reclaimer || (plan->actions[i].kind == WEIR_SCHED_EVICT &&
                                            plan->actions[i].by_job == j);
        }
        for (int32_t t = job->first_task; !is_reclaimer && t < job->first_task + job->n_tasks;
             t++) {
            after->is[t] = after->is[t] && before->is[t];
        }
    }
}

static void check_reclaim(const struct test_cluster *cluster, const struct weir_sched_plan *plan,
                          const struct placed *before, const struct placed *after)
{
    int64_t was[N_MEASURES], is[N_MEASURES];
    int i = 0;
    measure(cluster, plan, before, was);
    measure(cluster, plan, after, is);
    while (i < N_MEASURES - 1 && was[i] == is[i]) {
        i++;
    }
    ck_assert_int_lt(is[i], was[i]);
}

static struct weir_sched_profile only(const char *actions)
{
    static char text[64];
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    snprintf(text, sizeof text, "%s", actions);
    profile.actions = text;
    profile.evict_grace_ms = -1;
    return profile;
}

/** Give what is free until nothing changes. */
static void allocate(struct test_cluster *cluster)
{
    for (int round = 0;; round++) {
        ck_assert_int_lt(round, ROUNDS_MAX);
        struct weir_sched_profile profile = only("allocate");
        struct weir_sched_plan *plan = test_plan(cluster, &profile);
        ck_assert_ptr_nonnull(plan);
        int32_t n = plan->n_actions;
        apply(cluster, plan);
        weir_sched_plan_destroy(plan);
        if (n == 0) {
            return;
        }
    }
}

static bool has_evictions(const struct weir_sched_plan *plan)
{
    bool is_any = false;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        is_any = is_any || plan->actions[i].kind == WEIR_SCHED_EVICT;
    }
    return is_any;
}

/** One plan of one kind. @return Whether it evicts. */
static bool step(struct test_cluster *cluster, const char *actions, char kind)
{
    allocate(cluster);
    struct weir_sched_profile profile = only(actions);
    struct weir_sched_plan *plan = test_plan(cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    struct placed before = placed_of(cluster);
    bool evicts = has_evictions(plan);
    apply(cluster, plan);
    struct placed after = placed_of(cluster);
    if (evicts && !loses(cluster, &before, &after)) {
        check_moves(cluster, &before, &after);
    } else if (evicts && kind == 'p') {
        check_preemption(cluster, &before, &after);
    } else if (evicts) {
        ck_assert_int_eq(kind, 'r');
        take_back_lent(cluster, plan, &before, &after);
        check_reclaim(cluster, plan, &before, &after);
    }
    weir_sched_plan_destroy(plan);
    return evicts;
}

/** More work than fits, of which a part came when the rest was running. */
static void make_cluster(struct test_cluster *cluster, uint64_t seed)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 23);
    test_cluster_random(cluster, &rng, 8);
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        job->created_ms = TEST_NOW_MS - HOUR_MS * (1 + (int64_t)weir_rng_below(&rng, 8));
        job->checkpoint_ms = TEST_NOW_MS;
    }
    for (int32_t j = cluster->snapshot.n_jobs / 2; j < cluster->snapshot.n_jobs; j++) {
        for (int32_t t = 0; t < cluster->jobs[j].n_tasks; t++) {
            cluster->tasks[cluster->jobs[j].first_task + t].state = WEIR_SCHED_GATED;
        }
    }
    allocate(cluster);
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        struct weir_sched_task *task = &cluster->tasks[t];
        task->state = task->state == WEIR_SCHED_GATED ? WEIR_SCHED_PENDING : task->state;
    }
}

START_TEST(each_step_that_evicts_improves_its_quantity_and_they_come_to_an_end)
{
    struct test_cluster cluster;
    make_cluster(&cluster, (uint64_t)_i);
    int n_steps = 0, n_idle = 0;
    for (; n_idle < 3 && n_steps < 3 * ROUNDS_MAX; n_steps++) {
        static const char *const actions[] = {"allocate,consolidation", "allocate,reclaim",
                                              "allocate,preempt"};
        bool evicts = step(&cluster, actions[n_steps % 3], actions[n_steps % 3][9]);
        n_idle = evicts ? 0 : n_idle + 1;
    }
    if (n_idle < 3) {
        printf("seed %d does not come to rest\n", _i);
    }
    ck_assert_int_eq(n_idle, 3);
    test_cluster_fini(&cluster);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("eviction",
                     {each_step_that_evicts_improves_its_quantity_and_they_come_to_an_end, seeds()})
