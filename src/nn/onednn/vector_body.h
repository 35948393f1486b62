/* The bodies of vector.h: included by one file per instruction set, which names the table. */
#include "vector.h"

#include <math.h>
#include <string.h>

/* 16 floats, whatever the machine's registers hold; loads and stores need no alignment. */
typedef float vec __attribute__((vector_size(64)));
typedef double vecd __attribute__((vector_size(128)));
typedef int32_t veci __attribute__((vector_size(64)));

#define LANES 16

/* Before a loop whose turns do not depend on each other, though its arrays may be the same one. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

static inline vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline vec load_some(const float *p, size_t n)
{
    vec v = {0};
    if (n >= LANES) {
        return load(p);
    }
    for (size_t i = 0; i < n; i++) {
        v[i] = p[i];
    }
    return v;
}

static inline void store_some(float *p, vec v, size_t n)
{
    if (n >= LANES) {
        memcpy(p, &v, sizeof(v)); /* of constant size: one instruction */
    } else {
        memcpy(p, &v, n * sizeof(*p));
    }
}

/* to[0..n) += the chunk's sums, in double. */
static inline void flush(double *to, vec sums, size_t n)
{
    if (n >= LANES) {
        vecd wide = __builtin_convertvector(sums, vecd), old;
        memcpy(&old, to, sizeof(old));
        old += wide;
        memcpy(to, &old, sizeof(old));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i] += (double)sums[i];
    }
}

/* Where `mask` is not zero, v; else 0. NaN in v passes. */
static inline vec keep(veci mask, vec v)
{
    return (vec)((veci)v & mask);
}

static void norm_sums(const float *x, size_t n_pixels, size_t c, double *sum, double *squares)
{
    memset(sum, 0, c * sizeof(*sum));
    memset(squares, 0, c * sizeof(*squares));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k;
            vec s = {0}, q = {0}, s2 = {0}, q2 = {0};
            size_t p = first;
            for (; p + 1 < end; p += 2) {
                vec a = load_some(x + p * c + k, n), b = load_some(x + (p + 1) * c + k, n);
                s += a;
                q += a * a;
                s2 += b;
                q2 += b * b;
            }
            if (p < end) {
                vec a = load_some(x + p * c + k, n);
                s += a;
                q += a * a;
            }
            flush(sum + k, s + s2, n);
            flush(squares + k, q + q2, n);
        }
    }
}

static void norm_apply(const float *x, const float *residual, float *y, size_t n_pixels, size_t c,
                       const float *restrict scale, const float *restrict shift, bool has_relu)
{
    for (size_t p = 0; p < n_pixels; p++, x += c, y += c) {
        if (!residual && !has_relu) {
            INDEPENDENT
            for (size_t k = 0; k < c; k++) {
                y[k] = x[k] * scale[k] + shift[k];
            }
        } else if (!residual) {
            INDEPENDENT
            for (size_t k = 0; k < c; k++) {
                float v = x[k] * scale[k] + shift[k];
                y[k] = v < 0 ? 0 : v;
            }
        } else {
            INDEPENDENT
            for (size_t k = 0; k < c; k++) {
                float v = x[k] * scale[k] + shift[k] + residual[k];
                y[k] = has_relu && v < 0 ? 0 : v;
            }
            residual += c;
        }
    }
}

static void norm_backward_sums(const float *dy, const float *y, const float *x, size_t n_pixels,
                               size_t c, const float *mean, double *sum, double *products)
{
    memset(sum, 0, c * sizeof(*sum));
    memset(products, 0, c * sizeof(*products));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k;
            vec s = {0}, q = {0}, m = load_some(mean + k, n);
            for (size_t p = first; p < end; p++) {
                vec g = load_some(dy + p * c + k, n);
                if (y) {
                    g = keep(load_some(y + p * c + k, n) > 0, g);
                }
                s += g;
                q += g * (load_some(x + p * c + k, n) - m);
            }
            flush(sum + k, s, n);
            flush(products + k, q, n);
        }
    }
}

