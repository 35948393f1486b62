/* Functions of two and more elements, of tensors that are broadcast to each other. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

/** A function in each arithmetic it knows; NULL: it does not know it. u64 is that of i64 if NULL. */
struct binary {
    double (*f64)(double a, double b);
    int64_t (*i64)(int64_t a, int64_t b);
    int64_t (*u64)(int64_t a, int64_t b); /* On the bits of uint64_t. */
    void (*fast)(const float *a, size_t a_step, const float *b, size_t b_step, float *y, size_t n);
    bool is_test; /* The result is bool. */
};

/* ---- the functions ---------------------------------------------------------------------------- */

#define F64(name, expression)                                                                      \
    static double name##_f64(double a, double b)                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
#define I64(name, expression)                                                                      \
    static int64_t name##_i64(int64_t a, int64_t b)                                                \
    {                                                                                              \
        return expression;                                                                         \
    }
/* a and b are uint64_t in the expression. */
#define U64(name, expression)                                                                      \
    static int64_t name##_u64(int64_t a_bits, int64_t b_bits)                                      \
    {                                                                                              \
        uint64_t a = (uint64_t)a_bits, b = (uint64_t)b_bits;                                       \
        return (int64_t)(expression);                                                              \
    }
#define FAST(name, expression)                                                                     \
    static void name##_fast(const float *a_at, size_t a_step, const float *b_at, size_t b_step,    \
                            float *y, size_t n)                                                    \
    {                                                                                              \
        if (a_step == 1 && b_step == 1) {                                                          \
            for (size_t i = 0; i < n; i++) {                                                       \
                const float a = a_at[i], b = b_at[i];                                              \
                y[i] = expression;                                                                 \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t i = 0; i < n; i++) {                                                       \
                const float a = a_at[i * a_step], b = b_at[i * b_step];                            \
                y[i] = expression;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* By zero: what numpy and most processors give. */
static int64_t divide(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

/* The remainder with the divisor's sign, as Python has it. */
static int64_t remainder_of(int64_t a, int64_t b)
{
    int64_t rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double real_remainder(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static uint64_t power(uint64_t a, uint64_t b)
{
    uint64_t result = 1;
    for (; b > 0; b >>= 1, a *= a) {
        result *= (b & 1) != 0 ? a : 1;
    }
    return result;
}

/* A negative exponent leaves 1 and -1 only. */
static int64_t signed_power(int64_t a, int64_t b)
{
    return b >= 0              ? (int64_t)power((uint64_t)a, (uint64_t)b)
           : a == 1 || a == -1 ? (int64_t)power((uint64_t)a, (uint64_t)b & 1)
                               : 0;
}

/* NaN wins, as in numpy. */
#define LARGER(a, b)  ((a) != (a) || (a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))

F64(add, a + b)
U64(add, a + b)
FAST(add, a + b)
F64(sub, a - b)
U64(sub, a - b)
FAST(sub, a - b)
F64(mul, a *b)
U64(mul, a *b)
FAST(mul, a *b)
F64(div, a / b)
I64(div, divide(a, b))
U64(div, b == 0 ? 0 : a / b)
FAST(div, a / b)
F64(max, LARGER(a, b))
I64(max, WEIR_MAX(a, b))
U64(max, WEIR_MAX(a, b))
FAST(max, LARGER(a, b))
F64(min, SMALLER(a, b))
I64(min, WEIR_MIN(a, b))
U64(min, WEIR_MIN(a, b))
FAST(min, SMALLER(a, b))
F64(pow, pow(a, b))
I64(pow, signed_power(a, b))
U64(pow, power(a, b))
F64(fmod, fmod(a, b))
I64(fmod, b == 0 || b == -1 ? 0 : a % b)
U64(fmod, b == 0 ? 0 : a % b)
F64(mod, real_remainder(a, b))
I64(mod, remainder_of(a, b))
F64(prelu, a < 0 ? a * b : a)
I64(prelu, a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a)

/* No unsigned number is below 0. */
static int64_t prelu_u64(int64_t a, int64_t b)
{
    (void)b;
    return a;
}

FAST(prelu, a < 0 ? a * b : a)
F64(equal, a == b)
I64(equal, a == b)
F64(less, a < b)
I64(less, a < b)
U64(less, a < b)
F64(less_equal, a <= b)
I64(less_equal, a <= b)
U64(less_equal, a <= b)
F64(greater, a > b)
I64(greater, a > b)
U64(greater, a > b)
F64(greater_equal, a >= b)
I64(greater_equal, a >= b)
U64(greater_equal, a >= b)
I64(and, (a != 0) & (b != 0))
I64(or, (a != 0) | (b != 0))
I64(xor, (a != 0) ^ (b != 0))
I64(bit_and, a &b)
I64(bit_or, a | b)
I64(bit_xor, a ^ b)
U64(shift_left, b < 64 ? a << b : 0)
U64(shift_right, b < 64 ? a >> b : 0)

/* ---- running ---------------------------------------------------------------------------------- */

/** One row of the result: where its operands begin, and their steps (0 or 1). */
struct row {
    const char *a, *b;
    size_t a_step, b_step; /* elements */
    char *y;
    size_t n;
};

struct pass {
    const struct binary *binary;
    enum weir_dtype dtype, result;
    size_t elem_bytes;
};

/* `step` apart, so that a block of them lies dense. */
static void gather(const char *from, size_t step, size_t elem_bytes, char *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(to + i * elem_bytes, from + i * step * elem_bytes, elem_bytes);
    }
}

static void run_block_f64(const struct pass *pass, const char *a, const char *b, char *y, size_t n)
{
    double left[BLOCK], right[BLOCK];
    weir_elems_to_f64(pass->dtype, a, left, n);
    weir_elems_to_f64(pass->dtype, b, right, n);
    for (size_t i = 0; i < n; i++) {
        left[i] = pass->binary->f64(left[i], right[i]);
    }
    weir_elems_from_f64(pass->result, left, y, n, WEIR_OVERFLOW_SATURATES);
}

static void run_block_i64(const struct pass *pass, const char *a, const char *b, char *y, size_t n)
{
    int64_t left[BLOCK], right[BLOCK];
    bool is_unsigned = weir_dtype_class(pass->dtype) == WEIR_DTYPE_IS_UNSIGNED;
    int64_t (*function)(int64_t, int64_t) =
        pass->binary->i64 == NULL || (is_unsigned && pass->binary->u64 != NULL) ? pass->binary->u64
                                                                                : pass->binary->i64;
    weir_elems_to_i64(pass->dtype, a, left, n);
    weir_elems_to_i64(pass->dtype, b, right, n);
    for (size_t i = 0; i < n; i++) {
        left[i] = function(left[i], right[i]);
    }
    weir_elems_from_i64(pass->result, left, is_unsigned, y, n);
}

static void run_row(const struct pass *pass, const struct row *row)
{
    char a[BLOCK * sizeof(double)], b[BLOCK * sizeof(double)];
    bool is_float = weir_dtype_class(pass->dtype) == WEIR_DTYPE_IS_FLOAT;
    if (pass->dtype == WEIR_DTYPE_FLOAT && pass->binary->fast != NULL) {
        pass->binary->fast((const void *)row->a, row->a_step, (const void *)row->b, row->b_step,
                           (void *)row->y, row->n);
        return;
    }
    for (size_t i = 0; i < row->n; i += BLOCK) {
        size_t n = WEIR_MIN((size_t)BLOCK, row->n - i);
        gather(row->a + i * row->a_step * pass->elem_bytes, row->a_step, pass->elem_bytes, a, n);
        gather(row->b + i * row->b_step * pass->elem_bytes, row->b_step, pass->elem_bytes, b, n);
        char *y = row->y + i * weir_dtype_bytes(pass->result);
        (is_float ? run_block_f64 : run_block_i64)(pass, a, b, y, n);
    }
}

static weir_status check_types(const struct binary *binary, const struct weir_tensor *a,
                               const struct weir_tensor *b, struct weir_error *err)
{
    enum weir_dtype_class class = weir_dtype_class(a->dtype);
    bool is_known = class == WEIR_DTYPE_IS_FLOAT ? binary->f64 != NULL
                                                 : class <= WEIR_DTYPE_IS_BOOL &&
                                                       (binary->i64 != NULL || binary->u64 != NULL);
    if (a->dtype != b->dtype) {
        return weir_error_set(err, WEIR_ERR_INVALID, "elements of %s and of %s",
                              weir_dtype_name(a->dtype), weir_dtype_name(b->dtype));
    }
    return is_known ? WEIR_OK : onnx_refuse_dtype(a->dtype, err);
}

static weir_status apply(struct onnx_call *call, const struct binary *binary,
                         struct weir_tensor *const in[2], struct weir_tensor **out,
                         struct weir_error *err)
{
    struct onnx_walk walk;
    struct pass pass = {binary, in[0]->dtype, binary->is_test ? WEIR_DTYPE_BOOL : in[0]->dtype,
                        weir_dtype_bytes(in[0]->dtype)};
    WEIR_TRY(check_types(binary, in[0], in[1], err));
    WEIR_TRY(onnx_broadcast(in, 2, &walk, err));
    WEIR_TRY(onnx_scratch(call, pass.result, walk.rank, walk.dims, out, err));
    bool is_flat = in[0]->n_elems == walk.n_elems && in[1]->n_elems == walk.n_elems;
    int32_t last = walk.rank - 1;
    size_t row_len = is_flat || walk.rank == 0 ? walk.n_elems : (size_t)walk.dims[last];
    for (size_t i = 0; i < walk.n_elems; i += row_len) {
        struct row row = {
            .a = (const char *)in[0]->data + onnx_walk_at(&walk, 0, i) * pass.elem_bytes,
            .b = (const char *)in[1]->data + onnx_walk_at(&walk, 1, i) * pass.elem_bytes,
            .a_step = is_flat || walk.rank == 0 ? 1 : (size_t)walk.strides[0][last],
            .b_step = is_flat || walk.rank == 0 ? 1 : (size_t)walk.strides[1][last],
            .y = (char *)(*out)->data + i * weir_dtype_bytes(pass.result),
            .n = row_len};
        run_row(&pass, &row);
    }
    return WEIR_OK;
}

/* The result becomes output 0. */
static void put_out(struct onnx_call *call, struct weir_tensor *tensor)
{
    call->budget->used_bytes += tensor->n_elems * weir_dtype_bytes(tensor->dtype);
    call->out[0] = tensor;
}

static weir_status run_with(struct onnx_call *call, const struct binary *binary,
                            struct weir_error *err)
{
    struct weir_tensor *y;
    WEIR_TRY(apply(call, binary, call->in, &y, err));
    put_out(call, y);
    return WEIR_OK;
}

static weir_status run(struct onnx_call *call, struct weir_error *err)
{
    return run_with(call, call->op->detail, err);
}

/* Before opset 7 the second tensor's dimensions may stand at an axis of the first; those of a PRelu
 * stand at its channels. */
static weir_status run_old(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *a = call->in[0];
    struct weir_tensor *b = call->in[1], *view, *y;
    bool is_slope = strcmp(call->op->type, "PRelu") == 0;
    int64_t axis = onnx_int(call, "axis", is_slope && b->n_elems > 1 ? 1 : a->rank - b->rank);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    axis = axis < 0 ? axis + a->rank : axis;
    if (axis < 0 || axis + b->rank > a->rank) {
        return run(call, err); /* nothing to be moved */
    }
    for (int32_t i = 0; i < a->rank; i++) {
        dims[i] = i < axis || i >= axis + b->rank ? 1 : b->dims[i - axis];
    }
    WEIR_TRY(weir_tensor_view(b, a->rank, dims, &view, err));
    struct weir_tensor *in[2] = {call->in[0], view};
    weir_status status = apply(call, call->op->detail, in, &y, err);
    weir_tensor_release(view);
    WEIR_TRY(status);
    put_out(call, y);
    return WEIR_OK;
}

static weir_status run_mod(struct onnx_call *call, struct weir_error *err)
{
    static const struct binary as_c = {.f64 = fmod_f64, .i64 = fmod_i64, .u64 = fmod_u64};
    static const struct binary as_python = {.f64 = mod_f64, .i64 = mod_i64, .u64 = fmod_u64};
    return run_with(call, onnx_int(call, "fmod", 0) != 0 ? &as_c : &as_python, err);
}

static weir_status run_shift(struct onnx_call *call, struct weir_error *err)
{
    static const struct binary left = {.u64 = shift_left_u64}, right = {.u64 = shift_right_u64};
    if (weir_dtype_class(call->in[0]->dtype) != WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(call->in[0]->dtype, err);
    }
    return run_with(call, onnx_text_is(call, "direction", "", "LEFT") ? &left : &right, err);
}

/* An integer to the power of a whole number that is not negative is exact, modulo its type's range. */
static struct onnx_number raise(struct onnx_number base, struct onnx_number exponent,
                                bool is_whole_base)
{
    bool is_odd = (exponent.whole & 1) != 0;
    onnx_whole n = exponent.real == floor(exponent.real) ? onnx_whole_of(exponent.real) : -1;
    n = exponent.whole != 0 ? exponent.whole : n;
    if (is_whole_base && n >= 0 && n <= INT64_MAX) {
        return (struct onnx_number){.whole = (onnx_whole)power((uint64_t)base.whole, (uint64_t)n)};
    }
    double size = onnx_number_f64(base), to = onnx_number_f64(exponent);
    double real = is_odd && size < 0 ? -pow(-size, to) : pow(size, to);
    return is_whole_base ? (struct onnx_number){.whole = isinf(real) ? 0 : onnx_whole_of(real)}
                         : (struct onnx_number){.real = real};
}

/* The exponent may have another type than the base. */
static weir_status run_pow(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *const *in = call->in, *y;
    struct onnx_walk walk;
    if (in[0]->dtype == in[1]->dtype) {
        return run(call, err);
    }
    for (size_t i = 0; i < 2; i++) {
        if (weir_dtype_class(in[i]->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
            return onnx_refuse_dtype(in[i]->dtype, err);
        }
    }
    WEIR_TRY(onnx_broadcast(in, 2, &walk, err));
    WEIR_TRY(onnx_out(call, 0, in[0]->dtype, walk.rank, walk.dims, &y, err));
    for (size_t i = 0; i < walk.n_elems; i++) {
        struct onnx_number base = onnx_number_at(in[0], onnx_walk_at(&walk, 0, i));
        struct onnx_number exponent = onnx_number_at(in[1], onnx_walk_at(&walk, 1, i));
        onnx_number_put(y, i, raise(base, exponent, onnx_is_whole(y->dtype)));
    }
    return WEIR_OK;
}

static bool strings_are_equal(const struct weir_tensor_string *a,
                              const struct weir_tensor_string *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

static weir_status run_equal(struct onnx_call *call, struct weir_error *err)
{
    struct onnx_walk walk;
    struct weir_tensor *y;
    if (call->in[0]->dtype != WEIR_DTYPE_STRING || call->in[1]->dtype != WEIR_DTYPE_STRING) {
        return run(call, err);
    }
    WEIR_TRY(onnx_broadcast(call->in, 2, &walk, err));
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_BOOL, walk.rank, walk.dims, &y, err));
    const struct weir_tensor_string *a = call->in[0]->data, *b = call->in[1]->data;
    for (size_t i = 0; i < walk.n_elems; i++) {
        ((uint8_t *)y->data)[i] =
            strings_are_equal(&a[onnx_walk_at(&walk, 0, i)], &b[onnx_walk_at(&walk, 1, i)]);
    }
    return WEIR_OK;
}

/* Max, Min, Sum, Mean: of any number of tensors, two at a time. */
static weir_status run_all(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *so_far = weir_tensor_retain(call->in[0]);
    for (size_t i = 1; i < call->n_in; i++) {
        struct weir_tensor *in[2] = {so_far, call->in[i]}, *y = NULL;
        weir_status status =
            in[1] != NULL ? apply(call, call->op->detail, in, &y, err)
                          : weir_error_set(err, WEIR_ERR_INVALID, "input %zu is left out", i);
        weir_tensor_release(so_far);
        WEIR_TRY(status);
        so_far = y;
    }
    if (call->n_in == 1) {
        weir_status status = onnx_alias(call, 0, so_far, so_far->rank, so_far->dims, err);
        weir_tensor_release(so_far);
        return status;
    }
    put_out(call, so_far);
    return WEIR_OK;
}

static weir_status run_mean(struct onnx_call *call, struct weir_error *err)
{
    if (weir_dtype_class(call->in[0]->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(call->in[0]->dtype, err);
    }
    WEIR_TRY(run_all(call, err));
    struct weir_tensor *y = call->out[0];
    for (size_t i = 0; call->n_in > 1 && i < y->n_elems; i++) {
        double value;
        void *at = (char *)y->data + i * weir_dtype_bytes(y->dtype);
        weir_elems_to_f64(y->dtype, at, &value, 1);
        value /= (double)call->n_in;
        weir_elems_from_f64(y->dtype, &value, at, 1, WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

static weir_status run_where(struct onnx_call *call, struct weir_error *err)
{
    struct onnx_walk walk;
    struct weir_tensor *y;
    const struct weir_tensor *condition = call->in[0];
    size_t elem_bytes = weir_dtype_bytes(call->in[1]->dtype);
    if (condition->dtype != WEIR_DTYPE_BOOL || call->in[1]->dtype != call->in[2]->dtype) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected BOOL and two of one type");
    }
    WEIR_TRY(onnx_broadcast(call->in, 3, &walk, err));
    WEIR_TRY(onnx_out(call, 0, call->in[1]->dtype, walk.rank, walk.dims, &y, err));
    for (size_t i = 0; i < walk.n_elems; i++) {
        size_t from = ((const uint8_t *)condition->data)[onnx_walk_at(&walk, 0, i)] != 0 ? 1 : 2;
        WEIR_TRY(weir_elems_copy(
            y->dtype, (char *)y->data + i * elem_bytes,
            (const char *)call->in[from]->data + onnx_walk_at(&walk, from, i) * elem_bytes, 1));
    }
    return WEIR_OK;
}

/* ---- the table -------------------------------------------------------------------------------- */

#define DETAIL(...) (&(const struct binary){__VA_ARGS__})
#define BINARY(type, since, ...)                                                                   \
    {                                                                                              \
        type, since, 2, 1, run, DETAIL(__VA_ARGS__)                                                \
    }

const struct onnx_op onnx_ops_binary[] = {
    {"Add", 1, 2, 1, run_old, DETAIL(.f64 = add_f64, .u64 = add_u64, .fast = add_fast)},
    {"Sub", 1, 2, 1, run_old, DETAIL(.f64 = sub_f64, .u64 = sub_u64, .fast = sub_fast)},
    {"Mul", 1, 2, 1, run_old, DETAIL(.f64 = mul_f64, .u64 = mul_u64, .fast = mul_fast)},
    {"Div", 1, 2, 1, run_old,
     DETAIL(.f64 = div_f64, .i64 = div_i64, .u64 = div_u64, .fast = div_fast)},
    {"PRelu", 1, 2, 1, run_old,
     DETAIL(.f64 = prelu_f64, .i64 = prelu_i64, .u64 = prelu_u64, .fast = prelu_fast)},
    {"Less", 1, 2, 1, run_old,
     DETAIL(.f64 = less_f64, .i64 = less_i64, .u64 = less_u64, .is_test = true)},
    {"Greater", 1, 2, 1, run_old,
     DETAIL(.f64 = greater_f64, .i64 = greater_i64, .u64 = greater_u64, .is_test = true)},
    {"And", 1, 2, 1, run_old, DETAIL(.i64 = and_i64, .is_test = true)},
    {"Or", 1, 2, 1, run_old, DETAIL(.i64 = or_i64, .is_test = true)},
    {"Xor", 1, 2, 1, run_old, DETAIL(.i64 = xor_i64, .is_test = true)},
    {"Equal", 1, 2, 1, run_old, DETAIL(.f64 = equal_f64, .i64 = equal_i64, .is_test = true)},
    {"Pow", 1, 2, 1, run_old, DETAIL(.f64 = pow_f64, .i64 = pow_i64, .u64 = pow_u64)},
    BINARY("Add", 7, .f64 = add_f64, .u64 = add_u64, .fast = add_fast),
    BINARY("Sub", 7, .f64 = sub_f64, .u64 = sub_u64, .fast = sub_fast),
    BINARY("Mul", 7, .f64 = mul_f64, .u64 = mul_u64, .fast = mul_fast),
    BINARY("Div", 7, .f64 = div_f64, .i64 = div_i64, .u64 = div_u64, .fast = div_fast),
    BINARY("PRelu", 7, .f64 = prelu_f64, .i64 = prelu_i64, .u64 = prelu_u64, .fast = prelu_fast),
    BINARY("Less", 7, .f64 = less_f64, .i64 = less_i64, .u64 = less_u64, .is_test = true),
    BINARY("LessOrEqual", 12, .f64 = less_equal_f64, .i64 = less_equal_i64, .u64 = less_equal_u64,
           .is_test = true),
    BINARY("Greater", 7, .f64 = greater_f64, .i64 = greater_i64, .u64 = greater_u64,
           .is_test = true),
    BINARY("GreaterOrEqual", 12, .f64 = greater_equal_f64, .i64 = greater_equal_i64,
           .u64 = greater_equal_u64, .is_test = true),
    BINARY("And", 7, .i64 = and_i64, .is_test = true),
    BINARY("Or", 7, .i64 = or_i64, .is_test = true),
    BINARY("Xor", 7, .i64 = xor_i64, .is_test = true),
    BINARY("BitwiseAnd", 18, .i64 = bit_and_i64),
    BINARY("BitwiseOr", 18, .i64 = bit_or_i64),
    BINARY("BitwiseXor", 18, .i64 = bit_xor_i64),
    {"Equal", 7, 2, 1, run_equal, DETAIL(.f64 = equal_f64, .i64 = equal_i64, .is_test = true)},
    {"Pow", 7, 2, 1, run_pow, DETAIL(.f64 = pow_f64, .i64 = pow_i64, .u64 = pow_u64)},
    {"Mod", 10, 2, 1, run_mod, NULL},
    {"BitShift", 11, 2, 1, run_shift, NULL},
    {"Max", 6, 1, 1, run_all,
     DETAIL(.f64 = max_f64, .i64 = max_i64, .u64 = max_u64, .fast = max_fast)},
    {"Min", 6, 1, 1, run_all,
     DETAIL(.f64 = min_f64, .i64 = min_i64, .u64 = min_u64, .fast = min_fast)},
    {"Sum", 6, 1, 1, run_all, DETAIL(.f64 = add_f64, .u64 = add_u64, .fast = add_fast)},
    {"Mean", 6, 1, 1, run_mean, DETAIL(.f64 = add_f64, .u64 = add_u64, .fast = add_fast)},
    {"Where", 9, 3, 1, run_where, NULL},
};
const size_t onnx_n_ops_binary = WEIR_ARRAY_LEN(onnx_ops_binary);
