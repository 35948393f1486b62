/* Views against a plain reference that knows nothing of strips, lines and vectors; and against pictures whose cut is known. */
#include "vision/view.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <string.h>

static struct weir_rng rng;

/* ---- a random view ------------------------------------------------------------------------------- */

#define PAD 5 /* bytes behind each line, which nobody may read */

struct picture {
    struct weir_view view;
    uint8_t *bytes[3];
};

static uint8_t *new_plane(int width, int height)
{
    size_t size = (size_t)(width + PAD) * (size_t)height;
    uint8_t *bytes = malloc(size);
    bool is_noise = weir_rng_below(&rng, 2) == 0;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = is_noise ? (uint8_t)weir_rng_u32(&rng) : (uint8_t)(i / 7);
    }
    return bytes;
}

static struct picture picture_of(enum weir_view_form form, int width, int height)
{
    struct picture picture = {.view = {.form = form,
                                       .width = width,
                                       .height = height,
                                       .is_full_range = weir_rng_below(&rng, 2) == 0}};
    int n_planes = form == WEIR_VIEW_I420 ? 3 : 1;
    for (int i = 0; i < n_planes; i++) {
        int w = i > 0 ? (width + 1) / 2 : width, h = i > 0 ? (height + 1) / 2 : height;
        w *= form == WEIR_VIEW_RGB ? 3 : 1;
        picture.bytes[i] = new_plane(w, h);
        picture.view.planes[i] = picture.bytes[i];
        picture.view.strides[i] = w + PAD;
    }
    return picture;
}

static void picture_fini(struct picture *picture)
{
    for (int i = 0; i < 3; i++) {
        free(picture->bytes[i]);
    }
}

/* ---- the reference ------------------------------------------------------------------------------- */

static double pixel(const struct weir_view *view, int plane, int channel, int x, int y)
{
    int w = plane > 0 ? (view->width + 1) / 2 : view->width;
    int h = plane > 0 ? (view->height + 1) / 2 : view->height;
    int n = view->form == WEIR_VIEW_RGB ? 3 : 1;
    x = x < 0 ? 0 : x >= w ? w - 1 : x;
    y = y < 0 ? 0 : y >= h ? h - 1 : y;
    return view->planes[plane][y * view->strides[plane] + x * n + channel];
}

/* How much of the unit from i on lies within a window. */
static double share(int i, double begin, double end)
{
    double from = fmax(i, begin), to = fmin(i + 1, end);
    return to > from ? to - from : 0;
}

static double straight(const struct weir_view *view, int plane, int channel,
                       const struct weir_affine *map, double u, double v)
{
    double size = plane > 0 ? 2 : 1;
    double w = fmin(fmax(fabs(map->m[0]) / size, 1), WEIR_VIEW_SHRINK_MAX);
    double h = fmin(fmax(fabs(map->m[4]) / size, 1), WEIR_VIEW_SHRINK_MAX);
    double x = (map->m[0] * u + map->m[2]) / size, y = (map->m[4] * v + map->m[5]) / size;
    double sum = 0;
    for (int j = (int)floor(y - h / 2); j < y + h / 2; j++) {
        for (int i = (int)floor(x - w / 2); i < x + w / 2; i++) {
            sum += pixel(view, plane, channel, i, j) * share(i, x - w / 2, x + w / 2) *
                   share(j, y - h / 2, y + h / 2);
        }
    }
    return sum / (w * h);
}

static double bilinear(const struct weir_view *view, int plane, int channel, double x, double y)
{
    int i = (int)floor(x - 0.5), j = (int)floor(y - 0.5);
    double a = x - 0.5 - i, b = y - 0.5 - j;
    return (1 - b) * ((1 - a) * pixel(view, plane, channel, i, j) +
                      a * pixel(view, plane, channel, i + 1, j)) +
           b * ((1 - a) * pixel(view, plane, channel, i, j + 1) +
                a * pixel(view, plane, channel, i + 1, j + 1));
}

static int samples(double dx, double dy, double size)
{
    double n = ceil(hypot(dx, dy) / size - 1e-3);
    return n < 1 ? 1 : n > WEIR_VIEW_SAMPLES_MAX ? WEIR_VIEW_SAMPLES_MAX : (int)n;
}

static double turned(const struct weir_view *view, int plane, int channel,
                     const struct weir_affine *map, int u, int v)
{
    const float *m = map->m;
    double size = plane > 0 ? 2 : 1, sum = 0;
    int n_u = samples(m[0], m[3], size), n_v = samples(m[1], m[4], size);
    for (int j = 0; j < n_v; j++) {
        for (int i = 0; i < n_u; i++) {
            double at_u = u + (i + 0.5) / n_u, at_v = v + (j + 0.5) / n_v;
            double x = m[0] * at_u + m[1] * at_v + m[2], y = m[3] * at_u + m[4] * at_v + m[5];
            sum += bilinear(view, plane, channel, x / size, y / size);
        }
    }
    return sum / (n_u * n_v);
}

