#include "vision/face.h"

#include "base/macros.h"

#include <math.h>

/* What recognisers are trained with, in 112 × 112; points count from the centre of the first pixel. */
#define NORM_SIDE 112
#define HALF      0.5F /* From there to its edge, where maps count from. */
static const float template_points[2 * WEIR_FACE_POINTS] = {38.2946F, 51.6963F, 73.5318F, 51.5014F,
                                                            56.0252F, 71.7366F, 41.5493F, 92.3655F,
                                                            70.7299F, 92.2041F};

/* Where a detector's box of a face lies when its points lie on the template. */
static const struct weir_box template_box = {11.7F, 11.6F, 87.9F, 102.7F};

/* What is looked at of 112 × 112: the inner face, with its middle in the middle, inside the box. */
#define INNER_LEFT   20
#define INNER_RIGHT  (NORM_SIDE - INNER_LEFT)
#define INNER_TOP    20
#define INNER_BOTTOM 100
#define N_INNER      ((INNER_RIGHT - INNER_LEFT) * (INNER_BOTTOM - INNER_TOP))

#define BLACK 10
#define WHITE 245

/* Variance of the Laplacian of sharp faces, the median, by the width of the box in the picture: between that of pictures without
 * noise and that of a video with noise of 2.5 grey values, which is twice as high. Wider ones are as the last. */
static const struct {
    float width, variance;
} sharp_faces[] = {{16, 9}, {24, 17.5F}, {32, 30}, {48, 70}, {72, 113}, {110, 172}};

const struct weir_face_limits weir_face_limits_usual = {
    .min_width = 40,
    .min_sharpness = 0.25F,
    .max_yaw = 0.35F,
    .min_pitch = 0.35F,
    .max_pitch = 0.8F,
    .max_roll = 0.6F,
    .min_brightness = 40,
    .max_brightness = 220,
    .max_clipped = 0.2F,
    .max_sides = 2.5F,
    .max_residual = 6,
};

/* ---- where a face is cut ---- */

static void mean_of(const float *points, size_t n, double mean[2])
{
    mean[0] = mean[1] = 0;
    for (size_t i = 0; i < n; i++) {
        mean[0] += (double)points[2 * i] / (double)n;
        mean[1] += (double)points[2 * i + 1] / (double)n;
    }
}

/* As complex numbers: to = (a + ib)(from - m) + t has the least squares for a + ib = Σ conj(from) to / Σ |from|². */
bool weir_similarity(const float *from, const float *to, size_t n, struct weir_affine *out,
                     float *out_residual)
{
    double m[2], t[2], a = 0, b = 0, from_square = 0, to_square = 0;
    mean_of(from, n, m);
    mean_of(to, n, t);
    for (size_t i = 0; i < n; i++) {
        double x = from[2 * i] - m[0], y = from[2 * i + 1] - m[1];
        double u = to[2 * i] - t[0], v = to[2 * i + 1] - t[1];
        a += x * u + y * v;
        b += x * v - y * u;
        from_square += x * x + y * y;
        to_square += u * u + v * v;
    }
    double fit = a * a + b * b; /* At most from_square × to_square, which is a perfect fit. */
    if (!(fit > 1e-12 * from_square * to_square) || !isfinite(fit) ||
        !isfinite(from_square / fit)) {
        return false;
    }
    double left = WEIR_MAX(to_square - fit / from_square, 0);
    double c = a * from_square / fit,
           s = -b * from_square / fit; /* The inverse of (a + ib) / from_square. */
    *out = (struct weir_affine){{(float)c, (float)-s, (float)(m[0] - c * t[0] + s * t[1]), (float)s,
                                 (float)c, (float)(m[1] - s * t[0] - c * t[1])}};
    *out_residual = (float)sqrt(left / (double)n);
    return true;
}

/* The map that shows `shown` in the rectangle `at`. */
static struct weir_affine stretch(const struct weir_box *at, const struct weir_box *shown)
{
    float x = shown->w / at->w, y = shown->h / at->h;
    return (struct weir_affine){{x, 0, shown->x - x * at->x, 0, y, shown->y - y * at->y}};
}

