/** What IONs and deployments ask for in the outbox: jobs are made and stopped here. */
#include "control/control.h"

#include "base/file.h"
#include "control/deploy.h"
#include "control/deploy/evaluation.h"
#include "control/engine/alerter.h"
#include "control/rollout.h"
#include "control/sweep.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define LEFT_MAX 8 /* as predict/spec.h has it */

struct ion_action {
    const char *ion, *pipeline, *job, *cause;
    int64_t training;
};

/** A run of a pipeline that is to start. */
struct run_of {
    const struct weir_ion_state *state;
    const struct weir_ion_doc_pipeline *doc;
    const struct weir_ion_pipeline *pipeline;
    const struct weir_ion_runs *runs; /**< Of it. */
    const struct ion_action *action;
};

static weir_status report_started(struct control *control, struct weir_txn *txn,
                                  const struct ion_action *action, const struct weir_job *job,
                                  struct weir_error *err)
{
    struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_STARTED,
        .actor = control->actor,
        .pipeline = action->pipeline,
        .training = action->training,
        .job = job->id,
        .run = job->run,
    };
    return control_ion_event(control, txn, action->ion, &event, err);
}

/* A training that cannot be made into a job has failed: the ION must learn of it. */
static weir_status report_failed(struct control *control, struct weir_txn *txn,
                                 const struct ion_action *action, const char *why,
                                 struct weir_error *err)
{
    struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_FAILED,
        .actor = control->actor,
        .pipeline = action->pipeline,
        .training = action->training,
        .note = weir_arena_strdup(control->arena, why),
    };
    return control_ion_event(control, txn, action->ion, &event, err);
}

json_t *control_training_spec(const struct weir_ion_doc_pipeline *doc)
{
    json_t *spec = doc->parameters != NULL ? json_loads(doc->parameters, 0, NULL) : NULL;
    if (spec == NULL) {
        spec = json_object();
    }
    json_object_set_new(spec, "model", json_string(doc->model));
    json_object_set_new(spec, "dataset", json_string(doc->dataset));
    json_object_set_new(spec, "workers", json_integer(doc->workers));
    json_object_set_new(spec, "parameter_servers", json_integer(doc->parameter_servers));
    if (doc->cut_as != NULL) {
        json_object_set_new(spec, "detector", json_string(doc->cut_detector));
        json_object_set_new(spec, "detect", json_string(doc->cut_detect));
        json_object_set_new(spec, "align", json_string(doc->cut_align));
    }
    return spec;
}

json_t *control_command_spec(const struct weir_ion_doc_pipeline *doc)
{
    json_t *spec = json_loads(doc->parameters, 0, NULL);
    if (spec == NULL) {
        spec = json_object();
    }
    const json_t *more = json_object_get(spec, "datasets");
    if (doc->dataset != NULL && (more == NULL || json_is_array(more))) {
        json_t *names = json_pack("[s]", doc->dataset), *name;
        size_t i;
        json_array_foreach(more, i, name)
        {
            if (!json_equal(name, json_array_get(names, 0))) {
                json_array_append(names, name);
            }
        }
        json_object_set_new(spec, "datasets", names);
    }
    return spec; /* what else stands there, the check of the command's options refuses */
}

/* Its job was made, or cannot be, which the ION learns as the end of the run. */
static weir_status report_made(struct control *control, struct weir_txn *txn,
                               const struct ion_action *action, const struct weir_job *job,
                               weir_status status, const struct weir_error *reason,
                               struct weir_error *err)
{
    if (status == WEIR_ERR_INVALID || status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_LIMIT ||
        status == WEIR_ERR_UNSUPPORTED) {
        return report_failed(control, txn, action, reason->message, err);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", reason->message);
    }
    return report_started(control, txn, action, job, err);
}

/* A run of a pipeline is a job. It has the spec and the outputs for its own. */
static weir_status make_run_job(struct control *control, struct weir_txn *txn,
                                const struct run_of *of, struct control_job wanted, json_t *spec,
                                json_t *outputs, struct weir_error *err)
{
    const struct ion_action *action = of->action;
    struct weir_job job = {0};
    struct weir_error reason = {0};
    wanted.name = weir_arena_printf(control->arena, "%s.%s.%lld", action->ion, action->pipeline,
                                    (long long)action->training);
    wanted.project = of->state->ion.project;
    wanted.spec = spec;
    wanted.outputs = outputs;
    wanted.max_restarts = of->doc->max_restarts;
    wanted.ion = action->ion;
    wanted.pipeline = action->pipeline;
    wanted.training = action->training;
    wanted.cause = of->runs->cause;
    weir_status status = control_job_create(control, txn, &wanted, &job, &reason);
    json_decref(spec);
    json_decref(outputs);
    return report_made(control, txn, action, &job, status, &reason, err);
}

