#include "endpoint/door.h"

#include "base/record.h"
#include "endpoint/private.h"

#include <stdlib.h>
#include <string.h>

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_door_##name##_kind,
#include "endpoint/doors.def"
#undef WEIR_KIND
};

const struct weir_registry weir_doors = {
    .noun = "door-kind",
    .plural = "door-kinds",
    .doc = "What opens a door when a prediction pipeline lets somebody in.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
    .common = endpoint_common,
    .n_common = ENDPOINT_N_COMMON,
    .planned = WEIR_WORDS("osdp", "wiegand"),
};

/* A door as it is written, before its lists are read. */
struct written {
    struct weir_door door;
    const json_t *cameras, *by, *schedule, *interlock, *hold_open;
};

static const struct weir_option door_options[] = {
    WEIR_OPT_JSON(written, door.name, "name", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, "Its name"),
    WEIR_OPT_JSON(written, cameras, "cameras", TEXTS, 0, NULL, 0, 0,
                  "Whose decisions open it; without: the camera of its name"),
    WEIR_OPT_JSON(written, by, "by", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0, "What reaches it"),
    {.name = "verb",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct written, door.verb),
     .fallback = "open",
     .doc = "What it is told when somebody is let in",
     .words = WEIR_WORDS("open", "hold")},
    WEIR_OPT_JSON(written, door.valid_ms, "valid-ms", INT, 0, "3000", 200, WEIR_DOOR_VALID_MS,
                  "A command that is older is not carried out"),
    WEIR_OPT_JSON(written, door.pulse_ms, "pulse-ms", INT, 0, "5000", 100, 60000,
                  "How long it is open"),
    WEIR_OPT_JSON(written, door.time_zone, "time-zone", TEXT, 0, "UTC", 0, 0,
                  "Zone of the hours, as in Europe/Berlin"),
    WEIR_OPT_JSON(written, schedule, "schedule", JSON, 0, NULL, 0, 0, "Who may, and when"),
    WEIR_OPT_JSON(written, interlock, "interlock", TEXTS, 0, NULL, 0, 0,
                  "Doors of which none may be open when it opens"),
    WEIR_OPT_JSON(written, hold_open, "hold-open", JSON, 0, NULL, 0, 0, "When it stands open"),
};

/* Hours, and the people of a rule. */
struct written_hours {
    const json_t *people, *days;
    char *list, *from, *until;
};

#define HOURS                                                                                      \
    WEIR_OPT_JSON(written_hours, days, "days", TEXTS, 0, NULL, 0, 0, "mon … sun; without: all"),   \
        WEIR_OPT_JSON(written_hours, from, "from", TEXT, 0, "00:00", 0, 0, "HH:MM"),               \
        WEIR_OPT_JSON(written_hours, until, "until", TEXT, 0, "24:00", 0, 0, "HH:MM")

static const struct weir_option hours_options[] = {HOURS};
static const struct weir_option rule_options[] = {
    HOURS,
    WEIR_OPT_JSON(written_hours, people, "people", TEXTS, 0, NULL, 0, 0, "Names of the gallery"),
    {.name = "list",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct written_hours, list),
     .doc = "In place of names",
     .words = WEIR_WORDS("allow")},
};

struct reader {
    struct weir_arena *arena;
    struct weir_error *err;
};

static weir_status read_texts(const struct reader *reader, const json_t *list, const char *where,
                              size_t max, const char ***out, size_t *out_n)
{
    const json_t *item;
    size_t i;
    if (json_array_size(list) > max) {
        return weir_error_set(reader->err, WEIR_ERR_LIMIT, "%s: %zu; at most %zu are allowed",
                              where, json_array_size(list), max);
    }
    *out = WEIR_ARENA_ARRAY(reader->arena, json_array_size(list) + 1, const char *);
    *out_n = json_array_size(list);
    json_array_foreach(list, i, item)
    {
        (*out)[i] = weir_arena_strdup(reader->arena, json_string_value(item));
    }
    return WEIR_OK;
}

/* ---- hours ----------------------------------------------------------------------------------- */

static weir_status read_days(const struct reader *reader, const json_t *days, const char *where,
                             unsigned *out)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    const json_t *item;
    size_t i;
    *out = json_array_size(days) == 0 ? (1u << WEIR_ARRAY_LEN(names)) - 1 : 0;
    json_array_foreach(days, i, item)
    {
        size_t day = 0;
        while (day < WEIR_ARRAY_LEN(names) && strcmp(names[day], json_string_value(item)) != 0) {
            day++;
        }
        if (day == WEIR_ARRAY_LEN(names)) {
            return weir_error_set(
                reader->err, WEIR_ERR_INVALID,
                "%s.days[%zu]: \"%.20s\" is none of mon, tue, wed, thu, fri, sat, "
                "sun",
                where, i, json_string_value(item));
        }
        *out |= 1u << day;
    }
    return WEIR_OK;
}

