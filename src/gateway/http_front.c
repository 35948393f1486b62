/* The inference protocols of HTTP: what the gateway answers itself, and what it sends on. */
#include "gateway/front.h"
#include "gateway/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_BYTES_DEFAULT ((uint64_t)64 << 20)
#define HEADER_VALUE_MAX      1024

/** A request that was sent on, between the two calls of the handler; in the request's arena. */
struct front {
    struct gateway_call call;
    struct iovec piece;
    struct weir_http_later *later;
};

/* ---- answers -------------------------------------------------------------------------------------- */

/* The protocols' form: {"error": "…"}. */
static void answer_error(struct weir_http_response *response, const struct weir_error *error,
                         int retry_after_s)
{
    int http_status = weir_status_http(error->status);
    json_t *body = json_pack("{s:s}", "error", error->message);
    if (body == NULL) { /* the message is not UTF-8 */
        body = json_pack("{s:s}", "error", weir_status_text(error->status));
    }
    weir_http_response_json(response, http_status, body);
    if (http_status == 503) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", WEIR_MAX(retry_after_s, 1));
        weir_http_response_header(response, "Retry-After", text);
    } else if (http_status == 401) {
        weir_http_response_header(response, "WWW-Authenticate", "Bearer");
    }
}

static void put_number(struct weir_http_response *response, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    weir_http_response_header(response, name, text);
}

/* Second call of the handler: the replica has answered, or nobody will. */
static void deliver(struct front *front, struct weir_http_response *response)
{
    struct gateway_call *call = &front->call;
    if (call->status != WEIR_OK) {
        answer_error(response, &call->error, call->retry_after_s);
        return;
    }
    const char *type = call->content_type[0] != '\0' ? call->content_type : NULL;
    weir_http_response_buf(response, call->http_status, type, &call->body_out);
    put_number(response, "Weir-Model-Version", call->model_version);
    if (call->receipt[0] != '\0') {
        weir_http_response_header(response, "Weir-Request", call->receipt);
    }
    if (call->times[0] != '\0') {
        weir_http_response_header(response, "Weir-Times", call->times);
    }
    if (call->inference_header_bytes >= 0) {
        put_number(response, "Inference-Header-Content-Length", call->inference_header_bytes);
    }
    if (call->http_status == 503) {
        put_number(response, "Retry-After", call->retry_after_s);
    }
}

/* ---- what is sent on ------------------------------------------------------------------------------- */

static void on_done(struct gateway_call *call)
{
    weir_http_later_resume(WEIR_CONTAINER_OF(call, struct front, call)->later);
}

static bool is_gone(const struct gateway_call *call)
{
    return weir_http_later_is_gone(WEIR_CONTAINER_OF(call, struct front, call)->later);
}

/* Headers that mean something to a replica. */
static const char *headers_for_replica(const struct weir_http_request *request)
{
    static const char *const names[] = {"Content-Type", "Accept",
                                        "Inference-Header-Content-Length"};
    const char *lines = "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const char *value = weir_http_request_header(request, names[i]);
        if (value == NULL || strlen(value) > HEADER_VALUE_MAX) {
            continue;
        }
        bool is_clean = true;
        for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
            is_clean = is_clean && *c >= 0x20 && *c != 0x7f;
        }
        if (is_clean) {
            lines = weir_arena_printf(request->arena, "%s%s: %s\r\n", lines, names[i], value);
        }
    }
    return lines;
}

static void send_on(struct weir_gateway *gateway, struct weir_http_request *request,
                    struct weir_http_response *response, const struct path *path)
{
    struct front *front = WEIR_ARENA_NEW(request->arena, struct front);
    bool is_inference = path->kind == PATH_INFER;
    front->piece = (struct iovec){(char *)request->body, is_inference ? request->body_len : 0};
    front->call = (struct gateway_call){
        .deployment = path->deployment,
        .version = path->version,
        .key = is_inference ? weir_http_request_header(request, "Weir-Key") : "metadata",
        .method = is_inference ? "POST" : "GET",
        .path_before = path->before,
        .path_after = path->after,
        .headers = is_inference ? headers_for_replica(request) : "",
        .body = &front->piece,
        .n_body = 1,
        .body_bytes = front->piece.iov_len,
        .timeout_ms = front_timeout_ms(weir_http_request_header(request, "Weir-Timeout-Ms")),
        .is_inference = is_inference,
        .done = on_done,
        .is_gone = is_gone};
    request->state = front;
    front->later = weir_http_response_later(response);
    gateway_post(gateway, &front->call);
}

