#include "base/record.h"

#include "base/secret.h"

#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What jansson takes for one value: header, slot in its parent, share of the allocator. */
#define JSON_VALUE_BYTES 128

const struct weir_field *weir_resource_field(const struct weir_resource *resource, const char *name)
{
    for (size_t i = 0; i < resource->n_fields; i++) {
        if (strcmp(resource->fields[i].name, name) == 0) {
            return &resource->fields[i];
        }
    }
    return NULL;
}

const struct weir_field *weir_resource_key(const struct weir_resource *resource)
{
    for (size_t i = 0; i < resource->n_fields; i++) {
        if (resource->fields[i].flags & WEIR_FIELD_KEY) {
            return &resource->fields[i];
        }
    }
    return NULL;
}

bool weir_name_is_valid(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > WEIR_FIELD_NAME_MAX_BYTES || strchr("._-", text[0]) != NULL) {
        return false;
    }
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

bool weir_model_name_is_valid(const char *text)
{
    size_t len = strlen(text);
    bool is_good = len > 0 && len <= WEIR_MODEL_NAME_MAX_BYTES && strcmp(text, ".") != 0 &&
                   strcmp(text, "..") != 0 && weir_text_is_utf8(text);
    for (const unsigned char *c = (const unsigned char *)text; is_good && *c != '\0'; c++) {
        is_good = *c >= 0x20 && *c != 0x7f && *c != '/' && *c != ':';
    }
    return is_good;
}

size_t weir_field_max_bytes(const struct weir_field *field)
{
    if (field->type != WEIR_FIELD_TYPE_TEXT && field->type != WEIR_FIELD_TYPE_JSON) {
        return 0;
    }
    if (field->max_bytes != 0) {
        return field->max_bytes;
    }
    if (field->type == WEIR_FIELD_TYPE_JSON) {
        return WEIR_FIELD_JSON_MAX_BYTES;
    }
    return field->flags & WEIR_FIELD_NAME    ? WEIR_FIELD_NAME_MAX_BYTES
           : field->flags & WEIR_FIELD_MODEL ? WEIR_MODEL_NAME_MAX_BYTES
                                             : WEIR_FIELD_TEXT_MAX_BYTES;
}

static weir_status check_size(const struct weir_field *field, size_t len, struct weir_error *err)
{
    size_t max_bytes = weir_field_max_bytes(field);
    return len <= max_bytes
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "$.%s: %zu bytes; at most %zu are allowed",
                                field->name, len, max_bytes);
}

static const char *json_type_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}

static weir_status wrong_type(const struct weir_field *field, const char *expected,
                              const json_t *value, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected %s, got %s", field->name, expected,
                          json_type_text(value));
}

static weir_status read_text(const struct weir_field *field, const json_t *value,
                             struct weir_arena *arena, char **out, struct weir_error *err)
{
    if (json_is_null(value)) {
        *out = NULL;
        return WEIR_OK;
    }
    if (!json_is_string(value)) {
        return wrong_type(field, "string", value, err);
    }
    const char *text = json_string_value(value);
    if (strlen(text) != json_string_length(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: a NUL character inside", field->name);
    }
    if ((field->flags & WEIR_FIELD_NAME) && !weir_name_is_valid(text)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.%s: \"%.80s\" is not a name (1 to 63 of a-z 0-9 . _ -, first a "
                              "letter or digit)",
                              field->name, text);
    }
    if ((field->flags & WEIR_FIELD_MODEL) && !weir_model_name_is_valid(text)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.%s: \"%.80s\" is not the name of a model (no \"/\", no \":\", at "
                              "most %d bytes)",
                              field->name, text, WEIR_MODEL_NAME_MAX_BYTES);
    }
    WEIR_TRY(check_size(field, json_string_length(value), err));
    *out = weir_arena_strdup(arena, text);
    return weir_arena_check(arena, field->name, err);
}

