#include "ion/engine.h"

#include <inttypes.h>
#include <string.h>

static bool is_same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static const struct weir_ion_dataset *find_dataset(const struct weir_ion_event *event,
                                                   const char *name)
{
    for (size_t i = 0; name != NULL && i < event->n_datasets; i++) {
        if (strcmp(event->datasets[i].name, name) == 0) {
            return &event->datasets[i];
        }
    }
    return NULL;
}

/** Does the link lead into the pipeline? Names hold no colon. */
static bool leads_into(const char *link, const char *pipeline)
{
    const char *colon = strchr(link, ':');
    return colon != NULL && strcmp(colon + 1, pipeline) == 0;
}

static void retire(struct engine *engine, struct weir_ion_candidate *candidate)
{
    candidate->state = WEIR_CANDIDATE_RETIRED;
    candidate->updated_ms = engine->now_ms;
}

/** What a prediction's links had chosen goes with it. */
static void retire_served(struct engine *engine, const struct weir_ion_pipeline *pipeline)
{
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        if (leads_into(candidate->link, pipeline->name) &&
            engine_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            retire(engine, candidate);
        }
    }
}

/** Counters stay: numbers and keys are not used again if the pipeline comes back. */
static void remove_pipeline(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (runs != NULL) {
        engine_stop_run(engine, pipeline);
        engine_forget_failure(engine, pipeline);
        runs->run = runs->pending_cause = runs->pending_by = NULL;
        runs->runs_left = runs->next_fire_ms = 0;
    } else {
        engine_stop_replicas(engine, pipeline);
        retire_served(engine, pipeline);
        engine_forget_serving(engine, pipeline);
        service->candidate = service->deployment = NULL;
    }
    engine_set_state(engine, pipeline, PIPELINE_REMOVED, NULL);
    pipeline->job = pipeline->paused_by = NULL;
    pipeline->paused_ms = pipeline->n_failures = pipeline->restart_ms = 0;
}

/** Pipelines that the new document no longer has, or has as another type. */
static void remove_missing(struct engine *engine)
{
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        const struct weir_ion_doc_pipeline *doc =
            weir_ion_doc_pipeline(&engine->state->doc, pipeline->name);
        if (!engine_is(pipeline->state, PIPELINE_REMOVED) &&
            (doc == NULL || !engine_is(pipeline->type, weir_pipeline_type_name(doc->type)))) {
            remove_pipeline(engine, pipeline);
        }
    }
}

/** The row of a document's pipeline; made, or made new if it had been removed. */
static struct weir_ion_pipeline *
ensure_pipeline(struct engine *engine, const struct weir_ion_doc_pipeline *doc, bool *out_is_new)
{
    struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(engine->state, doc->name);
    *out_is_new = pipeline == NULL || engine_is(pipeline->state, PIPELINE_REMOVED);
    if (pipeline == NULL) {
        pipeline = engine_add_pipeline(
            engine,
            (struct weir_ion_pipeline){
                .id = weir_arena_printf(engine->arena, "%s:%s", engine->state->ion.name, doc->name),
                .ion = engine->state->ion.name,
                .name = weir_arena_strdup(engine->arena, doc->name)});
    }
    if (*out_is_new) {
        pipeline->type = (char *)weir_pipeline_type_name(doc->type);
        engine_set_state(engine, pipeline,
                         weir_ion_runs_of(pipeline) != NULL ? PIPELINE_IDLE : PIPELINE_WAITING,
                         NULL);
        pipeline->runs.dataset_version = 0;
        pipeline->runs.measured_model = NULL;
        pipeline->runs.measured_version = 0;
        pipeline->service.last_frame_ms = 0;
        pipeline->service.gallery.version = 0;
        pipeline->service.impostors.version = 0;
        pipeline->service.threshold = NULL;
    }
    return pipeline;
}

/** A preparation makes another dataset: what its run has written belongs to the one before. */
static void change_output(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    engine_stop_run(engine, pipeline);
    if (engine_is_running(pipeline)) {
        engine_leave_run(engine, pipeline);
    }
}

static void apply_job(struct engine *engine, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_doc_pipeline *old,
                      const struct weir_ion_doc_pipeline *doc)
{
    if (old != NULL && !is_same_text(old->output, doc->output)) {
        change_output(engine, pipeline);
    }
    const struct weir_ion_dataset *dataset = find_dataset(engine->event, doc->dataset);
    if (old != NULL && !is_same_text(old->dataset, doc->dataset)) {
        engine_forget_dataset(engine, pipeline);
    }
    if (dataset != NULL) {
        engine_see_dataset(engine, pipeline, dataset);
    }
}