/* ---- what the gateway answers itself --------------------------------------------------------------- */

static void answer_server(const struct weir_gateway *gateway, struct weir_http_response *response)
{
    const char *version = gateway->config.version;
    weir_http_response_json(response, 200,
                            json_pack("{s:s,s:s,s:[s,s,s]}", "name", "weir", "version",
                                      version != NULL ? version : "", "extensions",
                                      "model_repository", "statistics", "binary_tensor_data"));
}

static bool is_version_ready(const struct weir_gateway_deployment *d, size_t i)
{
    for (size_t j = 0; j < d->n_replicas; j++) {
        if ((d->replicas[j].ready >> i & 1) != 0) {
            return true;
        }
    }
    return false;
}

static void answer_index(const struct weir_gateway_table *table, const struct caller *caller,
                         const struct weir_http_request *request,
                         struct weir_http_response *response)
{
    json_t *asked = json_loadb(request->body, request->body_len, 0, NULL);
    bool is_ready_only = json_is_true(json_object_get(asked, "ready"));
    json_t *index = json_array();
    for (size_t i = 0; i < weir_gateway_table_count(table); i++) {
        const struct weir_gateway_deployment *d = weir_gateway_table_at(table, i);
        for (size_t j = 0; j < d->n_versions && caller_may(caller, d->project); j++) {
            bool is_ready = is_version_ready(d, j);
            if (is_ready || !is_ready_only) {
                json_array_append_new(
                    index, json_pack("{s:s,s:o,s:s,s:s}", "name", d->name, "version",
                                     json_sprintf("%" PRId64, d->versions[j].version), "state",
                                     is_ready ? "READY" : "UNAVAILABLE", "reason",
                                     is_ready ? "" : "no replica has it ready"));
            }
        }
    }
    json_decref(asked);
    weir_http_response_json(response, 200, index);
}

/* The names alone, as KServe's server lists them. */
static void answer_names(const struct weir_gateway_table *table, const struct caller *caller,
                         struct weir_http_response *response)
{
    json_t *names = json_array();
    for (size_t i = 0; i < weir_gateway_table_count(table); i++) {
        const struct weir_gateway_deployment *d = weir_gateway_table_at(table, i);
        if (caller_may(caller, d->project)) {
            json_array_append_new(names, json_string(d->name));
        }
    }
    weir_http_response_json(response, 200, json_pack("{s:o}", "models", names));
}

/* As TensorFlow Serving says it; its name and whether it is ready are what KServe's clients read. */
static void answer_status(const struct weir_gateway_deployment *d, int64_t version,
                          struct weir_http_response *response)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->n_versions; i++) {
        if (version == 0 || d->versions[i].version == version) {
            json_array_append_new(
                list, json_pack("{s:o,s:s,s:{s:s,s:s}}", "version",
                                json_sprintf("%" PRId64, d->versions[i].version), "state",
                                is_version_ready(d, i) ? "AVAILABLE" : "LOADING", "status",
                                "error_code", "OK", "error_message", ""));
        }
    }
    weir_http_response_json(response, 200,
                            json_pack("{s:s,s:b,s:o}", "name", d->name, "ready",
                                      front_is_ready(d, version), "model_version_status", list));
}

static void answer_ready(const struct weir_gateway_deployment *d, const struct path *path,
                         struct weir_http_response *response)
{
    bool is_ready = front_is_ready(d, path->version);
    if (path->kind == PATH_PING) {
        weir_http_response_text(response, is_ready ? 200 : 503, "text/plain", "\n");
    } else { /* Triton's clients go by the code: 200 or 400 */
        weir_http_response_json(response, is_ready ? 200 : 400,
                                json_pack("{s:s,s:b}", "name", d->name, "ready", is_ready));
    }
}

static weir_status answer_of_deployment(struct weir_gateway *gateway,
                                        const struct weir_gateway_table *table,
                                        const struct caller *caller, struct path *path,
                                        struct weir_http_request *request,
                                        struct weir_http_response *response, struct weir_error *err)
{
    const struct weir_gateway_deployment *d;
    WEIR_TRY(front_find(table, caller, path->deployment, path->version, &d, err));
    switch (path->kind) {
    case PATH_MODEL_READY:
    case PATH_PING:
        answer_ready(d, path, response);
        return WEIR_OK;
    case PATH_MODEL_STATUS:
        answer_status(d, path->version, response);
        return WEIR_OK;
    case PATH_UNLOAD:
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a deployment is not unloaded by its clients: `weir undeploy %s`",
                              d->name);
    case PATH_LOAD: /* it is loaded, or will be when somebody asks */
        if (!front_is_ready(d, 0)) {
            return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                  "the deployment \"%s\" is not ready yet", d->name);
        }
        weir_http_response_json(response, 200, json_object());
        return WEIR_OK;
    default:
        send_on(gateway, request, response, path);
        return WEIR_OK;
    }
}

