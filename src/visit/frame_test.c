#include "visit/frame.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "visit/visit.h"

#include <string.h>

static struct weir_frame_box box;
static char payload[WEIR_FRAME_MAX_BYTES];

struct sent {
    enum weir_frame_type type;
    size_t len;
    char *bytes;
};

static const struct {
    enum weir_frame_type type;
    bool is_from_task;
    size_t min, max;
} kinds[] = {
    {WEIR_FRAME_INPUT, false, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_INPUT_END, false, 0, 0},
    {WEIR_FRAME_WINDOW, false, 4, 4},
    {WEIR_FRAME_SIGNAL, false, 1, 1},
    {WEIR_FRAME_PING, false, 0, 0},
    {WEIR_FRAME_READY, true, 0, 0},
    {WEIR_FRAME_OUTPUT, true, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_ERRORS, true, 1, WEIR_FRAME_MAX_BYTES},
    {WEIR_FRAME_OUTPUT_END, true, 0, 0},
    {WEIR_FRAME_TAKEN, true, 4, 4},
    {WEIR_FRAME_PONG, true, 0, 0},
    {WEIR_FRAME_EXIT, true, 2, 2},
    {WEIR_FRAME_FAILED, true, 1, WEIR_FRAME_TEXT_BYTES},
};

/* A frame of this side, of any kind and length. */
static struct sent make(struct weir_rng *rng, bool is_from_task)
{
    size_t i;
    do {
        i = weir_rng_below(rng, WEIR_ARRAY_LEN(kinds));
    } while (kinds[i].is_from_task != is_from_task);
    size_t most =
        weir_rng_below(rng, 2) == 0 ? WEIR_MIN(kinds[i].max, kinds[i].min + 40) : kinds[i].max;
    struct sent sent = {kinds[i].type, kinds[i].min + weir_rng_below(rng, most - kinds[i].min + 1),
                        NULL};
    sent.bytes = malloc(sent.len + 1);
    ck_assert_ptr_nonnull(sent.bytes);
    for (size_t k = 0; k < sent.len; k++) {
        sent.bytes[k] = (char)weir_rng_below(rng, 256);
    }
    return sent;
}

/* Whatever is put into a box, and in whatever parts it is sent and comes: the same frames come out. */
START_TEST(frames_come_out_as_they_went_in)
{
    struct weir_rng rng;
    test_seed(&rng);
    for (int round = 0; round < WEIR_TEST_TIMES(200, 20); round++) {
        bool is_from_task = weir_rng_below(&rng, 2) == 0;
        struct weir_frames frames = {
            .is_from_task = is_from_task, .payload = payload, .size = sizeof payload};
        struct sent waiting[64];
        size_t n_put = 0, n_got = 0, n_to_do = 1 + weir_rng_below(&rng, 60);
        memset(&box, 0, sizeof box);
        while (n_got < n_to_do) {
            if (n_put < n_to_do) {
                struct sent one = make(&rng, is_from_task);
                if (weir_frame_put(&box, one.type, one.bytes, one.len)) {
                    waiting[n_put++] = one;
                } else {
                    ck_assert_uint_lt(weir_frame_room(&box), WEIR_FRAME_MAX_BYTES);
                    free(one.bytes);
                }
            }
            size_t part = weir_rng_below(&rng, box.end - box.begin + 1), used;
            const char *at = box.bytes + box.begin;
            for (size_t left = part; left > 0; left -= used, at += used) {
                bool is_whole;
                ck_assert_int_eq(weir_frames_take(&frames, at, left, &used, &is_whole), WEIR_OK);
                if (is_whole) {
                    ck_assert_uint_lt(n_got, n_put);
                    ck_assert_int_eq(frames.type, waiting[n_got].type);
                    ck_assert_uint_eq(frames.len, waiting[n_got].len);
                    ck_assert_int_eq(memcmp(payload, waiting[n_got].bytes, frames.len), 0);
                    free(waiting[n_got++].bytes);
                }
            }
            weir_frame_sent(&box, part);
        }
        ck_assert_uint_eq(box.begin, box.end);
    }
}

END_TEST

