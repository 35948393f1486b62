/* The choices that were measured are found again, for their shape, GPU and mode alone. */
#include "conv_choices.h"

#include "base/test_main.h"

#include <string.h>

static struct gpu_conv_shape shape_of(int32_t n, int32_t k)
{
    struct gpu_conv_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.n = n;
    shape.k = k;
    shape.kernel_h = shape.kernel_w = 3;
    return shape;
}

START_TEST(a_choice_is_of_its_shape_gpu_and_mode)
{
    struct gpu_conv_shape shape = shape_of(1, 64), other = shape_of(8, 64), relu = shape_of(1, 64);
    relu.has_relu = true;
    ck_assert_int_eq(conv_choices_find(0, &shape, 1), -1);
    conv_choices_keep(0, &shape, 1, 5);
    conv_choices_keep(1, &shape, 1, 2);
    conv_choices_keep(0, &other, 1, 7);
    ck_assert_int_eq(conv_choices_find(0, &shape, 1), 5);
    ck_assert_int_eq(conv_choices_find(1, &shape, 1), 2);
    ck_assert_int_eq(conv_choices_find(0, &other, 1), 7);
    ck_assert_int_eq(conv_choices_find(0, &shape, 2), -1);
    ck_assert_int_eq(conv_choices_find(0, &relu, 1), -1);
    conv_choices_keep(0, &shape, 1, 0);
    ck_assert_int_eq(conv_choices_find(0, &shape, 1), 0);
}

END_TEST

START_TEST(the_newest_are_kept)
{
    for (int32_t k = 0; k < CONV_CHOICES_MAX + 10; k++) {
        struct gpu_conv_shape shape = shape_of(2, k);
        conv_choices_keep(3, &shape, 1, k % 60);
    }
    for (int32_t k = 0; k < CONV_CHOICES_MAX + 10; k++) {
        struct gpu_conv_shape shape = shape_of(2, k);
        ck_assert_int_eq(conv_choices_find(3, &shape, 1), k < 10 ? -1 : k % 60);
    }
}

END_TEST

WEIR_TEST_MAIN("conv_choices", a_choice_is_of_its_shape_gpu_and_mode, the_newest_are_kept)
