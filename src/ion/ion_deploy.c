#include "base/json.h"
#include "ion/engine.h"

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

/** By whom the threshold is set: null if nobody is named, or none of their photos are there yet. */
static json_t *impostors_json(const struct weir_ion_pipeline *pipeline,
                              const struct weir_ion_doc_pipeline *doc)
{
    if (doc->impostors == NULL || pipeline->impostors_version == 0) {
        return json_null();
    }
    json_t *impostors = json_object();
    put_text(impostors, "dataset", doc->impostors);
    put_int(impostors, "version", pipeline->impostors_version);
    put_text(impostors, "path", pipeline->impostors_path);
    put_text(impostors, "digest", pipeline->impostors_digest);
    put_text(impostors, "blob", pipeline->impostors_blob);
    return impostors;
}

static json_t *gallery_json(const struct weir_ion_pipeline *pipeline,
                            const struct weir_ion_doc_pipeline *doc)
{
    if (doc->gallery_dataset == NULL || pipeline->gallery_version == 0) {
        return json_null();
    }
    json_t *gallery = json_object();
    put_text(gallery, "dataset", doc->gallery_dataset);
    put_int(gallery, "version", pipeline->gallery_version);
    put_text(gallery, "path", pipeline->gallery_path);
    put_text(gallery, "digest", pipeline->gallery_digest);
    put_text(gallery, "blob", pipeline->gallery_blob);
    json_object_set_new(gallery, "impostors", impostors_json(pipeline, doc));
    return gallery;
}

static json_t *lists_json(const struct weir_ion_state *state)
{
    json_t *lists = json_object(), *allow = json_array(), *deny = json_array();
    for (size_t i = 0; i < state->n_members; i++) {
        json_t *person = json_string(state->members[i].person);
        if (person != NULL) {
            json_array_append_new(engine_is(state->members[i].list, "allow") ? allow : deny,
                                  person);
        }
    }
    json_object_set_new(lists, "allow", allow);
    json_object_set_new(lists, "deny", deny);
    return lists;
}

static char *compose(struct engine *engine, const struct weir_ion_pipeline *pipeline,
                     const struct weir_ion_doc_pipeline *doc,
                     const struct weir_ion_candidate *candidate, int64_t revision)
{
    json_t *deployment = json_object();
    put_int(deployment, "revision", revision);
    json_object_set_new(deployment, "model", model_json(candidate));
    put_parsed(deployment, "stages", doc->stages);
    json_object_set_new(deployment, "gallery", gallery_json(pipeline, doc));
    put_int(deployment, "list_revision", engine->state->ion.list_revision);
    json_object_set_new(deployment, "lists", lists_json(engine->state));
    put_text(deployment, "default",
             doc->gallery_default != NULL ? doc->gallery_default : "unknown");
    json_object_set_new(deployment, "false_accept_rate",
                        json_real(doc->false_accept_rate > 0 ? doc->false_accept_rate : 0.01));
    json_object_set_new(deployment, "false_deny_rate",
                        json_real(doc->false_deny_rate > 0 ? doc->false_deny_rate : 0.01));
    put_parsed(deployment, "source", doc->source);
    put_parsed(deployment, "sinks", doc->sinks);
    char *text = weir_json_text(deployment, engine->arena);
    json_decref(deployment);
    return text;
}

static const struct weir_ion_candidate *find_candidate(const struct engine *engine, const char *id)
{
    for (size_t i = 0; id != NULL && i < engine->state->n_candidates; i++) {
        if (strcmp(engine->state->candidates[i].id, id) == 0) {
            return &engine->state->candidates[i];
        }
    }
    return NULL;
}

/** The deployment revision makes the key new each time. */
static void start_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    engine_set_state(engine, pipeline, PIPELINE_DEPLOYING, NULL);
    pipeline->restart_ms = 0;
    engine_act(engine, (struct weir_ion_action){
                           .type = WEIR_ION_ACTION_START_PREDICTION,
                           .key = weir_arena_printf(engine->arena, "start_prediction:%s:%" PRId64,
                                                    pipeline->id, pipeline->deployment_revision),
                           .pipeline = pipeline->name});
}

