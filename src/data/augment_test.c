/* Oracles: to_tensor, explicit mirroring and shifting, and laws the random draws must follow. */
#include "data/augment.h"

#include "base/test_main.h"

#include <math.h>
#include <stdio.h>

#define SIDE 28
#define LEN  (SIDE * SIDE)

static const struct weir_input grey = {
    .c = 1, .h = SIDE, .w = SIDE, .mean = {0.25f}, .std = {0.5f}};

/** No two shifts or mirrors of it are alike, and no pixel is black. */
static struct weir_image make_image(void)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, SIDE, SIDE, 1, NULL), WEIR_OK);
    for (int i = 0; i < LEN; i++) {
        image.pixels[i] = (uint8_t)(1 + (i * 37 + i / SIDE * 11) % 255);
    }
    return image;
}

static void apply(enum weir_augment augment, uint64_t seed, uint64_t epoch, uint64_t sample,
                  const struct weir_image *image, float *out)
{
    static float scratch[2 * LEN];
    ck_assert_uint_le(weir_augment_scratch_len(&grey), 2 * LEN);
    struct weir_augment_key key = {seed, epoch, sample};
    ck_assert_int_eq(weir_augment_apply(augment, key, image, &grey, scratch, out, NULL), WEIR_OK);
}

/** Values outside of the bounds, and those that are no numbers: an assertion on each would cost
 * more than what is tested. */
static int count_outside(const float *made, int n, float low, float high)
{
    int n_outside = 0;
    for (int i = 0; i < n; i++) {
        n_outside += !(made[i] >= low && made[i] <= high);
    }
    return n_outside;
}

START_TEST(none_is_exactly_the_tensor)
{
    struct weir_image image = make_image();
    float tensor[LEN], made[LEN];
    ck_assert_int_eq(weir_image_to_tensor(&image, &grey, tensor, NULL), WEIR_OK);
    apply(WEIR_AUGMENT_NONE, 1, 2, 3, &image, made);
    ck_assert_mem_eq(made, tensor, sizeof tensor);
    weir_image_fini(&image);
}

END_TEST

START_TEST(flip_mirrors_half_of_the_samples_and_leaves_the_rest)
{
    struct weir_image image = make_image();
    float tensor[LEN], mirror[LEN], made[LEN];
    ck_assert_int_eq(weir_image_to_tensor(&image, &grey, tensor, NULL), WEIR_OK);
    for (int i = 0; i < LEN; i++) {
        mirror[i] = tensor[i / SIDE * SIDE + SIDE - 1 - i % SIDE];
    }

    enum { N = 2000 };

    int n_flipped = 0;
    for (uint64_t i = 0; i < N; i++) {
        apply(WEIR_AUGMENT_FLIP, 1, 0, i, &image, made);
        bool is_flipped = memcmp(made, mirror, sizeof made) == 0;
        ck_assert(is_flipped || memcmp(made, tensor, sizeof made) == 0);
        n_flipped += is_flipped;
    }
    ck_assert_double_lt(fabs(n_flipped - N / 2.0), 5 * sqrt(N / 4.0));
    weir_image_fini(&image);
}

END_TEST

/** Where (28,28)-picture `made` lies in the padded one, as (dy+4)*9+(dx+4), +81 if mirrored. */
static int find_shift(const struct weir_image *image, const float *made)
{
    for (int code = 0; code < 162; code++) {
        int dy = code % 81 / 9 - 4, dx = code % 9 - 4;
        bool is_same = true;
        for (int i = 0; i < LEN && is_same; i++) {
            int y = i / SIDE + dy, x = (code < 81 ? i % SIDE : SIDE - 1 - i % SIDE) + dx;
            double pixel =
                x < 0 || y < 0 || x >= SIDE || y >= SIDE ? 0 : image->pixels[y * SIDE + x];
            is_same = fabs((pixel / 255 - 0.25) / 0.5 - (double)made[i]) < 1e-5;
        }
        if (is_same) {
            return code;
        }
    }
    return -1;
}

