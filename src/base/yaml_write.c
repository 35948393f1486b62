#include "base/yaml_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

bool weir_yaml_is_plain(const char *text)
{
    static const char *const taken[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(taken); i++) {
        if (strcasecmp(text, taken[i]) == 0) {
            return false;
        }
    }
    size_t len = strlen(text);
    bool begins_well = len > 0 && (strchr("/_", text[0]) != NULL ||
                                   ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z'));
    return begins_well && text[len - 1] != ' ' &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./@+- ") ==
               len;
}

/* Takes the event, which a step before may have failed to make. */
static bool emit(yaml_emitter_t *emitter, yaml_event_t *event, int is_made)
{
    return is_made != 0 && yaml_emitter_emit(emitter, event) != 0;
}

static bool write_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                             (int)strlen(text), 1, 1, style));
}

static bool write_text(yaml_emitter_t *emitter, const char *text)
{
    return write_scalar(emitter, text,
                        weir_yaml_is_plain(text) ? YAML_PLAIN_SCALAR_STYLE
                                                 : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* A number, true, false, or null: as JSON has them, which is YAML. A fraction has as few digits as say which it is. */
static bool write_word(yaml_emitter_t *emitter, const json_t *value)
{
    char *text = NULL;
    for (size_t digits = 15; digits <= 17; digits++) {
        free(text);
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (text == NULL || !json_is_real(value) || strtod(text, NULL) == json_real_value(value)) {
            break;
        }
    }
    bool is_written = text != NULL && write_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
    free(text);
    return is_written;
}

static bool write_value(yaml_emitter_t *emitter, const json_t *value);

static bool write_array(yaml_emitter_t *emitter, const json_t *array)
{
    yaml_event_t event;
    json_t *item;
    size_t i;
    bool is_written = emit(
        emitter, &event,
        yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
    json_array_foreach(array, i, item)
    {
        is_written = is_written && write_value(emitter, item);
    }
    return is_written && emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static bool write_object(yaml_emitter_t *emitter, const json_t *object)
{
    yaml_event_t event;
    const char *key;
    json_t *member;
    bool is_written =
        emit(emitter, &event,
             yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
    json_object_foreach((json_t *)object, key, member)
    {
        is_written = is_written && write_text(emitter, key) && write_value(emitter, member);
    }
    return is_written && emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static bool write_value(yaml_emitter_t *emitter, const json_t *value)
{
    return json_is_object(value)   ? write_object(emitter, value)
           : json_is_array(value)  ? write_array(emitter, value)
           : json_is_string(value) ? write_text(emitter, json_string_value(value))
                                   : write_word(emitter, value);
}

static bool write_document(yaml_emitter_t *emitter, const json_t *value, bool is_one_of_many)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_document_start_event_initialize(&event, NULL, NULL, NULL, !is_one_of_many)) &&
           write_value(emitter, value) &&
           emit(emitter, &event, yaml_document_end_event_initialize(&event, 1));
}

static bool write_stream(yaml_emitter_t *emitter, const json_t *value, bool multi)
{
    yaml_event_t event;
    size_t n = multi ? json_array_size(value) : 1;
    bool is_written =
        emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    for (size_t i = 0; i < n && is_written; i++) {
        is_written = write_document(emitter, multi ? json_array_get(value, i) : value, multi);
    }
    return is_written && emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

static int take(void *buf, unsigned char *bytes, size_t len)
{
    return weir_buf_append(buf, bytes, len) == WEIR_OK;
}

weir_status weir_yaml_write(const json_t *value, bool multi, struct weir_buf *out)
{
    yaml_emitter_t emitter;
    if (yaml_emitter_initialize(&emitter) == 0) {
        return WEIR_ERR_NOMEM;
    }
    yaml_emitter_set_output(&emitter, take, out);
    yaml_emitter_set_width(&emitter, -1);
    yaml_emitter_set_unicode(&emitter, 1);
    bool is_written = write_stream(&emitter, value, multi);
    yaml_emitter_delete(&emitter);
    return is_written ? WEIR_OK : out->status != WEIR_OK ? out->status : WEIR_ERR_NOMEM;
}
