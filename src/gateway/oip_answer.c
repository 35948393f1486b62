/* From a replica's answers to gRPC's messages. */
#include "gateway/oip.h"

#include "base/json.h"

#include <string.h>

static void put_text(struct weir_buf *out, uint32_t number, const json_t *value)
{
    if (json_string_length(value) > 0) {
        weir_protobuf_put_bytes(out, number, json_string_value(value), json_string_length(value));
    }
}

static void put_shape(struct weir_buf *out, uint32_t number, const json_t *shape)
{
    uint64_t dims[OIP_DIMS_MAX];
    size_t n = WEIR_MIN(json_array_size(shape), (size_t)OIP_DIMS_MAX);
    for (size_t i = 0; i < n; i++) {
        dims[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    }
    weir_protobuf_put_packed(out, number, dims, n);
}

/* map<string, InferParameter>, of what a parameter may be */
static void put_parameters(struct weir_buf *out, uint32_t number, const json_t *parameters)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)parameters, key, value)
    {
        bool is_known = json_is_boolean(value) || json_is_number(value) || json_is_string(value);
        if (!is_known || strcmp(key, "binary_data_size") == 0) {
            continue;
        }
        size_t entry = weir_protobuf_begin(out, number);
        weir_protobuf_put_text(out, 1, key);
        size_t parameter = weir_protobuf_begin(out, 2);
        if (json_is_boolean(value)) {
            weir_protobuf_put_varint(out, 1, json_is_true(value));
        } else if (json_is_integer(value)) {
            weir_protobuf_put_varint(out, 2, (uint64_t)json_integer_value(value));
        } else if (json_is_string(value)) {
            weir_protobuf_put_text(out, 3, json_string_value(value));
        } else {
            double number_value = json_real_value(value);
            uint64_t bits;
            memcpy(&bits, &number_value, sizeof bits);
            weir_protobuf_put_fixed64(out, 4, bits);
        }
        weir_protobuf_end(out, parameter);
        weir_protobuf_end(out, entry);
    }
}

static void put_output(struct weir_buf *out, const json_t *output)
{
    size_t begun = weir_protobuf_begin(out, 5);
    put_text(out, 1, json_object_get(output, "name"));
    put_text(out, 2, json_object_get(output, "datatype"));
    put_shape(out, 3, json_object_get(output, "shape"));
    put_parameters(out, 4, json_object_get(output, "parameters"));
    weir_protobuf_end(out, begun);
}

static weir_status corrupt(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT,
                          "the replica's answer is no answer with binary tensors");
}

/* The tensors behind the JSON, each as long as the JSON says. */
static weir_status put_tensors(struct weir_buf *out, const json_t *outputs, const char *bytes,
                               size_t len, struct weir_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *parameters = json_object_get(json_array_get(outputs, i), "parameters");
        const json_t *size = json_object_get(parameters, "binary_data_size");
        if (!json_is_integer(size) || json_integer_value(size) < 0 ||
            (uint64_t)json_integer_value(size) > len - at) {
            return corrupt(err);
        }
        weir_protobuf_put_bytes(out, 6, bytes + at, (size_t)json_integer_value(size));
        at += (size_t)json_integer_value(size);
    }
    return at == len ? WEIR_OK : corrupt(err);
}

weir_status oip_write_infer(const char *body, size_t len, int64_t json_bytes, struct weir_buf *out,
                            struct weir_error *err)
{
    size_t head_len = json_bytes < 0 ? len : (size_t)json_bytes;
    json_t *head = head_len <= len ? json_loadb(body, head_len, 0, NULL) : NULL;
    if (!json_is_array(json_object_get(head, "outputs"))) {
        json_decref(head);
        return corrupt(err);
    }
    const json_t *outputs = json_object_get(head, "outputs");
    put_text(out, 1, json_object_get(head, "model_name"));
    put_text(out, 2, json_object_get(head, "model_version"));
    put_text(out, 3, json_object_get(head, "id"));
    put_parameters(out, 4, json_object_get(head, "parameters"));
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        put_output(out, json_array_get(outputs, i));
    }
    weir_status status = put_tensors(out, outputs, body + head_len, len - head_len, err);
    json_decref(head);
    return status;
}

static void put_tensor_metadata(struct weir_buf *out, uint32_t number, const json_t *tensors)
{
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *tensor = json_array_get(tensors, i);
        size_t begun = weir_protobuf_begin(out, number);
        put_text(out, 1, json_object_get(tensor, "name"));
        put_text(out, 2, json_object_get(tensor, "datatype"));
        put_shape(out, 3, json_object_get(tensor, "shape"));
        weir_protobuf_end(out, begun);
    }
}

weir_status oip_write_metadata(const char *body, size_t len, struct weir_buf *out,
                               struct weir_error *err)
{
    json_t *root = json_loadb(body, len, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the replica's answer is no JSON object");
    }
    const json_t *versions = json_object_get(root, "versions");
    put_text(out, 1, json_object_get(root, "name"));
    for (size_t i = 0; i < json_array_size(versions); i++) {
        put_text(out, 2, json_array_get(versions, i));
    }
    put_text(out, 3, json_object_get(root, "platform"));
    put_tensor_metadata(out, 4, json_object_get(root, "inputs"));
    put_tensor_metadata(out, 5, json_object_get(root, "outputs"));
    json_decref(root);
    return WEIR_OK;
}
