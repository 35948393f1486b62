/* Elements chosen by indices: gather, scatter, one-hot, compress, non-zero. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <string.h>

/* ---- indices ---------------------------------------------------------------------------------- */

static weir_status check_indices(const struct weir_tensor *indices, struct weir_error *err)
{
    return indices->dtype == WEIR_DTYPE_INT64 || indices->dtype == WEIR_DTYPE_INT32
               ? WEIR_OK
               : onnx_refuse_dtype(indices->dtype, err);
}

/* Index i of the list, which counts from the end if it is negative, of n. */
static weir_status index_at(const struct weir_tensor *indices, size_t i, int64_t n, size_t *out,
                            struct weir_error *err)
{
    int64_t index = indices->dtype == WEIR_DTYPE_INT64 ? ((const int64_t *)indices->data)[i]
                                                       : ((const int32_t *)indices->data)[i];
    int64_t at = index < 0 ? index + n : index;
    if (at < 0 || at >= n) {
        return weir_error_set(err, WEIR_ERR_INVALID, "index %lld of %lld", (long long)index,
                              (long long)n);
    }
    *out = (size_t)at;
    return WEIR_OK;
}

static weir_status copy_elems(const struct weir_tensor *x, size_t from, struct weir_tensor *y,
                              size_t to, size_t n)
{
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    return weir_elems_copy(x->dtype, (char *)y->data + to * elem_bytes,
                           (const char *)x->data + from * elem_bytes, n);
}

/* ---- gather ----------------------------------------------------------------------------------- */

static weir_status run_gather(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *indices = onnx_in(call, 1);
    int64_t dims[2 * WEIR_TENSOR_RANK_MAX];
    int32_t axis, rank = 0;
    struct weir_tensor *y;
    WEIR_TRY(check_indices(indices, err));
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), x->rank, &axis, err));
    for (int32_t i = 0; i < x->rank; i++) {
        for (int32_t k = 0; k < (i == axis ? indices->rank : 1); k++) {
            dims[rank++] = i == axis ? indices->dims[k] : x->dims[i];
        }
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, rank, dims, &y, err));
    struct onnx_split split = onnx_split_at(x, axis);
    size_t to = 0;
    for (size_t outer = 0; outer < split.n_outer; outer++) {
        for (size_t i = 0; i < indices->n_elems; i++, to += split.n_inner) {
            size_t at;
            WEIR_TRY(index_at(indices, i, (int64_t)split.n, &at, err));
            WEIR_TRY(copy_elems(x, (outer * split.n + at) * split.n_inner, y, to, split.n_inner));
        }
    }
    return WEIR_OK;
}

/* The place in x of element i of `indices`, whose index counts along the axis. */
static weir_status place_along(const struct weir_tensor *x, const struct weir_tensor *indices,
                               size_t i, int32_t axis, size_t *out, struct weir_error *err)
{
    size_t at = 0, stride = 1, rest = i, index = 0;
    WEIR_TRY(index_at(indices, i, x->dims[axis], &index, err));
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        at += (d == axis ? index : rest % (size_t)indices->dims[d]) * stride;
        rest /= (size_t)indices->dims[d];
        stride *= (size_t)x->dims[d];
    }
    *out = at;
    return WEIR_OK;
}

static weir_status check_along(const struct weir_tensor *x, const struct weir_tensor *indices,
                               int32_t axis, struct weir_error *err)
{
    bool fits = x->rank == indices->rank;
    WEIR_TRY(check_indices(indices, err));
    for (int32_t i = 0; fits && i < x->rank; i++) {
        fits = i == axis || indices->dims[i] <= x->dims[i];
    }
    return fits ? WEIR_OK : weir_error_set(err, WEIR_ERR_INVALID, "the indices do not fit");
}

