/*
 * wgrad_amx.c with its eight matrix registers in memory, for wgrad_test.c on processors
 * without them: what the instructions do by their descriptions (Intel SDM volume 2, LDTILECFG,
 * TILELOADD, TDPBF16PS, TILESTORED), but for denormal numbers, which AMX takes as 0.
 */
#include "nn/backend/op.h"

#include <immintrin.h>

enum { REGISTERS = 8, MOST_ROWS = 16, ROW_BYTES = 64 };

struct matrix {
    uint16_t colsb;
    uint8_t rows;
    char row[MOST_ROWS][ROW_BYTES];
};

static struct matrix matrices[REGISTERS];

static void load_config(const uint8_t *config)
{
    for (int i = 0; i < REGISTERS; i++) {
        matrices[i] = (struct matrix){.rows = config[48 + i]};
        memcpy(&matrices[i].colsb, config + 16 + 2 * i, sizeof(uint16_t));
    }
}

static void zero(int to)
{
    memset(matrices[to].row, 0, sizeof(matrices[to].row));
}

static void load(int to, const void *from, size_t stride)
{
    zero(to);
    for (size_t r = 0; r < matrices[to].rows; r++) {
        memcpy(matrices[to].row[r], (const char *)from + r * stride, matrices[to].colsb);
    }
}

static void store(int from, void *to, size_t stride)
{
    for (size_t r = 0; r < matrices[from].rows; r++) {
        memcpy((char *)to + r * stride, matrices[from].row[r], matrices[from].colsb);
    }
}

static void multiply(int to, int a, int b)
{
    for (size_t m = 0; m < matrices[to].rows; m++) {
        float sums[ROW_BYTES / sizeof(float)];
        uint16_t left[ROW_BYTES / sizeof(uint16_t)], right[ROW_BYTES / sizeof(uint16_t)];
        memcpy(sums, matrices[to].row[m], sizeof(sums));
        memcpy(left, matrices[a].row[m], sizeof(left));
        for (size_t k = 0; k < matrices[a].colsb / sizeof(float); k++) {
            memcpy(right, matrices[b].row[k], sizeof(right));
            for (size_t n = 0; n < matrices[b].colsb / sizeof(float); n++) {
                sums[n] += bf16_to_f32(left[2 * k]) * bf16_to_f32(right[2 * n]);
                sums[n] += bf16_to_f32(left[2 * k + 1]) * bf16_to_f32(right[2 * n + 1]);
            }
        }
        memcpy(matrices[to].row[m], sums, sizeof(sums));
    }
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig  load_config
#define _tile_release()   ((void)0)
#define _tile_zero        zero
#define _tile_loadd       load
#define _tile_stored      store
#define _tile_dpbf16ps    multiply
#define wgrad_kernels_amx wgrad_kernels_amx_emulated
#include "wgrad_amx.c" /* NOLINT(bugprone-suspicious-include): its static parts are wanted */
