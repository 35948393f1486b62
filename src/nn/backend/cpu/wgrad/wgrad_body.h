/* The bodies of wgrad.h. One file per type includes it and names the table (WGRAD_TABLE). */
#include "nn/backend/cpu/vector/vector_elem.h"
#include "wgrad_private.h"
#if defined(VECTOR_IS_BF16)
#include "bf16_pair.h"
#endif

/* One channel of the pixels that one step of the inner loop takes: two of bf16, one of f32. */
#if defined(VECTOR_IS_BF16)
typedef uint32_t packed;

enum { STEP = 2, PANEL_PIXELS = WGRAD_PANEL_PIXELS_BF16 };
#else
typedef float packed;

enum { STEP = 1, PANEL_PIXELS = WGRAD_PANEL_PIXELS_F32 };
#endif

/* A tile of the gradient is TILE_K rows of TILE_C sums, all in registers. dy is packed by K_BLOCK
 * channels, one cache line; a tile takes half of it. */
enum { TILE_K = 8, TILE_C = 2 * LANES, K_BLOCK = 2 * TILE_K };

/* What a panel is made of: rows of x and dy, one each per pixel. */
struct panel {
    const elem *x[PANEL_PIXELS + STEP], *dy[PANEL_PIXELS + STEP];
    size_t n_pixels, n_steps;
    bool is_last; /* of all: nothing follows */
};

#if defined(VECTOR_IS_BF16)

static inline vecu pack16(const elem *const *rows, size_t at, size_t n)
{
    return (vecu)bf16_pair_some(rows[0] + at, rows[1] + at, n);
}

/* The channels that go two vectors at a time, and how many those are. */
static inline size_t pack_twos(const elem *const *rows, size_t n_steps, size_t n_channels,
                               size_t block, packed *step)
{
    size_t at = 0, to_next = block > LANES ? LANES : block * n_steps;
    for (; at + 2 * LANES <= n_channels; at += 2 * LANES) {
        packed *to = step + at / block * block * n_steps;
        bf16_pair_two(rows[0] + at, rows[1] + at, to, to + to_next);
    }
    return at;
}

static inline vec multiply_add(vec sum, packed k, vecu c)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)k), (__m512bh)c);
}

typedef vecu packed_vec;

#else

static inline vec pack16(const elem *const *rows, size_t at, size_t n)
{
    return load_floats(rows[0] + at, n);
}

static inline size_t pack_twos(const elem *const *rows, size_t n_steps, size_t n_channels,
                               size_t block, packed *step)
{
    (void)rows, (void)n_steps, (void)n_channels, (void)block, (void)step;
    return 0; /* nothing is to be paired */
}

static inline vec multiply_add(vec sum, packed k, vec c)
{
    return sum + k * c;
}

typedef vec packed_vec;

#endif

/* The panel's rows, `block` channels of all of them after the other. */
static inline void pack(const elem *const *rows, size_t n_steps, size_t n_channels, size_t block,
                        packed *to)
{
    for (size_t i = 0; i < n_steps; i++) {
        packed *step = to + i * block;
        size_t at = pack_twos(rows + i * STEP, n_steps, n_channels, block, step);
        for (; at < n_channels; at += LANES) {
            packed_vec v = pack16(rows + i * STEP, at, n_channels - at);
            memcpy(step + at / block * block * n_steps + at % block, &v, sizeof(v));
        }
    }
}

/* to[r][0..n) = or += sums[r], for the rows and channels that there are. */
static void give_some(vec (*sums)[2], int n_vectors, struct wgrad_target to)
{
    for (size_t r = 0; r < to.n_rows; r++) {
        float *row = to.at + r * to.stride;
        for (int v = 0; v < n_vectors; v++, row += LANES) {
            size_t n = to.n_channels - (size_t)v * LANES;
            store_floats(row, to.is_first ? sums[r][v] : load_floats(row, n) + sums[r][v], n);
        }
    }
}

/* Memory that will be wanted soon. */
struct ahead {
    const char *from;
    size_t n_lines;
};

