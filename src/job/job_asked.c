/** What is asked of a job: to go back to its queue, to be held or released, another priority, its end. */
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

weir_status job_on_evict(struct step *step, struct weir_error *err)
{
    struct weir_job *job = &step->state->job;
    struct weir_task *replica =
        step->event->task != NULL ? weir_job_find_task(step->state, step->event->task) : NULL;
    if (!send_back(step, replica)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s is %s: only what runs can go back to its queue", job->name,
                              job->state);
    }
    job->eviction = weir_arena_strdup(step->arena, step->event->text);
    job->reason = job->eviction;
    job->n_evictions++;
    job_tell(
        step, "job_evicted",
        weir_arena_printf(step->arena,
                          "Job %s was asked to save what it has, and goes back to its queue: %s.",
                          job->name, job->eviction));
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
