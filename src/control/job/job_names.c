#include "control/job/job_names.h"

#include "base/names.h"
#include "base/picture.h"
#include "base/uuid.h"
#include "control/deploy.h"
#include "control/job/batch.h"
#include "control/job/code.h"
#include "endpoint/stage/detect.h"
#include "framework/framework.h"
#include "framework/model_names.h"
#include "store/row_scope.h"
#include "store/table.h"
#include "track/registry.h"

#include <string.h>

#define COMMAND_DATASETS_MAX 64

/* How much of a version's digest a run notes; with its number, since a later version may have the same files. */
#define INPUT_DIGEST_CHARS 12

/** A job, while its names are looked up. */
struct reading {
    struct control *control;
    struct weir_txn *txn;
    const struct control_job *wanted;
    const struct weir_job *job;
    json_t *spec;
    struct job_names *out;
};

static const char *spec_text(const struct reading *reading, const char *name)
{
    return json_string_value(json_object_get(reading->spec, name));
}

static void give_run(const struct reading *reading)
{
    struct weir_arena *arena = reading->control->arena;
    char *id = weir_arena_alloc(arena, WEIR_UUID_BYTES);
    weir_uuid_make(id);
    reading->out->run =
        reading->wanted->run != NULL ? weir_arena_strdup(arena, reading->wanted->run) : id;
}

/* For people, what the run was started with. */
static char *parameters_of(const struct reading *reading, const json_t *object)
{
    return weir_json_text(object, reading->control->arena);
}

static void add_cause(const struct reading *reading, json_t *parameters)
{
    if (reading->wanted->cause != NULL) {
        json_object_set_new(parameters, "trigger", json_string(reading->wanted->cause));
    }
}

/* ---- datasets ------------------------------------------------------------------------------------ */

weir_status control_dataset_find(struct control *control, struct weir_txn *txn, const char *key,
                                 const char *name, struct weir_dataset *out,
                                 struct weir_dataset_version *out_version, struct weir_error *err)
{
    struct weir_query query = {.limit = WEIR_QUERY_LIMIT_MAX};
    struct weir_nearest nearest = {0};
    struct weir_error missing;
    void *items;
    size_t n;
    if (weir_txn_get(txn, &weir_dataset_resource, name, control->arena, out, &missing) == WEIR_OK) {
        weir_status status =
            weir_dataset_version_get(txn, name, 0, control->arena, out_version, err);
        return status == WEIR_OK ? WEIR_OK
                                 : weir_error_set(err, WEIR_ERR_INVALID,
                                                  "$.spec.%s: dataset \"%.60s\" has no version "
                                                  "yet: `weir dataset freeze %.60s` makes one",
                                                  key, name, name);
    }
    WEIR_TRY(
        weir_txn_list(txn, &weir_dataset_resource, &query, control->arena, &items, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        weir_nearest_see(&nearest, name, strlen(name), ((struct weir_dataset *)items)[i].name);
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "$.spec.%s: there is no dataset \"%.60s\"; did you mean \"%s\"?", key,
                              name, nearest.name);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "$.spec.%s: there is no dataset \"%.60s\": `weir get datasets` lists "
                          "them%s",
                          key, name,
                          strcmp(key, "validation") == 0 || strcmp(key, "backgrounds") == 0
                              ? "; a folder is given by its absolute path"
                              : "");
}

/* What Weir's own programs would find nothing in is refused here, and not after it has waited for its turn. */
static weir_status check_pictures(const struct weir_dataset *dataset,
                                  const struct weir_dataset_version *version,
                                  struct weir_error *err)
{
    return version->n_unread == 0 || version->n_unread < version->n_files
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.dataset: version %lld of dataset \"%.60s\" has no picture "
                                "that a training can read (" WEIR_PICTURE_KINDS
                                ", in one folder per class; or IDX files, of a dataset of kind "
                                "idx): its files are for programs of your own (weir job run)",
                                (long long)version->version, dataset->name);
}

