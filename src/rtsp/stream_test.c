#include "stream.h"

#include "base/grow.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

enum { N_UNITS = 60, GROUP = 12, MTU_MIN = 200, PAYLOAD_TYPE = 96, TICKS = 9000 };

#define UNIT_NS   ((uint64_t)100000000)
#define JITTER_NS ((uint64_t)20000000)
#define WAIT_NS   ((uint64_t)50000000)

/* A packet as it was sent. `begins`: its first byte is the begin of a NAL unit that can begin a unit. */
struct sent_packet {
    uint8_t *bytes;
    size_t n;
    uint64_t arrival_ns;
    int i_unit;
    bool begins, is_lost;
};

/* The unit that is sent, and where its NAL units lie. */
struct sent_unit {
    struct weir_buf bytes;
    size_t nals[16];
    bool is_first_slice[16], is_parameter[16];
    size_t n_nals;
    bool is_key;
    size_t first_packet, n_packets;
};

struct sender {
    struct weir_rng rng;
    enum weir_rtsp_codec codec;
    bool has_markers;
    uint16_t first_number;
    uint32_t first_time, source;
    struct sent_unit units[N_UNITS];
    struct sent_packet *packets;
    size_t n_packets, cap;
};

static void put_packet(struct sender *sender, int i_unit, const void *payload, size_t n,
                       bool begins)
{
    weir_xgrow(&sender->packets, sizeof *sender->packets, sender->n_packets, &sender->cap);
    struct sent_packet *packet = &sender->packets[sender->n_packets];
    uint16_t number = (uint16_t)(sender->first_number + sender->n_packets++);
    uint32_t time = sender->first_time + (uint32_t)i_unit * TICKS;
    size_t n_padding = weir_rng_below(&sender->rng, 8) == 0 ? 4 : 0;
    bool has_extension = weir_rng_below(&sender->rng, 8) == 0;
    uint8_t head[24] = {(uint8_t)(0x80 | (n_padding > 0) << 5 | has_extension << 4), PAYLOAD_TYPE,
                        (uint8_t)(number >> 8), (uint8_t)number};
    for (int i = 0; i < 4; i++) {
        head[4 + i] = (uint8_t)(time >> (24 - 8 * i));
        head[8 + i] = (uint8_t)(sender->source >> (24 - 8 * i));
    }
    head[15] = 2; /* words of the extension */
    size_t n_head = has_extension ? sizeof head : 12;
    *packet = (struct sent_packet){.bytes = calloc(1, n_head + n + n_padding),
                                   .n = n_head + n + n_padding,
                                   .i_unit = i_unit,
                                   .begins = begins};
    memcpy(packet->bytes, head, n_head);
    memcpy(packet->bytes + n_head, payload, n);
    if (n_padding > 0) {
        packet->bytes[packet->n - 1] = (uint8_t)n_padding;
    }
}

/* A NAL unit of random bytes. The first slice of a picture says so by the first bit behind the NAL header. */
static void make_nal(struct sender *sender, struct sent_unit *unit, unsigned type, bool is_first,
                     bool is_slice)
{
    static const uint8_t start[] = {0, 0, 0, 1};
    uint8_t nal[2000];
    bool is_h265 = sender->codec == WEIR_RTSP_H265;
    size_t n = is_slice ? 3 + weir_rng_below(&sender->rng, sizeof nal - 3)
                        : 3 + weir_rng_below(&sender->rng, 40);
    for (size_t i = 0; i < n; i++) {
        nal[i] = (uint8_t)weir_rng_u32(&sender->rng);
    }
    size_t n_head = is_h265 ? 2 : 1;
    nal[0] = is_h265 ? (uint8_t)(type << 1) : (uint8_t)(0x60 | type);
    nal[1] = is_h265 ? 1 : nal[1];
    if (is_slice) {
        nal[n_head] = (uint8_t)(is_first ? nal[n_head] | 0x80 : nal[n_head] & 0x7f);
    }
    unit->is_first_slice[unit->n_nals] = is_first;
    unit->is_parameter[unit->n_nals] = !is_slice;
    unit->nals[unit->n_nals++] = unit->bytes.len;
    (void)weir_buf_append(&unit->bytes, start, sizeof start);
    ck_assert_int_eq(weir_buf_append(&unit->bytes, nal, n), WEIR_OK);
}

