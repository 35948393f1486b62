/** For tests: a cluster put together by hand or at random, and what a plan does to it. */
#ifndef WEIR_SCHED_TEST_CLUSTER_H
#define WEIR_SCHED_TEST_CLUSTER_H

#include "base/arena.h"
#include "base/rng.h"
#include "sched/apply.h"

#include <stdlib.h>
#include <string.h>

#define TEST_NOW_MS ((int64_t)1700000000000)
#define TEST_MAX    100000

struct test_cluster {
    struct weir_arena arena;
    struct weir_sched_snapshot snapshot;
    struct weir_sched_node *nodes;
    struct weir_sched_queue *queues;
    struct weir_sched_job *jobs;
    struct weir_sched_task *tasks;
};

static inline void test_cluster_init(struct test_cluster *cluster, int n_nodes, int n_queues,
                                     int n_jobs, int n_tasks)
{
    memset(cluster, 0, sizeof *cluster);
    weir_arena_init(&cluster->arena, (size_t)1 << 30);
    cluster->nodes = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_nodes, struct weir_sched_node);
    cluster->queues = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_queues, struct weir_sched_queue);
    cluster->jobs = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_jobs, struct weir_sched_job);
    cluster->tasks = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_tasks, struct weir_sched_task);
    cluster->snapshot.nodes = cluster->nodes;
    cluster->snapshot.queues = cluster->queues;
    cluster->snapshot.jobs = cluster->jobs;
    cluster->snapshot.tasks = cluster->tasks;
    cluster->snapshot.now_ms = TEST_NOW_MS;
}

static inline void test_cluster_fini(struct test_cluster *cluster)
{
    weir_arena_fini(&cluster->arena);
}

static inline int32_t test_node(struct test_cluster *cluster, int n_devices)
{
    int32_t i = cluster->snapshot.n_nodes++;
    cluster->nodes[i] =
        (struct weir_sched_node){.name = weir_arena_printf(&cluster->arena, "node-%05d", (int)i),
                                 .n_devices = n_devices,
                                 .n_tasks_max = WEIR_SCHED_UNLIMITED,
                                 .device_memory_bytes = (int64_t)80 << 30,
                                 .cpu_milli = 64000,
                                 .memory_bytes = (int64_t)512 << 30};
    return i;
}

/** Quota, weight and limit in devices; CPU and memory without bound. */
static inline int32_t test_queue(struct test_cluster *cluster, int32_t parent, int quota,
                                 int weight, int limit)
{
    int32_t i = cluster->snapshot.n_queues++;
    struct weir_sched_queue *queue = &cluster->queues[i];
    *queue =
        (struct weir_sched_queue){.name = weir_arena_printf(&cluster->arena, "queue-%d", (int)i),
                                  .parent = parent,
                                  .priority = 100,
                                  .preempt_min_run_ms = -1,
                                  .reclaim_min_run_ms = -1};
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        queue->shares[r] = (struct weir_sched_share){-1, 1, -1};
    }
    queue->shares[WEIR_SCHED_ACCELERATOR] = (struct weir_sched_share){
        quota < 0 ? -1 : quota * 1000LL, weight, limit < 0 ? -1 : limit * 1000LL};
    return i;
}

/** A job of n_tasks pending tasks with n_devices whole devices each; younger than those before. */
static inline struct weir_sched_job *test_job(struct test_cluster *cluster, int32_t queue,
                                              int priority, int n_tasks, int n_devices)
{
    int32_t i = cluster->snapshot.n_jobs++;
    struct weir_sched_job *job = &cluster->jobs[i];
    *job = (struct weir_sched_job){.name = weir_arena_printf(&cluster->arena, "job-%05d", (int)i),
                                   .queue = queue,
                                   .priority = priority,
                                   .preemptibility = priority >= 100 ? WEIR_SCHED_NON_PREEMPTIBLE
                                                                     : WEIR_SCHED_PREEMPTIBLE,
                                   .first_task = cluster->snapshot.n_tasks,
                                   .n_tasks = n_tasks,
                                   .min_member = WEIR_SCHED_UNLIMITED,
                                   .created_ms = TEST_NOW_MS - 1000000 + i,
                                   .stale_grace_ms = INT64_MIN,
                                   .utilisation_pct = -1};
    for (int t = 0; t < n_tasks; t++) {
        struct weir_sched_task *task = &cluster->tasks[cluster->snapshot.n_tasks++];
        *task = (struct weir_sched_task){
            .name = weir_arena_printf(&cluster->arena, "job-%05d-%d", (int)i, t),
            .node = WEIR_SCHED_NONE,
            .demand = {.cpu_milli = 1000,
                       .memory_bytes = (int64_t)4 << 30,
                       .n_devices = n_devices,
                       .device_milli = n_devices > 0 ? WEIR_SCHED_DEVICE : 0}};
    }
    return job;
}

