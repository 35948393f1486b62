/* Reductions over axes: sums, means, norms, largest and smallest, and where they are. */
#include "../op.h"

#include "tensor/convert.h"

#include <math.h>
#include <string.h>

/** What an element adds to the sum so far, and what becomes of it at the end. */
struct reduction {
    double begin;
    double (*add)(double sum, double x);
    double (*end)(double sum, double n); /* NULL: the sum itself */
    bool is_after_max;                   /* x is exp(x - max), and the end adds the max */
};

/** Elements that are kept and those that are summed: walks of the two sets of axes. */
struct axes_walk {
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX], strides[WEIR_TENSOR_RANK_MAX];
    size_t n;
};

static double add(double sum, double x)
{
    return sum + x;
}

static double add_abs(double sum, double x)
{
    return sum + fabs(x);
}

static double add_square(double sum, double x)
{
    return sum + x * x;
}

static double multiply(double sum, double x)
{
    return sum * x;
}

static double larger(double sum, double x)
{
    return isnan(x) || x > sum ? x : sum;
}

static double smaller(double sum, double x)
{
    return isnan(x) || x < sum ? x : sum;
}

static double mean(double sum, double n)
{
    return sum / n;
}

static double root(double sum, double n)
{
    (void)n;
    return sqrt(sum);
}

static double logarithm(double sum, double n)
{
    (void)n;
    return log(sum);
}

static void choose(const struct weir_tensor *x, const bool *axes, bool wanted,
                   struct axes_walk *walk)
{
    int64_t stride = 1;
    *walk = (struct axes_walk){.n = 1};
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        if (axes[i] == wanted) {
            walk->dims[walk->rank] = x->dims[i]; /* from the last axis to the first */
            walk->strides[walk->rank++] = stride;
            walk->n *= (size_t)x->dims[i];
        }
        stride *= x->dims[i];
    }
}

static size_t walk_at(const struct axes_walk *walk, size_t i)
{
    size_t at = 0;
    for (int32_t d = 0; d < walk->rank; d++) {
        at += i % (size_t)walk->dims[d] * (size_t)walk->strides[d];
        i /= (size_t)walk->dims[d];
    }
    return at;
}

static double sum_up(const struct reduction *r, const struct weir_tensor *x, size_t first,
                     const struct axes_walk *inner)
{
    double sum = r->begin, most = -INFINITY;
    for (size_t i = 0; r->is_after_max && i < inner->n; i++) {
        most = fmax(most, onnx_get(x, first + walk_at(inner, i)));
    }
    for (size_t i = 0; i < inner->n; i++) {
        double value = onnx_get(x, first + walk_at(inner, i));
        sum = r->add(sum, !r->is_after_max ? value : isinf(most) ? exp(value) : exp(value - most));
    }
    sum = r->end != NULL ? r->end(sum, (double)inner->n) : sum;
    return r->is_after_max && !isinf(most) ? sum + most : sum;
}

/* An integer's largest of nothing is its least. */
static double least_of(enum weir_dtype dtype, double begin)
{
    bool is_signed = weir_dtype_class(dtype) == WEIR_DTYPE_IS_SIGNED;
    int bits = (int)weir_dtype_bits(dtype) - is_signed;
    if (!isinf(begin) || weir_dtype_class(dtype) == WEIR_DTYPE_IS_FLOAT) {
        return begin;
    }
    return begin < 0 ? (is_signed ? -ldexp(1, bits) : 0) : ldexp(1, bits) - 1;
}

static weir_status run(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct reduction r = *(const struct reduction *)call->op->detail;
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes, keeps = onnx_int(call, "keepdims", 1) != 0;
    struct axes_walk outer, inner;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int32_t rank = 0;
    struct weir_tensor *y;
    WEIR_TRY(onnx_axes(call, 1, x->rank, axes, &has_axes, err));
    if (!has_axes && onnx_int(call, "noop_with_empty_axes", 0) != 0) {
        inner = (struct axes_walk){.n = 1}; /* each element by itself */
    } else {
        for (int32_t i = 0; !has_axes && i < x->rank; i++) {
            axes[i] = true;
        }
        choose(x, axes, true, &inner);
    }
    choose(x, axes, false, &outer);
    for (int32_t i = 0; i < x->rank; i++) {
        if (!axes[i] || keeps) {
            dims[rank++] = axes[i] ? 1 : x->dims[i];
        }
    }
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_BOOL) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    r.begin = least_of(x->dtype, r.begin);
    WEIR_TRY(onnx_out(call, 0, x->dtype, rank, dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        double value = sum_up(&r, x, walk_at(&outer, i), &inner);
        onnx_put(y, i, value);
    }
    return WEIR_OK;
}

