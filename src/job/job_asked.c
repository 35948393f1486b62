/** What is asked of a job: to save, to go back to its queue, to be held or released, another priority, its end. */
#include "job/job_step_private.h"

#include "job/elastic.h"

#include <inttypes.h>
#include <string.h>

/** Stop it, or one task of a service or an elastic gang, so that it waits again. @return false:
 *  nothing of it runs. */
static bool send_back(struct step *step, struct weir_task *replica)
{
    enum weir_job_phase phase = weir_job_phase_of(step->state);
    bool is_independent = weir_job_has_independent_tasks(step->state);
    bool is_active = phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING;
    if (is_independent && replica != NULL) {
        is_active = weir_task_is_alive(replica) && strcmp(replica->desired, "running") == 0;
    }
    if (!is_active) {
        return false;
    }
    if (weir_job_is_elastic(step->state) && replica != NULL &&
        weir_job_may_lose(step->state, replica)) {
        job_stop_task(step, replica);
        return true;
    }
    if (!is_independent) {
        job_stop(step, WEIR_JOB_PENDING);
        return true;
    }
    if (replica != NULL) {
        job_stop_task(step, replica);
    } else {
        job_stop_alive(step);
    }
    job_refresh_independent(step);
    return true;
}

/* ---- to save ---------------------------------------------------------------------------------- */

static bool is_concerned(const struct step *step, const struct weir_task *task)
{
    const char *one = step->event->task;
    return (one == NULL || strcmp(one, task->id) == 0) && weir_task_is_alive(task) &&
           strcmp(task->desired, "running") == 0;
}

weir_status job_on_ask(struct step *step, struct weir_error *err)
{
    struct weir_job *job = &step->state->job;
    enum weir_job_phase phase = weir_job_phase_of(step->state);
    bool is_active = phase == WEIR_JOB_STARTING || phase == WEIR_JOB_RUNNING;
    size_t n = 0;
    for (size_t i = 0; i < step->state->n_tasks && is_active && job->save_within_ms > 0; i++) {
        struct weir_task *task = &step->state->tasks[i];
        if (is_concerned(step, task) && task->asked_ms == 0) {
            task->asked_ms = step->now_ms;
            job_wake(step, task->node);
            n++;
        }
    }
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "job %s is %s: nothing of it can be asked",
                              job->name, job->state);
    }
    job->eviction = weir_arena_strdup(step->arena, step->event->text);
    job->reason = weir_arena_printf(step->arena, "asked to save within %" PRId64 " s: %s",
                                    job->save_within_ms / 1000, job->eviction);
    job_tell(step, "job_asked_to_save",
             weir_arena_printf(step->arena,
                               "Job %s was asked to save what it has within %" PRId64
                               " s, before it goes back to its queue: %s.",
                               job->name, job->save_within_ms / 1000, job->eviction));
    return WEIR_OK;
}

/* Have the tasks that were asked, and are still there, all saved? `one`: that task alone; NULL: all. */
static bool have_all_saved(const struct weir_job_state *state, const char *one,
                           int64_t *out_asked_ms)
{
    bool all = true;
    *out_asked_ms = 0;
    for (size_t i = 0; i < state->n_tasks; i++) {
        const struct weir_task *task = &state->tasks[i];
        bool is_meant = one == NULL || strcmp(one, task->id) == 0;
        if (is_meant && weir_task_is_alive(task) && task->asked_ms > 0) {
            all = all && task->saved_ms > 0;
            *out_asked_ms =
                *out_asked_ms == 0 ? task->asked_ms : WEIR_MIN(*out_asked_ms, task->asked_ms);
        }
    }
    return all && *out_asked_ms > 0;
}

void job_on_saved(struct step *step, struct weir_task *task)
{
    int64_t asked_ms;
    if (!weir_task_is_alive(task) || task->asked_ms == 0 || task->saved_ms > 0) {
        return;
    }
    task->saved_ms = step->now_ms;
    if (have_all_saved(step->state, NULL, &asked_ms)) {
        struct weir_job *job = &step->state->job;
        job_tell(step, "job_saved",
                 weir_arena_printf(step->arena,
                                   "Job %s says that it has saved, %.1f s after it was asked.",
                                   job->name, (double)(step->now_ms - asked_ms) / 1000));
    }
}

void job_note_eviction(struct step *step, const char *how)
{
    struct weir_job *job = &step->state->job;
    if (job->eviction == NULL) {
        job->eviction = "stopped to make room";
    }
    job->reason = job->eviction;
    job->n_evictions++;
    job_tell(step, "job_evicted",
             weir_arena_printf(step->arena, "Job %s %s, and goes back to its queue: %s.", job->name,
                               how, job->eviction));
}