static void make_unit(struct sender *sender, struct sent_unit *unit, bool is_key)
{
    static const unsigned sets[2][3] = {{7, 8, 8}, {32, 33, 34}};
    static const unsigned slices[2][2] = {{1, 5}, {1, 19}};
    bool is_h265 = sender->codec == WEIR_RTSP_H265;
    unit->is_key = is_key;
    weir_buf_init(&unit->bytes, 1 << 20);
    for (size_t i = 0; is_key && i < 3; i++) {
        make_nal(sender, unit, sets[is_h265][i], false, false);
    }
    for (size_t i = 0, n = 1 + weir_rng_below(&sender->rng, 4); i < n; i++) {
        make_nal(sender, unit, slices[is_h265][is_key], i == 0, true);
    }
}

static size_t nal_bytes(const struct sent_unit *unit, size_t i)
{
    size_t end = i + 1 < unit->n_nals ? unit->nals[i + 1] : unit->bytes.len;
    return end - unit->nals[i] - 4;
}

static const uint8_t *nal_at(const struct sent_unit *unit, size_t i)
{
    return (const uint8_t *)unit->bytes.data + unit->nals[i] + 4;
}

/* RFC 6184, 5.8 and RFC 7798, 4.4.3. */
static void send_fragments(struct sender *sender, int i_unit, size_t i_nal, size_t mtu, bool begins)
{
    const struct sent_unit *unit = &sender->units[i_unit];
    const uint8_t *nal = nal_at(unit, i_nal);
    bool is_h265 = sender->codec == WEIR_RTSP_H265;
    size_t n_head = is_h265 ? 2 : 1, n_left = nal_bytes(unit, i_nal) - n_head, at = n_head;
    while (n_left > 0) {
        uint8_t payload[2048] = {0};
        size_t n = WEIR_MIN(n_left, mtu);
        unsigned flags = (at == n_head ? 0x80u : 0) | (n == n_left ? 0x40u : 0);
        if (is_h265) {
            payload[0] = (uint8_t)((nal[0] & 0x81) | 49 << 1);
            payload[1] = nal[1];
            payload[2] = (uint8_t)(flags | nal[0] >> 1);
        } else {
            payload[0] = (uint8_t)((nal[0] & 0xe0) | 28);
            payload[1] = (uint8_t)(flags | (nal[0] & 0x1f));
        }
        memcpy(payload + n_head + 1, nal + at, n);
        put_packet(sender, i_unit, payload, n_head + 1 + n, begins && at == n_head);
        at += n;
        n_left -= n;
    }
}

/* As many NAL units as fit into one packet. @return the index behind them. */
static size_t send_together(struct sender *sender, int i_unit, size_t i_nal, size_t mtu,
                            bool begins)
{
    const struct sent_unit *unit = &sender->units[i_unit];
    uint8_t payload[2048];
    size_t n = 0;
    if (sender->codec == WEIR_RTSP_H265) {
        payload[n++] = 48 << 1;
        payload[n++] = 1;
    } else {
        payload[n++] = 24;
    }
    for (; i_nal < unit->n_nals && n + 2 + nal_bytes(unit, i_nal) <= mtu; i_nal++) {
        size_t n_nal = nal_bytes(unit, i_nal);
        payload[n++] = (uint8_t)(n_nal >> 8);
        payload[n++] = (uint8_t)n_nal;
        memcpy(payload + n, nal_at(unit, i_nal), n_nal);
        n += n_nal;
    }
    put_packet(sender, i_unit, payload, n, begins);
    return i_nal;
}

