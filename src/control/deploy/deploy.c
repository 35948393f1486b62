#include "control/deploy.h"

#include "base/quantity.h"

#include <inttypes.h>
#include <string.h>

/* ---- events ---------------------------------------------------------------------------------- */

static weir_status add_outbox(struct control *control, struct weir_txn *txn,
                              const struct weir_deploy_state *state,
                              const struct weir_deploy_action *action, struct weir_error *err)
{
    bool is_start = action->type == WEIR_DEPLOY_ACTION_START;
    const char *kind = is_start ? "start_replica" : "stop_replica";
    /* The time tells replicas apart whose deployments had the same name. */
    char *key = weir_arena_printf(control->arena, "%s:%s:%" PRId64, kind, action->replica,
                                  state->deployment.created_ms);
    json_t *payload = json_pack("{s:s,s:s,s:s?}", "deployment", state->deployment.name, "replica",
                                action->replica, "job", action->job);
    char *text = weir_json_text(payload, control->arena);
    json_decref(payload);
    return weir_outbox_add(txn, key, kind, text, control->now_ms, control->now_ms, err);
}

weir_status control_deploy_apply(struct control *control, struct weir_txn *txn,
                                 struct weir_deploy_state *state,
                                 const struct weir_deploy_event *event, struct weir_error *err)
{
    struct weir_deploy_actions *actions =
        WEIR_ARENA_NEW(control->arena, struct weir_deploy_actions);
    actions->n = 0;
    WEIR_TRY(weir_deploy_step(state, event, control->now_ms, control->arena, actions, err));
    if (!state->is_changed) {
        return WEIR_OK;
    }
    char *subject = weir_arena_printf(control->arena, "deployment/%s", state->deployment.name);
    /* While the deployment's row is there, which says whose the events are. */
    WEIR_TRY(state->is_deleted ? WEIR_OK : weir_deploy_save(txn, state, err));
    for (size_t i = 0; i < actions->n; i++) {
        const struct weir_deploy_action *action = &actions->items[i];
        WEIR_TRY(action->type == WEIR_DEPLOY_ACTION_EVENT
                     ? control_log(control, txn, "deployments", action->kind, subject,
                                   action->message, err)
                     : add_outbox(control, txn, state, action, err));
    }
    WEIR_TRY(state->is_deleted ? weir_deploy_save(txn, state, err) : WEIR_OK);
    control_publish(control, "deployments",
                    json_pack("{s:s,s:s}", "name", state->deployment.name, "state",
                              state->is_deleted ? "DELETED" : state->deployment.state));
    return WEIR_OK;
}

weir_status control_deploy_event(struct control *control, struct weir_txn *txn, const char *name,
                                 const struct weir_deploy_event *event, struct weir_error *err)
{
    struct weir_deploy_state state;
    WEIR_TRY(weir_deploy_load(txn, name, control->arena, &state, err));
    return control_deploy_apply(control, txn, &state, event, err);
}

weir_status control_deploy_delete(struct control *control, struct weir_txn *txn, const char *name,
                                  struct weir_error *err)
{
    const struct weir_deploy_event event = {.type = WEIR_DEPLOY_EVENT_DELETED,
                                            .actor = control->actor};
    WEIR_TRY(control_log(control, txn, "deployments", "deployment_deleted",
                         weir_arena_printf(control->arena, "deployment/%s", name),
                         weir_arena_printf(control->arena, "Deployment %s was deleted", name),
                         err));
    return control_deploy_event(control, txn, name, &event, err);
}

static bool is_same(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* Does the report only say that the replica lives? */
static bool is_heartbeat(const struct weir_deploy_state *state,
                         const struct weir_deployment_replica *report)
{
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deployment_replica *row = &state->replicas[i].row;
        if (strcmp(row->id, report->id) == 0) {
            bool is_settled = strcmp(row->state, WEIR_DEPLOYED_READY) == 0 ||
                              strcmp(row->state, WEIR_DEPLOYED_STOPPING) == 0;
            return is_settled && row->revision == report->revision &&
                   is_same(row->url, report->url) && is_same(row->versions, report->versions);
        }
    }
    return false;
}

