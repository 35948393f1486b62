#include "serve/protocol/oip_tensor.h"

#include "serve/protocol/tensor_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A data array that comes before its datatype is read when that is known. */
struct reading {
    const char *name, *datatype;
    enum weir_dtype dtype;
    int32_t rank; /* -1: no shape yet */
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    int64_t raw_bytes; /* -1: none */
    struct weir_json_text data;
    struct tensor_fill fill;
    bool is_filled;
};

static weir_status read_shape(struct weir_json_scan *scan, struct reading *reading)
{
    struct weir_json_number number;
    WEIR_TRY(weir_json_scan_enter(scan, '['));
    reading->rank = 0;
    while (weir_json_scan_element(scan)) {
        WEIR_TRY(weir_json_scan_number(scan, true, &number));
        if (!number.is_integer || (number.is_negative && number.magnitude > 0) ||
            number.magnitude > INT64_MAX) {
            return weir_json_scan_fail(scan, "a dimension before it: an integer from 0 on");
        }
        if (reading->rank == WEIR_TENSOR_RANK_MAX) {
            return weir_json_scan_fail(scan, "a shape of at most 8 dimensions");
        }
        reading->dims[reading->rank++] = (int64_t)number.magnitude;
    }
    return scan->status;
}

static weir_status read_parameters(struct weir_json_scan *scan, struct weir_arena *arena,
                                   struct reading *reading)
{
    const char *key;
    WEIR_TRY(weir_json_scan_enter(scan, '{'));
    while (weir_json_scan_member(scan, arena, &key)) {
        if (strcmp(key, "binary_data_size") == 0) {
            struct weir_json_number number;
            WEIR_TRY(weir_json_scan_number(scan, true, &number));
            if (!number.is_integer || number.is_negative || number.magnitude > INT64_MAX) {
                return weir_json_scan_fail(scan, "binary_data_size before it: a number of bytes");
            }
            reading->raw_bytes = (int64_t)number.magnitude;
        } else if (strncmp(key, "shared_memory", 13) == 0) {
            return weir_json_scan_fail(scan, "no shared memory: tensors are in the request");
        } else {
            WEIR_TRY(weir_json_scan_skip(scan, NULL));
        }
    }
    return scan->status;
}

static weir_status read_datatype(struct weir_json_scan *scan, struct weir_arena *arena,
                                 struct reading *reading)
{
    struct weir_json_text text;
    WEIR_TRY(weir_json_scan_text(scan, arena, &text));
    reading->datatype = text.bytes;
    reading->dtype = signature_dtype_of(text.bytes);
    return reading->dtype != WEIR_DTYPE_NONE
               ? WEIR_OK
               : weir_json_scan_fail(scan,
                                     "a datatype before it: BOOL, UINT8 to UINT64, INT8 to INT64, "
                                     "FP16, FP32, FP64, BF16 or BYTES");
}

static weir_status fill_from(struct weir_json_scan *scan, struct weir_arena *arena,
                             struct reading *reading)
{
    tensor_fill_init(&reading->fill, reading->dtype, arena);
    reading->is_filled = true;
    return tensor_fill_value(&reading->fill, scan);
}

static weir_status read_member(struct weir_json_scan *scan, struct weir_arena *arena,
                               const char *key, struct reading *reading)
{
    struct weir_json_text text;
    if (strcmp(key, "name") == 0) {
        WEIR_TRY(weir_json_scan_text(scan, arena, &text));
        reading->name = text.bytes;
        return WEIR_OK;
    }
    if (strcmp(key, "datatype") == 0) {
        return read_datatype(scan, arena, reading);
    }
    if (strcmp(key, "shape") == 0) {
        return read_shape(scan, reading);
    }
    if (strcmp(key, "parameters") == 0) {
        return read_parameters(scan, arena, reading);
    }
    if (strcmp(key, "data") != 0) {
        return weir_json_scan_skip(scan, NULL);
    }
    if (reading->is_filled || reading->data.bytes != NULL) {
        return weir_json_scan_fail(scan, "\"data\" once");
    }
    return reading->dtype != WEIR_DTYPE_NONE ? fill_from(scan, arena, reading)
                                             : weir_json_scan_skip(scan, &reading->data);
}

static weir_status take_raw(struct weir_json_scan *scan, struct oip_raw *raw,
                            const struct reading *reading, struct weir_tensor **out)
{
    if (raw == NULL || (uint64_t)reading->raw_bytes > raw->left) {
        return weir_error_set(scan->err, WEIR_ERR_INVALID,
                              "input '%.80s': binary_data_size is %" PRId64
                              ", and %zu bytes are left "
                              "behind the JSON",
                              reading->name, reading->raw_bytes, raw != NULL ? raw->left : 0);
    }
    const char *bytes = raw->at;
    raw->at += reading->raw_bytes;
    raw->left -= (size_t)reading->raw_bytes;
    return oip_raw_read(reading->name, reading->dtype, reading->rank, reading->dims, bytes,
                        (size_t)reading->raw_bytes, out, scan->err);
}

