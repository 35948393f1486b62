/**
 * For measurements: a cluster that lives. Nodes with eight devices of three models, forty queues in
 * two levels, eighty templates of jobs (CPUs alone, shares of a device, one device to eight,
 * gangs), most of which run while some wait. A step carries a plan out, ends some of what runs and
 * lets as many new jobs arrive as keep the number of those that wait.
 */
#ifndef SCHED_BENCH_WORKLOAD_H
#define SCHED_BENCH_WORKLOAD_H

#include "sched/test/test_workload.h"

#define WORKLOAD_TEMPLATES   80
#define WORKLOAD_DEPARTMENTS 8
#define WORKLOAD_TEAMS       4 /* Of each department. */

struct workload_template {
    int32_t n_tasks, n_devices, device_milli;
    int64_t cpu_milli, memory_bytes;
    int32_t model; /**< Of the devices; -1: any. */
    bool is_cpu_only;
};

struct workload_size {
    int32_t n_nodes, n_tasks, n_waiting;
    int32_t n_ends; /**< Tasks that end in a step, about. */
};

struct workload {
    struct test_cluster cluster;
    struct workload_size size;
    struct weir_rng rng;
    struct workload_template templates[WORKLOAD_TEMPLATES];
    int32_t leaves[WORKLOAD_DEPARTMENTS * WORKLOAD_TEAMS];
    int64_t n_made; /**< Jobs so far. */
    int32_t tasks_max, jobs_max;
};

/** All jobs wait at first: about n_tasks tasks, to be placed by the first plans. */
void workload_init(struct workload *workload, const struct workload_size *size, uint64_t seed);
void workload_fini(struct workload *workload);

/** Carry the plan out and let time pass. */
void workload_step(struct workload *workload, const struct weir_sched_plan *plan);

/** Tasks that run. */
int32_t workload_count_running(const struct workload *workload);

#endif
