#include "mlflow/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Powers of ten that a long double of 64 bits holds exactly. */
static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                     1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                     1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

#define LEAST 1e-10
#define MOST  1e16

size_t number_int_text(int64_t value, char out[NUMBER_TEXT_BYTES])
{
    char digits[24];
    size_t i = sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--i] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        digits[--i] = '-';
    }
    memcpy(out, digits + i, sizeof digits - i);
    return sizeof digits - i;
}

/* value = digits / 10^scale; digits has no zero at its end. Plain notation: at most 10 zeros lead. */
static size_t write_digits(uint64_t number, int scale, bool is_negative, char *out)
{
    char digits[NUMBER_TEXT_BYTES];
    size_t n = 0, len = number_int_text((int64_t)number, digits);
    if (is_negative) {
        out[n++] = '-';
    }
    if (scale <= 0) { /* an integer */
        memcpy(out + n, digits, len);
        n += len;
        memset(out + n, '0', (size_t)-scale);
        n += (size_t)-scale;
        out[n++] = '.';
        out[n++] = '0';
        return n;
    }
    size_t n_after = (size_t)scale, n_before = len > n_after ? len - n_after : 0;
    memcpy(out + n, digits, n_before);
    n += n_before;
    if (n_before == 0) {
        out[n++] = '0';
    }
    out[n++] = '.';
    for (size_t i = len - n_before; i < n_after; i++) {
        out[n++] = '0';
    }
    memcpy(out + n, digits + n_before, len - n_before);
    return n + len - n_before;
}

/* The number of `n_digits` digits nearest to the value, if it reads back as the value. The product and the
 * quotient are each off by 2^-64 of themselves at most. */
static bool try_digits(double value, int magnitude, int n_digits, uint64_t *out, int *out_scale)
{
    int scale = n_digits - 1 - magnitude, exponent;
    if (scale < 0 || scale > 27) {
        return false;
    }
    long double number = rintl((long double)value * powers[scale]);
    (void)frexp(value, &exponent);
    long double half_step = ldexpl(1.0L, exponent - 54);
    if (fabsl(number / powers[scale] - (long double)value) >= half_step * 0.99L) {
        return false;
    }
    *out = (uint64_t)number;
    *out_scale = scale;
    return true;
}

size_t number_text(double value, char out[NUMBER_TEXT_BYTES])
{
    double size = fabs(value);
    uint64_t number;
    int scale;
    if (size < 1e15 && size == trunc(size)) {
        size_t n = number_int_text((int64_t)value, out);
        memcpy(out + n, ".0", 2);
        return n + 2;
    }
    int magnitude = size >= LEAST && size < MOST ? (int)floor(log10(size)) : 0;
    if (size < LEAST || size >= MOST ||
        (!try_digits(size, magnitude, 15, &number, &scale) &&
         !try_digits(size, magnitude, 17, &number, &scale))) {
        return (size_t)snprintf(out, NUMBER_TEXT_BYTES, "%.17g", value);
    }
    while (number % 10 == 0 && number > 0) {
        number /= 10;
        scale--;
    }
    return write_digits(number, scale, value < 0, out);
}
