#include "layers.h"

#include "nn/backend/cpu/vector/vector.h"

static int32_t *argmax_of(const struct op *op, const struct op_tile *tile, size_t i_image)
{
    return op->argmax + ((size_t)tile->first + i_image) * op_elems(op->out);
}

weir_status fast_max_pool_forward(const struct op *op, const struct op_tile *tile)
{
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->max_pool(op, vector_at(op, tile->x[0], n * op_elems(op->in[0])),
                                           vector_at(op, tile->y, n * op_elems(op->out)),
                                           tile->is_training ? argmax_of(op, tile, n) : NULL);
    }
    return WEIR_OK;
}

weir_status fast_max_pool_backward(const struct op *op, const struct op_tile *tile)
{
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->max_pool_backward(
            op, vector_at(op, tile->dy, n * op_elems(op->out)), argmax_of(op, tile, n),
            vector_at(op, tile->dx[0], n * op_elems(op->in[0])), tile->dx_adds[0]);
    }
    return WEIR_OK;
}

weir_status fast_avg_pool_forward(const struct op *op, const struct op_tile *tile)
{
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->avg_pool(op, vector_at(op, tile->x[0], n * op_elems(op->in[0])),
                                           vector_at(op, tile->y, n * op_elems(op->out)));
    }
    return WEIR_OK;
}

weir_status fast_avg_pool_backward(const struct op *op, const struct op_tile *tile)
{
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->avg_pool_backward(
            op, vector_at(op, tile->dy, n * op_elems(op->out)),
            vector_at(op, tile->dx[0], n * op_elems(op->in[0])), tile->dx_adds[0]);
    }
    return WEIR_OK;
}

weir_status fast_global_pool_forward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->in[0].c, hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
    for (size_t n = 0; n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->global_pool(vector_at(op, tile->x[0], n * c * hw), hw, c,
                                              vector_at(op, tile->y, n * c));
    }
    return WEIR_OK;
}

weir_status fast_global_pool_backward(const struct op *op, const struct op_tile *tile)
{
    size_t c = (size_t)op->in[0].c, hw = (size_t)op->in[0].h * (size_t)op->in[0].w;
    for (size_t n = 0; tile->dx[0] && n < (size_t)tile->n; n++) {
        vector_kernels(op->type)->global_pool_backward(vector_at(op, tile->dy, n * c), hw, c,
                                                       vector_at(op, tile->dx[0], n * c * hw),
                                                       tile->dx_adds[0]);
    }
    return WEIR_OK;
}