/** @return Whether there is something to serve. */
static bool deploy(struct engine *engine, struct weir_ion_pipeline *pipeline, bool must_renew)
{
    const struct weir_ion_doc_pipeline *doc =
        weir_ion_doc_pipeline(&engine->state->doc, pipeline->name);
    const struct weir_ion_candidate *candidate = find_candidate(engine, pipeline->candidate);
    if (doc == NULL || candidate == NULL) {
        return false;
    }
    char *same = compose(engine, pipeline, doc, candidate, pipeline->deployment_revision);
    if (!must_renew && pipeline->deployment != NULL && strcmp(same, pipeline->deployment) == 0) {
        return true;
    }
    pipeline->deployment_revision++;
    pipeline->deployment = compose(engine, pipeline, doc, candidate, pipeline->deployment_revision);
    pipeline->updated_ms = engine->now_ms;
    if (engine_is(pipeline->state, PIPELINE_DEPLOY_FAILED)) {
        /* Its alert stays until a deployment works. */
        engine_set_state(engine, pipeline,
                         pipeline->served_revision > 0 ? PIPELINE_SERVING : PIPELINE_DEPLOYING,
                         NULL);
    }
    engine_act(engine, (struct weir_ion_action){.type = WEIR_ION_ACTION_DEPLOYED,
                                                .pipeline = pipeline->name,
                                                .number = pipeline->deployment_revision});
    return true;
}

void engine_deploy(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    bool is_waiting = engine_is(pipeline->state, PIPELINE_WAITING) && pipeline->paused_by == NULL;
    if (deploy(engine, pipeline, is_waiting) && is_waiting) {
        start_replicas(engine, pipeline);
    }
}

void engine_stop_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job != NULL) {
        engine_act(engine, (struct weir_ion_action){
                               .type = WEIR_ION_ACTION_STOP_PREDICTION,
                               .key = weir_arena_printf(engine->arena, "stop_prediction:%s:%s",
                                                        pipeline->id, pipeline->job),
                               .pipeline = pipeline->name,
                               .job = pipeline->job});
        pipeline->job = NULL;
    }
}

void engine_restart_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline)
{
    if (pipeline->job == NULL) {
        engine_deploy(engine, pipeline);
        return; /* Not started yet: the start that waits reads the new document. */
    }
    engine_stop_replicas(engine, pipeline);
    pipeline->updated_ms = engine->now_ms;
    engine_forget_serving(engine, pipeline);
    if (deploy(engine, pipeline, true)) {
        start_replicas(engine, pipeline);
    }
}

void engine_see_gallery(struct engine *engine, struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_dataset *dataset)
{
    if (dataset->version <= pipeline->gallery_version) {
        return;
    }
    pipeline->gallery_version = dataset->version;
    pipeline->gallery_path = weir_arena_strdup(engine->arena, dataset->path);
    pipeline->gallery_digest = weir_arena_strdup(engine->arena, dataset->digest);
    pipeline->gallery_blob = weir_arena_strdup(engine->arena, dataset->blob);
    pipeline->updated_ms = engine->now_ms;
    engine_tell(engine, "gallery_changed",
                weir_arena_printf(engine->arena,
                                  "Pipeline %s knows the people of %s version %" PRId64 ".",
                                  pipeline->name, dataset->name, dataset->version));
    engine_deploy(engine, pipeline);
}

void engine_see_impostors(struct engine *engine, struct weir_ion_pipeline *pipeline,
                          const struct weir_ion_dataset *dataset)
{
    if (dataset->version <= pipeline->impostors_version) {
        return;
    }
    pipeline->impostors_version = dataset->version;
    pipeline->impostors_path = weir_arena_strdup(engine->arena, dataset->path);
    pipeline->impostors_digest = weir_arena_strdup(engine->arena, dataset->digest);
    pipeline->impostors_blob = weir_arena_strdup(engine->arena, dataset->blob);
    pipeline->updated_ms = engine->now_ms;
    engine_tell(engine, "impostors_changed",
                weir_arena_printf(engine->arena,
                                  "Pipeline %s sets its threshold by the impostors of %s version "
                                  "%" PRId64 ".",
                                  pipeline->name, dataset->name, dataset->version));
    engine_deploy(engine, pipeline);
}

void engine_on_lists(struct engine *engine)
{
    for (size_t i = 0; i < engine->state->n_pipelines; i++) {
        struct weir_ion_pipeline *pipeline = &engine->state->pipelines[i];
        if (engine_is(pipeline->type, "prediction") &&
            !engine_is(pipeline->state, PIPELINE_REMOVED)) {
            engine_deploy(engine, pipeline);
        }
    }
}