static weir_status run_gather_elements(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *indices = onnx_in(call, 1);
    int32_t axis;
    struct weir_tensor *y;
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), x->rank, &axis, err));
    WEIR_TRY(check_along(x, indices, axis, err));
    WEIR_TRY(onnx_out(call, 0, x->dtype, indices->rank, indices->dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t from;
        WEIR_TRY(place_along(x, indices, i, axis, &from, err));
        WEIR_TRY(copy_elems(x, from, y, i, 1));
    }
    return WEIR_OK;
}

/** Indices of several dimensions at once: the last dimension of `indices` is a tuple. */
struct tuples {
    size_t n_batches, n_tuples; /* tuples of a batch */
    int32_t first, n;           /* dimensions of x that a tuple names */
    size_t n_inner;             /* elements that a tuple stands for */
};

static weir_status find_tuples(const struct weir_tensor *x, const struct weir_tensor *indices,
                               int32_t batch_dims, struct tuples *out, struct weir_error *err)
{
    *out = (struct tuples){.n_batches = 1, .n_tuples = 1, .first = batch_dims, .n_inner = 1};
    WEIR_TRY(check_indices(indices, err));
    bool fits = indices->rank > batch_dims && batch_dims >= 0 && batch_dims < x->rank &&
                indices->dims[indices->rank - 1] <= x->rank - batch_dims;
    for (int32_t i = 0; fits && i < batch_dims; i++) {
        fits = indices->dims[i] == x->dims[i];
        out->n_batches *= (size_t)x->dims[i];
    }
    if (!fits) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the indices do not fit");
    }
    out->n = (int32_t)indices->dims[indices->rank - 1];
    for (int32_t i = batch_dims; i < indices->rank - 1; i++) {
        out->n_tuples *= (size_t)indices->dims[i];
    }
    for (int32_t i = batch_dims + out->n; i < x->rank; i++) {
        out->n_inner *= (size_t)x->dims[i];
    }
    return WEIR_OK;
}

/* The first element that tuple i stands for. */
static weir_status place_of_tuple(const struct weir_tensor *x, const struct weir_tensor *indices,
                                  const struct tuples *tuples, size_t i, size_t *out,
                                  struct weir_error *err)
{
    size_t at = i / tuples->n_tuples; /* the batch */
    for (int32_t k = 0; k < tuples->n; k++) {
        int64_t dim = x->dims[tuples->first + k];
        size_t index = 0;
        WEIR_TRY(index_at(indices, i * (size_t)tuples->n + (size_t)k, dim, &index, err));
        at = at * (size_t)dim + index;
    }
    *out = at * tuples->n_inner;
    return WEIR_OK;
}

static weir_status run_gather_nd(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *indices = onnx_in(call, 1);
    int64_t dims[2 * WEIR_TENSOR_RANK_MAX];
    int32_t rank = 0;
    struct tuples tuples;
    struct weir_tensor *y;
    WEIR_TRY(find_tuples(x, indices, (int32_t)onnx_int(call, "batch_dims", 0), &tuples, err));
    for (int32_t i = 0; i < indices->rank - 1; i++) {
        dims[rank++] = indices->dims[i];
    }
    for (int32_t i = tuples.first + tuples.n; i < x->rank; i++) {
        dims[rank++] = x->dims[i];
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, rank, dims, &y, err));
    for (size_t i = 0; i < tuples.n_batches * tuples.n_tuples; i++) {
        size_t from;
        WEIR_TRY(place_of_tuple(x, indices, &tuples, i, &from, err));
        WEIR_TRY(copy_elems(x, from, y, i * tuples.n_inner, tuples.n_inner));
    }
    return WEIR_OK;
}

/* ---- scatter ---------------------------------------------------------------------------------- */

enum reduction { REPLACE, ADD, MULTIPLY, LARGEST, SMALLEST };

static weir_status read_reduction(const struct onnx_call *call, enum reduction *out,
                                  struct weir_error *err)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (onnx_text_is(call, "reduction", "none", names[i])) {
            *out = (enum reduction)i;
            return *out == REPLACE || weir_dtype_class(call->in[0]->dtype) <= WEIR_DTYPE_IS_UNSIGNED
                       ? WEIR_OK
                       : onnx_refuse_dtype(call->in[0]->dtype, err);
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "an unknown reduction");
}

