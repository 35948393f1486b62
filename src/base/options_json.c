/* Options in JSON: read, and described for those who fill them in. */
#include "base/options_private.h"

#include "base/macros.h"
#include "base/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE_BYTES        256
#define OPTIONS_KEYS_BYTES 240

static const struct weir_option *find_key(const struct options_parser *parser, const char *key)
{
    char name[OPTIONS_NAME_BYTES];
    (void)options_swap(key, '_', '-', name);
    return options_find_long(parser, name, strlen(name));
}

const struct weir_option *weir_options_find(const struct weir_option *options, size_t n_options,
                                            const char *name)
{
    const struct options_parser parser = {.options = options, .n_options = n_options};
    return find_key(&parser, name);
}

char *weir_option_key(const struct weir_option *option, struct weir_arena *arena)
{
    char key[OPTIONS_NAME_BYTES];
    return weir_arena_strdup(arena, options_swap(option->name, '-', '_', key));
}

/* "fit, shorter, mean", as far as there is room. */
static const char *list_keys(const struct options_parser *parser, char *text, size_t size)
{
    char name[OPTIONS_NAME_BYTES];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < parser->n_options && len < size - 1; i++) {
        int n = snprintf(text + len, size - len, "%s%s", i > 0 ? ", " : "",
                         options_swap(parser->options[i].name, '-', '_', name));
        len = WEIR_MIN(len + (size_t)WEIR_MAX(n, 0), size - 1);
    }
    return text;
}

static weir_status unknown_key(const struct options_parser *parser, const char *source,
                               const char *key)
{
    char name[OPTIONS_NAME_BYTES], meant[OPTIONS_NAME_BYTES];
    struct weir_nearest nearest = {0};
    (void)options_swap(key, '_', '-', name);
    for (size_t i = 0; i < parser->n_options; i++) {
        weir_nearest_see(&nearest, name, strlen(name), parser->options[i].name);
    }
    for (size_t i = 0; i < parser->n_options && nearest.name == NULL; i++) {
        const char *akin = parser->options[i].name;
        nearest.name = weir_name_is_akin(name, akin) ? akin : NULL;
    }
    if (nearest.name == NULL) {
        char keys[OPTIONS_KEYS_BYTES];
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: unknown option%s%s", source,
                              parser->n_options > 0 ? "; there are " : "",
                              list_keys(parser, keys, sizeof keys));
    }
    return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: unknown option; did you mean %s?",
                          source, options_swap(nearest.name, '-', '_', meant));
}

static const char *type_text(const json_t *value)
{
    static const char *const texts[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return texts[json_typeof(value)];
}

static weir_status wrong_type(const struct options_parser *parser, const char *source,
                              const char *expected, const json_t *value)
{
    return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: expected %s, got %s", source,
                          expected, type_text(value));
}

static weir_status check_texts(const struct options_parser *parser, const char *source,
                               const json_t *array)
{
    const json_t *item;
    size_t i;
    if (!json_is_array(array)) {
        return wrong_type(parser, source, "an array of strings", array);
    }
    json_array_foreach(array, i, item)
    {
        if (!json_is_string(item)) {
            return weir_error_set(parser->err, WEIR_ERR_INVALID,
                                  "%s: expected an array of strings: number %zu is %s", source,
                                  i + 1, type_text(item));
        }
    }
    return WEIR_OK;
}

static weir_status check_map(const struct options_parser *parser, const char *source, json_t *map)
{
    const char *key;
    json_t *value;
    if (!json_is_object(map)) {
        return wrong_type(parser, source, "an object of strings", map);
    }
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value)) {
            return weir_error_set(parser->err, WEIR_ERR_INVALID,
                                  "%s.%.60s: expected a string: put the value into quotes", source,
                                  key);
        }
    }
    return WEIR_OK;
}

/* TEXT, INT, F64, BOOL and LIST, by way of their text: "3" is as good as 3, and in a specification
 * an array as its text: [1,28,28]. */
static weir_status set_scalar(const struct options_parser *parser, const struct weir_option *option,
                              const char *source, const json_t *value)
{
    bool is_array_text =
        json_is_array(value) && option->type == WEIR_OPTION_TEXT && !parser->is_strict;
    if (json_is_object(value) || (json_is_array(value) && !is_array_text)) {
        return wrong_type(parser, source,
                          option->type == WEIR_OPTION_INT    ? "an integer"
                          : option->type == WEIR_OPTION_F64  ? "a number"
                          : option->type == WEIR_OPTION_CPUS ? "processors, as 2, 0.5 or \"500m\""
                          : option->type == WEIR_OPTION_BOOL ? "true or false"
                                                             : "text",
                          value);
    }
    const char *text =
        json_is_string(value) ? json_string_value(value) : weir_json_text(value, parser->arena);
    size_t len = json_is_string(value) ? json_string_length(value) : strlen(text);
    if (len > WEIR_OPTION_TEXT_MAX_BYTES) {
        return weir_error_set(parser->err, WEIR_ERR_LIMIT, "%s: %zu bytes; at most %zu are allowed",
                              source, len, WEIR_OPTION_TEXT_MAX_BYTES);
    }
    if (len != strlen(text)) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: a NUL character inside", source);
    }
    return options_set(parser, option, source, text);
}

