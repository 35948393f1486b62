/**
 * Grow: an array whose room doubles.
 *
 *     struct item *items = NULL;
 *     size_t n = 0, cap = 0;
 *     WEIR_TRY(weir_grow(&items, sizeof *items, n, &cap));
 *     items[n++] = …;                                        free(items) in the end
 *
 * The caller states the array's maximum and checks it: this function has none.
 */
#ifndef WEIR_BASE_GROW_H
#define WEIR_BASE_GROW_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>

/**
 * Makes room for one more item behind n_items. It does nothing if n_items < *cap. Else the room
 * doubles, from 16 items on, and the array may move.
 *
 * @param items  Address of the pointer to the array, from malloc, or to NULL.
 * @param cap    In/out: items that the array has room for.
 * @return NOMEM; array and *cap are as they were.
 */
weir_status weir_grow(void *items, size_t item_bytes, size_t n_items, size_t *cap) WEIR_MUST_CHECK;

/** The same where there is nothing to do without memory: it aborts then. */
void weir_xgrow(void *items, size_t item_bytes, size_t n_items, size_t *cap);

/** The same for an array in an arena, where what it had before it moved stays behind. */
void weir_arena_grow(struct weir_arena *arena, void *items, size_t item_bytes, size_t n_items,
                     size_t *cap);

#endif
