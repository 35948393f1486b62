/**
 * Doors: what is opened when a pipeline lets somebody in, as far as server and replica must agree on it: how
 * a door is written, what reaches it (a kind of endpoint/doors.def) and when it may be opened. Pure.
 *
 *     doors:
 *       - name: door-1                  # also the camera before it, unless "cameras" names others
 *         by: {kind: mqtt, url: "mqtts://broker", user: weir, secrets: ["password=broker"]}
 *         valid_ms: 3000                # a command that is older is not carried out
 *         pulse_ms: 5000                # so long the door is open
 *         time_zone: Europe/Berlin
 *         schedule:                     # without one: everybody that is granted
 *           - {list: allow, days: [mon, tue, wed, thu, fri], from: "07:00", until: "19:00"}
 *           - {people: [ada], from: "22:00", until: "06:00"}
 *         hold_open: [{days: [mon], from: "09:00", until: "10:00"}]
 *         interlock: [door-2]           # is not opened while one of these is open
 *
 * Hours that end before they begin last into the next day; the day is that of their beginning.
 */
#ifndef WEIR_ENDPOINT_DOOR_H
#define WEIR_ENDPOINT_DOOR_H

#include "endpoint/endpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_DOORS_MAX        16
#define WEIR_DOOR_LIST_MAX    64 /**< Cameras, interlocks, rules and hours of one door. */
#define WEIR_DOOR_PEOPLE_MAX  256
#define WEIR_DOOR_VALID_MS    3000 /**< The longest that a command is valid. */
#define WEIR_DOOR_DAY_MINUTES (24 * 60)

/** Programs that a door of kind "command" may start: files of this folder of the node. */
#define WEIR_DOOR_PROGRAMS "/etc/weir/doors"

struct weir_door_hours {
    unsigned days; /**< Bit 0: Monday. */
    int from_min,
        until_min; /**< Minutes of the day; until is not after from: it lasts into the next day. */
};

/** People and hours that go together. */
struct weir_door_rule {
    const char **people;
    size_t n_people;
    bool is_of_list; /**< Everybody on the allow list. */
    struct weir_door_hours hours;
};

/** Texts in an arena. */
struct weir_door {
    char *name, *verb, *time_zone; /**< The zone's name; "UTC". */
    const char **cameras;
    size_t n_cameras;
    struct weir_configured by;
    int64_t valid_ms, pulse_ms;
    const struct weir_door_rule *rules;
    size_t n_rules; /**< 0: everybody that is granted, always. */
    const char **interlock;
    size_t n_interlock;
    const struct weir_door_hours *hold_open;
    size_t n_hold_open;
};

extern const struct weir_registry weir_doors;
#define WEIR_KIND(name) extern const struct weir_kind weir_door_##name##_kind;
#include "endpoint/doors.def"
#undef WEIR_KIND

/**
 * Read the doors of a pipeline or replica.
 *
 * @param doors       An array; NULL or null: none.
 * @param where       Where it lies: "$.pipelines[0]"; messages begin with "$.pipelines[0].doors[2]".
 * @param n_replicas  Doors that wait for one another are one replica's.
 * @param out         Room for WEIR_DOORS_MAX.
 * @return INVALID, UNSUPPORTED or LIMIT with the place of what is wrong.
 */
weir_status weir_doors_read(const json_t *doors, const char *where, int64_t n_replicas,
                            struct weir_arena *arena, struct weir_door *out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** As weir_endpoints_secrets, of the kinds of doors: DOOR_0_PASSWORD. */
void weir_doors_secrets(const json_t *doors, weir_endpoint_secret_fn fn, void *context);

/** As weir_endpoints_paths. */
weir_status weir_doors_paths(const json_t *doors, const char *where, weir_option_path_fn fn,
                             void *context) WEIR_MUST_CHECK;

#endif