static weir_status read_minute(const struct reader *reader, const char *text, const char *where,
                               const char *name, int *out)
{
    bool is_time = strlen(text) == 5 && text[2] == ':' && strspn(text, "0123456789") == 2 &&
                   strspn(text + 3, "0123456789") == 2;
    long hour = is_time ? strtol(text, NULL, 10) : 99,
         minute = is_time ? strtol(text + 3, NULL, 10) : 99;
    if (minute > 59 || hour * 60 + minute > WEIR_DOOR_DAY_MINUTES) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.%s: \"%.20s\" is no time of a day: write 00:00 to 24:00, as text",
                              where, name, text);
    }
    *out = (int)(hour * 60 + minute);
    return WEIR_OK;
}

static weir_status read_hours(const struct reader *reader, const struct written_hours *written,
                              const char *where, struct weir_door_hours *out)
{
    WEIR_TRY(read_days(reader, written->days, where, &out->days));
    WEIR_TRY(read_minute(reader, written->from, where, "from", &out->from_min));
    WEIR_TRY(read_minute(reader, written->until, where, "until", &out->until_min));
    if (out->from_min == out->until_min || out->from_min == WEIR_DOOR_DAY_MINUTES) {
        return weir_error_set(
            reader->err, WEIR_ERR_INVALID,
            "%s.until: nothing lies between %s and %s; for a whole day leave both "
            "out",
            where, written->from, written->until);
    }
    return WEIR_OK;
}

static weir_status read_rule(const struct reader *reader, const struct written_hours *written,
                             const char *where, struct weir_door_rule *out)
{
    out->is_of_list = written->list != NULL;
    if (out->is_of_list == (json_array_size(written->people) > 0)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s: it says either \"people\", names of the gallery, or \"list\": "
                              "\"allow\"",
                              where);
    }
    WEIR_TRY(read_texts(reader, written->people, where, WEIR_DOOR_PEOPLE_MAX, &out->people,
                        &out->n_people));
    return read_hours(reader, written, where, &out->hours);
}

/* Both lists of hours: each item is read into written_hours, and then to its place. */
static weir_status check_list(const struct reader *reader, const json_t *list, const char *where)
{
    if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID, "%s: expected an array", where);
    }
    return json_array_size(list) <= WEIR_DOOR_LIST_MAX
               ? WEIR_OK
               : weir_error_set(reader->err, WEIR_ERR_LIMIT, "%s: %zu; at most %d are allowed",
                                where, json_array_size(list), WEIR_DOOR_LIST_MAX);
}

static weir_status read_schedule(const struct reader *reader, const json_t *list, const char *where,
                                 struct weir_door *out)
{
    const json_t *item;
    size_t i;
    WEIR_TRY(check_list(reader, list, where));
    struct weir_door_rule *rules =
        WEIR_ARENA_ARRAY(reader->arena, json_array_size(list) + 1, struct weir_door_rule);
    json_array_foreach(list, i, item)
    {
        struct written_hours written = {0};
        const char *place = weir_arena_printf(reader->arena, "%s[%zu]", where, i);
        WEIR_TRY(weir_options_read(rule_options, WEIR_ARRAY_LEN(rule_options), item, place, NULL,
                                   reader->arena, &written, reader->err));
        WEIR_TRY(read_rule(reader, &written, place, &rules[i]));
    }
    out->rules = rules;
    out->n_rules = json_array_size(list);
    return WEIR_OK;
}

static weir_status read_hold_open(const struct reader *reader, const json_t *list,
                                  const char *where, struct weir_door *out)
{
    const json_t *item;
    size_t i;
    WEIR_TRY(check_list(reader, list, where));
    struct weir_door_hours *hours =
        WEIR_ARENA_ARRAY(reader->arena, json_array_size(list) + 1, struct weir_door_hours);
    json_array_foreach(list, i, item)
    {
        struct written_hours written = {0};
        const char *place = weir_arena_printf(reader->arena, "%s[%zu]", where, i);
        WEIR_TRY(weir_options_read(hours_options, WEIR_ARRAY_LEN(hours_options), item, place, NULL,
                                   reader->arena, &written, reader->err));
        WEIR_TRY(read_hours(reader, &written, place, &hours[i]));
    }
    out->hold_open = hours;
    out->n_hold_open = json_array_size(list);
    return WEIR_OK;
}

/* ---- a door ---------------------------------------------------------------------------------- */

/* A name of the database of zones: it becomes a path. */
static bool is_zone(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";
    return name[0] != '/' && name[0] != '\0' && strlen(name) < 64 &&
           strspn(name, letters) == strlen(name);
}

