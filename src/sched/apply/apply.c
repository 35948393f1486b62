#include "sched/apply.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

/* One step of a plan, sorted by job. */
struct step {
    const struct weir_sched_snapshot *snapshot;
    const struct weir_sched_plan *plan;
    int32_t *job_of;                         /* Per task. */
    int32_t *n_of;                           /* Per job: its actions in this step. */
    int32_t *next;                           /* Per job: where its next action is put. */
    int32_t *jobs;                           /* In the order of their first action. */
    const struct weir_sched_action **sorted; /* By job, in the order of `jobs`. */
    int32_t n_jobs;
};

static void step_fini(struct step *step)
{
    free(step->job_of);
    free(step->n_of);
    free(step->next);
    free(step->jobs);
    free((void *)step->sorted);
}

static weir_status step_init(struct step *step, const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_plan *plan, struct weir_error *err)
{
    size_t n_jobs = (size_t)snapshot->n_jobs + 1;
    *step = (struct step){
        .snapshot = snapshot,
        .plan = plan,
        .job_of = calloc((size_t)snapshot->n_tasks + 1, sizeof(int32_t)),
        .n_of = calloc(n_jobs, sizeof(int32_t)),
        .next = calloc(n_jobs, sizeof(int32_t)),
        .jobs = calloc(n_jobs, sizeof(int32_t)),
        .sorted = calloc((size_t)plan->n_actions + 1, sizeof(struct weir_sched_action *)),
    };
    if (step->job_of == NULL || step->n_of == NULL || step->next == NULL || step->jobs == NULL ||
        step->sorted == NULL) {
        step_fini(step);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to carry out a plan of %d actions",
                              plan->n_actions);
    }
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const struct weir_sched_job *job = &snapshot->jobs[j];
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            step->job_of[t] = j;
        }
    }
    return WEIR_OK;
}

static bool is_eviction(const struct weir_sched_action *action)
{
    return action->kind == WEIR_SCHED_EVICT || action->kind == WEIR_SCHED_REQUEST_CHECKPOINT;
}

/* Sort the actions of one step by job: a counting sort, so that their order stays. */
static void step_sort(struct step *step, bool evicts)
{
    step->n_jobs = 0;
    memset(step->n_of, 0, ((size_t)step->snapshot->n_jobs + 1) * sizeof *step->n_of);
    for (int32_t i = 0; i < step->plan->n_actions; i++) {
        const struct weir_sched_action *action = &step->plan->actions[i];
        int32_t job = step->job_of[action->task];
        if (is_eviction(action) == evicts && step->n_of[job]++ == 0) {
            step->jobs[step->n_jobs++] = job;
        }
    }
    for (int32_t i = 0, at = 0; i < step->n_jobs; i++) {
        step->next[step->jobs[i]] = at;
        at += step->n_of[step->jobs[i]];
    }
    for (int32_t i = 0; i < step->plan->n_actions; i++) {
        const struct weir_sched_action *action = &step->plan->actions[i];
        if (is_eviction(action) == evicts) {
            step->sorted[step->next[step->job_of[action->task]]++] = action;
        }
    }
}

static weir_status step_run(struct step *step, bool evicts, weir_sched_part_fn fn, void *context,
                            struct weir_error *err)
{
    step_sort(step, evicts);
    for (int32_t i = 0, at = 0; i < step->n_jobs; i++) {
        struct weir_sched_part part = {.job = step->jobs[i],
                                       .actions = step->sorted + at,
                                       .n_actions = step->n_of[step->jobs[i]]};
        at += part.n_actions;
        WEIR_TRY(fn(context, &part, err));
    }
    return WEIR_OK;
}

static weir_status check_executor(const struct weir_sched_plan *plan,
                                  const struct weir_sched_executor *executor,
                                  struct weir_error *err)
{
    for (int32_t i = 0; i < plan->n_actions; i++) {
        bool evicts = is_eviction(&plan->actions[i]);
        if ((evicts ? executor->evict : executor->place) == NULL) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "the plan asks to %s tasks, which nobody here does",
                                  evicts ? "evict" : "place");
        }
    }
    return WEIR_OK;
}

