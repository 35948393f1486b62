/*
 * The vector kernels of every instruction set and type this machine has, against plain loops: odd
 * numbers of channels, memory shared as the planner shares it, and NaN, which must come through.
 * bf16 is given inputs it can hold, so that only the rounding of results is between the two.
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
    int32_t argmax[N];
};

/* Tensors in the type of the table under test. */
static union {
    _Alignas(64) float f32[N]; /* so that whole vectors may bypass the caches */
    uint16_t bf16[N];
} slots[6];

enum { X, Y, DY, A, OUT, RESIDUAL };

static bool is_bf16(const struct vector_kernels *v)
{
    return v->elem_bytes == sizeof(uint16_t);
}

/* The values as a tensor. */
static void *pack(const struct vector_kernels *v, const float *values, int i_slot)
{
    for (size_t i = 0; i < N; i++) {
        if (is_bf16(v)) {
            slots[i_slot].bf16[i] = bf16_from_f32(values[i]);
        } else {
            slots[i_slot].f32[i] = values[i];
        }
    }
    return &slots[i_slot];
}

static const float *unpack(const struct vector_kernels *v, int i_slot)
{
    static float values[N];
    for (size_t i = 0; i < N; i++) {
        values[i] = is_bf16(v) ? bf16_to_f32(slots[i_slot].bf16[i]) : slots[i_slot].f32[i];
    }
    return values;
}

