/** What the parts of a job's step share: what follows from its tasks and from time (job_step.c), and what people and the
 *  scheduler ask of it (job_asked.c). Pure. */
#ifndef WEIR_JOB_JOB_STEP_PRIVATE_H
#define WEIR_JOB_JOB_STEP_PRIVATE_H

#include "job/job_step.h"

/** What one call of weir_job_step works with. */
struct step {
    struct weir_job_state *state;
    const struct weir_job_event *event;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_job_actions *actions;
};

/** An action that is an event. The texts are borrowed. */
void job_tell(struct step *step, const char *kind, const char *message);

/** What should run on the node has changed. */
void job_wake(struct step *step, const char *node);

/** One task, which is alive, is to end. */
void job_stop_task(struct step *step, struct weir_task *task);

/** All tasks that are alive are to end. */
void job_stop_alive(struct step *step);

/** All tasks are to end; then the job is `outcome`. */
void job_stop(struct step *step, enum weir_job_phase outcome);

/** The phase of a service or an array follows from its tasks. */
void job_refresh_independent(struct step *step);

/* Events of a job that is not over. */

/** @return CONFLICT: nothing of it runs. */
weir_status job_on_evict(struct step *step, struct weir_error *err) WEIR_MUST_CHECK;
/** @return CONFLICT: nothing of it runs that was not asked before. */
weir_status job_on_ask(struct step *step, struct weir_error *err) WEIR_MUST_CHECK;
void job_on_saved(struct step *step, struct weir_task *task);
/** A task has ended, which sends the job back to its queue: note it. @param how  "has ended, as it was asked to save". */
void job_note_eviction(struct step *step, const char *how);
/** @return CONFLICT: it is ending. */
weir_status job_on_hold(struct step *step, struct weir_error *err) WEIR_MUST_CHECK;
/** @return CONFLICT: it is not held. */
weir_status job_on_release(struct step *step, struct weir_error *err) WEIR_MUST_CHECK;
void job_on_priority(struct step *step);
void job_on_cancel(struct step *step);

#endif
