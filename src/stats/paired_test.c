/* Expected numbers are SciPy's (stats.t.sf, ttest_1samp, binomtest); and a numerical integral. */
#include "stats/paired.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <float.h>
#include <math.h>

#define CLOSE(value, expected) ck_assert_double_le(fabs((value) / (expected)-1), 1e-9)

START_TEST(students_tail_is_scipys)
{
    CLOSE(weir_student_p(0.5, 1), 0.35241638234956674);
    CLOSE(weir_student_p(2, 3), 0.06966298427942152);
    CLOSE(weir_student_p(-1.3, 7), 0.8826160823038114);
    CLOSE(weir_student_p(3.1, 20.5), 0.0027653503455050223);
    CLOSE(weir_student_p(4.5, 1000), 3.7965355132491246e-06);
    CLOSE(weir_student_p(10, 99), 5.46987850399603e-17);
    ck_assert_double_eq_tol(weir_student_p(0.001, 1e6), 0.4996010578858246, 1e-8);
    ck_assert_double_eq_tol(weir_student_p(1.96, 1e9), 0.024997895286864812, 1e-6);
    ck_assert_double_eq(weir_student_p(0, 12), 0.5);
}

END_TEST

/** The density's integral from t on, by Simpson's rule in u = 1 / x. */
static double integrated(double t, double degrees)
{
    enum { N = 20000 };

    double scale = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * M_PI);
    double h = 1 / t / N, sum = 0;
    for (int i = 1; i <= N; i++) { /* at u = 0 it is 0 for two degrees or more */
        double u = i * h, x = 1 / u;
        double value = scale * pow(1 + x * x / degrees, -(degrees + 1) / 2) / (u * u);
        sum += value * (i == N ? 1 : i % 2 == 1 ? 4 : 2);
    }
    return sum * h / 3;
}

START_TEST(students_tail_is_the_integral_of_the_density)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 17, 0);
    for (int i = 0; i < 200; i++) {
        double t = 0.2 + 5 * weir_rng_f64(&rng), degrees = 2 + 60 * weir_rng_f64(&rng);
        double p = weir_student_p(t, degrees);
        ck_assert_double_le(fabs(p / integrated(t, degrees) - 1), 1e-6);
        ck_assert_double_eq_tol(p + weir_student_p(-t, degrees), 1, 1e-12);
    }
}

END_TEST

START_TEST(paired_differences_are_tested_as_scipy_does)
{
    CLOSE(weir_paired_p(10, 0.4, 4.4, 0), 0.05194406553105088);
    CLOSE(weir_paired_p(10, 0.4, 4.4, -0.2), 0.011928192270061026);
    CLOSE(weir_paired_p(10, 0.4, 4.4, 0.3), 0.3308901652595802);
    ck_assert_double_eq(weir_paired_p(1, 5, 0, 0), 1);
    ck_assert_double_eq(weir_paired_p(0, 0, 0, 0), 1);
    ck_assert_double_eq(weir_paired_p(9, 0, 0, 0), 1);
    ck_assert_double_eq(weir_paired_p(9, 0, 0, -0.1), DBL_MIN);
}

END_TEST

START_TEST(mcnemars_test_is_exact)
{
    CLOSE(weir_mcnemar_p(9, 2), 0.03271484375);
    CLOSE(weir_mcnemar_p(2, 9), 0.994140625);
    CLOSE(weir_mcnemar_p(300, 240), 0.005525240540964949);
    CLOSE(weir_mcnemar_p(5, 5), 0.623046875);
    ck_assert_double_eq(weir_mcnemar_p(0, 0), 1);
}

END_TEST

WEIR_TEST_MAIN("paired", students_tail_is_scipys, students_tail_is_the_integral_of_the_density,
               paired_differences_are_tested_as_scipy_does, mcnemars_test_is_exact)
