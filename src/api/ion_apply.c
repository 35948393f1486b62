/** Applying an ION document. What cannot work is refused with a sentence that says what to change;
 *  what looks wrong from here, but may be right on another node, is a warning in the answer. */
#include "api/api_private.h"
#include "base/file.h"
#include "base/secret.h"
#include "control/control.h"
#include "framework/framework.h"
#include "framework/model_names.h"
#include "framework/paths.h"
#include "framework/training.h"
#include "ion/old_words.h"

#include <string.h>
#include <sys/stat.h>

#define MODEL_FILE_MAX_BYTES ((size_t)1 << 20)

/** One document on its way: read and checked first, then stored in a transaction that may run
 *  twice. */
struct apply {
    struct api_call *call;
    struct weir_ion_doc doc;
    const char *mode; /**< That is asked for; NULL: none. */
    json_t *warnings; /**< Sentences: of the document, and behind n_of_doc those of the store. */
    size_t n_of_doc;
    struct weir_ion_dataset *datasets; /**< The latest version of each dataset it names. */
    size_t n_datasets;
    struct weir_ion_model *models; /**< The newest version of each model that a link begins at. */
    size_t n_models;
    struct weir_ion_model *defaults; /**< The versions that links name as their default. */
    size_t n_defaults;
};

static void warn(struct apply *apply, const char *sentence)
{
    json_t *text = json_string(sentence);
    if (text != NULL) {
        json_array_append_new(apply->warnings, text);
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

/** A training's model, and what is known of it before it is trained. */
enum model_kind { MODEL_CLASSIFIER, MODEL_EMBEDDING, MODEL_UNSEEN };

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
        return known->is_embedding ? MODEL_EMBEDDING : MODEL_CLASSIFIER;
    }
    if (!is_plain_file(model) ||
        weir_json_load(model, MODEL_FILE_MAX_BYTES, &file, &ignored) != WEIR_OK) {
        return MODEL_UNSEEN;
    }
    const char *loss = json_string_value(json_object_get(json_object_get(file, "loss"), "type"));
    bool is_embedding = loss != NULL && strcmp(loss, "margin") == 0;
    json_decref(file);
    return is_embedding ? MODEL_EMBEDDING : MODEL_CLASSIFIER;
}

static size_t index_of(const struct weir_ion_doc *doc, const struct weir_ion_doc_pipeline *pipeline)
{
    return (size_t)(pipeline - doc->pipelines);
}

static weir_status check_models(struct apply *apply, struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_TRAINING) {
            continue;
        }
        char *place = weir_arena_printf(apply->call->arena, "$.pipelines[%zu].model", i);
        WEIR_TRY(weir_model_name_check(pipeline->model, place, err));
        if (weir_model_is_file(pipeline->model) && !weir_path_exists(pipeline->model)) {
            warn(apply,
                 weir_arena_printf(apply->call->arena,
                                   "%s: %s is not on the server's machine: it must be on the "
                                   "nodes that train",
                                   place, pipeline->model));
        }
    }
    return WEIR_OK;
}

static const char *job_kind_of(const struct weir_ion_doc_pipeline *pipeline)
{
    return pipeline->type == WEIR_PIPELINE_TRAINING      ? "train"
           : pipeline->type == WEIR_PIPELINE_PREPARATION ? "command"
           : pipeline->type == WEIR_PIPELINE_PREDICTION  ? "predict"
                                                         : "measure";
}

