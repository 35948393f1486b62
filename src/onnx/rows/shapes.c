/* Rules of operators that make sizes, and that change a tensor's shape but not its elements. */
#include "rows.h"

#include <string.h>

static struct rows_amount product(const struct rows_amount *dims, int32_t first, int32_t end)
{
    struct rows_amount all = rows_number(1);
    for (int32_t i = first; i < end; i++) {
        all = rows_times(&all, &dims[i]);
    }
    return all;
}

/* ---- sizes -------------------------------------------------------------------------------------- */

static enum rows_verdict run_shape(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x->rank >= 0);
    int64_t start = onnx_int(&call->call, "start", 0), end = onnx_int(&call->call, "end", x->rank);
    start = WEIR_MIN(WEIR_MAX(start < 0 ? start + x->rank : start, 0), x->rank);
    end = WEIR_MIN(WEIR_MAX(end < 0 ? end + x->rank : end, 0), x->rank);
    size_t n = (size_t)WEIR_MAX(end - start, 0);
    struct rows_amount *values = rows_values(call, 0, 1, n);
    for (size_t i = 0; i < n; i++) {
        values[i] = x->dims[(size_t)start + i];
    }
    return ROWS_APART;
}

static enum rows_verdict run_size(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x->rank >= 0);
    struct rows_amount all = product(x->dims, 0, x->rank);
    rows_values(call, 0, 0, 1)[0] = all;
    return ROWS_APART;
}

/* The amounts of a shape; what is not known of one is another size. */
static enum rows_verdict read_shape(struct rows_call *call, size_t input, struct rows_state *out)
{
    size_t n;
    const struct rows_state *from = rows_in(call, input);
    const struct rows_amount *amounts = rows_amounts(from, &n);
    ROWS_KNOW(amounts != NULL && n <= WEIR_TENSOR_RANK_MAX);
    *out = (struct rows_state){.rank = (int32_t)n};
    for (size_t i = 0; i < n; i++) {
        ROWS_NEED(amounts[i].is_known || !amounts[i].is_of_n);
        out->dims[i] = amounts[i].is_known ? amounts[i] : rows_fresh(call);
    }
    return rows_settle(out);
}

/* The same element everywhere. Of ones or zeros for a shape, the numbers are followed. */
static enum rows_verdict run_filled(struct rows_call *call)
{
    struct rows_state shape;
    ROWS_TRY(read_shape(call, 0, &shape));
    rows_out_like(call, 0, &shape);
    const struct onnx_attribute *value = onnx_attribute(&call->call, "value");
    const struct weir_tensor *tensor = value != NULL ? value->tensor : NULL;
    bool is_small = shape.rank == 1 && rows_is_number(&shape.dims[0]) && shape.dims[0].coef >= 0 &&
                    shape.dims[0].coef <= ROWS_VALUES_MAX;
    if (is_small && tensor != NULL && tensor->dtype == WEIR_DTYPE_INT64 && tensor->n_elems == 1) {
        size_t n = (size_t)shape.dims[0].coef;
        struct rows_amount *values = rows_values(call, 0, 1, n);
        for (size_t i = 0; i < n; i++) {
            values[i] = rows_number(*(const int64_t *)tensor->data);
        }
    }
    return ROWS_APART;
}

static enum rows_verdict run_constant(struct rows_call *call)
{
    const struct onnx_attribute *value = onnx_attribute(&call->call, "value_ints");
    const struct onnx_attribute *one = onnx_attribute(&call->call, "value_int");
    if (value != NULL && value->n <= ROWS_VALUES_MAX) {
        struct rows_amount *values = rows_values(call, 0, 1, value->n);
        for (size_t i = 0; i < value->n; i++) {
            values[i] = rows_number(value->ints[i]);
        }
    } else if (one != NULL) {
        rows_values(call, 0, 0, 1)[0] = rows_number(one->i);
    } else if ((one = onnx_attribute(&call->call, "value_float")) != NULL) {
        call->out[0].rank = 0;
    }
    return ROWS_APART; /* a tensor is read by the proof itself */
}

