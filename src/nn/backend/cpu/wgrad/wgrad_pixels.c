/* CMakeLists.txt has the flags. */
#include "wgrad_pixels.h"

#include "bf16_pair.h"

/* Channels that are packed at once: of dy, and of all stride phases of x. */
enum { SLAB = 512 };

/* Packed pixels of a chunk, about: they stay in the second cache, and the sums are not written too
 * often. */
enum { CHUNK_PIXELS = 512 };

/* ---- where things are --------------------------------------------------------------------- */

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
static int32_t count_stride_phases(const struct axis *axis, int32_t phase)
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
    axis.n_stride_phases = count_stride_phases(&axis, axis.stride);
    return axis;
}

static struct pixel_gemm make_gemm(const struct pixel_gemm_kernels *kernels, const struct op *op,
                                   const struct op_tile *tile)
{
    const struct weir_conv_params *p = &op->conv;
    struct pixel_gemm gemm = {.op = op,
                              .tile = tile,
                              .kernels = kernels,
                              .h = make_axis(p->kernel_h, p->pad_h, p),
                              .w = make_axis(p->kernel_w, p->pad_w, p)};
    gemm.n_left = (size_t)-gemm.w.low;
    gemm.n_right = (size_t)WEIR_MAX(gemm.w.high, 0);
    /* Where both sides are zeros, those after a row are those before the next. */
    bool is_shared = (int64_t)op->out.w * p->stride >= op->in[0].w;
    gemm.pitch = (size_t)op->out.w +
                 (is_shared ? WEIR_MAX(gemm.n_left, gemm.n_right) : gemm.n_left + gemm.n_right);
    gemm.is_dense = p->kernel_h == 1 && p->kernel_w == 1 && p->pad_h == 0 && p->pad_w == 0;
    return gemm;
}

static size_t n_bf16_pairs(const struct op *op)
{
    return ((size_t)op->gradient_batch + 1) / 2;
}

static size_t n_stride_phases(const struct pixel_gemm *gemm)
{
    return (size_t)(gemm->h.n_stride_phases * gemm->w.n_stride_phases);
}

static size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Channels of dy, or of x, that are packed at once. */
static size_t dy_slab(const struct pixel_gemm *gemm)
{
    return WEIR_MIN((size_t)gemm->op->conv.k, (size_t)SLAB);
}

static size_t x_slab(const struct pixel_gemm *gemm)
{
    size_t most =
        WEIR_MAX(SLAB / n_stride_phases(gemm) / BLOCK_CHANNELS, (size_t)1) * BLOCK_CHANNELS;
    return WEIR_MIN((size_t)gemm->op->in[0].c, most);
}

/* Bytes of so many channels of one pixel pair, in panels. */
static size_t pixel_bytes(size_t n_channels)
{
    return WGRAD_ROUND_UP(n_channels, (size_t)BLOCK_CHANNELS) / PANEL_CHANNELS * PIXEL_BYTES;
}

/* Places of dy come in whole steps. */
static void lay_out_dy(const struct pixel_gemm *gemm, struct chunk *chunk)
{
    size_t n_w = (size_t)gemm->op->out.w;
    chunk->dy_len = gemm->is_dense ? chunk->n_h * gemm->pitch
                                   : WGRAD_ROUND_UP((chunk->n_h - 1) * gemm->pitch + n_w,
                                                    (size_t)PANEL_CHANNELS);
    chunk->dy_total = WGRAD_ROUND_UP(chunk->n_bf16_pairs * chunk->dy_len, (size_t)PANEL_CHANNELS);
}

/* The chunk that begins there. */
static struct chunk make_chunk(const struct pixel_gemm *gemm, size_t first_image_pair,
                               size_t first_h)
{
    const struct op *op = gemm->op;
    size_t n_rows = (size_t)op->out.h, pixels_of_pair = n_rows * gemm->pitch;
    size_t n_at_once = WEIR_MAX(CHUNK_PIXELS / pixels_of_pair, (size_t)1);
    size_t rows_at_once = ceil_div(n_rows, ceil_div(pixels_of_pair, CHUNK_PIXELS));
    struct chunk chunk = {.first_image_pair = first_image_pair,
                          .n_bf16_pairs = WEIR_MIN(n_at_once, n_bf16_pairs(op) - first_image_pair),
                          .first_h = first_h,
                          .n_h = n_at_once > 1 ? n_rows : WEIR_MIN(rows_at_once, n_rows - first_h)};
    size_t n_more = (size_t)(gemm->h.high - gemm->h.low);
    chunk.x_len = gemm->is_dense
                      ? chunk.n_h * gemm->pitch
                      : gemm->n_left + (chunk.n_h + n_more) * gemm->pitch + PANEL_CHANNELS;
    lay_out_dy(gemm, &chunk);
    /* Odd, so that the same pixel of other channels is in another set of the cache. */
    chunk.x_total = (chunk.n_bf16_pairs * chunk.x_len + PANEL_CHANNELS) | 1;
    return chunk;
}