static struct weir_face find_by_box(const struct weir_detection *detection,
                                    const struct weir_face_align *align)
{
    struct weir_face_place place = align->place;
    if (!(place.right > place.left) || !(place.bottom > place.top)) {
        place = (struct weir_face_place){0, 0, 1, 1};
    }
    float width = (float)align->width, height = (float)align->height;
    struct weir_box at = {place.left * width, place.top * height,
                          (place.right - place.left) * width, (place.bottom - place.top) * height};
    return (struct weir_face){
        .map = stretch(&at, &detection->box),
        .norm = stretch(&template_box, &at),
        .residual = NAN,
    };
}

struct weir_face weir_face_find(const struct weir_detection *detection,
                                const struct weir_face_align *align)
{
    struct weir_face face;
    float from[2 * WEIR_FACE_POINTS], to[2 * WEIR_FACE_POINTS];
    if (align->by_box || !detection->has_points) {
        return find_by_box(detection, align);
    }
    for (size_t i = 0; i < 2 * (size_t)WEIR_FACE_POINTS; i++) {
        from[i] = detection->points[i] + HALF;
        to[i] = template_points[i] + HALF;
    }
    struct weir_affine map;
    if (!weir_similarity(from, to, WEIR_FACE_POINTS, &map, &face.residual)) {
        return find_by_box(detection, align);
    }
    float side = (float)WEIR_MIN(align->width, align->height);
    struct weir_box norm = {0, 0, NORM_SIDE, NORM_SIDE};
    struct weir_box at = {((float)align->width - side) / 2, ((float)align->height - side) / 2, side,
                          side};
    struct weir_affine to_norm = stretch(&at, &norm); /* from the cut to the template */
    face.norm = stretch(&norm, &at);
    const float *m = map.m, *s = to_norm.m;
    face.map = (struct weir_affine){{m[0] * s[0], m[1] * s[4], m[0] * s[2] + m[1] * s[5] + m[2],
                                     m[3] * s[0], m[4] * s[4], m[3] * s[2] + m[4] * s[5] + m[5]}};
    return face;
}

void weir_face_cut(const struct weir_view *view, const struct weir_detection *detection,
                   const struct weir_face_align *align, struct weir_image *out,
                   struct weir_face *out_face)
{
    *out_face = weir_face_find(detection, align);
    weir_view_cut(view, &out_face->map, WEIR_FACE_AROUND, out);
}

/* ---- how good it is ---- */

/* Between the widths of the table by the logarithm of the width. */
static float sharp_variance(float width)
{
    size_t n = WEIR_ARRAY_LEN(sharp_faces);
    size_t i = 1;
    while (i + 1 < n && width > sharp_faces[i].width) {
        i++;
    }
    float low = logf(sharp_faces[i - 1].width), high = logf(sharp_faces[i].width);
    float share = (logf(width) - low) / (high - low);
    share = share > 0 ? WEIR_MIN(share, 1) : 0;
    return sharp_faces[i - 1].variance +
           share * (sharp_faces[i].variance - sharp_faces[i - 1].variance);
}

static float laplacian_variance(const uint8_t *grey)
{
    int64_t sum = 0, squares = 0;
    for (int y = INNER_TOP; y < INNER_BOTTOM; y++) {
        for (int x = INNER_LEFT; x < INNER_RIGHT; x++) {
            const uint8_t *at = &grey[y * NORM_SIDE + x];
            int value = at[-1] + at[1] + at[-NORM_SIDE] + at[NORM_SIDE] - 4 * at[0];
            sum += value;
            squares += (int64_t)value * value;
        }
    }
    double mean = (double)sum / N_INNER;
    return (float)((double)squares / N_INNER - mean * mean);
}

