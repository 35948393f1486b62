/* Pipelines that people, or rules of alerts, have paused. */
#include "ion/step/engine.h"

#include <string.h>

/* Is the pipeline meant: the named one, or any? */
static bool is_meant(const struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    return !step_is(pipeline->state, PIPELINE_REMOVED) &&
           (step->event->pipeline == NULL || strcmp(step->event->pipeline, pipeline->name) == 0);
}

static bool is_paused(const struct weir_ion_pipeline *pipeline)
{
    return pipeline->paused_by != NULL;
}

char *step_pause_reason(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    return is_paused(pipeline) ? step_text(step, "paused by %s", pipeline->paused_by) : NULL;
}

static weir_status check(struct ion_step *step, bool wants_paused)
{
    size_t n_meant = 0, n_right = 0;
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        n_meant += is_meant(step, pipeline);
        n_right += is_meant(step, pipeline) && is_paused(pipeline) == wants_paused;
    }
    if (n_meant == 0) {
        return weir_error_set(step->err, WEIR_ERR_NOT_FOUND, "ION \"%s\" has no pipeline \"%s\"",
                              step->state->ion.name,
                              step->event->pipeline != NULL ? step->event->pipeline : "");
    }
    const char *of = step->event->pipeline;
    return n_right > 0 ? WEIR_OK
                       : weir_error_set(step->err, WEIR_ERR_CONFLICT, "%s \"%s\" is %s",
                                        of != NULL ? "pipeline" : "ION",
                                        of != NULL ? of : step->state->ion.name,
                                        wants_paused ? "not paused" : "paused already");
}

/* Its replicas stop. What its link has chosen stays chosen. */
static void stop_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    step_stop_replicas(step, pipeline);
    step_forget_serving(step, pipeline);
    step_set_state(step, pipeline, PIPELINE_WAITING, step_pause_reason(step, pipeline));
}

static void begin_pause(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    pipeline->paused_by = weir_arena_strdup(step->arena, step_actor(step));
    pipeline->paused_ms = step->now_ms;
    pipeline->updated_ms = step->now_ms;
    bool is_running = step_is_running(pipeline);
    if (weir_ion_service_of(pipeline) != NULL) {
        stop_replicas(step, pipeline);
    } else if (!is_running) {
        step_set_state(step, pipeline, pipeline->state, step_pause_reason(step, pipeline));
    }
    step_tell(step, "pipeline_paused", "Pipeline %s was paused by %s%s.", pipeline->name,
              step_actor(step), is_running ? "; the run in progress goes on to its end" : "");
}

static void end_pause(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    pipeline->paused_by = NULL;
    pipeline->paused_ms = 0;
    pipeline->updated_ms = step->now_ms;
    step_tell(step, "pipeline_resumed", "Pipeline %s goes on, by %s.", pipeline->name,
              step_actor(step));
    if (weir_ion_service_of(pipeline) != NULL) {
        step_set_state(step, pipeline, PIPELINE_WAITING, NULL);
        step_deploy(step, pipeline);
    } else if (step_is(pipeline->state, PIPELINE_IDLE)) {
        step_set_state(step, pipeline, PIPELINE_IDLE, NULL);
        step_go_on(step, pipeline);
    }
}

weir_status step_on_pause(struct ion_step *step)
{
    WEIR_TRY(check(step, false));
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        if (is_meant(step, pipeline) && !is_paused(pipeline)) {
            begin_pause(step, pipeline);
        }
    }
    return WEIR_OK;
}

weir_status step_on_resume(struct ion_step *step)
{
    WEIR_TRY(check(step, true));
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        if (is_meant(step, pipeline) && is_paused(pipeline)) {
            end_pause(step, pipeline);
        }
    }
    return WEIR_OK;
}