static weir_status answer(struct weir_gateway *gateway, struct path *path,
                          struct weir_http_request *request, struct weir_http_response *response,
                          struct weir_error *err)
{
    if (path->kind == PATH_SERVER) {
        answer_server(gateway, response);
        return WEIR_OK;
    }
    if (path->kind == PATH_LIVE || path->kind == PATH_READY) {
        bool is_live = path->kind == PATH_LIVE;
        weir_http_response_json(response, 200, json_pack("{s:b}", is_live ? "live" : "ready", 1));
        return WEIR_OK;
    }
    struct caller *caller;
    const char *token = front_token(weir_http_request_header(request, "Authorization"));
    WEIR_TRY(front_caller(gateway, token, request, &caller, err));
    weir_http_request_is_known(request);
    struct weir_gateway_table *table = weir_gateway_acquire(gateway);
    weir_status status = WEIR_OK;
    if (path->kind == PATH_INDEX) {
        answer_index(table, caller, request, response);
    } else if (path->kind == PATH_NAMES) {
        answer_names(table, caller, response);
    } else {
        status = answer_of_deployment(gateway, table, caller, path, request, response, err);
    }
    weir_gateway_table_unref(table);
    caller_unref(caller);
    return status;
}

/* What is asked for, and in a form that is understood. */
static weir_status read_path(const struct weir_http_request *request, struct path *out,
                             struct weir_error *err)
{
    WEIR_TRY(path_read(request, request->arena, out, err));
    out->is_encoded = weir_http_request_check_plain(request, err) != WEIR_OK;
    return out->is_encoded ? WEIR_ERR_UNSUPPORTED : WEIR_OK;
}

static void refuse(struct weir_http_response *response, const struct path *path,
                   const struct weir_error *err)
{
    answer_error(response, err, 1);
    if (path->is_encoded) {
        weir_http_response_not_plain(response);
    }
    if (path->allow != NULL) {
        weir_http_response_not_allowed(response, path->allow);
    }
}

void weir_gateway_handle(struct weir_gateway *gateway, struct weir_http_request *request,
                         struct weir_http_response *response)
{
    if (request->state != NULL) {
        deliver(request->state, response);
        return;
    }
    struct path path;
    struct weir_error err = {0};
    if (read_path(request, &path, &err) != WEIR_OK ||
        answer(gateway, &path, request, response, &err) != WEIR_OK) {
        refuse(response, &path, &err);
    }
}

void weir_gateway_body_rule(struct weir_gateway *gateway, const struct weir_http_request *request,
                            struct weir_http_body_rule *rule)
{
    (void)request;
    uint64_t max_bytes = gateway->config.max_request_bytes;
    *rule = (struct weir_http_body_rule){
        .max_bytes = max_bytes > 0 ? max_bytes : REQUEST_BYTES_DEFAULT, .is_unpacked = true};
}

static weir_status check_body(struct weir_gateway *gateway, struct weir_http_request *request,
                              struct path *path, struct weir_error *err)
{
    struct caller *caller;
    const struct weir_gateway_deployment *d;
    WEIR_TRY(read_path(request, path, err));
    const char *token = front_token(weir_http_request_header(request, "Authorization"));
    WEIR_TRY(front_caller(gateway, token, request, &caller, err));
    weir_http_request_is_known(request);
    weir_status status = WEIR_OK;
    if (path->deployment != NULL) {
        struct weir_gateway_table *table = weir_gateway_acquire(gateway);
        status = front_find(table, caller, path->deployment, path->version, &d, err);
        weir_gateway_table_unref(table);
    }
    caller_unref(caller);
    return status;
}

/* Only a caller that may ask sends a large body. */
void weir_gateway_admit(struct weir_gateway *gateway, struct weir_http_request *request,
                        struct weir_http_response *response)
{
    struct path path;
    struct weir_error err = {0};
    if (check_body(gateway, request, &path, &err) != WEIR_OK) {
        refuse(response, &path, &err);
    }
}

void weir_gateway_forget_callers(struct weir_gateway *gateway)
{
    callers_forget(gateway->callers);
}
