#include "tensor/convert.h"

#include <math.h>

/* ---- narrow floats ------------------------------------------------------------------------- */

/** A float of `bits` bits: sign, exponent, mantissa. */
struct narrow {
    int bits, mantissa_bits, bias;
    uint32_t most;          /* The largest value's bits. */
    uint32_t infinity, nan; /* 0: there is none. */
    bool is_zero_unsigned;  /* NaN is what would be -0 (FNUZ). */
};

static const struct narrow float16 = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00, false};
static const struct narrow bfloat16 = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, false};
static const struct narrow e4m3fn = {8, 3, 7, 0x7e, 0, 0x7f, false};
static const struct narrow e4m3fnuz = {8, 3, 8, 0x7f, 0, 0x80, true};
static const struct narrow e5m2 = {8, 2, 15, 0x7b, 0x7c, 0x7e, false};
static const struct narrow e5m2fnuz = {8, 2, 16, 0x7f, 0, 0x80, true};
static const struct narrow e2m1 = {4, 1, 1, 0x7, 0, 0, false};

static const struct narrow *narrow_of(enum weir_dtype dtype)
{
    switch (dtype) {
    case WEIR_DTYPE_FLOAT16:
        return &float16;
    case WEIR_DTYPE_BFLOAT16:
        return &bfloat16;
    case WEIR_DTYPE_FLOAT8E4M3FN:
        return &e4m3fn;
    case WEIR_DTYPE_FLOAT8E4M3FNUZ:
        return &e4m3fnuz;
    case WEIR_DTYPE_FLOAT8E5M2:
        return &e5m2;
    case WEIR_DTYPE_FLOAT8E5M2FNUZ:
        return &e5m2fnuz;
    case WEIR_DTYPE_FLOAT4E2M1:
        return &e2m1;
    default:
        return NULL;
    }
}

