/* The kernels of winograd.h for AVX-512; CMakeLists.txt has the flags. The vectors are the
 * compiler's, so it compiles everywhere. */
#include "winograd_points.h"

/* Rows of a matrix product whose sums lie in registers, of so many vectors each: with those of b
 * and one of a, 31 of 32. */
#define ROWS    14
#define COLUMNS (WINOGRAD_PANEL / WINOGRAD_LANES)

/* A matrix product: out[r][k] (+)= sum over t of a[r][t] * b[t][k]. */
struct gemm {
    const float *a, *b;
    size_t n_terms;
    size_t a_row, a_term; /* floats from one row of a, and from one term, to the next */
    size_t b_term;
    float *out;
    size_t out_row;
    bool adds;
};

/* COLUMNS vectors of n_rows rows, with their sums in registers. */
ALWAYS_INLINE void multiply_rows(const struct gemm *p, size_t n_rows)
{
    vec sums[ROWS][COLUMNS];
    const float *a = p->a, *b = p->b;
    size_t a_row = p->a_row, a_term = p->a_term, b_term = p->b_term;
#pragma GCC unroll 14
    for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 2
        for (size_t k = 0; k < COLUMNS; k++) {
            sums[r][k] = (vec){0};
        }
    }
    for (size_t t = 0; t < p->n_terms; t++) {
        vec columns[COLUMNS];
#pragma GCC unroll 2
        for (size_t k = 0; k < COLUMNS; k++) {
            columns[k] = load(b + k * WINOGRAD_LANES, WINOGRAD_LANES);
        }
#pragma GCC unroll 14
        for (size_t r = 0; r < n_rows; r++) {
            float value = a[r * a_row];
#pragma GCC unroll 2
            for (size_t k = 0; k < COLUMNS; k++) {
                sums[r][k] += value * columns[k];
            }
        }
        a += a_term;
        b += b_term;
    }
#pragma GCC unroll 14
    for (size_t r = 0; r < n_rows; r++) {
#pragma GCC unroll 2
        for (size_t k = 0; k < COLUMNS; k++) {
            float *out = p->out + r * p->out_row + k * WINOGRAD_LANES;
            vec old = p->adds ? load(out, WINOGRAD_LANES) : (vec){0};
            store(out, old + sums[r][k], WINOGRAD_LANES);
        }
    }
}

/* clang-format off */
#define EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
/* clang-format on */
#define MULTIPLY(n)                                                                                \
    __attribute__((noinline)) static void multiply_##n(const struct gemm *p)                       \
    {                                                                                              \
        multiply_rows(p, n);                                                                       \
    }
EACH_ROW_COUNT(MULTIPLY)

#define ENTRY(n) multiply_##n,
static void (*const multiply_by_rows[])(const struct gemm *p) = {NULL, EACH_ROW_COUNT(ENTRY)};

/* A panel of `n_rows` rows, any number: in runs of about equal length. */
static void multiply(const struct gemm *whole, size_t n_rows)
{
    size_t n_runs = (n_rows + ROWS - 1) / ROWS;
    for (size_t i = 0; i < n_runs; i++) {
        size_t first = i * n_rows / n_runs, end = (i + 1) * n_rows / n_runs;
        struct gemm run = *whole;
        run.a += first * run.a_row;
        run.out += first * run.out_row;
        multiply_by_rows[end - first](&run);
    }
}

/* The square of `size` pixels that belongs to a patch, in an image that begins `pad` before it. */
ALWAYS_INLINE struct square square_of(const struct winograd_blocks *blocks, size_t i_patch,
                                      int32_t size, int32_t pad_h, int32_t pad_w, int32_t height,
                                      int32_t width, int32_t c)
{
    size_t i_image = i_patch / blocks->n_image, at = i_patch % blocks->n_image;
    int32_t h = (int32_t)(at / blocks->n_across) * WINOGRAD_OUT - pad_h;
    int32_t w = (int32_t)(at % blocks->n_across) * WINOGRAD_OUT - pad_w;
    return square_at(i_image, h, w, size, height, width, c);
}

static void patches_to_points(const struct winograd_form *f, const struct winograd_blocks *blocks,
                              const float *x, size_t first, size_t n, float *to)
{
    size_t c = (size_t)f->c;
    for (size_t i = 0; i < n; i++, to += blocks->in_row) {
        struct square s =
            square_of(blocks, first + i, WINOGRAD_IN, f->pad_h, f->pad_w, f->h, f->w, f->c);
        for (size_t k = 0; k < c; k += WINOGRAD_LANES) {
            size_t n_left = WEIR_MIN(c - k, (size_t)WINOGRAD_LANES);
            if (s.is_inside && n_left == WINOGRAD_LANES) {
                patch_to_points(x + k, &s, WINOGRAD_LANES, to + k, blocks->in_point, true);
            } else {
                patch_to_points(x + k, &s, n_left, to + k, blocks->in_point, false);
            }
        }
    }
}