/* The common form: no sums, dx beside or over dy. */
static void norm_backward_plain(const struct norm_gradient *job)
{
    const float *scale = job->scale, *x_factor = job->x_factor, *shift = job->shift;
    for (size_t at = 0; at < job->n_pixels * job->c; at += job->c) {
        const float *dy = job->dy + at, *x = job->x + at;
        float *dx = job->dx + at;
        if (job->y) {
            const float *y = job->y + at;
            INDEPENDENT
            for (size_t k = 0; k < job->c; k++) {
                float g = y[k] > 0 ? dy[k] : 0;
                dx[k] = scale[k] * g + x_factor[k] * x[k] + shift[k];
            }
        } else {
            INDEPENDENT
            for (size_t k = 0; k < job->c; k++) {
                dx[k] = scale[k] * dy[k] + x_factor[k] * x[k] + shift[k];
            }
        }
    }
}

static void norm_backward(const struct norm_gradient *job)
{
    if (!job->residual_dx && !job->adds && job->dx) {
        norm_backward_plain(job);
        return;
    }
    for (size_t first = 0; first < job->n_pixels * job->c; first += job->c) {
        for (size_t k = 0; k < job->c; k += LANES) {
            size_t n = job->c - k, at = first + k;
            vec g = load_some(job->dy + at, n);
            if (job->y) {
                g = keep(load_some(job->y + at, n) > 0, g);
            }
            if (job->dx) {
                vec v = load_some(job->scale + k, n) * g +
                        load_some(job->x_factor + k, n) * load_some(job->x + at, n) +
                        load_some(job->shift + k, n);
                v = job->adds ? v + load_some(job->dx + at, n) : v;
                store_some(job->dx + at, v, n);
            }
            if (job->residual_dx) {
                g = job->residual_adds ? g + load_some(job->residual_dx + at, n) : g;
                store_some(job->residual_dx + at, g, n);
            }
        }
    }
}

static void relu(const float *x, float *y, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] < 0 ? 0 : x[i];
    }
}

static void relu_backward(const float *dy, const float *y, float *dx, bool adds, size_t n)
{
    if (adds) {
        INDEPENDENT
        for (size_t i = 0; i < n; i++) {
            dx[i] += y[i] > 0 ? dy[i] : 0;
        }
        return;
    }
    INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        dx[i] = y[i] > 0 ? dy[i] : 0;
    }
}

static void add(const float *a, const float *b, float *y, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

static void prelu(const float *x, const float *slope, float *y, size_t n_pixels, size_t c)
{
    for (size_t k = 0; k < c; k += LANES) {
        size_t n = c - k;
        vec s = load_some(slope + k, n);
        for (size_t at = k; at < n_pixels * c; at += c) {
            vec v = load_some(x + at, n);
            veci is_negative = v < 0;
            store_some(y + at, keep(is_negative, v * s) + keep(~is_negative, v), n);
        }
    }
}

static void prelu_backward(const float *dy, const float *x, const float *slope, float *dx,
                           bool adds, size_t n_pixels, size_t c, double *slope_sum)
{
    memset(slope_sum, 0, c * sizeof(*slope_sum));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k;
            vec sums = {0}, s = load_some(slope + k, n);
            for (size_t p = first; p < end; p++) {
                size_t at = p * c + k;
                vec g = load_some(dy + at, n), v = load_some(x + at, n);
                veci is_negative = v < 0;
                sums += keep(is_negative, g * v);
                if (dx) {
                    vec d = keep(is_negative, g * s) + keep(~is_negative, g);
                    d = adds ? d + load_some(dx + at, n) : d;
                    store_some(dx + at, d, n);
                }
            }
            flush(slope_sum + k, sums, n);
        }
    }
}

/* Rows [*first, *end) of the input that window `o` covers. */
static void window(int32_t o, const struct weir_pool_params *p, int32_t limit, int32_t *first,
                   int32_t *end)
{
    *first = WEIR_MAX(o * p->stride - p->pad, 0);
    *end = WEIR_MIN(o * p->stride - p->pad + p->kernel, limit);
}

