/* Similarities are found again, cuts show what they say, and faces are judged by what they lack. */
#include "vision/face.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEED 463

static const float norm_points[10] = {38.2946F, 51.6963F, 73.5318F, 51.5014F, 56.0252F,
                                      71.7366F, 41.5493F, 92.3655F, 70.7299F, 92.2041F};

/* A similarity: a + ib turns and scales, x and y move. */
struct turn {
    double a, b, x, y;
};

static struct turn any_turn(struct weir_rng *rng, double scale_min, double scale_max)
{
    double scale = scale_min * pow(scale_max / scale_min, weir_rng_f64(rng));
    double angle = 6.2831853 * weir_rng_f64(rng);
    return (struct turn){scale * cos(angle), scale * sin(angle), 500 * weir_rng_f64(rng),
                         500 * weir_rng_f64(rng)};
}

static void turn_points(const struct turn *turn, const float *points, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        double x = (double)points[2 * i], y = (double)points[2 * i + 1];
        out[2 * i] = (float)(turn->a * x - turn->b * y + turn->x);
        out[2 * i + 1] = (float)(turn->b * x + turn->a * y + turn->y);
    }
}

static void any_points(struct weir_rng *rng, size_t n, float *out)
{
    for (size_t i = 0; i < 2 * n; i++) {
        out[i] = 100 * weir_rng_f32(rng);
    }
}

static double square_off(const struct weir_affine *map, const float *to, const float *from)
{
    double x = (double)(map->m[0] * to[0] + map->m[1] * to[1] + map->m[2] - from[0]);
    double y = (double)(map->m[3] * to[0] + map->m[4] * to[1] + map->m[5] - from[1]);
    return x * x + y * y;
}

START_TEST(the_known_points_have_the_known_matrix)
{
    const float from[10] = {26.26F, 53.83F, 62.06F, 52.38F, 44.39F,
                            72.70F, 28.78F, 86.90F, 58.60F, 85.55F};
    const double a = 1.1007, b = 0.0058, x = 7.9825, y = -5.7079; /* By OpenCV, from `from`. */
    struct weir_affine map;
    float residual;
    ck_assert(weir_similarity(from, norm_points, 5, &map, &residual));
    double m[4] = {(double)map.m[0], (double)map.m[3], (double)map.m[2], (double)map.m[5]};
    double square = m[0] * m[0] + m[1] * m[1]; /* The inverse of the map again. */
    ck_assert_double_eq_tol(m[0] / square, a, 1e-4);
    ck_assert_double_eq_tol(-m[1] / square, b, 1e-4);
    ck_assert_double_eq_tol(-(m[0] * m[2] + m[1] * m[3]) / square, x, 0.01);
    ck_assert_double_eq_tol(-(m[0] * m[3] - m[1] * m[2]) / square, y, 0.01);
    ck_assert_float_eq_tol(residual, 3.03F, 0.01F);
}

END_TEST

START_TEST(a_similarity_is_found_again_and_nothing_is_mirrored)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 1);
    for (int k = 0; k < 1000; k++) {
        float to[20], from[20], residual = -1;
        size_t n = 2 + weir_rng_below(&rng, 9);
        struct turn turn = any_turn(&rng, 0.1, 10);
        struct weir_affine map;
        any_points(&rng, n, to);
        turn_points(&turn, to, n, from);
        ck_assert(weir_similarity(from, to, n, &map, &residual));
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(square_off(&map, &to[2 * i], &from[2 * i]) < 1e-4, "seed %d, case %d",
                          SEED, k);
        }
        ck_assert_float_lt(residual, 0.01F);
        for (size_t i = 0; i < n; i++) {
            from[2 * i] = -from[2 * i];
        }
        bool is_found = weir_similarity(from, to, n, &map, &residual);
        double area = (double)map.m[0] * (double)map.m[4] - (double)map.m[1] * (double)map.m[3];
        ck_assert(!is_found || n == 2 || (area > 0 && residual > 0.1F));
    }
}

END_TEST

/* What is left when `from` is brought onto `to` by a turn, by the sum of squares. */
static double left_of(const struct turn *turn, const float *from, const float *to, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float at[2];
        turn_points(turn, &from[2 * i], 1, at);
        sum += pow((double)(at[0] - to[2 * i]), 2) + pow((double)(at[1] - to[2 * i + 1]), 2);
    }
    return sum;
}