static void send_unit(struct sender *sender, int i_unit)
{
    struct sent_unit *unit = &sender->units[i_unit];
    size_t mtu = MTU_MIN + weir_rng_below(&sender->rng, 1200);
    make_unit(sender, unit, i_unit % GROUP == 0);
    unit->first_packet = sender->n_packets;
    for (size_t i = 0; i < unit->n_nals;) {
        bool begins = unit->is_parameter[i] || unit->is_first_slice[i];
        size_t n = nal_bytes(unit, i);
        if (n + 5 > mtu) {
            send_fragments(sender, i_unit, i++, mtu, begins);
        } else if (weir_rng_below(&sender->rng, 2) == 0) {
            i = send_together(sender, i_unit, i, mtu, begins);
        } else {
            put_packet(sender, i_unit, nal_at(unit, i++), n, begins);
        }
    }
    unit->n_packets = sender->n_packets - unit->first_packet;
    if (sender->has_markers) {
        sender->packets[sender->n_packets - 1].bytes[1] |= 0x80;
    }
}

static void send_all(struct sender *sender, enum weir_rtsp_codec codec)
{
    *sender = (struct sender){.codec = codec};
    (void)test_seed(&sender->rng);
    sender->has_markers = weir_rng_below(&sender->rng, 4) > 0;
    sender->first_number = (uint16_t)(UINT16_MAX - weir_rng_below(&sender->rng, 300));
    sender->first_time = UINT32_MAX - (uint32_t)weir_rng_below(&sender->rng, 20 * TICKS);
    sender->source = weir_rng_u32(&sender->rng);
    for (int i = 0; i < N_UNITS; i++) {
        send_unit(sender, i);
    }
    for (size_t i = 0; i < sender->n_packets; i++) {
        sender->packets[i].arrival_ns = UNIT_NS * (uint64_t)(10 + sender->packets[i].i_unit) + i;
    }
}

static void forget_all(struct sender *sender)
{
    for (size_t i = 0; i < sender->n_packets; i++) {
        free(sender->packets[i].bytes);
    }
    for (int i = 0; i < N_UNITS; i++) {
        weir_buf_fini(&sender->units[i].bytes);
    }
    free(sender->packets);
}

/* What of a unit arrives: all of it, its last part from a packet that can begin a unit, or nothing of use. */
enum arrival { ARRIVES_NOT, ARRIVES_IN_PART, ARRIVES_WHOLE };

static enum arrival arrival_of(const struct sender *sender, const struct sent_unit *unit,
                               size_t *out_first)
{
    const struct sent_packet *packets = sender->packets + unit->first_packet;
    size_t first = 0;
    while (first < unit->n_packets && packets[first].is_lost) {
        first++;
    }
    for (size_t i = first; i < unit->n_packets; i++) {
        if (packets[i].is_lost) {
            return ARRIVES_NOT;
        }
    }
    *out_first = first;
    if (first == 0) {
        return ARRIVES_WHOLE;
    }
    return first < unit->n_packets && packets[first].begins ? ARRIVES_IN_PART : ARRIVES_NOT;
}

/* Which units must come out, by the rule alone; and how many packets of each. */
struct expected {
    bool is_given[N_UNITS];
    size_t n_packets[N_UNITS];
};

static void expect(const struct sender *sender, struct expected *out)
{
    bool is_chained = false;
    for (int i = 0; i < N_UNITS; i++) {
        const struct sent_unit *unit = &sender->units[i];
        size_t first = 0;
        enum arrival arrival = arrival_of(sender, unit, &first);
        /* without markers, a unit before a gap cannot be told from one whose end is missing */
        bool is_cut = !sender->has_markers && i + 1 < N_UNITS &&
                      sender->packets[sender->units[i + 1].first_packet].is_lost;
        bool is_last = !sender->has_markers && i + 1 == N_UNITS;
        is_chained = arrival != ARRIVES_NOT && !is_cut && !is_last &&
                     (unit->is_key || (is_chained && arrival == ARRIVES_WHOLE));
        out->is_given[i] = is_chained;
        out->n_packets[i] = unit->n_packets - first;
    }
}

