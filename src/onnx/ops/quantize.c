/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. */
#include "onnx/op.h"

#include "onnx/number.h"
#include "tensor/convert.h"

#include <math.h>

/** Which scale an element has: one of all, one for each index of an axis, or one for each block of
 *  an axis. */
struct scales {
    const struct weir_tensor *scale, *zero; /* zero: NULL if it is left out */
    struct onnx_split split;                /* of x, at the axis */
    bool is_whole, is_blocked;
    size_t block, n_blocks;
};

static weir_status find_scales(const struct onnx_call *call, struct scales *out,
                               struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *scale = onnx_in(call, 1);
    int64_t block = onnx_int(call, "block_size", 0);
    int32_t axis = 0;
    *out = (struct scales){.scale = scale,
                           .zero = onnx_in(call, 2),
                           .is_whole = scale->n_elems == 1 && block == 0,
                           .is_blocked = block > 0,
                           .block = (size_t)WEIR_MAX(block, 1),
                           .n_blocks = 1};
    if (out->zero != NULL && out->zero->n_elems != scale->n_elems) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu scales and %zu zero points",
                              scale->n_elems, out->zero->n_elems);
    }
    if (weir_dtype_class(scale->dtype) != WEIR_DTYPE_IS_FLOAT) {
        return onnx_refuse_dtype(scale->dtype, err);
    }
    if (out->is_whole) {
        return WEIR_OK;
    }
    WEIR_TRY(onnx_axis(onnx_int(call, "axis", 1), x->rank, &axis, err));
    out->split = onnx_split_at(x, axis);
    out->n_blocks = (out->split.n + out->block - 1) / out->block;
    size_t wanted =
        out->is_blocked ? out->split.n_outer * out->n_blocks * out->split.n_inner : out->split.n;
    return scale->n_elems == wanted
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%zu scales where %zu are expected",
                                scale->n_elems, wanted);
}

static size_t scale_of(const struct scales *s, size_t i)
{
    if (s->is_whole) {
        return 0;
    }
    size_t inner = i % s->split.n_inner, at = i / s->split.n_inner % s->split.n;
    size_t outer = i / s->split.n_inner / s->split.n;
    return s->is_blocked ? (outer * s->n_blocks + at / s->block) * s->split.n_inner + inner : at;
}

static void quantize(const struct weir_tensor *x, const struct scales *s,
                     enum weir_overflow overflow, struct weir_tensor *y)
{
    bool is_float = weir_dtype_class(y->dtype) == WEIR_DTYPE_IS_FLOAT;
    const double low = is_float ? 0 : (double)onnx_whole_least(y->dtype);
    const double high = is_float ? 0 : (double)onnx_whole_most(y->dtype);
    for (size_t i = 0; i < x->n_elems; i++) {
        size_t k = scale_of(s, i);
        double zero = s->zero != NULL ? onnx_get(s->zero, k) : 0;
        double value = (double)((float)onnx_get(x, i) / (float)onnx_get(s->scale, k));
        value = is_float ? value + zero : fmin(fmax(nearbyint(value) + zero, low), high);
        weir_elems_from_f64(y->dtype, &value, (char *)y->data + i * weir_dtype_bytes(y->dtype), 1,
                            overflow);
    }
}

static weir_status run_quantize(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct weir_tensor *y;
    struct scales scales;
    enum weir_dtype dtype = weir_dtype_of(onnx_int(call, "output_dtype", 0));
    WEIR_TRY(find_scales(call, &scales, err));
    if (scales.zero != NULL) {
        dtype = scales.zero->dtype;
    } else if (dtype == WEIR_DTYPE_NONE) {
        dtype = WEIR_DTYPE_UINT8;
    }
    if (weir_dtype_class(dtype) > WEIR_DTYPE_IS_UNSIGNED ||
        weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(dtype, err);
    }
    WEIR_TRY(onnx_out(call, 0, dtype, x->rank, x->dims, &y, err));
    quantize(x, &scales,
             onnx_int(call, "saturate", 1) != 0 ? WEIR_OVERFLOW_SATURATES : WEIR_OVERFLOW_IS_LOST,
             y);
    return WEIR_OK;
}

static weir_status run_dequantize(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct weir_tensor *y;
    struct scales s;
    enum weir_dtype dtype = weir_dtype_of(onnx_int(call, "output_dtype", 0));
    WEIR_TRY(find_scales(call, &s, err));
    if (weir_dtype_class(x->dtype) > WEIR_DTYPE_IS_UNSIGNED) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    dtype = dtype != WEIR_DTYPE_NONE ? dtype : s.scale->dtype;
    WEIR_TRY(onnx_out(call, 0, dtype, x->rank, x->dims, &y, err));
    for (size_t i = 0; i < x->n_elems; i++) {
        size_t k = scale_of(&s, i);
        double zero = s.zero != NULL ? onnx_get(s.zero, k) : 0;
        double value = (onnx_get(x, i) - zero) * onnx_get(s.scale, k);
        weir_elems_from_f64(dtype, &value, (char *)y->data + i * weir_dtype_bytes(dtype), 1,
                            WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

static weir_status run_dynamic(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0);
    struct weir_tensor *y, *scale, *zero;
    float low = 0, high = 0;
    if (x->dtype != WEIR_DTYPE_FLOAT || call->n_out != 3) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    const float *from = x->data;
    for (size_t i = 0; i < x->n_elems; i++) {
        low = fminf(low, from[i]);
        high = fmaxf(high, from[i]);
    }
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_UINT8, x->rank, x->dims, &y, err));
    WEIR_TRY(onnx_out(call, 1, WEIR_DTYPE_FLOAT, 0, NULL, &scale, err));
    WEIR_TRY(onnx_out(call, 2, WEIR_DTYPE_UINT8, 0, NULL, &zero, err));
    float step = (high - low) / 255;
    step = step > 0 ? step : 1;
    *(float *)scale->data = step;
    *(uint8_t *)zero->data = (uint8_t)nearbyintf(fminf(fmaxf(-low / step, 0), 255));
    struct scales scales = {.scale = scale, .zero = zero, .is_whole = true};
    quantize(x, &scales, WEIR_OVERFLOW_SATURATES, y);
    return WEIR_OK;
}

const struct onnx_op onnx_ops_quantize[] = {
    {"QuantizeLinear", 10, 2, 1, run_quantize, NULL},
    {"DequantizeLinear", 10, 2, 1, run_dequantize, NULL},
    {"DynamicQuantizeLinear", 11, 1, 3, run_dynamic, NULL},
};
const size_t onnx_n_ops_quantize = WEIR_ARRAY_LEN(onnx_ops_quantize);
