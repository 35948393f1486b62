/** The way of a request: to the gateway, to MLflow's API, to a page, or to a route of the table. */
#include "api/core/dispatch.h"

#include "api/auth/audit.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/scope.h"
#include "api/data/blob.h"
#include "api/routes.h"
#include "base/log.h"
#include "base/model_format.h"
#include "control/vitals.h"
#include "gateway/gateway.h"
#include "mlflow/mlflow.h"
#include "store/pulse.h"

#include <string.h>

#define API_UPLOAD_MAX_BYTES ((uint64_t)4 << 30)
#define OPEN_MAX_BYTES       ((uint64_t)4 << 10) /* of a body from who need not say who it is */
#define CALL_MAX_BYTES       ((size_t)64 << 20)  /* of the arena of one turn */

/* Who may do it in one project only need not name it. */
static void name_only_project(struct api_call *call)
{
    if ((call->route->flags & ROUTE_IN_PROJECT) != 0 && !call->rows.is_all &&
        call->rows.n_projects == 1 && json_object_get(call->body, "project") == NULL) {
        json_object_set_new(call->body, "project", json_string(call->rows.projects[0]));
    }
}

static weir_status parse_body(struct api_call *call, struct weir_error *err)
{
    if (call->route->flags & (ROUTE_UPLOAD | ROUTE_BYTES_IN)) {
        return WEIR_OK;
    }
    bool is_change =
        strcmp(call->request->method, "GET") != 0 && strcmp(call->request->method, "HEAD") != 0;
    if (!is_change) {
        return WEIR_OK;
    }
    if (call->request->body_len == 0) {
        call->body = json_object();
        return WEIR_OK;
    }
    if (weir_json_count(call->request->body, call->request->body_len) > API_BODY_MAX_VALUES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "request body: more than %zu values: send it in parts",
                              API_BODY_MAX_VALUES);
    }
    WEIR_TRY(weir_json_parse(call->request->body, call->request->body_len, "request body",
                             &call->body, err));
    if (!json_is_object(call->body)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "request body: expected an object (name: value), and not a %s",
                              json_is_array(call->body) ? "list (- value)" : "single value");
    }
    name_only_project(call);
    return WEIR_OK;
}

/* ---- the API's own form -------------------------------------------------------------------------- */

static const struct weir_route *find_own(const struct weir_http_request *request,
                                         const char *out_params[ROUTE_MAX_PARAMS],
                                         const char **out_project)
{
    *out_project = NULL;
    return weir_route_find(api_routes, request, 0, out_params);
}

static weir_status not_found(struct api_call *call, struct weir_error *err)
{
    call->allow = weir_route_allowed(api_routes, call->request, 0, call->arena);
    if (*call->allow != '\0') {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%.20s is not supported for %.120s: there are %s",
                              call->request->method, call->request->path, call->allow);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no %.120s; GET /api/v1/openapi.json "
                          "lists what there is",
                          call->request->path);
}

static weir_status check_own(struct api_call *call, struct weir_error *err)
{
    WEIR_TRY(api_check_open(call, err));
    WEIR_TRY(api_query_parse(call, err));
    call->is_trial = api_query_bool(call, "dry_run");
    return WEIR_OK;
}

static weir_status read_own_body(struct api_call *call, struct weir_error *err)
{
    WEIR_TRY(parse_body(call, err));
    return api_check_scope(call, err);
}

static weir_status run_own(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return call->route->fn(call, txn, err);
}

/* Somebody still types what is asked about, and changes nothing by it: that it is wrong is the answer, and no failure
 * for a browser to report. */
static bool is_draft(const struct api_call *call, weir_status status)
{
    int http_status = weir_status_http(status);
    bool is_question = call->route != NULL && (call->is_trial || call->route->flags & ROUTE_ASKS ||
                                               strcmp(call->request->method, "GET") == 0);
    return is_question && http_status >= 400 && http_status < 500 && status != WEIR_ERR_UNAUTH &&
           status != WEIR_ERR_DENIED &&
           weir_http_request_header(call->request, "X-Weir-Draft") != NULL;
}

static void refuse_own(struct api_call *call, const struct weir_error *err)
{
    weir_http_response_error(call->response, err);
    if (is_draft(call, err->status)) {
        weir_http_response_as_answer(call->response);
    }
    if (err->status == WEIR_ERR_UNAUTH) {
        weir_http_response_header(call->response, "WWW-Authenticate", "Bearer realm=\"weir\"");
    }
}

