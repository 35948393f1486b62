/** Placeholders of a job's specification, replaced by what a trial has. */
#include "sweep/doc.h"

#include "base/buf.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define DEPTH_MAX      32
#define TEXT_MAX_BYTES ((size_t)1 << 20)

struct filling {
    const json_t *parameters;
    json_t *given; /* of the sweep itself */
    struct weir_arena *arena;
    struct weir_error *err;
};

char *weir_sweep_value_text(const json_t *value, struct weir_arena *arena)
{
    if (json_is_string(value)) {
        return weir_arena_strdup(arena, json_string_value(value));
    }
    if (json_is_real(value)) {
        /* The shortest that is the same number again. */
        char text[40];
        double number = json_real_value(value);
        for (int digits = 1; digits <= 17; digits++) {
            (void)snprintf(text, sizeof text, "%.*g", digits, number);
            if (strtod(text, NULL) == number) {
                break;
            }
        }
        return weir_arena_strdup(arena, text);
    }
    return json_is_integer(value)
               ? weir_arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value))
               : weir_arena_strdup(arena, json_is_true(value) ? "true" : "false");
}

/* The placeholder at the beginning of the text; *out_len is 0 if there is none. */
static weir_status find_value(const struct filling *filling, const char *text, const char *where,
                              const json_t **out, size_t *out_len)
{
    size_t n = 0;
    *out_len = 0;
    if (strncmp(text, "{{", 2) != 0) {
        return WEIR_OK;
    }
    while (isalnum((unsigned char)text[2 + n]) || text[2 + n] == '_') {
        n++;
    }
    if (n == 0 || strncmp(text + 2 + n, "}}", 2) != 0) {
        return WEIR_OK;
    }
    const char *name = weir_arena_memdup(filling->arena, text + 2, n);
    const json_t *value = json_object_get(filling->parameters, name);
    value = value != NULL ? value : json_object_get(filling->given, name);
    if (value == NULL) {
        return weir_error_set(filling->err, WEIR_ERR_INVALID,
                              "%s: {{%.63s}} is none of the parameters, and none of {{sweep}}, "
                              "{{trial}} and, with rungs that have one, {{max_resource}}",
                              where, name);
    }
    *out = value;
    *out_len = n + 4;
    return WEIR_OK;
}

static weir_status fill_text(const struct filling *filling, const char *text, const char *where,
                             json_t **out)
{
    const json_t *value = NULL;
    size_t len;
    WEIR_TRY(find_value(filling, text, where, &value, &len));
    if (len > 0 && text[len] == '\0') {
        *out = json_deep_copy(value);
        return WEIR_OK;
    }
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, TEXT_MAX_BYTES);
    for (const char *at = text; *at != '\0'; at += len > 0 ? len : 1) {
        WEIR_TRY(find_value(filling, at, where, &value, &len));
        if (len > 0) {
            weir_buf_puts(&buf, weir_sweep_value_text(value, filling->arena));
        } else {
            weir_buf_append(&buf, at, 1);
        }
    }
    if (buf.status != WEIR_OK) {
        return weir_error_set(filling->err, WEIR_ERR_LIMIT, "%s: the text becomes too long", where);
    }
    *out = json_stringn(buf.data, buf.len);
    return WEIR_OK;
}

static weir_status fill_value(const struct filling *filling, const json_t *value, const char *where,
                              size_t depth, json_t **out);

static weir_status fill_array(const struct filling *filling, const json_t *array, const char *where,
                              size_t depth, json_t **out)
{
    json_t *filled = json_array();
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *one = NULL;
        weir_status status =
            fill_value(filling, json_array_get(array, i),
                       weir_arena_printf(filling->arena, "%s[%zu]", where, i), depth + 1, &one);
        if (status != WEIR_OK) {
            json_decref(filled);
            return status;
        }
        json_array_append_new(filled, one);
    }
    *out = filled;
    return WEIR_OK;
}

/* What the text files of a job hold is the user's, braces included. */
static weir_status fill_object(const struct filling *filling, const json_t *object,
                               const char *where, size_t depth, json_t **out)
{
    json_t *filled = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)object, key, value)
    {
        json_t *one = NULL;
        weir_status status = WEIR_OK;
        if (depth == 0 && strcmp(key, "files") == 0) {
            one = json_incref(value);
        } else {
            status = fill_value(filling, value,
                                weir_arena_printf(filling->arena, "%s.%.80s", where, key),
                                depth + 1, &one);
        }
        if (status != WEIR_OK) {
            json_decref(filled);
            return status;
        }
        json_object_set_new(filled, key, one);
    }
    *out = filled;
    return WEIR_OK;
}

static weir_status fill_value(const struct filling *filling, const json_t *value, const char *where,
                              size_t depth, json_t **out)
{
    if (depth > DEPTH_MAX) {
        return weir_error_set(filling->err, WEIR_ERR_LIMIT, "%s: nested more than %d deep", where,
                              DEPTH_MAX);
    }
    if (json_is_string(value)) {
        return fill_text(filling, json_string_value(value), where, out);
    }
    if (json_is_array(value)) {
        return fill_array(filling, value, where, depth, out);
    }
    if (json_is_object(value)) {
        return fill_object(filling, value, where, depth, out);
    }
    *out = json_deep_copy(value);
    return WEIR_OK;
}

weir_status weir_sweep_fill(const json_t *spec, const json_t *parameters,
                            const struct weir_sweep_given *given, struct weir_arena *arena,
                            json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *own = json_pack("{s:s,s:I}", "sweep", given->sweep, "trial", (json_int_t)given->trial);
    if (given->max_resource > 0) {
        bool is_whole =
            given->max_resource == floor(given->max_resource) && given->max_resource < 9e15;
        json_object_set_new(own, "max_resource",
                            is_whole ? json_integer((json_int_t)given->max_resource)
                                     : json_real(given->max_resource));
    }
    const struct filling filling = {
        .parameters = parameters, .given = own, .arena = arena, .err = err};
    return fill_value(&filling, spec, "$.job.spec", 0, out);
}
