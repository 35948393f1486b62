/*
 * Weight-gradient GEMM of convolutions in bf16 by the processor's matrix registers (AMX, Intel SDM
 * volume 1, chapter 18). A tile is 16 rows of 64 bytes. One instruction adds to one tile the 16 x
 * 16 sums of 32 products each of two others. The 32 are 16 pixels of two images (wgrad_pixels.h).
 *
 * CMakeLists.txt has the flags.
 */
#include "wgrad_pixels.h"

#include <immintrin.h>

/* A tile register: a row is a packed pixel of x, or a channel of dy. */
enum { TILE_ROWS = 16, TILE_BYTES = TILE_ROWS * PIXEL_BYTES };

/* Rows 0 to 7, 8 to 15 … of a matrix of eight columns into the four lanes of eight registers. */
static inline __m512i load_lanes(const uint16_t *const *rows, size_t at, size_t n)
{
    __mmask8 mask = (__mmask8)(n >= 8 ? 0xff : (1U << n) - 1);
    __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi16(mask, rows[0] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_maskz_loadu_epi16(mask, rows[8] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_maskz_loadu_epi16(mask, rows[16] + at));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_maskz_loadu_epi16(mask, rows[24] + at));
}

/* Eight channels of PANEL_CHANNELS pixels, two images each, to one row of a tile per channel. */
static inline void transpose(const uint16_t *const *rows, size_t at, size_t n, char *to)
{
    __m512i v[8], dwords[8], qwords[8];
    for (int i = 0; i < 8; i++) {
        v[i] = load_lanes(rows + i, at, n);
    }
    for (int i = 0; i < 8; i += 2) {
        dwords[i] = _mm512_unpacklo_epi16(v[i], v[i + 1]);
        dwords[i + 1] = _mm512_unpackhi_epi16(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        qwords[i] = _mm512_unpacklo_epi32(dwords[i], dwords[i + 2]);
        qwords[i + 1] = _mm512_unpackhi_epi32(dwords[i], dwords[i + 2]);
        qwords[i + 2] = _mm512_unpacklo_epi32(dwords[i + 1], dwords[i + 3]);
        qwords[i + 3] = _mm512_unpackhi_epi32(dwords[i + 1], dwords[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        _mm512_store_si512(to + 2 * PIXEL_BYTES * i,
                           _mm512_unpacklo_epi64(qwords[i], qwords[i + 4]));
        _mm512_store_si512(to + 2 * PIXEL_BYTES * i + PIXEL_BYTES,
                           _mm512_unpackhi_epi64(qwords[i], qwords[i + 4]));
    }
}

/* PANEL_CHANNELS pixels of dy, two rows each, to one tile for each panel of channels. */
static void pack_step(const uint16_t *const *rows, size_t n_channels, char *to, size_t panel_bytes)
{
    for (size_t at = 0; at < WGRAD_ROUND_UP(n_channels, BLOCK_CHANNELS); at += 8) {
        char *tile = to + at / PANEL_CHANNELS * panel_bytes + at % PANEL_CHANNELS * PIXEL_BYTES;
        if (at < n_channels) {
            transpose(rows, at, n_channels - at, tile);
        } else {
            memset(tile, 0, 8 * (size_t)PIXEL_BYTES);
        }
    }
}

/* Zeros where the padding has no pixel. */
static void pack_dy(const struct pixel_gemm *gemm, size_t first, size_t n, char *to)
{
    const struct chunk *chunk = &gemm->chunk;
    size_t n_w = (size_t)gemm->op->out.w, k = (size_t)gemm->op->conv.k, n_rows = 0;
    size_t panel_bytes = chunk->dy_total * PIXEL_BYTES;
    const uint16_t *rows[2 * TILE_ROWS];
    for (size_t p = 0; p < chunk->n_bf16_pairs; p++) {
        struct pixel_pair image = pixel_pair_find(gemm, gemm->tile->dy, chunk->first_image_pair + p,
                                                  op_elems(gemm->op->out));
        image = pixel_pair_at(image, chunk->first_h * n_w * k + first);
        for (size_t i = 0, h = 0, w = 0; i < chunk->dy_len; i++) {
            bool is_there = h < chunk->n_h && w < n_w;
            struct pixel_pair pixel = is_there ? pixel_pair_at(image, (h * n_w + w) * k)
                                               : (struct pixel_pair){gemm->zeros, gemm->zeros, 0};
            rows[n_rows++] = pixel.first;
            rows[n_rows++] = pixel.second;
            if (++w == gemm->pitch) {
                w = 0;
                h++;
            }
            if (n_rows == 2 * TILE_ROWS) {
                pack_step(rows, n, to, panel_bytes);
                to += TILE_BYTES;
                n_rows = 0;
            }
        }
    }
    if (n_rows > 0) {
        while (n_rows < 2 * TILE_ROWS) {
            rows[n_rows++] = gemm->zeros;
        }
        pack_step(rows, n, to, panel_bytes);
    }
}

/* The configuration: palette 1, eight tiles of 16 rows of 64 bytes. */
static void configure(void)
{
    uint8_t config[64] = {1};
    for (int i = 0; i < 8; i++) {
        config[16 + 2 * i] = PIXEL_BYTES;
        config[48 + i] = TILE_ROWS;
    }
    _tile_loadconfig(config);
}

static void release(void)
{
    _tile_release();
}

/* A barrier: the compiler does not know what the tile instructions read and write. */
static inline void fence(void)
{
    __asm__ volatile("" ::: "memory");
}

static void sum_block(const struct panels *s, float *to, size_t stride, bool is_first)
{
    size_t stride_bytes = stride * sizeof(float);
    float *below = to + TILE_ROWS * stride;
    fence();
    if (is_first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, to, stride_bytes);
        _tile_loadd(1, to + TILE_ROWS, stride_bytes);
        _tile_loadd(2, below, stride_bytes);
        _tile_loadd(3, below + TILE_ROWS, stride_bytes);
    }
    for (size_t pair = 0; pair < s->n_bf16_pairs; pair++) {
        const char *dy = s->dy + pair * s->dy_pair, *x = s->x + pair * s->x_pair;
        for (size_t i = 0; i < s->n_pixels; i += TILE_ROWS, dy += TILE_BYTES, x += TILE_BYTES) {
            _tile_loadd(4, dy, PIXEL_BYTES);
            _tile_loadd(6, x, PIXEL_BYTES);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, x + s->x_bytes, PIXEL_BYTES);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, dy + s->dy_bytes, PIXEL_BYTES);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, to, stride_bytes);
    _tile_stored(1, to + TILE_ROWS, stride_bytes);
    _tile_stored(2, below, stride_bytes);
    _tile_stored(3, below + TILE_ROWS, stride_bytes);
    fence();
}

static const struct pixel_gemm_kernels tiles = {
    .begin = configure, .end = release, .pack_dy = pack_dy, .sum_block = sum_block};

static void run(const struct op *op, const struct op_tile *tile)
{
    pixel_gemm_run(&tiles, op, tile);
}

static size_t scratch_bytes(const struct op *op)
{
    return pixel_gemm_scratch_bytes(&tiles, op);
}

const struct wgrad_kernels wgrad_kernels_amx = {.run = run, .scratch_bytes = scratch_bytes};
