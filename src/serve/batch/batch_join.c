#include "serve/batch/batch_join.h"

#include <string.h>

void batch_release(struct weir_tensor **tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        weir_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

static bool can_join(const struct weir_tensor *a, const struct weir_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->rank > 0 &&
           memcmp(a->dims + 1, b->dims + 1, (size_t)(a->rank - 1) * sizeof *a->dims) == 0;
}

bool batch_can_join(struct weir_tensor *const *a, struct weir_tensor *const *b, size_t n_inputs)
{
    for (size_t i = 0; i < n_inputs; i++) {
        if (!can_join(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

static weir_status join_input(struct batch_request *const *requests, size_t n, size_t i_input,
                              int64_t n_rows, struct weir_tensor **out)
{
    const struct weir_tensor *like = requests[0]->in[i_input];
    size_t elem_bytes = weir_dtype_bytes(like->dtype);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    memcpy(dims, like->dims, sizeof dims);
    dims[0] = n_rows;
    WEIR_TRY(weir_tensor_create(like->dtype, like->rank, dims, out, NULL));
    char *at = (*out)->data;
    for (size_t i = 0; i < n; i++) {
        const struct weir_tensor *in = requests[i]->in[i_input];
        weir_status status = weir_elems_copy(in->dtype, at, in->data, in->n_elems);
        if (status != WEIR_OK) {
            weir_tensor_release(*out);
            *out = NULL;
            return status;
        }
        at += in->n_elems * elem_bytes;
    }
    return WEIR_OK;
}

weir_status batch_join(struct batch_request *const *requests, size_t n, size_t n_inputs,
                       struct weir_tensor **out)
{
    int64_t n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        n_rows += requests[i]->n_rows;
    }
    for (size_t i = 0; i < n_inputs; i++) {
        weir_status status = join_input(requests, n, i, n_rows, &out[i]);
        if (status != WEIR_OK) {
            batch_release(out, i);
            return status;
        }
    }
    return WEIR_OK;
}

bool batch_has_rows(struct weir_tensor *const *outputs, size_t n_outputs, int64_t n_rows)
{
    for (size_t i = 0; i < n_outputs; i++) {
        if (outputs[i]->rank < 1 || outputs[i]->dims[0] != n_rows) {
            return false;
        }
    }
    return true;
}

static weir_status copy_rows(const struct weir_tensor *from, int64_t first, int64_t n_rows,
                             struct weir_tensor **out)
{
    size_t row_elems = from->n_elems / (size_t)from->dims[0];
    size_t elem_bytes = weir_dtype_bytes(from->dtype);
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    memcpy(dims, from->dims, sizeof dims);
    dims[0] = n_rows;
    WEIR_TRY(weir_tensor_create(from->dtype, from->rank, dims, out, NULL));
    const char *at = (const char *)from->data + (size_t)first * row_elems * elem_bytes;
    weir_status status = weir_elems_copy(from->dtype, (*out)->data, at, (*out)->n_elems);
    if (status != WEIR_OK) {
        weir_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

weir_status batch_split(struct weir_tensor *const *outputs, size_t n_outputs,
                        struct batch_request *const *requests, size_t n)
{
    int64_t first = 0;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n; i++) {
        memset(requests[i]->out, 0, n_outputs * sizeof(struct weir_tensor *));
    }
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        for (size_t k = 0; k < n_outputs && status == WEIR_OK; k++) {
            status = copy_rows(outputs[k], first, requests[i]->n_rows, &requests[i]->out[k]);
        }
        first += requests[i]->n_rows;
    }
    for (size_t i = 0; i < n && status != WEIR_OK; i++) {
        batch_release(requests[i]->out, n_outputs);
    }
    return status;
}
