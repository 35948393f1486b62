/*
 * What all kernels share. The kernels are written in the part of C that CUDA has too: NVRTC compiles
 * them for a GPU, and tests compile them for the processor (gpu_emulated.c), where a block's threads
 * run one after the other. So a kernel is a row of phases:
 *
 *     EACH_THREAD { what a thread does by itself }
 *     BARRIER
 *     EACH_THREAD { what it does when all have come this far }
 *
 * What a later phase needs lies in SHARED memory. No kernel returns early.
 */
#ifdef __CUDACC_RTC__
#include "kernels.h"
#define KERNEL(name, type) extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) name(const type a)
#define INLINE             static __device__ __forceinline__
#define SHARED             __shared__
#define EACH_THREAD
#define BARRIER __syncthreads();
#define THREAD  threadIdx.x
#define BLOCK   blockIdx.x
#define BLOCK_Y blockIdx.y
#define BLOCKS  gridDim.x
#define ALIGNED __align__(16)
#define ALIGNED_TO(n) __align__(n)
#define UNROLL  _Pragma("unroll")
#define INFINITY __int_as_float(0x7f800000)
#endif

#define BLOCK_THREADS 256

/* Columns of vectors that a block of a row kernel takes side by side, at most. */
#define ROW_COLUMNS 32

typedef gpu_u64 u64;

#if defined(WEIR_GPU_BF16) || defined(WEIR_GPU_F16)
typedef unsigned short elem;
#define VEC 8
#else
typedef float elem;
#define VEC 4
#endif

/* 16 bytes: what a thread reads at once. */
struct ALIGNED vec {
    elem v[VEC];
};

INLINE float to_f32(elem value)
{
#if defined(WEIR_GPU_F16) && defined(__CUDACC_RTC__)
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value));
    return result;
#elif defined(WEIR_GPU_F16)
    return weir_half_to_f32(value);
#elif !defined(WEIR_GPU_BF16)
    return value;
#elif defined(__CUDACC_RTC__)
    return __uint_as_float((unsigned)value << 16);
#else
    return bf16_to_f32(value);
#endif
}

INLINE elem from_f32(float value)
{
#if defined(WEIR_GPU_F16) && defined(__CUDACC_RTC__)
    elem result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
#elif defined(WEIR_GPU_F16)
    return weir_half_from_f32(value);
#elif !defined(WEIR_GPU_BF16)
    return value;
#elif defined(__CUDACC_RTC__)
    elem result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
#else
    return bf16_from_f32(value);
#endif
}

/* Four: what a thread that sums reads at once, as it keeps several values for each. */
#define SUM_VEC 4

struct ALIGNED_TO(4 * sizeof(elem)) quad {
    elem v[SUM_VEC];
};

/* Loads w elements from index `at` on; w is VEC or SUM_VEC, and `at` a multiple of it, or 1. It is a
 * constant where this is inlined. A thread may load several vectors before it needs the first. */
INLINE void load_raw(const void *from, u64 at, int w, struct vec *to)
{
    if (w == VEC) {
        *to = *(const struct vec *)((const elem *)from + at);
    } else if (w == SUM_VEC) {
        struct quad all = *(const struct quad *)((const elem *)from + at);
        UNROLL
        for (int j = 0; j < SUM_VEC; j++) {
            to->v[j] = all.v[j];
        }
    } else {
        to->v[0] = ((const elem *)from)[at];
    }
}

INLINE void expand(const struct vec *from, int w, float *to)
{
    UNROLL
    for (int j = 0; j < w; j++) {
        to[j] = to_f32(from->v[j]);
    }
}

INLINE void load(const void *from, u64 at, int w, float *to)
{
    struct vec all;
    load_raw(from, at, w, &all);
    expand(&all, w, to);
}

INLINE void store(void *to, u64 at, int w, const float *from)
{
    if (w == VEC) {
        struct vec all;
        UNROLL
        for (int j = 0; j < VEC; j++) {
            all.v[j] = from_f32(from[j]);
        }
        *(struct vec *)((elem *)to + at) = all;
    } else {
        ((elem *)to)[at] = from_f32(from[0]);
    }
}

/* Stores, or adds to what is there. */
INLINE void put(void *to, u64 at, int w, const float *from, int adds)
{
    float sum[VEC];
    if (adds) {
        load(to, at, w, sum);
        UNROLL
        for (int j = 0; j < w; j++) {
            sum[j] += from[j];
        }
        store(to, at, w, sum);
    } else {
        store(to, at, w, from);
    }
}

INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

INLINE int larger(int a, int b)
{
    return a > b ? a : b;
}

/* ---- kernels over all elements --------------------------------------------------------------- */

/* A kernel that calls at(&a, index, w) for every element: vectors, then what is left. */
#define FLAT_KERNEL(name, at)                                                                      \
    KERNEL(name, struct gpu_flat_args)                                                             \
    {                                                                                              \
        EACH_THREAD                                                                                \
        {                                                                                          \
            u64 first = (u64)BLOCK * BLOCK_THREADS + THREAD, step = (u64)BLOCKS * BLOCK_THREADS;   \
            for (u64 i = first; i < a.n / VEC; i += step) {                                        \
                at(&a, i * VEC, VEC);                                                              \
            }                                                                                      \
            for (u64 i = a.n / VEC * VEC + first; i < a.n; i += step) {                            \
                at(&a, i, 1);                                                                      \
            }                                                                                      \
        }                                                                                          \
    }

/* ---- kernels over rows of channels ----------------------------------------------------------- */

/* A thread's part of the rows: w channels from c on, of every `step`th row from `row` on. */
struct rows {
    int c, is_idle;
    int column, lane, n_columns, n_lanes;
    u64 row, step;
};

