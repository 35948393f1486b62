#include "gateway/path.h"

#include "gateway/gateway.h"

#include <stdlib.h>
#include <string.h>

static bool is_mlflow_verb(const char *segment)
{
    return strcmp(segment, "invocations") == 0 || strcmp(segment, "ping") == 0;
}

bool weir_gateway_takes(const struct weir_http_request *request)
{
    size_t n = request->n_segments;
    const char *first = n > 0 ? request->segments[0] : "";
    return strcmp(first, "v2") == 0 || strcmp(first, "invocations") == 0 ||
           strcmp(first, "ping") == 0 ||
           (strcmp(first, "models") == 0 && n > 2 && is_mlflow_verb(request->segments[n - 1])) ||
           (strcmp(first, "v1") == 0 && n > 1 && strcmp(request->segments[1], "models") == 0);
}

static weir_status unknown(const struct weir_http_request *request, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no %.120s in the inference protocols: see `man weir-server`",
                          request->path);
}

static weir_status read_version(const char *text, int64_t *out, struct weir_error *err)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18 || text[n] != '\0' || strtoll(text, NULL, 10) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.40s\" is no version: expected a number from 1 on", text);
    }
    *out = strtoll(text, NULL, 10);
    return WEIR_OK;
}

static weir_status need_method(const struct weir_http_request *request, const char *method,
                               struct path *path, struct weir_error *err)
{
    bool is_get = strcmp(method, "GET") == 0;
    if (strcmp(request->method, method) == 0 || (is_get && strcmp(request->method, "HEAD") == 0)) {
        return WEIR_OK;
    }
    path->allow = is_get ? "GET, HEAD" : method;
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%.20s is not supported for %.120s: use %s",
                          request->method, request->path, method);
}

static void set_replica_path(struct path *path, struct weir_arena *arena, const char *protocol,
                             const char *after)
{
    path->before = weir_arena_printf(arena, "%s/%s", protocol,
                                     weir_http_percent_encode(arena, path->deployment));
    path->after = after;
}

/* "versions", "3" at segment i, if they are there. */
static weir_status take_version(const struct weir_http_request *request, size_t *i,
                                struct path *path, struct weir_error *err)
{
    if (*i + 1 < request->n_segments && strcmp(request->segments[*i], "versions") == 0) {
        WEIR_TRY(read_version(request->segments[*i + 1], &path->version, err));
        *i += 2;
    }
    return WEIR_OK;
}

static weir_status read_v2_model(const struct weir_http_request *request, struct weir_arena *arena,
                                 struct path *path, struct weir_error *err)
{
    static const struct {
        const char *last;
        enum path_kind kind;
        const char *method, *after;
    } all[] = {{"", PATH_ASK, "GET", ""},
               {"ready", PATH_MODEL_READY, "GET", "/ready"},
               {"config", PATH_ASK, "GET", "/config"},
               {"stats", PATH_ASK, "GET", "/stats"},
               {"infer", PATH_INFER, "POST", "/infer"}};

    size_t i = 3;
    path->deployment = request->segments[2];
    WEIR_TRY(take_version(request, &i, path, err));
    const char *last = i < request->n_segments ? request->segments[i] : "";
    for (size_t j = 0; j < WEIR_ARRAY_LEN(all) && request->n_segments <= i + 1; j++) {
        if (strcmp(all[j].last, last) == 0) {
            path->kind = all[j].kind;
            set_replica_path(path, arena, "/v2/models", all[j].after);
            return need_method(request, all[j].method, path, err);
        }
    }
    return unknown(request, err);
}

static weir_status read_repository(const struct weir_http_request *request, struct path *path,
                                   struct weir_error *err)
{
    char **s = request->segments;
    if (request->n_segments == 3 && strcmp(s[2], "index") == 0) {
        path->kind = PATH_INDEX;
    } else if (request->n_segments == 5 && strcmp(s[2], "models") == 0 &&
               (strcmp(s[4], "load") == 0 || strcmp(s[4], "unload") == 0)) {
        path->kind = strcmp(s[4], "load") == 0 ? PATH_LOAD : PATH_UNLOAD;
        path->deployment = s[3];
    } else {
        return unknown(request, err);
    }
    return need_method(request, "POST", path, err);
}

