/**
 * Random numbers. Two kinds, never mixed up:
 *
 * - `weir_philox`: counter-based (Philox 4x32-10, Salmon et al., SC'11). A value is a pure function
 *   of (key, counter): order, augmentation and initialisation of training use it, so that a result
 *   does not depend on threads, restarts or world size.
 * - `weir_random_bytes`: from the kernel, for secrets and identifiers.
 */
#ifndef WEIR_BASE_RNG_H
#define WEIR_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/** 128 random bits for a 64-bit key and a 128-bit counter. Pure. */
void weir_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]);

/** A stream of Philox values: stream `stream` of seed `seed`, from position 0. Caller memory. */
struct weir_rng {
    uint64_t key, stream, position;
    uint32_t block[4];
    unsigned i_next; /**< Next unused word of `block`; 4 = none left. */
};

void weir_rng_init(struct weir_rng *rng, uint64_t seed, uint64_t stream);
uint32_t weir_rng_u32(struct weir_rng *rng);
uint64_t weir_rng_u64(struct weir_rng *rng);

/** Uniform in [0, n), unbiased (rejection); n must be > 0. */
uint64_t weir_rng_below(struct weir_rng *rng, uint64_t n);

/** Uniform in [0, 1) with 24 (float) or 53 (double) random bits. */
float weir_rng_f32(struct weir_rng *rng);
double weir_rng_f64(struct weir_rng *rng);

/** Standard normal (Box–Muller, no state kept between calls). */
double weir_rng_normal(struct weir_rng *rng);

/** Fisher–Yates from the last element down, with weir_rng_below: the documented shuffle. */
void weir_rng_shuffle_u32(struct weir_rng *rng, uint32_t *values, size_t n);

/** getrandom(2); aborts if the kernel has none. Any thread. */
void weir_random_bytes(void *out, size_t size);

#endif
