/* Oracles: counting (a permutation hits everything once), the uniform law, and one worker's batch.
 */
#include "data/order.h"

#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

START_TEST(the_order_is_a_permutation_for_every_size_up_to_2000)
{
    static uint8_t seen[2000];
    for (uint64_t n = 1; n <= 2000; n++) {
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t sample = weir_permute(n * 77, n % 5, n, i);
            if (sample >= n || seen[sample]++ != 0) {
                ck_abort_msg("%llu of %llu goes to %llu", (unsigned long long)i,
                             (unsigned long long)n, (unsigned long long)sample);
            }
        }
    }
}

END_TEST

START_TEST(the_order_of_a_huge_set_stays_in_range_and_repeats_nothing_nearby)
{
    uint64_t n = (UINT64_C(1) << 40) + 12345, previous[64] = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t sample = weir_permute(1, 2, n, n - 1 - i);
        ck_assert_uint_lt(sample, n);
        for (int k = 0; k < 64 && i > 64; k++) {
            if (sample == previous[k]) {
                ck_abort_msg("%llu comes twice", (unsigned long long)sample);
            }
        }
        previous[i % 64] = sample;
    }
}

END_TEST

START_TEST(small_sets_get_every_permutation_about_equally_often)
{
    enum { N = 4, PERMUTATIONS = 24, EPOCHS = 24000 };

    static unsigned count[256];
    unsigned n_different = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        unsigned code = 0;
        for (uint64_t i = 0; i < N; i++) {
            code = code * 4 + (unsigned)weir_permute(9, epoch, N, i);
        }
        n_different += count[code]++ == 0;
    }
    ck_assert_uint_eq(n_different, PERMUTATIONS);
    double chi2 = 0, expected = (double)EPOCHS / PERMUTATIONS;
    for (int i = 0; i < 256; i++) {
        if (count[i] > 0) {
            chi2 += (count[i] - expected) * (count[i] - expected) / expected;
        }
    }
    printf("chi-square of 24 permutations, seed 9: %.1f, 23 degrees\n", chi2);
    ck_assert_double_lt(chi2, 53); // p = 4e-4
}

END_TEST

START_TEST(each_position_sees_each_sample_equally_often)
{
    static const uint64_t sizes[] = {7, 64, 65};
    for (size_t s = 0; s < 3; s++) {
        uint64_t n = sizes[s];
        static double count[65][65];
        memset(count, 0, sizeof count);
        uint64_t n_epochs = 100 * n;
        for (uint64_t epoch = 0; epoch < n_epochs; epoch++) {
            for (uint64_t i = 0; i < n; i++) {
                count[i][weir_permute(3, epoch, n, i)]++;
            }
        }
        double chi2 = 0, degrees = (double)((n - 1) * (n - 1));
        for (uint64_t i = 0; i < n; i++) {
            for (uint64_t k = 0; k < n; k++) {
                chi2 += (count[i][k] - 100) * (count[i][k] - 100) / 100;
            }
        }
        printf("n %llu: chi-square %.0f, %.0f degrees, seed 3\n", (unsigned long long)n, chi2,
               degrees);
        ck_assert_double_lt(fabs(chi2 - degrees), 5 * sqrt(2 * degrees));
    }
}

END_TEST

START_TEST(neighbouring_positions_are_unrelated)
{
    // Correlation of successive samples, in fresh epochs and under neighbouring seeds.
    uint64_t n = 60000;
    double sum = 0, mean = ((double)n - 1) / 2, variance = ((double)n * (double)n - 1) / 12;

    enum { PAIRS = 40000 };

    for (uint64_t i = 0; i < PAIRS; i++) {
        double a = (double)weir_permute(i, 0, n, 5), b = (double)weir_permute(i + 1, 0, n, 5);
        double c = (double)weir_permute(4, 1, n, i), d = (double)weir_permute(4, 1, n, i + 1);
        sum += ((a - mean) * (b - mean) + (c - mean) * (d - mean)) / variance;
    }
    ck_assert_double_lt(fabs(sum / (2 * PAIRS)), 5 / sqrt(2.0 * PAIRS));
}

END_TEST

START_TEST(any_number_of_workers_shares_the_one_global_batch)
{
    static const uint32_t batches[] = {1, 7, 32, 33, 256};
    for (size_t i = 0; i < 5; i++) {
        for (uint32_t size = 1; size <= 16; size++) {
            uint32_t next = 0, largest = 0;
            for (uint32_t rank = 0; rank < size; rank++) {
                uint32_t first, n;
                weir_order_share(batches[i], rank, size, &first, &n);
                ck_assert_uint_eq(first, next); // contiguous, no gap, no overlap
                next = first + n;
                largest = n > largest ? n : largest;
                ck_assert_uint_le(n, weir_order_max_share(batches[i], size));
                ck_assert_uint_ge(n + 1, weir_order_max_share(batches[i], size));
            }
            ck_assert_uint_eq(next, batches[i]);
            ck_assert_uint_eq(largest, weir_order_max_share(batches[i], size));
        }
    }
}

END_TEST

