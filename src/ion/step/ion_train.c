#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

static bool is_training(const struct weir_ion_pipeline *pipeline)
{
    return step_is(pipeline->type, "training");
}

bool step_is_running(const struct weir_ion_pipeline *pipeline)
{
    return step_is(pipeline->state, PIPELINE_TRAINING) ||
           step_is(pipeline->state, PIPELINE_RUNNING) ||
           step_is(pipeline->state, PIPELINE_FREEZING);
}

/** "Training 3 of pipeline faces", "Run 3 of pipeline prepare". */
static char *run_text(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    return step_text(step, "%s %" PRId64 " of pipeline %s",
                     is_training(pipeline) ? "Training" : "Run",
                     weir_ion_runs_of(pipeline)->training, pipeline->name);
}

/** An event "training_WHAT" or "run_WHAT". */
WEIR_PRINTF(4, 5)

static void tell_run(struct ion_step *step, const struct weir_ion_pipeline *pipeline,
                     const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    step_vtell(step, step_text(step, "%s_%s", is_training(pipeline) ? "training" : "run", what),
               format, args);
    va_end(args);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void start(struct ion_step *step, struct weir_ion_pipeline *pipeline, char *cause, char *by)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    step_set_state(step, pipeline, is_training(pipeline) ? PIPELINE_TRAINING : PIPELINE_RUNNING,
                   NULL);
    runs->training++;
    runs->cause = cause;
    runs->cause_by = by;
    runs->pending_cause = runs->pending_by = runs->run = NULL;
    runs->started_ms = step->now_ms;
    pipeline->job = NULL;
    pipeline->restart_ms = 0;
    step_use_data(step, pipeline);
    step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_START_TRAINING,
                                            .key = step_text(step, "start_training:%s:%" PRId64,
                                                             pipeline->id, runs->training),
                                            .pipeline = pipeline->name,
                                            .number = runs->training,
                                            .message = cause});
    tell_run(step, pipeline, "triggered", "%s was triggered: %s.", run_text(step, pipeline), cause);
}

/** One more person wants the further run. */
static void add_pending_by(struct ion_step *step, struct weir_ion_runs *runs, char *by)
{
    if (by == NULL) {
        return;
    }
    const char *known = runs->pending_by != NULL ? runs->pending_by : "";
    char *framed = step_text(step, ", %s, ", known);
    if (strstr(framed, step_text(step, ", %s, ", by)) == NULL) {
        runs->pending_by = known[0] == '\0' ? by : step_text(step, "%s, %s", known, by);
    }
}

/** The pipeline at the other end of a data link, if it runs: both use the dataset's folder. */
static const struct weir_ion_pipeline *held_by(struct ion_step *step,
                                               const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc *doc = &step->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        bool is_from = strcmp(doc->feeds[i].from, pipeline->name) == 0;
        if (doc->feeds[i].dataset == NULL) {
            continue; /* A version of a model stays as it is. */
        }
        const char *name = is_from                                         ? doc->feeds[i].to
                           : strcmp(doc->feeds[i].to, pipeline->name) == 0 ? doc->feeds[i].from
                                                                           : NULL;
        const struct weir_ion_pipeline *other = step_pipeline(step, name);
        if (other != NULL && step_is_running(other)) {
            return other;
        }
    }
    return NULL;
}

/** Why its photos cannot be cut yet; NULL: they can, or stay whole. */
static char *lack_of_cut(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    const struct weir_ion_pipeline *cuts = doc != NULL ? step_pipeline(step, doc->cut_as) : NULL;
    const char *lack = cuts != NULL ? step_lack_of_detector(step, cuts) : NULL;
    return lack != NULL
               ? step_text(step, "its photos are cut as those of %s, whose %s", cuts->name, lack)
               : NULL;
}

/** Why it does not start at once: it is paused, has no detector, or waits for this one. */
static void tell_queued(struct ion_step *step, const struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_pipeline *before)
{
    const char *verb = is_training(pipeline) ? "trains" : "runs";
    const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    const char *lack = lack_of_cut(step, pipeline);
    if (lack != NULL && before == NULL && pipeline->paused_by == NULL) {
        tell_run(step, pipeline, "queued", "Pipeline %s waits: %s. It %s then: %s.", pipeline->name,
                 lack, verb, runs->pending_cause);
        return;
    }
    if (before == NULL || pipeline->paused_by != NULL) {
        tell_run(step, pipeline, "queued", "Pipeline %s is paused, and %s when it goes on: %s.",
                 pipeline->name, verb, runs->pending_cause);
        return;
    }
    tell_run(step, pipeline, "queued", "Pipeline %s %s%s when %s %" PRId64 "%s%s has ended: %s.",
             pipeline->name, verb, before == pipeline ? " again" : "",
             is_training(before) ? "training" : "run", weir_ion_runs_of(before)->training,
             before == pipeline ? "" : " of pipeline ", before == pipeline ? "" : before->name,
             runs->pending_cause);
}