/* A given unit against the one that was sent: it is all of it, or the end of it from a NAL unit on. */
static void check_unit(const struct sender *sender, const struct weir_rtsp_unit *unit, int i,
                       const struct expected *expected)
{
    const struct sent_unit *sent = &sender->units[i];
    ck_assert_uint_le(unit->n_bytes, sent->bytes.len);
    size_t n_missing = sent->bytes.len - unit->n_bytes;
    ck_assert(n_missing == 0 || expected->n_packets[i] < sent->n_packets);
    ck_assert_mem_eq(unit->bytes, sent->bytes.data + n_missing, unit->n_bytes);
    for (size_t k = 0; k < sent->n_nals && sent->nals[k] < n_missing; k++) {
        ck_assert(sent->is_parameter[k]);
    }
    ck_assert(unit->is_key == sent->is_key);
    ck_assert_uint_eq(unit->epoch, 1);
}

struct receiver {
    struct rtsp_stream stream;
    struct expected expected;
    int i_last;      /**< Unit that was given last. */
    uint64_t n_told; /**< Packets in units, or told as lost. */
    int64_t media_us;
};

static void take_all(struct receiver *receiver, const struct sender *sender, uint64_t now_ns)
{
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    weir_status status;
    while ((status = rtsp_stream_take(&receiver->stream, now_ns, &unit, &err)) == WEIR_OK) {
        int i = (int)((unit.rtp_time - sender->first_time) / TICKS);
        for (int k = receiver->i_last + 1; k < i; k++) {
            ck_assert_msg(!receiver->expected.is_given[k], "unit %d is missing before %d", k, i);
        }
        ck_assert_int_gt(i, receiver->i_last);
        ck_assert_msg(receiver->expected.is_given[i], "unit %d is given", i);
        check_unit(sender, &unit, i, &receiver->expected);
        receiver->n_told += unit.n_lost_before + receiver->expected.n_packets[i];
        const struct sent_unit *sent = &sender->units[i];
        ck_assert_uint_eq(receiver->n_told, sent->first_packet + sent->n_packets);
        ck_assert_int_ge(unit.media_us, receiver->media_us);
        receiver->media_us = unit.media_us;
        receiver->i_last = i;
    }
    ck_assert_int_eq(status, WEIR_ERR_TIMEOUT);
}

/* A packet in the order in which it arrives. */
struct arriving {
    const struct sent_packet *packet;
};

/* n_twice: of the packets that are not lost, how many come a second time. */
static void receive(const struct sender *sender, const struct arriving *order, size_t n,
                    uint64_t wait_ns, size_t n_twice)
{
    struct receiver *receiver = calloc(1, sizeof *receiver);
    ck_assert_ptr_nonnull(receiver);
    rtsp_stream_init(&receiver->stream, sender->codec, PAYLOAD_TYPE, wait_ns);
    expect(sender, &receiver->expected);
    receiver->i_last = -1;
    for (size_t i = 0; i < n; i++) {
        if (!order[i].packet->is_lost) {
            take_all(receiver, sender, order[i].packet->arrival_ns);
            ck_assert_int_eq(rtsp_stream_offer(&receiver->stream, order[i].packet->bytes,
                                               order[i].packet->n, order[i].packet->arrival_ns),
                             WEIR_OK);
            take_all(receiver, sender, order[i].packet->arrival_ns);
        }
    }
    take_all(receiver, sender, UINT64_MAX / 2);
    for (int k = receiver->i_last + 1; k < N_UNITS; k++) {
        ck_assert_msg(!receiver->expected.is_given[k], "unit %d is missing", k);
    }
    ck_assert_uint_eq(rtsp_stream_counts(&receiver->stream).n_late, n_twice);
    ck_assert_uint_eq(receiver->stream.queue.n_held, 0);
    rtsp_stream_fini(&receiver->stream);
    free(receiver);
}

static void lose(struct sender *sender, unsigned n_in_1000)
{
    for (size_t i = 1; i < sender->n_packets; i++) {
        sender->packets[i].is_lost = weir_rng_below(&sender->rng, 1000) < n_in_1000;
    }
}

static int by_arrival(const void *a, const void *b)
{
    const struct arriving *x = a, *y = b;
    return (x->packet->arrival_ns > y->packet->arrival_ns) -
           (x->packet->arrival_ns < y->packet->arrival_ns);
}