static double magnitude(const struct narrow *f, uint32_t bits)
{
    uint32_t mantissa = bits & ((1U << f->mantissa_bits) - 1);
    int exponent = (int)(bits >> f->mantissa_bits);
    return exponent == 0
               ? ldexp(mantissa, 1 - f->bias - f->mantissa_bits)
               : ldexp(mantissa + (1U << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
}

static double decode(const struct narrow *f, uint32_t bits)
{
    uint32_t sign = 1U << (f->bits - 1), rest = bits & (sign - 1);
    if (f->is_zero_unsigned ? bits == f->nan
                            : f->nan != 0 && rest > WEIR_MAX(f->most, f->infinity)) {
        return NAN;
    }
    double value = f->infinity != 0 && rest == f->infinity ? INFINITY : magnitude(f, rest);
    return (bits & sign) != 0 ? -value : value;
}

static uint32_t overflowed(const struct narrow *f, enum weir_overflow overflow)
{
    uint32_t lost = f->infinity != 0 ? f->infinity : f->nan != 0 ? f->nan : f->most;
    if (f->bits > 8 || overflow == WEIR_OVERFLOW_IS_LOST) {
        return lost;
    }
    return f->most;
}

/* To the nearest, ties to even. */
static uint32_t encode(const struct narrow *f, double value, enum weir_overflow overflow)
{
    uint32_t sign = signbit(value) ? 1U << (f->bits - 1) : 0, bits;
    double rest = fabs(value);
    int exponent;
    if (rest == 0) {
        return f->is_zero_unsigned ? 0 : sign;
    }
    if (isnan(value)) {
        /* Without a NaN, E2M1, it is -0, as in ml_dtypes. */
        return f->nan != 0 ? f->nan | (f->is_zero_unsigned ? 0 : sign) : 1U << (f->bits - 1);
    }
    (void)frexp(rest, &exponent); /* rest < 2^exponent */
    exponent = isinf(rest) ? 0 : WEIR_MAX(exponent - 1, 1 - f->bias);
    double steps = nearbyint(ldexp(rest, f->mantissa_bits - exponent));
    if (isinf(rest) || ldexp(steps, exponent - f->mantissa_bits) > magnitude(f, f->most)) {
        bits = overflowed(f, overflow);
    } else {
        bits = ((uint32_t)(exponent + f->bias - 1) << f->mantissa_bits) + (uint32_t)steps;
    }
    if (f->is_zero_unsigned && (bits == 0 || bits == f->nan)) {
        return bits;
    }
    return bits | sign;
}

/* E8M0: powers of two, without a sign. */
static double decode_e8m0(uint8_t bits)
{
    return bits == 0xff ? NAN : ldexp(1, (int)bits - 127);
}

/* A value between two powers becomes the larger one. */
static uint8_t encode_e8m0(double value)
{
    int exponent;
    if (isnan(value)) {
        return 0xff;
    }
    double mantissa = frexp(fabs(value), &exponent);
    if (isinf(value)) {
        return 0xfe;
    }
    exponent = mantissa > 0.5 ? exponent : exponent - 1;
    return value == 0 ? 0 : (uint8_t)WEIR_MAX(0, WEIR_MIN(254, exponent + 127));
}

/* ---- to wide types ------------------------------------------------------------------------- */

#define EACH_PLAIN(X)                                                                              \
    X(FLOAT, float)                                                                                \
    X(DOUBLE, double)                                                                              \
    X(INT8, int8_t)                                                                                \
    X(INT16, int16_t)                                                                              \
    X(INT32, int32_t)                                                                              \
    X(INT64, int64_t)                                                                              \
    X(UINT8, uint8_t)                                                                              \
    X(UINT16, uint16_t)                                                                            \
    X(UINT32, uint32_t)                                                                            \
    X(UINT64, uint64_t)                                                                            \
    X(BOOL, uint8_t)                                                                               \
    X(UINT4, uint8_t)                                                                              \
    X(UINT2, uint8_t)

/* The low bits of a byte, with their sign. */
static int sign_extend(uint8_t byte, int bits)
{
    int sign = 1 << (bits - 1), low = byte & (2 * sign - 1);
    return (low ^ sign) - sign;
}

static void narrow_to_f64(enum weir_dtype dtype, const void *from, double *to, size_t n)
{
    const struct narrow *f = narrow_of(dtype);
    const uint8_t *bytes = from;
    const uint16_t *halves = from;
    for (size_t i = 0; i < n; i++) {
        to[i] = f == NULL ? decode_e8m0(bytes[i]) : decode(f, f->bits == 16 ? halves[i] : bytes[i]);
    }
}

void weir_elems_to_f64(enum weir_dtype dtype, const void *from, double *to, size_t n)
{
    switch (dtype) {
#define X(name, type)                                                                              \
    case WEIR_DTYPE_##name:                                                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            to[i] = (double)((const type *)from)[i];                                               \
        }                                                                                          \
        return;
        EACH_PLAIN(X)
#undef X
    case WEIR_DTYPE_INT4:
    case WEIR_DTYPE_INT2:
        for (size_t i = 0; i < n; i++) {
            to[i] = sign_extend(((const uint8_t *)from)[i], dtype == WEIR_DTYPE_INT4 ? 4 : 2);
        }
        return;
    default:
        narrow_to_f64(dtype, from, to, n);
    }
}

static int64_t cut(double value)
{
    return isnan(value)       ? 0
           : value <= -0x1p63 ? INT64_MIN
           : value >= 0x1p63  ? INT64_MAX
                              : (int64_t)value;
}

void weir_elems_to_i64(enum weir_dtype dtype, const void *from, int64_t *to, size_t n)
{
    double value;
    if (weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT) {
        for (size_t i = 0; i < n; i++) {
            weir_elems_to_f64(dtype, (const char *)from + i * weir_dtype_bytes(dtype), &value, 1);
            to[i] = cut(value);
        }
        return;
    }
    switch (dtype) {
#define X(name, type)                                                                              \
    case WEIR_DTYPE_##name:                                                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            to[i] = (int64_t)((const type *)from)[i];                                              \
        }                                                                                          \
        return;
        EACH_PLAIN(X)
#undef X
    default: /* INT4, INT2 */
        for (size_t i = 0; i < n; i++) {
            to[i] = sign_extend(((const uint8_t *)from)[i], dtype == WEIR_DTYPE_INT4 ? 4 : 2);
        }
    }
}