static void fill(float *values, size_t n, uint64_t stream)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 3, stream);
    for (size_t i = 0; i < n; i++) {
        values[i] = bf16_to_f32(bf16_from_f32((float)weir_rng_normal(&rng)));
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

/* A tensor of the table holds what was expected, up to rounding: half a unit of bf16's last place.
 */
static void expect_equal(const struct vector_kernels *v, int i_slot, const float *expected,
                         size_t n, const char *what)
{
    const float *got = unpack(v, i_slot), tolerance = is_bf16(v) ? 0x1.02p-8f : 2e-6f;
    for (size_t i = 0; i < n; i++) {
        bool is_equal = isnan(expected[i])
                            ? isnan(got[i])
                            : got[i] == expected[i] || fabsf(got[i] - expected[i]) <=
                                                           2e-6f + tolerance * fabsf(expected[i]);
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
    v->norm_sums(pack(v, d->x, X), N_PIXELS, c, d->sum, d->squares);
    expect_sums(d->sum, sum, c);
    expect_sums(d->squares, squares, c);
    v->norm_backward_sums(pack(v, d->dy, DY), pack(v, d->y, Y), pack(v, d->x, X), N_PIXELS, c,
                          d->shift, d->sum, d->squares);
    expect_sums(d->sum, g_sum, c);
    expect_sums(d->squares, products, c);
}

static void check_norm(const struct vector_kernels *v, struct data *d, size_t c)
{
    for (int form = 0; form < 8; form++) {
        bool has_relu = form & 1, has_residual = form & 2, is_past = form & 4;
        d->x[5] = NAN;
        for (size_t i = 0; i < c * N_PIXELS; i++) {
            float y = d->x[i] * d->scale[i % c] + d->shift[i % c] + (has_residual ? d->a[i] : 0);
            d->expected[i] = has_relu && y < 0 ? 0 : y;
        }
        v->norm_apply(pack(v, d->x, X), has_residual ? pack(v, d->a, A) : NULL, &slots[OUT],
                      N_PIXELS, c, d->scale, d->shift, has_relu, is_past);
        expect_equal(v, OUT, d->expected, c * N_PIXELS, "norm_apply");
        d->x[5] = 0.5f;
    }
}

/* All ways the planner may lay out dx, dy and the residual's gradient. */
static void check_norm_backward(const struct vector_kernels *v, struct data *d, size_t c)
{
    size_t n = c * N_PIXELS;
    for (int form = 0; form < 64; form++) {
        bool has_relu = form & 1, has_residual = form & 2, is_over_dy = form & 4;
        bool adds = (form & 8) && !(is_over_dy && !has_residual);
        bool residual_adds = (form & 16) && has_residual && !is_over_dy;
        float expected_residual[N];
        void *dy = pack(v, d->dy, DY), *dx = pack(v, d->a, OUT),
             *residual = pack(v, d->a, RESIDUAL);
        void *residual_dx = has_residual ? (is_over_dy ? dy : residual) : NULL;
        dx = is_over_dy && !has_residual ? dy : dx;
        for (size_t i = 0; i < n; i++) {
            float g = has_relu && !(d->y[i] > 0) ? 0 : d->dy[i];
            d->expected[i] = d->scale[i % c] * g + d->factor[i % c] * d->x[i] + d->shift[i % c] +
                             (adds ? d->a[i] : 0);
            expected_residual[i] = g + (residual_adds ? d->a[i] : 0);
        }
        v->norm_backward(&(struct norm_gradient){.dy = dy,
                                                 .y = has_relu ? pack(v, d->y, Y) : NULL,
                                                 .x = pack(v, d->x, X),
                                                 .n_pixels = N_PIXELS,
                                                 .c = c,
                                                 .scale = d->scale,
                                                 .x_factor = d->factor,
                                                 .shift = d->shift,
                                                 .dx = dx,
                                                 .residual_dx = residual_dx,
                                                 .adds = adds,
                                                 .residual_adds = residual_adds,
                                                 .is_past = form & 32});
        expect_equal(v, dx == dy ? DY : OUT, d->expected, n, "norm_backward");
        if (residual_dx) {
            expect_equal(v, residual_dx == dy ? DY : RESIDUAL, expected_residual, n,
                         "norm_backward, residual");
        }
    }
}

static void check_rectifiers(const struct vector_kernels *v, struct data *d, size_t c)
{
    size_t n = c * N_PIXELS;
    d->x[7] = NAN;
    for (int i = 0; i < 2; i++) {
        float ceiling = i == 0 ? INFINITY : 0.75f;
        for (size_t j = 0; j < n; j++) {
            d->expected[j] = d->x[j] < 0 ? 0 : d->x[j] > ceiling ? ceiling : d->x[j];
        }
        v->relu(pack(v, d->x, X), &slots[OUT], ceiling, n);
        expect_equal(v, OUT, d->expected, n, "relu");
        for (int adds = 0; adds < 2; adds++) {
            for (size_t j = 0; j < n; j++) {
                d->expected[j] =
                    (d->y[j] > 0 && d->y[j] < ceiling ? d->dy[j] : 0) + (adds ? d->a[j] : 0);
            }
            v->relu_backward(pack(v, d->dy, DY), pack(v, d->y, Y), pack(v, d->a, OUT), adds,
                             ceiling, n);
            expect_equal(v, OUT, d->expected, n, "relu_backward");
        }
    }
    for (size_t i = 0; i < n; i++) {
        d->expected[i] = d->x[i] < 0 ? d->scale[i % c] * d->x[i] : d->x[i];
    }
    v->prelu(pack(v, d->x, X), d->scale, &slots[OUT], N_PIXELS, c);
    expect_equal(v, OUT, d->expected, n, "prelu");
    d->x[7] = -0.25f;
    for (int adds = 0; adds < 2; adds++) {
        double slopes[MAX_C] = {0};
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = (d->x[i] < 0 ? d->scale[i % c] : 1) * d->dy[i] + (adds ? d->a[i] : 0);
            slopes[i % c] += d->x[i] < 0 ? (double)d->dy[i] * (double)d->x[i] : 0;
        }
        v->prelu_backward(pack(v, d->dy, DY), pack(v, d->x, X), d->scale, pack(v, d->a, OUT), adds,
                          N_PIXELS, c, d->sum);
        expect_equal(v, OUT, d->expected, n, "prelu_backward");
        expect_sums(d->sum, slopes, c);
    }
}

static void check_arithmetic(const struct vector_kernels *v, struct data *d, size_t c)
{
    size_t n = c * N_PIXELS;
    for (size_t i = 0; i < n; i++) {
        d->expected[i] = d->x[i] + d->y[i];
    }
    v->add(pack(v, d->x, X), pack(v, d->y, Y), &slots[OUT], n);
    expect_equal(v, OUT, d->expected, n, "add");
    for (int adds = 0; adds < 2; adds++) {
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = -1.5f * d->x[i] + (adds ? d->a[i] : 0);
        }
        v->scale(pack(v, d->x, X), -1.5f, pack(v, d->a, OUT), adds, n);
        expect_equal(v, OUT, d->expected, n, "scale");
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = d->y[i] * d->x[i] + (adds ? d->a[i] : 0);
        }
        v->multiply(pack(v, d->x, X), d->y, pack(v, d->a, OUT), adds, n);
        expect_equal(v, OUT, d->expected, n, "multiply");
        for (size_t i = 0; i < n; i++) {
            d->expected[i % c * N_PIXELS + i / c] =
                d->x[i] + (adds ? d->a[i % c * N_PIXELS + i / c] : 0);
        }
        v->transpose(pack(v, d->x, X), N_PIXELS, c, adds, pack(v, d->a, OUT));
        expect_equal(v, OUT, d->expected, n, "transpose");
    }
}

