/*
 * Weight gradients of convolutions in bf16 by the processor's matrix registers (AMX, Intel SDM
 * volume 1, chapter 18): a tile is 16 rows of 64 bytes, and one instruction adds the 16 x 16 sums
 * of 32 products each of two tiles to a third.
 *
 * The 32 are 16 places of the picture in two images. Two neighbours would do for a kernel of one
 * cell only, as the next one would want them paired another way; so x is packed once for all
 * cells, each of which reads it from another place on. For that the rows of x and dy are laid out
 * with the same pitch, which leaves room for the padding, and zeros of dy meet what does not belong
 * to a pixel of it. With a stride, x is packed in as many parts (phases) as the cells' pixels leave
 * different remainders.
 *
 * CMakeLists.txt has the flags.
 */
#include "product_private.h"

#include <immintrin.h>

typedef uint16_t elem;

/* Of a tile register: channels, and places of two images. A block is two by two tiles of sums. */
enum { TILE = 16, BLOCK = 2 * TILE, TILE_BYTES = 1024 };

/* Channels of x, and of dy, that are packed at once. */
enum { SLAB = 512 };

/* Places of a chunk, about: what is packed of them stays in the second cache, and what is added up
 * is not written too often. */
enum { CHUNK_PLACES = 512 };

/* One direction of the picture. Tap t of the kernel meets input i * stride + phase + offset *
 * stride in output i. */
struct axis {
    int32_t n_taps, stride, dilation, pad;
    int32_t low, high; /* least and largest offset */
    int32_t n_phases;
};

struct grid {
    struct axis h, w;
    size_t n_left, n_right; /* columns of x beyond those of dy */
    size_t pitch;           /* places from a row to the next */
    bool is_dense;          /* one cell, no padding: images follow without a gap */
};

/* Rows of some pairs of images, of all pictures dy. */
struct chunk {
    size_t first_pair, n_pairs, first_h, n_h;
    size_t x_len, dy_len;    /* places of a pair, packed */
    size_t x_total, n_steps; /* of all pairs: places; runs of TILE places */
};

/* Where packed tiles are, and how they follow one another. */
struct strips {
    const char *x, *dy;
    size_t x_bytes, dy_bytes; /* from TILE channels to the next */
    size_t n_segments, n_steps;
    size_t x_segment, dy_segment; /* bytes */
};

static int32_t tap_shift(const struct axis *axis, int32_t tap)
{
    return tap * axis->dilation - axis->pad;
}

static int32_t tap_phase(const struct axis *axis, int32_t tap)
{
    int32_t rest = tap_shift(axis, tap) % axis->stride;
    return rest < 0 ? rest + axis->stride : rest;
}

static int32_t tap_offset(const struct axis *axis, int32_t tap)
{
    return (tap_shift(axis, tap) - tap_phase(axis, tap)) / axis->stride;
}

static bool has_phase(const struct axis *axis, int32_t phase)
{
    int32_t tap = 0;
    while (tap < axis->n_taps && tap_phase(axis, tap) != phase) {
        tap++;
    }
    return tap < axis->n_taps;
}

/* Phases below this one that some tap has. */
static int32_t count_phases(const struct axis *axis, int32_t phase)
{
    int32_t n = 0;
    for (int32_t i = 0; i < phase; i++) {
        n += has_phase(axis, i);
    }
    return n;
}

static struct axis make_axis(int32_t n_taps, int32_t pad, const struct weir_conv_params *conv)
{
    struct axis axis = {
        .n_taps = n_taps, .stride = conv->stride, .dilation = conv->dilation, .pad = pad};
    axis.low = tap_offset(&axis, 0);
    axis.high = tap_offset(&axis, n_taps - 1);
    axis.n_phases = count_phases(&axis, axis.stride);
    return axis;
}

static struct grid make_grid(const struct op *op)
{
    const struct weir_conv_params *p = &op->conv;
    struct grid grid = {.h = make_axis(p->kernel_h, p->pad_h, p),
                        .w = make_axis(p->kernel_w, p->pad_w, p)};
    grid.n_left = (size_t)-grid.w.low;
    grid.n_right = (size_t)WEIR_MAX(grid.w.high, 0);
    /* Where both sides are zeros, those after a row are those before the next. */
    bool is_shared = (int64_t)op->out.w * p->stride >= op->in[0].w;
    grid.pitch = (size_t)op->out.w +
                 (is_shared ? WEIR_MAX(grid.n_left, grid.n_right) : grid.n_left + grid.n_right);
    grid.is_dense = p->kernel_h == 1 && p->kernel_w == 1 && p->pad_h == 0 && p->pad_w == 0;
    return grid;
}

