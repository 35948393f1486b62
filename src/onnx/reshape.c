/* Other shapes of inputs than a file says: its graph is written again, the rest is copied. */
#include "onnx.h"

#include "model_private.h"

#include <string.h>

/* More than a shape's own bytes. */
#define ROOM_BYTES ((size_t)64 << 10)

struct reshaping {
    const struct weir_onnx_port *ports;
    size_t n_ports;
    struct weir_buf *out;
    struct reader reader; /* Reads names and shapes that the file says. */
    bool differs;
};

/* What is said of this value; NULL: nothing. */
static const struct weir_onnx_port *find(const struct reshaping *it, const char *name)
{
    for (size_t i = 0; i < it->n_ports; i++) {
        if (strcmp(it->ports[i].name, name) == 0) {
            return &it->ports[i];
        }
    }
    return NULL;
}

/* ---- is it another? -------------------------------------------------------------------------- */

static weir_status compare(struct reshaping *it, struct weir_protobuf input, struct weir_error *err)
{
    struct onnx_value value = {.name = ""};
    WEIR_TRY(read_value(&it->reader, input, &value, err));
    const struct weir_onnx_port *said = find(it, value.name);
    if (said != NULL && value.has_shape && value.rank != said->rank) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input \"%.80s\" has %d dimensions, and its shape was said with %d",
                              value.name, value.rank, said->rank);
    }
    it->differs = it->differs ||
                  (said != NULL &&
                   (!value.has_shape ||
                    memcmp(value.dims, said->dims, (size_t)said->rank * sizeof *value.dims) != 0));
    return WEIR_OK;
}

/* ---- write ----------------------------------------------------------------------------------- */

static void put_shape(const struct weir_onnx_port *said, struct weir_buf *out)
{
    size_t shape = weir_protobuf_begin(out, TENSOR_TYPE_SHAPE);
    for (int32_t i = 0; i < said->rank; i++) {
        size_t dim = weir_protobuf_begin(out, SHAPE_DIM);
        if (said->dims[i] >= 0) {
            weir_protobuf_put_varint(out, DIM_VALUE, (uint64_t)said->dims[i]);
        }
        weir_protobuf_end(out, dim);
    }
    weir_protobuf_end(out, shape);
}

/* A value, its type, and that of its tensor, in this order of depth: without the shape that the file says. */
static weir_status copy_value(struct weir_protobuf from, int depth,
                              const struct weir_onnx_port *said, struct weir_buf *out,
                              struct weir_error *err)
{
    static const uint32_t inner[] = {VALUE_TYPE, TYPE_TENSOR, TENSOR_TYPE_SHAPE};
    struct weir_protobuf_field field;
    weir_status status;
    for (const uint8_t *at = from.at; (status = weir_protobuf_next(&from, &field, err)) == WEIR_OK;
         at = from.at) {
        if (field.number != inner[depth] || field.type != WEIR_PROTOBUF_BYTES) {
            weir_buf_append(out, at, (size_t)(from.at - at));
        } else if (depth < 2) {
            size_t begun = weir_protobuf_begin(out, field.number);
            WEIR_TRY(copy_value(field.bytes, depth + 1, said, out, err));
            weir_protobuf_end(out, begun);
        }
    }
    if (depth == 2 && said != NULL) {
        put_shape(said, out);
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* What the file says of inner values and of outputs came from the shapes of its inputs. */
static weir_status put_value(struct reshaping *it, const struct weir_protobuf_field *field,
                             const uint8_t *at, size_t n, struct weir_error *err)
{
    struct onnx_value value = {.name = ""};
    WEIR_TRY(read_value(&it->reader, field->bytes, &value, err));
    const struct weir_onnx_port *said = field->number == GRAPH_INPUT ? find(it, value.name) : NULL;
    if (field->number == GRAPH_INPUT && said == NULL) {
        weir_buf_append(it->out, at, n);
        return WEIR_OK;
    }
    size_t begun = weir_protobuf_begin(it->out, field->number);
    WEIR_TRY(copy_value(field->bytes, 0, said, it->out, err));
    weir_protobuf_end(it->out, begun);
    return WEIR_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static weir_status walk_graph(struct reshaping *it, struct weir_protobuf graph, bool writes,
                              struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    for (const uint8_t *at = graph.at;
         (status = weir_protobuf_next(&graph, &field, err)) == WEIR_OK; at = graph.at) {
        bool is_value = field.type == WEIR_PROTOBUF_BYTES &&
                        (field.number == GRAPH_INPUT || field.number == GRAPH_OUTPUT);
        bool is_inner = field.type == WEIR_PROTOBUF_BYTES && field.number == GRAPH_VALUE;
        if (!writes && field.number == GRAPH_INPUT && is_value) {
            WEIR_TRY(compare(it, field.bytes, err));
        } else if (writes && is_value) {
            WEIR_TRY(put_value(it, &field, at, (size_t)(graph.at - at), err));
        } else if (writes && !is_inner) {
            weir_buf_append(it->out, at, (size_t)(graph.at - at));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status walk(struct reshaping *it, struct weir_protobuf model, bool writes,
                        struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    for (const uint8_t *at = model.at;
         (status = weir_protobuf_next(&model, &field, err)) == WEIR_OK; at = model.at) {
        if (field.number == MODEL_GRAPH && field.type == WEIR_PROTOBUF_BYTES) {
            size_t begun = writes ? weir_protobuf_begin(it->out, MODEL_GRAPH) : 0;
            WEIR_TRY(walk_graph(it, field.bytes, writes, err));
            if (writes) {
                weir_protobuf_end(it->out, begun);
            }
        } else if (writes) {
            weir_buf_append(it->out, at, (size_t)(model.at - at));
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status reshape(struct reshaping *it, struct weir_protobuf model, struct weir_error *err)
{
    WEIR_TRY(walk(it, model, false, err));
    if (it->differs) {
        WEIR_TRY(walk(it, model, true, err));
    }
    return it->out->status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, it->out->status, "no room for a model of other shapes");
}

weir_status weir_onnx_reshape(const void *bytes, size_t n, const struct weir_onnx_port *ports,
                              size_t n_ports, struct weir_buf *out, struct weir_error *err)
{
    const struct weir_protobuf model = {bytes, (const uint8_t *)bytes + n};
    struct onnx_model names = {.ir_version = 0};
    struct reshaping it = {
        .ports = ports, .n_ports = n_ports, .out = out, .reader = {.model = &names}};
    weir_arena_init(&names.arena, 0);
    weir_buf_init(out, n + (n_ports + 1) * ROOM_BYTES);
    weir_status status = reshape(&it, model, err);
    weir_arena_fini(&names.arena);
    if (status != WEIR_OK) {
        weir_buf_fini(out);
    }
    return status;
}