static void patches_from_points(const struct winograd_convolution *job,
                                const struct winograd_blocks *blocks, size_t first, size_t n,
                                const float *from)
{
    const struct winograd_form *f = &job->form;
    size_t c = (size_t)f->k;
    for (size_t i = 0; i < n; i++, from += blocks->out_row) {
        struct square s =
            square_of(blocks, first + i, WINOGRAD_OUT, 0, 0, f->out_h, f->out_w, f->k);
        for (size_t k = 0; k < c; k += WINOGRAD_LANES) {
            size_t n_left = WEIR_MIN(c - k, (size_t)WINOGRAD_LANES);
            struct winograd_tail tail = {.bias = job->bias ? load(job->bias + k, n_left) : (vec){0},
                                         .added = job->added ? job->added + k : NULL,
                                         .has_relu = job->has_relu};
            if (s.is_inside && n_left == WINOGRAD_LANES) {
                patch_from_points(from + k, blocks->out_point, &tail, job->y + k, &s,
                                  WINOGRAD_LANES, true);
            } else {
                patch_from_points(from + k, blocks->out_point, &tail, job->y + k, &s, n_left,
                                  false);
            }
        }
    }
}

static void convolve(const struct winograd_convolution *job)
{
    const struct winograd_form *f = &job->form;
    const struct winograd_blocks blocks = winograd_blocks(f);
    size_t c = (size_t)f->c, n_out = winograd_round_up((size_t)f->k, WINOGRAD_PANEL);
    float *in = job->scratch, *out = in + WINOGRAD_POINTS * blocks.in_point;
    for (size_t first = 0; first < blocks.n_patches; first += blocks.n_block) {
        size_t n = WEIR_MIN(blocks.n_block, blocks.n_patches - first);
        patches_to_points(f, &blocks, job->x, first, n, in);
        const float *points = job->points;
        for (size_t p = 0; p < WINOGRAD_POINTS; p++) {
            for (size_t k = 0; k < n_out; k += WINOGRAD_PANEL, points += c * WINOGRAD_PANEL) {
                const struct gemm gemm = {.a = in + p * blocks.in_point,
                                          .b = points,
                                          .n_terms = c,
                                          .a_row = blocks.in_row,
                                          .a_term = 1,
                                          .b_term = WINOGRAD_PANEL,
                                          .out = out + p * blocks.out_point + k,
                                          .out_row = blocks.out_row};
                multiply(&gemm, n);
            }
        }
        patches_from_points(job, &blocks, first, n, out);
    }
}

/* ---- gradients of kernels ----------------------------------------------------------------- */

/* Output channels first_k to end_k of dy, and their sums. */
static void gradients_to_blocks(const struct winograd_gradient *job,
                                const struct winograd_blocks *blocks, size_t first_k, size_t end_k,
                                size_t first, size_t n, float *to, float *sums)
{
    const struct winograd_form *f = &job->form;
    for (size_t i = 0; i < n; i++, to += blocks->out_row) {
        struct square s =
            square_of(blocks, first + i, WINOGRAD_OUT, 0, 0, f->out_h, f->out_w, f->k);
        for (size_t k = first_k; k < end_k; k += WINOGRAD_LANES) {
            size_t n_left = WEIR_MIN(end_k - k, (size_t)WINOGRAD_LANES);
            float *at = to + (k - first_k), *sum = sums + (k - first_k);
            if (s.is_inside && n_left == WINOGRAD_LANES) {
                gradient_to_points(job->dy + k, &s, WINOGRAD_LANES, at, blocks->out_point, sum,
                                   true);
            } else {
                gradient_to_points(job->dy + k, &s, n_left, at, blocks->out_point, sum, false);
            }
        }
    }
}

/* Gradients of the kernels from c channels to channels first_k to end_k, from their points. */
static void gradients_from_points(const struct winograd_gradient *job,
                                  const struct winograd_blocks *blocks, const float *from,
                                  size_t first_k, size_t end_k)
{
    size_t n_c = (size_t)job->form.c, point = n_c * blocks->n_part;
    for (size_t c = 0; c < n_c; c++) {
        for (size_t k = first_k; k < end_k; k += WINOGRAD_LANES) {
            size_t n_left = WEIR_MIN(end_k - k, (size_t)WINOGRAD_LANES);
            const float *at = from + c * blocks->n_part + (k - first_k);
            float *to = job->d_kernels + (k * n_c + c) * 9;
            vec rows[3][6];
            for (size_t j = 0; j < 6; j++) {
                vec column[6], taps[3];
                for (size_t i = 0; i < 6; i++) {
                    column[i] = load(at + (i * 6 + j) * point, WINOGRAD_LANES);
                }
                kernel_from_points(column, taps);
                for (size_t i = 0; i < 3; i++) {
                    rows[i][j] = taps[i];
                }
            }
            for (size_t i = 0; i < 3; i++) {
                vec taps[3];
                kernel_from_points(rows[i], taps);
                for (size_t j = 0; j < 3; j++) {
                    for (size_t lane = 0; lane < n_left; lane++) {
                        to[lane * n_c * 9 + i * 3 + j] = taps[j][lane];
                    }
                }
            }
        }
    }
}

