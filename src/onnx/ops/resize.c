/* Resize and Upsample. Each axis is resized by itself; Keys' cubic convolution (IEEE Transactions on
 * Acoustics, Speech and Signal Processing, 1981). */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST ((onnx_whole)1 << 53)

enum mode { NEAREST, LINEAR, CUBIC };

enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    TF_CROP,
};

enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, FLOOR, CEIL };

/** Sizes give it as a quotient of integers, so that a position is rounded but once, and what lies in
 *  the middle of two pixels does so exactly. */
struct ratio {
    double over, under; /* under is 1 for a scale that was given as such */
};

struct resize {
    enum mode mode;
    enum coordinates coordinates;
    enum rounding rounding;
    bool excludes_outside, has_antialias;
    double cubic_a, extrapolation;
    int32_t rank;
    int64_t in[WEIR_TENSOR_RANK_MAX], out[WEIR_TENSOR_RANK_MAX];
    struct ratio scale[WEIR_TENSOR_RANK_MAX];
    double roi_begin[WEIR_TENSOR_RANK_MAX], roi_end[WEIR_TENSOR_RANK_MAX];
};

/* ---- options ---------------------------------------------------------------------------------- */

static int choose(const struct onnx_call *call, const char *name, const char *const *texts,
                  size_t n, int otherwise)
{
    for (size_t i = 0; i < n; i++) {
        if (onnx_text_is(call, name, "", texts[i])) {
            return (int)i;
        }
    }
    return otherwise;
}

static void read_options(const struct onnx_call *call, struct resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    bool is_old = call->op->since < 11; /* Upsample, and Resize of opset 10 */
    r->mode = (enum mode)choose(call, "mode", modes, 3, NEAREST);
    r->coordinates = (enum coordinates)choose(call, "coordinate_transformation_mode", coordinates,
                                              7, is_old ? ASYMMETRIC : HALF_PIXEL);
    r->rounding = (enum rounding)choose(call, "nearest_mode", roundings, 4,
                                        is_old ? FLOOR : ROUND_PREFER_FLOOR);
    r->excludes_outside = onnx_int(call, "exclude_outside", 0) != 0;
    r->has_antialias = onnx_int(call, "antialias", 0) != 0;
    r->cubic_a = onnx_float(call, "cubic_coeff_a", -0.75F);
    r->extrapolation = onnx_float(call, "extrapolation_value", 0);
}

static weir_status read_axes(const struct onnx_call *call, int32_t rank, int32_t *axes, size_t *n,
                             struct weir_error *err)
{
    const int64_t *list = onnx_ints(call, "axes", n);
    if (list == NULL) {
        *n = (size_t)rank;
    }
    if (*n > (size_t)rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu axes of %d", *n, rank);
    }
    for (size_t i = 0; i < *n; i++) {
        WEIR_TRY(onnx_axis(list != NULL ? list[i] : (int64_t)i, rank, &axes[i], err));
    }
    return WEIR_OK;
}

static double scale_of(struct ratio ratio)
{
    return ratio.over / ratio.under;
}

static weir_status set_scale(struct resize *r, int32_t axis, struct ratio scale, double out,
                             struct weir_error *err)
{
    if (!(scale.over > 0) || !(out >= 0 && out <= INT_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "axis %d: scale %g", axis, scale_of(scale));
    }
    r->scale[axis] = scale;
    r->out[axis] = (int64_t)out;
    return WEIR_OK;
}

/* The sizes asked for; with a policy one scale for all, so that none (or each) is exceeded. */
static weir_status read_sizes(const struct onnx_call *call, const int64_t *sizes,
                              const int32_t *axes, size_t n, struct resize *r,
                              struct weir_error *err)
{
    bool is_not_larger = onnx_text_is(call, "keep_aspect_ratio_policy", "stretch", "not_larger");
    bool is_stretched = onnx_text_is(call, "keep_aspect_ratio_policy", "stretch", "stretch");
    struct ratio common = {1, 1};
    for (size_t i = 0; i < n; i++) {
        const struct ratio own = {(double)sizes[i], (double)r->in[axes[i]]};
        double difference = own.over * common.under - common.over * own.under;
        common = i == 0 || (is_not_larger ? difference < 0 : difference > 0) ? own : common;
        if (is_stretched) {
            WEIR_TRY(set_scale(r, axes[i], own, own.over, err));
        }
    }
    for (size_t i = 0; i < n && !is_stretched; i++) {
        double twice = 2 * common.over * (double)r->in[axes[i]]; /* rounded, halves up */
        WEIR_TRY(
            set_scale(r, axes[i], common, floor((twice + common.under) / (2 * common.under)), err));
    }
    return WEIR_OK;
}