static struct onnx_number reduce(enum reduction reduction, struct onnx_number a,
                                 struct onnx_number b)
{
    switch (reduction) {
    case ADD:
        return onnx_number_add(a, b);
    case MULTIPLY:
        return onnx_number_multiply(a, b);
    case LARGEST:
        return onnx_number_larger(a, b);
    case SMALLEST:
        return onnx_number_smaller(a, b);
    default:
        return b;
    }
}

static weir_status put(enum reduction reduction, const struct weir_tensor *updates, size_t from,
                       struct weir_tensor *y, size_t to, size_t n)
{
    if (reduction == REPLACE) {
        return copy_elems(updates, from, y, to, n);
    }
    for (size_t i = 0; i < n; i++) {
        onnx_number_put(
            y, to + i,
            reduce(reduction, onnx_number_at(y, to + i), onnx_number_at(updates, from + i)));
    }
    return WEIR_OK;
}

static weir_status begin_scatter(struct onnx_call *call, enum reduction *out_reduction,
                                 struct weir_tensor **out, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    WEIR_TRY(read_reduction(call, out_reduction, err));
    if (x->dtype != onnx_in(call, 2)->dtype || x->dtype == WEIR_DTYPE_STRING) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, out, err));
    return weir_elems_copy(x->dtype, (*out)->data, x->data, x->n_elems);
}

static weir_status run_scatter_elements(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *indices = onnx_in(call, 1), *updates = onnx_in(call, 2);
    enum reduction reduction;
    int32_t axis;
    struct weir_tensor *y;
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), onnx_in(call, 0)->rank, &axis, err));
    WEIR_TRY(check_along(onnx_in(call, 0), indices, axis, err));
    WEIR_TRY(begin_scatter(call, &reduction, &y, err));
    if (updates->n_elems != indices->n_elems) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu indices and %zu updates",
                              indices->n_elems, updates->n_elems);
    }
    for (size_t i = 0; i < updates->n_elems; i++) {
        size_t to;
        WEIR_TRY(place_along(y, indices, i, axis, &to, err));
        WEIR_TRY(put(reduction, updates, i, y, to, 1));
    }
    return WEIR_OK;
}

static weir_status run_scatter_nd(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *indices = onnx_in(call, 1), *updates = onnx_in(call, 2);
    enum reduction reduction;
    struct tuples tuples;
    struct weir_tensor *y;
    WEIR_TRY(find_tuples(onnx_in(call, 0), indices, 0, &tuples, err));
    WEIR_TRY(begin_scatter(call, &reduction, &y, err));
    if (updates->n_elems != tuples.n_tuples * tuples.n_inner) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the updates do not fit");
    }
    for (size_t i = 0; i < tuples.n_tuples; i++) {
        size_t to;
        WEIR_TRY(place_of_tuple(y, indices, &tuples, i, &to, err));
        WEIR_TRY(put(reduction, updates, i * tuples.n_inner, y, to, tuples.n_inner));
    }
    return WEIR_OK;
}

/* ---- by value --------------------------------------------------------------------------------- */

