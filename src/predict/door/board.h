/**
 * Board: the doors of one replica, each with what the others must know of it: does it stand open? And what people are
 * told of it. Any thread.
 *
 * A door that begins to open is open for the others at once, until it has been so long ago that it has closed, or
 * longer if its controller says that it is open still. Two doors that wait for one another are never open
 * together.
 */
#ifndef WEIR_PREDICT_DOOR_BOARD_H
#define WEIR_PREDICT_DOOR_BOARD_H

#include "endpoint/door.h"

#include <pthread.h>

enum door_state { DOOR_STATE_UNKNOWN, DOOR_STATE_LOCKED, DOOR_STATE_OPEN, DOOR_STATE_JAMMED };

/** "unknown", "locked", "open", "jammed". */
const char *door_state_text(enum door_state state);

struct door_board {
    const struct weir_door *doors; /**< Borrowed. */
    size_t n;
    /** Held while a door talks to a module that takes one connection at a time (door/modbus.c). */
    pthread_mutex_t modules[WEIR_DOORS_MAX];
    pthread_mutex_t lock;

    /* Under lock. */
    void (*changed)(void *context); /**< NULL: nobody listens. */
    void *context;

    struct {
        int64_t open_until_ms; /**< Monotonic; by what was sent. */
        enum door_state said;  /**< By its controller; UNKNOWN: it says nothing. */
        bool is_jammed;        /**< By the last answer. */
    } at[WEIR_DOORS_MAX];
};

void door_board_init(struct door_board *board, const struct weir_door *doors, size_t n);
void door_board_fini(struct door_board *board);

/** Be told, on any thread, that people should see something new; NULL: no more, and after that not any more. */
void door_board_listen(struct door_board *board, void (*changed)(void *context), void *context);

void door_board_tell(struct door_board *board);

/** Door i is to be open for so long from now on (monotonic time). @return false: a door of its interlock is open;
 *  nothing has changed. */
bool door_board_open(struct door_board *board, size_t i, int64_t now_ms, int64_t for_ms);

/** It is known now how long door i is open (monotonic time); 0: it is not. */
void door_board_until(struct door_board *board, size_t i, int64_t until_ms);

void door_board_said(struct door_board *board, size_t i, enum door_state state);
void door_board_jammed(struct door_board *board, size_t i, bool is_jammed);

enum door_state door_board_state(struct door_board *board, size_t i, int64_t now_ms);

#endif
