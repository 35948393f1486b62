/* Rules of operators that work on each element by itself. */
#include "rows.h"

#include <string.h>

/* ---- amounts ------------------------------------------------------------------------------------ */

static bool is_type(const struct rows_call *call, const char *type)
{
    return strcmp(call->call.node->type, type) == 0;
}

static struct rows_amount divide(struct rows_call *call, const struct rows_amount *a,
                                 const struct rows_amount *b)
{
    struct rows_amount out;
    if (rows_divide(a, b, &out)) {
        return out;
    }
    bool is_free = a->is_known && b->is_known && a->coef >= 0 && b->coef > 0 && !rows_is_of_n(a) &&
                   !rows_is_of_n(b);
    return is_free ? rows_fresh(call) : rows_unknown(rows_is_of_n(a) || rows_is_of_n(b));
}

static bool is_over(const struct rows_amount *size, const struct rows_amount *number)
{
    return size->is_known && size->coef > 0 && rows_is_number(number) && number->coef < 0;
}

/* A size is not negative, and the same as itself; else nothing is known of it. */
static struct rows_amount equal(const struct rows_amount *a, const struct rows_amount *b)
{
    bool are_numbers = rows_is_number(a) && rows_is_number(b);
    if (are_numbers || rows_equal(a, b) || is_over(a, b) || is_over(b, a)) {
        return rows_number(rows_equal(a, b));
    }
    return rows_unknown(rows_is_of_n(a) || rows_is_of_n(b));
}

static struct rows_amount choose(const struct rows_amount *condition, const struct rows_amount *a,
                                 const struct rows_amount *b)
{
    if (rows_is_number(condition)) {
        return condition->coef != 0 ? *a : *b;
    }
    return rows_equal(a, b)
               ? *a
               : rows_unknown(rows_is_of_n(condition) || rows_is_of_n(a) || rows_is_of_n(b));
}

static struct rows_amount compute(struct rows_call *call, const struct rows_amount *const *of)
{
    if (is_type(call, "Add") || is_type(call, "Sub")) {
        return rows_plus(of[0], of[1], is_type(call, "Add") ? 1 : -1);
    }
    if (is_type(call, "Mul")) {
        return rows_times(of[0], of[1]);
    }
    if (is_type(call, "Div")) {
        return divide(call, of[0], of[1]);
    }
    if (is_type(call, "Equal")) {
        return equal(of[0], of[1]);
    }
    if (is_type(call, "Where")) {
        return choose(of[0], of[1], of[2]);
    }
    bool is_of_n = false;
    for (size_t i = 0; i < call->n_in; i++) {
        is_of_n = is_of_n || (of[i] != NULL && rows_is_of_n(of[i]));
    }
    return rows_unknown(is_of_n);
}

static enum rows_verdict count_nothing(const struct rows_call *call)
{
    for (size_t i = 0; i < call->n_in; i++) {
        ROWS_NEED(!rows_counts(call->in[i]));
    }
    return ROWS_APART;
}

/* Element by element, where all inputs are followed. */
static enum rows_verdict follow(struct rows_call *call, const struct rows_state *shape)
{
    size_t n = 1;
    for (size_t i = 0; i < call->n_in; i++) {
        const struct rows_state *in = call->in[i];
        bool fits = in != NULL && in->values != NULL && in->rank <= 1;
        size_t n_in = fits ? in->n_values : 0;
        if (!fits || (n_in != 1 && n != 1 && n_in != n)) {
            n = 0;
            break;
        }
        n = n_in != 1 ? n_in : n;
    }
    if (n == 0) {
        return count_nothing(call);
    }
    struct rows_amount *values = rows_values(call, 0, shape->rank, n);
    for (size_t k = 0; k < n; k++) {
        const struct rows_amount *of[3] = {NULL};
        for (size_t i = 0; i < call->n_in && i < WEIR_ARRAY_LEN(of); i++) {
            of[i] = &call->in[i]->values[call->in[i]->n_values == 1 ? 0 : k];
        }
        values[k] = call->n_in <= WEIR_ARRAY_LEN(of) ? compute(call, of) : rows_unknown(true);
    }
    return ROWS_APART;
}

/* ---- rules -------------------------------------------------------------------------------------- */