/* One class is learnt without looking: people should know before they trust the figure. A detector does not tell classes apart. */
static const char *tell_of_classes(const struct reading *reading,
                                   const struct weir_dataset *dataset,
                                   const struct weir_dataset_version *version)
{
    const char *name = spec_text(reading, "model");
    const struct weir_model_name *model = name != NULL ? weir_model_name_find(name) : NULL;
    return version->n_classes != 1 || (model != NULL && model->is_detector)
               ? NULL
               : weir_arena_printf(
                     reading->control->arena,
                     "Job %s trains on dataset %s version %lld, which has one class: whatever "
                     "it answers is right, and its accuracy says nothing.",
                     reading->job->name, dataset->name, (long long)version->version);
}

/* Where the tasks find its files: in its folder, or by the version's list of them. */
static void give_folder(const struct reading *reading, const struct weir_dataset *dataset,
                        const struct weir_dataset_version *version)
{
    struct job_names *out = reading->out;
    json_object_set_new(out->datasets, dataset->name, json_string(dataset->path));
    if (out->manifests == NULL) {
        out->manifests = json_object();
    }
    json_object_set_new(out->manifests, dataset->path, json_string(version->blob));
}

/* A dataset given by name becomes its folder and its latest version; a path stays as it is. */
static weir_status resolve_dataset(const struct reading *reading, struct weir_error *err)
{
    const char *name = spec_text(reading, "dataset");
    struct job_names *out = reading->out;
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    if (name == NULL || json_object_get(reading->spec, "data") != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(control_dataset_find(reading->control, reading->txn, "dataset", name, &dataset,
                                  &version, err));
    WEIR_TRY(check_pictures(&dataset, &version, err));
    json_object_set_new(reading->spec, "data", json_string(dataset.path));
    json_object_set_new(reading->spec, "dataset_version", json_integer(version.version));
    give_folder(reading, &dataset, &version);
    out->one_class = tell_of_classes(reading, &dataset, &version);
    return WEIR_OK;
}

/* A version that is read, as its run notes it. */
static struct weir_run_input input_of(const struct control *control,
                                      const struct weir_dataset_version *version)
{
    return (struct weir_run_input){
        .name = version->dataset,
        .digest = weir_arena_printf(control->arena, "v%lld:%.*s", (long long)version->version,
                                    INPUT_DIGEST_CHARS, version->digest),
        .source_type = "weir",
        .source = weir_arena_printf(control->arena, "%s@v%lld", version->dataset,
                                    (long long)version->version),
        .context = "dataset",
        .tags = "[]"};
}

/* So does what is named for validation, or as backgrounds; the run's parameters keep the name and the version, and its inputs
 * tell lineage. */
static weir_status resolve_other(const struct reading *reading, const char *key, json_t *parameters,
                                 struct weir_run_input *inputs, struct weir_error *err)
{
    const char *name = spec_text(reading, key);
    struct weir_arena *arena = reading->control->arena;
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    if (name == NULL || strchr(name, '/') != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(
        control_dataset_find(reading->control, reading->txn, key, name, &dataset, &version, err));
    json_object_set_new(parameters, weir_arena_printf(arena, "%s_dataset", key),
                        json_string(dataset.name));
    json_object_set_new(parameters, weir_arena_printf(arena, "%s_dataset_version", key),
                        json_integer(version.version));
    inputs[reading->out->n_inputs] = input_of(reading->control, &version);
    inputs[reading->out->n_inputs++].context = weir_arena_strdup(arena, key);
    json_object_set_new(reading->spec, key, json_string(dataset.path));
    give_folder(reading, &dataset, &version);
    return WEIR_OK;
}

/* What a job names in "datasets", with the folders. The run's own is noted already. */
static weir_status read_named(const struct reading *reading, struct weir_error *err)
{
    struct control *control = reading->control;
    struct job_names *out = reading->out;
    const json_t *names = json_object_get(reading->spec, "datasets");
    const char *own = reading->wanted->dataset;
    struct weir_run_input *inputs =
        WEIR_ARENA_ARRAY(control->arena, COMMAND_DATASETS_MAX, struct weir_run_input);
    json_decref(out->datasets);
    out->datasets = json_array_size(names) > 0 ? json_object() : NULL;
    out->inputs = inputs;
    for (size_t i = 0; i < json_array_size(names) || (i == 0 && names != NULL); i++) {
        struct weir_dataset dataset;
        struct weir_dataset_version version;
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL || json_array_size(names) > COMMAND_DATASETS_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.datasets: expected an array of at most %d names of "
                                  "datasets",
                                  COMMAND_DATASETS_MAX);
        }
        WEIR_TRY(
            control_dataset_find(control, reading->txn, "datasets", name, &dataset, &version, err));
        give_folder(reading, &dataset, &version);
        if (own == NULL || strcmp(own, dataset.name) != 0) {
            inputs[out->n_inputs++] = input_of(control, &version);
        }
    }
    return WEIR_OK;
}

