#include "api/ion/desk_said.h"

#include "api/core/args.h"
#include "api/ion/desk.h"
#include "base/base64.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

#define SIDE_MAX       16384
#define COORDINATE_MAX 1e6
#define NAME_MAX_BYTES 256
#define WHY_MAX_BYTES  200
#define SAID_MAX_BYTES 512

static weir_status wrong(const char *where, const char *name, const char *expected,
                         struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "%.200s.%s: expected %s", where, name, expected);
}

/* ---- members: each is taken over, if it is what it has to be --------------------------------- */

enum member_type {
    NUMBER,         /**< Finite, within ±COORDINATE_MAX. */
    NUMBER_OR_NULL, /**< null, or not there. */
    LENGTH,         /**< A number above 0. */
    SIDE,           /**< An integer from 1 to SIDE_MAX. */
    COUNT,          /**< An integer from 0 on, or null. */
    NAME_OR_NULL,
    WHY_OR_NULL,
    VERDICT,
    BOOLEAN,
    TIME,
};

struct member {
    const char *name;
    enum member_type type;
};

static bool is_verdict(const char *text)
{
    static const char *const known[] = {"grant", "deny", "unknown"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(known[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_text(const json_t *value, size_t max_bytes)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value) &&
           api_is_plain(json_string_value(value), max_bytes);
}

static bool is_number(const json_t *value)
{
    return json_is_number(value) && isfinite(json_number_value(value)) &&
           fabs(json_number_value(value)) <= COORDINATE_MAX;
}

static bool is_integer(const json_t *value, json_int_t low, json_int_t high)
{
    return json_is_integer(value) && json_integer_value(value) >= low &&
           json_integer_value(value) <= high;
}

/* NULL: it is; else what it has to be. */
static const char *expected_of(enum member_type type, const json_t *value)
{
    int64_t time_ms;
    bool is_null = value == NULL || json_is_null(value);
    switch (type) {
    case NUMBER:
        return is_number(value) ? NULL : "a number";
    case NUMBER_OR_NULL:
        return is_null || is_number(value) ? NULL : "a number, or null";
    case LENGTH:
        return is_number(value) && json_number_value(value) > 0 ? NULL : "a number above 0";
    case SIDE:
        return is_integer(value, 1, SIDE_MAX) ? NULL : "an integer from 1 to 16384";
    case COUNT:
        return is_null || is_integer(value, 0, 1000000) ? NULL : "a count, or null";
    case NAME_OR_NULL:
        return is_null || is_text(value, NAME_MAX_BYTES)
                   ? NULL
                   : "a text of at most 256 bytes without control characters, or null";
    case WHY_OR_NULL:
        return is_null || is_text(value, WHY_MAX_BYTES) ? NULL : "a short text, or null";
    case VERDICT:
        return is_null || (json_is_string(value) && is_verdict(json_string_value(value)))
                   ? NULL
                   : "grant, deny, unknown, or null";
    case BOOLEAN:
        return json_is_boolean(value) ? NULL : "true or false";
    default:
        return json_is_string(value) &&
                       weir_time_parse(json_string_value(value), &time_ms) == WEIR_OK
                   ? NULL
                   : "a time (RFC 3339)";
    }
}

/* From an object into another one; what else it has is left. */
static weir_status take_members(const json_t *given, const char *where,
                                const struct member *members, size_t n, json_t *out,
                                struct weir_error *err)
{
    if (!json_is_object(given)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%.200s: expected an object", where);
    }
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_object_get(given, members[i].name);
        const char *expected = expected_of(members[i].type, value);
        if (expected != NULL) {
            return wrong(where, members[i].name, expected, err);
        }
        json_object_set_new(out, members[i].name,
                            value != NULL ? json_deep_copy(value) : json_null());
    }
    return WEIR_OK;
}

/** How one of a list is taken over; `out` is an object for it. */
typedef weir_status (*take_fn)(const json_t *given, const char *where, json_t *out,
                               struct weir_error *err);

static weir_status take_list(const json_t *given, const char *where, const char *name, size_t max,
                             take_fn take, json_t *out, struct weir_error *err)
{
    size_t i;
    json_t *one;
    const json_t *list = json_object_get(given, name);
    if (!json_is_array(list) || json_array_size(list) > max) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%.200s.%s: expected a list of at most %zu objects", where, name,
                              max);
    }
    json_t *taken = json_array();
    json_object_set_new(out, name, taken);
    json_array_foreach(list, i, one)
    {
        char place[SAID_MAX_BYTES];
        json_t *object = json_object();
        json_array_append_new(taken, object);
        (void)snprintf(place, sizeof place, "%.200s.%s[%zu]", where, name, i);
        WEIR_TRY(take(one, place, object, err));
    }
    return WEIR_OK;
}

/* An object, or null. */
static weir_status take_part(const json_t *given, const char *where, const char *name, take_fn take,
                             json_t *out, struct weir_error *err)
{
    char place[SAID_MAX_BYTES];
    const json_t *part = json_object_get(given, name);
    if (part == NULL || json_is_null(part)) {
        json_object_set_new(out, name, json_null());
        return WEIR_OK;
    }
    json_t *object = json_object();
    json_object_set_new(out, name, object);
    (void)snprintf(place, sizeof place, "%.200s.%s", where, name);
    return take(part, place, object, err);
}

