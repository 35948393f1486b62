/** Arguments of operations, and what MLflow says when they are wrong. */
#include "mlflow/call.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SEE_DOCS    "See the API docs for more information about request parameters."
#define LISTED_MAX  1000
#define VALUE_SHOWN 120

static const char bad_characters[] =
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/).";

weir_status mlflow_missing(const char *name, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "Missing value for required parameter '%s'. " SEE_DOCS, name);
}

weir_status mlflow_invalid(struct weir_arena *arena, const char *name, const json_t *value,
                           const char *why, struct weir_error *err)
{
    char *text =
        value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    const char *shown = text != NULL ? weir_arena_printf(arena, "%.*s", VALUE_SHOWN, text) : "null";
    free(text);
    return weir_error_set(err, WEIR_ERR_INVALID, "Invalid value %s for parameter '%s' supplied%s%s",
                          shown, name, *why != '\0' ? ": " : ".", why);
}

static const char *type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "dict";
    case JSON_ARRAY:
        return "list";
    case JSON_STRING:
        return "str";
    case JSON_INTEGER:
        return "int";
    case JSON_REAL:
        return "float";
    case JSON_TRUE:
    case JSON_FALSE:
        return "bool";
    default:
        return "NoneType";
    }
}

static weir_status wrong_type(struct weir_arena *arena, const char *name, const json_t *value,
                              struct weir_error *err)
{
    return mlflow_invalid(
        arena, name, value,
        weir_arena_printf(arena, " Hint: Value was of type '%s'. " SEE_DOCS, type_of(value)), err);
}

/* Of the body; NULL too where it is null. */
static const json_t *member(const struct weir_mlflow_call *call, const char *name)
{
    const json_t *value = json_object_get(call->body, name);
    return json_is_null(value) ? NULL : value;
}

static bool is_query(const struct weir_mlflow_call *call)
{
    return call->body == NULL;
}

bool mlflow_has(const struct weir_mlflow_call *call, const char *name)
{
    return is_query(call) ? weir_http_request_query(call->request, name) != NULL
                          : member(call, name) != NULL;
}

weir_status mlflow_text(const struct weir_mlflow_call *call, const char *name, const char **out,
                        struct weir_error *err)
{
    if (is_query(call)) {
        *out = weir_http_request_query(call->request, name);
        return WEIR_OK;
    }
    const json_t *value = member(call, name);
    if (value != NULL && !json_is_string(value)) {
        return wrong_type(call->arena, name, value, err);
    }
    *out = json_string_value(value);
    return WEIR_OK;
}

weir_status mlflow_text_required(const struct weir_mlflow_call *call, const char *name,
                                 const char **out, struct weir_error *err)
{
    WEIR_TRY(mlflow_text(call, name, out, err));
    return *out != NULL && **out != '\0' ? WEIR_OK : mlflow_missing(name, err);
}

weir_status mlflow_run_id(const struct weir_mlflow_call *call, const char **out,
                          struct weir_error *err)
{
    WEIR_TRY(mlflow_text(call, "run_id", out, err));
    if (*out == NULL || **out == '\0') {
        WEIR_TRY(mlflow_text(call, "run_uuid", out, err));
    }
    return *out != NULL && **out != '\0' ? WEIR_OK : mlflow_missing("run_id", err);
}

weir_status mlflow_int_of(struct weir_arena *arena, const json_t *value, const char *what,
                          int64_t *out, struct weir_error *err)
{
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return WEIR_OK;
    }
    const char *text = json_string_value(value);
    if (json_is_real(value) && fabs(json_real_value(value)) < 9e15 &&
        json_real_value(value) == trunc(json_real_value(value))) {
        *out = (int64_t)json_real_value(value);
        return WEIR_OK;
    }
    if (text != NULL && *text != '\0') {
        char *end;
        errno = 0;
        long long number = strtoll(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            *out = number;
            return WEIR_OK;
        }
    }
    return wrong_type(arena, what, value, err);
}

weir_status mlflow_number_of(struct weir_arena *arena, const json_t *value, const char *what,
                             double *out, struct weir_error *err)
{
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return WEIR_OK;
    }
    const char *text = json_string_value(value);
    if (text != NULL && *text != '\0' && !isspace((unsigned char)*text)) {
        char *end;
        double number = strtod(text, &end); /* "NaN", "Infinity" and "-Infinity", too */
        if (*end == '\0') {
            *out = number;
            return WEIR_OK;
        }
    }
    return wrong_type(arena, what, value, err);
}

weir_status mlflow_int(const struct weir_mlflow_call *call, const char *name, int64_t fallback,
                       int64_t *out, struct weir_error *err)
{
    if (!mlflow_has(call, name)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!is_query(call)) {
        return mlflow_int_of(call->arena, member(call, name), name, out, err);
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *value = json_string(weir_http_request_query(call->request, name));
    return mlflow_int_of(call->arena, value, name, out, err);
}

weir_status mlflow_bool(const struct weir_mlflow_call *call, const char *name, bool fallback,
                        bool *out, struct weir_error *err)
{
    const char *text = is_query(call) ? weir_http_request_query(call->request, name) : NULL;
    const json_t *value = is_query(call) ? NULL : member(call, name);
    text = json_is_string(value) ? json_string_value(value) : text;
    if (value != NULL && !json_is_boolean(value) && text == NULL) {
        return wrong_type(call->arena, name, value, err);
    }
    *out = json_is_boolean(value) ? json_is_true(value)
           : text != NULL         ? strcasecmp(text, "true") == 0
                                  : fallback;
    return WEIR_OK;
}

weir_status mlflow_max_results(const struct weir_mlflow_call *call, int64_t fallback, int64_t most,
                               int64_t *out, struct weir_error *err)
{
    WEIR_TRY(mlflow_int(call, "max_results", fallback, out, err));
    if (*out >= 1 && *out <= most) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "Invalid value %lld for parameter 'max_results' supplied: it must be "
                          "from 1 to %lld. " SEE_DOCS,
                          (long long)*out, (long long)most);
}

