/** What an ION document tells alone, before the store is asked. */
#include "api/ion/ion_apply.h"
#include "base/file.h"
#include "control/control.h"
#include "endpoint/stage.h"
#include "endpoint/stage/count.h"
#include "framework/framework.h"
#include "framework/model_names.h"
#include "framework/paths.h"
#include "framework/training.h"
#include "vision/line.h"
#include "vision/zone.h"

#include <string.h>
#include <sys/stat.h>

#define MODEL_FILE_MAX_BYTES ((size_t)1 << 20)

/* ---- models ---------------------------------------------------------------------------------- */

/** A training's model, and what is known of it before it is trained. */
enum model_kind { MODEL_CLASSIFIER, MODEL_EMBEDDING, MODEL_DETECTOR, MODEL_UNSEEN };

/** A regular file that is not too long for a model file, and whose reading does not wait. */
static bool is_plain_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
           st.st_size <= (off_t)MODEL_FILE_MAX_BYTES;
}

/** What a model is. A file may lie on the nodes only: then nothing is known. */
static enum model_kind kind_of_model(const char *model)
{
    const struct weir_model_name *known = weir_model_name_find(model);
    json_t *file;
    struct weir_error ignored;
    if (known != NULL) {
        return known->is_embedding  ? MODEL_EMBEDDING
               : known->is_detector ? MODEL_DETECTOR
                                    : MODEL_CLASSIFIER;
    }
    if (!is_plain_file(model) ||
        weir_json_load(model, MODEL_FILE_MAX_BYTES, &file, &ignored) != WEIR_OK) {
        return MODEL_UNSEEN;
    }
    const char *loss = json_string_value(json_object_get(json_object_get(file, "loss"), "type"));
    enum model_kind kind = loss == NULL                  ? MODEL_CLASSIFIER
                           : strcmp(loss, "margin") == 0 ? MODEL_EMBEDDING
                           : strcmp(loss, "detect") == 0 ? MODEL_DETECTOR
                                                         : MODEL_CLASSIFIER;
    json_decref(file);
    return kind;
}

static size_t index_of(const struct weir_ion_doc *doc, const struct weir_ion_doc_pipeline *pipeline)
{
    return (size_t)(pipeline - doc->pipelines);
}

static weir_status check_models(struct ion_apply *apply, struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_TRAINING || pipeline->model == NULL) {
            continue;
        }
        char *place = weir_arena_printf(apply->call->arena, "$.pipelines[%zu].model", i);
        WEIR_TRY(weir_model_name_check(pipeline->model, place, err));
        if (weir_model_is_file(pipeline->model) && !weir_path_exists(pipeline->model)) {
            ion_apply_warn(
                apply, weir_arena_printf(apply->call->arena,
                                         "%s: %s is not on the server's machine: it must be on the "
                                         "nodes that train",
                                         place, pipeline->model));
        }
    }
    return WEIR_OK;
}

static const char *job_kind_of(const struct weir_ion_doc_pipeline *pipeline)
{
    return pipeline->type == WEIR_PIPELINE_TRAINING      ? pipeline->kind
           : pipeline->type == WEIR_PIPELINE_PREPARATION ? "command"
           : pipeline->type == WEIR_PIPELINE_PREDICTION  ? "predict"
                                                         : "measure";
}

/** Those of a job of another kind than a training, whose error names "$.spec". */
static weir_status check_job(struct ion_apply *apply, const struct weir_ion_doc_pipeline *pipeline,
                             size_t i_pipeline, struct weir_error *err)
{
    static const char place[] = "$.spec";
    struct weir_error cause = {0};
    json_t *spec = weir_pipeline_measures(pipeline->type) ? control_measure_spec(pipeline, "m", 1)
                                                          : control_command_spec(pipeline);
    weir_status status =
        weir_framework_check(job_kind_of(pipeline), spec, apply->call->arena, &cause);
    json_decref(spec);
    bool is_placed = strncmp(cause.message, place, sizeof place - 1) == 0;
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_set(err, status, "$.pipelines[%zu].parameters%s%s",
                                              i_pipeline, is_placed ? "" : ": ",
                                              cause.message + (is_placed ? sizeof place - 1 : 0));
}

/** A training may be any program that ends; what only Weir can make sense of is no program. */
static weir_status check_kind(const struct weir_ion_doc_pipeline *pipeline, size_t i_pipeline,
                              struct weir_error *err)
{
    const struct weir_job_ops *ops = weir_job_ops_of(job_kind_of(pipeline));
    bool is_program = ops != NULL && ops->names_datasets && !ops->is_service;
    return pipeline->type != WEIR_PIPELINE_TRAINING || is_program
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.pipelines[%zu].kind: \"%.40s\" is no kind of job that trains: "
                                "expected train, command, or another that runs a program (weir "
                                "explain job-kinds)",
                                i_pipeline, pipeline->kind);
}

