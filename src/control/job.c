/** Jobs come from people and from IONs; both are made here, with their run and their tasks. */
#include "control/control.h"

#include "base/names.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "control/batch.h"
#include "control/code.h"
#include "framework/framework.h"
#include "store/table.h"
#include "track/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_BYTES         32
#define COMMAND_DATASETS_MAX 64

static char *random_hex(struct weir_arena *arena)
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

/* A dataset given by name becomes its folder and its latest version; a path stays as it is. */
static weir_status resolve_dataset(struct control *control, struct weir_txn *txn,
                                   const struct weir_job *job, json_t *spec, struct weir_error *err)
{
    const char *name = spec_text(spec, "dataset");
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    if (name == NULL || json_object_get(spec, "data") != NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(control_dataset_find(control, txn, "dataset", name, &dataset, &version, err));
    json_object_set_new(spec, "data", json_string(dataset.path));
    json_object_set_new(spec, "dataset_version", json_integer(version.version));
    return look_at_classes(control, txn, job, &dataset, &version, err);
}

/* So does what is named for validation; the run's parameters keep the name and the version. */
static weir_status resolve_validation(struct control *control, struct weir_txn *txn, json_t *spec,
                                      json_t *parameters, struct weir_error *err)
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
    return WEIR_OK;
}

/* What a training is started with and, for people, its run's parameters. */
static weir_status resolve_training(struct control *control, struct weir_txn *txn,
                                    const struct control_job *wanted, struct weir_job *job,
                                    json_t *spec, struct tracked *out, struct weir_error *err)
{
    if (json_object_get(spec, "code_version") == NULL) {
        json_object_set_new(spec, "code_version", json_string("weir " WEIR_VERSION));
    }
    WEIR_TRY(resolve_dataset(control, txn, job, spec, err));
    json_t *names = json_object();
    weir_status status = resolve_validation(control, txn, spec, names, err);
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
    char *secret = random_hex(control->arena);
    struct weir_launch_job launch_job = {.id = job->id,
                                         .kind = job->kind,
                                         .spec = spec,
                                         .datasets = wanted->datasets,
                                         .outputs = wanted->outputs,
                                         .pinned = wanted->pinned,
                                         .shared_dir = control->state_dir,
                                         .server_url = control->server_url,
                                         .secret = secret,
                                         .max_restarts = wanted->max_restarts};
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
            .cpu_slots = launches[i].cpu_slots,
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

weir_status control_job_create(struct control *control, struct weir_txn *txn,
                               const struct control_job *wanted, struct weir_job *out,
                               struct weir_error *err)
{
    struct control_job resolved = *wanted;
    json_t *datasets = NULL;
    struct weir_job job = {
        .id = wanted->id != NULL ? weir_arena_strdup(control->arena, wanted->id)
                                 : make_id(control->arena),
        .name = weir_arena_strdup(control->arena, wanted->name),
        .project = weir_arena_strdup(control->arena, wanted->project),
        .kind = weir_arena_strdup(control->arena, wanted->kind),
        .ion = weir_arena_strdup(control->arena, wanted->ion),
        .pipeline = weir_arena_strdup(control->arena, wanted->pipeline),
        .training = wanted->training,
        .created_by = weir_arena_strdup(control->arena, control->actor),
    };
    json_t *spec = json_deep_copy(wanted->spec), *pinned = NULL;
    struct tracked tracked = {0};
    struct control_batch batch = {0};
    weir_status status = take_service(wanted, spec, err);
    if (status == WEIR_OK) {
        status = weir_framework_check(job.kind, spec, control->arena, err);
    }
    const struct weir_job_ops *ops = weir_job_ops_of(job.kind);
    if (status == WEIR_OK) {
        job.is_service = ops->is_service;
        job.has_known_exits = ops->has_known_exits;
    }
    if (status == WEIR_OK) {
        status = control_code_bring(control, txn, job.project, spec, err);
    }
    if (status == WEIR_OK && ops->is_training) {
        status = resolve_training(control, txn, wanted, &job, spec, &tracked, err);
    }
    if (status == WEIR_OK && ops->names_datasets) {
        status = resolve_named(control, txn, spec, wanted->dataset, &tracked, &datasets, err);
        resolved.datasets = datasets;
    }
    bool is_tracked =
        status == WEIR_OK && (wanted->is_tracked || (ops->is_tracked && wanted->service == NULL));
    if (is_tracked) {
        track(control, wanted, &job, spec, &tracked);
    }
    if (status == WEIR_OK && ops->pins_model) {
        job.run = run_id(control, wanted);
        status = control_batch_resolve(control, txn, job.run, spec, &batch, err);
        tracked =
            (struct tracked){.dataset = batch.dataset,
                             .dataset_version = batch.dataset_version,
                             .parameters = with_cause(control, batch.parameters, wanted->cause)};
        resolved.datasets = datasets = batch.datasets;
        resolved.pinned = pinned = batch.pinned;
    }
    if (status == WEIR_OK) {
        job.spec = weir_json_text(spec, control->arena);
        status = insert_job(control, txn, &resolved, &job, spec, err);
    }
    tracked.experiment = wanted->experiment;
    if (status == WEIR_OK && job.run != NULL) {
        status = insert_run(control, txn, &job, spec, &tracked, err);
    }
    json_decref(spec);
    json_decref(datasets);
    json_decref(pinned);
    WEIR_TRY(status);
    control_publish(control, "jobs", weir_record_to_json(&weir_job_resource, &job));
    *out = job;
    return WEIR_OK;
}
