/* CMakeLists.txt has the flags. The vectors are the compiler's, so it compiles everywhere. */
#include "wino.h"

#include "threads.h"

#include "base/macros.h"

#include <string.h>

#define LANES       8
#define PANEL       16 /* Output channels of a panel of transformed kernels. */
#define ROWS        6  /* Patches whose sums lie in registers, with two vectors each. */
#define POINTS      36
#define IN          6
#define OUT         4
#define BLOCK_MAX   96
#define BLOCK_BYTES ((size_t)3 << 19) /* Of a block's points: what caches near a core hold. */

#define INLINE __attribute__((always_inline)) static inline

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

/* The points a and b, and what the transforms need of them. */
static const float a1 = 0.625F, b1 = 1.5F;
static const float a2 = 0.390625F, b2 = 2.25F;
static const float ab2 = 0.87890625F, sum2 = 2.640625F; /* a2 * b2, a2 + b2 */

typedef int32_t mask __attribute__((vector_size(32), aligned(4), may_alias));

/* a where the mask says so, else b. */
INLINE vec choose(mask where, vec a, vec b)
{
    return (vec)(((mask)a & where) | ((mask)b & ~where));
}

INLINE vec load(const float *at)
{
    return *(const vec *)at;
}

INLINE void store(float *at, vec value)
{
    *(vec *)at = value;
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static int64_t panels_of(int64_t k)
{
    return (k + PANEL - 1) / PANEL;
}

size_t wino_points_bytes(int64_t c, int64_t k)
{
    return (size_t)(POINTS * panels_of(k) * c * PANEL) * sizeof(float);
}

/* G times three values. */
static void kernel_points(const double g[3], double out[IN])
{
    const double a = a1, b = b1, da = 2 * a * a * (a * a - b * b), db = 2 * b * b * (b * b - a * a);
    out[0] = g[0] / (a * a * b * b);
    out[1] = (g[0] + a * g[1] + a * a * g[2]) / da;
    out[2] = (g[0] - a * g[1] + a * a * g[2]) / da;
    out[3] = (g[0] + b * g[1] + b * b * g[2]) / db;
    out[4] = (g[0] - b * g[1] + b * b * g[2]) / db;
    out[5] = g[2];
}

static void kernel_square(const float g[9], double factor, double out[IN][IN])
{
    double half[3][IN];
    for (int i = 0; i < 3; i++) {
        const double row[3] = {g[i * 3] * factor, g[i * 3 + 1] * factor, g[i * 3 + 2] * factor};
        kernel_points(row, half[i]);
    }
    for (int j = 0; j < IN; j++) {
        double column[IN];
        kernel_points((const double[3]){half[0][j], half[1][j], half[2][j]}, column);
        for (int i = 0; i < IN; i++) {
            out[i][j] = column[i];
        }
    }
}

void wino_points(const float *weights, const float *factors, int64_t c, int64_t k, float *out)
{
    size_t n_panels = (size_t)panels_of(k), n_c = (size_t)c;
    memset(out, 0, wino_points_bytes(c, k));
    for (size_t o = 0; o < (size_t)k; o++) {
        for (size_t i = 0; i < n_c; i++) {
            double square[IN][IN];
            kernel_square(weights + (o * n_c + i) * 9, factors != NULL ? factors[o] : 1, square);
            for (size_t p = 0; p < POINTS; p++) {
                out[((p * n_panels + o / PANEL) * n_c + i) * PANEL + o % PANEL] =
                    (float)square[p / IN][p % IN];
            }
        }
    }
}

/* ---- products --------------------------------------------------------------------------------- */

struct product {
    const float *v; /* n_rows rows of c floats, v_row apart. */
    const float *u; /* c rows of PANEL floats. */
    float *m;
    size_t v_row, m_row, c;
};

INLINE void multiply_rows(const struct product *p, size_t n_rows)
{
    vec sums[ROWS][2];
    const float *u = p->u, *v = p->v;
    size_t v_row = p->v_row;
#pragma GCC unroll 6
    for (size_t r = 0; r < n_rows; r++) {
        sums[r][0] = sums[r][1] = (vec){0};
    }
    for (size_t i = 0; i < p->c; i++) {
        vec u0 = load(u), u1 = load(u + LANES);
#pragma GCC unroll 6
        for (size_t r = 0; r < n_rows; r++) {
            float value = v[r * v_row];
            sums[r][0] += value * u0;
            sums[r][1] += value * u1;
        }
        u += PANEL;
        v++;
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < n_rows; r++) {
        store(p->m + r * p->m_row, sums[r][0]);
        store(p->m + r * p->m_row + LANES, sums[r][1]);
    }
}

#define MULTIPLY(n)                                                                                \
    __attribute__((noinline)) static void multiply_##n(const struct product *p)                    \
    {                                                                                              \
        multiply_rows(p, n);                                                                       \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
MULTIPLY(5)
MULTIPLY(6)

static void (*const multiply_by_rows[])(const struct product *p) = {
    NULL, multiply_1, multiply_2, multiply_3, multiply_4, multiply_5, multiply_6};

/* ---- transforms ------------------------------------------------------------------------------- */

/* B' times six vectors. */
INLINE void to_points(const vec d[IN], vec out[IN])
{
    vec even_a = d[4] - b2 * d[2], odd_a = a1 * (d[3] - b2 * d[1]);
    vec even_b = d[4] - a2 * d[2], odd_b = b1 * (d[3] - a2 * d[1]);
    out[0] = ab2 * d[0] - sum2 * d[2] + d[4];
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = ab2 * d[1] - sum2 * d[3] + d[5];
}

/* A' times six vectors. */
INLINE void from_points(const vec m[IN], vec out[OUT])
{
    vec plus_a = m[1] + m[2], minus_a = a1 * (m[1] - m[2]);
    vec plus_b = m[3] + m[4], minus_b = b1 * (m[3] - m[4]);
    out[0] = m[0] + plus_a + plus_b;
    out[1] = minus_a + minus_b;
    out[2] = a2 * plus_a + b2 * plus_b;
    out[3] = a2 * minus_a + b2 * minus_b + m[5];
}

/* Patches of a job, in blocks, with a block's memory. */
struct block {
    const struct wino *job;
    float *v, *m;
    size_t n_across, n_image; /* Patches of a row, and of an image. */
    size_t n_most, v_point, m_point, m_row;
};

static struct block block_of(const struct wino *job, size_t n_most, float *memory)
{
    const struct wino_form *f = &job->form;
    size_t across = (size_t)((f->out_w + OUT - 1) / OUT),
           down = (size_t)((f->out_h + OUT - 1) / OUT);
    size_t m_row = (size_t)(panels_of(f->k) * PANEL);
    struct block block = {.job = job,
                          .n_across = across,
                          .n_image = across * down,
                          .n_most = n_most,
                          .v_point = n_most * (size_t)f->c + PANEL,
                          .m_point = n_most * m_row + PANEL,
                          .m_row = m_row};
    block.v = memory;
    block.m = memory + POINTS * block.v_point;
    return block;
}

static size_t block_bytes(const struct wino_form *f, size_t n_most)
{
    size_t m_row = (size_t)(panels_of(f->k) * PANEL);
    return POINTS * (n_most * ((size_t)f->c + m_row) + 2 * PANEL) * sizeof(float);
}

/* Six by six pixels of eight channels; zeros beyond the image. */
INLINE void read_patch(const struct wino_form *f, const float *x, int64_t top, int64_t left,
                       vec out[IN][IN])
{
    bool is_inside = top >= 0 && left >= 0 && top + IN <= f->h && left + IN <= f->w;
    for (int64_t i = 0; i < IN; i++) {
        const float *row = x + ((top + i) * f->w + left) * LANES;
        bool has_row = top + i >= 0 && top + i < f->h;
        for (int64_t j = 0; j < IN; j++) {
            bool has = is_inside || (has_row && left + j >= 0 && left + j < f->w);
            out[i][j] = has ? load(row + j * LANES) : (vec){0};
        }
    }
}

static void patch_in(const struct block *b, size_t i_patch, size_t at, size_t first_c, size_t end_c)
{
    const struct wino_form *f = &b->job->form;
    size_t image = i_patch / b->n_image, rest = i_patch % b->n_image;
    int64_t top = (int64_t)(rest / b->n_across) * OUT - f->pad_h;
    int64_t left = (int64_t)(rest % b->n_across) * OUT - f->pad_w;
    for (size_t c = first_c; c < end_c; c += LANES) {
        const float *plane = b->job->x + (image * (size_t)f->c + c) * (size_t)(f->h * f->w);
        float *to = b->v + at * (size_t)f->c + c;
        vec d[IN][IN], half[IN][IN];
        read_patch(f, plane, top, left, d);
        for (int i = 0; i < IN; i++) {
            to_points(d[i], half[i]);
        }
        for (int j = 0; j < IN; j++) {
            const vec column[IN] = {half[0][j], half[1][j], half[2][j],
                                    half[3][j], half[4][j], half[5][j]};
            vec out[IN];
            to_points(column, out);
            for (int i = 0; i < IN; i++) {
                store(to + (size_t)(i * IN + j) * b->v_point, out[i]);
            }
        }
    }
}

INLINE vec finish(const struct wino *job, vec value)
{
    const vec zero = {0}, low = zero + job->low, high = zero + job->high;
    value = choose(value < zero, value * job->slope, value);
    value = choose(value < low, low, value);
    return choose(value > high, high, value);
}

static void patch_out(const struct block *b, size_t i_patch, size_t at, size_t first_k,
                      size_t end_k)
{
    const struct wino *job = b->job;
    const struct wino_form *f = &job->form;
    size_t image = i_patch / b->n_image, rest = i_patch % b->n_image;
    int64_t top = (int64_t)(rest / b->n_across) * OUT, left = (int64_t)(rest % b->n_across) * OUT;
    int64_t n_down = WEIR_MIN(f->out_h - top, (int64_t)OUT);
    int64_t n_right = WEIR_MIN(f->out_w - left, (int64_t)OUT);
    for (size_t k = first_k; k < end_k; k += LANES) {
        size_t plane = (image * (size_t)f->k + k) * (size_t)(f->out_h * f->out_w);
        const float *from = b->m + at * b->m_row + k;
        vec half[OUT][IN], bias = job->bias != NULL ? load(job->bias + k) : (vec){0};
        for (int j = 0; j < IN; j++) {
            vec column[IN], out[OUT];
            for (int i = 0; i < IN; i++) {
                column[i] = load(from + (size_t)(i * IN + j) * b->m_point);
            }
            from_points(column, out);
            for (int i = 0; i < OUT; i++) {
                half[i][j] = out[i];
            }
        }
        for (int64_t i = 0; i < n_down; i++) {
            size_t pixel = plane + (size_t)((top + i) * f->out_w + left) * LANES;
            vec out[OUT];
            from_points(half[i], out);
            for (int64_t j = 0; j < n_right; j++) {
                vec value = out[j] + bias;
                if (job->added != NULL) {
                    value += load(job->added + pixel + (size_t)j * LANES);
                }
                store(job->y + pixel + (size_t)j * LANES, finish(job, value));
            }
        }
    }
}

/* Points first to end of n patches. */
static void multiply_points(const struct block *b, size_t n, size_t first, size_t end)
{
    const struct wino_form *f = &b->job->form;
    size_t n_panels = (size_t)panels_of(f->k), c = (size_t)f->c;
    size_t n_runs = (n + ROWS - 1) / ROWS;
    for (size_t i = first; i < end; i++) {
        size_t p = i / n_panels, panel = i % n_panels;
        const float *u = b->job->points + i * c * PANEL;
        for (size_t run = 0; run < n_runs; run++) {
            size_t row = run * n / n_runs, next = (run + 1) * n / n_runs;
            const struct product product = {.v = b->v + p * b->v_point + row * c,
                                            .u = u,
                                            .m = b->m + p * b->m_point + row * b->m_row +
                                                 panel * PANEL,
                                            .v_row = c,
                                            .m_row = b->m_row,
                                            .c = c};
            multiply_by_rows[next - row](&product);
        }
    }
}

/* ---- few patches: threads share the points; many: each has patches of its own ------------------ */

static size_t count_patches(const struct wino_form *f)
{
    return (size_t)f->n * (size_t)((f->out_w + OUT - 1) / OUT) *
           (size_t)((f->out_h + OUT - 1) / OUT);
}

static size_t block_size(const struct wino_form *f)
{
    size_t each = POINTS * (size_t)(f->c + f->k) * sizeof(float);
    size_t n = WEIR_MAX(BLOCK_BYTES / each / ROWS * ROWS, (size_t)2 * ROWS);
    return WEIR_MIN(n, (size_t)BLOCK_MAX);
}

static bool shares_points(const struct wino_form *f, int32_t n_threads)
{
    return count_patches(f) < (size_t)n_threads * WEIR_MIN(block_size(f), (size_t)4 * ROWS);
}

size_t wino_scratch_bytes(const struct wino_form *f, int32_t n_threads)
{
    return shares_points(f, n_threads) ? block_bytes(f, count_patches(f))
                                       : block_bytes(f, block_size(f)) * (size_t)n_threads;
}

static void in_part(const void *job, int32_t i, int32_t n)
{
    const struct block *b = job;
    size_t n_blocks = (size_t)b->job->form.c / LANES;
    size_t first = threads_share(n_blocks * b->n_most, i, n);
    for (size_t at = first; at < threads_share(n_blocks * b->n_most, i + 1, n); at++) {
        size_t c = at % n_blocks * LANES;
        patch_in(b, at / n_blocks, at / n_blocks, c, c + LANES);
    }
}

static void multiply_part(const void *job, int32_t i, int32_t n)
{
    const struct block *b = job;
    size_t n_all = POINTS * (size_t)panels_of(b->job->form.k);
    multiply_points(b, b->n_most, threads_share(n_all, i, n), threads_share(n_all, i + 1, n));
}

static void out_part(const void *job, int32_t i, int32_t n)
{
    const struct block *b = job;
    size_t n_blocks = (size_t)b->job->form.k / LANES;
    size_t first = threads_share(n_blocks * b->n_most, i, n);
    for (size_t at = first; at < threads_share(n_blocks * b->n_most, i + 1, n); at++) {
        size_t k = at % n_blocks * LANES;
        patch_out(b, at / n_blocks, at / n_blocks, k, k + LANES);
    }
}

static void own_part(const void *job, int32_t i, int32_t n)
{
    const struct wino *wino = job;
    const struct wino_form *f = &wino->form;
    size_t n_all = count_patches(f), most = block_size(f);
    size_t first = threads_share(n_all, i, n), end = threads_share(n_all, i + 1, n);
    const struct block b = block_of(
        wino, most, (float *)wino->scratch + (size_t)i * block_bytes(f, most) / sizeof(float));
    size_t n_blocks = (end - first + most - 1) / most;
    for (size_t k = 0; k < n_blocks; k++) {
        size_t from = first + k * (end - first) / n_blocks;
        size_t to = first + (k + 1) * (end - first) / n_blocks;
        for (size_t at = from; at < to; at++) {
            patch_in(&b, at, at - from, 0, (size_t)f->c);
        }
        multiply_points(&b, to - from, 0, POINTS * (size_t)panels_of(f->k));
        for (size_t at = from; at < to; at++) {
            patch_out(&b, at, at - from, 0, (size_t)f->k);
        }
    }
}

void wino_run(const struct wino *job, int32_t n_threads)
{
    if (!shares_points(&job->form, n_threads)) {
        threads_run(n_threads, own_part, job);
        return;
    }
    const struct block block = block_of(job, count_patches(&job->form), job->scratch);
    threads_run(n_threads, in_part, &block);
    threads_run(n_threads, multiply_part, &block);
    threads_run(n_threads, out_part, &block);
}

/* ---- when it pays ----------------------------------------------------------------------------- */

static bool has_instructions(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* In nanoseconds of one thread of a Zen 3; only their proportions matter. */
#define NS_PER_PRODUCT   0.026
#define NS_PER_TRANSFORM 4.5  /* Of a patch's channel, in or out. */
#define NS_PER_BYTE      0.04 /* Of transformed kernels, that come from memory. */

bool wino_pays(const struct wino_form *f, int32_t n_threads)
{
    double n = (double)count_patches(f), c = (double)f->c, k = (double)f->k;
    double direct = 9 * c * k * (double)(f->n * f->out_h * f->out_w) * NS_PER_PRODUCT / n_threads;
    double products = POINTS * n * c * k * NS_PER_PRODUCT / n_threads;
    double transforms = n * (c + k) * NS_PER_TRANSFORM / n_threads;
    double kernels = (POINTS - 9) * 4 * c * k * NS_PER_BYTE;
    return has_instructions() && f->c % LANES == 0 && f->k % LANES == 0 && f->c >= 2 * LANES &&
           products + transforms + kernels < direct;
}
