#include "onednn.h"
#include "plan.h"

#include <string.h>

weir_status onednn_check(dnnl_status_t status, const char *what, struct weir_error *err)
{
    if (status == dnnl_success) {
        return WEIR_OK;
    }
    return weir_error_set(err, status == dnnl_out_of_memory ? WEIR_ERR_NOMEM : WEIR_ERR_INTERNAL,
                          "oneDNN: %s failed with status %d", what, (int)status);
}

bool onednn_has_dtype(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_FLOAT || dtype == WEIR_DTYPE_UINT8 || dtype == WEIR_DTYPE_INT8 ||
           dtype == WEIR_DTYPE_INT32;
}

dnnl_data_type_t onednn_dtype(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_FLOAT   ? dnnl_f32
           : dtype == WEIR_DTYPE_UINT8 ? dnnl_u8
           : dtype == WEIR_DTYPE_INT8  ? dnnl_s8
                                       : dnnl_s32;
}

struct weir_dnn_layout onednn_plain(enum weir_dtype dtype, int32_t rank, const int64_t *dims)
{
    const int64_t one = 1;
    struct weir_dnn_layout md;
    dnnl_dims_t strides;
    int64_t stride = 1;
    dims = rank > 0 ? dims : &one;
    rank = WEIR_MAX(rank, 1);
    for (int32_t i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= WEIR_MAX(dims[i], (int64_t)1);
    }
    (void)weir_dnn_layout_strided(&md, rank, dims, onednn_dtype(dtype), strides);
    return md;
}

struct weir_dnn_layout onednn_any(dnnl_data_type_t type, int32_t rank, const int64_t *dims)
{
    struct weir_dnn_layout md;
    (void)weir_dnn_layout_named(&md, rank, dims, type, dnnl_format_tag_any);
    return md;
}

bool onednn_is_padded(const struct weir_dnn_layout *md)
{
    return memcmp(md->dims, md->padded_dims, (size_t)md->ndims * sizeof *md->dims) != 0;
}

static bool has_row_strides(const struct weir_dnn_layout *md)
{
    int64_t stride = 1;
    bool is = md->is_blocked && !md->has_extra;
    for (int32_t i = md->ndims - 1; is && i >= 0; i--) {
        is = md->dims[i] == 1 || md->strides[i] == stride;
        stride *= md->dims[i];
    }
    return is;
}

bool onednn_is_plain(const struct weir_dnn_layout *md)
{
    return md->n_blocks == 0 && has_row_strides(md);
}

struct weir_dnn_layout onednn_simple(const struct weir_dnn_layout *md)
{
    bool is_same = md->is_blocked && !md->has_extra && md->ndims >= 2 && !onednn_is_padded(md) &&
                   md->n_blocks <= 1;
    if (is_same && md->n_blocks == 1) {
        is_same = md->block_indexes[0] == 1;
        for (int32_t i = 2; i < md->ndims; i++) {
            is_same = is_same && md->dims[i] == 1;
        }
        is_same =
            is_same && (md->dims[1] == md->block_sizes[0] || md->strides[1] == md->block_sizes[0]);
        is_same = is_same && (md->dims[0] == 1 || md->strides[0] == md->dims[1]);
    } else if (is_same) {
        is_same = has_row_strides(md);
    }
    enum weir_dtype dtype = md->data_type == dnnl_f32  ? WEIR_DTYPE_FLOAT
                            : md->data_type == dnnl_u8 ? WEIR_DTYPE_UINT8
                            : md->data_type == dnnl_s8 ? WEIR_DTYPE_INT8
                                                       : WEIR_DTYPE_INT32;
    return is_same ? onednn_plain(dtype, md->ndims, md->dims) : *md;
}

static dnnl_status_t add_tail(dnnl_primitive_attr_t attr, bool has_sum,
                              const struct onednn_act *acts, size_t n_acts)
{
    dnnl_post_ops_t ops;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status != dnnl_success) {
        return status;
    }
    if (has_sum) {
        status = weir_dnn_append_sum(ops);
    }
    for (size_t i = 0; status == dnnl_success && i < n_acts; i++) {
        status = weir_dnn_append_eltwise(ops, acts[i].alg, acts[i].alpha, acts[i].beta);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    }
    dnnl_post_ops_destroy(ops);
    return status;
}

dnnl_primitive_attr_t onednn_attr(bool has_sum, const struct onednn_act *acts, size_t n_acts)
{
    dnnl_primitive_attr_t attr;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) {
        return NULL;
    }
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) != dnnl_success ||
        add_tail(attr, has_sum, acts, n_acts) != dnnl_success) {
        dnnl_primitive_attr_destroy(attr);
        return NULL;
    }
    return attr;
}

weir_status onednn_desc(const struct fast *fast, const struct weir_dnn_op *op,
                        dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out,
                        struct weir_error *err)
{
    const char *name = NULL;
    if (attr == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "oneDNN: no memory for attributes");
    }
    *out = NULL;
    dnnl_status_t status = weir_dnn_describe(op, fast->engine, attr, NULL, out);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_out_of_memory) {
        *out = NULL;
        return weir_error_set(err, WEIR_ERR_NOMEM, "oneDNN: no memory");
    }
    if (status != dnnl_success) {
        *out = NULL;
        return WEIR_OK;
    }
    status = dnnl_primitive_desc_query(*out, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && name != NULL && strstr(name, "ref") != NULL) {
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
    }
    return WEIR_OK;
}

const struct weir_dnn_layout *onednn_query(struct fast_plan *plan, const_dnnl_primitive_desc_t desc,
                                           dnnl_query_t what)
{
    struct weir_dnn_layout *layout = WEIR_ARENA_NEW(&plan->arena, struct weir_dnn_layout);
    *layout = weir_dnn_layout_of(desc, what);
    return layout;
}
