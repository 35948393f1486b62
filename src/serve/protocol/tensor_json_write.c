#include "serve/protocol/tensor_json.h"

#include "base/base64.h"
#include "base/json.h"
#include "tensor/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 40
#define F32_DIGITS   9  /* that many always give an f32 back */
#define FIXED_MAX    15 /* larger exponents are written with an e */
#define FIXED_MIN    (-5)

static double power_of_ten(int exponent)
{
    static const double small[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    double power = 1;
    for (; exponent > FIXED_MAX; exponent -= FIXED_MAX) {
        power *= 1e15;
    }
    return power * small[exponent];
}

static double scale(double value, int exponent)
{
    return exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
}

/* The e with 10^e <= value < 10^(e+1), or one beside it. */
static int exponent_of(double value)
{
    int binary;
    (void)frexp(value, &binary);
    return (int)floor((binary - 1) * 0.30102999566398120);
}

/* The fewest digits, of at least six, that give the f32 back: value = digits · 10^(e - n + 1). */
static uint64_t shortest_digits(float value, int *exponent, int *n_digits)
{
    double wanted = (double)value;
    uint64_t digits = 0;
    int e = exponent_of(wanted);
    if (scale(1, e + 1) <= wanted) {
        e++;
    }
    for (int n = F32_DIGITS - 3; n <= F32_DIGITS; n++) {
        int shift = n - 1 - e;
        double rounded = rint(scale(wanted, shift));
        digits = (uint64_t)rounded;
        *n_digits = n;
        if (n == F32_DIGITS || (float)scale(rounded, -shift) == value) {
            break;
        }
    }
    while (digits % 10 == 0) {
        digits /= 10;
        (*n_digits)--;
    }
    /* 9.9999… may have been rounded up to one digit more. */
    int n_real = 0;
    for (uint64_t rest = digits; rest > 0; rest /= 10) {
        n_real++;
    }
    *exponent = e + (n_real - *n_digits);
    *n_digits = n_real;
    return digits;
}

static size_t put_exponent(char *to, int exponent)
{
    size_t n = 0;
    int magnitude = exponent < 0 ? -exponent : exponent; /* of an f32: two digits */
    to[n++] = 'e';
    to[n++] = exponent < 0 ? '-' : '+';
    to[n++] = (char)('0' + magnitude / 10);
    to[n++] = (char)('0' + magnitude % 10);
    return n;
}

/* The digits with a point behind the first, or where the exponent says. */
static size_t put_digits(char *to, uint64_t digits, int n_digits, int exponent)
{
    char text[24] = {0};
    size_t n = 0;
    for (int i = n_digits - 1; i >= 0; i--) {
        text[i] = (char)('0' + digits % 10);
        digits /= 10;
    }
    if (exponent < FIXED_MIN || exponent > FIXED_MAX) {
        to[n++] = text[0];
        to[n++] = '.';
        if (n_digits == 1) {
            to[n++] = '0';
        }
        memcpy(to + n, text + 1, (size_t)n_digits - 1);
        n += (size_t)n_digits - 1;
        return n + put_exponent(to + n, exponent);
    }
    if (exponent < 0) {
        to[n++] = '0';
        to[n++] = '.';
        for (int i = -1; i > exponent; i--) {
            to[n++] = '0';
        }
        memcpy(to + n, text, (size_t)n_digits);
        return n + (size_t)n_digits;
    }
    for (int i = 0; i < n_digits || i <= exponent; i++) {
        to[n++] = i < n_digits ? text[i] : '0';
        if (i == exponent) {
            to[n++] = '.';
        }
    }
    if (n_digits <= exponent + 1) {
        to[n++] = '0';
    }
    return n;
}

static size_t put_f32(char to[NUMBER_BYTES], float value)
{
    int exponent, n_digits;
    size_t n = 0;
    if (value == 0) {
        memcpy(to, signbit(value) ? "-0.0" : "0.0", 4);
        return signbit(value) ? 4 : 3;
    }
    if (value < 0) {
        to[n++] = '-';
    }
    uint64_t digits = shortest_digits(fabsf(value), &exponent, &n_digits);
    return n + put_digits(to + n, digits, n_digits, exponent);
}

/* The fewest of 15 to 17 digits that give the double back, and a mark that it is no integer. */
static size_t put_f64(char to[NUMBER_BYTES], double value)
{
    for (int n_digits = 15; n_digits <= 17; n_digits++) {
        (void)snprintf(to, NUMBER_BYTES, "%.*g", n_digits, value);
        if (strtod(to, NULL) == value) {
            break;
        }
    }
    size_t len = strlen(to);
    if (strpbrk(to, ".e") == NULL) {
        memcpy(to + len, ".0", 3);
        len += 2;
    }
    return len;
}

static void put_float(struct weir_buf *out, double value, bool is_double)
{
    char text[NUMBER_BYTES];
    if (isnan(value)) {
        (void)weir_buf_puts(out, "NaN");
    } else if (isinf(value)) {
        (void)weir_buf_puts(out, value < 0 ? "-Infinity" : "Infinity");
    } else {
        size_t len = is_double ? put_f64(text, value) : put_f32(text, (float)value);
        (void)weir_buf_append(out, text, len);
    }
}

static void put_integer(struct weir_buf *out, const struct weir_tensor *tensor, const void *elem)
{
    int64_t value;
    weir_elems_to_i64(tensor->dtype, elem, &value, 1);
    if (tensor->dtype == WEIR_DTYPE_UINT64) {
        (void)weir_buf_printf(out, "%" PRIu64, (uint64_t)value);
    } else {
        (void)weir_buf_printf(out, "%" PRId64, value);
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at the front; 0: it is none. */
static size_t character_bytes(const unsigned char *at, size_t len)
{
    size_t n = at[0] < 0x80       ? 1
               : at[0] >> 5 == 6  ? 2
               : at[0] >> 4 == 14 ? 3
               : at[0] >> 3 == 30 ? 4
                                  : 0;
    if (n == 0 || n > len) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if (at[i] >> 6 != 2) {
            return 0;
        }
    }
    bool is_long = (n == 2 && at[0] < 0xc2) || (n == 3 && at[0] == 0xe0 && at[1] < 0xa0) ||
                   (n == 4 && at[0] == 0xf0 && at[1] < 0x90);
    bool is_no_character = (n == 3 && at[0] == 0xed && at[1] >= 0xa0) ||
                           (n == 4 && (at[0] > 0xf4 || (at[0] == 0xf4 && at[1] >= 0x90)));
    return is_long || is_no_character ? 0 : n;
}

void json_put_text(struct weir_buf *out, const char *bytes, size_t len)
{
    const unsigned char *at = (const unsigned char *)bytes;
    (void)weir_buf_append(out, "\"", 1);
    for (size_t i = 0, n; i < len; i += n) {
        n = character_bytes(at + i, len - i);
        if (n == 0) {
            (void)weir_buf_puts(out, "\xef\xbf\xbd");
            n = 1;
        } else if (at[i] == '"' || at[i] == '\\') {
            (void)weir_buf_append(out, (const char[]){'\\', (char)at[i]}, 2);
        } else if (at[i] < 0x20 || at[i] == 0x7f) {
            (void)weir_buf_printf(out, "\\u%04x", at[i]);
        } else {
            (void)weir_buf_append(out, at + i, n);
        }
    }
    (void)weir_buf_append(out, "\"", 1);
}

static bool is_utf8(const unsigned char *at, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = character_bytes(at + i, len - i);
        if (n == 0) {
            return false;
        }
    }
    return true;
}

static void put_string(struct weir_buf *out, const struct weir_tensor_string *string)
{
    if (string->len == 0 || is_utf8((const unsigned char *)string->bytes, string->len)) {
        json_put_text(out, string->bytes, string->len);
        return;
    }
    char *text = malloc(WEIR_BASE64_TEXT_BYTES(string->len));
    if (text == NULL) {
        out->status = WEIR_ERR_NOMEM;
        return;
    }
    (void)weir_buf_puts(out, "{\"b64\":\"");
    (void)weir_buf_puts(out, weir_base64_encode(string->bytes, string->len, text));
    (void)weir_buf_puts(out, "\"}");
    free(text);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/** One element: the shortest decimal that gives an f32 back; NaN, Infinity and -Infinity as
 *  they are called here. A string that is not UTF-8 is {"b64": …}. */
static void put_elem(struct weir_buf *out, const struct weir_tensor *tensor, size_t i)
{
    const char *elem = (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype);
    double value;
    switch (weir_dtype_class(tensor->dtype)) {
    case WEIR_DTYPE_IS_FLOAT:
        weir_elems_to_f64(tensor->dtype, elem, &value, 1);
        put_float(out, value, tensor->dtype == WEIR_DTYPE_DOUBLE);
        break;
    case WEIR_DTYPE_IS_BOOL:
        (void)weir_buf_puts(out, *elem != 0 ? "true" : "false");
        break;
    case WEIR_DTYPE_IS_STRING:
        put_string(out, (const struct weir_tensor_string *)(const void *)elem);
        break;
    case WEIR_DTYPE_IS_COMPLEX:
        (void)weir_buf_puts(out, "null");
        break;
    default:
        put_integer(out, tensor, elem);
    }
}

void tensor_json_put_flat(struct weir_buf *out, const struct weir_tensor *tensor, size_t first,
                          size_t n)
{
    (void)weir_buf_append(out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            (void)weir_buf_append(out, ",", 1);
        }
        put_elem(out, tensor, first + i);
    }
    (void)weir_buf_append(out, "]", 1);
}

/* The part of dimensions from `axis` on whose elements begin at `first`. At most 8 deep. */
static void put_part(struct weir_buf *out, const struct weir_tensor *tensor, int32_t axis,
                     size_t first)
{
    size_t step = 1;
    if (axis == tensor->rank) {
        put_elem(out, tensor, first);
        return;
    }
    if (axis == tensor->rank - 1) {
        tensor_json_put_flat(out, tensor, first, (size_t)tensor->dims[axis]);
        return;
    }
    for (int32_t i = axis + 1; i < tensor->rank; i++) {
        step *= (size_t)tensor->dims[i];
    }
    (void)weir_buf_append(out, "[", 1);
    for (int64_t i = 0; i < tensor->dims[axis]; i++) {
        if (i > 0) {
            (void)weir_buf_append(out, ",", 1);
        }
        put_part(out, tensor, axis + 1, first + (size_t)i * step);
    }
    (void)weir_buf_append(out, "]", 1);
}

void tensor_json_put_nested(struct weir_buf *out, const struct weir_tensor *tensor)
{
    put_part(out, tensor, 0, 0);
}

void tensor_json_put_row(struct weir_buf *out, const struct weir_tensor *tensor, int64_t i_row)
{
    size_t row_elems = tensor->n_elems / (size_t)WEIR_MAX(tensor->dims[0], (int64_t)1);
    put_part(out, tensor, 1, (size_t)i_row * row_elems);
}
