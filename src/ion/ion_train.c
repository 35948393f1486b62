#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static bool is_training(const struct weir_ion_pipeline *pipeline)
{
    return engine_is(pipeline->type, "training");
}

bool engine_is_running(const struct weir_ion_pipeline *pipeline)
{
    return engine_is(pipeline->state, PIPELINE_TRAINING) ||
           engine_is(pipeline->state, PIPELINE_RUNNING) ||
           engine_is(pipeline->state, PIPELINE_FREEZING);
}

/** "Training 3 of pipeline faces", "Run 3 of pipeline prepare". */
static char *run_text(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return weir_arena_printf(engine->arena, "%s %" PRId64 " of pipeline %s",
                             is_training(pipeline) ? "Training" : "Run",
                             weir_ion_runs_of(pipeline)->training, pipeline->name);
}

/** An event "training_WHAT" or "run_WHAT". */
static void tell_run(struct engine *engine, const struct weir_ion_pipeline *pipeline,
                     const char *what, const char *message)
{
    engine_tell(
        engine,
        weir_arena_printf(engine->arena, "%s_%s", is_training(pipeline) ? "training" : "run", what),
        message);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void start(struct engine *engine, struct weir_ion_pipeline *pipeline, char *cause, char *by)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    engine_set_state(engine, pipeline, is_training(pipeline) ? PIPELINE_TRAINING : PIPELINE_RUNNING,
                     NULL);
    runs->training++;
    runs->cause = cause;
    runs->cause_by = by;
    runs->pending_cause = runs->pending_by = runs->run = NULL;
    runs->started_ms = engine->now_ms;
    pipeline->job = NULL;
    pipeline->restart_ms = 0;
    engine_use_data(engine, pipeline);
    engine_act(engine, (struct weir_ion_action){
                           .type = WEIR_ION_ACTION_START_TRAINING,
                           .key = weir_arena_printf(engine->arena, "start_training:%s:%" PRId64,
                                                    pipeline->id, runs->training),
                           .pipeline = pipeline->name,
                           .number = runs->training,
                           .message = cause});
    tell_run(engine, pipeline, "triggered",
             weir_arena_printf(engine->arena, "%s was triggered: %s.", run_text(engine, pipeline),
                               cause));
}

/** One more person wants the further run. */
static void add_pending_by(struct engine *engine, struct weir_ion_runs *runs, char *by)
{
    if (by == NULL) {
        return;
    }
    const char *known = runs->pending_by != NULL ? runs->pending_by : "";
    char *framed = weir_arena_printf(engine->arena, ", %s, ", known);
    if (strstr(framed, weir_arena_printf(engine->arena, ", %s, ", by)) == NULL) {
        runs->pending_by =
            known[0] == '\0' ? by : weir_arena_printf(engine->arena, "%s, %s", known, by);
    }
}

/** The pipeline at the other end of a data link, if it runs: both use the dataset's folder. */
static const struct weir_ion_pipeline *held_by(struct engine *engine,
                                               const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        bool is_from = strcmp(doc->feeds[i].from, pipeline->name) == 0;
        if (doc->feeds[i].dataset == NULL) {
            continue; /* A version of a model stays as it is. */
        }
        const char *name = is_from                                         ? doc->feeds[i].to
                           : strcmp(doc->feeds[i].to, pipeline->name) == 0 ? doc->feeds[i].from
                                                                           : NULL;
        const struct weir_ion_pipeline *other = engine_pipeline(engine, name);
        if (other != NULL && engine_is_running(other)) {
            return other;
        }
    }
    return NULL;
}

/** Why it does not start at once: it is paused, or waits for this one. */
static void tell_queued(struct engine *engine, const struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_pipeline *before)
{
    const char *verb = is_training(pipeline) ? "trains" : "runs";
    const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (before == NULL || pipeline->paused_by != NULL) {
        tell_run(engine, pipeline, "queued",
                 weir_arena_printf(engine->arena,
                                   "Pipeline %s is paused, and %s when it goes on: %s.",
                                   pipeline->name, verb, runs->pending_cause));
        return;
    }
    tell_run(engine, pipeline, "queued",
             weir_arena_printf(
                 engine->arena, "Pipeline %s %s%s when %s %" PRId64 "%s%s has ended: %s.",
                 pipeline->name, verb, before == pipeline ? " again" : "",
                 is_training(before) ? "training" : "run", weir_ion_runs_of(before)->training,
                 before == pipeline ? "" : " of pipeline ", before == pipeline ? "" : before->name,
                 runs->pending_cause));
}