/* ---- from wide types ----------------------------------------------------------------------- */

/* What does not fit goes by the bits of an int64, as processors and numpy do. */
static uint64_t integer_bits(double value)
{
    return value >= 0x1p63 && value < 0x1p64 ? (uint64_t)value : (uint64_t)cut(value);
}

static void put_integer(enum weir_dtype dtype, uint64_t bits, void *to, size_t i)
{
    switch (weir_dtype_bytes(dtype)) {
    case 8:
        ((uint64_t *)to)[i] = bits;
        break;
    case 4:
        ((uint32_t *)to)[i] = (uint32_t)bits;
        break;
    case 2:
        ((uint16_t *)to)[i] = (uint16_t)bits;
        break;
    default:
        ((uint8_t *)to)[i] = (uint8_t)(bits & ((1U << weir_dtype_bits(dtype)) - 1));
    }
}

static void put_float(enum weir_dtype dtype, double value, void *to, size_t i,
                      enum weir_overflow overflow)
{
    const struct narrow *f = narrow_of(dtype);
    if (dtype == WEIR_DTYPE_FLOAT) {
        ((float *)to)[i] = (float)value;
    } else if (dtype == WEIR_DTYPE_DOUBLE) {
        ((double *)to)[i] = value;
    } else if (f == NULL) {
        ((uint8_t *)to)[i] = encode_e8m0(value);
    } else if (f->bits == 16) {
        ((uint16_t *)to)[i] = (uint16_t)encode(f, value, overflow);
    } else {
        ((uint8_t *)to)[i] = (uint8_t)encode(f, value, overflow);
    }
}

void weir_elems_from_f64(enum weir_dtype dtype, const double *from, void *to, size_t n,
                         enum weir_overflow overflow)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == WEIR_DTYPE_BOOL) {
            ((uint8_t *)to)[i] = from[i] != 0;
        } else if (weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT) {
            put_float(dtype, from[i], to, i, overflow);
        } else {
            put_integer(dtype, integer_bits(from[i]), to, i);
        }
    }
}

double weir_f64_of_integer(int64_t value, bool is_unsigned)
{
    bool is_negative = !is_unsigned && value < 0;
    uint64_t size = is_negative ? -(uint64_t)value : (uint64_t)value;
    if (size >= (uint64_t)1 << 53) {
        const uint64_t low = ((uint64_t)1 << 11) - 1; /* 53 bits stay */
        size = (size & ~low) | ((size & low) != 0 ? (uint64_t)1 << 11 : 0);
    }
    return is_negative ? -(double)size : (double)size;
}

void weir_elems_from_i64(enum weir_dtype dtype, const int64_t *from, bool is_unsigned, void *to,
                         size_t n)
{
    const bool is_float = weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT;
    for (size_t i = 0; i < n; i++) {
        if (dtype == WEIR_DTYPE_BOOL) {
            ((uint8_t *)to)[i] = from[i] != 0;
        } else if (dtype == WEIR_DTYPE_FLOAT) {
            ((float *)to)[i] = is_unsigned ? (float)(uint64_t)from[i] : (float)from[i];
        } else if (dtype == WEIR_DTYPE_DOUBLE) {
            ((double *)to)[i] = is_unsigned ? (double)(uint64_t)from[i] : (double)from[i];
        } else if (is_float) {
            put_float(dtype, weir_f64_of_integer(from[i], is_unsigned), to, i,
                      WEIR_OVERFLOW_SATURATES);
        } else {
            put_integer(dtype, (uint64_t)from[i], to, i);
        }
    }
}
