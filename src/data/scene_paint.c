/* A scene is painted on a plane of floats: background, figures from the far one on, then what a camera does to it. */
#include "data/scenes_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_STRIPS        5
#define RECTANGLES_MAX  12
#define BLURRED_WIDTH   3
#define JPEG_MAX_BYTES  ((size_t)64 << 20)
#define SMEAR_ONE_IN    6
#define BYTE_SUM_MEAN   510.0F /* four bytes, each as likely as another */
#define BYTE_SUM_SPREAD 147.8F

struct canvas {
    int width, height;
    float *pixels, *spare; /**< spare: as many. */
};

/* ---- textures and photographs --------------------------------------------------------------- */

/* Grey grains of one size, smooth between. */
static weir_status add_grains(struct weir_image *image, int n_across, float weight,
                              struct weir_rng *rng, struct weir_error *err)
{
    struct weir_image small = {0}, large = {0};
    int n_down = WEIR_MAX(n_across * image->height / image->width, 2);
    WEIR_TRY(weir_image_init(&small, n_across, n_down, 1, err));
    for (int i = 0; i < n_across * n_down; i++) {
        small.pixels[i] = (uint8_t)weir_rng_u32(rng);
    }
    weir_status status = weir_image_resize(&small, image->width, image->height, &large, err);
    weir_image_fini(&small);
    WEIR_TRY(status);
    for (int i = 0; i < image->width * image->height; i++) {
        float value = (float)image->pixels[i] + weight * ((float)large.pixels[i] - 127.5F);
        image->pixels[i] = (uint8_t)fminf(fmaxf(value, 0), 255);
    }
    weir_image_fini(&large);
    return WEIR_OK;
}

static void add_rectangle(struct weir_image *image, struct weir_rng *rng)
{
    int x = (int)weir_rng_below(rng, (uint64_t)image->width);
    int y = (int)weir_rng_below(rng, (uint64_t)image->height);
    int w = 1 + (int)weir_rng_below(rng, (uint64_t)image->width / 2 + 1);
    int h = 1 + (int)weir_rng_below(rng, (uint64_t)image->height / 2 + 1);
    int value = (int)weir_rng_below(rng, 256);
    for (int j = y; j < WEIR_MIN(y + h, image->height); j++) {
        for (int i = x; i < WEIR_MIN(x + w, image->width); i++) {
            uint8_t *at = &image->pixels[j * image->width + i];
            *at = (uint8_t)((*at + value) / 2);
        }
    }
}

/* Grains of four sizes, and rectangles. */
static weir_status make_texture(int width, int height, struct weir_rng *rng, struct weir_image *out,
                                struct weir_error *err)
{
    static const int sizes[] = {3, 9, 27, 81};
    struct weir_image image = {0};
    WEIR_TRY(weir_image_init(&image, width, height, 1, err));
    memset(image.pixels, (int)(64 + weir_rng_below(rng, 128)), (size_t)width * (size_t)height);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
        weir_status status = add_grains(&image, sizes[i], weir_rng_f32(rng) * 0.7F, rng, err);
        if (status != WEIR_OK) {
            weir_image_fini(&image);
            return status;
        }
    }
    for (uint64_t n = weir_rng_below(rng, RECTANGLES_MAX + 1); n > 0; n--) {
        add_rectangle(&image, rng);
    }
    *out = image;
    return WEIR_OK;
}

/* A part of the photograph, half of it at least, in the form of width × height. */
static weir_status cut_photo(const struct weir_image *photo, int width, int height,
                             struct weir_rng *rng, struct weir_image *out, struct weir_error *err)
{
    float fit = fminf((float)photo->width / (float)width, (float)photo->height / (float)height);
    float scale = fit * (0.5F + weir_rng_f32(rng) / 2);
    int w = WEIR_MIN(WEIR_MAX((int)((float)width * scale), 1), photo->width);
    int h = WEIR_MIN(WEIR_MAX((int)((float)height * scale), 1), photo->height);
    int x = (int)weir_rng_below(rng, (uint64_t)(photo->width - w) + 1);
    int y = (int)weir_rng_below(rng, (uint64_t)(photo->height - h) + 1);
    struct weir_image part = {0};
    WEIR_TRY(weir_image_crop(photo, x, y, w, h, &part, err));
    weir_status status = weir_image_resize(&part, width, height, out, err);
    weir_image_fini(&part);
    return status;
}

