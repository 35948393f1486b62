#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static char *alert_key(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return weir_arena_printf(engine->arena, "training_failed:%s", pipeline->id);
}

void engine_forget_failure(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    if (engine_is(pipeline->type, "training")) {
        engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_RESOLVE,
                                                    .key = alert_key(engine, pipeline)});
    }
}

static void start(struct engine *engine, struct weir_ion_pipeline *pipeline, char *cause, char *by)
{
    engine_set_state(engine, pipeline, PIPELINE_TRAINING, NULL);
    pipeline->training++;
    pipeline->cause = cause;
    pipeline->cause_by = by;
    pipeline->pending_cause = NULL;
    pipeline->pending_by = NULL;
    pipeline->job = NULL;
    pipeline->run = NULL;
    pipeline->started_ms = engine->now_ms;
    pipeline->updated_ms = engine->now_ms;
    engine_use_data(engine, pipeline);
    engine_act(engine, (struct weir_ion_action){
                           .type = WEIR_ION_ACTION_START_TRAINING,
                           .key = weir_arena_printf(engine->arena, "start_training:%s:%" PRId64,
                                                    pipeline->id, pipeline->training),
                           .pipeline = pipeline->name,
                           .number = pipeline->training,
                           .message = cause});
    engine_tell(engine, "training_triggered",
                weir_arena_printf(engine->arena,
                                  "Training %" PRId64 " of pipeline %s was triggered: %s.",
                                  pipeline->training, pipeline->name, cause));
}

/** One more person wants the further training. */
static void add_pending_by(struct engine *engine, struct weir_ion_pipeline *pipeline, char *by)
{
    if (by == NULL) {
        return;
    }
    const char *known = pipeline->pending_by != NULL ? pipeline->pending_by : "";
    char *framed = weir_arena_printf(engine->arena, ", %s, ", known);
    if (strstr(framed, weir_arena_printf(engine->arena, ", %s, ", by)) == NULL) {
        pipeline->pending_by =
            known[0] == '\0' ? by : weir_arena_printf(engine->arena, "%s, %s", known, by);
    }
}

void engine_trigger(struct engine *engine, struct weir_ion_pipeline *pipeline, const char *cause)
{
    char *copy = weir_arena_strdup(engine->arena, cause);
    bool is_by_hand =
        engine->event->type == WEIR_ION_EVENT_TRIGGER || engine->event->type == WEIR_ION_EVENT_RUN;
    char *by = is_by_hand ? weir_arena_strdup(engine->arena, engine_actor(engine)) : NULL;
    bool is_paused = pipeline->paused_by != NULL;
    if (!engine_is(pipeline->state, PIPELINE_TRAINING) && !is_paused) {
        start(engine, pipeline, copy, by);
        return;
    }
    add_pending_by(engine, pipeline, by);
    if (pipeline->pending_cause != NULL) {
        return; /* One further training covers this trigger too. */
    }
    pipeline->pending_cause = copy;
    pipeline->updated_ms = engine->now_ms;
    engine_tell(engine, "training_queued",
                is_paused ? weir_arena_printf(engine->arena,
                                              "Pipeline %s is paused, and trains when it goes on: "
                                              "%s.",
                                              pipeline->name, cause)
                          : weir_arena_printf(engine->arena,
                                              "Pipeline %s trains again when training %" PRId64
                                              " has ended: %s.",
                                              pipeline->name, pipeline->training, cause));
}

void engine_go_on(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->pending_cause == NULL) {
        engine_run_again(engine, pipeline);
    } else if (pipeline->paused_by == NULL) {
        start(engine, pipeline, pipeline->pending_cause, pipeline->pending_by);
    }
}

void engine_on_started(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, event->pipeline);
    if (pipeline == NULL || pipeline->job != NULL) {
        return;
    }
    bool is_training = engine_is(pipeline->type, "training");
    if (!is_training && pipeline->paused_by != NULL) {
        return;
    }
    if (is_training &&
        (!engine_is(pipeline->state, PIPELINE_TRAINING) || pipeline->training != event->training)) {
        return;
    }
    pipeline->job = weir_arena_strdup(engine->arena, event->job);
    pipeline->run = weir_arena_strdup(engine->arena, event->run);
    pipeline->updated_ms = engine->now_ms;
    engine_tell(engine, is_training ? "training_started" : "prediction_started",
                weir_arena_printf(engine->arena, "Job %s was made for pipeline %s.", event->job,
                                  pipeline->name));
}

/** Replicas are a service: if their job is over, somebody ended it. */
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
    engine_tell(engine, "prediction_ended",
                weir_arena_printf(engine->arena,
                                  "The replicas of pipeline %s have ended%s%s; they start again "
                                  "with the next deployment.",
                                  pipeline->name, colon, note));
}

static void tell_failed(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    const char *note = engine->event->note;
    char *message = weir_arena_printf(
        engine->arena, "Training %" PRId64 " of pipeline %s has failed: %s.", pipeline->training,
        pipeline->name, note != NULL ? note : "no reason is known");
    engine_tell(engine, "training_failed", message);
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_ALERT,
                                                .key = alert_key(engine, pipeline),
                                                .kind = "training_failed",
                                                .message = message});
}

/** A training that a person ends says nothing about the next: an alert of before stays as it is. */
static void tell_cancelled(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    const char *note = engine->event->note;
    engine_tell(engine, "training_cancelled",
                weir_arena_printf(engine->arena, "Training %" PRId64 " of pipeline %s was %s.",
                                  pipeline->training, pipeline->name,
                                  note != NULL ? note : "cancelled"));
}

static void tell_finished(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    engine_tell(engine, "training_finished",
                weir_arena_printf(engine->arena,
                                  "Training %" PRId64 " of pipeline %s has finished.",
                                  pipeline->training, pipeline->name));
    engine_forget_failure(engine, pipeline);
}

void engine_on_ended(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, event->pipeline);
    if (pipeline == NULL) {
        return;
    }
    if (!engine_is(pipeline->type, "training")) {
        replicas_ended(engine, pipeline);
        return;
    }
    if (!engine_is(pipeline->state, PIPELINE_TRAINING) || pipeline->training != event->training) {
        return;
    }
    engine_set_state(engine, pipeline, PIPELINE_IDLE, engine_pause_reason(engine, pipeline));
    pipeline->job = NULL;
    pipeline->run = NULL;
    pipeline->updated_ms = engine->now_ms;
    if (event->type == WEIR_ION_EVENT_FINISHED) {
        tell_finished(engine, pipeline);
    } else if (event->type == WEIR_ION_EVENT_CANCELLED) {
        tell_cancelled(engine, pipeline);
    } else {
        tell_failed(engine, pipeline);
    }
    engine_go_on(engine, pipeline);
}
