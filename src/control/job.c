/** Jobs come from people and from IONs; both are made here, with their run and their tasks. */
#include "control/control.h"

#include "base/names.h"
#include "base/path.h"
#include "base/picture.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "control/batch.h"
#include "control/code.h"
#include "control/sender.h"
#include "framework/framework.h"
#include "framework/paths.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_BYTES         32
#define COMMAND_DATASETS_MAX 64

char *control_job_secret(struct weir_arena *arena)
{
    unsigned char bytes[SECRET_BYTES];
    char *text = weir_arena_alloc(arena, 2 * SECRET_BYTES + 1);
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return text;
}

static char *make_id(struct weir_arena *arena)
{
    char *id = weir_arena_alloc(arena, WEIR_UUID_BYTES);
    weir_uuid_make(id);
    return id;
}

/* The identifier of the job's run. */
static char *run_id(struct control *control, const struct control_job *wanted)
{
    return wanted->run != NULL ? weir_arena_strdup(control->arena, wanted->run)
                               : make_id(control->arena);
}

static const char *spec_text(const json_t *spec, const char *name)
{
    return json_string_value(json_object_get(spec, name));
}

/** What a job's run has beside what its record says. */
struct tracked {
    const char *experiment; /**< NULL: its ION's, else the default one. */
    const char *dataset;
    int64_t dataset_version;
    char *parameters;
    const struct weir_run_input *inputs; /**< Versions of datasets that it names beside. */
    size_t n_inputs;
};

/* Of a version's digest; with its number, since a later version may have the same files. */
#define INPUT_DIGEST_CHARS 12

/* The tracked run of a job, which refers to it: the job must be there. */
static weir_status insert_run(struct control *control, struct weir_txn *txn,
                              const struct weir_job *job, const json_t *spec,
                              const struct tracked *tracked, struct weir_error *err)
{
    const char *experiment = tracked->experiment != NULL ? tracked->experiment
                             : job->ion != NULL          ? job->ion
                                                         : WEIR_EXPERIMENT_DEFAULT;
    struct weir_run run = {
        .id = job->run,
        .name = job->name,
        .project = job->project,
        .kind = job->kind,
        .status = "SCHEDULED", /* control.c follows the job with it */
        .job = job->id,
        .ion = job->ion,
        .pipeline = job->pipeline,
        .dataset = weir_arena_strdup(control->arena, tracked->dataset),
        .dataset_version = tracked->dataset_version,
        .code_version = weir_arena_strdup(control->arena, spec_text(spec, "code_version")),
        .parameters = tracked->parameters,
        .created_by = weir_arena_strdup(control->arena, control->actor),
        .created_ms = control->now_ms,
        .start_ms = control->now_ms,
    };
    int64_t number;
    WEIR_TRY(weir_experiment_ensure(txn, job->project, experiment, control->actor, control->now_ms,
                                    &run.experiment, err));
    WEIR_TRY(weir_run_insert(txn, &run, &number, err));
    if (weir_job_ops_of(job->kind)->is_tracked) {
        struct weir_tag tags[CONTROL_CODE_TAGS_MAX];
        size_t n = control_code_tags(control, spec, tags);
        WEIR_TRY(weir_run_tags_put(txn, number, tags, n, err));
    }
    for (size_t i = 0; i < tracked->n_inputs; i++) {
        WEIR_TRY(weir_run_input_put(txn, number, run.experiment, &tracked->inputs[i], err));
    }
    control_publish(control, "runs", weir_record_to_json(&weir_run_resource, &run));
    return WEIR_OK;
}

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
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND,
        "$.spec.%s: there is no dataset \"%.60s\": `weir get datasets` lists "
        "them%s",
        key, name,
        strcmp(key, "validation") == 0 ? "; a folder is given by its absolute path" : "");
}

