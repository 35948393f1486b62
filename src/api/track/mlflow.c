/**
 * MLflow's API as the server's own routes are: the caller is identified, the right is checked, the change
 * is in the audit and in the live streams. What is said is domain `mlflow`'s (mlflow/mlflow.h).
 */
#include "mlflow/mlflow.h"

#include "api/core/dispatch.h"
#include "api/core/functions.h"
#include "api/core/sender.h"
#include "api/model/model.h"

#include "job/attempt.h"
#include "store/table.h"

#include <string.h>

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

/* The name in the ION's document, as its job was given it (control/job/start.c). */
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
static weir_status check_sender(struct api_call *call, struct weir_error *err)
{
    struct own_model own = {.call = call};
    if (call->route->right == WEIR_RIGHT_RUNS_CHANGE) {
        return WEIR_OK;
    }
    weir_status status = api_sender_check(call, call->route->right, err);
    bool is_own = call->route->owns == ROUTE_OWNS_LOOK;
    bool registers = call->route->owns == ROUTE_OWNS_NAME && call->attempt->ion != NULL;
    if (status != WEIR_ERR_DENIED || (!is_own && !registers)) {
        return status;
    }
    if (registers) {
        WEIR_TRY(weir_store_read(call->api->store, find_own_model, &own, err));
        call->mlflow->own_model = own.name != NULL ? own.name : "";
    }
    call->mlflow->sees_own_only = is_own;
    return WEIR_OK;
}

/* The one that the path names, the only one the caller has, or "default". */
static weir_status choose_project(struct api_call *call, struct weir_error *err)
{
    const char *named = call->path_project;
    if (named != NULL && !weir_row_scope_sees(&call->rows, named)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no project \"%.63s\" that you may do this in", named);
    }
    if (named != NULL) {
        const char **one = WEIR_ARENA_NEW(call->arena, const char *);
        *one = named;
        call->rows = (struct weir_row_scope){.projects = one, .n_projects = 1};
    }
    call->mlflow->rows = call->rows;
    call->mlflow->project =
        call->rows.n_projects == 1 && !call->rows.is_all ? call->rows.projects[0] : "default";
    return WEIR_OK;
}

static struct weir_mlflow_call *make_call(struct api_call *call)
{
    static const struct weir_mlflow_ops ops = {.write = api_write, .inspect = api_inspect};
    struct weir_mlflow_call *mlflow = WEIR_ARENA_NEW(call->arena, struct weir_mlflow_call);
    *mlflow = (struct weir_mlflow_call){.route = call->route,
                                        .request = call->request,
                                        .response = call->response,
                                        .arena = call->arena,
                                        .actor = call->actor,
                                        .acting = call->actor,
                                        .now_ms = call->now_ms,
                                        .store = call->api->store,
                                        .blobs = call->api->blobs,
                                        .state_dir = call->api->state_dir,
                                        .server_url = call->api->server_url,
                                        .publish = call->publish,
                                        .artifact_max_bytes = call->api->artifact_max_bytes,
                                        .ops = &ops,
                                        .owner = call};
    memcpy(mlflow->params, call->params, sizeof mlflow->params);
    return mlflow;
}

static weir_status check(struct api_call *call, struct weir_error *err)
{
    call->mlflow = make_call(call);
    if (call->attempt != NULL) {
        call->mlflow->actor = call->attempt->created_by;
        call->mlflow->job = call->attempt->job;
        call->mlflow->own_run = call->attempt->run;
        call->mlflow->own_experiment = call->attempt->experiment;
        narrow_to_job(call);
        WEIR_TRY(check_sender(call, err));
    }
    return choose_project(call, err);
}

/* ---- the form of its answers -------------------------------------------------------------------- */

static weir_status not_found(struct api_call *call, struct weir_error *err)
{
    call->allow = weir_mlflow_allowed(call->request, call->arena);
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no %s %.200s in the API of MLflow "
                          "that this server speaks; traces, prompts' own operations, webhooks "
                          "and GraphQL are not supported",
                          call->request->method, call->request->path);
}

static weir_status read_body(struct api_call *call, struct weir_error *err)
{
    bool has_body = strcmp(call->request->method, "GET") != 0 &&
                    strcmp(call->request->method, "HEAD") != 0 &&
                    (call->route->flags & ROUTE_UPLOAD) == 0;
    if (has_body) {
        WEIR_TRY(weir_mlflow_parse(call->mlflow, err));
    }
    call->body = call->mlflow->body;
    call->params[0] = weir_mlflow_name(call->mlflow);
    return WEIR_OK;
}

static weir_status run(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return call->route->mlflow(call->mlflow, txn, err);
}

static void refuse(struct api_call *call, const struct weir_error *err)
{
    const char *code = call->route == NULL    ? "ENDPOINT_NOT_FOUND"
                       : call->mlflow != NULL ? call->mlflow->error_code
                                              : NULL;
    weir_mlflow_answer_error(call->response, code, err);
}

const struct api_form api_mlflow_form = {.find = weir_mlflow_find,
                                         .not_found = not_found,
                                         .reach = WEIR_IDENTITY_FOREIGN,
                                         .check = check,
                                         .read_body = read_body,
                                         .run = run,
                                         .refuse = refuse};

weir_status api_mlflow_version(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    (void)err;
    weir_http_response_text(call->response, 200, "text/plain", WEIR_MLFLOW_VERSION);
    return WEIR_OK;
}
