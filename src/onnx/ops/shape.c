/* Shapes, constants and ranges. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

/* ---- the same elements ------------------------------------------------------------------------ */

static weir_status run_identity(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    return onnx_alias(call, 0, x, x->rank, x->dims, err);
}

static weir_status run_reshape(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t rank, n_known = 1;
    int32_t free_dim = -1;
    bool is_zero_kept = onnx_int(call, "allowzero", 0) != 0;
    WEIR_TRY(onnx_in_ints(call, 1, WEIR_TENSOR_RANK_MAX, dims, &rank, err));
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] == 0 && !is_zero_kept && i < (size_t)x->rank) {
            dims[i] = x->dims[i];
        }
        if (dims[i] == -1 && free_dim < 0) {
            free_dim = (int32_t)i;
        } else if (dims[i] < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "dimension %lld", (long long)dims[i]);
        } else {
            n_known *= (size_t)dims[i];
        }
    }
    if (free_dim >= 0) {
        dims[free_dim] = n_known > 0 ? (int64_t)(x->n_elems / n_known) : 0;
    }
    return onnx_alias(call, 0, x, (int32_t)rank, dims, err);
}

static weir_status run_flatten(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    int64_t axis = onnx_int(call, "axis", 1), dims[2] = {1, 1};
    axis = axis < 0 ? axis + x->rank : axis;
    if (axis < 0 || axis > x->rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "axis %lld of %d dimensions", (long long)axis,
                              x->rank);
    }
    for (int32_t i = 0; i < x->rank; i++) {
        dims[i >= axis] *= x->dims[i];
    }
    return onnx_alias(call, 0, x, 2, dims, err);
}

static weir_status run_squeeze(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    int32_t rank = 0;
    WEIR_TRY(onnx_axes(call, 1, x->rank, axes, &has_axes, err));
    for (int32_t i = 0; i < x->rank; i++) {
        if (has_axes ? !axes[i] : x->dims[i] != 1) {
            dims[rank++] = x->dims[i];
        } else if (x->dims[i] != 1) {
            return weir_error_set(err, WEIR_ERR_INVALID, "axis %d has %lld elements, not 1", i,
                                  (long long)x->dims[i]);
        }
    }
    return onnx_alias(call, 0, x, rank, dims, err);
}

static weir_status run_unsqueeze(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    int64_t dims[WEIR_TENSOR_RANK_MAX], list[WEIR_TENSOR_RANK_MAX];
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    size_t n = 0;
    const int64_t *attribute = onnx_ints(call, "axes", &n);
    if (attribute == NULL) {
        WEIR_TRY(onnx_in_ints(call, 1, WEIR_TENSOR_RANK_MAX, list, &n, err));
    }
    int32_t rank = x->rank + (int32_t)n, from = 0;
    if (rank > WEIR_TENSOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%d dimensions", rank);
    }
    WEIR_TRY(onnx_axes(call, 1, rank, axes, &has_axes, err));
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = axes[i] ? 1 : from < x->rank ? x->dims[from++] : 1;
    }
    return onnx_alias(call, 0, x, rank, dims, err);
}

/* ---- sizes ------------------------------------------------------------------------------------ */

static weir_status run_shape(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t start = onnx_int(call, "start", 0), end = onnx_int(call, "end", x->rank);
    struct weir_tensor *y;
    start = WEIR_MIN(WEIR_MAX(start < 0 ? start + x->rank : start, 0), x->rank);
    end = WEIR_MIN(WEIR_MAX(end < 0 ? end + x->rank : end, 0), x->rank);
    int64_t n = WEIR_MAX(end - start, 0);
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, 1, &n, &y, err));
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)y->data)[i] = x->dims[start + i];
    }
    return WEIR_OK;
}

static weir_status run_size(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *y;
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, 0, NULL, &y, err));
    *(int64_t *)y->data = (int64_t)onnx_in(call, 0)->n_elems;
    return WEIR_OK;
}

/* ---- constants -------------------------------------------------------------------------------- */

