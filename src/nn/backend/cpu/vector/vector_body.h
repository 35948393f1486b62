/* The bodies of vector.h: included by one file per instruction set and type, which names the table
 * (VECTOR_TABLE). */
#include "vector_elem.h"

#include "vector_pool_body.h"
#include "vector_softmax_body.h"

static void input(const float *x, size_t c, size_t hw, void *y_)
{
    elem *y = y_;
    for (size_t k = 0; k < c; k++) {
        for (size_t p = 0; p < hw; p++) {
            y[p * c + k] = put(x[k * hw + p]);
        }
    }
}

static void to_f32(const void *x_, float *y, bool adds, size_t total)
{
    const elem *x = x_;
    FOR_LANES(total, at, n)
    {
        vec v = load(x + at, n);
        store_floats(y + at, adds ? load_floats(y + at, n) + v : v, n);
    }
}

static void from_f32(const float *x, void *y_, bool adds, size_t total)
{
    elem *y = y_;
    FOR_LANES(total, at, n)
    {
        give(y + at, load_floats(x + at, n), adds, n);
    }
}

/* ---- batch norm --------------------------------------------------------------------------- */

static void norm_sums(const void *x_, size_t n_pixels, size_t c, double *sum, double *squares)
{
    const elem *x = x_;
    memset(sum, 0, c * sizeof(*sum));
    memset(squares, 0, c * sizeof(*squares));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k;
            vec s = {0}, q = {0}, s2 = {0}, q2 = {0};
            size_t p = first;
            for (; p + 1 < end; p += 2) {
                vec a = load(x + p * c + k, n), b = load(x + (p + 1) * c + k, n);
                s += a;
                q += a * a;
                s2 += b;
                q2 += b * b;
            }
            if (p < end) {
                vec a = load(x + p * c + k, n);
                s += a;
                q += a * a;
            }
            flush(sum + k, s + s2, n);
            flush(squares + k, q + q2, n);
        }
    }
}

static void norm_apply(const void *x_, const void *residual_, void *y_, size_t n_pixels, size_t c,
                       const float *scale, const float *shift, bool has_relu, bool is_past)
{
    const elem *x = x_, *residual = residual_;
    elem *y = y_;
    is_past = is_past && can_pass(y, c);
    for (size_t first = 0; first < n_pixels * c; first += c) {
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k, at = first + k;
            vec v = load(x + at, n) * load_floats(scale + k, n) + load_floats(shift + k, n);
            v = residual ? v + load(residual + at, n) : v;
            v = has_relu ? keep(~(v < 0), v) : v;
            if (is_past) {
                store_past(y + at, v);
            } else {
                store(y + at, v, n);
            }
        }
    }
    if (is_past) {
        end_past();
    }
}

/* x and y have left the cache when their gradient comes. SUM_PIXELS rows at a time are read, so that
 * each tensor is read nearly in order, and AHEAD elements are prefetched (also behind the end). The
 * sums of SUM_CHANNELS channels stay in the cache. */
enum { AHEAD = 1024, SUM_CHANNELS = 2048, SUM_PIXELS = 2 };

/* sums += g and products += g * (x - mean) over n_rows pixels, for n channels. */
static inline void add_backward_sums(const elem *dy, const elem *y, const elem *x, size_t c,
                                     const float *mean, size_t n_rows, size_t n_channels,
                                     float *sums, float *products)
{
    const size_t ahead = WEIR_MAX(SUM_PIXELS * c, (size_t)AHEAD);
    for (size_t k = 0; k < n_channels; k += LANES) {
        size_t n = n_channels - k;
        vec s = load_floats(sums + k, LANES), q = load_floats(products + k, LANES);
        vec m = load_floats(mean + k, n);
        for (size_t p = 0; p < n_rows; p++) {
            size_t at = p * c + k, later = ahead + k * n_rows + p * LANES;
            vec g = load(dy + at, n);
            __builtin_prefetch(x + later);
            if (y) {
                __builtin_prefetch(y + later);
                g = keep(load(y + at, n) > 0, g);
            }
            s += g;
            q += g * (load(x + at, n) - m);
        }
        store_floats(sums + k, s, LANES);
        store_floats(products + k, q, LANES);
    }
}

static void norm_backward_sums(const void *dy_, const void *y_, const void *x_, size_t n_pixels,
                               size_t c, const float *mean, double *sum, double *products)
{
    const elem *dy = dy_, *y = y_, *x = x_;
    memset(sum, 0, c * sizeof(*sum));
    memset(products, 0, c * sizeof(*products));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += SUM_CHANNELS) {
            float s[SUM_CHANNELS] = {0}, q[SUM_CHANNELS] = {0};
            size_t n = WEIR_MIN(c - k, (size_t)SUM_CHANNELS);
            for (size_t p = first; p < end; p += SUM_PIXELS) {
                size_t at = p * c + k;
                add_backward_sums(dy + at, y ? y + at : NULL, x + at, c, mean + k,
                                  WEIR_MIN(end - p, (size_t)SUM_PIXELS), n, s, q);
            }
            for (size_t i = 0; i < n; i += LANES) {
                flush(sum + k + i, load_floats(s + i, LANES), n - i);
                flush(products + k + i, load_floats(q + i, LANES), n - i);
            }
        }
    }
}

static inline void give_past(elem *to, vec v, bool is_past, bool adds, size_t n)
{
    if (is_past) {
        store_past(to, v);
    } else {
        give(to, v, adds, n);
    }
}

