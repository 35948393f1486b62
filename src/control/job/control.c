#include "control/control.h"

#include "base/uuid.h"
#include "control/deploy.h"
#include "ion/interface.h"
#include "job/elastic.h"
#include "job/task_device.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void control_publish(struct control *control, const char *topic, json_t *record)
{
    json_array_append_new(control->publish, json_pack("[s,o]", topic, record));
}

void control_publish_all(const struct control_listener *listener, const json_t *publish)
{
    size_t i;
    json_t *entry;
    if (listener->publish == NULL) {
        return;
    }
    json_array_foreach(publish, i, entry)
    {
        listener->publish(listener->context, json_string_value(json_array_get(entry, 0)),
                          json_array_get(entry, 1));
    }
}

weir_status control_log(struct control *control, struct weir_txn *txn, const char *topic,
                        const char *kind, const char *subject, const char *message,
                        struct weir_error *err)
{
    struct weir_event event = {
        .time_ms = control->now_ms,
        .topic = weir_arena_strdup(control->arena, topic),
        .kind = weir_arena_strdup(control->arena, kind),
        .subject = weir_arena_strdup(control->arena, subject),
        .actor = weir_arena_strdup(control->arena, control->actor),
        .message = weir_arena_strdup(control->arena, message),
    };
    return weir_event_append(txn, &event, NULL, err);
}

weir_status control_ion_step(struct control *control, struct weir_txn *txn,
                             struct weir_ion_state *state, const struct weir_ion_event *event,
                             struct weir_error *err)
{
    struct weir_ion_actions actions = {0};
    const char *mode = state->ion.mode, *name = state->ion.name;
    WEIR_TRY(weir_ion_step(state, event, control->now_ms, control->arena, &actions, err));
    WEIR_TRY(weir_ion_save(txn, state, &actions, control->now_ms, err));
    if (strcmp(mode, state->ion.mode) != 0) { /* what nobody was told of a sandbox counts now */
        WEIR_TRY(
            weir_alert_look_again(txn, weir_arena_printf(control->arena, "ion/%s", name), err));
    }
    if (actions.n > 0) {
        control_publish(control, "ions", json_pack("{s:s}", "name", name));
    }
    return WEIR_OK;
}

weir_status control_ion_event(struct control *control, struct weir_txn *txn, const char *ion,
                              const struct weir_ion_event *event, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    return control_ion_step(control, txn, &state, event, err);
}

/* A job is over: its run ends, and its ION or its deployment learns of it, which tells a failure; that
 * of a job of neither is told here. */
static weir_status end_run(struct control *control, struct weir_txn *txn,
                           const struct weir_job *job, struct weir_error *err)
{
    if (job->run == NULL) {
        return WEIR_OK;
    }
    struct weir_run run;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, job->run, control->arena, &run, err));
    bool is_success = strcmp(job->state, "SUCCEEDED") == 0;
    bool is_cancelled = strcmp(job->state, "CANCELLED") == 0;
    run.status = is_success ? "FINISHED" : is_cancelled ? "KILLED" : "FAILED";
    run.finished_ms = control->now_ms;
    WEIR_TRY(
        weir_txn_update(txn, &weir_run_resource, &run, WEIR_FIELDS("status", "finished_ms"), err));
    control_publish(control, "runs", json_pack("{s:s,s:s}", "id", run.id, "status", run.status));
    return WEIR_OK;
}

/* A job's run is SCHEDULED while the job waits, also where it waits again, and RUNNING once it runs. What its
 * program has said of its end meanwhile stays until the job waits for another attempt. */
