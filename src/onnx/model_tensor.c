#include "model_private.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Fields of TensorProto. */
enum {
    FIELD_DIMS = 1,
    FIELD_DATA_TYPE = 2,
    FIELD_FLOAT_DATA = 4,
    FIELD_INT32_DATA = 5,
    FIELD_STRING_DATA = 6,
    FIELD_INT64_DATA = 7,
    FIELD_NAME = 8,
    FIELD_RAW_DATA = 9,
    FIELD_DOUBLE_DATA = 10,
    FIELD_UINT64_DATA = 11,
    FIELD_DATA_LOCATION = 14,
};

/** A TensorProto before its elements are read. */
struct tensor_head {
    enum weir_dtype dtype;
    int64_t dtype_number;
    int32_t rank;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    bool is_external;
    struct weir_protobuf raw;
    bool has_raw;
    struct weir_protobuf name;
};

static weir_status take_dims(struct weir_protobuf_field *field, struct tensor_head *head,
                             struct weir_error *err)
{
    weir_status status;
    uint64_t dim;
    while ((status = weir_protobuf_number(field, WEIR_PROTOBUF_VARINT, &dim, err)) == WEIR_OK) {
        if (head->rank == WEIR_TENSOR_RANK_MAX) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "more than %d dimensions",
                                  WEIR_TENSOR_RANK_MAX);
        }
        head->dims[head->rank++] = (int64_t)dim;
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status read_head(struct weir_protobuf bytes, struct tensor_head *head,
                             struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        switch (field.number) {
        case FIELD_DIMS:
            WEIR_TRY(take_dims(&field, head, err));
            break;
        case FIELD_DATA_TYPE:
            head->dtype_number = (int64_t)field.value;
            break;
        case FIELD_NAME:
            head->name = field.bytes;
            break;
        case FIELD_RAW_DATA:
            head->raw = field.bytes;
            head->has_raw = field.type == WEIR_PROTOBUF_BYTES;
            break;
        case FIELD_DATA_LOCATION:
            head->is_external = field.value != 0;
            break;
        default:
            break;
        }
    }
    if (status != WEIR_ERR_END) {
        return status;
    }
    head->dtype = weir_dtype_of(head->dtype_number);
    if (head->dtype == WEIR_DTYPE_NONE) {
        return weir_error_set(err, WEIR_ERR_INVALID, "element type %lld is unknown",
                              (long long)head->dtype_number);
    }
    if (head->is_external) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "its elements lie in another file (external data): save the model "
                              "as one file");
    }
    return WEIR_OK;
}

/* Elements that share a byte: the first lies in its low bits. */
static void unpack(struct weir_tensor *tensor, const uint8_t *from)
{
    size_t n_bits = weir_dtype_bits(tensor->dtype), per_byte = 8 / n_bits;
    uint8_t *to = tensor->data;
    for (size_t i = 0; i < tensor->n_elems; i++) {
        to[i] = (uint8_t)(from[i / per_byte] >> (n_bits * (i % per_byte))) &
                (uint8_t)((1U << n_bits) - 1);
    }
}

static weir_status take_raw(const struct tensor_head *head, struct weir_tensor *tensor,
                            struct weir_error *err)
{
    size_t n_bits = weir_dtype_bits(head->dtype);
    size_t n_bytes = n_bits < 8 ? (tensor->n_elems * n_bits + 7) / 8 : tensor->n_elems * n_bits / 8;
    char text[WEIR_TENSOR_TEXT_BYTES];
    if (n_bits == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "strings may not be in raw_data");
    }
    if (weir_protobuf_len(&head->raw) != n_bytes) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s elements of %s take %zu bytes, not %zu",
                              weir_tensor_dims_text(head->rank, head->dims, text),
                              weir_dtype_name(head->dtype), n_bytes, weir_protobuf_len(&head->raw));
    }
    if (n_bits < 8) {
        unpack(tensor, head->raw.at);
    } else if (n_bytes > 0) {
        memcpy(tensor->data, head->raw.at, n_bytes);
    }
    return WEIR_OK;
}

/* Where the elements of a type stand that are not raw, and how they are encoded. */
static void typed_field(enum weir_dtype dtype, uint32_t *out_number,
                        enum weir_protobuf_type *out_type)
{
    switch (dtype) {
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_COMPLEX64:
        *out_number = FIELD_FLOAT_DATA;
        *out_type = WEIR_PROTOBUF_FIXED32;
        return;
    case WEIR_DTYPE_DOUBLE:
    case WEIR_DTYPE_COMPLEX128:
        *out_number = FIELD_DOUBLE_DATA;
        *out_type = WEIR_PROTOBUF_FIXED64;
        return;
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64:
        *out_number = dtype == WEIR_DTYPE_INT64 ? FIELD_INT64_DATA : FIELD_UINT64_DATA;
        *out_type = WEIR_PROTOBUF_VARINT;
        return;
    default:
        *out_number = FIELD_INT32_DATA;
        *out_type = WEIR_PROTOBUF_VARINT;
    }
}

/* Bytes of a number in the typed fields: half a complex; a byte of packed elements. */
static size_t typed_bytes(enum weir_dtype dtype)
{
    size_t n_bytes = weir_dtype_bytes(dtype);
    return weir_dtype_class(dtype) == WEIR_DTYPE_IS_COMPLEX ? n_bytes / 2 : n_bytes;
}

struct filling {
    struct weir_tensor *tensor;
    uint8_t *bytes;
    size_t unit, n, most; /* bytes of a number; numbers so far, and at most */
};

