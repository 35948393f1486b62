#include "sched/io/json_fields.h"

#include <inttypes.h>
#include <string.h>

static const struct json_field *find(const struct json_field *fields, size_t n_fields,
                                     const char *name)
{
    for (size_t i = 0; i < n_fields; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static void store(const struct json_field *field, int64_t value, void *out)
{
    void *member = (char *)out + field->offset;
    switch (field->type) {
    case JSON_FIELD_I32:
        *(int32_t *)member = (int32_t)value;
        break;
    case JSON_FIELD_I64:
        *(int64_t *)member = value;
        break;
    case JSON_FIELD_BOOL:
        *(bool *)member = value != 0;
        break;
    case JSON_FIELD_WORD:
        *(int *)member = (int)value;
        break;
    case JSON_FIELD_TEXT:
        *(const char **)member = NULL;
        break;
    case JSON_FIELD_OTHER:
        break;
    }
}

static weir_status refuse(const char *where, const char *name, const char *expected,
                          struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "%.80s: %.60s: expected %s", where, name,
                          expected);
}

static weir_status read_one(const struct json_field *field, const json_t *value, const char *where,
                            void *out, struct weir_error *err)
{
    switch (field->type) {
    case JSON_FIELD_TEXT:
        if (!json_is_string(value) && (field->is_required || !json_is_null(value))) {
            return refuse(where, field->name, "text", err);
        }
        *(const char **)((char *)out + field->offset) = json_string_value(value);
        return WEIR_OK;
    case JSON_FIELD_I32:
    case JSON_FIELD_I64: {
        json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) ||
            (field->type == JSON_FIELD_I32 && number != (int32_t)number)) {
            return refuse(where, field->name, "an integer", err);
        }
        store(field, number, out);
        return WEIR_OK;
    }
    case JSON_FIELD_BOOL:
        if (!json_is_boolean(value)) {
            return refuse(where, field->name, "true or false", err);
        }
        store(field, json_is_true(value), out);
        return WEIR_OK;
    case JSON_FIELD_WORD:
        for (int i = 0; json_is_string(value) && field->words[i] != NULL; i++) {
            if (strcmp(field->words[i], json_string_value(value)) == 0) {
                store(field, i, out);
                return WEIR_OK;
            }
        }
        return refuse(where, field->name, "one of its words", err);
    case JSON_FIELD_OTHER:
        break;
    }
    return WEIR_OK;
}

weir_status json_fields_read(const struct json_field *fields, size_t n_fields, const json_t *object,
                             const char *where, void *out, struct weir_error *err)
{
    if (!json_is_object(object)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.80s: expected an object", where);
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (find(fields, n_fields, key) == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%.80s: unknown member \"%.60s\"", where,
                                  key);
        }
    }
    for (size_t i = 0; i < n_fields; i++) {
        value = json_object_get(object, fields[i].name);
        if (value == NULL && fields[i].is_required) {
            return refuse(where, fields[i].name, "to be there", err);
        }
        store(&fields[i], fields[i].fallback, out);
        if (value != NULL) {
            WEIR_TRY(read_one(&fields[i], value, where, out, err));
        }
    }
    return WEIR_OK;
}
