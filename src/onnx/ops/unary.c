/* Functions of one element. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

/** Attributes that a function reads, at most two numbers. */
struct numbers {
    double a, b;
};

struct unary {
    double (*function)(double x, struct numbers p);
    void (*fast)(const float *x, float *y, size_t n, struct numbers p); /* NULL: by `function`. */
    onnx_whole (*whole)(onnx_whole x, struct numbers p); /* Of integers; NULL: floats only. */
    const char *a_name, *b_name;                         /* Attributes, or NULL. */
    double a, b;                                         /* If they are left out. */
};

enum { BLOCK = 256 };

/* ---- the functions ---------------------------------------------------------------------------- */

#define FUNCTION(name, expression)                                                                 \
    static double name(double x, struct numbers p)                                                 \
    {                                                                                              \
        (void)p;                                                                                   \
        return expression;                                                                         \
    }

/* Both in double and as a loop over f32. */
#define FAST_FUNCTION(name, expression, expression_f32)                                            \
    FUNCTION(name, expression)                                                                     \
    static void name##_f32(const float *from, float *to, size_t n, struct numbers p)               \
    {                                                                                              \
        const float a = (float)p.a, b = (float)p.b;                                                \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float x = from[i];                                                               \
            to[i] = expression_f32;                                                                \
        }                                                                                          \
    }

/* Of an integer; `p` is there in its expression. */
#define WHOLE_FUNCTION(name, expression)                                                           \
    static onnx_whole name##_whole(onnx_whole x, struct numbers p)                                 \
    {                                                                                              \
        (void)p;                                                                                   \
        return expression;                                                                         \
    }

#define SQRT_HALF 0.70710678118654752440
#define GELU_TANH 0.79788456080286535588 /* sqrt(2 / pi) */

/* Into a range; NaN stays NaN. */
#define CUT(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