static weir_status follow_run(struct control *control, struct weir_txn *txn,
                              const struct weir_job *job, enum weir_job_phase phase,
                              struct weir_error *err)
{
    static const char sql[] = "UPDATE runs SET status = :status, finished_ms = 0 WHERE id = :id"
                              " AND status <> :status AND (:waits = 1 OR status = 'SCHEDULED')";
    bool waits = phase == WEIR_JOB_PENDING;
    const char *status = waits ? "SCHEDULED" : "RUNNING";
    int64_t n;
    if (job->run == NULL || (!waits && phase != WEIR_JOB_RUNNING)) {
        return WEIR_OK;
    }
    WEIR_TRY(
        weir_txn_exec(txn, sql,
                      WEIR_BINDS(WEIR_BIND_TEXT("id", job->run), WEIR_BIND_TEXT("status", status),
                                 WEIR_BIND_INT("waits", waits)),
                      &n, err));
    if (n > 0) {
        control_publish(
            control, "runs",
            json_pack("{s:s,s:s,s:s}", "id", job->run, "status", status, "job", job->id));
    }
    return WEIR_OK;
}

/** Jobs of one name share an alert: the next that succeeds ends it. */
static char *failure_key(struct control *control, const struct weir_job *job)
{
    return weir_arena_printf(control->arena, "job_failed:%s/%s", job->project, job->name);
}

static weir_status raise_failure(struct control *control, struct weir_txn *txn,
                                 const struct weir_job *job, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {
        .id = id,
        .key = failure_key(control, job),
        .kind = "job_failed",
        .subject = weir_arena_printf(control->arena, "job/%s", job->id),
        .message = weir_arena_printf(control->arena, "Job %s failed: %s", job->name,
                                     job->reason != NULL ? job->reason : "no reason is known"),
    };
    WEIR_TRY(weir_alert_raise(txn, &alert, control->now_ms, NULL, err));
    control_publish(control, "alerts", json_pack("{s:s}", "kind", alert.kind));
    return WEIR_OK;
}

static weir_status end_job(struct control *control, struct weir_txn *txn,
                           const struct weir_job *job, struct weir_error *err)
{
    bool is_replica;
    WEIR_TRY(end_run(control, txn, job, err));
    WEIR_TRY(control_deploy_job_ended(control, txn, job, &is_replica, err));
    if (is_replica) {
        return WEIR_OK;
    }
    bool is_trial, is_success = strcmp(job->state, "SUCCEEDED") == 0;
    WEIR_TRY(weir_sweep_has_job(txn, job->id, &is_trial, err));
    if (is_trial) {
        return WEIR_OK; /* its sweep looks at it, and counts what fails */
    }
    if (job->ion == NULL && strcmp(job->state, "FAILED") == 0) {
        return raise_failure(control, txn, job, err);
    }
    if (job->ion == NULL) {
        return is_success ? weir_alert_resolve(txn, failure_key(control, job), control->now_ms, err)
                          : WEIR_OK;
    }
    struct weir_ion_event event = {
        .type = is_success                             ? WEIR_ION_EVENT_FINISHED
                : strcmp(job->state, "CANCELLED") == 0 ? WEIR_ION_EVENT_CANCELLED
                                                       : WEIR_ION_EVENT_FAILED,
        .pipeline = job->pipeline,
        .training = job->training,
        .job = job->id,
        .note = job->reason,
        .actor = control->actor,
    };
    return control_ion_event(control, txn, job->ion, &event, err);
}

/* Save a job after a step, with all that follows. `note`: how a task ended; NULL: none did. */
static weir_status save_job(struct control *control, struct weir_txn *txn,
                            struct weir_job_state *state, const struct weir_job_actions *actions,
                            const char *note, struct weir_error *err)
{
    WEIR_TRY(weir_job_save(txn, state, actions, control->now_ms, err));
    WEIR_TRY(follow_run(control, txn, &state->job, weir_job_phase_of(state), err));
    if (!weir_job_phase_is_final(weir_job_phase_of(state))) {
        WEIR_TRY(control_deploy_task_changed(control, txn, state, note, err));
    }
    for (size_t i = 0; i < actions->n; i++) {
        if (actions->items[i].type == WEIR_JOB_ACTION_ENDED) {
            WEIR_TRY(end_job(control, txn, &state->job, err));
        }
    }
    if (actions->n > 0) {
        control_publish(control, "jobs", weir_record_to_json(&weir_job_resource, &state->job));
    }
    return WEIR_OK;
}