/* The sums of one tile over a panel. */
static inline __attribute__((always_inline)) void sum_tile(const packed *dy, const packed *x,
                                                           size_t n_steps, int n_vectors,
                                                           struct ahead ahead,
                                                           struct wgrad_target to)
{
    vec acc[TILE_K][2] = {0};
    for (size_t r = 0; r < to.n_rows; r++) {
        __builtin_prefetch(to.at + r * to.stride);
        __builtin_prefetch(to.at + r * to.stride + LANES);
    }
    for (size_t i = 0; i < n_steps; i++, dy += K_BLOCK, x += TILE_C) {
        packed_vec c[2];
        if (i < ahead.n_lines) {
            __builtin_prefetch(ahead.from + i * 64, 0, 2);
        }
        memcpy(&c[0], x, sizeof(c[0]));
        memcpy(&c[1], x + LANES, sizeof(c[1]));
#pragma GCC unroll 8
        for (int r = 0; r < TILE_K; r++) {
#pragma GCC unroll 2
            for (int v = 0; v < n_vectors; v++) {
                acc[r][v] = multiply_add(acc[r][v], dy[r], c[v]);
            }
        }
    }
    if (to.n_rows == TILE_K && to.n_channels >= (size_t)n_vectors * LANES) {
        if (!to.is_first) {
#pragma GCC unroll 8
            for (int r = 0; r < TILE_K; r++) {
#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++) {
                    acc[r][v] += load_floats(to.at + (size_t)r * to.stride + v * LANES, LANES);
                }
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < TILE_K; r++) {
#pragma GCC unroll 2
            for (int v = 0; v < n_vectors; v++) {
                store_floats(to.at + (size_t)r * to.stride + v * LANES, acc[r][v], LANES);
            }
        }
        return;
    }
    vec sums[TILE_K][2]; /* in memory only now: acc are registers */
#pragma GCC unroll 8
    for (int r = 0; r < TILE_K; r++) {
        sums[r][0] = acc[r][0];
        sums[r][1] = acc[r][1];
    }
    give_some(sums, n_vectors, to);
}

static void sum_wide_tile(const packed *dy, const packed *x, size_t n_steps, struct ahead ahead,
                          struct wgrad_target to)
{
    sum_tile(dy, x, n_steps, 2, ahead, to);
}

static void sum_narrow_tile(const packed *dy, const packed *x, size_t n_steps, struct ahead ahead,
                            struct wgrad_target to)
{
    sum_tile(dy, x, n_steps, 1, ahead, to);
}

/* What tile i of n prefetches: its part of what follows the panel's rows, first of x, then of dy.
 * With a stride, or with taps to come, that is not always the next panel, but it does no harm. */
static struct ahead look_ahead(const struct panel *panel, size_t c, size_t k, size_t i, size_t n)
{
    size_t x_bytes = panel->n_pixels * c * sizeof(elem),
           dy_bytes = panel->n_pixels * k * sizeof(elem);
    size_t first = (x_bytes + dy_bytes) * i / n;
    if (panel->is_last) {
        return (struct ahead){NULL, 0};
    }
    bool is_x = first < x_bytes;
    const elem *const *rows = is_x ? panel->x : panel->dy;
    return (struct ahead){.from = (const char *)(rows[panel->n_pixels - 1] + (is_x ? c : k)) +
                                  (is_x ? first : first - x_bytes),
                          .n_lines = (x_bytes + dy_bytes) * (i + 1) / n / 64 - first / 64};
}

/* Steps of a panel below which what a tile writes takes longer than what it reads. */
enum { SHORT_STEPS = 100 };

/* All tiles of one kernel tap over one panel. */
static void sum_panel(const struct op *op, const struct panel *panel, packed *scratch,
                      struct wgrad_target to)
{
    size_t c = (size_t)op->in[0].c, k = (size_t)op->conv.k, n_steps = panel->n_steps;
    packed *x = scratch, *dy = x + n_steps * WGRAD_ROUND_UP(c, TILE_C);
    pack(panel->x, n_steps, c, TILE_C, x);
    pack(panel->dy, n_steps, k, K_BLOCK, dy);
    size_t n_across = (c + TILE_C - 1) / TILE_C, n_down = (k + TILE_K - 1) / TILE_K;
    for (size_t i = 0; i < n_across * n_down; i++) {
        /* Whole rows of sums one after the other, or all rows while the part of x is near. */
        bool is_short = n_steps < SHORT_STEPS;
        size_t i_c = (is_short ? i % n_across : i / n_down) * TILE_C;
        size_t i_k = (is_short ? i / n_across : i % n_down) * TILE_K;
        const packed *dy_tile = dy + i_k / K_BLOCK * K_BLOCK * n_steps + i_k % K_BLOCK;
        struct wgrad_target tile = {.at = to.at + i_k * to.stride + i_c,
                                    .stride = to.stride,
                                    .n_rows = WEIR_MIN(k - i_k, (size_t)TILE_K),
                                    .n_channels = WEIR_MIN(c - i_c, (size_t)TILE_C),
                                    .is_first = to.is_first};
        struct ahead ahead = look_ahead(panel, c, k, i, n_across * n_down);
        if (tile.n_channels > LANES) {
            sum_wide_tile(dy_tile, x + i_c * n_steps, n_steps, ahead, tile);
        } else {
            sum_narrow_tile(dy_tile, x + i_c * n_steps, n_steps, ahead, tile);
        }
    }
}

static void end_panel(const struct op *op, struct panel *panel, char *scratch,
                      struct wgrad_target *to)
{
    if (panel->n_pixels == 0) {
        return;
    }
    panel->n_steps = (panel->n_pixels + STEP - 1) / STEP;
    for (size_t i = panel->n_pixels; i < panel->n_steps * STEP; i++) {
        panel->x[i] = panel->dy[i] = (const elem *)(const void *)scratch;
    }
    sum_panel(op, panel, (packed *)(void *)(scratch + wgrad_zeros_bytes(op)), *to);
    to->is_first = false;
    panel->n_pixels = 0;
}

