/* The writing half of safetensors.h. */
#include "nn/safetensors.h"

#include "base/file.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_BYTES    ((size_t)8)
#define ALIGNMENT_BYTES ((size_t)8)

/** Put a new value under a key that must be new and UTF-8. Takes the value, as jansson does. */
static weir_status object_add(json_t *object, const char *key, json_t *value, const char *noun,
                              struct weir_error *err)
{
    if (json_object_get(object, key) != NULL) {
        json_decref(value);
        return weir_error_set(err, WEIR_ERR_INVALID, "%s \"%.100s\" is given twice", noun, key);
    }
    if (json_object_set_new(object, key, value) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s \"%.100s\" or its text is not UTF-8", noun,
                              key);
    }
    return WEIR_OK;
}

static weir_status metadata_add(json_t *header, const struct weir_safetensors_text *metadata,
                                size_t n_metadata, struct weir_error *err)
{
    if (n_metadata == 0) {
        return WEIR_OK;
    }
    json_t *object = json_object();
    WEIR_TRY(object_add(header, "__metadata__", object, "metadata", err));
    for (size_t i = 0; i < n_metadata; i++) {
        WEIR_TRY(
            object_add(object, metadata[i].key, json_string(metadata[i].text), "metadata", err));
    }
    return WEIR_OK;
}

/** Bytes of a tensor. */
static weir_status tensor_size(const struct weir_safetensors_tensor *tensor, size_t *out_bytes,
                               struct weir_error *err)
{
    size_t n_bytes = sizeof *tensor->data;
    bool is_good = tensor->n_dims >= 0 && tensor->n_dims <= WEIR_SAFETENSORS_DIMS_MAX;
    for (int32_t i = 0; is_good && i < tensor->n_dims; i++) {
        is_good = tensor->dims[i] >= 0 &&
                  !__builtin_mul_overflow(n_bytes, (size_t)tensor->dims[i], &n_bytes);
    }
    /* Offsets are written as JSON integers, which are signed. */
    if (!is_good || n_bytes > INT64_MAX / 2) {
        return weir_error_set(err, WEIR_ERR_INVALID, "tensor \"%.100s\" has no possible shape",
                              tensor->name);
    }
    *out_bytes = n_bytes;
    return WEIR_OK;
}

static weir_status tensors_add(json_t *header, const struct weir_safetensors_tensor *tensors,
                               size_t n_tensors, size_t *out_bytes, struct weir_error *err)
{
    size_t end = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const struct weir_safetensors_tensor *tensor = &tensors[i];
        size_t n_bytes, begin = end;
        WEIR_TRY(tensor_size(tensor, &n_bytes, err));
        if (*tensor->name == '\0' || strcmp(tensor->name, "__metadata__") == 0 ||
            __builtin_add_overflow(end, n_bytes, &end) || end > INT64_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "tensor \"%.100s\": empty or reserved name, or too large",
                                  tensor->name);
        }
        json_t *shape = json_array();
        for (int32_t d = 0; d < tensor->n_dims; d++) {
            (void)json_array_append_new(shape, json_integer(tensor->dims[d]));
        }
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                                  "data_offsets", (json_int_t)begin, (json_int_t)end);
        WEIR_TRY(object_add(header, tensor->name, entry, "tensor", err));
    }
    *out_bytes = end;
    return WEIR_OK;
}

/** One block: length, header padded with spaces, data. */
static weir_status file_assemble(const char *header, const struct weir_safetensors_tensor *tensors,
                                 size_t n_tensors, size_t n_data, void **out_bytes, size_t *out_len,
                                 struct weir_error *err)
{
    size_t n_text = strlen(header);
    size_t n_header = (n_text + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    if (n_header > WEIR_SAFETENSORS_HEADER_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "header of %zu bytes, at most %zu are written",
                              n_header, WEIR_SAFETENSORS_HEADER_MAX);
    }
    size_t len = PREFIX_BYTES + n_header + n_data;
    unsigned char *bytes = len > n_data ? malloc(len) : NULL;
    if (bytes == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a file of %zu bytes", n_data);
    }
    for (size_t i = 0; i < PREFIX_BYTES; i++) {
        bytes[i] = (unsigned char)((uint64_t)n_header >> (8 * i));
    }
    unsigned char *at = bytes + PREFIX_BYTES;
    memcpy(at, header, n_text);
    memset(at + n_text, ' ', n_header - n_text);
    at += n_header;
    for (size_t i = 0; i < n_tensors; i++) {
        size_t n_bytes = 0;
        weir_status status = tensor_size(&tensors[i], &n_bytes, err);
        if (status != WEIR_OK) {
            free(bytes);
            return status;
        }
        if (n_bytes > 0) {
            memcpy(at, tensors[i].data, n_bytes);
        }
        at += n_bytes;
    }
    *out_bytes = bytes;
    *out_len = len;
    return WEIR_OK;
}

weir_status weir_safetensors_encode(const struct weir_safetensors_tensor *tensors, size_t n_tensors,
                                    const struct weir_safetensors_text *metadata, size_t n_metadata,
                                    void **out_bytes, size_t *out_len, struct weir_error *err)
{
    char *text = NULL;
    size_t n_data = 0;
    weir_status status = WEIR_OK;
    json_t *header = json_object();
    WEIR_TRY_GOTO(metadata_add(header, metadata, n_metadata, err), status, free_header);
    WEIR_TRY_GOTO(tensors_add(header, tensors, n_tensors, &n_data, err), status, free_header);
    text = json_dumps(header, JSON_COMPACT);
    if (text == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the header");
        goto free_header;
    }
    status = file_assemble(text, tensors, n_tensors, n_data, out_bytes, out_len, err);
free_header:
    free(text);
    json_decref(header);
    return status;
}

weir_status weir_safetensors_write(const char *path, const struct weir_safetensors_tensor *tensors,
                                   size_t n_tensors, const struct weir_safetensors_text *metadata,
                                   size_t n_metadata, struct weir_error *err)
{
    void *bytes;
    size_t len;
    weir_status status =
        weir_safetensors_encode(tensors, n_tensors, metadata, n_metadata, &bytes, &len, err);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "%s: ", path);
        return status;
    }
    status = weir_file_write_atomic(path, bytes, len, 0644, err);
    free(bytes);
    return status;
}
