/* Reductions over axes: sums, means, norms, largest and smallest, and where they are. */
#include "onnx/op.h"

#include "onnx/number.h"

#include <math.h>
#include <string.h>

/** Elements that are kept and those that are summed: walks of the two sets of axes. */
struct axes_walk {
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX], strides[WEIR_TENSOR_RANK_MAX];
    size_t n;
};

/** The elements that one element of the result is made of. */
struct line {
    const struct weir_tensor *x;
    size_t first;
    const struct axes_walk *walk;
};

/** What floats add to the sum so far and what becomes of it at the end, and what whole numbers of a
 *  line give. */
struct reduction {
    double begin;
    double (*add)(double sum, double x);
    double (*end)(double sum, double n); /* NULL: the sum itself */
    bool is_after_max;                   /* x is exp(x - max), and the end adds the max */
    onnx_whole (*whole)(const struct line *line);
};

static void choose(const struct weir_tensor *x, const bool *axes, bool wanted,
                   struct axes_walk *walk)
{
    int64_t stride = 1;
    *walk = (struct axes_walk){.n = 1};
    for (int32_t i = x->rank - 1; i >= 0; i--) { /* from the last axis to the first */
        bool is_next =
            i < x->rank - 1 && axes[i + 1] == wanted; /* it goes on from the one behind */
        if (axes[i] == wanted && is_next) {
            walk->dims[walk->rank - 1] *= x->dims[i];
        } else if (axes[i] == wanted) {
            walk->dims[walk->rank] = x->dims[i];
            walk->strides[walk->rank++] = stride;
        }
        walk->n *= axes[i] == wanted ? (size_t)x->dims[i] : 1;
        stride *= x->dims[i];
    }
}

static size_t walk_at(const struct axes_walk *walk, size_t i)
{
    size_t at = 0;
    if (walk->rank == 1) {
        return i * (size_t)walk->strides[0];
    }
    for (int32_t d = 0; d < walk->rank; d++) {
        at += i % (size_t)walk->dims[d] * (size_t)walk->strides[d];
        i /= (size_t)walk->dims[d];
    }
    return at;
}

static double real_at(const struct line *line, size_t i)
{
    return onnx_get(line->x, line->first + walk_at(line->walk, i));
}

static onnx_whole whole_at(const struct line *line, size_t i)
{
    return onnx_whole_at(line->x, line->first + walk_at(line->walk, i));
}

/* ---- of floats -------------------------------------------------------------------------------- */

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

static double sum_up(const struct reduction *r, const struct line *line)
{
    double sum = r->begin, most = -INFINITY;
    size_t n = line->walk->n;
    for (size_t i = 0; r->is_after_max && i < n; i++) {
        most = fmax(most, real_at(line, i));
    }
    for (size_t i = 0; i < n; i++) {
        double value = real_at(line, i);
        sum = r->add(sum, !r->is_after_max ? value : isinf(most) ? exp(value) : exp(value - most));
    }
    sum = r->end != NULL ? r->end(sum, (double)n) : sum;
    return r->is_after_max && !isinf(most) ? sum + most : sum;
}

/* ---- of whole numbers ------------------------------------------------------------------------- */

static onnx_whole whole_sum(const struct line *line)
{
    onnx_whole sum = 0;
    for (size_t i = 0; i < line->walk->n; i++) {
        sum = onnx_whole_add(sum, whole_at(line, i));
    }
    return sum;
}

/* Of the sum itself, which no number of elements lets wrap; towards zero. */
static onnx_whole whole_mean(const struct line *line)
{
    return line->walk->n > 0 ? whole_sum(line) / (onnx_whole)line->walk->n : 0;
}

static onnx_whole whole_sum_abs(const struct line *line)
{
    onnx_whole sum = 0;
    for (size_t i = 0; i < line->walk->n; i++) {
        onnx_whole value = whole_at(line, i);
        sum = onnx_whole_add(sum, value < 0 ? -value : value);
    }
    return sum;
}

static onnx_whole whole_sum_square(const struct line *line)
{
    onnx_whole sum = 0;
    for (size_t i = 0; i < line->walk->n; i++) {
        onnx_whole value = whole_at(line, i);
        sum = onnx_whole_add(sum, onnx_whole_multiply(value, value));
    }
    return sum;
}

/* The largest whole number whose square is not above the sum; a sum that 128 bits do not hold is as
 *  large as they can be, whose root is beyond every type. */
static onnx_whole whole_root(const struct line *line)
{
    onnx_whole_bits sum = 0, root = 0;
    for (size_t i = 0; i < line->walk->n; i++) {
        onnx_whole value = whole_at(line, i);
        onnx_whole_bits size = (onnx_whole_bits)(value < 0 ? -value : value), square = size * size;
        sum = sum + square < sum ? ~(onnx_whole_bits)0 : sum + square;
    }
    for (int bit = 63; bit >= 0; bit--) {
        onnx_whole_bits next = root | (onnx_whole_bits)1 << bit;
        root = next * next <= sum ? next : root;
    }
    return (onnx_whole)root;
}