static void norm_backward(const struct norm_gradient *job)
{
    const elem *dy = job->dy, *y = job->y, *x = job->x;
    elem *dx = job->dx, *residual_dx = job->residual_dx;
    bool is_dx_past = job->is_past && !job->adds && dx != dy && can_pass(dx, job->c);
    bool is_residual_past =
        job->is_past && !job->residual_adds && residual_dx != dy && can_pass(residual_dx, job->c);
    for (size_t first = 0; first < job->n_pixels * job->c; first += job->c) {
        for (size_t k = 0; k < job->c; k += LANES) {
            size_t n = job->c - k, at = first + k;
            vec g = load(dy + at, n);
            if (y) {
                g = keep(load(y + at, n) > 0, g);
            }
            if (dx) {
                vec v = load_floats(job->scale + k, n) * g +
                        load_floats(job->x_factor + k, n) * load(x + at, n) +
                        load_floats(job->shift + k, n);
                give_past(dx + at, v, is_dx_past, job->adds, n);
            }
            if (residual_dx) {
                give_past(residual_dx + at, g, is_residual_past, job->residual_adds, n);
            }
        }
    }
    if (is_dx_past || is_residual_past) {
        end_past();
    }
}

/* ---- element-wise ------------------------------------------------------------------------- */

static void relu(const void *x_, void *y_, float ceiling, size_t total)
{
    const elem *x = x_;
    elem *y = y_;
    vec top = splat(ceiling);
    FOR_LANES(total, at, n)
    {
        vec v = load(x + at, n);
        v = keep(~(v < 0), v);
        veci is_over = v > top;
        store(y + at, keep(~is_over, v) + keep(is_over, top), n);
    }
}

static void relu_backward(const void *dy_, const void *y_, void *dx_, bool adds, float ceiling,
                          size_t total)
{
    const elem *dy = dy_, *y = y_;
    elem *dx = dx_;
    vec top = splat(ceiling);
    FOR_LANES(total, at, n)
    {
        vec v = load(y + at, n);
        give(dx + at, keep((v > 0) & (v < top), load(dy + at, n)), adds, n);
    }
}

static void add(const void *a_, const void *b_, void *y_, size_t total)
{
    const elem *a = a_, *b = b_;
    elem *y = y_;
    FOR_LANES(total, at, n)
    {
        store(y + at, load(a + at, n) + load(b + at, n), n);
    }
}

static void scale_by(const void *x_, float factor, void *y_, bool adds, size_t total)
{
    const elem *x = x_;
    elem *y = y_;
    FOR_LANES(total, at, n)
    {
        give(y + at, factor * load(x + at, n), adds, n);
    }
}

static void multiply(const void *x_, const float *factors, void *y_, bool adds, size_t total)
{
    const elem *x = x_;
    elem *y = y_;
    FOR_LANES(total, at, n)
    {
        give(y + at, load_floats(factors + at, n) * load(x + at, n), adds, n);
    }
}

static void prelu(const void *x_, const float *slope, void *y_, size_t n_pixels, size_t c)
{
    const elem *x = x_;
    elem *y = y_;
    for (size_t k = 0; k < c; k += LANES) {
        size_t n = c - k;
        vec s = load_floats(slope + k, n);
        for (size_t at = k; at < n_pixels * c; at += c) {
            vec v = load(x + at, n);
            veci is_negative = v < 0;
            store(y + at, keep(is_negative, v * s) + keep(~is_negative, v), n);
        }
    }
}

static void prelu_backward(const void *dy_, const void *x_, const float *slope, void *dx_,
                           bool adds, size_t n_pixels, size_t c, double *slope_sum)
{
    const elem *dy = dy_, *x = x_;
    elem *dx = dx_;
    memset(slope_sum, 0, c * sizeof(*slope_sum));
    for (size_t first = 0; first < n_pixels; first += VECTOR_CHUNK) {
        size_t end = WEIR_MIN(first + VECTOR_CHUNK, n_pixels);
        for (size_t k = 0; k < c; k += LANES) {
            size_t n = c - k;
            vec sums = {0}, s = load_floats(slope + k, n);
            for (size_t p = first; p < end; p++) {
                size_t at = p * c + k;
                vec g = load(dy + at, n), v = load(x + at, n);
                veci is_negative = v < 0;
                sums += keep(is_negative, g * v);
                if (dx) {
                    give(dx + at, keep(is_negative, g * s) + keep(~is_negative, g), adds, n);
                }
            }
            flush(slope_sum + k, sums, n);
        }
    }
}

static void transpose(const void *from_, size_t rows, size_t cols, bool adds, void *to_)
{
    const elem *from = from_;
    elem *to = to_;
    for (size_t r = 0; r < rows; r++) {
        for (size_t k = 0; k < cols; k++) {
            elem *at = to + k * rows + r;
            *at = adds ? put(get(*at) + get(from[r * cols + k])) : from[r * cols + k];
        }
    }
}

const struct vector_kernels VECTOR_TABLE = {
    .elem_bytes = sizeof(elem),
    .input = input,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
    .norm_sums = norm_sums,
    .norm_apply = norm_apply,
    .norm_backward_sums = norm_backward_sums,
    .norm_backward = norm_backward,
    .relu = relu,
    .relu_backward = relu_backward,
    .add = add,
    .scale = scale_by,
    .multiply = multiply,
    .prelu = prelu,
    .prelu_backward = prelu_backward,
    .transpose = transpose,
    .max_pool = max_pool,
    .max_pool_backward = max_pool_backward,
    .avg_pool = avg_pool,
    .avg_pool_backward = avg_pool_backward,
    .global_pool = global_pool,
    .global_pool_backward = global_pool_backward,
    .log_sum_exp = log_sum_exp,
    .softmax_backward = softmax_backward,
};