/* What agents report and what time brings is nobody's act. */
static bool is_act(enum weir_job_event_type type)
{
    return type == WEIR_JOB_EVENT_CANCEL || type == WEIR_JOB_EVENT_EVICT ||
           type == WEIR_JOB_EVENT_HOLD || type == WEIR_JOB_EVENT_RELEASE ||
           type == WEIR_JOB_EVENT_PRIORITY;
}

weir_status control_job_event(struct control *control, struct weir_txn *txn, const char *job,
                              const struct weir_job_event *event, struct weir_error *err)
{
    struct weir_job_state state;
    struct weir_job_actions actions = {.actor = is_act(event->type) ? control->actor : NULL};
    bool is_end =
        event->type == WEIR_JOB_EVENT_TASK_EXITED || event->type == WEIR_JOB_EVENT_TASK_LOST;
    WEIR_TRY(weir_job_load(txn, job, control->arena, &state, err));
    const struct weir_task *task = is_end ? weir_job_find_task(&state, event->task) : NULL;
    bool should_run = task != NULL && strcmp(task->desired, "running") == 0;
    WEIR_TRY(weir_job_step(&state, event, control->now_ms, control->arena, &actions, err));
    const char *note = should_run ? weir_task_describe_end(task, control->arena) : NULL;
    WEIR_TRY(save_job(control, txn, &state, &actions, note, err));
    if (is_end) { /* of whatever attempt: the agent says that its processes have ended */
        WEIR_TRY(weir_task_devices_end(txn, event->task, event->attempt, err));
    }
    return WEIR_OK;
}

weir_status control_job_cancel(struct control *control, struct weir_txn *txn, const char *job,
                               bool *out_is_given_up, struct weir_error *err)
{
    const struct weir_job_event event = {
        .type = WEIR_JOB_EVENT_CANCEL,
        .text = weir_arena_printf(control->arena, "cancelled by %s", control->actor)};
    weir_status status = control_job_event(control, txn, job, &event, err);
    bool is_given_up = control_is_unreadable(status);
    if (is_given_up) {
        WEIR_TRY(weir_job_abandon(txn, job, event.text, control->actor, control->now_ms, err));
        status = control_resolve_unreadable(control, txn,
                                            weir_arena_printf(control->arena, "job/%s", job), err);
    }
    if (out_is_given_up != NULL) {
        *out_is_given_up = is_given_up;
    }
    return status;
}

/* Nodes and devices in the order of weir_job_wants. @return How many tasks want one; 0 if a gang would not
 * get all of them, or nobody anything. */
static size_t match_binds(struct control *control, const struct weir_job_state *state,
                          const struct control_bind *binds, size_t n_binds, const char **out_nodes,
                          const char **out_devices)
{
    struct weir_arena *arena = control->arena;
    const struct control_bind **of_task =
        WEIR_ARENA_ARRAY(arena, state->n_tasks + 1, const struct control_bind *);
    size_t *wants = WEIR_ARENA_ARRAY(arena, state->n_tasks + 1, size_t);
    size_t n_given = 0, n_wants = weir_job_wants(state, control->now_ms, wants);
    for (size_t i = 0; i < n_binds && binds[i].task < state->n_tasks; i++) {
        of_task[binds[i].task] = &binds[i];
    }
    for (size_t i = 0; i < n_wants; i++) {
        const struct control_bind *bind = of_task[wants[i]];
        out_nodes[i] = bind != NULL ? bind->node : NULL;
        out_devices[i] = bind != NULL ? bind->devices : NULL;
        n_given += bind != NULL;
    }
    bool is_enough = n_given > 0 && n_given >= weir_job_least(state, n_wants);
    return is_enough ? n_wants : 0;
}

