#include "stream.h"

#include <string.h>

void rtsp_stream_init(struct rtsp_stream *stream, enum weir_rtsp_codec codec, int payload_type,
                      uint64_t wait_ns)
{
    memset(stream, 0, sizeof *stream);
    stream->codec = rtsp_codecs[codec];
    stream->payload_type = payload_type;
    stream->queue.wait_ns = wait_ns;
    stream->is_suspect = true;
    stream->waits_for_key = !stream->codec->is_alone;
    weir_buf_init(&stream->unit.bytes, WEIR_RTSP_UNIT_MAX_BYTES);
}

void rtsp_stream_fini(struct rtsp_stream *stream)
{
    rtsp_queue_fini(&stream->queue);
    weir_buf_fini(&stream->unit.bytes);
}

/* The next packet begins a unit. */
static void begin_unit(struct rtsp_stream *stream)
{
    rtsp_unit_begin(&stream->unit);
    stream->is_broken = stream->is_given = false;
    stream->n_unit_packets = 0;
}

static void drop_unit(struct rtsp_stream *stream)
{
    stream->counts.n_dropped += stream->n_unit_packets > 0;
    stream->n_lost_before += stream->n_unit_packets;
    begin_unit(stream);
}

weir_status rtsp_stream_offer(struct rtsp_stream *stream, const uint8_t *bytes, size_t n,
                              uint64_t received_ns)
{
    struct rtsp_packet packet;
    if (rtsp_packet_parse(bytes, n, &packet) != WEIR_OK) {
        stream->counts.n_late++;
        return WEIR_OK;
    }
    packet.received_ns = received_ns;
    stream->counts.n_packets++;
    if (stream->has_source && packet.source != stream->source) {
        rtsp_queue_restart(&stream->queue);
        rtsp_clock_restart(&stream->clock);
        stream->is_broken = stream->is_suspect = true;
        stream->waits_for_key = !stream->codec->is_alone;
    }
    stream->has_source = true;
    stream->source = packet.source;
    rtsp_receiver_packet(&stream->receiver, &packet);
    return rtsp_queue_offer(&stream->queue, &packet);
}

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void rtsp_stream_report(struct rtsp_stream *stream, const uint8_t *bytes, size_t n,
                        uint64_t received_ns)
{
    enum { HEAD_BYTES = 8, REPORT_BYTES = 20, SENDER_REPORT = 200, BYE = 203 };

    while (n >= HEAD_BYTES && bytes[0] >> 6 == 2) {
        size_t n_part = 4 + (size_t)4 * ((size_t)bytes[2] << 8 | bytes[3]);
        bool is_own = !stream->has_source || u32_at(bytes + 4) == stream->source;
        if (n_part > n) {
            return;
        }
        if (bytes[1] == SENDER_REPORT && n_part >= REPORT_BYTES && is_own) {
            uint64_t ntp_time = (uint64_t)u32_at(bytes + 8) << 32 | u32_at(bytes + 12);
            rtsp_clock_report(&stream->clock, ntp_time, u32_at(bytes + 16));
            rtsp_receiver_report(&stream->receiver, ntp_time, received_ns);
        }
        stream->has_ended = stream->has_ended || (bytes[1] == BYE && n_part >= HEAD_BYTES &&
                                                  stream->has_source && is_own);
        bytes += n_part;
        n -= n_part;
    }
}

/* The unit has come to its end. Gives it, or drops it. @return Is it given? */
static bool end_unit(struct rtsp_stream *stream, struct weir_rtsp_unit *out)
{
    struct rtsp_unit *unit = &stream->unit;
    bool is_whole = !stream->is_broken && !unit->is_in_fragment && unit->has_picture &&
                    (unit->begins || !stream->is_suspect) &&
                    (stream->codec->end == NULL || stream->codec->end(unit) == WEIR_OK);
    bool is_alone = stream->codec->is_alone;
    bool is_of_use = is_whole && (is_alone || unit->is_key || !stream->waits_for_key);
    bool is_skipped = is_of_use && unit->is_skipped && stream->has_resumed;
    stream->has_resumed = is_skipped || stream->waits_for_key;
    stream->waits_for_key = !is_alone && !is_of_use;
    stream->is_suspect = false;
    if (!is_of_use || is_skipped) {
        drop_unit(stream);
        return false;
    }
    stream->counts.n_units++;
    stream->is_given = true;
    *out = (struct weir_rtsp_unit){
        .bytes = (const uint8_t *)unit->bytes.data,
        .n_bytes = unit->bytes.len,
        .received_ns = stream->unit_ns,
        .n_lost_before = stream->n_lost_before,
        .is_key = unit->is_key,
    };
    stream->n_lost_before = 0;
    rtsp_clock_stamp(&stream->clock, stream->unit_time, out);
    return true;
}

/* Are packets missing before this one? */
static bool see_gap(struct rtsp_stream *stream)
{
    uint64_t n_lost = stream->queue.n_lost - stream->n_lost_seen;
    if (n_lost > 0) {
        stream->n_lost_seen += n_lost;
        stream->n_lost_before += n_lost;
        stream->is_broken = stream->is_broken || stream->n_unit_packets > 0;
        stream->is_suspect = true;
        stream->waits_for_key = !stream->codec->is_alone;
    }
    return n_lost > 0;
}

/* A packet into the unit. */
static weir_status take_packet(struct rtsp_stream *stream, const struct rtsp_packet *packet,
                               struct weir_error *err)
{
    stream->unit_time = packet->rtp_time;
    stream->unit_ns = packet->received_ns;
    stream->n_unit_packets++;
    if (stream->is_broken || packet->n == 0) {
        return WEIR_OK;
    }
    weir_status status = stream->codec->take(&stream->unit, packet->payload, packet->n, err);
    if (status == WEIR_ERR_CORRUPT || status == WEIR_ERR_LIMIT) {
        stream->is_broken = true;
        return WEIR_OK;
    }
    return status;
}

weir_status rtsp_stream_take(struct rtsp_stream *stream, uint64_t now_ns,
                             struct weir_rtsp_unit *out, struct weir_error *err)
{
    const struct rtsp_packet *packet = NULL;
    if (stream->is_given) {
        begin_unit(stream);
    }
    while ((packet = rtsp_queue_peek(&stream->queue, now_ns)) != NULL) {
        bool has_gap = see_gap(stream);
        bool has_part = stream->is_broken || stream->unit.has_picture;
        if (stream->n_unit_packets == 0) {
            stream->is_broken = false;
        } else if (has_part && packet->rtp_time != stream->unit_time) {
            bool is_given = end_unit(stream, out);
            stream->is_suspect = has_gap; /* it is before the next one */
            if (is_given) {
                return WEIR_OK;
            }
        }
        if (packet->payload_type != stream->payload_type) {
            stream->n_lost_before++;
            rtsp_queue_pop(&stream->queue);
            continue;
        }
        weir_status status = take_packet(stream, packet, err);
        bool ends = packet->has_marker && (stream->is_broken || stream->unit.has_picture);
        rtsp_queue_pop(&stream->queue);
        WEIR_TRY(status);
        if (ends && end_unit(stream, out)) {
            return WEIR_OK;
        }
    }
    return WEIR_ERR_TIMEOUT;
}

struct weir_rtsp_counts rtsp_stream_counts(const struct rtsp_stream *stream)
{
    struct weir_rtsp_counts counts = stream->counts;
    counts.n_lost = stream->queue.n_lost;
    counts.n_late += stream->queue.n_late;
    return counts;
}
