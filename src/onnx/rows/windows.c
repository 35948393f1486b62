/* Rules of operators whose first dimension is images: convolutions, pools, recurrent layers. */
#include "rows.h"

#include <string.h>

/* The operand of a list of numbers, one for each spatial dimension. */
static int64_t of(const int64_t *list, size_t n, int32_t i, int64_t otherwise)
{
    return list != NULL && (size_t)i < n ? list[i] : otherwise;
}

struct window {
    int64_t kernel, stride, dilation, before, after;
    bool is_same, is_ceil;
};

/* -1: it depends on how a window is counted that does not fit. */
static int64_t count(const struct window *w, int64_t in)
{
    if (w->is_same) {
        return (in + w->stride - 1) / w->stride;
    }
    int64_t span = in + w->before + w->after - (w->kernel - 1) * w->dilation - 1;
    bool is_even = span >= 0 && (!w->is_ceil || span % w->stride == 0);
    return is_even ? span / w->stride + 1 : -1;
}

/* The places of the spatial dimension i, which are numbers where the image's are. */
static struct rows_amount slide(struct rows_call *call, const struct rows_amount *dim, int32_t i,
                                int32_t n_spatial, const struct rows_state *weights)
{
    const struct onnx_call *attributes = &call->call;
    size_t n_kernel, n_strides, n_dilations, n_pads;
    const int64_t *kernel = onnx_ints(attributes, "kernel_shape", &n_kernel);
    const int64_t *strides = onnx_ints(attributes, "strides", &n_strides);
    const int64_t *dilations = onnx_ints(attributes, "dilations", &n_dilations);
    const int64_t *pads = onnx_ints(attributes, "pads", &n_pads);
    bool has_pads = onnx_text_is(attributes, "auto_pad", "NOTSET", "NOTSET");
    bool is_known =
        weights != NULL && weights->rank == n_spatial + 2 && rows_is_number(&weights->dims[i + 2]);
    struct window w = {.kernel = of(kernel, n_kernel, i, is_known ? weights->dims[i + 2].coef : 0),
                       .stride = of(strides, n_strides, i, 1),
                       .dilation = of(dilations, n_dilations, i, 1),
                       .before = has_pads ? of(pads, n_pads, i, 0) : 0,
                       .after = has_pads ? of(pads, n_pads, i + n_spatial, 0) : 0,
                       .is_same =
                           !has_pads && !onnx_text_is(attributes, "auto_pad", "NOTSET", "VALID"),
                       .is_ceil = onnx_int(attributes, "ceil_mode", 0) != 0};
    bool is_sane = w.kernel > 0 && w.kernel < INT32_MAX && w.stride > 0 && w.stride < INT32_MAX &&
                   w.dilation > 0 && w.dilation < INT32_MAX && w.before >= 0 && w.after >= 0 &&
                   w.before < INT32_MAX && w.after < INT32_MAX;
    bool is_image = rows_is_number(dim) && dim->coef >= 0 && dim->coef < INT32_MAX;
    int64_t n = is_sane && is_image ? count(&w, dim->coef) : -1;
    return n >= 0 ? rows_number(n) : rows_fresh(call);
}

static enum rows_verdict run_windows(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    bool is_quantized = strcmp(call->call.node->type, "QLinearConv") == 0;
    bool is_pool = strstr(call->call.node->type, "Pool") != NULL;
    const struct rows_state *weights = is_pool ? NULL : rows_in(call, is_quantized ? 3 : 1);
    bool is_transposed = strcmp(call->call.node->type, "ConvTranspose") == 0;
    ROWS_NEED(rows_flat_from(call, 1));
    ROWS_KNOW(x->rank >= 3 && (is_pool || weights != NULL));
    ROWS_NEED(!rows_has(x) || x->axis == 0);
    rows_out_like(call, 0, x);
    struct rows_state *out = &call->out[0];
    if (!is_pool) {
        bool is_known = !is_transposed && weights->rank == x->rank;
        out->dims[1] = is_known ? weights->dims[0] : rows_fresh(call);
        int64_t groups = onnx_int(&call->call, "group", 1);
        if (is_transposed && weights->rank == x->rank && rows_is_number(&weights->dims[1])) {
            struct rows_amount by = rows_number(groups);
            out->dims[1] = rows_times(&weights->dims[1], &by);
        }
    }
    for (int32_t i = 2; i < x->rank; i++) {
        out->dims[i] = is_transposed ? rows_fresh(call)
                                     : slide(call, &x->dims[i], i - 2, x->rank - 2, weights);
    }
    if (is_pool && call->n_out > 1) { /* places in the whole tensor */
        call->out[1] =
            (struct rows_state){.kind = ROWS_MIXED, .cause = call->call.node, .why = ROWS_MIX};
    }
    return ROWS_APART;
}

static enum rows_verdict run_global(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0);
    ROWS_KNOW(x->rank >= 2);
    ROWS_NEED(!rows_has(x) || x->axis <= 1);
    rows_out_like(call, 0, x);
    for (int32_t i = 2; i < x->rank; i++) {
        call->out[0].dims[i] = rows_number(1);
    }
    return ROWS_APART;
}

/* ---- recurrent layers --------------------------------------------------------------------------- */

/* X is of steps, batch and features; layout 1 has the batch first. */
static enum rows_verdict run_recurrent(struct rows_call *call)
{
    const struct rows_state *x = rows_in(call, 0), *r = rows_in(call, 2);
    bool is_first = onnx_int(&call->call, "layout", 0) != 0;
    ROWS_KNOW(x->rank == 3 && r != NULL && r->rank == 3 && rows_has(x));
    ROWS_NEED(x->axis == (is_first ? 0 : 1) && rows_flat(rows_in(call, 1)) && rows_flat(r) &&
              rows_flat(rows_in(call, 3)) && rows_flat(rows_in(call, 7)));
    const struct rows_amount *batch = &x->dims[x->axis];
    for (size_t i = 4; i <= 6; i++) { /* lengths, and states to begin with */
        const struct rows_state *in = rows_in(call, i);
        ROWS_NEED(in == NULL || (rows_has(in) && in->axis == (i == 4 || is_first ? 0 : 1) &&
                                 rows_equal(&in->dims[in->axis], batch)));
    }
    struct rows_state all = {.kind = ROWS_ROWS, .rank = 4, .axis = is_first ? 0 : 2};
    struct rows_state last = {.kind = ROWS_ROWS, .rank = 3, .axis = is_first ? 0 : 1};
    const struct rows_amount *steps = &x->dims[is_first ? 1 : 0];
    const struct rows_amount order[2][4] = {{*steps, r->dims[0], *batch, r->dims[2]},
                                            {*batch, *steps, r->dims[0], r->dims[2]}};
    const struct rows_amount ends[2][3] = {{r->dims[0], *batch, r->dims[2]},
                                           {*batch, r->dims[0], r->dims[2]}};
    memcpy(all.dims, order[is_first], sizeof order[0]);
    memcpy(last.dims, ends[is_first], sizeof ends[0]);
    rows_outs_like(call, &last);
    rows_out_like(call, 0, &all);
    return ROWS_APART;
}

const struct rows_rule rows_windows[] = {
    {"Conv ConvTranspose ConvInteger QLinearConv MaxPool AveragePool LpPool", run_windows, 0, 1},
    {"GlobalAveragePool GlobalMaxPool GlobalLpPool", run_global, 0, 1},
    {"LSTM GRU RNN", run_recurrent, 0, 3},
};
const size_t rows_n_windows = WEIR_ARRAY_LEN(rows_windows);