/** Is the message about what a document says by cut_as alone? */
static bool is_about_cut(const struct weir_error *err)
{
    return err != NULL &&
           (strncmp(err->message, "detect", 6) == 0 || strncmp(err->message, "align", 5) == 0);
}

/** A training's parameters are checked as those of a job, with what the document says beside them.
 */
static weir_status check_parameters(struct ion_apply *apply, struct weir_error *err)
{
    static const char *const beside[] = {"model", "dataset", "workers", "parameter_servers"};
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type == WEIR_PIPELINE_PREDICTION) {
            continue;
        }
        if (pipeline->type != WEIR_PIPELINE_TRAINING ||
            strcmp(pipeline->kind, WEIR_ION_TRAIN) != 0) {
            WEIR_TRY(check_kind(pipeline, i, err));
            WEIR_TRY(check_job(apply, pipeline, i, err));
            continue;
        }
        json_t *spec = control_training_spec(pipeline);
        weir_status status = weir_training_spec_check(spec, apply->call->arena, err);
        json_decref(spec);
        size_t n_key = status != WEIR_OK && err != NULL ? strcspn(err->message, ":") : 0;
        bool is_beside = false;
        for (size_t k = 0; k < WEIR_ARRAY_LEN(beside); k++) {
            is_beside = is_beside || (strlen(beside[k]) == n_key && err != NULL &&
                                      strncmp(err->message, beside[k], n_key) == 0);
        }
        if (status != WEIR_OK && pipeline->cut_as != NULL && is_about_cut(err)) {
            return weir_error_prefix(err, "$.pipelines[%zu].cut_as: ", i);
        }
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "$.pipelines[%zu].%s", i, is_beside ? "" : "parameters.");
        }
    }
    return WEIR_OK;
}

/** What would be trained and never served: classifiers for a gallery, which compares embeddings, and
 *  embeddings for stages that classify. */
static weir_status check_pairs(const struct weir_ion_doc *doc, struct weir_error *err)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_pipeline *from = weir_ion_doc_pipeline(doc, doc->links[i].from);
        const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(doc, doc->links[i].to);
        if (from == NULL) {
            continue; /* A registered model: looked at with its versions. */
        }
        enum model_kind kind = from->model != NULL ? kind_of_model(from->model) : MODEL_UNSEEN;
        if (to->finds_with != NULL) {
            if (kind == MODEL_DETECTOR || kind == MODEL_UNSEEN) {
                continue;
            }
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "$.links[%zu]: \"%s\" finds with the model that \"%s\" trains, "
                                  "and %s is no detector: write model: face-detect in "
                                  "$.pipelines[%zu], or train it with a program of your own",
                                  doc->links[i].i_link, to->name, from->name, from->model,
                                  index_of(doc, from));
        }
        if (kind == MODEL_DETECTOR) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "$.links[%zu]: \"%s\" trains %s, a detector, which tells where faces are and not "
                "whose: leave the link out, let \"%s\" register the detector (registers: NAME), "
                "and "
                "name it in a stage of \"%s\" (kind: detect, model: NAME)",
                doc->links[i].i_link, from->name, from->model, from->name, to->name);
        }
        if (to->embeds && kind == MODEL_CLASSIFIER) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "$.links[%zu]: pipeline \"%s\" recognises people by a gallery, which "
                "needs a model that gives embeddings, and \"%s\" trains %s, a "
                "classifier: write model: face-embed in $.pipelines[%zu] (or a model "
                "file whose loss is margin), or take the gallery of \"%s\" out, and it classifies",
                doc->links[i].i_link, to->name, from->name, from->model, index_of(doc, from),
                to->name);
        }
        if (!to->embeds && kind == MODEL_EMBEDDING) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "$.links[%zu]: pipeline \"%s\" has no gallery, so it classifies, and \"%s\" trains "
                "%s, which gives embeddings: add gallery: {dataset: NAME} to $.pipelines[%zu], of "
                "a "
                "dataset that has a class per person, or train a classifier",
                doc->links[i].i_link, to->name, from->name, from->model, index_of(doc, to));
        }
    }
    return WEIR_OK;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/** The folder that a file lies in. */
static char *folder_of(struct ion_apply *apply, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = weir_arena_strdup(apply->call->arena, path);
    folder[slash > path ? slash - path : 1] = '\0';
    return folder;
}

