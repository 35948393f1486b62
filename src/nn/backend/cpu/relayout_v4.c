/* For AVX-512; CMakeLists.txt has the flags. */
#include "nn/backend/cpu/vector/vector_elem.h"
#include "relayout.h"

#include <immintrin.h>

/* One of four steps of a transpose: rows that are `apart`, a power of two, swap what is not on
 * their diagonal. */
static inline __attribute__((always_inline)) void swap_rows(vec *rows, int32_t apart)
{
    veci low, high;
    for (int32_t i = 0; i < LANES; i++) {
        low[i] = i & apart ? LANES + i - apart : i;
        high[i] = i & apart ? LANES + i : i + apart;
    }
#pragma GCC unroll 16
    for (int32_t i = 0; i < LANES; i++) {
        if (!(i & apart)) {
            vec a = rows[i], b = rows[i + apart];
            rows[i] = (vec)_mm512_permutex2var_ps((__m512)a, (__m512i)low, (__m512)b);
            rows[i + apart] = (vec)_mm512_permutex2var_ps((__m512)a, (__m512i)high, (__m512)b);
        }
    }
}

static inline __attribute__((always_inline)) void transpose(vec *rows)
{
    swap_rows(rows, 1);
    swap_rows(rows, 2);
    swap_rows(rows, 4);
    swap_rows(rows, 8);
}

/* 16 rows of n <= 16 elements, `stride` apart, into columns. */
static inline void load_columns(const float *from, size_t stride, size_t n, vec *to)
{
    vec rows[LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++) {
        rows[i] = (vec)_mm512_maskz_loadu_ps((__mmask16)(0xffff >> (LANES - n)), from + i * stride);
    }
    transpose(rows);
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++) {
        to[i] = rows[i];
    }
}

/* Position of a tap in a block of 16 x 16 channels. */
static inline size_t tap_at(const struct relayout *layout, size_t tap)
{
    return tap / layout->kernel_w * layout->h_stride + tap % layout->kernel_w * layout->w_stride;
}

/* Place of the block that begins at output channel k and input channel c. */
static inline size_t block_at(const struct relayout *layout, size_t k, size_t c)
{
    size_t n_beside = layout->is_bf16 ? 2 : 1;
    return k / layout->k_block * layout->k_stride + k % layout->k_block * n_beside +
           c / LANES * layout->c_block_stride;
}

/* The upper halves, rounded to nearest even; NaN stays NaN. */
static inline vecu round_to_bf16(vec v)
{
    vecu bits = (vecu)v, is_nan = (vecu)(v != v);
    vecu rounded = bits + 0x7fff + (bits >> 16 & 1);
    return ((rounded & ~is_nan) | ((bits | 0x400000) & is_nan)) >> 16;
}

/* Elements from which a copy in bf16 bypasses the caches: it is read much later, or by all threads.
 * A copy in f32 never does, because linears read theirs at once (a step of an MLP took 8 % longer,
 * one of ResNet-50 0.2 % less). */
enum { STREAMED = 1 << 16 };

/* 16 output channels of 16 input channels, whose columns are cells of channels. */
static inline void store_columns(const struct relayout *layout, const vec *columns, char *to)
{
    size_t n_taps = layout->kernel_h * layout->kernel_w;
    bool is_streamed = layout->k * layout->c * n_taps >= STREAMED;
    for (size_t tap = 0; tap < n_taps; tap++) {
        size_t at = tap_at(layout, tap);
        for (size_t i = 0; layout->is_bf16 && i < LANES; i += 2) {
            vecu pair = round_to_bf16(columns[i * n_taps + tap]) |
                        round_to_bf16(columns[(i + 1) * n_taps + tap]) << 16;
            char *place = to + (at + i / 2 * layout->c_stride) * sizeof(uint16_t);
            if (is_streamed) {
                _mm512_stream_si512((void *)place, (__m512i)pair);
            } else {
                memcpy(place, &pair, sizeof(pair));
            }
        }
        for (size_t i = 0; !layout->is_bf16 && i < LANES; i++) {
            memcpy(to + (at + i * layout->c_stride) * sizeof(float), &columns[i * n_taps + tap],
                   sizeof(vec));
        }
    }
}

/* Of a block of 16 x 16 channels: all taps of one output channel and 16 input channels at a time.
 * The taps are the columns. */
