/**
 * Time. Decisions take their time from a `struct weir_clock` that a test can drive; everything else
 * reads the system's clocks here. Wall-clock time is milliseconds since 1970 UTC (it may step
 * backwards: never measure a duration with it); durations are monotonic nanoseconds.
 */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include "base/status.h"

#include <stdint.h>

struct weir_clock {
    int64_t (*now_ms)(const struct weir_clock *clock); /**< Wall clock, ms since 1970 UTC. */
    void *context;
};

/** The system's wall clock. */
extern const struct weir_clock weir_system_clock;

int64_t weir_clock_now_ms(const struct weir_clock *clock);

/** CLOCK_REALTIME in ms; CLOCK_MONOTONIC in ns and in ms. */
int64_t weir_time_ms(void);
uint64_t weir_mono_ns(void);
int64_t weir_mono_ms(void);

/** "2026-01-31T10:00:00.123Z" (25 bytes with its NUL are enough for years up to 9999). */
#define WEIR_TIME_TEXT_BYTES 32
void weir_time_format(int64_t time_ms, char out[WEIR_TIME_TEXT_BYTES]);

/** Parse that form (fraction optional, zone Z or ±hh:mm). */
weir_status weir_time_parse(const char *text, int64_t *out_time_ms);

#endif
