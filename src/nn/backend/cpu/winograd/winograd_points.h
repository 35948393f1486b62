/* Patches and kernels to their points and back, 16 channels at a time. Included by
 * winograd_avx512.c. */
#include "winograd_private.h"

#include <string.h>

/* 16 floats, whatever the machine's registers hold; loads and stores need no alignment. */
typedef float vec __attribute__((vector_size(64)));
typedef int32_t veci __attribute__((vector_size(64)));

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The polynomial's points 0, +-A, +-B and infinity. */
#define A  0.625F
#define B  1.5F
#define A2 (A * A)
#define B2 (B * B)

ALWAYS_INLINE vec load(const float *p, size_t n)
{
    vec v = {0};
    if (n >= WINOGRAD_LANES) {
        memcpy(&v, p, sizeof(v)); /* of constant size: one instruction */
    } else {
        memcpy(&v, p, n * sizeof(*p));
    }
    return v;
}

ALWAYS_INLINE void store(float *p, vec v, size_t n)
{
    if (n >= WINOGRAD_LANES) {
        memcpy(p, &v, sizeof(v));
    } else {
        memcpy(p, &v, n * sizeof(*p));
    }
}

/* B' x: six values to their points. */
ALWAYS_INLINE void values_to_points(const vec x[6], vec p[6])
{
    vec even_a = x[4] - B2 * x[2], odd_a = A * (x[3] - B2 * x[1]);
    vec even_b = x[4] - A2 * x[2], odd_b = B * (x[3] - A2 * x[1]);
    p[0] = x[4] - (A2 + B2) * x[2] + A2 * B2 * x[0];
    p[1] = even_a + odd_a;
    p[2] = even_a - odd_a;
    p[3] = even_b + odd_b;
    p[4] = even_b - odd_b;
    p[5] = x[5] - (A2 + B2) * x[3] + A2 * B2 * x[1];
}

/* A' p: four results from their points. */
ALWAYS_INLINE void results_from_points(const vec p[6], vec y[4])
{
    vec even_a = p[1] + p[2], odd_a = p[1] - p[2];
    vec even_b = p[3] + p[4], odd_b = p[3] - p[4];
    y[0] = p[0] + even_a + even_b;
    y[1] = A * odd_a + B * odd_b;
    y[2] = A2 * even_a + B2 * even_b;
    y[3] = A * A2 * odd_a + (B * B2 * odd_b + p[5]);
}

/* A dy: four gradients of results to their points. */
ALWAYS_INLINE void gradients_to_points(const vec dy[4], vec p[6])
{
    vec even_a = dy[0] + A2 * dy[2], odd_a = A * (dy[1] + A2 * dy[3]);
    vec even_b = dy[0] + B2 * dy[2], odd_b = B * (dy[1] + B2 * dy[3]);
    p[0] = dy[0];
    p[1] = even_a + odd_a;
    p[2] = even_a - odd_a;
    p[3] = even_b + odd_b;
    p[4] = even_b - odd_b;
    p[5] = dy[3];
}

/* The divisor of a point: the product of its differences from the other points. */
#define PER_0 (1 / (A2 * B2))
#define PER_A (1 / (2 * A2 * (A2 - B2)))
#define PER_B (1 / (2 * B2 * (B2 - A2)))

/* G g: a row of a kernel to its points. */
ALWAYS_INLINE void kernel_to_points(const vec g[3], vec p[6])
{
    vec even_a = PER_A * g[0] + PER_A * A2 * g[2], odd_a = PER_A * A * g[1];
    vec even_b = PER_B * g[0] + PER_B * B2 * g[2], odd_b = PER_B * B * g[1];
    p[0] = PER_0 * g[0];
    p[1] = even_a + odd_a;
    p[2] = even_a - odd_a;
    p[3] = even_b + odd_b;
    p[4] = even_b - odd_b;
    p[5] = g[2];
}

/* G' p: the gradient of a row of a kernel from its points. */
ALWAYS_INLINE void kernel_from_points(const vec p[6], vec g[3])
{
    vec even_a = PER_A * (p[1] + p[2]), odd_a = PER_A * A * (p[1] - p[2]);
    vec even_b = PER_B * (p[3] + p[4]), odd_b = PER_B * B * (p[3] - p[4]);
    g[0] = PER_0 * p[0] + even_a + even_b;
    g[1] = odd_a + odd_b;
    g[2] = A2 * even_a + B2 * even_b + p[5];
}

/* A square of pixels; some may lie outside the image. */
struct square {
    ptrdiff_t first;      /* float of the picture's memory where its first pixel is or would be */
    ptrdiff_t row, pixel; /* floats from one to the next */
    int32_t h_begin, h_end, w_begin, w_end; /* pixels that are inside */
    bool is_inside;                         /* all are */
};