enum { N_RATES = 4 };

static const unsigned rates[N_RATES] = {0, 5, 30, 200};

/* In order, with losses: what comes out equals what went in, or is told as lost. _i: codec and rate. */
START_TEST(units_come_out_as_they_went_in)
{
    struct sender sender;
    send_all(&sender, _i % 2 == 0 ? WEIR_RTSP_H264 : WEIR_RTSP_H265);
    lose(&sender, rates[_i / 2 % N_RATES]);
    struct arriving *order = calloc(sender.n_packets, sizeof *order);
    for (size_t i = 0; i < sender.n_packets; i++) {
        order[i].packet = &sender.packets[i];
    }
    receive(&sender, order, sender.n_packets, 0, 0);
    free(order);
    forget_all(&sender);
}

END_TEST

/* The same as datagrams: shuffled within 20 ms, and some of them twice. */
START_TEST(datagrams_that_overtake_change_nothing)
{
    struct sender sender;
    send_all(&sender, _i % 2 == 0 ? WEIR_RTSP_H264 : WEIR_RTSP_H265);
    lose(&sender, rates[_i / 2 % N_RATES]);
    struct arriving *order = calloc(2 * sender.n_packets, sizeof *order);
    struct sent_packet *copies = calloc(sender.n_packets, sizeof *copies);
    size_t n = 0, n_twice = 0;
    for (size_t i = 0; i < sender.n_packets; i++) {
        copies[i] = sender.packets[i];
        copies[i].arrival_ns += 1 + weir_rng_below(&sender.rng, JITTER_NS);
        sender.packets[i].arrival_ns += i == 0 ? 0 : weir_rng_below(&sender.rng, JITTER_NS);
        order[n++].packet = &sender.packets[i];
        if (weir_rng_below(&sender.rng, 10) == 0) {
            order[n++].packet = &copies[i];
            n_twice += !copies[i].is_lost;
        }
    }
    qsort(order, n, sizeof *order, by_arrival);
    receive(&sender, order, n, WAIT_NS, n_twice);
    free(copies);
    free(order);
    forget_all(&sender);
}

END_TEST

/* Another sender, and one that begins to count from another number: a new epoch, and nothing before a key. */
START_TEST(another_sender_begins_an_epoch)
{
    struct sender sender;
    send_all(&sender, WEIR_RTSP_H264);
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    rtsp_stream_init(stream, WEIR_RTSP_H264, PAYLOAD_TYPE, 0);
    uint32_t epoch = 0;
    for (size_t i = 0; i < sender.n_packets; i++) {
        struct sent_packet *packet = &sender.packets[i];
        packet->bytes[8] ^= packet->i_unit >= 3; /* in the middle of a group */
        ck_assert_int_eq(rtsp_stream_offer(stream, packet->bytes, packet->n, packet->arrival_ns),
                         WEIR_OK);
        while (rtsp_stream_take(stream, packet->arrival_ns, &unit, &err) == WEIR_OK) {
            int i_unit = (int)((unit.rtp_time - sender.first_time) / TICKS);
            ck_assert(i_unit < 3 || i_unit >= GROUP);
            ck_assert_uint_eq(unit.epoch, i_unit < 3 ? 1 : 2);
            epoch = unit.epoch;
        }
    }
    ck_assert_uint_eq(epoch, 2);
    rtsp_stream_fini(stream);
    free(stream);
    forget_all(&sender);
}

END_TEST

