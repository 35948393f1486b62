#include "cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GREY 128

/* ---- geometry -------------------------------------------------------------------------------- */

/* Where the centre of a pixel of the cut lies in the source, in shares of it. */
static void place_of(const struct camera_cut *cut, int x, int y, double out[2])
{
    double u = x + 0.5, v = y + 0.5;
    switch (cut->shape->rotate) {
    case 90:
        out[0] = v;
        out[1] = cut->part_height - u;
        break;
    case 180:
        out[0] = cut->part_width - u;
        out[1] = cut->part_height - v;
        break;
    case 270:
        out[0] = cut->part_width - v;
        out[1] = u;
        break;
    default:
        out[0] = u;
        out[1] = v;
    }
    out[0] = (out[0] + cut->x) / cut->source_width;
    out[1] = (out[1] + cut->y) / cut->source_height;
}

static bool is_in_polygon(const double (*points)[2], size_t n, const double at[2])
{
    bool is_in = false;
    for (size_t i = 0, k = n - 1; i < n; k = i++) {
        if ((points[i][1] > at[1]) != (points[k][1] > at[1]) &&
            at[0] < (points[k][0] - points[i][0]) * (at[1] - points[i][1]) /
                            (points[k][1] - points[i][1]) +
                        points[i][0]) {
            is_in = !is_in;
        }
    }
    return is_in;
}

static bool is_masked(const struct camera_cut *cut, int x, int y)
{
    double at[2];
    bool is_in = false;
    place_of(cut, x, y, at);
    for (size_t i = 0; !is_in && i < cut->shape->n_masks; i++) {
        is_in = is_in_polygon(cut->shape->masks[i].points, cut->shape->masks[i].n, at);
    }
    return is_in;
}

static weir_status find_spans(struct camera_cut *cut, struct weir_error *err)
{
    size_t cap = 0;
    for (int y = 0; cut->shape->n_masks > 0 && y < cut->height; y++) {
        int begin = -1;
        for (int x = 0; x <= cut->width; x++) {
            bool is_in = x < cut->width && is_masked(cut, x, y);
            if (is_in && begin < 0) {
                begin = x;
            } else if (!is_in && begin >= 0) {
                if (cut->n_spans == cap) {
                    cap = cap == 0 ? 256 : 2 * cap;
                    struct camera_span *spans = realloc(cut->spans, cap * sizeof *spans);
                    if (spans == NULL) {
                        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for its masks");
                    }
                    cut->spans = spans;
                }
                cut->spans[cut->n_spans++] = (struct camera_span){y, begin, x};
                begin = -1;
            }
        }
    }
    return WEIR_OK;
}

weir_status camera_cut_fit(struct camera_cut *cut, int width, int height, struct weir_error *err)
{
    if (cut->source_width == width && cut->source_height == height) {
        return WEIR_OK;
    }
    const double *region = cut->shape->region;
    bool is_turned = cut->shape->rotate % 180 != 0;
    cut->source_width = width;
    cut->source_height = height;
    cut->x = (int)(region[0] * width) & ~1;
    cut->y = (int)(region[1] * height) & ~1;
    cut->part_width = WEIR_MAX(WEIR_MIN((int)lround(region[2] * width), width - cut->x), 1);
    cut->part_height = WEIR_MAX(WEIR_MIN((int)lround(region[3] * height), height - cut->y), 1);
    cut->width = is_turned ? cut->part_height : cut->part_width;
    cut->height = is_turned ? cut->part_width : cut->part_height;
    cut->n_spans = 0;
    return find_spans(cut, err);
}