/* Something without a face: of a photograph, or made. */
static weir_status make_ground(const struct scenes *scenes, int width, int height,
                               struct weir_rng *rng, struct weir_image *out, struct weir_error *err)
{
    if (scenes->backgrounds == NULL) {
        return make_texture(width, height, rng, out, err);
    }
    struct weir_image photo = {0};
    WEIR_TRY(scene_read_grey(scenes->backgrounds, scenes_background(scenes, rng), &photo, err));
    weir_status status = cut_photo(&photo, width, height, rng, out, err);
    weir_image_fini(&photo);
    return status;
}

/* ---- heads ---------------------------------------------------------------------------------- */

static weir_status make_blurred(const struct weir_image *face, struct weir_image *out,
                                struct weir_error *err)
{
    struct weir_image small = {0};
    WEIR_TRY(weir_image_resize(face, BLURRED_WIDTH, BLURRED_WIDTH + 1, &small, err));
    weir_status status = weir_image_resize(&small, face->width, face->height, out, err);
    weir_image_fini(&small);
    return status;
}

/* No two strips that follow each other do so afterwards. */
static weir_status make_strips(const struct weir_image *face, struct weir_rng *rng,
                               struct weir_image *out, struct weir_error *err)
{
    static const int orders[][N_STRIPS] = {
        {2, 4, 1, 3, 0}, {3, 0, 2, 4, 1}, {4, 2, 0, 3, 1}, {1, 4, 2, 0, 3}};
    const int *order = orders[weir_rng_below(rng, WEIR_ARRAY_LEN(orders))];
    struct weir_image image = {0};
    WEIR_TRY(weir_image_init(&image, face->width, face->height, 1, err));
    for (int y = 0; y < face->height; y++) {
        int strip = y * N_STRIPS / face->height;
        int from = y + (order[strip] - strip) * face->height / N_STRIPS;
        from = WEIR_MIN(WEIR_MAX(from, 0), face->height - 1);
        memcpy(image.pixels + (size_t)y * (size_t)face->width,
               face->pixels + (size_t)from * (size_t)face->width, (size_t)face->width);
    }
    *out = image;
    return WEIR_OK;
}

/* What fills the head, in the form of the picture of a face. */
static weir_status make_filling(const struct scenes *scenes, const struct figure *figure,
                                const struct weir_image *face, struct weir_image *out,
                                struct weir_error *err)
{
    struct weir_rng rng;
    weir_rng_init(&rng, figure->seed, 0);
    switch (figure->kind) {
    case FIGURE_TEXTURE:
        return make_texture(face->width, face->height, &rng, out, err);
    case FIGURE_BLURRED:
        return make_blurred(face, out, err);
    case FIGURE_STRIPS:
        return make_strips(face, &rng, out, err);
    case FIGURE_PHOTO:
        return make_ground(scenes, face->width, face->height, &rng, out, err);
    default:
        return weir_image_crop(face, 0, 0, face->width, face->height, out, err);
    }
}

/* The filling at about the size in which it is seen: then a pixel of the scene is one of it. */
static weir_status make_head(const struct scenes *scenes, const struct figure *figure,
                             struct weir_image *out, struct weir_error *err)
{
    const struct weir_face_box *box = &scenes->options.box;
    struct weir_image face = {0}, filling = {0};
    WEIR_TRY(scene_read_grey(scenes->faces, figure->sample, &face, err));
    weir_status status = make_filling(scenes, figure, &face, &filling, err);
    weir_image_fini(&face);
    WEIR_TRY(status);
    int width = (int)lroundf(figure->w / (box->right - box->left));
    int height = (int)lroundf(figure->h / (box->bottom - box->top));
    status = weir_image_resize(&filling, WEIR_MAX(width, 2), WEIR_MAX(height, 2), out, err);
    weir_image_fini(&filling);
    return status;
}