static weir_status set_json(const struct options_parser *parser, const struct weir_option *option,
                            const char *source, const json_t *value)
{
    const json_t **member = (const json_t **)((char *)parser->out + option->offset);
    switch (option->type) {
    case WEIR_OPTION_TEXTS:
        WEIR_TRY(check_texts(parser, source, value));
        break;
    case WEIR_OPTION_MAP:
        WEIR_TRY(check_map(parser, source, (json_t *)value));
        break;
    case WEIR_OPTION_JSON:
        break;
    default:
        return set_scalar(parser, option, source, value);
    }
    *member = value;
    return WEIR_OK;
}

static weir_status set_members(const struct options_parser *parser, const json_t *object,
                               const char *where, const char *ignored)
{
    char source[WHERE_BYTES];
    if (!json_is_object(object)) {
        return weir_error_set(parser->err, WEIR_ERR_INVALID, "%s: expected an object of options",
                              where);
    }
    for (void *it = json_object_iter((json_t *)object); it != NULL;
         it = json_object_iter_next((json_t *)object, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if (ignored != NULL && strcmp(key, ignored) == 0) {
            continue;
        }
        (void)snprintf(source, sizeof source, "%s.%.60s", where, key);
        const struct weir_option *option = find_key(parser, key);
        if (option == NULL || (parser->is_strict && strchr(key, '-') != NULL)) {
            return unknown_key(parser, source, key);
        }
        if (!json_is_null(value)) {
            WEIR_TRY(set_json(parser, option, source, value));
        }
    }
    return WEIR_OK;
}

weir_status weir_options_from_json(const struct weir_option *options, size_t n_options,
                                   const json_t *object, struct weir_arena *arena, void *out,
                                   struct weir_error *err)
{
    const struct options_parser parser = {options, n_options, arena, out, err, false};
    return set_members(&parser, object, "$", NULL);
}

weir_status weir_options_read(const struct weir_option *options, size_t n_options,
                              const json_t *object, const char *where, const char *ignored,
                              struct weir_arena *arena, void *out, struct weir_error *err)
{
    const struct options_parser parser = {options, n_options, arena, out, err, true};
    char key[OPTIONS_NAME_BYTES];
    WEIR_TRY(options_set_defaults(&parser));
    WEIR_TRY(set_members(&parser, object, where, ignored));
    for (size_t i = 0; i < n_options; i++) {
        const json_t *value = json_object_get(object, options_swap(options[i].name, '-', '_', key));
        bool is_empty = value == NULL || json_is_null(value) ||
                        (json_is_string(value) && json_string_length(value) == 0) ||
                        (json_is_array(value) && json_array_size(value) == 0);
        if ((options[i].flags & WEIR_OPTION_REQUIRED) && is_empty) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: missing: %s", where, key,
                                  options[i].doc);
        }
    }
    return WEIR_OK;
}

weir_status weir_options_paths(const struct weir_option *options, size_t n_options,
                               const json_t *object, const char *where, weir_option_path_fn fn,
                               void *context)
{
    char key[OPTIONS_NAME_BYTES], place[WHERE_BYTES];
    for (size_t i = 0; i < n_options; i++) {
        /* weir_options_from_json takes both forms of the name. */
        const json_t *value = json_object_get(object, options_swap(options[i].name, '-', '_', key));
        const char *path =
            json_string_value(value != NULL ? value : json_object_get(object, options[i].name));
        if (path != NULL && (options[i].flags & WEIR_OPTION_PATH)) {
            (void)snprintf(place, sizeof place, "%s.%s", where, key);
            WEIR_TRY(fn(context, place, path, options[i].flags & WEIR_OPTION_WRITTEN));
        }
    }
    return WEIR_OK;
}

/* ---- described ------------------------------------------------------------------------------- */

static const char *const type_names[] = {
    [WEIR_OPTION_TEXT] = "text",    [WEIR_OPTION_INT] = "integer", [WEIR_OPTION_F64] = "number",
    [WEIR_OPTION_BOOL] = "boolean", [WEIR_OPTION_LIST] = "text",   [WEIR_OPTION_TEXTS] = "array",
    [WEIR_OPTION_MAP] = "object",   [WEIR_OPTION_JSON] = "any",    [WEIR_OPTION_CPUS] = "number",
};

