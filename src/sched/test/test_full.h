/** For tests: random clusters with everything that a snapshot can say of nodes, queues and jobs. */
#ifndef WEIR_SCHED_TEST_FULL_H
#define WEIR_SCHED_TEST_FULL_H

#include "sched/test/test_workload.h"

#define FULL_MIG       "mig-1g.10gb"
#define FULL_MINUTE_MS INT64_C(60000)

static const struct weir_sched_taint full_taint = {"team", "blue"};
static const struct weir_sched_toleration full_toleration = {"team", NULL};
static const struct weir_sched_label full_selectors[] = {{"disk", "ssd"}};
static const struct weir_sched_extra full_extra = {FULL_MIG, 4, 125};
static const struct weir_sched_extra full_wants[] = {{FULL_MIG, 1, 0}, {FULL_MIG, 2, 0}};
static const char *const full_levels[] = {"zone", "rack"};
static const struct weir_sched_topology full_topology = {"tree", full_levels, 2};

static inline void full_nodes(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        struct weir_sched_node *node = &cluster->nodes[i];
        struct weir_sched_label *labels =
            WEIR_ARENA_ARRAY(&cluster->arena, 3, struct weir_sched_label);
        labels[0] = (struct weir_sched_label){
            "zone", weir_arena_printf(&cluster->arena, "z%d", (int)i / 4)};
        labels[1] = (struct weir_sched_label){
            "rack", weir_arena_printf(&cluster->arena, "r%d", (int)i / 2)};
        labels[2] = full_selectors[0];
        node->labels = labels;
        node->n_labels = weir_rng_below(rng, 2) == 0 ? 3 : 2;
        node->n_taints = weir_rng_below(rng, 5) == 0;
        node->taints = &full_taint;
        node->n_extras = weir_rng_below(rng, 3) == 0;
        node->extras = &full_extra;
        node->is_whole_only = weir_rng_below(rng, 6) == 0;
        node->is_cordoned = weir_rng_below(rng, 12) == 0;
        node->n_tasks_max = weir_rng_below(rng, 4) == 0 ? 3 : WEIR_SCHED_UNLIMITED;
        node->device_memory_bytes = (int64_t)(weir_rng_below(rng, 2) == 0 ? 80 : 40) << 30;
        if (weir_rng_below(rng, 6) == 0) {
            node->closed_from_ms =
                TEST_NOW_MS + FULL_MINUTE_MS * ((int64_t)weir_rng_below(rng, 60) - 20);
            node->closed_until_ms = node->closed_from_ms + 15 * FULL_MINUTE_MS;
        }
    }
}

/** Some of the nodes have two NUMA zones with half the devices and too few CPUs for all tasks. */
static inline void full_zones(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        struct weir_sched_node *node = &cluster->nodes[i];
        struct weir_sched_numa_zone *zones =
            WEIR_ARENA_ARRAY(&cluster->arena, 2, struct weir_sched_numa_zone);
        int32_t half = node->n_devices / 2;
        zones[0] = (struct weir_sched_numa_zone){3000, -1, half};
        zones[1] = (struct weir_sched_numa_zone){2000, -1, node->n_devices - half};
        if (weir_rng_below(rng, 3) == 0) {
            node->zones = zones;
            node->n_zones = 2;
            node->numa_policy = (enum weir_sched_numa_policy)weir_rng_below(rng, 4);
        }
    }
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &cluster->jobs[j];
        bool is_aligned = weir_rng_below(rng, 3) == 0;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            cluster->tasks[t].demand.numa_aligned = is_aligned;
        }
    }
}

static inline void full_queues(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        struct weir_sched_queue *queue = &cluster->queues[q];
        queue->preempt_min_run_ms =
            weir_rng_below(rng, 3) == 0 ? FULL_MINUTE_MS * (int64_t)weir_rng_below(rng, 5) : -1;
        queue->reclaim_min_run_ms =
            weir_rng_below(rng, 3) == 0 ? FULL_MINUTE_MS * (int64_t)weir_rng_below(rng, 5) : -1;
        if (weir_rng_below(rng, 3) == 0) {
            struct weir_sched_timed_quota *timed =
                WEIR_ARENA_ARRAY(&cluster->arena, 1, struct weir_sched_timed_quota);
            *timed = (struct weir_sched_timed_quota){
                .days = (int32_t)weir_rng_below(rng, 128),
                .from_minute = 20 * (int32_t)weir_rng_below(rng, 72),
                .until_minute = 20 * (int32_t)weir_rng_below(rng, 72)};
            memcpy(timed->shares, queue->shares, sizeof timed->shares);
            struct weir_sched_share *share = &timed->shares[WEIR_SCHED_ACCELERATOR];
            share->quota = 1000 * (int64_t)weir_rng_below(rng, 10);
            share->limit =
                weir_rng_below(rng, 2) == 0 ? -1 : 1000 * (int64_t)weir_rng_below(rng, 12);
            queue->timed_quotas = timed;
            queue->n_timed_quotas = 1;
        }
    }
    (void)weir_rng_below(rng, 5); /* So that a seed's cluster is that of the plans before. */
}

