/*
 * The law of calibration: over many synthetic sets of scores, and of embeddings, impostors drawn
 * from the same distribution pass at about the stated rate. Distributions with known quantiles are
 * the judge.
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

START_TEST(impostors_pass_at_about_the_stated_rate)
{
    const struct law *law = &laws[(size_t)_i % (sizeof laws / sizeof laws[0])];
    const struct form *form = &forms[(size_t)_i / (sizeof laws / sizeof laws[0])];
    static struct impostor scores[4000];
    struct weir_rng rng;
    double sum = 0;
    weir_rng_init(&rng, SEED, (uint64_t)_i);
    for (int trial = 0; trial < N_TRIALS; trial++) {
        for (size_t i = 0; i < form->n; i++) {
            scores[i] = (struct impostor){law->draw(&rng), (int32_t)i};
        }
        sum += law->pass_rate(score_quantile(scores, form->n, form->rate));
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
    struct impostor scores[200], copy[200];
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 99);
    for (size_t n = 1; n <= 200; n += 7) {
        double before = -10;
        for (size_t i = 0; i < n; i++) {
            scores[i] = (struct impostor){draw_largest(&rng), (int32_t)i / 3};
        }
        for (double rate = 0.5; rate > 1e-5; rate /= 1.3) {
            memcpy(copy, scores, sizeof copy);
            double threshold = score_quantile(copy, n, rate);
            ck_assert_msg(threshold >= before - 1e-12, "n = %zu, rate %g", n, rate);
            before = threshold;
            double back = score_rate(copy, n, threshold);
            ck_assert_msg(back > rate / 1.5 && back < rate * 1.5 + 1.5 / (double)n,
                          "n = %zu, rate %g: %g back", n, rate, back);
        }
    }
}

END_TEST

/* ---- impostors ------------------------------------------------------------------------------- */

/* An impostor's photos are alike: what is the person's is drawn once, what is the photo's each time.
 * Both are normal, so the sum is, and its rate above a threshold is known. */
static const struct crowd {
    size_t n_people, n_photos;
    double shared; /**< Part of the variance that is the person's. */
    double rate, low, high;
} crowds[] = {
    {1000, 4, 0.5, 0.01, 0.008, 0.0125}, {200, 4, 0.5, 0.01, 0.006, 0.014},
    {200, 1, 0.0, 0.01, 0.006, 0.014},   {60, 10, 0.8, 0.01, 0.006, 0.018},
    {12, 10, 0.5, 0.01, 0.004, 0.015},   {7, 10, 0.8, 0.01, 0.005, 0.02},
    {30, 3, 0.5, 0.05, 0.02, 0.07},
};

static size_t draw_crowd(const struct crowd *crowd, struct weir_rng *rng, struct impostor *out)
{
    size_t n = crowd->n_people * crowd->n_photos;
    double person = 0;
    for (size_t i = 0; i < n; i++) {
        person = i % crowd->n_photos == 0 ? weir_rng_normal(rng) : person;
        double z = sqrt(crowd->shared) * person + sqrt(1 - crowd->shared) * weir_rng_normal(rng);
        out[i] =
            (struct impostor){fmin(fmax(0.4 + 0.1 * z, -1), 1), (int32_t)(i / crowd->n_photos)};
    }
    return n;
}

START_TEST(new_impostors_pass_at_about_the_stated_rate_of_those_who_set_it)
{
    static struct impostor scores[4000];
    const struct crowd *crowd = &crowds[_i];
    struct weir_rng rng;
    double sum = 0;
    const int n_trials = crowd->n_people * crowd->n_photos > 1000 ? 40 : 400;
    weir_rng_init(&rng, SEED, 1000 + (uint64_t)_i);
    for (int trial = 0; trial < n_trials; trial++) {
        size_t n = draw_crowd(crowd, &rng, scores);
        sum += pass_normal(score_quantile(scores, n, crowd->rate) - 0.1); /* its mean is 0.3 */
    }
    double rate = sum / n_trials;
    printf("seed %d: %zu impostors, %zu photos each: asked %.3f, passed %.4f\n", SEED,
           crowd->n_people, crowd->n_photos, crowd->rate, rate);
    ck_assert_msg(rate >= crowd->low && rate <= crowd->high, "rate %g", rate);
}

END_TEST