void engine_trigger(struct engine *engine, struct weir_ion_pipeline *pipeline, const char *cause)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    char *copy = weir_arena_strdup(engine->arena, cause);
    if (engine_lacks_model(engine, pipeline)) {
        tell_run(engine, pipeline, "skipped",
                 weir_arena_printf(engine->arena, "Pipeline %s has no model to measure yet: %s.",
                                   pipeline->name, cause));
        return;
    }
    bool is_by_hand =
        engine->event->type == WEIR_ION_EVENT_TRIGGER || engine->event->type == WEIR_ION_EVENT_RUN;
    char *by = is_by_hand ? weir_arena_strdup(engine->arena, engine_actor(engine)) : NULL;
    const struct weir_ion_pipeline *before =
        engine_is_running(pipeline) ? pipeline : held_by(engine, pipeline);
    if (before == NULL && pipeline->paused_by == NULL) {
        start(engine, pipeline, copy, by);
        return;
    }
    add_pending_by(engine, runs, by);
    if (runs->pending_cause != NULL) {
        return; /* One further run covers this trigger too. */
    }
    runs->pending_cause = copy;
    pipeline->updated_ms = engine->now_ms;
    tell_queued(engine, pipeline, before);
}

void engine_start_pending(struct engine *engine)
{
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
        if (runs != NULL && runs->pending_cause != NULL &&
            engine_is(pipeline->state, PIPELINE_IDLE) && pipeline->paused_by == NULL &&
            held_by(engine, pipeline) == NULL) {
            start(engine, pipeline, runs->pending_cause, runs->pending_by);
        }
    }
}

void engine_go_on(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (weir_ion_runs_of(pipeline)->pending_cause == NULL) {
        engine_run_again(engine, pipeline);
    }
}

void engine_stop_run(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job != NULL) {
        engine_act(engine,
                   (struct weir_ion_action){.type = WEIR_ION_ACTION_STOP_TRAINING,
                                            .key = weir_arena_printf(engine->arena, "stop_%s:%s:%s",
                                                                     pipeline->type, pipeline->id,
                                                                     pipeline->job),
                                            .pipeline = pipeline->name,
                                            .number = weir_ion_runs_of(pipeline)->training,
                                            .job = pipeline->job});
    }
}

void engine_on_started(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, event->pipeline);
    if (pipeline == NULL || pipeline->job != NULL) {
        return;
    }
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs != NULL ? !engine_is_running(pipeline) || runs->training != event->training ||
                           engine_is(pipeline->state, PIPELINE_FREEZING)
                     : pipeline->paused_by != NULL) {
        return;
    }
    pipeline->job = weir_arena_strdup(engine->arena, event->job);
    pipeline->updated_ms = engine->now_ms;
    char *message = weir_arena_printf(engine->arena, "Job %s was made for pipeline %s.", event->job,
                                      pipeline->name);
    if (runs != NULL) {
        runs->run = weir_arena_strdup(engine->arena, event->run);
        tell_run(engine, pipeline, "started", message);
    } else {
        engine_tell(engine, "prediction_started", message);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

/** Replicas are a service: if their job is over, somebody ended it, or it failed for good. */
static void replicas_ended(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (!engine_is(pipeline->job, engine->event->job != NULL ? engine->event->job : "")) {
        return; /* An earlier job, that was told to stop. */
    }
    const char *note = engine->event->note, *colon = note != NULL ? ": " : "";
    note = note != NULL ? note : "";
    pipeline->job = NULL;
    engine_forget_serving(engine, pipeline);
    engine_set_state(engine, pipeline, PIPELINE_WAITING,
                     weir_arena_printf(engine->arena, "its replicas have ended%s%s", colon, note));
    if (engine->event->type != WEIR_ION_EVENT_CANCELLED) {
        (void)engine_restart_later(engine, pipeline, engine->event->type == WEIR_ION_EVENT_FAILED);
    }
    engine_tell(engine, "prediction_ended",
                weir_arena_printf(engine->arena,
                                  "The replicas of pipeline %s have ended%s%s; they start again "
                                  "%s.",
                                  pipeline->name, colon, note,
                                  pipeline->restart_ms > 0 ? "by its restart rule"
                                                           : "with the next deployment"));
}

static char *alert_key(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return weir_arena_printf(engine->arena, "%s:%s",
                             is_training(pipeline) ? "training_failed" : "pipeline_failed",
                             pipeline->id);
}

void engine_forget_failure(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_RESOLVE,
                                                .key = alert_key(engine, pipeline)});
}

