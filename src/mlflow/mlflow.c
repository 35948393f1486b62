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

/* The API of traces, of which there are none. */
static bool is_newer(const struct weir_http_request *request, size_t first)
{
    return first > 0 && is_part(request, first - 1, "3.0");
}

const struct weir_route *weir_mlflow_find(const struct weir_http_request *request,
                                          const char *out_params[ROUTE_MAX_PARAMS],
                                          const char **out_project)
{
    size_t first;
    (void)find_prefix(request, &first);
    *out_project =
        is_part(request, 0, "p") && request->n_segments > 2 ? request->segments[1] : NULL;
    return is_newer(request, first)
               ? NULL
               : weir_route_find(weir_mlflow_routes, request, first, out_params);
}

const char *weir_mlflow_allowed(const struct weir_http_request *request, struct weir_arena *arena)
{
    size_t first;
    (void)find_prefix(request, &first);
    return is_newer(request, first) ? ""
                                    : weir_route_allowed(weir_mlflow_routes, request, first, arena);
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

static weir_status parse_object(const struct weir_http_request *request, struct weir_arena *arena,
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

weir_status weir_mlflow_parse(struct weir_mlflow_call *call, struct weir_error *err)
{
    if (call->route->mlflow == mlflow_log_batch) {
        call->batch = mlflow_scan_batch(call->request, call->arena);
    }
    return call->batch != NULL ? WEIR_OK
                               : parse_object(call->request, call->arena, &call->body, err);
}

const char *weir_mlflow_name(const struct weir_mlflow_call *call)
{
    const char *name = NULL;
    struct weir_error ignored;
    if (call->batch != NULL) {
        return call->batch->run_id;
    }
    if (call->route->named_by == NULL) {
        return strstr(call->route->pattern, "{id}") != NULL ? call->params[0] : NULL;
    }
    return mlflow_text(call, call->route->named_by, &name, &ignored) == WEIR_OK ? name : NULL;
}
