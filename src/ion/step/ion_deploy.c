#include "base/json.h"
#include "ion/step/engine.h"

#include <inttypes.h>
#include <string.h>

/** Text that is absent or not UTF-8 becomes null: a deployment is made in any case. */
static void put_text(json_t *object, const char *key, const char *text)
{
    json_t *value = text != NULL ? json_string(text) : NULL;
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static void put_int(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static void put_parsed(json_t *object, const char *key, const char *text)
{
    json_t *value = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static json_t *model_json(const struct weir_ion_candidate *candidate)
{
    json_t *model = json_object();
    put_text(model, "name", candidate->model);
    put_int(model, "version", candidate->version);
    put_text(model, "id", candidate->model_version);
    put_text(model, "blob", candidate->blob);
    return model;
}

static json_t *detector_json(const struct weir_ion_detector *detector)
{
    json_t *model = json_object();
    put_text(model, "name", detector->model);
    put_int(model, "version", detector->version);
    put_text(model, "id", detector->id);
    put_text(model, "blob", detector->blob);
    return model;
}

/** A version of a dataset of people; null if none is named, or none of their photos are there yet. */
static json_t *people_json(const struct weir_ion_people *people, const char *dataset)
{
    if (dataset == NULL || people->version == 0) {
        return json_null();
    }
    json_t *json = json_object();
    put_text(json, "dataset", dataset);
    put_int(json, "version", people->version);
    put_text(json, "path", people->path);
    put_text(json, "digest", people->digest);
    put_text(json, "blob", people->blob);
    return json;
}

/** Of whom faces are known, and in it by whom the threshold is set. */
static json_t *gallery_json(const struct weir_ion_service *service,
                            const struct weir_ion_doc_pipeline *doc)
{
    json_t *gallery = people_json(&service->gallery, doc->gallery_dataset);
    if (json_is_object(gallery)) {
        json_object_set_new(gallery, "impostors", people_json(&service->impostors, doc->impostors));
    }
    return gallery;
}

static json_t *lists_json(const struct weir_ion_state *state)
{
    json_t *lists = json_object(), *allow = json_array(), *deny = json_array();
    for (size_t i = 0; i < state->n_members; i++) {
        json_t *person = json_string(state->members[i].person);
        if (person != NULL) {
            json_array_append_new(step_is(state->members[i].list, "allow") ? allow : deny, person);
        }
    }
    json_object_set_new(lists, "allow", allow);
    json_object_set_new(lists, "deny", deny);
    if (state->n_lock_downs > 0) {
        json_t *locked = json_array();
        for (size_t i = 0; i < state->n_lock_downs; i++) {
            json_array_append_new(locked, json_string(state->lock_downs[i].door));
        }
        json_object_set_new(lists, "locked", locked);
    }
    return lists;
}

static char *compose(struct ion_step *step, const struct weir_ion_service *service,
                     const struct weir_ion_doc_pipeline *doc,
                     const struct weir_ion_candidate *candidate, int64_t revision)
{
    json_t *deployment = json_object();
    put_int(deployment, "revision", revision);
    json_object_set_new(deployment, "model", model_json(candidate));
    put_parsed(deployment, "stages", doc->stages);
    if (doc->finds_with != NULL) {
        json_object_set_new(deployment, "detector", model_json(candidate));
    } else if (doc->detector != NULL) {
        json_object_set_new(deployment, "detector", detector_json(&service->detector));
    }
    json_object_set_new(deployment, "gallery", gallery_json(service, doc));
    put_int(deployment, "list_revision", step->state->ion.list_revision);
    json_object_set_new(deployment, "lists", lists_json(step->state));
    put_text(deployment, "default",
             doc->gallery_default != NULL ? doc->gallery_default : "unknown");
    json_object_set_new(deployment, "false_accept_rate",
                        json_real(doc->false_accept_rate > 0 ? doc->false_accept_rate : 0.01));
    json_object_set_new(deployment, "false_deny_rate",
                        json_real(doc->false_deny_rate > 0 ? doc->false_deny_rate : 0.01));
    put_parsed(deployment, "source", doc->source);
    put_parsed(deployment, "sinks", doc->sinks);
    char *text = weir_json_text(deployment, step->arena);
    json_decref(deployment);
    return text;
}

/** The deployment revision makes the key new each time. */
static void start_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    step_set_state(step, pipeline, PIPELINE_DEPLOYING, NULL);
    pipeline->restart_ms = 0;
    step_act(step, (struct weir_ion_action){
                       .type = WEIR_ION_ACTION_START_PREDICTION,
                       .key = step_text(step, "start_prediction:%s:%" PRId64, pipeline->id,
                                        weir_ion_service_of(pipeline)->deployment_revision),
                       .pipeline = pipeline->name});
}

/** @return Whether there is something to serve. */
static bool deploy(struct ion_step *step, struct weir_ion_pipeline *pipeline, bool must_renew)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    struct weir_ion_service *service = weir_ion_service_of(pipeline);
    const struct weir_ion_candidate *candidate =
        weir_ion_candidate_of(step->state, service->candidate);
    if (doc == NULL || candidate == NULL) {
        return false;
    }
    char *same = compose(step, service, doc, candidate, service->deployment_revision);
    if (!must_renew && service->deployment != NULL && strcmp(same, service->deployment) == 0) {
        return true;
    }
    service->deployment_revision++;
    service->deployment = compose(step, service, doc, candidate, service->deployment_revision);
    pipeline->updated_ms = step->now_ms;
    if (step_is(pipeline->state, PIPELINE_DEPLOY_FAILED)) {
        /* Its alert stays until a deployment works. */
        step_set_state(step, pipeline,
                       service->served_revision > 0 ? PIPELINE_SERVING : PIPELINE_DEPLOYING, NULL);
    }
    step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_DEPLOYED,
                                            .pipeline = pipeline->name,
                                            .number = service->deployment_revision});
    return true;
}

