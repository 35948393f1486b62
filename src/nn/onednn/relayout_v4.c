/* For AVX-512; CMakeLists.txt has the flags. */
#include "relayout.h"
#include "vector_elem.h"

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

/* 16 rows of 16 elements, `stride` apart, into columns. */
static inline void load_columns(const float *from, size_t stride, vec *to)
{
    vec rows[LANES];
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++) {
        rows[i] = load_floats(from + i * stride, LANES);
    }
    swap_rows(rows, 1);
    swap_rows(rows, 2);
    swap_rows(rows, 4);
    swap_rows(rows, 8);
#pragma GCC unroll 16
    for (size_t i = 0; i < LANES; i++) {
        to[i] = rows[i];
    }
}

/* The upper halves, rounded to nearest even; NaN stays NaN. */
static inline vecu round_to_bf16(vec v)
{
    vecu bits = (vecu)v, is_nan = (vecu)(v != v);
    vecu rounded = bits + 0x7fff + (bits >> 16 & 1);
    return ((rounded & ~is_nan) | ((bits | 0x400000) & is_nan)) >> 16;
}

/* 16 output channels of 16 input channels, whose columns are cells of channels. */
static inline void store_columns(const struct relayout *layout, const vec *columns, char *to)
{
    size_t n_cells = layout->kernel_h * layout->kernel_w;
    for (size_t cell = 0; cell < n_cells; cell++) {
        size_t at =
            cell / layout->kernel_w * layout->h_stride + cell % layout->kernel_w * layout->w_stride;
        for (size_t i = 0; layout->is_bf16 && i < LANES; i += 2) {
            vecu pair = round_to_bf16(columns[i * n_cells + cell]) |
                        round_to_bf16(columns[(i + 1) * n_cells + cell]) << 16;
            memcpy(to + (at + i / 2 * layout->c_stride) * sizeof(uint16_t), &pair, sizeof(pair));
        }
        for (size_t i = 0; !layout->is_bf16 && i < LANES; i++) {
            memcpy(to + (at + i * layout->c_stride) * sizeof(float), &columns[i * n_cells + cell],
                   sizeof(vec));
        }
    }
}

void relayout_v4(const struct relayout *layout, const float *from, void *to)
{
    vec columns[RELAYOUT_MAX_CELLS * LANES];
    size_t n_cells = layout->kernel_h * layout->kernel_w, row = layout->c * n_cells;
    size_t n_beside = layout->is_bf16 ? 2 : 1;
    size_t elem_bytes = layout->is_bf16 ? sizeof(uint16_t) : sizeof(float);
    for (size_t k = 0; k < layout->k; k += LANES) {
        for (size_t c = 0; c < layout->c; c += LANES) {
            for (size_t i = 0; i < n_cells; i++) {
                load_columns(from + k * row + c * n_cells + i * LANES, row, columns + i * LANES);
            }
            size_t at = k / layout->k_block * layout->k_stride + k % layout->k_block * n_beside +
                        c / n_beside * layout->c_stride;
            store_columns(layout, columns, (char *)to + at * elem_bytes);
        }
    }
}
