#include "vision/view.h"

#include <math.h>
#include <string.h>

/* A pixel of the cut is the mean over a window of the view. Where the map does not turn, the window is a rectangle, and the mean
 * is taken line by line: first down (lines are added, as vectors), then across. A window is at least one pixel wide: the mean over
 * one pixel's width of a picture made of squares is bilinear interpolation, so there is one rule for enlarging and shrinking. */

#define STRIP        256                        /* pixels of the cut that are made at a time */
#define ACROSS       (WEIR_VIEW_SHRINK_MAX * 2) /* pixels of a line that a strip may read */
#define MAX_CHANNELS 3

struct weir_view weir_view_of(const struct weir_image *image)
{
    return (struct weir_view){
        .form = image->channels == 1 ? WEIR_VIEW_GREY : WEIR_VIEW_RGB,
        .width = image->width,
        .height = image->height,
        .planes = {image->pixels},
        .strides = {image->width * image->channels},
        .is_full_range = true,
    };
}

/* One of the view's planes: of I420 the second and third are of half size. */
struct plane {
    const uint8_t *pixels;
    int width, height, stride, channels;
    double size;  /* a pixel's side, in pixels of the view: 1 or 2 */
    int n_u, n_v; /* samples of a pixel of the cut, where the map turns */
};

static struct plane plane_of(const struct weir_view *view, int i)
{
    bool is_chroma = i > 0;
    return (struct plane){
        .pixels = view->planes[i],
        .width = is_chroma ? view->width / 2 + view->width % 2 : view->width,
        .height = is_chroma ? view->height / 2 + view->height % 2 : view->height,
        .stride = view->strides[i],
        .channels = view->form == WEIR_VIEW_RGB ? 3 : 1,
        .size = is_chroma ? 2 : 1,
    };
}

static int count_planes(const struct weir_view *view, int channels)
{
    return view->form == WEIR_VIEW_I420 && channels == 3 ? 3 : 1;
}

/* ---- windows ----------------------------------------------------------------------------------- */

/* Pixels first to last of a line, and what each counts; they sum to 1. */
struct span {
    int first, last;
    float of_first, of_middle, of_last;
};

/* A window of this width around x, in a line of n pixels; x lies within. */
static struct span span_of(double x, double width, int n)
{
    double begin = x - width / 2, end = x + width / 2;
    int first = begin > 0 ? WEIR_MIN((int)begin, n - 1) : 0;
    int last = end < n ? WEIR_MAX((int)ceil(end) - 1, first) : n - 1;
    bool is_one = first == last;
    return (struct span){
        .first = first,
        .last = last,
        .of_first = is_one ? 1 : (float)((first + 1 - begin) / width),
        .of_middle = (float)(1 / width),
        .of_last = is_one ? 0 : (float)((end - last) / width),
    };
}

static double window_of(float step, const struct plane *plane)
{
    double width = fabs((double)step) / plane->size;
    return width < 1 ? 1 : fmin(width, WEIR_VIEW_SHRINK_MAX);
}

/* ---- without turning ----------------------------------------------------------------------------- */

/* Lines of the plane from `first` on, n values of each, added up as the span says. */
static void add_lines(const struct plane *plane, const struct span *lines, int first, int n,
                      float *restrict sums)
{
    for (int y = lines->first; y <= lines->last; y++) {
        const uint8_t *restrict line =
            plane->pixels + (size_t)y * (size_t)plane->stride + (size_t)first;
        float weight = y == lines->first  ? lines->of_first
                       : y == lines->last ? lines->of_last
                                          : lines->of_middle;
        if (y == lines->first) {
            for (int i = 0; i < n; i++) {
                sums[i] = weight * (float)line[i];
            }
        } else {
            for (int i = 0; i < n; i++) {
                sums[i] += weight * (float)line[i];
            }
        }
    }
}

/* Across: one channel of interleaved sums that begin at pixel `first`. */
static inline void add_across(const float *restrict sums, int first, int channels,
                              const struct span *columns, int n, float *restrict out)
{
    for (int i = 0; i < n; i++) {
        const struct span *span = &columns[i];
        const float *at = sums + (span->first - first) * channels;
        float middle = 0;
        for (int k = 1; k < span->last - span->first; k++) {
            middle += at[k * channels];
        }
        out[i] = at[0] * span->of_first + middle * span->of_middle +
                 at[(span->last - span->first) * channels] * span->of_last;
    }
}

/* What a strip reads of a plane. */
struct columns {
    struct span spans[STRIP];
    int first, n; /* pixels of the line that all of them read */
};