static weir_status run_one_hot(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *indices = onnx_in(call, 0), *values = onnx_in(call, 2);
    const int64_t depth = onnx_in_int(call, 1, 0);
    int64_t axis = onnx_int(call, "axis", -1), dims[WEIR_TENSOR_RANK_MAX];
    int32_t rank = indices->rank + 1, at;
    struct weir_tensor *y;
    WEIR_TRY(onnx_axis(axis, rank, &at, err));
    if (rank > WEIR_TENSOR_RANK_MAX || values->n_elems != 2 || depth < 0 || depth >= INT32_MAX ||
        weir_dtype_class(indices->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return weir_error_set(err, WEIR_ERR_INVALID, "depth %lld, %zu values", (long long)depth,
                              values->n_elems);
    }
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = i == at ? depth : indices->dims[i - (i > at)];
    }
    WEIR_TRY(onnx_out(call, 0, values->dtype, rank, dims, &y, err));
    struct onnx_split split = onnx_split_at(y, at);
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t outer = i / (split.n * split.n_inner), inner = i % split.n_inner;
        size_t from = (outer * split.n_inner + inner) * weir_dtype_bytes(indices->dtype);
        int64_t index;
        weir_elems_to_i64(indices->dtype, (const char *)indices->data + from, &index, 1);
        index = index < 0 && indices->dtype != WEIR_DTYPE_UINT64 ? index + depth : index;
        bool is_hot = (int64_t)(i / split.n_inner % split.n) == index;
        WEIR_TRY(copy_elems(values, is_hot, y, i, 1));
    }
    return WEIR_OK;
}

static weir_status run_non_zero(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t dims[2] = {x->rank, 0};
    size_t elem_bytes = weir_dtype_bytes(x->dtype), k = 0;
    struct weir_tensor *y;
    double value;
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_BOOL) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    for (size_t i = 0; i < x->n_elems; i++) {
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * elem_bytes, &value, 1);
        dims[1] += value != 0;
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, 2, dims, &y, err));
    for (size_t i = 0; i < x->n_elems; i++) {
        weir_elems_to_f64(x->dtype, (const char *)x->data + i * elem_bytes, &value, 1);
        size_t rest = i;
        for (int32_t d = x->rank - 1; value != 0 && d >= 0; d--) {
            ((int64_t *)y->data)[(size_t)d * (size_t)dims[1] + k] =
                (int64_t)(rest % (size_t)x->dims[d]);
            rest /= (size_t)x->dims[d];
        }
        k += value != 0;
    }
    return WEIR_OK;
}

static weir_status run_compress(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *condition = onnx_in(call, 1);
    bool is_flat = onnx_attribute(call, "axis") == NULL;
    int64_t dims[WEIR_TENSOR_RANK_MAX], n = 0;
    int32_t axis = 0;
    struct weir_tensor *y;
    struct onnx_split split = {1, x->n_elems, 1};
    if (!is_flat) {
        WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), x->rank, &axis, err));
        split = onnx_split_at(x, axis);
    }
    if (condition->dtype != WEIR_DTYPE_BOOL) {
        return onnx_refuse_dtype(condition->dtype, err);
    }
    const uint8_t *wanted = condition->data;
    size_t most = WEIR_MIN(condition->n_elems, split.n);
    for (size_t i = 0; i < most; i++) {
        n += wanted[i] != 0;
    }
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = n;
    WEIR_TRY(onnx_out(call, 0, x->dtype, is_flat ? 1 : x->rank, is_flat ? &n : dims, &y, err));
    size_t to = 0;
    for (size_t outer = 0; outer < split.n_outer; outer++) {
        for (size_t i = 0; i < most; i++) {
            if (wanted[i] != 0) {
                WEIR_TRY(
                    copy_elems(x, (outer * split.n + i) * split.n_inner, y, to, split.n_inner));
                to += split.n_inner;
            }
        }
    }
    return WEIR_OK;
}

const struct onnx_op onnx_ops_gather[] = {
    {"Gather", 1, 2, 1, run_gather, NULL},
    {"GatherElements", 11, 2, 1, run_gather_elements, NULL},
    {"GatherND", 11, 2, 1, run_gather_nd, NULL},
    {"ScatterElements", 11, 3, 1, run_scatter_elements, NULL},
    {"Scatter", 9, 3, 1, run_scatter_elements, NULL},
    {"ScatterND", 11, 3, 1, run_scatter_nd, NULL},
    {"OneHot", 9, 3, 1, run_one_hot, NULL},
    {"NonZero", 9, 1, 1, run_non_zero, NULL},
    {"Compress", 9, 2, 1, run_compress, NULL},
};
const size_t onnx_n_ops_gather = WEIR_ARRAY_LEN(onnx_ops_gather);
