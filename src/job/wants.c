/* What a job wants, and when: which tasks a node, and until when it may run. */
#include "job/array.h"
#include "job/elastic.h"
#include "job/restart.h"

int64_t weir_gang_due_ms(const struct weir_job *job, int64_t now_ms)
{
    return weir_backoff_end_ms(job->due_ms, weir_job_backoff_ms(job->n_restarts), now_ms);
}

static int64_t due_ms_of(const struct weir_job_state *state, const struct weir_task *task,
                         int64_t now_ms)
{
    int64_t backoff_ms =
        state->job.is_array ? weir_job_backoff_ms(task->n_restarts) : weir_replica_backoff_ms(task);
    return weir_backoff_end_ms(task->due_ms, backoff_ms, now_ms);
}

/** Since when the gang is placed; 0: it is not. */
static int64_t placed_ms(const struct weir_job_state *state)
{
    int64_t since_ms = 0;
    for (size_t i = 0; i < state->n_tasks; i++) {
        if (weir_task_is_alive(&state->tasks[i])) {
            since_ms = WEIR_MAX(since_ms, state->tasks[i].started_ms);
        }
    }
    return since_ms;
}

int64_t weir_job_limit_end_ms(const struct weir_job_state *state)
{
    enum weir_job_phase phase = weir_job_phase_of(state);
    bool is_active = phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING;
    int64_t since_ms = !is_active            ? 0
                       : state->job.is_array ? state->job.started_ms
                                             : placed_ms(state);
    return state->job.time_limit_ms > 0 && since_ms > 0 ? since_ms + state->job.time_limit_ms
                                                        : INT64_MAX;
}

/** Does an elastic gang that runs take more tasks? */
static bool may_grow(const struct weir_job_state *state)
{
    enum weir_job_phase phase = weir_job_phase_of(state);
    return weir_job_is_elastic(state) && !weir_job_is_ending(state) &&
           (phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING);
}

size_t weir_job_wants(const struct weir_job_state *state, int64_t now_ms, size_t *out_tasks)
{
    enum weir_job_phase phase = weir_job_phase_of(state);
    bool is_independent = weir_job_has_independent_tasks(state);
    bool is_growing = may_grow(state);
    size_t n = 0, n_most = state->job.is_array ? weir_array_room(state) : state->n_tasks;
    if (state->job.is_held || phase == WEIR_JOB_STOPPING || weir_job_phase_is_final(phase) ||
        (!is_independent && !is_growing && phase != WEIR_JOB_PENDING)) {
        return 0;
    }
    for (size_t i = 0; i < state->n_tasks && n < n_most; i++) {
        const struct weir_task *task = &state->tasks[i];
        bool is_due = due_ms_of(state, task, now_ms) <= now_ms;
        if (weir_task_phase_of(task) == WEIR_TASK_WAITING &&
            (is_due || !(is_independent || is_growing))) {
            out_tasks[n++] = i;
        }
    }
    return n;
}

int64_t weir_job_next_tick_ms(const struct weir_job_state *state, int64_t now_ms)
{
    enum weir_job_phase phase = weir_job_phase_of(state);
    int64_t next_ms = INT64_MAX;
    if (weir_job_phase_is_final(phase) || phase == WEIR_JOB_STOPPING) {
        return next_ms;
    }
    if (state->job.is_array) {
        next_ms = weir_job_limit_end_ms(state);
    } else if (!weir_job_is_service(state)) {
        bool waits = phase == WEIR_JOB_RESTARTING && weir_job_none_is_alive(state);
        next_ms = waits ? weir_gang_due_ms(&state->job, now_ms) : weir_job_limit_end_ms(state);
    }
    if (!weir_job_has_independent_tasks(state) && !may_grow(state)) {
        return next_ms;
    }
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        int64_t due_ms = due_ms_of(state, task, now_ms);
        if (weir_task_phase_of(task) == WEIR_TASK_WAITING && due_ms > now_ms) {
            next_ms = WEIR_MIN(next_ms, due_ms);
        }
    }
    return next_ms;
}
