/**
 * Conversion of elements: from any numeric type to f64, i64 or u64 and back. Conversions to floats
 * round to the nearest, ties to even.
 *
 * Narrow floats: IEEE 754 binary16; bfloat16; OCP 8-bit floating point (E4M3FN, E5M2) and OCP
 * microscaling formats (E2M1, E8M0) 1.0; the FNUZ forms of Noune et al., arXiv 2206.02915.
 */
#ifndef WEIR_TENSOR_CONVERT_H
#define WEIR_TENSOR_CONVERT_H

#include "tensor/tensor.h"

/** n elements of a numeric type (no string, no complex) to doubles. bool: 0 or 1. */
void weir_elems_to_f64(enum weir_dtype dtype, const void *from, double *to, size_t n);
/** The same to integers: floats are cut to what lies towards zero, and to int64's range; NaN is 0.
 *  Unsigned 64-bit values keep their bits. */
void weir_elems_to_i64(enum weir_dtype dtype, const void *from, int64_t *to, size_t n);

/** What becomes of a value beyond a narrow float's largest. */
enum weir_overflow {
    WEIR_OVERFLOW_SATURATES, /**< The largest (8 bits and fewer); infinity (16 bits and more). */
    WEIR_OVERFLOW_IS_LOST,   /**< Infinity, or NaN where there is none. */
};

/** Doubles to n elements. To integers: towards zero, modulo their range. To bool: not 0. */
void weir_elems_from_f64(enum weir_dtype dtype, const double *from, void *to, size_t n,
                         enum weir_overflow overflow);
/** Integers to n elements, modulo the range of integers. is_unsigned: `from` holds uint64_t. Floats
 *  are the nearest to the integer, rounded once. */
void weir_elems_from_i64(enum weir_dtype dtype, const int64_t *from, bool is_unsigned, void *to,
                         size_t n);

/** The integer as a double that lies on the same side of each tie of FLOAT and narrower floats:
 *  rounded to one of those it gives what rounding the integer itself would. */
double weir_f64_of_integer(int64_t value, bool is_unsigned);

#endif
