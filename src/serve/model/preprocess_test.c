#include "serve/preprocess.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "tensor/convert.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct weir_error err;

static struct weir_image random_image(struct weir_rng *rng, int width, int height, int channels)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, width, height, channels, &err), WEIR_OK);
    for (int i = 0; i < width * height * channels; i++) {
        image.pixels[i] = (uint8_t)weir_rng_below(rng, 256);
    }
    return image;
}

static int pick(struct weir_rng *rng, int n)
{
    return (int)weir_rng_below(rng, (uint64_t)n);
}

static struct signature_picture random_rule(struct weir_rng *rng)
{
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT16,
                                             WEIR_DTYPE_UINT8};
    struct signature_picture rule = {.width = 1 + pick(rng, 12),
                                     .height = 1 + pick(rng, 12),
                                     .channels = pick(rng, 2) == 0 ? 1 : 3,
                                     .is_nhwc = pick(rng, 2) == 0,
                                     .is_crop = pick(rng, 2) == 0,
                                     .is_bgr = pick(rng, 2) == 0,
                                     .dtype = dtypes[pick(rng, 3)],
                                     .scale = pick(rng, 2) == 0 ? 1 : 255};
    rule.shorter = WEIR_MAX(rule.width, rule.height) + pick(rng, 5);
    for (int i = 0; i < 3; i++) {
        rule.mean[i] = weir_rng_normal(rng);
        rule.std[i] = 0.25 + pick(rng, 4);
    }
    return rule;
}

/* ---- the oracle: a pixel at a time, from the resized picture --------------------------------- */

static int half_to_even(int n)
{
    int half = n / 2;
    return n % 2 == 0 ? half : half + half % 2;
}

static int channel_of(const struct weir_image *image, int x, int y, int channel)
{
    const uint8_t *at =
        image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
    return at[channel];
}

static double expected_value(const struct signature_picture *rule, const struct weir_image *resized,
                             int c, int y, int x)
{
    int left = rule->is_crop ? half_to_even(resized->width - rule->width) : 0;
    int top = rule->is_crop ? half_to_even(resized->height - rule->height) : 0;
    int channel = rule->is_bgr && rule->channels == 3 ? 2 - c : c;
    double v = channel_of(resized, left + x, top + y, channel);
    double value = (v * rule->scale / 255 - rule->mean[c]) / rule->std[c];
    if (rule->dtype == WEIR_DTYPE_UINT8) {
        value = nearbyint(value);
        return value < 0 ? 0 : value > 255 ? 255 : value;
    }
    return value;
}

static struct weir_image resize_for(const struct signature_picture *rule,
                                    const struct weir_image *image)
{
    struct weir_image converted, resized;
    int w = rule->width, h = rule->height;
    ck_assert_int_eq(weir_image_convert(image, rule->channels, &converted, &err), WEIR_OK);
    if (rule->is_crop) {
        double ratio = (double)image->width / image->height;
        w = ratio <= 1 ? rule->shorter
                       : (int)(rule->shorter * (int64_t)image->width / image->height);
        h = ratio <= 1 ? (int)(rule->shorter * (int64_t)image->height / image->width)
                       : rule->shorter;
    }
    ck_assert_int_eq(weir_image_resize(&converted, w, h, &resized, &err), WEIR_OK);
    weir_image_fini(&converted);
    return resized;
}

static void expect_tensor(const struct signature_picture *rule, const struct weir_image *resized,
                          const void *got)
{
    for (int c = 0; c < rule->channels; c++) {
        for (int y = 0; y < rule->height; y++) {
            for (int x = 0; x < rule->width; x++) {
                size_t at =
                    rule->is_nhwc
                        ? ((size_t)y * (size_t)rule->width + (size_t)x) * (size_t)rule->channels +
                              (size_t)c
                        : ((size_t)c * (size_t)rule->height + (size_t)y) * (size_t)rule->width +
                              (size_t)x;
                double value, expected = expected_value(rule, resized, c, y, x);
                weir_elems_to_f64(
                    rule->dtype, (const char *)got + at * weir_dtype_bytes(rule->dtype), &value, 1);
                bool is_rounded = rule->is_crop || rule->is_nhwc || rule->is_bgr ||
                                  rule->dtype != WEIR_DTYPE_FLOAT;
                double level = 1.001 * rule->scale / 255 / rule->std[c];
                double tolerance = rule->dtype == WEIR_DTYPE_FLOAT16 ? 1e-3 : 1e-6;
                tolerance = is_rounded ? tolerance : level;
                ck_assert_msg(fabs(value - expected) <= tolerance * fmax(1, fabs(expected)),
                              "c %d y %d x %d: %g, expected %g", c, y, x, value, expected);
            }
        }
    }
}