/* ---- to go back ------------------------------------------------------------------------------- */

/* What is said of a job that is stopped: what became of the request before, if there was one. */
static const char *tell_stop(const struct step *step, int64_t asked_ms, bool has_saved)
{
    int64_t within_ms = step->state->job.save_within_ms;
    if (asked_ms == 0) {
        return "was asked to save what it has, and goes back";
    }
    if (!has_saved && step->now_ms - asked_ms < within_ms) {
        return "is stopped before it said that it has saved, and goes back";
    }
    return has_saved ? "is stopped, since it has saved, and goes back"
                     : weir_arena_printf(step->arena,
                                         "did not say within %" PRId64
                                         " s that it has saved, is stopped, and goes back",
                                         within_ms / 1000);
}

weir_status job_on_evict(struct step *step, struct weir_error *err)
{
    struct weir_job *job = &step->state->job;
    struct weir_task *replica =
        step->event->task != NULL ? weir_job_find_task(step->state, step->event->task) : NULL;
    int64_t asked_ms;
    bool has_saved = have_all_saved(step->state, step->event->task, &asked_ms);
    if (!send_back(step, replica)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s is %s: only what runs can go back to its queue", job->name,
                              job->state);
    }
    if (step->event->text != NULL) {
        job->eviction = weir_arena_strdup(step->arena, step->event->text);
    } else if (job->eviction == NULL) {
        job->eviction = "stopped to make room";
    }
    job->reason = job->eviction;
    job->n_evictions++;
    job_tell(step, "job_evicted",
             weir_arena_printf(step->arena, "Job %s %s to its queue: %s.", job->name,
                               tell_stop(step, asked_ms, has_saved), job->eviction));
    return WEIR_OK;
}

weir_status job_on_hold(struct step *step, struct weir_error *err)
{
    struct weir_job *job = &step->state->job;
    int outcome = weir_job_phase_from_text(job->outcome);
    if (outcome >= 0 && weir_job_phase_is_final((enum weir_job_phase)outcome)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "job %s is ending: it will be %s", job->name,
                              job->outcome);
    }
    job->is_held = true;
    job->expected_start_ms = 0;
    (void)send_back(step, NULL); /* What does not run need not be stopped. */
    job->reason = weir_arena_strdup(step->arena, step->event->text);
    job_tell(step, "job_held",
             weir_arena_printf(step->arena, "Job %s is %s.", job->name, job->reason));
    return WEIR_OK;
}

weir_status job_on_release(struct step *step, struct weir_error *err)
{
    struct weir_job *job = &step->state->job;
    if (!job->is_held) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "job %s is %s: it is not held", job->name,
                              job->state);
    }
    job->is_held = false;
    job->reason = NULL;
    job->queued_ms = step->now_ms;
    const char *by = step->event->text;
    job_tell(step, "job_released",
             weir_arena_printf(step->arena, "Job %s is held no longer%s%s.", job->name,
                               by != NULL ? ": " : "", by != NULL ? by : ""));
    return WEIR_OK;
}

void job_on_priority(struct step *step)
{
    struct weir_job *job = &step->state->job;
    if (job->priority == step->event->priority) {
        return;
    }
    job_tell(step, "job_priority",
             weir_arena_printf(step->arena,
                               "Job %s has priority %" PRId64 ", before %" PRId64 ": %s.",
                               job->name, step->event->priority, job->priority,
                               step->event->text != NULL ? step->event->text : "set"));
    job->priority = step->event->priority;
}

void job_on_cancel(struct step *step)
{
    bool is_going_back = weir_job_phase_from_text(step->state->job.outcome) == WEIR_JOB_PENDING;
    if (weir_job_phase_of(step->state) == WEIR_JOB_STOPPING && !is_going_back) {
        return; /* It ends anyway, with what it has come to. */
    }
    step->state->job.reason = weir_arena_strdup(step->arena, step->event->text);
    if (!weir_job_none_is_alive(
            step->state)) { /* That it is cancelled is told when they have ended. */
        job_tell(step, "job_cancel_asked",
                 weir_arena_printf(step->arena, "Job %s is stopped for good%s%s.",
                                   step->state->job.name, step->event->text != NULL ? ": " : "",
                                   step->event->text != NULL ? step->event->text : ""));
    }
    job_stop(step, WEIR_JOB_CANCELLED);
}