struct pixel_pair pixel_pair_find(const struct pixel_gemm *gemm, const real *tensor,
                                  size_t i_image_pair, size_t elems)
{
    const uint16_t *first = (const uint16_t *)(const void *)tensor + 2 * i_image_pair * elems;
    bool has_second = 2 * i_image_pair + 1 < (size_t)gemm->op->gradient_batch;
    return (struct pixel_pair){first, has_second ? first + elems : gemm->zeros, has_second};
}

/* ---- packing ------------------------------------------------------------------------------ */

/** Packs a pixel's n channels into one line of each panel, and zeros for the rest of the last
 *  block. `to` and panel_bytes are multiples of PIXEL_BYTES. */
static void pair_pack(struct pixel_pair pixels, size_t n, char *to, size_t panel_bytes)
{
    size_t at = 0;
    for (; at + BLOCK_CHANNELS <= n; at += BLOCK_CHANNELS, to += 2 * panel_bytes) {
        bf16_pair_two(pixels.first + at, pixels.second + at, to, to + panel_bytes);
    }
    for (; at < n; at += PANEL_CHANNELS, to += panel_bytes) {
        _mm512_store_si512(to, bf16_pair_some(pixels.first + at, pixels.second + at, n - at));
    }
    if (at % BLOCK_CHANNELS != 0) {
        _mm512_store_si512(to, _mm512_setzero_si512());
    }
}

static void clear_pixels(size_t n, size_t n_channels, char *to, size_t panel_bytes)
{
    size_t n_panels = WGRAD_ROUND_UP(n_channels, BLOCK_CHANNELS) / PANEL_CHANNELS;
    for (size_t i = 0; i < n_panels; i++, to += panel_bytes) {
        memset(to, 0, n * PIXEL_BYTES);
    }
}

/* What of x is packed: channels first .. first + n of all pixels of a stride phase. */
struct packed_part {
    int32_t phase_h, phase_w;
    size_t first, n, panel_bytes;
};

/* One row of x to `pitch` packed pixels. */
static void pack_row(const struct pixel_gemm *gemm, struct pixel_pair row,
                     const struct packed_part *part, char *to)
{
    const struct op *op = gemm->op;
    size_t c = (size_t)op->in[0].c, stride = (size_t)gemm->w.stride;
    size_t n_in = (size_t)op->in[0].w, phase = (size_t)part->phase_w;
    size_t n_there = n_in > phase ? ceil_div(n_in - phase, stride) : 0;
    size_t n = WEIR_MIN(n_there, (size_t)op->out.w + gemm->n_right);
    for (size_t i = 0; i < n; i++) {
        pair_pack(pixel_pair_at(row, (i * stride + phase) * c + part->first), part->n,
                  to + i * PIXEL_BYTES, part->panel_bytes);
    }
    clear_pixels(gemm->pitch - n, part->n, to + n * PIXEL_BYTES, part->panel_bytes);
}

/* The rows of one image pair that the chunk's taps meet, to x_len packed pixels. */
static void pack_pair(const struct pixel_gemm *gemm, struct pixel_pair image,
                      const struct packed_part *part, char *to)
{
    const struct op *op = gemm->op;
    const struct chunk *chunk = &gemm->chunk;
    size_t row_elems = (size_t)op->in[0].w * (size_t)op->in[0].c;
    size_t n_rows = chunk->n_h + (size_t)(gemm->h.high - gemm->h.low);
    clear_pixels(gemm->n_left, part->n, to, part->panel_bytes);
    to += gemm->n_left * PIXEL_BYTES;
    for (size_t row = 0; row < n_rows; row++, to += gemm->pitch * PIXEL_BYTES) {
        int64_t i = (int64_t)(chunk->first_h + row) + gemm->h.low;
        int64_t h = i * gemm->h.stride + part->phase_h;
        if (h < 0 || h >= op->in[0].h) {
            clear_pixels(gemm->pitch, part->n, to, part->panel_bytes);
        } else {
            pack_row(gemm, pixel_pair_at(image, (size_t)h * row_elems), part, to);
        }
    }
    if (!gemm->is_dense) {
        clear_pixels(PANEL_CHANNELS, part->n, to, part->panel_bytes);
    }
}