#define TAKE(given, where, members, out, err)                                                      \
    take_members(given, where, members, WEIR_ARRAY_LEN(members), out, err)

static const struct member box_members[] = {
    {"x", NUMBER}, {"y", NUMBER}, {"w", LENGTH}, {"h", LENGTH}};

static weir_status take_box(const json_t *given, const char *where, json_t *out,
                            struct weir_error *err)
{
    return TAKE(given, where, box_members, out, err);
}

/* ---- live ------------------------------------------------------------------------------------ */

static weir_status take_found(const json_t *given, const char *where, json_t *out,
                              struct weir_error *err)
{
    static const struct member members[] = {{"name", NAME_OR_NULL},
                                            {"verdict", VERDICT},
                                            {"score", NUMBER_OR_NULL},
                                            {"barred", BOOLEAN},
                                            {"passage", NAME_OR_NULL}};
    WEIR_TRY(take_box(given, where, out, err));
    return TAKE(given, where, members, out, err);
}

static bool is_jpeg(const json_t *value)
{
    unsigned char bytes[DESK_PICTURE_MAX_BYTES];
    size_t len;
    const char *text = json_string_value(value);
    return text != NULL && strlen(text) < WEIR_BASE64_TEXT_BYTES(DESK_PICTURE_MAX_BYTES) &&
           weir_base64_decode(text, bytes, sizeof bytes, &len) == WEIR_OK && len > 3 &&
           bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

static weir_status take_live(const json_t *given, const char *where, json_t *out,
                             struct weir_error *err)
{
    static const struct member members[] = {{"time_ms", TIME}, {"width", SIDE}, {"height", SIDE}};
    json_t *picture = json_object_get(given, "picture");
    WEIR_TRY(TAKE(given, where, members, out, err));
    WEIR_TRY(take_list(given, where, "boxes", DESK_BOXES_MAX, take_found, out, err));
    if (!is_jpeg(picture)) {
        return wrong(where, "picture", "a JPEG of at most 64 KiB in base64", err);
    }
    json_object_set(out, "picture", picture);
    return WEIR_OK;
}

static weir_status take_whole(take_fn take, const json_t *given, const char *where, json_t **out,
                              struct weir_error *err)
{
    json_t *taken = json_object();
    weir_status status = take(given, where, taken, err);
    if (status != WEIR_OK) {
        json_decref(taken);
        return status;
    }
    *out = taken;
    return WEIR_OK;
}

weir_status desk_said_live(const json_t *given, const char *where, json_t **out,
                           struct weir_error *err)
{
    return take_whole(take_live, given, where, out, err);
}

/* ---- looks ----------------------------------------------------------------------------------- */

static weir_status take_quality(const json_t *given, const char *where, json_t *out,
                                struct weir_error *err)
{
    static const struct member members[] = {
        {"width", NUMBER_OR_NULL}, {"sharpness", NUMBER_OR_NULL}, {"yaw", NUMBER_OR_NULL},
        {"pitch", NUMBER_OR_NULL}, {"roll", NUMBER_OR_NULL},      {"brightness", NUMBER_OR_NULL}};
    return TAKE(given, where, members, out, err);
}

static weir_status take_near(const json_t *given, const char *where, json_t *out,
                             struct weir_error *err)
{
    static const struct member members[] = {{"person", NAME_OR_NULL}, {"score", NUMBER}};
    WEIR_TRY(TAKE(given, where, members, out, err));
    return json_is_string(json_object_get(out, "person")) ? WEIR_OK
                                                          : wrong(where, "person", "a name", err);
}

static weir_status take_looked(const json_t *given, const char *where, json_t *out,
                               struct weir_error *err)
{
    static const struct member members[] = {
        {"faces", COUNT}, {"usable", BOOLEAN}, {"why", WHY_OR_NULL}};
    WEIR_TRY(TAKE(given, where, members, out, err));
    WEIR_TRY(take_part(given, where, "box", take_box, out, err));
    WEIR_TRY(take_part(given, where, "quality", take_quality, out, err));
    return take_list(given, where, "nearest", DESK_NEAREST_MAX, take_near, out, err);
}

static weir_status take_look(const json_t *given, const char *where, json_t *out,
                             struct weir_error *err)
{
    static const struct member members[] = {{"threshold", NUMBER_OR_NULL},
                                            {"confused_from", NUMBER_OR_NULL}};
    WEIR_TRY(TAKE(given, where, members, out, err));
    WEIR_TRY(take_list(given, where, "pictures", SIZE_MAX, take_looked, out, err));
    return take_list(given, where, "nearest", DESK_NEAREST_MAX, take_near, out, err);
}

weir_status desk_said_look(const json_t *given, size_t n, const char *where, json_t **out,
                           struct weir_error *err)
{
    size_t n_given = json_array_size(json_object_get(given, "pictures"));
    return n_given == n ? take_whole(take_look, given, where, out, err)
                        : weir_error_set(err, WEIR_ERR_INVALID,
                                         "%.200s.pictures: expected what was seen in %zu pictures",
                                         where, n);
}
