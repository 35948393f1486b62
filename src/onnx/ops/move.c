/* Elements moved to other places: transpose, slice, concat, split, pad, and blocks of pixels. */
#include "onnx/op.h"

#include "tensor/convert.h"

#include <limits.h>
#include <string.h>

/* ---- transposed copies ------------------------------------------------------------------------ */

/* y's dimension i is x's dimension order[i]. */
static weir_status copy_transposed(const struct weir_tensor *x, const int64_t *x_dims, int32_t rank,
                                   const int32_t *order, struct weir_tensor *y)
{
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    int64_t strides[WEIR_TENSOR_RANK_MAX], steps[WEIR_TENSOR_RANK_MAX], dims[WEIR_TENSOR_RANK_MAX];
    int64_t at[WEIR_TENSOR_RANK_MAX] = {0}, stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= x_dims[i];
    }
    for (int32_t i = 0; i < rank; i++) {
        steps[i] = strides[order[i]];
        dims[i] = x_dims[order[i]];
    }
    size_t from = 0;
    for (size_t i = 0; i < x->n_elems; i++) {
        WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + i * elem_bytes,
                                 (const char *)x->data + from * elem_bytes, 1));
        for (int32_t d = rank - 1; d >= 0; d--) {
            from += (size_t)steps[d];
            if (++at[d] < dims[d]) {
                break;
            }
            from -= (size_t)(steps[d] * dims[d]);
            at[d] = 0;
        }
    }
    return WEIR_OK;
}

static weir_status run_transpose(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int32_t order[WEIR_TENSOR_RANK_MAX];
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    bool is_used[WEIR_TENSOR_RANK_MAX] = {false};
    size_t n;
    const int64_t *perm = onnx_ints(call, "perm", &n);
    struct weir_tensor *y;
    if (perm != NULL && n != (size_t)x->rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "perm has %zu axes, the input %d", n, x->rank);
    }
    for (int32_t i = 0; i < x->rank; i++) {
        WEIR_TRY(onnx_axis(perm != NULL ? perm[i] : x->rank - 1 - i, x->rank, &order[i], err));
        if (is_used[order[i]]) {
            return weir_error_set(err, WEIR_ERR_INVALID, "perm names axis %d twice", order[i]);
        }
        is_used[order[i]] = true;
        dims[i] = x->dims[order[i]];
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    return copy_transposed(x, x->dims, x->rank, order, y);
}

/* Blocks of pixels into channels and back. */
static weir_status run_blocks(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool to_space = call->op->type[0] == 'D';
    bool is_crd = onnx_text_is(call, "mode", "DCR", "CRD");
    static const int32_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    static const int32_t to_depth[] = {0, 3, 5, 1, 2, 4};
    int64_t b = onnx_int(call, "blocksize", 0);
    struct weir_tensor *y;
    if (x->rank != 4 || b < 1 || b > INT_MAX ||
        (to_space ? x->dims[1] % (b * b) != 0 : x->dims[2] % b != 0 || x->dims[3] % b != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "blocks of %lld do not fit", (long long)b);
    }
    const int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2], w = x->dims[3];
    int64_t out_space[] = {n, c / (b * b), h * b, w * b},
            out_depth[] = {n, c * b * b, h / b, w / b};
    int64_t in_dcr[] = {n, b, b, c / (b * b), h, w}, in_crd[] = {n, c / (b * b), b, b, h, w};
    int64_t in_depth[] = {n, c, h / b, b, w / b, b};
    WEIR_TRY(onnx_out(call, 0, x->dtype, 4, to_space ? out_space : out_depth, &y, err));
    return copy_transposed(x,
                           !to_space ? in_depth
                           : is_crd  ? in_crd
                                     : in_dcr,
                           6,
                           !to_space ? to_depth
                           : is_crd  ? crd
                                     : dcr,
                           y);
}

/* ---- concat and split ------------------------------------------------------------------------- */

static weir_status concat_dims(const struct onnx_call *call, int32_t axis, int64_t *dims,
                               struct weir_error *err)
{
    const struct weir_tensor *first = call->in[0];
    memcpy(dims, first->dims, sizeof first->dims);
    for (size_t i = 1; i < call->n_in; i++) {
        const struct weir_tensor *x = onnx_in(call, i);
        bool fits = x != NULL && x->dtype == first->dtype && x->rank == first->rank;
        for (int32_t d = 0; fits && d < x->rank; d++) {
            fits = d == axis || x->dims[d] == first->dims[d];
        }
        if (!fits) {
            return weir_error_set(err, WEIR_ERR_INVALID, "input %zu does not fit the first", i);
        }
        dims[axis] += x->dims[axis];
    }
    return WEIR_OK;
}

