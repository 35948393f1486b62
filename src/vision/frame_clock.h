/** Frame clock: the time of frames as it is counted. It never goes back, whatever a camera's clock does. Zeroed to begin with. */
#ifndef WEIR_VISION_FRAME_CLOCK_H
#define WEIR_VISION_FRAME_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct weir_frame_clock {
    int64_t now_ms; /**< Since the first frame. */
    int64_t given_ms;
    bool is_running;
};

/** The next frame. A step back is taken as no time, and time goes on from there; a step of more than 24 days as 24 days.
 *  @return What has passed since the last one, in ms. */
int64_t weir_frame_clock_step(struct weir_frame_clock *clock, int64_t time_ms);

#endif
