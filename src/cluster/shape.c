#include "cluster/shape.h"

const char *weir_shape_name(int64_t cpus, int64_t memory_bytes, int64_t n_accelerators,
                            const char *model, struct weir_arena *arena)
{
    const char *name =
        weir_arena_printf(arena, "%lldc-%lldg", (long long)cpus, (long long)(memory_bytes >> 30));
    return model != NULL
               ? weir_arena_printf(arena, "%s-%lldx%s", name, (long long)n_accelerators, model)
               : name;
}