/** If a critical pipeline fails, the ION is down (watch/watch.h); a training that is not is told as it
 *  always was. */
static void raise_failure(struct engine *engine, const struct weir_ion_pipeline *pipeline,
                          const char *message)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&engine->state->doc, pipeline->name);
    bool is_critical = doc != NULL && doc->is_critical;
    bool is_usual = is_training(pipeline) && !is_critical;
    engine_act(engine,
               (struct weir_ion_action){.type = WEIR_ION_ACTION_ALERT,
                                        .key = alert_key(engine, pipeline),
                                        .kind = is_usual ? "training_failed" : "pipeline_failed",
                                        .severity = is_usual      ? NULL
                                                    : is_critical ? "critical"
                                                                  : "warning",
                                        .message = message});
}

void engine_leave_run(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    engine_set_state(engine, pipeline, PIPELINE_IDLE, engine_pause_reason(engine, pipeline));
    pipeline->job = NULL;
    weir_ion_runs_of(pipeline)->run = NULL;
}

/** By its rule, or a person's wish for several. @return Whether a failure is not to be told yet. */
static bool follow(struct engine *engine, struct weir_ion_pipeline *pipeline, bool has_failed)
{
    bool is_mended = engine_restart_later(engine, pipeline, has_failed);
    engine_go_on(engine, pipeline);
    return is_mended;
}

static void run_failed(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    const char *note = engine->event->note;
    char *message =
        weir_arena_printf(engine->arena, "%s has failed: %s.", run_text(engine, pipeline),
                          note != NULL ? note : "no reason is known");
    engine_leave_run(engine, pipeline);
    tell_run(engine, pipeline, "failed", message);
    if (!follow(engine, pipeline, true)) {
        raise_failure(engine, pipeline, message);
    }
}

/** A run that a person ends says nothing about the next: an alert of before stays as it is. */
static void run_cancelled(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    const char *note = engine->event->note;
    tell_run(engine, pipeline, "cancelled",
             weir_arena_printf(engine->arena, "%s was %s.", run_text(engine, pipeline),
                               note != NULL ? note : "cancelled"));
    engine_leave_run(engine, pipeline);
    engine_go_on(engine, pipeline);
}

static void run_finished(struct engine *engine, struct weir_ion_pipeline *pipeline,
                         const char *what)
{
    tell_run(
        engine, pipeline, "finished",
        weir_arena_printf(engine->arena, "%s has finished%s.", run_text(engine, pipeline), what));
    engine_leave_run(engine, pipeline);
    engine_forget_failure(engine, pipeline);
    (void)follow(engine, pipeline, false);
}

/** A preparation's command has ended well: a version is made of what it wrote. */
static void freeze(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    engine_set_state(engine, pipeline, PIPELINE_FREEZING, NULL);
    pipeline->job = NULL;
}

void engine_on_ended(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, event->pipeline);
    if (pipeline == NULL) {
        return;
    }
    const struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (runs == NULL) {
        replicas_ended(engine, pipeline);
        return;
    }
    bool is_frozen = engine_is(pipeline->state, PIPELINE_FREEZING);
    if (!engine_is_running(pipeline) || runs->training != event->training ||
        (is_frozen && event->type != WEIR_ION_EVENT_FAILED)) {
        return; /* of an earlier run; of the command of one whose output is being frozen */
    }
    if (event->type == WEIR_ION_EVENT_FAILED) {
        run_failed(engine, pipeline);
    } else if (event->type == WEIR_ION_EVENT_CANCELLED) {
        run_cancelled(engine, pipeline);
    } else if (engine_is(pipeline->type, "preparation")) {
        freeze(engine, pipeline);
    } else {
        run_finished(engine, pipeline, "");
    }
}

void engine_on_frozen(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, event->pipeline);
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&engine->state->doc, event->pipeline);
    if (pipeline == NULL || doc == NULL || !engine_is(pipeline->state, PIPELINE_FREEZING) ||
        weir_ion_runs_of(pipeline)->training != event->training) {
        return;
    }
    run_finished(
        engine, pipeline,
        weir_arena_printf(engine->arena, ": %s version %" PRId64, doc->output, event->version));
}