/* Channels first_k to end_k of dy. */
static void part_of_gradient(const struct winograd_gradient *job,
                             const struct winograd_blocks *blocks, size_t first_k, size_t end_k)
{
    const struct winograd_form *f = &job->form;
    size_t n_c = (size_t)f->c;
    float *in = job->scratch, *out = in + WINOGRAD_POINTS * blocks->in_point;
    float *products = out + WINOGRAD_POINTS * blocks->out_point;
    float *sums = products + WINOGRAD_POINTS * n_c * blocks->n_part;
    double *totals = (double *)(void *)(sums + blocks->n_part);
    memset(totals, 0, blocks->n_part * sizeof(*totals));
    for (size_t first = 0; first < blocks->n_patches; first += blocks->n_block) {
        size_t n = WEIR_MIN(blocks->n_block, blocks->n_patches - first);
        memset(sums, 0, blocks->n_part * sizeof(*sums));
        patches_to_points(f, blocks, job->x, first, n, in);
        gradients_to_blocks(job, blocks, first_k, end_k, first, n, out, sums);
        for (size_t p = 0; p < WINOGRAD_POINTS; p++) {
            for (size_t k = 0; k < end_k - first_k; k += WINOGRAD_PANEL) {
                const struct gemm gemm = {.a = in + p * blocks->in_point,
                                          .b = out + p * blocks->out_point + k,
                                          .n_terms = n,
                                          .a_row = 1,
                                          .a_term = blocks->in_row,
                                          .b_term = blocks->out_row,
                                          .out = products + p * n_c * blocks->n_part + k,
                                          .out_row = blocks->n_part,
                                          .adds = first > 0};
                multiply(&gemm, n_c);
            }
        }
        for (size_t k = 0; k < end_k - first_k; k++) {
            totals[k] += (double)sums[k];
        }
    }
    gradients_from_points(job, blocks, products, first_k, end_k);
    for (size_t k = first_k; job->d_bias && k < end_k; k++) {
        job->d_bias[k] = (float)totals[k - first_k];
    }
}

static void gradient(const struct winograd_gradient *job)
{
    const struct winograd_blocks blocks = winograd_gradient_blocks(&job->form);
    size_t n_k = (size_t)job->form.k;
    for (size_t k = 0; k < n_k; k += blocks.n_part) {
        part_of_gradient(job, &blocks, k, WEIR_MIN(k + blocks.n_part, n_k));
    }
}

/* ---- kernels ------------------------------------------------------------------------------ */

/* The kernels of 16 output channels: taps `tap` floats apart, channels `channel`. */
static void kernels_to_points(const float *from, size_t channel, size_t n, bool is_flipped,
                              float *to, size_t point)
{
    vec rows[6][3];
    for (size_t j = 0; j < 3; j++) {
        vec column[3], points[6];
        for (size_t i = 0; i < 3; i++) {
            size_t tap = is_flipped ? 8 - (i * 3 + j) : i * 3 + j;
            float values[WINOGRAD_LANES] = {0};
            for (size_t lane = 0; lane < n; lane++) {
                values[lane] = from[lane * channel + tap];
            }
            column[i] = load(values, WINOGRAD_LANES);
        }
        kernel_to_points(column, points);
        for (size_t i = 0; i < 6; i++) {
            rows[i][j] = points[i];
        }
    }
    for (size_t i = 0; i < 6; i++) {
        vec points[6];
        kernel_to_points(rows[i], points);
        for (size_t j = 0; j < 6; j++) {
            store(to + (i * 6 + j) * point, points[j], WINOGRAD_LANES);
        }
    }
}

/* By point, panel of output channels, input channel, output channel in the panel. */
static void kernels(const float *rows, int32_t k, int32_t c, bool is_flipped, float *points)
{
    size_t n_in = (size_t)(is_flipped ? k : c), n_out = (size_t)(is_flipped ? c : k);
    size_t in = is_flipped ? 9 * (size_t)c : 9, out = is_flipped ? 9 : 9 * (size_t)c;
    size_t point = winograd_round_up(n_out, WINOGRAD_PANEL) * n_in;
    for (size_t panel = 0; panel < n_out; panel += WINOGRAD_PANEL) {
        for (size_t i = 0; i < n_in; i++) {
            for (size_t j = 0; j < WINOGRAD_PANEL; j += WINOGRAD_LANES) {
                size_t first = panel + j;
                size_t n = first < n_out ? WEIR_MIN(n_out - first, (size_t)WINOGRAD_LANES) : 0;
                const float *from = rows + i * in + (n > 0 ? first : 0) * out;
                kernels_to_points(from, out, n, is_flipped,
                                  points + panel * n_in + i * WINOGRAD_PANEL + j, point);
            }
        }
    }
}

const struct winograd_kernels winograd_kernels_avx512 = {
    .kernels = kernels, .convolve = convolve, .gradient = gradient};
