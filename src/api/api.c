#include "api/api.h"

#include "api/api_private.h"
#include "api/scope.h"
#include "control/control.h"
#include "control/forget.h"
#include "control/freeze.h"
#include "control/inspector.h"
#include "deploy/deploy.h"
#include "gateway/gateway.h"
#include "mlflow/mlflow.h"

#include "base/log.h"
#include "base/model_format.h"
#include "capture/snapshot.h"
#include "ion/ion.h"
#include "job/job.h"
#include "job/service.h"
#include "notify/notify.h"
#include "track/track.h"

#include <stdlib.h>
#include <string.h>

#define API_UPLOAD_MAX_BYTES ((uint64_t)4 << 30)
#define OPEN_MAX_BYTES       ((uint64_t)4 << 10) /* of a body from who need not say who it is */
#define CALL_MAX_BYTES       ((size_t)64 << 20)  /* of the arena of one turn */

const char weir_api_content_security_policy[] =
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

void api_wake(struct weir_api *api)
{
    if (api->http != NULL) {
        weir_http_wake(api->http, WEIR_HTTP_ALL_TOPICS);
    }
}

/* Tell live streams (GET /api/v1/stream): topics are "runs", "jobs", "alerts", "ions", "models",
 * "nodes". Events and decisions need no call: they are read from the store. */
static void publish(void *context, const char *topic, const json_t *record)
{
    struct weir_api *api = context;
    int index = feed_topic_from_text(topic);
    char *text = json_dumps(record, JSON_COMPACT | JSON_ENCODE_ANY);
    if (index >= 0 && text != NULL) {
        feed_publish(api->feed, (enum feed_topic)index, text);
        api_wake(api);
    }
    free(text);
}

static void wake(void *context)
{
    api_wake(context);
}

/* Write what is due by time: counts of the audit. */
static void tick(void *context, int64_t now_ms)
{
    audit_flush(((struct weir_api *)context)->audit, now_ms);
}

struct freezer *weir_api_freezer(struct weir_api *api)
{
    return api->freezer;
}

struct control_listener weir_api_listener(struct weir_api *api)
{
    return (struct control_listener){
        .publish = publish, .wake = wake, .tick = tick, .context = api};
}

struct forget api_forget(const struct weir_api *api)
{
    return (struct forget){.store = api->store,
                           .blobs = api->blobs,
                           .pictures = api->pictures,
                           .state_dir = api->state_dir,
                           .now_ms = weir_clock_now_ms(api->clock)};
}

weir_status weir_api_create(const struct weir_api_config *config, struct weir_api **out,
                            struct weir_error *err)
{
    (void)err;
    struct weir_api *api = weir_xalloc(sizeof *api);
    api->store = config->store;
    api->blobs = config->blobs;
    api->retainer = config->retainer;
    api->pictures = config->pictures;
    api->clock = config->clock != NULL ? config->clock : &weir_system_clock;
    api->artifact_max_bytes =
        config->artifact_max_bytes != 0 ? config->artifact_max_bytes : WEIR_API_ARTIFACT_MAX_BYTES;
    api->state_dir = weir_xstrdup(config->state_dir);
    memcpy(api->task_key, config->task_key, sizeof api->task_key);
    api->server_url = weir_xstrdup(config->server_url != NULL ? config->server_url : "");
    api->notify = config->notify;
    api->notify_context = config->notify_context;
    api->told = config->told;
    api->told_context = config->told_context;
    api->gateway = config->gateway;
    struct freezer_config freezer = {.store = api->store,
                                     .blobs = api->blobs,
                                     .clock = api->clock,
                                     .state_dir = api->state_dir,
                                     .listener = weir_api_listener(api),
                                     .notify = api->notify,
                                     .notify_context = api->notify_context};
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct inspector_config inspector = {
        .blobs = api->blobs,
        .dir = weir_arena_printf(&arena, "%s/uploads/inspect", api->state_dir),
        .onnxruntime = config->onnxruntime,
        .inspect = config->inspect,
        .context = config->inspect_context,
        .listener = weir_api_listener(api)};
    api->inspector = inspector_create(&inspector);
    weir_arena_fini(&arena);
    api->feed = feed_create();
    api->audit = audit_create(config->store);
    api->basic = basic_create();
    api->freezer = freezer_create(&freezer);
    api->started_ms = weir_clock_now_ms(api->clock);
    api->watch = -1;
    const struct forget forget = api_forget(api);
    forget_resume(&forget);
    *out = api;
    return WEIR_OK;
}