static size_t n_pairs(const struct op *op)
{
    return ((size_t)op->gradient_batch + 1) / 2;
}

static size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* The chunk that begins there, of about CHUNK_PLACES. */
static struct chunk make_chunk(const struct op *op, const struct grid *grid, size_t first_pair,
                               size_t first_h)
{
    size_t n_rows = (size_t)op->out.h, of_pair = n_rows * grid->pitch;
    size_t n_at_once = WEIR_MAX(CHUNK_PLACES / of_pair, (size_t)1);
    size_t rows_at_once = ceil_div(n_rows, ceil_div(of_pair, CHUNK_PLACES));
    struct chunk chunk = {.first_pair = first_pair,
                          .n_pairs = WEIR_MIN(n_at_once, n_pairs(op) - first_pair),
                          .first_h = first_h,
                          .n_h = n_at_once > 1 ? n_rows : WEIR_MIN(rows_at_once, n_rows - first_h)};
    size_t n_more = (size_t)(grid->h.high - grid->h.low);
    if (grid->is_dense) {
        chunk.x_len = chunk.dy_len = chunk.n_h * grid->pitch;
    } else {
        size_t n_met = (chunk.n_h - 1) * grid->pitch + (size_t)op->out.w;
        chunk.dy_len = PRODUCT_ROUND_UP(n_met, (size_t)TILE);
        chunk.x_len = grid->n_left + (chunk.n_h + n_more) * grid->pitch + TILE;
    }
    chunk.n_steps = ceil_div(chunk.n_pairs * chunk.dy_len, TILE);
    /* Odd, so that the same place of other channels is not in the same set of a cache. */
    chunk.x_total = (chunk.n_pairs * chunk.x_len + TILE) | 1;
    return chunk;
}

/* ---- packing -----------------------------------------------------------------------------------
 */

/* 16 channels of a place from `at` on, of which n > 0 are there: one dword each, of both images. */
static inline __m512i pair_up(const elem *first, const elem *second, size_t at, size_t n)
{
    __mmask16 mask = (__mmask16)(n >= TILE ? 0xffff : (1U << n) - 1);
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first + at));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, second + at));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* A place's channels to one row of the tiles of each TILE of them. */
static inline void pack_place(const elem *first, const elem *second, size_t n_channels, char *to,
                              size_t strip_bytes)
{
    size_t at = 0;
    for (; at < n_channels; at += TILE, to += strip_bytes) {
        _mm512_store_si512(to, pair_up(first, second, at, n_channels - at));
    }
    if (at % BLOCK != 0) {
        _mm512_store_si512(to, _mm512_setzero_si512());
    }
}

static inline void clear_places(size_t n, size_t n_channels, char *to, size_t strip_bytes)
{
    for (size_t at = 0; at < PRODUCT_ROUND_UP(n_channels, BLOCK); at += TILE, to += strip_bytes) {
        memset(to, 0, n * 64);
    }
}

/* What of x is packed: channels first .. first + n of all pixels of a phase. */
struct part {
    int32_t phase_h, phase_w;
    size_t first, n;
};

/* The same pixel of both images of a pair; where there is no second, zeros for all of them. */
struct pair {
    const elem *first, *second;
    size_t second_step; /* 1, or 0 */
};

static inline struct pair pair_at(struct pair pair, size_t elems)
{
    return (struct pair){pair.first + elems, pair.second + elems * pair.second_step,
                         pair.second_step};
}

static struct pair find_pair(const struct op *op, const real *tensor, size_t i_pair, size_t elems,
                             const elem *zeros)
{
    const elem *first = (const elem *)(const void *)tensor + 2 * i_pair * elems;
    bool has_second = 2 * i_pair + 1 < (size_t)op->gradient_batch;
    return (struct pair){first, has_second ? first + elems : zeros, has_second};
}

/* One row of x to `pitch` places. */
static void pack_row(const struct op *op, const struct grid *grid, struct pair row,
                     struct part part, char *to, size_t strip_bytes)
{
    size_t c = (size_t)op->in[0].c, stride = (size_t)grid->w.stride;
    size_t n_in = (size_t)op->in[0].w, phase = (size_t)part.phase_w;
    size_t n_there = n_in > phase ? ceil_div(n_in - phase, stride) : 0;
    size_t n = WEIR_MIN(n_there, (size_t)op->out.w + grid->n_right);
    for (size_t i = 0; i < n; i++) {
        struct pair pixel = pair_at(row, (i * stride + phase) * c);
        pack_place(pixel.first + part.first, pixel.second + part.first * pixel.second_step, part.n,
                   to + i * 64, strip_bytes);
    }
    clear_places(grid->pitch - n, part.n, to + n * 64, strip_bytes);
}