/* One class is learnt without looking: people should know before they trust the figure. */
static weir_status look_at_classes(struct control *control, struct weir_txn *txn,
                                   const struct weir_job *job, const struct weir_dataset *dataset,
                                   const struct weir_dataset_version *version,
                                   struct weir_error *err)
{
    if (version->n_classes != 1) {
        return WEIR_OK;
    }
    return control_log(
        control, txn, "jobs", "one_class", weir_arena_printf(control->arena, "job/%s", job->id),
        weir_arena_printf(control->arena,
                          "Job %s trains on dataset %s version %lld, which has one class: whatever "
                          "it answers is right, and its accuracy says nothing.",
                          job->name, dataset->name, (long long)version->version),
        err);
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

/* A dataset given by name becomes its folder and its latest version; a path stays as it is. */
static weir_status resolve_dataset(struct control *control, struct weir_txn *txn,
                                   const struct weir_job *job, json_t *spec, json_t *folders,
                                   struct weir_error *err)
{
    const char *name = spec_text(spec, "dataset");
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    if (name == NULL || json_object_get(spec, "data") != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(control_dataset_find(control, txn, "dataset", name, &dataset, &version, err));
    WEIR_TRY(check_pictures(&dataset, &version, err));
    json_object_set_new(spec, "data", json_string(dataset.path));
    json_object_set_new(spec, "dataset_version", json_integer(version.version));
    json_object_set_new(folders, dataset.name, json_string(dataset.path));
    return look_at_classes(control, txn, job, &dataset, &version, err);
}

/* So does what is named for validation; the run's parameters keep the name and the version. */
static weir_status resolve_validation(struct control *control, struct weir_txn *txn, json_t *spec,
                                      json_t *parameters, json_t *folders, struct weir_error *err)
{
    const char *name = spec_text(spec, "validation");
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    if (name == NULL || strchr(name, '/') != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(control_dataset_find(control, txn, "validation", name, &dataset, &version, err));
    json_object_set_new(parameters, "validation_dataset", json_string(dataset.name));
    json_object_set_new(parameters, "validation_dataset_version", json_integer(version.version));
    json_object_set_new(spec, "validation", json_string(dataset.path));
    json_object_set_new(folders, dataset.name, json_string(dataset.path));
    return WEIR_OK;
}

/* What a training is started with and, for people, its run's parameters. The folders of its datasets
 * go into wanted->datasets. */
static weir_status resolve_training(struct control *control, struct weir_txn *txn,
                                    const struct control_job *wanted, struct weir_job *job,
                                    json_t *spec, struct tracked *out, struct weir_error *err)
{
    json_t *folders = (json_t *)wanted->datasets;
    if (json_object_get(spec, "code_version") == NULL) {
        json_object_set_new(spec, "code_version", json_string("weir " WEIR_VERSION));
    }
    WEIR_TRY(resolve_dataset(control, txn, job, spec, folders, err));
    json_t *names = json_object();
    weir_status status = resolve_validation(control, txn, spec, names, folders, err);
    if (wanted->resumed_from != NULL) {
        json_object_set_new(names, "resumed_from", json_string(wanted->resumed_from));
    }
    if (wanted->cause != NULL) {
        json_object_set_new(names, "trigger", json_string(wanted->cause));
    }
    json_t *parameters = json_copy(spec);
    json_object_update(parameters, names);
    *out = (struct tracked){.dataset = spec_text(spec, "dataset"),
                            .dataset_version =
                                json_integer_value(json_object_get(spec, "dataset_version")),
                            .parameters = weir_json_text(parameters, control->arena)};
    json_decref(parameters);
    json_decref(names);
    job->run = run_id(control, wanted);
    json_object_set_new(spec, "run", json_string(job->run)); /* workers report to it */
    return status;
}

/* A run's parameters, with what has started it. */
static char *with_cause(struct control *control, char *parameters, const char *cause)
{
    json_t *object = cause != NULL && parameters != NULL ? json_loads(parameters, 0, NULL) : NULL;
    if (object == NULL) {
        return parameters;
    }
    json_object_set_new(object, "trigger", json_string(cause));
    char *text = weir_json_text(object, control->arena);
    json_decref(object);
    return text;
}

/* The run of a job that is none by its kind: for people, what it is started with, without what may be
 * secret or long. */
static void track(struct control *control, const struct control_job *wanted, struct weir_job *job,
                  const json_t *spec, struct tracked *out)
{
    json_t *parameters = json_copy((json_t *)spec);
    json_object_del(parameters, "env");
    json_object_del(parameters, "files");
    if (wanted->cause != NULL) {
        json_object_set_new(parameters, "trigger", json_string(wanted->cause));
    }
    out->dataset = wanted->dataset;
    out->dataset_version = wanted->dataset_version;
    out->parameters = weir_json_text(parameters, control->arena);
    json_decref(parameters);
    job->run = run_id(control, wanted);
}

static weir_status insert_job(struct control *control, struct weir_txn *txn,
                              const struct control_job *wanted, struct weir_job *job,
                              const json_t *spec, struct weir_error *err)
{
    char *secret = control_job_secret(control->arena);
    struct weir_launch_job launch_job = {.id = job->id,
                                         .project = job->project,
                                         .kind = job->kind,
                                         .spec = spec,
                                         .datasets = wanted->datasets,
                                         .outputs = wanted->outputs,
                                         .pinned = wanted->pinned,
                                         .shared_dir = control->state_dir,
                                         .server_url = control->server_url,
                                         .secret = secret,
                                         .max_restarts = wanted->max_restarts,
                                         .node_timeout_ms = weir_node_lost_ms()};
    struct weir_launch *launches;
    struct weir_job_request request;
    size_t n;
    WEIR_TRY(weir_framework_plan(&launch_job, control->arena, &launches, &n, &request, err));
    struct weir_task *tasks = WEIR_ARENA_ARRAY(control->arena, n, struct weir_task);
    for (size_t i = 0; i < n; i++) {
        tasks[i] = (struct weir_task){
            .id = make_id(control->arena),
            .rank = launches[i].rank,
            .role = weir_arena_strdup(control->arena, launches[i].role),
            .cpu_millis = launches[i].cpu_millis,
            .memory_bytes = launches[i].memory_bytes,
            .n_accelerators = launches[i].accelerators.n,
            .accelerator_model = weir_arena_strdup(control->arena, launches[i].accelerators.model),
            .accelerator_milli = launches[i].accelerators.milli,
            .accelerator_memory_bytes = launches[i].accelerators.memory_bytes,
            .mig_profile = weir_arena_strdup(control->arena, launches[i].accelerators.mig_profile),
            .definition = launches[i].definition,
        };
    }
    job->max_restarts = wanted->max_restarts;
    job->priority = request.priority;
    job->is_preemptible = request.is_preemptible;
    job->time_limit_ms = request.time_limit_ms;
    job->save_within_ms = request.save_within_ms;
    job->fence_ms = request.is_fenced ? weir_node_lost_ms() : 0;
    job->min_tasks = request.min_tasks;
    job->is_array = request.is_array;
    job->parallel = request.parallel;
    job->placement = request.placement;
    WEIR_TRY(weir_job_create(txn, job, tasks, n, control->now_ms, err));
    return weir_txn_get(txn, &weir_job_resource, job->id, control->arena, job, err);
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

/* What a job names in "datasets", with the folders; the reference is the caller's. The run's own is noted
 * already. */
static weir_status resolve_named(struct control *control, struct weir_txn *txn, const json_t *spec,
                                 const char *own, struct tracked *tracked, json_t **out,
                                 struct weir_error *err)
{
    const json_t *names = json_object_get(spec, "datasets");
    struct weir_run_input *inputs =
        WEIR_ARENA_ARRAY(control->arena, COMMAND_DATASETS_MAX, struct weir_run_input);
    *out = json_array_size(names) > 0 ? json_object() : NULL;
    tracked->inputs = inputs;
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
        WEIR_TRY(control_dataset_find(control, txn, "datasets", name, &dataset, &version, err));
        json_object_set_new(*out, dataset.name, json_string(dataset.path));
        if (own == NULL || strcmp(own, dataset.name) != 0) {
            inputs[tracked->n_inputs++] = input_of(control, &version);
        }
    }
    return WEIR_OK;
}

/* A port and a folder are given to services (control/service.h): nobody names another one's. */
static weir_status take_service(const struct control_job *wanted, json_t *spec,
                                struct weir_error *err)
{
    if (wanted->service != NULL) {
        json_object_set(spec, "service", (json_t *)wanted->service);
    } else if (json_object_get(spec, "service") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.service: is set for services alone: weir service run starts "
                              "one");
    }
    return WEIR_OK;
}

/** A job on its way. */
struct making {
    struct control *control;
    struct weir_txn *txn;
    struct control_job wanted; /**< With what its names were found to be. */
    const struct weir_job_ops *ops;
    struct weir_job job;
    json_t *spec;
    json_t *datasets, *pinned; /**< Owned. */
    struct tracked tracked;
};

/* Of folders on the nodes that are datasets of other projects: all are looked at. */
static const char sql_foreign[] =
    "SELECT path FROM datasets WHERE is_uploaded = 0 AND project <> :project";

struct foreign {
    char **paths;
    size_t n;
    struct weir_error *err;
};

static weir_status check_foreign(void *context, const char *where, const char *path,
                                 bool is_writable)
{
    const struct foreign *foreign = context;
    (void)is_writable;
    for (size_t i = 0; i < foreign->n; i++) {
        if (weir_path_below(path, foreign->paths[i]) != NULL ||
            weir_path_below(foreign->paths[i], path) != NULL) {
            return weir_error_set(foreign->err, WEIR_ERR_INVALID,
                                  "%s: %.200s is not for jobs of this project: take a folder "
                                  "elsewhere, or name a dataset (`weir get datasets`)",
                                  where, path);
        }
    }
    return WEIR_OK;
}

/* What people name by path: nothing of Weir's own folder, nothing that another project owns. */
static weir_status check_paths(const struct making *making, struct weir_error *err)
{
    struct control *control = making->control;
    const struct weir_job *job = &making->job;
    const struct weir_reach reach = {control->state_dir, job->project, NULL};
    struct foreign foreign = {.err = err};
    WEIR_TRY(weir_framework_paths_check(&reach, job->kind, "$.spec", making->spec, err));
    WEIR_TRY(weir_txn_query_texts_of_all(making->txn, sql_foreign,
                                         WEIR_BINDS(WEIR_BIND_TEXT("project", job->project)),
                                         control->arena, &foreign.paths, &foreign.n, err));
    return weir_framework_paths_walk(job->kind, "$.spec", making->spec, check_foreign, &foreign,
                                     err);
}

static weir_status resolve_batch(struct making *making, struct weir_error *err)
{
    struct control *control = making->control;
    struct control_batch batch = {0};
    making->job.run = run_id(control, &making->wanted);
    weir_status status =
        control_batch_resolve(control, making->txn, making->job.run, making->spec, &batch, err);
    making->tracked =
        (struct tracked){.dataset = batch.dataset,
                         .dataset_version = batch.dataset_version,
                         .parameters = with_cause(control, batch.parameters, making->wanted.cause)};
    making->wanted.datasets = making->datasets = batch.datasets;
    making->wanted.pinned = making->pinned = batch.pinned;
    return status;
}

/* What its specification names is looked up, and its run is prepared. */
static weir_status resolve(struct making *making, struct weir_error *err)
{
    struct control *control = making->control;
    struct control_job *wanted = &making->wanted;
    const struct weir_job_ops *ops = making->ops;
    WEIR_TRY(control_code_bring(control, making->txn, making->job.project, making->spec, err));
    if (ops->is_training) {
        wanted->datasets = making->datasets = json_object();
        WEIR_TRY(resolve_training(control, making->txn, wanted, &making->job, making->spec,
                                  &making->tracked, err));
    }
    if (ops->names_datasets) {
        weir_status status = resolve_named(control, making->txn, making->spec, wanted->dataset,
                                           &making->tracked, &making->datasets, err);
        wanted->datasets = making->datasets;
        WEIR_TRY(status);
    }
    if (wanted->is_tracked || (ops->is_tracked && wanted->service == NULL)) {
        track(control, wanted, &making->job, making->spec, &making->tracked);
    }
    return ops->pins_model ? resolve_batch(making, err) : WEIR_OK;
}

static weir_status make(struct making *making, struct weir_error *err)
{
    struct control *control = making->control;
    struct weir_job *job = &making->job;
    WEIR_TRY(take_service(&making->wanted, making->spec, err));
    WEIR_TRY(weir_framework_check(job->kind, making->spec, control->arena, err));
    WEIR_TRY(check_paths(making, err));
    making->ops = weir_job_ops_of(job->kind);
    job->is_service = making->ops->is_service;
    job->has_known_exits = making->ops->has_known_exits;
    WEIR_TRY(resolve(making, err));
    job->spec = weir_json_text(making->spec, control->arena);
    WEIR_TRY(insert_job(control, making->txn, &making->wanted, job, making->spec, err));
    making->tracked.experiment = making->wanted.experiment;
    return job->run != NULL
               ? insert_run(control, making->txn, job, making->spec, &making->tracked, err)
               : WEIR_OK;
}

/* The projects in which who stands behind the job may read datasets, and its own. */
static weir_status find_scope(const struct making *making, struct weir_row_scope *out,
                              struct weir_error *err)
{
    const weir_rights reads = WEIR_RIGHTS_OF(WEIR_RIGHT_DATASETS_READ);
    const struct weir_job *job = &making->job;
    const struct control_sender_of of = {job->id, job->kind, job->ion, job->created_by,
                                         job->limited_to};
    struct weir_arena *arena = making->control->arena;
    struct weir_identity identity;
    const char *name;
    WEIR_TRY(control_sender_find(making->txn, &of, arena, &name, &identity, err));
    const char **projects = WEIR_ARENA_ARRAY(arena, identity.n_grants + 1, const char *);
    *out = (struct weir_row_scope){.is_all = (identity.rights & reads) != 0, .projects = projects};
    projects[out->n_projects++] = job->project;
    for (size_t i = 0; i < identity.n_grants; i++) {
        if (identity.grants[i].rights & reads) {
            projects[out->n_projects++] = identity.grants[i].project;
        }
    }
    return WEIR_OK;
}

static weir_status make_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    return make(context, err);
}

/* Names are looked up among what the caller may see. What an ION or a sweep starts has no caller. */
static weir_status make_scoped(struct making *making, struct weir_error *err)
{
    struct weir_row_scope own;
    if (weir_txn_scope(making->txn) != NULL) {
        return make(making, err);
    }
    WEIR_TRY(find_scope(making, &own, err));
    return weir_txn_as(making->txn, &own, make_in, making, err);
}

weir_status control_job_create(struct control *control, struct weir_txn *txn,
                               const struct control_job *wanted, struct weir_job *out,
                               struct weir_error *err)
{
    struct making making = {
        .control = control,
        .txn = txn,
        .wanted = *wanted,
        .spec = json_deep_copy(wanted->spec),
        .job = {.id = wanted->id != NULL ? weir_arena_strdup(control->arena, wanted->id)
                                         : make_id(control->arena),
                .name = weir_arena_strdup(control->arena, wanted->name),
                .project = weir_arena_strdup(control->arena, wanted->project),
                .kind = weir_arena_strdup(control->arena, wanted->kind),
                .ion = weir_arena_strdup(control->arena, wanted->ion),
                .pipeline = weir_arena_strdup(control->arena, wanted->pipeline),
                .training = wanted->training,
                .created_by = weir_arena_strdup(control->arena, control->actor),
                .limited_to = weir_arena_strdup(control->arena, control->limited_to)}};
    weir_status status = make_scoped(&making, err);
    json_decref(making.spec);
    json_decref(making.datasets);
    json_decref(making.pinned);
    WEIR_TRY(status);
    control_publish(control, "jobs", weir_record_to_json(&weir_job_resource, &making.job));
    *out = making.job;
    return WEIR_OK;
}
