#include "model_private.h"

#include <stdlib.h>
#include <string.h>

/* Fields of NodeProto and AttributeProto. */
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_G = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REF = 21,
};

/* Room for the numbers of a repeated field: each takes at least a byte of the message. */
struct numbers {
    uint64_t *values;
    size_t n, cap;
};

static weir_status take_numbers(struct reader *reader, struct weir_protobuf_field *field,
                                enum weir_protobuf_type type, size_t n_message,
                                struct numbers *numbers, struct weir_error *err)
{
    weir_status status;
    uint64_t value;
    if (numbers->values == NULL) {
        numbers->cap = n_message;
        numbers->values = WEIR_ARENA_ARRAY(&reader->model->arena, n_message, uint64_t);
        WEIR_TRY(weir_arena_check(&reader->model->arena, "an ONNX model", err));
    }
    while ((status = weir_protobuf_number(field, type, &value, err)) == WEIR_OK) {
        if (numbers->n == numbers->cap) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "more numbers than bytes");
        }
        numbers->values[numbers->n++] = value;
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

struct attribute_lists {
    struct numbers floats, ints;
    struct onnx_bytes *strings;
    size_t n_strings, n_message;
};

static struct onnx_bytes copy_bytes(struct reader *reader, const struct weir_protobuf *bytes)
{
    size_t len = weir_protobuf_len(bytes);
    return (struct onnx_bytes){
        len > 0 ? weir_arena_memdup(&reader->model->arena, bytes->at, len) : "", len};
}

static weir_status take_graph(struct reader *reader, struct weir_protobuf bytes,
                              struct onnx_attribute *to, struct weir_error *err)
{
    to->graph = WEIR_ARENA_NEW(&reader->model->arena, struct onnx_graph);
    return read_graph(reader, bytes, to->graph, err);
}

static weir_status take_attribute_field(struct reader *reader, struct weir_protobuf_field *field,
                                        struct onnx_attribute *to, struct attribute_lists *lists,
                                        struct weir_error *err)
{
    switch (field->number) {
    case ATTRIBUTE_NAME:
        return read_name(reader, &field->bytes, &to->name, err);
    case ATTRIBUTE_F:
        to->f = weir_protobuf_float(field->value);
        return WEIR_OK;
    case ATTRIBUTE_I:
        to->i = (int64_t)field->value;
        return WEIR_OK;
    case ATTRIBUTE_TYPE:
        to->type = (enum onnx_attribute_type)field->value;
        return WEIR_OK;
    case ATTRIBUTE_S:
        to->s = copy_bytes(reader, &field->bytes);
        return weir_arena_check(&reader->model->arena, "an ONNX model", err);
    case ATTRIBUTE_T:
        return read_tensor(reader, field->bytes, NULL, &to->tensor, err);
    case ATTRIBUTE_G:
        return take_graph(reader, field->bytes, to, err);
    case ATTRIBUTE_FLOATS:
        return take_numbers(reader, field, WEIR_PROTOBUF_FIXED32, lists->n_message, &lists->floats,
                            err);
    case ATTRIBUTE_INTS:
        return take_numbers(reader, field, WEIR_PROTOBUF_VARINT, lists->n_message, &lists->ints,
                            err);
    case ATTRIBUTE_STRINGS:
        lists->strings[lists->n_strings++] = copy_bytes(reader, &field->bytes);
        return weir_arena_check(&reader->model->arena, "an ONNX model", err);
    case ATTRIBUTE_REF:
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "an attribute refers to a function's");
    default:
        return WEIR_OK;
    }
}

static float *as_floats(struct reader *reader, const struct numbers *numbers)
{
    float *floats = WEIR_ARENA_ARRAY(&reader->model->arena, numbers->n, float);
    for (size_t i = 0; i < numbers->n; i++) {
        floats[i] = weir_protobuf_float(numbers->values[i]);
    }
    return floats;
}

static weir_status read_attribute(struct reader *reader, struct weir_protobuf bytes,
                                  struct onnx_attribute *to, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    struct attribute_lists lists = {.n_message = weir_protobuf_len(&bytes)};
    size_t n_strings;
    WEIR_TRY(count_fields(bytes, ATTRIBUTE_STRINGS, &n_strings, err));
    lists.strings = WEIR_ARENA_ARRAY(&reader->model->arena, n_strings, struct onnx_bytes);
    to->name = "";
    to->s.at = "";
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        bool wants_bytes = field.number == ATTRIBUTE_NAME || field.number == ATTRIBUTE_S ||
                           field.number == ATTRIBUTE_T || field.number == ATTRIBUTE_G ||
                           field.number == ATTRIBUTE_STRINGS;
        if (wants_bytes && field.type != WEIR_PROTOBUF_BYTES) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "an attribute's field %u has no bytes",
                                  field.number);
        }
        status = take_attribute_field(reader, &field, to, &lists, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "attribute \"%.80s\": ", to->name);
        }
    }
    to->n = lists.floats.n + lists.ints.n + lists.n_strings;
    to->floats = as_floats(reader, &lists.floats);
    to->ints = (const int64_t *)lists.ints.values;
    to->strings = lists.strings;
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status make_room(struct reader *reader, struct weir_protobuf bytes,
                             struct onnx_node *node, struct weir_error *err)
{
    struct weir_arena *arena = &reader->model->arena;
    size_t n_in, n_out, n_attributes;
    WEIR_TRY(count_fields(bytes, NODE_INPUT, &n_in, err));
    WEIR_TRY(count_fields(bytes, NODE_OUTPUT, &n_out, err));
    WEIR_TRY(count_fields(bytes, NODE_ATTRIBUTE, &n_attributes, err));
    node->in = WEIR_ARENA_ARRAY(arena, n_in, const char *);
    node->out = WEIR_ARENA_ARRAY(arena, n_out, const char *);
    node->attributes = WEIR_ARENA_ARRAY(arena, n_attributes, struct onnx_attribute);
    return weir_arena_check(arena, "an ONNX model", err);
}

static weir_status take_node_field(struct reader *reader, const struct weir_protobuf_field *field,
                                   struct onnx_node *node, struct weir_error *err)
{
    switch (field->number) {
    case NODE_INPUT:
        return read_name(reader, &field->bytes, &node->in[node->n_in++], err);
    case NODE_OUTPUT:
        return read_name(reader, &field->bytes, &node->out[node->n_out++], err);
    case NODE_NAME:
        return read_name(reader, &field->bytes, &node->name, err);
    case NODE_TYPE:
        return read_name(reader, &field->bytes, &node->type, err);
    case NODE_DOMAIN:
        WEIR_TRY(read_name(reader, &field->bytes, &node->domain, err));
        if (strcmp(node->domain, "ai.onnx") == 0) {
            node->domain = "";
        }
        return WEIR_OK;
    case NODE_ATTRIBUTE:
        return read_attribute(reader, field->bytes, &node->attributes[node->n_attributes++], err);
    default:
        return WEIR_OK;
    }
}

weir_status read_node(struct reader *reader, struct weir_protobuf bytes, struct onnx_node *node,
                      struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    node->name = node->type = node->domain = "";
    WEIR_TRY(make_room(reader, bytes, node, err));
    while ((status = weir_protobuf_next(&bytes, &field, err)) == WEIR_OK) {
        if (field.type != WEIR_PROTOBUF_BYTES) {
            continue;
        }
        status = take_node_field(reader, &field, node, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "node \"%.80s\" (%.80s): ", node->name, node->type);
        }
    }
    return status == WEIR_ERR_END ? WEIR_OK : status;
}