/* The rows of one pair that the chunk's cells meet, to x_len places. */
static void pack_pair(const struct op *op, const struct grid *grid, const struct chunk *chunk,
                      struct pair image, struct part part, char *to, size_t strip_bytes)
{
    size_t row_elems = (size_t)op->in[0].w * (size_t)op->in[0].c;
    size_t n_rows = chunk->n_h + (size_t)(grid->h.high - grid->h.low);
    clear_places(grid->n_left, part.n, to, strip_bytes);
    to += grid->n_left * 64;
    for (size_t row = 0; row < n_rows; row++, to += grid->pitch * 64) {
        int64_t i = (int64_t)(chunk->first_h + row) + grid->h.low;
        int64_t h = i * grid->h.stride + part.phase_h;
        if (h < 0 || h >= op->in[0].h) {
            clear_places(grid->pitch, part.n, to, strip_bytes);
        } else {
            pack_row(op, grid, pair_at(image, (size_t)h * row_elems), part, to, strip_bytes);
        }
    }
    if (!grid->is_dense) {
        clear_places(TILE, part.n, to, strip_bytes);
    }
}

/* All phases, one after the other in every strip. */
static void pack_x(const struct op *op, const struct op_tile *tile, const struct grid *grid,
                   const struct chunk *chunk, struct part part, char *to, const elem *zeros)
{
    size_t n_phases = (size_t)(grid->h.n_phases * grid->w.n_phases);
    size_t strip_bytes = chunk->x_total * 64 * n_phases;
    for (int32_t i = 0; i < grid->h.stride * grid->w.stride; i++) {
        part.phase_h = i / grid->w.stride;
        part.phase_w = i % grid->w.stride;
        if (!has_phase(&grid->h, part.phase_h) || !has_phase(&grid->w, part.phase_w)) {
            continue;
        }
        for (size_t p = 0; p < chunk->n_pairs; p++, to += chunk->x_len * 64) {
            struct pair image =
                find_pair(op, tile->x[0], chunk->first_pair + p, op_elems(op->in[0]), zeros);
            pack_pair(op, grid, chunk, image, part, to, strip_bytes);
        }
        size_t n_rest = chunk->x_total - chunk->n_pairs * chunk->x_len;
        clear_places(n_rest, part.n, to, strip_bytes);
        to += n_rest * 64;
    }
}

/* Rows 0 to 7, 8 to 15 … of a matrix of eight columns into the four lanes of eight registers. */
static inline __m512i load_lanes(const elem *const *rows, size_t at, size_t n)
{
    __mmask8 mask = (__mmask8)(n >= 8 ? 0xff : (1U << n) - 1);
    __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi16(mask, rows[0] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_maskz_loadu_epi16(mask, rows[8] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_maskz_loadu_epi16(mask, rows[16] + at));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_maskz_loadu_epi16(mask, rows[24] + at));
}

/* Eight channels of TILE places, two images each, to a row of a tile a channel. */
static inline void transpose(const elem *const *rows, size_t at, size_t n, char *to)
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
        _mm512_store_si512(to + 128 * i, _mm512_unpacklo_epi64(fours[i], fours[i + 4]));
        _mm512_store_si512(to + 128 * i + 64, _mm512_unpackhi_epi64(fours[i], fours[i + 4]));
    }
}

/* TILE places of dy, as two rows each, to a tile for each TILE channels. */
static void pack_step(const elem *const *rows, size_t n_channels, char *to, size_t strip_bytes)
{
    for (size_t at = 0; at < PRODUCT_ROUND_UP(n_channels, BLOCK); at += 8) {
        char *tile = to + at / TILE * strip_bytes + at % TILE * 64;
        if (at < n_channels) {
            transpose(rows, at, n_channels - at, tile);
        } else {
            memset(tile, 0, 8 * 64);
        }
    }
}

