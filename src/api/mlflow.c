/**
 * MLflow's API as the server's own routes are: the caller is identified, the right is checked, the change
 * is in the audit and in the live streams. What is said is domain `mlflow`'s (mlflow/mlflow.h).
 */
#include "mlflow/mlflow.h"

#include "api/artifact.h"
#include "api/dispatch.h"
#include "api/functions.h"
#include "api/model.h"
#include "api/sender.h"

#include "base/log.h"
#include "control/inspector.h"
#include "job/attempt.h"
#include "store/table.h"

#include <string.h>

/** A call of both sides: one is the other's owner. */
struct translated {
    struct api_call *call;
    struct weir_mlflow_call mlflow;
    struct weir_mlflow_place place;
    struct api_route route;
};

static weir_status read_scoped(struct weir_mlflow_call *mlflow, weir_txn_fn fn, void *context,
                               struct weir_error *err)
{
    return api_read(((struct translated *)mlflow->owner)->call, fn, context, err);
}

static weir_status write_scoped(struct weir_mlflow_call *mlflow, weir_txn_fn fn, void *context,
                                struct weir_error *err)
{
    return api_write(((struct translated *)mlflow->owner)->call, fn, context, err);
}

static weir_status inspect(struct weir_mlflow_call *mlflow, const char *blob, const char *name,
                           char **out_signature, struct weir_error *err)
{
    const struct inspect_question question = {.blob = blob, .name = name};
    return api_inspect(((struct translated *)mlflow->owner)->call, &question, out_signature, err);
}

static weir_status join(struct weir_mlflow_call *mlflow, const struct weir_artifact_upload *upload,
                        char *out_sha256, uint64_t *out_bytes, struct weir_error *err)
{
    return api_artifact_join(((struct translated *)mlflow->owner)->call, upload, out_sha256,
                             out_bytes, err);
}

/* The route's function: the call knows its route, which lies in the translated one. */
static weir_status run_operation(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct translated *translated = WEIR_CONTAINER_OF(call->route, struct translated, route);
    return translated->mlflow.operation->fn(&translated->mlflow, txn, err);
}

static unsigned flags_of(const struct weir_mlflow_operation *operation)
{
    static const struct {
        unsigned theirs, ours;
    } flags[] = {{WEIR_MLFLOW_FLOW, API_FLOW},
                 {WEIR_MLFLOW_ASKS, API_ASKS},
                 {WEIR_MLFLOW_UPLOAD, API_UPLOAD},
                 {WEIR_MLFLOW_NOTIFY, API_NOTIFY}};

    unsigned all = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(flags); i++) {
        all |= (operation->flags & flags[i].theirs) != 0 ? flags[i].ours : 0;
    }
    /* What changes runs, a task does with its own job's (mlflow/find.c). */
    return operation->right == WEIR_RIGHT_RUNS_CHANGE ? all : all | API_BEYOND;
}

static struct api_route route_of(const struct weir_mlflow_operation *operation)
{
    enum api_access access = operation->access == WEIR_MLFLOW_READ    ? API_READ
                             : operation->access == WEIR_MLFLOW_WRITE ? API_WRITE
                                                                      : API_NONE;
    return (struct api_route){.method = operation->method,
                              .pattern = operation->noun,
                              .summary = operation->path,
                              .right = operation->right,
                              .access = access,
                              .flags = flags_of(operation),
                              .fn = run_operation};
}

/* ---- who calls, and where ---------------------------------------------------------------------- */

/* A task sees its job's project. */
static void narrow_to_job(struct api_call *call)
{
    const char **one = WEIR_ARENA_NEW(call->arena, const char *);
    *one = call->attempt->project;
    call->rows = (struct weir_row_scope){.projects = one, .n_projects = *one != NULL};
}

struct own_model {
    struct api_call *call;
    char *name; /* out */
};

/* The name in the ION's document, as its job was given it (control/start.c). */
static weir_status find_own_model(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct own_model *own = context;
    struct weir_job job;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, own->call->attempt->job, own->call->arena, &job,
                          err));
    WEIR_AUTO(weir_json_auto_free)
    json_t *spec = job.spec != NULL ? json_loads(job.spec, 0, NULL) : NULL;
    const json_t *name = json_object_get(json_object_get(spec, "env"), "WEIR_MODEL_NAME");
    name = name != NULL ? name : json_object_get(spec, "model_name");
    own->name = weir_arena_strdup(own->call->arena, json_string_value(name));
    return WEIR_OK;
}

