/* Cast and CastLike: between all element types, also to and from text. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, NUMBER_BYTES = 64 };

/* ---- text ------------------------------------------------------------------------------------- */

static weir_status refuse_text(const char *text, const char *what, enum weir_dtype dtype,
                               struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INVALID, "\"%s\" %s%s", text, what,
                          dtype == WEIR_DTYPE_NONE ? "" : weir_dtype_name(dtype));
}

/* Digits are read as they are, so that none is lost; what has a fraction or an exponent is cut
 * towards zero. */
static weir_status put_whole(const char *text, struct weir_tensor *y, size_t i,
                             struct weir_error *err)
{
    char *end;
    double real = strtod(text, &end);
    if (end == text || *end != '\0') {
        return refuse_text(text, "is no number", WEIR_DTYPE_NONE, err);
    }
    onnx_whole value = onnx_whole_of(real);
    if (fabs(real) < 0x1p65 && text[strspn(text, " \t\n\v\f\r+-0123456789")] == '\0') {
        const char *digit = text + strspn(text, " \t\n\v\f\r+-");
        for (value = 0; *digit != '\0'; digit++) {
            value = value * 10 + (*digit - '0');
        }
        value = real < 0 ? -value : value;
    }
    bool fits = y->dtype == WEIR_DTYPE_BOOL ||
                (value >= onnx_whole_least(y->dtype) && value <= onnx_whole_most(y->dtype));
    if (!fits || isnan(real)) {
        return refuse_text(text, "does not fit into ", y->dtype, err);
    }
    onnx_whole_put(y, i, y->dtype == WEIR_DTYPE_BOOL ? real != 0 : value);
    return WEIR_OK;
}

static weir_status put_real(const char *text, struct weir_tensor *y, size_t i,
                            struct weir_error *err)
{
    char *end;
    if (y->dtype == WEIR_DTYPE_FLOAT) { /* rounded once */
        ((float *)y->data)[i] = strtof(text, &end);
    } else {
        onnx_put(y, i, strtod(text, &end));
    }
    return end != text && *end == '\0' ? WEIR_OK
                                       : refuse_text(text, "is no number", WEIR_DTYPE_NONE, err);
}

static weir_status from_texts(const struct weir_tensor *x, struct weir_tensor *y,
                              struct weir_error *err)
{
    for (size_t i = 0; i < x->n_elems; i++) {
        const struct weir_tensor_string *text = (struct weir_tensor_string *)x->data + i;
        char copy[NUMBER_BYTES];
        if (text->len == 0 || text->len >= sizeof copy) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a text of %zu bytes is no number",
                                  text->len);
        }
        memcpy(copy, text->bytes, text->len);
        copy[text->len] = '\0';
        if (strlen(copy) != text->len) {
            return refuse_text(copy, "and a zero byte are no number", WEIR_DTYPE_NONE, err);
        }
        WEIR_TRY((onnx_is_whole(y->dtype) ? put_whole : put_real)(copy, y, i, err));
    }
    return WEIR_OK;
}