static enum rows_verdict run_range(struct rows_call *call)
{
    for (size_t i = 0; i < call->n_in; i++) { /* places that are numbered are not alike */
        ROWS_NEED(rows_flat(call->in[i]) && !rows_counts(call->in[i]));
    }
    call->out[0].rank = 1;
    call->out[0].dims[0] = rows_fresh(call);
    return ROWS_APART;
}

/* ---- other dimensions --------------------------------------------------------------------------- */

/* The elements of x under dims. The rows stay together if as much lies before them as did. */
static enum rows_verdict view(struct rows_call *call, const struct rows_state *x,
                              const struct rows_amount *dims, int32_t rank)
{
    struct rows_state *out = &call->out[0];
    *out = (struct rows_state){.rank = rank};
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    ROWS_TRY(rows_settle(out));
    if (!rows_has(x)) {
        ROWS_NEED(out->kind == ROWS_FLAT);
    } else {
        struct rows_amount before = product(x->dims, 0, x->axis);
        struct rows_amount now = product(dims, 0, out->axis);
        ROWS_NEED(out->kind == ROWS_ROWS && rows_equal(&before, &now));
    }
    if (x->values != NULL && rank <= 1) {
        out->values = x->values;
        out->n_values = x->n_values;
    } else {
        ROWS_NEED(!rows_counts(x));
    }
    return ROWS_APART;
}

/* That which is left for a -1. */
static enum rows_verdict infer(struct rows_call *call, const struct rows_state *x,
                               struct rows_amount *dims, int32_t rank, int32_t free_dim)
{
    struct rows_amount all = product(x->dims, 0, x->rank), rest = rows_number(1), left;
    for (int32_t i = 0; i < rank; i++) {
        rest = i != free_dim ? rows_times(&rest, &dims[i]) : rest;
    }
    if (rows_divide(&all, &rest, &left)) {
        dims[free_dim] = left;
        return ROWS_APART;
    }
    ROWS_NEED(all.is_known && rest.is_known && all.n_power == rest.n_power);
    dims[free_dim] = rows_fresh(call);
    return ROWS_APART;
}

static enum rows_verdict run_reshape(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    size_t n;
    const struct rows_amount *target = rows_amounts(rows_in(call, 1), &n);
    bool is_zero_kept = onnx_int(&call->call, "allowzero", 0) != 0;
    struct rows_amount dims[WEIR_TENSOR_RANK_MAX];
    int32_t free_dim = -1;
    ROWS_KNOW(x->rank >= 0 && target != NULL && n <= WEIR_TENSOR_RANK_MAX);
    for (size_t i = 0; i < n; i++) {
        dims[i] = target[i];
        ROWS_NEED(dims[i].is_known || !dims[i].is_of_n);
        if (rows_is(&dims[i], 0) && !is_zero_kept) {
            ROWS_KNOW(i < (size_t)x->rank);
            dims[i] = x->dims[i];
        } else if (rows_is(&dims[i], -1)) {
            ROWS_KNOW(free_dim < 0);
            free_dim = (int32_t)i;
        } else if (!dims[i].is_known) {
            dims[i] = rows_fresh(call);
        }
    }
    if (free_dim >= 0) {
        ROWS_TRY(infer(call, x, dims, (int32_t)n, free_dim));
    }
    return view(call, x, dims, (int32_t)n);
}

static enum rows_verdict run_flatten(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x->rank >= 0);
    int64_t axis = onnx_int(&call->call, "axis", 1);
    axis = axis < 0 ? axis + x->rank : axis;
    ROWS_KNOW(axis >= 0 && axis <= x->rank);
    struct rows_amount dims[2] = {product(x->dims, 0, (int32_t)axis),
                                  product(x->dims, (int32_t)axis, x->rank)};
    return view(call, x, dims, 2);
}

/* Without axes it takes away what has one place, which the batch has at times. */
static enum rows_verdict run_squeeze(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    struct rows_amount dims[WEIR_TENSOR_RANK_MAX];
    int32_t rank = 0;
    ROWS_KNOW(x->rank >= 0);
    ROWS_TRY(rows_axes(call, 1, x->rank, axes, &has_axes));
    for (int32_t i = 0; i < x->rank; i++) {
        ROWS_NEED(has_axes || rows_is_number(&x->dims[i]));
        ROWS_NEED(!axes[i] || !rows_is_of_n(&x->dims[i]));
        if (has_axes ? !axes[i] : !rows_is(&x->dims[i], 1)) {
            dims[rank++] = x->dims[i];
        }
    }
    return view(call, x, dims, rank);
}