static weir_status run_concat(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *first = call->in[0];
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int32_t axis;
    struct weir_tensor *y;
    size_t elem_bytes = weir_dtype_bytes(first->dtype);
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 1), first->rank, &axis, err));
    WEIR_TRY(concat_dims(call, axis, dims, err));
    WEIR_TRY(onnx_out(call, 0, first->dtype, first->rank, dims, &y, err));
    struct onnx_split whole = onnx_split_at(y, axis);
    char *to = y->data;
    for (size_t outer = 0; outer < whole.n_outer; outer++) {
        for (size_t i = 0; i < call->n_in; i++) {
            const struct weir_tensor *x = call->in[i];
            size_t n = (size_t)x->dims[axis] * whole.n_inner;
            WEIR_TRY(
                weir_elems_copy(x->dtype, to, (const char *)x->data + outer * n * elem_bytes, n));
            to += n * elem_bytes;
        }
    }
    return WEIR_OK;
}

/* Sizes of the parts: given, or as equal as they can be. */
static weir_status split_sizes(const struct onnx_call *call, int64_t n, int64_t *sizes,
                               struct weir_error *err)
{
    size_t n_given = 0;
    const int64_t *given = onnx_ints(call, "split", &n_given);
    int64_t n_parts = (int64_t)call->n_out, sum = 0;
    if (given == NULL && onnx_in(call, 1) != NULL) {
        WEIR_TRY(onnx_in_ints(call, 1, call->n_out, sizes, &n_given, err));
    } else {
        int64_t each = (n + n_parts - 1) / n_parts;
        for (int64_t i = 0; i < n_parts; i++) {
            sizes[i] =
                given != NULL && (size_t)i < n_given ? given[i] : WEIR_MIN(each, n - i * each);
        }
    }
    for (int64_t i = 0; i < n_parts; i++) {
        if (sizes[i] < 0 || sizes[i] > n - sum) {
            return weir_error_set(err, WEIR_ERR_INVALID, "part %lld of %lld has %lld elements",
                                  (long long)i, (long long)n_parts, (long long)sizes[i]);
        }
        sum += sizes[i];
    }
    return sum == n ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_INVALID, "the parts have %lld elements of %lld",
                                     (long long)sum, (long long)n);
}

static weir_status make_part(struct onnx_call *call, size_t i, int32_t axis, size_t first,
                             int64_t size, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct onnx_split split = onnx_split_at(x, axis);
    size_t elem_bytes = weir_dtype_bytes(x->dtype), n = (size_t)size * split.n_inner;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct weir_tensor *y;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = size;
    WEIR_TRY(onnx_out(call, i, x->dtype, x->rank, dims, &y, err));
    for (size_t outer = 0; outer < split.n_outer; outer++) {
        size_t from = (outer * split.n + first) * split.n_inner;
        WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + outer * n * elem_bytes,
                                 (const char *)x->data + from * elem_bytes, n));
    }
    return WEIR_OK;
}

#define PARTS_MAX 1024

static weir_status run_split(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t sizes[PARTS_MAX];
    int32_t axis;
    size_t first = 0;
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), x->rank, &axis, err));
    if (call->n_out > PARTS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%zu parts", call->n_out);
    }
    WEIR_TRY(split_sizes(call, x->dims[axis], sizes, err));
    for (size_t i = 0; i < call->n_out; i++) {
        WEIR_TRY(make_part(call, i, axis, first, sizes[i], err));
        first += (size_t)sizes[i];
    }
    return WEIR_OK;
}

/* ---- slice ------------------------------------------------------------------------------------ */

/** Of each dimension: the first index, the distance of indices, how many. */
struct slice {
    int64_t start[WEIR_TENSOR_RANK_MAX], step[WEIR_TENSOR_RANK_MAX], n[WEIR_TENSOR_RANK_MAX];
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return WEIR_MIN(WEIR_MAX(value, low), high);
}

