/* The part of wgrad_pixels.h that both tables share; CMakeLists.txt has the flags. */
#include "wgrad_pixels.h"

#include "bf16_pair.h"

/* Channels that are packed at once of dy, and of all phases of x. */
enum { SLAB = 512 };

/* Of a chunk: what is packed of it stays in the second cache, and what is added up is not written
 * too often. */
#define PLACES_BYTES ((size_t)1 << 20)

/* ---- where things are --------------------------------------------------------------------------
 */

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

static struct places make_places(const struct places_kernels *kernels, const struct op *op,
                                 const struct op_tile *tile)
{
    const struct weir_conv_params *p = &op->conv;
    struct places places = {.op = op,
                            .tile = tile,
                            .kernels = kernels,
                            .h = make_axis(p->kernel_h, p->pad_h, p),
                            .w = make_axis(p->kernel_w, p->pad_w, p)};
    places.n_left = (size_t)-places.w.low;
    places.n_right = (size_t)WEIR_MAX(places.w.high, 0);
    /* Where both sides are zeros, those after a row are those before the next. */
    bool is_shared = (int64_t)op->out.w * p->stride >= op->in[0].w;
    places.pitch = (size_t)op->out.w + (is_shared ? WEIR_MAX(places.n_left, places.n_right)
                                                  : places.n_left + places.n_right);
    places.is_dense = p->kernel_h == 1 && p->kernel_w == 1 && p->pad_h == 0 && p->pad_w == 0;
    return places;
}

static size_t n_pairs(const struct op *op)
{
    return ((size_t)op->gradient_batch + 1) / 2;
}

static size_t n_phases(const struct places *places)
{
    return (size_t)(places->h.n_phases * places->w.n_phases);
}

static size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Channels of dy, or of x, that are packed at once. */
static size_t dy_slab(const struct places *places)
{
    return WEIR_MIN((size_t)places->op->conv.k, (size_t)SLAB);
}

static size_t x_slab(const struct places *places)
{
    size_t most = WEIR_MAX(SLAB / n_phases(places) / PLACES_BLOCK, (size_t)1) * PLACES_BLOCK;
    return WEIR_MIN((size_t)places->op->in[0].c, most);
}

/* Bytes of so many channels of one place, in strips. */
static size_t place_bytes(size_t n_channels)
{
    return PRODUCT_ROUND_UP(n_channels, (size_t)PLACES_BLOCK) / PLACE_CHANNELS * PLACE_BYTES;
}

static size_t chunk_places(const struct places *places)
{
    size_t n = PLACES_BYTES /
               (place_bytes(x_slab(places)) * n_phases(places) + place_bytes(dy_slab(places)));
    return WEIR_MAX(WEIR_MIN(n, places->kernels->most), places->kernels->fewest);
}

/* Places of dy. Those of matrix registers come in whole steps. */
static void lay_out_dy(const struct places *places, struct chunk *chunk)
{
    size_t n_w = (size_t)places->op->out.w;
    if (!places->kernels->is_padded) {
        chunk->dy_len = chunk->n_h * n_w;
        chunk->dy_total = chunk->n_pairs * chunk->dy_len;
        return;
    }
    chunk->dy_len = places->is_dense ? chunk->n_h * places->pitch
                                     : PRODUCT_ROUND_UP((chunk->n_h - 1) * places->pitch + n_w,
                                                        (size_t)PLACE_CHANNELS);
    chunk->dy_total = PRODUCT_ROUND_UP(chunk->n_pairs * chunk->dy_len, (size_t)PLACE_CHANNELS);
}

/* The chunk that begins there, of about chunk_places. */
static struct chunk make_chunk(const struct places *places, size_t first_pair, size_t first_h)
{
    const struct op *op = places->op;
    size_t n_rows = (size_t)op->out.h, of_pair = n_rows * places->pitch;
    size_t n_wanted = chunk_places(places);
    size_t n_at_once = WEIR_MAX(n_wanted / of_pair, (size_t)1);
    size_t rows_at_once = ceil_div(n_rows, ceil_div(of_pair, n_wanted));
    struct chunk chunk = {.first_pair = first_pair,
                          .n_pairs = WEIR_MIN(n_at_once, n_pairs(op) - first_pair),
                          .first_h = first_h,
                          .n_h = n_at_once > 1 ? n_rows : WEIR_MIN(rows_at_once, n_rows - first_h)};
    size_t n_more = (size_t)(places->h.high - places->h.low);
    chunk.x_len = places->is_dense
                      ? chunk.n_h * places->pitch
                      : places->n_left + (chunk.n_h + n_more) * places->pitch + PLACE_CHANNELS;
    lay_out_dy(places, &chunk);
    /* Odd, so that the same place of other channels is not in the same set of a cache. */
    chunk.x_total = (chunk.n_pairs * chunk.x_len + PLACE_CHANNELS) | 1;
    return chunk;
}