/** Two sub-groups below a root, each with half of the tasks, which may have to lie together. */
static inline void full_groups(struct test_cluster *cluster, struct weir_rng *rng,
                               struct weir_sched_job *job)
{
    struct weir_sched_group *groups = WEIR_ARENA_ARRAY(&cluster->arena, 3, struct weir_sched_group);
    bool is_tree = job->n_tasks > 1 && weir_rng_below(rng, 2) == 0;
    job->n_groups = is_tree ? 3 : 1;
    job->groups = groups;
    for (int32_t g = 0; g < job->n_groups; g++) {
        groups[g] = (struct weir_sched_group){.name = "group",
                                              .parent = g == 0 ? WEIR_SCHED_NONE : 0,
                                              .min_member = WEIR_SCHED_UNLIMITED,
                                              .topology = WEIR_SCHED_NONE,
                                              .required_level = WEIR_SCHED_NONE,
                                              .preferred_level = WEIR_SCHED_NONE};
        if (weir_rng_below(rng, 2) == 0) {
            groups[g].topology = 0;
            groups[g].required_level = (int32_t)weir_rng_below(rng, 3) - 1;
            groups[g].preferred_level = (int32_t)weir_rng_below(rng, 3) - 1;
        }
    }
    int32_t half = job->n_tasks / 2;
    if (is_tree) {
        groups[0].min_member = weir_rng_below(rng, 2) == 0 ? 1 : WEIR_SCHED_UNLIMITED;
        groups[1].min_member = 1 + (int32_t)weir_rng_below(rng, (uint64_t)half);
        for (int32_t t = 0; t < job->n_tasks; t++) {
            cluster->tasks[job->first_task + t].group = t < half ? 1 : 2;
        }
    }
}

static inline void full_jobs(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        uint64_t kind = weir_rng_below(rng, 6);
        bool is_tolerant = weir_rng_below(rng, 2) == 0, is_picky = weir_rng_below(rng, 6) == 0;
        int32_t extra = (int32_t)weir_rng_below(rng, 2);
        int64_t memory = (int64_t)(4 + weir_rng_below(rng, 40)) << 30;
        job->preemption_delay_ms = weir_rng_below(rng, 4) == 0
                                       ? 2000000 + FULL_MINUTE_MS * (int64_t)weir_rng_below(rng, 9)
                                       : 0;
        job->expected_run_ms =
            weir_rng_below(rng, 3) == 0 ? FULL_MINUTE_MS * (int64_t)weir_rng_below(rng, 50) : 0;
        if (weir_rng_below(rng, 8) == 0 && job->preemptibility == WEIR_SCHED_PREEMPTIBLE) {
            job->preemptibility = WEIR_SCHED_SEMI_PREEMPTIBLE;
        }
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            struct weir_sched_task *task = &cluster->tasks[t];
            task->tolerations = &full_toleration;
            task->n_tolerations = is_tolerant;
            task->selector = full_selectors;
            task->n_selector = is_picky;
            if (kind == 0) {
                task->demand.n_devices = task->demand.device_milli = 0;
                task->demand.extras = &full_wants[extra];
                task->demand.n_extras = 1;
            } else if (kind == 1 && task->demand.n_devices > 0) {
                task->demand.n_devices = 1;
                task->demand.device_milli = 0;
                task->demand.device_memory_bytes = memory;
            }
        }
        if (weir_rng_below(rng, 4) == 0) {
            full_groups(cluster, rng, job);
        }
    }
}

static inline void full_reservations(struct test_cluster *cluster, struct weir_rng *rng)
{
    struct weir_sched_reservation *all =
        WEIR_ARENA_ARRAY(&cluster->arena, 2, struct weir_sched_reservation);
    int32_t *nodes = WEIR_ARENA_ARRAY(&cluster->arena, 2, int32_t);
    int32_t n = (int32_t)weir_rng_below(rng, 3);
    for (int32_t i = 0; i < n; i++) {
        nodes[i] = (int32_t)weir_rng_below(rng, (uint64_t)cluster->snapshot.n_nodes);
        int64_t from = TEST_NOW_MS + FULL_MINUTE_MS * ((int64_t)weir_rng_below(rng, 60) - 20);
        bool is_job = weir_rng_below(rng, 2) == 0;
        all[i] = (struct weir_sched_reservation){
            .name = "kept",
            .queue = is_job ? WEIR_SCHED_NONE
                            : (int32_t)weir_rng_below(rng, (uint64_t)cluster->snapshot.n_queues),
            .job = is_job ? (int32_t)weir_rng_below(rng, (uint64_t)cluster->snapshot.n_jobs)
                          : WEIR_SCHED_NONE,
            .from_ms = from,
            .until_ms = from + 20 * FULL_MINUTE_MS,
            .nodes = &nodes[i],
            .n_nodes = 1};
    }
    cluster->snapshot.reservations = all;
    cluster->snapshot.n_reservations = n;
}

/** Make a random cluster rich; test_workload_random goes before. */
static inline void test_full_random(struct test_cluster *cluster, struct weir_rng *rng)
{
    cluster->snapshot.topologies = &full_topology;
    cluster->snapshot.n_topologies = 1;
    full_nodes(cluster, rng);
    full_queues(cluster, rng);
    full_jobs(cluster, rng);
    full_reservations(cluster, rng);
    full_zones(cluster, rng);
}

/** Some nodes on which no device is taken have only a part of each. */
static inline void test_full_parts(struct test_cluster *cluster, struct weir_rng *rng)
{
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        int32_t milli = weir_rng_below(rng, 2) == 0 ? 1 + (int32_t)weir_rng_below(rng, 999) : 0;
        for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
            const struct weir_sched_task *task = &cluster->tasks[t];
            bool is_there =
                task->node == i || (task->nomination != NULL && task->nomination->node == i);
            milli = is_there && task->demand.n_devices > 0 ? 0 : milli;
        }
        cluster->nodes[i].device_milli = milli;
    }
}

#endif
