#include "linear.h"

#include "cpu_level.h"
#include "nn/backend/cpu/vector/vector.h"

#include <math.h>

const struct linear_kernels *linear_kernels(void)
{
    switch (cpu_level()) {
    case CPU_LEVEL_V4:
        return &linear_kernels_v4;
    case CPU_LEVEL_V3:
        return &linear_kernels_v3;
    case CPU_LEVEL_V1:
        break;
    }
    return &linear_kernels_v1;
}

static bool is_done_here(const struct op *op)
{
    return op->kind == LAYER_LINEAR && op->type == WEIR_PRECISION_F32 && !op->norm;
}

bool linear_is_small(const struct op *op, int32_t n)
{
    bool has_few_weights = op->params[OP_WEIGHT].n_elems <= LINEAR_FEW_WEIGHTS;
    return is_done_here(op) &&
           n <= (has_few_weights ? LINEAR_MAX_IMAGES_OF_FEW : LINEAR_MAX_IMAGES);
}

bool linear_has_small_gradient(const struct op *op, int32_t n)
{
    return is_done_here(op) && n <= LINEAR_MAX_IMAGES;
}

static struct linear_shape shape_of(const struct op *op, const struct op_tile *tile)
{
    return (struct linear_shape){
        .n = (size_t)tile->n, .n_in = op_elems(op->in[0]), .n_out = (size_t)op->conv.k};
}

weir_status linear_forward(const struct op *op, const struct op_tile *tile)
{
    linear_kernels()->forward(shape_of(op, tile), tile->x[0], op->params[OP_WEIGHT].value,
                              op->params[OP_BIAS].value, tile->y);
    if (op->has_relu) {
        vector_kernels(op->type)->relu(tile->y, tile->y, INFINITY,
                                       (size_t)tile->n * op_elems(op->out));
    }
    return WEIR_OK;
}

weir_status linear_backward(const struct op *op, const struct op_tile *tile)
{
    if (tile->dx[0]) {
        linear_kernels()->backward(shape_of(op, tile), tile->dy, op->params[OP_WEIGHT].value,
                                   tile->dx_adds[0], tile->dx[0]);
    }
    return WEIR_OK;
}

weir_status linear_weight_gradient(const struct op *op, const struct op_tile *tile)
{
    linear_kernels()->weight_gradient(shape_of(op, tile), tile->dy, tile->x[0],
                                      op->params[OP_WEIGHT].gradient, op->params[OP_BIAS].gradient);
    return WEIR_OK;
}