/* ---- detectors ----------------------------------------------------------------------------------- */

/* A detector, while it is looked up among the models that may be read. */
struct detector {
    struct weir_arena *arena;
    const char *text;
    struct weir_model_version *out;
};

/* The version that "NAME", "NAME@ALIAS" or "NAME/VERSION" names now. */
static weir_status find_detector(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char place[] = "$.spec.detector";
    const struct detector *detector = context;
    struct weir_arena *arena = detector->arena;
    struct weir_model_version *out = detector->out;
    struct weir_detector_name name;
    struct weir_model model;
    struct weir_share_model versions;
    struct weir_error missing;
    WEIR_TRY(weir_detector_name_parse(detector->text, place, arena, &name, err));
    if (control_share_model(txn, name.name, arena, &model, &versions, err) != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", place);
    }
    if (name.alias != NULL) {
        WEIR_TRY(weir_share_version_read(&versions, name.alias, strlen(name.alias), place,
                                         &name.version, err));
    }
    if (weir_model_version_get(txn, name.name, name.version, arena, out, &missing) != WEIR_OK) {
        return name.version != 0
                   ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s: %s", place, missing.message)
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s: model \"%.80s\" has no version yet: train one first (a "
                                    "training of face-detect with model_name: %.80s), or push a "
                                    "file (weir model push %.80s FILE)",
                                    place, name.name, name.name, name.name);
    }
    weir_status status = weir_version_check_servable(out, err);
    return status != WEIR_OK ? weir_error_prefix(err, "%s: ", place) : WEIR_OK;
}

/* What a worker needs of the signature: the names of classes only where some are chosen. */
static weir_status pin_signature(const struct reading *reading, const char *text,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *signature = json_loads(text, 0, NULL);
    const char *detect = spec_text(reading, "detect");
    WEIR_AUTO(weir_json_auto_free)
    json_t *options = detect != NULL ? json_loads(detect, 0, NULL) : NULL;
    if (json_array_size(json_object_get(options, "classes")) == 0) {
        json_object_del(signature, "labels");
    }
    char *pinned = weir_json_text(signature, reading->control->arena);
    if (strlen(pinned) > WEIR_OPTION_TEXT_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "$.spec.detector: what it takes and gives is said in %zu bytes, of "
                              "which a training takes %zu: its outputs or classes are too many",
                              strlen(pinned), WEIR_OPTION_TEXT_MAX_BYTES);
    }
    json_object_set_new(reading->out->pinned, "detector_signature", json_string(pinned));
    return WEIR_OK;
}

/* The detector that cuts the photos becomes a version and its file; the run's parameters keep both. */
static weir_status resolve_detector(const struct reading *reading, json_t *parameters,
                                    struct weir_error *err)
{
    const char *text = spec_text(reading, "detector");
    struct job_names *out = reading->out;
    struct weir_model_version version;
    if (text == NULL) {
        return WEIR_OK;
    }
    struct detector detector = {reading->control->arena, text, &version};
    WEIR_TRY(weir_txn_as(reading->txn,
                         out->models != NULL ? out->models : weir_txn_scope(reading->txn),
                         find_detector, &detector, err));
    out->pinned = json_pack("{s:s}", "detector_blob", version.blob);
    if (version.signature != NULL) {
        WEIR_TRY(pin_signature(reading, version.signature, err));
    }
    json_object_set_new(parameters, "detector_model", json_string(version.model));
    json_object_set_new(parameters, "detector_version", json_integer(version.version));
    json_object_set_new(reading->spec, "detector",
                        json_sprintf("%s/%lld", version.model, (long long)version.version));
    return WEIR_OK;
}

/* ---- by what a job's kind says of it --------------------------------------------------------------- */

