#include "clock.h"

#include "base/macros.h"
#include "base/test_main.h"

static struct weir_rtsp_unit stamp(struct rtsp_clock *clock, uint32_t rtp_time, uint64_t ms)
{
    struct weir_rtsp_unit unit = {.received_ns = ms * 1000000};
    rtsp_clock_stamp(clock, rtp_time, &unit);
    return unit;
}

static uint64_t ntp_of(int64_t unix_s, double part)
{
    return (uint64_t)(unix_s + 2208988800) << 32 | (uint64_t)(part * 4294967296.0);
}

START_TEST(a_jump_begins_an_epoch_and_time_goes_on)
{
    static const struct {
        uint32_t ticks; /* since 4096 before the clock wraps */
        uint64_t ms;
        uint32_t epoch;
        int64_t media_ms;
    } rows[] = {
        {0, 1000, 1, 0},
        {9000, 1100, 1, 100},             /* it has wrapped */
        {18000, 4100, 1, 200},            /* the network stood still */
        {63000, 4110, 1, 700},            /* and catches up */
        {333000, 7110, 1, 3700},          /* a slow camera */
        {333000 + 180000, 7120, 2, 3710}, /* two seconds ahead of what has passed here */
        {333000 + 270000, 8120, 2, 4710},
        {333000 + 188000, 8130, 2, 4710}, /* pictures that are shown in another order */
        {333000 + 270000 - 3600u * 90000, 8140, 3, 4720}, /* an hour back */
        {333000 + 279000 - 3600u * 90000, 8240, 3, 4820},
    };
    struct rtsp_clock clock = {0};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        struct weir_rtsp_unit unit = stamp(&clock, 0xfffff000 + rows[i].ticks, rows[i].ms);
        ck_assert_uint_eq(unit.epoch, rows[i].epoch);
        ck_assert_int_eq(unit.media_us, rows[i].media_ms * 1000);
        ck_assert_int_eq(unit.wall_ms, 0);
    }
}

END_TEST

START_TEST(sender_reports_tell_the_wall_clock)
{
    struct rtsp_clock clock = {0};
    rtsp_clock_report(&clock, ntp_of(1700000000, 0.5), 90000);
    ck_assert_int_eq(stamp(&clock, 99000, 0).wall_ms, 1700000000600);
    /* a little off is corrected, never backwards; far off is a new epoch */
    rtsp_clock_report(&clock, ntp_of(1700000000, 0.375), 99000);
    ck_assert_int_eq(stamp(&clock, 108000, 100).wall_ms, 1700000000600);
    ck_assert_int_eq(stamp(&clock, 126000, 300).wall_ms, 1700000000675);
    ck_assert_uint_eq(stamp(&clock, 126000, 300).epoch, 1);
    rtsp_clock_report(&clock, ntp_of(1600000000, 0), 135000);
    struct weir_rtsp_unit unit = stamp(&clock, 135000, 400);
    ck_assert_uint_eq(unit.epoch, 2);
    ck_assert_int_eq(unit.wall_ms, 1600000000000);
    rtsp_clock_report(&clock, 0, 135000); /* it has none */
    ck_assert_uint_eq(stamp(&clock, 144000, 500).epoch, 2);
    /* after a jump of the media clock it is not told until the next report */
    ck_assert_int_eq(stamp(&clock, 144000 + 10 * 90000, 600).wall_ms, 0);
}

END_TEST

WEIR_TEST_MAIN("rtsp_clock", a_jump_begins_an_epoch_and_time_goes_on,
               sender_reports_tell_the_wall_clock)
