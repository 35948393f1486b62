/* Layouts of oneDNN 2: a struct. */
#include "native.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(dnnl_memory_desc_t) <= WEIR_DNN_NATIVE_BYTES, "a layout has room");

static void read_native(struct weir_dnn_layout *out, const dnnl_memory_desc_t *md)
{
    memset(out, 0, sizeof *out);
    memcpy(out->native.bytes, md, sizeof *md);
    out->ndims = md->ndims;
    out->data_type = md->data_type;
    memcpy(out->dims, md->dims, sizeof out->dims);
    memcpy(out->padded_dims, md->padded_dims, sizeof out->padded_dims);
    out->is_blocked = md->format_kind == dnnl_blocked;
    out->has_extra = md->extra.flags != dnnl_memory_extra_flag_none || md->offset0 != 0;
    if (out->is_blocked) {
        const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
        out->n_blocks = blocking->inner_nblks;
        memcpy(out->strides, blocking->strides, sizeof out->strides);
        memcpy(out->block_sizes, blocking->inner_blks, sizeof out->block_sizes);
        memcpy(out->block_indexes, blocking->inner_idxs, sizeof out->block_indexes);
    }
    out->n_bytes = dnnl_memory_desc_get_size(md);
}

static dnnl_status_t take(struct weir_dnn_layout *out, dnnl_status_t status,
                          const dnnl_memory_desc_t *md)
{
    if (status == dnnl_success) {
        read_native(out, md);
    } else {
        memset(out, 0, sizeof *out);
    }
    return status;
}

dnnl_status_t weir_dnn_layout_named(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    return take(out, dnnl_memory_desc_init_by_tag(&md, ndims, dims, type, tag), &md);
}

dnnl_status_t weir_dnn_layout_strided(struct weir_dnn_layout *out, int ndims, const int64_t *dims,
                                      dnnl_data_type_t type, const int64_t *strides)
{
    dnnl_memory_desc_t md;
    return take(out, dnnl_memory_desc_init_by_strides(&md, ndims, dims, type, strides), &md);
}

dnnl_status_t weir_dnn_layout_permuted(struct weir_dnn_layout *out,
                                       const struct weir_dnn_layout *from, const int *permutation)
{
    dnnl_memory_desc_t md;
    return take(out, dnnl_memory_desc_permute_axes(&md, native_of(from), permutation), &md);
}

struct weir_dnn_layout weir_dnn_layout_of(const_dnnl_primitive_desc_t desc, dnnl_query_t what)
{
    struct weir_dnn_layout layout;
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    (void)take(&layout, md != NULL ? dnnl_success : dnnl_unimplemented, md);
    return layout;
}

bool weir_dnn_layout_equal(const struct weir_dnn_layout *a, const struct weir_dnn_layout *b)
{
    return dnnl_memory_desc_equal(native_of(a), native_of(b)) != 0;
}

dnnl_status_t weir_dnn_memory(dnnl_memory_t *out, const struct weir_dnn_layout *layout,
                              dnnl_engine_t engine, void *data)
{
    return dnnl_memory_create(out, native_of(layout), engine, data);
}
