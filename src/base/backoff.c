#include "base/backoff.h"

#include "base/macros.h"
#include "base/rng.h"

int64_t weir_backoff_next_ms(struct weir_backoff *backoff)
{
    while (backoff->seed == 0) {
        weir_random_bytes(&backoff->seed, sizeof backoff->seed);
    }
    unsigned shift = WEIR_MIN(backoff->n_tries, 32u);
    uint64_t ceiling_ms = (uint64_t)backoff->base_ms << shift;
    if (ceiling_ms > (uint64_t)backoff->max_ms) {
        ceiling_ms = (uint64_t)backoff->max_ms;
    }
    struct weir_rng rng;
    weir_rng_init(&rng, backoff->seed, backoff->n_tries);
    backoff->n_tries++;
    uint64_t floor_ms = ceiling_ms / 2;
    return (int64_t)(floor_ms + weir_rng_below(&rng, ceiling_ms - floor_ms + 1));
}

void weir_backoff_reset(struct weir_backoff *backoff)
{
    backoff->n_tries = 0;
    backoff->seed = 0;
}