static weir_status read_json(const struct weir_field *field, const json_t *value,
                             struct weir_arena *arena, char **out, struct weir_error *err)
{
    if (json_is_null(value)) {
        *out = NULL;
        return WEIR_OK;
    }
    char *text = weir_json_text(value, arena);
    WEIR_TRY(check_size(field, strlen(text), err));
    *out = text;
    return weir_arena_check(arena, field->name, err);
}

static weir_status read_time(const struct weir_field *field, const json_t *value, int64_t *out,
                             struct weir_error *err)
{
    if (json_is_null(value)) {
        *out = 0;
        return WEIR_OK;
    }
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return WEIR_OK;
    }
    if (!json_is_string(value) || weir_time_parse(json_string_value(value), out) != WEIR_OK) {
        return wrong_type(field, "a time like \"2026-01-31T10:00:00Z\"", value, err);
    }
    return WEIR_OK;
}

/* Where records of a field lie, and how many there are. */
static void set_records(const struct weir_field *field, void *record, void *items, size_t n)
{
    memcpy(weir_field_ptr(field, record), &items, sizeof items);
    if (field->type == WEIR_FIELD_TYPE_RECORDS) {
        memcpy((char *)record + field->n_offset, &n, sizeof n);
    }
}

static const char *records_of(const struct weir_field *field, const void *record, size_t *out_n)
{
    const char *items;
    memcpy(&items, weir_field_cptr(field, record), sizeof items);
    *out_n = items != NULL;
    if (field->type == WEIR_FIELD_TYPE_RECORDS) {
        memcpy(out_n, (const char *)record + field->n_offset, sizeof *out_n);
    }
    return items;
}

/* What is wrong in the i-th record of the field: where, from the record that has the field. */
static weir_status wrong_inside(const struct weir_field *field, size_t i, weir_status status,
                                const struct weir_error *why, struct weir_error *err)
{
    bool has_path = why->message[0] == '$';
    char place[32] = "";
    if (field->type == WEIR_FIELD_TYPE_RECORDS) {
        (void)snprintf(place, sizeof place, "[%zu]", i);
    }
    return weir_error_set(err, status, "$.%s%s%s%s", field->name, place, has_path ? "" : ": ",
                          why->message + has_path);
}

static weir_status read_records(const struct weir_field *field, const json_t *value,
                                enum weir_record_mode mode, struct weir_arena *arena, void *record,
                                struct weir_error *err)
{
    bool is_list = field->type == WEIR_FIELD_TYPE_RECORDS;
    size_t n = is_list ? json_array_size(value) : 1;
    struct weir_error why = {0};
    if (json_is_null(value)) {
        set_records(field, record, NULL, 0);
        return WEIR_OK;
    }
    if (is_list && !json_is_array(value)) {
        return wrong_type(field, "list", value, err);
    }
    char *items = weir_arena_calloc(arena, n + 1, field->of->size);
    for (size_t i = 0; i < n; i++) {
        if (field->of->unknown != NULL) {
            memcpy(items + i * field->of->size, field->of->unknown, field->of->size);
        }
        weir_status status = weir_record_from_json(
            field->of, is_list ? json_array_get(value, i) : value,
            mode == WEIR_RECORD_TRUSTED ? WEIR_RECORD_TRUSTED : WEIR_RECORD_REPORT, arena,
            items + i * field->of->size, &why);
        if (status != WEIR_OK) {
            return wrong_inside(field, i, status, &why, err);
        }
    }
    set_records(field, record, items, n);
    return weir_arena_check(arena, field->name, err);
}

