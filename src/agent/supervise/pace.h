/**
 * Pace: events that come now and then are looked at at once, those of a burst together.
 *
 * A task that starts is a handful of events within milliseconds, and somebody waits for its first line;
 * one that prints without an end is thousands a second, of which each look takes all that came meanwhile.
 */
#ifndef WEIR_AGENT_PACE_H
#define WEIR_AGENT_PACE_H

#include <stdint.h>

#define PACE_TICK_MS 20 /* between the looks of a burst */
#define PACE_BURST   32 /* looks without a pause, after a quiet time */

/** All zero: nothing was looked at yet. */
struct pace {
    int64_t n_spent;  /* out of PACE_BURST */
    int64_t since_ms; /* monotonic: what is spent comes back from here on, one each PACE_TICK_MS */
};

/** An event has come: how long to wait for others before the look. 0, or PACE_TICK_MS: then the look is due, too. */
int64_t pace_wait_ms(struct pace *pace, int64_t now_ms);

#endif
