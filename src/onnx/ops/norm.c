/* Normalisations: batch, instance, group, layer, root mean square, mean and variance. */
#include "onnx/op.h"

#include <math.h>

static weir_status check_floats(const struct weir_tensor *x, struct weir_error *err)
{
    return weir_dtype_class(x->dtype) == WEIR_DTYPE_IS_FLOAT ? WEIR_OK
                                                             : onnx_refuse_dtype(x->dtype, err);
}

static weir_status check_count(const struct weir_tensor *tensor, size_t n, const char *what,
                               struct weir_error *err)
{
    if (tensor->n_elems != n) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s has %zu elements, expected %zu", what,
                              tensor->n_elems, n);
    }
    return check_floats(tensor, err);
}

/** Mean and inverse deviation of n elements. */
struct moments {
    double mean, inverse;
};

static struct moments find_moments(const struct weir_tensor *x, size_t first, size_t n, double eps)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += onnx_get(x, first + i);
    }
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double off = onnx_get(x, first + i) - mean;
        squares += off * off;
    }
    return (struct moments){mean, 1 / sqrt(squares / (double)n + eps)};
}

/* ---- batch ------------------------------------------------------------------------------------ */

/** What a channel is normalised by. */
struct channel {
    double mean, variance; /* of all elements, not of a sample: divided by their number */
};

/* A list of numbers, without channels, is one channel. */
static struct onnx_split split_channels(const struct weir_tensor *x)
{
    return x->rank > 1 ? onnx_split_at(x, 1) : (struct onnx_split){x->n_elems, 1, 1};
}

static struct channel channel_of_batch(const struct weir_tensor *x, struct onnx_split split,
                                       size_t c)
{
    const double n = (double)split.n_outer * (double)split.n_inner;
    double sum = 0, squares = 0;
    for (size_t image = 0; image < split.n_outer; image++) {
        size_t first = (image * split.n + c) * split.n_inner;
        for (size_t i = first; i < first + split.n_inner; i++) {
            sum += onnx_get(x, i);
        }
    }
    double mean = sum / n;
    for (size_t image = 0; image < split.n_outer; image++) {
        size_t first = (image * split.n + c) * split.n_inner;
        for (size_t i = first; i < first + split.n_inner; i++) {
            double off = onnx_get(x, i) - mean;
            squares += off * off;
        }
    }
    return (struct channel){mean, squares / n};
}

static void normalise_channel(const struct onnx_call *call, struct onnx_split split, size_t c,
                              struct channel channel, struct weir_tensor *y)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const double eps = onnx_float(call, "epsilon", 1e-5F);
    double scale = onnx_get(call->in[1], c) / sqrt(channel.variance + eps);
    double shift = onnx_get(call->in[2], c) - channel.mean * scale;
    for (size_t image = 0; image < split.n_outer; image++) {
        size_t first = (image * split.n + c) * split.n_inner;
        for (size_t i = first; i < first + split.n_inner; i++) {
            onnx_put(y, i, onnx_get(x, i) * scale + shift);
        }
    }
}

static weir_status check_batch(const struct onnx_call *call, bool is_training,
                               struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const size_t n = split_channels(x).n;
    static const char *const names[] = {"", "scale", "bias", "mean", "variance"};
    WEIR_TRY(check_floats(x, err));
    if (is_training && x->n_elems == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the mean of a batch without elements");
    }
    for (size_t i = 1; i < 5; i++) {
        WEIR_TRY(check_count(onnx_in(call, i), n, names[i], err));
    }
    return WEIR_OK;
}

/* In training mode a channel is normalised by its own mean and variance, and the means over batches
 * that were given are moved towards them. */
static weir_status run_batch(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const bool is_training = onnx_int(call, "training_mode", 0) != 0;
    const double momentum = onnx_float(call, "momentum", 0.9F);
    struct weir_tensor *y, *running[2] = {NULL};
    WEIR_TRY(check_batch(call, is_training, err));
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    for (size_t i = 0; is_training && i < 2; i++) {
        if (onnx_has_out(call, i + 1)) {
            WEIR_TRY(onnx_out_like(call, i + 1, onnx_in(call, i + 3), &running[i], err));
        }
    }
    struct onnx_split split = split_channels(x);
    for (size_t c = 0; c < split.n; c++) {
        const struct channel given = {onnx_get(call->in[3], c), onnx_get(call->in[4], c)};
        const struct channel own = is_training ? channel_of_batch(x, split, c) : given;
        normalise_channel(call, split, c, own, y);
        if (running[0] != NULL) {
            onnx_put(running[0], c, given.mean * momentum + own.mean * (1 - momentum));
        }
        if (running[1] != NULL) {
            onnx_put(running[1], c, given.variance * momentum + own.variance * (1 - momentum));
        }
    }
    return WEIR_OK;
}

