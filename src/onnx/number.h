/**
 * Numbers: elements of any numeric type, held exactly. Floats are held as a double, integers and
 * bool as a whole number of 128 bits: a double has 53 bits, and an int64 or uint64 needs more.
 *
 * An element has one of the two parts, and the other is zero. So sums, products and order need not
 * ask which it is:
 *
 *     struct onnx_number sum = onnx_number_add(onnx_number_at(x, i), onnx_number_at(x, k));
 *     onnx_number_put(y, i, sum);
 *
 * Whole numbers are computed modulo 2^128 and put modulo the range of their type, as processors and
 * numpy do: a sum of int8 wraps at 128, one of int64 at 2^63.
 */
#ifndef WEIR_ONNX_NUMBER_H
#define WEIR_ONNX_NUMBER_H

#include "op.h"

#include <math.h>

__extension__ typedef __int128 onnx_whole;
__extension__ typedef unsigned __int128 onnx_whole_bits;

struct onnx_number {
    double real;
    onnx_whole whole;
};

/** Is an element of this type a whole number: an integer or bool? */
static inline bool onnx_is_whole(enum weir_dtype dtype)
{
    if (dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_INT64) {
        return dtype == WEIR_DTYPE_INT64;
    }
    enum weir_dtype_class class = weir_dtype_class(dtype);
    return class == WEIR_DTYPE_IS_SIGNED || class == WEIR_DTYPE_IS_UNSIGNED ||
           class == WEIR_DTYPE_IS_BOOL;
}

/** Element i of a tensor of integers or bool: of any type, and of the commonest in line. */
onnx_whole onnx_whole_read(const struct weir_tensor *tensor, size_t i);

static inline onnx_whole onnx_whole_at(const struct weir_tensor *tensor, size_t i)
{
    return tensor->dtype == WEIR_DTYPE_INT64   ? ((const int64_t *)tensor->data)[i]
           : tensor->dtype == WEIR_DTYPE_INT32 ? ((const int32_t *)tensor->data)[i]
                                               : onnx_whole_read(tensor, i);
}

/** Sets element i of a tensor of integers (modulo their range) or bool (not 0). */
void onnx_whole_write(struct weir_tensor *tensor, size_t i, onnx_whole value);

static inline void onnx_whole_put(struct weir_tensor *tensor, size_t i, onnx_whole value)
{
    if (tensor->dtype == WEIR_DTYPE_INT64) {
        ((int64_t *)tensor->data)[i] = (int64_t)value;
    } else if (tensor->dtype == WEIR_DTYPE_INT32) {
        ((int32_t *)tensor->data)[i] = (int32_t)value;
    } else {
        onnx_whole_write(tensor, i, value);
    }
}

/** The least and the largest of a type of integers, or bool. */
onnx_whole onnx_whole_least(enum weir_dtype dtype);
onnx_whole onnx_whole_most(enum weir_dtype dtype);
/** The whole number at a double, cut towards zero; NaN is 0, and what 128 bits do not hold is the
 *  nearest that they do. */
onnx_whole onnx_whole_of(double value);

/** Element i of a tensor of numbers. */
static inline struct onnx_number onnx_number_at(const struct weir_tensor *tensor, size_t i)
{
    return onnx_is_whole(tensor->dtype) ? (struct onnx_number){.whole = onnx_whole_at(tensor, i)}
                                        : (struct onnx_number){.real = onnx_get(tensor, i)};
}

/** Sets element i to a number of the same kind. Floats beyond a narrow type's range saturate. */
static inline void onnx_number_put(struct weir_tensor *tensor, size_t i, struct onnx_number number)
{
    if (onnx_is_whole(tensor->dtype)) {
        onnx_whole_put(tensor, i, number.whole);
    } else {
        onnx_put(tensor, i, number.real);
    }
}

/** The element as a double: what it is, or the nearest double. */
double onnx_number_f64(struct onnx_number number);

/* ---- whole numbers ---------------------------------------------------------------------------- */

static inline onnx_whole onnx_whole_add(onnx_whole a, onnx_whole b)
{
    return (onnx_whole)((onnx_whole_bits)a + (onnx_whole_bits)b);
}

static inline onnx_whole onnx_whole_multiply(onnx_whole a, onnx_whole b)
{
    return (onnx_whole)((onnx_whole_bits)a * (onnx_whole_bits)b);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static inline struct onnx_number onnx_number_add(struct onnx_number a, struct onnx_number b)
{
    return (struct onnx_number){a.real + b.real, onnx_whole_add(a.whole, b.whole)};
}

static inline struct onnx_number onnx_number_multiply(struct onnx_number a, struct onnx_number b)
{
    return (struct onnx_number){a.real * b.real, onnx_whole_multiply(a.whole, b.whole)};
}

static inline bool onnx_number_is_nan(struct onnx_number a)
{
    return isnan(a.real);
}

/** Below, at or above 0: a is less than b, equal, or larger. NaN is larger than all others and
 *  equal to NaN, as in numpy's sort. */
static inline int onnx_number_order(struct onnx_number a, struct onnx_number b)
{
    int order = (a.real > b.real) - (a.real < b.real) + (a.whole > b.whole) - (a.whole < b.whole);
    return order != 0 || a.real == b.real ? order : isnan(a.real) - isnan(b.real);
}

/** The larger, or the smaller; NaN wins over both. */
static inline struct onnx_number onnx_number_larger(struct onnx_number a, struct onnx_number b)
{
    return onnx_number_order(a, b) >= 0 ? a : b;
}

static inline struct onnx_number onnx_number_smaller(struct onnx_number a, struct onnx_number b)
{
    return onnx_number_is_nan(a) || (!onnx_number_is_nan(b) && onnx_number_order(a, b) <= 0) ? a
                                                                                             : b;
}

#endif
