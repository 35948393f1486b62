/** Jobs and tasks, as people and as agents see them. */
#include "api/attempt_token.h"
#include "api/auth/audit.h"
#include "api/cluster/node.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/job/visit.h"
#include "cluster/driver.h"
#include "control/control.h"
#include "framework/framework.h"
#include "framework/pod.h"
#include "job/attempt.h"
#include "job/changes.h"
#include "job/code.h"
#include "job/secret.h"
#include "job/service.h"
#include "job/task_device.h"
#include "store/table.h"

#include "base/buf.h"
#include "base/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESTARTS_MAX      1000
#define DESIRED_MAX_BYTES ((size_t)64 << 20)

/* An image that was sent is the project's: its own already, or by this job, of somebody who sees all. */
static weir_status take_image(const struct api_call *call, struct weir_txn *txn,
                              const char *project, const char *image, struct weir_error *err)
{
    static const char prefix[] = "sha256:";
    bool is_sent = true;
    if (image == NULL || strncmp(image, prefix, sizeof prefix - 1) != 0) {
        return WEIR_OK;
    }
    const char *sha256 = image + sizeof prefix - 1;
    WEIR_TRY(weir_code_has_sent(txn, project, &sha256, 1, &is_sent, err));
    if (is_sent) {
        return WEIR_OK;
    }
    return call->rows.is_all
               ? weir_code_sent(txn, project, sha256, call->now_ms, err)
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.image: project %.63s has not sent \"%.80s\": `weir job run "
                                "--image FILE` sends it",
                                project, image);
}

/* Pods alone have an image of a registry, or volumes. */
static weir_status check_pods(const struct api_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct weir_cluster *clusters;
    size_t n;
    bool is_any = false;
    WEIR_TRY(weir_cluster_list(txn, call->arena, &clusters, &n, err));
    for (size_t i = 0; i < n && !is_any; i++) {
        const struct weir_kind *kind = weir_registry_get(&weir_drivers, clusters[i].driver);
        is_any = kind != NULL && ((const struct weir_driver_ops *)kind->ops)->makes_pods;
    }
    return is_any
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec: pods of Kubernetes alone have an image of a registry, or "
                                "volumes, and no such cluster is here (weir cluster add): nodes "
                                "start images that are files (weir job run --image FILE) or that "
                                "they have (weir agent --images), and share folders (--share)");
}

/* What runs in an image needs a node that starts images. */
static weir_status check_image(const struct api_call *call, const json_t *spec,
                               struct weir_txn *txn, struct weir_error *err)
{
    bool is_there = true;
    const char *image = json_string_value(json_object_get(spec, "image"));
    WEIR_AUTO(weir_json_auto_free) json_t *pod = weir_pod_wanted(spec);
    if (pod != NULL) {
        return check_pods(call, txn, err);
    }
    WEIR_TRY(weir_nodes_have_images(txn, &is_there, err));
    return image == NULL || is_there
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.image: no node can start \"%.80s\": install crun on one "
                                "(apt-get install crun); weir describe node says what it has",
                                image);
}

/* Its task would be refused when it is done (sender.h): better now. */
static weir_status check_model_name(const struct api_call *call, const char *project,
                                    const json_t *spec, struct weir_error *err)
{
    const struct weir_row_scope may = api_projects_with(call, WEIR_RIGHT_MODELS_REGISTER);
    return !json_is_string(json_object_get(spec, "model_name")) ||
                   weir_row_scope_sees(&may, project)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "$.spec.model_name: a job that registers its model needs the right "
                                "to register models in project %.63s: leave it out, and the model "
                                "is kept with the run",
                                project);
}

/* In the same transaction: no scheduler has seen it before. */
static weir_status hold_new(const struct api_call *call, struct control *control,
                            struct weir_txn *txn, struct weir_job *job, struct weir_error *err)
{
    const struct weir_job_event event = {
        .type = WEIR_JOB_EVENT_HOLD,
        .text = weir_arena_printf(call->arena, "held by %s", call->actor)};
    WEIR_TRY(control_job_event(control, txn, job->id, &event, err));
    return weir_txn_get(txn, &weir_job_resource, job->id, call->arena, job, err);
}