START_TEST(shift_flip_takes_each_of_the_162_crops_equally_often)
{
    struct weir_image image = make_image();

    enum { N = 16200 };

    static int count[162];
    float made[LEN];
    for (uint64_t i = 0; i < N; i++) {
        apply(WEIR_AUGMENT_SHIFT_FLIP, 3, 1, i, &image, made);
        int code = find_shift(&image, made);
        ck_assert_int_ge(code, 0);
        count[code]++;
    }
    double chi2 = 0;
    for (int i = 0; i < 162; i++) {
        chi2 += (count[i] - 100.0) * (count[i] - 100.0) / 100;
    }
    printf("chi-square of 162 crops, seed 3: %.1f, 161 degrees\n", chi2);
    ck_assert_double_lt(fabs(chi2 - 161), 5 * sqrt(2 * 161.0));
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_change_depends_on_seed_epoch_and_sample_and_on_nothing_else)
{
    struct weir_image image = make_image();
    float first[LEN], again[LEN], other[LEN];
    apply(WEIR_AUGMENT_FACE, 7, 8, 9, &image, first);
    for (uint64_t i = 0; i < 20; i++) {
        apply(WEIR_AUGMENT_FACE, i, i, i, &image, other); // what came before does not matter
    }
    apply(WEIR_AUGMENT_FACE, 7, 8, 9, &image, again);
    ck_assert_mem_eq(first, again, sizeof first);
    static const uint64_t keys[][3] = {{6, 8, 9}, {7, 9, 9}, {7, 8, 10}, {9, 8, 7}};
    for (int i = 0; i < 4; i++) {
        apply(WEIR_AUGMENT_FACE, keys[i][0], keys[i][1], keys[i][2], &image, other);
        ck_assert_mem_ne(first, other, sizeof first);
    }
    weir_image_fini(&image);
}

END_TEST

/** Smooth picture: a bright disc off the centre, on grey. */
static struct weir_image make_disc(double cx, double cy)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, SIDE, SIDE, 1, NULL), WEIR_OK);
    for (int i = 0; i < LEN; i++) {
        int row = i / SIDE;
        double dx = i % SIDE - cx, dy = row - cy;
        image.pixels[i] = (uint8_t)(60 + 140 * exp(-(dx * dx + dy * dy) / 18));
    }
    return image;
}

/** Centre of what is brighter than half between the darkest and the brightest pixel. */
static void find_disc(const float *tensor, double *out_x, double *out_y)
{
    float low = tensor[0], high = tensor[0];
    for (int i = 1; i < LEN; i++) {
        low = fminf(low, tensor[i]);
        high = fmaxf(high, tensor[i]);
    }
    double n = 0, x = 0, y = 0;
    for (int i = 0; i < LEN; i++) {
        if (tensor[i] > (low + high) / 2) {
            n++;
            int row = i / SIDE;
            x += i % SIDE;
            y += row;
        }
    }
    *out_x = x / n;
    *out_y = y / n;
}

START_TEST(a_face_moves_little_and_keeps_its_range)
{
    double centre = (SIDE - 1) / 2.0, sum_x = 0, sum_y = 0;
    struct weir_image image = make_disc(centre, centre - 6);

    enum { N = 600 };

    int n_far = 0;
    for (uint64_t i = 0; i < N; i++) {
        float made[LEN];
        apply(WEIR_AUGMENT_FACE, 5, 0, i, &image, made);
        // 0..1 with margins: light, noise
        ck_assert_int_eq(count_outside(made, LEN, -2, 3), 0);
        double x, y;
        find_disc(made, &x, &y);
        // At a radius of 6: 12 degrees, scale and aspect e^0.2, shear; shifts of 1.4 pixels; the
        // elastic grid moves by 0.42 pixels (deviation); a bit of noise.
        n_far += hypot(x - centre, y - (centre - 6)) >
                 6 * (0.21 + 0.22 + 0.06) + 1.4 * 1.42 + 3 * 0.42 + 0.5;
        sum_x += x - centre;
        sum_y += y - (centre - 6);
    }
    // An erased disc has its centre elsewhere: rare.
    ck_assert_int_lt(n_far, N / 6);
    ck_assert_double_lt(fabs(sum_x / N), 0.3);
    ck_assert_double_lt(fabs(sum_y / N), 1.4);
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_face_is_never_mirrored)
{
    double centre = (SIDE - 1) / 2.0;
    struct weir_image image = make_disc(centre - 7, centre);

    enum { N = 1000 };

    int n_right = 0;
    for (uint64_t i = 0; i < N; i++) {
        float made[LEN];
        double x, y;
        apply(WEIR_AUGMENT_FACE, 6, 0, i, &image, made);
        find_disc(made, &x, &y);
        n_right += x > centre;
    }
    ck_assert_int_lt(n_right, N / 8); // a white rectangle on the right
    weir_image_fini(&image);
}

END_TEST

