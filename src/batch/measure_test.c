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
    measure_score_add(&score, true, 0.5);
    measure_score_add(&score, false, 0.25);
    measure_score_add(&score, false, 0);
    ck_assert_double_eq_tol(measure_accuracy(&score), 1.0 / 3, 1e-12);
    ck_assert(isfinite(score.loss));
    ck_assert_double_ge(score.loss, log(8));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("measure");
    TCase *tcase = tcase_create("measure");
    tcase_add_test(tcase, the_p_value_is_that_of_the_exact_test);
    tcase_add_test(tcase, who_is_better_is_said_only_if_it_is_hardly_chance);
    tcase_add_test(tcase, a_score_sums_what_is_right_and_how_sure_the_truth_was);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