/* Channels first .. first + n. All stride phases, one after the other in every panel. */
static void pack_x(const struct pixel_gemm *gemm, size_t first, size_t n, char *to)
{
    const struct chunk *chunk = &gemm->chunk;
    struct packed_part part = {.first = first,
                               .n = n,
                               .panel_bytes = chunk->x_total * PIXEL_BYTES * n_stride_phases(gemm)};
    for (int32_t i = 0; i < gemm->h.stride * gemm->w.stride; i++) {
        part.phase_h = i / gemm->w.stride;
        part.phase_w = i % gemm->w.stride;
        if (!has_phase(&gemm->h, part.phase_h) || !has_phase(&gemm->w, part.phase_w)) {
            continue;
        }
        for (size_t p = 0; p < chunk->n_bf16_pairs; p++, to += chunk->x_len * PIXEL_BYTES) {
            pack_pair(gemm,
                      pixel_pair_find(gemm, gemm->tile->x[0], chunk->first_image_pair + p,
                                      op_elems(gemm->op->in[0])),
                      &part, to);
        }
        size_t n_rest = chunk->x_total - chunk->n_bf16_pairs * chunk->x_len;
        clear_pixels(n_rest, n, to, part.panel_bytes);
        to += n_rest * PIXEL_BYTES;
    }
}

/* ---- adding up ---------------------------------------------------------------------------- */

/* Where the pixels of x begin, in a panel, that the tap meets in the chunk's first row. */
static size_t tap_offset_bytes(const struct pixel_gemm *gemm, int32_t tap_h, int32_t tap_w)
{
    int32_t phase =
        count_stride_phases(&gemm->h, tap_phase(&gemm->h, tap_h)) * gemm->w.n_stride_phases +
        count_stride_phases(&gemm->w, tap_phase(&gemm->w, tap_w));
    int64_t down = tap_offset(&gemm->h, tap_h) - gemm->h.low;
    int64_t right = tap_offset(&gemm->w, tap_w) - gemm->w.low;
    return ((size_t)phase * gemm->chunk.x_total + (size_t)down * gemm->pitch + (size_t)right) *
           PIXEL_BYTES;
}

/* What the tap adds up of packed x and dy: their first panels. */
static struct panels tap_panels(const struct pixel_gemm *gemm, int32_t i_tap, const char *x,
                                const char *dy)
{
    const struct chunk *chunk = &gemm->chunk;
    const struct weir_conv_params *p = &gemm->op->conv;
    struct panels panels = {.x = x +
                                 tap_offset_bytes(gemm, i_tap / p->kernel_w, i_tap % p->kernel_w),
                            .dy = dy,
                            .x_bytes = chunk->x_total * PIXEL_BYTES * n_stride_phases(gemm),
                            .dy_bytes = chunk->dy_total * PIXEL_BYTES,
                            .n_bf16_pairs = chunk->n_bf16_pairs,
                            .n_pixels = chunk->dy_len,
                            .x_pair = chunk->x_len * PIXEL_BYTES,
                            .dy_pair = chunk->dy_len * PIXEL_BYTES};
    if (gemm->is_dense) {
        panels.n_bf16_pairs = 1;
        panels.n_pixels = chunk->dy_total;
    }
    return panels;
}

/* The same where there are fewer rows or channels than a block's. */
static void sum_rest(const struct pixel_gemm_kernels *kernels, const struct panels *panels,
                     struct wgrad_target to)
{
    float sums[BLOCK_CHANNELS * BLOCK_CHANNELS] __attribute__((aligned(64)));
    kernels->sum_block(panels, sums, BLOCK_CHANNELS, true);
    for (size_t r = 0; r < to.n_rows; r++) {
        for (size_t i = 0; i < to.n_channels; i++) {
            float *at = &to.at[r * to.stride + i];
            *at = to.is_first ? sums[r * BLOCK_CHANNELS + i] : *at + sums[r * BLOCK_CHANNELS + i];
        }
    }
}

