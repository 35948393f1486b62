/* Pools, and the norm over neighbouring channels. */
#include "window.h"

#include "onnx/number.h"

#include <math.h>
#include <string.h>

static weir_status begin(struct onnx_call *call, enum weir_dtype_class last, struct window *w,
                         struct weir_tensor **y, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    if (weir_dtype_class(x->dtype) > last) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(window_read(call, x, NULL, onnx_int(call, "ceil_mode", 0) != 0, w, err));
    window_out_dims(w, x->dims[0], x->dims[1], dims);
    return onnx_out(call, 0, x->dtype, x->rank, dims, y, err);
}

/* The index that MaxPool tells: in the whole tensor; with storage_order 1 by columns. */
static int64_t whole_index(const struct window *w, size_t plane, int64_t pixel, bool by_columns)
{
    if (by_columns && w->rank == 2) {
        pixel = pixel % w->in[1] * w->in[0] + pixel / w->in[1];
    }
    return (int64_t)(plane * w->n_in) + pixel;
}

static weir_status run_max(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool by_columns = onnx_int(call, "storage_order", 0) != 0;
    struct weir_tensor *y, *indices = NULL;
    struct window w;
    WEIR_TRY(begin(call, WEIR_DTYPE_IS_UNSIGNED, &w, &y, err));
    const struct onnx_number least = {-INFINITY, onnx_whole_least(x->dtype)};
    if (onnx_has_out(call, 1)) {
        WEIR_TRY(onnx_out(call, 1, WEIR_DTYPE_INT64, y->rank, y->dims, &indices, err));
    }
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t plane = i / w.n_out;
        struct onnx_number most = least;
        int64_t best = -1;
        for (size_t tap = 0; tap < w.n_kernel; tap++) {
            int64_t pixel = window_meet(&w, i % w.n_out, tap);
            if (pixel < 0) {
                continue;
            }
            struct onnx_number value = onnx_number_at(x, plane * w.n_in + (size_t)pixel);
            if (best < 0 || onnx_number_order(value, most) > 0) {
                most = value;
                best = pixel;
            }
        }
        onnx_number_put(y, i, most);
        if (indices != NULL) {
            ((int64_t *)indices->data)[i] = whole_index(&w, plane, WEIR_MAX(best, 0), by_columns);
        }
    }
    return WEIR_OK;
}

static weir_status run_average(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool counts_padding = onnx_int(call, "count_include_pad", 0) != 0;
    struct weir_tensor *y;
    struct window w;
    WEIR_TRY(begin(call, WEIR_DTYPE_IS_FLOAT, &w, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t plane = i / w.n_out, n = window_count(&w, i % w.n_out, counts_padding);
        double sum = 0;
        for (size_t tap = 0; tap < w.n_kernel; tap++) {
            int64_t pixel = window_meet(&w, i % w.n_out, tap);
            sum += pixel >= 0 ? onnx_get(x, plane * w.n_in + (size_t)pixel) : 0;
        }
        onnx_put(y, i, sum / (double)n);
    }
    return WEIR_OK;
}

static weir_status run_lp(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const double p = (double)onnx_int(call, "p", 2);
    struct weir_tensor *y;
    struct window w;
    WEIR_TRY(begin(call, WEIR_DTYPE_IS_FLOAT, &w, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        double sum = 0;
        for (size_t tap = 0; tap < w.n_kernel; tap++) {
            int64_t pixel = window_meet(&w, i % w.n_out, tap);
            sum += pixel >= 0 ? pow(fabs(onnx_get(x, i / w.n_out * w.n_in + (size_t)pixel)), p) : 0;
        }
        onnx_put(y, i, pow(sum, 1 / p));
    }
    return WEIR_OK;
}

/* ---- over the whole plane --------------------------------------------------------------------- */

static weir_status run_global(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_max = strcmp(call->op->type, "GlobalMaxPool") == 0;
    bool is_lp = strcmp(call->op->type, "GlobalLpPool") == 0;
    const double p = is_lp ? (double)onnx_int(call, "p", 2) : 1;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct weir_tensor *y;
    if (x->rank < 2 || weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    for (int32_t i = 0; i < x->rank; i++) {
        dims[i] = i < 2 ? x->dims[i] : 1;
    }
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    size_t n = y->n_elems > 0 ? x->n_elems / y->n_elems : 0;
    for (size_t i = 0; i < y->n_elems; i++) {
        double sum = 0, most = -INFINITY;
        for (size_t k = 0; k < n; k++) {
            double value = onnx_get(x, i * n + k);
            sum += is_lp ? pow(fabs(value), p) : value;
            most = value > most || isnan(value) ? value : most;
        }
        onnx_put(y, i, is_max ? most : is_lp ? pow(sum, 1 / p) : sum / (double)n);
    }
    return WEIR_OK;
}

/* ---- LRN -------------------------------------------------------------------------------------- */

static weir_status run_lrn(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const double alpha = onnx_float(call, "alpha", 0.0001F), beta = onnx_float(call, "beta", 0.75F);
    const double bias = onnx_float(call, "bias", 1);
    int64_t size = onnx_int(call, "size", 0);
    struct weir_tensor *y;
    if (x->rank < 2 || size < 1 || size > INT32_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "size %lld", (long long)size);
    }
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    struct onnx_split split = onnx_split_at(x, 1);
    for (size_t i = 0; i < x->n_elems; i++) {
        int64_t c = (int64_t)(i / split.n_inner % split.n);
        int64_t first = WEIR_MAX(c - (size - 1) / 2, (int64_t)0);
        int64_t last = WEIR_MIN(c + size / 2, (int64_t)split.n - 1);
        double sum = 0;
        for (int64_t k = first; k <= last; k++) {
            double value = onnx_get(x, (size_t)((int64_t)i + (k - c) * (int64_t)split.n_inner));
            sum += value * value;
        }
        onnx_put(y, i, onnx_get(x, i) / pow(bias + alpha / (double)size * sum, beta));
    }
    return WEIR_OK;
}

const struct onnx_op onnx_ops_pool[] = {
    {"MaxPool", 1, 1, 2, run_max, NULL},
    {"AveragePool", 1, 1, 1, run_average, NULL},
    {"LpPool", 2, 1, 1, run_lp, NULL},
    {"GlobalAveragePool", 1, 1, 1, run_global, NULL},
    {"GlobalMaxPool", 1, 1, 1, run_global, NULL},
    {"GlobalLpPool", 2, 1, 1, run_global, NULL},
    {"LRN", 1, 1, 1, run_lrn, NULL},
};
const size_t onnx_n_ops_pool = WEIR_ARRAY_LEN(onnx_ops_pool);