static const struct api_form own_form = {.find = find_own,
                                         .not_found = not_found,
                                         .reach = WEIR_IDENTITY_ANYWHERE,
                                         .check = check_own,
                                         .read_body = read_own_body,
                                         .run = run_own,
                                         .refuse = refuse_own};

static const struct api_form *form_of(const struct weir_http_request *request)
{
    return weir_mlflow_takes(request) ? &api_mlflow_form : &own_form;
}

/* ---- the way of a request ------------------------------------------------------------------------ */

static weir_status prepare(struct api_call *call, struct weir_error *err)
{
    call->form = form_of(call->request);
    call->route = call->form->find(call->request, call->params, &call->path_project);
    if (call->route == NULL) {
        return call->form->not_found(call, err);
    }
    call->is_encoded = weir_http_request_check_plain(call->request, err) != WEIR_OK;
    if (call->is_encoded) {
        return WEIR_ERR_UNSUPPORTED;
    }
    if (call->route->flags & ROUTE_OPEN) {
        call->rows.is_all = true;
        return api_query_parse(call, err);
    }
    WEIR_TRY(api_identify(call, call->form->reach, err));
    weir_http_request_is_known(call->request);
    WEIR_TRY(api_check_right(call, err));
    return call->form->check(call, err);
}

/* A request that waits is handled again with every wake: what one turn allocates must not stay
 * until the answer, as it would in the request's arena. */
static void call_init(struct api_call *call, struct weir_api *api,
                      struct weir_http_request *request, struct weir_http_response *response,
                      struct weir_arena *arena)
{
    weir_arena_init(arena, CALL_MAX_BYTES);
    *call = (struct api_call){
        .api = api, .request = request, .response = response, .arena = arena, .actor = "nobody"};
    call->now_ms = weir_clock_now_ms(api->clock);
}

/** Of a request of the wrong method, or with an encoded body: which is right. After the answer is made. */
static void say_form(const struct api_call *call)
{
    if (call->allow != NULL && *call->allow != '\0') {
        weir_http_response_not_allowed(call->response, call->allow);
    } else if (call->is_encoded) {
        weir_http_response_not_plain(call->response);
    }
}

/** Who guesses passwords is told when to try again. */
static void say_when(const struct api_call *call)
{
    if (call->guessed.retry_after_s > 0) {
        weir_http_response_header(
            call->response, "Retry-After",
            weir_arena_printf(call->arena, "%lld", (long long)call->guessed.retry_after_s));
    }
}

static void refuse(struct api_call *call, weir_status status, const struct weir_error *err)
{
    struct weir_error told = *err;
    told.status = status;
    if (weir_store_error_is_damage(err) || weir_blob_error_is_damage(err)) {
        told.status = WEIR_ERR_IO; /* the caller has sent nothing that is damaged */
    }
    call->form->refuse(call, &told);
    say_form(call);
    if (told.status == WEIR_ERR_IO || told.status == WEIR_ERR_NOSPACE) {
        vitals_doubt(call->api->vitals);
    }
    say_when(call);
    if (weir_status_http(told.status) >= 500 && told.status != WEIR_ERR_UNSUPPORTED) {
        weir_log(WEIR_LOG_WARN, "request_failed", WEIR_KV_STR("method", call->request->method),
                 WEIR_KV_STR("path", call->request->path), WEIR_KV_STR("error", err->message));
    }
}

/* After the transaction: a write of the audit's own. A wait that is handled anew was noted. */
void api_note_for_audit(const struct api_call *call, weir_status status,
                        const struct weir_error *err)
{
    struct audit *audit = call->api->audit;
    if (call->guessed.retry_after_s > 0) {
        audit_refused(audit, call, "login_refused", "too many wrong passwords came before");
    } else if (call->login_refused != NULL) {
        audit_refused(audit, call, "login_refused", call->login_refused);
    } else if (status == WEIR_ERR_UNAUTH) {
        audit_refused(audit, call, "login_refused", err->message);
    } else if (status == WEIR_ERR_DENIED) {
        audit_refused(audit, call, "access_refused", err->message);
    } else {
        audit_used(audit, call);
    }
}