weir_status control_deploy_report(struct control *control, struct weir_txn *txn, const char *name,
                                  const struct weir_deployment_replica *report,
                                  struct weir_error *err)
{
    struct weir_deploy_state state;
    WEIR_TRY(weir_deploy_load(txn, name, control->arena, &state, err));
    if (is_heartbeat(&state, report)) {
        return weir_deploy_heartbeat(txn, report->id, report->n_running, report->stats,
                                     control->now_ms, err);
    }
    const struct weir_deploy_event event = {.type = WEIR_DEPLOY_EVENT_REPORT,
                                            .actor = report->id,
                                            .replica = report->id,
                                            .url = report->url,
                                            .revision = report->revision,
                                            .versions = report->versions,
                                            .n_running = report->n_running,
                                            .stats = report->stats};
    return control_deploy_apply(control, txn, &state, &event, err);
}

weir_status control_deploy_job_ended(struct control *control, struct weir_txn *txn,
                                     const struct weir_job *job, bool *out_is_replica,
                                     struct weir_error *err)
{
    char *deployment, *replica;
    WEIR_TRY(weir_deploy_of_job(txn, job->id, control->arena, &deployment, &replica, err));
    *out_is_replica = deployment != NULL;
    if (deployment == NULL) {
        return WEIR_OK;
    }
    const struct weir_deploy_event event = {.type = WEIR_DEPLOY_EVENT_ENDED,
                                            .actor = control->actor,
                                            .replica = replica,
                                            .note = job->reason};
    return control_deploy_event(control, txn, deployment, &event, err);
}

weir_status control_deploy_task_changed(struct control *control, struct weir_txn *txn,
                                        const struct weir_job_state *state, const char *note,
                                        struct weir_error *err)
{
    char *deployment, *replica;
    if (!weir_job_is_service(state) || state->n_tasks != 1) {
        return WEIR_OK;
    }
    enum weir_task_phase phase = weir_task_phase_of(&state->tasks[0]);
    if (note == NULL && (phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_deploy_of_job(txn, state->job.id, control->arena, &deployment, &replica, err));
    const struct weir_deploy_event event = {
        .type = WEIR_DEPLOY_EVENT_DOWN, .actor = control->actor, .replica = replica, .note = note};
    return deployment != NULL ? control_deploy_event(control, txn, deployment, &event, err)
                              : WEIR_OK;
}

weir_status control_deploy_is_due(struct weir_txn *txn, const char *name,
                                  const struct weir_deploy_event *tick, int64_t now_ms,
                                  struct weir_arena *arena, bool *out_is_due,
                                  struct weir_error *err)
{
    struct weir_deploy_state state;
    struct weir_deploy_actions *actions = WEIR_ARENA_NEW(arena, struct weir_deploy_actions);
    actions->n = 0;
    WEIR_TRY(weir_deploy_load(txn, name, arena, &state, err));
    WEIR_TRY(weir_deploy_step(&state, tick, now_ms, arena, actions, err));
    *out_is_due = state.is_changed;
    return WEIR_OK;
}

/* ---- actions --------------------------------------------------------------------------------- */

static const struct weir_deployment_replica *find_wanted(const struct weir_deploy_state *state,
                                                         const char *id)
{
    for (size_t i = 0; i < state->n_replicas; i++) {
        const struct weir_deployment_replica *row = &state->replicas[i].row;
        if (strcmp(row->id, id) == 0 && strcmp(row->state, WEIR_DEPLOYED_WANTED) == 0) {
            return row;
        }
    }
    return NULL;
}

static json_t *replica_spec(const struct weir_deployment *deployment, const char *replica)
{
    json_t *resources = json_pack("{s:o}", "cpus", weir_json_milli(deployment->cpu_millis));
    if (deployment->memory_bytes > 0) {
        json_object_set_new(resources, "memory", json_integer(deployment->memory_bytes));
    }
    if (deployment->gpus > 0) {
        json_object_set_new(resources, "accelerators", json_integer(deployment->gpus));
    }
    return json_pack("{s:s,s:s,s:s,s:o}", "deployment", deployment->name, "replica", replica,
                     "secret", deployment->secret, "resources", resources);
}

static weir_status start_replica(struct control *control, struct weir_txn *txn,
                                 struct weir_deploy_state *state, const char *replica,
                                 struct weir_error *err)
{
    struct weir_job job;
    struct weir_error reason;
    const struct weir_deployment *deployment = &state->deployment;
    if (find_wanted(state, replica) == NULL) {
        return WEIR_OK; /* not wanted any more, or started before */
    }
    json_t *spec = replica_spec(deployment, replica);
    struct control_job wanted = {.name = replica,
                                 .project = deployment->project,
                                 .kind = "serve",
                                 .spec = spec,
                                 .max_restarts = 3};
    weir_status status = control_job_create(control, txn, &wanted, &job, &reason);
    json_decref(spec);
    struct weir_deploy_event event = {
        .type = WEIR_DEPLOY_EVENT_STARTED, .actor = control->actor, .replica = replica};
    if (status == WEIR_ERR_INVALID || status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_LIMIT ||
        status == WEIR_ERR_UNSUPPORTED) {
        event.type = WEIR_DEPLOY_EVENT_REFUSED;
        event.note = reason.message;
    } else if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", reason.message);
    } else {
        event.job = job.id;
    }
    return control_deploy_apply(control, txn, state, &event, err);
}