/* ---- instance and group ----------------------------------------------------------------------- */

/* Each of n_groups of channels of an image has moments of its own. Scale and bias: of channels, or
 * of groups (GroupNormalization before opset 21). */
static weir_status normalise_groups(struct onnx_call *call, size_t n_groups, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *scale = onnx_in(call, 1);
    const double eps = onnx_float(call, "epsilon", 1e-5F);
    struct weir_tensor *y;
    struct onnx_split split = onnx_split_at(x, 1);
    if (n_groups == 0 || split.n % n_groups != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu channels in %zu groups", split.n,
                              n_groups);
    }
    bool is_of_groups = scale->n_elems == n_groups;
    WEIR_TRY(check_floats(x, err));
    WEIR_TRY(check_count(scale, is_of_groups ? n_groups : split.n, "scale", err));
    WEIR_TRY(check_count(onnx_in(call, 2), scale->n_elems, "bias", err));
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    size_t n_each = split.n / n_groups * split.n_inner;
    for (size_t group = 0; group < split.n_outer * n_groups; group++) {
        struct moments m = find_moments(x, group * n_each, n_each, eps);
        for (size_t i = group * n_each; i < (group + 1) * n_each; i++) {
            size_t c = is_of_groups ? group % n_groups : i / split.n_inner % split.n;
            onnx_put(y, i,
                     (onnx_get(x, i) - m.mean) * m.inverse * onnx_get(scale, c) +
                         onnx_get(call->in[2], c));
        }
    }
    return WEIR_OK;
}

static weir_status run_instance(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    return x->rank < 3 ? weir_error_set(err, WEIR_ERR_INVALID, "%d dimensions", x->rank)
                       : normalise_groups(call, (size_t)x->dims[1], err);
}

static weir_status run_group(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    int64_t n = onnx_int(call, "num_groups", 0);
    return x->rank < 2 || n < 1 || n > x->dims[1]
               ? weir_error_set(err, WEIR_ERR_INVALID, "%lld groups", (long long)n)
               : normalise_groups(call, (size_t)n, err);
}

/* ---- layer ------------------------------------------------------------------------------------ */

/* Scale and bias are broadcast over the normalised dimensions. */
static weir_status layer_weight(const struct onnx_call *call, size_t input, size_t n,
                                struct weir_error *err)
{
    const struct weir_tensor *tensor = onnx_in(call, input);
    if (tensor != NULL && (tensor->n_elems == 0 || n % tensor->n_elems != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "input %zu has %zu elements for %zu", input,
                              tensor->n_elems, n);
    }
    return tensor != NULL ? check_floats(tensor, err) : WEIR_OK;
}

static weir_status layer_moments_out(struct onnx_call *call, int32_t axis, struct weir_tensor **out,
                                     struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    enum weir_dtype dtype = weir_dtype_of(onnx_int(call, "stash_type", WEIR_DTYPE_FLOAT));
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    for (int32_t i = 0; i < x->rank; i++) {
        dims[i] = i < axis ? x->dims[i] : 1;
    }
    for (size_t i = 1; i < 3; i++) {
        if (onnx_has_out(call, i)) {
            WEIR_TRY(onnx_out(call, i, dtype, x->rank, dims, &out[i - 1], err));
        }
    }
    return WEIR_OK;
}

