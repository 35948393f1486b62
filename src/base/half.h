/**
 * IEEE 754 binary16, fp16: 11 bits of significand with the hidden one, up to 65504, subnormal below
 * 2^-14, in steps of 2^-24. Pure functions; any thread.
 */
#ifndef WEIR_BASE_HALF_H
#define WEIR_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/** Rounds to nearest, ties to even. What is out of range becomes infinite; a NaN stays one, with the upper
 *  bits of its payload. */
static inline uint16_t weir_half_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    }
    if (size >= 0x47800000) { /* 2^16 and above */
        return (uint16_t)(sign | 0x7c00);
    }
    if (size < 0x38800000) { /* below 2^-14: adding 0.5 leaves the sum steps of 2^-24 */
        float sum;
        memcpy(&sum, &size, sizeof sum);
        sum += 0.5F;
        memcpy(&bits, &sum, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    /* A carry out of the fraction is right too: up to infinity. */
    uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

/** Exact; a NaN comes out quiet. */
static inline float weir_half_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff, bits;
    float value;
    if (size >= 0x7c00) {
        bits = sign | 0x7f800000 | (size & 0x3ff) << 13 | (size > 0x7c00 ? 0x400000 : 0);
    } else if (size >= 0x400) {
        bits = sign | ((size << 13) + 0x38000000);
    } else {
        value = (float)size * 0x1p-24F;
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
