#include "base/sha256_blocks.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define LEAF_FEATURES 7
#define BIT_SHA       (1u << 29) /* of EBX */
#define BIT_SSSE3     (1u << 9)  /* of leaf 1's ECX */
#define BIT_SSE41     (1u << 19)

bool sha256_blocks_can(void)
{
    static _Atomic int known; /* 0: not looked up; else 1 + the answer */
    if (known == 0) {
        unsigned a, b = 0, c = 0, d, b1, c1 = 0;
        bool has = __get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (b & BIT_SHA) != 0;
        has = has && __get_cpuid(1, &a, &b1, &c1, &d) != 0 &&
              (c1 & (BIT_SSSE3 | BIT_SSE41)) == (BIT_SSSE3 | BIT_SSE41);
        known = 1 + has;
    }
    return known == 2;
}

/* Section 4.2.2, four constants in a row. */
static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

/* Rounds 4i to 4i + 3. The instructions keep the state as ABEF and CDGH. */
WITH_SHA static inline void four_rounds(__m128i *abef, __m128i *cdgh, __m128i words, int i)
{
    __m128i sum = _mm_add_epi32(
        words, _mm_load_si128((const __m128i *)(const void *)&constants[(size_t)4 * (size_t)i]));
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(sum, 0x0e));
}

/* The four words of the schedule behind sixteen: w[0] become w[4]. */
WITH_SHA static inline __m128i next_words(const __m128i w[4])
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
    return _mm_sha256msg2_epu32(sum, w[3]);
}

WITH_SHA void sha256_blocks(uint32_t state[8], const unsigned char *bytes, size_t n_blocks)
{
    const __m128i to_big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)&state[0]);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)&state[4]);
    __m128i badc = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(badc, efgh, 8), cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
    for (; n_blocks > 0; n_blocks--, bytes += SHA256_BLOCK_BYTES) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            w[i] = _mm_shuffle_epi8(
                _mm_loadu_si128((const __m128i *)(const void *)(bytes + (size_t)16 * (size_t)i)),
                to_big_endian);
            four_rounds(&abef, &cdgh, w[i], i);
        }
        for (int i = 4; i < 16; i++) {
            const __m128i next = next_words(w);
            w[0] = w[1];
            w[1] = w[2];
            w[2] = w[3];
            w[3] = next;
            four_rounds(&abef, &cdgh, next, i);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)&state[0], _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_blocks_can(void)
{
    return false;
}

void sha256_blocks(uint32_t state[8], const unsigned char *bytes, size_t n_blocks)
{
    (void)state;
    (void)bytes;
    (void)n_blocks;
}

#endif
