/**
 * Receiver: what has come of a stream, and the report about it that a camera wants (RFC 3550, 6.4.2, A.3 and A.8). Pure.
 *
 * All zeros before the first packet. Another source begins from nothing.
 */
#ifndef WEIR_RTSP_RECEIVER_H
#define WEIR_RTSP_RECEIVER_H

#include "queue.h"

/** The longest report's: with a block about a source, and a description that names us. */
#define RTSP_RECEIVER_BYTES 48

struct rtsp_receiver {
    bool has_source;
    uint32_t source;
    uint16_t first, highest;
    uint32_t n_turns; /**< How often the numbers began again, which have 16 bits. */
    uint32_t n_received;
    uint32_t n_expected_before, n_received_before; /**< At the last report. */
    bool has_transit;
    uint32_t transit; /**< The last packet's, in ticks of 90 kHz. */
    uint32_t jitter;  /**< Times 16. */
    uint32_t report;  /**< The middle of the last sender report's time; 0: there was none. */
    uint64_t report_ns;
};

/** A packet has come, in any order. One far off is left. */
void rtsp_receiver_packet(struct rtsp_receiver *receiver, const struct rtsp_packet *packet);

/** A sender report has come, of this time of NTP. */
void rtsp_receiver_report(struct rtsp_receiver *receiver, uint64_t ntp_time, uint64_t received_ns);

/** Write a report about all since the last one. @return How many bytes it has. */
size_t rtsp_receiver_write(struct rtsp_receiver *receiver, uint64_t now_ns,
                           uint8_t out[RTSP_RECEIVER_BYTES]);

#endif