struct place places_find(const struct places *places, const real *tensor, size_t i_pair,
                         size_t elems)
{
    const uint16_t *first = (const uint16_t *)(const void *)tensor + 2 * i_pair * elems;
    bool has_second = 2 * i_pair + 1 < (size_t)places->op->gradient_batch;
    return (struct place){first, has_second ? first + elems : places->zeros, has_second};
}

/* ---- packing -----------------------------------------------------------------------------------
 */

void places_pack(struct place place, size_t n, char *to, size_t strip_bytes)
{
    size_t at = 0;
    for (; at + PLACES_BLOCK <= n; at += PLACES_BLOCK, to += 2 * strip_bytes) {
        bf16_pair_two(place.first + at, place.second + at, to, to + strip_bytes);
    }
    for (; at < n; at += PLACE_CHANNELS, to += strip_bytes) {
        _mm512_store_si512(to, bf16_pair_some(place.first + at, place.second + at, n - at));
    }
    if (at % PLACES_BLOCK != 0) {
        _mm512_store_si512(to, _mm512_setzero_si512());
    }
}

static void clear_places(size_t n, size_t n_channels, char *to, size_t strip_bytes)
{
    size_t n_strips = PRODUCT_ROUND_UP(n_channels, PLACES_BLOCK) / PLACE_CHANNELS;
    for (size_t i = 0; i < n_strips; i++, to += strip_bytes) {
        memset(to, 0, n * PLACE_BYTES);
    }
}

/* What of x is packed: channels first .. first + n of all pixels of a phase. */
struct part {
    int32_t phase_h, phase_w;
    size_t first, n, strip_bytes;
};

/* One row of x to `pitch` places. */
static void pack_row(const struct places *places, struct place row, const struct part *part,
                     char *to)
{
    const struct op *op = places->op;
    size_t c = (size_t)op->in[0].c, stride = (size_t)places->w.stride;
    size_t n_in = (size_t)op->in[0].w, phase = (size_t)part->phase_w;
    size_t n_there = n_in > phase ? ceil_div(n_in - phase, stride) : 0;
    size_t n = WEIR_MIN(n_there, (size_t)op->out.w + places->n_right);
    for (size_t i = 0; i < n; i++) {
        places_pack(place_at(row, (i * stride + phase) * c + part->first), part->n,
                    to + i * PLACE_BYTES, part->strip_bytes);
    }
    clear_places(places->pitch - n, part->n, to + n * PLACE_BYTES, part->strip_bytes);
}

/* The rows of one pair that the chunk's cells meet, to x_len places. */
static void pack_pair(const struct places *places, struct place image, const struct part *part,
                      char *to)
{
    const struct op *op = places->op;
    const struct chunk *chunk = &places->chunk;
    size_t row_elems = (size_t)op->in[0].w * (size_t)op->in[0].c;
    size_t n_rows = chunk->n_h + (size_t)(places->h.high - places->h.low);
    clear_places(places->n_left, part->n, to, part->strip_bytes);
    to += places->n_left * PLACE_BYTES;
    for (size_t row = 0; row < n_rows; row++, to += places->pitch * PLACE_BYTES) {
        int64_t i = (int64_t)(chunk->first_h + row) + places->h.low;
        int64_t h = i * places->h.stride + part->phase_h;
        if (h < 0 || h >= op->in[0].h) {
            clear_places(places->pitch, part->n, to, part->strip_bytes);
        } else {
            pack_row(places, place_at(image, (size_t)h * row_elems), part, to);
        }
    }
    if (!places->is_dense) {
        clear_places(PLACE_CHANNELS, part->n, to, part->strip_bytes);
    }
}

