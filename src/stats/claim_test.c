#include "stats/claim.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <stdbool.h>

START_TEST(false_admits_and_claims_are_as_stated)
{
    ck_assert_double_eq_tol(weir_false_admits_a_day(200, 1e-6, 1000, 3), 0.599, 1e-3);
    ck_assert_double_eq_tol(weir_false_admits_a_day(200, 5.6e-8, 1000, 3), 1 / 30.0, 1e-3);
    ck_assert_double_eq(weir_false_admits_a_day(200, 1, 1, 1), 200);
    ck_assert_double_eq(weir_false_admits_a_day(200, 0.1, 0, 3), 0);
    ck_assert_double_eq_tol(weir_claimable_rate(3e6), 1e-6, 1e-12);
    ck_assert_double_eq(weir_claimable_rate(0), 1);
    ck_assert_double_eq(weir_claimable_rate(2), 1);
    ck_assert_double_eq(weir_claimable_rate(NAN), 1);
    ck_assert_double_le(pow(1 - weir_claimable_rate(150), 150), 0.05); /* no error is as rare */
}

END_TEST

/* Each look at each person by itself, as a door does it. */
START_TEST(expected_admissions_are_those_of_strangers_drawn_one_by_one)
{
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int turn = 0; turn < 8; turn++) {
        double fmr = 0.001 + 0.02 * weir_rng_f64(&rng);
        int n_people = 1 + (int)(20 * weir_rng_f64(&rng)), n_looks = 1 + turn % 3, n = 4000;
        int n_admitted = 0;
        for (int i = 0; i < n; i++) {
            bool is_admitted = false;
            for (int k = 0; k < n_people * n_looks; k++) {
                is_admitted = weir_rng_f64(&rng) < fmr || is_admitted;
            }
            n_admitted += is_admitted;
        }
        double expected = weir_false_admits_a_day(n, fmr, n_people, n_looks);
        double six_sigmas = 6 * sqrt(expected + 1);
        ck_assert_double_eq_tol(n_admitted, expected, six_sigmas);
    }
}

END_TEST

WEIR_TEST_MAIN("claim", false_admits_and_claims_are_as_stated,
               expected_admissions_are_those_of_strangers_drawn_one_by_one)