/** Those of a job of another kind than a training, whose error names "$.spec". */
static weir_status check_job(struct apply *apply, const struct weir_ion_doc_pipeline *pipeline,
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

/** A training's parameters are checked as those of a job, with what the document says beside them.
 */
static weir_status check_parameters(struct apply *apply, struct weir_error *err)
{
    static const char *const beside[] = {"model", "dataset", "workers", "parameter_servers"};
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type == WEIR_PIPELINE_PREDICTION) {
            continue;
        }
        if (pipeline->type != WEIR_PIPELINE_TRAINING) {
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
        enum model_kind kind = kind_of_model(from->model);
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
static char *folder_of(struct apply *apply, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = weir_arena_strdup(apply->call->arena, path);
    folder[slash > path ? slash - path : 1] = '\0';
    return folder;
}

static void look_at_source(struct apply *apply, size_t i_pipeline, const json_t *source)
{
    const char *path = json_string_value(json_object_get(source, "path"));
    if (path != NULL && !weir_path_is_dir(path)) {
        warn(apply,
             weir_arena_printf(apply->call->arena,
                               "$.pipelines[%zu].source.path: %s is no folder on the server's "
                               "machine: the replica makes it where it runs, and frames must "
                               "come there",
                               i_pipeline, path));
    }
}

static void look_at_sink(struct apply *apply, size_t i_pipeline, size_t i_sink, const json_t *sink)
{
    const char *path = json_string_value(json_object_get(sink, "path"));
    if (path != NULL && !weir_path_is_dir(folder_of(apply, path))) {
        warn(apply,
             weir_arena_printf(apply->call->arena,
                               "$.pipelines[%zu].sinks[%zu].path: the folder of %s is not on "
                               "the server's machine: make it where the replica runs",
                               i_pipeline, i_sink, path));
    }
}

/* Weir's own folder is nobody's source, sink or data. */
static weir_status check_paths(struct apply *apply, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < apply->doc.n_pipelines && status == WEIR_OK; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        bool is_training = pipeline->type != WEIR_PIPELINE_PREDICTION;
        const char *where =
            weir_arena_printf(apply->call->arena,
                              is_training ? "$.pipelines[%zu].parameters" : "$.pipelines[%zu]", i);
        const char *parameters = pipeline->parameters != NULL ? pipeline->parameters : "{}";
        json_t *spec =
            is_training ? json_loads(parameters, 0, NULL)
                        : json_pack("{s:o*,s:o*}", "source", json_loads(pipeline->source, 0, NULL),
                                    "sinks", json_loads(pipeline->sinks, 0, NULL));
        status = weir_framework_paths_check(apply->call->api->state_dir, job_kind_of(pipeline),
                                            where, spec, err);
        json_decref(spec);
    }
    return status;
}

/** Source and sinks may be on other nodes: what is not here is said, not refused. */
static void look_at_paths(struct apply *apply)
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

/* ---- datasets -------------------------------------------------------------------------------- */

/** A gallery's classes are its people. */
static weir_status check_gallery(struct apply *apply, const char *place,
                                 const struct weir_dataset *dataset,
                                 const struct weir_dataset_version *version, struct weir_error *err)
{
    if (strcmp(dataset->kind, "folder") != 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: dataset \"%s\" is of kind %s: a gallery needs a folder of photos "
            "for each person",
            place, dataset->name, dataset->kind);
    }
    if (version->version > 0 && version->n_classes == 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: version %lld of dataset \"%s\" has no classes: put each person's "
            "photos into a folder of their own and freeze it again",
            place, (long long)version->version, dataset->name);
    }
    if (version->version == 0) {
        warn(apply,
             weir_arena_printf(apply->call->arena,
                               "%s: dataset \"%s\" has no version yet: its people count once it "
                               "is frozen (weir dataset freeze %s)",
                               place, dataset->name, dataset->name));
    }
    return WEIR_OK;
}

/** Add the latest version of a dataset, if it has one. The dataset must exist. */
static weir_status add_dataset(struct apply *apply, struct weir_txn *txn, const char *place,
                               const char *name, bool is_gallery, struct weir_error *err)
{
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    struct weir_error ignored;
    if (name == NULL) {
        return WEIR_OK;
    }
    if (weir_txn_get(txn, &weir_dataset_resource, name, apply->call->arena, &dataset, err) !=
        WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: there is no dataset \"%s\": create it first with "
                              "`weir dataset create %s`",
                              place, name, name);
    }
    if (weir_dataset_version_get(txn, name, 0, apply->call->arena, &version, &ignored) != WEIR_OK) {
        version = (struct weir_dataset_version){0};
    }
    if (is_gallery) {
        WEIR_TRY(check_gallery(apply, place, &dataset, &version, err));
    }
    if (version.version > 0) {
        apply->datasets[apply->n_datasets++] =
            (struct weir_ion_dataset){dataset.name, version.version, dataset.path,  version.digest,
                                      version.blob, version.n_files, version.bytes, version.n_rows};
    }
    return WEIR_OK;
}