void weir_api_stop(struct weir_api *api)
{
    if (api == NULL) {
        return;
    }
    freezer_stop(api->freezer);
    inspector_stop(api->inspector);
    if (api->watch >= 0) { /* commits go on, and soon there is no server to wake */
        weir_store_unwatch(api->store, api->watch);
        api->watch = -1;
    }
}

void weir_api_destroy(struct weir_api *api)
{
    if (api == NULL) {
        return;
    }
    weir_api_stop(api);
    freezer_destroy(api->freezer);
    inspector_destroy(api->inspector);
    feed_destroy(api->feed);
    audit_destroy(api->audit, weir_clock_now_ms(api->clock));
    basic_destroy(api->basic);
    free(api->state_dir);
    free((char *)api->services_domain);
    explicit_bzero(api->task_key, sizeof api->task_key);
    free(api->server_url);
    free(api);
}

static void on_commit(void *context, uint64_t change)
{
    (void)change;
    api_wake(context);
}

void weir_api_attach(struct weir_api *api, struct weir_http_server *http, const char *url)
{
    struct weir_error err;
    api->http = http;
    free(api->server_url);
    api->server_url = weir_xstrdup(url);
    if (weir_store_watch(api->store, on_commit, api, &api->watch, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "api_watch_failed", WEIR_KV_STR("error", err.message));
    }
}

/* ---- small answers ------------------------------------------------------------------------- */

void api_answer(struct api_call *call, json_t *value)
{
    weir_http_response_json(call->response, 200, value);
}

void api_answer_record(struct api_call *call, const struct weir_resource *resource,
                       const void *record)
{
    api_answer(call, weir_record_to_json(resource, record));
}

void api_answer_list(struct api_call *call, const struct weir_resource *resource, const void *items,
                     size_t n_items, const char *next)
{
    json_t *array = json_array();
    size_t weight = 0;
    for (size_t i = 0; i < n_items; i++) {
        const void *item = (const char *)items + i * resource->size;
        if (weight > API_ANSWER_MAX_BYTES) {
            json_decref(array);
            weir_http_response_errorf(call->response, WEIR_ERR_LIMIT,
                                      "the %zu %s are more than one answer may hold (%zu MiB)",
                                      n_items, resource->plural, API_ANSWER_MAX_BYTES >> 20);
            return;
        }
        weight += weir_record_weight(resource, item);
        json_array_append_new(array, weir_record_to_json(resource, item));
    }
    api_answer(call, json_pack("{s:o,s:s?}", "items", array, "next", next));
}

bool api_words_have(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = words != NULL ? words : ""; *p != '\0';
         p += strcspn(p, " "), p += *p == ' ') {
        if (strcspn(p, " ") == len && strncmp(p, word, len) == 0) {
            return true;
        }
    }
    return false;
}

weir_status api_query_int(const struct api_call *call, const char *name, int64_t fallback,
                          int64_t lo, int64_t hi, int64_t *out, struct weir_error *err)
{
    const char *text = weir_http_request_query(call->request, name);
    if (text == NULL) {
        *out = fallback;
        return WEIR_OK;
    }
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < lo || value > hi) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "query parameter %s: expected an integer from %lld to %lld, got \"%.40s\"", name,
            (long long)lo, (long long)hi, text);
    }
    *out = value;
    return WEIR_OK;
}

weir_status api_body_text(const struct api_call *call, const char *name, const char **out,
                          struct weir_error *err)
{
    const json_t *value = json_object_get(call->body, name);
    if (value != NULL && !json_is_null(value) && !json_is_string(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected string", name);
    }
    if (json_string_length(value) > API_TEXT_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.%s: %zu bytes; at most %zu are allowed", name,
                              json_string_length(value), API_TEXT_MAX_BYTES);
    }
    *out = json_string_value(value);
    return WEIR_OK;
}

