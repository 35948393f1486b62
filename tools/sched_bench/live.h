/**
 * For measurements: a cluster that lives. Nodes with eight devices of three models, forty queues in
 * two levels, eighty templates of jobs (CPUs alone, shares of a device, one device to eight,
 * gangs), most of which run while some wait. A step carries a plan out, ends some of what runs and
 * lets as many new jobs arrive as keep the number of those that wait.
 */
#ifndef SCHED_BENCH_LIVE_H
#define SCHED_BENCH_LIVE_H

#include "sched/test/test_live.h"

#define LIVE_TEMPLATES   80
#define LIVE_DEPARTMENTS 8
#define LIVE_TEAMS       4 /* Of each department. */

struct live_template {
    int32_t n_tasks, n_devices, device_milli;
    int64_t cpu_milli, memory_bytes;
    int32_t model; /**< Of the devices; -1: any. */
    bool is_cpu_only;
};

struct live_size {
    int32_t n_nodes, n_tasks, n_waiting;
    int32_t n_ends; /**< Tasks that end in a step, about. */
};

struct live {
    struct test_cluster cluster;
    struct live_size size;
    struct weir_rng rng;
    struct live_template templates[LIVE_TEMPLATES];
    int32_t leaves[LIVE_DEPARTMENTS * LIVE_TEAMS];
    int64_t n_made; /**< Jobs so far. */
    int32_t tasks_max, jobs_max;
};

/** All jobs wait at first: about n_tasks tasks, to be placed by the first plans. */
void live_init(struct live *live, const struct live_size *size, uint64_t seed);
void live_fini(struct live *live);

/** Carry the plan out and let time pass. */
void live_step(struct live *live, const struct weir_sched_plan *plan);

/** Tasks that run. */
int32_t live_count_running(const struct live *live);

#endif