/* Bilinear; outside: the edge. */
static float sample_at(const struct weir_image *image, float x, float y)
{
    x = fminf(fmaxf(x - 0.5F, 0), (float)image->width - 1);
    y = fminf(fmaxf(y - 0.5F, 0), (float)image->height - 1);
    int x0 = WEIR_MIN((int)x, image->width - 2), y0 = WEIR_MIN((int)y, image->height - 2);
    float fx = x - (float)x0, fy = y - (float)y0;
    const uint8_t *at = image->pixels + (size_t)y0 * (size_t)image->width + x0;
    const uint8_t *under = at + image->width;
    return (1 - fy) * ((1 - fx) * (float)at[0] + fx * (float)at[1]) +
           fy * ((1 - fx) * (float)under[0] + fx * (float)under[1]);
}

static void paint_torso(struct canvas *canvas, const struct figure *f,
                        const struct weir_image *cloth)
{
    int first = WEIR_MAX((int)(f->cy + 0.6F * f->h), 0);
    for (int y = first; y < canvas->height; y++) {
        for (int x = 0; x < canvas->width; x++) {
            if (figure_torso_at(f, (float)x + 0.5F, (float)y + 0.5F)) {
                int from = (x + (int)(f->seed % 1000)) % canvas->width + y * canvas->width;
                canvas->pixels[y * canvas->width + x] = f->cloth * (float)cloth->pixels[from];
            }
        }
    }
}

static void paint_head(struct canvas *canvas, const struct weir_face_box *box,
                       const struct figure *f, const struct weir_image *head)
{
    float reach = f->w + f->h;
    int x_end = WEIR_MIN((int)(f->cx + reach), canvas->width);
    int y_end = WEIR_MIN((int)(f->cy + reach), canvas->height);
    for (int y = WEIR_MAX((int)(f->cy - reach), 0); y < y_end; y++) {
        for (int x = WEIR_MAX((int)(f->cx - reach), 0); x < x_end; x++) {
            float bx, by, part = figure_head_at(f, (float)x + 0.5F, (float)y + 0.5F, &bx, &by);
            if (part <= 0) {
                continue;
            }
            bx = f->is_mirrored ? 1 - bx : bx;
            float u = (box->left + bx * (box->right - box->left)) * (float)head->width;
            float v = (box->top + by * (box->bottom - box->top)) * (float)head->height;
            float *at = &canvas->pixels[y * canvas->width + x];
            *at += part * (f->gain * sample_at(head, u, v) - *at);
        }
    }
}

static weir_status paint_figures(struct canvas *canvas, const struct scenes *scenes,
                                 const struct scene_plan *plan, const struct weir_image *cloth,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < plan->n_figures; i++) {
        struct weir_image head = {0};
        WEIR_TRY(make_head(scenes, &plan->figures[i], &head, err));
        paint_torso(canvas, &plan->figures[i], cloth);
        paint_head(canvas, &scenes->options.box, &plan->figures[i], &head);
        weir_image_fini(&head);
    }
    return WEIR_OK;
}

/* ---- what a camera does ---------------------------------------------------------------------- */

/* The mean of n pixels in a row, or in a column, around each; at the edge of those that are there. */
static void blur(struct canvas *canvas, int n, bool is_down)
{
    int step = is_down ? canvas->width : 1, n_along = is_down ? canvas->height : canvas->width;
    int n_lines = is_down ? canvas->width : canvas->height;
    for (int line = 0; line < n_lines; line++) {
        size_t first = is_down ? (size_t)line : (size_t)line * (size_t)canvas->width;
        for (int i = 0; i < n_along; i++) {
            float sum = 0;
            int begin = WEIR_MAX(i - n / 2, 0), end = WEIR_MIN(i + n / 2 + 1, n_along);
            for (int k = begin; k < end; k++) {
                sum += canvas->pixels[first + (size_t)k * (size_t)step];
            }
            canvas->spare[first + (size_t)i * (size_t)step] = sum / (float)(end - begin);
        }
    }
    float *made = canvas->spare;
    canvas->spare = canvas->pixels;
    canvas->pixels = made;
}

