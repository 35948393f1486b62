/* Triton's ModelConfig and ModelStatistics of a replica, as messages: its clients size their requests by
 * the one and tell where time went by the other. */
#include "gateway/oip.h"

#include "base/json.h"
#include "base/macros.h"

#include <string.h>

/* A number of a message, if it is not its default. */
static void put_number(struct weir_buf *out, uint32_t number, const json_t *value)
{
    if (json_integer_value(value) != 0) {
        weir_protobuf_put_varint(out, number, (uint64_t)json_integer_value(value));
    }
}

static void put_word(struct weir_buf *out, uint32_t number, const json_t *value)
{
    if (json_string_length(value) > 0) {
        weir_protobuf_put_text(out, number, json_string_value(value));
    }
}

/* ---- configuration --------------------------------------------------------------------------- */

/* Of inference.DataType, in the order of its numbers. */
static uint64_t type_of(const char *text)
{
    static const char *const types[] = {"INVALID", "BOOL", "UINT8", "UINT16", "UINT32",
                                        "UINT64",  "INT8", "INT16", "INT32",  "INT64",
                                        "FP16",    "FP32", "FP64",  "STRING", "BF16"};
    const char *name = text != NULL && strncmp(text, "TYPE_", 5) == 0 ? text + 5 : "";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        if (strcmp(types[i], name) == 0) {
            return i;
        }
    }
    return 0;
}

/* ModelInput has its shape at 4, ModelOutput at 3. */
static void put_ports(struct weir_buf *out, uint32_t number, uint32_t dims_number,
                      const json_t *ports)
{
    size_t i, k;
    json_t *port, *dim;
    json_array_foreach(ports, i, port)
    {
        uint64_t dims[OIP_DIMS_MAX];
        size_t n = 0, begun = weir_protobuf_begin(out, number);
        put_word(out, 1, json_object_get(port, "name"));
        weir_protobuf_put_varint(out, 2,
                                 type_of(json_string_value(json_object_get(port, "data_type"))));
        json_array_foreach(json_object_get(port, "dims"), k, dim)
        {
            if (n < OIP_DIMS_MAX) {
                dims[n++] = (uint64_t)json_integer_value(dim);
            }
        }
        weir_protobuf_put_packed(out, dims_number, dims, n);
        weir_protobuf_end(out, begun);
    }
}

static void put_batching(struct weir_buf *out, const json_t *batching)
{
    if (json_is_object(batching)) {
        size_t begun = weir_protobuf_begin(out, 11);
        put_number(out, 2, json_object_get(batching, "max_queue_delay_microseconds"));
        weir_protobuf_end(out, begun);
    }
}

static weir_status no_object(json_t *root, struct weir_error *err)
{
    json_decref(root);
    return weir_error_set(err, WEIR_ERR_CORRUPT, "the replica's answer is no JSON object");
}

weir_status oip_write_config(const char *body, size_t len, struct weir_buf *out,
                             struct weir_error *err)
{
    json_t *root = json_loadb(body, len, 0, NULL);
    if (!json_is_object(root)) {
        return no_object(root, err);
    }
    size_t begun = weir_protobuf_begin(out, 1);
    put_word(out, 1, json_object_get(root, "name"));
    put_word(out, 2, json_object_get(root, "platform"));
    put_number(out, 4, json_object_get(root, "max_batch_size"));
    put_ports(out, 5, 4, json_object_get(root, "input"));
    put_ports(out, 6, 3, json_object_get(root, "output"));
    put_batching(out, json_object_get(root, "dynamic_batching"));
    put_word(out, 17, json_object_get(root, "backend"));
    weir_protobuf_end(out, begun);
    json_decref(root);
    return WEIR_OK;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void put_durations(struct weir_buf *out, uint32_t first, const char *const *names, size_t n,
                          const json_t *object)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *duration = json_object_get(object, names[i]);
        size_t begun = weir_protobuf_begin(out, first + (uint32_t)i);
        put_number(out, 1, json_object_get(duration, "count"));
        put_number(out, 2, json_object_get(duration, "ns"));
        weir_protobuf_end(out, begun);
    }
}

static void put_statistics(struct weir_buf *out, const json_t *model)
{
    static const char *const all[] = {"success",       "fail",          "queue",
                                      "compute_input", "compute_infer", "compute_output"};
    size_t i;
    json_t *batch;
    put_word(out, 1, json_object_get(model, "name"));
    put_word(out, 2, json_object_get(model, "version"));
    put_number(out, 3, json_object_get(model, "last_inference"));
    put_number(out, 4, json_object_get(model, "inference_count"));
    put_number(out, 5, json_object_get(model, "execution_count"));
    size_t begun = weir_protobuf_begin(out, 6);
    put_durations(out, 1, all, WEIR_ARRAY_LEN(all), json_object_get(model, "inference_stats"));
    weir_protobuf_end(out, begun);
    json_array_foreach(json_object_get(model, "batch_stats"), i, batch)
    {
        begun = weir_protobuf_begin(out, 7);
        put_number(out, 1, json_object_get(batch, "batch_size"));
        put_durations(out, 2, all + 3, 3, batch);
        weir_protobuf_end(out, begun);
    }
}

weir_status oip_write_statistics(const char *body, size_t len, struct weir_buf *out,
                                 struct weir_error *err)
{
    size_t i;
    json_t *model, *root = json_loadb(body, len, 0, NULL);
    if (!json_is_object(root)) {
        return no_object(root, err);
    }
    json_array_foreach(json_object_get(root, "model_stats"), i, model)
    {
        size_t begun = weir_protobuf_begin(out, 1);
        put_statistics(out, model);
        weir_protobuf_end(out, begun);
    }
    json_decref(root);
    return WEIR_OK;
}
