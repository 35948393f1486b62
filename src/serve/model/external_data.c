#include "external_data.h"

#include "base/protobuf.h"

#define NESTING_MAX 32

/* Messages of onnx.proto, as far as tensors lie in them. */
enum message { MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE_TENSOR, FUNCTION, TRAINING };

static const struct {
    enum message in;
    uint32_t field;
    enum message is;
} parts[] = {
    {MODEL, 7, GRAPH},
    {MODEL, 20, TRAINING},
    {MODEL, 25, FUNCTION},
    {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},
    {GRAPH, 15, SPARSE_TENSOR},
    {NODE, 5, ATTRIBUTE},
    {ATTRIBUTE, 5, TENSOR},
    {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 10, TENSOR},
    {ATTRIBUTE, 11, GRAPH},
    {ATTRIBUTE, 22, SPARSE_TENSOR},
    {ATTRIBUTE, 23, SPARSE_TENSOR},
    {SPARSE_TENSOR, 1, TENSOR},
    {SPARSE_TENSOR, 2, TENSOR},
    {FUNCTION, 7, NODE},
    {FUNCTION, 11, ATTRIBUTE},
    {TRAINING, 1, GRAPH},
    {TRAINING, 2, GRAPH},
};

#define TENSOR_EXTERNAL_DATA 13
#define TENSOR_DATA_LOCATION 14

static weir_status refuse_in(enum message message, struct weir_protobuf bytes, int depth,
                             struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    if (depth > NESTING_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "graphs in graphs, more than %d deep",
                              NESTING_MAX);
    }
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (message == TENSOR && (field.number == TENSOR_EXTERNAL_DATA ||
                                  (field.number == TENSOR_DATA_LOCATION && field.value != 0))) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "weights lie in another file: save the model as one file");
        }
        for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
            if (parts[i].in == message && parts[i].field == field.number &&
                field.type == WEIR_PROTOBUF_BYTES) {
                WEIR_TRY(refuse_in(parts[i].is, field.bytes, depth + 1, err));
            }
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

weir_status external_data_refuse(const void *bytes, size_t n, struct weir_error *err)
{
    const struct weir_protobuf whole = {.at = bytes, .end = (const uint8_t *)bytes + n};
    return refuse_in(MODEL, whole, 0, err);
}