static void add_noise(struct canvas *canvas, float spread, struct weir_rng *rng)
{
    for (int i = 0; i < canvas->width * canvas->height; i++) {
        uint32_t bits = weir_rng_u32(rng);
        uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);
        canvas->pixels[i] += spread * ((float)sum - BYTE_SUM_MEAN) / BYTE_SUM_SPREAD;
    }
}

static weir_status through_jpeg(struct weir_image *image, int quality, struct weir_error *err)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, JPEG_MAX_BYTES);
    WEIR_TRY(weir_image_encode(image, WEIR_IMAGE_FORMAT_JPEG, quality, &buf, err));
    struct weir_image made = {0};
    WEIR_TRY(weir_image_decode(buf.data, buf.len, &made, err));
    weir_image_fini(image);
    *image = made;
    return WEIR_OK;
}

static weir_status develop(struct canvas *canvas, struct weir_rng *rng, struct weir_image *out,
                           struct weir_error *err)
{
    if (weir_rng_below(rng, 3) == 0) {
        blur(canvas, 3, false);
        blur(canvas, 3, true);
    }
    if (weir_rng_below(rng, SMEAR_ONE_IN) == 0) {
        blur(canvas, 3 + 2 * (canvas->width / 640), false);
    }
    add_noise(canvas, 4 * weir_rng_f32(rng), rng);
    struct weir_image image = {0};
    WEIR_TRY(weir_image_init(&image, canvas->width, canvas->height, 1, err));
    for (int i = 0; i < canvas->width * canvas->height; i++) {
        image.pixels[i] = (uint8_t)lroundf(fminf(fmaxf(canvas->pixels[i], 0), 255));
    }
    weir_status status = through_jpeg(&image, 40 + (int)weir_rng_below(rng, 56), err);
    if (status != WEIR_OK) {
        weir_image_fini(&image);
        return status;
    }
    *out = image;
    return WEIR_OK;
}

/* ---- the scene ------------------------------------------------------------------------------ */

static weir_status paint_on(struct canvas *canvas, const struct scenes *scenes,
                            const struct scene_plan *plan, struct weir_image *out,
                            struct weir_error *err)
{
    struct weir_rng rng;
    weir_rng_init(&rng, plan->seed, 0);
    WEIR_AUTO(weir_image_fini) struct weir_image ground = {0};
    WEIR_AUTO(weir_image_fini) struct weir_image cloth = {0};
    WEIR_TRY(make_ground(scenes, canvas->width, canvas->height, &rng, &ground, err));
    WEIR_TRY(make_ground(scenes, canvas->width, canvas->height, &rng, &cloth, err));
    for (int i = 0; i < canvas->width * canvas->height; i++) {
        canvas->pixels[i] = (float)ground.pixels[i];
    }
    WEIR_TRY(paint_figures(canvas, scenes, plan, &cloth, err));
    return develop(canvas, &rng, out, err);
}

weir_status scene_paint(const struct scenes *scenes, size_t i_scene, struct weir_image *out,
                        struct weir_error *err)
{
    struct canvas canvas = {.width = scenes->options.width, .height = scenes->options.height};
    struct scene_plan plan = scene_plan_make(scenes, i_scene);
    size_t n = (size_t)canvas.width * (size_t)canvas.height;
    WEIR_TRY(scene_measure(scenes, &plan, err));
    WEIR_AUTO(weir_auto_free) float *memory = malloc(2 * n * sizeof *memory);
    if (memory == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a scene");
    }
    canvas.pixels = memory;
    canvas.spare = memory + n;
    return paint_on(&canvas, scenes, &plan, out, err);
}