weir_status api_body_int(const struct api_call *call, const char *name, int64_t fallback,
                         int64_t *out, struct weir_error *err)
{
    const json_t *value = json_object_get(call->body, name);
    if (value != NULL && !json_is_null(value) && !json_is_integer(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected integer", name);
    }
    *out = json_is_integer(value) ? json_integer_value(value) : fallback;
    return WEIR_OK;
}

weir_status api_body_bool(const struct api_call *call, const char *name, bool fallback, bool *out,
                          struct weir_error *err)
{
    const json_t *value = json_object_get(call->body, name);
    if (value != NULL && !json_is_null(value) && !json_is_boolean(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected true or false", name);
    }
    *out = json_is_boolean(value) ? json_is_true(value) : fallback;
    return WEIR_OK;
}

weir_status api_body_only(const struct api_call *call, const char *const *names,
                          struct weir_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(call->body, key, value)
    {
        bool is_known = false;
        for (const char *const *name = names; *name != NULL && !is_known; name++) {
            is_known = strcmp(*name, key) == 0;
        }
        if (!is_known) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%.80s: unknown field", key);
        }
    }
    return WEIR_OK;
}

struct control api_control(struct api_call *call)
{
    return (struct control){.arena = call->arena,
                            .now_ms = call->now_ms,
                            .actor = call->actor,
                            .state_dir = call->api->state_dir,
                            .server_url = call->api->server_url,
                            .publish = call->publish};
}

/* ---- dispatch ------------------------------------------------------------------------------ */

/* All segments from the i-th on, as one text. */
static const char *join_segments(const struct weir_http_request *request, size_t i_first)
{
    const char *path = request->segments[i_first];
    for (size_t i = i_first + 1; i < request->n_segments; i++) {
        path = weir_arena_printf(request->arena, "%s/%s", path, request->segments[i]);
    }
    return path;
}

/* Does the pattern fit the path? "{name}" takes one segment, "{path}" at the end all that are left. If so, parameters that it has not are
 * NULL: another pattern may have fitted in part. */
static bool pattern_fits(const char *pattern, const struct weir_http_request *request,
                         const char *params[API_MAX_PARAMS])
{
    size_t i_segment = 0, n_params = 0;
    for (const char *p = pattern; *p != '\0';) {
        p += *p == '/';
        size_t len = strcspn(p, "/");
        if (len == 0) {
            break;
        }
        if (i_segment == request->n_segments) {
            return false;
        }
        const char *segment = request->segments[i_segment++];
        if (strcmp(p, "{path}") == 0) {
            params[n_params++] = join_segments(request, i_segment - 1);
            i_segment = request->n_segments;
        } else if (*p == '{') {
            params[n_params++] = segment;
        } else if (strlen(segment) != len || memcmp(segment, p, len) != 0) {
            return false;
        }
        p += len;
    }
    while (n_params < API_MAX_PARAMS) {
        params[n_params++] = NULL;
    }
    return i_segment == request->n_segments;
}

static bool method_fits(const struct api_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* The route of a request; *out_other_method says that the path exists for another method. */
static const struct api_route *find_route(const struct weir_http_request *request,
                                          const char *params[API_MAX_PARAMS],
                                          bool *out_other_method)
{
    *out_other_method = false;
    for (size_t i = 0; i < api_n_routes; i++) {
        if (!pattern_fits(api_routes[i].pattern, request, params)) {
            continue;
        }
        if (method_fits(&api_routes[i], request->method)) {
            return &api_routes[i];
        }
        *out_other_method = true;
    }
    return NULL;
}

/* Tasks and agents reach what is their own (scope.h), in whatever project. */
static bool sees_all(const struct weir_identity *identity, enum weir_right right)
{
    return (identity->rights & WEIR_RIGHTS_OF(right)) != 0;
}

struct weir_row_scope api_projects_with(const struct api_call *call, enum weir_right right)
{
    const struct weir_identity *identity = &call->identity;
    struct weir_row_scope scope = {.is_all = sees_all(identity, right)};
    const char **projects = WEIR_ARENA_ARRAY(call->arena, identity->n_grants + 1, const char *);
    for (size_t i = 0; i < identity->n_grants; i++) {
        if (identity->grants[i].rights & WEIR_RIGHTS_OF(right)) {
            projects[scope.n_projects++] = identity->grants[i].project;
        }
    }
    scope.projects = projects;
    return scope;
}

/* A path has "-" where a table's name has "_". */
static bool is_plural(const char *path, const char *plural, size_t len)
{
    size_t i = 0;
    while (i < len && (path[i] == plural[i] || (path[i] == '-' && plural[i] == '_'))) {
        i++;
    }
    return i == len;
}

/* Nouns of projects that paths begin with. */
static const struct weir_resource *noun_of(const char *pattern)
{
    static const struct weir_resource *const nouns[] = {
        &weir_project_resource,    &weir_dataset_resource,    &weir_job_resource,
        &weir_task_resource,       &weir_run_resource,        &weir_model_resource,
        &weir_experiment_resource, &weir_ion_resource,        &weir_deployment_resource,
        &weir_snapshot_resource,   &weir_alert_rule_resource, &weir_service_resource};
    static const char prefix[] = "/api/v1/";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(nouns); i++) {
        size_t len = strlen(nouns[i]->plural);
        if (strncmp(pattern, prefix, sizeof prefix - 1) == 0 &&
            is_plural(pattern + sizeof prefix - 1, nouns[i]->plural, len) &&
            strncmp(pattern + sizeof prefix - 1 + len, "/{", 2) == 0) {
            return nouns[i];
        }
    }
    return NULL;
}

static weir_status load_noun(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    const struct weir_resource *noun = noun_of(call->route->pattern);
    void *record = weir_arena_alloc(call->arena, noun->size);
    return weir_txn_get(txn, noun, call->params[0], call->arena, record, err);
}

/* A name that is nobody's may be made; one that another project has is refused, and nothing of it
 * told. */
static weir_status check_name(struct api_call *call, struct weir_error *err)
{
    struct weir_error ignored;
    if (weir_store_read(call->api->store, load_noun, call, &ignored) != WEIR_OK) {
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_DENIED,
        "the name \"%.60s\" is taken by a %s of a project that is not yours: take "
        "another one",
        call->params[0], noun_of(call->route->pattern)->name);
}

/* What the path begins with must be there for the caller, whatever the route does with it. */
static weir_status check_noun(struct api_call *call, struct weir_error *err)
{
    struct weir_error missing;
    if (call->rows.is_all || noun_of(call->route->pattern) == NULL) {
        return WEIR_OK;
    }
    if ((call->route->flags & API_MAKES) == 0) {
        return api_read(call, load_noun, call, err);
    }
    return api_read(call, load_noun, call, &missing) == WEIR_OK ? WEIR_OK : check_name(call, err);
}

/* The one place that decides who may call what, and whose rows the call sees. */
weir_status api_check_right(struct api_call *call, struct weir_error *err)
{
    enum weir_right right = call->route->right;
    call->rows = (struct weir_row_scope){.is_all = sees_all(&call->identity, right)};
    if (!call->rows.is_all && weir_right_scope(right) == WEIR_RIGHT_IS_OF_PROJECT) {
        call->rows = api_projects_with(call, right);
    }
    if (call->rows.is_all || call->rows.n_projects > 0) {
        WEIR_TRY(check_noun(call, err));
        call->rows.is_all = call->rows.is_all || (call->route->flags & API_WHOLE) != 0;
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "%s %s needs the right to %s %s%s; this %s of \"%s\" has the role "
                          "\"%s\", which does not give it: "
                          "use another one, or ask an admin",
                          call->route->method, call->route->pattern, weir_right_verb(right),
                          weir_right_noun(right),
                          weir_right_scope(right) == WEIR_RIGHT_IS_OF_PROJECT ? " in some project"
                                                                              : " on the platform",
                          call->identity.session != NULL ? "session" : "token", call->actor,
                          weir_role_text(call->identity.role));
}

/* Who may do it in one project only need not name it. */
static void name_only_project(struct api_call *call)
{
    static const char *const patterns[] = {
        "/api/v1/jobs", "/api/v1/datasets",    "/api/v1/ions",    "/api/v1/models/{name}/versions",
        "/api/v1/runs", "/api/v1/experiments", "/api/v1/services"};
    bool makes_noun = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(patterns); i++) {
        makes_noun = makes_noun || (strcmp(call->route->pattern, patterns[i]) == 0 &&
                                    strcmp(call->route->method, "POST") == 0);
    }
    if (makes_noun && !call->rows.is_all && call->rows.n_projects == 1 &&
        json_object_get(call->body, "project") == NULL) {
        json_object_set_new(call->body, "project", json_string(call->rows.projects[0]));
    }
}

