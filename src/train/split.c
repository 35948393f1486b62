#include "train/split.h"

#include "base/rng.h"

/** 0 .. n-1, shuffled with a stream of the seed. */
static uint32_t *shuffled(uint64_t seed, uint64_t stream, uint32_t n, struct weir_arena *arena)
{
    uint32_t *numbers = WEIR_ARENA_ARRAY(arena, n, uint32_t);
    struct weir_rng rng;
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = i;
    }
    weir_rng_init(&rng, seed, stream);
    weir_rng_shuffle_u32(&rng, numbers, n);
    return numbers;
}

void train_split_make(uint64_t seed, const uint32_t *n_photos, uint32_t n_people,
                      struct weir_arena *arena, struct train_split *out)
{
    *out = (struct train_split){.n_people = n_people,
                                .n_trained = (uint32_t)((uint64_t)n_people * 2 / 3),
                                .people = shuffled(seed, 0, n_people, arena),
                                .photos = WEIR_ARENA_ARRAY(arena, n_people, uint32_t *)};
    for (uint32_t p = 0; p < n_people; p++) {
        out->photos[p] = shuffled(seed, 1 + (uint64_t)p, n_photos[p], arena);
    }
}
