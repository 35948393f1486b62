/**
 * 16-bit floats for the wire: bf16 (8 bits of fraction with the hidden one, f32's range) and fp16
 * (11 bits, up to 65504, subnormal below 2^-14).
 *
 * Pure functions. To 16 bits they round to the nearest, ties to even; what is too large becomes an
 * infinity, a NaN stays one. Back is exact.
 */
#ifndef WEIR_COMM_HALF_H
#define WEIR_COMM_HALF_H

#include "comm/core/plan.h"

/** @param wire  COMM_WIRE_BF16 or COMM_WIRE_FP16. */
void comm_half_narrow(enum comm_wire wire, const float *in, size_t n, uint16_t *out);
void comm_half_widen(enum comm_wire wire, const uint16_t *in, size_t n, float *out);

#endif
