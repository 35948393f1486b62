#include "ion/step/engine.h"

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

static void retire(struct ion_step *step, struct weir_ion_candidate *candidate)
{
    candidate->state = WEIR_CANDIDATE_RETIRED;
    candidate->updated_ms = step->now_ms;
}

/** What a prediction's links had chosen goes with it. */
static void retire_served(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        if (leads_into(candidate->link, pipeline->name) &&
            step_is(candidate->state, WEIR_CANDIDATE_SERVING)) {
            retire(step, candidate);
        }
    }
}

/** Counters stay: numbers and keys are not used again if the pipeline comes back. */
static void remove_pipeline(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    struct weir_ion_runs *runs = weir_ion_runs_of(pipeline);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (runs != NULL) {
        step_stop_run(step, pipeline);
        step_forget_failure(step, pipeline);
        runs->run = runs->pending_cause = runs->pending_by = NULL;
        runs->runs_left = runs->next_fire_ms = 0;
    } else {
        step_stop_replicas(step, pipeline);
        retire_served(step, pipeline);
        step_forget_serving(step, pipeline);
        service->candidate = service->deployment = NULL;
    }
    step_set_state(step, pipeline, PIPELINE_REMOVED, NULL);
    pipeline->job = pipeline->paused_by = NULL;
    pipeline->paused_ms = pipeline->n_failures = pipeline->restart_ms = 0;
}

/** Pipelines that the new document no longer has, or has as another type. */
static void remove_missing(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        const struct weir_ion_doc_pipeline *doc =
            weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
        if (!step_is(pipeline->state, PIPELINE_REMOVED) &&
            (doc == NULL || !step_is(pipeline->type, weir_pipeline_type_name(doc->type)))) {
            remove_pipeline(step, pipeline);
        }
    }
}

