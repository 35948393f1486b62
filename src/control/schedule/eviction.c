#include "control/schedule/eviction.h"

#include "job/elastic.h"

void evictions_begin(struct evictions *evictions, const struct weir_sched_plan *plan,
                     struct weir_arena *arena)
{
    evictions->items = WEIR_ARENA_ARRAY(arena, (size_t)plan->n_actions + 1, struct eviction);
    evictions->n = 0;
}

static const char *tell_why(const struct snapshot *snapshot, const struct weir_sched_action *action,
                            struct weir_arena *arena)
{
    const struct weir_sched_snapshot *rows = &snapshot->rows;
    const struct weir_sched_job *by = action->by_job >= 0 ? &rows->jobs[action->by_job] : NULL;
    switch (action->reason) {
    case WEIR_SCHED_EVICT_RECLAIM:
        return by == NULL ? "reclaimed by another queue"
                          : weir_arena_printf(arena, "reclaimed by queue %s",
                                              rows->queues[by->queue].name);
    case WEIR_SCHED_EVICT_PREEMPT:
        return by == NULL ? "preempted by a job of higher priority"
                          : weir_arena_printf(arena, "preempted by job %s", by->name);
    case WEIR_SCHED_EVICT_AFTER_GRACE:
        return NULL;
    default:
        return "stopped to make room";
    }
}

/* Does an elastic gang only lose some of its tasks? */
static bool shrinks(const struct weir_sched_part *part, const struct snapshot_job *job)
{
    int64_t n_left = 0;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        n_left += job->phases[i] == WEIR_TASK_STARTING || job->phases[i] == WEIR_TASK_RUNNING;
    }
    n_left -= part->n_actions;
    return weir_job_is_elastic(&job->state) && n_left >= job->state.job.min_tasks;
}

void evictions_take(struct evictions *evictions, const struct snapshot *snapshot,
                    const struct weir_sched_part *part, struct weir_arena *arena)
{
    struct snapshot_job *job = snapshot->tasks[part->actions[0]->task].job;
    bool is_single = weir_job_has_independent_tasks(&job->state) || shrinks(part, job);
    int32_t n = is_single ? part->n_actions : 1, last = 0;
    while (last < part->n_actions - 1 && part->actions[last]->kind != WEIR_SCHED_EVICT) {
        last++; /* A gang is evicted if any of its tasks is. */
    }
    for (int32_t i = 0; i < n; i++) {
        const struct weir_sched_action *action = part->actions[is_single ? i : last];
        int32_t task = snapshot->tasks[action->task].task;
        evictions->items[evictions->n++] =
            (struct eviction){.job = job,
                              .task = is_single ? job->state.tasks[task].id : NULL,
                              .text = tell_why(snapshot, action, arena),
                              .is_request = action->kind == WEIR_SCHED_REQUEST_CHECKPOINT};
    }
}

/* Replicas of one service are several: the first moves its revision on. */
static bool is_same_job(const struct evictions *evictions, size_t first, size_t i)
{
    return i > first && evictions->items[i].job == evictions->items[i - 1].job &&
           evictions->items[i - 1].is_told;
}

weir_status evictions_write(struct evictions *evictions, size_t first, size_t n,
                            struct control *control, struct weir_txn *txn, struct weir_error *err)
{
    for (size_t i = first; i < first + n; i++) {
        struct eviction *item = &evictions->items[i];
        const struct weir_job *job = &item->job->state.job;
        const struct weir_job_event event = {.type = item->is_request ? WEIR_JOB_EVENT_ASK
                                                                      : WEIR_JOB_EVENT_EVICT,
                                             .task = item->task,
                                             .text = item->text};
        int64_t revision = is_same_job(evictions, first, i) ? -1 : job->revision;
        WEIR_TRY(control_job_evict(control, txn, job->id, revision, &event, &item->is_told, err));
    }
    return WEIR_OK;
}

int32_t evictions_n_told(const struct evictions *evictions)
{
    int32_t n = 0;
    for (size_t i = 0; i < evictions->n; i++) {
        const struct eviction *item = &evictions->items[i];
        size_t n_tasks = item->task != NULL ? 1 : item->job->state.n_tasks;
        n += item->is_told ? (int32_t)n_tasks : 0;
    }
    return n;
}
