#include "sched_cases/world.h"

#include "sched/apply.h"

#include <string.h>

#define LONG_MS ((int64_t)86400 * 1000)

static bool is_state(const struct world_task *task, const char *state)
{
    return strcmp(task->state, state) == 0;
}

static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)err;
    struct world *world = context;
    for (int32_t i = 0; i < part->n_actions; i++) {
        world->states[part->actions[i]->task].state = "Releasing";
    }
    world->n_evictions += part->n_actions;
    return WEIR_OK;
}

static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)err;
    struct world *world = context;
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        struct world_task *task = &world->states[action->task];
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
    return WEIR_OK;
}

weir_status world_run(struct world *world, struct weir_error *err)
{
    const struct weir_sched_executor executor = {.evict = evict, .place = place, .context = world};
    struct weir_sched_plan *plan = NULL;
    WEIR_TRY(weir_sched_plan(&world->snapshot, &world->profile, &plan, err));
    weir_status status = weir_sched_apply(&world->snapshot, plan, &executor, err);
    weir_sched_plan_destroy(plan);
    return status;
}

void world_advance(struct world *world)
{
    for (int32_t i = 0; i < world->snapshot.n_tasks; i++) {
        struct world_task *state = &world->states[i];
        struct weir_sched_task *task = &world->tasks[i];
        if (is_state(state, "Binding")) {
            state->state = "Running";
            task->state = WEIR_SCHED_RUNNING;
            task->node = state->node;
            task->devices = task->demand.n_devices > 0 ? state->devices : NULL;
            task->zones = state->zones;
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

static bool is_short(const struct world *world, const struct weir_sched_job *job, int32_t group,
                     int32_t min_member)
{
    int32_t n = 0, n_running = 0;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (job->n_groups == 0 || world->tasks[t].group == group) {
            n++;
            n_running += world->tasks[t].state == WEIR_SCHED_RUNNING;
        }
    }
    return n > 0 && n_running < (min_member < 0 ? n : min_member);
}

void world_mark_stale(struct world *world)
{
    for (int32_t j = 0; j < world->snapshot.n_jobs; j++) {
        struct weir_sched_job *job = &world->jobs[j];
        bool is_stale = job->n_groups == 0 && is_short(world, job, 0, job->min_member);
        for (int32_t g = 0; g < job->n_groups; g++) {
            is_stale = is_stale || is_short(world, job, g, job->groups[g].min_member);
        }
        job->stale_since_ms = is_stale ? world->snapshot.now_ms - LONG_MS : 0;
    }
}
