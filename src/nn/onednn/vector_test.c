/*
 * The vector kernels of every instruction set this machine has, against plain loops in double: odd
 * numbers of channels, memory shared as the planner shares it, and NaN, which must come through.
 */
#include "vector.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <string.h>

enum { MAX_C = 37, N_PIXELS = 3 * 5 * 7, N = MAX_C * N_PIXELS };

static const size_t channels[] = {1, 3, 6, 15, 16, 17, 31, 32, 33, 37};

struct data {
    float x[N], y[N], dy[N], a[N], b[N], out[N], expected[N];
    float scale[MAX_C], shift[MAX_C], factor[MAX_C];
    double sum[MAX_C], squares[MAX_C];
    int32_t winners[N];
};

static void fill(float *values, size_t n, uint64_t stream)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 3, stream);
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)weir_rng_normal(&rng);
    }
}

static struct data *make_data(void)
{
    struct data *d = calloc(1, sizeof(*d));
    fill(d->x, N, 1);
    fill(d->y, N, 2);
    fill(d->dy, N, 3);
    fill(d->a, N, 4);
    fill(d->scale, MAX_C, 5);
    fill(d->shift, MAX_C, 6);
    fill(d->factor, MAX_C, 7);
    return d;
}

static void expect_equal(const float *got, const float *expected, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        bool is_equal = isnan(expected[i])
                            ? isnan(got[i])
                            : fabsf(got[i] - expected[i]) <= 2e-6f * (1 + fabsf(expected[i]));
        if (!is_equal) {
            ck_abort_msg("%s, element %zu: %g, expected %g", what, i, (double)got[i],
                         (double)expected[i]);
        }
    }
}

static void expect_sums(const double *got, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_eq_tol(got[i], expected[i], 2e-5 * (1 + fabs(expected[i])));
    }
}

static void check_sums(const struct vector_kernels *v, struct data *d, size_t c)
{
    double sum[MAX_C] = {0}, squares[MAX_C] = {0}, g_sum[MAX_C] = {0}, products[MAX_C] = {0};
    for (size_t i = 0; i < c * N_PIXELS; i++) {
        double x = d->x[i], g = d->y[i] > 0 ? d->dy[i] : 0;
        sum[i % c] += x;
        squares[i % c] += x * x;
        g_sum[i % c] += g;
        products[i % c] += g * (x - (double)d->shift[i % c]);
    }
    v->norm_sums(d->x, N_PIXELS, c, d->sum, d->squares);
    expect_sums(d->sum, sum, c);
    expect_sums(d->squares, squares, c);
    v->norm_backward_sums(d->dy, d->y, d->x, N_PIXELS, c, d->shift, d->sum, d->squares);
    expect_sums(d->sum, g_sum, c);
    expect_sums(d->squares, products, c);
}

static void check_norm(const struct vector_kernels *v, struct data *d, size_t c)
{
    for (int form = 0; form < 4; form++) {
        bool has_relu = form & 1, has_residual = form & 2;
        d->x[5] = NAN;
        for (size_t i = 0; i < c * N_PIXELS; i++) {
            float y = d->x[i] * d->scale[i % c] + d->shift[i % c] + (has_residual ? d->a[i] : 0);
            d->expected[i] = has_relu && y < 0 ? 0 : y;
        }
        v->norm_apply(d->x, has_residual ? d->a : NULL, d->out, N_PIXELS, c, d->scale, d->shift,
                      has_relu);
        expect_equal(d->out, d->expected, c * N_PIXELS, "norm_apply");
        d->x[5] = 0.5f;
    }
}

/* All ways the planner may lay out dx, dy and the residual's gradient. */
static void check_norm_backward(const struct vector_kernels *v, struct data *d, size_t c)
{
    size_t n = c * N_PIXELS;
    for (int form = 0; form < 32; form++) {
        bool has_relu = form & 1, has_residual = form & 2, is_over_dy = form & 4;
        bool adds = (form & 8) && !(is_over_dy && !has_residual);
        bool residual_adds = (form & 16) && has_residual && !is_over_dy;
        float expected_residual[N];
        float *dy = d->b, *dx = d->out, residual[N];
        memcpy(dy, d->dy, n * sizeof(float));
        memcpy(dx, d->a, n * sizeof(float));
        memcpy(residual, d->a, n * sizeof(float));
        float *residual_dx = has_residual ? (is_over_dy ? dy : residual) : NULL;
        dx = is_over_dy && !has_residual ? dy : dx;
        for (size_t i = 0; i < n; i++) {
            float g = has_relu && !(d->y[i] > 0) ? 0 : dy[i];
            d->expected[i] = d->scale[i % c] * g + d->factor[i % c] * d->x[i] + d->shift[i % c] +
                             (adds ? d->a[i] : 0);
            expected_residual[i] = g + (residual_adds ? d->a[i] : 0);
        }
        v->norm_backward(&(struct norm_gradient){.dy = dy,
                                                 .y = has_relu ? d->y : NULL,
                                                 .x = d->x,
                                                 .n_pixels = N_PIXELS,
                                                 .c = c,
                                                 .scale = d->scale,
                                                 .x_factor = d->factor,
                                                 .shift = d->shift,
                                                 .dx = dx,
                                                 .residual_dx = residual_dx,
                                                 .adds = adds,
                                                 .residual_adds = residual_adds});
        expect_equal(dx, d->expected, n, "norm_backward");
        if (residual_dx) {
            expect_equal(residual_dx, expected_residual, n, "norm_backward, residual");
        }
    }
}