static double value_of(const struct weir_view *view, int plane, int channel,
                       const struct weir_affine *map, int u, int v)
{
    bool is_straight = map->m[1] == 0 && map->m[3] == 0;
    return is_straight ? straight(view, plane, channel, map, u + 0.5, v + 0.5)
                       : turned(view, plane, channel, map, u, v);
}

static double within(double value)
{
    return fmin(fmax(value, 0), 255);
}

/* Colours and grey of a place, by the equations of BT.601. */
static void reference(const struct weir_view *view, const struct weir_affine *map, int u, int v,
                      double rgb[3], double *grey)
{
    double a[3];
    for (int c = 0; c < 3; c++) {
        int plane = view->form == WEIR_VIEW_I420 ? c : 0,
            channel = view->form == WEIR_VIEW_RGB ? c : 0;
        a[c] = value_of(view, plane, channel, map, u, v);
    }
    if (view->form != WEIR_VIEW_I420) {
        memcpy(rgb, a, sizeof a);
        *grey = 0.299 * a[0] + 0.587 * a[1] + 0.114 * a[2];
        return;
    }
    double y = view->is_full_range ? a[0] : (a[0] - 16) * 255 / 219;
    double cb = (a[1] - 128) * (view->is_full_range ? 1 : 255.0 / 224);
    double cr = (a[2] - 128) * (view->is_full_range ? 1 : 255.0 / 224);
    rgb[0] = within(y + 2 * (1 - 0.299) * cr);
    rgb[2] = within(y + 2 * (1 - 0.114) * cb);
    rgb[1] = within(y - (0.114 * 2 * (1 - 0.114) * cb + 0.299 * 2 * (1 - 0.299) * cr) / 0.587);
    *grey = within(y);
}

/* ---- random maps ----------------------------------------------------------------------------------- */

static double between(double low, double high)
{
    return low + (high - low) * weir_rng_f64(&rng);
}

/* Enlarges up to 8 times or shrinks up to 30 times; of the cut most lies in the view. */
static struct weir_affine random_map(const struct weir_view *view, int w, int h)
{
    double scale_x = exp(between(-2, 3.4)), scale_y = exp(between(-2, 3.4));
    double angle = weir_rng_below(&rng, 2) == 0 ? 0 : between(-3.2, 3.2);
    double x = between(0, view->width), y = between(0, view->height);
    struct weir_affine map;
    if (angle == 0) {
        scale_x = weir_rng_below(&rng, 5) == 0 ? -scale_x : scale_x;
        scale_y = weir_rng_below(&rng, 5) == 0 ? 1 : scale_y;
        map = (struct weir_affine){{(float)scale_x, 0, (float)(x - scale_x * w / 2), 0,
                                    (float)scale_y, (float)(y - scale_y * h / 2)}};
    } else {
        double a = scale_x * cos(angle), b = scale_x * sin(angle);
        map = (struct weir_affine){{(float)a, (float)-b, (float)(x - a * w / 2 + b * h / 2),
                                    (float)b, (float)a, (float)(y - b * w / 2 - a * h / 2)}};
    }
    return map;
}

static bool is_inside(const struct weir_view *view, const struct weir_affine *map, int u, int v)
{
    const float *m = map->m;
    double x = m[0] * (u + 0.5) + m[1] * (v + 0.5) + m[2];
    double y = m[3] * (u + 0.5) + m[4] * (v + 0.5) + m[5];
    return x >= 0 && y >= 0 && x < view->width && y < view->height;
}

static void compare(const struct weir_view *view, const struct weir_affine *map, int w, int h)
{
    const uint8_t fill = 77;
    struct weir_image colours, grey;
    ck_assert_int_eq(weir_image_init(&colours, w, h, 3, NULL), WEIR_OK);
    ck_assert_int_eq(weir_image_init(&grey, w, h, 1, NULL), WEIR_OK);
    weir_view_cut(view, map, fill, &colours);
    weir_view_cut(view, map, fill, &grey);
    for (int v = 0; v < h; v++) {
        for (int u = 0; u < w; u++) {
            double rgb[3] = {fill, fill, fill}, luma = fill;
            const uint8_t *got = colours.pixels + (v * w + u) * 3;
            if (is_inside(view, map, u, v)) {
                reference(view, map, u, v, rgb, &luma);
            }
            for (int c = 0; c < 3; c++) {
                ck_assert_msg(
                    fabs(got[c] - rgb[c]) <= 0.52,
                    "form %d, %dx%d, map %g %g %g %g %g %g, (%d,%d)[%d]: %d, and it is %g",
                    (int)view->form, view->width, view->height, map->m[0], map->m[1], map->m[2],
                    map->m[3], map->m[4], map->m[5], u, v, c, got[c], rgb[c]);
            }
            ck_assert_msg(fabs(grey.pixels[v * w + u] - luma) <= 0.52, "grey (%d,%d): %d, %g", u, v,
                          grey.pixels[v * w + u], luma);
        }
    }
    weir_image_fini(&colours);
    weir_image_fini(&grey);
}