/* On an even grey the warp does nothing and what remains can be told apart by size. */
START_TEST(an_even_grey_gets_light_noise_and_half_of_the_rectangles_show)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, SIDE, SIDE, 1, NULL), WEIR_OK);
    memset(image.pixels, 128, LEN);
    const struct weir_input input = {.c = 1, .h = SIDE, .w = SIDE, .mean = {0}, .std = {0.1f}};
    static float scratch[2 * LEN], made[LEN];

    enum { N = 3000 };

    int n_erased = 0;
    double low = 1, high = 0, slope = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct weir_augment_key key = {11, 0, i};
        ck_assert_int_eq(
            weir_augment_apply(WEIR_AUGMENT_FACE, key, &image, &input, scratch, made, NULL),
            WEIR_OK);
        double mean = 0, rise = 0;
        bool is_erased = false;
        for (int k = 0; k < LEN; k++) {
            double value = (double)made[k] * 0.1;
            // 0.5^(e^-0.2) = 0.569 and 0.5^(e^0.2) = 0.430, times 1 -+ 0.3, and 5 * 0.02 of noise.
            is_erased = is_erased || value < 0.2 || value > 0.84;
            mean += value / LEN;
            rise += value * (k % SIDE - (SIDE - 1) / 2.0);
        }
        n_erased += is_erased;
        if (!is_erased) {
            low = fmin(low, mean);
            high = fmax(high, mean);
            slope = fmax(slope, fabs(rise));
        }
    }
    // 1/2 of them, if the grey is one of the 36 % outside of 0.2 .. 0.84.
    printf("%d of %d rectangles stand out; mean %.3f .. %.3f\n", n_erased, N, low, high);
    ck_assert_double_lt(fabs(n_erased - 0.18 * N), 5 * sqrt(0.18 * 0.82 * N));
    ck_assert(low > 0.33 && low < 0.45 && high > 0.55 && high < 0.65);
    ck_assert_double_gt(slope, 0);
    weir_image_fini(&image);
}

END_TEST

/* An even grey shows the brightness alone, and the rectangles. */
START_TEST(a_photo_of_an_even_grey_is_brighter_or_darker_and_a_quarter_is_erased)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, 40, 50, 1, NULL), WEIR_OK);
    memset(image.pixels, 128, 40 * 50);

    enum { N = 4000 };

    int n_erased = 0;
    double sum = 0, low = 1e9, high = 0;
    for (uint64_t i = 0; i < N; i++) {
        float made[LEN];
        bool is_even = true;
        apply(WEIR_AUGMENT_PHOTO, 12, 0, i, &image, made);
        for (int k = 1; k < LEN; k++) {
            is_even = is_even && fabsf(made[k] - made[0]) < 1e-4f;
        }
        n_erased += !is_even;
        if (is_even) {
            double factor = ((double)made[0] * 0.5 + 0.25) * 255 / 128;
            sum += factor;
            low = fmin(low, factor);
            high = fmax(high, factor);
        }
    }
    printf("factors %.3f .. %.3f, %d of %d erased\n", low, high, n_erased, N);
    ck_assert(low > 0.599 && low < 0.61 && high < 1.401 && high > 1.39);
    ck_assert_double_lt(fabs(sum / (N - n_erased) - 1), 5 * 0.231 / sqrt(0.75 * N));
    ck_assert_double_lt(fabs(n_erased - N / 4.0), 5 * sqrt(N * 0.25 * 0.75));
    weir_image_fini(&image);
}

END_TEST

#define BOARD_SIDE 224
#define BOARD_CELL 8
#define BOARD_SEEN 112

/** Most changes between light and dark along a row (step 1) or a column: the erased have fewer. */
static int count_edges(const float *made, bool is_row)
{
    int most = 0, along = is_row ? 1 : BOARD_SEEN, across = is_row ? BOARD_SEEN : 1;
    for (int i = 0; i < BOARD_SEEN; i++) {
        const float *line = made + i * across;
        float low = line[0], high = line[0];
        int n = 0;
        for (int k = 1; k < BOARD_SEEN; k++) {
            low = fminf(low, line[k * along]);
            high = fmaxf(high, line[k * along]);
        }
        for (int k = 1; k < BOARD_SEEN; k++) {
            bool was_light = line[(k - 1) * along] > (low + high) / 2;
            n += was_light != (line[k * along] > (low + high) / 2);
        }
        most = WEIR_MAX(most, n);
    }
    return most;
}