weir_status api_job_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"name",         "kind", "spec", "project",
                                         "max_restarts", "held", NULL};
    struct control control = api_control(call);
    struct control_job wanted = {0};
    struct weir_job job;
    bool is_held;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &wanted.name, err));
    WEIR_TRY(api_body_text(call, "kind", &wanted.kind, err));
    WEIR_TRY(api_body_text(call, "project", &wanted.project, err));
    wanted.spec = json_object_get(call->body, "spec");
    if (wanted.name == NULL || !weir_name_is_valid(wanted.name)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.name: expected a name: 1 to 63 of a-z 0-9 . _ - with a letter or digit first");
    }
    if (wanted.kind == NULL || !json_is_object(wanted.spec)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.kind and $.spec (an object) are needed: `weir explain job-kinds` "
                              "lists the kinds");
    }
    const struct weir_job_ops *ops = weir_job_ops_of(wanted.kind);
    WEIR_TRY(api_body_int(call, "max_restarts", ops != NULL ? ops->max_restarts : 0,
                          &wanted.max_restarts, err));
    if (wanted.max_restarts < 0 || wanted.max_restarts > RESTARTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.max_restarts: expected an integer from 0 to %d", RESTARTS_MAX);
    }
    WEIR_TRY(api_body_bool(call, "held", false, &is_held, err));
    WEIR_TRY(weir_secrets_restore(json_object_get(call->body, "spec"), NULL, WEIR_JOB_SECRETS,
                                  "$.spec", err));
    wanted.project = wanted.project != NULL ? wanted.project : "default";
    WEIR_TRY(api_check_project(call, txn, wanted.project, err));
    WEIR_TRY(check_model_name(call, wanted.project, wanted.spec, err));
    WEIR_TRY(control_job_create(&control, txn, &wanted, &job, err));
    WEIR_TRY(check_image(call, wanted.spec, txn, err));
    WEIR_TRY(take_image(call, txn, wanted.project,
                        json_string_value(json_object_get(wanted.spec, "image")), err));
    WEIR_TRY(is_held ? hold_new(call, &control, txn, &job, err) : WEIR_OK);
    api_answer_record(call, &weir_job_resource, &job);
    return WEIR_OK;
}