START_TEST(a_cut_is_what_the_plain_reference_says)
{
    test_seed(&rng);
    for (int trial = 0; trial < WEIR_TEST_TIMES(150, 30); trial++) {
        enum weir_view_form form = (enum weir_view_form)(WEIR_VIEW_GREY + weir_rng_below(&rng, 3));
        int width = 1 + (int)weir_rng_below(&rng, 90), height = 1 + (int)weir_rng_below(&rng, 70);
        struct picture picture = picture_of(form, width, height);
        int w = 1 + (int)weir_rng_below(&rng, trial % 10 == 0 ? 300 : 24);
        int h = 1 + (int)weir_rng_below(&rng, 12);
        struct weir_affine map = random_map(&picture.view, w, h);
        compare(&picture.view, &map, w, h);
        picture_fini(&picture);
    }
}

END_TEST

START_TEST(a_very_wide_view_is_cut_in_bounded_memory)
{
    test_seed(&rng);
    struct picture picture = picture_of(WEIR_VIEW_I420, 9001, 3);
    for (int w = 1; w <= 9; w += 4) {
        struct weir_affine map = {{9001.0f / (float)w, 0, 0, 0, 1, 0}};
        compare(&picture.view, &map, w, 3);
    }
    picture_fini(&picture);
}

END_TEST

/* Of a picture whose brightness is a plane, any cut away from the edge is that plane. */
START_TEST(a_slope_stays_a_slope_however_it_is_cut)
{
    enum { SIDE = 200 };

    static uint8_t bytes[SIDE * SIDE];
    test_seed(&rng);
    for (int i = 0; i < SIDE * SIDE; i++) {
        bytes[i] = (uint8_t)((i % SIDE + i / SIDE) / 2);
    }
    struct weir_image image = {SIDE, SIDE, 1, bytes, true}, cut;
    struct weir_view view = weir_view_of(&image);
    for (int trial = 0; trial < 40; trial++) {
        double scale = between(0.3, 5), angle = trial % 2 == 0 ? 0 : between(-3, 3);
        float a = (float)(scale * cos(angle)), b = (float)(scale * sin(angle));
        struct weir_affine map = {{a, -b, 100 - 6 * a + 6 * b, b, a, 100 - 6 * b - 6 * a}};
        ck_assert_int_eq(weir_image_init(&cut, 12, 12, 1, NULL), WEIR_OK);
        weir_view_cut(&view, &map, 0, &cut);
        for (int i = 0; i < 144; i++) {
            int line = i / 12;
            double u = i % 12 + 0.5, v = line + 0.5;
            double x = a * u - b * v + map.m[2], y = b * u + a * v + map.m[5];
            ck_assert_double_eq_tol(cut.pixels[i], (x + y - 1) / 2 - 0.25, 1.01);
        }
        weir_image_fini(&cut);
    }
}

END_TEST

static void expect_colour(const struct weir_view *view, const uint8_t rgb[3])
{
    struct weir_image cut;
    ck_assert_int_eq(weir_view_to_image(view, 0, &cut, NULL), WEIR_OK);
    ck_assert(cut.width == view->width && cut.height == view->height && cut.channels == 3);
    for (int i = 0; i < cut.width * cut.height * 3; i++) {
        ck_assert_int_le(abs(cut.pixels[i] - rgb[i % 3]), 1);
    }
    weir_image_fini(&cut);
}

START_TEST(known_colours_come_back)
{
    /* Y, U, V of both ranges, as the standard's tables have them. */
    static const struct {
        uint8_t rgb[3], limited[3], full[3];
    } rows[] = {{{255, 0, 0}, {81, 90, 240}, {76, 85, 255}},
                {{0, 255, 0}, {145, 54, 34}, {150, 44, 21}},
                {{0, 0, 255}, {41, 240, 110}, {29, 255, 107}},
                {{255, 255, 255}, {235, 128, 128}, {255, 128, 128}},
                {{0, 0, 0}, {16, 128, 128}, {0, 128, 128}}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int full = 0; full < 2; full++) {
            const uint8_t *yuv = full ? rows[i].full : rows[i].limited;
            uint8_t y[15], u[6], v[6];
            memset(y, yuv[0], sizeof y);
            memset(u, yuv[1], sizeof u);
            memset(v, yuv[2], sizeof v);
            struct weir_view view = {WEIR_VIEW_I420, 5, 3, {y, u, v}, {5, 3, 3}, full};
            if (full) { /* whole numbers of Y, U and V are up to 1.8 away from it */
                struct weir_image cut;
                ck_assert_int_eq(weir_view_to_image(&view, 0, &cut, NULL), WEIR_OK);
                for (int k = 0; k < 45; k++) {
                    ck_assert_int_le(abs(cut.pixels[k] - rows[i].rgb[k % 3]), 2);
                }
                weir_image_fini(&cut);
            } else {
                expect_colour(&view, rows[i].rgb);
            }
        }
    }
}