/* The cells of a chessboard that are seen tell how large a part was taken, whatever its colours. */
START_TEST(a_photo_shows_a_quarter_to_all_of_the_picture_of_sides_3_to_4)
{
    static const struct weir_input input = {
        .c = 1, .h = BOARD_SEEN, .w = BOARD_SEEN, .mean = {0}, .std = {1}};
    static float made[BOARD_SEEN * BOARD_SEEN], scratch[2 * BOARD_SEEN * BOARD_SEEN];
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, BOARD_SIDE, BOARD_SIDE, 1, NULL), WEIR_OK);
    for (int i = 0; i < BOARD_SIDE * BOARD_SIDE; i++) {
        bool is_light = (i % BOARD_SIDE / BOARD_CELL + i / BOARD_SIDE / BOARD_CELL) % 2 == 1;
        image.pixels[i] = is_light ? 170 : 90;
    }

    enum { N = 400 };

    double areas = 0, ratios = 0, smallest = 1, largest = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct weir_augment_key key = {13, 0, i};
        ck_assert_int_eq(
            weir_augment_apply(WEIR_AUGMENT_PHOTO, key, &image, &input, scratch, made, NULL),
            WEIR_OK);
        /* A part of w pixels shows w / 8 edges, up to one more or less. */
        double w = count_edges(made, true) * (double)BOARD_CELL;
        double h = count_edges(made, false) * (double)BOARD_CELL;
        double area = w * h / (BOARD_SIDE * BOARD_SIDE);
        ck_assert_msg(area > 0.19 && area <= 1, "picture %d: %.0f x %.0f", (int)i, w, h);
        ck_assert_msg(w / h < 1.5 && h / w < 1.5, "picture %d: %.0f x %.0f", (int)i, w, h);
        areas += area / N;
        ratios += log(w / h) / N;
        smallest = fmin(smallest, area);
        largest = fmax(largest, area);
    }
    printf("areas %.3f .. %.3f, mean %.3f; mean log ratio %.4f\n", smallest, largest, areas,
           ratios);
    ck_assert(smallest < 0.3 && largest > 0.9);
    ck_assert(areas > 0.5 && areas < 0.65); /* large ones do not fit with every ratio */
    ck_assert_double_lt(fabs(ratios), 5 * 0.166 / sqrt(N));
    weir_image_fini(&image);
}

END_TEST

START_TEST(a_photo_of_any_shape_gives_finite_pixels_within_range)
{
    static const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {2, 3}, {640, 17}};
    const struct weir_input input = {.c = 3, .h = SIDE, .w = SIDE, .mean = {0}, .std = {1, 1, 1}};
    static float made[3 * LEN], scratch[4 * LEN];
    for (size_t s = 0; s < WEIR_ARRAY_LEN(sizes); s++) {
        struct weir_image image;
        ck_assert_int_eq(weir_image_init(&image, sizes[s][0], sizes[s][1], 3, NULL), WEIR_OK);
        for (int i = 0; i < 3 * sizes[s][0] * sizes[s][1]; i++) {
            image.pixels[i] = (uint8_t)(i * 29);
        }
        for (uint64_t i = 0; i < 200; i++) {
            struct weir_augment_key key = {14, 0, i};
            ck_assert_int_eq(
                weir_augment_apply(WEIR_AUGMENT_PHOTO, key, &image, &input, scratch, made, NULL),
                WEIR_OK);
            ck_assert_int_eq(count_outside(made, 3 * LEN, 0, 1.00001f), 0);
        }
        weir_image_fini(&image);
    }
}

END_TEST

START_TEST(names_and_policies_map_both_ways)
{
    for (unsigned i = 0; i < WEIR_AUGMENT_COUNT; i++) {
        enum weir_augment back;
        const char *name = weir_augment_name((enum weir_augment)i);
        ck_assert_int_eq(weir_augment_from_name(name, &back, NULL), WEIR_OK);
        ck_assert_int_eq(back, i);
    }
    ck_assert_ptr_null(weir_augment_name(WEIR_AUGMENT_COUNT));
    enum weir_augment augment;
    struct weir_error err;
    ck_assert_int_eq(weir_augment_from_name("mirror", &augment, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "shift-flip"));
}

END_TEST

WEIR_TEST_MAIN("augment", none_is_exactly_the_tensor,
               flip_mirrors_half_of_the_samples_and_leaves_the_rest,
               shift_flip_takes_each_of_the_162_crops_equally_often,
               a_change_depends_on_seed_epoch_and_sample_and_on_nothing_else,
               a_face_moves_little_and_keeps_its_range, a_face_is_never_mirrored,
               an_even_grey_gets_light_noise_and_half_of_the_rectangles_show,
               a_photo_of_an_even_grey_is_brighter_or_darker_and_a_quarter_is_erased,
               a_photo_shows_a_quarter_to_all_of_the_picture_of_sides_3_to_4,
               a_photo_of_any_shape_gives_finite_pixels_within_range,
               names_and_policies_map_both_ways)
