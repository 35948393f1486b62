#include "stats/frozen.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

START_TEST(the_same_frame_for_long_enough_is_a_frozen_camera)
{
    struct weir_frozen frozen = {0};
    for (int i = 0; i < 100; i++) {
        ck_assert(!weir_frozen_add(&frozen, (uint64_t)(1000 + i), i * 100));
        ck_assert(!weir_frozen_is(&frozen, i * 100, WEIR_FROZEN_AFTER_MS));
    }
    int64_t at = 10000;
    (void)weir_frozen_add(&frozen, 7, at);
    while (!weir_frozen_is(&frozen, at, WEIR_FROZEN_AFTER_MS)) {
        at += 1000;
        ck_assert(weir_frozen_add(&frozen, 7, at));
        ck_assert_int_lt(at, 100000);
    }
    ck_assert_int_eq(at, 10000 + WEIR_FROZEN_AFTER_MS);
    ck_assert(!weir_frozen_add(&frozen, 8, at + 1000)); /* it moves again */
    ck_assert(!weir_frozen_is(&frozen, at + 1000, WEIR_FROZEN_AFTER_MS));
}

END_TEST

/* A burst of equal frames, or one every hour, is none. */
START_TEST(it_takes_both_frames_and_time)
{
    struct weir_frozen burst = {0}, rare = {0};
    for (int i = 0; i < 1000; i++) {
        (void)weir_frozen_add(&burst, 1, i);
        ck_assert(!weir_frozen_is(&burst, i, WEIR_FROZEN_AFTER_MS));
    }
    for (int i = 0; i < WEIR_FROZEN_FRAMES - 1; i++) {
        (void)weir_frozen_add(&rare, 1, (int64_t)i * 3600000);
        ck_assert(!weir_frozen_is(&rare, (int64_t)i * 3600000, WEIR_FROZEN_AFTER_MS));
    }
}

END_TEST

START_TEST(frames_sent_again_are_duplicates_and_no_frozen_camera)
{
    struct weir_frozen frozen = {0};
    int n_duplicates = 0;
    for (int i = 0; i < 400; i++) {
        n_duplicates += weir_frozen_add(&frozen, (uint64_t)(i % 8), i * 1000);
        ck_assert(!weir_frozen_is(&frozen, i * 1000, WEIR_FROZEN_AFTER_MS));
    }
    ck_assert_int_eq(n_duplicates, 392);
    memset(&frozen, 0, sizeof frozen);
    for (int i = 0; i < 400; i++) { /* a loop longer than what is remembered */
        ck_assert(!weir_frozen_add(&frozen, (uint64_t)(i % 100), i));
    }
}

END_TEST

/* Every byte and the length count; the place does not matter to how it is read. */
START_TEST(a_digest_tells_pictures_apart_that_differ_in_one_bit)
{
    struct weir_rng rng;
    unsigned char bytes[1001], copy[sizeof bytes + 1];
    weir_rng_init(&rng, 3, 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)weir_rng_below(&rng, 256);
    }
    uint64_t whole = weir_frozen_digest(bytes, sizeof bytes);
    memcpy(copy + 1, bytes, sizeof bytes);
    ck_assert(weir_frozen_digest(copy + 1, sizeof bytes) == whole);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert(weir_frozen_digest(bytes, sizeof bytes) != whole);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    memset(bytes, 0, sizeof bytes);
    ck_assert(weir_frozen_digest(bytes, 8) != weir_frozen_digest(bytes, 16));
    ck_assert(weir_frozen_digest(bytes, 0) == weir_frozen_digest(copy, 0));
}

END_TEST

WEIR_TEST_MAIN("frozen", the_same_frame_for_long_enough_is_a_frozen_camera,
               it_takes_both_frames_and_time, frames_sent_again_are_duplicates_and_no_frozen_camera,
               a_digest_tells_pictures_apart_that_differ_in_one_bit)
