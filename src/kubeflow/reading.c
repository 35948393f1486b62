#include "kubeflow/reading.h"

#include "base/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 60

/* ---- places --------------------------------------------------------------------------------------- */

bool kubeflow_is_there(struct kubeflow_place at)
{
    return at.value != NULL && !json_is_null(at.value);
}

/* Names as "a.b/c" stand in brackets: a path can be told apart from another. */
static const char *path_of_member(const struct kubeflow_reading *reading, const char *path,
                                  const char *name)
{
    bool is_plain = name[0] != '\0';
    for (const char *c = name; *c != '\0'; c++) {
        is_plain = is_plain && (isalnum((unsigned char)*c) || *c == '_' || *c == '-');
    }
    return weir_arena_printf(reading->arena, is_plain ? "%s.%s" : "%s['%s']", path, name);
}

struct kubeflow_place kubeflow_member(const struct kubeflow_reading *reading,
                                      struct kubeflow_place at, const char *name)
{
    return (struct kubeflow_place){.value = json_object_get(at.value, name),
                                   .path = path_of_member(reading, at.path, name)};
}

struct kubeflow_place kubeflow_item(const struct kubeflow_reading *reading,
                                    struct kubeflow_place at, size_t i)
{
    return (struct kubeflow_place){.value = json_array_get(at.value, i),
                                   .path =
                                       weir_arena_printf(reading->arena, "%s[%zu]", at.path, i)};
}

bool kubeflow_next(const struct kubeflow_reading *reading, struct kubeflow_place at,
                   void **iterator, const char **out_name, struct kubeflow_place *out)
{
    json_t *object = (json_t *)at.value;
    *iterator =
        *iterator == NULL ? json_object_iter(object) : json_object_iter_next(object, *iterator);
    if (*iterator == NULL) {
        return false;
    }
    *out_name = json_object_iter_key(*iterator);
    *out = kubeflow_member(reading, at, *out_name);
    return true;
}

/* ---- what becomes of them ------------------------------------------------------------------------- */

void kubeflow_mark(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    if (at.value != NULL) {
        json_object_set_new(reading->marks, at.path, json_true());
    }
}

void kubeflow_remark_path(struct kubeflow_reading *reading, struct kubeflow_place at,
                          const char *say)
{
    struct weir_kubeflow *out = reading->out;
    for (size_t i = 0; i < out->n_remarks && at.value != NULL; i++) {
        if (strcmp(out->remarks[i].path, at.path) == 0 && strcmp(out->remarks[i].say, say) == 0) {
            return;
        }
    }
    if (at.value == NULL) {
        return;
    }
    if (out->n_remarks < WEIR_KUBEFLOW_REMARKS_MAX) {
        out->remarks[out->n_remarks++] = (struct weir_kubeflow_remark){at.path, say};
    } else {
        out->remarks[WEIR_KUBEFLOW_REMARKS_MAX - 1] =
            (struct weir_kubeflow_remark){"$", "and more is not taken over than can be said here"};
    }
}

void kubeflow_remark(struct kubeflow_reading *reading, struct kubeflow_place at, const char *format,
                     ...)
{
    va_list args;
    va_start(args, format);
    const char *say = weir_arena_vprintf(reading->arena, format, args);
    va_end(args);
    kubeflow_mark(reading, at);
    kubeflow_remark_path(reading, at, say);
}

weir_status kubeflow_wrong(struct kubeflow_reading *reading, struct kubeflow_place at,
                           const char *expected)
{
    const char *text = at.value == NULL ? "nothing" : weir_json_text(at.value, reading->arena);
    return weir_error_set(reading->err, WEIR_ERR_INVALID, "%s: expected %s, got %.*s%s", at.path,
                          expected, SHOWN_MAX, text, strlen(text) > SHOWN_MAX ? "…" : "");
}

weir_status kubeflow_refuse(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *say = weir_arena_vprintf(reading->arena, format, args);
    va_end(args);
    return weir_error_set(reading->err, WEIR_ERR_UNSUPPORTED, "%s: %s", at.path, say);
}

/* ---- values --------------------------------------------------------------------------------------- */

weir_status kubeflow_text(struct kubeflow_reading *reading, struct kubeflow_place at,
                          const char **out)
{
    if (!kubeflow_is_there(at)) {
        kubeflow_mark(reading, at);
        return WEIR_OK;
    }
    if (!json_is_string(at.value) ||
        strlen(json_string_value(at.value)) != json_string_length(at.value)) {
        return kubeflow_wrong(reading, at, "a text: put the value into quotes");
    }
    *out = json_string_value(at.value);
    kubeflow_mark(reading, at);
    return WEIR_OK;
}

weir_status kubeflow_integer(struct kubeflow_reading *reading, struct kubeflow_place at,
                             int64_t min, int64_t max, int64_t *out)
{
    int64_t value = json_integer_value(at.value);
    if (!kubeflow_is_there(at)) {
        kubeflow_mark(reading, at);
        return WEIR_OK;
    }
    if (!json_is_integer(at.value) || value < min || value > max) {
        return kubeflow_wrong(
            reading, at,
            weir_arena_printf(reading->arena, "an integer from %" PRId64 " to %" PRId64, min, max));
    }
    *out = value;
    kubeflow_mark(reading, at);
    return WEIR_OK;
}

weir_status kubeflow_boolean(struct kubeflow_reading *reading, struct kubeflow_place at, bool *out)
{
    if (kubeflow_is_there(at) && !json_is_boolean(at.value)) {
        return kubeflow_wrong(reading, at, "true or false");
    }
    *out = kubeflow_is_there(at) ? json_is_true(at.value) : *out;
    kubeflow_mark(reading, at);
    return WEIR_OK;
}