static weir_status answer(struct api_call *call, struct weir_error *err)
{
    WEIR_TRY(prepare(call, err));
    WEIR_TRY(call->form->read_body(call, err));
    return api_perform(call, err);
}

static void handle(struct api_call *call)
{
    struct weir_error err = {0};
    call->publish = json_array();
    weir_status status = answer(call, &err);
    if (status != WEIR_OK) {
        refuse(call, status, &err);
    }
    api_note_for_audit(call, status, &err);
    json_decref(call->body);
    json_decref(call->publish);
}

static bool is_inference(const struct weir_api *api, const struct weir_http_request *request)
{
    return api->gateway != NULL && weir_gateway_takes(request);
}

void weir_api_handle(void *context, struct weir_http_request *request,
                     struct weir_http_response *response)
{
    struct weir_api *api = context;
    struct api_call call;
    struct weir_arena arena;
    if (is_inference(api, request)) {
        weir_gateway_handle(api->gateway, request, response);
        return;
    }
    call_init(&call, api, request, response, &arena);
    if (weir_mlflow_takes(request) || !api_page(&call)) {
        handle(&call);
    }
    weir_arena_fini(&arena);
}

/* A file of gigabytes that is no model is not stored before somebody says so. */
static weir_status check_model_head(const struct weir_http_request *request, const void *bytes,
                                    size_t len, uint64_t total_bytes, struct weir_error *err)
{
    (void)request;
    return weir_model_format_check(bytes, len, total_bytes > 0 ? total_bytes : UINT64_MAX,
                                   "the file", err);
}

static void route_body_rule(const struct weir_api *api, const struct weir_http_request *request,
                            const struct weir_route *route, struct weir_http_body_rule *rule)
{
    if (route->max_body_bytes != 0) {
        rule->max_bytes = route->max_body_bytes;
    } else if (route->flags & ROUTE_OPEN) {
        rule->max_bytes = OPEN_MAX_BYTES;
    }
    if (route->flags & ROUTE_UPLOAD) {
        rule->to_file = true;
        rule->max_bytes = route->max_body_bytes != 0 ? route->max_body_bytes : API_UPLOAD_MAX_BYTES;
        const char *as = weir_http_request_query(request, "as");
        bool is_model = as != NULL && strcmp(as, API_BLOB_AS_MODEL) == 0;
        if (route->flags & ROUTE_ARTIFACT) {
            rule->max_bytes = api->artifact_max_bytes;
        }
        rule->wants_sha256 = route->fn == api_blob_put || (route->flags & ROUTE_ARTIFACT) != 0;
        rule->check = route->fn == api_blob_put && is_model ? check_model_head : NULL;
        rule->check_bytes = WEIR_MODEL_SNIFF_BYTES;
    }
}

/* Before anybody knows whether it is true: what is not is refused at once. */
static enum weir_api_class class_of(const struct weir_http_request *request,
                                    const struct weir_route *route)
{
    const char *token = api_bearer(request);
    if (token != NULL && attempt_token_is(token)) {
        return WEIR_API_TASKS;
    }
    bool is_agents =
        route != NULL && (route->owns == ROUTE_OWNS_NODE || route->owns == ROUTE_OWNS_TASK);
    return is_agents ? WEIR_API_AGENTS : WEIR_API_PEOPLE;
}

void weir_api_body_rule(void *context, const struct weir_http_request *request,
                        struct weir_http_body_rule *rule)
{
    struct weir_api *api = context;
    const char *params[ROUTE_MAX_PARAMS], *project;
    if (is_inference(api, request)) {
        weir_gateway_body_rule(api->gateway, request, rule);
        rule->of_class = WEIR_API_INFERENCE;
        return;
    }
    const struct weir_route *route = form_of(request)->find(request, params, &project);
    if (route != NULL) {
        route_body_rule(api, request, route, rule);
    }
    rule->of_class = (int)class_of(request, route);
    rule->is_unpacked = true;
}

void weir_api_admit(void *context, struct weir_http_request *request,
                    struct weir_http_response *response)
{
    struct api_call call;
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_api *api = context;
    if (is_inference(api, request)) {
        weir_gateway_admit(api->gateway, request, response);
        return;
    }
    call_init(&call, api, request, response, &arena);
    weir_status status = prepare(&call, &err);
    if (status != WEIR_OK) {
        refuse(&call, status, &err);
        api_note_for_audit(&call, status, &err);
    }
    weir_arena_fini(&arena);
}