/* A value between two of bf16 goes to the nearer, half way to the even one; NaN stays one. */
static void check_types(const struct vector_kernels *v, struct data *d, size_t c)
{
    static const float in[] = {
        1 + 0x1p-8f,     1 + 0x3p-8f, 1 + 0x1.8p-8f, 1 + 0x1p-9f, -0x1.8p-120f,
        0x1.fffffep127f, INFINITY,    -INFINITY,     -0.0f,       NAN};
    static const float rounded[] = {1,        1 + 0x4p-8f, 1 + 0x2p-8f, 1,     -0x1.8p-120f,
                                    INFINITY, INFINITY,    -INFINITY,   -0.0f, NAN};
    float wide[N] = {0};
    size_t n = c * N_PIXELS, n_cases = WEIR_ARRAY_LEN(in);
    for (size_t i = 0; i < n; i++) {
        d->expected[i] = is_bf16(v) ? rounded[i % n_cases] : in[i % n_cases];
        wide[i] = in[i % n_cases];
    }
    v->from_f32(wide, &slots[OUT], false, n);
    expect_equal(v, OUT, d->expected, n, "from_f32");
    v->input(wide, c, N_PIXELS, &slots[OUT]);
    for (size_t i = 0; i < n; i++) {
        size_t from = i % c * N_PIXELS + i / c;
        d->expected[i] = is_bf16(v) ? rounded[from % n_cases] : in[from % n_cases];
    }
    expect_equal(v, OUT, d->expected, n, "input");
    for (int adds = 0; adds < 2; adds++) {
        memcpy(wide, d->a, sizeof(wide));
        v->to_f32(pack(v, d->x, X), wide, adds, n);
        for (size_t i = 0; i < n; i++) {
            ck_assert(wide[i] == d->x[i] + (adds ? d->a[i] : 0));
        }
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = d->x[i] + (adds ? d->a[i] : 0);
        }
        v->from_f32(d->x, pack(v, d->a, OUT), adds, n);
        expect_equal(v, OUT, d->expected, n, "from_f32, adding");
    }
}

/* Windows of 3 with stride 2 and padding 1, on 15 x 7 pixels: 8 x 4. */
static struct op pool_of(size_t c)
{
    return (struct op){.in = {{(int32_t)c, 15, 7}},
                       .out = {(int32_t)c, 8, 4},
                       .pool = {.kernel = 3, .stride = 2, .pad = 1}};
}

static void check_max_pool(const struct vector_kernels *v, struct data *d, size_t c)
{
    const struct op op = pool_of(c);
    size_t n_out = op_elems(op.out), n = c * N_PIXELS;
    float sent[N] = {0};
    d->x[9] = NAN;
    for (int32_t o = 0; o < (int32_t)n_out; o++) {
        int32_t k = o % op.out.c, ow = o / op.out.c % op.out.w, oh = o / op.out.c / op.out.w;
        int32_t best_at = -1;
        for (int32_t h = WEIR_MAX(0, 2 * oh - 1); h < WEIR_MIN(op.in[0].h, 2 * oh + 2); h++) {
            for (int32_t w = WEIR_MAX(0, 2 * ow - 1); w < WEIR_MIN(op.in[0].w, 2 * ow + 2); w++) {
                int32_t at = (h * op.in[0].w + w) * op.in[0].c + k;
                bool wins = best_at < 0 || d->x[at] > d->x[best_at] || isnan(d->x[at]);
                best_at = wins ? at : best_at;
            }
        }
        d->expected[o] = d->x[best_at];
        sent[best_at] += d->dy[o];
    }
    v->max_pool(&op, pack(v, d->x, X), &slots[OUT], d->argmax);
    expect_equal(v, OUT, d->expected, n_out, "max_pool");
    v->max_pool(&op, &slots[X], &slots[OUT], NULL);
    expect_equal(v, OUT, d->expected, n_out, "max_pool of inference");
    for (int adds = 0; adds < 2; adds++) {
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = sent[i] + (adds ? d->a[i] : 0);
        }
        v->max_pool_backward(&op, pack(v, d->dy, DY), d->argmax, pack(v, d->a, OUT), adds);
        expect_equal(v, OUT, d->expected, n, "max_pool_backward");
    }
    d->x[9] = 1;
}