static weir_status constant_numbers(struct onnx_call *call, const struct onnx_attribute *value,
                                    struct weir_error *err)
{
    struct weir_tensor *y;
    bool is_list = value->name[strlen(value->name) - 1] == 's'; /* "value_floats" … */
    bool is_float = strncmp(value->name, "value_float", 11) == 0;
    bool is_text = strncmp(value->name, "value_string", 12) == 0;
    int64_t n = is_list ? (int64_t)value->n : 1;
    enum weir_dtype dtype = is_text    ? WEIR_DTYPE_STRING
                            : is_float ? WEIR_DTYPE_FLOAT
                                       : WEIR_DTYPE_INT64;
    WEIR_TRY(onnx_out(call, 0, dtype, is_list ? 1 : 0, &n, &y, err));
    for (int64_t i = 0; i < n; i++) {
        if (is_text) {
            const struct onnx_bytes *text = is_list ? &value->strings[i] : &value->s;
            struct weir_tensor_string from = {(char *)(uintptr_t)text->at, text->len};
            WEIR_TRY(weir_elems_copy(dtype, (struct weir_tensor_string *)y->data + i, &from, 1));
        } else if (is_float) {
            ((float *)y->data)[i] = is_list ? value->floats[i] : value->f;
        } else {
            ((int64_t *)y->data)[i] = is_list ? value->ints[i] : value->i;
        }
    }
    return WEIR_OK;
}

static weir_status run_constant(struct onnx_call *call, struct weir_error *err)
{
    for (size_t i = 0; i < call->node->n_attributes; i++) {
        const struct onnx_attribute *value = &call->node->attributes[i];
        if (strcmp(value->name, "value") == 0 && value->tensor != NULL) {
            return onnx_alias(call, 0, value->tensor, value->tensor->rank, value->tensor->dims,
                              err);
        }
        if (strncmp(value->name, "value_", 6) == 0) {
            return constant_numbers(call, value, err);
        }
    }
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "a constant that is no dense tensor");
}

static weir_status run_constant_of_shape(struct onnx_call *call, struct weir_error *err)
{
    const struct onnx_attribute *value = onnx_attribute(call, "value");
    const struct weir_tensor *fill = value != NULL ? value->tensor : NULL;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t rank;
    struct weir_tensor *y;
    WEIR_TRY(onnx_in_ints(call, 0, WEIR_TENSOR_RANK_MAX, dims, &rank, err));
    WEIR_TRY(onnx_out(call, 0, fill != NULL ? fill->dtype : WEIR_DTYPE_FLOAT, (int32_t)rank, dims,
                      &y, err));
    size_t elem_bytes = weir_dtype_bytes(y->dtype);
    for (size_t i = 0; fill != NULL && fill->n_elems == 1 && i < y->n_elems; i++) {
        WEIR_TRY(weir_elems_copy(y->dtype, (char *)y->data + i * elem_bytes, fill->data, 1));
    }
    return WEIR_OK;
}

/* How many numbers there are from start on before the limit; negative: too many, or without end. */
static int64_t count_range(struct onnx_number start, struct onnx_number limit,
                           struct onnx_number delta)
{
    onnx_whole span = limit.whole - start.whole, step = delta.whole;
    if (step != 0) { /* the quotient, rounded up */
        onnx_whole n = span / step + (span % step != 0 && (span < 0) == (step < 0));
        return n > INT32_MAX ? -1 : n > 0 ? (int64_t)n : 0;
    }
    double n = delta.real != 0 ? ceil((limit.real - start.real) / delta.real) : (double)NAN;
    return !(n <= INT32_MAX) ? -1 : n > 0 ? (int64_t)n : 0;
}

static weir_status run_range(struct onnx_call *call, struct weir_error *err)
{
    struct onnx_number given[3]; /* start, limit, delta */
    struct weir_tensor *y;
    for (size_t i = 0; i < 3; i++) {
        const struct weir_tensor *in = onnx_in(call, i);
        if (in->n_elems != 1 || in->dtype != call->in[0]->dtype ||
            weir_dtype_class(in->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "input %zu is no single number of the type of the first", i);
        }
        given[i] = onnx_number_at(in, 0);
    }
    int64_t n = count_range(given[0], given[1], given[2]);
    if (n < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a range from %g to %g by %g",
                              onnx_number_f64(given[0]), onnx_number_f64(given[1]),
                              onnx_number_f64(given[2]));
    }
    WEIR_TRY(onnx_out(call, 0, call->in[0]->dtype, 1, &n, &y, err));
    for (int64_t i = 0; i < n; i++) {
        const struct onnx_number steps = {.real = (double)i, .whole = i};
        onnx_number_put(y, (size_t)i,
                        onnx_number_add(given[0], onnx_number_multiply(steps, given[2])));
    }
    return WEIR_OK;
}

