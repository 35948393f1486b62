#include "sched/share/windows.h"

#define MINUTE_MS    60000
#define DAY_MIN      1440
#define DAYS         7
#define FIRST_MONDAY 3 /**< 1970 began on a Thursday; Monday is day 0. */

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

bool window_holds(const struct weir_sched_window *window, int64_t now_ms, int32_t utc_offset_min)
{
    int64_t minute = floor_div(now_ms, MINUTE_MS) + utc_offset_min;
    int64_t day = floor_div(minute, DAY_MIN), at = minute - day * DAY_MIN;
    int weekday = (int)((day % DAYS + DAYS + FIRST_MONDAY) % DAYS);
    bool is_overnight = window->until_minute <= window->from_minute;
    bool today = (window->days >> weekday & 1) != 0;
    bool yesterday = (window->days >> ((weekday + DAYS - 1) % DAYS) & 1) != 0;
    if (!is_overnight) {
        return today && at >= window->from_minute && at < window->until_minute;
    }
    return (today && at >= window->from_minute) || (yesterday && at < window->until_minute);
}

const struct weir_sched_window *window_of(const struct weir_sched_snapshot *snapshot,
                                          const struct weir_sched_queue *queue)
{
    for (int32_t w = 0; w < queue->n_windows; w++) {
        if (window_holds(&queue->windows[w], snapshot->now_ms, snapshot->utc_offset_min)) {
            return &queue->windows[w];
        }
    }
    return NULL;
}