/** What a preparation makes: a folder of the project's, which its command can write. */
static weir_status check_output(const struct apply *apply, struct weir_txn *txn, size_t i_pipeline,
                                struct weir_error *err)
{
    struct weir_dataset dataset;
    const char *name = apply->doc.pipelines[i_pipeline].output;
    if (name == NULL) {
        return WEIR_OK;
    }
    if (weir_txn_get(txn, &weir_dataset_resource, name, apply->call->arena, &dataset, err) !=
        WEIR_OK) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.pipelines[%zu].output: there is no dataset \"%s\": create it first "
            "with `weir dataset create %s --path FOLDER`",
            i_pipeline, name, name);
    }
    if (strcmp(dataset.project, apply->doc.project) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.pipelines[%zu].output: dataset \"%s\" belongs to project \"%s\", "
                              "and this ION to \"%s\"",
                              i_pipeline, name, dataset.project, apply->doc.project);
    }
    return !dataset.is_uploaded
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.pipelines[%zu].output: dataset \"%s\" holds uploaded files: a "
                                "command writes into a folder of yours (weir dataset create NAME "
                                "--path FOLDER)",
                                i_pipeline, name);
}

/** The latest version of each dataset that the document names; all must exist. */
static weir_status find_datasets(struct apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->datasets = WEIR_ARENA_ARRAY(arena, 2 * doc->n_pipelines + 1, struct weir_ion_dataset);
    apply->n_datasets = 0;
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &doc->pipelines[i];
        char *place = weir_arena_printf(arena, "$.pipelines[%zu].dataset", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->dataset, false, err));
        WEIR_TRY(check_output(apply, txn, i, err));
        place = weir_arena_printf(arena, "$.pipelines[%zu].gallery.dataset", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->gallery_dataset, true, err));
        place = weir_arena_printf(arena, "$.pipelines[%zu].gallery.impostors", i);
        WEIR_TRY(add_dataset(apply, txn, place, pipeline->impostors, true, err));
    }
    return WEIR_OK;
}

/** A dataset that a policy measures on: "NAME" or "NAME@v2". */
static weir_status check_measured(struct apply *apply, struct weir_txn *txn,
                                  const struct weir_ion_doc_link *link,
                                  const struct weir_policy *policy, struct weir_error *err)
{
    struct weir_arena *arena = apply->call->arena;
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    struct weir_error ignored;
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(&apply->doc, link->to);
    const char *kind = policy->kind->name;
    if (to != NULL && to->embeds) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.links[%zu].policy: %s measures classifiers, and pipeline \"%s\" "
                              "recognises people by a gallery",
                              link->i_link, kind, to->name);
    }
    json_t *options = json_loads(policy->text, 0, NULL);
    const char *text = json_string_value(json_object_get(options, "dataset"));
    size_t len = text != NULL ? strcspn(text, "@") : 0;
    char *name = weir_arena_printf(arena, "%.*s", (int)len, text != NULL ? text : "");
    json_decref(options);
    if (weir_txn_get(txn, &weir_dataset_resource, name, arena, &dataset, err) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.links[%zu].policy: there is no dataset \"%s\" for %s: create it "
                              "first with `weir dataset create %s`",
                              link->i_link, name, kind, name);
    }
    if (weir_dataset_version_get(txn, name, 0, arena, &version, &ignored) != WEIR_OK) {
        warn(apply, weir_arena_printf(arena,
                                      "$.links[%zu].policy: dataset \"%s\" has no version yet: %s "
                                      "can measure nothing before it is frozen (weir dataset "
                                      "freeze %s)",
                                      link->i_link, name, kind, name));
    }
    return WEIR_OK;
}