/* Few channels: a window of one channel after the other, as vectors would be mostly empty. */
static void max_pool_few(const float *x, size_t c, int32_t width, const int32_t rows[2],
                         const int32_t columns[2], float *y, int32_t *winners)
{
    for (size_t k = 0; k < c; k++) {
        int32_t best_at = rows[0] * width + columns[0];
        float best = x[(size_t)best_at * c + k];
        for (int32_t h = rows[0]; h < rows[1]; h++) {
            for (int32_t w = columns[0]; w < columns[1]; w++) {
                int32_t at = h * width + w;
                float v = x[(size_t)at * c + k];
                bool wins = (v > best) | (v != v);
                best = wins ? v : best;
                best_at = wins ? at : best_at;
            }
        }
        y[k] = best;
        if (winners) {
            winners[k] = best_at;
        }
    }
}

static void max_pool_pixel(const float *x, size_t c, int32_t width, const int32_t rows[2],
                           const int32_t columns[2], float *restrict y, int32_t *restrict winners)
{
    int32_t at = rows[0] * width + columns[0];
    memcpy(y, x + (size_t)at * c, c * sizeof(float));
    for (size_t k = 0; winners && k < c; k++) {
        winners[k] = at;
    }
    for (int32_t h = rows[0]; h < rows[1]; h++) {
        for (int32_t w = columns[0]; w < columns[1]; w++) {
            at = h * width + w;
            const float *from = x + (size_t)at * c;
            if (winners) {
                for (size_t k = 0; k < c; k++) {
                    /* larger, or not a number: NaN must come through */
                    bool wins = (from[k] > y[k]) | (from[k] != from[k]);
                    y[k] = wins ? from[k] : y[k];
                    winners[k] = wins ? at : winners[k];
                }
            } else {
                for (size_t k = 0; k < c; k++) {
                    y[k] = ((from[k] > y[k]) | (from[k] != from[k])) ? from[k] : y[k];
                }
            }
        }
    }
}

static void max_pool(const float *x, struct weir_shape in, struct weir_shape out,
                     const struct weir_pool_params *pool, float *y, int32_t *winners)
{
    size_t c = (size_t)in.c;
    for (int32_t oh = 0; oh < out.h; oh++) {
        for (int32_t ow = 0; ow < out.w; ow++) {
            int32_t rows[2], columns[2];
            window(oh, pool, in.h, &rows[0], &rows[1]);
            window(ow, pool, in.w, &columns[0], &columns[1]);
            if (c < LANES) {
                max_pool_few(x, c, in.w, rows, columns, y, winners);
            } else {
                max_pool_pixel(x, c, in.w, rows, columns, y, winners);
            }
            y += c;
            winners += winners ? c : 0;
        }
    }
}

static void max_pool_backward(const float *dy, const int32_t *winners, struct weir_shape in,
                              struct weir_shape out, const struct weir_pool_params *pool, float *dx)
{
    size_t c = (size_t)in.c;
    for (size_t i = 0; c < LANES && i < (size_t)out.h * (size_t)out.w; i++, dy += c, winners += c) {
        for (size_t k = 0; k < c; k++) {
            dx[(size_t)winners[k] * c + k] += dy[k];
        }
    }
    for (int32_t oh = 0; c >= LANES && oh < out.h; oh++) {
        for (int32_t ow = 0; ow < out.w; ow++, dy += c, winners += c) {
            int32_t h0, h1, w0, w1;
            window(oh, pool, in.h, &h0, &h1);
            window(ow, pool, in.w, &w0, &w1);
            for (int32_t h = h0; h < h1; h++) {
                for (int32_t w = w0; w < w1; w++) {
                    int32_t at = h * in.w + w;
                    float *restrict to = dx + (size_t)at * c;
                    for (size_t k = 0; k < c; k++) {
                        to[k] += winners[k] == at ? dy[k] : 0;
                    }
                }
            }
        }
    }
}

const struct vector_kernels VECTOR_TABLE = {
    .norm_sums = norm_sums,
    .norm_apply = norm_apply,
    .norm_backward_sums = norm_backward_sums,
    .norm_backward = norm_backward,
    .relu = relu,
    .relu_backward = relu_backward,
    .add = add,
    .prelu = prelu,
    .prelu_backward = prelu_backward,
    .max_pool = max_pool,
    .max_pool_backward = max_pool_backward,
};
