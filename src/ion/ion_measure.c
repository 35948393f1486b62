/* Models that come to pipelines which measure them: evaluations and comparisons. */
#include "ion/engine.h"

#include <inttypes.h>

bool engine_lacks_model(const struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&engine->state->doc, pipeline->name);
    return doc != NULL && weir_pipeline_measures(doc->type) &&
           weir_ion_runs_of(pipeline)->measured_version == 0;
}

/** A version, newer than the one that it knows: the pipeline measures it. */
static void see_model(struct engine *engine, const struct weir_ion_doc_feed *feed,
                      const struct weir_ion_model *model)
{
    struct weir_ion_pipeline *pipeline = engine_pipeline(engine, feed->to);
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    if (pipeline == NULL || (engine_is(runs->measured_model, model->name) &&
                             runs->measured_version >= model->version)) {
        return;
    }
    runs->measured_model = weir_arena_strdup(engine->arena, model->name);
    runs->measured_version = model->version;
    pipeline->updated_ms = engine->now_ms;
    engine_trigger(
        engine, pipeline,
        weir_arena_printf(engine->arena, "model %s version %" PRId64, model->name, model->version));
}

void engine_measure_model(struct engine *engine)
{
    const struct weir_ion_event *event = engine->event;
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        const struct weir_ion_doc_feed *feed = &doc->feeds[i];
        bool is_made = engine_is_made_by(engine, feed->from);
        bool is_registered = engine_is(feed->model, event->models[0].name);
        if (feed->dataset == NULL && (is_made || is_registered)) {
            see_model(engine, feed, &event->models[0]);
        }
    }
}

/** The name under which the feed's models are registered. */
static const char *name_of(struct engine *engine, const struct weir_ion_doc_feed *feed)
{
    return feed->model != NULL ? feed->model : weir_ion_doc_model(&engine->state->doc, feed->from);
}

void engine_apply_measured(struct engine *engine)
{
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; i < doc->n_feeds; i++) {
        const struct weir_ion_doc_feed *feed = &doc->feeds[i];
        struct weir_ion_pipeline *pipeline = engine_pipeline(engine, feed->to);
        struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
        if (feed->dataset != NULL || pipeline == NULL) {
            continue;
        }
        const char *name = name_of(engine, feed);
        if (runs->measured_model != NULL && !engine_is(runs->measured_model, name)) {
            runs->measured_model = NULL;
            runs->measured_version = 0;
            pipeline->updated_ms = engine->now_ms;
        }
        for (size_t k = 0; k < engine->event->n_models; k++) {
            if (engine_is(name, engine->event->models[k].name)) {
                see_model(engine, feed, &engine->event->models[k]);
            }
        }
    }
}
