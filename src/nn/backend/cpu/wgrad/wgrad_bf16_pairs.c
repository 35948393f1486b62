/*
 * Weight-gradient GEMM of convolutions in bf16 by AVX-512's instructions for bf16 pairs. The two of
 * a pair come from two images (wgrad_pixels.h), so every pixel is packed once, whatever the kernel.
 *
 * CMakeLists.txt has the flags.
 */
#include "wgrad_pixels.h"

#include <immintrin.h>

/* Sums in registers: so many rows of two vectors. */
enum { TILE_K = 8, LANES = 16 };

static void pack_dy(const struct pixel_gemm *gemm, size_t first, size_t n, char *to)
{
    const struct chunk *chunk = &gemm->chunk;
    size_t n_w = (size_t)gemm->op->out.w, k = (size_t)gemm->op->conv.k;
    for (size_t p = 0; p < chunk->n_bf16_pairs; p++) {
        struct pixel_pair image = pixel_pair_find(gemm, gemm->tile->dy, chunk->first_image_pair + p,
                                                  op_elems(gemm->op->out));
        image = pixel_pair_at(image, chunk->first_h * n_w * k + first);
        for (size_t i = 0; i < chunk->dy_len; i++, to += PIXEL_BYTES) {
            pixel_pair_pack(pixel_pair_at(image, i * k), n, to, chunk->dy_total * PIXEL_BYTES);
        }
    }
}

static inline __m512bh load_bf16_pairs(const char *from)
{
    return (__m512bh)_mm512_load_si512(from);
}

/* One channel of dy in all lanes. */
static inline __m512bh spread(const char *pixels, int channel)
{
    return (__m512bh)_mm512_set1_epi32(((const int32_t *)(const void *)pixels)[channel]);
}

/* TILE_K rows of dy. */
static void sum_rows(const struct panels *s, float *to, size_t stride, bool is_first)
{
    __m512 acc[TILE_K][2];
#pragma GCC unroll 8
    for (int r = 0; r < TILE_K; r++) {
        __builtin_prefetch(to + (size_t)r * stride, 1);
        __builtin_prefetch(to + (size_t)r * stride + LANES, 1);
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    }
    for (size_t pair = 0; pair < s->n_bf16_pairs; pair++) {
        for (size_t row = 0; row < s->n_rows; row++) {
            const char *x = s->x + pair * s->x_pair + row * s->x_row;
            const char *dy = s->dy + pair * s->dy_pair + row * s->dy_row;
            for (size_t w = 0; w < s->n_pixels; w++, x += PIXEL_BYTES, dy += PIXEL_BYTES) {
                __m512bh c[2] = {load_bf16_pairs(x), load_bf16_pairs(x + s->x_bytes)};
#pragma GCC unroll 8
                for (int r = 0; r < TILE_K; r++) {
                    __m512bh k = spread(dy, r);
                    acc[r][0] = _mm512_dpbf16_ps(acc[r][0], k, c[0]);
                    acc[r][1] = _mm512_dpbf16_ps(acc[r][1], k, c[1]);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < TILE_K; r++) {
        float *row = to + (size_t)r * stride;
        if (!is_first) {
            acc[r][0] = _mm512_add_ps(acc[r][0], _mm512_loadu_ps(row));
            acc[r][1] = _mm512_add_ps(acc[r][1], _mm512_loadu_ps(row + LANES));
        }
        _mm512_storeu_ps(row, acc[r][0]);
        _mm512_storeu_ps(row + LANES, acc[r][1]);
    }
}

static void sum_block(const struct panels *s, float *to, size_t stride, bool is_first)
{
    for (int k = 0; k < BLOCK_CHANNELS; k += TILE_K) {
        struct panels panels = *s;
        panels.dy += (size_t)(k / PANEL_CHANNELS) * s->dy_bytes +
                     (size_t)(k % PANEL_CHANNELS) * sizeof(uint32_t);
        sum_rows(&panels, to + (size_t)k * stride, stride, is_first);
    }
}

static void nothing(void)
{
}

/* With few channels chunks of 768 pixels are fastest (64 channels, 3x3, at 56 x 56: 482 GFLOP/s,
 * with 256 pixels 454), with 512 channels chunks of 256 (498 GFLOP/s; with 768 pixels 445; one Zen
 * 5 core). */
static const struct pixel_gemm_kernels bf16_pairs = {.fewest = 256,
                                                     .most = 768,
                                                     .begin = nothing,
                                                     .end = nothing,
                                                     .pack_dy = pack_dy,
                                                     .sum_block = sum_block};

static void run(const struct op *op, const struct op_tile *tile)
{
    pixel_gemm_run(&bf16_pairs, op, tile);
}

static size_t scratch_bytes(const struct op *op)
{
    return pixel_gemm_scratch_bytes(&bf16_pairs, op);
}

const struct wgrad_kernels wgrad_kernels_bf16_pairs = {.run = run, .scratch_bytes = scratch_bytes};