/* Cells `size` x `size` at row h and column w of picture i_image. */
ALWAYS_INLINE struct square square_at(size_t i_image, int32_t h, int32_t w, int32_t size,
                                      int32_t height, int32_t width, int32_t c)
{
    struct square s = {.row = (ptrdiff_t)width * c, .pixel = c};
    s.first = (ptrdiff_t)i_image * height * s.row + h * s.row + w * s.pixel;
    s.h_begin = WEIR_MAX(-h, 0);
    s.h_end = WEIR_MIN(height - h, size);
    s.w_begin = WEIR_MAX(-w, 0);
    s.w_end = WEIR_MIN(width - w, size);
    s.is_inside = s.h_begin == 0 && s.w_begin == 0 && s.h_end == size && s.w_end == size;
    return s;
}

ALWAYS_INLINE bool is_pixel_inside(const struct square *s, int32_t i, int32_t j)
{
    return i >= s->h_begin && i < s->h_end && j >= s->w_begin && j < s->w_end;
}

/* n channels of pixel (i, j); zeros if it lies outside. */
ALWAYS_INLINE vec load_pixel(const float *x, const struct square *s, int32_t i, int32_t j, size_t n,
                             bool is_inside)
{
    if (!is_inside && !is_pixel_inside(s, i, j)) {
        return (vec){0};
    }
    return load(x + s->first + i * s->row + j * s->pixel, n);
}

/* n <= 16 channels of a patch of x to its points, `point` floats apart. */
ALWAYS_INLINE void patch_to_points(const float *x, const struct square *s, size_t n, float *to,
                                   size_t point, bool is_inside)
{
    vec rows[6][6];
#pragma GCC unroll 6
    for (int32_t j = 0; j < 6; j++) {
        vec column[6], points[6];
        for (int32_t i = 0; i < 6; i++) {
            column[i] = load_pixel(x, s, i, j, n, is_inside);
        }
        values_to_points(column, points);
        for (int32_t i = 0; i < 6; i++) {
            rows[i][j] = points[i];
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < 6; i++) {
        vec points[6];
        values_to_points(rows[i], points);
        for (size_t j = 0; j < 6; j++) {
            store(to + (i * 6 + j) * point, points[j], WINOGRAD_LANES);
        }
    }
}

/* n <= 16 channels of a patch of dy to its points; their sum over the patch to sum. */
ALWAYS_INLINE void gradient_to_points(const float *dy, const struct square *s, size_t n, float *to,
                                      size_t point, float *sum, bool is_inside)
{
    vec rows[6][4], total = load(sum, n);
#pragma GCC unroll 4
    for (int32_t j = 0; j < 4; j++) {
        vec column[4], points[6];
        for (int32_t i = 0; i < 4; i++) {
            column[i] = load_pixel(dy, s, i, j, n, is_inside);
        }
        total += (column[0] + column[1]) + (column[2] + column[3]);
        gradients_to_points(column, points);
        for (int32_t i = 0; i < 6; i++) {
            rows[i][j] = points[i];
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < 6; i++) {
        vec points[6];
        gradients_to_points(rows[i], points);
        for (size_t j = 0; j < 6; j++) {
            store(to + (i * 6 + j) * point, points[j], WINOGRAD_LANES);
        }
    }
    store(sum, total, n);
}

/* What is done with results before they are stored. */
struct winograd_tail {
    vec bias;
    const float *added;
    bool has_relu;
};

/* n <= 16 channels of a patch of y from its points. */
ALWAYS_INLINE void patch_from_points(const float *from, size_t point,
                                     const struct winograd_tail *tail, float *y,
                                     const struct square *s, size_t n, bool is_inside)
{
    vec rows[4][6];
#pragma GCC unroll 6
    for (size_t j = 0; j < 6; j++) {
        vec column[6], results[4];
        for (size_t i = 0; i < 6; i++) {
            column[i] = load(from + (i * 6 + j) * point, WINOGRAD_LANES);
        }
        results_from_points(column, results);
        for (size_t i = 0; i < 4; i++) {
            rows[i][j] = results[i];
        }
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        vec results[4];
        results_from_points(rows[i], results);
        for (int32_t j = 0; j < 4; j++) {
            if (!is_inside && !is_pixel_inside(s, i, j)) {
                continue;
            }
            ptrdiff_t at = s->first + i * s->row + j * s->pixel;
            vec v = results[j] + tail->bias;
            if (tail->added) {
                v += load(tail->added + at, n);
            }
            if (tail->has_relu) {
                v = (vec)((veci)v & ~(v < 0)); /* NaN is not below 0 */
            }
            store(y + at, v, n);
        }
    }
}