static weir_status read_door(const struct reader *reader, const json_t *json, const char *where,
                             struct weir_door *out)
{
    struct weir_arena *arena = reader->arena;
    struct written written = {0};
    WEIR_TRY(weir_options_read(door_options, WEIR_ARRAY_LEN(door_options), json, where, NULL, arena,
                               &written, reader->err));
    struct weir_door *door = &written.door;
    if (!weir_name_is_valid(door->name)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.name: \"%.80s\" is no name: [a-z0-9][a-z0-9._-]{0,62}", where,
                              door->name);
    }
    if (!is_zone(door->time_zone)) {
        return weir_error_set(reader->err, WEIR_ERR_INVALID,
                              "%s.time_zone: \"%.80s\" is no name of a time zone, as in "
                              "\"Europe/Berlin\"",
                              where, door->time_zone);
    }
    WEIR_TRY(read_texts(reader, written.cameras, weir_arena_printf(arena, "%s.cameras", where),
                        WEIR_DOOR_LIST_MAX, &door->cameras, &door->n_cameras));
    if (door->n_cameras == 0) {
        door->cameras[door->n_cameras++] = door->name;
    }
    WEIR_TRY(read_texts(reader, written.interlock, weir_arena_printf(arena, "%s.interlock", where),
                        WEIR_DOOR_LIST_MAX, &door->interlock, &door->n_interlock));
    WEIR_TRY(read_schedule(reader, written.schedule, weir_arena_printf(arena, "%s.schedule", where),
                           door));
    WEIR_TRY(read_hold_open(reader, written.hold_open,
                            weir_arena_printf(arena, "%s.hold_open", where), door));
    WEIR_TRY(endpoint_read(&weir_doors, written.by, weir_arena_printf(arena, "%s.by", where), arena,
                           &door->by, reader->err));
    *out = *door;
    return WEIR_OK;
}

static const struct weir_door *find(const struct weir_door *doors, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(doors[i].name, name) == 0) {
            return &doors[i];
        }
    }
    return NULL;
}

/* What a door says of the others. */
static weir_status check_among(const struct weir_door *doors, size_t n, size_t i, const char *where,
                               int64_t n_replicas, struct weir_error *err)
{
    const struct weir_door *door = &doors[i];
    if (find(doors, i, door->name) != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.doors[%zu].name: there are two doors \"%s\"", where, i,
                              door->name);
    }
    if (strcmp(door->time_zone, doors[0].time_zone) != 0) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s.doors[%zu].time_zone: %s, and that of doors[0] is %s: doors of one "
            "pipeline are in one zone; give those elsewhere a pipeline of their own",
            where, i, door->time_zone, doors[0].time_zone);
    }
    for (size_t k = 0; k < door->n_interlock; k++) {
        const struct weir_door *other = find(doors, n, door->interlock[k]);
        if (other == NULL || other == door) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s.doors[%zu].interlock[%zu]: \"%.63s\" is no other door of this "
                "pipeline",
                where, i, k, door->interlock[k]);
        }
    }
    return door->n_interlock == 0 || n_replicas == 1
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s.doors[%zu].interlock: a replica knows only the doors that it "
                                "opens itself: say replicas: 1, or leave it out",
                                where, i);
}

weir_status weir_doors_read(const json_t *list, const char *where, int64_t n_replicas,
                            struct weir_arena *arena, struct weir_door *out, size_t *out_n,
                            struct weir_error *err)
{
    const struct reader reader = {arena, err};
    size_t n = json_array_size(list);
    if (list != NULL && !json_is_null(list) && !json_is_array(list)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.doors: expected an array", where);
    }
    if (n > WEIR_DOORS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s.doors: %zu doors; at most %d are allowed",
                              where, n, WEIR_DOORS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const char *place = weir_arena_printf(arena, "%s.doors[%zu]", where, i);
        WEIR_TRY(read_door(&reader, json_array_get(list, i), place, &out[i]));
    }
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(check_among(out, n, i, where, n_replicas, err));
    }
    *out_n = n;
    return WEIR_OK;
}

void weir_doors_secrets(const json_t *list, weir_endpoint_secret_fn fn, void *context)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char place[32];
        (void)snprintf(place, sizeof place, "door_%zu", i);
        endpoint_secrets(&weir_doors, json_object_get(json_array_get(list, i), "by"), place, fn,
                         context);
    }
}

weir_status weir_doors_paths(const json_t *list, const char *where, weir_option_path_fn fn,
                             void *context)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char place[160];
        (void)snprintf(place, sizeof place, "%s.doors[%zu].by", where, i);
        WEIR_TRY(weir_registry_paths(&weir_doors, json_object_get(json_array_get(list, i), "by"),
                                     place, fn, context));
    }
    return WEIR_OK;
}