static void relayout_c_inner(const struct relayout *layout, const float *from, size_t row,
                             float *to)
{
    size_t n_taps = layout->kernel_h * layout->kernel_w;
    for (size_t k = 0; k < LANES; k++) {
        for (size_t first = 0; first < n_taps; first += LANES) {
            size_t n = WEIR_MIN(n_taps - first, (size_t)LANES);
            vec columns[LANES];
            load_columns(from + k * row + first, n_taps, n, columns);
            for (size_t i = 0; i < n; i++) {
                memcpy(to + tap_at(layout, first + i) + k * layout->c_stride, &columns[i],
                       sizeof(vec));
            }
        }
    }
}

/* Blocks from the one that is read to the one that is prefetched, which may lie behind the end. The
 * processor's own prefetcher does not follow 16 rows of a few lines each. */
enum { AHEAD = 2 };

/* 16 output channels of 16 input channels, as columns, of transposed kernels: of each input channel
 * the outputs are rows one after the other. */
static inline void load_transposed(const float *from, size_t row, size_t n_taps, bool is_mirrored,
                                   vec *columns)
{
    for (size_t c = 0; c < LANES; c++, from += row, columns += n_taps) {
        if (n_taps == 1) {
            columns[0] = load_floats(from, LANES);
            continue;
        }
        for (size_t i = 0; i < n_taps; i++) {
            __builtin_prefetch(from + (AHEAD * n_taps + i) * LANES);
        }
        for (size_t first = 0; first < n_taps; first += LANES) {
            size_t n = WEIR_MIN(n_taps - first, (size_t)LANES);
            vec taps[LANES];
            load_columns(from + first, n_taps, n, taps);
            for (size_t i = 0; i < n; i++) {
                columns[is_mirrored ? n_taps - 1 - first - i : first + i] = taps[i];
            }
        }
    }
}

/* A block of 16 x 16 channels, whose rows are `row` elements apart. */
static void relayout_block(const struct relayout *layout, const float *from, size_t row, char *to)
{
    vec columns[RELAYOUT_MAX_TAPS * LANES];
    size_t n_taps = layout->kernel_h * layout->kernel_w;
    if (layout->is_c_inner) {
        relayout_c_inner(layout, from, row, (float *)(void *)to);
        return;
    }
    if (layout->is_transposed) {
        load_transposed(from, row, n_taps, layout->is_mirrored, columns);
    }
    for (size_t i = 0; !layout->is_transposed && i < n_taps; i++) {
        load_columns(from + i * LANES, row, LANES, columns + i * LANES);
    }
    store_columns(layout, columns, to);
}

void relayout_v4(const struct relayout *layout, const float *from, void *to)
{
    size_t n_taps = layout->kernel_h * layout->kernel_w;
    size_t elem_bytes = layout->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    size_t n_rows = layout->is_transposed ? layout->c : layout->k;
    size_t len = layout->is_transposed ? layout->k : layout->c, row = len * n_taps;
    for (size_t i = 0; i < n_rows; i += LANES) {
        for (size_t j = 0; j < len; j += LANES) {
            const float *block = from + i * row + j * n_taps;
            size_t at = layout->is_transposed ? block_at(layout, j, i) : block_at(layout, i, j);
            relayout_block(layout, block, row, (char *)to + at * elem_bytes);
        }
    }
    _mm_sfence(); /* streamed elements are in memory before any thread is told */
}

void relayout_back_v4(const struct relayout *layout, const float *from, void *to)
{
    size_t n_taps = layout->kernel_h * layout->kernel_w, row = layout->c * n_taps;
    for (size_t k = 0; k < layout->k; k += LANES) {
        for (size_t c = 0; c < layout->c; c += LANES) {
            const float *block = from + block_at(layout, k, c);
            float *rows = (float *)to + k * row + c * n_taps;
            for (size_t first = 0; first < n_taps * LANES; first += LANES) {
                vec v[LANES];
                for (size_t i = 0; i < LANES; i++) {
                    size_t channel = (first + i) / n_taps, tap = (first + i) % n_taps;
                    v[i] = load_floats(block + tap_at(layout, tap) + channel * layout->c_stride,
                                       LANES);
                }
                transpose(v);
                for (size_t i = 0; i < LANES; i++) {
                    store_floats(rows + i * row + first, v[i], LANES);
                }
            }
        }
    }
}