/* A preparation's command writes into the folder of its dataset, of which a version is made then. */
static weir_status start_preparation(struct control *control, struct weir_txn *txn,
                                     const struct run_of *of, struct weir_error *err)
{
    const char *name = of->doc->output;
    struct weir_dataset output;
    struct weir_error reason = {0};
    weir_status status =
        weir_txn_get(txn, &weir_dataset_resource, name, control->arena, &output, &reason);
    if (status == WEIR_OK && output.is_uploaded) {
        status = weir_error_set(&reason, WEIR_ERR_INVALID,
                                "dataset \"%s\" holds uploaded files: a command writes into a "
                                "folder of yours",
                                name);
    }
    if (status != WEIR_OK) {
        return report_made(control, txn, of->action, NULL, status, &reason, err);
    }
    const struct control_job wanted = {.kind = "command",
                                       .is_tracked = true,
                                       .dataset = of->doc->dataset,
                                       .dataset_version = of->runs->dataset_version};
    return make_run_job(control, txn, of, wanted, control_command_spec(of->doc),
                        json_pack("{s:s}", name, output.path), err);
}

json_t *control_measure_spec(const struct weir_ion_doc_pipeline *doc, const char *model,
                             int64_t version)
{
    json_t *spec = doc->parameters != NULL ? json_loads(doc->parameters, 0, NULL) : NULL;
    if (spec == NULL) {
        spec = json_object();
    }
    json_object_set_new(spec, "model", json_sprintf("%s@v%lld", model, (long long)version));
    json_object_set_new(spec, "dataset", json_string(doc->dataset));
    return spec;
}

/* The version that a comparison is against: what serves there, or if that is the one that is measured,
 * what served before it. NULL: nothing. */
static const struct weir_ion_candidate *find_live(const struct weir_ion_state *state,
                                                  const struct weir_ion_doc_pipeline *doc,
                                                  const struct weir_ion_runs *runs)
{
    const struct weir_ion_doc_link *link =
        doc->against != NULL ? weir_ion_doc_link_into(&state->doc, doc->against) : NULL;
    const struct weir_ion_candidate *live = NULL;
    for (size_t i = 0; link != NULL && i < state->n_candidates; i++) {
        const struct weir_ion_candidate *candidate = &state->candidates[i];
        bool is_measured = strcmp(candidate->model, runs->measured_model) == 0 &&
                           candidate->version == runs->measured_version;
        if (strcmp(candidate->link, link->id) == 0 && !is_measured && candidate->served_seq > 0 &&
            candidate->blob[0] != '\0' &&
            (live == NULL || candidate->served_seq > live->served_seq)) {
            live = candidate;
        }
    }
    return live;
}

static weir_status start_measurement(struct control *control, struct weir_txn *txn,
                                     const struct run_of *of, struct weir_error *err)
{
    json_t *spec =
        control_measure_spec(of->doc, of->runs->measured_model, of->runs->measured_version);
    const struct weir_ion_candidate *live = find_live(of->state, of->doc, of->runs);
    if (live != NULL) {
        json_object_set_new(spec, "live",
                            json_sprintf("%s@v%lld", live->model, (long long)live->version));
    }
    return make_run_job(control, txn, of, (struct control_job){.kind = "measure"}, spec, NULL, err);
}

/* A program learns the name from its environment, and registers through the tracking API. */
static json_t *program_spec(const struct weir_ion_doc_pipeline *doc)
{
    json_t *spec = control_command_spec(doc), *env = json_object_get(spec, "env");
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(spec, "env", env);
    }
    json_object_set_new(env, "WEIR_MODEL_NAME", json_string(doc->registers));
    return spec;
}

static weir_status start_program(struct control *control, struct weir_txn *txn,
                                 const struct run_of *of, struct weir_error *err)
{
    const struct control_job wanted = {.kind = of->doc->kind,
                                       .is_tracked = true,
                                       .dataset = of->doc->dataset,
                                       .dataset_version = of->runs->dataset_version};
    return make_run_job(control, txn, of, wanted, program_spec(of->doc), NULL, err);
}

/* The version that the pipeline finds with, whatever the document's name for it means by now. */
static void pin_detector(const struct run_of *of, json_t *spec)
{
    const struct weir_ion_pipeline *cuts = weir_ion_pipeline_of(of->state, of->doc->cut_as);
    const struct weir_ion_service *service = cuts != NULL ? weir_ion_service_of(cuts) : NULL;
    if (service != NULL && service->detector.version != 0) {
        json_object_set_new(
            spec, "detector",
            json_sprintf("%s/%" PRId64, service->detector.model, service->detector.version));
    }
}

