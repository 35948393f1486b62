#include "base/json.h"

#include "base/clock.h"
#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define JSON_MAX_DEPTH 64

static int depth_of(const json_t *value, int limit)
{
    int deepest = 0;
    if (limit <= 0) {
        return 1;
    }
    if (json_is_object(value)) {
        for (void *it = json_object_iter((json_t *)value); it != NULL;
             it = json_object_iter_next((json_t *)value, it)) {
            int depth = depth_of(json_object_iter_value(it), limit - 1);
            deepest = WEIR_MAX(deepest, depth);
        }
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            int depth = depth_of(json_array_get(value, i), limit - 1);
            deepest = WEIR_MAX(deepest, depth);
        }
    }
    return deepest + 1;
}

weir_status weir_json_parse(const char *text, size_t len, const char *what, json_t **out,
                            struct weir_error *err)
{
    json_error_t reason;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &reason);
    if (value == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: line %d, column %d: %s", what,
                              reason.line, reason.column, reason.text);
    }
    if (depth_of(value, JSON_MAX_DEPTH + 1) > JSON_MAX_DEPTH) {
        json_decref(value);
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: nested deeper than %d levels", what,
                              JSON_MAX_DEPTH);
    }
    *out = value;
    return WEIR_OK;
}

size_t weir_json_count(const char *text, size_t len)
{
    size_t n = 1;
    bool is_in_string = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"') {
            is_in_string = !is_in_string;
        } else if (is_in_string) {
            i += text[i] == '\\'; /* what is escaped ends no string */
        } else {
            n += text[i] == ',' || text[i] == ':' || text[i] == '[' || text[i] == '{';
        }
    }
    return n;
}

weir_status weir_json_load(const char *path, size_t max_bytes, json_t **out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, max_bytes + ((size_t)64 << 10));
    char *text;
    size_t len;
    WEIR_TRY(weir_file_read(path, max_bytes, &arena, &text, &len, err));
    return weir_json_parse(text, len, path, out, err);
}

char *weir_json_text(const json_t *value, struct weir_arena *arena)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) {
        (void)fprintf(stderr, "weir: out of memory while writing JSON\n");
        abort();
    }
    char *copy = weir_arena_strdup(arena, text);
    free(text);
    return copy;
}

json_t *weir_json_string(const char *text, const char *otherwise)
{
    json_t *json = text != NULL ? json_string(text) : json_null();
    return json != NULL ? json : json_string(otherwise);
}

json_t *weir_json_milli(int64_t milli)
{
    return milli % 1000 == 0 ? json_integer((json_int_t)(milli / 1000))
                             : json_real((double)milli / 1000);
}

json_t *weir_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *weir_json_time(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms == 0) {
        return json_null();
    }
    weir_time_format(time_ms, text);
    return json_string(text);
}

void weir_json_auto_free(json_t **value)
{
    json_decref(*value);
}

bool weir_text_is_utf8(const char *text)
{
    json_t *value = json_string(text);
    bool is_utf8 = value != NULL;
    json_decref(value);
    return is_utf8;
}