/* Channels first .. first + n. All phases, one after the other in every strip. */
static void pack_x(const struct places *places, size_t first, size_t n, char *to)
{
    const struct chunk *chunk = &places->chunk;
    struct part part = {
        .first = first, .n = n, .strip_bytes = chunk->x_total * PLACE_BYTES * n_phases(places)};
    for (int32_t i = 0; i < places->h.stride * places->w.stride; i++) {
        part.phase_h = i / places->w.stride;
        part.phase_w = i % places->w.stride;
        if (!has_phase(&places->h, part.phase_h) || !has_phase(&places->w, part.phase_w)) {
            continue;
        }
        for (size_t p = 0; p < chunk->n_pairs; p++, to += chunk->x_len * PLACE_BYTES) {
            pack_pair(places,
                      places_find(places, places->tile->x[0], chunk->first_pair + p,
                                  op_elems(places->op->in[0])),
                      &part, to);
        }
        size_t n_rest = chunk->x_total - chunk->n_pairs * chunk->x_len;
        clear_places(n_rest, n, to, part.strip_bytes);
        to += n_rest * PLACE_BYTES;
    }
}

/* ---- adding up ---------------------------------------------------------------------------------
 */

/* Where the places of x begin that the cell meets in the chunk's first row, in a strip. */
static size_t cell_bytes(const struct places *places, int32_t tap_h, int32_t tap_w)
{
    int32_t phase = count_phases(&places->h, tap_phase(&places->h, tap_h)) * places->w.n_phases +
                    count_phases(&places->w, tap_phase(&places->w, tap_w));
    int64_t down = tap_offset(&places->h, tap_h) - places->h.low;
    int64_t right = tap_offset(&places->w, tap_w) - places->w.low;
    return ((size_t)phase * places->chunk.x_total + (size_t)down * places->pitch + (size_t)right) *
           PLACE_BYTES;
}

/* The rows and columns of outputs for which the cell meets the picture. */
static void leave_out_padding(const struct places *places, const struct product_cell *cell,
                              struct strips *strips)
{
    const struct chunk *chunk = &places->chunk;
    size_t first_h = WEIR_MAX((size_t)cell->first_h, chunk->first_h);
    size_t end_h = WEIR_MIN((size_t)cell->end_h, chunk->first_h + chunk->n_h);
    size_t first_w = (size_t)cell->first_w;
    strips->n_rows = end_h > first_h ? end_h - first_h : 0;
    strips->n_places = (size_t)cell->end_w - first_w;
    if (strips->n_rows > 0) {
        size_t n_rows_left = first_h - chunk->first_h;
        strips->x += n_rows_left * strips->x_row + first_w * PLACE_BYTES;
        strips->dy += n_rows_left * strips->dy_row + first_w * PLACE_BYTES;
    }
}

/* What the cell adds up of packed x and dy: their first strips. */
static struct strips cell_strips(const struct places *places, int32_t i_cell, const char *x,
                                 const char *dy)
{
    const struct chunk *chunk = &places->chunk;
    const struct weir_conv_params *p = &places->op->conv;
    struct strips strips = {.x = x + cell_bytes(places, i_cell / p->kernel_w, i_cell % p->kernel_w),
                            .dy = dy,
                            .x_bytes = chunk->x_total * PLACE_BYTES * n_phases(places),
                            .dy_bytes = chunk->dy_total * PLACE_BYTES,
                            .n_pairs = chunk->n_pairs,
                            .n_rows = 1,
                            .n_places = chunk->dy_len,
                            .x_pair = chunk->x_len * PLACE_BYTES,
                            .dy_pair = chunk->dy_len * PLACE_BYTES,
                            .x_row = places->pitch * PLACE_BYTES,
                            .dy_row = (size_t)places->op->out.w * PLACE_BYTES};
    if (places->is_dense) {
        strips.n_pairs = 1;
        strips.n_places = chunk->dy_total;
    } else if (!places->kernels->is_padded) {
        const struct product_cell cell = product_cell(places->op, i_cell);
        leave_out_padding(places, &cell, &strips);
    }
    return strips;
}

/* The same where there are fewer rows or channels than a block's. */
static void sum_rest(const struct places_kernels *kernels, const struct strips *strips,
                     struct product_place to)
{
    float sums[PLACES_BLOCK * PLACES_BLOCK] __attribute__((aligned(64)));
    kernels->sum_block(strips, sums, PLACES_BLOCK, true);
    for (size_t r = 0; r < to.n_rows; r++) {
        for (size_t i = 0; i < to.n_channels; i++) {
            float *at = &to.at[r * to.stride + i];
            *at = to.is_first ? sums[r * PLACES_BLOCK + i] : *at + sums[r * PLACES_BLOCK + i];
        }
    }
}

