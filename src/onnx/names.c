#include "names.h"

#include "base/hash.h"

#include <string.h>

struct onnx_names onnx_names_make(struct weir_arena *arena, size_t most)
{
    struct onnx_names names = {.most = most, .n_slots = 16};
    while (names.n_slots < 2 * most) {
        names.n_slots *= 2;
    }
    names.names = WEIR_ARENA_ARRAY(arena, most, const char *);
    names.slots = WEIR_ARENA_ARRAY(arena, names.n_slots, int32_t);
    for (size_t i = 0; i < names.n_slots; i++) {
        names.slots[i] = -1;
    }
    return names;
}

/* Where the name is, or where it belongs. */
static size_t slot_of(const struct onnx_names *names, const char *name)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, name);
    size_t slot = (hash ^ hash >> 32) & (names->n_slots - 1);
    while (names->slots[slot] >= 0 && strcmp(names->names[names->slots[slot]], name) != 0) {
        slot = (slot + 1) & (names->n_slots - 1);
    }
    return slot;
}

int32_t onnx_names_find(const struct onnx_names *names, const char *name)
{
    return names->slots[slot_of(names, name)];
}

bool onnx_names_add(struct onnx_names *names, const char *name, int32_t *out_number)
{
    size_t slot = slot_of(names, name);
    if (names->slots[slot] >= 0 || names->n == names->most) {
        return false;
    }
    names->names[names->n] = name;
    names->slots[slot] = *out_number = (int32_t)names->n++;
    return true;
}