/** Has the document's detector a version? One that comes with the document itself counts. */
static bool has_detector(const struct ion_step *step, const struct weir_ion_pipeline *pipeline,
                         const char *model)
{
    const struct weir_ion_detector *detector = &pipeline->service.detector;
    bool is_there = detector->version != 0 && step_is(detector->model, model);
    for (size_t i = 0; i < step->event->n_detectors; i++) {
        is_there = is_there || strcmp(step->event->detectors[i].pipeline, pipeline->name) == 0;
    }
    return is_there;
}

char *step_lack_of_detector(struct ion_step *step, const struct weir_ion_pipeline *pipeline)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&step->state->doc, pipeline->name);
    if (doc == NULL || doc->detector == NULL || has_detector(step, pipeline, doc->detector)) {
        return NULL;
    }
    return doc->detector_alias != NULL
               ? step_text(step,
                           "stage detect needs %s@%s, and that names no version yet (weir model "
                           "alias %s %s VERSION)",
                           doc->detector, doc->detector_alias, doc->detector, doc->detector_alias)
               : step_text(step,
                           "stage detect needs model %s, which has no version yet (weir model "
                           "push %s FILE)",
                           doc->detector, doc->detector);
}

/** Nothing is served until the detector is there: what was served goes by a document, and lists, of before. */
static void await_detector(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                           const char *why)
{
    if (pipeline->paused_by != NULL ||
        (step_is(pipeline->state, PIPELINE_WAITING) && step_is(pipeline->state_reason, why))) {
        return;
    }
    step_stop_replicas(step, pipeline);
    step_forget_serving(step, pipeline);
    step_set_state(step, pipeline, PIPELINE_WAITING, why);
    step_tell(step, "detector_missing", "Pipeline %s waits: %s.", pipeline->name, why);
}

void step_deploy(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    const char *lack = step_lack_of_detector(step, pipeline);
    if (lack != NULL) {
        await_detector(step, pipeline, lack);
        return;
    }
    bool is_waiting = step_is(pipeline->state, PIPELINE_WAITING) && pipeline->paused_by == NULL;
    if (deploy(step, pipeline, is_waiting) && is_waiting) {
        start_replicas(step, pipeline);
    }
}

void step_stop_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job != NULL) {
        step_act(step, (struct weir_ion_action){.type = WEIR_ION_ACTION_STOP_PREDICTION,
                                                .key = step_text(step, "stop_prediction:%s:%s",
                                                                 pipeline->id, pipeline->job),
                                                .pipeline = pipeline->name,
                                                .job = pipeline->job});
        pipeline->job = NULL;
    }
}

void step_restart_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job == NULL || step_lack_of_detector(step, pipeline) != NULL) {
        step_deploy(step, pipeline);
        return; /* Not started yet: the start that waits reads the new document. */
    }
    step_stop_replicas(step, pipeline);
    pipeline->updated_ms = step->now_ms;
    step_forget_serving(step, pipeline);
    if (deploy(step, pipeline, true)) {
        start_replicas(step, pipeline);
    }
}

/** @return Whether it is newer than what is known: then it is known from now on. */
static bool see_people(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                       struct weir_ion_people *people, const struct weir_ion_dataset *dataset)
{
    if (dataset->version <= people->version) {
        return false;
    }
    people->version = dataset->version;
    people->path = weir_arena_strdup(step->arena, dataset->path);
    people->digest = weir_arena_strdup(step->arena, dataset->digest);
    people->blob = weir_arena_strdup(step->arena, dataset->blob);
    pipeline->updated_ms = step->now_ms;
    return true;
}

void step_see_gallery(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_dataset *dataset)
{
    if (see_people(step, pipeline, &weir_ion_service_of(pipeline)->gallery, dataset)) {
        step_tell(step, "gallery_changed",
                  "Pipeline %s knows the people of %s version %" PRId64 ".", pipeline->name,
                  dataset->name, dataset->version);
        step_deploy(step, pipeline);
    }
}

void step_see_detector(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                       const struct weir_ion_model *model)
{
    struct weir_ion_detector *detector = &weir_ion_service_of(pipeline)->detector;
    if (detector->id != NULL && strcmp(detector->id, model->model_version) == 0) {
        return;
    }
    *detector =
        (struct weir_ion_detector){.model = weir_arena_strdup(step->arena, model->name),
                                   .version = model->version,
                                   .id = weir_arena_strdup(step->arena, model->model_version),
                                   .blob = weir_arena_strdup(step->arena, model->blob)};
    pipeline->updated_ms = step->now_ms;
    step_tell(step, "detector_changed", "Pipeline %s finds with %s version %" PRId64 ".",
              pipeline->name, model->name, model->version);
    if (step_is(pipeline->state, PIPELINE_WAITING) && pipeline->paused_by == NULL) {
        pipeline->state_reason = NULL; /* It is there now. */
    }
    step_deploy(step, pipeline);
}

void step_see_impostors(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_dataset *dataset)
{
    if (see_people(step, pipeline, &weir_ion_service_of(pipeline)->impostors, dataset)) {
        step_tell(step, "impostors_changed",
                  "Pipeline %s sets its threshold by the impostors of %s "
                  "version %" PRId64 ".",
                  pipeline->name, dataset->name, dataset->version);
        step_deploy(step, pipeline);
    }
}

void step_on_lists(struct ion_step *step)
{
    for (size_t i = 0; i < step->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &step->state->pipelines[i];
        if (weir_ion_service_of(pipeline) != NULL && !step_is(pipeline->state, PIPELINE_REMOVED)) {
            step_deploy(step, pipeline);
        }
    }
}