/* What a training is started with and, for people, its run's parameters. */
static weir_status read_training(const struct reading *reading, struct weir_error *err)
{
    const struct control_job *wanted = reading->wanted;
    struct job_names *out = reading->out;
    json_t *spec = reading->spec;
    json_decref(out->datasets);
    out->datasets = json_object();
    if (json_object_get(spec, "code_version") == NULL) {
        json_object_set_new(spec, "code_version", json_string("weir " WEIR_VERSION));
    }
    WEIR_TRY(resolve_dataset(reading, err));
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_object();
    struct weir_run_input *inputs =
        WEIR_ARENA_ARRAY(reading->control->arena, 2, struct weir_run_input);
    out->inputs = inputs;
    /* The first of one version counts: what is learnt from goes before what is measured with. */
    WEIR_TRY(resolve_other(reading, "backgrounds", names, inputs, err));
    WEIR_TRY(resolve_other(reading, "validation", names, inputs, err));
    WEIR_TRY(resolve_detector(reading, names, err));
    if (wanted->resumed_from != NULL) {
        json_object_set_new(names, "resumed_from", json_string(wanted->resumed_from));
    }
    add_cause(reading, names);
    WEIR_AUTO(weir_json_auto_free) json_t *parameters = json_copy(spec);
    json_object_update(parameters, names);
    out->dataset = spec_text(reading, "dataset");
    out->dataset_version = json_integer_value(json_object_get(spec, "dataset_version"));
    out->parameters = parameters_of(reading, parameters);
    give_run(reading);
    json_object_set_new(spec, "run", json_string(out->run)); /* workers report to it */
    return WEIR_OK;
}

/* The run of a job that is none by its kind: for people, what it is started with, without what may be
 * secret or long. */
static void read_tracked(const struct reading *reading)
{
    WEIR_AUTO(weir_json_auto_free) json_t *parameters = json_copy(reading->spec);
    json_object_del(parameters, "env");
    json_object_del(parameters, "files");
    add_cause(reading, parameters);
    reading->out->dataset = reading->wanted->dataset;
    reading->out->dataset_version = reading->wanted->dataset_version;
    reading->out->parameters = parameters_of(reading, parameters);
    give_run(reading);
}

/* A batch's parameters, with what has started it. */
static weir_status read_batch(const struct reading *reading, struct weir_error *err)
{
    struct control_batch batch = {0};
    struct job_names *out = reading->out;
    give_run(reading);
    weir_status status =
        control_batch_resolve(reading->control, reading->txn, out->run, reading->spec, &batch, err);
    json_decref(out->datasets);
    json_decref(out->pinned);
    *out = (struct job_names){.run = out->run,
                              .dataset = batch.dataset,
                              .dataset_version = batch.dataset_version,
                              .parameters = batch.parameters,
                              .datasets = batch.datasets,
                              .pinned = batch.pinned,
                              .manifests = json_object()};
    const char *data = json_string_value(json_object_get(out->pinned, "data"));
    if (data != NULL) {
        json_object_set(out->manifests, data, json_object_get(out->pinned, "manifest"));
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *parameters = reading->wanted->cause != NULL && batch.parameters != NULL
                             ? json_loads(batch.parameters, 0, NULL)
                             : NULL;
    if (parameters != NULL) {
        add_cause(reading, parameters);
        out->parameters = parameters_of(reading, parameters);
    }
    return status;
}

weir_status job_names_read(struct control *control, struct weir_txn *txn,
                           const struct control_job *wanted, const struct weir_job *job,
                           json_t *spec, struct job_names *out, struct weir_error *err)
{
    const struct weir_job_ops *ops = weir_job_ops_of(job->kind);
    const struct reading reading = {control, txn, wanted, job, spec, out};
    *out = (struct job_names){.models = out->models,
                              .datasets = json_incref((json_t *)wanted->datasets),
                              .pinned = json_incref((json_t *)wanted->pinned)};
    WEIR_TRY(control_code_bring(control, txn, job->project, spec, err));
    if (ops->is_training) {
        WEIR_TRY(read_training(&reading, err));
    }
    if (ops->names_datasets) {
        WEIR_TRY(read_named(&reading, err));
    }
    if (wanted->is_tracked || (ops->is_tracked && wanted->service == NULL)) {
        read_tracked(&reading);
    }
    return ops->pins_model ? read_batch(&reading, err) : WEIR_OK;
}

void job_names_fini(struct job_names *names)
{
    json_decref(names->datasets);
    json_decref(names->pinned);
    json_decref(names->manifests);
}
