#include "job/array.h"

#include "job/restart.h"

static bool has_ended_well(const struct weir_task *task)
{
    return weir_task_phase_of(task) == WEIR_TASK_EXITED && task->exit_code == 0 &&
           task->signal == 0;
}

struct weir_array_count weir_array_count(const struct weir_job_state *state)
{
    struct weir_array_count count = {0};
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        switch (weir_task_phase_of(task)) {
        case WEIR_TASK_WAITING:
            count.n_waiting++;
            break;
        case WEIR_TASK_STARTING:
            count.n_starting++;
            break;
        case WEIR_TASK_RUNNING:
        case WEIR_TASK_STOPPING:
            count.n_running++;
            break;
        case WEIR_TASK_EXITED:
        case WEIR_TASK_LOST:
            count.n_ended++;
            if (!has_ended_well(task)) {
                count.n_failed++;
                count.failed = count.failed == NULL ? task : count.failed;
            }
            break;
        }
    }
    return count;
}

bool weir_array_may_retry(const struct weir_job *job, const struct weir_task *task)
{
    /* The rule of a gang, whose count of restarts stands in the job. */
    struct weir_job counted = *job;
    counted.n_restarts = task->n_restarts;
    return weir_job_may_restart(&counted, task);
}

size_t weir_array_room(const struct weir_job_state *state)
{
    struct weir_array_count count = weir_array_count(state);
    size_t n_at_it = count.n_starting + count.n_running;
    size_t most = state->job.parallel > 0 ? (size_t)state->job.parallel : state->n_tasks;
    return n_at_it < most ? most - n_at_it : 0;
}

char *weir_array_reason(const struct weir_job_state *state, const struct weir_array_count *count,
                        struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%zu of %zu tasks failed; %s", count->n_failed, state->n_tasks,
                             weir_task_describe_end(count->failed, arena));
}