/** What policies measure on. */
static weir_status check_policies(struct apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_links; i++) {
        const struct weir_ion_doc_link *link = &apply->doc.links[i];
        for (size_t k = 0; k < link->policies.n; k++) {
            if (weir_policy_ops(&link->policies.items[k])->measures) {
                WEIR_TRY(check_measured(apply, txn, link, &link->policies.items[k], err));
            }
        }
    }
    return WEIR_OK;
}

/* ---- registered models ----------------------------------------------------------------------- */

/** A link's model must be there, and the ION's project's: who may change it decides what serves. */
static weir_status check_model(const struct apply *apply, const char *place, const char *name,
                               const struct weir_model *model, weir_status found,
                               struct weir_error *err)
{
    if (found != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: there is no model \"%s\": a version makes it (weir get models "
                              "lists those that there are)",
                              place, name);
    }
    if (strcmp(model->project, apply->doc.project) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: model \"%s\" belongs to project \"%s\", and this ION to \"%s\"",
                              place, name, model->project, apply->doc.project);
    }
    return WEIR_OK;
}

/** Can the pipeline use what the version gives? Of one without a signature its replicas will see. */
static weir_status check_signature(const struct apply *apply, const char *place,
                                   const struct weir_ion_doc_link *link,
                                   const struct weir_model_version *version, struct weir_error *err)
{
    const struct weir_ion_doc_pipeline *to = weir_ion_doc_pipeline(&apply->doc, link->to);
    if (to == NULL) {
        return WEIR_OK; /* A deployment serves any model. */
    }
    json_t *signature = version->signature != NULL ? json_loads(version->signature, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(signature, "output_kind"));
    const char *problem = NULL;
    if (kind != NULL && !json_is_object(json_object_get(signature, "picture"))) {
        problem = "takes no picture: push it with --preprocess FILE";
    } else if (kind != NULL && strcmp(kind, "tensor") == 0) {
        problem =
            "gives numbers that its signature does not explain: push it with --labels FILE, or "
            "with output_kind in --preprocess FILE";
    } else if (kind != NULL && to->embeds && strcmp(kind, "embedding") != 0) {
        problem = "is a classifier, and the pipeline recognises people by a gallery, which needs "
                  "embeddings: take the gallery out, and it classifies";
    } else if (kind != NULL && !to->embeds && strcmp(kind, "embedding") == 0) {
        problem =
            "gives embeddings, and the pipeline has no gallery, so it classifies: add gallery: "
            "{dataset: NAME}";
    }
    json_decref(signature);
    return problem == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s: version %lld of model \"%s\" %s",
                                place, (long long)version->version, link->model, problem);
}

static void add_model(struct apply *apply, const char *name,
                      const struct weir_model_version *version)
{
    apply->models[apply->n_models++] = (struct weir_ion_model){
        name, version->id, version->version, version->blob, version->metrics, version->created_by};
}

/** The newest version of each model that is measured, which may have come before the document. */
static weir_status find_measured(struct apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_arena *arena = apply->call->arena;
    for (size_t i = 0; i < apply->doc.n_feeds; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const struct weir_ion_doc_feed *feed = &apply->doc.feeds[i];
        const char *name = feed->model != NULL
                               ? feed->model
                               : weir_ion_model_name(arena, apply->doc.name, feed->from);
        if (feed->dataset != NULL) {
            continue;
        }
        if (feed->model != NULL) {
            char *place = weir_arena_printf(arena, "the link to \"%s\"", feed->to);
            WEIR_TRY(check_model(apply, place, name, &model,
                                 weir_model_get(txn, name, arena, &model, &ignored), err));
        }
        if (weir_model_version_get(txn, name, 0, arena, &version, &ignored) == WEIR_OK) {
            add_model(apply, name, &version);
        }
    }
    return WEIR_OK;
}