weir_status control_job_bind(struct control *control, struct weir_txn *txn, const char *job,
                             int64_t revision, const struct control_bind *binds, size_t n_binds,
                             bool *out_is_bound, struct weir_error *err)
{
    struct weir_job_state state;
    weir_status status = weir_job_load(txn, job, control->arena, &state, err);
    *out_is_bound = false;
    if (status != WEIR_OK) {
        return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
    }
    const char **nodes = WEIR_ARENA_ARRAY(control->arena, state.n_tasks + 1, const char *);
    const char **devices = WEIR_ARENA_ARRAY(control->arena, state.n_tasks + 1, const char *);
    size_t n = match_binds(control, &state, binds, n_binds, nodes, devices);
    if (state.job.revision != revision || n == 0) {
        return WEIR_OK;
    }
    struct weir_job_actions actions = {0};
    const struct weir_job_event event = {
        .type = WEIR_JOB_EVENT_BIND, .place = nodes, .devices = devices, .n_place = n};
    bool is_given;
    WEIR_TRY(weir_job_step(&state, &event, control->now_ms, control->arena, &actions, err));
    WEIR_TRY(weir_task_devices_give(txn, &state, control->now_ms, &is_given, err));
    if (!is_given) {
        return WEIR_OK; /* a device went bad, or is not free yet, since the plan */
    }
    WEIR_TRY(save_job(control, txn, &state, &actions, NULL, err));
    *out_is_bound = true;
    return WEIR_OK;
}

weir_status control_job_evict(struct control *control, struct weir_txn *txn, const char *job,
                              int64_t revision, const struct weir_job_event *event,
                              bool *out_is_done, struct weir_error *err)
{
    struct weir_job_state state;
    struct weir_job_actions actions = {.actor = control->actor};
    weir_status status = weir_job_load(txn, job, control->arena, &state, err);
    *out_is_done = false;
    if (status != WEIR_OK) {
        return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
    }
    if (revision >= 0 && state.job.revision != revision) {
        return WEIR_OK;
    }
    status = weir_job_step(&state, event, control->now_ms, control->arena, &actions, err);
    if (status != WEIR_OK) {
        return status == WEIR_ERR_CONFLICT ? WEIR_OK : status; /* It goes already. */
    }
    WEIR_TRY(save_job(control, txn, &state, &actions, NULL, err));
    *out_is_done = true;
    return WEIR_OK;
}

bool control_is_unreadable(weir_status status)
{
    return status == WEIR_ERR_LIMIT || status == WEIR_ERR_CORRUPT;
}

static char *unreadable_key(struct control *control, const char *subject)
{
    return weir_arena_printf(control->arena, "unreadable:%s", subject);
}

weir_status control_raise_unreadable(struct control *control, struct weir_txn *txn,
                                     const char *subject, const char *problem,
                                     struct weir_error *err)
{
    const char *id = strchr(subject, '/') + 1;
    bool is_job = strncmp(subject, "job/", 4) == 0;
    bool is_deployment = strncmp(subject, "deployment/", 11) == 0;
    char alert_id[WEIR_UUID_BYTES];
    weir_uuid_make(alert_id);
    const struct weir_alert alert = {
        .id = alert_id,
        .key = unreadable_key(control, subject),
        .severity = "critical",
        .kind = "unreadable",
        .subject = weir_arena_strdup(control->arena, subject),
        .message = weir_arena_printf(
            control->arena,
            "%s %s cannot be loaded and is left as it is: %s. `weir %s %s` gives it up",
            is_job          ? "Job"
            : is_deployment ? "Deployment"
                            : "ION",
            id, problem,
            is_job          ? "job cancel"
            : is_deployment ? "undeploy"
                            : "delete",
            id)};
    WEIR_TRY(weir_alert_raise(txn, &alert, control->now_ms, NULL, err));
    control_publish(control, "alerts", json_pack("{s:s}", "kind", alert.kind));
    return WEIR_OK;
}

weir_status control_resolve_unreadable(struct control *control, struct weir_txn *txn,
                                       const char *subject, struct weir_error *err)
{
    return weir_alert_resolve(txn, unreadable_key(control, subject), control->now_ms, err);
}

