#include "op.h"

#include "tensor/convert.h"

#include <string.h>

struct family {
    const struct onnx_op *ops;
    const size_t *n;
};

#define X(name)                                                                                    \
    extern const struct onnx_op onnx_ops_##name[];                                                 \
    extern const size_t onnx_n_ops_##name;
#include "families.def"
#undef X

static const struct family families[] = {
#define X(name) {onnx_ops_##name, &onnx_n_ops_##name},
#include "families.def"
#undef X
};

const struct onnx_op *onnx_op_find(const char *type, int64_t opset)
{
    const struct onnx_op *found = NULL;
    for (size_t f = 0; f < WEIR_ARRAY_LEN(families); f++) {
        for (size_t i = 0; i < *families[f].n; i++) {
            const struct onnx_op *op = &families[f].ops[i];
            if (strcmp(op->type, type) == 0 && op->since <= opset &&
                (found == NULL || op->since > found->since)) {
                found = op;
            }
        }
    }
    return found;
}

bool onnx_op_is_known(const char *type)
{
    return onnx_op_find(type, INT64_MAX) != NULL;
}

bool onnx_node_may_train(const struct onnx_node *node)
{
    return strcmp(node->type, "Dropout") == 0 && node->n_in > 2 && node->in[2][0] != '\0';
}

bool onnx_node_draws(const struct onnx_node *node)
{
    const struct onnx_call call = {.node = node};
    return onnx_node_may_train(node) && onnx_attribute(&call, "seed") == NULL;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static weir_status charge(struct onnx_call *call, enum weir_dtype dtype, int32_t rank,
                          const int64_t *dims, struct weir_error *err)
{
    size_t n, elem_bytes = weir_dtype_bytes(dtype);
    char text[WEIR_TENSOR_TEXT_BYTES];
    WEIR_TRY(weir_tensor_count(rank, dims, elem_bytes, &n, err));
    if (n * elem_bytes > call->budget->most_bytes - call->budget->used_bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%s elements of %s are more than the %zu MiB that a run may hold",
                              weir_tensor_dims_text(rank, dims, text), weir_dtype_name(dtype),
                              call->budget->most_bytes >> 20);
    }
    return WEIR_OK;
}

weir_status onnx_out(struct onnx_call *call, size_t i, enum weir_dtype dtype, int32_t rank,
                     const int64_t *dims, struct weir_tensor **out, struct weir_error *err)
{
    struct weir_tensor *tensor;
    WEIR_TRY(charge(call, dtype, rank, dims, err));
    WEIR_TRY(weir_tensor_create(dtype, rank, dims, &tensor, err));
    call->budget->used_bytes += tensor->n_elems * weir_dtype_bytes(dtype);
    call->out[i] = tensor;
    *out = tensor;
    return WEIR_OK;
}

weir_status onnx_out_like(struct onnx_call *call, size_t i, const struct weir_tensor *like,
                          struct weir_tensor **out, struct weir_error *err)
{
    return onnx_out(call, i, like->dtype, like->rank, like->dims, out, err);
}

weir_status onnx_alias(struct onnx_call *call, size_t i, struct weir_tensor *tensor, int32_t rank,
                       const int64_t *dims, struct weir_error *err)
{
    return weir_tensor_view(tensor, rank, dims, &call->out[i], err);
}

weir_status onnx_scratch(struct onnx_call *call, enum weir_dtype dtype, int32_t rank,
                         const int64_t *dims, struct weir_tensor **out, struct weir_error *err)
{
    WEIR_TRY(charge(call, dtype, rank, dims, err));
    return weir_tensor_create(dtype, rank, dims, out, err);
}

double onnx_get(const struct weir_tensor *tensor, size_t i)
{
    double value;
    if (tensor->dtype == WEIR_DTYPE_FLOAT) {
        return ((const float *)tensor->data)[i];
    }
    weir_elems_to_f64(tensor->dtype,
                      (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), &value, 1);
    return value;
}

void onnx_put(struct weir_tensor *tensor, size_t i, double value)
{
    if (tensor->dtype == WEIR_DTYPE_FLOAT) {
        ((float *)tensor->data)[i] = (float)value;
    } else {
        weir_elems_from_f64(tensor->dtype, &value,
                            (char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), 1,
                            WEIR_OVERFLOW_SATURATES);
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

const struct onnx_attribute *onnx_attribute(const struct onnx_call *call, const char *name)
{
    for (size_t i = 0; i < call->node->n_attributes; i++) {
        if (strcmp(call->node->attributes[i].name, name) == 0) {
            return &call->node->attributes[i];
        }
    }
    return NULL;
}

int64_t onnx_int(const struct onnx_call *call, const char *name, int64_t otherwise)
{
    const struct onnx_attribute *found = onnx_attribute(call, name);
    return found != NULL ? found->i : otherwise;
}

float onnx_float(const struct onnx_call *call, const char *name, float otherwise)
{
    const struct onnx_attribute *found = onnx_attribute(call, name);
    return found != NULL ? found->f : otherwise;
}

bool onnx_text_is(const struct onnx_call *call, const char *name, const char *otherwise,
                  const char *text)
{
    const struct onnx_attribute *found = onnx_attribute(call, name);
    return found != NULL
               ? found->s.len == strlen(text) && memcmp(found->s.at, text, found->s.len) == 0
               : strcmp(otherwise, text) == 0;
}

const int64_t *onnx_ints(const struct onnx_call *call, const char *name, size_t *out_n)
{
    const struct onnx_attribute *found = onnx_attribute(call, name);
    *out_n = found != NULL && found->ints != NULL ? found->n : 0;
    return *out_n > 0 ? found->ints : NULL;
}

const float *onnx_floats(const struct onnx_call *call, const char *name, size_t *out_n)
{
    const struct onnx_attribute *found = onnx_attribute(call, name);
    *out_n = found != NULL && found->floats != NULL ? found->n : 0;
    return *out_n > 0 ? found->floats : NULL;
}

weir_status onnx_axis(int64_t axis, int32_t rank, int32_t *out, struct weir_error *err)
{
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
        return weir_error_set(err, WEIR_ERR_INVALID, "axis %lld of %d dimensions", (long long)axis,
                              rank);
    }
    *out = (int32_t)at;
    return WEIR_OK;
}

weir_status onnx_in_ints(const struct onnx_call *call, size_t input, size_t most, int64_t *out,
                         size_t *out_n, struct weir_error *err)
{
    const struct weir_tensor *tensor = onnx_in(call, input);
    if (tensor == NULL ||
        (tensor->dtype != WEIR_DTYPE_INT64 && tensor->dtype != WEIR_DTYPE_INT32) ||
        tensor->n_elems > most) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input %zu is not a list of at most %zu integers", input, most);
    }
    weir_elems_to_i64(tensor->dtype, tensor->data, out, tensor->n_elems);
    *out_n = tensor->n_elems;
    return WEIR_OK;
}

