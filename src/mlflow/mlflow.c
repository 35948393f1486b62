/** Paths of MLflow's API, and the bodies of its requests. */
#include "mlflow/call.h"

#include <string.h>

/** Values in the JSON of one body, each of which takes memory however short it is written. */
#define BODY_MAX_VALUES ((size_t)256 << 10)

static bool is_part(const struct weir_http_request *request, size_t i, const char *text)
{
    return i < request->n_segments && strcmp(request->segments[i], text) == 0;
}

/* Is the path MLflow's? *out: how many parts come before those that operations name. */
static bool find_prefix(const struct weir_http_request *request, size_t *out)
{
    size_t i = is_part(request, 0, "p") && request->n_segments > 2 ? 2 : 0;
    bool is_api =
        (is_part(request, i, "api") || is_part(request, i, "ajax-api")) &&
        (is_part(request, i + 1, "2.0") || is_part(request, i + 1, "3.0")) &&
        (is_part(request, i + 2, "mlflow") || is_part(request, i + 2, "mlflow-artifacts"));
    /* What MLflow's own pages fetch has no "api" before it. */
    bool is_page = is_part(request, i, "get-artifact") || (is_part(request, i, "model-versions") &&
                                                           is_part(request, i + 1, "get-artifact"));
    *out = is_api ? i + 2 : i;
    return is_api || is_page;
}

bool weir_mlflow_takes(const struct weir_http_request *request)
{
    size_t ignored;
    return find_prefix(request, &ignored);
}

/* What "*" takes: the parts from i on. */
static char *join(const struct weir_http_request *request, size_t i, struct weir_arena *arena)
{
    char *rest = weir_arena_strdup(arena, "");
    for (; i < request->n_segments; i++) {
        rest = weir_arena_printf(arena, "%s%s%s", rest, *rest != '\0' ? "/" : "",
                                 request->segments[i]);
    }
    return rest;
}

/* Does the operation's path fit the parts from i on? *out_id: the part that "?" takes; *out_rest: where
 * "*" begins; 0 without. */
static bool path_fits(const char *path, const struct weir_http_request *request, size_t i,
                      size_t *out_id, size_t *out_rest)
{
    *out_id = *out_rest = 0;
    while (*path != '\0') {
        size_t len = strcspn(path, "/");
        if (strcmp(path, "*") == 0) {
            *out_rest = i;
            return i < request->n_segments;
        }
        bool is_any = len == 1 && *path == '?';
        if (i >= request->n_segments ||
            (!is_any && (strlen(request->segments[i]) != len ||
                         memcmp(path, request->segments[i], len) != 0))) {
            return false;
        }
        *out_id = is_any ? i : *out_id;
        i++;
        path += len;
        path += *path == '/';
    }
    return i == request->n_segments;
}

static bool method_fits(const char *method, const char *given)
{
    return strcmp(method, given) == 0 || (strcmp(given, "HEAD") == 0 && strcmp(method, "GET") == 0);
}

/* The API of traces, of which there are none. */
static bool is_newer(const struct weir_http_request *request, size_t first)
{
    return first > 0 && is_part(request, first - 1, "3.0");
}

const struct weir_mlflow_operation *weir_mlflow_find(const struct weir_http_request *request,
                                                     struct weir_arena *arena,
                                                     struct weir_mlflow_place *out)
{
    size_t first, i_id, i_rest;
    (void)find_prefix(request, &first);
    bool has_project = is_part(request, 0, "p") && request->n_segments > 2;
    *out = (struct weir_mlflow_place){.project = has_project ? request->segments[1] : NULL};
    for (size_t i = 0; i < mlflow_n_operations && !is_newer(request, first); i++) {
        const struct weir_mlflow_operation *operation = &mlflow_operations[i];
        if (method_fits(operation->method, request->method) &&
            path_fits(operation->path, request, first, &i_id, &i_rest)) {
            out->id = i_id > 0 ? request->segments[i_id] : NULL;
            out->rest = i_rest > 0 ? join(request, i_rest, arena) : NULL;
            return operation;
        }
    }
    return NULL;
}

const char *weir_mlflow_allowed(const struct weir_http_request *request, struct weir_arena *arena)
{
    size_t first, i_id, i_rest;
    const char *allow = "";
    (void)find_prefix(request, &first);
    for (size_t i = 0; i < mlflow_n_operations && !is_newer(request, first); i++) {
        const char *method = mlflow_operations[i].method;
        if (path_fits(mlflow_operations[i].path, request, first, &i_id, &i_rest) &&
            strstr(allow, method) == NULL) {
            allow = weir_arena_printf(arena, "%s%s%s%s", allow, *allow != '\0' ? ", " : "", method,
                                      strcmp(method, "GET") == 0 ? ", HEAD" : "");
        }
    }
    return allow;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Python writes NaN, Infinity and -Infinity bare: the text with quotes around those outside of strings. */
static char *quote_bare_numbers(const char *text, size_t len, struct weir_arena *arena,
                                size_t *out_len)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    char *out = weir_arena_alloc(arena, len + len / 3 * 2 + 3);
    size_t n = 0;
    bool is_string = false;
    for (size_t i = 0; i < len;) {
        size_t word_len = 0;
        for (size_t k = 0; k < WEIR_ARRAY_LEN(words) && !is_string && word_len == 0; k++) {
            size_t l = strlen(words[k]);
            word_len = len - i >= l && memcmp(text + i, words[k], l) == 0 ? l : 0;
        }
        if (word_len > 0) {
            out[n++] = '"';
            memcpy(out + n, text + i, word_len);
            n += word_len;
            out[n++] = '"';
            i += word_len;
            continue;
        }
        if (is_string && text[i] == '\\' && i + 1 < len) {
            out[n++] = text[i++];
        } else if (text[i] == '"') {
            is_string = !is_string;
        }
        out[n++] = text[i++];
    }
    out[n] = '\0';
    *out_len = n;
    return out;
}

weir_status weir_mlflow_parse(const struct weir_http_request *request, struct weir_arena *arena,
                              json_t **out, struct weir_error *err)
{
    const char *text = request->body;
    size_t len = request->body_len;
    if (len == 0) {
        *out = json_object();
        return WEIR_OK;
    }
    if (weir_json_count(text, len) > BODY_MAX_VALUES) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "request body: more than %zu values: send it in parts",
                              BODY_MAX_VALUES);
    }
    weir_status status = weir_json_parse(text, len, "request body", out, err);
    bool has_bare = memmem(text, len, "NaN", 3) != NULL || memmem(text, len, "Infinity", 8) != NULL;
    if (status == WEIR_ERR_INVALID && has_bare) {
        struct weir_error ignored;
        const char *quoted = quote_bare_numbers(text, len, arena, &len);
        status = weir_json_parse(quoted, len, "request body", out, &ignored);
    }
    WEIR_TRY(status);
    if (!json_is_object(*out)) {
        json_decref(*out);
        return weir_error_set(err, WEIR_ERR_INVALID, "request body: expected a JSON object");
    }
    return WEIR_OK;
}

const char *weir_mlflow_name(const struct weir_mlflow_call *call)
{
    const char *name = NULL;
    struct weir_error ignored;
    if (call->batch != NULL) {
        return call->batch->run_id;
    }
    if (call->id != NULL) {
        return call->id;
    }
    if (call->operation->name == NULL ||
        mlflow_text(call, call->operation->name, &name, &ignored) != WEIR_OK) {
        return NULL;
    }
    return name;
}
