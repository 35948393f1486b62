#include "sched/windows.h"

#include <stdlib.h>
#include <string.h>

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

weir_status windows_apply(const struct weir_sched_snapshot *snapshot,
                          const struct weir_sched_profile *profile, struct weir_sched_snapshot *out,
                          struct weir_sched_queue **out_queues)
{
    bool has_windows = false;
    *out = *snapshot;
    *out_queues = NULL;
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        has_windows = has_windows || snapshot->queues[q].n_windows > 0;
    }
    if (!has_windows || !profile->quota_windows) {
        return WEIR_OK;
    }
    size_t n = (size_t)snapshot->n_queues;
    struct weir_sched_queue *queues = malloc(n * sizeof *queues);
    if (queues == NULL) {
        return WEIR_ERR_NOMEM;
    }
    memcpy(queues, snapshot->queues, n * sizeof *queues);
    for (size_t q = 0; q < n; q++) {
        for (int32_t w = queues[q].n_windows - 1; w >= 0; w--) {
            const struct weir_sched_window *window = &queues[q].windows[w];
            if (window_holds(window, snapshot->now_ms, snapshot->utc_offset_min)) {
                memcpy(queues[q].shares, window->shares, sizeof queues[q].shares);
            }
        }
    }
    out->queues = *out_queues = queues;
    return WEIR_OK;
}
