/** For tests: a seed that is printed, and played again with WEIR_TEST_SEED in the environment. */
#ifndef WEIR_BASE_TEST_SEED_H
#define WEIR_BASE_TEST_SEED_H

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

static inline uint64_t test_seed(struct weir_rng *rng)
{
    const char *fixed = getenv("WEIR_TEST_SEED");
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    seed = fixed != NULL ? strtoull(fixed, NULL, 10) : seed;
    printf("WEIR_TEST_SEED=%llu\n", (unsigned long long)seed);
    weir_rng_init(rng, seed, 0);
    return seed;
}

#endif
