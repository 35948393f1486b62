/* Convolutions, in f64 whatever the elements are: forward, transposed, of integers. */
#include "window.h"

#include "tensor/convert.h"

#include <math.h>
#include <stdlib.h>

/** x, less its zero point, as doubles. Freed by the caller; NULL: no memory. */
static double *widen(const struct weir_tensor *x, const struct weir_tensor *zero)
{
    double *values = malloc((x->n_elems + 1) * sizeof *values), offset = 0;
    if (values == NULL) {
        return NULL;
    }
    weir_elems_to_f64(x->dtype, x->data, values, x->n_elems);
    size_t n = zero != NULL ? zero->n_elems : 0, each = n > 0 ? x->n_elems / n : 0;
    for (size_t i = 0; n > 0 && i < x->n_elems; i++) { /* one for all, or one a row */
        size_t at = WEIR_MIN(i / WEIR_MAX(each, (size_t)1), n - 1) * weir_dtype_bytes(zero->dtype);
        weir_elems_to_f64(zero->dtype, (const char *)zero->data + at, &offset, 1);
        values[i] -= offset;
    }
    return values;
}

/** Sizes of a convolution: channels in and out of a group. */
struct conv {
    struct window window;
    int64_t n, groups, c, k;
};

static weir_status read_conv(const struct onnx_call *call, const struct weir_tensor *x,
                             const struct weir_tensor *w, bool is_transposed, struct conv *out,
                             struct weir_error *err)
{
    int64_t groups = onnx_int(call, "group", 1);
    char a[WEIR_TENSOR_TEXT_BYTES], b[WEIR_TENSOR_TEXT_BYTES];
    bool fits = x->rank >= 3 && w->rank == x->rank && groups >= 1 && x->dims[1] % groups == 0 &&
                w->dims[0] % groups == 0;
    fits = fits && (is_transposed ? w->dims[0] == x->dims[1] : w->dims[1] * groups == x->dims[1]);
    if (!fits) {
        return weir_error_set(err, WEIR_ERR_INVALID, "weights %s do not fit the input %s",
                              weir_tensor_dims_text(w->rank, w->dims, a),
                              weir_tensor_dims_text(x->rank, x->dims, b));
    }
    WEIR_TRY(window_read(call, x, w->dims + 2, false, &out->window, err));
    out->n = x->dims[0];
    out->groups = groups;
    out->c = x->dims[1] / groups;
    out->k = is_transposed ? w->dims[1] : w->dims[0] / groups;
    return WEIR_OK;
}

/* One output element: the sum over channels and taps. */
static double sum_window(const struct conv *conv, const double *x, const double *w, size_t at)
{
    const struct window *win = &conv->window;
    double sum = 0;
    for (size_t tap = 0; tap < win->n_kernel; tap++) {
        int64_t pixel = window_meet(win, at, tap);
        for (size_t c = 0; pixel >= 0 && c < (size_t)conv->c; c++) {
            sum += x[c * win->n_in + (size_t)pixel] * w[c * win->n_kernel + tap];
        }
    }
    return sum;
}

static void convolve(const struct conv *conv, const double *x, const double *w, double *y)
{
    const struct window *win = &conv->window;
    size_t n_k = (size_t)(conv->groups * conv->k), n_c = (size_t)(conv->groups * conv->c);
    for (size_t i = 0; i < (size_t)conv->n * n_k; i++) {
        size_t image = i / n_k, k = i % n_k, group = k / (size_t)conv->k;
        const double *from = x + (image * n_c + group * (size_t)conv->c) * win->n_in;
        const double *row = w + k * (size_t)conv->c * win->n_kernel;
        for (size_t at = 0; at < win->n_out; at++) {
            y[i * win->n_out + at] = sum_window(conv, from, row, at);
        }
    }
}

static weir_status put_biased(const struct conv *conv, const double *sums,
                              const struct weir_tensor *bias, struct weir_tensor *y, size_t n_plane,
                              struct weir_error *err)
{
    size_t n_k = (size_t)(conv->groups * conv->k), elem_bytes = weir_dtype_bytes(y->dtype);
    if (bias != NULL && bias->n_elems != n_k) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%zu biases for %zu channels", bias->n_elems,
                              n_k);
    }
    for (size_t i = 0; i < y->n_elems; i++) {
        double add = 0;
        if (bias != NULL) {
            size_t k = i / n_plane % n_k;
            weir_elems_to_f64(
                bias->dtype, (const char *)bias->data + k * weir_dtype_bytes(bias->dtype), &add, 1);
        }
        double value = sums[i] + add;
        weir_elems_from_f64(y->dtype, &value, (char *)y->data + i * elem_bytes, 1,
                            WEIR_OVERFLOW_SATURATES);
    }
    return WEIR_OK;
}

