#include "receiver.h"

#include "base/macros.h"

#include <string.h>

/* As the queue has it: further ahead is another row of numbers. */
enum { AHEAD_MAX = 3000, LOST_MAX = 0x7fffff, LOST_MIN = -0x800000 };

/* Time in 90 kHz, wrapping as the media clock does. */
static uint32_t ticks_of(uint64_t ns)
{
    return (uint32_t)(ns / 100000 * 9);
}

static void note_jitter(struct rtsp_receiver *receiver, const struct rtsp_packet *packet)
{
    uint32_t transit = ticks_of(packet->received_ns) - packet->rtp_time;
    int32_t change = (int32_t)(transit - receiver->transit);
    uint32_t d = (uint32_t)(change < 0 ? -(int64_t)change : change);
    if (receiver->has_transit) {
        receiver->jitter += d - ((receiver->jitter + 8) >> 4);
    }
    receiver->has_transit = true;
    receiver->transit = transit;
}

void rtsp_receiver_packet(struct rtsp_receiver *receiver, const struct rtsp_packet *packet)
{
    if (!receiver->has_source || receiver->source != packet->source) {
        *receiver = (struct rtsp_receiver){.has_source = true,
                                           .source = packet->source,
                                           .first = packet->number,
                                           .highest = packet->number};
    }
    uint16_t ahead = (uint16_t)(packet->number - receiver->highest);
    if (ahead < AHEAD_MAX) {
        receiver->n_turns += packet->number < receiver->highest;
        receiver->highest = packet->number;
    } else if (ahead <= UINT16_MAX - AHEAD_MAX) {
        return;
    }
    receiver->n_received++;
    note_jitter(receiver, packet);
}

void rtsp_receiver_report(struct rtsp_receiver *receiver, uint64_t ntp_time, uint64_t received_ns)
{
    receiver->report = (uint32_t)(ntp_time >> 16);
    receiver->report_ns = received_ns;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                             (uint8_t)value};
    memcpy(at, bytes, sizeof bytes);
    return at + sizeof bytes;
}

/* How many of 256 were lost since the last report. */
static uint32_t lost_share(struct rtsp_receiver *receiver, uint32_t n_expected)
{
    uint32_t n_wanted = n_expected - receiver->n_expected_before;
    int64_t n_lost =
        (int64_t)n_wanted - (int64_t)(receiver->n_received - receiver->n_received_before);
    receiver->n_expected_before = n_expected;
    receiver->n_received_before = receiver->n_received;
    return n_wanted == 0 || n_lost <= 0 ? 0
                                        : (uint32_t)WEIR_MIN(n_lost * 256 / n_wanted, (int64_t)255);
}

static uint8_t *put_block(struct rtsp_receiver *receiver, uint64_t now_ns, uint8_t *at)
{
    uint32_t highest = (receiver->n_turns << 16) + receiver->highest;
    uint32_t n_expected = highest - receiver->first + 1;
    int64_t n_lost = (int64_t)n_expected - receiver->n_received;
    n_lost = WEIR_MIN(WEIR_MAX(n_lost, (int64_t)LOST_MIN), (int64_t)LOST_MAX);
    uint32_t share = lost_share(receiver, n_expected);
    uint64_t since_ns = receiver->report != 0 ? now_ns - receiver->report_ns : 0;
    at = put_u32(at, receiver->source);
    at = put_u32(at, share << 24 | ((uint32_t)n_lost & 0xffffff));
    at = put_u32(at, highest);
    at = put_u32(at, receiver->jitter >> 4);
    at = put_u32(at, receiver->report);
    return put_u32(at, (uint32_t)(since_ns / 1000 * 65536 / 1000000));
}

size_t rtsp_receiver_write(struct rtsp_receiver *receiver, uint64_t now_ns,
                           uint8_t out[RTSP_RECEIVER_BYTES])
{
    static const uint8_t head[] = {0x80, 201, 0, 1, 'w', 'e', 'i', 'r'};
    static const uint8_t name[] = {0x81, 202, 0,   3,   'w', 'e', 'i', 'r',
                                   1,    4,   'w', 'e', 'i', 'r', 0,   0};
    uint8_t *at = out + sizeof head;
    memcpy(out, head, sizeof head);
    if (receiver->has_source) {
        out[0] |= 1;
        out[3] = 7;
        at = put_block(receiver, now_ns, at);
    }
    memcpy(at, name, sizeof name);
    return (size_t)(at - out) + sizeof name;
}