weir_status api_job_cancel(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_job job;
    bool is_given_up;
    WEIR_TRY(control_job_cancel(&control, txn, call->params[0], &is_given_up, err));
    if (is_given_up) {
        weir_http_response_empty(call->response);
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    api_answer_record(call, &weir_job_resource, &job);
    return WEIR_OK;
}

weir_status api_job_tasks(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job_state state;
    WEIR_TRY(weir_job_load(txn, call->params[0], call->arena, &state, err));
    api_answer_list(call, &weir_task_resource, state.tasks, state.n_tasks, NULL);
    return WEIR_OK;
}

/* What ends on a node that is about to go ends with it. */
static weir_status node_ends(struct api_call *call, struct weir_txn *txn,
                             const struct weir_task *task, bool *out, struct weir_error *err)
{
    struct weir_node node;
    *out = false;
    if (task->node != NULL) {
        weir_status status = weir_node_look(txn, task->node, call->arena, &node, err);
        if (status == WEIR_ERR_NOT_FOUND) {
            return WEIR_OK;
        }
        WEIR_TRY(status);
        *out = weir_node_end_is_foreseen(&node, call->now_ms);
    }
    return WEIR_OK;
}

weir_status api_task_status(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_task task;
    const char *state, *message, *door;
    struct weir_job_event event = {.task = call->params[0]};
    WEIR_TRY(api_body_text(call, "state", &state, err));
    WEIR_TRY(api_body_text(call, "message", &message, err));
    WEIR_TRY(api_body_int(call, "attempt", 0, &event.attempt, err));
    WEIR_TRY(api_body_int(call, "pid", 0, &event.pid, err));
    WEIR_TRY(api_body_int(call, "exit_code", -1, &event.exit_code, err));
    WEIR_TRY(api_body_int(call, "signal", 0, &event.signal, err));
    event.text = message;
    if (state != NULL && strcmp(state, "running") == 0) {
        event.type = WEIR_JOB_EVENT_TASK_RUNNING;
    } else if (state != NULL && strcmp(state, "held") == 0 && message != NULL) {
        event.type = WEIR_JOB_EVENT_TASK_HELD;
    } else if (state != NULL && strcmp(state, "saved") == 0) {
        event.type = WEIR_JOB_EVENT_TASK_SAVED;
    } else if (state != NULL && strcmp(state, "exited") == 0) {
        event.type = WEIR_JOB_EVENT_TASK_EXITED;
    } else if (state != NULL && strcmp(state, "lost") == 0) {
        event.type = WEIR_JOB_EVENT_TASK_LOST;
    } else {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.state: expected running, held, saved, exited or lost");
    }
    WEIR_TRY(weir_txn_get(txn, &weir_task_resource, call->params[0], call->arena, &task, err));
    WEIR_TRY(api_body_text(call, "door", &door, err));
    if (door != NULL) {
        WEIR_TRY(weir_service_note_address(txn, task.job, event.attempt, door, err));
    }
    WEIR_TRY(node_ends(call, txn, &task, &event.is_foreseen, err));
    WEIR_TRY(control_job_event(&control, txn, task.job, &event, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static json_t *given_device(const struct weir_given_device *device)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *details = device->details != NULL ? json_loads(device->details, 0, NULL) : NULL;
    const char *pci = json_string_value(json_object_get(details, "pci"));
    return json_pack("{s:I,s:s,s:s,s:I,s:I,s:s?}", "idx", (json_int_t)device->idx, "id", device->id,
                     "kind", device->kind, "milli", (json_int_t)device->milli, "memory_bytes",
                     (json_int_t)device->memory_bytes, "pci", pci);
}

/* The devices that it was given; none is said too. */
static weir_status add_devices(struct api_call *call, struct weir_txn *txn,
                               const struct weir_task *task, json_t *desired,
                               struct weir_error *err)
{
    struct weir_given_device devices[WEIR_TASK_DEVICES_MAX];
    size_t n = 0;
    if (task->n_accelerators > 0) {
        WEIR_TRY(weir_task_devices_of(txn, task->id, task->attempt, call->arena, devices, &n, err));
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, given_device(&devices[i]));
    }
    json_object_set_new(desired, "accelerators", list);
    return WEIR_OK;
}

/* The values of its secrets, which stand nowhere else in the clear. An attempt whose secret cannot be had
 * is refused by its node, with the reason. */
static void add_secrets(struct api_call *call, struct weir_txn *txn,
                        const struct weir_attempt *attempt, json_t *desired, json_t *env)
{
    struct weir_error why = {0};
    const json_t *names = json_object_get(desired, "secrets");
    bool is_over = attempt->project == NULL;
    if (!is_over && call->identity.role == WEIR_ROLE_AGENT &&
        weir_secrets_add(txn, call->api->state_dir, attempt->project, names, env, call->arena,
                         &why) != WEIR_OK) {
        json_object_set_new(desired, "refused", json_string(why.message));
    }
    json_object_del(desired, "secrets");
}

/* What the agent is told of one task: its definition, and the attempt's token as a file beside it,
 * which is computed here and lies nowhere. */
static json_t *desired_task(struct api_call *call, struct weir_txn *txn,
                            const struct weir_task *task, const struct weir_attempt *attempt)
{
    json_t *desired = json_loads(task->definition != NULL ? task->definition : "{}", 0, NULL);
    if (desired == NULL) {
        desired = json_object();
    }
    json_t *files = json_object_get(desired, "files");
    if (files == NULL) {
        files = json_object();
        json_object_set_new(desired, "files", files);
    }
    json_object_set_new(
        files, "token",
        json_string(attempt_token_make(call->api->task_key, task->id, task->attempt, call->arena)));
    json_t *env = json_object_get(desired, "env");
    if (env == NULL) {
        env = json_object();
        json_object_set_new(desired, "env", env);
    }
    add_secrets(call, txn, attempt, desired, env);
    json_object_set_new(env, "WEIR_ATTEMPT", json_sprintf("%lld", (long long)task->attempt));
    json_object_set_new(env, "WEIR_TASK", json_string(task->id));

    const struct {
        const char *name, *value;
    } own[] = {{"WEIR_ION", attempt->ion},
               {"WEIR_PIPELINE", attempt->pipeline},
               {"WEIR_RUN", attempt->run}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (own[i].value != NULL) {
            json_object_set_new(env, own[i].name, json_string(own[i].value));
        }
    }
    if (attempt->run != NULL && json_is_true(json_object_get(desired, "is_tracked"))) {
        json_object_set_new(desired, "tracking",
                            json_pack("{s:s,s:s,s:o}", "project", attempt->project, "run",
                                      attempt->run, "experiment",
                                      json_sprintf("%lld", (long long)attempt->experiment)));
    }
    json_t *head = json_pack("{s:s,s:s,s:I,s:s,s:I,s:s}", "id", task->id, "job", task->job,
                             "attempt", (json_int_t)task->attempt, "role", task->role, "rank",
                             (json_int_t)task->rank, "desired", task->desired);
    json_object_update(desired, head);
    json_decref(head);
    if (task->asked_ms > 0 && task->saved_ms == 0) {
        json_object_set_new(desired, "asked_to_save", json_true());
    }
    if (attempt->project != NULL) { /* its caches on the node are its project's */
        json_object_set_new(desired, "project", json_string(attempt->project));
    }
    if (call->identity.role != WEIR_ROLE_AGENT) { /* an admin who looks */
        weir_secrets_mask(desired, "env.* files.*");
    }
    return desired;
}

weir_status api_node_desired(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_node node;
    int64_t after = api_query_int(call, "after");
    int64_t serial = api_query_int(call, "visits");
    int64_t wait_s = api_query_int(call, "wait_s");
    WEIR_TRY(weir_txn_get(txn, &weir_node_resource, call->params[0], call->arena, &node, err));
    json_t *visits = api_visits_wanted(call, node.name, &serial);
    if (visits != NULL) { /* at once, and without the tasks, which may be megabytes */
        api_answer(call, json_pack("{s:I,s:I,s:o}", "revision", (json_int_t)after, "serial",
                                   (json_int_t)serial, "visits", visits));
        return WEIR_OK;
    }
    if (node.desired_revision <= after && wait_s > 0 && !call->request->is_expired) {
        weir_http_response_wait(call->response, weir_node_topic(node.name), wait_s * 1000);
        return WEIR_OK;
    }
    struct weir_task *tasks;
    size_t n;
    WEIR_TRY(weir_task_list_on_node(txn, node.name, call->arena, &tasks, &n, err));
    struct weir_buf
        text; /* one task after the other: parsed, all would take many times their text */
    weir_buf_init(&text, DESIRED_MAX_BYTES);
    (void)weir_buf_printf(&text, "{\"revision\":%lld,\"tasks\":[",
                          (long long)node.desired_revision);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        struct weir_attempt attempt = {0};
        status = weir_attempt_load(txn, tasks[i].id, tasks[i].attempt, call->arena, &attempt, err);
        if (status != WEIR_OK && status != WEIR_ERR_CONFLICT && status != WEIR_ERR_NOT_FOUND) {
            break; /* Of an attempt that is over nothing more need be known. */
        }
        json_t *task = desired_task(call, txn, &tasks[i], &attempt);
        status = add_devices(call, txn, &tasks[i], task, err);
        char *one = json_dumps(task, JSON_COMPACT);
        json_decref(task);
        (void)weir_buf_puts(&text, i > 0 ? "," : "");
        (void)weir_buf_puts(&text, one != NULL ? one : "null");
        free(one);
    }
    (void)weir_buf_puts(&text, "]}");
    if (status != WEIR_OK) {
        weir_buf_fini(&text);
        return status;
    }
    weir_http_response_buf(call->response, 200, "application/json", &text);
    return WEIR_OK;
}