static void check_elementwise(const struct vector_kernels *v, struct data *d, size_t c)
{
    size_t n = c * N_PIXELS;
    d->x[7] = NAN;
    for (size_t i = 0; i < n; i++) {
        d->expected[i] = d->x[i] < 0 ? 0 : d->x[i];
    }
    v->relu(d->x, d->out, n);
    expect_equal(d->out, d->expected, n, "relu");
    for (size_t i = 0; i < n; i++) {
        d->expected[i] = d->x[i] < 0 ? d->scale[i % c] * d->x[i] : d->x[i];
    }
    v->prelu(d->x, d->scale, d->out, N_PIXELS, c);
    expect_equal(d->out, d->expected, n, "prelu");
    d->x[7] = -0.25f;
    for (int adds = 0; adds < 2; adds++) {
        double slopes[MAX_C] = {0};
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = (d->y[i] > 0 ? d->dy[i] : 0) + (adds ? d->a[i] : 0);
            slopes[i % c] += d->x[i] < 0 ? (double)d->dy[i] * (double)d->x[i] : 0;
        }
        memcpy(d->out, d->a, n * sizeof(float));
        v->relu_backward(d->dy, d->y, d->out, adds, n);
        expect_equal(d->out, d->expected, n, "relu_backward");
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = (d->x[i] < 0 ? d->scale[i % c] : 1) * d->dy[i] + (adds ? d->a[i] : 0);
        }
        memcpy(d->out, d->a, n * sizeof(float));
        v->prelu_backward(d->dy, d->x, d->scale, d->out, adds, N_PIXELS, c, d->sum);
        expect_equal(d->out, d->expected, n, "prelu_backward");
        expect_sums(d->sum, slopes, c);
    }
}

/* 15 x 7 pixels, windows of 3 with stride 2 and padding 1: 8 x 4. */
static void check_max_pool(const struct vector_kernels *v, struct data *d, size_t c)
{
    const struct weir_shape in = {(int32_t)c, 15, 7}, out = {(int32_t)c, 8, 4};
    const struct weir_pool_params pool = {.kernel = 3, .stride = 2, .pad = 1};
    float sent[N] = {0};
    d->x[9] = NAN;
    for (int32_t o = 0; o < out.h * out.w * out.c; o++) {
        int32_t k = o % out.c, ow = o / out.c % out.w, oh = o / out.c / out.w, best_at = -1;
        for (int32_t h = WEIR_MAX(0, 2 * oh - 1); h < WEIR_MIN(in.h, 2 * oh + 2); h++) {
            for (int32_t w = WEIR_MAX(0, 2 * ow - 1); w < WEIR_MIN(in.w, 2 * ow + 2); w++) {
                int32_t at = (h * in.w + w) * in.c + k;
                bool wins = best_at < 0 || d->x[at] > d->x[best_at] || isnan(d->x[at]);
                best_at = wins ? at : best_at;
            }
        }
        d->expected[o] = d->x[best_at];
        sent[best_at] += d->dy[o];
    }
    v->max_pool(d->x, in, out, &pool, d->out, d->winners);
    expect_equal(d->out, d->expected, (size_t)shape_elems(out), "max_pool");
    v->max_pool(d->x, in, out, &pool, d->out, NULL);
    expect_equal(d->out, d->expected, (size_t)shape_elems(out), "max_pool of inference");
    memset(d->out, 0, sizeof(d->out));
    v->max_pool_backward(d->dy, d->winners, in, out, &pool, d->out);
    expect_equal(d->out, sent, c * N_PIXELS, "max_pool_backward");
    d->x[9] = 1;
}

static void check_table(const struct vector_kernels *v)
{
    struct data *d = make_data();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(channels); i++) {
        check_sums(v, d, channels[i]);
        check_norm(v, d, channels[i]);
        check_norm_backward(v, d, channels[i]);
        check_elementwise(v, d, channels[i]);
        check_max_pool(v, d, channels[i]);
    }
    free(d);
}

START_TEST(any_x86_64)
{
    check_table(&vector_kernels_v1);
}

END_TEST

START_TEST(avx2)
{
    if (vector_kernels() != &vector_kernels_v1) {
        check_table(&vector_kernels_v3);
    }
}

END_TEST

START_TEST(avx512)
{
    if (vector_kernels() == &vector_kernels_v4) {
        check_table(&vector_kernels_v4);
    }
}

END_TEST

WEIR_TEST_MAIN("vector", any_x86_64, avx2, avx512)
