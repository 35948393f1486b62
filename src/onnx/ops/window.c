#include "window.h"

#include <limits.h>

/* Of a plane: a picture of 4K by a kernel of 8 by 8. More is a mistake, and would run for hours. */
#define TAPS_MAX ((size_t)1 << 29)

static weir_status read_list(const struct onnx_call *call, const char *name, int32_t rank,
                             int64_t otherwise, int64_t *out, struct weir_error *err)
{
    size_t n;
    const int64_t *list = onnx_ints(call, name, &n);
    if (list != NULL && n != (size_t)rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s has %zu numbers, expected %d", name, n,
                              rank);
    }
    for (int32_t i = 0; i < rank; i++) {
        out[i] = list != NULL ? list[i] : otherwise;
        if (out[i] < 1 || out[i] > INT_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s has %lld", name, (long long)out[i]);
        }
    }
    return WEIR_OK;
}

static weir_status read_pads(const struct onnx_call *call, struct window *w, struct weir_error *err)
{
    size_t n;
    const int64_t *list = onnx_ints(call, "pads", &n);
    if (list != NULL && n != 2 * (size_t)w->rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "pads has %zu numbers, expected %d", n,
                              2 * w->rank);
    }
    for (int32_t i = 0; list != NULL && i < w->rank; i++) {
        w->before[i] = list[i];
        w->after[i] = list[i + w->rank];
        if (w->before[i] < 0 || w->after[i] < 0 || w->before[i] > INT_MAX ||
            w->after[i] > INT_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "pads of %lld and %lld",
                                  (long long)w->before[i], (long long)w->after[i]);
        }
    }
    return WEIR_OK;
}

/* As many outputs as the input has steps; what is to be added is shared by both sides. */
static void pad_same(struct window *w, int32_t i, bool is_upper)
{
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
    int64_t total = WEIR_MAX((w->out[i] - 1) * w->stride[i] + reach - w->in[i], (int64_t)0);
    w->before[i] = is_upper ? total / 2 : total - total / 2;
    w->after[i] = total - w->before[i];
}

static void count_outputs(struct window *w, int32_t i, bool is_ceil)
{
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t span = w->in[i] + w->before[i] + w->after[i] - reach;
    w->out[i] = span < 0 ? 0 : (span + (is_ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if (is_ceil && w->out[i] > 0 && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->before[i]) {
        w->out[i]--; /* it would begin behind the image */
    }
}

weir_status window_read(const struct onnx_call *call, const struct weir_tensor *x,
                        const int64_t *kernel, bool is_ceil, struct window *w,
                        struct weir_error *err)
{
    bool is_upper = onnx_text_is(call, "auto_pad", "NOTSET", "SAME_UPPER");
    bool is_same = is_upper || onnx_text_is(call, "auto_pad", "NOTSET", "SAME_LOWER");
    *w = (struct window){.rank = x->rank - 2, .n_in = 1, .n_out = 1, .n_kernel = 1};
    if (w->rank < 1 || w->rank > WINDOW_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "inputs of %d dimensions are not supported", x->rank);
    }
    WEIR_TRY(read_list(call, "strides", w->rank, 1, w->stride, err));
    WEIR_TRY(read_list(call, "dilations", w->rank, 1, w->dilation, err));
    if (kernel == NULL) {
        WEIR_TRY(read_list(call, "kernel_shape", w->rank, 0, w->kernel, err));
    }
    if (onnx_text_is(call, "auto_pad", "NOTSET", "NOTSET")) {
        WEIR_TRY(read_pads(call, w, err));
    }
    for (int32_t i = 0; i < w->rank; i++) {
        w->kernel[i] = kernel != NULL ? kernel[i] : w->kernel[i];
        w->in[i] = x->dims[i + 2];
        if (w->kernel[i] < 1 || w->kernel[i] > INT_MAX / w->dilation[i] || w->in[i] > INT_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a kernel of %lld",
                                  (long long)w->kernel[i]);
        }
        if (is_same) {
            pad_same(w, i, is_upper);
        } else {
            count_outputs(w, i, is_ceil);
        }
        w->n_in *= (size_t)w->in[i];
        w->n_out *= (size_t)w->out[i];
        w->n_kernel *= (size_t)w->kernel[i];
    }
    return w->n_kernel <= TAPS_MAX && w->n_out <= TAPS_MAX / w->n_kernel
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "a kernel of %zu taps at %zu places: at most %zu taps are computed",
                                w->n_kernel, w->n_out, TAPS_MAX);
}