weir_status mlflow_array(const struct weir_mlflow_call *call, const char *name, const json_t **out,
                         struct weir_error *err)
{
    size_t i;
    json_t *item;
    *out = is_query(call) ? NULL : member(call, name);
    if (*out != NULL && !json_is_array(*out)) {
        return wrong_type(call->arena, name, *out, err);
    }
    json_array_foreach(*out, i, item)
    {
        if (!json_is_object(item)) {
            return wrong_type(call->arena, weir_arena_printf(call->arena, "%s[%zu]", name, i), item,
                              err);
        }
    }
    return WEIR_OK;
}

weir_status mlflow_texts(const struct weir_mlflow_call *call, const char *name, const char ***out,
                         size_t *out_n, struct weir_error *err)
{
    const char *given = NULL;
    size_t n = 0, i;
    json_t *item;
    *out = WEIR_ARENA_ARRAY(call->arena, LISTED_MAX, const char *);
    for (; is_query(call) && n < LISTED_MAX; n++) {
        given = weir_http_request_query_at(call->request, name, n);
        if (given == NULL) {
            break;
        }
        (*out)[n] = given;
    }
    const json_t *list = is_query(call) ? NULL : member(call, name);
    if (list != NULL && !json_is_array(list)) {
        return wrong_type(call->arena, name, list, err);
    }
    if (n == LISTED_MAX || json_array_size(list) > LISTED_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "'%s' has more than %d values", name,
                              LISTED_MAX);
    }
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item)) {
            return wrong_type(call->arena, name, list, err);
        }
        (*out)[n++] = json_string_value(item);
    }
    *out_n = n;
    return WEIR_OK;
}

weir_status mlflow_tags(const struct weir_mlflow_call *call, const char *name,
                        struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    const json_t *list;
    size_t i;
    json_t *item;
    WEIR_TRY(mlflow_array(call, name, &list, err));
    *out = WEIR_ARENA_ARRAY(call->arena, json_array_size(list) + 1, struct weir_tag);
    *out_n = 0;
    json_array_foreach(list, i, item)
    {
        const json_t *key = json_object_get(item, "key"), *value = json_object_get(item, "value");
        char *place = weir_arena_printf(call->arena, "%s[%zu]", name, i);
        if (json_string_length(key) == 0) {
            return key != NULL && !json_is_null(key) && !json_is_string(key)
                       ? wrong_type(call->arena, weir_arena_printf(call->arena, "%s.key", place),
                                    key, err)
                       : mlflow_missing(weir_arena_printf(call->arena, "%s.key", place), err);
        }
        if (value != NULL && !json_is_string(value) && !json_is_null(value)) {
            return wrong_type(call->arena, weir_arena_printf(call->arena, "%s.value", place), value,
                              err);
        }
        const char *text = json_string_value(value);
        (*out)[(*out_n)++] =
            (struct weir_tag){(char *)json_string_value(key), (char *)(text != NULL ? text : "")};
    }
    return WEIR_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

weir_status mlflow_check_length(const char *place, const char *text, size_t max_characters,
                                struct weir_error *err)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        n += (*p & 0xc0) != 0x80; /* the first byte of a character of UTF-8 */
    }
    return n <= max_characters ? WEIR_OK
                               : weir_error_set(err, WEIR_ERR_INVALID,
                                                "'%s' exceeds the maximum length of %zu characters",
                                                place, max_characters);
}

char *mlflow_cut(struct weir_arena *arena, const char *text, size_t max_characters)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        n += (*p & 0xc0) != 0x80;
        if (n > max_characters) {
            return weir_arena_memdup(arena, text, (size_t)(p - text));
        }
    }
    return (char *)text;
}

static bool has_good_characters(const char *key)
{
    for (const unsigned char *p = (const unsigned char *)key; *p != '\0'; p++) {
        if (!isalnum(*p) && strchr("/_.- :", *p) == NULL && *p < 0x80) {
            return false;
        }
    }
    return true;
}

/* Would it be another path if it were one: "a//b", "./a", "a/..", "/a", "a/"? */
static bool is_other_path(const char *key)
{
    if (*key == '\0' || *key == '/') {
        return true;
    }
    for (const char *part = key;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0)) {
            return true;
        }
        part += len;
        if (*part == '\0') {
            return false;
        }
    }
}

weir_status mlflow_check_key(struct weir_arena *arena, const char *place, const char *key,
                             struct weir_error *err)
{
    if (has_good_characters(key) && !is_other_path(key)) {
        WEIR_TRY(mlflow_check_length(place, key, WEIR_RUN_KEY_MAX, err));
        return strlen(key) <= WEIR_RUN_KEY_MAX
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "'%s' exceeds the maximum length of %d bytes", place,
                                    WEIR_RUN_KEY_MAX);
    }
    WEIR_AUTO(weir_json_auto_free) json_t *value = json_string(key);
    return mlflow_invalid(
        arena, place, value,
        !has_good_characters(key)
            ? bad_characters
            : "Names may be treated as files in certain cases, and must not resolve to other names "
              "when treated as such.",
        err);
}