END_TEST

START_TEST(an_input_is_the_cut_in_the_networks_order)
{
    enum { W = 7, H = 5 };

    test_seed(&rng);
    struct picture picture = picture_of(WEIR_VIEW_RGB, 40, 30);
    struct weir_affine map = random_map(&picture.view, W, H);
    struct weir_image cut;
    ck_assert_int_eq(weir_image_init(&cut, W, H, 3, NULL), WEIR_OK);
    weir_view_cut(&picture.view, &map, 9, &cut);
    for (int form = 0; form < 8; form++) {
        struct weir_view_input input = {W,         H, 3, form & 1, form & 2, form & 4, {0.5f, 1, 2},
                                        {1, 0, -3}};
        float values[W * H * 3];
        uint8_t *bytes = (uint8_t *)values;
        weir_view_cut_input(&picture.view, &map, 9, &input, values);
        for (int i = 0; i < W * H * 3; i++) {
            int place = i / 3, c = i % 3, at = input.is_planar ? c * W * H + place : i;
            float pixel_value = cut.pixels[place * 3 + (input.is_bgr ? 2 - c : c)];
            float expected = pixel_value * input.scale[c] + input.shift[c];
            if (input.is_u8) {
                expected = fminf(fmaxf(expected, 0), 255);
            }
            ck_assert_float_eq_tol(input.is_u8 ? bytes[at] : values[at], expected, 1.51f);
        }
    }
    weir_image_fini(&cut);
    picture_fini(&picture);
}

END_TEST

START_TEST(maps_from_nowhere_give_the_fill)
{
    uint8_t bytes[12] = {0};
    struct weir_view view = {WEIR_VIEW_RGB, 2, 2, {bytes}, {6}, true}, none = {0};
    const struct weir_affine maps[] = {
        {{NAN, 0, 0, 0, 1, 0}},       {{1, NAN, 0, 0, 1, 0}},
        {{INFINITY, 0, 0, 0, 1, 0}},  {{1, INFINITY, 0, -INFINITY, 1, 0}},
        {{1, 0, 1e30f, 0, 1, 0}},     {{1, 0, -1e30f, 0, 1, 1e30f}},
        {{1e38f, 1e38f, 0, 0, 1, 0}}, {{1, 0, NAN, 0, 1, NAN}},
    };
    struct weir_image cut;
    ck_assert_int_eq(weir_image_init(&cut, 300, 4, 3, NULL), WEIR_OK);
    for (size_t i = 0; i <= sizeof maps / sizeof maps[0]; i++) {
        bool is_none = i == sizeof maps / sizeof maps[0];
        weir_view_cut(is_none ? &none : &view, &maps[is_none ? 0 : i], 200, &cut);
        for (int k = 0; k < 300 * 4 * 3; k++) {
            ck_assert_int_eq(cut.pixels[k], 200);
        }
    }
    weir_image_fini(&cut);
    ck_assert_int_eq(weir_view_to_image(&none, 0, &cut, NULL), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_copy_is_no_larger_than_asked_for)
{
    struct weir_image copy;
    test_seed(&rng);
    struct picture picture = picture_of(WEIR_VIEW_GREY, 301, 7);
    ck_assert_int_eq(weir_view_to_image(&picture.view, 100, &copy, NULL), WEIR_OK);
    ck_assert(copy.width == 100 && copy.height == 2 && copy.channels == 1);
    weir_image_fini(&copy);
    ck_assert_int_eq(weir_view_to_image(&picture.view, 302, &copy, NULL), WEIR_OK);
    ck_assert(copy.width == 301 && copy.height == 7);
    for (int i = 0; i < 301 * 7; i++) { /* unchanged */
        ck_assert_int_eq(copy.pixels[i], picture.bytes[0][i / 301 * (301 + PAD) + i % 301]);
    }
    weir_image_fini(&copy);
    picture_fini(&picture);
}

END_TEST

WEIR_TEST_MAIN("view", a_cut_is_what_the_plain_reference_says,
               a_very_wide_view_is_cut_in_bounded_memory, a_slope_stays_a_slope_however_it_is_cut,
               known_colours_come_back, an_input_is_the_cut_in_the_networks_order,
               maps_from_nowhere_give_the_fill, a_copy_is_no_larger_than_asked_for)