static enum rows_verdict run_unsqueeze(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    struct rows_amount dims[WEIR_TENSOR_RANK_MAX];
    int64_t given[WEIR_TENSOR_RANK_MAX];
    size_t n;
    ROWS_KNOW(x->rank >= 0);
    if (onnx_ints(&call->call, "axes", &n) == NULL) {
        ROWS_KNOW(rows_numbers(rows_in(call, 1), WEIR_TENSOR_RANK_MAX, given, &n));
    }
    int32_t rank = x->rank + (int32_t)n, from = 0;
    ROWS_KNOW(rank <= WEIR_TENSOR_RANK_MAX);
    ROWS_TRY(rows_axes(call, 1, rank, axes, &has_axes));
    for (int32_t i = 0; i < rank; i++) {
        ROWS_KNOW(axes[i] || from < x->rank);
        dims[i] = axes[i] ? rows_number(1) : x->dims[from++];
    }
    return view(call, x, dims, rank);
}

static enum rows_verdict run_transpose(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    size_t n;
    const int64_t *perm = onnx_ints(&call->call, "perm", &n);
    struct rows_state *out = &call->out[0];
    ROWS_KNOW(x->rank >= 0 && (perm == NULL || n == (size_t)x->rank));
    rows_out_like(call, 0, x);
    for (int32_t i = 0; i < x->rank; i++) {
        int64_t from = perm != NULL ? perm[i] : x->rank - 1 - i;
        ROWS_KNOW(from >= 0 && from < x->rank);
        out->dims[i] = x->dims[from];
        out->axis = rows_has(x) && from == x->axis ? i : out->axis;
    }
    return rows_has(x) ? ROWS_APART : rows_settle(out);
}

/* ---- repeated ----------------------------------------------------------------------------------- */

static enum rows_verdict run_expand(struct rows_call *call)
{
    struct rows_state shape, out;
    ROWS_TRY(read_shape(call, 1, &shape));
    ROWS_TRY(rows_broadcast_pair(call, rows_in(call, 0), &shape, &out));
    rows_out_like(call, 0, &out);
    return ROWS_APART;
}

static enum rows_verdict run_tile(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    size_t n;
    const struct rows_amount *repeats = rows_amounts(rows_in(call, 1), &n);
    struct rows_state *out = &call->out[0];
    ROWS_KNOW(x->rank >= 0 && repeats != NULL && n == (size_t)x->rank);
    rows_out_like(call, 0, x);
    for (int32_t i = 0; i < x->rank; i++) {
        bool is_apart = rows_is(&repeats[i], 1) || rows_is(&x->dims[i], 1) ||
                        (!rows_is_of_n(&x->dims[i]) && !rows_is_of_n(&repeats[i]));
        ROWS_NEED(is_apart);
        out->dims[i] = rows_times(&x->dims[i], &repeats[i]);
        out->dims[i] =
            out->dims[i].is_known || out->dims[i].is_of_n ? out->dims[i] : rows_fresh(call);
    }
    return rows_settle(out);
}

const struct rows_rule rows_shapes[] = {
    {"Shape", run_shape, 1, 1},
    {"Size", run_size, 1, 1},
    {"ConstantOfShape", run_filled, 1, 1},
    {"Constant", run_constant, 0, 0},
    {"Range", run_range, 7, 3},
    {"Reshape", run_reshape, 3, 2},
    {"Flatten", run_flatten, 0, 1},
    {"Squeeze", run_squeeze, 1, 1},
    {"Unsqueeze", run_unsqueeze, 1, 1},
    {"Transpose", run_transpose, 0, 1},
    {"Expand", run_expand, 2, 2},
    {"Tile", run_tile, 2, 2},
};
const size_t rows_n_shapes = WEIR_ARRAY_LEN(rows_shapes);
