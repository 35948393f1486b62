/**
 * Presence: was this process there to hear, or was it stopped, suspended or starved?
 *
 * A thread that does nothing but wait for a second, again and again. When one of its seconds has taken
 * more than PRESENCE_LATE_MS, nothing of the process ran, whatever the reason; an engine that is busy for as
 * long does not hold it up. Time is CLOCK_BOOTTIME, which counts what the machine slept.
 */
#ifndef WEIR_CONTROL_PRESENCE_H
#define WEIR_CONTROL_PRESENCE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define PRESENCE_LATE_MS 4000

struct presence;

weir_status presence_start(struct presence **out, struct weir_error *err) WEIR_MUST_CHECK;

/** How long the process was away since the last call, in ms; 0: it was not. Any one thread. */
int64_t presence_take_gap_ms(struct presence *presence);

/** NULL is accepted. */
void presence_stop(struct presence *presence);

#endif