bool weir_sched_part_is_bound(const struct weir_sched_part *part)
{
    for (int32_t i = 0; i < part->n_actions; i++) {
        if (part->actions[i]->kind != WEIR_SCHED_BIND) {
            return false;
        }
    }
    return true;
}

weir_status weir_sched_apply(const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_plan *plan,
                             const struct weir_sched_executor *executor, struct weir_error *err)
{
    struct step step;
    WEIR_TRY(check_executor(plan, executor, err));
    WEIR_TRY(step_init(&step, snapshot, plan, err));
    weir_status status = step_run(&step, true, executor->evict, executor->context, err);
    if (status == WEIR_OK) {
        status = step_run(&step, false, executor->place, executor->context, err);
    }
    for (int32_t i = 0; status == WEIR_OK && executor->wait != NULL && i < plan->n_waits; i++) {
        status = executor->wait(executor->context, &plan->waits[i], err);
    }
    step_fini(&step);
    return status;
}

/* ---- on rows --------------------------------------------------------------------------------- */

static const int32_t *copy_devices(const struct weir_sched_rows *rows,
                                   const struct weir_sched_action *action)
{
    if (action->n_devices == 0) {
        return NULL;
    }
    return (const int32_t *)(const void *)weir_arena_memdup(
        rows->arena, action->devices, (size_t)action->n_devices * sizeof(int32_t));
}

static weir_status evict_rows(void *context, const struct weir_sched_part *part,
                              struct weir_error *err)
{
    (void)err;
    const struct weir_sched_rows *rows = context;
    struct weir_sched_job *job = &rows->jobs[part->job];
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        struct weir_sched_task *task = &rows->tasks[action->task];
        bool is_final = action->reason == WEIR_SCHED_EVICT_IDLE ||
                        action->reason == WEIR_SCHED_EVICT_TIME_LIMIT;
        task->is_leaving = action->kind == WEIR_SCHED_REQUEST_CHECKPOINT;
        if (task->is_leaving) {
            job->checkpoint_requested_ms = job->checkpoint_requested_ms > 0
                                               ? job->checkpoint_requested_ms
                                               : rows->snapshot->now_ms;
        } else {
            task->state = is_final ? WEIR_SCHED_DONE : WEIR_SCHED_RELEASING;
        }
    }
    return WEIR_OK;
}

static weir_status place_rows(void *context, const struct weir_sched_part *part,
                              struct weir_error *err)
{
    (void)err;
    const struct weir_sched_rows *rows = context;
    struct weir_sched_job *job = &rows->jobs[part->job];
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        struct weir_sched_task *task = &rows->tasks[action->task];
        const int32_t *devices = copy_devices(rows, action);
        bool is_bind = action->kind == WEIR_SCHED_BIND;
        if (!is_bind && (task->is_leaving || task->state == WEIR_SCHED_RELEASING)) {
            struct weir_sched_nomination *nomination =
                WEIR_ARENA_NEW(rows->arena, struct weir_sched_nomination);
            *nomination = (struct weir_sched_nomination){action->node, devices, action->zones};
            task->nomination = nomination;
            continue;
        }
        task->state = is_bind ? WEIR_SCHED_RUNNING : WEIR_SCHED_PIPELINED;
        task->node = action->node;
        task->devices = devices;
        task->zones = action->zones;
        if (is_bind && job->started_ms == 0) {
            job->started_ms = rows->snapshot->now_ms;
        }
    }
    return WEIR_OK;
}

weir_status weir_sched_apply_to_rows(const struct weir_sched_rows *rows,
                                     const struct weir_sched_plan *plan, struct weir_error *err)
{
    const struct weir_sched_executor executor = {
        .evict = evict_rows, .place = place_rows, .context = (void *)rows};
    return weir_sched_apply(rows->snapshot, plan, &executor, err);
}
