/**
 * 16-bit floats for the wire: bf16 (8 bits of significand with the hidden one, f32's range) and
 * IEEE 754 binary16, fp16 (11 bits, up to 65504, subnormal below 2^-14). Pure functions.
 */
#ifndef WEIR_COMM_HALF_H
#define WEIR_COMM_HALF_H

#include "comm/core/plan.h"

/**
 * Round to 16 bits, to nearest, ties to even. Values out of range become infinities; a NaN stays a
 * NaN.
 *
 * @param wire  COMM_WIRE_BF16 or COMM_WIRE_FP16.
 */
void comm_half_narrow(enum comm_wire wire, const float *in, size_t n, uint16_t *out);
/** Back to f32; exact. */
void comm_half_widen(enum comm_wire wire, const uint16_t *in, size_t n, float *out);

#endif