void camera_cut_fini(struct camera_cut *cut)
{
    free(cut->spans);
    cut->spans = NULL;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/** How to walk through one component of the source, in the order of the cut. */
struct walk {
    const uint8_t *first;
    ptrdiff_t step_x, step_y; /**< Bytes to the next pixel, and line, of the cut. */
    int n_bytes, shift;       /**< A sample has so many bytes; shifted right it has 8 bits. */
};

/* The component lies in the source with a sample for 1 << bits pixels; the cut has one for 1 << half. */
static struct walk walk_of(const struct camera_cut *cut, const struct camera_picture *picture,
                           const AVPixFmtDescriptor *form, int i, int half)
{
    const AVComponentDescriptor *component = &form->comp[i];
    bool is_chroma = i > 0;
    int bits_x = is_chroma ? form->log2_chroma_w : 0, bits_y = is_chroma ? form->log2_chroma_h : 0;
    ptrdiff_t sample = component->step, line = picture->strides[component->plane];
    int n_x = (cut->part_width + half) >> half, n_y = (cut->part_height + half) >> half;
    /* From one sample of the cut to the next are (1 << half) pixels, which are so many samples here. */
    ptrdiff_t dx = (sample << half) >> bits_x, dy = (line << half) >> bits_y;
    const uint8_t *origin = picture->planes[component->plane] + component->offset +
                            (cut->x >> bits_x) * sample + (cut->y >> bits_y) * line;
    const uint8_t *right = origin + (n_x - 1) * dx, *below = origin + (n_y - 1) * dy;
    struct walk walk = {.n_bytes = component->shift + component->depth > 8 ? 2 : 1,
                        .shift = component->shift + component->depth - 8};
    switch (cut->shape->rotate) {
    case 90:
        walk.first = below;
        walk.step_x = -dy;
        walk.step_y = dx;
        break;
    case 180:
        walk.first = right + (below - origin);
        walk.step_x = -dx;
        walk.step_y = -dy;
        break;
    case 270:
        walk.first = right;
        walk.step_x = dy;
        walk.step_y = -dx;
        break;
    default:
        walk.first = origin;
        walk.step_x = dx;
        walk.step_y = dy;
    }
    return walk;
}

static void copy(const struct walk *walk, int width, int height, uint8_t *out)
{
    for (int y = 0; y < height; y++, out += width) {
        const uint8_t *from = walk->first + y * walk->step_y;
        if (walk->n_bytes == 2) {
            for (int x = 0; x < width; x++, from += walk->step_x) {
                out[x] = (uint8_t)((unsigned)(from[0] | from[1] << 8) >> walk->shift);
            }
        } else if (walk->step_x == 1) {
            memcpy(out, from, (size_t)width);
        } else {
            for (int x = 0; x < width; x++, from += walk->step_x) {
                out[x] = *from;
            }
        }
    }
}

static bool is_supported(const AVPixFmtDescriptor *form)
{
    const uint64_t other = AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_PAL |
                           AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BE | AV_PIX_FMT_FLAG_FLOAT |
                           AV_PIX_FMT_FLAG_BAYER;
    bool is_good = form != NULL && (form->flags & other) == 0 && form->log2_chroma_w <= 1 &&
                   form->log2_chroma_h <= 1;
    for (int i = 0; is_good && i < form->nb_components && i < 3; i++) {
        is_good = form->comp[i].depth >= 8 && form->comp[i].depth <= 16;
    }
    return is_good;
}

static void blacken(const struct camera_cut *cut, uint8_t black, uint8_t *luma, uint8_t *u,
                    uint8_t *v)
{
    size_t half = (size_t)(cut->width + 1) / 2;
    for (size_t i = 0; i < cut->n_spans; i++) {
        const struct camera_span *span = &cut->spans[i];
        size_t begin = (size_t)span->x_begin, n = (size_t)(span->x_end - span->x_begin);
        size_t at = (size_t)span->y / 2 * half + begin / 2,
               n_half = (begin + n + 1) / 2 - begin / 2;
        memset(luma + (size_t)span->y * (size_t)cut->width + begin, black, n);
        memset(u + at, GREY, n_half);
        memset(v + at, GREY, n_half);
    }
}

weir_status camera_cut_run(const struct camera_cut *cut, const struct camera_picture *picture,
                           uint8_t *out, struct weir_error *err)
{
    const AVPixFmtDescriptor *form = av_pix_fmt_desc_get(picture->pixels);
    if (!is_supported(form)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "its pixels are %s: expected YUV or grey of 8 to 16 bits",
                              form != NULL ? form->name : "of an unknown form");
    }
    int half_width = (cut->width + 1) / 2, half_height = (cut->height + 1) / 2;
    size_t n = (size_t)half_width * (size_t)half_height;
    uint8_t *u = out + (size_t)cut->width * (size_t)cut->height, *v = u + n;
    struct walk walk = walk_of(cut, picture, form, 0, 0);
    copy(&walk, cut->width, cut->height, out);
    if (form->nb_components >= 3) {
        walk = walk_of(cut, picture, form, 1, 1);
        copy(&walk, half_width, half_height, u);
        walk = walk_of(cut, picture, form, 2, 1);
        copy(&walk, half_width, half_height, v);
    } else {
        memset(u, GREY, 2 * n);
    }
    blacken(cut, picture->is_full_range ? 0 : 16, out, u, v);
    return WEIR_OK;
}