static weir_status start_training(struct control *control, struct weir_txn *txn,
                                  const struct run_of *of, struct weir_error *err)
{
    if (strcmp(of->doc->kind, WEIR_ION_TRAIN) != 0) {
        return start_program(control, txn, of, err);
    }
    json_t *spec = control_training_spec(of->doc);
    pin_detector(of, spec);
    json_object_set_new(spec, "model_name", json_string(of->doc->registers));
    return make_run_job(control, txn, of, (struct control_job){.kind = WEIR_ION_TRAIN}, spec, NULL,
                        err);
}

static weir_status start_run(struct control *control, struct weir_txn *txn,
                             const struct weir_ion_state *state, const struct ion_action *action,
                             struct weir_error *err)
{
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(state, action->pipeline);
    const struct run_of of = {.state = state,
                              .doc = weir_ion_doc_pipeline(&state->doc, action->pipeline),
                              .pipeline = pipeline,
                              .runs = weir_ion_runs_of(pipeline),
                              .action = action};
    if (of.doc == NULL || of.runs == NULL || of.runs->training != action->training ||
        (strcmp(of.pipeline->state, "TRAINING") != 0 &&
         strcmp(of.pipeline->state, "RUNNING") != 0) ||
        of.pipeline->job != NULL) {
        return WEIR_OK; /* removed, superseded or started before */
    }
    if (weir_pipeline_measures(of.doc->type)) {
        return start_measurement(control, txn, &of, err);
    }
    return of.doc->type == WEIR_PIPELINE_PREPARATION ? start_preparation(control, txn, &of, err)
                                                     : start_training(control, txn, &of, err);
}

/* A replica reads gallery and impostors from their folders where it can. */
static void add_folder(struct control *control, struct weir_txn *txn, const char *name,
                       json_t *folders)
{
    struct weir_dataset dataset;
    if (name != NULL && weir_txn_get(txn, &weir_dataset_resource, name, control->arena, &dataset,
                                     NULL) == WEIR_OK) {
        json_object_set_new(folders, dataset.name, json_string(dataset.path));
    }
}

static const char sql_before[] =
    "SELECT id FROM jobs WHERE ion = :ion AND pipeline = :pipeline AND project = :project"
    " AND kind = 'predict'"
    " AND state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') ORDER BY finished_ms DESC, id DESC LIMIT "
    "64";

/* Those that lie here, or those that do not, and may lie on a node with a disk of its own. */
static void add_left(const struct control *control, char **ids, size_t n, int64_t n_replicas,
                     bool is_here, json_t *left)
{
    for (size_t i = 0; i < n; i++) {
        for (int64_t rank = 0; rank < LEFT_MAX && json_array_size(left) < LEFT_MAX; rank++) {
            char *dir = weir_arena_printf(control->arena, "%s/replicas/%s-%lld", control->state_dir,
                                          ids[i], (long long)rank);
            bool is_there = weir_path_is_dir(dir);
            if (is_here ? !is_there : rank >= n_replicas) {
                break;
            }
            if (is_here == is_there) {
                json_array_append_new(left, json_string(dir));
            }
        }
    }
}

/* Folders of replicas of the same pipeline and project before, which may have decisions that never arrived. The newest first. */
static weir_status find_left(struct control *control, struct weir_txn *txn,
                             const struct weir_ion_state *state, const struct ion_action *action,
                             int64_t n_replicas, json_t **out, struct weir_error *err)
{
    char **ids;
    size_t n;
    json_t *left = json_array();
    *out = json_pack("{s:o}", "left", left);
    WEIR_TRY(weir_txn_query_texts(txn, sql_before,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", action->ion),
                                             WEIR_BIND_TEXT("pipeline", action->pipeline),
                                             WEIR_BIND_TEXT("project", state->ion.project)),
                                  control->arena, &ids, &n, err));
    add_left(control, ids, n, n_replicas, true, left);
    add_left(control, ids, n, n_replicas, false, left);
    return WEIR_OK;
}