/** The sums of a convolution of two tensors; the caller frees them. */
static weir_status sum_all(const struct conv *conv, const struct weir_tensor *x,
                           const struct weir_tensor *x_zero, const struct weir_tensor *w,
                           const struct weir_tensor *w_zero, double **out, struct weir_error *err)
{
    size_t n = (size_t)(conv->n * conv->groups * conv->k) * conv->window.n_out;
    double *from = widen(x, x_zero), *weights = widen(w, w_zero);
    double *sums = malloc((n + 1) * sizeof *sums);
    weir_status status = WEIR_OK;
    if (from != NULL && weights != NULL && sums != NULL) {
        convolve(conv, from, weights, sums);
        *out = sums;
    } else {
        free(sums);
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a convolution");
    }
    free(from);
    free(weights);
    return status;
}

static weir_status run_conv(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *w = onnx_in(call, 1);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct conv conv;
    struct weir_tensor *y;
    WEIR_AUTO(weir_auto_free) double *sums = NULL;
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT || w->dtype != x->dtype) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(read_conv(call, x, w, false, &conv, err));
    window_out_dims(&conv.window, conv.n, conv.groups * conv.k, dims);
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    WEIR_TRY(sum_all(&conv, x, NULL, w, NULL, &sums, err));
    return put_biased(&conv, sums, onnx_in(call, 2), y, conv.window.n_out, err);
}

/* ---- integers --------------------------------------------------------------------------------- */

static weir_status check_bytes(const struct weir_tensor *x, struct weir_error *err)
{
    return x->dtype == WEIR_DTYPE_UINT8 || x->dtype == WEIR_DTYPE_INT8
               ? WEIR_OK
               : onnx_refuse_dtype(x->dtype, err);
}

static weir_status run_integer(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *w = onnx_in(call, 1);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct conv conv;
    struct weir_tensor *y;
    double *sums;
    WEIR_TRY(check_bytes(x, err));
    WEIR_TRY(check_bytes(w, err));
    WEIR_TRY(read_conv(call, x, w, false, &conv, err));
    window_out_dims(&conv.window, conv.n, conv.groups * conv.k, dims);
    WEIR_TRY(onnx_out(call, 0, WEIR_DTYPE_INT32, x->rank, dims, &y, err));
    WEIR_TRY(sum_all(&conv, x, onnx_in(call, 2), w, onnx_in(call, 3), &sums, err));
    weir_elems_from_f64(WEIR_DTYPE_INT32, sums, y->data, y->n_elems, WEIR_OVERFLOW_SATURATES);
    free(sums);
    return WEIR_OK;
}

/* One of all, or one each. */
static double number_at(const struct weir_tensor *tensor, size_t i)
{
    return onnx_get(tensor, tensor->n_elems == 1 ? 0 : i);
}

/* Inputs of QLinearConv: x, its scale and zero point, w, its scales and zero points, y's, bias. */
enum { Q_X, Q_X_SCALE, Q_X_ZERO, Q_W, Q_W_SCALE, Q_W_ZERO, Q_Y_SCALE, Q_Y_ZERO, Q_BIAS };

static void requantize(const struct onnx_call *call, const struct conv *conv, const double *sums,
                       struct weir_tensor *y)
{
    size_t n_k = (size_t)(conv->groups * conv->k);
    const double x_scale = number_at(call->in[Q_X_SCALE], 0);
    const double y_scale = number_at(call->in[Q_Y_SCALE], 0),
                 zero = number_at(call->in[Q_Y_ZERO], 0);
    const double low = y->dtype == WEIR_DTYPE_INT8 ? -128 : 0, high = low + 255;
    for (size_t i = 0; i < y->n_elems; i++) {
        size_t k = i / conv->window.n_out % n_k;
        double sum = sums[i] + (onnx_in(call, Q_BIAS) != NULL ? number_at(call->in[Q_BIAS], k) : 0);
        double scale = x_scale * number_at(call->in[Q_W_SCALE], k) / y_scale;
        double value = fmin(fmax(nearbyint(sum * scale) + zero, low), high);
        onnx_put(y, i, value);
    }
}

static weir_status check_quantized(const struct onnx_call *call, const struct conv *conv,
                                   struct weir_error *err)
{
    size_t n_k = (size_t)(conv->groups * conv->k);
    for (size_t i = Q_X_SCALE; i <= Q_BIAS; i++) {
        const struct weir_tensor *in = onnx_in(call, i);
        bool is_row = i == Q_W_SCALE || i == Q_W_ZERO || i == Q_BIAS;
        if (i != Q_W && in != NULL && in->n_elems != 1 && !(is_row && in->n_elems == n_k)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "input %zu has %zu elements", i,
                                  in->n_elems);
        }
    }
    WEIR_TRY(check_bytes(call->in[Q_X], err));
    WEIR_TRY(check_bytes(call->in[Q_W], err));
    return check_bytes(call->in[Q_Y_ZERO], err);
}