/* What runs a task's job has are its own; all else, only as far as who it works for may now. */
static weir_status check_sender(struct translated *translated, struct weir_error *err)
{
    struct api_call *call = translated->call;
    const struct weir_mlflow_operation *operation = translated->mlflow.operation;
    struct own_model own = {.call = call};
    if (call->attempt == NULL || operation->right == WEIR_RIGHT_RUNS_CHANGE) {
        return WEIR_OK;
    }
    weir_status status = api_sender_check(call, operation->right, err);
    bool is_own = (operation->flags & WEIR_MLFLOW_OF_RUN) != 0;
    bool registers = (operation->flags & WEIR_MLFLOW_MAKES) != 0 && call->attempt->ion != NULL;
    if (status != WEIR_ERR_DENIED || (!is_own && !registers)) {
        return status;
    }
    if (registers) {
        WEIR_TRY(weir_store_read(call->api->store, find_own_model, &own, err));
        translated->mlflow.own_model = own.name != NULL ? own.name : "";
    }
    translated->mlflow.sees_own_only = is_own;
    return WEIR_OK;
}

/* The one that the path names, the only one the caller has, or "default". */
static weir_status choose_project(struct translated *translated, struct weir_error *err)
{
    struct api_call *call = translated->call;
    const char *named = translated->place.project;
    if (named != NULL && !weir_row_scope_sees(&call->rows, named)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no project \"%.63s\" that you may do this in", named);
    }
    if (named != NULL) {
        const char **one = WEIR_ARENA_NEW(call->arena, const char *);
        *one = named;
        call->rows = (struct weir_row_scope){.projects = one, .n_projects = 1};
    }
    translated->mlflow.project =
        call->rows.n_projects == 1 && !call->rows.is_all ? call->rows.projects[0] : "default";
    return WEIR_OK;
}

static weir_status prepare(struct translated *translated, struct weir_error *err)
{
    struct api_call *call = translated->call;
    const struct weir_mlflow_operation *operation =
        weir_mlflow_find(call->request, call->request->arena, &translated->place);
    translated->mlflow.operation = operation;
    if (operation == NULL) {
        translated->mlflow.error_code = "ENDPOINT_NOT_FOUND";
        call->allow = weir_mlflow_allowed(call->request, call->arena);
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no %s %.200s in the API of MLflow "
                              "that this server speaks; traces, prompts' own operations, webhooks "
                              "and GraphQL are not supported",
                              call->request->method, call->request->path);
    }
    translated->route = route_of(operation);
    call->route = &translated->route;
    call->is_encoded = weir_http_request_check_plain(call->request, err) != WEIR_OK;
    if (call->is_encoded) {
        return WEIR_ERR_UNSUPPORTED;
    }
    WEIR_TRY(api_identify(call, WEIR_IDENTITY_FOREIGN, err));
    weir_http_request_is_known(call->request);
    WEIR_TRY(api_check_right(call, err));
    if (call->attempt != NULL) {
        narrow_to_job(call);
    }
    WEIR_TRY(check_sender(translated, err));
    return choose_project(translated, err);
}

/* ---- the handler ------------------------------------------------------------------------------- */

static weir_status parse(struct translated *translated, struct weir_error *err)
{
    struct api_call *call = translated->call;
    if ((translated->mlflow.operation->flags & WEIR_MLFLOW_BATCH) != 0) {
        translated->mlflow.batch = weir_mlflow_scan_batch(call->request, call->arena);
        if (translated->mlflow.batch != NULL) {
            return WEIR_OK;
        }
    }
    bool has_body = strcmp(call->request->method, "GET") != 0 &&
                    strcmp(call->request->method, "HEAD") != 0 &&
                    (call->route->flags & API_UPLOAD) == 0;
    return has_body ? weir_mlflow_parse(call->request, call->arena, &call->body, err) : WEIR_OK;
}