/** The newest version of each model that a link begins at; one without versions yet has none. */
static weir_status find_models(struct apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->models = WEIR_ARENA_ARRAY(arena, doc->n_links + doc->n_feeds + 1, struct weir_ion_model);
    apply->n_models = 0;
    WEIR_TRY(find_measured(apply, txn, err));
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const char *name = doc->links[i].model;
        if (name == NULL) {
            continue;
        }
        char *place = weir_arena_printf(arena, "$.links[%zu].from.model", doc->links[i].i_link);
        WEIR_TRY(check_model(apply, place, name, &model,
                             weir_model_get(txn, name, arena, &model, &ignored), err));
        if (weir_model_version_get(txn, name, 0, arena, &version, &ignored) == WEIR_OK) {
            WEIR_TRY(check_signature(apply, place, &doc->links[i], &version, err));
            add_model(apply, name, &version);
        }
    }
    return WEIR_OK;
}

/** The versions that links name as their default: they must be there, and fit. */
static weir_status find_defaults(struct apply *apply, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_ion_doc *doc = &apply->doc;
    struct weir_arena *arena = apply->call->arena;
    apply->defaults = WEIR_ARENA_ARRAY(arena, doc->n_links + 1, struct weir_ion_model);
    apply->n_defaults = 0;
    for (size_t i = 0; i < doc->n_links; i++) {
        struct weir_model model;
        struct weir_model_version version;
        struct weir_error ignored;
        const char *name = doc->links[i].default_model;
        if (name == NULL) {
            continue;
        }
        char *place = weir_arena_printf(arena, "$.links[%zu].default", doc->links[i].i_link);
        WEIR_TRY(check_model(apply, place, name, &model,
                             weir_model_get(txn, name, arena, &model, &ignored), err));
        if (weir_model_version_get(txn, name, doc->links[i].default_version, arena, &version,
                                   &ignored) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: model \"%s\" has no version %lld",
                                  place, name, (long long)doc->links[i].default_version);
        }
        WEIR_TRY(check_signature(apply, place, &doc->links[i], &version, err));
        apply->defaults[apply->n_defaults++] = (struct weir_ion_model){
            name, version.id, version.version, version.blob, version.metrics, version.created_by};
    }
    return WEIR_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

/** Of a sandbox nothing real is touched, and a preparation makes versions of a real dataset. */
static weir_status check_sandbox(const struct apply *apply, const char *mode,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_pipelines && strcmp(mode, WEIR_ION_SANDBOX) == 0; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type == WEIR_PIPELINE_PREPARATION) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "$.pipelines[%zu]: \"%s\" makes versions of dataset \"%s\", which "
                "is real: an ION with a preparation cannot be a sandbox; try it "
                "without, on a version that is there",
                i, pipeline->name, pipeline->output);
        }
    }
    return WEIR_OK;
}

/** An ION that lives changes its mode by being promoted, and in no other way. */
static weir_status check_mode(const struct apply *apply, const struct weir_ion *ion,
                              struct weir_error *err)
{
    if (apply->mode == NULL || strcmp(ion->state, "ACTIVE") != 0 ||
        strcmp(apply->mode, ion->mode) == 0) {
        return WEIR_OK;
    }
    return strcmp(ion->mode, WEIR_ION_SANDBOX) == 0
               ? weir_error_set(err, WEIR_ERR_CONFLICT,
                                "ION \"%s\" is a sandbox: `weir ion promote %s` takes it into "
                                "production",
                                ion->name, ion->name)
               : weir_error_set(err, WEIR_ERR_CONFLICT,
                                "ION \"%s\" is in production: apply what is to be tried under "
                                "another name",
                                ion->name);
}

