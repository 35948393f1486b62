#include "sched/cases/world.h"

#include <string.h>

static bool is_state(const struct world_task *task, const char *state)
{
    return strcmp(task->state, state) == 0;
}

static void apply(struct world *world, const struct weir_sched_action *action)
{
    struct world_task *task = &world->states[action->task];
    if (action->kind == WEIR_SCHED_EVICT) {
        task->state = "Releasing";
        world->n_evictions++;
        return;
    }
    bool is_bind = action->kind == WEIR_SCHED_BIND;
    task->state = is_bind ? "Binding" : "Pipelined";
    task->node = action->node;
    task->zones = action->zones;
    if (action->n_devices > 0) {
        memcpy(task->devices, action->devices, (size_t)action->n_devices * sizeof(int32_t));
    }
    world->n_binds += is_bind;
    world->n_pipelined += !is_bind;
}

weir_status world_run(struct world *world, struct weir_error *err)
{
    struct weir_sched_plan *plan = NULL;
    WEIR_TRY(weir_sched_plan(&world->snapshot, &world->profile, &plan, err));
    for (int32_t i = 0; i < plan->n_actions; i++) {
        apply(world, &plan->actions[i]);
    }
    weir_sched_plan_destroy(plan);
    return WEIR_OK;
}

void world_settle(struct world *world)
{
    for (int32_t i = 0; i < world->snapshot.n_tasks; i++) {
        struct world_task *state = &world->states[i];
        struct weir_sched_task *task = &world->tasks[i];
        if (is_state(state, "Binding")) {
            state->state = "Running";
            task->state = WEIR_SCHED_RUNNING;
            task->node = state->node;
            task->devices = task->demand.n_devices > 0 ? state->devices : NULL;
        } else if (is_state(state, "Pipelined") ||
                   (is_state(state, "Releasing") && !state->is_deleted_in_test)) {
            state->state = "Pending";
            state->node = WEIR_SCHED_NONE;
            task->state = WEIR_SCHED_PENDING;
            task->node = WEIR_SCHED_NONE;
            task->devices = NULL;
        }
    }
}
