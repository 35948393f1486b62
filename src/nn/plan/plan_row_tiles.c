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

/* The rows of out and in[0] that are row tile i's. */
static struct op_row_tile row_tile_of(const struct op *op, int32_t i, int32_t n_row_tiles)
{
    int32_t first = op->out.h * i / n_row_tiles, end = op->out.h * (i + 1) / n_row_tiles;
    struct op_row_tile row_tile = {.first_out = first, .n_out = end - first};
    if (plan_reads_own_rows(op, 0)) {
        row_tile.first_in = row_tile.first_out;
        row_tile.n_in = row_tile.n_out;
        return row_tile;
    }
    const struct weir_conv_params *p = &op->conv;
    int32_t reach = (p->kernel_h - 1) * p->dilation + 1;
    int32_t above = first * p->stride - p->pad_h, below = (end - 1) * p->stride - p->pad_h + reach;
    /* Whole strides, which whole images mostly have: oneDNN has fast code for these. */
    below = WEIR_MAX(below, WEIR_MIN(end * p->stride - p->pad_h, op->in[0].h));
    row_tile.first_in = WEIR_MAX(above, 0);
    row_tile.n_in = WEIR_MIN(below, op->in[0].h) - row_tile.first_in;
    row_tile.pad_top = row_tile.first_in - above;
    row_tile.pad_bottom = below - row_tile.first_in - row_tile.n_in;
    return row_tile;
}

/* A row tile must have rows of the image to work on, not only of its padding. */
static bool can_tile_rows(const struct op *op, int32_t n_row_tiles)
{
    if ((op->kind != LAYER_CONV && !is_row_wise(op->kind)) || op->is_folded ||
        op->out.h < n_row_tiles) {
        return false;
    }
    for (int32_t i = 0; i < n_row_tiles; i++) {
        if (row_tile_of(op, i, n_row_tiles).n_in < 1) {
            return false;
        }
    }
    return true;
}

weir_status plan_make_row_tiles(struct net_plan *plan)
{
    for (int32_t i = 0; plan->n_row_tiles > 1 && i < plan->n_ops; i++) {
        struct op *op = &plan->ops[i].op;
        if (!can_tile_rows(op, plan->n_row_tiles)) {
            continue;
        }
        op->row_tiles = calloc((size_t)plan->n_row_tiles, sizeof(*op->row_tiles));
        if (!op->row_tiles) {
            return WEIR_ERR_NOMEM;
        }
        op->n_row_tiles = plan->n_row_tiles;
        for (int32_t b = 0; b < plan->n_row_tiles; b++) {
            op->row_tiles[b] = row_tile_of(op, b, plan->n_row_tiles);
        }
    }
    return WEIR_OK;
}