static enum rows_verdict run_each(struct rows_call *call)
{
    struct rows_state shape;
    bool is_flat = rows_flat_from(call, 0);
    for (size_t i = 0; is_flat && i < call->n_in; i++) {
        if (call->in[i] != NULL && call->in[i]->rank < 0) { /* so nobody follows it */
            return count_nothing(call);
        }
    }
    ROWS_TRY(rows_broadcast(call, 0, call->n_in, 0, &shape));
    rows_outs_like(call, &shape);
    if (is_flat) {
        return follow(call, &shape);
    }
    return count_nothing(call);
}

/* The same elements, of another type perhaps. Only whole numbers are followed. */
static enum rows_verdict run_same(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_outs_like(call, x);
    if (x->values == NULL) {
        return ROWS_APART;
    }
    int64_t to = onnx_int(&call->call, "to", WEIR_DTYPE_INT64);
    bool is_whole = to == WEIR_DTYPE_INT64 || to == WEIR_DTYPE_INT32;
    ROWS_NEED(is_whole || !rows_counts(x));
    if (is_whole) {
        call->out[0].values = x->values;
        call->out[0].n_values = x->n_values;
    }
    return ROWS_APART;
}

/* Of the first input's elements; the others are for all alike. */
static enum rows_verdict run_first(struct rows_call *call)
{
    rows_outs_like(call, rows_in(call, 0));
    ROWS_NEED(rows_flat_from(call, 1));
    return ROWS_APART;
}

static enum rows_verdict run_cast_like(struct rows_call *call)
{
    rows_outs_like(call, rows_in(call, 0));
    return ROWS_APART;
}

static enum rows_verdict run_dropout(struct rows_call *call)
{
    size_t n;
    int64_t mode;
    const struct rows_state *trains = rows_in(call, 2);
    ROWS_NEED(trains == NULL || (rows_numbers(trains, 1, &mode, &n) && n == 1 && mode == 0));
    return run_first(call);
}

/* Scales are one, or one for each place of an axis. */
static enum rows_verdict run_scaled(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_out_like(call, 0, x);
    ROWS_NEED(rows_flat_from(call, 1));
    for (size_t i = 1; rows_has(x) && i < call->n_in; i++) {
        const struct rows_state *scale = call->in[i];
        bool is_one =
            scale == NULL || scale->rank == 0 || (scale->rank == 1 && rows_is(&scale->dims[0], 1));
        ROWS_KNOW(scale == NULL || scale->rank >= 0);
        if (!is_one) {
            int32_t axis = rows_axis(onnx_int(&call->call, "axis", 1), x->rank);
            ROWS_NEED(scale->rank == 1 && axis >= 0 && axis != x->axis);
        }
    }
    return ROWS_APART;
}

static enum rows_verdict run_mixing(struct rows_call *call)
{
    (void)call;
    return ROWS_MIX;
}

/* By the last two dimensions. */
static enum rows_verdict run_planes(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    rows_out_like(call, 0, x);
    ROWS_NEED(rows_flat_from(call, 1) && (!rows_has(x) || x->axis < x->rank - 2));
    return ROWS_APART;
}

const struct rows_rule rows_each[] = {
    {"Add Sub Mul Div Equal", run_each, UINT32_MAX, 2},
    {"Where", run_each, UINT32_MAX, 3},
    {"Pow Mod BitShift And Or Xor Less Greater LessOrEqual GreaterOrEqual Max Min Sum Mean "
     "PRelu BitwiseAnd BitwiseOr BitwiseXor",
     run_each, UINT32_MAX, 1},
    {"Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Clip Cos Cosh Elu Erf Exp "
     "Floor Gelu HardSigmoid HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal "
     "Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
     "ThresholdedRelu",
     run_first, 0, 1},
    {"Identity Cast", run_same, 1, 1},
    {"CastLike", run_cast_like, 0, 1},
    {"Dropout", run_dropout, 0, 1},
    {"QuantizeLinear DequantizeLinear", run_scaled, 0, 2},
    {"Trilu", run_planes, 0, 1},
    {"DynamicQuantizeLinear NonZero Unique Compress NonMaxSuppression RoiAlign MaxRoiPool "
     "MaxUnpool EyeLike TfIdfVectorizer",
     run_mixing, 0, 0},
};
const size_t rows_n_each = WEIR_ARRAY_LEN(rows_each);
