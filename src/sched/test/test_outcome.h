/**
 * For tests: what a plan makes of each task, worked out from its actions alone. Oracle of the
 * property tests.
 */
#ifndef WEIR_SCHED_TEST_OUTCOME_H
#define WEIR_SCHED_TEST_OUTCOME_H

#include "sched/test/test_workload.h"

#include <check.h>

/** What a plan makes of each task. */
struct outcome {
    int32_t now;    /**< Node on which it is while all that leaves is still there; -1. */
    int32_t future; /**< Node on which it will be; -1. */
    bool is_evicted, is_placed;
    bool was_going; /**< An earlier plan evicted or asked it. */
    enum weir_sched_evict_reason reason;
    const int32_t *now_devices, *future_devices;
    uint32_t now_zones, future_zones; /**< 0: not known. */
};

static inline struct outcome *outcomes_of(struct test_cluster *cluster,
                                          const struct weir_sched_plan *plan)
{
    int32_t n = cluster->snapshot.n_tasks;
    struct outcome *outcomes = WEIR_ARENA_ARRAY(&cluster->arena, (size_t)n + 1, struct outcome);
    for (int32_t t = 0; t < n; t++) {
        const struct weir_sched_task *task = &cluster->tasks[t];
        struct outcome *outcome = &outcomes[t];
        *outcome = (struct outcome){.now = -1, .future = -1};
        outcome->was_going = task->is_leaving || task->state == WEIR_SCHED_RELEASING;
        if (task->state == WEIR_SCHED_RUNNING || outcome->was_going) {
            outcome->now = task->node;
            outcome->now_devices = task->devices;
            outcome->now_zones = task->zones;
        }
        if (outcome->was_going && task->nomination != NULL) {
            outcome->future = task->nomination->node;
            outcome->future_devices = task->nomination->devices;
            outcome->future_zones = task->nomination->zones;
        } else if (weir_sched_task_has_node(task->state) && !outcome->was_going) {
            outcome->future = task->node;
            outcome->future_devices = task->devices;
            outcome->future_zones = task->zones;
        }
    }
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        struct outcome *outcome = &outcomes[action->task];
        if (outcome->was_going) { /* Nobody is asked twice, and what is promised stays so. */
            ck_assert_int_eq(action->kind, WEIR_SCHED_EVICT);
            ck_assert_int_eq(outcome->now, action->node);
        } else if (action->kind == WEIR_SCHED_EVICT ||
                   action->kind == WEIR_SCHED_REQUEST_CHECKPOINT) {
            ck_assert_int_eq(outcome->now, action->node);
            outcome->future = -1;
            outcome->is_evicted = true;
            outcome->reason = action->reason;
        } else {
            bool is_reserved = cluster->tasks[action->task].state == WEIR_SCHED_PIPELINED;
            ck_assert_int_eq(outcome->future, is_reserved ? action->node : -1);
            outcome->future = action->node;
            outcome->future_devices = action->devices;
            outcome->future_zones = action->zones;
            outcome->is_placed = true;
            if (action->kind == WEIR_SCHED_BIND) {
                outcome->now = action->node;
                outcome->now_devices = action->devices;
                outcome->now_zones = action->zones;
            }
        }
    }
    return outcomes;
}

static inline bool test_is_same_plan(const struct weir_sched_plan *l,
                                     const struct weir_sched_plan *r)
{
    bool is_same = l->n_actions == r->n_actions && l->n_waits == r->n_waits &&
                   l->n_decisions == r->n_decisions;
    for (int32_t i = 0; is_same && i < l->n_actions; i++) {
        const struct weir_sched_action *a = &l->actions[i], *b = &r->actions[i];
        is_same = a->kind == b->kind && a->task == b->task && a->node == b->node &&
                  a->by_job == b->by_job && a->n_devices == b->n_devices &&
                  (a->n_devices == 0 ||
                   memcmp(a->devices, b->devices, (size_t)a->n_devices * sizeof(int32_t)) == 0);
    }
    return is_same;
}

/** A plan of which the same input gives the same again. */
static inline struct weir_sched_plan *test_plan_twice(const struct test_cluster *cluster,
                                                      const struct weir_sched_profile *profile)
{
    struct weir_sched_plan *plan = test_plan(cluster, profile);
    struct weir_sched_plan *again = test_plan(cluster, profile);
    ck_assert(plan != NULL && again != NULL);
    ck_assert(test_is_same_plan(plan, again));
    weir_sched_plan_destroy(again);
    return plan;
}

#endif
