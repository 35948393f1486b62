#include "batch/measure.h"

#include "base/test_main.h"

#include <math.h>

/* In exact fractions: 2 * sum of C(b + c, k) for k <= min(b, c), over 2^(b + c). */
START_TEST(the_p_value_is_that_of_the_exact_test)
{
    static const struct {
        int64_t b, c;
        double p;
    } cases[] = {{0, 0, 1},
                 {5, 5, 1},
                 {1, 0, 1},
                 {0, 6, 0.03125},
                 {10, 1, 0.01171875},
                 {3, 12, 0.03515625},
                 {40, 20, 0.0134892937}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        const struct measure_pairs pairs = {.only_first = cases[i].b, .only_second = cases[i].c};
        const struct measure_pairs mirrored = {.only_first = cases[i].c, .only_second = cases[i].b};
        ck_assert_double_eq_tol(measure_p_value(&pairs), cases[i].p, 1e-7);
        ck_assert_double_eq_tol(measure_p_value(&mirrored), cases[i].p, 1e-7);
    }
}

END_TEST

START_TEST(who_is_better_is_said_only_if_it_is_hardly_chance)
{
    const struct measure_pairs better = {.only_first = 10, .only_second = 1},
                               worse = {.only_first = 1, .only_second = 10},
                               near = {.only_first = 6, .only_second = 4};
    ck_assert_int_eq(measure_better(&better, 0.05), 1);
    ck_assert_int_eq(measure_better(&worse, 0.05), -1);
    ck_assert_int_eq(measure_better(&near, 0.05), 0);
    ck_assert_int_eq(measure_better(&better, 0.01), 0);
}

END_TEST

START_TEST(a_score_sums_what_is_right_and_how_sure_the_truth_was)
{
    struct measure_score score = {0};
    ck_assert_double_eq(measure_accuracy(&score), 0);
    measure_score_add(&score, true, measure_loss(0.5));
    measure_score_add(&score, false, measure_loss(0.25));
    measure_score_add(&score, false, measure_loss(0));
    ck_assert_double_eq_tol(measure_accuracy(&score), 1.0 / 3, 1e-12);
    ck_assert(isfinite(score.loss));
    ck_assert_double_ge(score.loss, log(8));
}

END_TEST

/* Two passes over the same numbers. */
START_TEST(pairs_keep_what_a_paired_test_needs)
{
    static const double differences[] = {0.5, -0.25, 0, 3, 1e-3, -7};

    enum { N = WEIR_ARRAY_LEN(differences) };
    struct measure_pairs pairs = {0};
    double mean = 0, m2 = 0;
    for (size_t i = 0; i < N; i++) {
        measure_pairs_add(&pairs, i % 2 == 0, i % 3 == 0, i % 2 == 0, differences[i]);
        mean += differences[i] / N;
    }
    for (size_t i = 0; i < N; i++) {
        m2 += (differences[i] - mean) * (differences[i] - mean);
    }
    ck_assert_int_eq(pairs.n, N);
    ck_assert_int_eq(pairs.only_first, 2);  /* 2, 4 */
    ck_assert_int_eq(pairs.only_second, 1); /* 3 */
    ck_assert_int_eq(pairs.n_other, 3);
    ck_assert_double_eq_tol(pairs.loss_mean, mean, 1e-12);
    ck_assert_double_eq_tol(pairs.loss_m2, m2, 1e-9);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("measure");
    TCase *tcase = tcase_create("measure");
    tcase_add_test(tcase, the_p_value_is_that_of_the_exact_test);
    tcase_add_test(tcase, who_is_better_is_said_only_if_it_is_hardly_chance);
    tcase_add_test(tcase, a_score_sums_what_is_right_and_how_sure_the_truth_was);
    tcase_add_test(tcase, pairs_keep_what_a_paired_test_needs);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