static weir_status parse_body(struct api_call *call, struct weir_error *err)
{
    if (call->route->flags & (API_UPLOAD | API_BYTES_IN)) {
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
        return weir_error_set(err, WEIR_ERR_INVALID, "request body: expected a JSON object");
    }
    name_only_project(call);
    return WEIR_OK;
}

weir_status api_read(struct api_call *call, weir_txn_fn fn, void *context, struct weir_error *err)
{
    return weir_store_read_scoped(call->api->store, &call->rows, fn, context, err);
}

/** A change, and its event in the audit. */
struct change {
    struct api_call *call;
    weir_txn_fn fn;
    void *context;
    bool was_audited; /**< By a transaction of the call before this one. */
};

static weir_status change_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct change *change = context;
    struct api_call *call = change->call;
    call->is_audited = change->was_audited;
    WEIR_TRY(change->fn(txn, change->context, err));
    return call->is_act && !call->is_link_refused ? act_write(call, txn, err) : WEIR_OK;
}

weir_status api_write(struct api_call *call, weir_txn_fn fn, void *context, struct weir_error *err)
{
    struct change change = {call, fn, context, call->is_audited};
    if (call->is_trial) {
        return weir_store_try_scoped(call->api->store, &call->rows, fn, context, err);
    }
    weir_status status =
        weir_store_write_scoped(call->api->store, &call->rows, change_in, &change, err);
    call->is_audited = status == WEIR_OK ? call->is_audited : change.was_audited;
    return status;
}

