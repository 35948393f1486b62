#include "vision/frame_clock.h"

#include "base/macros.h"

int64_t weir_frame_clock_step(struct weir_frame_clock *clock, int64_t time_ms)
{
    uint64_t passed_ms = 0;
    if (clock->is_running && time_ms > clock->given_ms) {
        passed_ms = (uint64_t)time_ms - (uint64_t)clock->given_ms;
        passed_ms = WEIR_MIN(passed_ms, (uint64_t)INT32_MAX);
    }
    clock->is_running = true;
    clock->given_ms = time_ms;
    clock->now_ms += (int64_t)passed_ms;
    return (int64_t)passed_ms;
}
