/**
 * A camera's clocks: the media clock in its packets, of 90 kHz, and the wall clock in its sender reports. Pure.
 *
 * All zeros before the first packet. A jump of more than a second begins an epoch: of the media clock backwards, or
 * forwards by more than has passed here; or of the wall clock against it. A picture that comes late is no jump.
 */
#ifndef WEIR_RTSP_CLOCK_H
#define WEIR_RTSP_CLOCK_H

#include "rtsp.h"

struct rtsp_clock {
    bool has_time, has_wall, has_unit, begins_epoch;
    uint32_t last_rtp_time, epoch;
    int64_t ticks;                 /**< At last_rtp_time, without wrapping. */
    int64_t epoch_ticks, epoch_us; /**< Where the epoch began, in ticks and as media_us. */
    int64_t wall_offset_ms;        /**< The wall clock less the media clock. */
    int64_t last_us, last_wall_ms;
    uint64_t last_received_ns;
};

/** A sender report: this time of NTP (seconds since 1900 in the upper half) was that one of RTP. */
void rtsp_clock_report(struct rtsp_clock *clock, uint64_t ntp_time, uint32_t rtp_time);

/** Fills the times and the epoch of a unit that has its received_ns. Units come in the order of sending. */
void rtsp_clock_stamp(struct rtsp_clock *clock, uint32_t rtp_time, struct weir_rtsp_unit *unit);

/** Another sender begins. */
void rtsp_clock_restart(struct rtsp_clock *clock);

#endif
