/**
 * A stream: packets of RTP and RTCP in, whole units out. It reads no clock and no socket.
 *
 *     rtsp_stream_offer(&stream, bytes, n, received_ns);       each packet as it comes
 *     while (rtsp_stream_take(&stream, now_ns, &unit, err) == WEIR_OK) { … }
 *
 * A unit ends with the marker, else where the time changes. What has no picture yet (parameter sets) belongs to the
 * next one. A unit with a missing or damaged packet is dropped, and those behind it up to the next key.
 *
 * Each packet that was sent is in a unit, or is counted once by n_lost_before of the next one. One thread.
 */
#ifndef WEIR_RTSP_STREAM_H
#define WEIR_RTSP_STREAM_H

#include "clock.h"
#include "codec.h"
#include "receiver.h"

struct rtsp_stream {
    const struct rtsp_codec *codec;
    int payload_type;
    struct rtsp_queue queue;
    struct rtsp_clock clock;
    struct rtsp_receiver receiver;
    struct rtsp_unit unit; /**< In progress, or given. */
    bool has_source, has_ended, is_given;
    bool is_broken;     /**< The unit is of no use. */
    bool is_suspect;    /**< What came before the unit is missing: its own begin may be, too. */
    bool waits_for_key; /**< Others would be decoded wrongly. */
    bool has_resumed;   /**< What is before the last key is missing. */
    uint32_t source, unit_time;
    uint64_t unit_ns;        /**< When its last packet came. */
    uint64_t n_unit_packets; /**< In progress. */
    uint64_t n_lost_seen;    /**< As many as the queue had lost then. */
    uint64_t n_lost_before;
    struct weir_rtsp_counts counts;
};

/** @param wait_ns  How long a missing packet is waited for. */
void rtsp_stream_init(struct rtsp_stream *stream, enum weir_rtsp_codec codec, int payload_type,
                      uint64_t wait_ns);
void rtsp_stream_fini(struct rtsp_stream *stream);

/** A packet of RTP. What is none is counted. @return NOMEM. */
weir_status rtsp_stream_offer(struct rtsp_stream *stream, const uint8_t *bytes, size_t n,
                              uint64_t received_ns) WEIR_MUST_CHECK;

/** Packets of RTCP: sender reports, and the end (has_ended). What is none is left. */
void rtsp_stream_report(struct rtsp_stream *stream, const uint8_t *bytes, size_t n,
                        uint64_t received_ns);

/** The next unit; its bytes live until the next call. @return TIMEOUT: none is whole yet; NOMEM; UNSUPPORTED. */
weir_status rtsp_stream_take(struct rtsp_stream *stream, uint64_t now_ns,
                             struct weir_rtsp_unit *out, struct weir_error *err) WEIR_MUST_CHECK;

struct weir_rtsp_counts rtsp_stream_counts(const struct rtsp_stream *stream);

#endif