weir_status window_turn(const struct onnx_call *call, struct window *w, struct weir_error *err)
{
    size_t n_extra, n_shape;
    const int64_t *extra = onnx_ints(call, "output_padding", &n_extra);
    const int64_t *shape = onnx_ints(call, "output_shape", &n_shape);
    bool is_upper = onnx_text_is(call, "auto_pad", "NOTSET", "SAME_UPPER");
    bool is_same = is_upper || onnx_text_is(call, "auto_pad", "NOTSET", "SAME_LOWER");
    size_t skip = n_shape > (size_t)w->rank ? n_shape - (size_t)w->rank : 0;
    w->n_out = 1;
    for (int32_t i = 0; i < w->rank; i++) {
        int64_t more = extra != NULL && (size_t)i < n_extra ? extra[i] : 0;
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t full = (w->in[i] - 1) * w->stride[i] + reach + more;
        if (shape != NULL || is_same) {
            w->out[i] = shape != NULL && (size_t)i + skip < n_shape ? shape[(size_t)i + skip]
                                                                    : w->in[i] * w->stride[i];
            int64_t total = full - w->out[i], half = total / 2 - (total % 2 < 0);
            w->before[i] = is_upper ? half : total - half;
        } else {
            w->out[i] = full - w->before[i] - w->after[i];
        }
        w->after[i] = full - more - w->before[i] - w->out[i];
        if (w->out[i] < 0 || more < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "an output of %lld pixels",
                                  (long long)w->out[i]);
        }
        w->n_out *= (size_t)w->out[i];
    }
    return WEIR_OK;
}

void window_out_dims(const struct window *w, int64_t n, int64_t c,
                     int64_t dims[WEIR_TENSOR_RANK_MAX])
{
    dims[0] = n;
    dims[1] = c;
    for (int32_t i = 0; i < w->rank; i++) {
        dims[i + 2] = w->out[i];
    }
}

int64_t window_meet(const struct window *w, size_t at, size_t tap)
{
    int64_t pixel = 0, stride = 1;
    for (int32_t i = w->rank - 1; i >= 0; i--) {
        int64_t out = (int64_t)(at % (size_t)w->out[i]);
        int64_t k = (int64_t)(tap % (size_t)w->kernel[i]);
        int64_t in = out * w->stride[i] + k * w->dilation[i] - w->before[i];
        if (in < 0 || in >= w->in[i]) {
            return -1;
        }
        pixel += in * stride;
        stride *= w->in[i];
        at /= (size_t)w->out[i];
        tap /= (size_t)w->kernel[i];
    }
    return pixel;
}

size_t window_count(const struct window *w, size_t at, bool with_padding)
{
    size_t n = 1;
    for (int32_t i = w->rank - 1; i >= 0; i--) {
        int64_t first = (int64_t)(at % (size_t)w->out[i]) * w->stride[i] - w->before[i];
        int64_t low = with_padding ? -w->before[i] : 0;
        int64_t high = with_padding ? w->in[i] + w->after[i] : w->in[i];
        size_t n_inside = 0;
        for (int64_t k = 0; k < w->kernel[i]; k++) {
            int64_t in = first + k * w->dilation[i];
            n_inside += in >= low && in < high;
        }
        n *= n_inside;
        at /= (size_t)w->out[i];
    }
    return n;
}