static weir_status run_eye_like(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t k = onnx_int(call, "k", 0);
    enum weir_dtype dtype = weir_dtype_of(onnx_int(call, "dtype", x->dtype));
    struct weir_tensor *y;
    if (x->rank != 2 || weir_dtype_class(dtype) > WEIR_DTYPE_IS_BOOL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected a matrix of numbers");
    }
    WEIR_TRY(onnx_out(call, 0, dtype, 2, x->dims, &y, err));
    const double one = 1;
    for (int64_t row = 0; row < x->dims[0]; row++) {
        int64_t column = row + k;
        if (column >= 0 && column < x->dims[1]) {
            size_t at = (size_t)(row * x->dims[1] + column) * weir_dtype_bytes(dtype);
            weir_elems_from_f64(dtype, &one, (char *)y->data + at, 1, WEIR_OVERFLOW_SATURATES);
        }
    }
    return WEIR_OK;
}

/* ---- repetition ------------------------------------------------------------------------------- */

static weir_status run_expand(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0), *y, *other;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    size_t rank;
    struct onnx_walk walk;
    WEIR_TRY(onnx_in_ints(call, 1, WEIR_TENSOR_RANK_MAX, dims, &rank, err));
    struct weir_tensor shape = {.dtype = x->dtype, .rank = (int32_t)rank};
    WEIR_TRY(weir_tensor_count(shape.rank, dims, 1, &shape.n_elems, err));
    memcpy(shape.dims, dims, rank * sizeof *dims);
    other = &shape;
    struct weir_tensor *in[2] = {x, other};
    WEIR_TRY(onnx_broadcast(in, 2, &walk, err));
    WEIR_TRY(onnx_out(call, 0, x->dtype, walk.rank, walk.dims, &y, err));
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    for (size_t i = 0; i < walk.n_elems; i++) {
        WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + i * elem_bytes,
                                 (const char *)x->data + onnx_walk_at(&walk, 0, i) * elem_bytes,
                                 1));
    }
    return WEIR_OK;
}

static weir_status run_tile(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t repeats[WEIR_TENSOR_RANK_MAX], dims[WEIR_TENSOR_RANK_MAX];
    size_t n, elem_bytes = weir_dtype_bytes(x->dtype);
    struct weir_tensor *y;
    WEIR_TRY(onnx_in_ints(call, 1, WEIR_TENSOR_RANK_MAX, repeats, &n, err));
    for (size_t i = 0; i < n && n == (size_t)x->rank; i++) {
        if (repeats[i] < 0 || repeats[i] > INT32_MAX || x->dims[i] > INT32_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%lld repeats", (long long)repeats[i]);
        }
        dims[i] = x->dims[i] * repeats[i];
    }
    if (n != (size_t)x->rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu repeats for %d dimensions", n, x->rank);
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t from = 0, rest = i, step = 1;
        for (int32_t d = x->rank - 1; d >= 0; d--) {
            from += rest % (size_t)dims[d] % (size_t)x->dims[d] * step;
            rest /= (size_t)dims[d];
            step *= (size_t)x->dims[d];
        }
        WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + i * elem_bytes,
                                 (const char *)x->data + from * elem_bytes, 1));
    }
    return WEIR_OK;
}

const struct onnx_op onnx_ops_shape[] = {
    {"Identity", 1, 1, 1, run_identity, NULL},
    {"Reshape", 5, 2, 1, run_reshape, NULL},
    {"Flatten", 1, 1, 1, run_flatten, NULL},
    {"Squeeze", 1, 1, 1, run_squeeze, NULL},
    {"Unsqueeze", 1, 1, 1, run_unsqueeze, NULL},
    {"Shape", 1, 1, 1, run_shape, NULL},
    {"Size", 1, 1, 1, run_size, NULL},
    {"Constant", 1, 0, 1, run_constant, NULL},
    {"ConstantOfShape", 9, 1, 1, run_constant_of_shape, NULL},
    {"Range", 11, 3, 1, run_range, NULL},
    {"EyeLike", 9, 1, 1, run_eye_like, NULL},
    {"Expand", 8, 2, 1, run_expand, NULL},
    {"Tile", 6, 2, 1, run_tile, NULL},
};
const size_t onnx_n_ops_shape = WEIR_ARRAY_LEN(onnx_ops_shape);