/* Packed channels of dy and x into their sums: block by block, for all cells in turn. */
static void sum_slabs(const struct places *places, const char *x, const char *dy,
                      struct product_place to)
{
    const struct op *op = places->op;
    const size_t c = (size_t)op->in[0].c;
    const struct strips first = cell_strips(places, 0, x, dy);
    for (size_t i_c = 0; i_c < to.n_channels; i_c += PLACES_BLOCK) {
        for (size_t i_k = 0; i_k < to.n_rows; i_k += PLACES_BLOCK) {
            for (int32_t cell = 0; cell < op->conv.kernel_h * op->conv.kernel_w; cell++) {
                const struct strips strips =
                    cell_strips(places, cell, x + i_c / PLACE_CHANNELS * first.x_bytes,
                                dy + i_k / PLACE_CHANNELS * first.dy_bytes);
                const struct product_place block = {
                    .at = to.at + i_k * to.stride + (size_t)cell * c + i_c,
                    .stride = to.stride,
                    .n_rows = WEIR_MIN(to.n_rows - i_k, (size_t)PLACES_BLOCK),
                    .n_channels = WEIR_MIN(to.n_channels - i_c, (size_t)PLACES_BLOCK),
                    .is_first = to.is_first};
                if (block.n_rows == PLACES_BLOCK && block.n_channels == PLACES_BLOCK) {
                    places->kernels->sum_block(&strips, block.at, block.stride, block.is_first);
                } else {
                    sum_rest(places->kernels, &strips, block);
                }
            }
        }
    }
}

/* dy's strips lie before those of x. */
static size_t dy_bytes(const struct places *places)
{
    return places->chunk.dy_total * place_bytes(dy_slab(places));
}

static void sum_chunk(const struct places *places, float *sums, char *dy)
{
    const struct op *op = places->op;
    const size_t c = (size_t)op->in[0].c, k = (size_t)op->conv.k;
    const size_t stride = (size_t)op->conv.kernel_h * (size_t)op->conv.kernel_w * c;
    char *x = dy + dy_bytes(places);
    for (size_t i_k = 0; i_k < k; i_k += dy_slab(places)) {
        const size_t n_k = WEIR_MIN(k - i_k, dy_slab(places));
        places->kernels->pack_dy(places, i_k, n_k, dy);
        for (size_t i_c = 0; i_c < c; i_c += x_slab(places)) {
            const size_t n_c = WEIR_MIN(c - i_c, x_slab(places));
            pack_x(places, i_c, n_c, x);
            sum_slabs(places, x, dy,
                      (struct product_place){
                          .at = sums + i_k * stride + i_c,
                          .stride = stride,
                          .n_rows = n_k,
                          .n_channels = n_c,
                          .is_first = places->chunk.first_pair + places->chunk.first_h == 0});
        }
    }
}

void places_run(const struct places_kernels *kernels, const struct op *op,
                const struct op_tile *tile)
{
    struct places places = make_places(kernels, op, tile);
    bool is_plain = op->conv.kernel_h * op->conv.kernel_w == 1;
    float *sums = is_plain ? op->params[OP_WEIGHT].gradient : tile->scratch;
    char *scratch = (char *)tile->scratch + product_sums_bytes(op);
    places.zeros = memset(scratch, 0, product_zeros_bytes(op));
    kernels->begin();
    for (size_t pair = 0, h = 0; pair < n_pairs(op);) {
        places.chunk = make_chunk(&places, pair, h);
        sum_chunk(&places, sums, scratch + product_zeros_bytes(op));
        h += places.chunk.n_h;
        if (h == (size_t)op->out.h) {
            pair += places.chunk.n_pairs;
            h = 0;
        }
    }
    kernels->end();
    if (!is_plain) {
        product_unravel(op, sums);
    }
}

size_t places_scratch_bytes(const struct places_kernels *kernels, const struct op *op)
{
    struct places places = make_places(kernels, op, NULL);
    places.chunk = make_chunk(&places, 0, 0); /* the largest */
    return product_sums_bytes(op) + product_zeros_bytes(op) + dy_bytes(&places) +
           places.chunk.x_total * place_bytes(x_slab(&places)) * n_phases(&places);
}