/* As many as fit from pixel u of the cut on, at most n. */
static int columns_plan(struct columns *columns, const struct plane *plane,
                        const struct weir_affine *map, int u, int n)
{
    double window = window_of(map->m[0], plane);
    int first = plane->width, last = 0;
    for (int i = 0; i < n; i++) {
        double x = (map->m[0] * (u + i + 0.5) + map->m[2]) / plane->size;
        columns->spans[i] = span_of(x, window, plane->width);
        int least = WEIR_MIN(first, columns->spans[i].first);
        int most = WEIR_MAX(last, columns->spans[i].last);
        if (most - least >= ACROSS) {
            n = i;
            break;
        }
        first = least;
        last = most;
    }
    columns->first = first;
    columns->n = last - first + 1;
    return n;
}

/* Values of a row of the strip: of the plane's channels, STRIP apart. */
static void scale_row(const struct plane *plane, const struct columns *columns,
                      const struct weir_affine *map, int v, int n, float out[][STRIP])
{
    float sums[ACROSS * MAX_CHANNELS];
    double y = (map->m[4] * (v + 0.5) + map->m[5]) / plane->size;
    struct span lines = span_of(y, window_of(map->m[4], plane), plane->height);
    add_lines(plane, &lines, columns->first * plane->channels, columns->n * plane->channels, sums);
    if (plane->channels == 1) {
        add_across(sums, columns->first, 1, columns->spans, n, out[0]);
        return;
    }
    for (int c = 0; c < 3; c++) {
        add_across(sums + c, columns->first, 3, columns->spans, n, out[c]);
    }
}

/* ---- turned -------------------------------------------------------------------------------------- */

/* fmin and fmax would be calls. */
static inline double clamped(double x, double most)
{
    x = x > 0 ? x : 0;
    return x < most ? x : most;
}

/* Between four pixels; beyond the edge the outermost go on. */
static void sample(const struct plane *plane, double x, double y, float out[MAX_CHANNELS])
{
    double left = clamped(x / plane->size - 0.5, plane->width - 1);
    double top = clamped(y / plane->size - 0.5, plane->height - 1);
    int i = (int)left, j = (int)top;
    int right = i + 1 < plane->width ? plane->channels : 0;
    int below = j + 1 < plane->height ? plane->stride : 0;
    float a = (float)(left - i), b = (float)(top - j);
    const uint8_t *at =
        plane->pixels + (size_t)j * (size_t)plane->stride + (size_t)i * (size_t)plane->channels;
    for (int c = 0; c < plane->channels; c++) {
        float upper = (float)at[c] + a * (float)(at[c + right] - at[c]);
        float lower = (float)at[below + c] + a * (float)(at[below + c + right] - at[below + c]);
        out[c] += upper + b * (lower - upper);
    }
}

static int samples_along(float dx, float dy, const struct plane *plane)
{
    double length = hypot((double)dx, (double)dy) / plane->size;
    return length < WEIR_VIEW_SAMPLES_MAX ? WEIR_MAX(1, (int)ceil(length - 1e-3))
                                          : WEIR_VIEW_SAMPLES_MAX;
}

/* Pixel (u, v) of the cut, of one plane, to column i of `out`. */
static void turn_pixel(const struct plane *plane, const struct weir_affine *map, int u, int v,
                       int i, float out[][STRIP])
{
    const float *m = map->m;
    float sums[MAX_CHANNELS] = {0};
    int n_u = plane->n_u, n_v = plane->n_v;
    for (int k = 0; k < n_u * n_v; k++) {
        int line = k / n_u;
        double at_u = u + (k % n_u + 0.5) / n_u, at_v = v + (line + 0.5) / n_v;
        sample(plane, m[0] * at_u + m[1] * at_v + m[2], m[3] * at_u + m[4] * at_v + m[5], sums);
    }
    for (int c = 0; c < plane->channels; c++) {
        out[c][i] = sums[c] / (float)(n_u * n_v);
    }
}

/* ---- colours ------------------------------------------------------------------------------------- */

/* Written so that a loop of it becomes vectors: fminf and fmaxf do not. */
static float held(float value)
{
    value = value < 0 ? 0 : value;
    return value > 255 ? 255 : value;
}

static void luma(const struct weir_view *view, int n, float *row)
{
    float scale = view->is_full_range ? 1 : 255.0f / 219, black = view->is_full_range ? 0 : 16;
    for (int i = 0; i < n; i++) {
        row[i] = held((row[i] - black) * scale);
    }
}