/* One enrolled photo, along the first axis: an impostor's score is the first coordinate. */
START_TEST(a_calibration_goes_by_the_best_scores_of_impostors)
{
    static struct impostor scores[4000];
    static float vectors[4000 * 3];
    static int32_t persons[4000];
    const struct crowd *crowd = &crowds[_i];
    const float enrolled[3] = {1, 0, 0};
    const int32_t nobody_else = 0;
    const struct calibration_rates rates = {.accept = crowd->rate, .deny = crowd->rate};
    struct calibration found;
    struct weir_error err;
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 1500 + (uint64_t)_i);
    size_t n = draw_crowd(crowd, &rng, scores);
    for (size_t i = 0; i < n; i++) {
        double score = scores[i].score, angle = 2 * M_PI * weir_rng_f64(&rng);
        vectors[3 * i] = (float)score;
        vectors[3 * i + 1] = (float)(sqrt(1 - score * score) * cos(angle));
        vectors[3 * i + 2] = (float)(sqrt(1 - score * score) * sin(angle));
        persons[i] = scores[i].person;
    }
    const struct templates known = {enrolled, &nobody_else, 1, 3};
    const struct templates impostors = {vectors, persons, n, 3};
    ck_assert_int_eq(calibrate(&known, &impostors, &rates, &found, &err), WEIR_OK);
    ck_assert_int_eq(found.rule, CALIBRATION_IMPOSTORS);
    ck_assert_uint_eq(found.n_impostors, n);
    ck_assert_uint_eq(found.n_impostor_people, crowd->n_people);
    ck_assert_double_eq_tol(found.threshold, score_quantile(scores, n, crowd->rate), 1e-4);
    ck_assert_double_eq_tol(found.expected_rate, crowd->rate, crowd->rate / 2);
    ck_assert_double_le(found.threshold_low, found.threshold_high);
}

END_TEST

START_TEST(the_interval_holds_the_true_quantile_in_about_nine_of_ten_cases)
{
    static struct impostor scores[1000], drawn[2000];
    const struct crowd *crowd = &crowds[_i];
    const double truth = 0.4 + 0.1 * score_normal_quantile(1 - crowd->rate);
    const int n_trials = 60;
    struct weir_rng rng;
    int n_held = 0;
    weir_rng_init(&rng, SEED, 2000 + (uint64_t)_i);
    for (int trial = 0; trial < n_trials; trial++) {
        double low, high;
        size_t n = draw_crowd(crowd, &rng, scores);
        score_interval(scores, n, crowd->rate, drawn, &low, &high);
        ck_assert_double_le(low, high);
        n_held += low <= truth && truth <= high;
    }
    printf("seed %d: %zu impostors, %zu photos each: %d of %d intervals hold\n", SEED,
           crowd->n_people, crowd->n_photos, n_held, n_trials);
    /* Few people never show how different people can be: a bootstrap of them is too sure. */
    ck_assert_int_ge(10 * n_held, n_trials * (crowd->n_people >= 30 ? 7 : 6));
}

END_TEST

/* Impostors' vectors are drawn evenly over directions, so what share of them lies within an angle
 * of one enrolled person is known: the cosine of a point of a sphere is uniform (Archimedes). */
START_TEST(who_is_barred_costs_the_stated_share_of_false_alarms_each)
{
    enum { PEOPLE = 20, IMPOSTORS = 4000 };

    static float known[PEOPLE * 2 * 3], others[IMPOSTORS * 3];
    static int32_t persons[PEOPLE * 2], whose[IMPOSTORS];
    const struct calibration_rates rates = {.accept = 0.3, .deny = 0.02};
    struct calibration found;
    struct weir_error err;
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 3000);
    for (int i = 0; i < PEOPLE * 2 + IMPOSTORS; i++) {
        bool is_known = i < PEOPLE * 2;
        float *at = is_known ? known + 3 * i : others + 3 * (i - PEOPLE * 2);
        double z = 2 * weir_rng_f64(&rng) - 1, angle = 2 * M_PI * weir_rng_f64(&rng);
        at[0] = (float)(sqrt(1 - z * z) * cos(angle));
        at[1] = (float)(sqrt(1 - z * z) * sin(angle));
        at[2] = (float)z;
        if (is_known && i % 2 == 1) {
            memcpy(at, at - 3, 3 * sizeof *at); /* two photos of a person are alike */
        }
        *(is_known ? &persons[i] : &whose[i - PEOPLE * 2]) = is_known ? i / 2 : i;
    }
    const struct templates all = {known, persons, PEOPLE * 2, 3};
    const struct templates impostors = {others, whose, IMPOSTORS, 3};
    ck_assert_int_eq(calibrate(&all, &impostors, &rates, &found, &err), WEIR_OK);
    double passed = (1 - found.deny_threshold) / 2; /* P(cosine ≥ t) on the sphere */
    printf("seed %d: asked 0.02, passed %.4f\n", SEED, passed);
    ck_assert_double_eq_tol(passed, 0.02, 0.003);
    ck_assert_double_le(found.deny_threshold, found.threshold);
}

END_TEST

static const struct calibration_rates percent = {.accept = 0.01, .deny = 0.01};

