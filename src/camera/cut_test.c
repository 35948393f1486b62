/* What is cut of a picture, against the definition, pixel by pixel, for random forms, sizes, regions, turns and masks. */
#include "cut.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <libavutil/imgutils.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_MAX 48

static struct weir_rng rng;

static const enum AVPixelFormat forms[] = {
    AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV444P,     AV_PIX_FMT_NV12,
    AV_PIX_FMT_YUYV422, AV_PIX_FMT_GRAY8,    AV_PIX_FMT_YUV420P10LE, AV_PIX_FMT_P010LE};

static int below(int n)
{
    return (int)weir_rng_below(&rng, (uint64_t)n);
}

static uint8_t *buffer;
static struct camera_picture picture;
static struct weir_camera_shape shape;

static void make_picture(void)
{
    uint8_t *planes[4];
    picture = (struct camera_picture){.pixels = forms[below((int)WEIR_ARRAY_LEN(forms))]};
    picture.width = 2 + 2 * below(SIDE_MAX / 2);
    picture.height = 2 + 2 * below(SIDE_MAX / 2);
    int size = av_image_get_buffer_size(picture.pixels, picture.width, picture.height, 16);
    ck_assert_int_gt(size, 0);
    buffer = malloc((size_t)size);
    for (int i = 0; i < size; i++) {
        buffer[i] = (uint8_t)below(256);
    }
    (void)av_image_fill_arrays(planes, picture.strides, buffer, picture.pixels, picture.width,
                               picture.height, 16);
    for (int i = 0; i < 4; i++) {
        picture.planes[i] = planes[i];
    }
}

/* Rectangles: their corners stand in any order that goes round. */
static void make_shape(void)
{
    shape = (struct weir_camera_shape){.rotate = 90 * below(4), .region = {0, 0, 1, 1}};
    if (below(2) == 1) {
        shape.region[0] = below(5) / 10.0;
        shape.region[1] = below(5) / 10.0;
        shape.region[2] = 0.1 + below(5) / 10.0;
        shape.region[3] = 0.1 + below(5) / 10.0;
    }
    shape.n_masks = (size_t)below(3);
    for (size_t i = 0; i < shape.n_masks; i++) {
        double x = below(8) / 8.0, y = below(8) / 8.0, w = (1 + below(8)) / 16.0,
               h = (1 + below(8)) / 16.0;
        const double corners[4][2] = {{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}};
        shape.masks[i].n = 4;
        memcpy(shape.masks[i].points, corners, sizeof corners);
    }
}

static int component(int i, int x, int y)
{
    const AVPixFmtDescriptor *form = av_pix_fmt_desc_get(picture.pixels);
    const AVComponentDescriptor *at = &form->comp[i];
    if (i >= form->nb_components) {
        return 128;
    }
    int column = i > 0 ? x >> form->log2_chroma_w : x, line = i > 0 ? y >> form->log2_chroma_h : y;
    const uint8_t *bytes = picture.planes[at->plane] + line * picture.strides[at->plane] +
                           column * at->step + at->offset;
    int bits = at->depth + at->shift;
    return (bits > 8 ? (bytes[0] | bytes[1] << 8) >> (bits - 8) : bytes[0]) & 255;
}

/* The pixel of the source that (x, y) of the cut shows. */
static void source_of(const struct camera_cut *cut, int x, int y, int *out_x, int *out_y)
{
    const int w = cut->part_width, h = cut->part_height;
    const int xs[] = {x, y, w - 1 - x, w - 1 - y}, ys[] = {y, h - 1 - x, h - 1 - y, x};
    *out_x = cut->x + xs[shape.rotate / 90];
    *out_y = cut->y + ys[shape.rotate / 90];
}

static bool is_black(int x, int y)
{
    double u = (x + 0.5) / picture.width, v = (y + 0.5) / picture.height;
    for (size_t i = 0; i < shape.n_masks; i++) {
        const double(*at)[2] = shape.masks[i].points;
        if (u >= at[0][0] && u < at[2][0] && v >= at[0][1] && v < at[2][1]) {
            return true;
        }
    }
    return false;
}

/* A sample of the source within a pixel of where it is looked for: chroma of a turned picture lies between. */
static bool is_near(int i, int x, int y, int value)
{
    for (int dy = -2; dy <= 2; dy++) {
        for (int dx = -2; dx <= 2; dx++) {
            if (x + dx >= 0 && y + dy >= 0 && x + dx < picture.width && y + dy < picture.height &&
                component(i, x + dx, y + dy) == value) {
                return true;
            }
        }
    }
    return false;
}

static void check_chroma(const struct camera_cut *cut, const uint8_t *plane, int i)
{
    int half = (cut->width + 1) / 2;
    for (int y = 0; y < (cut->height + 1) / 2; y++) {
        for (int x = 0; x < half; x++) {
            int u, v, value = plane[y * half + x];
            source_of(cut, WEIR_MIN(2 * x, cut->width - 1), WEIR_MIN(2 * y, cut->height - 1), &u,
                      &v);
            bool is_right =
                shape.rotate == 0 ? component(i, u, v) == value : is_near(i, u, v, value);
            ck_assert_msg(is_right || (shape.n_masks > 0 && value == 128),
                          "%s %d×%d turned %d: %d,%d", av_get_pix_fmt_name(picture.pixels),
                          cut->width, cut->height, shape.rotate, x, y);
        }
    }
}

START_TEST(a_cut_shows_the_right_pixel_everywhere)
{
    struct weir_error err;
    for (int n = 0; n < 400; n++) {
        make_picture();
        make_shape();
        struct camera_cut cut = {.shape = &shape};
        ck_assert_int_eq(camera_cut_fit(&cut, picture.width, picture.height, &err), WEIR_OK);
        size_t n_bytes = weir_video_frame_bytes(cut.width, cut.height);
        uint8_t *out = malloc(n_bytes);
        ck_assert_msg(camera_cut_run(&cut, &picture, out, &err) == WEIR_OK, "%s", err.message);
        for (int y = 0; y < cut.height; y++) {
            for (int x = 0; x < cut.width; x++) {
                int u, v;
                source_of(&cut, x, y, &u, &v);
                ck_assert_int_eq(out[y * cut.width + x], is_black(u, v) ? 16 : component(0, u, v));
            }
        }
        const uint8_t *chroma = out + cut.width * cut.height;
        check_chroma(&cut, chroma, 1);
        check_chroma(&cut, chroma + ((cut.width + 1) / 2) * ((cut.height + 1) / 2), 2);
        free(out);
        free(buffer);
        camera_cut_fini(&cut);
    }
}

END_TEST

START_TEST(other_pixels_are_refused_by_name)
{
    struct weir_error err;
    uint8_t bytes[64 * 4] = {0};
    const struct weir_camera_shape whole = {.region = {0, 0, 1, 1}};
    struct camera_cut cut = {.shape = &whole};
    ck_assert_int_eq(camera_cut_fit(&cut, 8, 8, &err), WEIR_OK);
    const struct camera_picture rgb = {
        .pixels = AV_PIX_FMT_RGBA, .width = 8, .height = 8, .planes = {bytes}, .strides = {32}};
    ck_assert_int_eq(camera_cut_run(&cut, &rgb, bytes, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "rgba"));
}

END_TEST

int main(void)
{
    (void)test_seed(&rng);
    const TTest *const tests[] = {a_cut_shows_the_right_pixel_everywhere,
                                  other_pixels_are_refused_by_name};
    return weir_test_run(weir_test_suite("camera_cut", tests, WEIR_ARRAY_LEN(tests)));
}