/* Y, U, V to red, green, blue, BT.601. */
static void colours(const struct weir_view *view, int n, float rows[3][STRIP])
{
    float scale = view->is_full_range ? 1 : 255.0f / 219, black = view->is_full_range ? 0 : 16;
    float chroma = view->is_full_range ? 1 : 255.0f / 224;
    float r_v = 1.402f * chroma, g_u = 0.344136f * chroma, g_v = 0.714136f * chroma;
    float b_u = 1.772f * chroma;
    for (int i = 0; i < n; i++) {
        float y = (rows[0][i] - black) * scale, u = rows[1][i] - 128, v = rows[2][i] - 128;
        rows[0][i] = held(y + r_v * v);
        rows[1][i] = held(y - g_u * u - g_v * v);
        rows[2][i] = held(y + b_u * u);
    }
}

/* From what the planes gave to what the cut has: 1 or 3 channels. */
static void convert(const struct weir_view *view, int channels, int n, float rows[3][STRIP])
{
    if (view->form == WEIR_VIEW_I420 && channels == 3) {
        colours(view, n, rows);
    } else if (view->form == WEIR_VIEW_I420) {
        luma(view, n, rows[0]);
    } else if (view->form == WEIR_VIEW_RGB && channels == 1) {
        for (int i = 0; i < n; i++) {
            rows[0][i] = 0.299f * rows[0][i] + 0.587f * rows[1][i] + 0.114f * rows[2][i];
        }
    } else if (view->form == WEIR_VIEW_GREY && channels == 3) {
        memcpy(rows[1], rows[0], (size_t)n * sizeof(float));
        memcpy(rows[2], rows[0], (size_t)n * sizeof(float));
    }
}

/* ---- cutting ------------------------------------------------------------------------------------- */

struct cut {
    const struct weir_view *view;
    const struct weir_affine *map;
    const struct weir_view_input *input;
    struct plane planes[3];
    int n_planes;
    float fill;
    void *out;
};

static bool is_inside(const struct cut *cut, int u, int v)
{
    const float *m = cut->map->m;
    double at_u = u + 0.5, at_v = v + 0.5;
    double x = m[0] * at_u + m[1] * at_v + m[2], y = m[3] * at_u + m[4] * at_v + m[5];
    return x >= 0 && y >= 0 && x < cut->view->width && y < cut->view->height;
}

/* n pixels from (u, v) on, as the input has them. */
static void emit(const struct cut *cut, int u, int v, int n, float rows[3][STRIP])
{
    const struct weir_view_input *input = cut->input;
    size_t size = (size_t)input->width * (size_t)input->height;
    size_t at = (size_t)v * (size_t)input->width + (size_t)u;
    size_t step = input->is_planar ? 1 : (size_t)input->channels;
    for (int c = 0; c < input->channels; c++) {
        size_t begin = input->is_planar ? (size_t)c * size + at : at * step + (size_t)c;
        const float *restrict row = rows[input->is_bgr ? input->channels - 1 - c : c];
        float scale = input->scale[c], shift = input->shift[c];
        if (input->is_u8) {
            uint8_t *restrict bytes = (uint8_t *)cut->out + begin;
            for (int i = 0; i < n; i++) {
                bytes[(size_t)i * step] = (uint8_t)(int)(held(row[i] * scale + shift) + 0.5f);
            }
        } else if (step == 1) {
            float *restrict values = (float *)cut->out + begin;
            for (int i = 0; i < n; i++) {
                values[i] = row[i] * scale + shift;
            }
        } else {
            float *restrict values = (float *)cut->out + begin;
            for (int i = 0; i < n; i++) {
                values[(size_t)i * step] = row[i] * scale + shift;
            }
        }
    }
}

static void emit_fill(const struct cut *cut, int u, int v, int n)
{
    float rows[3][STRIP];
    for (int begin = 0; begin < n; begin += STRIP) {
        int len = WEIR_MIN(n - begin, STRIP);
        for (int i = 0; i < len; i++) {
            rows[0][i] = rows[1][i] = rows[2][i] = cut->fill;
        }
        emit(cut, u + begin, v, len, rows);
    }
}

/* At most n pixels of all rows v_begin to v_end, from column u on. @return How many. */
static int cut_strip(const struct cut *cut, int u, int n, int v_begin, int v_end)
{
    struct columns columns[3];
    float rows[3][STRIP];
    for (int k = 0; k < cut->n_planes; k++) {
        n = columns_plan(&columns[k], &cut->planes[k], cut->map, u, n);
    }
    for (int v = v_begin; v < v_end; v++) {
        for (int k = 0; k < cut->n_planes; k++) {
            scale_row(&cut->planes[k], &columns[k], cut->map, v, n, rows + k);
        }
        convert(cut->view, cut->input->channels, n, rows);
        emit(cut, u, v, n, rows);
    }
    return n;
}

