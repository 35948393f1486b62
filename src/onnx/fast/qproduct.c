/* CMakeLists.txt has the flags. */
#include "qproduct.h"

#include "threads.h"

#include "base/macros.h"

#include <string.h>

#define PANEL  16   /* Output channels of a panel of weights. */
#define ROWS   6    /* Pixels whose sums lie in registers. */
#define PIXELS 48   /* Of a block, for which the weights pass once. */
#define TERMS  4096 /* Of a tap, multiplied at once. */
#define GROUP  4    /* Panels of a piece of work. */

static size_t even(int64_t c)
{
    return ((size_t)c + 1) / 2 * 2;
}

static size_t panels_of(int64_t k)
{
    return ((size_t)k + PANEL - 1) / PANEL;
}

static size_t taps_of(const struct qproduct_form *f)
{
    return (size_t)(f->kernel_h * f->kernel_w);
}

/* ---- weights: panel, tap, pair of inputs, output, one of the pair ------------------------------ */

size_t qproduct_weights_bytes(const struct qproduct_form *f)
{
    return panels_of(f->k) * taps_of(f) * even(f->c) * PANEL * sizeof(int16_t);
}

void qproduct_pack(const struct qproduct_form *f, const int16_t *values, int16_t *out)
{
    size_t n_taps = taps_of(f), n_c = (size_t)f->c, row = even(f->c) * PANEL;
    memset(out, 0, qproduct_weights_bytes(f));
    for (size_t k = 0; k < (size_t)f->k; k++) {
        for (size_t c = 0; c < n_c; c++) {
            for (size_t tap = 0; tap < n_taps; tap++) {
                out[(k / PANEL * n_taps + tap) * row + (c / 2 * PANEL + k % PANEL) * 2 + c % 2] =
                    values[(k * n_c + c) * n_taps + tap];
            }
        }
    }
}

/* ---- the input as 16-bit differences, with its padding ----------------------------------------- */

struct plane {
    size_t row, image; /* Numbers of a row of pixels, and of an image, with padding. */
    size_t pixel;
    int64_t h, w;
};

static struct plane plane_of(const struct qproduct_form *f)
{
    struct plane plane = {
        .pixel = even(f->c), .h = f->h + f->pad_h + f->after_h, .w = f->w + f->pad_w + f->after_w};
    plane.row = (size_t)plane.w * plane.pixel;
    plane.image = (size_t)plane.h * plane.row;
    return plane;
}

size_t qproduct_scratch_bytes(const struct qproduct_form *f)
{
    return (plane_of(f).image * (size_t)f->n + 64) * sizeof(int16_t);
}

static void widen_row(const struct qproduct *job, size_t image, int64_t h,
                      const struct plane *plane, int16_t *to)
{
    const struct qproduct_form *f = &job->form;
    size_t n_c = (size_t)f->c;
    int16_t zero = (int16_t)job->x_zero;
    memset(to, 0, plane->row * sizeof *to);
    if (h < 0 || h >= f->h) {
        return;
    }
    size_t at = (image * (size_t)f->h + (size_t)h) * (size_t)f->w * n_c;
    const uint8_t *u8 = (const uint8_t *)job->x + at;
    const int8_t *s8 = (const int8_t *)job->x + at;
    to += (size_t)f->pad_w * plane->pixel;
    bool is_dense = plane->pixel == n_c;
    size_t n_pixels = is_dense ? 1 : (size_t)f->w, n = is_dense ? n_c * (size_t)f->w : n_c;
    for (size_t p = 0; p < n_pixels; p++, to += plane->pixel, u8 += n, s8 += n) {
        if (job->x_is_signed) {
            for (size_t i = 0; i < n; i++) {
                to[i] = (int16_t)(s8[i] - zero);
            }
        } else {
            for (size_t i = 0; i < n; i++) {
                to[i] = (int16_t)(u8[i] - zero);
            }
        }
    }
}

static void widen_part(const void *part, int32_t i, int32_t n)
{
    const struct qproduct *job = part;
    const struct qproduct_form *f = &job->form;
    const struct plane plane = plane_of(f);
    size_t n_rows = (size_t)f->n * (size_t)plane.h;
    for (size_t row = threads_share(n_rows, i, n); row < threads_share(n_rows, i + 1, n); row++) {
        size_t image = row / (size_t)plane.h;
        widen_row(job, image, (int64_t)(row % (size_t)plane.h) - f->pad_h, &plane,
                  (int16_t *)job->scratch + row * plane.row);
    }
}