static weir_status read_targets(const struct onnx_call *call, struct resize *r,
                                struct weir_error *err)
{
    size_t n, n_listed;
    int32_t axes[WEIR_TENSOR_RANK_MAX];
    int64_t asked[WEIR_TENSOR_RANK_MAX];
    bool is_old = call->op->since < 11;
    const struct weir_tensor *roi = is_old ? NULL : onnx_in(call, 1);
    const struct weir_tensor *scales = onnx_in(call, is_old ? 1 : 2);
    const struct weir_tensor *sizes = is_old ? NULL : onnx_in(call, 3);
    const float *listed = onnx_floats(call, "scales", &n_listed); /* Upsample of opset 7 */
    WEIR_TRY(read_axes(call, r->rank, axes, &n, err));
    size_t n_scales = scales != NULL ? scales->n_elems : n_listed;
    if (sizes != NULL && sizes->n_elems == n) {
        WEIR_TRY(onnx_in_ints(call, 3, n, asked, &n, err));
        WEIR_TRY(read_sizes(call, asked, axes, n, r, err));
    } else if (n_scales == n) {
        for (size_t i = 0; i < n; i++) {
            double scale = scales != NULL ? onnx_get(scales, i) : (double)listed[i];
            WEIR_TRY(set_scale(r, axes[i], (struct ratio){scale, 1},
                               floor((double)r->in[axes[i]] * scale), err));
        }
    } else {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu scales for %zu axes", n_scales, n);
    }
    for (size_t i = 0; r->coordinates == TF_CROP && i < n; i++) {
        if (roi == NULL || roi->n_elems != 2 * n) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a region is missing");
        }
        r->roi_begin[axes[i]] = onnx_get(roi, i);
        r->roi_end[axes[i]] = onnx_get(roi, i + n);
    }
    return WEIR_OK;
}

/* ---- one axis --------------------------------------------------------------------------------- */

/* Where output x lies in the input: one division of what is, for sizes, an integer by another. */
static double position(const struct resize *r, int32_t axis, double x)
{
    const double in = (double)r->in[axis], over = r->scale[axis].over, under = r->scale[axis].under;
    const double out = in * over / under, half = ((2 * x + 1) * under - over) / (2 * over);
    const double span = (r->roi_end[axis] - r->roi_begin[axis]) * (in - 1);
    switch (r->coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return x * under / over;
    case TF_CROP:
        return r->roi_begin[axis] * (in - 1) + (out == 1 ? span / 2 : x * span / (out - 1));
    case TF_HALF_PIXEL:
        return (2 * x + 1) * under / (2 * over);
    case PYTORCH_HALF_PIXEL:
        return r->out[axis] == 1 ? -0.5 : half;
    case HALF_PIXEL_SYMMETRIC: /* the centre of what is asked for lies at the centre of the input */
        return ((2 * x + 1 - (double)r->out[axis]) * under + (in - 1) * over) / (2 * over);
    default:
        return half;
    }
}

static int64_t clamp(double index, int64_t n)
{
    return index < 0 ? 0 : index > (double)(n - 1) ? n - 1 : (int64_t)index;
}

static int64_t nearest(const struct resize *r, int32_t axis, double x)
{
    double at = r->rounding == FLOOR               ? floor(x)
                : r->rounding == CEIL              ? ceil(x)
                : r->rounding == ROUND_PREFER_CEIL ? floor(x + 0.5)
                                                   : ceil(x - 0.5);
    return clamp(at, r->in[axis]);
}

static double weight(const struct resize *r, double distance)
{
    const double d = fabs(distance), a = r->cubic_a;
    if (r->mode == LINEAR) {
        return fmax(0, 1 - d);
    }
    return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : 0;
}