static void cut_straight(const struct cut *cut)
{
    int width = cut->input->width, height = cut->input->height;
    int u_begin = 0, u_end = width, v_begin = 0, v_end = height;
    struct cut across = *cut;
    struct weir_affine only_u = *cut->map, only_v = *cut->map;
    only_u.m[4] = 0;
    only_u.m[5] = only_v.m[2] = 0.5f;
    only_v.m[0] = 0;
    across.map = &only_u;
    while (u_begin < u_end && !is_inside(&across, u_begin, 0)) {
        u_begin++;
    }
    while (u_end > u_begin && !is_inside(&across, u_end - 1, 0)) {
        u_end--;
    }
    across.map = &only_v;
    while (v_begin < v_end && !is_inside(&across, 0, v_begin)) {
        v_begin++;
    }
    while (v_end > v_begin && !is_inside(&across, 0, v_end - 1)) {
        v_end--;
    }
    for (int v = 0; v < height; v++) {
        bool is_row = v >= v_begin && v < v_end;
        emit_fill(cut, 0, v, is_row ? u_begin : width);
        emit_fill(cut, u_end, v, is_row ? width - u_end : 0);
    }
    for (int u = u_begin; u < u_end && v_begin < v_end;) {
        u += cut_strip(cut, u, WEIR_MIN(STRIP, u_end - u), v_begin, v_end);
    }
}

/* n pixels of row v, from column u on. */
static void turn_row(const struct cut *cut, int u, int v, int n)
{
    float rows[3][STRIP] = {{0}};
    bool inside[STRIP];
    for (int i = 0; i < n; i++) {
        inside[i] = is_inside(cut, u + i, v);
        for (int k = 0; k < cut->n_planes && inside[i]; k++) {
            turn_pixel(&cut->planes[k], cut->map, u + i, v, i, rows + k);
        }
    }
    convert(cut->view, cut->input->channels, n, rows);
    for (int i = 0; i < n; i++) {
        if (!inside[i]) {
            rows[0][i] = rows[1][i] = rows[2][i] = cut->fill;
        }
    }
    emit(cut, u, v, n, rows);
}

static void cut_turned(struct cut *cut)
{
    const float *m = cut->map->m;
    int width = cut->input->width;
    for (int k = 0; k < cut->n_planes; k++) {
        cut->planes[k].n_u = samples_along(m[0], m[3], &cut->planes[k]);
        cut->planes[k].n_v = samples_along(m[1], m[4], &cut->planes[k]);
    }
    for (int v = 0; v < cut->input->height; v++) {
        for (int u = 0; u < width; u += STRIP) {
            turn_row(cut, u, v, WEIR_MIN(STRIP, width - u));
        }
    }
}

void weir_view_cut_input(const struct weir_view *view, const struct weir_affine *map, float fill,
                         const struct weir_view_input *input, void *out)
{
    struct cut cut = {.view = view, .map = map, .input = input, .fill = fill, .out = out};
    if (view->form == WEIR_VIEW_NONE || view->width < 1 || view->height < 1) {
        for (int v = 0; v < input->height; v++) {
            emit_fill(&cut, 0, v, input->width);
        }
        return;
    }
    cut.n_planes = count_planes(view, input->channels);
    for (int i = 0; i < cut.n_planes; i++) {
        cut.planes[i] = plane_of(view, i);
    }
    if (map->m[1] == 0 && map->m[3] == 0) {
        cut_straight(&cut);
    } else {
        cut_turned(&cut);
    }
}

void weir_view_cut(const struct weir_view *view, const struct weir_affine *map, uint8_t fill,
                   struct weir_image *out)
{
    const struct weir_view_input input = {.width = out->width,
                                          .height = out->height,
                                          .channels = out->channels,
                                          .is_u8 = true,
                                          .scale = {1, 1, 1}};
    weir_view_cut_input(view, map, fill, &input, out->pixels);
}

weir_status weir_view_to_image(const struct weir_view *view, int max_side, struct weir_image *out,
                               struct weir_error *err)
{
    int longer = WEIR_MAX(view->width, view->height);
    float scale = max_side > 0 && longer > max_side ? (float)longer / (float)max_side : 1;
    struct weir_image image;
    if (view->form == WEIR_VIEW_NONE || view->width < 1 || view->height < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the picture has no pixels");
    }
    int width = WEIR_MAX(1, (int)lrintf((float)view->width / scale));
    int height = WEIR_MAX(1, (int)lrintf((float)view->height / scale));
    WEIR_TRY(weir_image_init(&image, width, height, view->form == WEIR_VIEW_GREY ? 1 : 3, err));
    weir_view_cut(view,
                  &(struct weir_affine){{(float)view->width / (float)width, 0, 0, 0,
                                         (float)view->height / (float)height, 0}},
                  0, &image);
    *out = image;
    return WEIR_OK;
}