/* ---- where the largest is --------------------------------------------------------------------- */

static weir_status run_arg(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_max = strcmp(call->op->type, "ArgMax") == 0, keeps = onnx_int(call, "keepdims", 1) != 0;
    bool takes_last = onnx_int(call, "select_last_index", 0) != 0;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int32_t axis, rank = 0;
    struct weir_tensor *y;
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 0), x->rank, &axis, err));
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis || keeps) {
            dims[rank++] = i == axis ? 1 : x->dims[i];
        }
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, rank, dims, &y, err));
    struct onnx_split split = onnx_split_at(x, axis);
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t first = i / split.n_inner * split.n * split.n_inner + i % split.n_inner, best = 0;
        for (size_t k = 1; k < split.n; k++) {
            double value = onnx_get(x, first + k * split.n_inner);
            double so_far = onnx_get(x, first + best * split.n_inner);
            bool is_better = is_max ? value > so_far : value < so_far;
            best = is_better || (takes_last && value == so_far) ? k : best;
        }
        ((int64_t *)y->data)[i] = (int64_t)best;
    }
    return WEIR_OK;
}

static weir_status run_cumulative_sum(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool is_exclusive = onnx_int(call, "exclusive", 0) != 0;
    bool is_reverse = onnx_int(call, "reverse", 0) != 0;
    int32_t axis;
    struct weir_tensor *y;
    WEIR_TRY(onnx_axis((int64_t)onnx_in_number(call, 1, 0), x->rank, &axis, err));
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    struct onnx_split split = onnx_split_at(x, axis);
    for (size_t i = 0; i < split.n_outer * split.n_inner; i++) {
        size_t first = i / split.n_inner * split.n * split.n_inner + i % split.n_inner;
        double sum = 0;
        for (size_t k = 0; k < split.n; k++) {
            size_t at = first + (is_reverse ? split.n - 1 - k : k) * split.n_inner;
            double value = onnx_get(x, at), with = sum + value;
            weir_elems_from_f64(y->dtype, is_exclusive ? &sum : &with,
                                (char *)y->data + at * weir_dtype_bytes(y->dtype), 1,
                                WEIR_OVERFLOW_SATURATES);
            sum = with;
        }
    }
    return WEIR_OK;
}

#define REDUCE(type, ...)                                                                          \
    {                                                                                              \
        type, 1, 1, 1, run, (&(const struct reduction){__VA_ARGS__})                               \
    }

const struct onnx_op onnx_ops_reduce[] = {
    REDUCE("ReduceSum", .begin = 0, .add = add),
    REDUCE("ReduceMean", .begin = 0, .add = add, .end = mean),
    REDUCE("ReduceL1", .begin = 0, .add = add_abs),
    REDUCE("ReduceL2", .begin = 0, .add = add_square, .end = root),
    REDUCE("ReduceSumSquare", .begin = 0, .add = add_square),
    REDUCE("ReduceProd", .begin = 1, .add = multiply),
    REDUCE("ReduceMax", .begin = -INFINITY, .add = larger),
    REDUCE("ReduceMin", .begin = INFINITY, .add = smaller),
    REDUCE("ReduceLogSum", .begin = 0, .add = add, .end = logarithm),
    REDUCE("ReduceLogSumExp", .begin = 0, .add = add, .end = logarithm, .is_after_max = true),
    {"ArgMax", 1, 1, 1, run_arg, NULL},
    {"ArgMin", 1, 1, 1, run_arg, NULL},
    {"CumSum", 11, 2, 1, run_cumulative_sum, NULL},
};
const size_t onnx_n_ops_reduce = WEIR_ARRAY_LEN(onnx_ops_reduce);
