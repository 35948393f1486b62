/** For tests: a cluster that carries plans out as a live one does, with the time that takes. */
#ifndef WEIR_SCHED_TEST_WORKLOAD_H
#define WEIR_SCHED_TEST_WORKLOAD_H

#include "base/test_main.h"
#include "sched/test/test_cluster.h"

#define TEST_STEP_MS 30000

/** Give the jobs users, checkpoints, measured use and time limits. */
static inline void test_workload_random(struct test_cluster *cluster, struct weir_rng *rng)
{
    static const char *const users[] = {"ann", "bea", "cem", NULL};
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        job->user = users[weir_rng_below(rng, 4)];
        job->can_checkpoint = weir_rng_below(rng, 2) == 0;
        job->utilisation_pct = (int32_t)weir_rng_below(rng, 100) - 1;
        job->idle_since_ms =
            weir_rng_below(rng, 4) == 0 ? TEST_NOW_MS - (int64_t)weir_rng_below(rng, 7200000) : 0;
        job->time_limit_ms =
            weir_rng_below(rng, 4) == 0 ? 60000 * (1 + (int64_t)weir_rng_below(rng, 90)) : 0;
    }
}

/**
 * Let a step of time pass: some tasks that must leave leave, some checkpoint requests are
 * acknowledged.
 */
static inline void test_workload_pass(struct test_cluster *cluster, struct weir_rng *rng)
{
    cluster->snapshot.now_ms += TEST_STEP_MS;
    for (int32_t j = 0; j < cluster->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &cluster->jobs[j];
        bool is_requested = false, is_there = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            struct weir_sched_task *task = &cluster->tasks[t];
            if (task->state == WEIR_SCHED_RELEASING && weir_rng_below(rng, 2) == 0) {
                const struct weir_sched_nomination *nomination = task->nomination;
                task->state = nomination != NULL ? WEIR_SCHED_PIPELINED : WEIR_SCHED_PENDING;
                task->node = nomination != NULL ? nomination->node : WEIR_SCHED_NONE;
                task->devices =
                    nomination != NULL && task->demand.n_devices > 0 ? nomination->devices : NULL;
                task->zones = nomination != NULL ? nomination->zones : 0;
                task->nomination = NULL;
            }
            is_requested = is_requested || task->is_leaving;
            is_there = is_there || task->state == WEIR_SCHED_RUNNING;
        }
        job->checkpoint_requested_ms = is_requested ? job->checkpoint_requested_ms : 0;
        job->evict_acknowledged =
            is_requested && (job->evict_acknowledged || weir_rng_below(rng, 4) == 0);
        job->started_ms = is_there ? job->started_ms : 0;
    }
}

static inline void test_workload_apply(struct test_cluster *cluster,
                                       const struct weir_sched_plan *plan, struct weir_rng *rng)
{
    test_carry_out(cluster, plan);
    test_workload_pass(cluster, rng);
}

/** Whether anything is still on its way. */
static inline bool test_workload_moves(const struct test_cluster *cluster)
{
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        const struct weir_sched_task *task = &cluster->tasks[t];
        if (task->is_leaving || task->state == WEIR_SCHED_RELEASING ||
            task->state == WEIR_SCHED_PIPELINED) {
            return true;
        }
    }
    return false;
}

static inline struct weir_sched_profile test_profile_default(void)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, NULL), WEIR_OK);
    return profile;
}

/** A job of one task that runs with n_devices from the first on, for ten minutes already. */
static inline struct weir_sched_job *test_running_job(struct test_cluster *cluster, int32_t queue,
                                                      int32_t node, int n_devices, int first)
{
    struct weir_sched_job *job = test_job(cluster, queue, 50, 1, n_devices);
    int32_t *devices = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n_devices, int32_t);
    for (int d = 0; d < n_devices; d++) {
        devices[d] = first + d;
    }
    struct weir_sched_task *task = &cluster->tasks[job->first_task];
    task->state = WEIR_SCHED_RUNNING;
    task->node = node;
    task->devices = devices;
    job->started_ms = TEST_NOW_MS - 600000;
    return job;
}

static inline const struct weir_sched_action *
test_action(const struct weir_sched_plan *plan, int32_t task, enum weir_sched_action_kind kind)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].task == task && plan->actions[i].kind == kind) {
            return &plan->actions[i];
        }
    }
    return NULL;
}

#endif