/** What an output of an axis is made of. */
struct tap {
    int64_t index;
    double weight;
};

struct taps {
    struct tap *taps;
    size_t n; /* of each output */
    bool *is_outside;
};

static void free_taps(struct taps *taps)
{
    free(taps->taps);
    free(taps->is_outside);
}

static double squeeze(const struct resize *r, int32_t axis)
{
    return r->has_antialias ? fmin(scale_of(r->scale[axis]), 1) : 1;
}

static int64_t first_tap(const struct resize *r, int32_t axis)
{
    double support = r->mode == LINEAR ? 1 : 2;
    return (int64_t)floor(-support / squeeze(r, axis)) + 1;
}

static void fill_taps(const struct resize *r, int32_t axis, double x, struct tap *taps, size_t n)
{
    double base = ceil(x) - 1, sum = 0;
    int64_t first = first_tap(r, axis);
    if (r->mode == NEAREST) {
        taps[0] = (struct tap){nearest(r, axis, x), 1};
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double at = base + (double)(first + (int64_t)i);
        bool is_outside = at < 0 || at > (double)(r->in[axis] - 1);
        taps[i].index = clamp(at, r->in[axis]);
        taps[i].weight =
            is_outside && r->excludes_outside ? 0 : weight(r, (at - x) * squeeze(r, axis));
        sum += taps[i].weight;
    }
    for (size_t i = 0; i < n && (r->excludes_outside || r->has_antialias); i++) {
        taps[i].weight /= sum;
    }
}

static weir_status make_taps(const struct resize *r, int32_t axis, struct taps *out,
                             struct weir_error *err)
{
    size_t n_out = (size_t)r->out[axis];
    double per_output = r->mode == NEAREST ? 1 : 2 - 2 * (double)first_tap(r, axis);
    if (per_output * (double)n_out > 1e8) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%zu outputs of %.0f inputs each", n_out,
                              per_output);
    }
    out->n = (size_t)per_output;
    out->taps = calloc(n_out * out->n + 1, sizeof *out->taps);
    out->is_outside = calloc(n_out + 1, sizeof *out->is_outside);
    if (out->taps == NULL || out->is_outside == NULL) {
        free_taps(out);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for resizing");
    }
    for (size_t i = 0; i < n_out; i++) {
        double x = position(r, axis, (double)i);
        out->is_outside[i] = r->coordinates == TF_CROP && (x < 0 || x > (double)(r->in[axis] - 1));
        fill_taps(r, axis, x, out->taps + i * out->n, out->n);
    }
    return WEIR_OK;
}

/* x has the sizes of the output in front of the axis and those of the input from it on. */
static weir_status resize_axis(struct onnx_call *call, const struct resize *r, int32_t axis,
                               const struct weir_tensor *x, struct weir_tensor **out,
                               struct weir_error *err)
{
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct taps taps = {.n = 0};
    struct weir_tensor *y;
    size_t elem_bytes = weir_dtype_bytes(x->dtype);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = r->out[axis];
    WEIR_TRY(make_taps(r, axis, &taps, err));
    weir_status status = onnx_scratch(call, x->dtype, x->rank, dims, &y, err);
    if (status != WEIR_OK) {
        free_taps(&taps);
        return status;
    }
    struct onnx_split from = onnx_split_at(x, axis), to = onnx_split_at(y, axis);
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t inner = i % to.n_inner, at = i / to.n_inner % to.n, outer = i / to.n_inner / to.n;
        const struct tap *tap = taps.taps + at * taps.n;
        size_t row = outer * from.n * from.n_inner + inner;
        double sum = 0;
        if (r->mode == NEAREST && !taps.is_outside[at]) {
            memcpy((char *)y->data + i * elem_bytes,
                   (const char *)x->data + (row + (size_t)tap->index * from.n_inner) * elem_bytes,
                   elem_bytes);
            continue;
        }
        for (size_t k = 0; k < taps.n; k++) {
            sum += tap[k].weight * onnx_get(x, row + (size_t)tap[k].index * from.n_inner);
        }
        onnx_put(y, i, taps.is_outside[at] ? r->extrapolation : sum);
    }
    free_taps(&taps);
    *out = y;
    return WEIR_OK;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* What is weighed has room for the weights' fractions between one axis and the next. */
