#include "sched/share/timed_quota.h"

#define MINUTE_MS    60000
#define DAY_MIN      1440
#define DAYS         7
#define FIRST_MONDAY 3 /**< 1970 began on a Thursday; Monday is day 0. */

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

bool timed_quota_holds(const struct weir_sched_timed_quota *timed, int64_t now_ms)
{
    int64_t minute = floor_div(now_ms, MINUTE_MS);
    int64_t day = floor_div(minute, DAY_MIN), at = minute - day * DAY_MIN;
    int weekday = (int)((day % DAYS + DAYS + FIRST_MONDAY) % DAYS);
    bool is_overnight = timed->until_minute <= timed->from_minute;
    bool today = (timed->days >> weekday & 1) != 0;
    bool yesterday = (timed->days >> ((weekday + DAYS - 1) % DAYS) & 1) != 0;
    if (!is_overnight) {
        return today && at >= timed->from_minute && at < timed->until_minute;
    }
    return (today && at >= timed->from_minute) || (yesterday && at < timed->until_minute);
}

const struct weir_sched_timed_quota *timed_quota_of(const struct weir_sched_snapshot *snapshot,
                                                    const struct weir_sched_queue *queue)
{
    for (int32_t w = 0; w < queue->n_timed_quotas; w++) {
        if (timed_quota_holds(&queue->timed_quotas[w], snapshot->now_ms)) {
            return &queue->timed_quotas[w];
        }
    }
    return NULL;
}

const struct weir_sched_timed_quota *
weir_sched_timed_quota_now(const struct weir_sched_snapshot *snapshot,
                           const struct weir_sched_queue *queue)
{
    return timed_quota_of(snapshot, queue);
}
