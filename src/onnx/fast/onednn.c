#include "onednn.h"

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

dnnl_memory_desc_t onednn_plain(enum weir_dtype dtype, int32_t rank, const int64_t *dims)
{
    const int64_t one = 1;
    dnnl_memory_desc_t md;
    dnnl_dims_t strides;
    int64_t stride = 1;
    dims = rank > 0 ? dims : &one;
    rank = WEIR_MAX(rank, 1);
    for (int32_t i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= WEIR_MAX(dims[i], (int64_t)1);
    }
    if (dnnl_memory_desc_init_by_strides(&md, rank, dims, onednn_dtype(dtype), strides) !=
        dnnl_success) {
        memset(&md, 0, sizeof md);
    }
    return md;
}

dnnl_memory_desc_t onednn_any(enum weir_dtype dtype, int32_t rank, const int64_t *dims)
{
    dnnl_memory_desc_t md;
    if (dnnl_memory_desc_init_by_tag(&md, rank, dims, onednn_dtype(dtype), dnnl_format_tag_any) !=
        dnnl_success) {
        memset(&md, 0, sizeof md);
    }
    return md;
}

bool onednn_is_padded(const dnnl_memory_desc_t *md)
{
    return memcmp(md->dims, md->padded_dims, (size_t)md->ndims * sizeof *md->dims) != 0;
}

static bool has_row_strides(const dnnl_memory_desc_t *md)
{
    int64_t stride = 1;
    bool is = md->format_kind == dnnl_blocked && md->offset0 == 0 && md->extra.flags == 0;
    for (int32_t i = md->ndims - 1; is && i >= 0; i--) {
        is = md->dims[i] == 1 || md->format_desc.blocking.strides[i] == stride;
        stride *= md->dims[i];
    }
    return is;
}

bool onednn_is_plain(const dnnl_memory_desc_t *md)
{
    return md->format_desc.blocking.inner_nblks == 0 && has_row_strides(md);
}

dnnl_memory_desc_t onednn_simple(const dnnl_memory_desc_t *md)
{
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    bool is_same = md->format_kind == dnnl_blocked && md->extra.flags == 0 && md->ndims >= 2 &&
                   md->offset0 == 0 && !onednn_is_padded(md) && blocking->inner_nblks <= 1;
    if (is_same && blocking->inner_nblks == 1) {
        is_same = blocking->inner_idxs[0] == 1;
        for (int32_t i = 2; i < md->ndims; i++) {
            is_same = is_same && md->dims[i] == 1;
        }
        is_same = is_same && (md->dims[1] == blocking->inner_blks[0] ||
                              blocking->strides[1] == blocking->inner_blks[0]);
        is_same = is_same && (md->dims[0] == 1 || blocking->strides[0] == md->dims[1]);
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
        status = dnnl_post_ops_append_sum(ops, 1);
    }
    for (size_t i = 0; status == dnnl_success && i < n_acts; i++) {
        status = dnnl_post_ops_append_eltwise(ops, 1, acts[i].alg, acts[i].alpha, acts[i].beta);
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

weir_status onednn_desc_checked(dnnl_status_t status, dnnl_primitive_desc_t *desc,
                                struct weir_error *err)
{
    const char *name = NULL;
    if (status == dnnl_out_of_memory) {
        *desc = NULL;
        return weir_error_set(err, WEIR_ERR_NOMEM, "oneDNN: no memory");
    }
    if (status != dnnl_success) {
        *desc = NULL;
        return WEIR_OK;
    }
    status = dnnl_primitive_desc_query(*desc, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && name != NULL && strstr(name, "ref") != NULL) {
        dnnl_primitive_desc_destroy(*desc);
        *desc = NULL;
    }
    return WEIR_OK;
}

weir_status onednn_desc(const struct fast *fast, const void *op_desc, dnnl_primitive_attr_t attr,
                        dnnl_primitive_desc_t *out, struct weir_error *err)
{
    if (attr == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "oneDNN: no memory for attributes");
    }
    dnnl_status_t status = dnnl_primitive_desc_create(out, op_desc, attr, fast->engine, NULL);
    dnnl_primitive_attr_destroy(attr);
    return onednn_desc_checked(status, out, err);
}