static onnx_whole whole_product(const struct line *line)
{
    onnx_whole product = 1;
    for (size_t i = 0; i < line->walk->n; i++) {
        product = onnx_whole_multiply(product, whole_at(line, i));
    }
    return product;
}

/* Of nothing it is the type's least. */
static onnx_whole whole_largest(const struct line *line)
{
    onnx_whole most = onnx_whole_least(line->x->dtype);
    for (size_t i = 0; i < line->walk->n; i++) {
        onnx_whole value = whole_at(line, i);
        most = WEIR_MAX(most, value);
    }
    return most;
}

static onnx_whole whole_smallest(const struct line *line)
{
    onnx_whole least = onnx_whole_most(line->x->dtype);
    for (size_t i = 0; i < line->walk->n; i++) {
        onnx_whole value = whole_at(line, i);
        least = WEIR_MIN(least, value);
    }
    return least;
}

static onnx_whole whole_log_sum(const struct line *line)
{
    return onnx_whole_of(log((double)whole_sum(line)));
}

/* The logarithm is at least 0, because the largest is one of the elements; cut towards zero. */
static onnx_whole whole_log_sum_exp(const struct line *line)
{
    onnx_whole most = whole_largest(line);
    double sum = 0;
    for (size_t i = 0; i < line->walk->n; i++) {
        sum += exp((double)(whole_at(line, i) - most));
    }
    double more = line->walk->n > 0 ? log(sum) : 0;
    onnx_whole result = most + onnx_whole_of(more);
    return result < 0 && more != floor(more) ? result + 1 : result;
}

/* ---- running ---------------------------------------------------------------------------------- */

static weir_status run(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const struct reduction *r = call->op->detail;
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
    WEIR_TRY(onnx_out(call, 0, x->dtype, rank, dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        const struct line line = {x, walk_at(&outer, i), &inner};
        if (onnx_is_whole(x->dtype)) {
            onnx_whole_put(y, i, r->whole(&line));
        } else {
            onnx_put(y, i, sum_up(r, &line));
        }
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
    if (x->dims[axis] == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "axis %d has no elements to choose from",
                              axis);
    }
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis || keeps) {
            dims[rank++] = i == axis ? 1 : x->dims[i];
        }
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT64, rank, dims, &y, err));
    struct onnx_split split = onnx_split_at(x, axis);
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t first = i / split.n_inner * split.n * split.n_inner + i % split.n_inner, best = 0;
        struct onnx_number so_far = onnx_number_at(x, first);
        for (size_t k = 1; k < split.n; k++) {
            struct onnx_number value = onnx_number_at(x, first + k * split.n_inner);
            int order = onnx_number_order(value, so_far);
            bool is_less = order < 0 && !onnx_number_is_nan(so_far);
            bool is_first =
                is_max ? order > 0 : is_less || (order > 0 && onnx_number_is_nan(value));
            if (order == 0 ? takes_last : is_first) {
                so_far = value;
                best = k;
            }
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
    WEIR_TRY(onnx_axis(onnx_in_int(call, 1, 0), x->rank, &axis, err));
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    struct onnx_split split = onnx_split_at(x, axis);
    for (size_t i = 0; i < split.n_outer * split.n_inner; i++) {
        size_t first = i / split.n_inner * split.n * split.n_inner + i % split.n_inner;
        struct onnx_number sum = {0};
        for (size_t k = 0; k < split.n; k++) {
            size_t at = first + (is_reverse ? split.n - 1 - k : k) * split.n_inner;
            struct onnx_number with = onnx_number_add(sum, onnx_number_at(x, at));
            onnx_number_put(y, at, is_exclusive ? sum : with);
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
    REDUCE("ReduceSum", .begin = 0, .add = add, .whole = whole_sum),
    REDUCE("ReduceMean", .begin = 0, .add = add, .end = mean, .whole = whole_mean),
    REDUCE("ReduceL1", .begin = 0, .add = add_abs, .whole = whole_sum_abs),
    REDUCE("ReduceL2", .begin = 0, .add = add_square, .end = root, .whole = whole_root),
    REDUCE("ReduceSumSquare", .begin = 0, .add = add_square, .whole = whole_sum_square),
    REDUCE("ReduceProd", .begin = 1, .add = multiply, .whole = whole_product),
    REDUCE("ReduceMax", .begin = -INFINITY, .add = larger, .whole = whole_largest),
    REDUCE("ReduceMin", .begin = INFINITY, .add = smaller, .whole = whole_smallest),
    REDUCE("ReduceLogSum", .begin = 0, .add = add, .end = logarithm, .whole = whole_log_sum),
    REDUCE("ReduceLogSumExp", .begin = 0, .add = add, .end = logarithm, .is_after_max = true,
           .whole = whole_log_sum_exp),
    {"ArgMax", 1, 1, 1, run_arg, NULL},
    {"ArgMin", 1, 1, 1, run_arg, NULL},
    {"CumSum", 11, 2, 1, run_cumulative_sum, NULL},
};
const size_t onnx_n_ops_reduce = WEIR_ARRAY_LEN(onnx_ops_reduce);
