/* Pipelines that people, or rules of alerts, have paused. */
#include "ion/engine.h"

#include <string.h>

/* Is the pipeline meant: the named one, or any? */
static bool is_meant(const struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return !engine_is(pipeline->state, PIPELINE_REMOVED) &&
           (engine->event->pipeline == NULL ||
            strcmp(engine->event->pipeline, pipeline->name) == 0);
}

static bool is_paused(const struct weir_ion_pipeline *pipeline)
{
    return pipeline->paused_by != NULL;
}

char *engine_pause_reason(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    return is_paused(pipeline)
               ? weir_arena_printf(engine->arena, "paused by %s", pipeline->paused_by)
               : NULL;
}

static weir_status check(struct engine *engine, bool wants_paused)
{
    size_t n_meant = 0, n_right = 0;
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        n_meant += is_meant(engine, pipeline);
        n_right += is_meant(engine, pipeline) && is_paused(pipeline) == wants_paused;
    }
    if (n_meant == 0) {
        return weir_error_set(engine->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no pipeline \"%s\"",
                              engine->state->ion.name,
                              engine->event->pipeline != NULL ? engine->event->pipeline : "");
    }
    const char *of = engine->event->pipeline;
    return n_right > 0 ? WEIR_OK
                       : weir_error_set(engine->err, WEIR_ERR_CONFLICT, "%s \"%s\" is %s",
                                        of != NULL ? "pipeline" : "ION",
                                        of != NULL ? of : engine->state->ion.name,
                                        wants_paused ? "not paused" : "paused already");
}

/* Its replicas stop. What its link has chosen stays chosen. */
static void stop_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    engine_stop_replicas(engine, pipeline);
    engine_forget_serving(engine, pipeline);
    engine_set_state(engine, pipeline, PIPELINE_WAITING, engine_pause_reason(engine, pipeline));
}

static void begin_pause(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    pipeline->paused_by = weir_arena_strdup(engine->arena, engine_actor(engine));
    pipeline->paused_ms = engine->now_ms;
    pipeline->updated_ms = engine->now_ms;
    bool is_running = engine_is_running(pipeline);
    if (weir_ion_service_of(pipeline) != NULL) {
        stop_replicas(engine, pipeline);
    } else if (!is_running) {
        engine_set_state(engine, pipeline, pipeline->state, engine_pause_reason(engine, pipeline));
    }
    engine_tell(engine, "pipeline_paused",
                weir_arena_printf(engine->arena, "Pipeline %s was paused by %s%s.", pipeline->name,
                                  engine_actor(engine),
                                  is_running ? "; the run in progress goes on to its end" : ""));
}

static void end_pause(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    pipeline->paused_by = NULL;
    pipeline->paused_ms = 0;
    pipeline->updated_ms = engine->now_ms;
    engine_tell(engine, "pipeline_resumed",
                weir_arena_printf(engine->arena, "Pipeline %s goes on, by %s.", pipeline->name,
                                  engine_actor(engine)));
    if (weir_ion_service_of(pipeline) != NULL) {
        engine_set_state(engine, pipeline, PIPELINE_WAITING, NULL);
        engine_deploy(engine, pipeline);
    } else if (engine_is(pipeline->state, PIPELINE_IDLE)) {
        engine_set_state(engine, pipeline, PIPELINE_IDLE, NULL);
        engine_go_on(engine, pipeline);
    }
}

weir_status engine_on_pause(struct engine *engine)
{
    WEIR_TRY(check(engine, false));
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        if (is_meant(engine, pipeline) && !is_paused(pipeline)) {
            begin_pause(engine, pipeline);
        }
    }
    return WEIR_OK;
}

weir_status engine_on_resume(struct engine *engine)
{
    WEIR_TRY(check(engine, true));
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        if (is_meant(engine, pipeline) && is_paused(pipeline)) {
            end_pause(engine, pipeline);
        }
    }
    return WEIR_OK;
}