/** The row of a document's pipeline; made, or made new if it had been removed. */
static struct weir_ion_pipeline *
ensure_pipeline(struct ion_step *step, const struct weir_ion_doc_pipeline *doc, bool *out_is_new)
{
    struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(step->state, doc->name);
    *out_is_new = pipeline == NULL || step_is(pipeline->state, PIPELINE_REMOVED);
    if (pipeline == NULL) {
        pipeline = step_add_pipeline(
            step, (struct weir_ion_pipeline){
                      .id = step_text(step, "%s:%s", step->state->ion.name, doc->name),
                      .ion = step->state->ion.name,
                      .name = weir_arena_strdup(step->arena, doc->name)});
    }
    if (*out_is_new) {
        pipeline->type = (char *)weir_pipeline_type_name(doc->type);
        step_set_state(step, pipeline,
                       weir_ion_runs_of(pipeline) != NULL ? PIPELINE_IDLE : PIPELINE_WAITING, NULL);
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
static void change_output(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    step_stop_run(step, pipeline);
    if (step_is_running(pipeline)) {
        step_leave_run(step, pipeline);
    }
}

static void apply_job(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_doc_pipeline *old,
                      const struct weir_ion_doc_pipeline *doc)
{
    if (old != NULL && !is_same_text(old->output, doc->output)) {
        change_output(step, pipeline);
    }
    const struct weir_ion_dataset *dataset = find_dataset(step->event, doc->dataset);
    if (old != NULL && !is_same_text(old->dataset, doc->dataset)) {
        step_forget_dataset(step, pipeline);
    }
    if (dataset != NULL) {
        step_see_dataset(step, pipeline, dataset);
    }
}

/** The version that another name had goes, before anything starts that needs a detector. */
static void forget_detector(struct weir_ion_pipeline *pipeline,
                            const struct weir_ion_doc_pipeline *old,
                            const struct weir_ion_doc_pipeline *doc)
{
    if (old == NULL || !is_same_text(old->detector, doc->detector) ||
        !is_same_text(old->detector_alias, doc->detector_alias) ||
        old->detector_version != doc->detector_version) {
        weir_ion_service_of(pipeline)->detector = (struct weir_ion_detector){0};
        if (step_is(pipeline->state, PIPELINE_WAITING) && pipeline->paused_by == NULL) {
            pipeline->state_reason = NULL; /* It may have been the other that was missing. */
        }
    }
}

/** The version that the document's detector names. */
static void apply_detector(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_event *event = step->event;
    for (size_t i = 0; i < event->n_detectors; i++) {
        if (strcmp(event->detectors[i].pipeline, pipeline->name) == 0) {
            step_see_detector(step, pipeline, &event->detectors[i].model);
        }
    }
}

/** Its replicas keep no pictures from their start on. */
static bool keeps_none(const struct weir_ion_doc_pipeline *doc)
{
    return doc->keep_pictures_ms < 0;
}

static void apply_prediction(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                             const struct weir_ion_doc_pipeline *old,
                             const struct weir_ion_doc_pipeline *doc)
{
    const struct weir_ion_dataset *dataset = find_dataset(step->event, doc->gallery_dataset);
    const struct weir_ion_dataset *impostors = find_dataset(step->event, doc->impostors);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    if (old != NULL && !is_same_text(old->gallery_dataset, doc->gallery_dataset)) {
        service->gallery.version = 0;
    }
    if (old != NULL && !is_same_text(old->impostors, doc->impostors)) {
        service->impostors.version = 0;
    }
    service->keep_pictures_ms = doc->keep_pictures_ms;
    apply_detector(step, pipeline); /* First: those below deploy. */
    if (dataset != NULL) {
        step_see_gallery(step, pipeline, dataset);
    }
    if (impostors != NULL) {
        step_see_impostors(step, pipeline, impostors);
    }
    bool must_restart =
        old != NULL &&
        (old->replicas != doc->replicas || old->gpus != doc->gpus ||
         !is_same_text(old->source, doc->source) || !is_same_text(old->sinks, doc->sinks) ||
         !is_same_text(old->doors, doc->doors) || keeps_none(old) != keeps_none(doc));
    if (must_restart) {
        step_restart_replicas(step, pipeline);
    } else {
        step_deploy(step, pipeline);
    }
}

static void apply_links(struct ion_step *step, const struct weir_ion_doc *old_doc)
{
    const struct weir_ion_doc *doc = &step->state->doc;
    for (size_t i = 0; i < old_doc->n_links; i++) {
        if (weir_ion_doc_link(doc, old_doc->links[i].id) == NULL) {
            step_end_trials_of(step, old_doc->links[i].id,
                               "it was being tried, and its link is gone");
        }
    }
    for (size_t i = 0; i < step->state->n_candidates; i++) {
        struct weir_ion_candidate *candidate = &step->state->candidates[i];
        /* The pipeline goes on serving it until the new link brings another. While the ION was deleted
           a version may have been, too. */
        if (step_is(candidate->state, WEIR_CANDIDATE_SERVING) &&
            (weir_ion_doc_link(doc, candidate->link) == NULL || candidate->blob[0] == '\0')) {
            retire(step, candidate);
        }
    }
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *old = weir_ion_doc_link(old_doc, doc->links[i].id);
        if (old == NULL || strcmp(old->policies.text, doc->links[i].policies.text) != 0) {
            step_leave_chain(step, doc->links[i].id);
        }
        /* A newer model first: what served last would be promoted only to be replaced. */
        step_offer_models(step, &doc->links[i]);
        step_enter_chain(step, &doc->links[i]);
        if (weir_ion_serving(step->state, doc->links[i].id) == NULL) {
            step_revive_link(step, &doc->links[i]);
        }
        if (weir_ion_serving(step->state, doc->links[i].id) == NULL) {
            step_serve_default(step, &doc->links[i]);
        }
    }
}

static void apply_header(struct ion_step *step)
{
    struct weir_ion *ion = &step->state->ion;
    step_choose_mode(step);
    if (ion->revision == 0) {
        ion->name = weir_arena_strdup(step->arena, step->event->doc->name);
        ion->created_by = weir_arena_strdup(step->arena, step_actor(step));
        ion->created_ms = step->now_ms;
    }
    ion->project = weir_arena_strdup(step->arena, step->event->doc->project);
    ion->document = weir_arena_strdup(step->arena, step->event->document);
    ion->state = "ACTIVE";
    ion->revision++;
    ion->updated_ms = step->now_ms;
    step_tell(step, "ion_applied", "ION %s was applied (revision %" PRId64 ").", ion->name,
              ion->revision);
}

void step_on_applied(struct ion_step *step)
{
    struct weir_ion_state *state = step->state;
    if (step_is(state->ion.state, "ACTIVE") &&
        is_same_text(state->ion.document, step->event->document)) {
        return;
    }
    const struct weir_ion_doc old_doc = state->doc;
    apply_header(step);
    state->doc = *step->event->doc;
    remove_missing(step);
    bool are_new[WEIR_ION_PIPELINES_MAX];
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *doc = &state->doc.pipelines[i];
        struct weir_ion_pipeline *pipeline = ensure_pipeline(step, doc, &are_new[i]);
        if (doc->type == WEIR_PIPELINE_PREDICTION) {
            forget_detector(pipeline,
                            are_new[i] ? NULL : weir_ion_doc_pipeline(&old_doc, doc->name), doc);
        }
    }
    step_arm_triggers(step);
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *doc = &state->doc.pipelines[i];
        bool is_new = are_new[i];
        struct weir_ion_pipeline *pipeline = step_pipeline(step, doc->name);
        const struct weir_ion_doc_pipeline *old =
            is_new ? NULL : weir_ion_doc_pipeline(&old_doc, doc->name);
        if (doc->type != WEIR_PIPELINE_PREDICTION) {
            apply_job(step, pipeline, old, doc);
        } else {
            apply_prediction(step, pipeline, old, doc);
        }
    }
    apply_links(step, &old_doc);
    step_apply_measured(step);
}

weir_status step_on_deleted(struct ion_step *step)
{
    struct weir_ion_state *state = step->state;
    for (size_t i = 0; i < state->n_pipelines; i++) {
        if (!step_is(state->pipelines[i].state, PIPELINE_REMOVED)) {
            remove_pipeline(step, &state->pipelines[i]);
        }
    }
    for (size_t i = 0; i < state->doc.n_links; i++) {
        step_end_trials_of(step, state->doc.links[i].id,
                           "it was being tried, and its ION was deleted");
    }
    step_drop_evaluations(step);
    step_arm_triggers(step); /* They have gone with their pipelines. */
    state->ion.state = "DELETED";
    state->ion.updated_ms = step->now_ms;
    step_tell(step, "ion_deleted", "ION %s was deleted.", state->ion.name);
    return WEIR_OK;
}
