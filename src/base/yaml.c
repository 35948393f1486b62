#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define YAML_MAX_DEPTH 64
#define YAML_MAX_BYTES ((size_t)1 << 20)

struct yaml_reader {
    yaml_parser_t parser;
    yaml_event_t event; /**< The current one; owned until the next is read. */
    const char *what;
    struct weir_error *err;
};

static weir_status fail(struct yaml_reader *reader, const char *why)
{
    return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s: line %zu, column %zu: %s",
                          reader->what, reader->event.start_mark.line + 1,
                          reader->event.start_mark.column + 1, why);
}

static weir_status next_event(struct yaml_reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event) == 0) {
        const char *problem = reader->parser.problem != NULL ? reader->parser.problem : "not YAML";
        bool is_odd = strstr(problem, "cannot start any token") != NULL;
        return weir_error_set(
            reader->err, WEIR_ERR_INVALID, "%s: line %zu, column %zu: %s%s", reader->what,
            reader->parser.problem_mark.line + 1, reader->parser.problem_mark.column + 1, problem,
            is_odd ? ": indent with blanks and not with a tab; a text that begins "
                     "with @, ` or % stands in quotes"
                   : "");
    }
    return WEIR_OK;
}

static bool text_in(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* YAML 1.2 core schema, section 10.3.2: what an unquoted scalar means. */
static json_t *plain_scalar(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    if (text_in(text, nulls)) {
        return json_null();
    }
    if (text_in(text, trues) || text_in(text, falses)) {
        return json_boolean(text_in(text, trues));
    }
    if (strchr("+-.0123456789", text[0]) == NULL) {
        return json_string(text);
    }
    char *end;
    errno = 0;
    bool is_hex = strncmp(text, "0x", 2) == 0;
    long long integer = strtoll(text, &end, is_hex ? 16 : 10);
    if (*end == '\0' && end != text && errno == 0) {
        return json_integer(integer);
    }
    if (strspn(text, "+-.0123456789eE") == strlen(text)) {
        double number = strtod(text, &end);
        if (*end == '\0' && end != text && isfinite(number)) {
            return json_real(number);
        }
    }
    return json_string(text);
}

static weir_status read_scalar(struct yaml_reader *reader, json_t **out)
{
    const char *text = (const char *)reader->event.data.scalar.value;
    if (strlen(text) != reader->event.data.scalar.length) {
        return fail(reader, "a NUL character inside a text");
    }
    if (reader->event.data.scalar.anchor != NULL) {
        return fail(reader, "anchors are not supported: write the value out");
    }
    if (reader->event.data.scalar.tag != NULL) {
        return fail(reader, "tags (!…) are not supported");
    }
    bool is_plain = reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    json_t *value = is_plain ? plain_scalar(text) : json_string(text);
    if (value == NULL) {
        return fail(reader, "text is not UTF-8");
    }
    *out = value;
    return WEIR_OK;
}

static weir_status read_value(struct yaml_reader *reader, int depth, json_t **out);

static weir_status read_sequence(struct yaml_reader *reader, int depth, json_t *array)
{
    for (;;) {
        WEIR_TRY(next_event(reader));
        if (reader->event.type == YAML_SEQUENCE_END_EVENT) {
            return WEIR_OK;
        }
        json_t *item;
        WEIR_TRY(read_value(reader, depth + 1, &item));
        if (json_array_append_new(array, item) != 0) {
            return weir_error_set(reader->err, WEIR_ERR_NOMEM, "%s: out of memory", reader->what);
        }
    }
}

static weir_status read_mapping(struct yaml_reader *reader, int depth, json_t *object)
{
    for (;;) {
        WEIR_TRY(next_event(reader));
        if (reader->event.type == YAML_MAPPING_END_EVENT) {
            return WEIR_OK;
        }
        if (reader->event.type != YAML_SCALAR_EVENT) {
            return fail(reader, "a key must be a text");
        }
        const char *text = (const char *)reader->event.data.scalar.value;
        if (strlen(text) != reader->event.data.scalar.length) {
            return fail(reader, "a NUL character inside a key");
        }
        if (json_object_get(object, text) != NULL) {
            return fail(reader, "the key stands twice in one mapping");
        }
        char *key = strdup(text);
        if (key == NULL) {
            return weir_error_set(reader->err, WEIR_ERR_NOMEM, "%s: out of memory", reader->what);
        }
        json_t *value = NULL;
        weir_status status = next_event(reader);
        if (status == WEIR_OK) {
            status = read_value(reader, depth + 1, &value);
        }
        if (status == WEIR_OK && json_object_set_new(object, key, value) != 0) {
            status = fail(reader, "the key is not UTF-8");
        }
        free(key);
        WEIR_TRY(status);
    }
}

/* The value whose first event is the current one. */
static weir_status read_value(struct yaml_reader *reader, int depth, json_t **out)
{
    if (depth > YAML_MAX_DEPTH) {
        return fail(reader, "nested too deeply");
    }
    json_t *value = NULL;
    weir_status status;
    switch (reader->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, out);
    case YAML_SEQUENCE_START_EVENT:
        value = json_array();
        status = read_sequence(reader, depth, value);
        break;
    case YAML_MAPPING_START_EVENT:
        value = json_object();
        status = read_mapping(reader, depth, value);
        break;
    case YAML_ALIAS_EVENT:
        return fail(reader, "aliases (*…) are not supported: write the value out");
    default:
        return fail(reader, "expected a value");
    }
    if (status != WEIR_OK) {
        json_decref(value);
        return status;
    }
    *out = value;
    return WEIR_OK;
}

static weir_status read_documents(struct yaml_reader *reader, json_t *documents)
{
    WEIR_TRY(next_event(reader)); /* stream start */
    for (;;) {
        WEIR_TRY(next_event(reader));
        if (reader->event.type == YAML_STREAM_END_EVENT) {
            return WEIR_OK;
        }
        WEIR_TRY(next_event(reader)); /* behind document start */
        json_t *value;
        WEIR_TRY(read_value(reader, 0, &value));
        if (json_array_append_new(documents, value) != 0) {
            return weir_error_set(reader->err, WEIR_ERR_NOMEM, "%s: out of memory", reader->what);
        }
        WEIR_TRY(next_event(reader)); /* document end */
    }
}

weir_status weir_yaml_parse(const char *text, size_t len, const char *what, bool multi,
                            json_t **out, struct weir_error *err)
{
    if (len > YAML_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %zu bytes; at most %zu are read", what, len,
                              YAML_MAX_BYTES);
    }
    struct yaml_reader reader = {.what = what, .err = err};
    if (yaml_parser_initialize(&reader.parser) == 0) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: out of memory", what);
    }
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
    json_t *documents = json_array();
    weir_status status = read_documents(&reader, documents);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (status == WEIR_OK && !multi && json_array_size(documents) != 1) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s: expected one document, found %zu", what,
                                json_array_size(documents));
    }
    if (status == WEIR_OK) {
        *out = multi ? json_incref(documents) : json_incref(json_array_get(documents, 0));
    }
    json_decref(documents);
    return status;
}
