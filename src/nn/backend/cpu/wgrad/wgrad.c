#include "nn/backend/cpu/primitive.h"
#include "wgrad_private.h"

#define ALIGN_BYTES 64

/* Fewer channels would leave most of a register empty. */
#define MIN_CHANNELS 16

/* Bytes of x and dy that fit in the second cache beside the packed panel and the sums. */
#define AT_ONCE_BYTES ((size_t)448 << 10)

static int32_t n_taps(const struct op *op)
{
    return op->conv.kernel_h * op->conv.kernel_w;
}

static size_t elem_bytes(const struct op *op)
{
    return op->type == WEIR_PRECISION_BF16 ? sizeof(uint16_t) : sizeof(float);
}

struct op wgrad_form(const struct op *op)
{
    struct op form = *op;
    if (op->kind == LAYER_LINEAR) {
        form.kind = LAYER_CONV;
        form.in[0] = (struct weir_shape){(int32_t)op_elems(op->in[0]), 1, 1};
        form.out = (struct weir_shape){op->conv.k, 1, 1};
        form.conv = (struct weir_conv_params){.k = op->conv.k,
                                              .kernel_h = 1,
                                              .kernel_w = 1,
                                              .stride = 1,
                                              .has_bias = op->conv.has_bias,
                                              .groups = 1,
                                              .dilation = 1};
    }
    return form;
}

/* For a linear, oneDNN's matrix product takes memory from the system in every call, and so has page
 * faults. But with many images in f32 it is faster (784 -> 128: 32 images 66 us, these 71; 128
 * images 234 and 258). */
#define LINEAR_MAX_IMAGES_F32 64

/* Can any of the tables do it? */
static bool can_do(const struct op *op)
{
    if (op->kind == LAYER_LINEAR) {
        return op->type == WEIR_PRECISION_BF16 || op->gradient_batch <= LINEAR_MAX_IMAGES_F32;
    }
    return op->kind == LAYER_CONV && op->conv.groups == 1 && !op->conv.has_bias &&
           op->in[0].c >= MIN_CHANNELS && op->conv.k >= MIN_CHANNELS &&
           n_taps(op) <= WGRAD_MAX_TAPS;
}

/* The outputs i of n for which i * stride + shift is inside 0 .. n_in. */
static void meet(int32_t shift, int32_t stride, int32_t n_in, int32_t n, int32_t *out_first,
                 int32_t *out_end)
{
    *out_first = shift >= 0 ? 0 : WEIR_MIN((-shift + stride - 1) / stride, n);
    int32_t end = shift >= n_in ? 0 : (n_in - shift - 1) / stride + 1;
    *out_end = WEIR_MAX(WEIR_MIN(end, n), *out_first);
}

struct wgrad_tap wgrad_tap(const struct op *op, int32_t i_tap)
{
    const struct weir_conv_params *p = &op->conv;
    struct wgrad_tap tap = {.down = i_tap / p->kernel_w * p->dilation - p->pad_h,
                            .right = i_tap % p->kernel_w * p->dilation - p->pad_w};
    meet(tap.down, p->stride, op->in[0].h, op->out.h, &tap.first_h, &tap.end_h);
    meet(tap.right, p->stride, op->in[0].w, op->out.w, &tap.first_w, &tap.end_w);
    return tap;
}

size_t wgrad_count_rows(const struct op *op, const struct wgrad_tap *tap, struct wgrad_rows rows)
{
    size_t n = 0;
    for (int32_t row = rows.first; row < rows.end; row++) {
        int32_t h = row % op->out.h;
        n += h >= tap->first_h && h < tap->end_h;
    }
    return n;
}

static int32_t panel_pixels(const struct op *op)
{
    return op->type == WEIR_PRECISION_BF16 ? WGRAD_PANEL_PIXELS_BF16 : WGRAD_PANEL_PIXELS_F32;
}

int32_t wgrad_rows_at_once(const struct op *op)
{
    int32_t n_rows = op->gradient_batch * op->out.h;
    size_t row_elems = (size_t)op->in[0].c * (size_t)op->in[0].w * (size_t)op->conv.stride +
                       (size_t)op->out.c * (size_t)op->out.w;
    size_t n_fitting = AT_ONCE_BYTES / (row_elems * elem_bytes(op));
    /* Whole panels at least: what is added up is in no cache, if it is large. */
    int32_t n_least = 2 * panel_pixels(op) / op->out.w;
    if (n_taps(op) == 1 || n_fitting >= (size_t)n_rows) {
        return n_rows;
    }
    int32_t n_most = WEIR_MIN(WEIR_MAX(WEIR_MAX((int32_t)n_fitting, n_least), 1), n_rows);
    int32_t n_parts = (n_rows + n_most - 1) / n_most; /* of about the same size */
    return (n_rows + n_parts - 1) / n_parts;
}

size_t wgrad_sums_bytes(const struct op *op)
{
    size_t n = n_taps(op) == 1 ? 0 : op->params[OP_WEIGHT].n_elems * sizeof(float);
    return WGRAD_ROUND_UP(n, (size_t)ALIGN_BYTES);
}

size_t wgrad_zeros_bytes(const struct op *op)
{
    size_t most = (size_t)WEIR_MAX(op->in[0].c, op->conv.k);
    return WGRAD_ROUND_UP(most * elem_bytes(op), (size_t)ALIGN_BYTES);
}

size_t wgrad_vector_scratch_bytes(const struct op *given)
{
    const struct op op = wgrad_form(given);
    size_t n_all = (size_t)op.gradient_batch * (size_t)op.out.h * (size_t)op.out.w;
    size_t n_pixels = WEIR_MIN((size_t)panel_pixels(&op), WGRAD_ROUND_UP(n_all, (size_t)2));
    size_t n_channels = (size_t)op.in[0].c + (size_t)op.conv.k + 2 * ALIGN_BYTES;
    return wgrad_sums_bytes(&op) + wgrad_zeros_bytes(&op) +
           WGRAD_ROUND_UP(n_pixels * n_channels * elem_bytes(&op), (size_t)ALIGN_BYTES);
}

void wgrad_unravel(const struct op *op, const float *sums)
{
    size_t c = (size_t)op->in[0].c, taps = (size_t)n_taps(op);
    float *to = op->params[OP_WEIGHT].gradient;
    for (size_t k = 0; k < (size_t)op->conv.k; k++, sums += taps * c) {
        for (size_t i = 0; i < c; i++) {
            for (size_t tap = 0; tap < taps; tap++) {
                *to++ = sums[tap * c + i];
            }
        }
    }
}

bool wgrad_is_supported(const struct wgrad_kernels *kernels)
{
#if defined(__x86_64__)
    bool has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    bool has_bf16 = has_v4 && __builtin_cpu_supports("avx512bf16");
    return kernels == &wgrad_kernels_v4     ? has_v4
           : kernels == &wgrad_kernels_bf16 ? has_bf16
                                            : has_bf16 && dnn_has_tiles();
#else
    (void)kernels;
    return false;
#endif
}

const struct wgrad_kernels *wgrad_choose(const struct op *op)
{
#if defined(__x86_64__)
    const struct wgrad_kernels *kernels = &wgrad_kernels_bf16;
    if (!can_do(op)) {
        return NULL;
    }
    if (op->type == WEIR_PRECISION_F32) {
        kernels = &wgrad_kernels_v4;
    } else if (op->kind == LAYER_CONV && wgrad_is_supported(&wgrad_kernels_amx)) {
        kernels = &wgrad_kernels_amx;
    }
    return wgrad_is_supported(kernels) ? kernels : NULL;
#else
    (void)op;
    return NULL;
#endif
}