/* As Python's slices: ends outside are cut, negative indices count from the end. */
static void slice_axis(struct slice *slice, int32_t axis, int64_t dim, int64_t start, int64_t end,
                       int64_t step)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? dim - 1 : dim;
    start = clamp(start < 0 ? start + dim : start, step < 0 ? WEIR_MIN(0, dim - 1) : 0, high);
    end = clamp(end < 0 ? WEIR_MAX(end, -dim - 1) + dim : end, low, high + (step < 0));
    int64_t span = step > 0 ? end - start : start - end;
    uint64_t size = step > 0 ? (uint64_t)step : -(uint64_t)step;
    slice->start[axis] = start;
    slice->step[axis] = step;
    slice->n[axis] = span > 0 ? (int64_t)(((uint64_t)span - 1) / size + 1) : 0;
}

static weir_status read_slice(const struct onnx_call *call, struct slice *slice,
                              struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t lists[4][WEIR_TENSOR_RANK_MAX]; /* starts, ends, axes, steps */
    static const char *const names[] = {"starts", "ends", "axes"};
    size_t n[4] = {0};
    for (size_t k = 0; k < 4; k++) {
        const int64_t *list = k < 3 ? onnx_ints(call, names[k], &n[k]) : NULL;
        if (n[k] > WEIR_TENSOR_RANK_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%zu axes", n[k]);
        }
        if (list != NULL) {
            memcpy(lists[k], list, n[k] * sizeof *list);
        } else if (call->opset >= 10 && onnx_in(call, k + 1) != NULL) {
            WEIR_TRY(onnx_in_ints(call, k + 1, WEIR_TENSOR_RANK_MAX, lists[k], &n[k], err));
        }
    }
    for (int32_t i = 0; i < x->rank; i++) {
        slice_axis(slice, i, x->dims[i], 0, x->dims[i], 1);
    }
    for (size_t i = 0; i < n[0]; i++) {
        int32_t axis;
        WEIR_TRY(onnx_axis(i < n[2] ? lists[2][i] : (int64_t)i, x->rank, &axis, err));
        int64_t step = i < n[3] ? lists[3][i] : 1;
        if (n[1] != n[0] || step == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%zu starts, %zu ends, step %lld", n[0],
                                  n[1], (long long)step);
        }
        slice_axis(slice, axis, x->dims[axis], lists[0][i], lists[1][i], step);
    }
    return WEIR_OK;
}

static weir_status run_slice(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct weir_tensor *y;
    struct slice slice;
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    WEIR_TRY(read_slice(call, &slice, err));
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, slice.n, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t rest = i;
        int64_t from = 0, stride = 1;
        for (int32_t d = x->rank - 1; d >= 0; d--) {
            int64_t at = (int64_t)(rest % (size_t)slice.n[d]);
            from += (slice.start[d] + at * slice.step[d]) * stride;
            rest /= (size_t)slice.n[d];
            stride *= x->dims[d];
        }
        WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + i * elem_bytes,
                                 (const char *)x->data + (size_t)from * elem_bytes, 1));
    }
    return WEIR_OK;
}

/* ---- pad -------------------------------------------------------------------------------------- */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/** Elements in front of and behind each dimension; negative ones are cut off. */
struct padding {
    enum pad_mode mode;
    int64_t before[WEIR_TENSOR_RANK_MAX], after[WEIR_TENSOR_RANK_MAX];
};

/* Where index i of the padded dimension comes from; -1: from outside. */
static int64_t pad_source(enum pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) {
        return i;
    }
    if (mode == PAD_CONSTANT || n == 0) {
        return -1;
    }
    if (mode == PAD_EDGE) {
        return i < 0 ? 0 : n - 1;
    }
    int64_t period = mode == PAD_WRAP || n == 1 ? n : 2 * (n - 1);
    int64_t at = (i % period + period) % period;
    return at < n ? at : period - at;
}