static weir_status stop_replica(struct control *control, struct weir_txn *txn, const char *job,
                                struct weir_error *err)
{
    struct weir_error reason;
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_CANCEL,
                                         .text = "its deployment no longer wants it"};
    weir_status status =
        job != NULL ? control_job_event(control, txn, job, &event, &reason) : WEIR_OK;
    if (status == WEIR_OK || status == WEIR_ERR_CONFLICT || status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK; /* it is over already */
    }
    return weir_error_set(err, status, "%s", reason.message);
}

weir_status control_deploy_execute(struct control *control, struct weir_txn *txn, const char *kind,
                                   const json_t *payload, struct weir_error *err)
{
    struct weir_deploy_state state;
    struct weir_error missing;
    const char *name = json_string_value(json_object_get(payload, "deployment"));
    const char *replica = json_string_value(json_object_get(payload, "replica"));
    if (name == NULL || replica == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "outbox action %s without deployment or replica", kind);
    }
    if (strcmp(kind, "stop_replica") == 0) {
        return stop_replica(control, txn, json_string_value(json_object_get(payload, "job")), err);
    }
    weir_status status = weir_deploy_load(txn, name, control->arena, &state, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK;
    }
    return status == WEIR_OK ? start_replica(control, txn, &state,
                                             weir_arena_strdup(control->arena, replica), err)
                             : weir_error_set(err, status, "%s", missing.message);
}

/* ---- what replicas are told ------------------------------------------------------------------ */

static weir_status add_version(struct weir_txn *txn, const struct weir_deployment_version *row,
                               struct weir_arena *arena, json_t *versions, struct weir_error *err)
{
    struct weir_model_version version;
    WEIR_TRY(weir_model_version_get(txn, row->model, row->version, arena, &version, err));
    json_t *signature =
        version.signature != NULL ? json_loads(version.signature, 0, NULL) : json_null();
    json_array_append_new(
        versions, json_pack("{s:I,s:s,s:I,s:o,s:s?}", "version", (json_int_t)version.version,
                            "blob", version.blob, "bytes", (json_int_t)version.bytes, "signature",
                            signature != NULL ? signature : json_null(), "golden", version.golden));
    return WEIR_OK;
}

weir_status control_deploy_desired(struct weir_txn *txn, const struct weir_deploy_state *state,
                                   struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    const struct weir_deployment *deployment = &state->deployment;
    json_t *versions = json_array(), *live = json_array();
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < state->n_versions && status == WEIR_OK; i++) {
        const struct weir_deployment_version *row = &state->versions[i].row;
        status = add_version(txn, row, arena, versions, err);
        if (row->live_ppm > 0) {
            json_array_append_new(live, json_integer(row->version));
        }
    }
    if (status != WEIR_OK) {
        json_decref(versions);
        json_decref(live);
        return status;
    }
    *out = json_pack(
        "{s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "revision", (json_int_t)deployment->revision,
        "model", deployment->model, "batch_max", (json_int_t)deployment->batch_max, "delay_max_us",
        (json_int_t)deployment->delay_max_us, "queue_max", (json_int_t)deployment->queue_max,
        "memory_max_bytes", (json_int_t)deployment->memory_bytes, "n_threads",
        (json_int_t)WEIR_MAX(weir_cpus_whole(deployment->cpu_millis), (int64_t)1), "versions",
        versions, "live", live);
    return WEIR_OK;
}