INLINE struct rows rows_of(int n_channels, int w, unsigned thread, unsigned block, unsigned block_y,
                           unsigned blocks)
{
    struct rows r;
    int n_vectors = (n_channels + w - 1) / w;
    r.n_columns = smaller(n_vectors, ROW_COLUMNS);
    r.n_lanes = BLOCK_THREADS / r.n_columns;
    r.column = (int)thread % r.n_columns;
    r.lane = (int)thread / r.n_columns;
    r.c = ((int)block_y * r.n_columns + r.column) * w;
    r.is_idle = r.lane >= r.n_lanes || r.c >= n_channels;
    r.row = (u64)block * (u64)r.n_lanes + (u64)r.lane;
    r.step = (u64)blocks * (u64)r.n_lanes;
    return r;
}

/* Rows that a thread that sums loads before it computes: their loads are under way at the same time. */
#define ROWS_AHEAD 4

/* Groups of ROWS_AHEAD of the thread's rows. HAS_ROW: is there an i-th row of a group? ROW_AT: where its
 * channels begin. */
#define EACH_ROWS(r, a)                                                                            \
    for (u64 row = (r)->row, at = row * (u64)(a)->c + (u64)(r)->c, ahead = (r)->step * (u64)(a)->c; \
         row < (a)->n_rows; row += ROWS_AHEAD * (r)->step, at += ROWS_AHEAD * ahead)
#define HAS_ROW(r, a, i) (row + (u64)(i) * (r)->step < (a)->n_rows)
#define ROW_AT(i)        (at + (u64)(i) * ahead)

#define ROWS_OF(n_channels, w) rows_of(n_channels, w, THREAD, BLOCK, BLOCK_Y, BLOCKS)

/* Sums of 2 * w values of each thread over the lanes of the block, written as two rows of partials:
 * block, which of two, channel. */
#define SUM_FLOATS (2 * SUM_VEC * BLOCK_THREADS)

INLINE void keep_sums(float *shared, const struct rows *r, int w, const float *sums)
{
    int n = 2 * r->n_columns * w;
    for (int j = 0; r->lane < r->n_lanes && j < 2 * w; j++) {
        shared[r->lane * n + (j / w * r->n_columns + r->column) * w + j % w] = sums[j];
    }
}

INLINE void write_sums(const float *shared, const struct rows *r, int w, int n_channels,
                       unsigned thread, unsigned block, unsigned block_y, float *partials)
{
    int n = r->n_columns * w;
    for (int i = (int)thread; i < 2 * n; i += BLOCK_THREADS) {
        int c = (int)block_y * n + i % n;
        float sum = 0;
        for (int lane = 0; lane < r->n_lanes; lane++) {
            sum += shared[lane * 2 * n + i];
        }
        if (c < n_channels) {
            partials[((u64)block * 2 + (u64)(i / n)) * (u64)n_channels + (u64)c] = sum;
        }
    }
}

/* A kernel that writes partial sums: add(&a, &rows, sums, w) adds a thread's rows to its 2 * w. */
#define SUM_KERNEL(name, add, w)                                                                   \
    KERNEL(name, struct gpu_rows_args)                                                             \
    {                                                                                              \
        SHARED float shared[SUM_FLOATS];                                                           \
        EACH_THREAD                                                                                \
        {                                                                                          \
            struct rows r = ROWS_OF(a.c, w);                                                       \
            float sums[2 * SUM_VEC] = {0};                                                             \
            if (!r.is_idle) {                                                                      \
                add(&a, &r, sums, w);                                                              \
            }                                                                                      \
            keep_sums(shared, &r, w, sums);                                                        \
        }                                                                                          \
        BARRIER                                                                                    \
        EACH_THREAD                                                                                \
        {                                                                                          \
            struct rows r = ROWS_OF(a.c, w);                                                       \
            write_sums(shared, &r, w, a.c, THREAD, BLOCK, BLOCK_Y, a.partials);                    \
        }                                                                                          \
    }

/* What is read of a row before anything of it is written. */
struct row_loads {
    struct vec x, dy, residual;
    int signs;
};

/* A kernel that calls read(&a, index, w, &loads), then at(&a, &values, index, w, &loads), for each
 * row's channels from c on; the values of these channels come from prepare(&a, c, w). */
#define ROW_KERNEL(name, prepare, read, at, w)                                                         \
    KERNEL(name, struct gpu_rows_args)                                                             \
    {                                                                                              \
        EACH_THREAD                                                                                \
        {                                                                                          \
            struct rows r = ROWS_OF(a.c, w);                                                       \
            if (!r.is_idle) {                                                                      \
                struct channel_values values = prepare(&a, r.c, w);                                \
                for (u64 row = r.row; row < a.n_rows; row += r.step) {                             \
                    struct row_loads loads;                                                        \
                    read(&a, row *(u64)a.c + (u64)r.c, w, &loads);                                 \
                    at(&a, &values, row *(u64)a.c + (u64)r.c, w, &loads);                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Where the signs of w elements are: in vectors, a byte for each of those; else for each element. */
INLINE u64 sign_byte(u64 at, int w)
{
    return w == 1 ? at : at / VEC;
}

INLINE int sign_shift(u64 at, int w)
{
    return w == 1 ? 0 : (int)(at % VEC);
}

/* What a thread keeps of its channels. */
struct channel_values {
    float p[VEC], q[VEC], r[VEC];
};

/* ---- kernels whose blocks sum ---------------------------------------------------------------- */

/* The sum of all threads' values. */
INLINE double sum_all(const double *shared)
{
    double sum = 0;
    for (int i = 0; i < BLOCK_THREADS; i++) {
        sum += shared[i];
    }
    return sum;
}