/* The shortest digits that give the element back. */
static void write_number(enum weir_dtype dtype, double value, char text[NUMBER_BYTES])
{
    int most = dtype == WEIR_DTYPE_DOUBLE ? 17 : 9;
    double again = NAN;
    if (isnan(value) || isinf(value)) {
        (void)snprintf(text, NUMBER_BYTES, isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF");
        return;
    }
    for (int digits = 1; digits <= most && again != value; digits++) {
        (void)snprintf(text, NUMBER_BYTES, "%.*g", digits, value);
        again = strtod(text, NULL);
        again = dtype == WEIR_DTYPE_DOUBLE ? again : (double)(float)again;
    }
}

static weir_status to_texts(const struct weir_tensor *x, struct weir_tensor *y)
{
    bool is_float = weir_dtype_class(x->dtype) == WEIR_DTYPE_IS_FLOAT;
    for (size_t i = 0; i < x->n_elems; i++) {
        const void *from = (const char *)x->data + i * weir_dtype_bytes(x->dtype);
        char text[NUMBER_BYTES];
        double value;
        int64_t whole;
        weir_elems_to_f64(x->dtype, from, &value, 1);
        weir_elems_to_i64(x->dtype, from, &whole, 1);
        if (is_float) {
            write_number(x->dtype, value, text);
        } else {
            (void)snprintf(text, sizeof text, x->dtype == WEIR_DTYPE_UINT64 ? "%llu" : "%lld",
                           (long long)whole);
        }
        struct weir_tensor_string string = {text, strlen(text)};
        WEIR_TRY(weir_elems_copy(WEIR_DTYPE_STRING, (struct weir_tensor_string *)y->data + i,
                                 &string, 1));
    }
    return WEIR_OK;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

/* E8M0 has attributes of its own: what lies between two powers goes up, down or to the nearest. */
static double round_to_power(double value, bool is_up, bool is_down)
{
    int exponent;
    double mantissa = frexp(value, &exponent); /* 0.5 <= mantissa < 1 */
    if (!isfinite(value) || value <= 0 || is_up) {
        return value; /* the conversion rounds up */
    }
    bool goes_up = !is_down && mantissa >= 0.75;
    return ldexp(0.5, exponent + (goes_up && mantissa != 0.5));
}

/** What becomes of doubles on their way to a float of eight bits or fewer. */
struct narrowing {
    enum weir_overflow overflow;
    bool is_up, is_down;
};

static struct narrowing read_narrowing(const struct onnx_call *call)
{
    return (struct narrowing){.overflow = onnx_int(call, "saturate", 1) != 0
                                              ? WEIR_OVERFLOW_SATURATES
                                              : WEIR_OVERFLOW_IS_LOST,
                              .is_up = onnx_text_is(call, "round_mode", "up", "up"),
                              .is_down = onnx_text_is(call, "round_mode", "up", "down")};
}

static void put_doubles(const struct narrowing *narrowing, double *values, struct weir_tensor *y,
                        size_t first, size_t n)
{
    for (size_t k = 0; k < n && y->dtype == WEIR_DTYPE_FLOAT8E8M0; k++) {
        values[k] = round_to_power(values[k], narrowing->is_up, narrowing->is_down);
    }
    weir_elems_from_f64(y->dtype, values, (char *)y->data + first * weir_dtype_bytes(y->dtype), n,
                        narrowing->overflow);
}

static void convert_floats(const struct onnx_call *call, const struct weir_tensor *x,
                           struct weir_tensor *y)
{
    double values[BLOCK];
    const struct narrowing narrowing = read_narrowing(call);
    for (size_t i = 0; i < x->n_elems; i += BLOCK) {
        size_t n = WEIR_MIN((size_t)BLOCK, x->n_elems - i);
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * weir_dtype_bytes(x->dtype), values,
                          n);
        put_doubles(&narrowing, values, y, i, n);
    }
}

static void convert_integers(const struct onnx_call *call, const struct weir_tensor *x,
                             struct weir_tensor *y)
{
    int64_t values[BLOCK];
    double doubles[BLOCK];
    const struct narrowing narrowing = read_narrowing(call);
    bool is_unsigned = x->dtype == WEIR_DTYPE_UINT64;
    bool is_narrow =
        weir_dtype_class(y->dtype) == WEIR_DTYPE_IS_FLOAT && weir_dtype_bits(y->dtype) <= 8;
    for (size_t i = 0; i < x->n_elems; i += BLOCK) {
        size_t n = WEIR_MIN((size_t)BLOCK, x->n_elems - i);
        weir_elems_to_i64(x->dtype, (const char *)x->data + i * weir_dtype_bytes(x->dtype), values,
                          n);
        for (size_t k = 0; k < n && is_narrow; k++) {
            doubles[k] = weir_f64_of_integer(values[k], is_unsigned);
        }
        if (is_narrow) {
            put_doubles(&narrowing, doubles, y, i, n);
        } else {
            weir_elems_from_i64(y->dtype, values, is_unsigned,
                                (char *)y->data + i * weir_dtype_bytes(y->dtype), n);
        }
    }
}

static weir_status convert(struct onnx_call *call, enum weir_dtype to, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0), *y;
    if (to == WEIR_DTYPE_NONE || weir_dtype_class(to) == WEIR_DTYPE_IS_COMPLEX ||
        weir_dtype_class(x->dtype) == WEIR_DTYPE_IS_COMPLEX) {
        return onnx_refuse_dtype(to, err);
    }
    if (x->dtype == to) {
        return onnx_alias(call, 0, x, x->rank, x->dims, err);
    }
    WEIR_TRY(onnx_out(call, 0, to, x->rank, x->dims, &y, err));
    if (x->dtype == WEIR_DTYPE_STRING) {
        return from_texts(x, y, err);
    }
    if (to == WEIR_DTYPE_STRING) {
        return to_texts(x, y);
    }
    if (weir_dtype_class(x->dtype) == WEIR_DTYPE_IS_FLOAT) {
        convert_floats(call, x, y);
    } else {
        convert_integers(call, x, y);
    }
    return WEIR_OK;
}

static weir_status run_cast(struct onnx_call *call, struct weir_error *err)
{
    return convert(call, weir_dtype_of(onnx_int(call, "to", 0)), err);
}

static weir_status run_cast_like(struct onnx_call *call, struct weir_error *err)
{
    return convert(call, onnx_in(call, 1)->dtype, err);
}

const struct onnx_op onnx_ops_cast[] = {
    {"Cast", 6, 1, 1, run_cast, NULL},
    {"CastLike", 15, 2, 1, run_cast_like, NULL},
};
const size_t onnx_n_ops_cast = WEIR_ARRAY_LEN(onnx_ops_cast);
