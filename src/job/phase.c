/* The phases of jobs and tasks by name. */
#include "job/restart.h"

#include <inttypes.h>
#include <string.h>

static const char *const job_phase_texts[] = {
    [WEIR_JOB_PENDING] = "PENDING",   [WEIR_JOB_STARTING] = "STARTING",
    [WEIR_JOB_RUNNING] = "RUNNING",   [WEIR_JOB_RESTARTING] = "RESTARTING",
    [WEIR_JOB_STOPPING] = "STOPPING", [WEIR_JOB_SUCCEEDED] = "SUCCEEDED",
    [WEIR_JOB_FAILED] = "FAILED",     [WEIR_JOB_CANCELLED] = "CANCELLED",
};

static const char *const task_phase_texts[] = {
    [WEIR_TASK_WAITING] = "WAITING", [WEIR_TASK_STARTING] = "STARTING",
    [WEIR_TASK_RUNNING] = "RUNNING", [WEIR_TASK_STOPPING] = "STOPPING",
    [WEIR_TASK_EXITED] = "EXITED",   [WEIR_TASK_LOST] = "LOST",
};

const char *weir_job_phase_text(enum weir_job_phase phase)
{
    return job_phase_texts[phase];
}

int weir_job_phase_from_text(const char *text)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(job_phase_texts); i++) {
        if (text != NULL && strcmp(text, job_phase_texts[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *weir_task_phase_text(enum weir_task_phase phase)
{
    return task_phase_texts[phase];
}

int weir_task_phase_from_text(const char *text)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(task_phase_texts); i++) {
        if (text != NULL && strcmp(text, task_phase_texts[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool weir_job_phase_is_final(enum weir_job_phase phase)
{
    return phase == WEIR_JOB_SUCCEEDED || phase == WEIR_JOB_FAILED || phase == WEIR_JOB_CANCELLED;
}

bool weir_job_is_service(const struct weir_job_state *state)
{
    return state->job.is_service;
}

bool weir_job_has_independent_tasks(const struct weir_job_state *state)
{
    return state->job.is_service || state->job.is_array;
}

enum weir_job_phase weir_job_phase_of(const struct weir_job_state *state)
{
    int phase = weir_job_phase_from_text(state->job.state);
    return phase < 0 ? WEIR_JOB_FAILED : (enum weir_job_phase)phase;
}

enum weir_task_phase weir_task_phase_of(const struct weir_task *task)
{
    int phase = weir_task_phase_from_text(task->state);
    return phase < 0 ? WEIR_TASK_LOST : (enum weir_task_phase)phase;
}

bool weir_task_is_alive(const struct weir_task *task)
{
    enum weir_task_phase phase = weir_task_phase_of(task);
    return phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING || phase == WEIR_TASK_STOPPING;
}

bool weir_job_none_is_alive(const struct weir_job_state *state)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        if (weir_task_is_alive(&state->tasks[i])) {
            return false;
        }
    }
    return true;
}

/** What an exit status says in words; "" if that is not known. */
static const char *meaning_of(int64_t exit_code)
{
    return exit_code == WEIR_EXIT_NOT_RUN     ? ": it may not be run"
           : exit_code == WEIR_EXIT_NOT_FOUND ? ": there is no such program"
                                              : "";
}

char *weir_task_describe_end(const struct weir_task *task, struct weir_arena *arena)
{
    const char *detail = task->message != NULL ? task->message : "";
    const char *colon = detail[0] != '\0' ? ": " : "";
    if (weir_task_phase_of(task) == WEIR_TASK_LOST) {
        return weir_arena_printf(arena, "%s %" PRId64 " was lost%s%s", task->role, task->rank,
                                 colon, detail);
    }
    if (task->signal != 0) {
        return weir_arena_printf(arena, "%s %" PRId64 " was killed by signal %" PRId64 "%s%s",
                                 task->role, task->rank, task->signal, colon, detail);
    }
    if (detail[0] != '\0') {
        return weir_arena_printf(arena, "%s %" PRId64 ": %s (exit %" PRId64 "%s)", task->role,
                                 task->rank, detail, task->exit_code, meaning_of(task->exit_code));
    }
    return weir_arena_printf(arena, "%s %" PRId64 " exited with %" PRId64 "%s", task->role,
                             task->rank, task->exit_code, meaning_of(task->exit_code));
}

struct weir_task *weir_job_find_task(struct weir_job_state *state, const char *id)
{
    for (size_t i = 0; i < state->n_tasks; i++) {
        if (strcmp(state->tasks[i].id, id) == 0) {
            return &state->tasks[i];
        }
    }
    return NULL;
}