void step_trigger(struct ion_step *step, struct weir_ion_pipeline *pipeline, const char *cause)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    char *copy = weir_arena_strdup(step->arena, cause);
    if (step_lacks_model(step, pipeline)) {
        tell_run(step, pipeline, "skipped", "Pipeline %s has no model to measure yet: %s.",
                 pipeline->name, cause);
        return;
    }
    bool is_by_hand =
        step->event->type == WEIR_ION_EVENT_TRIGGER || step->event->type == WEIR_ION_EVENT_RUN;
    char *by = is_by_hand ? weir_arena_strdup(step->arena, step_actor(step)) : NULL;
    const struct weir_ion_pipeline *before =
        step_is_running(pipeline) ? pipeline : held_by(step, pipeline);
    if (before == NULL && pipeline->paused_by == NULL && lack_of_cut(step, pipeline) == NULL) {
        start(step, pipeline, copy, by);
        return;
    }
    add_pending_by(step, runs, by);
    if (runs->pending_cause != NULL) {
        return; /* One further run covers this trigger too. */
    }
    runs->pending_cause = copy;
    pipeline->updated_ms = step->now_ms;
    tell_queued(step, pipeline, before);
}

void step_start_pending(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
        if (runs == NULL || runs->pending_cause == NULL ||
            !step_is(pipeline->state, PIPELINE_IDLE) || pipeline->paused_by != NULL) {
            continue;
        }
        char *lack = lack_of_cut(step, pipeline);
        if (lack == NULL && held_by(step, pipeline) == NULL) {
            start(step, pipeline, runs->pending_cause, runs->pending_by);
        } else if (lack != NULL ? !step_is(pipeline->state_reason, lack)
                                : pipeline->state_reason != NULL) {
            step_set_state(step, pipeline, PIPELINE_IDLE, lack);
        }
    }
}

void step_go_on(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    if (weir_ion_runs_of(pipeline)->pending_cause == NULL) {
        step_run_again(step, pipeline);
    }
}

void step_stop_run(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job != NULL) {
        step_act(step,
                 (struct weir_ion_action){.type = WEIR_ION_ACTION_STOP_TRAINING,
                                          .key = step_text(step, "stop_%s:%s:%s", pipeline->type,
                                                           pipeline->id, pipeline->job),
                                          .pipeline = pipeline->name,
                                          .number = weir_ion_runs_of(pipeline)->training,
                                          .job = pipeline->job});
    }
}

void step_on_started(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    struct weir_ion_pipeline *pipeline = step_pipeline(step, event->pipeline);
    if (pipeline == NULL || pipeline->job != NULL) {
        return;
    }
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs != NULL ? !step_is_running(pipeline) || runs->training != event->training ||
                           step_is(pipeline->state, PIPELINE_FREEZING)
                     : pipeline->paused_by != NULL) {
        return;
    }
    pipeline->job = weir_arena_strdup(step->arena, event->job);
    pipeline->updated_ms = step->now_ms;
    char *message = step_text(step, "Job %s was made for pipeline %s.", event->job, pipeline->name);
    if (runs != NULL) {
        runs->run = weir_arena_strdup(step->arena, event->run);
        tell_run(step, pipeline, "started", "%s", message);
    } else {
        step_tell(step, "prediction_started", "%s", message);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

/** Replicas are a service: if their job is over, somebody ended it, or it failed for good. */
static void replicas_ended(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    if (!step_is(pipeline->job, step->event->job != NULL ? step->event->job : "")) {
        return; /* An earlier job, that was told to stop. */
    }
    const char *note = step->event->note, *colon = note != NULL ? ": " : "";
    note = note != NULL ? note : "";
    pipeline->job = NULL;
    step_forget_serving(step, pipeline);
    step_set_state(step, pipeline, PIPELINE_WAITING,
                   step_text(step, "its replicas have ended%s%s", colon, note));
    if (step->event->type != WEIR_ION_EVENT_CANCELLED) {
        (void)step_restart_later(step, pipeline, step->event->type == WEIR_ION_EVENT_FAILED);
    }
    step_tell(step, "prediction_ended",
              "The replicas of pipeline %s have ended%s%s; they start again "
              "%s.",
              pipeline->name, colon, note,
              pipeline->restart_ms > 0 ? "by its restart rule" : "with the next deployment");
}

static char *alert_key(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    return step_text(step, "%s:%s", is_training(pipeline) ? "training_failed" : "pipeline_failed",
                     pipeline->id);
}

void step_forget_failure(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    step_resolve(step, alert_key(step, pipeline));
}

/** If a critical pipeline fails, the ION is down (watch/watch.h); a training that is not is told as it
 *  always was. */
static void raise_failure(struct ion_step *step, const struct weir_ion_pipeline *pipeline,
                          const char *message)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    bool is_critical = doc != NULL && doc->is_critical;
    bool is_usual = is_training(pipeline) && !is_critical;
    step_act(step,
             (struct weir_ion_action){.type = WEIR_ION_ACTION_ALERT,
                                      .key = alert_key(step, pipeline),
                                      .kind = is_usual ? "training_failed" : "pipeline_failed",
                                      .severity = is_usual      ? NULL
                                                  : is_critical ? "critical"
                                                                : "warning",
                                      .message = message});
}

