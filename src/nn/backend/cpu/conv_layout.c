/* Finds the layouts of oneDNN that relayout.h can write. */
#include "conv_private.h"

/* Are the inner blocks of a layout these, from the outermost to the innermost? */
static bool has_blocks(const struct weir_dnn_layout *layout, int n, int first, int second)
{
    return layout->n_blocks == n && layout->block_indexes[0] == first &&
           (n == 1 || layout->block_indexes[1] == second);
}

/* Three blocks, of which the outer and the inner one divide the channels of one side into pairs: 16
 * pairs next to outputs (matrix registers), or 8 next to inputs (vectors, backward). Gives the
 * elements from 16 such channels to the next; 0: other blocks. */
static size_t stride_of_paired(const struct weir_dnn_layout *layout, int paired)
{
    const dnnl_dim_t *sizes = layout->block_sizes;
    if (layout->n_blocks != 3 || layout->block_indexes[0] != paired ||
        layout->block_indexes[1] != 1 - paired || layout->block_indexes[2] != paired ||
        sizes[2] != 2) {
        return 0;
    }
    if (sizes[0] == 16 && layout->strides[paired] == 32 * sizes[1]) {
        return 16 * (size_t)sizes[1];
    }
    return sizes[0] == 8 ? (size_t)layout->strides[paired] : 0;
}

/* In bf16: blocks of output channels with bf16 pairs of input channels; for backward, of input
 * channels with bf16 pairs of outputs. */
static bool describe_bf16_pairs(const struct weir_dnn_layout *layout, struct relayout *out)
{
    size_t c_stride = (size_t)layout->strides[1];
    if (has_blocks(layout, 2, 0, 1) && layout->block_sizes[1] == 2) {
        out->c_stride = c_stride;
        out->c_block_stride = 8 * c_stride;
        return true;
    }
    int paired = layout->block_indexes[0];
    size_t k = out->k;
    out->c_block_stride = stride_of_paired(layout, paired);
    out->k_block = (size_t)layout->block_sizes[1];
    out->c_stride = 2 * out->k_block;
    out->is_transposed = paired == 0;
    if (out->is_transposed) {
        out->k_stride = c_stride;
        out->k = out->c;
        out->c = k;
    }
    return out->c_block_stride > 0;
}

/* A convolution's layout with blocks of output channels: in bf16 as above, in f32 also with 16
 * input channels, on either side. Or a linear's in f32 with 16 input channels. */
static bool describe_relayout(const struct weir_dnn_layout *layout, struct relayout *out)
{
    bool is_bf16 = layout->data_type == dnnl_bf16, is_linear = layout->ndims == 2;
    if ((layout->ndims != 4 && !is_linear) || !layout->is_blocked || layout->has_extra ||
        (!is_bf16 && layout->data_type != dnnl_f32)) {
        return false;
    }
    size_t c_stride = (size_t)layout->strides[1];
    *out = (struct relayout){.k = (size_t)layout->dims[0],
                             .c = (size_t)layout->dims[1],
                             .kernel_h = is_linear ? 1 : (size_t)layout->dims[2],
                             .kernel_w = is_linear ? 1 : (size_t)layout->dims[3],
                             .k_stride = (size_t)layout->strides[0],
                             .h_stride = is_linear ? 0 : (size_t)layout->strides[2],
                             .w_stride = is_linear ? 0 : (size_t)layout->strides[3],
                             .k_block = (size_t)layout->block_sizes[0],
                             .is_bf16 = is_bf16};
    if (is_linear) {
        out->k_block = out->c_stride = (size_t)layout->block_sizes[1];
        out->c_block_stride = c_stride;
        return !is_bf16 && has_blocks(layout, 2, 1, 0) && layout->block_sizes[0] == 16;
    }
    if (is_bf16) {
        return describe_bf16_pairs(layout, out);
    }
    if (has_blocks(layout, 1, 0, 0)) {
        out->c_stride = c_stride;
        out->c_block_stride = 16 * c_stride;
        return true;
    }
    out->c_stride = 16;
    out->c_block_stride = c_stride;
    out->is_c_inner = has_blocks(layout, 2, 0, 1);
    return (out->is_c_inner || has_blocks(layout, 2, 1, 0)) && layout->block_sizes[0] == 16 &&
           layout->block_sizes[1] == 16;
}

relayout_fn conv_find_relayout(const struct weir_dnn_layout *layout, bool is_flipped,
                               struct relayout *out)
{
    bool is_known = describe_relayout(layout, out) && !(is_flipped && out->is_transposed);
    if (is_flipped) {
        out->is_transposed = out->is_mirrored = true;
    }
    return is_known ? relayout_for(out) : NULL;
}

relayout_fn conv_find_relayout_back(const struct weir_dnn_layout *layout, struct relayout *out)
{
    return describe_relayout(layout, out) ? relayout_back_for(out) : NULL;
}
