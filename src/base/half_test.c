/* Halves against their definition, worked out in double. */
#include "base/half.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

/* (-1)^s * 2^(e-15) * 1.f, or 2^-14 * 0.f */
static double defined(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -size : size;
}

START_TEST(every_half_is_widened_and_comes_back)
{
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t half = (uint16_t)i;
        double value = defined(half);
        float wide = weir_half_to_f32(half);
        if (isnan(value)) {
            ck_assert(isnan(wide));
            ck_assert(isnan(weir_half_to_f32(weir_half_from_f32(wide))));
            continue;
        }
        ck_assert_msg((double)wide == value && (signbit(wide) != 0) == (half >= 0x8000),
                      "0x%04x: %g", half, (double)wide);
        ck_assert_uint_eq(weir_half_from_f32(wide), half);
    }
}

END_TEST

/* No half is nearer, and of two that are as near the even one is taken. */
static void check_nearest(float value)
{
    uint16_t half = weir_half_from_f32(value);
    double own = fabs(defined(half) - (double)value);
    ck_assert_int_eq(signbit(weir_half_to_f32(half)) != 0, signbit(value) != 0);
    if (fabs((double)value) >= 65520) { /* half way to what would be 65536 */
        ck_assert_uint_eq(half & 0x7fff, 0x7c00);
        return;
    }
    ck_assert_uint_lt(half & 0x7fff, 0x7c00);
    for (int d = -1; d <= 1; d += 2) {
        uint16_t other = (uint16_t)(half + d);
        if ((half & 0x7fff) + d < 0 || (other & 0x7fff) >= 0x7c00) {
            continue;
        }
        double theirs = fabs(defined(other) - (double)value);
        ck_assert_msg(own < theirs || (own == theirs && half % 2 == 0), "%a: 0x%04x or 0x%04x",
                      (double)value, half, other);
    }
}

START_TEST(the_nearest_half_is_taken)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 5, 0);
    for (int i = 0; i < 200000; i++) {
        check_nearest((float)ldexp(2 * weir_rng_f32(&rng) - 1, (int)weir_rng_below(&rng, 50) - 30));
    }
    /* Half way between two halves, and beside it. */
    for (uint16_t half = 0; half < 0x7bff; half = (uint16_t)(half + 7)) {
        float middle = (float)((defined(half) + defined((uint16_t)(half + 1))) / 2);
        check_nearest(middle);
        check_nearest(nextafterf(middle, 0));
        check_nearest(-nextafterf(middle, INFINITY));
    }
    check_nearest(65519.996F);
    check_nearest(65520);
    check_nearest(1e30F);
    ck_assert_uint_eq(weir_half_from_f32(-INFINITY), 0xfc00);
}

END_TEST

WEIR_TEST_MAIN("half", every_half_is_widened_and_comes_back, the_nearest_half_is_taken)