/** Carry out a plan as a live cluster begins to: what takes time is under way. */
static inline void test_carry_out(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    const struct weir_sched_rows rows = {.snapshot = &cluster->snapshot,
                                         .jobs = cluster->jobs,
                                         .tasks = cluster->tasks,
                                         .arena = &cluster->arena};
    if (weir_sched_apply_to_rows(&rows, plan, NULL) != WEIR_OK) {
        abort(); /* Benchmarks run this too, and there is no test that could fail. */
    }
}

/** Carry out a plan in no time: what is bound runs, what is evicted or pipelined waits. The times of
 *  jobs stay as they are. */
static inline void test_apply(struct test_cluster *cluster, const struct weir_sched_plan *plan)
{
    size_t size = (size_t)cluster->snapshot.n_jobs * sizeof *cluster->jobs;
    void *jobs = weir_arena_memdup(&cluster->arena, cluster->jobs, size);
    test_carry_out(cluster, plan);
    memcpy(cluster->jobs, jobs, size);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        struct weir_sched_task *task = &cluster->tasks[plan->actions[i].task];
        if (task->state != WEIR_SCHED_RUNNING) {
            task->state = WEIR_SCHED_PENDING;
            task->node = WEIR_SCHED_NONE;
            task->devices = NULL;
            task->nomination = NULL;
        }
    }
}

static inline struct weir_sched_plan *test_plan(const struct test_cluster *cluster,
                                                const struct weir_sched_profile *profile)
{
    struct weir_sched_plan *plan = NULL;
    struct weir_error err = {0};
    return weir_sched_plan(&cluster->snapshot, profile, &plan, &err) == WEIR_OK ? plan : NULL;
}

/** A cluster of up to n nodes, a tree of queues, and jobs of all kinds, some of which run. */
static inline void test_cluster_random(struct test_cluster *cluster, struct weir_rng *rng, int n)
{
    int n_nodes = 1 + (int)weir_rng_below(rng, (uint64_t)n);
    int n_jobs = 2 + (int)weir_rng_below(rng, (uint64_t)n * 4);
    test_cluster_init(cluster, n_nodes, 16, n_jobs, n_jobs * 24);
    for (int i = 0; i < n_nodes; i++) {
        test_node(cluster, (int)weir_rng_below(rng, 9));
    }
    int32_t leaves[8];
    int n_leaves = 0;
    for (int d = 0; d < 2; d++) {
        int limit = weir_rng_below(rng, 3) == 0 ? (int)weir_rng_below(rng, 20) : -1;
        int32_t parent = test_queue(cluster, -1, (int)weir_rng_below(rng, 16), 1, limit);
        for (int q = 0; q < 3; q++) {
            limit = weir_rng_below(rng, 3) == 0 ? (int)weir_rng_below(rng, 12) : -1;
            leaves[n_leaves++] = test_queue(cluster, parent, (int)weir_rng_below(rng, 8),
                                            (int)weir_rng_below(rng, 4), limit);
            cluster->queues[leaves[n_leaves - 1]].priority += (int)weir_rng_below(rng, 2);
        }
    }
    static const int priorities[] = {50, 50, 75, 100};
    for (int j = 0; j < n_jobs; j++) {
        int n_tasks = weir_rng_below(rng, 2) == 0 ? 1 : 1 + (int)weir_rng_below(rng, 4);
        int n_devices = weir_rng_below(rng, 4) == 0 ? 0 : 1 + (int)weir_rng_below(rng, 4);
        if (weir_rng_below(rng, 8) == 0) { /* A gang that the solver takes in its linear way. */
            n_tasks = 16 + (int)weir_rng_below(rng, 8);
            n_devices = 1;
        }
        struct weir_sched_job *job =
            test_job(cluster, leaves[weir_rng_below(rng, (uint64_t)n_leaves)],
                     priorities[weir_rng_below(rng, 4)], n_tasks, n_devices);
        if (weir_rng_below(rng, 3) == 0) {
            job->min_member = 1 + (int32_t)weir_rng_below(rng, (uint64_t)n_tasks);
        }
        bool is_shared = weir_rng_below(rng, 3) == 0 && n_devices > 0;
        for (int t = 0; t < n_tasks && is_shared; t++) {
            struct weir_sched_demand *demand = &cluster->tasks[job->first_task + t].demand;
            demand->n_devices = 1;
            demand->device_milli = 100 + 100 * (int32_t)weir_rng_below(rng, 9);
        }
    }
}

#endif
