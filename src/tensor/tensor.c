#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_ALIGN ((size_t)64)

struct dtype {
    const char *name;
    size_t n_bytes, n_bits;
    enum weir_dtype_class class;
};

static const struct dtype dtypes[WEIR_DTYPE_END] = {
    [WEIR_DTYPE_NONE] = {.name = "NONE", .n_bytes = 1},
#define X(name, number, bytes, bits, class) [number] = {#name, bytes, bits, WEIR_DTYPE_IS_##class},
#include "tensor/dtype.def"
#undef X
};

_Static_assert(sizeof(struct weir_tensor_string) <= 16, "dtype.def says 16 bytes");

enum weir_dtype weir_dtype_of(int64_t number)
{
    return number > 0 && number < WEIR_DTYPE_END ? (enum weir_dtype)number : WEIR_DTYPE_NONE;
}

const char *weir_dtype_name(enum weir_dtype dtype)
{
    return dtypes[weir_dtype_of(dtype)].name;
}

enum weir_dtype_class weir_dtype_class(enum weir_dtype dtype)
{
    return dtypes[weir_dtype_of(dtype)].class;
}

size_t weir_dtype_bytes(enum weir_dtype dtype)
{
    return dtypes[weir_dtype_of(dtype)].n_bytes;
}

size_t weir_dtype_bits(enum weir_dtype dtype)
{
    return dtypes[weir_dtype_of(dtype)].n_bits;
}

const char *weir_tensor_dims_text(int32_t rank, const int64_t *dims,
                                  char out[WEIR_TENSOR_TEXT_BYTES])
{
    size_t at = (size_t)snprintf(out, WEIR_TENSOR_TEXT_BYTES, "%s", rank == 0 ? "scalar" : "");
    for (int32_t i = 0; i < rank && at < WEIR_TENSOR_TEXT_BYTES; i++) {
        at += (size_t)snprintf(out + at, WEIR_TENSOR_TEXT_BYTES - at, i == 0 ? "%lld" : "x%lld",
                               (long long)dims[i]);
    }
    return out;
}

weir_status weir_tensor_count(int32_t rank, const int64_t *dims, size_t elem_bytes, size_t *out,
                              struct weir_error *err)
{
    char text[WEIR_TENSOR_TEXT_BYTES];
    size_t most = PTRDIFF_MAX / (elem_bytes + DATA_ALIGN), n = 1;
    if (rank < 0 || rank > WEIR_TENSOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%d dimensions: %d are the most", rank,
                              WEIR_TENSOR_RANK_MAX);
    }
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: a dimension is negative",
                                  weir_tensor_dims_text(rank, dims, text));
        }
        n *= dims[i] == 0 ? 0 : 1;
    }
    for (int32_t i = 0; i < rank && n > 0; i++) {
        if ((uint64_t)dims[i] > most / n) {
            return weir_error_set(err, WEIR_ERR_LIMIT, "%s elements are too many",
                                  weir_tensor_dims_text(rank, dims, text));
        }
        n *= (size_t)dims[i];
    }
    *out = n;
    return WEIR_OK;
}

static struct weir_tensor *make(enum weir_dtype dtype, int32_t rank, const int64_t *dims, size_t n)
{
    struct weir_tensor *tensor = calloc(1, sizeof *tensor);
    if (tensor != NULL) {
        tensor->dtype = dtype;
        tensor->rank = rank;
        tensor->n_elems = n;
        atomic_init(&tensor->n_references, 1);
        for (int32_t i = 0; i < rank; i++) {
            tensor->dims[i] = dims[i];
        }
    }
    return tensor;
}

weir_status weir_tensor_create(enum weir_dtype dtype, int32_t rank, const int64_t *dims,
                               struct weir_tensor **out, struct weir_error *err)
{
    size_t n, elem_bytes = weir_dtype_bytes(dtype);
    char text[WEIR_TENSOR_TEXT_BYTES];
    WEIR_TRY(weir_tensor_count(rank, dims, elem_bytes, &n, err));
    size_t n_bytes = (n * elem_bytes / DATA_ALIGN + 1) * DATA_ALIGN;
    struct weir_tensor *tensor = make(dtype, rank, dims, n);
    void *data = tensor != NULL ? aligned_alloc(DATA_ALIGN, n_bytes) : NULL;
    if (data == NULL) {
        free(tensor);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %s elements of %s",
                              weir_tensor_dims_text(rank, dims, text), weir_dtype_name(dtype));
    }
    tensor->data = memset(data, 0, n_bytes);
    *out = tensor;
    return WEIR_OK;
}

weir_status weir_tensor_view(struct weir_tensor *tensor, int32_t rank, const int64_t *dims,
                             struct weir_tensor **out, struct weir_error *err)
{
    size_t n;
    char to[WEIR_TENSOR_TEXT_BYTES], from[WEIR_TENSOR_TEXT_BYTES];
    WEIR_TRY(weir_tensor_count(rank, dims, weir_dtype_bytes(tensor->dtype), &n, err));
    if (n != tensor->n_elems) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s elements do not make %s",
                              weir_tensor_dims_text(tensor->rank, tensor->dims, from),
                              weir_tensor_dims_text(rank, dims, to));
    }
    struct weir_tensor *view = make(tensor->dtype, rank, dims, n);
    if (view == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a tensor");
    }
    view->data = tensor->data;
    view->owner = weir_tensor_retain(tensor);
    *out = view;
    return WEIR_OK;
}

struct weir_tensor *weir_tensor_retain(struct weir_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->n_references, 1, memory_order_relaxed);
    return tensor;
}

static void free_strings(const struct weir_tensor *tensor)
{
    struct weir_tensor_string *strings = tensor->data;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        free(strings[i].bytes);
    }
}

void weir_tensor_release(struct weir_tensor *tensor)
{
    while (tensor != NULL &&
           atomic_fetch_sub_explicit(&tensor->n_references, 1, memory_order_acq_rel) == 1) {
        struct weir_tensor *owner = tensor->owner;
        if (owner == NULL) {
            if (tensor->dtype == WEIR_DTYPE_STRING) {
                free_strings(tensor);
            }
            free(tensor->data);
        }
        free(tensor);
        tensor = owner;
    }
}

static weir_status copy_strings(struct weir_tensor_string *to,
                                const struct weir_tensor_string *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (from[i].len > 0) {
            to[i].bytes = malloc(from[i].len);
            if (to[i].bytes == NULL) {
                return WEIR_ERR_NOMEM;
            }
            memcpy(to[i].bytes, from[i].bytes, from[i].len);
        }
        to[i].len = from[i].len;
    }
    return WEIR_OK;
}

weir_status weir_elems_copy(enum weir_dtype dtype, void *to, const void *from, size_t n)
{
    if (dtype == WEIR_DTYPE_STRING) {
        return copy_strings(to, from, n);
    }
    if (n > 0) {
        memcpy(to, from, n * weir_dtype_bytes(dtype));
    }
    return WEIR_OK;
}