static weir_status run_layer(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *scale = onnx_in(call, 1);
    const struct weir_tensor *bias = onnx_in(call, 2);
    const double eps = onnx_float(call, "epsilon", 1e-5F);
    struct weir_tensor *y, *moments[2] = {NULL};
    int32_t axis;
    WEIR_TRY(check_floats(x, err));
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", -1), x->rank, &axis, err));
    struct onnx_split split = onnx_split_at(x, axis);
    size_t n = split.n * split.n_inner;
    WEIR_TRY(layer_weight(call, 1, n, err));
    WEIR_TRY(layer_weight(call, 2, n, err));
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    WEIR_TRY(layer_moments_out(call, axis, moments, err));
    for (size_t row = 0; row < split.n_outer; row++) {
        struct moments m = find_moments(x, row * n, n, eps);
        for (size_t i = 0; i < n; i++) {
            double value = (onnx_get(x, row * n + i) - m.mean) * m.inverse;
            onnx_put(y, row * n + i,
                     value * onnx_get(scale, i % scale->n_elems) +
                         (bias != NULL ? onnx_get(bias, i % bias->n_elems) : 0));
        }
        if (moments[0] != NULL) {
            onnx_put(moments[0], row, m.mean);
        }
        if (moments[1] != NULL) {
            onnx_put(moments[1], row, m.inverse);
        }
    }
    return WEIR_OK;
}

static weir_status run_rms(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *scale = onnx_in(call, 1);
    const double eps = onnx_float(call, "epsilon", 1e-5F);
    struct weir_tensor *y;
    int32_t axis;
    WEIR_TRY(check_floats(x, err));
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", -1), x->rank, &axis, err));
    struct onnx_split split = onnx_split_at(x, axis);
    size_t n = split.n * split.n_inner;
    WEIR_TRY(layer_weight(call, 1, n, err));
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    for (size_t row = 0; row < split.n_outer; row++) {
        double squares = 0;
        for (size_t i = row * n; i < (row + 1) * n; i++) {
            squares += onnx_get(x, i) * onnx_get(x, i);
        }
        double inverse = 1 / sqrt(squares / (double)n + eps);
        for (size_t i = 0; i < n; i++) {
            onnx_put(y, row * n + i,
                     onnx_get(x, row * n + i) * inverse * onnx_get(scale, i % scale->n_elems));
        }
    }
    return WEIR_OK;
}

/* ---- mean and variance ------------------------------------------------------------------------ */

/* The group of element i: what is left of its place without the axes that are normalised over. */
static size_t group_of(const struct weir_tensor *x, const bool *axes, size_t i)
{
    size_t group = 0, step = 1;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        group += axes[d] ? 0 : i % (size_t)x->dims[d] * step;
        step *= axes[d] ? 1 : (size_t)x->dims[d];
        i /= (size_t)x->dims[d];
    }
    return group;
}

static weir_status run_mean_variance(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    bool axes[WEIR_TENSOR_RANK_MAX], has_axes;
    struct weir_tensor *y, *table;
    int64_t n_groups = 1;
    WEIR_TRY(check_floats(x, err));
    WEIR_TRY(onnx_axes(call, SIZE_MAX, x->rank, axes, &has_axes, err));
    for (int32_t i = 0; i < x->rank; i++) {
        axes[i] = has_axes ? axes[i] : i != 1; /* by default over all but the channels */
        n_groups *= axes[i] ? 1 : x->dims[i];
    }
    WEIR_TRY(onnx_out_like(call, 0, x, &y, err));
    WEIR_TRY(onnx_scratch(call, WEIR_DTYPE_DOUBLE, 2, (int64_t[]){3, n_groups}, &table, err));
    double *sums = table->data, *squares = sums + n_groups, *counts = squares + n_groups;
    for (size_t i = 0; i < x->n_elems; i++) {
        size_t group = group_of(x, axes, i);
        double value = onnx_get(x, i);
        sums[group] += value;
        squares[group] += value * value;
        counts[group]++;
    }
    for (size_t i = 0; i < x->n_elems; i++) {
        size_t group = group_of(x, axes, i);
        double mean = sums[group] / counts[group];
        double variance = squares[group] / counts[group] - mean * mean;
        variance = variance < 0 ? 0 : variance;
        onnx_put(y, i, (onnx_get(x, i) - mean) / (sqrt(variance) + 1e-9));
    }
    weir_tensor_release(table);
    return WEIR_OK;
}

const struct onnx_op onnx_ops_norm[] = {
    {"BatchNormalization", 6, 5, 5, run_batch, NULL},
    {"InstanceNormalization", 6, 3, 1, run_instance, NULL},
    {"GroupNormalization", 18, 3, 1, run_group, NULL},
    {"LayerNormalization", 17, 2, 3, run_layer, NULL},
    {"RMSNormalization", 23, 2, 1, run_rms, NULL},
    {"MeanVarianceNormalization", 9, 1, 1, run_mean_variance, NULL},
};
const size_t onnx_n_ops_norm = WEIR_ARRAY_LEN(onnx_ops_norm);