void step_leave_run(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    step_set_state(step, pipeline, PIPELINE_IDLE, step_pause_reason(step, pipeline));
    pipeline->job = NULL;
    weir_ion_runs_of(pipeline)->run = NULL;
}

/** By its rule, or a person's wish for several. @return Whether a failure is not to be told yet. */
static bool follow(struct ion_step *step, struct weir_ion_pipeline *pipeline, bool has_failed)
{
    bool is_mended = step_restart_later(step, pipeline, has_failed);
    step_go_on(step, pipeline);
    return is_mended;
}

static void run_failed(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    const char *note = step->event->note;
    char *message = step_text(step, "%s has failed: %s.", run_text(step, pipeline),
                              note != NULL ? note : "no reason is known");
    step_leave_run(step, pipeline);
    tell_run(step, pipeline, "failed", "%s", message);
    if (!follow(step, pipeline, true)) {
        raise_failure(step, pipeline, message);
    }
}

/** A run that a person ends says nothing about the next: an alert of before stays as it is. */
static void run_cancelled(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    const char *note = step->event->note;
    tell_run(step, pipeline, "cancelled", "%s was %s.", run_text(step, pipeline),
             note != NULL ? note : "cancelled");
    step_leave_run(step, pipeline);
    step_go_on(step, pipeline);
}

static void run_finished(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                         const char *what)
{
    tell_run(step, pipeline, "finished", "%s has finished%s.", run_text(step, pipeline), what);
    step_leave_run(step, pipeline);
    step_forget_failure(step, pipeline);
    (void)follow(step, pipeline, false);
}

/** A preparation's command has ended well: a version is made of what it wrote. */
static void freeze(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    step_set_state(step, pipeline, PIPELINE_FREEZING, NULL);
    pipeline->job = NULL;
}

void step_on_ended(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    struct weir_ion_pipeline *pipeline = step_pipeline(step, event->pipeline);
    if (pipeline == NULL) {
        return;
    }
    const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs == NULL) {
        replicas_ended(step, pipeline);
        return;
    }
    bool is_frozen = step_is(pipeline->state, PIPELINE_FREEZING);
    if (!step_is_running(pipeline) || runs->training != event->training ||
        (is_frozen && event->type != WEIR_ION_EVENT_FAILED)) {
        return; /* of an earlier run; of the command of one whose output is being frozen */
    }
    if (event->type == WEIR_ION_EVENT_FAILED) {
        run_failed(step, pipeline);
    } else if (event->type == WEIR_ION_EVENT_CANCELLED) {
        run_cancelled(step, pipeline);
    } else if (step_is(pipeline->type, "preparation")) {
        freeze(step, pipeline);
    } else {
        run_finished(step, pipeline, "");
    }
}

void step_on_frozen(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    struct weir_ion_pipeline *pipeline = step_pipeline(step, event->pipeline);
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, event->pipeline);
    if (pipeline == NULL || doc == NULL || !step_is(pipeline->state, PIPELINE_FREEZING) ||
        weir_ion_runs_of(pipeline)->training != event->training) {
        return;
    }
    run_finished(step, pipeline,
                 step_text(step, ": %s version %" PRId64, doc->output, event->version));
}
