#include "predict/door/board.h"

#include <string.h>

const char *door_state_text(enum door_state state)
{
    static const char *const texts[] = {[DOOR_STATE_UNKNOWN] = "unknown",
                                        [DOOR_STATE_LOCKED] = "locked",
                                        [DOOR_STATE_OPEN] = "open",
                                        [DOOR_STATE_JAMMED] = "jammed"};
    return texts[state];
}

void door_board_init(struct door_board *board, const struct weir_door *doors, size_t n)
{
    *board = (struct door_board){.doors = doors, .n = n};
    pthread_mutex_init(&board->lock, NULL);
    for (size_t i = 0; i < WEIR_DOORS_MAX; i++) {
        pthread_mutex_init(&board->modules[i], NULL);
    }
}

void door_board_fini(struct door_board *board)
{
    for (size_t i = 0; i < WEIR_DOORS_MAX; i++) {
        pthread_mutex_destroy(&board->modules[i]);
    }
    pthread_mutex_destroy(&board->lock);
}

void door_board_listen(struct door_board *board, void (*changed)(void *context), void *context)
{
    pthread_mutex_lock(&board->lock);
    board->changed = changed;
    board->context = context;
    pthread_mutex_unlock(&board->lock);
}

void door_board_tell(struct door_board *board)
{
    pthread_mutex_lock(&board->lock);
    if (board->changed != NULL) {
        board->changed(board->context);
    }
    pthread_mutex_unlock(&board->lock);
}

/* A lock that says it is jammed may be open. */
static bool is_open(const struct door_board *board, size_t i, int64_t now_ms)
{
    return now_ms < board->at[i].open_until_ms || board->at[i].said == DOOR_STATE_OPEN ||
           board->at[i].said == DOOR_STATE_JAMMED || board->at[i].is_jammed;
}

static bool waits_for(const struct weir_door *door, const struct weir_door *other)
{
    for (size_t i = 0; i < door->n_interlock; i++) {
        if (strcmp(door->interlock[i], other->name) == 0) {
            return true;
        }
    }
    return false;
}

bool door_board_open(struct door_board *board, size_t i, int64_t now_ms, int64_t for_ms)
{
    bool may_open = true;
    pthread_mutex_lock(&board->lock);
    for (size_t k = 0; k < board->n; k++) {
        may_open = may_open && !(k != i && waits_for(&board->doors[i], &board->doors[k]) &&
                                 is_open(board, k, now_ms));
    }
    if (may_open) {
        board->at[i].open_until_ms = WEIR_MAX(board->at[i].open_until_ms, now_ms + for_ms);
    }
    pthread_mutex_unlock(&board->lock);
    return may_open;
}

void door_board_until(struct door_board *board, size_t i, int64_t until_ms)
{
    pthread_mutex_lock(&board->lock);
    board->at[i].open_until_ms = until_ms;
    pthread_mutex_unlock(&board->lock);
}

void door_board_said(struct door_board *board, size_t i, enum door_state state)
{
    pthread_mutex_lock(&board->lock);
    board->at[i].said = state;
    board->at[i].is_jammed = board->at[i].is_jammed && state == DOOR_STATE_UNKNOWN;
    pthread_mutex_unlock(&board->lock);
}

void door_board_jammed(struct door_board *board, size_t i, bool is_jammed)
{
    pthread_mutex_lock(&board->lock);
    board->at[i].is_jammed = is_jammed;
    pthread_mutex_unlock(&board->lock);
}

enum door_state door_board_state(struct door_board *board, size_t i, int64_t now_ms)
{
    pthread_mutex_lock(&board->lock);
    enum door_state state = board->at[i].is_jammed                    ? DOOR_STATE_JAMMED
                            : board->at[i].said != DOOR_STATE_UNKNOWN ? board->at[i].said
                            : now_ms < board->at[i].open_until_ms     ? DOOR_STATE_OPEN
                                                                      : DOOR_STATE_UNKNOWN;
    pthread_mutex_unlock(&board->lock);
    return state;
}