static weir_status read_field(const struct weir_field *field, const json_t *value,
                              enum weir_record_mode mode, struct weir_arena *arena, void *record,
                              struct weir_error *err)
{
    void *member = weir_field_ptr(field, record);
    switch (field->type) {
    case WEIR_FIELD_TYPE_TEXT:
        return read_text(field, value, arena, member, err);
    case WEIR_FIELD_TYPE_INT:
        if (!json_is_integer(value)) {
            return wrong_type(field, "integer", value, err);
        }
        *(int64_t *)member = json_integer_value(value);
        return WEIR_OK;
    case WEIR_FIELD_TYPE_F64:
        if (!json_is_number(value) && !json_is_null(value)) {
            return wrong_type(field, "number", value, err);
        }
        *(double *)member = json_is_null(value) ? NAN : json_number_value(value);
        return WEIR_OK;
    case WEIR_FIELD_TYPE_BOOL:
        if (!json_is_boolean(value)) {
            return wrong_type(field, "boolean", value, err);
        }
        *(bool *)member = json_is_true(value);
        return WEIR_OK;
    case WEIR_FIELD_TYPE_TIME:
        return read_time(field, value, member, err);
    case WEIR_FIELD_TYPE_JSON:
        return read_json(field, value, arena, member, err);
    case WEIR_FIELD_TYPE_RECORD:
    case WEIR_FIELD_TYPE_RECORDS:
        return read_records(field, value, mode, arena, record, err);
    }
    return WEIR_ERR_INTERNAL;
}

static weir_status check_allowed(const struct weir_resource *resource,
                                 const struct weir_field *field, enum weir_record_mode mode,
                                 struct weir_error *err)
{
    if (mode == WEIR_RECORD_CREATE && (field->flags & WEIR_FIELD_READ_ONLY)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: read-only, made by the server",
                              field->name);
    }
    if (mode == WEIR_RECORD_UPDATE && !(field->flags & WEIR_FIELD_MUTABLE)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: cannot be changed once the %s exists",
                              field->name, resource->name);
    }
    return WEIR_OK;
}

static weir_status check_required(const struct weir_resource *resource, const json_t *object,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        const json_t *value = json_object_get(object, field->name);
        bool is_missing =
            value == NULL || (json_is_null(value) && field->type != WEIR_FIELD_TYPE_F64); /* NaN */
        if ((field->flags & WEIR_FIELD_REQUIRED) && is_missing) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: missing (%s)", field->name,
                                  field->doc);
        }
    }
    return WEIR_OK;
}

weir_status weir_record_from_json(const struct weir_resource *resource, const json_t *object,
                                  enum weir_record_mode mode, struct weir_arena *arena,
                                  void *record, struct weir_error *err)
{
    if (!json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$: expected an object (%s)", resource->name);
    }
    for (void *it = json_object_iter((json_t *)object); it != NULL;
         it = json_object_iter_next((json_t *)object, it)) {
        const char *key = json_object_iter_key(it);
        const struct weir_field *field = weir_resource_field(resource, key);
        if (field == NULL && mode == WEIR_RECORD_TRUSTED) {
            continue;
        }
        if (field == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.%.80s: unknown field of a %s", key,
                                  resource->name);
        }
        WEIR_TRY(check_allowed(resource, field, mode, err));
        WEIR_TRY(read_field(field, json_object_iter_value(it), mode, arena, record, err));
    }
    bool is_whole = mode == WEIR_RECORD_CREATE || mode == WEIR_RECORD_REPORT;
    return is_whole ? check_required(resource, object, err) : WEIR_OK;
}

static _Noreturn void no_memory(void)
{
    (void)fprintf(stderr, "weir: out of memory while writing JSON\n");
    abort();
}

static json_t *records_to_json(const struct weir_field *field, const void *record)
{
    size_t n;
    const char *items = records_of(field, record, &n);
    if (items == NULL) {
        return json_null();
    }
    if (field->type == WEIR_FIELD_TYPE_RECORD) {
        return weir_record_to_json(field->of, items);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, weir_record_to_json(field->of, items + i * field->of->size));
    }
    return list;
}