static weir_status read_v2(const struct weir_http_request *request, struct weir_arena *arena,
                           struct path *path, struct weir_error *err)
{
    char **s = request->segments;
    size_t n = request->n_segments;
    if (n == 1) {
        path->kind = PATH_SERVER;
    } else if (n == 3 && strcmp(s[1], "health") == 0 && strcmp(s[2], "live") == 0) {
        path->kind = PATH_LIVE;
    } else if (n == 3 && strcmp(s[1], "health") == 0 && strcmp(s[2], "ready") == 0) {
        path->kind = PATH_READY;
    } else if (n == 3 && strcmp(s[1], "models") == 0 && strcmp(s[2], "stats") == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the statistics of all models at once are in GET /metrics: ask "
                              "for one model's with /v2/models/NAME/stats");
    } else if (n >= 3 && strcmp(s[1], "models") == 0) {
        return read_v2_model(request, arena, path, err);
    } else if (n >= 3 && strcmp(s[1], "repository") == 0) {
        return read_repository(request, path, err);
    } else {
        return unknown(request, err);
    }
    return need_method(request, "GET", path, err);
}

/* The last segment may end with ":predict" and its like. */
static void take_verb(char *segment, struct weir_arena *arena, const char **out_name,
                      const char **out_verb)
{
    static const char *const verbs[] = {":predict", ":classify", ":regress"};
    *out_name = segment;
    *out_verb = NULL;
    const char *colon = strrchr(segment, ':');
    for (size_t i = 0; i < WEIR_ARRAY_LEN(verbs) && colon != NULL; i++) {
        if (strcmp(colon, verbs[i]) == 0) {
            *out_name = weir_arena_memdup(arena, segment, (size_t)(colon - segment));
            *out_verb = verbs[i];
        }
    }
}

static weir_status read_v1(const struct weir_http_request *request, struct weir_arena *arena,
                           struct path *path, struct weir_error *err)
{
    char **s = request->segments;
    size_t n = request->n_segments;
    const char *verb = NULL, *last;
    if (n < 3) {
        path->kind = PATH_NAMES;
        return need_method(request, "GET", path, err);
    }
    if (n >= 5 && strcmp(s[3], "labels") == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "labels of versions are not supported: name the version by its "
                              "number, or none to go by the deployment's shares");
    }
    take_verb(s[n - 1], arena, &last, &verb);
    bool has_version = n >= 5 && strcmp(s[3], "versions") == 0;
    bool is_metadata = n == (has_version ? 6u : 4u) && strcmp(s[n - 1], "metadata") == 0;
    size_t n_plain = has_version ? 5 : 3;
    if (n != n_plain + is_metadata) {
        return unknown(request, err);
    }
    path->deployment = n == 3 ? last : s[2];
    if (has_version) {
        WEIR_TRY(read_version(n == 5 ? last : s[4], &path->version, err));
    }
    path->kind = verb != NULL ? PATH_INFER : is_metadata ? PATH_ASK : PATH_MODEL_STATUS;
    set_replica_path(path, arena, "/v1/models",
                     verb != NULL  ? verb
                     : is_metadata ? "/metadata"
                                   : "");
    return need_method(request, verb != NULL ? "POST" : "GET", path, err);
}

static weir_status read_mlflow(const struct weir_http_request *request, struct weir_arena *arena,
                               struct path *path, struct weir_error *err)
{
    size_t n = request->n_segments, i = 0;
    if (strcmp(request->segments[0], "models") == 0) {
        path->deployment = request->segments[1];
        i = 2;
        WEIR_TRY(take_version(request, &i, path, err));
    } else {
        path->deployment = weir_http_request_header(request, "Weir-Deployment");
        if (path->deployment == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s needs the header Weir-Deployment: NAME; or use "
                                  "/models/NAME%s",
                                  request->path, request->path);
        }
    }
    if (n != i + 1) {
        return unknown(request, err);
    }
    bool is_ping = strcmp(request->segments[i], "ping") == 0;
    if (!is_ping && strcmp(request->segments[i], "invocations") != 0) {
        return unknown(request, err);
    }
    path->kind = is_ping ? PATH_PING : PATH_INFER;
    set_replica_path(path, arena, "/models", is_ping ? "/ping" : "/invocations");
    return need_method(request, is_ping ? "GET" : "POST", path, err);
}

weir_status path_read(const struct weir_http_request *request, struct weir_arena *arena,
                      struct path *out, struct weir_error *err)
{
    struct path path = {.kind = PATH_NONE};
    weir_status status = WEIR_OK;
    if (weir_gateway_takes(request)) {
        const char *first = request->segments[0];
        path.kind = PATH_UNKNOWN;
        status = strcmp(first, "v2") == 0   ? read_v2(request, arena, &path, err)
                 : strcmp(first, "v1") == 0 ? read_v1(request, arena, &path, err)
                                            : read_mlflow(request, arena, &path, err);
    }
    *out = path;
    return status;
}
