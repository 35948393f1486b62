/*
 * The law of calibration: over many synthetic galleries, strangers drawn from the same distribution
 * as the scores pass at about the stated rate. Distributions with known quantiles are the judge.
 */
#include "predict/calibrate.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <string.h>

#define N_TRIALS 400
#define SEED     4711

struct law {
    const char *name;
    double (*draw)(struct weir_rng *rng);
    double (*pass_rate)(double threshold); /**< P(draw ≥ threshold), exact. */
};

static double draw_normal(struct weir_rng *rng)
{
    return 0.3 + 0.1 * weir_rng_normal(rng);
}

static double pass_normal(double threshold)
{
    return 0.5 * erfc((threshold - 0.3) / 0.1 / sqrt(2));
}

/* The largest of ten: what the best score against ten people looks like. */
static double draw_largest(struct weir_rng *rng)
{
    double best = -1;
    for (int i = 0; i < 10; i++) {
        best = fmax(best, draw_normal(rng));
    }
    return best;
}

static double pass_largest(double threshold)
{
    return 1 - pow(1 - pass_normal(threshold), 10);
}

static double draw_uniform(struct weir_rng *rng)
{
    return weir_rng_f64(rng);
}

static double pass_uniform(double threshold)
{
    return fmin(fmax(1 - threshold, 0), 1);
}

static const struct law laws[] = {
    {"normal", draw_normal, pass_normal},
    {"largest of ten", draw_largest, pass_largest},
    {"uniform", draw_uniform, pass_uniform},
};

/* n scores, the rate asked for, and between which rates the mean over the trials must lie. */
struct form {
    size_t n;
    double rate, low, high;
};

static const struct form forms[] = {
    {4000, 0.01, 0.008, 0.012}, {2000, 0.05, 0.045, 0.055}, {400, 0.01, 0.002, 0.02},
    {100, 0.01, 0.0005, 0.03},  {60, 0.05, 0.02, 0.09},     {30, 0.1, 0.04, 0.18},
};

START_TEST(strangers_pass_at_about_the_stated_rate)
{
    const struct law *law = &laws[(size_t)_i % (sizeof laws / sizeof laws[0])];
    const struct form *form = &forms[(size_t)_i / (sizeof laws / sizeof laws[0])];
    static double scores[4000];
    struct weir_rng rng;
    double sum = 0;
    weir_rng_init(&rng, SEED, (uint64_t)_i);
    for (int trial = 0; trial < N_TRIALS; trial++) {
        for (size_t i = 0; i < form->n; i++) {
            scores[i] = law->draw(&rng);
        }
        sum += law->pass_rate(calibrate_quantile(scores, form->n, form->rate));
    }
    double rate = sum / N_TRIALS;
    printf("seed %d: %s, %zu scores: asked %.3f, passed %.4f\n", SEED, law->name, form->n,
           form->rate, rate);
    /* Of a bounded law the exponential tail is on the safe side: few pass. */
    double low = law->draw == draw_uniform ? 0 : form->low;
    ck_assert_msg(rate >= low && rate <= form->high, "rate %g of %s, n = %zu", rate, law->name,
                  form->n);
}

END_TEST

START_TEST(a_stricter_rate_never_gives_a_lower_threshold)
{
    double scores[200], copy[200];
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 99);
    for (size_t n = 1; n <= 200; n += 7) {
        double before = -10;
        for (size_t i = 0; i < n; i++) {
            scores[i] = draw_largest(&rng);
        }
        for (double rate = 0.5; rate > 1e-5; rate /= 1.3) {
            memcpy(copy, scores, sizeof copy);
            double threshold = calibrate_quantile(copy, n, rate);
            ck_assert_msg(threshold >= before - 1e-12, "n = %zu, rate %g", n, rate);
            before = threshold;
        }
    }
}

END_TEST

/* A gallery on the plane: a vector is an angle, so every cosine is known. */
static void at_angles(const double *degrees, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (float)cos(degrees[i] * M_PI / 180);
        out[2 * i + 1] = (float)sin(degrees[i] * M_PI / 180);
    }
}

START_TEST(the_threshold_keeps_the_guard_between_impostor_and_genuine_scores)
{
    /* Two people, 90 degrees apart, their photos 10 degrees apart. */
    const double degrees[] = {0, 10, 100, 110};
    const int32_t persons[] = {0, 0, 1, 1};
    float vectors[8];
    struct calibration found;
    struct weir_error err;
    at_angles(degrees, 4, vectors);
    const struct templates all = {vectors, persons, 4, 2};
    ck_assert_int_eq(calibrate(&all, 0.01, &found, &err), WEIR_OK);
    double genuine = cos(10 * M_PI / 180);
    double impostor =
        (cos(100 * M_PI / 180) + 2 * cos(90 * M_PI / 180) + cos(100 * M_PI / 180)) / 4;
    ck_assert_uint_eq(found.n_genuine, 4);
    ck_assert_uint_eq(found.n_impostor, 4);
    ck_assert_double_eq_tol(found.genuine_mean, genuine, 1e-6);
    ck_assert_double_eq_tol(found.impostor_mean, impostor, 1e-6);
    ck_assert_double_ge(found.threshold, impostor + 0.7 * (genuine - impostor));
    ck_assert_double_le(found.threshold, genuine + 1e-6);
}

END_TEST

START_TEST(small_galleries_fall_back_as_documented)
{
    const double degrees[] = {0, 10, 90};
    const int32_t one_person[] = {0, 0, 0}, one_photo_each[] = {0, 1, 2};
    float vectors[6];
    struct calibration found;
    struct weir_error err;
    at_angles(degrees, 3, vectors);
    struct templates all = {vectors, one_person, 0, 2};
    ck_assert_int_eq(calibrate(&all, 0.01, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND);
    all.n = 1;
    ck_assert_int_eq(calibrate(&all, 0.01, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND);
    all.n = 2;
    ck_assert_int_eq(calibrate(&all, 0.01, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND); /* cos 10° / 2 is lower */
    all = (struct templates){vectors, one_photo_each, 3, 2};
    ck_assert_int_eq(calibrate(&all, 0.01, &found, &err), WEIR_OK);
    ck_assert_uint_eq(found.n_genuine, 0);
    ck_assert_double_le(found.threshold, THRESHOLD_CEILING);
    ck_assert_double_ge(found.threshold, THRESHOLD_FLOOR);
    ck_assert_int_eq(calibrate(&all, 0, &found, &err), WEIR_ERR_INVALID);
    ck_assert_int_eq(calibrate(&all, NAN, &found, &err), WEIR_ERR_INVALID);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *tcase = tcase_create("calibrate");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, strangers_pass_at_about_the_stated_rate, 0,
                        (int)(sizeof laws / sizeof laws[0] * sizeof forms / sizeof forms[0]));
    tcase_add_test(tcase, a_stricter_rate_never_gives_a_lower_threshold);
    tcase_add_test(tcase, the_threshold_keeps_the_guard_between_impostor_and_genuine_scores);
    tcase_add_test(tcase, small_galleries_fall_back_as_documented);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