/* Channels first .. first + n of dy; zeros where a place is not one of its pixels. */
static void pack_dy(const struct op *op, const struct op_tile *tile, const struct grid *grid,
                    const struct chunk *chunk, size_t first, size_t n, char *to, const elem *zeros)
{
    size_t n_w = (size_t)op->out.w, k = (size_t)op->conv.k, n_rows = 0;
    size_t strip_bytes = chunk->n_steps * TILE_BYTES;
    const elem *rows[2 * TILE];
    for (size_t p = 0; p < chunk->n_pairs; p++) {
        struct pair image =
            find_pair(op, tile->dy, chunk->first_pair + p, op_elems(op->out), zeros);
        image = pair_at(image, chunk->first_h * n_w * k);
        for (size_t i = 0, h = 0, w = 0; i < chunk->dy_len; i++) {
            struct pair pixel = pair_at(image, (h * n_w + w) * k);
            bool is_there = h < chunk->n_h && w < n_w;
            rows[n_rows++] = is_there ? pixel.first + first : zeros;
            rows[n_rows++] = is_there ? pixel.second + first * pixel.second_step : zeros;
            if (++w == grid->pitch) {
                w = 0;
                h++;
            }
            if (n_rows == 2 * TILE) {
                pack_step(rows, n, to, strip_bytes);
                to += TILE_BYTES;
                n_rows = 0;
            }
        }
    }
    if (n_rows > 0) {
        while (n_rows < 2 * TILE) {
            rows[n_rows++] = zeros;
        }
        pack_step(rows, n, to, strip_bytes);
    }
}

/* ---- adding up ---------------------------------------------------------------------------------
 */

/* As the instruction wants it: palette 1, eight tiles of 16 rows of 64 bytes. */
static void configure(void)
{
    uint8_t config[64] = {1};
    for (int i = 0; i < 8; i++) {
        config[16 + 2 * i] = 64;
        config[48 + i] = TILE;
    }
    _tile_loadconfig(config);
}

/* What the compiler does not know the tile instructions read and write. */
static inline void fence(void)
{
    __asm__ volatile("" ::: "memory");
}

/* BLOCK x BLOCK sums = or += over all places, rows of dy and columns of x. */
static void sum_block(const struct strips *s, float *to, size_t stride, bool is_first)
{
    size_t stride_bytes = stride * sizeof(float);
    float *below = to + TILE * stride;
    fence();
    if (is_first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, to, stride_bytes);
        _tile_loadd(1, to + TILE, stride_bytes);
        _tile_loadd(2, below, stride_bytes);
        _tile_loadd(3, below + TILE, stride_bytes);
    }
    for (size_t segment = 0; segment < s->n_segments; segment++) {
        const char *dy = s->dy + segment * s->dy_segment, *x = s->x + segment * s->x_segment;
        for (size_t i = 0; i < s->n_steps; i++, dy += TILE_BYTES, x += TILE_BYTES) {
            _tile_loadd(4, dy, 64);
            _tile_loadd(6, x, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, x + s->x_bytes, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, dy + s->dy_bytes, 64);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, to, stride_bytes);
    _tile_stored(1, to + TILE, stride_bytes);
    _tile_stored(2, below, stride_bytes);
    _tile_stored(3, below + TILE, stride_bytes);
    fence();
}

/* The same where there are fewer rows or channels. */
static void sum_rest(const struct strips *s, struct product_place to)
{
    float sums[BLOCK * BLOCK] __attribute__((aligned(64)));
    sum_block(s, sums, BLOCK, true);
    for (size_t r = 0; r < to.n_rows; r++) {
        for (size_t i = 0; i < to.n_channels; i++) {
            float *at = &to.at[r * to.stride + i];
            *at = to.is_first ? sums[r * BLOCK + i] : *at + sums[r * BLOCK + i];
        }
    }
}

/* Where the places of x begin that the cell meets, in a strip. */
static size_t cell_bytes(const struct grid *grid, const struct chunk *chunk, int32_t tap_h,
                         int32_t tap_w)
{
    int32_t phase = count_phases(&grid->h, tap_phase(&grid->h, tap_h)) * grid->w.n_phases +
                    count_phases(&grid->w, tap_phase(&grid->w, tap_w));
    int64_t down = tap_offset(&grid->h, tap_h) - grid->h.low;
    int64_t right = tap_offset(&grid->w, tap_w) - grid->w.low;
    return ((size_t)phase * chunk->x_total + (size_t)down * grid->pitch + (size_t)right) * 64;
}

/* Packed channels of dy and x into their sums: BLOCK by BLOCK of them, for all cells in turn. */
static void sum_slabs(const struct op *op, const struct grid *grid, const struct chunk *chunk,
                      struct strips strips, struct product_place to)
{
    int32_t n_cells = op->conv.kernel_h * op->conv.kernel_w;
    const char *x = strips.x, *dy = strips.dy;
    for (size_t i_c = 0; i_c < to.n_channels; i_c += BLOCK) {
        for (size_t i_k = 0; i_k < to.n_rows; i_k += BLOCK) {
            strips.dy = dy + i_k / TILE * strips.dy_bytes;
            for (int32_t cell = 0; cell < n_cells; cell++) {
                size_t skip =
                    cell_bytes(grid, chunk, cell / op->conv.kernel_w, cell % op->conv.kernel_w);
                struct product_place block = {
                    .at = to.at + i_k * to.stride + (size_t)cell * (size_t)op->in[0].c + i_c,
                    .stride = to.stride,
                    .n_rows = WEIR_MIN(to.n_rows - i_k, (size_t)BLOCK),
                    .n_channels = WEIR_MIN(to.n_channels - i_c, (size_t)BLOCK),
                    .is_first = to.is_first};
                strips.x = x + i_c / TILE * strips.x_bytes + skip;
                if (block.n_rows == BLOCK && block.n_channels == BLOCK) {
                    sum_block(&strips, block.at, block.stride, block.is_first);
                } else {
                    sum_rest(&strips, block);
                }
            }
        }
    }
}