START_TEST(no_other_similarity_leaves_less)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 2);
    for (int k = 0; k < 300; k++) {
        float to[10], from[10], residual;
        struct weir_affine map;
        any_points(&rng, 5, to);
        any_points(&rng, 5, from);
        ck_assert(weir_similarity(from, to, 5, &map, &residual));
        double square = pow((double)map.m[0], 2) + pow((double)map.m[3], 2);
        struct turn best = {(double)map.m[0] / square, -(double)map.m[3] / square, 0, 0};
        best.x = -(best.a * (double)map.m[2] - best.b * (double)map.m[5]);
        best.y = -(best.b * (double)map.m[2] + best.a * (double)map.m[5]);
        double least = left_of(&best, from, to, 5);
        ck_assert_double_eq_tol(sqrt(least / 5), (double)residual, 1e-3 * (1 + sqrt(least)));
        for (int i = 0; i < 20; i++) {
            struct turn other = best;
            other.a += 0.05 * weir_rng_normal(&rng);
            other.b += 0.05 * weir_rng_normal(&rng);
            other.x += weir_rng_normal(&rng);
            other.y += weir_rng_normal(&rng);
            ck_assert_double_ge(left_of(&other, from, to, 5), least * (1 - 1e-4));
        }
    }
}

END_TEST

START_TEST(points_in_one_place_are_no_face)
{
    struct weir_affine map = {{7}};
    float same[10], points[10], residual = 7;
    for (int i = 0; i < 10; i++) {
        same[i] = i % 2 == 0 ? 5 : 9;
    }
    ck_assert(!weir_similarity(same, norm_points, 5, &map, &residual));
    ck_assert(!weir_similarity(norm_points, same, 5, &map, &residual));
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        memcpy(points, norm_points, sizeof points);
        points[3 * i] = odd[i];
        ck_assert(!weir_similarity(points, norm_points, 5, &map, &residual));
    }
    ck_assert(map.m[0] == 7 && residual == 7);
    struct weir_detection detection = {.box = {10, 20, 30, 40}, .has_points = true};
    memcpy(detection.points, same, sizeof same);
    struct weir_face_align align = {.width = 60, .height = 40, .channels = 1};
    struct weir_face face = weir_face_find(&detection, &align);
    ck_assert(isnan(face.residual) && face.map.m[0] == 0.5F && face.map.m[2] == 10); /* The box. */
}

END_TEST

/* ---- cuts ---- */

/* A picture that is smooth, so that it can be looked at between its pixels. x, y: from the edge of the first pixel. */
static double smooth(double x, double y)
{
    return 128 + 70 * sin(x / 23) + 40 * cos(y / 17);
}

static struct weir_image make_smooth(int width, int height, int channels)
{
    struct weir_image image = {0};
    struct weir_error err = {0};
    ck_assert(weir_image_init(&image, width, height, channels, &err) == WEIR_OK);
    for (int i = 0; i < width * height * channels; i++) {
        int x = i / channels % width, y = i / channels / width;
        image.pixels[i] = (uint8_t)lround(smooth(x + 0.5, y + 0.5));
    }
    return image;
}

