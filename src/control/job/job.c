/**
 * Jobs come from people and from IONs; both are made here, with their run and their tasks: checked by what they say, read
 * by what they name (job_names.h), then written.
 */
#include "control/control.h"

#include "base/folder_id.h"
#include "base/path.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "control/job/code.h"
#include "control/job/job_names.h"
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

#define SECRET_BYTES 32

const char *control_shared_id(const struct control *control)
{
    char *id = weir_arena_alloc(control->arena, WEIR_UUID_BYTES);
    return weir_folder_id(control->state_dir, id, NULL) == WEIR_OK ? id : NULL;
}

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

static const char *spec_text(const json_t *spec, const char *name)
{
    return json_string_value(json_object_get(spec, name));
}

/* The tracked run of a job, which refers to it: the job must be there. */
static weir_status insert_run(struct control *control, struct weir_txn *txn,
                              const struct weir_job *job, const json_t *spec,
                              const struct job_names *names, const char *experiment,
                              struct weir_error *err)
{
    if (experiment == NULL) {
        experiment = job->ion != NULL ? job->ion : WEIR_EXPERIMENT_DEFAULT;
    }
    struct weir_run run = {
        .id = job->run,
        .name = job->name,
        .project = job->project,
        .kind = job->kind,
        .status = "SCHEDULED", /* control.c follows the job with it */
        .job = job->id,
        .ion = job->ion,
        .pipeline = job->pipeline,
        .dataset = weir_arena_strdup(control->arena, names->dataset),
        .dataset_version = names->dataset_version,
        .code_version = weir_arena_strdup(control->arena, spec_text(spec, "code_version")),
        .parameters = names->parameters,
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
    for (size_t i = 0; i < names->n_inputs; i++) {
        WEIR_TRY(weir_run_input_put(txn, number, run.experiment, &names->inputs[i], err));
    }
    control_publish(control, "runs", weir_record_to_json(&weir_run_resource, &run));
    return WEIR_OK;
}

static weir_status insert_job(struct control *control, struct weir_txn *txn,
                              const struct control_job *wanted, const struct job_names *names,
                              struct weir_job *job, const json_t *spec, struct weir_error *err)
{
    char *secret = control_job_secret(control->arena);
    struct weir_launch_job launch_job = {.id = job->id,
                                         .project = job->project,
                                         .kind = job->kind,
                                         .spec = spec,
                                         .datasets = names->datasets,
                                         .manifests = names->manifests,
                                         .outputs = wanted->outputs,
                                         .pinned = names->pinned,
                                         .shared_dir = control->state_dir,
                                         .shared_id = control_shared_id(control),
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
    const struct control_job *wanted;
    struct weir_job job;
    json_t *spec; /**< Owned: a copy of what is wanted, with what its names were found to be. */
    struct job_names names;
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

/* What is wrong however the store looks, and what nobody may name. */
static weir_status check(const struct making *making, struct weir_error *err)
{
    WEIR_TRY(take_service(making->wanted, making->spec, err));
    WEIR_TRY(weir_framework_check(making->job.kind, making->spec, making->control->arena, err));
    return check_paths(making, err);
}

static weir_status write_job(struct making *making, struct weir_error *err)
{
    struct control *control = making->control;
    const struct job_names *names = &making->names;
    struct weir_job *job = &making->job;
    const struct weir_job_ops *ops = weir_job_ops_of(job->kind);
    job->is_service = ops->is_service;
    job->has_known_exits = ops->has_known_exits;
    job->run = (char *)names->run;
    job->spec = weir_json_text(making->spec, control->arena);
    if (names->one_class != NULL) {
        WEIR_TRY(control_log(control, making->txn, "jobs", "one_class",
                             weir_arena_printf(control->arena, "job/%s", job->id), names->one_class,
                             err));
    }
    WEIR_TRY(insert_job(control, making->txn, making->wanted, names, job, making->spec, err));
    return job->run != NULL ? insert_run(control, making->txn, job, making->spec, names,
                                         making->wanted->experiment, err)
                            : WEIR_OK;
}

static weir_status make(struct making *making, struct weir_error *err)
{
    WEIR_TRY(check(making, err));
    WEIR_TRY(job_names_read(making->control, making->txn, making->wanted, &making->job,
                            making->spec, &making->names, err));
    return write_job(making, err);
}

/* The projects in which who stands behind the job has one of the rights, and its own. */
static weir_status find_scope(const struct making *making, weir_rights reads,
                              struct weir_row_scope *out, struct weir_error *err)
{
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
    struct weir_row_scope own, models;
    if (weir_txn_scope(making->txn) != NULL) {
        return make(making, err);
    }
    WEIR_TRY(find_scope(making, WEIR_RIGHTS_OF(WEIR_RIGHT_DATASETS_READ), &own, err));
    WEIR_TRY(find_scope(making, WEIR_RIGHTS_OF(WEIR_RIGHT_MODELS_READ), &models, err));
    making->names.models = &models;
    return weir_txn_as(making->txn, &own, make_in, making, err);
}

weir_status control_job_create(struct control *control, struct weir_txn *txn,
                               const struct control_job *wanted, struct weir_job *out,
                               struct weir_error *err)
{
    struct making making = {
        .control = control,
        .txn = txn,
        .wanted = wanted,
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
    job_names_fini(&making.names);
    WEIR_TRY(status);
    control_publish(control, "jobs", weir_record_to_json(&weir_job_resource, &making.job));
    *out = making.job;
    return WEIR_OK;
}