static weir_status take(bool is_from_task, unsigned type, size_t len)
{
    char head[WEIR_FRAME_HEAD_BYTES] = {(char)type};
    struct weir_frames frames = {.is_from_task = is_from_task};
    size_t used;
    bool is_whole;
    weir_frame_set_u32(head + 1, (uint32_t)len);
    return weir_frames_take(&frames, head, sizeof head, &used, &is_whole);
}

START_TEST(a_frame_of_the_other_side_or_of_a_wrong_length_is_none)
{
    for (unsigned type = 0; type < 256; type++) {
        for (int from_task = 0; from_task < 2; from_task++) {
            size_t min = 1, max = 0;
            for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
                if (kinds[i].type == type && kinds[i].is_from_task == from_task) {
                    min = kinds[i].min;
                    max = kinds[i].max;
                }
            }
            const size_t tried[] = {
                0,         1, 2, 3, 4, 5, 512, 513, WEIR_FRAME_MAX_BYTES, WEIR_FRAME_MAX_BYTES + 1,
                UINT32_MAX};
            for (size_t i = 0; i < WEIR_ARRAY_LEN(tried); i++) {
                bool is_good = tried[i] >= min && tried[i] <= max;
                ck_assert_int_eq(take(from_task, type, tried[i]),
                                 is_good ? WEIR_OK : WEIR_ERR_CORRUPT);
            }
        }
    }
}

END_TEST

START_TEST(what_came_after_no_frame_is_none_either)
{
    struct weir_frames frames = {0};
    const char ping[] = {WEIR_FRAME_PING, 0, 0, 0, 0};
    size_t used;
    bool is_whole;
    ck_assert_int_eq(weir_frames_take(&frames, "\x63....", 5, &used, &is_whole), WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_frames_take(&frames, ping, sizeof ping, &used, &is_whole),
                     WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(only_ends_are_kept_where_bytes_pass)
{
    struct weir_frames frames = {
        .is_from_task = true, .payload = payload, .size = 8, .is_text_kept = true};
    size_t used;
    bool is_whole;
    memset(&box, 0, sizeof box);
    memset(payload, 'x', sizeof payload);
    ck_assert(weir_frame_put(&box, WEIR_FRAME_OUTPUT, "typed by somebody", 17));
    ck_assert(weir_frame_put_failed(&box, "it is over, for many reasons"));
    ck_assert_int_eq(weir_frames_take(&frames, box.bytes, box.end, &used, &is_whole), WEIR_OK);
    ck_assert(is_whole);
    ck_assert_int_eq(payload[0], 'x');
    size_t at = used;
    ck_assert_int_eq(weir_frames_take(&frames, box.bytes + at, box.end - at, &used, &is_whole),
                     WEIR_OK);
    ck_assert(is_whole);
    ck_assert_int_eq(memcmp(payload, "it is ovx", 9), 0);
}

END_TEST

START_TEST(text_for_a_terminal_steers_none)
{
    char text[] = "a\x1b[31mred\x07\xc2\x9b\xc3\xa4\n";
    weir_frame_disarm(text);
    ck_assert_str_eq(text, "a?[31mred???\xc3\xa4?");
}

END_TEST

START_TEST(kinds_have_names)
{
    for (int i = 0; i < WEIR_VISIT_N_KINDS; i++) {
        enum weir_visit_kind kind;
        ck_assert(weir_visit_kind_of(weir_visit_kind_name((enum weir_visit_kind)i), &kind));
        ck_assert_int_eq(kind, i);
    }
    ck_assert(!weir_visit_kind_of("ssh", &(enum weir_visit_kind){0}));
}

END_TEST

int main(void)
{
    const TTest *tests[] = {frames_come_out_as_they_went_in,
                            a_frame_of_the_other_side_or_of_a_wrong_length_is_none,
                            what_came_after_no_frame_is_none_either,
                            only_ends_are_kept_where_bytes_pass,
                            text_for_a_terminal_steers_none,
                            kinds_have_names};
    return weir_test_run(weir_test_suite("frame", tests, WEIR_ARRAY_LEN(tests)));
}