static void apply_prediction(struct engine *engine, struct weir_ion_pipeline *pipeline,
                             const struct weir_ion_doc_pipeline *old,
                             const struct weir_ion_doc_pipeline *doc)
{
    const struct weir_ion_dataset *dataset = find_dataset(engine->event, doc->gallery_dataset);
    const struct weir_ion_dataset *impostors = find_dataset(engine->event, doc->impostors);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (old != NULL && !is_same_text(old->gallery_dataset, doc->gallery_dataset)) {
        service->gallery.version = 0;
    }
    if (old != NULL && !is_same_text(old->impostors, doc->impostors)) {
        service->impostors.version = 0;
    }
    if (dataset != NULL) {
        engine_see_gallery(engine, pipeline, dataset);
    }
    if (impostors != NULL) {
        engine_see_impostors(engine, pipeline, impostors);
    }
    bool must_restart = old != NULL && (old->replicas != doc->replicas || old->gpus != doc->gpus ||
                                        !is_same_text(old->source, doc->source) ||
                                        !is_same_text(old->sinks, doc->sinks));
    if (must_restart) {
        engine_restart_replicas(engine, pipeline);
    } else {
        engine_deploy(engine, pipeline);
    }
}

static void apply_links(struct engine *engine, const struct weir_ion_doc *old_doc)
{
    const struct weir_ion_doc *doc = &engine->state->doc;
    for (size_t i = 0; i < old_doc->n_links; i++) {
        if (weir_ion_doc_link(doc, old_doc->links[i].id) == NULL) {
            engine_end_trials_of(engine, old_doc->links[i].id,
                                 "it was being tried, and its link is gone");
        }
    }
    for (size_t i = 0; i < engine->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &engine->state->candidates[i];
        /* The pipeline goes on serving it until the new link brings another. While the ION was deleted
           a version may have been, too. */
        if (engine_is(candidate->state, WEIR_CANDIDATE_SERVING) &&
            (weir_ion_doc_link(doc, candidate->link) == NULL || candidate->blob[0] == '\0')) {
            retire(engine, candidate);
        }
    }
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *old = weir_ion_doc_link(old_doc, doc->links[i].id);
        if (old == NULL || strcmp(old->policies.text, doc->links[i].policies.text) != 0) {
            engine_leave_chain(engine, doc->links[i].id);
        }
        /* A newer model first: what served last would be promoted only to be replaced. */
        engine_offer_models(engine, &doc->links[i]);
        engine_enter_chain(engine, &doc->links[i]);
        if (weir_ion_serving(engine->state, doc->links[i].id) == NULL) {
            engine_revive_link(engine, &doc->links[i]);
        }
        if (weir_ion_serving(engine->state, doc->links[i].id) == NULL) {
            engine_serve_default(engine, &doc->links[i]);
        }
    }
}

static void apply_header(struct engine *engine)
{
    struct weir_ion *ion = &engine->state->ion;
    engine_choose_mode(engine);
    if (ion->revision == 0) {
        ion->name = weir_arena_strdup(engine->arena, engine->event->doc->name);
        ion->created_by = weir_arena_strdup(engine->arena, engine_actor(engine));
        ion->created_ms = engine->now_ms;
    }
    ion->project = weir_arena_strdup(engine->arena, engine->event->doc->project);
    ion->document = weir_arena_strdup(engine->arena, engine->event->document);
    ion->state = "ACTIVE";
    ion->revision++;
    ion->updated_ms = engine->now_ms;
    engine_tell(engine, "ion_applied",
                weir_arena_printf(engine->arena, "ION %s was applied (revision %" PRId64 ").",
                                  ion->name, ion->revision));
}

void engine_on_applied(struct engine *engine)
{
    struct weir_ion_state *state = engine->state;
    if (engine_is(state->ion.state, "ACTIVE") &&
        is_same_text(state->ion.document, engine->event->document)) {
        return;
    }
    const struct weir_ion_doc old_doc = state->doc;
    apply_header(engine);
    state->doc = *engine->event->doc;
    remove_missing(engine);
    bool are_new[WEIR_ION_PIPELINES_MAX];
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        (void)ensure_pipeline(engine, &state->doc.pipelines[i], &are_new[i]);
    }
    engine_arm_triggers(engine);
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *doc = &state->doc.pipelines[i];
        bool is_new = are_new[i];
        struct weir_ion_pipeline *pipeline = engine_pipeline(engine, doc->name);
        const struct weir_ion_doc_pipeline *old =
            is_new ? NULL : weir_ion_doc_pipeline(&old_doc, doc->name);
        if (doc->type != WEIR_PIPELINE_PREDICTION) {
            apply_job(engine, pipeline, old, doc);
        } else {
            apply_prediction(engine, pipeline, old, doc);
        }
    }
    apply_links(engine, &old_doc);
    engine_apply_measured(engine);
}

weir_status engine_on_deleted(struct engine *engine)
{
    struct weir_ion_state *state = engine->state;
    for (size_t i = 0; i < state->n_pipelines; i++) {
        if (!engine_is(state->pipelines[i].state, PIPELINE_REMOVED)) {
            remove_pipeline(engine, &state->pipelines[i]);
        }
    }
    for (size_t i = 0; i < state->doc.n_links; i++) {
        engine_end_trials_of(engine, state->doc.links[i].id,
                             "it was being tried, and its ION was deleted");
    }
    engine_drop_evaluations(engine);
    engine_arm_triggers(engine); /* They have gone with their pipelines. */
    state->ion.state = "DELETED";
    state->ion.updated_ms = engine->now_ms;
    engine_tell(engine, "ion_deleted",
                weir_arena_printf(engine->arena, "ION %s was deleted.", state->ion.name));
    return WEIR_OK;
}