bool kubeflow_is_word(struct kubeflow_reading *reading, struct kubeflow_place at, const char *word)
{
    const char *text = json_string_value(at.value);
    kubeflow_mark(reading, at);
    return text != NULL && strcmp(text, word) == 0;
}

json_t *kubeflow_keep(struct kubeflow_reading *reading, json_t *value)
{
    json_array_append_new(reading->kept, value);
    return value;
}

/* ---- fields --------------------------------------------------------------------------------------- */

static bool has_type(const json_t *value, enum kubeflow_type type)
{
    switch (type) {
    case KUBEFLOW_TEXT:
        return json_is_string(value);
    case KUBEFLOW_INTEGER:
        return json_is_integer(value);
    case KUBEFLOW_BOOLEAN:
        return json_is_boolean(value);
    case KUBEFLOW_OBJECT:
        return json_is_object(value);
    case KUBEFLOW_LIST:
        return json_is_array(value);
    default:
        return true;
    }
}

static weir_status check_words(struct kubeflow_reading *reading, const struct kubeflow_field *field,
                               struct kubeflow_place at)
{
    const char *list = "";
    for (size_t i = 0; field->words[i] != NULL; i++) {
        if (strcmp(field->words[i], json_string_value(at.value)) == 0) {
            return WEIR_OK;
        }
        list = weir_arena_printf(reading->arena, "%s%s%s", list,
                                 i == 0                        ? ""
                                 : field->words[i + 1] == NULL ? " or "
                                                               : ", ",
                                 field->words[i]);
    }
    return kubeflow_wrong(reading, at, list);
}

static weir_status take(struct kubeflow_reading *reading, const struct kubeflow_field *field,
                        struct kubeflow_place at, void *out)
{
    static const char *const types[] = {"",           "a text: put the value into quotes",
                                        "an integer", "true or false",
                                        "an object",  "a list"};
    if (!has_type(at.value, field->type)) {
        return kubeflow_wrong(reading, at, types[field->type]);
    }
    if (field->words != NULL) {
        WEIR_TRY(check_words(reading, field, at));
    }
    *(struct kubeflow_place *)((char *)out + field->offset) = at;
    return WEIR_OK;
}

static bool is_plain(const struct kubeflow_reading *reading, const struct kubeflow_field *field,
                     const json_t *value)
{
    const char *text =
        json_is_string(value) ? json_string_value(value) : weir_json_text(value, reading->arena);
    return field->plain != NULL && strcmp(text, field->plain) == 0;
}

static weir_status read_field(struct kubeflow_reading *reading, const struct kubeflow_field *field,
                              struct kubeflow_place at, void *out)
{
    if (!kubeflow_is_there(at) || is_plain(reading, field, at.value)) {
        kubeflow_mark(reading, at);
        return WEIR_OK;
    }
    if (field->way == KUBEFLOW_IS_REFUSED) {
        return kubeflow_refuse(reading, at, "%s", field->say);
    }
    if (field->way == KUBEFLOW_IS_REMARKED) {
        kubeflow_remark(reading, at, "%s", field->say);
        return WEIR_OK;
    }
    return take(reading, field, at, out);
}

/* Is each member one of the fields? */
static weir_status check_names(struct kubeflow_reading *reading, struct kubeflow_place at,
                               const struct kubeflow_field *fields, size_t n_fields)
{
    const char *name;
    struct kubeflow_place member;
    for (void *it = NULL; kubeflow_next(reading, at, &it, &name, &member);) {
        struct weir_nearest nearest = {0};
        bool is_known = false;
        for (size_t i = 0; i < n_fields && !is_known; i++) {
            is_known = strcmp(name, fields[i].name) == 0;
            weir_nearest_see(&nearest, name, strlen(name), fields[i].name);
        }
        if (!is_known) {
            return weir_error_set(
                reading->err, WEIR_ERR_INVALID, "%s: there is no such field%s%s%s", member.path,
                nearest.name != NULL ? "; did you mean " : "",
                nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
        }
    }
    return WEIR_OK;
}

weir_status kubeflow_fields(struct kubeflow_reading *reading, struct kubeflow_place at,
                            const struct kubeflow_field *fields, size_t n_fields, void *out)
{
    if (!kubeflow_is_there(at)) {
        kubeflow_mark(reading, at);
        return WEIR_OK;
    }
    if (!json_is_object(at.value)) {
        return kubeflow_wrong(reading, at, "an object");
    }
    WEIR_TRY(check_names(reading, at, fields, n_fields));
    for (size_t i = 0; i < n_fields; i++) {
        struct kubeflow_place member = kubeflow_member(reading, at, fields[i].name);
        if (member.value != NULL) {
            WEIR_TRY(read_field(reading, &fields[i], member, out));
        }
    }
    if (json_object_size(at.value) == 0) {
        kubeflow_mark(reading, at);
    }
    return weir_arena_check(reading->arena, "document", reading->err);
}

/* ---- was all read? -------------------------------------------------------------------------------- */

weir_status kubeflow_check_read(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    const char *name;
    struct kubeflow_place inner;
    if (json_object_get(reading->marks, at.path) != NULL) {
        return WEIR_OK;
    }
    if (json_object_size(at.value) == 0 && json_array_size(at.value) == 0) {
        return kubeflow_refuse(reading, at, "is not taken over, and would be left out: remove it");
    }
    for (void *it = NULL;
         json_is_object(at.value) && kubeflow_next(reading, at, &it, &name, &inner);) {
        WEIR_TRY(kubeflow_check_read(reading, inner));
    }
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        WEIR_TRY(kubeflow_check_read(reading, kubeflow_item(reading, at, i)));
    }
    return weir_arena_check(reading->arena, "document", reading->err);
}
