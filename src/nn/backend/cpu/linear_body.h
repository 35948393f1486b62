/* The bodies of linear.h: included by one file per instruction set, which names the table
 * (LINEAR_TABLE). */
#include "linear.h"
#include "nn/backend/cpu/vector/vector_elem.h"

/* Rows of weights and images of a block, whose sums are in registers at once. */
enum { ROWS = 4, IMAGES = 4 };

/* Elements of dx, of all images, that stay in the first-level cache while all rows of weights are
 * added to them. */
enum { NEAR_ELEMS = 4096 };

#define INLINE static inline __attribute__((always_inline))

INLINE float sum_lanes(vec v)
{
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return v[0] + v[1];
}

/* sums += x * w of LANES elements, or of the n < LANES that are left. */
INLINE void add_products(vec sums[IMAGES][ROWS], const float *x, const float *weights, size_t n_in,
                         size_t n, size_t n_images, size_t n_rows)
{
    vec w[ROWS];
    for (size_t r = 0; r < n_rows; r++) {
        w[r] = load_floats(weights + r * n_in, n);
    }
    for (size_t i = 0; i < n_images; i++) {
        vec v = load_floats(x + i * n_in, n);
        for (size_t r = 0; r < n_rows; r++) {
            sums[i][r] += v * w[r];
        }
    }
}

INLINE void forward_block(struct linear_shape s, const float *x, const float *weights,
                          const float *bias, float *y, size_t n_images, size_t n_rows)
{
    vec sums[IMAGES][ROWS] = {0};
    size_t at = 0;
    for (; at + LANES <= s.n_in; at += LANES) {
        add_products(sums, x + at, weights + at, s.n_in, LANES, n_images, n_rows);
    }
    if (at < s.n_in) {
        add_products(sums, x + at, weights + at, s.n_in, s.n_in - at, n_images, n_rows);
    }
    for (size_t i = 0; i < n_images; i++) {
        for (size_t r = 0; r < n_rows; r++) {
            y[i * s.n_out + r] = sum_lanes(sums[i][r]) + (bias ? bias[r] : 0);
        }
    }
}

/* Blocks of constant size, which the compiler keeps in registers. */
INLINE void forward_rows(struct linear_shape s, const float *x, const float *weights,
                         const float *bias, float *y, size_t n_rows)
{
    size_t i = 0;
    for (; i + IMAGES <= s.n; i += IMAGES) {
        forward_block(s, x + i * s.n_in, weights, bias, y + i * s.n_out, IMAGES, n_rows);
    }
    for (; i + 2 <= s.n; i += 2) {
        forward_block(s, x + i * s.n_in, weights, bias, y + i * s.n_out, 2, n_rows);
    }
    if (i < s.n) {
        forward_block(s, x + i * s.n_in, weights, bias, y + i * s.n_out, 1, n_rows);
    }
}

static void forward(struct linear_shape s, const float *x, const float *weights, const float *bias,
                    float *y)
{
    size_t k = 0;
    for (; k + ROWS <= s.n_out; k += ROWS) {
        forward_rows(s, x, weights + k * s.n_in, bias ? bias + k : NULL, y + k, ROWS);
    }
    for (; k < s.n_out; k++) {
        forward_rows(s, x, weights + k * s.n_in, bias ? bias + k : NULL, y + k, 1);
    }
}

/* dx += of LANES elements, or of the n < LANES that are left. */
INLINE void add_rows(float *dx, const float *weights, vec dy[IMAGES][ROWS], size_t n_in, size_t n,
                     size_t n_images, size_t n_rows)
{
    vec w[ROWS];
    for (size_t r = 0; r < n_rows; r++) {
        w[r] = load_floats(weights + r * n_in, n);
    }
    for (size_t i = 0; i < n_images; i++) {
        vec v = load_floats(dx + i * n_in, n);
        for (size_t r = 0; r < n_rows; r++) {
            v += dy[i][r] * w[r];
        }
        store_floats(dx + i * n_in, v, n);
    }
}