static double logistic(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus_of(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

FAST_FUNCTION(op_abs, fabs(x), fabsf(x))
FAST_FUNCTION(op_neg, -x, -x)
FAST_FUNCTION(op_relu, x < 0 ? 0 : x, x < 0 ? 0 : x)
FAST_FUNCTION(leaky_relu, x < 0 ? p.a * x : x, x < 0 ? a * x : x)
FAST_FUNCTION(hard_sigmoid, CUT(p.a *x + p.b, 0, 1), CUT(a *x + b, 0, 1))
FAST_FUNCTION(hard_swish, x *CUT(x / 6 + 0.5, 0, 1), x *CUT(x / 6 + 0.5F, 0, 1))
FAST_FUNCTION(op_sqrt, sqrt(x), sqrtf(x))
FAST_FUNCTION(op_exp, exp(x), expf(x))
FAST_FUNCTION(op_tanh, tanh(x), tanhf(x))
FAST_FUNCTION(sigmoid, logistic(x), 1 / (1 + expf(-x)))
FAST_FUNCTION(swish, x *logistic(p.a *x), x / (1 + expf(-a * x)))
FUNCTION(op_log, log(x))
FUNCTION(reciprocal, 1 / x)
FUNCTION(op_floor, floor(x))
FUNCTION(op_ceil, ceil(x))
FUNCTION(op_round, nearbyint(x))
FUNCTION(op_sin, sin(x))
FUNCTION(op_cos, cos(x))
FUNCTION(op_tan, tan(x))
FUNCTION(op_asin, asin(x))
FUNCTION(op_acos, acos(x))
FUNCTION(op_atan, atan(x))
FUNCTION(op_sinh, sinh(x))
FUNCTION(op_cosh, cosh(x))
FUNCTION(op_asinh, asinh(x))
FUNCTION(op_acosh, acosh(x))
FUNCTION(op_atanh, atanh(x))
FUNCTION(op_erf, erf(x))
FUNCTION(sign, x > 0 ? 1 : x < 0 ? -1 : x)
FUNCTION(elu, x < 0 ? p.a * expm1(x) : x)
FUNCTION(selu, x > 0 ? p.b * x : p.b * p.a * expm1(x))
FUNCTION(celu, isnan(x) ? x : fmax(0, x) + fmin(0, p.a *expm1(x / p.a)))
FUNCTION(softplus, softplus_of(x))
FUNCTION(softsign, x / (1 + fabs(x)))
FUNCTION(thresholded_relu, x > p.a ? x : 0)
FUNCTION(mish, x *tanh(softplus_of(x)))
FUNCTION(shrink, x<-p.b ? x + p.a : x> p.b ? x - p.a : 0)
FUNCTION(gelu_erf, 0.5 * x * (1 + erf(x * SQRT_HALF)))
FUNCTION(gelu_tanh, 0.5 * x * (1 + tanh(GELU_TANH * (x + 0.044715 * x * x * x))))

WHOLE_FUNCTION(op_abs, x < 0 ? -x : x)
WHOLE_FUNCTION(op_neg, -x)
WHOLE_FUNCTION(op_relu, x < 0 ? 0 : x)
WHOLE_FUNCTION(sign, (x > 0) - (x < 0))
WHOLE_FUNCTION(op_erf, (onnx_whole)erf((double)x))
/* long double holds each integer of 64 bits. */
WHOLE_FUNCTION(shrink, (onnx_whole)((long double)x<-p.b ? (long double)x + p.a : (long double)x> p.b
                                        ? (long double)x - p.a
                                        : 0))

/* ---- running ---------------------------------------------------------------------------------- */

static float read_number(const struct onnx_call *call, const char *name, double otherwise)
{
    const struct onnx_attribute *found = name != NULL ? onnx_attribute(call, name) : NULL;
    return found != NULL ? found->f : (float)otherwise; /* an attribute has that type */
}

static weir_status apply(struct onnx_call *call, const struct unary *unary, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const struct numbers p = {read_number(call, unary->a_name, unary->a),
                              read_number(call, unary->b_name, unary->b)};
    struct weir_tensor *y;
    double values[BLOCK];
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    bool is_whole = onnx_is_whole(x->dtype) && x->dtype != WEIR_DTYPE_BOOL;
    if (is_whole ? unary->whole == NULL : weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    for (size_t i = 0; is_whole && i < x->n_elems; i++) {
        onnx_whole_put(y, i, unary->whole(onnx_whole_at(x, i), p));
    }
    if (x->dtype == WEIR_DTYPE_FLOAT && unary->fast != NULL) {
        unary->fast(x->data, y->data, x->n_elems, p);
    }
    if (is_whole || (x->dtype == WEIR_DTYPE_FLOAT && unary->fast != NULL)) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < x->n_elems; i += BLOCK) {
        size_t n = WEIR_MIN((size_t)BLOCK, x->n_elems - i);
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * elem_bytes, values, n);
        for (size_t k = 0; k < n; k++) {
            values[k] = unary->function(values[k], p);
        }
        weir_elems_from_f64(x->dtype, values, (char *)y->data + i * elem_bytes, n,
                            WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

static weir_status run(struct onnx_call *call, struct weir_error *err)
{
    return apply(call, call->op->detail, err);
}

static weir_status run_gelu(struct onnx_call *call, struct weir_error *err)
{
    static const struct unary by_erf = {.function = gelu_erf};
    static const struct unary by_tanh = {.function = gelu_tanh};
    return apply(call, onnx_text_is(call, "approximate", "none", "tanh") ? &by_tanh : &by_erf, err);
}

/* ---- clip ------------------------------------------------------------------------------------- */

/* A bound is an input since opset 11, and an attribute before. *out_has: is it there? */
static weir_status read_bound(const struct onnx_call *call, size_t input, const char *name,
                              struct onnx_number *out, bool *out_has, struct weir_error *err)
{
    const struct weir_tensor *bound = onnx_in(call, input);
    const struct onnx_attribute *attribute = onnx_attribute(call, name);
    *out_has = bound != NULL || attribute != NULL;
    if (bound != NULL && (bound->dtype != call->in[0]->dtype || bound->n_elems != 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "input %zu is no single number of %s", input,
                              weir_dtype_name(call->in[0]->dtype));
    }
    if (bound != NULL) {
        *out = onnx_number_at(bound, 0);
    } else if (attribute != NULL) {
        *out = (struct onnx_number){attribute->f, onnx_whole_of(attribute->f)};
    }
    return WEIR_OK;
}

/* Below the least it is the least; then above the largest it is the largest. NaN stays NaN, and a
 * bound that is NaN bounds nothing. */
static weir_status run_clip(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct onnx_number low = {0}, high = {0};
    struct weir_tensor *y;
    bool has_low, has_high;
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(read_bound(call, 1, "min", &low, &has_low, err));
    WEIR_TRY(read_bound(call, 2, "max", &high, &has_high, err));
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    if (x->dtype == WEIR_DTYPE_FLOAT) {
        const float *from = x->data, low_f32 = has_low ? (float)low.real : -INFINITY;
        const float high_f32 = has_high ? (float)high.real : INFINITY;
        float *to = y->data;
        for (size_t i = 0; i < x->n_elems; i++) {
            float at_least = from[i] < low_f32 ? low_f32 : from[i];
            to[i] = at_least > high_f32 ? high_f32 : at_least;
        }
        return WEIR_OK;
    }
    has_low = has_low && !onnx_number_is_nan(low);
    has_high = has_high && !onnx_number_is_nan(high);
    for (size_t i = 0; i < x->n_elems; i++) {
        struct onnx_number value = onnx_number_at(x, i);
        if (!onnx_number_is_nan(value)) {
            value = has_low ? onnx_number_larger(value, low) : value;
            value = has_high ? onnx_number_smaller(value, high) : value;
        }
        onnx_number_put(y, i, value);
    }
    return WEIR_OK;
}

/* ---- functions to and of bool ----------------------------------------------------------------- */

static weir_status run_test(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool finds_nan = strcmp(call->op->type, "IsNaN") == 0;
    bool positive = onnx_int(call, "detect_positive", 1) != 0;
    bool negative = onnx_int(call, "detect_negative", 1) != 0;
    struct weir_tensor *y;
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_BOOL, x->rank, x->dims, &y, err));
    for (size_t i = 0; i < x->n_elems; i++) {
        double value;
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * weir_dtype_bytes(x->dtype), &value,
                          1);
        ((uint8_t *)y->data)[i] =
            finds_nan ? isnan(value) : isinf(value) && (value > 0 ? positive : negative);
    }
    return WEIR_OK;
}

static weir_status run_not(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_bool = strcmp(call->op->type, "Not") == 0;
    struct weir_tensor *y;
    if (is_bool ? x->dtype != WEIR_DTYPE_BOOL
                : weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_SIGNED &&
                      weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    const uint8_t *from = x->data;
    uint8_t *to = y->data;
    size_t n_bits = weir_dtype_bits(x->dtype);
    uint8_t mask = (uint8_t)(is_bool ? 1 : n_bits < 8 ? (1U << n_bits) - 1 : 0xff);
    for (size_t i = 0; i < x->n_elems * weir_dtype_bytes(x->dtype); i++) {
        to[i] = from[i] ^ mask;
    }
    return WEIR_OK;
}

/* ---- the table -------------------------------------------------------------------------------- */

#define DETAIL(...) (&(const struct unary){__VA_ARGS__})
#define UNARY(type, since, ...)                                                                    \
    {                                                                                              \
        type, since, 1, 1, run, DETAIL(__VA_ARGS__)                                                \
    }

const struct onnx_op onnx_ops_unary[] = {
    UNARY("Abs", 6, .function = op_abs, .fast = op_abs_f32, .whole = op_abs_whole),
    UNARY("Neg", 6, .function = op_neg, .fast = op_neg_f32, .whole = op_neg_whole),
    UNARY("Relu", 6, .function = op_relu, .fast = op_relu_f32, .whole = op_relu_whole),
    UNARY("LeakyRelu", 6, .function = leaky_relu, .fast = leaky_relu_f32, .a_name = "alpha",
          .a = 0.01),
    UNARY("HardSigmoid", 6, .function = hard_sigmoid, .fast = hard_sigmoid_f32, .a_name = "alpha",
          .b_name = "beta", .a = 0.2, .b = 0.5),
    UNARY("HardSwish", 14, .function = hard_swish, .fast = hard_swish_f32),
    UNARY("Sqrt", 6, .function = op_sqrt, .fast = op_sqrt_f32),
    UNARY("Exp", 6, .function = op_exp, .fast = op_exp_f32),
    UNARY("Tanh", 6, .function = op_tanh, .fast = op_tanh_f32),
    UNARY("Sigmoid", 6, .function = sigmoid, .fast = sigmoid_f32),
    UNARY("Swish", 24, .function = swish, .fast = swish_f32, .a_name = "alpha", .a = 1),
    UNARY("Log", 6, .function = op_log),
    UNARY("Reciprocal", 6, .function = reciprocal),
    UNARY("Floor", 6, .function = op_floor),
    UNARY("Ceil", 6, .function = op_ceil),
    UNARY("Round", 11, .function = op_round),
    UNARY("Sin", 7, .function = op_sin),
    UNARY("Cos", 7, .function = op_cos),
    UNARY("Tan", 7, .function = op_tan),
    UNARY("Asin", 7, .function = op_asin),
    UNARY("Acos", 7, .function = op_acos),
    UNARY("Atan", 7, .function = op_atan),
    UNARY("Sinh", 9, .function = op_sinh),
    UNARY("Cosh", 9, .function = op_cosh),
    UNARY("Asinh", 9, .function = op_asinh),
    UNARY("Acosh", 9, .function = op_acosh),
    UNARY("Atanh", 9, .function = op_atanh),
    UNARY("Erf", 9, .function = op_erf, .whole = op_erf_whole),
    UNARY("Sign", 9, .function = sign, .whole = sign_whole),
    UNARY("Elu", 6, .function = elu, .a_name = "alpha", .a = 1),
    UNARY("Selu", 6, .function = selu, .a_name = "alpha", .b_name = "gamma",
          .a = 1.67326319217681884765625, .b = 1.05070102214813232421875),
    UNARY("Celu", 12, .function = celu, .a_name = "alpha", .a = 1),
    UNARY("Softplus", 1, .function = softplus),
    UNARY("Softsign", 1, .function = softsign),
    UNARY("ThresholdedRelu", 10, .function = thresholded_relu, .a_name = "alpha", .a = 1),
    UNARY("Mish", 18, .function = mish),
    UNARY("Shrink", 9, .function = shrink, .whole = shrink_whole, .a_name = "bias",
          .b_name = "lambd", .b = 0.5),
    {"Gelu", 20, 1, 1, run_gelu, NULL},
    {"Clip", 6, 1, 1, run_clip, NULL},
    {"IsNaN", 9, 1, 1, run_test, NULL},
    {"IsInf", 10, 1, 1, run_test, NULL},
    {"Not", 1, 1, 1, run_not, NULL},
    {"BitwiseNot", 18, 1, 1, run_not, NULL},
};
const size_t onnx_n_ops_unary = WEIR_ARRAY_LEN(onnx_ops_unary);