static weir_status run_qlinear(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, Q_X), *w = onnx_in(call, Q_W);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct conv conv;
    struct weir_tensor *y;
    double *sums;
    WEIR_TRY(read_conv(call, x, w, false, &conv, err));
    WEIR_TRY(check_quantized(call, &conv, err));
    window_out_dims(&conv.window, conv.n, conv.groups * conv.k, dims);
    WEIR_TRY(onnx_out(call, 0, call->in[Q_Y_ZERO]->dtype, x->rank, dims, &y, err));
    WEIR_TRY(sum_all(&conv, x, call->in[Q_X_ZERO], w, call->in[Q_W_ZERO], &sums, err));
    requantize(call, &conv, sums, y);
    free(sums);
    return WEIR_OK;
}

/* ---- transposed ------------------------------------------------------------------------------- */

/* The output pixel that tap `tap` of input pixel `at` adds to; -1: outside. */
static int64_t scatter_to(const struct window *w, size_t at, size_t tap)
{
    int64_t pixel = 0, stride = 1;
    for (int32_t i = w->rank - 1; i >= 0; i--) {
        int64_t in = (int64_t)(at % (size_t)w->in[i]);
        int64_t k = (int64_t)(tap % (size_t)w->kernel[i]);
        int64_t out = in * w->stride[i] + k * w->dilation[i] - w->before[i];
        if (out < 0 || out >= w->out[i]) {
            return -1;
        }
        pixel += out * stride;
        stride *= w->out[i];
        at /= (size_t)w->in[i];
        tap /= (size_t)w->kernel[i];
    }
    return pixel;
}

static void convolve_transposed(const struct conv *conv, const double *x, const double *w,
                                double *y)
{
    const struct window *win = &conv->window;
    size_t n_c = (size_t)(conv->groups * conv->c), n_k = (size_t)conv->k;
    for (size_t i = 0; i < (size_t)conv->n * n_c * win->n_in; i++) {
        size_t at = i % win->n_in, c = i / win->n_in % n_c, image = i / win->n_in / n_c;
        size_t group = c / (size_t)conv->c;
        double *to = y + (image * (size_t)conv->groups + group) * n_k * win->n_out;
        for (size_t tap = 0; tap < win->n_kernel; tap++) {
            int64_t pixel = scatter_to(win, at, tap);
            for (size_t k = 0; pixel >= 0 && k < n_k; k++) {
                to[k * win->n_out + (size_t)pixel] += x[i] * w[(c * n_k + k) * win->n_kernel + tap];
            }
        }
    }
}

static weir_status run_transposed(struct onnx_call *call, struct weir_error *err)
{
    const struct weir_tensor *x = onnx_in(call, 0), *w = onnx_in(call, 1);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    struct conv conv;
    struct weir_tensor *y;
    if (weir_dtype_class(x->dtype) != WEIR_DTYPE_IS_FLOAT || w->dtype != x->dtype) {
        return onnx_refuse_dtype(x->dtype, err);
    }
    WEIR_TRY(read_conv(call, x, w, true, &conv, err));
    WEIR_TRY(window_turn(call, &conv.window, err));
    window_out_dims(&conv.window, conv.n, conv.groups * conv.k, dims);
    WEIR_TRY(onnx_out(call, 0, x->dtype, x->rank, dims, &y, err));
    double *from = widen(x, NULL), *weights = widen(w, NULL);
    double *sums = calloc(y->n_elems + 1, sizeof *sums);
    weir_status status = WEIR_OK;
    if (from != NULL && weights != NULL && sums != NULL) {
        convolve_transposed(&conv, from, weights, sums);
        status = put_biased(&conv, sums, onnx_in(call, 2), y, conv.window.n_out, err);
    } else {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a convolution");
    }
    free(from);
    free(weights);
    free(sums);
    return status;
}

const struct onnx_op onnx_ops_conv[] = {
    {"Conv", 1, 2, 1, run_conv, NULL},
    {"ConvInteger", 10, 2, 1, run_integer, NULL},
    {"QLinearConv", 10, 8, 1, run_qlinear, NULL},
    {"ConvTranspose", 1, 2, 1, run_transposed, NULL},
};
const size_t onnx_n_ops_conv = WEIR_ARRAY_LEN(onnx_ops_conv);
