/* Reports about what has come, against a reading of RFC 3550 that counts otherwise: by sets, from the whole stream. */
#include "receiver.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <string.h>

enum { N_PACKETS = 3000 };

static struct weir_rng rng;

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void give(struct rtsp_receiver *receiver, uint32_t number, uint64_t received_ns)
{
    const struct rtsp_packet packet = {.number = (uint16_t)number,
                                       .rtp_time = number * 9000,
                                       .source = 7,
                                       .received_ns = received_ns};
    rtsp_receiver_packet(receiver, &packet);
}

/* Some are lost, some overtake the next one; each report says what is so up to it, and since the one before. */
START_TEST(a_report_says_how_many_were_lost)
{
    struct rtsp_receiver receiver = {0};
    uint8_t report[RTSP_RECEIVER_BYTES];
    for (int i = 0; i < _i; i++) {
        (void)weir_rng_below(&rng,
                             2); /* each turn is another process, with the same numbers before it */
    }
    uint32_t turn = 65535 - (uint32_t)weir_rng_below(&rng, N_PACKETS);
    uint32_t first = _i % 2 == 0 ? (uint32_t)weir_rng_below(&rng, 65536) : turn, n_come = 1,
             n_come_before = 0;
    uint32_t n_expected_before = 0;
    give(&receiver, first, 0);
    for (uint32_t i = 1; i < N_PACKETS; i += 2) {
        bool is_swapped = weir_rng_below(&rng, 4) == 0, is_lost = weir_rng_below(&rng, 10) == 0;
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t number = i + (is_swapped ? 1 - k : k);
            if (!(is_lost && number == i)) { /* the second of two always comes: it is the highest */
                give(&receiver, first + number, (uint64_t)number * 100000000);
                n_come++;
            }
        }
        if (weir_rng_below(&rng, 100) == 0) {
            uint32_t n_expected = i + 2, n_lost = n_expected - n_come;
            uint32_t n_new = n_expected - n_expected_before,
                     n_new_lost = n_new - (n_come - n_come_before);
            ck_assert_uint_eq(rtsp_receiver_write(&receiver, 0, report), RTSP_RECEIVER_BYTES);
            ck_assert_uint_eq(report[0], 0x81);
            ck_assert_uint_eq(report[3], 7);
            ck_assert_uint_eq(u32_at(report + 8), 7);
            ck_assert_uint_eq(report[12], n_new_lost * 256 / n_new);
            ck_assert_uint_eq(u32_at(report + 12) & 0xffffff, n_lost);
            ck_assert_uint_eq(u32_at(report + 16), first + n_expected - 1);
            n_come_before = n_come;
            n_expected_before = n_expected;
        }
    }
}

END_TEST

/* Packets that are late by turns of 0 and 10 ms: the mean change is 10 ms, 900 ticks of 90 kHz. */
START_TEST(a_report_says_how_unevenly_they_came)
{
    struct rtsp_receiver receiver = {0};
    uint8_t report[RTSP_RECEIVER_BYTES];
    for (uint32_t i = 0; i < 500; i++) {
        give(&receiver, i, (uint64_t)i * 100000000 + (i % 2) * 10000000);
    }
    (void)rtsp_receiver_write(&receiver, 0, report);
    ck_assert_uint_ge(u32_at(report + 20), 890);
    ck_assert_uint_le(u32_at(report + 20), 900);
}

END_TEST

START_TEST(a_report_says_when_the_sender_was_heard)
{
    struct rtsp_receiver receiver = {0};
    uint8_t report[RTSP_RECEIVER_BYTES];
    ck_assert_uint_eq(rtsp_receiver_write(&receiver, 0, report), 24); /* nothing has come */
    ck_assert_uint_eq(report[0], 0x80);
    ck_assert_int_eq(memcmp(report + 8, "\x81\xca", 2), 0);
    give(&receiver, 1, 0);
    (void)rtsp_receiver_write(&receiver, 9000000000, report);
    ck_assert_uint_eq(u32_at(report + 24), 0);
    ck_assert_uint_eq(u32_at(report + 28), 0);
    rtsp_receiver_report(&receiver, 0x1122334455667788, 4000000000);
    (void)rtsp_receiver_write(&receiver, 5500000000, report);
    ck_assert_uint_eq(u32_at(report + 24), 0x33445566);
    ck_assert_uint_eq(u32_at(report + 28), 65536 * 3 / 2);
    struct rtsp_packet other = {.number = 9, .source = 8};
    rtsp_receiver_packet(&receiver, &other); /* another camera behind the same address */
    (void)rtsp_receiver_write(&receiver, 0, report);
    ck_assert_uint_eq(u32_at(report + 8), 8);
    ck_assert_uint_eq(u32_at(report + 12), 0);
    ck_assert_uint_eq(u32_at(report + 16), 9);
    ck_assert_uint_eq(u32_at(report + 24), 0);
}

END_TEST

int main(void)
{
    (void)test_seed(&rng);
    const struct weir_test_loop tests[] = {{a_report_says_how_many_were_lost, 20},
                                           {a_report_says_how_unevenly_they_came, 0},
                                           {a_report_says_when_the_sender_was_heard, 0}};
    return weir_test_run(weir_test_loops("receiver", tests, WEIR_ARRAY_LEN(tests)));
}