static weir_status nothing_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)context;
    (void)err;
    return WEIR_OK;
}

weir_status api_act_first(struct api_call *call, struct weir_error *err)
{
    return call->is_act && !call->is_audited ? api_write(call, nothing_in, NULL, err) : WEIR_OK;
}

/* Of a route without a transaction: what wrote nothing itself is in the audit all the same. */
static weir_status run_alone(struct api_call *call, struct weir_error *err)
{
    if (call->route->flags & API_ACT_FIRST) {
        WEIR_TRY(api_act_first(call, err));
    }
    WEIR_TRY(call->route->fn(call, NULL, err));
    return weir_http_response_waits(call->response) ? WEIR_OK : api_act_first(call, err);
}

static weir_status run_in_transaction(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    json_array_clear(call->publish);
    return call->route->fn(call, txn, err);
}

static weir_status run_by_access(struct api_call *call, struct weir_error *err)
{
    switch (call->route->access) {
    case API_READ:
        WEIR_TRY(api_read(call, run_in_transaction, call, err));
        return call->is_act ? api_write(call, nothing_in, NULL, err) : WEIR_OK;
    case API_WRITE:
        return api_write(call, run_in_transaction, call, err);
    default:
        return run_alone(call, err);
    }
}

static weir_status run_route(struct api_call *call, struct weir_error *err)
{
    call->is_act = act_is_wanted(call);
    weir_status status = run_by_access(call, err);
    act_is_kept(call);
    return status;
}

static void send_published(struct api_call *call)
{
    if (call->is_trial) {
        return; /* nothing has happened */
    }
    const struct control_listener listener = weir_api_listener(call->api);
    control_publish_all(&listener, call->publish);
    if ((call->route->flags & API_NOTIFY) && !call->is_routine && call->api->notify != NULL) {
        call->api->notify(call->api->notify_context);
    }
    if ((call->route->flags & API_TELLS) && call->api->told != NULL) {
        call->api->told(call->api->told_context);
    }
}

static weir_status read_trial(struct api_call *call, struct weir_error *err)
{
    int64_t is_dry = 0;
    if (api_words_have(call->route->query, "dry_run")) {
        WEIR_TRY(api_query_int(call, "dry_run", 0, 0, 1, &is_dry, err));
    }
    call->is_trial = is_dry == 1;
    return WEIR_OK;
}

static weir_status prepare(struct api_call *call, struct weir_error *err)
{
    bool has_other_method;
    call->route = find_route(call->request, call->params, &has_other_method);
    if (call->route == NULL && has_other_method) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s is not supported for %.120s",
                              call->request->method, call->request->path);
    }
    if (call->route == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no %.120s; GET /api/v1/openapi.json "
                              "lists what there is",
                              call->request->path);
    }
    if (call->route->flags & API_OPEN) {
        call->rows.is_all = true;
        return WEIR_OK;
    }
    WEIR_TRY(api_identify(call, err));
    WEIR_TRY(api_check_right(call, err));
    return read_trial(call, err);
}

/* A request that waits is handled again with every wake: what one turn allocates must not stay
 * until the answer, as it would in the request's arena. */
void api_call_init(struct api_call *call, struct weir_api *api, struct weir_http_request *request,
                   struct weir_http_response *response, struct weir_arena *arena)
{
    weir_arena_init(arena, CALL_MAX_BYTES);
    *call = (struct api_call){
        .api = api, .request = request, .response = response, .arena = arena, .actor = "nobody"};
    call->now_ms = weir_clock_now_ms(api->clock);
}