weir_status control_ion_abandon(struct control *control, struct weir_txn *txn, const char *ion,
                                struct weir_error *err)
{
    char **jobs;
    size_t n;
    WEIR_TRY(weir_ion_abandon(txn, ion, control->now_ms, err));
    WEIR_TRY(weir_job_list_open_of(txn, ion, control->arena, &jobs, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_job_abandon(txn, jobs[i], "its ION was deleted", control->actor,
                                  control->now_ms, err));
    }
    char *subject = weir_arena_printf(control->arena, "ion/%s", ion);
    WEIR_TRY(control_resolve_unreadable(control, txn, subject, err));
    return control_log(control, txn, "ions", "ion_deleted", subject,
                       weir_arena_printf(control->arena,
                                         "ION %s, whose state could not be read, was deleted", ion),
                       err);
}

/* ---- models and datasets --------------------------------------------------------------------- */

static bool doc_begins_at(const struct weir_ion_doc *doc, const char *model)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        if (doc->links[i].model != NULL && doc->links[i].alias == NULL &&
            strcmp(doc->links[i].model, model) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < doc->n_feeds; i++) {
        if (doc->feeds[i].model != NULL && strcmp(doc->feeds[i].model, model) == 0) {
            return true;
        }
    }
    return false;
}

struct weir_ion_model control_ion_model(const struct weir_model_version *version,
                                        struct weir_arena *arena)
{
    return (struct weir_ion_model){.name = version->model,
                                   .model_version = version->id,
                                   .version = version->version,
                                   .blob = version->blob,
                                   .metrics = version->metrics,
                                   .made_by = version->created_by,
                                   .interface = weir_interface_of(version->signature, arena)};
}

weir_status control_version_changes(struct weir_txn *txn, const char *model, int64_t before,
                                    int64_t version, struct weir_arena *arena, char **out,
                                    struct weir_error *err)
{
    static const char sql[] =
        "SELECT coalesce(max(version), 0) FROM model_versions WHERE model = :model"
        " AND version < :version AND deleted_ms = 0 AND signature IS NOT NULL";
    struct weir_model_version old, new;
    bool is_compatible;
    *out = NULL;
    if (before == 0) {
        WEIR_TRY(weir_txn_query_int(
            txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_INT("version", version)),
            0, &before, err));
    }
    if (before == 0 || before == version) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_model_version_get(txn, model, before, arena, &old, err));
    WEIR_TRY(weir_model_version_get(txn, model, version, arena, &new, err));
    const char *changes =
        weir_interface_changes(old.signature, new.signature, arena, &is_compatible);
    if (changes != NULL) {
        *out = weir_arena_printf(arena, "version %lld %s version %lld: %s", (long long)version,
                                 is_compatible ? "takes and gives what is new to"
                                               : "is not compatible with",
                                 (long long)before, changes);
    }
    return WEIR_OK;
}

/** A new version concerns the ION that trained it, and all that have a link from its model. */
static weir_status offer_to_ions(struct control *control, struct weir_txn *txn,
                                 const struct weir_model_version *version,
                                 const struct weir_run *run, struct weir_error *err)
{
    char **names;
    size_t n;
    struct weir_ion_model made = control_ion_model(version, control->arena);
    made.made_by = run->id != NULL ? run->created_by : version->created_by;
    WEIR_TRY(weir_ion_list_active(txn, control->arena, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_state state;
        struct weir_error ignored;
        bool is_maker =
            run->ion != NULL && run->pipeline != NULL && strcmp(run->ion, names[i]) == 0;
        struct weir_ion_event event = {.type = WEIR_ION_EVENT_MODEL,
                                       .actor = control->actor,
                                       .pipeline = is_maker ? run->pipeline : NULL,
                                       .models = &made,
                                       .n_models = 1};
        /* One that cannot be read has its alert (control_raise_unreadable), and hinders no other. */
        bool begins = !is_maker &&
                      weir_ion_load(txn, names[i], control->arena, &state, &ignored) == WEIR_OK &&
                      (doc_begins_at(&state.doc, version->model) ||
                       weir_ion_doc_detects(&state.doc, version->model));
        if (is_maker || begins) {
            WEIR_TRY(control_ion_event(control, txn, names[i], &event, err));
        }
    }
    return WEIR_OK;
}

/** A version that is new, and the run that made it. */
struct offer {
    struct control *control;
    const struct weir_model_version *version;
    const struct weir_run *run;
};

static weir_status offer_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct offer *offer = context;
    return offer_to_ions(offer->control, txn, offer->version, offer->run, err);
}