static void look_at_source(struct ion_apply *apply, size_t i_pipeline, const json_t *source)
{
    const char *path = json_string_value(json_object_get(source, "path"));
    if (path != NULL && !weir_path_is_dir(path)) {
        ion_apply_warn(apply, weir_arena_printf(
                                  apply->call->arena,
                                  "$.pipelines[%zu].source.path: %s is no folder on the server's "
                                  "machine: the replica makes it where it runs, and frames must "
                                  "come there",
                                  i_pipeline, path));
    }
}

static void look_at_sink(struct ion_apply *apply, size_t i_pipeline, size_t i_sink,
                         const json_t *sink)
{
    const char *path = json_string_value(json_object_get(sink, "path"));
    if (path != NULL && !weir_path_is_dir(folder_of(apply, path))) {
        ion_apply_warn(
            apply, weir_arena_printf(apply->call->arena,
                                     "$.pipelines[%zu].sinks[%zu].path: the folder of %s is not on "
                                     "the server's machine: make it where the replica runs",
                                     i_pipeline, i_sink, path));
    }
}

/* Weir's own folder is nobody's source, sink or data. */
static weir_status check_paths(struct ion_apply *apply, struct weir_error *err)
{
    const struct weir_reach reach = {apply->call->api->state_dir, apply->doc.project, NULL};
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < apply->doc.n_pipelines && status == WEIR_OK; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        bool is_training = pipeline->type != WEIR_PIPELINE_PREDICTION;
        const char *where =
            weir_arena_printf(apply->call->arena,
                              is_training ? "$.pipelines[%zu].parameters" : "$.pipelines[%zu]", i);
        const char *parameters = pipeline->parameters != NULL ? pipeline->parameters : "{}";
        json_t *spec = is_training ? json_loads(parameters, 0, NULL)
                                   : json_pack("{s:o*,s:o*,s:o*}", "source",
                                               json_loads(pipeline->source, 0, NULL), "sinks",
                                               json_loads(pipeline->sinks, 0, NULL), "doors",
                                               json_loads(pipeline->doors, 0, NULL));
        status = weir_framework_paths_check(&reach, job_kind_of(pipeline), where, spec, err);
        json_decref(spec);
    }
    return status;
}

/** Source and sinks may be on other nodes: what is not here is said, not refused. */
static void look_at_paths(struct ion_apply *apply)
{
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_PREDICTION) {
            continue;
        }
        json_t *source = json_loads(pipeline->source, 0, NULL);
        json_t *sinks = json_loads(pipeline->sinks, 0, NULL);
        look_at_source(apply, i, source);
        for (size_t k = 0; k < json_array_size(sinks); k++) {
            look_at_sink(apply, i, k, json_array_get(sinks, k));
        }
        json_decref(source);
        json_decref(sinks);
    }
}

/** What the document's reader cannot know of a place: does it make a zone, or a line? */
static weir_status check_place(const struct weir_stage_count *count, struct weir_error *err)
{
    struct weir_zone zone = {0};
    float line[2 * WEIR_STAGE_COUNT_POINTS] = {0};
    zone.n_points = (uint32_t)weir_stage_count_points(count->zone, zone.points);
    WEIR_TRY(weir_zone_check(&zone, err));
    if (weir_stage_count_points(count->line, line) == 0) {
        return WEIR_OK;
    }
    return weir_line_check(&(struct weir_line){line[0], line[1], line[2], line[3]}, err);
}

static weir_status check_places(struct ion_apply *apply, struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        struct weir_stage_chain chain = {.n = 0};
        WEIR_AUTO(weir_json_auto_free)
        json_t *list = pipeline->stages != NULL ? json_loads(pipeline->stages, 0, NULL) : NULL;
        if (list != NULL) {
            WEIR_TRY(weir_stages_read(list, pipeline->gallery_dataset != NULL, "$",
                                      apply->call->arena, &chain, err));
        }
        for (size_t k = 0; k < chain.n; k++) {
            if (chain.items[k].kind == &weir_stage_count_kind &&
                check_place(chain.items[k].options, err) != WEIR_OK) {
                return weir_error_prefix(err, "$.pipelines[%zu].stages[%zu]: ", i, k);
            }
        }
    }
    return WEIR_OK;
}

weir_status ion_apply_check(struct ion_apply *apply, struct weir_error *err)
{
    WEIR_TRY(weir_ion_doc_check(&apply->doc, err));
    WEIR_TRY(check_models(apply, err));
    WEIR_TRY(check_parameters(apply, err));
    WEIR_TRY(check_pairs(&apply->doc, err));
    WEIR_TRY(check_places(apply, err));
    WEIR_TRY(check_paths(apply, err));
    look_at_paths(apply);
    return WEIR_OK;
}