static void judge_light(const uint8_t *grey, struct weir_face_quality *quality)
{
    int64_t halves[2] = {0, 0};
    int32_t n_clipped = 0;
    for (int y = INNER_TOP; y < INNER_BOTTOM; y++) {
        for (int x = INNER_LEFT; x < INNER_RIGHT; x++) {
            uint8_t value = grey[y * NORM_SIDE + x];
            halves[x >= NORM_SIDE / 2] += value;
            n_clipped += value < BLACK || value > WHITE;
        }
    }
    float left = 2 * (float)halves[0] / N_INNER, right = 2 * (float)halves[1] / N_INNER;
    quality->brightness = (float)(halves[0] + halves[1]) / N_INNER;
    quality->clipped = (float)n_clipped / N_INNER;
    /* A grey level more: black would be infinitely darker. */
    quality->sides = (WEIR_MAX(left, right) + 1) / (WEIR_MIN(left, right) + 1);
}

static void judge_pose(const float *points, struct weir_face_quality *quality)
{
    float eyes_x = points[2] - points[0], eyes_y = points[3] - points[1];
    float middle_x = (points[0] + points[2]) / 2, middle_y = (points[1] + points[3]) / 2;
    float nose_x = points[4] - middle_x, nose_y = points[5] - middle_y;
    float mouth_x = (points[6] + points[8]) / 2 - middle_x;
    float mouth_y = (points[7] + points[9]) / 2 - middle_y;
    quality->yaw = (nose_x * eyes_x + nose_y * eyes_y) / (eyes_x * eyes_x + eyes_y * eyes_y);
    quality->pitch = (nose_y * eyes_x - nose_x * eyes_y) / (mouth_y * eyes_x - mouth_x * eyes_y);
    quality->roll = atan2f(eyes_y, eyes_x);
}

/* The width that a face has as it is looked at. A cut that is smaller than the template shows no more than its own pixels, and
 * those between two of the picture's are blurred a little: it is as sharp as a face of 0.8 of its width. */
static float looked_at_width(const struct weir_face *face, const struct weir_detection *detection)
{
    float share = hypotf(face->norm.m[0], face->norm.m[3]);
    return share < 1 ? WEIR_MIN(detection->box.w, 0.8F * template_box.w * share) : detection->box.w;
}

struct weir_face_quality weir_face_judge(const struct weir_image *cut, const struct weir_face *face,
                                         const struct weir_detection *detection)
{
    uint8_t grey[NORM_SIDE * NORM_SIDE];
    struct weir_image norm = {
        .width = NORM_SIDE, .height = NORM_SIDE, .channels = 1, .pixels = grey, .is_view = true};
    struct weir_view view = weir_view_of(cut);
    weir_view_cut(&view, &face->norm, WEIR_FACE_AROUND, &norm);
    struct weir_face_quality quality = {
        .width = detection->box.w,
        .sharpness = laplacian_variance(grey) / sharp_variance(looked_at_width(face, detection)),
        .yaw = NAN,
        .pitch = NAN,
        .roll = NAN,
        .residual = face->residual,
    };
    judge_light(grey, &quality);
    if (detection->has_points) {
        judge_pose(detection->points, &quality);
    }
    return quality;
}

const char *weir_face_refuse(const struct weir_face_quality *quality,
                             const struct weir_face_limits *limits)
{
    /* A value, its limit (0 or NaN: none), and what is wrong beyond it. The graver comes first. */
    const struct {
        float value, limit;
        bool is_least;
        const char *why;
    } rules[] = {
        {quality->residual, limits->max_residual, false, "not a face"},
        {quality->width, limits->min_width, true, "too small"},
        {fabsf(quality->yaw), limits->max_yaw, false, "turned away"},
        {quality->pitch, limits->min_pitch, true, "looks up"},
        {quality->pitch, limits->max_pitch, false, "looks down"},
        {fabsf(quality->roll), limits->max_roll, false, "tilted"},
        {quality->brightness, limits->min_brightness, true, "too dark"},
        {quality->brightness, limits->max_brightness, false, "too bright"},
        {quality->clipped, limits->max_clipped, false, "black or white in part"},
        {quality->sides, limits->max_sides, false, "lit from one side"},
        {quality->sharpness, limits->min_sharpness, true, "blurred"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        bool is_beyond =
            rules[i].is_least ? rules[i].value < rules[i].limit : rules[i].value > rules[i].limit;
        if (rules[i].limit != 0 && is_beyond) {
            return rules[i].why;
        }
    }
    return NULL;
}