/* The default as a value of its type; NULL if there is none. */
static json_t *default_of(const struct weir_option *option)
{
    const char *text = option->fallback;
    if (text == NULL) {
        return option->type == WEIR_OPTION_BOOL ? json_false() : NULL;
    }
    switch (option->type) {
    case WEIR_OPTION_INT:
        return json_integer(strtoll(text, NULL, 10));
    case WEIR_OPTION_F64:
        return json_real(strtod(text, NULL));
    case WEIR_OPTION_CPUS:
        return strcmp(text, "-1") == 0 ? json_integer(-1)
                                       : weir_json_milli(llround(strtod(text, NULL) * 1000));
    case WEIR_OPTION_BOOL:
        return json_boolean(text[0] == 't' || text[0] == '1');
    default:
        return json_string(text);
    }
}

static json_t *bound_of(const struct weir_option *option, double bound)
{
    return option->type == WEIR_OPTION_F64 ? json_real(bound) : json_integer((json_int_t)bound);
}

/* What description and schema have in common. */
static json_t *describe(const struct weir_option *option)
{
    json_t *object = json_object(), *fallback = default_of(option);
    if (fallback != NULL) {
        json_object_set_new(object, "default", fallback);
    }
    if (option->min < option->max) {
        json_object_set_new(object, "minimum", bound_of(option, option->min));
        json_object_set_new(object, "maximum", bound_of(option, option->max));
    }
    return object;
}

static json_t *words_of(const struct weir_option *option)
{
    json_t *words = json_array();
    for (size_t i = 0; option->words[i] != NULL; i++) {
        json_array_append_new(words, json_string(option->words[i]));
    }
    return words;
}

json_t *weir_options_describe(const struct weir_option *options, size_t n_options)
{
    static const struct {
        unsigned flag;
        const char *name;
    } flags[] = {{WEIR_OPTION_REQUIRED, "required"},
                 {WEIR_OPTION_SECRET, "secret"},
                 {WEIR_OPTION_PATH, "path"}};

    char key[OPTIONS_NAME_BYTES];
    json_t *list = json_array();
    for (size_t i = 0; i < n_options; i++) {
        const struct weir_option *option = &options[i];
        if (option->flags & WEIR_OPTION_INTERNAL) {
            continue;
        }
        json_t *item = json_pack("{s:s,s:s}", "name", options_swap(option->name, '-', '_', key),
                                 "type", type_names[option->type]);
        json_t *rest = describe(option);
        json_object_update(item, rest);
        json_decref(rest);
        if (option->words != NULL) {
            json_object_set_new(item, "words", words_of(option));
        }
        for (size_t k = 0; k < WEIR_ARRAY_LEN(flags); k++) {
            if (option->flags & flags[k].flag) {
                json_object_set_new(item, flags[k].name, json_true());
            }
        }
        json_object_set_new(item, "doc", json_string(option->doc));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *option_schema(const struct weir_option *option)
{
    static const char *const types[] = {
        [WEIR_OPTION_TEXT] = "string", [WEIR_OPTION_INT] = "integer",
        [WEIR_OPTION_F64] = "number",  [WEIR_OPTION_BOOL] = "boolean",
        [WEIR_OPTION_LIST] = "string", [WEIR_OPTION_TEXTS] = "array",
        [WEIR_OPTION_MAP] = "object",  [WEIR_OPTION_JSON] = NULL,
        [WEIR_OPTION_CPUS] = NULL,
    };
    json_t *schema = describe(option);
    if (types[option->type] != NULL) { /* CPUS are a number or a text: "500m" */
        json_object_set_new(schema, "type", json_string(types[option->type]));
    }
    if (option->type == WEIR_OPTION_TEXTS) {
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    }
    if (option->type == WEIR_OPTION_MAP) {
        json_object_set_new(schema, "additionalProperties", json_pack("{s:s}", "type", "string"));
    }
    if (option->words != NULL && !(option->flags & WEIR_OPTION_SETTINGS)) {
        json_object_set_new(schema, "enum", words_of(option));
    }
    json_object_set_new(schema, "nullable", json_true());
    json_object_set_new(schema, "description", json_string(option->doc));
    return schema;
}

json_t *weir_options_schema(const struct weir_option *options, size_t n_options)
{
    char key[OPTIONS_NAME_BYTES];
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < n_options; i++) {
        if (options[i].flags & WEIR_OPTION_INTERNAL) {
            continue;
        }
        (void)options_swap(options[i].name, '-', '_', key);
        json_object_set_new(properties, key, option_schema(&options[i]));
        if (options[i].flags & WEIR_OPTION_REQUIRED) {
            json_array_append_new(required, json_string(key));
        }
    }
    json_t *schema = json_pack("{s:s,s:o}", "type", "object", "properties", properties);
    if (json_array_size(required) > 0) {
        json_object_set(schema, "required", required);
    }
    json_decref(required);
    return schema;
}