static void answer_error(struct api_call *call, weir_status status, const struct weir_error *err)
{
    weir_http_response_error(call->response, err);
    if (status == WEIR_ERR_UNAUTH) {
        weir_http_response_header(call->response, "WWW-Authenticate", "Bearer realm=\"weir\"");
    }
    if (weir_status_http(status) >= 500 && status != WEIR_ERR_UNSUPPORTED) {
        weir_log(WEIR_LOG_WARN, "request_failed", WEIR_KV_STR("method", call->request->method),
                 WEIR_KV_STR("path", call->request->path), WEIR_KV_STR("error", err->message));
    }
}

/* After the transaction: a write of the audit's own. A wait that is handled anew was noted. */
void api_note_for_audit(const struct api_call *call, weir_status status,
                        const struct weir_error *err)
{
    struct audit *audit = call->api->audit;
    if (call->is_link_refused) {
        audit_refused(audit, call, "login_refused", "the link is unknown, was used or is too old");
    } else if (status == WEIR_ERR_UNAUTH) {
        audit_refused(audit, call, "login_refused", err->message);
    } else if (status == WEIR_ERR_DENIED) {
        audit_refused(audit, call, "access_refused", err->message);
    } else {
        audit_used(audit, call);
    }
}

/* Before the answer leaves: an act may have changed rights. Files, and what flows in, never do. */
static void forget_callers(const struct api_call *call)
{
    if (call->api->gateway != NULL && call->is_act && call->route->access != API_READ &&
        (call->route->flags & (API_UPLOAD | API_BYTES_IN | API_FLOW)) == 0) {
        weir_gateway_forget_callers(call->api->gateway);
    }
}

weir_status api_perform(struct api_call *call, struct weir_error *err)
{
    WEIR_TRY(run_route(call, err));
    forget_callers(call);
    send_published(call);
    return WEIR_OK;
}

static void handle(struct api_call *call)
{
    struct weir_error err = {0};
    call->publish = json_array();
    weir_status status = prepare(call, &err);
    if (status == WEIR_OK) {
        status = parse_body(call, &err);
    }
    if (status == WEIR_OK) {
        status = api_check_scope(call, &err);
    }
    if (status == WEIR_OK) {
        status = api_perform(call, &err);
    }
    if (status != WEIR_OK) {
        answer_error(call, status, &err);
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
    if (weir_mlflow_takes(request)) {
        api_mlflow_handle(api, request, response);
        return;
    }
    api_call_init(&call, api, request, response, &arena);
    if (!api_page(&call)) {
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

void weir_api_body_rule(void *context, const struct weir_http_request *request,
                        struct weir_http_body_rule *rule)
{
    struct weir_api *api = context;
    const char *params[API_MAX_PARAMS];
    bool has_other_method;
    if (is_inference(api, request)) {
        weir_gateway_body_rule(api->gateway, request, rule);
        return;
    }
    if (weir_mlflow_takes(request)) {
        api_mlflow_body_rule(api, request, rule);
        return;
    }
    const struct api_route *route = find_route(request, params, &has_other_method);
    if (route == NULL) {
        return;
    }
    if (route->max_body_bytes != 0) {
        rule->max_bytes = route->max_body_bytes;
    } else if (route->flags & API_OPEN) {
        rule->max_bytes = OPEN_MAX_BYTES;
    }
    if (route->flags & API_UPLOAD) {
        rule->to_file = true;
        rule->max_bytes = route->max_body_bytes != 0 ? route->max_body_bytes : API_UPLOAD_MAX_BYTES;
        const char *as = weir_http_request_query(request, "as");
        bool is_model = as != NULL && strcmp(as, API_BLOB_AS_MODEL) == 0;
        if (route->flags & API_ARTIFACT) {
            rule->max_bytes = api->artifact_max_bytes;
        }
        rule->wants_sha256 = route->fn == api_blob_put || (route->flags & API_ARTIFACT) != 0;
        rule->check = route->fn == api_blob_put && is_model ? check_model_head : NULL;
        rule->check_bytes = WEIR_MODEL_SNIFF_BYTES;
    }
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
    if (weir_mlflow_takes(request)) {
        api_mlflow_admit(api, request, response);
        return;
    }
    api_call_init(&call, api, request, response, &arena);
    weir_status status = prepare(&call, &err);
    if (status != WEIR_OK) {
        weir_http_response_error(response, &err);
        api_note_for_audit(&call, status, &err);
    }
    weir_arena_fini(&arena);
}