static weir_status apply_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct apply *apply = context;
    struct api_call *call = apply->call;
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    struct weir_error missing;
    json_array_clear(call->publish);
    while (json_array_size(apply->warnings) > apply->n_of_doc) {
        json_array_remove(apply->warnings, apply->n_of_doc);
    }
    WEIR_TRY(find_datasets(apply, txn, err));
    WEIR_TRY(check_policies(apply, txn, err));
    WEIR_TRY(find_models(apply, txn, err));
    WEIR_TRY(find_defaults(apply, txn, err));
    weir_status status = weir_ion_load(txn, apply->doc.name, call->arena, &state, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        weir_ion_state_new(apply->doc.name, call->arena, &state);
    } else if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    } else {
        WEIR_TRY(check_mode(apply, &state.ion, err));
    }
    bool lives = status == WEIR_OK && strcmp(state.ion.state, "ACTIVE") == 0;
    const char *mode = lives                 ? state.ion.mode
                       : apply->mode != NULL ? apply->mode
                                             : WEIR_ION_PRODUCTION;
    WEIR_TRY(check_sandbox(apply, mode, err));
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED,
                                   .actor = call->actor,
                                   .document = weir_json_text(call->body, call->arena),
                                   .mode = apply->mode,
                                   .doc = &apply->doc,
                                   .datasets = apply->datasets,
                                   .n_datasets = apply->n_datasets,
                                   .models = apply->models,
                                   .n_models = apply->n_models,
                                   .defaults = apply->defaults,
                                   .n_defaults = apply->n_defaults};
    WEIR_TRY(weir_ion_step(&state, &event, call->now_ms, call->arena, &actions, err));
    WEIR_TRY(weir_ion_save(txn, &state, &actions, call->now_ms, err));
    if (call->is_trial) {
        return api_ion_plan(call, txn, apply->doc.name, &actions, apply->warnings, err);
    }
    struct control control = api_control(call);
    control_publish(&control, "ions", json_pack("{s:s}", "name", apply->doc.name));
    return api_ion_answer(call, txn, apply->doc.name, apply->warnings, err);
}

static weir_status restore_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct apply *apply = context;
    struct weir_ion ion = {0};
    json_t *body = apply->call->body, *stored = NULL;
    const char *name = json_string_value(json_object_get(body, "name"));
    if (name != NULL &&
        weir_txn_get(txn, &weir_ion_resource, name, apply->call->arena, &ion, NULL) == WEIR_OK) {
        stored = json_loads(ion.document != NULL ? ion.document : "", 0, NULL);
    }
    weir_status status = weir_secrets_restore(body, stored, WEIR_ION_SECRETS, "$", err);
    json_decref(stored);
    return status;
}

/** A document that was fetched has masks for its secrets: they keep their values. */
static weir_status restore_secrets(struct apply *apply, struct weir_error *err)
{
    return weir_secrets_are_masked(apply->call->body, WEIR_ION_SECRETS)
               ? api_read(apply->call, restore_in, apply, err)
               : WEIR_OK;
}

/** Check all that needs no transaction, then store. */
static weir_status check_and_store(struct apply *apply, struct weir_error *err)
{
    weir_ion_replace_old_words(apply->call->body, apply->warnings);
    WEIR_TRY(restore_secrets(apply, err));
    WEIR_TRY(weir_ion_doc_parse(apply->call->body, apply->call->arena, &apply->doc, err));
    WEIR_TRY(weir_ion_doc_check(&apply->doc, err));
    WEIR_TRY(check_models(apply, err));
    WEIR_TRY(check_parameters(apply, err));
    WEIR_TRY(check_pairs(&apply->doc, err));
    WEIR_TRY(check_paths(apply, err));
    look_at_paths(apply);
    apply->n_of_doc = json_array_size(apply->warnings);
    return api_write(apply->call, apply_in, apply, err);
}

weir_status api_ion_apply(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct apply apply = {.call = call,
                          .mode = weir_http_request_query(call->request, "mode"),
                          .warnings = json_array()};
    (void)txn;
    if (apply.mode != NULL && strcmp(apply.mode, WEIR_ION_SANDBOX) != 0 &&
        strcmp(apply.mode, WEIR_ION_PRODUCTION) != 0) {
        json_decref(apply.warnings);
        return weir_error_set(err, WEIR_ERR_INVALID, "mode: expected %s or %s", WEIR_ION_PRODUCTION,
                              WEIR_ION_SANDBOX);
    }
    weir_status status = check_and_store(&apply, err);
    json_decref(apply.warnings);
    return status;
}
