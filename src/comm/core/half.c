#include "comm/core/half.h"

#include "base/half.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- bf16: the upper half of an f32 --------------------------------------------------------- */

static inline __attribute__((always_inline)) void bf16_narrow_body(const float *in, size_t n,
                                                                   uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(in[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
        out[i] = (uint16_t)(is_nan ? (bits >> 16 | 0x40) : rounded);
    }
}

static inline __attribute__((always_inline)) void bf16_widen_body(const uint16_t *in, size_t n,
                                                                  float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = float_of((uint32_t)in[i] << 16);
    }
}

/* ---- fp16 ----------------------------------------------------------------------------------- */

static void fp16_narrow_any(const float *in, size_t n, uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = weir_half_from_f32(in[i]);
    }
}

static void fp16_widen_any(const uint16_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = weir_half_to_f32(in[i]);
    }
}

/* ---- for the processor at hand -------------------------------------------------------------- */

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl")))

static WIDE void bf16_narrow_wide(const float *in, size_t n, uint16_t *out)
{
    bf16_narrow_body(in, n, out);
}

static WIDE void bf16_widen_wide(const uint16_t *in, size_t n, float *out)
{
    bf16_widen_body(in, n, out);
}

static WIDE void fp16_narrow_wide(const float *in, size_t n, uint16_t *out)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_si256((__m256i *)(void *)(out + i), halves);
    }
    fp16_narrow_any(in + i, n - i, out + i);
}

static WIDE void fp16_widen_wide(const uint16_t *in, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)(in + i));
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(halves));
    }
    fp16_widen_any(in + i, n - i, out + i);
}

static bool is_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#else
static bool is_wide(void)
{
    return false;
}

#define bf16_narrow_wide bf16_narrow_body
#define bf16_widen_wide  bf16_widen_body
#define fp16_narrow_wide fp16_narrow_any
#define fp16_widen_wide  fp16_widen_any
#endif

void comm_half_narrow(enum comm_wire wire, const float *in, size_t n, uint16_t *out)
{
    bool is_bf16 = wire == COMM_WIRE_BF16;
    if (is_wide()) {
        (is_bf16 ? bf16_narrow_wide : fp16_narrow_wide)(in, n, out);
    } else if (is_bf16) {
        bf16_narrow_body(in, n, out);
    } else {
        fp16_narrow_any(in, n, out);
    }
}

void comm_half_widen(enum comm_wire wire, const uint16_t *in, size_t n, float *out)
{
    bool is_bf16 = wire == COMM_WIRE_BF16;
    if (is_wide()) {
        (is_bf16 ? bf16_widen_wide : fp16_widen_wide)(in, n, out);
    } else if (is_bf16) {
        bf16_widen_body(in, n, out);
    } else {
        fp16_widen_any(in, n, out);
    }
}
