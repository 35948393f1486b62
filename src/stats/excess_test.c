/* Evidence of an excess: against the integral it is said to be, and how often it is wrong when it is looked
 * at after each event. */
#include "stats/excess.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define ALPHA     0.02
#define N_PLAYS   2000
#define N_EVENTS  400
#define N_CASES   300
#define N_STRIPES 20000

/* By the middle of stripes. */
static double integral(uint64_t k, uint64_t k_rest, double share)
{
    double sum = 0, width = (1 - share) / N_STRIPES;
    for (int i = 0; i < N_STRIPES; i++) {
        double q = share + (i + 0.5) * width;
        sum += exp((double)k * log(q / share) + (double)k_rest * log((1 - q) / (1 - share)));
    }
    return log(sum / N_STRIPES);
}

START_TEST(it_is_the_mean_of_the_likelihood_ratios)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 45, 0);
    for (int i = 0; i < N_CASES; i++) {
        double share = (1 + weir_rng_below(&rng, 98)) / 100.0;
        uint64_t k = weir_rng_below(&rng, 60), k_rest = weir_rng_below(&rng, 60);
        double evidence = weir_excess_evidence(k, k_rest, share);
        double wanted = integral(k, k_rest, share);
        if ((double)k > share * (double)(k + k_rest)) {
            ck_assert_msg(fabs(evidence - wanted) < 1e-3 * (1 + fabs(wanted)),
                          "%d of %d at %g: %g, not %g", (int)k, (int)(k + k_rest), share, evidence,
                          wanted);
        } else {
            ck_assert_double_le(evidence, 0);
        }
    }
}

END_TEST

/* How many plays of this chance ever reach the bound; *out_first: after how many events, on average. */
static int play(uint64_t seed, double chance, double share, double *out_first)
{
    int n_wrong = 0;
    double n_events = 0;
    for (int i = 0; i < N_PLAYS; i++) {
        struct weir_rng rng;
        weir_rng_init(&rng, seed, (uint64_t)i);
        uint64_t k = 0;
        for (uint64_t n = 1; n <= N_EVENTS; n++) {
            k += weir_rng_below(&rng, 1000000) < chance * 1000000;
            if (weir_excess_evidence(k, n - k, share) >= log(1 / ALPHA)) {
                n_wrong++;
                n_events += (double)n;
                break;
            }
        }
    }
    *out_first = n_wrong > 0 ? n_events / n_wrong : 0;
    return n_wrong;
}

START_TEST(whoever_looks_after_each_event_is_wrong_no_more_often_than_said)
{
    static const double shares[] = {0.01, 0.1, 0.5, 0.9};
    double first;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shares); i++) {
        int n_wrong = play(1000 * i, shares[i], shares[i], &first);
        int n_less = play(1000 * i + 7, 0.8 * shares[i], shares[i], &first);
        printf("share %g: wrong in %d and %d of %d plays of %d events, %g allowed\n", shares[i],
               n_wrong, n_less, N_PLAYS, N_EVENTS, ALPHA * N_PLAYS);
        /* 4 standard deviations of the count above the bound. */
        ck_assert_double_le(n_wrong, ALPHA * N_PLAYS + 4 * sqrt(ALPHA * N_PLAYS));
        ck_assert_int_le(n_less, n_wrong + 10);
    }
}

END_TEST

START_TEST(what_is_there_is_found_soon)
{
    double first;
    ck_assert_int_eq(play(5, 1, 0.5, &first), N_PLAYS);
    ck_assert_double_le(first, 9);
    ck_assert_int_eq(play(6, 1, 0.01, &first), N_PLAYS);
    ck_assert_double_le(first, 2);
    ck_assert_int_ge(play(7, 0.75, 0.5, &first), N_PLAYS - 1);
    ck_assert_double_le(first, 50);
}

END_TEST

START_TEST(of_a_share_that_says_nothing_comes_nothing)
{
    ck_assert_double_eq(weir_excess_evidence(100, 0, 1), 0);
    ck_assert_double_eq(weir_excess_evidence(100, 0, 0), 0);
    ck_assert_double_eq(weir_excess_evidence(100, 0, NAN), 0);
    ck_assert_double_eq(weir_excess_evidence(0, 0, 0.5), 0);
    ck_assert(isfinite(weir_excess_evidence(1000000000, 1, 0.01)));
}

END_TEST

WEIR_TEST_MAIN("excess", it_is_the_mean_of_the_likelihood_ratios,
               whoever_looks_after_each_event_is_wrong_no_more_often_than_said,
               what_is_there_is_found_soon, of_a_share_that_says_nothing_comes_nothing)