static json_t *field_to_json(const struct weir_field *field, const void *record)
{
    const void *member = weir_field_cptr(field, record);
    switch (field->type) {
    case WEIR_FIELD_TYPE_TEXT:
        return weir_json_string(*(char *const *)member, "(not UTF-8)");
    case WEIR_FIELD_TYPE_INT:
        return json_integer(*(const int64_t *)member);
    case WEIR_FIELD_TYPE_F64:
        return weir_json_real(*(const double *)member);
    case WEIR_FIELD_TYPE_BOOL:
        return json_boolean(*(const bool *)member);
    case WEIR_FIELD_TYPE_TIME:
        return weir_json_time(*(const int64_t *)member);
    case WEIR_FIELD_TYPE_JSON: {
        const char *text = *(char *const *)member;
        json_t *value = text == NULL ? NULL : json_loads(text, JSON_DECODE_ANY, NULL);
        weir_secrets_mask(value, field->secrets);
        return value != NULL ? value : json_null();
    }
    case WEIR_FIELD_TYPE_RECORD:
    case WEIR_FIELD_TYPE_RECORDS:
        return records_to_json(field, record);
    }
    return json_null();
}

size_t weir_record_weight(const struct weir_resource *resource, const void *record)
{
    size_t weight = resource->n_fields * JSON_VALUE_BYTES;
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field->of != NULL) {
            size_t n;
            const char *items = records_of(field, record, &n);
            for (size_t k = 0; k < n; k++) {
                weight += weir_record_weight(field->of, items + k * field->of->size);
            }
        }
        if (field->type != WEIR_FIELD_TYPE_TEXT && field->type != WEIR_FIELD_TYPE_JSON) {
            continue;
        }
        const char *text = *(char *const *)weir_field_cptr(field, record);
        size_t len = text != NULL ? strlen(text) : 0;
        weight += 2 * len;
        if (field->type == WEIR_FIELD_TYPE_JSON && len > 0) {
            weight += weir_json_count(text, len) * JSON_VALUE_BYTES;
        }
    }
    return weight;
}

json_t *weir_record_to_json(const struct weir_resource *resource, const void *record)
{
    json_t *object = json_object();
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        if (field->flags & WEIR_FIELD_SECRET) {
            continue;
        }
        if (json_object_set_new(object, field->name, field_to_json(field, record)) != 0) {
            no_memory();
        }
    }
    return object;
}

char *weir_record_text(const struct weir_resource *resource, const void *record,
                       struct weir_arena *arena)
{
    json_t *json = weir_record_to_json(resource, record);
    char *text = weir_json_text(json, arena);
    json_decref(json);
    return text;
}

#define TIME_MAX_MS ((int64_t)253402300799999) /* the last of year 9999 */

weir_status weir_record_check_times(const struct weir_resource *resource, const void *record,
                                    struct weir_error *err)
{
    for (size_t i = 0; i < resource->n_fields; i++) {
        const struct weir_field *field = &resource->fields[i];
        size_t n = 0;
        const char *items = field->of != NULL ? records_of(field, record, &n) : NULL;
        for (size_t k = 0; k < n; k++) {
            struct weir_error why = {0};
            weir_status status =
                weir_record_check_times(field->of, items + k * field->of->size, &why);
            if (status != WEIR_OK) {
                return wrong_inside(field, k, status, &why, err);
            }
        }
        if (field->type != WEIR_FIELD_TYPE_INT || strcmp(field->unit, "ms") != 0) {
            continue;
        }
        int64_t time_ms = *(const int64_t *)weir_field_cptr(field, record);
        if (time_ms < 0 || time_ms > TIME_MAX_MS) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.%s: not a time from 1970 to before year 10000", field->name);
        }
    }
    return WEIR_OK;
}

char *weir_field_text(const struct weir_field *field, const void *record)
{
    json_t *json = records_to_json(field, record);
    char *text = json_is_null(json) ? NULL : json_dumps(json, JSON_COMPACT);
    if (text == NULL && !json_is_null(json)) {
        no_memory();
    }
    json_decref(json);
    return text;
}

void weir_field_of_text(const struct weir_field *field, const char *text, struct weir_arena *arena,
                        void *record)
{
    json_t *json = text != NULL ? json_loads(text, 0, NULL) : json_null();
    if (json == NULL ||
        read_records(field, json, WEIR_RECORD_TRUSTED, arena, record, NULL) != WEIR_OK) {
        set_records(field, record, NULL, 0);
    }
    json_decref(json);
}
