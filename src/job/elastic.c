#include "job/elastic.h"

#include <string.h>

bool weir_job_is_elastic(const struct weir_job_state *state)
{
    return !weir_job_has_independent_tasks(state) && state->job.min_tasks > 0 &&
           (size_t)state->job.min_tasks < state->n_tasks;
}

size_t weir_job_least(const struct weir_job_state *state, size_t n_wants)
{
    bool waits = weir_job_phase_of(state) == WEIR_JOB_PENDING;
    if (weir_job_has_independent_tasks(state) || (weir_job_is_elastic(state) && !waits)) {
        return 1;
    }
    return weir_job_is_elastic(state) ? (size_t)state->job.min_tasks : n_wants;
}

static bool has_ended_well(const struct weir_task *task)
{
    return weir_task_phase_of(task) == WEIR_TASK_EXITED && task->exit_code == 0 &&
           task->signal == 0;
}

bool weir_job_is_ending(const struct weir_job_state *state)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        bool was_asked = strcmp(state->tasks[i].desired, "stopped") == 0;
        if (has_ended_well(&state->tasks[i]) && !was_asked) {
            return true;
        }
    }
    return false;
}

bool weir_job_has_begun(const struct weir_job_state *state)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_tasks; i++) {
        enum weir_task_phase phase = weir_task_phase_of(&state->tasks[i]);
        n += phase == WEIR_TASK_RUNNING || phase == WEIR_TASK_EXITED;
    }
    return n >= (weir_job_is_elastic(state) ? (size_t)state->job.min_tasks : state->n_tasks);
}

bool weir_job_may_lose(const struct weir_job_state *state, const struct weir_task *task)
{
    int64_t n = 0;
    for (size_t i = 0; i < state->n_tasks; i++) {
        enum weir_task_phase phase = weir_task_phase_of(&state->tasks[i]);
        n +=
            &state->tasks[i] != task && (phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING);
    }
    return n >= state->job.min_tasks && !weir_job_is_ending(state);
}

/* It only serves those that do the work, and ends with them. */
static bool is_helper(const struct weir_task *task)
{
    static const char *const roles[] = {"parameter_server", "server", "evaluator"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(roles); i++) {
        if (strcmp(task->role, roles[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool weir_job_work_is_done(const struct weir_job_state *state)
{
    if (weir_job_is_elastic(state)) {
        return weir_job_is_ending(state) && weir_job_none_is_alive(state);
    }
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        if (!is_helper(task) && !has_ended_well(task)) {
            return false;
        }
    }
    return true;
}

int64_t weir_job_last_attempt(const struct weir_job_state *state)
{
    int64_t last = state->job.attempt;
    for (size_t i = 0; i < state->n_tasks; i++) {
        last = WEIR_MAX(last, state->tasks[i].attempt);
    }
    return last;
}

weir_status weir_job_check_bind(const struct weir_job_state *state,
                                const struct weir_job_event *event, size_t n_wants,
                                struct weir_error *err)
{
    size_t n = 0, least = weir_job_least(state, n_wants);
    if (event->n_place != n_wants || n_wants == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "job %s: %zu nodes for %zu tasks that want one", state->job.name,
                              event->n_place, n_wants);
    }
    for (size_t i = 0; i < n_wants; i++) {
        n += event->place[i] != NULL;
    }
    return n >= least || weir_job_has_independent_tasks(state)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "job %s: nodes for %zu of %zu tasks",
                                state->job.name, n, least);
}