static void check_avg_pool(const struct vector_kernels *v, struct data *d, size_t c)
{
    const struct op op = pool_of(c);
    size_t n = c * N_PIXELS, n_out = op_elems(op.out);
    float sent[N] = {0}, sums[N] = {0}, means[MAX_C] = {0};
    for (int32_t i = 0; i < (int32_t)n; i++) {
        int32_t k = i % op.in[0].c, w = i / op.in[0].c % op.in[0].w,
                h = i / op.in[0].c / op.in[0].w;
        for (int32_t oh = h / 2; oh <= (h + 1) / 2; oh++) {
            for (int32_t ow = w / 2; ow <= (w + 1) / 2; ow++) {
                int32_t o = (oh * op.out.w + ow) * op.out.c + k;
                sums[o] += d->x[i] / 9;
                sent[i] += d->dy[o] / 9;
            }
        }
        means[k] += d->x[i] / N_PIXELS;
    }
    v->avg_pool(&op, pack(v, d->x, X), &slots[OUT]);
    expect_equal(v, OUT, sums, n_out, "avg_pool");
    v->global_pool(&slots[X], N_PIXELS, c, &slots[OUT]);
    expect_equal(v, OUT, means, c, "global_pool");
    for (int adds = 0; adds < 2; adds++) {
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = sent[i] + (adds ? d->a[i] : 0);
        }
        v->avg_pool_backward(&op, pack(v, d->dy, DY), pack(v, d->a, OUT), adds);
        expect_equal(v, OUT, d->expected, n, "avg_pool_backward");
        for (size_t i = 0; i < n; i++) {
            d->expected[i] = d->dy[i % c] / N_PIXELS + (adds ? d->a[i] : 0);
        }
        v->global_pool_backward(&slots[DY], N_PIXELS, c, pack(v, d->a, OUT), adds);
        expect_equal(v, OUT, d->expected, n, "global_pool_backward");
    }
}

/* Against sums in double; the softmax may be off by 4e-7 of itself and by what is rounded in 1. */
static void check_softmax_of(const struct vector_kernels *v, const struct data *d, const float *x,
                             size_t n)
{
    static float got[N];
    double largest = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, (double)x[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)x[i] - largest);
    }
    double log_sum = v->log_sum_exp(x, n);
    ck_assert_double_eq_tol(log_sum, largest + log(sum), 4e-7);
    for (int adds = 0; adds < 2; adds++) {
        memcpy(got, d->a, sizeof(got));
        v->softmax_backward(x, n, 0.25f, 1.5f, got, adds);
        for (size_t i = 0; i < n; i++) {
            double p = exp((double)x[i] - largest) / sum;
            double expected = (p - 0.25) * 1.5 + (adds ? (double)d->a[i] : 0);
            ck_assert_double_eq_tol((double)got[i], expected, 4e-7 + 2e-7 * fabs(expected));
        }
        ck_assert(got[n] == d->a[n]);
    }
}

static void check_softmax(const struct vector_kernels *v, struct data *d, size_t n)
{
    static float x[N];
    const float scales[] = {1, 30, 1e4f, 1e-3f};
    for (size_t s = 0; s < WEIR_ARRAY_LEN(scales); s++) {
        for (size_t i = 0; i < n; i++) {
            x[i] = d->x[i] * scales[s];
        }
        check_softmax_of(v, d, x, n);
    }
    x[n / 2] = -INFINITY;
    if (n > 1) {
        check_softmax_of(v, d, x, n);
    }
    const float bad[] = {NAN, INFINITY}; /* inf - inf is not a number */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        static float dx[N];
        x[n - 1] = bad[i];
        ck_assert(isnan(v->log_sum_exp(x, n)));
        v->softmax_backward(x, n, 0, 1, dx, false);
        ck_assert(isnan(dx[n - 1]));
    }
}

static void check_table(const struct vector_kernels *v)
{
    struct data *d = make_data();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(channels); i++) {
        check_sums(v, d, channels[i]);
        check_norm(v, d, channels[i]);
        check_norm_backward(v, d, channels[i]);
        check_rectifiers(v, d, channels[i]);
        check_arithmetic(v, d, channels[i]);
        check_types(v, d, channels[i]);
        check_max_pool(v, d, channels[i]);
        check_avg_pool(v, d, channels[i]);
        check_softmax(v, d, channels[i]);
    }
    check_softmax(v, d, N - 1); /* more than are added up in f32 */
    free(d);
}

static bool has_bf16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16");
#else
    return true; /* compiled for this machine as it is */
#endif
}

START_TEST(any_x86_64)
{
    check_table(&vector_kernels_v1);
}

END_TEST

START_TEST(avx2)
{
    if (vector_kernels(WEIR_PRECISION_F32) != &vector_kernels_v1) {
        check_table(&vector_kernels_v3);
    }
}

END_TEST

START_TEST(avx512)
{
    if (vector_kernels(WEIR_PRECISION_F32) == &vector_kernels_v4) {
        check_table(&vector_kernels_v4);
    }
}

END_TEST

START_TEST(bf16)
{
    if (has_bf16()) {
        check_table(&vector_kernels_bf16);
    }
}

END_TEST

WEIR_TEST_MAIN("vector", any_x86_64, avx2, avx512, bf16)
