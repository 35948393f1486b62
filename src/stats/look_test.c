#include "stats/look.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

#define SIDE 32

static float grey[SIDE * SIDE];

static void checkers(float low, float high)
{
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        grey[i] = (i / SIDE + i % SIDE) % 2 == 0 ? low : high;
    }
}

START_TEST(numbers_of_simple_pictures_are_known)
{
    checkers(0.25F, 0.75F);
    struct weir_look look = weir_look_at(grey, SIDE, SIDE);
    ck_assert_double_eq_tol(look.brightness, 0.5, 1e-7);
    ck_assert_double_eq_tol(look.contrast, 0.25, 1e-7);
    ck_assert_double_eq_tol(look.sharpness, 2, 1e-6); /* four neighbours, each half away */
    ck_assert_double_eq_tol(look.entropy, 1, 1e-12);
    checkers(0.3F, 0.3F);
    look = weir_look_at(grey, SIDE, SIDE);
    ck_assert_double_eq_tol(look.contrast, 0, 1e-7);
    ck_assert_double_eq_tol(look.sharpness, 0, 1e-6);
    ck_assert_double_eq(look.entropy, 0);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        grey[i] = ((float)(i % 64) + 0.5F) / 64;
    }
    ck_assert_double_eq_tol(weir_look_at(grey, SIDE, SIDE).entropy, 6, 1e-12);
}

END_TEST

START_TEST(a_blurred_picture_is_less_sharp_and_a_dim_one_has_less_contrast)
{
    struct weir_rng rng;
    float blurred[SIDE * SIDE], dim[SIDE * SIDE];
    weir_rng_init(&rng, 4, 0);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        grey[i] = (float)weir_rng_f64(&rng);
        dim[i] = grey[i] / 4;
    }
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        blurred[i] =
            (grey[i] + grey[(i + 1) % (SIDE * SIDE)] + grey[(i + SIDE) % (SIDE * SIDE)]) / 3;
    }
    struct weir_look look = weir_look_at(grey, SIDE, SIDE);
    ck_assert_double_lt(weir_look_at(blurred, SIDE, SIDE).sharpness, 0.8 * look.sharpness);
    ck_assert_double_eq_tol(weir_look_at(dim, SIDE, SIDE).contrast, look.contrast / 4, 1e-6);
    ck_assert_double_lt(weir_look_at(dim, SIDE, SIDE).entropy, look.entropy - 1.5);
}

END_TEST

START_TEST(pictures_that_are_none_are_no_trouble)
{
    ck_assert_double_nan(weir_look_at(grey, 0, 0).brightness);
    grey[0] = NAN;
    ck_assert_double_nan(weir_look_at(grey, SIDE, SIDE).entropy);
    grey[0] = INFINITY;
    ck_assert(!isfinite(weir_look_at(grey, SIDE, SIDE).brightness));
    grey[0] = -5;
    grey[1] = 1e30F;
    ck_assert(isfinite(weir_look_at(grey, 1, 2).entropy));
    ck_assert_double_eq(weir_look_at(grey, 1, 2).sharpness, 0);
}

END_TEST

WEIR_TEST_MAIN("look", numbers_of_simple_pictures_are_known,
               a_blurred_picture_is_less_sharp_and_a_dim_one_has_less_contrast,
               pictures_that_are_none_are_no_trouble)
