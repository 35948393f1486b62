/**
 * Plan: what becomes of a decision at a door, and what a command is called. Pure.
 *
 *   - nothing is sent for a camera that is not the door's, or a verdict that lets nobody in;
 *   - nothing is sent later than valid_ms after the decision's time, nor for a time that lies so far ahead;
 *   - nothing is sent while the door is locked down;
 *   - with rules, one of them must have the person and the hour;
 *   - nothing is sent while a door of the interlock is open.
 */
#ifndef WEIR_PREDICT_DOOR_PLAN_H
#define WEIR_PREDICT_DOOR_PLAN_H

#include "base/uuid.h"
#include "endpoint/door.h"

struct door_moment {
    int64_t ms;          /**< Wall clock. */
    int weekday, minute; /**< In the door's zone; 0 is Monday. */
};

struct door_visitor {
    const char *camera, *verdict, *person; /**< The person may be NULL. */
    int64_t issued_ms;                     /**< When the frame was there. */
    bool is_allowed;                       /**< On the allow list. */
};

enum door_plan {
    DOOR_PLAN_SEND,
    DOOR_PLAN_NONE, /**< It is not this door's, or lets nobody in. */
    DOOR_PLAN_LATE,
    DOOR_PLAN_LOCKED_DOWN,
    DOOR_PLAN_NOT_NOW, /**< No rule has the person at this hour. */
    DOOR_PLAN_INTERLOCKED,
};

/** "send", "none", "late", "locked down", "not now", "interlocked". */
const char *door_plan_text(enum door_plan plan);

bool door_hours_hold(const struct weir_door_hours *hours, const struct door_moment *now);

/** Is it to stand open now? Never while it is locked down. */
bool door_is_held(const struct weir_door *door, const struct door_moment *now, bool is_locked_down);

/** All but the interlock, which is asked where the answer is taken up at once (board.h). */
enum door_plan door_plan_make(const struct weir_door *door, const struct door_visitor *visitor,
                              const struct door_moment *now, bool is_locked_down);

/**
 * The command's identifier: of a decision and a door always the same, so that a controller knows one that comes
 * again. It is a UUID of version 7 with the decision's time, if `decision` is one.
 */
void door_command_id(const char *decision, const char *door, char out[WEIR_UUID_BYTES]);

#endif
