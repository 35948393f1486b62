#include "clock.h"

#include "base/macros.h"

#define TICKS_PER_S  90000
#define TICKS_PER_MS 90
#define JUMP_MS      1000

/* From 1900 to 1970. */
#define NTP_TO_UNIX_S 2208988800

static int64_t ticks_at(struct rtsp_clock *clock, uint32_t rtp_time)
{
    if (!clock->has_time) {
        clock->has_time = true;
        clock->last_rtp_time = rtp_time;
        clock->ticks = 0;
    }
    return clock->ticks + (int32_t)(rtp_time - clock->last_rtp_time);
}

void rtsp_clock_report(struct rtsp_clock *clock, uint64_t ntp_time, uint32_t rtp_time)
{
    if (ntp_time == 0) {
        return; /* it has no wall clock */
    }
    int64_t wall_ms = ((int64_t)(ntp_time >> 32) - NTP_TO_UNIX_S) * 1000 +
                      (int64_t)((ntp_time & UINT32_MAX) * 1000 >> 32);
    int64_t offset_ms = wall_ms - ticks_at(clock, rtp_time) / TICKS_PER_MS;
    int64_t change_ms = offset_ms - clock->wall_offset_ms;
    if (clock->has_wall && (change_ms > JUMP_MS || change_ms < -JUMP_MS)) {
        clock->begins_epoch = true;
    }
    clock->has_wall = true;
    clock->wall_offset_ms = offset_ms;
}

/* Has the media clock jumped to this time? */
static bool has_jumped(const struct rtsp_clock *clock, int64_t ticks, uint64_t received_ns)
{
    int64_t passed = (int64_t)((received_ns - clock->last_received_ns) / 1000000) * TICKS_PER_MS;
    int64_t change = ticks - clock->ticks;
    return change < -TICKS_PER_S || change > passed + TICKS_PER_S;
}

void rtsp_clock_stamp(struct rtsp_clock *clock, uint32_t rtp_time, struct weir_rtsp_unit *unit)
{
    bool is_known = clock->has_time && clock->has_unit;
    int64_t ticks = ticks_at(clock, rtp_time);
    if (is_known && !clock->begins_epoch && has_jumped(clock, ticks, unit->received_ns)) {
        clock->begins_epoch = true;
        clock->has_wall = false; /* until it is reported for the new time */
    }
    clock->ticks = ticks;
    clock->last_rtp_time = rtp_time;
    if (clock->begins_epoch || clock->epoch == 0) {
        uint64_t passed_ns = clock->has_unit ? unit->received_ns - clock->last_received_ns : 0;
        clock->epoch++;
        clock->epoch_ticks = ticks;
        clock->epoch_us = clock->last_us + (int64_t)(passed_ns / 1000);
        clock->last_wall_ms = INT64_MIN;
        clock->begins_epoch = false;
    }
    int64_t us = clock->epoch_us + (ticks - clock->epoch_ticks) * 100 / 9;
    clock->last_us = WEIR_MAX(us, clock->last_us);
    clock->last_received_ns = unit->received_ns;
    clock->has_unit = true;
    unit->rtp_time = rtp_time;
    unit->epoch = clock->epoch;
    unit->media_us = clock->last_us;
    unit->wall_ms = 0;
    if (clock->has_wall) {
        clock->last_wall_ms =
            WEIR_MAX(clock->wall_offset_ms + ticks / TICKS_PER_MS, clock->last_wall_ms);
        unit->wall_ms = clock->last_wall_ms;
    }
}

void rtsp_clock_restart(struct rtsp_clock *clock)
{
    clock->has_time = clock->has_wall = false;
    clock->begins_epoch = clock->has_unit;
}
