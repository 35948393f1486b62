#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define PHILOX_M0     0xD2511F53u
#define PHILOX_M1     0xCD9E8D57u
#define PHILOX_W0     0x9E3779B9u
#define PHILOX_W1     0xBB67AE85u
#define PHILOX_ROUNDS 10

void weir_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void weir_rng_init(struct weir_rng *rng, uint64_t seed, uint64_t stream)
{
    *rng = (struct weir_rng){.key = seed, .stream = stream, .i_next = 4};
}

uint32_t weir_rng_u32(struct weir_rng *rng)
{
    if (rng->i_next == 4) {
        weir_philox(rng->key, rng->stream, rng->position++, rng->block);
        rng->i_next = 0;
    }
    return rng->block[rng->i_next++];
}

uint64_t weir_rng_u64(struct weir_rng *rng)
{
    uint64_t low = weir_rng_u32(rng);
    return low | (uint64_t)weir_rng_u32(rng) << 32;
}

uint64_t weir_rng_below(struct weir_rng *rng, uint64_t n)
{
    /* Values above the last whole multiple of n would favour small results: draw again. */
    uint64_t limit = UINT64_MAX - (UINT64_MAX % n + 1) % n;
    uint64_t value;
    do {
        value = weir_rng_u64(rng);
    } while (value > limit);
    return value % n;
}

float weir_rng_f32(struct weir_rng *rng)
{
    return (float)(weir_rng_u32(rng) >> 8) * 0x1p-24f;
}

double weir_rng_f64(struct weir_rng *rng)
{
    return (double)(weir_rng_u64(rng) >> 11) * 0x1p-53;
}

double weir_rng_normal(struct weir_rng *rng)
{
    double u = 1.0 - weir_rng_f64(rng); /* (0, 1]: its logarithm is finite */
    double v = weir_rng_f64(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

void weir_rng_shuffle_u32(struct weir_rng *rng, uint32_t *values, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)weir_rng_below(rng, i);
        uint32_t swap = values[i - 1];
        values[i - 1] = values[j];
        values[j] = swap;
    }
}

void weir_random_bytes(void *out, size_t size)
{
    unsigned char *bytes = out;
    while (size > 0) {
        ssize_t n = getrandom(bytes, size, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            perror("weir: getrandom");
            abort();
        }
        bytes += n;
        size -= (size_t)n;
    }
}
