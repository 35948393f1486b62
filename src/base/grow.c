#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ITEMS 16

weir_status weir_grow(void *items, size_t item_bytes, size_t n_items, size_t *cap)
{
    size_t n = *cap == 0 ? FIRST_ITEMS : 2 * *cap, n_bytes;
    void *array;
    if (n_items < *cap) {
        return WEIR_OK;
    }
    if (n < *cap || __builtin_mul_overflow(n, item_bytes, &n_bytes)) {
        return WEIR_ERR_NOMEM;
    }
    memcpy(&array, items, sizeof array); /* a pointer of any type */
    array = realloc(array, n_bytes);
    if (array == NULL) {
        return WEIR_ERR_NOMEM;
    }
    memcpy(items, &array, sizeof array);
    *cap = n;
    return WEIR_OK;
}

void weir_xgrow(void *items, size_t item_bytes, size_t n_items, size_t *cap)
{
    if (weir_grow(items, item_bytes, n_items, cap) != WEIR_OK) {
        abort();
    }
}

void weir_arena_grow(struct weir_arena *arena, void *items, size_t item_bytes, size_t n_items,
                     size_t *cap)
{
    size_t n = *cap == 0 ? FIRST_ITEMS : 2 * *cap;
    void *old;
    if (n_items < *cap) {
        return;
    }
    void *array = weir_arena_calloc(arena, n, item_bytes);
    memcpy(&old, items, sizeof old);
    if (n_items > 0) {
        memcpy(array, old, n_items * item_bytes);
    }
    memcpy(items, &array, sizeof array);
    *cap = n;
}
