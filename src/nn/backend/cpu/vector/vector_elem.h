/* The elements of a table of vector kernels, 16 at a time. Before it, the including file may define
 * VECTOR_IS_BF16. */
#include "vector.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* 16 floats, whatever the machine's registers hold; loads and stores need no alignment. */
typedef float vec __attribute__((vector_size(64)));
typedef double vecd __attribute__((vector_size(128)));
typedef int32_t veci __attribute__((vector_size(64)));
typedef uint32_t vecu __attribute__((vector_size(64)));
typedef uint16_t vech __attribute__((vector_size(32)));

#define LANES 16

/* Of a whole vector memcpy is one instruction; of fewer elements, without AVX-512, a call. */
static inline vec load_floats(const float *p, size_t n)
{
    vec v = {0};
    if (n >= LANES) {
        memcpy(&v, p, sizeof(v));
        return v;
    }
#if defined(__AVX512F__)
    v = (vec)_mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1), p);
#else
    memcpy(&v, p, n * sizeof(*p));
#endif
    return v;
}

static inline void store_floats(float *p, vec v, size_t n)
{
    if (n >= LANES) {
        memcpy(p, &v, sizeof(v));
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1), (__m512)v);
#else
    memcpy(p, &v, n * sizeof(*p));
#endif
}

#if defined(VECTOR_IS_BF16)

typedef uint16_t elem;

static inline vech narrow(vec v)
{
#if defined(__AVX512BF16__)
    return (vech)_mm512_cvtneps_pbh((__m512)v);
#else
    vecu bits = (vecu)v, is_nan = (vecu)(v != v);
    vecu rounded = bits + 0x7fff + (bits >> 16 & 1);
    return __builtin_convertvector(((rounded & ~is_nan) | ((bits | 0x400000) & is_nan)) >> 16,
                                   vech);
#endif
}

static inline vec load(const elem *p, size_t n)
{
    vech v = {0};
    if (n >= LANES) {
        memcpy(&v, p, sizeof(v));
    } else {
        memcpy(&v, p, n * sizeof(*p));
    }
    return (vec)(__builtin_convertvector(v, vecu) << 16);
}

static inline void store(elem *p, vec v, size_t n)
{
    vech h = narrow(v);
    if (n >= LANES) {
        memcpy(p, &h, sizeof(h));
    } else {
        memcpy(p, &h, n * sizeof(*p));
    }
}

static inline float get(elem value)
{
    return bf16_to_f32(value);
}

static inline elem put(float value)
{
    return bf16_from_f32(value);
}

#else

typedef float elem;

static inline vec load(const elem *p, size_t n)
{
    return load_floats(p, n);
}

static inline void store(elem *p, vec v, size_t n)
{
    store_floats(p, v, n);
}

static inline float get(elem value)
{
    return value;
}

static inline elem put(float value)
{
    return value;
}

#endif

static inline vec splat(float value)
{
    return value - (vec){0};
}

/* to[0..n) += the chunk's sums, in double. */
static inline void flush(double *to, vec sums, size_t n)
{
    if (n >= LANES) {
        vecd wide = __builtin_convertvector(sums, vecd), old;
        memcpy(&old, to, sizeof(old));
        old += wide;
        memcpy(to, &old, sizeof(old));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i] += (double)sums[i];
    }
}

/* Where `mask` is not zero, v; else 0. NaN in v passes. */
static inline vec keep(veci mask, vec v)
{
    return (vec)((veci)v & mask);
}

/* Where `mask` is not zero, a; else b. */
static inline vec choose(veci mask, vec a, vec b)
{
    return (vec)(((veci)a & mask) | ((veci)b & ~mask));
}

/* Can whole vectors of rows of c elements bypass the caches, and how? `end_past` orders them before
 * all later stores. */
#if defined(__AVX512F__)

static inline bool can_pass(const elem *p, size_t c)
{
    return c % LANES == 0 && (uintptr_t)p % (LANES * sizeof(elem)) == 0;
}

static inline void store_past(elem *p, vec v)
{
#if defined(VECTOR_IS_BF16)
    _mm256_stream_si256((__m256i *)(void *)p, (__m256i)narrow(v));
#else
    _mm512_stream_ps(p, (__m512)v);
#endif
}

static inline void end_past(void)
{
    _mm_sfence();
}

#else

static inline bool can_pass(const elem *p, size_t c)
{
    (void)p;
    (void)c;
    return false;
}

static inline void store_past(elem *p, vec v)
{
    store(p, v, LANES);
}

static inline void end_past(void)
{
}

#endif

/* to = v, or to += v. */
static inline void give(elem *to, vec v, bool adds, size_t n)
{
    store(to, adds ? load(to, n) + v : v, n);
}

/* An element-wise loop: `body` for every LANES elements from `at` on; n of them are left. */
#define FOR_LANES(total, at, n)                                                                    \
    for (size_t at = 0, n = (total); at < (total); at += LANES, n -= WEIR_MIN(n, (size_t)LANES))