/* A gallery on the plane: a vector is an angle, so every cosine is known. */
static const struct templates nobody = {NULL, NULL, 0, 2};

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
    ck_assert_int_eq(calibrate(&all, &nobody, &percent, &found, &err), WEIR_OK);
    double genuine = cos(10 * M_PI / 180);
    double impostor =
        (cos(100 * M_PI / 180) + 2 * cos(90 * M_PI / 180) + cos(100 * M_PI / 180)) / 4;
    ck_assert_uint_eq(found.n_genuine, 4);
    ck_assert_uint_eq(found.n_between, 4);
    ck_assert_double_eq_tol(found.genuine_mean, genuine, 1e-6);
    ck_assert_double_eq_tol(found.between_mean, impostor, 1e-6);
    ck_assert_double_ge(found.threshold, impostor + 0.7 * (genuine - impostor));
    ck_assert_double_le(found.threshold, genuine + 1e-6);
    ck_assert_int_eq(found.rule, CALIBRATION_GALLERY);
    ck_assert(isnan(found.expected_rate)); /* What impostors get, the gallery does not tell. */
}

END_TEST

START_TEST(impostors_outweigh_the_gallery_unless_they_are_few)
{
    /* Two people, 90 degrees apart; impostors 60 to 65 degrees from the nearer one. */
    const double degrees[] = {0, 10, 100, 110};
    const int32_t persons[] = {0, 0, 1, 1};
    double away[40];
    int32_t whose[40];
    float vectors[8], others[80];
    struct calibration found;
    struct weir_error err;
    at_angles(degrees, 4, vectors);
    for (int i = 0; i < 40; i++) {
        away[i] = -60 - i % 20 * 0.25;
        whose[i] = i / 2;
    }
    at_angles(away, 40, others);
    const struct templates all = {vectors, persons, 4, 2};
    struct templates impostors = {others, whose, 40, 2};
    ck_assert_int_eq(calibrate(&all, &impostors, &percent, &found, &err), WEIR_OK);
    ck_assert_int_eq(found.rule, CALIBRATION_IMPOSTORS);
    ck_assert_double_ge(found.threshold, cos(60 * M_PI / 180));
    ck_assert_double_le(found.threshold, cos(50 * M_PI / 180));
    ck_assert_double_eq(found.refused_share, 0);
    impostors.n = 19;
    ck_assert_int_eq(calibrate(&all, &impostors, &percent, &found, &err), WEIR_OK);
    ck_assert_int_eq(found.rule, CALIBRATION_BOTH);
    ck_assert_double_ge(found.threshold, 0.7);              /* The guard of the gallery. */
    impostors = (struct templates){vectors, persons, 4, 2}; /* As like as can be. */
    ck_assert_int_eq(calibrate(&all, &impostors, &percent, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_CEILING);
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
    ck_assert_int_eq(calibrate(&all, &nobody, &percent, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND);
    all.n = 1;
    ck_assert_int_eq(calibrate(&all, &nobody, &percent, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND);
    all.n = 2;
    ck_assert_int_eq(calibrate(&all, &nobody, &percent, &found, &err), WEIR_OK);
    ck_assert_double_eq(found.threshold, THRESHOLD_BLIND); /* cos 10° / 2 is lower */
    all = (struct templates){vectors, one_photo_each, 3, 2};
    ck_assert_int_eq(calibrate(&all, &nobody, &percent, &found, &err), WEIR_OK);
    ck_assert_uint_eq(found.n_genuine, 0);
    ck_assert_double_le(found.threshold, THRESHOLD_CEILING);
    ck_assert_double_ge(found.threshold, THRESHOLD_FLOOR);
    const struct calibration_rates wrong[] = {{0, 0.01}, {NAN, 0.01}, {0.01, 1}, {0.01, NAN}};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(calibrate(&all, &nobody, &wrong[i], &found, &err), WEIR_ERR_INVALID);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *tcase = tcase_create("calibrate");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, impostors_pass_at_about_the_stated_rate, 0,
                        (int)(sizeof laws / sizeof laws[0] * sizeof forms / sizeof forms[0]));
    tcase_add_loop_test(tcase, new_impostors_pass_at_about_the_stated_rate_of_those_who_set_it, 0,
                        (int)(sizeof crowds / sizeof crowds[0]));
    tcase_add_loop_test(tcase, a_calibration_goes_by_the_best_scores_of_impostors, 0,
                        (int)(sizeof crowds / sizeof crowds[0]));
    tcase_add_loop_test(tcase, the_interval_holds_the_true_quantile_in_about_nine_of_ten_cases, 1,
                        (int)(sizeof crowds / sizeof crowds[0]));
    tcase_add_test(tcase, who_is_barred_costs_the_stated_share_of_false_alarms_each);
    tcase_add_test(tcase, impostors_outweigh_the_gallery_unless_they_are_few);
    tcase_add_test(tcase, a_stricter_rate_never_gives_a_lower_threshold);
    tcase_add_test(tcase, the_threshold_keeps_the_guard_between_impostor_and_genuine_scores);
    tcase_add_test(tcase, small_galleries_fall_back_as_documented);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