weir_status control_model_register(struct control *control, struct weir_txn *txn,
                                   const struct weir_model_version *version,
                                   struct weir_model_version *out, struct weir_error *err)
{
    return control_model_push(control, txn, version, NULL, out, err);
}

/* A model stays in the project that it was first pushed to. */
static weir_status check_project(struct control *control, struct weir_txn *txn, const char *name,
                                 const char *project, struct weir_error *err)
{
    struct weir_model model;
    struct weir_error ignored;
    bool is_there =
        weir_txn_get(txn, &weir_model_resource, name, control->arena, &model, &ignored) == WEIR_OK;
    return project == NULL || !is_there || strcmp(model.project, project) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CONFLICT,
                                "model \"%s\" is of project \"%s\", not of \"%.60s\": take "
                                "another name for the model",
                                name, model.project, project);
}

weir_status control_model_push(struct control *control, struct weir_txn *txn,
                               const struct weir_model_version *version, const char *given,
                               struct weir_model_version *out, struct weir_error *err)
{
    struct weir_run run = {0};
    bool is_new;
    const char *project = given != NULL ? given : "default";
    WEIR_TRY(check_project(control, txn, version->model, given, err));
    if (version->run != NULL) {
        WEIR_TRY(weir_txn_get(txn, &weir_run_resource, version->run, control->arena, &run, err));
        project = run.project;
    }
    WEIR_TRY(weir_model_register(txn, version, project, control->now_ms, control->arena, out,
                                 &is_new, err));
    if (!is_new) {
        return WEIR_OK;
    }
    char *subject =
        weir_arena_printf(control->arena, "model/%s/%lld", out->model, (long long)out->version);
    WEIR_TRY(control_log(
        control, txn, "models", "model_registered", subject,
        weir_arena_printf(control->arena, "Model %s version %lld is registered%s%s", out->model,
                          (long long)out->version, version->run != NULL ? ", made by run " : "",
                          version->run != NULL ? version->run : ""),
        err));
    control_publish(control, "models", weir_record_to_json(&weir_model_version_resource, out));
    if (out->blob[0] == '\0') { /* nothing that a link could bring into service */
        return WEIR_OK;
    }
    /* Links from the model may be of another project, whose people made them. */
    struct offer offer = {control, out, &run};
    return weir_txn_as(txn, NULL, offer_in, &offer, err);
}

static bool doc_uses_dataset(const struct weir_ion_doc *doc, const char *dataset)
{
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *p = &doc->pipelines[i];
        if ((p->dataset != NULL && strcmp(p->dataset, dataset) == 0) ||
            (p->gallery_dataset != NULL && strcmp(p->gallery_dataset, dataset) == 0) ||
            (p->impostors != NULL && strcmp(p->impostors, dataset) == 0)) {
            return true;
        }
    }
    return false;
}

weir_status control_dataset_changed(struct control *control, struct weir_txn *txn,
                                    const struct weir_dataset *dataset,
                                    const struct weir_dataset_version *version,
                                    struct weir_error *err)
{
    char **names;
    size_t n;
    WEIR_TRY(weir_ion_list_active(txn, control->arena, &names, &n, err));
    struct weir_ion_dataset changed = {dataset->name,   version->version, dataset->path,
                                       version->digest, version->blob,    version->n_files,
                                       version->bytes,  version->n_rows};
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_DATASET,
                                   .actor = control->actor,
                                   .datasets = &changed,
                                   .n_datasets = 1};
    for (size_t i = 0; i < n; i++) {
        struct weir_ion_state state;
        WEIR_TRY(weir_ion_load(txn, names[i], control->arena, &state, err));
        if (doc_uses_dataset(&state.doc, dataset->name)) {
            WEIR_TRY(control_ion_event(control, txn, names[i], &event, err));
        }
    }
    return WEIR_OK;
}