START_TEST(the_tail_rule_ends_an_epoch)
{
    struct weir_order drop = {.n_samples = 10, .batch = 4, .tail = WEIR_TAIL_DROP};
    struct weir_order pad = {.n_samples = 10, .batch = 4, .tail = WEIR_TAIL_PAD};
    struct weir_place place = {0, 0};
    static const uint64_t drop_places[][2] = {{0, 4}, {1, 0}, {1, 4}, {2, 0}};
    static const uint64_t pad_places[][2] = {{0, 4}, {0, 8}, {1, 0}, {1, 4}};
    for (int i = 0; i < 4; i++) {
        place = weir_order_after(&drop, place);
        ck_assert_uint_eq(place.epoch, drop_places[i][0]);
        ck_assert_uint_eq(place.position, drop_places[i][1]);
    }
    place = (struct weir_place){0, 0};
    for (int i = 0; i < 4; i++) {
        place = weir_order_after(&pad, place);
        ck_assert_uint_eq(place.epoch, pad_places[i][0]);
        ck_assert_uint_eq(place.position, pad_places[i][1]);
    }
    ck_assert_uint_eq(weir_order_batches(&drop), 2);
    ck_assert_uint_eq(weir_order_batches(&pad), 3);
    // A place from a run with another batch size is as good as any.
    place = weir_order_normalize(&drop, (struct weir_place){3, 6});
    ck_assert_uint_eq(place.position, 6);
    place = weir_order_normalize(&drop, (struct weir_place){3, 7});
    ck_assert_uint_eq(place.epoch, 4);
    place = weir_order_normalize(&pad, (struct weir_place){3, 10});
    ck_assert_uint_eq(place.epoch, 4);
}

END_TEST

START_TEST(an_order_of_nothing_is_refused)
{
    struct weir_error err;
    struct weir_order order = {.n_samples = 0, .batch = 4};
    ck_assert_int_eq(weir_order_check(&order, &err), WEIR_ERR_INVALID);
    order = (struct weir_order){.n_samples = 3, .batch = 0};
    ck_assert_int_eq(weir_order_check(&order, &err), WEIR_ERR_INVALID);
    order = (struct weir_order){.n_samples = 3, .batch = 4, .tail = WEIR_TAIL_DROP};
    ck_assert_int_eq(weir_order_check(&order, &err), WEIR_ERR_INVALID);
    order.tail = WEIR_TAIL_PAD;
    ck_assert_int_eq(weir_order_check(&order, &err), WEIR_OK);
}

END_TEST

START_TEST(the_position_of_a_sample_is_where_the_order_has_it)
{
    static const uint64_t sizes[] = {1, 2, 5, 63, 64, 65, 1000, (UINT64_C(1) << 40) + 12345};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct weir_order order = {.n_samples = sizes[k], .seed = 3, .batch = 1, .shuffle = true};
        uint64_t step = order.n_samples / 999 + 1;
        for (uint64_t position = 0; position < order.n_samples; position += step) {
            uint64_t sample = weir_order_sample(&order, k, position);
            ck_assert_uint_eq(weir_order_position(&order, k, sample), position);
        }
    }
}

END_TEST

/* Oracle: the batches themselves, one after the other. */
START_TEST(what_a_stream_has_shown_is_what_its_batches_held)
{
    enum { N = 70 };

    for (int tail = 0; tail < 2; tail++) {
        struct weir_order order = {.n_samples = N,
                                   .seed = 5,
                                   .batch = 16,
                                   .shuffle = true,
                                   .tail = tail == 0 ? WEIR_TAIL_DROP : WEIR_TAIL_PAD};
        const struct weir_place start = {2, 48};
        bool is_shown[N] = {false};
        struct weir_place place = weir_order_normalize(&order, start);
        while (place.epoch < 5) {
            for (uint64_t sample = 0; sample < N; sample++) {
                ck_assert_int_eq(weir_order_has_shown(&order, start, place, sample),
                                 is_shown[sample]);
            }
            for (uint64_t p = place.position; p < WEIR_MIN(place.position + 16, (uint64_t)N); p++) {
                is_shown[weir_order_sample(&order, place.epoch, p)] = true;
            }
            place = weir_order_after(&order, place);
        }
    }
}

END_TEST

START_TEST(without_shuffle_position_is_sample)
{
    struct weir_order order = {.n_samples = 100, .batch = 4, .seed = 5};
    for (uint64_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(weir_order_sample(&order, 7, i), i);
    }
}

END_TEST

WEIR_TEST_MAIN("order", the_order_is_a_permutation_for_every_size_up_to_2000,
               the_order_of_a_huge_set_stays_in_range_and_repeats_nothing_nearby,
               small_sets_get_every_permutation_about_equally_often,
               each_position_sees_each_sample_equally_often, neighbouring_positions_are_unrelated,
               any_number_of_workers_shares_the_one_global_batch, the_tail_rule_ends_an_epoch,
               an_order_of_nothing_is_refused, the_position_of_a_sample_is_where_the_order_has_it,
               what_a_stream_has_shown_is_what_its_batches_held, without_shuffle_position_is_sample)