/* Pictures of H.265 that refer to what is before the key: where that is missing they are dropped, and no others. */
START_TEST(pictures_before_a_key_need_what_is_before_it)
{
    enum { TRAIL = 1, RASL = 9, CRA = 21 };

    static const struct {
        uint8_t type, is_lost, is_given;
    } rows[] = {{CRA, 0, 1},   {RASL, 0, 0}, {RASL, 0, 0}, {TRAIL, 0, 1},
                {RASL, 0, 1},  {CRA, 0, 1},  {RASL, 0, 1}, {TRAIL, 1, 0},
                {TRAIL, 0, 0}, {CRA, 0, 1},  {RASL, 0, 0}, {TRAIL, 0, 1}};
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    rtsp_stream_init(stream, WEIR_RTSP_H265, PAYLOAD_TYPE, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        uint8_t number = (uint8_t)i, head = (uint8_t)(rows[i].type << 1);
        const uint8_t bytes[] = {
            0x80,  0x80 | PAYLOAD_TYPE, 0, number, 0, 0, number, 0, 0, 0, 0, 0, head, 1, 0x80,
            number};
        if (!rows[i].is_lost) {
            ck_assert_int_eq(rtsp_stream_offer(stream, bytes, sizeof bytes, 1), WEIR_OK);
        }
        ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err),
                         rows[i].is_given ? WEIR_OK : WEIR_ERR_TIMEOUT);
    }
    rtsp_stream_fini(stream);
    free(stream);
}

END_TEST

/* A unit that never ends is dropped at its bound, and its memory with it. */
START_TEST(a_unit_has_a_bound)
{
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    uint8_t *bytes = calloc(1, 65000);
    struct weir_rtsp_unit unit;
    struct weir_error err = {0};
    rtsp_stream_init(stream, WEIR_RTSP_H264, PAYLOAD_TYPE, 0);
    for (unsigned i = 0; i < 150; i++) {
        const uint8_t head[] = {0x80,       PAYLOAD_TYPE, (uint8_t)(i >> 8),
                                (uint8_t)i, [12] = 0x65,  0x80};
        memcpy(bytes, head, sizeof head);
        bytes[1] |= i == 149 ? 0x80 : 0;
        ck_assert_int_eq(rtsp_stream_offer(stream, bytes, 65000, 1), WEIR_OK);
        ck_assert_int_eq(rtsp_stream_take(stream, 1, &unit, &err), WEIR_ERR_TIMEOUT);
        ck_assert_uint_le(stream->unit.bytes.cap, 2 * WEIR_RTSP_UNIT_MAX_BYTES);
    }
    ck_assert_uint_eq(rtsp_stream_counts(stream).n_dropped, 1);
    rtsp_stream_fini(stream);
    free(bytes);
    free(stream);
}

END_TEST

START_TEST(reports_and_the_end_are_read)
{
    static const uint8_t report[] = {0x80, 200, 0, 6, 0,    0,   0, 0, 0xe8, 0xfe, 0x8e, 0x80,
                                     0,    0,   0, 0, 0,    0,   0, 0, 0,    0,    0,    0,
                                     0,    0,   0, 0, 0x81, 202, 0, 1, 0,    0,    0,    0};
    static const uint8_t bye[] = {0x81, 203, 0, 1, 0, 0, 0, 0};
    struct rtsp_stream *stream = calloc(1, sizeof *stream);
    rtsp_stream_init(stream, WEIR_RTSP_H264, PAYLOAD_TYPE, 0);
    for (size_t i = 0; i < sizeof report; i++) {
        rtsp_stream_report(stream, report, i < 28 ? i : 0, 0);
        ck_assert(!stream->clock.has_wall);
    }
    rtsp_stream_report(stream, report, sizeof report, 0);
    ck_assert(stream->clock.has_wall);
    rtsp_stream_report(stream, bye, sizeof bye, 0);
    ck_assert(!stream->has_ended); /* nobody has begun */
    stream->has_source = true;
    rtsp_stream_report(stream, bye, sizeof bye, 0);
    ck_assert(stream->has_ended);
    rtsp_stream_fini(stream);
    free(stream);
}

END_TEST

WEIR_TEST_LOOPS_MAIN(
    "rtsp_stream", {units_come_out_as_they_went_in, WEIR_TEST_TIMES(20 * N_RATES, 4 * N_RATES)},
    {datagrams_that_overtake_change_nothing, WEIR_TEST_TIMES(20 * N_RATES, 4 * N_RATES)},
    {another_sender_begins_an_epoch, 0}, {pictures_before_a_key_need_what_is_before_it, 0},
    {a_unit_has_a_bound, 0}, {reports_and_the_end_are_read, 0})
