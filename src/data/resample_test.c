/* Oracle: Pillow's resize of the same pattern (resample_test_data.h). */
#include "data/image.h"

#include "base/test_main.h"
#include "data/resample_test_data.h"

#include <math.h>
#include <stdio.h>

static struct weir_image make_pattern(int width, int height, int channels)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, width, height, channels, NULL), WEIR_OK);
    uint8_t *at = image.pixels;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < channels; c++) {
                *at++ = (uint8_t)(x * 37 + y * 91 + c * 53 + x * y * 7);
            }
        }
    }
    return image;
}

START_TEST(resizing_is_pillows_within_one_level)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_image image = make_pattern(cases[i].width, cases[i].height, cases[i].channels);
        struct weir_image made;
        ck_assert_int_eq(
            weir_image_resize(&image, cases[i].new_width, cases[i].new_height, &made, NULL),
            WEIR_OK);
        int n = made.width * made.height * made.channels;
        for (int k = 0; k < n; k++) {
            ck_assert_msg(abs(made.pixels[k] - cases[i].expected[k]) <= 1,
                          "case %zu byte %d: %d, expected %d", i, k, made.pixels[k],
                          cases[i].expected[k]);
        }
        weir_image_fini(&image);
        weir_image_fini(&made);
    }
}

END_TEST

START_TEST(a_constant_picture_stays_constant_at_every_size)
{
    struct weir_image image, made;
    ck_assert_int_eq(weir_image_init(&image, 17, 29, 1, NULL), WEIR_OK);
    memset(image.pixels, 201, 17 * 29);
    for (int width = 1; width < 60; width += 3) {
        for (int height = 1; height < 60; height += 5) {
            ck_assert_int_eq(weir_image_resize(&image, width, height, &made, NULL), WEIR_OK);
            for (int i = 0; i < width * height; i++) {
                ck_assert_int_eq(made.pixels[i], 201);
            }
            weir_image_fini(&made);
        }
    }
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_tensor_of_the_same_size_is_the_normalised_pixels_in_planes)
{
    struct weir_image image = make_pattern(6, 5, 3);
    struct weir_input input = {
        .c = 3, .h = 5, .w = 6, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
    float tensor[3 * 5 * 6];
    ck_assert_int_eq(weir_image_to_tensor(&image, &input, tensor, NULL), WEIR_OK);
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 30; i++) {
            double expected =
                (image.pixels[3 * i + c] / 255.0 - (double)input.mean[c]) / (double)input.std[c];
            ck_assert_double_eq_tol((double)tensor[30 * c + i], expected, 2e-6);
        }
    }
    weir_image_fini(&image);
}

END_TEST

START_TEST(channels_are_converted_as_the_picture_functions_do)
{
    struct weir_image image = make_pattern(40, 30, 3), grey, small;
    struct weir_input input = {.c = 1, .h = 7, .w = 13, .std = {1}};
    float tensor[91], colour[273];
    ck_assert_int_eq(weir_image_to_tensor(&image, &input, tensor, NULL), WEIR_OK);
    ck_assert_int_eq(weir_image_convert(&image, 1, &grey, NULL), WEIR_OK);
    ck_assert_int_eq(weir_image_resize(&grey, 13, 7, &small, NULL), WEIR_OK);
    for (int i = 0; i < 91; i++) { // two roundings apart
        ck_assert_double_eq_tol((double)tensor[i] * 255, small.pixels[i], 1.01);
    }
    input = (struct weir_input){.c = 3, .h = 7, .w = 13, .std = {1, 1, 1}};
    ck_assert_int_eq(weir_image_to_tensor(&small, &input, colour, NULL), WEIR_OK);
    for (int i = 0; i < 91; i++) {
        ck_assert_double_eq((double)colour[i], (double)colour[91 + i]);
        ck_assert_double_eq((double)colour[i], (double)colour[182 + i]);
    }
    weir_image_fini(&image);
    weir_image_fini(&grey);
    weir_image_fini(&small);
}

END_TEST

START_TEST(an_unusable_input_is_refused)
{
    struct weir_image image = make_pattern(4, 4, 1);
    static const struct weir_input bad[] = {
        {.c = 2, .h = 4, .w = 4, .std = {1, 1}},  {.c = 1, .h = 0, .w = 4, .std = {1}},
        {.c = 1, .h = 4, .w = 20000, .std = {1}}, {.c = 1, .h = 4, .w = 4, .std = {0}},
        {.c = 1, .h = 4, .w = 4, .std = {NAN}},   {.c = 3, .h = 4, .w = 4, .std = {1, 1, -1}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        float tensor[48];
        struct weir_error err = {0};
        ck_assert_int_eq(weir_image_to_tensor(&image, &bad[i], tensor, &err), WEIR_ERR_INVALID);
        ck_assert_uint_gt(strlen(err.message), 10);
    }
    weir_image_fini(&image);
}

END_TEST

WEIR_TEST_MAIN("resample", resizing_is_pillows_within_one_level,
               a_constant_picture_stays_constant_at_every_size,
               a_tensor_of_the_same_size_is_the_normalised_pixels_in_planes,
               channels_are_converted_as_the_picture_functions_do, an_unusable_input_is_refused)