static void sum_chunk(const struct op *op, const struct op_tile *tile, const struct grid *grid,
                      const struct chunk *chunk, float *sums, char *scratch)
{
    size_t c = (size_t)op->in[0].c, k = (size_t)op->conv.k;
    size_t n_cells = (size_t)op->conv.kernel_h * (size_t)op->conv.kernel_w;
    size_t n_phases = (size_t)(grid->h.n_phases * grid->w.n_phases);
    const elem *zeros = (const elem *)(const void *)scratch;
    char *dy = scratch + product_zeros_bytes(op);
    char *x = dy + PRODUCT_ROUND_UP(WEIR_MIN(k, (size_t)SLAB), (size_t)BLOCK) / TILE *
                       chunk->n_steps * TILE_BYTES;
    struct strips strips = {.x = x,
                            .dy = dy,
                            .x_bytes = chunk->x_total * 64 * n_phases,
                            .dy_bytes = chunk->n_steps * TILE_BYTES,
                            .n_segments = grid->is_dense ? 1 : chunk->n_pairs,
                            .n_steps = grid->is_dense ? chunk->n_steps : chunk->dy_len / TILE,
                            .x_segment = chunk->x_len * 64,
                            .dy_segment = chunk->dy_len * 64};
    for (size_t i_k = 0; i_k < k; i_k += SLAB) {
        size_t n_k = WEIR_MIN(k - i_k, (size_t)SLAB);
        pack_dy(op, tile, grid, chunk, i_k, n_k, dy, zeros);
        for (size_t i_c = 0; i_c < c; i_c += SLAB) {
            size_t n_c = WEIR_MIN(c - i_c, (size_t)SLAB);
            pack_x(op, tile, grid, chunk, (struct part){.first = i_c, .n = n_c}, x, zeros);
            sum_slabs(op, grid, chunk, strips,
                      (struct product_place){.at = sums + i_k * n_cells * c + i_c,
                                             .stride = n_cells * c,
                                             .n_rows = n_k,
                                             .n_channels = n_c,
                                             .is_first = chunk->first_pair + chunk->first_h == 0});
        }
    }
}

static void run(const struct op *op, const struct op_tile *tile)
{
    const struct grid grid = make_grid(op);
    bool is_plain = op->conv.kernel_h * op->conv.kernel_w == 1;
    float *sums = is_plain ? op->params[OP_WEIGHT].gradient : tile->scratch;
    char *scratch = (char *)tile->scratch + product_sums_bytes(op);
    memset(scratch, 0, product_zeros_bytes(op));
    configure();
    for (size_t pair = 0, h = 0; pair < n_pairs(op);) {
        struct chunk chunk = make_chunk(op, &grid, pair, h);
        sum_chunk(op, tile, &grid, &chunk, sums, scratch);
        h += chunk.n_h;
        if (h == (size_t)op->out.h) {
            pair += chunk.n_pairs;
            h = 0;
        }
    }
    _tile_release();
    if (!is_plain) {
        product_unravel(op, sums);
    }
}

static size_t scratch_bytes(const struct op *op)
{
    const struct grid grid = make_grid(op);
    const struct chunk largest = make_chunk(op, &grid, 0, 0);
    size_t n_phases = (size_t)(grid.h.n_phases * grid.w.n_phases);
    size_t n_k = PRODUCT_ROUND_UP(WEIR_MIN((size_t)op->conv.k, (size_t)SLAB), (size_t)BLOCK);
    size_t n_c = PRODUCT_ROUND_UP(WEIR_MIN((size_t)op->in[0].c, (size_t)SLAB), (size_t)BLOCK);
    return product_sums_bytes(op) + product_zeros_bytes(op) +
           n_k / TILE * largest.n_steps * TILE_BYTES + n_c / TILE * largest.x_total * 64 * n_phases;
}

const struct product_kernels product_kernels_tiles = {.run = run, .scratch_bytes = scratch_bytes};