static weir_status read_padding(const struct onnx_call *call, struct padding *out,
                                struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t pads[2 * WEIR_TENSOR_RANK_MAX], axes[WEIR_TENSOR_RANK_MAX];
    size_t n = 0, n_axes = (size_t)x->rank;
    const int64_t *list = onnx_ints(call, "pads", &n);
    *out =
        (struct padding){.mode = onnx_text_is(call, "mode", "constant", "reflect") ? PAD_REFLECT
                                 : onnx_text_is(call, "mode", "constant", "edge")  ? PAD_EDGE
                                 : onnx_text_is(call, "mode", "constant", "wrap")  ? PAD_WRAP
                                                                                   : PAD_CONSTANT};
    for (int32_t i = 0; i < x->rank; i++) {
        axes[i] = i;
    }
    if (list == NULL) {
        WEIR_TRY(onnx_in_ints(call, 1, WEIR_ARRAY_LEN(pads), pads, &n, err));
        list = pads;
    }
    if (onnx_in(call, 3) != NULL) {
        WEIR_TRY(onnx_in_ints(call, 3, WEIR_TENSOR_RANK_MAX, axes, &n_axes, err));
    }
    if (n != 2 * n_axes) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu pads for %zu axes", n, n_axes);
    }
    for (size_t i = 0; i < n_axes; i++) {
        int32_t axis;
        WEIR_TRY(onnx_axis(axes[i], x->rank, &axis, err));
        out->before[axis] = clamp(list[i], INT_MIN, INT_MAX);
        out->after[axis] = clamp(list[i + n_axes], INT_MIN, INT_MAX);
    }
    return WEIR_OK;
}

/* The element of x that becomes element i of y; -1: the constant. */
static int64_t pad_element(const struct padding *padding, const struct weir_tensor *x,
                           const struct weir_tensor *y, size_t i)
{
    int64_t from = 0, stride = 1;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        int64_t at = (int64_t)(i % (size_t)y->dims[d]) - padding->before[d];
        int64_t source = pad_source(padding->mode, at, x->dims[d]);
        if (source < 0) {
            return -1;
        }
        from += source * stride;
        i /= (size_t)y->dims[d];
        stride *= x->dims[d];
    }
    return from;
}

static weir_status run_pad(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *constant = onnx_in(call, 2);
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct padding padding;
    struct weir_tensor *y;
    float fill = onnx_float(call, "value", 0);
    double fill_f64 = fill;
    WEIR_TRY(read_padding(call, &padding, err));
    if (constant != NULL && (constant->dtype != x->dtype || constant->n_elems != 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "what to pad with is %zu elements of %s",
                              constant->n_elems, weir_dtype_name(constant->dtype));
    }
    for (int32_t i = 0; i < x->rank; i++) {
        dims[i] = WEIR_MAX(x->dims[i] + padding.before[i] + padding.after[i], 0);
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        int64_t from = pad_element(&padding, x, y, i);
        char *to = (char *)y->data + i * elem_bytes;
        if (from >= 0) {
            WEIR_TRY(weir_elems_copy(x->dtype, to,
                                     (const char *)x->data + (size_t)from * elem_bytes, 1));
        } else if (constant != NULL) {
            WEIR_TRY(weir_elems_copy(x->dtype, to, constant->data, 1));
        } else if (fill != 0) {
            weir_elems_from_f64(x->dtype, &fill_f64, to, 1, WEIR_OVERFLOW_SATURATES);
        }
    }
    return WEIR_OK;
}

/* ---- triangles -------------------------------------------------------------------------------- */

static weir_status run_trilu(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const int64_t k = onnx_in_int(call, 1, 0);
    bool is_upper = onnx_int(call, "upper", 1) != 0;
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    struct weir_tensor *y;
    if (x->rank < 2) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected matrices");
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    for (size_t i = 0; i < x->n_elems; i++) {
        int64_t column = (int64_t)(i % (size_t)x->dims[x->rank - 1]);
        int64_t row = (int64_t)(i / (size_t)x->dims[x->rank - 1] % (size_t)x->dims[x->rank - 2]);
        if (is_upper ? column - row >= k : column - row <= k) {
            WEIR_TRY(weir_elems_copy(x->dtype, (char *)y->data + i * elem_bytes,
                                     (const char *)x->data + i * elem_bytes, 1));
        }
    }
    return WEIR_OK;
}

const struct onnx_op onnx_ops_move[] = {
    {"Transpose", 1, 1, 1, run_transpose, NULL},
    {"DepthToSpace", 1, 1, 1, run_blocks, NULL},
    {"SpaceToDepth", 1, 1, 1, run_blocks, NULL},
    {"Concat", 4, 1, 1, run_concat, NULL},
    {"Split", 2, 1, 255, run_split, NULL},
    {"Slice", 1, 1, 1, run_slice, NULL},
    {"Pad", 2, 1, 1, run_pad, NULL},
    {"Trilu", 14, 1, 1, run_trilu, NULL},
};
const size_t onnx_n_ops_move = WEIR_ARRAY_LEN(onnx_ops_move);
