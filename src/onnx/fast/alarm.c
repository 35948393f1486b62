#include "alarm.h"

#include "threads.h"

#include <fenv.h>
#include <float.h>
#include <stdatomic.h>

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