START_TEST(a_face_lies_on_the_template_in_a_cut_of_any_size)
{
    const int sizes[][3] = {{112, 112, 1}, {112, 112, 3}, {56, 56, 1}, {224, 224, 1}, {160, 96, 3}};
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 3);
    struct weir_image image = make_smooth(400, 400, 3);
    struct weir_view view = weir_view_of(&image);
    for (int k = 0; k < WEIR_TEST_TIMES(25, 5); k++) {
        const int *size = sizes[k % (int)WEIR_ARRAY_LEN(sizes)];
        double scale = 0.6 + 0.6 * weir_rng_f64(&rng), angle = weir_rng_f64(&rng) - 0.5;
        struct turn turn = {scale * cos(angle), scale * sin(angle), 140, 120};
        struct weir_detection detection = {.has_points = true};
        turn_points(&turn, norm_points, 5, detection.points);
        struct weir_face_align align = {.width = size[0], .height = size[1], .channels = size[2]};
        struct weir_image cut = {0};
        struct weir_face face;
        struct weir_error err = {0};
        ck_assert(weir_image_init(&cut, size[0], size[1], size[2], &err) == WEIR_OK);
        weir_face_cut(&view, &detection, &align, &cut, &face);
        ck_assert_float_lt(face.residual, 0.01F);
        double side = WEIR_MIN(size[0], size[1]);
        for (int i = 0; i < size[0] * size[1]; i += 7) {
            double u = (i % size[0] + 0.5 - (size[0] - side) / 2) * 112 / side;
            int row = i / size[0];
            double v = (row + 0.5 - (size[1] - side) / 2) * 112 / side;
            double x = turn.a * (u - 0.5) - turn.b * (v - 0.5) + turn.x + 0.5;
            double y = turn.b * (u - 0.5) + turn.a * (v - 0.5) + turn.y + 0.5;
            for (int c = 0; c < size[2]; c++) {
                double off = cut.pixels[i * size[2] + c] - smooth(x, y);
                ck_assert_msg(fabs(off) < 3.5, "seed %d, case %d, pixel %d: off by %g", SEED, k, i,
                              off);
            }
        }
        weir_image_fini(&cut);
    }
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_box_lies_in_its_place_in_the_cut)
{
    struct weir_image image = make_smooth(400, 400, 1), cut = {0};
    struct weir_view view = weir_view_of(&image);
    struct weir_detection detection = {.box = {150, 100, 100, 120}, .has_points = true};
    memcpy(detection.points, norm_points, sizeof norm_points);
    struct weir_face_align align = {
        .width = 92, .height = 112, .channels = 1, .by_box = true, .place = {0.1F, 0.2F, 0.9F, 1}};
    struct weir_face face;
    struct weir_error err = {0};
    ck_assert(weir_image_init(&cut, 92, 112, 1, &err) == WEIR_OK);
    weir_face_cut(&view, &detection, &align, &cut, &face);
    ck_assert(isnan(face.residual));
    for (int i = 0; i < 92 * 112; i++) {
        double x = 150 + 100 * ((i % 92 + 0.5) / 92 - 0.1) / 0.8;
        int row = i / 92;
        double y = 100 + 120 * ((row + 0.5) / 112 - 0.2) / 0.8;
        ck_assert(fabs(cut.pixels[i] - smooth(x, y)) < 3.5);
    }
    align.place = (struct weir_face_place){0.9F, 0, 0.1F, NAN};
    face = weir_face_find(&detection, &align);
    ck_assert_float_eq_tol(face.map.m[0], 100.0F / 92, 1e-5F);
    ck_assert_float_eq(face.map.m[2], 150);
    weir_image_fini(&image);
    weir_image_fini(&cut);
}

END_TEST

/* ---- judging ---- */

static struct weir_face_quality judge_cut(const struct weir_image *image,
                                          const struct weir_detection *detection,
                                          struct weir_face_align align)
{
    struct weir_view view = weir_view_of(image);
    struct weir_image cut = {0};
    struct weir_face face;
    struct weir_error err = {0};
    ck_assert(weir_image_init(&cut, align.width, align.height, 1, &err) == WEIR_OK);
    weir_face_cut(&view, detection, &align, &cut, &face);
    struct weir_face_quality quality = weir_face_judge(&cut, &face, detection);
    weir_image_fini(&cut);
    return quality;
}

/* Cut by the points, and judge: grey, 112 × 112. */
static struct weir_face_quality judge(const struct weir_image *image,
                                      const struct weir_detection *detection, bool by_box)
{
    return judge_cut(
        image, detection,
        (struct weir_face_align){.width = 112, .height = 112, .channels = 1, .by_box = by_box});
}

/* Blurred by a Gaussian of a deviation. */
static void blur(struct weir_image *image, double sigma)
{
    int n = image->width * image->height;
    uint8_t *from = malloc((size_t)n);
    for (int pass = 0; pass < 2 && sigma > 0; pass++) {
        int limit = pass == 0 ? image->width : image->height, step = pass == 0 ? 1 : image->width;
        memcpy(from, image->pixels, (size_t)n);
        for (int i = 0; i < n; i++) {
            int at = pass == 0 ? i % image->width : i / image->width;
            double sum = 0, weights = 0;
            for (int k = WEIR_MAX(-8, -at); k <= WEIR_MIN(8, limit - 1 - at); k++) {
                double weight = exp(-k * k / (2 * sigma * sigma));
                sum += weight * from[i + k * step];
                weights += weight;
            }
            image->pixels[i] = (uint8_t)lround(sum / weights);
        }
    }
    free(from);
}

