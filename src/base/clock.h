/**
 * Time. Decisions take their time from a `struct weir_clock` that a test can drive; everything else
 * reads the system's clocks here. Wall-clock time is milliseconds since 1970 UTC (it may step
 * backwards: never measure a duration with it); durations are monotonic nanoseconds.
 *
 * A process that keeps times for long and counts with them, as the server does, *steadies* its clock:
 * weir_time_ms then goes on evenly, also while the machine sleeps, and does not notice that the wall
 * clock is set. weir_clock_set_by_ms says that it was, and by how much; when the process has moved what it
 * counts with by as much, it follows.
 */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include "base/status.h"

#include <stdint.h>

struct weir_clock {
    int64_t (*now_ms)(const struct weir_clock *clock); /**< Wall clock, ms since 1970 UTC. */
    void *context;
};

/** The system's wall clock; in a process that has steadied it, that. */
extern const struct weir_clock weir_system_clock;

int64_t weir_clock_now_ms(const struct weir_clock *clock);

/** CLOCK_REALTIME in ms, or the steadied clock; CLOCK_MONOTONIC in ns and in ms. */
int64_t weir_time_ms(void);
uint64_t weir_mono_ns(void);
int64_t weir_mono_ms(void);

/** CLOCK_BOOTTIME in ms: as the monotonic one, and it counts what the machine slept. */
int64_t weir_boot_ms(void);

/** Which start of the machine it counts from. */
#define WEIR_BOOT_ID_BYTES 40
void weir_boot_id(char out[WEIR_BOOT_ID_BYTES]);

/**
 * Steady this process's clock: from now on it is weir_boot_ms() + offset_ms. Any thread may read it.
 * @param offset_ms  Of an earlier process of the same start of the machine; 0: it begins with the wall clock.
 */
void weir_clock_steady(int64_t offset_ms);
int64_t weir_clock_offset_ms(void);

/** By how much the wall clock was set since: it is so much ahead. 0 if the clock is not steadied. */
int64_t weir_clock_set_by_ms(void);

/** Follow it by so much. */
void weir_clock_follow(int64_t by_ms);

/** "2026-01-31T10:00:00.123Z" (25 bytes with its NUL are enough for years up to 9999). */
#define WEIR_TIME_TEXT_BYTES 32
void weir_time_format(int64_t time_ms, char out[WEIR_TIME_TEXT_BYTES]);

/** Parse that form (fraction optional, zone Z or ±hh:mm). */
weir_status weir_time_parse(const char *text, int64_t *out_time_ms);

#endif