START_TEST(a_picture_becomes_what_the_rule_says)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 11, (uint64_t)_i);
    struct signature_picture rule = random_rule(&rng);
    struct weir_image image =
        random_image(&rng, 1 + pick(&rng, 30), 1 + pick(&rng, 30), pick(&rng, 2) == 0 ? 1 : 3);
    struct weir_image resized = resize_for(&rule, &image);
    void *out = malloc(weir_picture_bytes(&rule));
    ck_assert_msg(weir_picture_fill(&rule, &image, out, &err) == WEIR_OK, "%s", err.message);
    expect_tensor(&rule, &resized, out);
    free(out);
    weir_image_fini(&image);
    weir_image_fini(&resized);
}

END_TEST

/* Weir's own nets: the same tensor as training and evaluation make. */
START_TEST(a_stretched_picture_is_what_evaluation_takes)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 12, (uint64_t)_i);
    struct weir_image image = random_image(&rng, 17, 23, 3);
    struct weir_input input = {.c = 3, .h = 9, .w = 7};
    struct signature_picture rule = {
        .width = 7, .height = 9, .channels = 3, .dtype = WEIR_DTYPE_FLOAT, .scale = 1};
    for (int i = 0; i < 3; i++) {
        input.mean[i] = (float)(0.25 * i);
        input.std[i] = 0.5f;
        rule.mean[i] = 0.25 * i;
        rule.std[i] = 0.5;
    }
    float expected[3 * 9 * 7], got[3 * 9 * 7];
    ck_assert_int_eq(weir_image_to_tensor(&image, &input, expected, &err), WEIR_OK);
    ck_assert_int_eq(weir_picture_fill(&rule, &image, got, &err), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(got); i++) {
        ck_assert(fabsf(got[i] - expected[i]) < 1e-6f);
    }
    weir_image_fini(&image);
}

END_TEST

START_TEST(bytes_become_a_batch_of_one_and_damaged_ones_an_error)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 13, 0);
    struct serve_port port = {
        .name = "x", .dtype = WEIR_DTYPE_FLOAT, .rank = 4, .dims = {-1, 4, 6, 1}};
    struct weir_signature signature = {.inputs = &port,
                                       .n_inputs = 1,
                                       .has_picture = true,
                                       .picture = {.width = 6,
                                                   .height = 4,
                                                   .channels = 1,
                                                   .is_nhwc = true,
                                                   .dtype = WEIR_DTYPE_FLOAT,
                                                   .scale = 255,
                                                   .std = {1, 1, 1}}};
    struct weir_image image = random_image(&rng, 6, 4, 1);
    struct weir_tensor *tensor;
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_PNG, 90, &buf, &err), WEIR_OK);
    ck_assert_msg(weir_picture_tensor(&signature, buf.data, buf.len, &tensor, &err) == WEIR_OK,
                  "%s", err.message);
    ck_assert(tensor->rank == 4 && tensor->dims[0] == 1 && tensor->dims[1] == 4 &&
              tensor->dims[2] == 6 && tensor->dims[3] == 1);
    for (size_t i = 0; i < tensor->n_elems; i++) {
        ck_assert(((float *)tensor->data)[i] == (float)image.pixels[i]);
    }
    weir_tensor_release(tensor);
    port.rank = 3;
    memcpy(port.dims, (int64_t[]){4, 6, 1}, 3 * sizeof(int64_t));
    ck_assert_int_eq(weir_picture_tensor(&signature, buf.data, buf.len, &tensor, &err), WEIR_OK);
    ck_assert(tensor->rank == 3 && tensor->dims[0] == 4);
    weir_tensor_release(tensor);
    ck_assert_int_eq(weir_picture_tensor(&signature, buf.data, buf.len / 2, &tensor, &err),
                     WEIR_ERR_CORRUPT);
    ck_assert_int_eq(weir_picture_tensor(&signature, "hello", 5, &tensor, &err),
                     WEIR_ERR_UNSUPPORTED);
    signature.has_picture = false;
    ck_assert_int_eq(weir_picture_tensor(&signature, buf.data, buf.len, &tensor, &err),
                     WEIR_ERR_UNSUPPORTED);
    weir_buf_fini(&buf);
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_picture_like_a_thread_is_refused)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 14, 0);
    struct weir_image image = random_image(&rng, 1, 9000, 1);
    struct signature_picture rule = {.width = 4,
                                     .height = 4,
                                     .channels = 1,
                                     .is_crop = true,
                                     .shorter = 4,
                                     .dtype = WEIR_DTYPE_UINT8,
                                     .scale = 255,
                                     .std = {1}};
    uint8_t out[16];
    ck_assert_int_eq(weir_picture_fill(&rule, &image, out, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "1x9000"));
    weir_image_fini(&image);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("preprocess", {a_picture_becomes_what_the_rule_says, 200},
                     {a_stretched_picture_is_what_evaluation_takes, 1},
                     {bytes_become_a_batch_of_one_and_damaged_ones_an_error, 1},
                     {a_picture_like_a_thread_is_refused, 1})