/* ---- sums ------------------------------------------------------------------------------------- */

#ifdef __x86_64__
#include <immintrin.h>

#define INLINE __attribute__((always_inline)) static inline

/* A piece that is multiplied at once: pixels and weights of one tap. */
struct rows {
    const int16_t *x[ROWS];
    const int16_t *weights;
    size_t n_c;
    bool is_first, is_last; /* Of the pieces of a sum. */
};

INLINE __m256i broadcast(const int16_t *pair)
{
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm256_set1_epi32(both);
}

INLINE void sum_rows(const struct rows *r, size_t n, __m256i *kept, __m256i sums[ROWS][2])
{
    const int16_t *weights = r->weights;
    if (r->is_first) {
        memset(kept, 0, 2 * n * sizeof *kept);
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
        sums[i][0] = kept[2 * i];
        sums[i][1] = kept[2 * i + 1];
    }
    for (size_t c = 0; c < r->n_c; c += 2, weights += 2 * PANEL) {
        __m256i w0 = _mm256_loadu_si256((const __m256i *)(const void *)weights);
        __m256i w1 = _mm256_loadu_si256((const __m256i *)(const void *)(weights + PANEL));
#pragma GCC unroll 6
        for (size_t i = 0; i < n; i++) {
            __m256i x = broadcast(r->x[i] + c);
            sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(x, w0));
            sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(x, w1));
        }
    }
}

INLINE __m256 finish(const struct qproduct *job, __m256i sum, size_t k)
{
    __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(job->factor + k));
    value = _mm256_add_ps(value, _mm256_loadu_ps(job->summand + k));
    value = _mm256_max_ps(value, _mm256_set1_ps(job->low));
    return _mm256_min_ps(value, _mm256_set1_ps(job->high));
}

INLINE void store_bytes(const struct qproduct *job, __m256 a, __m256 b, char *to, size_t n)
{
    __m256i zero = _mm256_set1_epi32(job->y_zero);
    __m256i x = _mm256_add_epi32(_mm256_cvtps_epi32(a), zero);
    __m256i y = _mm256_add_epi32(_mm256_cvtps_epi32(b), zero);
    __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(x, y), 0xD8);
    __m128i low = _mm256_castsi256_si128(both), high = _mm256_extracti128_si256(both, 1);
    __m128i bytes =
        job->out == QPRODUCT_U8 ? _mm_packus_epi16(low, high) : _mm_packs_epi16(low, high);
    if (n == PANEL) {
        _mm_storeu_si128((__m128i *)(void *)to, bytes);
    } else {
        char all[PANEL];
        _mm_storeu_si128((__m128i *)(void *)all, bytes);
        memcpy(to, all, n);
    }
}

INLINE void store_row(const struct qproduct *job, const __m256i sum[2], size_t pixel, size_t k)
{
    size_t n_k = (size_t)job->form.k, n = WEIR_MIN(n_k - k, (size_t)PANEL);
    __m256 a = finish(job, sum[0], k), b = finish(job, sum[1], k + PANEL / 2);
    if (job->out != QPRODUCT_F32) {
        store_bytes(job, a, b, (char *)job->y + pixel * n_k + k, n);
        return;
    }
    float all[PANEL];
    _mm256_storeu_ps(all, a);
    _mm256_storeu_ps(all + PANEL / 2, b);
    memcpy((float *)job->y + pixel * n_k + k, all, n * sizeof *all);
}

INLINE void multiply_rows(const struct qproduct *job, const struct rows *r, size_t n, size_t pixel,
                          size_t k, __m256i *kept)
{
    __m256i sums[ROWS][2];
    sum_rows(r, n, kept, sums);
#pragma GCC unroll 6
    for (size_t i = 0; i < n; i++) {
        kept[2 * i] = sums[i][0];
        kept[2 * i + 1] = sums[i][1];
    }
    for (size_t i = 0; r->is_last && i < n; i++) {
        store_row(job, kept + 2 * i, pixel + i, k);
    }
}

