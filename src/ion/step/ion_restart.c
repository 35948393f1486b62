/* What starts again after it has ended, by its restart rule. */
#include "ion/step/engine.h"

#include <inttypes.h>

static const struct weir_ion_doc_pipeline *doc_of(const struct weir_ion_state *state,
                                                  const struct weir_ion_pipeline *pipeline)
{
    return step_is(pipeline->state, PIPELINE_REMOVED)
               ? NULL
               : weir_ion_doc_pipeline(&state->doc, pipeline->name);
}

/** Does the rule of the pipeline let it start again, and how long after the end? */
static bool restarts(const struct weir_ion_state *state, const struct weir_ion_pipeline *pipeline,
                     int64_t *out_delay_ms)
{
    const struct weir_ion_doc_pipeline *doc = doc_of(state, pipeline);
    const struct weir_restart_inputs inputs = {.n_failures = pipeline->n_failures};
    return doc != NULL && weir_restart_decide(&doc->restart, &inputs, out_delay_ms);
}

bool step_restart_later(struct ion_step *step, struct weir_ion_pipeline *pipeline, bool has_failed)
{
    int64_t delay_ms;
    const struct weir_ion_doc_pipeline *doc = doc_of(step->state, pipeline);
    pipeline->n_failures = has_failed ? pipeline->n_failures + 1 : 0;
    pipeline->restart_ms = 0;
    pipeline->updated_ms = step->now_ms;
    if (!restarts(step->state, pipeline, &delay_ms)) {
        return false;
    }
    pipeline->restart_ms = step->now_ms + delay_ms;
    const struct weir_restart_ops *ops = doc->restart.kind->ops;
    return ops->is_patient;
}

/** Its time has come; or a wall clock that was set back has put it further off than the rule says. */
static bool is_due(const struct weir_ion_state *state, const struct weir_ion_pipeline *pipeline,
                   int64_t now_ms)
{
    int64_t delay_ms;
    return pipeline->restart_ms > 0 &&
           (pipeline->restart_ms <= now_ms || !restarts(state, pipeline, &delay_ms) ||
            pipeline->restart_ms > now_ms + delay_ms);
}

static void restart(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc = doc_of(step->state, pipeline);
    int64_t delay_ms;
    bool still_does = restarts(step->state, pipeline, &delay_ms);
    pipeline->restart_ms = 0;
    pipeline->updated_ms = step->now_ms;
    if (!still_does) {
        return; /* The document has another rule by now. */
    }
    if (weir_ion_service_of(pipeline) != NULL) {
        step_deploy(step, pipeline);
    } else if (step_is(pipeline->state, PIPELINE_IDLE)) {
        step_trigger(step, pipeline,
                     pipeline->n_failures > 0
                         ? step_text(step, "restart %s, after failure %" PRId64 " in a row",
                                     doc->restart.kind->name, pipeline->n_failures)
                         : step_text(step, "restart %s", doc->restart.kind->name));
    }
}

void step_tick_restarts(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        if (is_due(step->state, pipeline, step->now_ms)) {
            restart(step, pipeline);
        }
    }
}

int64_t step_restarts_tick_ms(const struct weir_ion_state *state, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        if (pipeline->restart_ms > 0) {
            int64_t at_ms = is_due(state, pipeline, now_ms) ? now_ms : pipeline->restart_ms;
            next_ms = WEIR_MIN(next_ms, at_ms);
        }
    }
    return next_ms;
}
