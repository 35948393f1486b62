/*
 * Weight gradients of convolutions in bf16 by the processor's matrix registers (AMX, Intel SDM
 * volume 1, chapter 18): a tile is 16 rows of 64 bytes, and one instruction adds the 16 x 16 sums
 * of 32 products each of two tiles to a third. The 32 are 16 places of two images
 * (wgrad_pixels.h).
 *
 * CMakeLists.txt has the flags.
 */
#include "wgrad_pixels.h"

#include <immintrin.h>

/* A tile register: a row is a place of x, or a channel of dy. */
enum { TILE_ROWS = 16, TILE_BYTES = TILE_ROWS * PLACE_BYTES };

/* Rows 0 to 7, 8 to 15 … of a matrix of eight columns into the four lanes of eight registers. */
static inline __m512i load_lanes(const uint16_t *const *rows, size_t at, size_t n)
{
    __mmask8 mask = (__mmask8)(n >= 8 ? 0xff : (1U << n) - 1);
    __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi16(mask, rows[0] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_maskz_loadu_epi16(mask, rows[8] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_maskz_loadu_epi16(mask, rows[16] + at));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_maskz_loadu_epi16(mask, rows[24] + at));
}

/* Eight channels of PLACE_CHANNELS places, two images each, to a row of a tile a channel. */
static inline void transpose(const uint16_t *const *rows, size_t at, size_t n, char *to)
{
    __m512i v[8], pairs[8], fours[8];
    for (int i = 0; i < 8; i++) {
        v[i] = load_lanes(rows + i, at, n);
    }
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_epi16(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi16(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        fours[i] = _mm512_unpacklo_epi32(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm512_unpackhi_epi32(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm512_unpacklo_epi32(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm512_unpackhi_epi32(pairs[i + 1], pairs[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        _mm512_store_si512(to + 2 * PLACE_BYTES * i, _mm512_unpacklo_epi64(fours[i], fours[i + 4]));
        _mm512_store_si512(to + 2 * PLACE_BYTES * i + PLACE_BYTES,
                           _mm512_unpackhi_epi64(fours[i], fours[i + 4]));
    }
}

/* PLACE_CHANNELS places of dy, as two rows each, to a tile for each strip of channels. */
static void pack_step(const uint16_t *const *rows, size_t n_channels, char *to, size_t strip_bytes)
{
    for (size_t at = 0; at < PRODUCT_ROUND_UP(n_channels, PLACES_BLOCK); at += 8) {
        char *tile = to + at / PLACE_CHANNELS * strip_bytes + at % PLACE_CHANNELS * PLACE_BYTES;
        if (at < n_channels) {
            transpose(rows, at, n_channels - at, tile);
        } else {
            memset(tile, 0, 8 * (size_t)PLACE_BYTES);
        }
    }
}

/* Zeros where a place is not a pixel. */
static void pack_dy(const struct places *places, size_t first, size_t n, char *to)
{
    const struct chunk *chunk = &places->chunk;
    size_t n_w = (size_t)places->op->out.w, k = (size_t)places->op->conv.k, n_rows = 0;
    size_t strip_bytes = chunk->dy_total * PLACE_BYTES;
    const uint16_t *rows[2 * TILE_ROWS];
    for (size_t p = 0; p < chunk->n_pairs; p++) {
        struct place image =
            places_find(places, places->tile->dy, chunk->first_pair + p, op_elems(places->op->out));
        image = place_at(image, chunk->first_h * n_w * k + first);
        for (size_t i = 0, h = 0, w = 0; i < chunk->dy_len; i++) {
            bool is_there = h < chunk->n_h && w < n_w;
            struct place pixel = is_there ? place_at(image, (h * n_w + w) * k)
                                          : (struct place){places->zeros, places->zeros, 0};
            rows[n_rows++] = pixel.first;
            rows[n_rows++] = pixel.second;
            if (++w == places->pitch) {
                w = 0;
                h++;
            }
            if (n_rows == 2 * TILE_ROWS) {
                pack_step(rows, n, to, strip_bytes);
                to += TILE_BYTES;
                n_rows = 0;
            }
        }
    }
    if (n_rows > 0) {
        while (n_rows < 2 * TILE_ROWS) {
            rows[n_rows++] = places->zeros;
        }
        pack_step(rows, n, to, strip_bytes);
    }
}

/* As the instruction wants it: palette 1, eight tiles of 16 rows of 64 bytes. */
static void configure(void)
{
    uint8_t config[64] = {1};
    for (int i = 0; i < 8; i++) {
        config[16 + 2 * i] = PLACE_BYTES;
        config[48 + i] = TILE_ROWS;
    }
    _tile_loadconfig(config);
}

static void release(void)
{
    _tile_release();
}

/* What the compiler does not know the tile instructions read and write. */
static inline void fence(void)
{
    __asm__ volatile("" ::: "memory");
}

/* The rows of a pair are one: n_rows is 1. */
static void sum_block(const struct strips *s, float *to, size_t stride, bool is_first)
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
    for (size_t pair = 0; pair < s->n_pairs; pair++) {
        const char *dy = s->dy + pair * s->dy_pair, *x = s->x + pair * s->x_pair;
        for (size_t i = 0; i < s->n_places; i += TILE_ROWS, dy += TILE_BYTES, x += TILE_BYTES) {
            _tile_loadd(4, dy, PLACE_BYTES);
            _tile_loadd(6, x, PLACE_BYTES);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, x + s->x_bytes, PLACE_BYTES);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, dy + s->dy_bytes, PLACE_BYTES);
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

static const struct places_kernels tiles = {.is_padded = true,
                                            .fewest = 512,
                                            .most = 512,
                                            .begin = configure,
                                            .end = release,
                                            .pack_dy = pack_dy,
                                            .sum_block = sum_block};

static void run(const struct op *op, const struct op_tile *tile)
{
    places_run(&tiles, op, tile);
}

static size_t scratch_bytes(const struct op *op)
{
    return places_scratch_bytes(&tiles, op);
}

const struct product_kernels product_kernels_tiles = {.run = run, .scratch_bytes = scratch_bytes};
