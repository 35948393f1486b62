#include "api/ion/passage.h"

#include "api/core/args.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX     12
#define NEAREST_MAX    5
#define NAME_MAX_BYTES 256
#define PICTURE_BYTES  ((json_int_t)1 << 18)
#define AT             "$.passage"

static bool is_text(const json_t *object, const char *member, bool is_needed)
{
    const json_t *value = json_object_get(object, member);
    const char *text = json_string_value(value);
    return text != NULL ? api_is_plain(text, NAME_MAX_BYTES)
                        : !is_needed && (value == NULL || json_is_null(value));
}

static bool is_number_or_null(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return value == NULL || json_is_null(value) || json_is_number(value);
}

static bool is_frame(const json_t *frame)
{
    static const char *const sides[] = {"x", "y", "w", "h"};
    const json_t *box = json_object_get(frame, "box"), *bytes = json_object_get(frame, "bytes");
    json_int_t n = json_integer_value(bytes);
    bool is_good = is_text(frame, "time_ms", true) && is_number_or_null(frame, "score") &&
                   is_text(frame, "person", false) && is_text(frame, "why", false) &&
                   json_is_boolean(json_object_get(frame, "counts")) &&
                   json_is_boolean(json_object_get(frame, "is_best")) && json_is_integer(bytes) &&
                   n >= 0 && n <= PICTURE_BYTES;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sides); i++) {
        is_good = is_good && json_is_number(json_object_get(box, sides[i]));
    }
    return is_good;
}

static bool is_near(const json_t *near)
{
    return is_text(near, "person", true) && json_is_number(json_object_get(near, "score"));
}

static weir_status check_list(const json_t *passage, const char *member, size_t max,
                              bool (*is_one)(const json_t *one), struct weir_error *err)
{
    const json_t *list = json_object_get(passage, member), *one;
    size_t i;
    if (list == NULL) {
        return WEIR_OK;
    }
    if (!json_is_array(list) || json_array_size(list) > max) {
        return weir_error_set(err, WEIR_ERR_INVALID, AT ".%s: expected an array of at most %zu",
                              member, max);
    }
    json_array_foreach(list, i, one)
    {
        if (!is_one(one)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  AT ".%s[%zu]: a member is missing, or not of its type", member,
                                  i);
        }
    }
    return WEIR_OK;
}

weir_status api_passage_check(const char *passage, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    json = passage != NULL ? json_loads(passage, 0, NULL) : NULL;
    if (passage == NULL || strcmp(passage, "null") == 0) {
        return WEIR_OK;
    }
    if (!json_is_object(json)) {
        return weir_error_set(err, WEIR_ERR_INVALID, AT ": expected an object");
    }
    WEIR_TRY(check_list(json, "frames", FRAMES_MAX, is_frame, err));
    return check_list(json, "nearest", NEAREST_MAX, is_near, err);
}

static size_t bytes_of(const json_t *frame)
{
    return (size_t)json_integer_value(json_object_get(frame, "bytes"));
}

size_t api_passage_film_bytes(const char *passage)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    json = passage != NULL ? json_loads(passage, 0, NULL) : NULL;
    const json_t *frame;
    size_t i, n = 0;
    json_array_foreach(json_object_get(json, "frames"), i, frame)
    {
        n += bytes_of(frame);
    }
    return n;
}

void api_passage_tell(struct weir_decision *decision, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    json = decision->passage != NULL ? json_loads(decision->passage, 0, NULL) : NULL;
    json_t *frame, *frames = json_object_get(json, "frames");
    size_t i;
    json_array_foreach(frames, i, frame)
    {
        bool is_best = json_is_true(json_object_get(frame, "is_best"));
        bool has_picture =
            is_best ? decision->image != NULL : decision->film_bytes > 0 && bytes_of(frame) > 0;
        json_object_set_new(frame, "has_picture", json_boolean(has_picture));
    }
    if (frames != NULL) {
        decision->passage = weir_json_text(json, arena);
    }
}

weir_status api_passage_find(const struct weir_decision *decision, const char *frame,
                             size_t *out_offset, size_t *out_len, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    json = decision->passage != NULL ? json_loads(decision->passage, 0, NULL) : NULL;
    const json_t *frames = json_object_get(json, "frames"), *one;
    size_t n = json_array_size(frames), at = (size_t)(decision->pack_bytes - decision->film_bytes);
    char *end;
    unsigned long i = strtoul(frame, &end, 10);
    if (*end != '\0' || end == frame || i >= n) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "decision %s has no frame %.20s: it has %zu%s", decision->id, frame,
                              n, n > 0 ? ", from 0 on" : "");
    }
    one = json_array_get(frames, i);
    if (!json_is_true(json_object_get(one, "has_picture"))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "of frame %lu of decision %s no picture is kept", i, decision->id);
    }
    bool is_best = json_is_true(json_object_get(one, "is_best"));
    *out_len = is_best ? at : bytes_of(one);
    for (size_t k = 0; k < i && !is_best; k++) {
        at += bytes_of(json_array_get(frames, k));
    }
    *out_offset = is_best ? 0 : at;
    return WEIR_OK;
}