#define MULTIPLY(n)                                                                                \
    __attribute__((noinline)) static void multiply_##n(                                            \
        const struct qproduct *job, const struct rows *r, size_t pixel, size_t k, __m256i *kept)   \
    {                                                                                              \
        multiply_rows(job, r, n, pixel, k, kept);                                                  \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
MULTIPLY(5)
MULTIPLY(6)

static void (*const multiply_by_rows[])(const struct qproduct *job, const struct rows *r,
                                        size_t pixel, size_t k, __m256i *kept) = {
    NULL, multiply_1, multiply_2, multiply_3, multiply_4, multiply_5, multiply_6};

/* Where the window of an output pixel begins. */
static const int16_t *window_at(const struct qproduct *job, const struct plane *plane, size_t pixel)
{
    const struct qproduct_form *f = &job->form;
    size_t n_image = (size_t)(f->out_h * f->out_w), image = pixel / n_image;
    size_t h = pixel % n_image / (size_t)f->out_w, w = pixel % (size_t)f->out_w;
    return (const int16_t *)job->scratch + image * plane->image +
           h * (size_t)f->stride_h * plane->row + w * (size_t)f->stride_w * plane->pixel;
}

/* The pixels of a block, which begin at its windows, with terms c to c + n_c of a tap. */
static void multiply_piece(const struct qproduct *job, struct rows *r, size_t first, size_t end,
                           size_t k, const int16_t *const *windows, size_t offset, __m256i *kept)
{
    for (size_t pixel = first; pixel < end; pixel += ROWS) {
        size_t n = WEIR_MIN(end - pixel, (size_t)ROWS);
        for (size_t i = 0; i < n; i++) {
            r->x[i] = windows[pixel - first + i] + offset;
        }
        multiply_by_rows[n](job, r, pixel, k, kept + 2 * (pixel - first));
    }
}

static void multiply_block(const struct qproduct *job, const struct plane *plane, size_t first,
                           size_t end, size_t panel)
{
    const struct qproduct_form *f = &job->form;
    const int16_t *windows[PIXELS], *weights = job->weights;
    size_t n_taps = taps_of(f);
    __m256i kept[PIXELS * 2];
    weights += panel * n_taps * plane->pixel * PANEL;
    for (size_t pixel = first; pixel < end; pixel++) {
        windows[pixel - first] = window_at(job, plane, pixel);
    }
    for (size_t tap = 0; tap < n_taps; tap++) {
        size_t at = tap / (size_t)f->kernel_w * (size_t)f->dilation_h * plane->row +
                    tap % (size_t)f->kernel_w * (size_t)f->dilation_w * plane->pixel;
        for (size_t c = 0; c < plane->pixel; c += TERMS) {
            struct rows r = {.weights = weights,
                             .n_c = WEIR_MIN(plane->pixel - c, (size_t)TERMS),
                             .is_first = tap == 0 && c == 0,
                             .is_last = tap + 1 == n_taps && c + TERMS >= plane->pixel};
            multiply_piece(job, &r, first, end, panel * PANEL, windows, at + c, kept);
            weights += r.n_c * PANEL;
        }
    }
}

/* Blocks of whole runs of rows. */
static void multiply_part(const void *part, int32_t i, int32_t n)
{
    const struct qproduct *job = part;
    const struct qproduct_form *f = &job->form;
    const struct plane plane = plane_of(f);
    size_t n_pixels = (size_t)(f->n * f->out_h * f->out_w), n_panels = panels_of(f->k);
    size_t n_runs = (n_pixels + ROWS - 1) / ROWS, n_groups = (n_panels + GROUP - 1) / GROUP;
    size_t n_blocks = (n_runs + PIXELS / ROWS - 1) / (PIXELS / ROWS);
    size_t n_all = n_blocks * n_groups;
    for (size_t at = threads_share(n_all, i, n); at < threads_share(n_all, i + 1, n); at++) {
        size_t block = at / n_groups, group = at % n_groups;
        size_t first = block * n_runs / n_blocks * ROWS;
        size_t end = WEIR_MIN((block + 1) * n_runs / n_blocks * ROWS, n_pixels);
        for (size_t panel = group * GROUP; panel < WEIR_MIN((group + 1) * GROUP, n_panels);
             panel++) {
            multiply_block(job, &plane, first, end, panel);
        }
    }
}

bool qproduct_can(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static void multiply_part(const void *part, int32_t i, int32_t n)
{
    (void)part, (void)i, (void)n;
}

bool qproduct_can(void)
{
    return false;
}
#endif

void qproduct_run(const struct qproduct *job, int32_t n_threads)
{
    threads_run(n_threads, widen_part, job);
    threads_run(n_threads, multiply_part, job);
}