/* One kernel tap over some rows of the batch's outputs, in panels of about the same size. */
static void sum_tap(const struct op *op, const struct op_tile *tile, struct wgrad_tap tap,
                    struct wgrad_rows rows, char *scratch, struct wgrad_target *to)
{
    const struct weir_shape in = op->in[0], out = op->out;
    size_t c = (size_t)in.c, k = (size_t)op->conv.k;
    int32_t n_taps = op->conv.kernel_h * op->conv.kernel_w;
    size_t total = wgrad_count_rows(op, &tap, rows) * (size_t)(tap.end_w - tap.first_w);
    size_t n_panels = (total + PANEL_PIXELS - 1) / PANEL_PIXELS;
    size_t n_most = n_panels == 0 ? 0 : WGRAD_ROUND_UP((total + n_panels - 1) / n_panels, STEP);
    const elem *x = (const elem *)(const void *)tile->x[0];
    const elem *dy = (const elem *)(const void *)tile->dy;
    struct panel panel = {.n_pixels = 0};
    for (int32_t row = rows.first; row < rows.end; row++) {
        int32_t n = row / out.h, h = row % out.h;
        if (h < tap.first_h || h >= tap.end_h) {
            continue;
        }
        size_t in_row =
            ((size_t)n * (size_t)in.h + (size_t)(h * op->conv.stride + tap.down)) * (size_t)in.w;
        for (int32_t w = tap.first_w; w < tap.end_w; w++) {
            panel.x[panel.n_pixels] = x + (in_row + (size_t)(w * op->conv.stride + tap.right)) * c;
            panel.dy[panel.n_pixels] = dy + ((size_t)row * (size_t)out.w + (size_t)w) * k;
            if (++panel.n_pixels == n_most) {
                panel.is_last = n_taps == 1 && --n_panels == 0;
                end_panel(op, &panel, scratch, to);
            }
        }
    }
    panel.is_last = n_taps == 1;
    end_panel(op, &panel, scratch, to);
}

static void clear(const struct op *op, struct wgrad_target to)
{
    for (int32_t k = 0; k < op->conv.k; k++) {
        memset(to.at + (size_t)k * to.stride, 0, (size_t)op->in[0].c * sizeof(float));
    }
}

static void sum_bias(const struct op *op, const elem *dy)
{
    size_t k = (size_t)op->conv.k;
    size_t n_pixels = (size_t)op->gradient_batch * (size_t)op->out.h * (size_t)op->out.w;
    for (size_t at = 0; at < k; at += LANES) {
        size_t n = WEIR_MIN(k - at, (size_t)LANES);
        vec sums = {0};
        for (size_t i = 0; i < n_pixels; i++) {
            sums += load(dy + i * k + at, n);
        }
        store_floats(op->params[OP_BIAS].gradient + at, sums, n);
    }
}

static void sum_taps(const struct op *op, const struct op_tile *tile)
{
    int32_t n_taps = op->conv.kernel_h * op->conv.kernel_w;
    int32_t n_rows = op->gradient_batch * op->out.h, n_at_once = wgrad_rows_at_once(op);
    size_t c = (size_t)op->in[0].c;
    float *sums = n_taps == 1 ? op->params[OP_WEIGHT].gradient : tile->scratch;
    char *scratch = (char *)tile->scratch + wgrad_sums_bytes(op);
    uint64_t is_begun[WGRAD_MAX_TAPS / 64] = {0};
    memset(scratch, 0, wgrad_zeros_bytes(op));
    for (int32_t first = 0; first < n_rows; first += n_at_once) {
        struct wgrad_rows rows = {first, WEIR_MIN(first + n_at_once, n_rows)};
        for (int32_t i = 0; i < n_taps; i++) {
            uint64_t bit = (uint64_t)1 << i % 64;
            struct wgrad_target to = {.at = sums + (size_t)i * c,
                                      .stride = (size_t)n_taps * c,
                                      .is_first = !(is_begun[i / 64] & bit)};
            sum_tap(op, tile, wgrad_tap(op, i), rows, scratch, &to);
            is_begun[i / 64] |= to.is_first ? 0 : bit;
            if (to.is_first && rows.end == n_rows) {
                clear(op, to); /* a tap that is always in the padding */
            }
        }
    }
    if (n_taps > 1) {
        wgrad_unravel(op, sums);
    }
}

static void run(const struct op *op, const struct op_tile *tile)
{
    const struct op form = wgrad_form(op);
    sum_taps(&form, tile);
    if (form.params[OP_BIAS].gradient) {
        sum_bias(&form, (const elem *)(const void *)tile->dy);
    }
}

const struct wgrad_kernels WGRAD_TABLE = {.run = run, .scratch_bytes = wgrad_vector_scratch_bytes};