static weir_status fill(struct filling *filling, struct weir_protobuf_field *field,
                        enum weir_protobuf_type type, struct weir_error *err)
{
    weir_status status;
    uint64_t value;
    while ((status = weir_protobuf_number(field, type, &value, err)) == WEIR_OK) {
        if (filling->n == filling->most) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "more elements than its dimensions say");
        }
        memcpy(filling->bytes + filling->n++ * filling->unit, &value, filling->unit);
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status put_string(struct filling *filling, const struct weir_protobuf *bytes,
                              struct weir_error *err)
{
    struct weir_tensor_string *to = filling->tensor->data;
    if (filling->n == filling->most) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "more strings than its dimensions say");
    }
    struct weir_tensor_string from = {(char *)(uintptr_t)bytes->at, weir_protobuf_len(bytes)};
    return weir_elems_copy(WEIR_DTYPE_STRING, &to[filling->n++], &from, 1);
}

static weir_status take_typed(struct weir_protobuf bytes, struct weir_tensor *tensor,
                              struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    uint32_t number;
    enum weir_protobuf_type type;
    size_t n_bits = weir_dtype_bits(tensor->dtype);
    bool is_packed = n_bits > 0 && n_bits < 8, is_string = tensor->dtype == WEIR_DTYPE_STRING;
    size_t n_packed = (tensor->n_elems * n_bits + 7) / 8;
    struct filling filling = {.tensor = tensor,
                              .unit = is_packed ? 1 : typed_bytes(tensor->dtype),
                              .bytes = tensor->data};
    typed_field(tensor->dtype, &number, &type);
    filling.most = is_string   ? tensor->n_elems
                   : is_packed ? n_packed
                               : tensor->n_elems * weir_dtype_bytes(tensor->dtype) / filling.unit;
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (is_string && field.number == FIELD_STRING_DATA && field.type == WEIR_PROTOBUF_BYTES) {
            WEIR_TRY(put_string(&filling, &field.bytes, err));
        } else if (!is_string && field.number == number) {
            WEIR_TRY(fill(&filling, &field, type, err));
        }
    }
    if (status != WEIR_ERR_END) {
        return status;
    }
    if (filling.n != filling.most) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%zu elements where its dimensions say %zu",
                              filling.n, filling.most);
    }
    if (is_packed) { /* from the end on, as the elements take more room than their bytes */
        uint8_t *at = tensor->data;
        size_t per_byte = 8 / n_bits;
        for (size_t i = tensor->n_elems; i-- > 0;) {
            at[i] = (uint8_t)(at[i / per_byte] >> (n_bits * (i % per_byte))) &
                    (uint8_t)((1U << n_bits) - 1);
        }
    }
    return WEIR_OK;
}

/* Can the message hold so many elements? Before memory is taken for them. */
static weir_status check_room(const struct tensor_head *head, const struct weir_protobuf *bytes,
                              struct weir_error *err)
{
    size_t n, n_bits = weir_dtype_bits(head->dtype);
    char text[WEIR_TENSOR_TEXT_BYTES];
    WEIR_TRY(weir_tensor_count(head->rank, head->dims, weir_dtype_bytes(head->dtype), &n, err));
    size_t least = n_bits > 0 && n_bits < 8 ? n / (8 / n_bits) : n;
    if (least > weir_protobuf_len(bytes)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s elements do not fit in %zu bytes",
                              weir_tensor_dims_text(head->rank, head->dims, text),
                              weir_protobuf_len(bytes));
    }
    return WEIR_OK;
}

static weir_status read_elements(struct weir_protobuf bytes, struct tensor_head *head,
                                 struct weir_tensor **out, struct weir_error *err)
{
    struct weir_tensor *tensor;
    WEIR_TRY(read_head(bytes, head, err));
    WEIR_TRY(check_room(head, &bytes, err));
    WEIR_TRY(weir_tensor_create(head->dtype, head->rank, head->dims, &tensor, err));
    weir_status status =
        head->has_raw ? take_raw(head, tensor, err) : take_typed(bytes, tensor, err);
    if (status != WEIR_OK) {
        weir_tensor_release(tensor);
        return status;
    }
    *out = tensor;
    return WEIR_OK;
}

weir_status onnx_tensor_read(const void *bytes, size_t n, struct weir_tensor **out,
                             struct weir_error *err)
{
    struct tensor_head head = {.rank = 0};
    const uint8_t *at = bytes;
    return read_elements((struct weir_protobuf){at, at + n}, &head, out, err);
}

weir_status read_tensor(struct reader *reader, struct weir_protobuf bytes, const char **out_name,
                        struct weir_tensor **out, struct weir_error *err)
{
    struct onnx_model *model = reader->model;
    struct tensor_head head = {.rank = 0};
    struct weir_tensor *tensor;
    if (weir_grow(&model->tensors, sizeof(struct weir_tensor *), model->n_tensors,
                  &model->tensors_cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a tensor");
    }
    weir_status status = read_elements(bytes, &head, &tensor, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(
            err, "tensor \"%.*s\": ",
            (int)WEIR_MIN(weir_protobuf_len(&head.name), (size_t)ONNX_NAME_SHOWN),
            (const char *)head.name.at);
    }
    model->tensors[model->n_tensors++] = tensor;
    *out = tensor;
    return out_name != NULL ? read_name(reader, &head.name, out_name, err) : WEIR_OK;
}