/* Packed channels of dy and x into their sums: block by block, for all taps in turn. */
static void sum_slabs(const struct pixel_gemm *gemm, const char *x, const char *dy,
                      struct wgrad_target to)
{
    const struct op *op = gemm->op;
    const size_t c = (size_t)op->in[0].c;
    const struct panels first = tap_panels(gemm, 0, x, dy);
    for (size_t i_c = 0; i_c < to.n_channels; i_c += BLOCK_CHANNELS) {
        for (size_t i_k = 0; i_k < to.n_rows; i_k += BLOCK_CHANNELS) {
            for (int32_t tap = 0; tap < op->conv.kernel_h * op->conv.kernel_w; tap++) {
                const struct panels panels =
                    tap_panels(gemm, tap, x + i_c / PANEL_CHANNELS * first.x_bytes,
                               dy + i_k / PANEL_CHANNELS * first.dy_bytes);
                const struct wgrad_target block = {
                    .at = to.at + i_k * to.stride + (size_t)tap * c + i_c,
                    .stride = to.stride,
                    .n_rows = WEIR_MIN(to.n_rows - i_k, (size_t)BLOCK_CHANNELS),
                    .n_channels = WEIR_MIN(to.n_channels - i_c, (size_t)BLOCK_CHANNELS),
                    .is_first = to.is_first};
                if (block.n_rows == BLOCK_CHANNELS && block.n_channels == BLOCK_CHANNELS) {
                    gemm->kernels->sum_block(&panels, block.at, block.stride, block.is_first);
                } else {
                    sum_rest(gemm->kernels, &panels, block);
                }
            }
        }
    }
}

/* The panels of dy lie before those of x. */
static size_t dy_bytes(const struct pixel_gemm *gemm)
{
    return gemm->chunk.dy_total * pixel_bytes(dy_slab(gemm));
}

static void sum_chunk(const struct pixel_gemm *gemm, float *sums, char *dy)
{
    const struct op *op = gemm->op;
    const size_t c = (size_t)op->in[0].c, k = (size_t)op->conv.k;
    const size_t stride = (size_t)op->conv.kernel_h * (size_t)op->conv.kernel_w * c;
    char *x = dy + dy_bytes(gemm);
    for (size_t i_k = 0; i_k < k; i_k += dy_slab(gemm)) {
        const size_t n_k = WEIR_MIN(k - i_k, dy_slab(gemm));
        gemm->kernels->pack_dy(gemm, i_k, n_k, dy);
        for (size_t i_c = 0; i_c < c; i_c += x_slab(gemm)) {
            const size_t n_c = WEIR_MIN(c - i_c, x_slab(gemm));
            pack_x(gemm, i_c, n_c, x);
            sum_slabs(gemm, x, dy,
                      (struct wgrad_target){
                          .at = sums + i_k * stride + i_c,
                          .stride = stride,
                          .n_rows = n_k,
                          .n_channels = n_c,
                          .is_first = gemm->chunk.first_image_pair + gemm->chunk.first_h == 0});
        }
    }
}

void pixel_gemm_run(const struct pixel_gemm_kernels *kernels, const struct op *op,
                    const struct op_tile *tile)
{
    struct pixel_gemm gemm = make_gemm(kernels, op, tile);
    bool is_plain = op->conv.kernel_h * op->conv.kernel_w == 1;
    float *sums = is_plain ? op->params[OP_WEIGHT].gradient : tile->scratch;
    char *scratch = (char *)tile->scratch + wgrad_sums_bytes(op);
    gemm.zeros = memset(scratch, 0, wgrad_zeros_bytes(op));
    kernels->begin();
    for (size_t pair = 0, h = 0; pair < n_bf16_pairs(op);) {
        gemm.chunk = make_chunk(&gemm, pair, h);
        sum_chunk(&gemm, sums, scratch + wgrad_zeros_bytes(op));
        h += gemm.chunk.n_h;
        if (h == (size_t)op->out.h) {
            pair += gemm.chunk.n_bf16_pairs;
            h = 0;
        }
    }
    kernels->end();
    if (!is_plain) {
        wgrad_unravel(op, sums);
    }
}

size_t pixel_gemm_scratch_bytes(const struct pixel_gemm_kernels *kernels, const struct op *op)
{
    struct pixel_gemm gemm = make_gemm(kernels, op, NULL);
    gemm.chunk = make_chunk(&gemm, 0, 0); /* the largest */
    return wgrad_sums_bytes(op) + wgrad_zeros_bytes(op) + dy_bytes(&gemm) +
           gemm.chunk.x_total * pixel_bytes(x_slab(&gemm)) * n_stride_phases(&gemm);
}
