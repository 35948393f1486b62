/* Layouts of oneDNN 3: an object, which is kept as its bytes. */
#include "native.h"

#include <string.h>

static size_t bytes_of(dnnl_data_type_t type)
{
    return dnnl_data_type_size(type);
}

static void read_dims(const_dnnl_memory_desc_t md, dnnl_query_t what, dnnl_dims_t out)
{
    const dnnl_dims_t *dims = NULL;
    if (dnnl_memory_desc_query(md, what, &dims) == dnnl_success && dims != NULL) {
        memcpy(out, *dims, sizeof *dims);
    }
}

/* Compensations of quantised weights lie behind the elements, and nothing else tells of them. */
static bool holds_more(const struct weir_dnn_layout *layout)
{
    size_t n_bytes = bytes_of(layout->data_type), n = 1;
    for (int i = 0; i < layout->ndims; i++) {
        n *= (size_t)layout->padded_dims[i];
    }
    size_t reach = 1, block = 1;
    for (int i = 0; i < layout->n_blocks; i++) {
        block *= (size_t)layout->block_sizes[i];
    }
    for (int i = 0; i < layout->ndims; i++) { /* blocks may lie apart */
        size_t n_blocks = (size_t)layout->padded_dims[i];
        for (int b = 0; b < layout->n_blocks; b++) {
            n_blocks /= layout->block_indexes[b] == i ? (size_t)layout->block_sizes[b] : 1;
        }
        reach += (n_blocks > 0 ? n_blocks - 1 : 0) * (size_t)layout->strides[i];
    }
    reach += block - 1;
    return layout->n_bytes > (n > reach ? n : reach) * n_bytes;
}

static dnnl_status_t read_native(struct weir_dnn_layout *out, const_dnnl_memory_desc_t md)
{
    size_t size = 0;
    dnnl_dim_t offset = 0;
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    memset(out, 0, sizeof *out);
    if (dnnl_memory_desc_get_blob(NULL, &size, md) != dnnl_success ||
        size > WEIR_DNN_NATIVE_BYTES ||
        dnnl_memory_desc_get_blob(out->native.bytes, &size, md) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &out->ndims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_data_type, &out->data_type) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success) {
        memset(out, 0, sizeof *out);
        return dnnl_runtime_error;
    }
    (void)dnnl_memory_desc_query(md, dnnl_query_submemory_offset_s64, &offset);
    read_dims(md, dnnl_query_dims, out->dims);
    read_dims(md, dnnl_query_padded_dims, out->padded_dims);
    out->is_blocked = kind == dnnl_blocked;
    out->n_bytes = dnnl_memory_desc_get_size(md);
    if (out->is_blocked) {
        (void)dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &out->n_blocks);
        read_dims(md, dnnl_query_strides, out->strides);
        read_dims(md, dnnl_query_inner_blks, out->block_sizes);
        read_dims(md, dnnl_query_inner_idxs, out->block_indexes);
    }
    out->has_extra = offset != 0 || (out->is_blocked && holds_more(out));
    return dnnl_success;
}

dnnl_status_t native_open(const struct weir_dnn_layout *layout, dnnl_memory_desc_t *out)
{
    *out = NULL;
    return layout == NULL ? dnnl_success
                          : dnnl_memory_desc_create_with_blob(out, layout->native.bytes);
}

/* Reads and destroys what was made. */
static dnnl_status_t take(struct weir_dnn_layout *out, dnnl_status_t status, dnnl_memory_desc_t md)
{
    if (status != dnnl_success) {
        memset(out, 0, sizeof *out);
        return status;
    }
    status = read_native(out, md);
    dnnl_memory_desc_destroy(md);
    return status;
}

dnnl_status_t weir_dnn_layout_named(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&md, ndims, dims, type, tag);
    return take(out, status, md);
}

dnnl_status_t weir_dnn_layout_strided(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                      dnnl_data_type_t type, const int64_t *strides)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_strides(&md, ndims, dims, type, strides);
    return take(out, status, md);
}

dnnl_status_t weir_dnn_layout_permuted(struct weir_dnn_layout *out,
                                       const struct weir_dnn_layout *from, const int *permutation)
{
    dnnl_memory_desc_t md = NULL, permuted = NULL;
    dnnl_status_t status = native_open(from, &md);
    if (status == dnnl_success) {
        status = dnnl_memory_desc_permute_axes(&permuted, md, permutation);
        dnnl_memory_desc_destroy(md);
    }
    return take(out, status, permuted);
}

struct weir_dnn_layout weir_dnn_layout_of(const_dnnl_primitive_desc_t desc, dnnl_query_t what)
{
    struct weir_dnn_layout layout = {.ndims = 0};
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(desc, what, 0);
    if (md != NULL) {
        (void)read_native(&layout, md);
    }
    return layout;
}

bool weir_dnn_layout_equal(const struct weir_dnn_layout *a, const struct weir_dnn_layout *b)
{
    dnnl_memory_desc_t native[2] = {NULL, NULL};
    bool is = native_open(a, &native[0]) == dnnl_success &&
              native_open(b, &native[1]) == dnnl_success &&
              dnnl_memory_desc_equal(native[0], native[1]) != 0;
    for (int i = 0; i < 2; i++) {
        dnnl_memory_desc_destroy(native[i]);
    }
    return is;
}

dnnl_status_t weir_dnn_memory(dnnl_memory_t *out, const struct weir_dnn_layout *layout,
                              dnnl_engine_t engine, void *data)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status = native_open(layout, &md);
    if (status == dnnl_success) {
        status = dnnl_memory_create(out, md, engine, data);
    }
    dnnl_memory_desc_destroy(md);
    return status;
}