static weir_status make_tensor(struct weir_json_scan *scan, struct weir_arena *arena,
                               struct oip_raw *raw, struct reading *reading,
                               struct weir_tensor **out)
{
    const char *lacks = reading->name == NULL       ? "name"
                        : reading->datatype == NULL ? "datatype"
                        : reading->rank < 0         ? "shape"
                                                    : NULL;
    if (lacks != NULL) {
        return weir_error_set(scan->err, WEIR_ERR_INVALID, "input '%.80s' has no \"%s\"",
                              reading->name != NULL ? reading->name : "", lacks);
    }
    if (reading->raw_bytes >= 0) {
        return take_raw(scan, raw, reading, out);
    }
    if (reading->data.bytes != NULL) {
        struct weir_json_scan inner = *scan;
        inner.at = reading->data.bytes;
        inner.end = reading->data.bytes + reading->data.len;
        WEIR_TRY(fill_from(&inner, arena, reading));
    }
    if (!reading->is_filled) {
        return weir_error_set(scan->err, WEIR_ERR_INVALID, "input '%.80s' has no \"data\"",
                              reading->name);
    }
    return tensor_fill_take_as(&reading->fill, reading->name, reading->rank, reading->dims, out,
                               scan->err);
}

weir_status oip_tensor_read(struct weir_json_scan *scan, struct weir_arena *arena,
                            struct oip_raw *raw, struct oip_tensor *out)
{
    struct reading reading = {.rank = -1, .raw_bytes = -1};
    const char *key;
    weir_status status = weir_json_scan_enter(scan, '{');
    while (status == WEIR_OK && weir_json_scan_member(scan, arena, &key)) {
        status = read_member(scan, arena, key, &reading);
    }
    status = status != WEIR_OK ? status : scan->status;
    if (status == WEIR_OK) {
        status = make_tensor(scan, arena, raw, &reading, &out->tensor);
        out->name = reading.name;
    }
    if (reading.is_filled) {
        tensor_fill_fini(&reading.fill);
    }
    return status;
}

/* ---- raw ------------------------------------------------------------------------------------- */

static weir_status wrong_size(const char *name, int32_t rank, const int64_t *dims,
                              enum weir_dtype dtype, size_t n_bytes, struct weir_error *err)
{
    char text[WEIR_TENSOR_TEXT_BYTES];
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "input '%.80s': %zu bytes do not make a tensor %s of %s", name, n_bytes,
                          weir_tensor_dims_text(rank, dims, text), signature_datatype(dtype));
}

static bool read_strings(struct weir_tensor_string *to, size_t n, const char *at, size_t n_bytes)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t len;
        if (n_bytes < sizeof len) {
            return false;
        }
        memcpy(&len, at, sizeof len);
        at += sizeof len;
        n_bytes -= sizeof len;
        if (n_bytes < len) {
            return false;
        }
        if (len > 0) {
            to[i].bytes = malloc(len);
            if (to[i].bytes == NULL) {
                return false;
            }
            memcpy(to[i].bytes, at, len);
            to[i].len = len;
        }
        at += len;
        n_bytes -= len;
    }
    return n_bytes == 0;
}

weir_status oip_raw_read(const char *name, enum weir_dtype dtype, int32_t rank, const int64_t *dims,
                         const char *bytes, size_t n_bytes, struct weir_tensor **out,
                         struct weir_error *err)
{
    size_t n_elems;
    bool is_string = dtype == WEIR_DTYPE_STRING;
    WEIR_TRY(weir_tensor_count(rank, dims, weir_dtype_bytes(dtype), &n_elems, err));
    /* Looked at before memory is taken: a shape costs the caller nothing. */
    if (is_string ? n_bytes < 4 * n_elems : n_bytes != n_elems * weir_dtype_bytes(dtype)) {
        return wrong_size(name, rank, dims, dtype, n_bytes, err);
    }
    struct weir_tensor *tensor;
    WEIR_TRY(weir_tensor_create(dtype, rank, dims, &tensor, err));
    if (is_string && !read_strings(tensor->data, n_elems, bytes, n_bytes)) {
        weir_tensor_release(tensor);
        return wrong_size(name, rank, dims, dtype, n_bytes, err);
    }
    if (!is_string && n_bytes > 0) {
        memcpy(tensor->data, bytes, n_bytes);
    }
    *out = tensor;
    return WEIR_OK;
}

size_t oip_raw_bytes(const struct weir_tensor *tensor)
{
    if (tensor->dtype != WEIR_DTYPE_STRING) {
        return tensor->n_elems * weir_dtype_bytes(tensor->dtype);
    }
    const struct weir_tensor_string *strings = tensor->data;
    size_t n_bytes = 0;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        n_bytes += sizeof(uint32_t) + strings[i].len;
    }
    return n_bytes;
}

void oip_raw_write(struct weir_buf *out, const struct weir_tensor *tensor)
{
    if (tensor->dtype != WEIR_DTYPE_STRING) {
        (void)weir_buf_append(out, tensor->data, oip_raw_bytes(tensor));
        return;
    }
    const struct weir_tensor_string *strings = tensor->data;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        uint32_t len = (uint32_t)strings[i].len;
        (void)weir_buf_append(out, &len, sizeof len);
        (void)weir_buf_append(out, strings[i].bytes, strings[i].len);
    }
}
