/**
 * Bf16 pairs: two rows of bfloat16 interleaved. A dword has the first row's element in its lower
 * half, which is what the instructions that multiply pairs read. For files compiled for AVX-512.
 */
#ifndef WEIR_NN_CPU_BF16_PAIR_H
#define WEIR_NN_CPU_BF16_PAIR_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { BF16_PAIRS = 16 }; /* in a vector */

/** Interleaves n elements of both rows, 1 to 16. The rest is zeros. */
static inline __m512i bf16_pair_some(const uint16_t *first, const uint16_t *second, size_t n)
{
    __mmask16 mask = (__mmask16)(n >= BF16_PAIRS ? 0xffff : (1U << n) - 1);
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, second));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/** Interleaves 32 elements of both rows into two vectors, with half of the instructions. */
static inline void bf16_pair_two(const uint16_t *first, const uint16_t *second, void *to,
                                 void *to_next)
{
    const __m512i order =
        _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                         37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i next = _mm512_add_epi16(order, _mm512_set1_epi16(BF16_PAIRS));
    __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, order, b));
    _mm512_storeu_si512(to_next, _mm512_permutex2var_epi16(a, next, b));
}

#endif