double onnx_in_number(const struct onnx_call *call, size_t input, double otherwise)
{
    const struct weir_tensor *tensor = onnx_in(call, input);
    return tensor != NULL && tensor->n_elems > 0 ? onnx_get(tensor, 0) : otherwise;
}

int64_t onnx_in_int(const struct onnx_call *call, size_t input, int64_t otherwise)
{
    const struct weir_tensor *tensor = onnx_in(call, input);
    if (tensor != NULL && tensor->n_elems > 0) {
        weir_elems_to_i64(tensor->dtype, tensor->data, &otherwise, 1);
    }
    return otherwise;
}

weir_status onnx_axes(const struct onnx_call *call, size_t input, int32_t rank,
                      bool out[WEIR_TENSOR_RANK_MAX], bool *out_has, struct weir_error *err)
{
    int64_t given[WEIR_TENSOR_RANK_MAX];
    size_t n = 0;
    const int64_t *axes = onnx_ints(call, "axes", &n);
    if (axes == NULL && onnx_in(call, input) != NULL) {
        WEIR_TRY(onnx_in_ints(call, input, WEIR_TENSOR_RANK_MAX, given, &n, err));
        axes = given;
    }
    memset(out, 0, WEIR_TENSOR_RANK_MAX * sizeof *out);
    *out_has = n > 0;
    for (size_t i = 0; i < n; i++) {
        int32_t axis = 0;
        WEIR_TRY(onnx_axis(axes[i], rank, &axis, err));
        out[axis] = true;
    }
    return WEIR_OK;
}

weir_status onnx_refuse_dtype(enum weir_dtype dtype, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "elements of %s are not supported",
                          weir_dtype_name(dtype));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct onnx_split onnx_split_at(const struct weir_tensor *tensor, int32_t axis)
{
    struct onnx_split split = {1, (size_t)tensor->dims[axis], 1};
    for (int32_t i = 0; i < axis; i++) {
        split.n_outer *= (size_t)tensor->dims[i];
    }
    for (int32_t i = axis + 1; i < tensor->rank; i++) {
        split.n_inner *= (size_t)tensor->dims[i];
    }
    return split;
}

static weir_status join_dims(const struct weir_tensor *tensor, struct onnx_walk *walk,
                             struct weir_error *err)
{
    int32_t shift = walk->rank - tensor->rank;
    char a[WEIR_TENSOR_TEXT_BYTES], b[WEIR_TENSOR_TEXT_BYTES];
    for (int32_t i = 0; i < tensor->rank; i++) {
        int64_t *dim = &walk->dims[i + shift];
        if (*dim != tensor->dims[i] && *dim != 1 && tensor->dims[i] != 1) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s and %s do not fit each other",
                                  weir_tensor_dims_text(walk->rank, walk->dims, a),
                                  weir_tensor_dims_text(tensor->rank, tensor->dims, b));
        }
        *dim = *dim == 1 ? tensor->dims[i] : *dim;
    }
    return WEIR_OK;
}

weir_status onnx_broadcast(struct weir_tensor *const *in, size_t n, struct onnx_walk *walk,
                           struct weir_error *err)
{
    *walk = (struct onnx_walk){.rank = 0};
    for (size_t k = 0; k < n; k++) {
        walk->rank = WEIR_MAX(walk->rank, in[k]->rank);
    }
    for (int32_t i = 0; i < walk->rank; i++) {
        walk->dims[i] = 1;
    }
    for (size_t k = 0; k < n; k++) {
        WEIR_TRY(join_dims(in[k], walk, err));
    }
    WEIR_TRY(weir_tensor_count(walk->rank, walk->dims, 1, &walk->n_elems, err));
    for (size_t k = 0; k < WEIR_MIN(n, (size_t)ONNX_OPERANDS_MAX); k++) {
        int64_t stride = 1;
        for (int32_t i = in[k]->rank - 1; i >= 0; i--) {
            int32_t at = i + walk->rank - in[k]->rank;
            walk->strides[k][at] = in[k]->dims[i] == 1 ? 0 : stride;
            stride *= in[k]->dims[i];
        }
    }
    return WEIR_OK;
}

size_t onnx_walk_at(const struct onnx_walk *walk, size_t k, size_t i)
{
    size_t at = 0;
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        at += i % (size_t)walk->dims[d] * (size_t)walk->strides[k][d];
        i /= (size_t)walk->dims[d];
    }
    return at;
}