static weir_status begin(struct onnx_call *call, const struct resize *r, struct weir_tensor **out,
                         struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0);
    bool is_wide = weir_dtype_bits(x->dtype) == 64 && onnx_is_whole(x->dtype);
    if (r->mode == NEAREST || x->dtype == WEIR_DTYPE_FLOAT || x->dtype == WEIR_DTYPE_DOUBLE) {
        *out = weir_tensor_retain(x);
        return WEIR_OK;
    }
    for (size_t i = 0; is_wide && i < x->n_elems; i++) {
        onnx_whole value = onnx_whole_at(x, i);
        if (value > WIDEST || value < -WIDEST) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "integers beyond 2^53 have no means: resize with mode nearest");
        }
    }
    WEIR_TRY(onnx_scratch(call, WEIR_DTYPE_DOUBLE, x->rank, x->dims, out, err));
    weir_elems_to_f64(x->dtype, x->data, (*out)->data, x->n_elems);
    return WEIR_OK;
}

/* Integers are the nearest to the mean, of their type's range: cubic curves go beyond the pixels. */
static weir_status finish(struct onnx_call *call, const struct weir_tensor *so_far,
                          struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    const double *from = so_far->data;
    struct weir_tensor *y;
    WEIR_TRY(onnx_out(call, 0, x->dtype, so_far->rank, so_far->dims, &y, err));
    for (size_t i = 0; i < y->n_elems; i++) {
        if (onnx_is_whole(x->dtype)) {
            onnx_whole value = onnx_whole_of(nearbyint(from[i]));
            value = WEIR_MAX(value, onnx_whole_least(x->dtype));
            onnx_whole_put(y, i, WEIR_MIN(value, onnx_whole_most(x->dtype)));
        } else {
            onnx_put(y, i, from[i]);
        }
    }
    return WEIR_OK;
}

/* Takes the reference to so_far. */
static weir_status resize_all(struct onnx_call *call, const struct resize *r,
                              struct weir_tensor *so_far, struct weir_error *err)
{
    for (int32_t axis = 0; axis < r->rank; axis++) {
        bool is_whole = r->roi_begin[axis] == 0 && r->roi_end[axis] == 1;
        struct weir_tensor *y = NULL;
        if (scale_of(r->scale[axis]) == 1 && r->in[axis] == r->out[axis] && is_whole) {
            continue;
        }
        weir_status status = resize_axis(call, r, axis, so_far, &y, err);
        weir_tensor_release(so_far);
        WEIR_TRY(status);
        so_far = y;
    }
    weir_status status = so_far->dtype == onnx_in(call, 0)->dtype
                             ? onnx_alias(call, 0, so_far, so_far->rank, so_far->dims, err)
                             : finish(call, so_far, err);
    weir_tensor_release(so_far);
    return status;
}

static weir_status run(struct onnx_call *call, struct weir_error *err)
{
    struct weir_tensor *x = onnx_in(call, 0), *begun;
    struct resize r = {.rank = x->rank};
    read_options(call, &r);
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_BOOL ||
        (x->dtype == WEIR_DTYPE_BOOL && r.mode != NEAREST)) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    for (int32_t i = 0; i < x->rank; i++) {
        r.in[i] = r.out[i] = x->dims[i];
        r.scale[i] = (struct ratio){1, 1};
        r.roi_end[i] = 1;
        if (x->dims[i] < 1) {
            return weir_error_set(err, WEIR_ERR_INVALID, "axis %d is empty", i);
        }
    }
    WEIR_TRY(read_targets(call, &r, err));
    WEIR_TRY(begin(call, &r, &begun, err));
    return resize_all(call, &r, begun, err);
}

const struct onnx_op onnx_ops_resize[] = {
    {"Resize", 10, 2, 1, run, NULL},
    {"Resize", 11, 1, 1, run, NULL},
    {"Upsample", 7, 1, 1, run, NULL},
};
const size_t onnx_n_ops_resize = WEIR_ARRAY_LEN(onnx_ops_resize);