static void fill(struct translated *translated)
{
    struct weir_mlflow_call *mlflow = &translated->mlflow;
    struct api_call *call = translated->call;
    mlflow->request = call->request;
    mlflow->response = call->response;
    mlflow->arena = call->arena;
    mlflow->body = call->body;
    mlflow->id = translated->place.id;
    mlflow->rest = translated->place.rest;
    mlflow->actor = call->attempt != NULL ? call->attempt->created_by : call->actor;
    mlflow->acting = call->actor;
    mlflow->job = call->attempt != NULL ? call->attempt->job : NULL;
    mlflow->own_run = call->attempt != NULL ? call->attempt->run : NULL;
    mlflow->own_experiment = call->attempt != NULL ? call->attempt->experiment : 0;
    mlflow->rows = call->rows;
    mlflow->now_ms = call->now_ms;
    mlflow->store = call->api->store;
    mlflow->blobs = call->api->blobs;
    mlflow->state_dir = call->api->state_dir;
    mlflow->server_url = call->api->server_url;
    mlflow->publish = call->publish;
    mlflow->artifact_max_bytes = call->api->artifact_max_bytes;
    mlflow->inspect = inspect;
    mlflow->join = join;
    mlflow->read = read_scoped;
    mlflow->write = write_scoped;
    mlflow->owner = translated;
    call->params[0] = weir_mlflow_name(mlflow);
}

static void refuse(struct translated *translated, weir_status status, const struct weir_error *err)
{
    const struct api_call *call = translated->call;
    struct weir_error error = *err;
    error.status = status;
    weir_mlflow_answer_error(call->response, translated->mlflow.error_code, &error);
    api_say_form(call);
    api_say_when(call);
    if (weir_status_http(status) >= 500 && status != WEIR_ERR_UNSUPPORTED) {
        weir_log(WEIR_LOG_WARN, "request_failed", WEIR_KV_STR("method", call->request->method),
                 WEIR_KV_STR("path", call->request->path), WEIR_KV_STR("error", err->message));
    }
}

void api_mlflow_handle(struct weir_api *api, struct weir_http_request *request,
                       struct weir_http_response *response)
{
    struct api_call call;
    struct weir_arena arena;
    struct weir_error err = {0};
    api_call_init(&call, api, request, response, &arena);
    struct translated translated = {.call = &call};
    call.publish = json_array();
    weir_status status = prepare(&translated, &err);
    if (status == WEIR_OK) {
        status = parse(&translated, &err);
    }
    if (status == WEIR_OK) {
        fill(&translated);
        status = api_perform(&call, &err);
    }
    if (status != WEIR_OK) {
        refuse(&translated, status, &err);
    }
    api_note_for_audit(&call, status, &err);
    json_decref(call.body);
    json_decref(call.publish);
    weir_arena_fini(&arena);
}

void api_mlflow_body_rule(const struct weir_api *api, const struct weir_http_request *request,
                          struct weir_http_body_rule *rule)
{
    struct weir_arena arena;
    struct weir_mlflow_place place;
    weir_arena_init(&arena, 0);
    const struct weir_mlflow_operation *operation = weir_mlflow_find(request, &arena, &place);
    weir_arena_fini(&arena);
    if (operation != NULL && operation->max_body_bytes != 0) {
        rule->max_bytes = operation->max_body_bytes;
    }
    if (operation != NULL && (operation->flags & WEIR_MLFLOW_UPLOAD) != 0) {
        rule->to_file = true;
        rule->wants_sha256 = true;
        rule->max_bytes = api->artifact_max_bytes;
    }
}

void api_mlflow_admit(struct weir_api *api, struct weir_http_request *request,
                      struct weir_http_response *response)
{
    struct api_call call;
    struct weir_arena arena;
    struct weir_error err = {0};
    api_call_init(&call, api, request, response, &arena);
    struct translated translated = {.call = &call};
    weir_status status = prepare(&translated, &err);
    if (status != WEIR_OK) {
        refuse(&translated, status, &err);
        api_note_for_audit(&call, status, &err);
    }
    weir_arena_fini(&arena);
}

weir_status api_mlflow_version(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    weir_http_response_text(call->response, 200, "text/plain", WEIR_MLFLOW_VERSION);
    return WEIR_OK;
}
