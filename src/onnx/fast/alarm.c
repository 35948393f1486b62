#include "alarm.h"

#include "threads.h"

#include <fenv.h>
#include <float.h>
#include <stdatomic.h>
#include <string.h>

void alarm_silence_here(void)
{
    if (fetestexcept(FE_INVALID) != 0) { /* clearing takes longer than looking */
        (void)feclearexcept(FE_INVALID);
    }
}

static void silence_part(const void *job, int32_t i, int32_t n)
{
    (void)job, (void)i, (void)n;
    alarm_silence_here();
}

void alarm_silence(int32_t n_threads)
{
    threads_run(n_threads, silence_part, NULL);
}

struct listener {
    atomic_bool *rings;
};

static void listen_part(const void *job, int32_t i, int32_t n)
{
    (void)i, (void)n;
    if (fetestexcept(FE_INVALID) != 0) {
        atomic_store(((const struct listener *)job)->rings, true);
    }
}

bool alarm_rings(int32_t n_threads)
{
    atomic_bool rings = false;
    const struct listener listener = {&rings};
    threads_run(n_threads, listen_part, &listener);
    return rings;
}

void alarm_ring(void)
{
    (void)feraiseexcept(FE_INVALID);
}

void alarm_ring_at_lowest(const float *values, size_t n)
{
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        found |= values[i] == -FLT_MAX;
    }
    if (found) {
        alarm_ring();
    }
}

bool alarm_are_within(const float *values, size_t n, float most)
{
    int are = 1;
    for (size_t i = 0; i < n; i++) {
        are &= values[i] >= -most && values[i] <= most; /* no NaN is */
    }
    return are != 0;
}

#define PIECE         256 /* Numbers whose logarithms fit 32 bits in sum. */
#define SHIFT         12
#define OUTLIER_BITS  12
#define BITS_INFINITE 0x7f800000

struct sizes {
    int32_t most;
    int64_t sum, n; /* Of those that are not zero. */
};

/* A positive float's bits, read as an integer, grow as its logarithm. */
static void measure(const float *values, size_t n, struct sizes *sizes)
{
    int32_t bits[PIECE], most = 0, sum = 0, n_there = 0;
    memcpy(bits, values, n * sizeof *bits);
    for (size_t i = 0; i < n; i++) {
        int32_t size = bits[i] & INT32_MAX;
        most = size > most ? size : most;
        sum += size >> SHIFT;
        n_there += size != 0;
    }
    sizes->most = most > sizes->most ? most : sizes->most;
    sizes->sum += sum;
    sizes->n += n_there;
}

void alarm_ring_at_outlier(const float *values, size_t n)
{
    struct sizes sizes = {0};
    for (size_t i = 0; i < n; i += PIECE) {
        measure(values + i, n - i < PIECE ? n - i : PIECE, &sizes);
    }
    int64_t mean = sizes.n > 0 ? (sizes.sum / sizes.n) << SHIFT : 0;
    if (sizes.most >= BITS_INFINITE || (sizes.n > 0 && sizes.most - mean > (OUTLIER_BITS << 23))) {
        alarm_ring();
    }
}
