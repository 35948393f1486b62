/** What a route reads of a request's body. */
#include "api/core/args.h"

#include "base/names.h"
#include "store/table.h"
#include "store/tenant.h"

#include <string.h>

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

bool api_is_plain(const char *text, size_t max_bytes)
{
    if (text == NULL) {
        return true;
    }
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        bool is_c1 = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0; /* U+0080 to U+009F */
        if (*c < 0x20 || *c == 0x7F || is_c1) {
            return false;
        }
    }
    return strlen(text) <= max_bytes;
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

/* With the field that was probably meant, or all there are. */
static weir_status unknown_field(const char *key, const char *const *names, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    struct weir_names all = {0};
    for (const char *const *name = names; *name != NULL; name++) {
        weir_nearest_see(&nearest, key, strlen(key), *name);
        weir_names_add(&all, *name, strlen(*name));
    }
    for (const char *const *name = names; *name != NULL && nearest.name == NULL; name++) {
        nearest.name = weir_name_is_akin(key, *name) ? *name : NULL;
    }
    bool has_any = nearest.name != NULL || all.len > 0;
    return weir_error_set(err, WEIR_ERR_INVALID, "$.%.80s: unknown field%s%s%s", key,
                          nearest.name != NULL ? "; did you mean "
                          : has_any            ? "; there are "
                                               : "",
                          nearest.name != NULL ? nearest.name : all.text,
                          nearest.name != NULL ? "?" : "");
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
            return unknown_field(key, names, err);
        }
    }
    return WEIR_OK;
}

weir_status api_check_project(struct api_call *call, struct weir_txn *txn, const char *name,
                              struct weir_error *err)
{
    struct weir_project project;
    return weir_txn_get(txn, &weir_project_resource, name, call->arena, &project, NULL) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "$.project: there is no project \"%.60s\"; `weir get projects` "
                                "lists them",
                                name);
}