/* A face of ORL as a detector sees it in the picture's own size: where points and box lie in most. */
static const float orl_points[10] = {28.7F, 53.5F, 63.7F, 52.8F, 45.5F,
                                     72.0F, 30.6F, 85.7F, 59.8F, 85.6F};
static const struct weir_box orl_box = {7.2F, 15.7F, 76.6F, 92.6F};

static void move(const struct weir_affine *map, float *x, float *y)
{
    float u = *x, v = *y;
    *x = map->m[0] * u + map->m[1] * v + map->m[2];
    *y = map->m[3] * u + map->m[4] * v + map->m[5];
}

START_TEST(what_is_judged_is_the_same_by_box_and_by_points)
{
    struct weir_detection detection = {.box = orl_box, .has_points = true};
    memcpy(detection.points, orl_points, sizeof orl_points);
    for (int k = 0; k < 4; k++) {
        struct weir_face_align align = {.width = k % 2 == 0 ? 112 : 92, .height = 112};
        struct weir_face by_points = weir_face_find(&detection, &align);
        align.by_box = true;
        align.place = (struct weir_face_place){0, 0, k < 2 ? 0 : 0.9F, 0.8F};
        struct weir_face by_box = weir_face_find(&detection, &align);
        for (int i = 0; i < 4; i++) { /* Corners of the inner face. */
            float x = i % 2 == 0 ? 20 : 92, y = i < 2 ? 20 : 100;
            float box_x = x, box_y = y;
            move(&by_points.norm, &x, &y);
            move(&by_points.map, &x, &y);
            move(&by_box.norm, &box_x, &box_y);
            move(&by_box.map, &box_x, &box_y);
            ck_assert(fabsf(x - box_x) < 2 && fabsf(y - box_y) < 2);
        }
    }
}

END_TEST

/* The picture so large that the face's box has a width; 0: there is none. */
static bool load_orl(int person, int picture, double width, double sigma, struct weir_image *out,
                     struct weir_detection *detection)
{
    const char *data = getenv("WEIR_SHARED_DATA");
    char path[512];
    struct weir_image image = {0};
    (void)snprintf(path, sizeof path, "%s/orl_faces/s%d/%d.pgm", data == NULL ? "" : data, person,
                   picture);
    if (weir_image_load(path, &image, NULL) != WEIR_OK) {
        return false;
    }
    float scale = (float)(width / (double)orl_box.w);
    ck_assert(weir_image_resize(&image, (int)lroundf(92 * scale), (int)lroundf(112 * scale), out,
                                NULL) == WEIR_OK);
    weir_image_fini(&image);
    blur(out, sigma);
    *detection = (struct weir_detection){
        .box = {orl_box.x * scale, orl_box.y * scale, orl_box.w * scale, orl_box.h * scale},
        .has_points = true};
    for (int i = 0; i < 10; i++) {
        detection->points[i] = orl_points[i] * scale;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

/* The median sharpness of real faces; NaN where there are none. */
static float median_sharpness(double width, double sigma, struct weir_face_align align)
{
    float values[20];
    size_t n = 0;
    for (int i = 0; i < 20; i++) {
        struct weir_image image = {0};
        struct weir_detection detection;
        if (load_orl(1 + i, 1 + i % 10, width, sigma, &image, &detection)) {
            values[n++] = judge_cut(&image, &detection, align).sharpness;
            weir_image_fini(&image);
        }
    }
    qsort(values, n, sizeof *values, by_value);
    return n == 0 ? NAN : values[n / 2];
}

START_TEST(sharp_faces_of_any_size_are_sharp_and_blurred_ones_are_not)
{
    const double widths[] = {16, 24, 32, 48, 76, 110};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(widths); i++) {
        for (int by_box = 0; by_box < 2; by_box++) {
            const struct weir_face_align align = {
                .width = 112, .height = 112, .channels = 1, .by_box = by_box == 1};
            float sharp = median_sharpness(widths[i], 0, align);
            float blurred = median_sharpness(widths[i], 1, align);
            if (isnan(sharp)) {
                printf("no real faces here: not looked at\n");
                return;
            }
            printf("%g px, by %s: sharp %.2f, blurred by a pixel %.2f\n", widths[i],
                   by_box == 1 ? "box" : "points", (double)sharp, (double)blurred);
            ck_assert_msg(sharp > 0.5F && sharp < 1.3F, "%g px: %g", widths[i], (double)sharp);
            ck_assert_msg(blurred < 0.3F && blurred < sharp / 2, "%g px: %g", widths[i],
                          (double)blurred);
        }
    }
}

END_TEST

/* A recogniser that takes little pictures sees no more of a wide face than of a narrow one: what it cannot see is not missing. */
START_TEST(a_face_is_no_less_sharp_because_the_model_is_small)
{
    static const struct weir_face_align cuts[] = {
        {.width = 46,
         .height = 56,
         .channels = 1,
         .by_box = true,
         .place = {0.078F, 0.14F, 0.911F, 0.967F}},
        {.width = 32, .height = 32, .channels = 1, .by_box = true},
        {.width = 56, .height = 56, .channels = 1},
        {.width = 80, .height = 80, .channels = 1},
    };
    const double widths[] = {24, 48, 76, 110, 170};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(widths); i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(cuts); k++) {
            float sharp = median_sharpness(widths[i], 0, cuts[k]);
            printf("%g px, cut to %d: sharp %.2f\n", widths[i], cuts[k].width, (double)sharp);
            ck_assert_msg(isnan(sharp) || (sharp > 0.35F && sharp < 2), "%g px: %g", widths[i],
                          (double)sharp);
        }
    }
}

