#include "plan.h"

static bool is_row_wise(enum layer_kind kind)
{
    return kind == LAYER_RELU || kind == LAYER_RELU6 || kind == LAYER_PRELU || kind == LAYER_ADD ||
           kind == LAYER_SCALE || kind == LAYER_BATCH_NORM;
}

bool plan_reads_own_rows(const struct op *op, int32_t i_in)
{
    const struct weir_conv_params *p = &op->conv;
    return op->kind != LAYER_CONV || i_in > 0 ||
           (p->kernel_h == 1 && p->stride == 1 && p->pad_h == 0);
}

/* The rows of out and in[0] that are band i's. */
static struct op_band band_of(const struct op *op, int32_t i, int32_t n_bands)
{
    int32_t first = op->out.h * i / n_bands, end = op->out.h * (i + 1) / n_bands;
    struct op_band band = {.first_out = first, .n_out = end - first};
    if (plan_reads_own_rows(op, 0)) {
        band.first_in = band.first_out;
        band.n_in = band.n_out;
        return band;
    }
    const struct weir_conv_params *p = &op->conv;
    int32_t reach = (p->kernel_h - 1) * p->dilation + 1;
    int32_t above = first * p->stride - p->pad_h, below = (end - 1) * p->stride - p->pad_h + reach;
    /* Whole strides, as whole pictures mostly are: what oneDNN has fast code for. */
    below = WEIR_MAX(below, WEIR_MIN(end * p->stride - p->pad_h, op->in[0].h));
    band.first_in = WEIR_MAX(above, 0);
    band.n_in = WEIR_MIN(below, op->in[0].h) - band.first_in;
    band.pad_top = band.first_in - above;
    band.pad_bottom = below - band.first_in - band.n_in;
    return band;
}

/* A band must have rows of the picture to work on, not only of its padding. */
static bool can_band(const struct op *op, int32_t n_bands)
{
    if ((op->kind != LAYER_CONV && !is_row_wise(op->kind)) || op->is_folded ||
        op->out.h < n_bands) {
        return false;
    }
    for (int32_t i = 0; i < n_bands; i++) {
        if (band_of(op, i, n_bands).n_in < 1) {
            return false;
        }
    }
    return true;
}

weir_status plan_make_bands(struct plan *plan)
{
    for (int32_t i = 0; plan->n_bands > 1 && i < plan->n_ops; i++) {
        struct op *op = &plan->ops[i].op;
        if (!can_band(op, plan->n_bands)) {
            continue;
        }
        op->bands = calloc((size_t)plan->n_bands, sizeof(*op->bands));
        if (!op->bands) {
            return WEIR_ERR_NOMEM;
        }
        op->n_bands = plan->n_bands;
        for (int32_t b = 0; b < plan->n_bands; b++) {
            op->bands[b] = band_of(op, b, plan->n_bands);
        }
    }
    return WEIR_OK;
}
