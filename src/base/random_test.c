#include "base/rng.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "base/uuid.h"

#include <math.h>
#include <string.h>

/* Known answers of Random123's kat_vectors for philox4x32, 10 rounds. */
START_TEST(philox_gives_the_published_answers)
{
    uint32_t out[4];
    weir_philox(0, 0, 0, out);
    const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    ck_assert_mem_eq(out, zeros, sizeof out);
    weir_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, out);
    const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    ck_assert_mem_eq(out, ones, sizeof out);
    weir_philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, out);
    const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    ck_assert_mem_eq(out, pi, sizeof out);
}

END_TEST

START_TEST(draws_below_n_are_uniform)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 5, 1);

    enum { N = 7, DRAWS = 70000 };

    int counts[N] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = weir_rng_below(&rng, N);
        ck_assert_uint_lt(value, N);
        counts[value]++;
    }
    double chi2 = 0;
    for (int i = 0; i < N; i++) {
        double d = counts[i] - DRAWS / (double)N;
        chi2 += d * d / (DRAWS / (double)N);
    }
    ck_assert_double_lt(chi2, 22.5); /* 6 degrees of freedom: p = 0.001 */
}

END_TEST

START_TEST(normal_draws_have_the_normal_moments)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 11, 0);
    double sum = 0, sum2 = 0, sum4 = 0;

    enum { N = 200000 };

    for (int i = 0; i < N; i++) {
        double x = weir_rng_normal(&rng);
        sum += x;
        sum2 += x * x;
        sum4 += x * x * x * x;
    }
    ck_assert_double_lt(fabs(sum / N), 0.01);
    ck_assert_double_lt(fabs(sum2 / N - 1), 0.02);
    ck_assert_double_lt(fabs(sum4 / N - 3), 0.15);
}

END_TEST

START_TEST(a_shuffle_is_a_permutation_and_depends_on_the_seed_alone)
{
    uint32_t a[100], b[100], c[100];
    for (uint32_t i = 0; i < 100; i++) {
        a[i] = b[i] = c[i] = i;
    }
    struct weir_rng rng;
    weir_rng_init(&rng, 3, 0);
    weir_rng_shuffle_u32(&rng, a, 100);
    weir_rng_init(&rng, 3, 0);
    weir_rng_shuffle_u32(&rng, b, 100);
    weir_rng_init(&rng, 4, 0);
    weir_rng_shuffle_u32(&rng, c, 100);
    ck_assert_mem_eq(a, b, sizeof a);
    ck_assert_mem_ne(a, c, sizeof a);
    int seen[100] = {0};
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(seen[a[i]]++, 0);
    }
}

END_TEST

START_TEST(uuids_are_version_7_and_strictly_increase)
{
    char last[WEIR_UUID_BYTES] = "", uuid[WEIR_UUID_BYTES];
    for (int i = 0; i < 20000; i++) {
        weir_uuid_make(uuid);
        ck_assert(weir_uuid_is_valid(uuid));
        ck_assert_int_eq(uuid[14], '7');
        ck_assert_ptr_nonnull(strchr("89ab", uuid[19]));
        ck_assert_msg(strcmp(last, uuid) < 0, "%s after %s", uuid, last);
        memcpy(last, uuid, sizeof last);
    }
    unsigned long long ms;
    char digits[13];
    (void)snprintf(digits, sizeof digits, "%.8s%.4s", uuid, uuid + 9);
    ms = strtoull(digits, NULL, 16);
    ck_assert_msg(llabs((long long)ms - (long long)weir_time_ms()) < 60000, "time part %llu", ms);
    ck_assert(!weir_uuid_is_valid("0190a0b0-0000-7000-8000-00000000000"));
    ck_assert(!weir_uuid_is_valid("0190A0B0-0000-7000-8000-000000000000"));
}

END_TEST

WEIR_TEST_MAIN("random", philox_gives_the_published_answers, draws_below_n_are_uniform,
               normal_draws_have_the_normal_moments,
               a_shuffle_is_a_permutation_and_depends_on_the_seed_alone,
               uuids_are_version_7_and_strictly_increase)