END_TEST

/* A face of stripes in a grey picture, its points on the template, turned. */
static struct weir_image make_face(double angle, struct weir_detection *detection)
{
    struct turn turn = {0.7 * cos(angle), 0.7 * sin(angle), 80, 60};
    *detection = (struct weir_detection){.box = {70, 60, 60, 70}, .has_points = true};
    turn_points(&turn, norm_points, 5, detection->points);
    struct weir_image image = {0};
    ck_assert(weir_image_init(&image, 240, 240, 1, NULL) == WEIR_OK);
    for (int i = 0; i < 240 * 240; i++) {
        int x = i % 240, y = i / 240;
        image.pixels[i] = (uint8_t)(128 + 50 * sin(x / 1.3) * sin(y / 1.7));
    }
    return image;
}

static const char *verdict(const struct weir_image *image, const struct weir_detection *detection)
{
    struct weir_face_quality quality = judge(image, detection, false);
    return weir_face_refuse(&quality, &weir_face_limits_usual);
}

/* What becomes of a grey value. */
enum light { DARKER, BRIGHTER, ONE_SIDE, HARD };

static int lit(enum light light, int value, int x)
{
    switch (light) {
    case DARKER:
        return value / 6;
    case BRIGHTER:
        return 255 - (255 - value) / 8;
    case ONE_SIDE:
        return x < 119 ? value / 3 : value;
    default:
        return value < 110 ? 0 : (value > 146 ? 255 : value);
    }
}

START_TEST(a_face_is_refused_for_what_it_lacks)
{
    const char *reasons[] = {[DARKER] = "too dark",
                             [BRIGHTER] = "too bright",
                             [ONE_SIDE] = "lit from one side",
                             [HARD] = "black or white in part"};
    struct weir_detection detection;
    for (int k = 0; k < (int)WEIR_ARRAY_LEN(reasons); k++) {
        struct weir_image image = make_face(0, &detection);
        ck_assert_ptr_null(verdict(&image, &detection));
        for (int i = 0; i < 240 * 240; i++) {
            image.pixels[i] = (uint8_t)lit((enum light)k, image.pixels[i], i % 240);
        }
        ck_assert_pstr_eq(verdict(&image, &detection), reasons[k]);
        weir_image_fini(&image);
    }
    struct weir_image image = make_face(0, &detection);
    blur(&image, 3);
    ck_assert_pstr_eq(verdict(&image, &detection), "blurred");
    weir_image_fini(&image);
    image = make_face(0, &detection);
    detection.box.w = 30;
    ck_assert_pstr_eq(verdict(&image, &detection), "too small");
    weir_image_fini(&image);
    image = make_face(0.7, &detection);
    ck_assert_pstr_eq(verdict(&image, &detection), "tilted");
    weir_image_fini(&image);
}

