#include "endpoint/stage/count.h"

#include "endpoint/stage.h"

#include <string.h>

#define N_MAX          256 /* As many things are followed. */
#define NAME_MAX_BYTES 63  /* As a camera's: a decision and a replica's report have room for it. */

static const struct weir_option options[] = {
    WEIR_OPT_JSON(weir_stage_count, name, "name", TEXT, 0, "picture", 0, 0,
                  "What the place is called in decisions and alerts"),
    WEIR_OPT_JSON(weir_stage_count, cameras, "cameras", TEXTS, 0, NULL, 0, 0,
                  "Cameras that see the place; without it each camera has its own"),
    WEIR_OPT_JSON(weir_stage_count, classes, "classes", TEXTS, 0, NULL, 0, 0,
                  "Classes of the detector that count; without it all that it finds"),
    WEIR_OPT_JSON(weir_stage_count, zone, "zone", JSON, 0, NULL, 0, 0,
                  "Corners of the place, [[x, y], …], as shares of the picture's width and height; "
                  "without it the whole picture"),
    WEIR_OPT_JSON(weir_stage_count, line, "line", JSON, 0, NULL, 0, 0,
                  "Two points, [[x, y], [x, y]]: what goes over the line between them is said, to "
                  "the right or to the left as one looks from the first to the second"),
    {.name = "by",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct weir_stage_count, by),
     .fallback = "foot",
     .words = WEIR_WORDS("foot", "centre"),
     .doc = "foot: a thing is where it stands, the middle of its box's lower edge; centre: where "
            "the middle of its box is"},
    WEIR_OPT_JSON(weir_stage_count, over, "over", INT, 0, "-1", -1, N_MAX,
                  "More than so many in the place are said; -1: no number is too high"),
    WEIR_OPT_JSON(weir_stage_count, under, "under", INT, 0, "-1", -1, N_MAX,
                  "Fewer than so many are said; -1: no number is too low"),
    WEIR_OPT_JSON(weir_stage_count, for_s, "for-s", F64, 0, "1", 0, 86400,
                  "For so many seconds the number must be too high, or too low, or well again, "
                  "before it is said"),
    WEIR_OPT_JSON(weir_stage_count, long_s, "long-s", F64, 0, "0", 0, 604800,
                  "What is in the place for longer than so many seconds is said; 0: never"),
    WEIR_OPT_JSON(weir_stage_count, enter_ms, "enter-ms", INT, 0, "300", 0, 60000,
                  "A thing has entered when it has been in for so many milliseconds"),
    WEIR_OPT_JSON(weir_stage_count, leave_ms, "leave-ms", INT, 0, "2000", 0, 600000,
                  "It has left when it has been out, or was not seen, for so many milliseconds"),
};

static const struct weir_stage_facts facts = {
    .takes = WEIR_STAGE_TAKES(TRACK), .gives = WEIR_STAGE_TRACK, .needs_objects = true};

const struct weir_kind weir_stage_count_kind = {
    .name = "count",
    .doc =
        "Things that are followed are counted: how many are in a place, which enter, leave, stay "
        "too long or cross a line. A replica that starts anew counts from nothing: what is in a "
        "place "
        "then enters it once more, and is long in it only after long_s more.",
    WEIR_KIND_OPTIONS(weir_stage_count, options),
    .ops = &facts,
};

bool weir_stage_count_has_zone(const struct weir_stage_count *count)
{
    return count->zone != NULL || count->line == NULL || count->over >= 0 || count->under >= 0 ||
           count->long_s > 0;
}

size_t weir_stage_count_points(const json_t *points, float *out)
{
    const json_t *point;
    size_t i;
    json_array_foreach(points, i, point)
    {
        out[2 * i] = (float)json_number_value(json_array_get(point, 0));
        out[2 * i + 1] = (float)json_number_value(json_array_get(point, 1));
    }
    return json_array_size(points);
}

static bool is_share(const json_t *value)
{
    return json_is_number(value) && json_number_value(value) >= 0 && json_number_value(value) <= 1;
}

static weir_status check_points(const json_t *points, const char *where, const char *key,
                                size_t n_least, size_t n_most, struct weir_error *err)
{
    const json_t *point;
    size_t i, n = json_array_size(points);
    if (points == NULL) {
        return WEIR_OK;
    }
    if (!json_is_array(points) || n < n_least || n > n_most) {
        return n_least == n_most
                   ? weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s.%s: expected two points, [[x, y], [x, y]]", where, key)
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "%s.%s: expected %zu to %zu points, [[x, y], …]", where, key,
                                    n_least, n_most);
    }
    json_array_foreach(points, i, point)
    {
        if (json_array_size(point) != 2 || !is_share(json_array_get(point, 0)) ||
            !is_share(json_array_get(point, 1))) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.%s[%zu]: expected [x, y], shares of the picture's width and "
                                  "height from 0 to 1",
                                  where, key, i);
        }
    }
    return WEIR_OK;
}

static weir_status check_name(const char *name, const char *where, struct weir_error *err)
{
    bool is_plain = name[0] != '\0' && strlen(name) <= NAME_MAX_BYTES;
    for (const char *c = name; is_plain && *c != '\0'; c++) {
        is_plain = (unsigned char)*c >= ' ' && *c != 0x7f;
    }
    return is_plain ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_INVALID,
                                     "%s.name: expected 1 to %d bytes without control characters",
                                     where, NAME_MAX_BYTES);
}

weir_status weir_stage_count_check(const struct weir_stage_count *count, const char *where,
                                   struct weir_error *err)
{
    WEIR_TRY(check_name(count->name, where, err));
    WEIR_TRY(check_points(count->zone, where, "zone", 3, WEIR_STAGE_COUNT_POINTS, err));
    WEIR_TRY(check_points(count->line, where, "line", 2, 2, err));
    return count->over < 0 || count->under <= count->over
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     "%s.under: more than %lld are too many and fewer than %lld too few: "
                     "no number is neither",
                     where, (long long)count->over, (long long)count->under);
}
