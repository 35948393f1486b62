#include "predict/door/plan.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *door_plan_text(enum door_plan plan)
{
    static const char *const texts[] = {
        [DOOR_PLAN_SEND] = "send",       [DOOR_PLAN_NONE] = "none",
        [DOOR_PLAN_LATE] = "late",       [DOOR_PLAN_LOCKED_DOWN] = "locked down",
        [DOOR_PLAN_NOT_NOW] = "not now", [DOOR_PLAN_INTERLOCKED] = "interlocked"};
    return texts[plan];
}

static bool has_day(const struct weir_door_hours *hours, int weekday)
{
    return (hours->days >> weekday & 1) != 0;
}

bool door_hours_hold(const struct weir_door_hours *hours, const struct door_moment *now)
{
    if (hours->from_min < hours->until_min) {
        return has_day(hours, now->weekday) && now->minute >= hours->from_min &&
               now->minute < hours->until_min;
    }
    int yesterday = (now->weekday + 6) % 7;
    return (has_day(hours, now->weekday) && now->minute >= hours->from_min) ||
           (has_day(hours, yesterday) && now->minute < hours->until_min);
}

bool door_is_held(const struct weir_door *door, const struct door_moment *now, bool is_locked_down)
{
    for (size_t i = 0; i < door->n_hold_open && !is_locked_down; i++) {
        if (door_hours_hold(&door->hold_open[i], now)) {
            return true;
        }
    }
    return false;
}

static bool has_text(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n && text != NULL; i++) {
        if (strcmp(list[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static bool may_pass(const struct weir_door *door, const struct door_visitor *visitor,
                     const struct door_moment *now)
{
    for (size_t i = 0; i < door->n_rules; i++) {
        const struct weir_door_rule *rule = &door->rules[i];
        bool is_meant = rule->is_of_list ? visitor->is_allowed
                                         : has_text(rule->people, rule->n_people, visitor->person);
        if (is_meant && door_hours_hold(&rule->hours, now)) {
            return true;
        }
    }
    return door->n_rules == 0;
}

enum door_plan door_plan_make(const struct weir_door *door, const struct door_visitor *visitor,
                              const struct door_moment *now, bool is_locked_down)
{
    int64_t age_ms = now->ms - visitor->issued_ms;
    if (strcmp(visitor->verdict, "grant") != 0 ||
        !has_text(door->cameras, door->n_cameras, visitor->camera)) {
        return DOOR_PLAN_NONE;
    }
    if (age_ms >= door->valid_ms || age_ms <= -door->valid_ms) {
        return DOOR_PLAN_LATE;
    }
    if (is_locked_down) {
        return DOOR_PLAN_LOCKED_DOWN;
    }
    return may_pass(door, visitor, now) ? DOOR_PLAN_SEND : DOOR_PLAN_NOT_NOW;
}

void door_command_id(const char *decision, const char *door, char out[WEIR_UUID_BYTES])
{
    uint64_t hash = weir_hash_text(weir_hash_text(WEIR_HASH_BEGIN, decision), door);
    bool is_uuid = strlen(decision) == WEIR_UUID_BYTES - 1 && weir_uuid_is_valid(decision);
    (void)snprintf(out, WEIR_UUID_BYTES, "%.13s-7%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                   is_uuid ? decision : "00000000-0000", hash >> 52, 0x8000 | (hash >> 38 & 0x3fff),
                   weir_hash_text(hash, "low") & 0xffffffffffffU);
}