/* Of elements 0 .. len, which are part of each image's. */
INLINE void backward_block(struct linear_shape s, const float *dy, const float *weights, float *dx,
                           size_t len, size_t n_images, size_t n_rows)
{
    vec factors[IMAGES][ROWS];
    size_t at = 0;
    for (size_t i = 0; i < n_images; i++) {
        for (size_t r = 0; r < n_rows; r++) {
            factors[i][r] = splat(dy[i * s.n_out + r]);
        }
    }
    for (; at + LANES <= len; at += LANES) {
        add_rows(dx + at, weights + at, factors, s.n_in, LANES, n_images, n_rows);
    }
    if (at < len) {
        add_rows(dx + at, weights + at, factors, s.n_in, len - at, n_images, n_rows);
    }
}

INLINE void backward_rows(struct linear_shape s, const float *dy, const float *weights, float *dx,
                          size_t len, size_t n_rows)
{
    size_t i = 0;
    for (; i + IMAGES <= s.n; i += IMAGES) {
        backward_block(s, dy + i * s.n_out, weights, dx + i * s.n_in, len, IMAGES, n_rows);
    }
    for (; i + 2 <= s.n; i += 2) {
        backward_block(s, dy + i * s.n_out, weights, dx + i * s.n_in, len, 2, n_rows);
    }
    if (i < s.n) {
        backward_block(s, dy + i * s.n_out, weights, dx + i * s.n_in, len, 1, n_rows);
    }
}

static void backward(struct linear_shape s, const float *dy, const float *weights, bool adds,
                     float *dx)
{
    size_t most = WEIR_MAX(NEAR_ELEMS / s.n / LANES, (size_t)1) * LANES;
    for (size_t at = 0; at < s.n_in; at += most) {
        size_t len = WEIR_MIN(most, s.n_in - at), k = 0;
        /* Always adds to memory: of two terms the compiler may round either first. */
        for (size_t i = 0; !adds && i < s.n; i++) {
            memset(dx + i * s.n_in + at, 0, len * sizeof(*dx));
        }
        for (; k + ROWS <= s.n_out; k += ROWS) {
            backward_rows(s, dy + k, weights + k * s.n_in + at, dx + at, len, ROWS);
        }
        for (; k < s.n_out; k++) {
            backward_rows(s, dy + k, weights + k * s.n_in + at, dx + at, len, 1);
        }
    }
}

/* LANES elements of the gradient's rows, or the n < LANES that are left. */
INLINE void put_products(struct linear_shape s, const float *dy, const float *x, float *gradient,
                         size_t n, size_t n_rows)
{
    vec sums[ROWS], first = load_floats(x, n);
    for (size_t r = 0; r < n_rows; r++) {
        sums[r] = dy[r] * first; /* not added to 0, which would take the sign of a zero */
    }
    for (size_t i = 1; i < s.n; i++) {
        vec v = load_floats(x + i * s.n_in, n);
        for (size_t r = 0; r < n_rows; r++) {
            sums[r] += dy[i * s.n_out + r] * v;
        }
    }
    for (size_t r = 0; r < n_rows; r++) {
        store_floats(gradient + r * s.n_in, sums[r], n);
    }
}

INLINE void gradient_rows(struct linear_shape s, const float *dy, const float *x, float *gradient,
                          size_t n_rows)
{
    size_t at = 0;
    for (; at + LANES <= s.n_in; at += LANES) {
        put_products(s, dy, x + at, gradient + at, LANES, n_rows);
    }
    if (at < s.n_in) {
        put_products(s, dy, x + at, gradient + at, s.n_in - at, n_rows);
    }
}

static void weight_gradient(struct linear_shape s, const float *dy, const float *x, float *gradient,
                            float *bias_gradient)
{
    size_t k = 0;
    for (; k + ROWS <= s.n_out; k += ROWS) {
        gradient_rows(s, dy + k, x, gradient + k * s.n_in, ROWS);
    }
    for (; k < s.n_out; k++) {
        gradient_rows(s, dy + k, x, gradient + k * s.n_in, 1);
    }
    for (k = 0; bias_gradient && k < s.n_out; k++) {
        bias_gradient[k] = dy[k];
        for (size_t i = 1; i < s.n; i++) {
            bias_gradient[k] += dy[i * s.n_out + k];
        }
    }
}

const struct linear_kernels LINEAR_TABLE = {
    .forward = forward, .backward = backward, .weight_gradient = weight_gradient};
