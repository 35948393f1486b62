/* Models that come to pipelines which measure them: evaluations and comparisons. */
#include "ion/step/engine.h"

#include <inttypes.h>

bool step_lacks_model(const struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    return doc != NULL && weir_pipeline_measures(doc->type) &&
           weir_ion_runs_of(pipeline)->measured_version == 0;
}

/** A version, newer than the one that it knows: the pipeline measures it. */
static void see_model(struct ion_step *step, const struct weir_ion_doc_feed *feed,
                      const struct weir_ion_model *model)
{
    struct weir_ion_pipeline *pipeline = step_pipeline(step, feed->to);
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (pipeline == NULL ||
        (step_is(runs->measured_model, model->name) && runs->measured_version >= model->version)) {
        return;
    }
    runs->measured_model = weir_arena_strdup(step->arena, model->name);
    runs->measured_version = model->version;
    pipeline->updated_ms = step->now_ms;
    step_trigger(step, pipeline,
                 step_text(step, "model %s version %" PRId64, model->name, model->version));
}

void step_measure_model(struct ion_step *step)
{
    const struct weir_ion_event *event = step->event;
    const struct weir_ion_doc *doc = &step->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        const struct weir_ion_doc_feed *feed = &doc->feeds[i];
        bool is_made = step_is_made_by(step, feed->from);
        bool is_registered = step_is(feed->model, event->models[0].name);
        if (feed->dataset == NULL && (is_made || is_registered)) {
            see_model(step, feed, &event->models[0]);
        }
    }
}

/** The name under which the feed's models are registered. */
static const char *name_of(struct ion_step *step, const struct weir_ion_doc_feed *feed)
{
    return feed->model != NULL ? feed->model : weir_ion_doc_model(&step->state->doc, feed->from);
}

void step_apply_measured(struct ion_step *step)
{
    const struct weir_ion_doc *doc = &step->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        const struct weir_ion_doc_feed *feed = &doc->feeds[i];
        struct weir_ion_pipeline *pipeline = step_pipeline(step, feed->to);
        struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
        if (feed->dataset != NULL || pipeline == NULL) {
            continue;
        }
        const char *name = name_of(step, feed);
        if (runs->measured_model != NULL && !step_is(runs->measured_model, name)) {
            runs->measured_model = NULL;
            runs->measured_version = 0;
            pipeline->updated_ms = step->now_ms;
        }
        for (size_t k = 0; k < step->event->n_models; k++) {
            if (step_is(name, step->event->models[k].name)) {
                see_model(step, feed, &step->event->models[k]);
            }
        }
    }
}