END_TEST

/* Move the nose by shares of the distance of the eyes, and of that from eyes to mouth. */
static struct weir_face_quality with_nose(double angle, double yaw, double pitch)
{
    struct weir_detection detection;
    struct weir_image image = make_face(angle, &detection);
    float points[10];
    memcpy(points, norm_points, sizeof points);
    points[4] = (float)(55.9 + 35.2 * yaw);
    points[5] = (float)(51.6 + 40.7 * pitch);
    struct turn turn = {0.7 * cos(angle), 0.7 * sin(angle), 80, 60};
    turn_points(&turn, points, 5, detection.points);
    struct weir_face_quality quality = judge(&image, &detection, false);
    weir_image_fini(&image);
    return quality;
}

START_TEST(a_pose_is_what_the_points_say_however_the_head_is_tilted)
{
    struct weir_rng rng;
    weir_rng_init(&rng, SEED, 4);
    for (int k = 0; k < WEIR_TEST_TIMES(50, 5); k++) {
        double angle = weir_rng_f64(&rng) - 0.5, yaw = weir_rng_f64(&rng) - 0.5;
        double pitch = 0.2 + 0.8 * weir_rng_f64(&rng);
        struct weir_face_quality quality = with_nose(angle, yaw, pitch);
        ck_assert_double_eq_tol((double)quality.yaw, yaw, 0.01);
        ck_assert_double_eq_tol((double)quality.pitch, pitch, 0.01);
        ck_assert_double_eq_tol((double)quality.roll, angle, 0.01);
    }
    struct weir_face_quality quality = with_nose(0, 0.4, 0.5);
    ck_assert_pstr_eq(weir_face_refuse(&quality, &weir_face_limits_usual), "turned away");
    quality = with_nose(0, -0.4, 0.5);
    ck_assert_pstr_eq(weir_face_refuse(&quality, &weir_face_limits_usual), "turned away");
    quality = with_nose(0, 0, 0.3);
    ck_assert_pstr_eq(weir_face_refuse(&quality, &weir_face_limits_usual), "looks up");
    quality = with_nose(0, 0, 0.82);
    ck_assert_pstr_eq(weir_face_refuse(&quality, &weir_face_limits_usual), "looks down");
    quality = with_nose(0, 0, 1.5);
    ck_assert_pstr_eq(weir_face_refuse(&quality, &weir_face_limits_usual), "not a face");
}

END_TEST

START_TEST(what_is_not_known_and_what_is_not_limited_is_no_reason)
{
    const struct weir_face_limits none = {.max_yaw = NAN};
    struct weir_face_quality worst = {
        .yaw = 9, .roll = 9, .clipped = 1, .sides = 99, .residual = 99};
    ck_assert_ptr_null(weir_face_refuse(&worst, &none));
    ck_assert_pstr_eq(weir_face_refuse(&worst, &weir_face_limits_usual), "not a face");
    struct weir_detection detection;
    struct weir_image image = make_face(0, &detection);
    detection.has_points = false;
    struct weir_face_quality quality = judge(&image, &detection, true);
    ck_assert(isnan(quality.yaw) && isnan(quality.pitch) && isnan(quality.roll) &&
              isnan(quality.residual));
    ck_assert_ptr_null(weir_face_refuse(&quality, &weir_face_limits_usual));
    detection.box.w = NAN; /* A number that is none ends nothing. */
    (void)judge(&image, &detection, true);
    weir_image_fini(&image);
}

END_TEST

WEIR_TEST_MAIN("face", the_known_points_have_the_known_matrix,
               a_similarity_is_found_again_and_nothing_is_mirrored, no_other_similarity_leaves_less,
               points_in_one_place_are_no_face, a_face_lies_on_the_template_in_a_cut_of_any_size,
               a_box_lies_in_its_place_in_the_cut, what_is_judged_is_the_same_by_box_and_by_points,
               sharp_faces_of_any_size_are_sharp_and_blurred_ones_are_not,
               a_face_is_no_less_sharp_because_the_model_is_small,
               a_face_is_refused_for_what_it_lacks,
               a_pose_is_what_the_points_say_however_the_head_is_tilted,
               what_is_not_known_and_what_is_not_limited_is_no_reason)