static weir_status start_prediction(struct control *control, struct weir_txn *txn,
                                    const struct weir_ion_state *state,
                                    const struct ion_action *action, struct weir_error *err)
{
    const struct weir_ion_doc_pipeline *doc = weir_ion_doc_pipeline(&state->doc, action->pipeline);
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(state, action->pipeline);
    if (doc == NULL || pipeline == NULL || pipeline->job != NULL || pipeline->paused_by != NULL ||
        strcmp(pipeline->state, "REMOVED") == 0) {
        return WEIR_OK;
    }
    json_t *spec = json_pack("{s:s,s:s,s:I}", "ion", action->ion, "pipeline", action->pipeline,
                             "replicas", (json_int_t)doc->replicas);
    json_object_set_new(spec, "source", json_loads(doc->source, JSON_DECODE_ANY, NULL));
    if (strcmp(state->ion.mode, WEIR_ION_SANDBOX) == 0) {
        json_object_set_new(spec, "sandbox", json_true());
    }
    if (doc->gpus > 0) {
        json_object_set_new(spec, "resources",
                            json_pack("{s:I}", "accelerators", (json_int_t)doc->gpus));
    }
    if (doc->sinks != NULL) {
        json_object_set_new(spec, "sinks", json_loads(doc->sinks, JSON_DECODE_ANY, NULL));
    }
    if (doc->doors != NULL) {
        json_object_set_new(spec, "doors", json_loads(doc->doors, JSON_DECODE_ANY, NULL));
    }
    if (doc->keep_pictures_ms < 0) {
        json_object_set_new(spec, "pictures", json_false());
    }
    json_t *folders = json_object();
    add_folder(control, txn, doc->gallery_dataset, folders);
    add_folder(control, txn, doc->impostors, folders);
    struct control_job wanted = {
        .name = weir_arena_printf(control->arena, "%s.%s", action->ion, action->pipeline),
        .project = state->ion.project,
        .kind = "predict",
        .spec = spec,
        .datasets = folders,
        .ion = action->ion,
        .pipeline = action->pipeline,
    };
    struct weir_job job;
    json_t *left;
    weir_status status = find_left(control, txn, state, action, doc->replicas, &left, err);
    wanted.pinned = json_array_size(json_object_get(left, "left")) > 0 ? left : NULL;
    if (status == WEIR_OK) {
        status = control_job_create(control, txn, &wanted, &job, err);
    }
    json_decref(left);
    json_decref(spec);
    json_decref(folders);
    WEIR_TRY(status);
    return report_started(control, txn, action, &job, err);
}

static weir_status stop_job(struct control *control, struct weir_txn *txn,
                            const struct ion_action *action, const char *why,
                            struct weir_error *err)
{
    struct weir_error reason;
    struct weir_job_event event = {.type = WEIR_JOB_EVENT_CANCEL, .text = why};
    if (action->job == NULL) {
        return WEIR_OK;
    }
    weir_status status = control_job_event(control, txn, action->job, &event, &reason);
    if (status == WEIR_OK || status == WEIR_ERR_CONFLICT || status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK; /* it is over already */
    }
    return weir_error_set(err, status, "%s", reason.message);
}

static char *text_of(struct control *control, const json_t *object, const char *name)
{
    return weir_arena_strdup(control->arena, json_string_value(json_object_get(object, name)));
}

weir_status control_execute(struct control *control, struct weir_txn *txn, const char *kind,
                            const char *payload, struct weir_error *err)
{
    json_t *object;
    struct weir_ion_state state;
    WEIR_TRY(weir_json_parse(payload, strlen(payload), "outbox payload", &object, err));
    bool is_alert = strcmp(kind, "alert_action") == 0;
    bool is_shift = strcmp(kind, "shift_deployment") == 0;
    bool is_replica = strcmp(kind, "start_replica") == 0 || strcmp(kind, "stop_replica") == 0;
    bool is_trial = control_sweep_is_action(kind);
    if (is_replica || is_trial || is_alert || is_shift) {
        weir_status status = is_trial     ? control_sweep_execute(control, txn, kind, object, err)
                             : is_replica ? control_deploy_execute(control, txn, kind, object, err)
                             : is_alert   ? control_alert_action(control, txn, object, err)
                                          : control_rollout_shift(control, txn, object, err);
        json_decref(object);
        return status;
    }
    struct ion_action action = {
        .ion = text_of(control, object, "ion"),
        .pipeline = text_of(control, object, "pipeline"),
        .job = text_of(control, object, "job"),
        .cause = text_of(control, object, "cause"),
        .training = json_integer_value(json_object_get(object, "training")),
    };
    json_decref(object);
    if (action.ion == NULL || action.pipeline == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "outbox action %s without ion or pipeline",
                              kind);
    }
    if (strcmp(kind, "stop_training") == 0 || strcmp(kind, "stop_prediction") == 0 ||
        strcmp(kind, "stop_evaluation") == 0) {
        return stop_job(control, txn, &action, "the ION no longer wants it", err);
    }
    WEIR_TRY(weir_ion_load(txn, action.ion, control->arena, &state, err));
    if (strcmp(kind, "start_training") == 0) {
        return start_run(control, txn, &state, &action, err);
    }
    if (strcmp(kind, "start_prediction") == 0) {
        return start_prediction(control, txn, &state, &action, err);
    }
    if (strcmp(kind, "start_evaluation") == 0) {
        return control_evaluation_start(control, txn, &state, action.pipeline, action.training,
                                        err);
    }
    return weir_error_set(err, WEIR_ERR_INTERNAL, "unknown outbox action \"%s\"", kind);
}
