/* From gRPC's messages to what a replica is sent. */
#include "gateway/oip.h"

#include "base/grow.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static weir_status need(const struct weir_protobuf_field *field, enum weir_protobuf_type type,
                        struct weir_error *err)
{
    return field->type == type
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "field %u of the message is of another type",
                                field->number);
}

/* A text of the message, as a NUL-terminated one. */
static weir_status read_text(const struct weir_protobuf_field *field, struct weir_arena *arena,
                             const char **out, struct weir_error *err)
{
    WEIR_TRY(need(field, WEIR_PROTOBUF_BYTES, err));
    size_t len = weir_protobuf_len(&field->bytes);
    if (memchr(field->bytes.at, '\0', len) != NULL || len > 4096) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a text of the message is too long, or holds a NUL");
    }
    *out = weir_arena_memdup(arena, field->bytes.at, len);
    return WEIR_OK;
}

static weir_status read_version(const struct weir_protobuf_field *field, struct weir_arena *arena,
                                int64_t *out, struct weir_error *err)
{
    const char *text;
    WEIR_TRY(read_text(field, arena, &text, err));
    size_t n = strspn(text, "0123456789");
    if (text[0] == '\0') {
        *out = 0;
        return WEIR_OK;
    }
    if (n > 18 || text[n] != '\0' || strtoll(text, NULL, 10) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.40s\" is no version: expected a number from 1 on", text);
    }
    *out = strtoll(text, NULL, 10);
    return WEIR_OK;
}

static weir_status end_of(weir_status status)
{
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

weir_status oip_read_name(struct weir_protobuf message, struct weir_arena *arena,
                          struct oip_name *out, struct weir_error *err)
{
    struct oip_name name = {.name = ""};
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
        if (field.number == 1) {
            WEIR_TRY(read_text(&field, arena, &name.name, err));
        } else if (field.number == 2) {
            WEIR_TRY(read_version(&field, arena, &name.version, err));
        }
    }
    WEIR_TRY(end_of(status));
    *out = name;
    return WEIR_OK;
}

/* ---- parameters ------------------------------------------------------------------------------------- */

static json_t *text_value(const struct weir_protobuf *bytes)
{
    return json_stringn((const char *)bytes->at, weir_protobuf_len(bytes));
}

/* InferParameter */
static weir_status read_parameter(struct weir_protobuf message, json_t **out,
                                  struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    json_t *value = NULL;
    while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
        json_decref(value);
        bool is_number = field.type == WEIR_PROTOBUF_VARINT;
        value = field.number == 1 && is_number ? json_boolean(field.value != 0)
                : (field.number == 2 || field.number == 5) && is_number
                    ? json_integer((json_int_t)field.value)
                : field.number == 3 && field.type == WEIR_PROTOBUF_BYTES ? text_value(&field.bytes)
                : field.number == 4 && field.type == WEIR_PROTOBUF_FIXED64
                    ? json_real(weir_protobuf_double(field.value))
                    : NULL;
    }
    if (end_of(status) != WEIR_OK) {
        json_decref(value);
        return status;
    }
    *out = value; /* NULL: a choice that is not known, or no UTF-8 */
    return WEIR_OK;
}

/* One entry of a map<string, InferParameter>. Those that replicas set themselves are left out. */
static weir_status add_parameter(struct weir_protobuf entry, json_t *parameters,
                                 struct weir_arena *arena, struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    const char *key = "";
    json_t *value = NULL;
    while ((status = weir_protobuf_next(&entry, &field, err)) == WEIR_OK) {
        if (field.number == 1) {
            status = read_text(&field, arena, &key, err);
        } else if (field.number == 2) {
            json_decref(value);
            value = NULL;
            status = need(&field, WEIR_PROTOBUF_BYTES, err);
            status = status == WEIR_OK ? read_parameter(field.bytes, &value, err) : status;
        }
        if (status != WEIR_OK) {
            break;
        }
    }
    if (end_of(status) != WEIR_OK) {
        json_decref(value);
        return status;
    }
    if (value == NULL || json_object_set_new(parameters, key, value) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the parameter \"%.40s\" has no value that is understood", key);
    }
    return WEIR_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t bytes;                 /* of an element */
    uint32_t field;               /* of InferTensorContents */
    enum weir_protobuf_type type; /* of a number there */
} datatypes[] = {
    {"BOOL", 1, 1, WEIR_PROTOBUF_VARINT},   {"INT8", 1, 2, WEIR_PROTOBUF_VARINT},
    {"INT16", 2, 2, WEIR_PROTOBUF_VARINT},  {"INT32", 4, 2, WEIR_PROTOBUF_VARINT},
    {"INT64", 8, 3, WEIR_PROTOBUF_VARINT},  {"UINT8", 1, 4, WEIR_PROTOBUF_VARINT},
    {"UINT16", 2, 4, WEIR_PROTOBUF_VARINT}, {"UINT32", 4, 4, WEIR_PROTOBUF_VARINT},
    {"UINT64", 8, 5, WEIR_PROTOBUF_VARINT}, {"FP32", 4, 6, WEIR_PROTOBUF_FIXED32},
    {"FP64", 8, 7, WEIR_PROTOBUF_FIXED64},  {"BYTES", 0, 8, WEIR_PROTOBUF_BYTES},
};

struct input {
    json_t *json; /* in the request's */
    const char *name, *datatype;
    struct weir_protobuf contents;
    bool has_contents;
};

struct reading {
    struct weir_arena *arena;
    size_t max_bytes, n_bytes;
    json_t *root, *inputs, *outputs, *parameters;
    struct input *items;
    size_t n_inputs, inputs_cap;
    struct iovec *raw;
    size_t n_raw, raw_cap;
    struct oip_name model;
};

static weir_status add_dims(struct weir_protobuf_field field, json_t *shape, struct weir_error *err)
{
    uint64_t dim;
    weir_status status;
    while ((status = weir_protobuf_number(&field, WEIR_PROTOBUF_VARINT, &dim, err)) == WEIR_OK) {
        if (json_array_size(shape) == OIP_DIMS_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a tensor has more than %d dimensions",
                                  OIP_DIMS_MAX);
        }
        json_array_append_new(shape, json_integer((json_int_t)dim));
    }
    return end_of(status);
}

static weir_status set_text(json_t *object, const char *key, const char *text,
                            struct weir_error *err)
{
    json_t *value = json_string(text);
    if (value == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a %s of the message is not UTF-8", key);
    }
    json_object_set_new(object, key, value);
    return WEIR_OK;
}

static weir_status read_input_field(struct reading *r, struct weir_protobuf_field *field,
                                    struct input *input, json_t *shape, json_t *parameters,
                                    struct weir_error *err)
{
    switch (field->number) {
    case 1:
        WEIR_TRY(read_text(field, r->arena, &input->name, err));
        return set_text(input->json, "name", input->name, err);
    case 2:
        WEIR_TRY(read_text(field, r->arena, &input->datatype, err));
        return set_text(input->json, "datatype", input->datatype, err);
    case 3:
        return add_dims(*field, shape, err);
    case 4:
        WEIR_TRY(need(field, WEIR_PROTOBUF_BYTES, err));
        return add_parameter(field->bytes, parameters, r->arena, err);
    case 5:
        WEIR_TRY(need(field, WEIR_PROTOBUF_BYTES, err));
        input->contents = field->bytes;
        input->has_contents = true;
        return WEIR_OK;
    default:
        return WEIR_OK;
    }
}

static weir_status read_input(struct reading *r, struct weir_protobuf message,
                              struct weir_error *err)
{
    if (r->n_inputs == OIP_TENSORS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the request has more than %d inputs",
                              OIP_TENSORS_MAX);
    }
    weir_arena_grow(r->arena, &r->items, sizeof *r->items, r->n_inputs, &r->inputs_cap);
    struct input *input = &r->items[r->n_inputs++];
    *input = (struct input){.json = json_object(), .name = "", .datatype = ""};
    json_t *shape = json_array(), *parameters = json_object();
    json_array_append_new(r->inputs, input->json);
    json_object_set_new(input->json, "shape", shape);
    json_object_set_new(input->json, "parameters", parameters);
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
        WEIR_TRY(read_input_field(r, &field, input, shape, parameters, err));
    }
    return end_of(status);
}

static weir_status read_output(struct reading *r, struct weir_protobuf message,
                               struct weir_error *err)
{
    if (json_array_size(r->outputs) == OIP_TENSORS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the request asks for more than %d outputs",
                              OIP_TENSORS_MAX);
    }
    json_t *output = json_object(), *parameters = json_object();
    json_array_append_new(r->outputs, output);
    json_object_set_new(output, "parameters", parameters);
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
        const char *name;
        if (field.number == 1) {
            WEIR_TRY(read_text(&field, r->arena, &name, err));
            WEIR_TRY(set_text(output, "name", name, err));
        } else if (field.number == 2) {
            WEIR_TRY(need(&field, WEIR_PROTOBUF_BYTES, err));
            WEIR_TRY(add_parameter(field.bytes, parameters, r->arena, err));
        }
    }
    json_object_set_new(parameters, "binary_data", json_true());
    return end_of(status);
}

/* ---- contents by type ------------------------------------------------------------------------------- */

static weir_status take_bytes(struct reading *r, size_t n, struct weir_error *err)
{
    if (n > r->max_bytes - r->n_bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the request's tensors have more than %zu bytes",
                              r->max_bytes);
    }
    r->n_bytes += n;
    return WEIR_OK;
}

/* Elements that are texts: 4 bytes of length, then the bytes. */
static weir_status append_text(struct reading *r, const struct weir_protobuf_field *field,
                               struct weir_buf *out, struct weir_error *err)
{
    uint32_t len = (uint32_t)weir_protobuf_len(&field->bytes);
    WEIR_TRY(need(field, WEIR_PROTOBUF_BYTES, err));
    WEIR_TRY(take_bytes(r, sizeof len + len, err));
    (void)weir_buf_append(out, &len, sizeof len); /* little endian, as this machine */
    return weir_buf_append(out, field->bytes.at, len);
}

static weir_status append_numbers(struct reading *r, struct weir_protobuf_field field,
                                  size_t i_type, struct weir_buf *out, struct weir_error *err)
{
    uint64_t value;
    weir_status status;
    while ((status = weir_protobuf_number(&field, datatypes[i_type].type, &value, err)) ==
           WEIR_OK) {
        WEIR_TRY(take_bytes(r, datatypes[i_type].bytes, err));
        WEIR_TRY(weir_buf_append(out, &value, datatypes[i_type].bytes));
    }
    return end_of(status);
}

static weir_status append_contents(struct reading *r, const struct input *input, size_t i_type,
                                   struct weir_buf *out, struct weir_error *err)
{
    struct weir_protobuf contents = input->contents;
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&contents, &field, err)) == WEIR_OK) {
        if (field.number != datatypes[i_type].field) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "input \"%.80s\" is of %s and has contents of another type",
                                  input->name, input->datatype);
        }
        WEIR_TRY(datatypes[i_type].bytes == 0 ? append_text(r, &field, out, err)
                                              : append_numbers(r, field, i_type, out, err));
    }
    return end_of(status);
}

/* The contents as the bytes that a raw tensor would have. */
static weir_status make_raw(struct reading *r, const struct input *input, struct iovec *out,
                            struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(datatypes); i++) {
        if (strcmp(datatypes[i].name, input->datatype) == 0) {
            struct weir_buf bytes;
            weir_buf_init(&bytes, r->max_bytes);
            weir_status status = append_contents(r, input, i, &bytes, err);
            *out = (struct iovec){weir_arena_memdup(r->arena, bytes.data, bytes.len), bytes.len};
            weir_buf_fini(&bytes);
            return status;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "input \"%.80s\" is of %.40s, which has no typed contents: send it in "
                          "raw_input_contents",
                          input->name, input->datatype);
}

/* ---- the request ------------------------------------------------------------------------------------- */

static weir_status read_field(struct reading *r, struct weir_protobuf_field *field,
                              struct weir_error *err)
{
    const char *text;
    if (field->number >= 4 && field->number <= 7) {
        WEIR_TRY(need(field, WEIR_PROTOBUF_BYTES, err));
    }
    switch (field->number) {
    case 1:
        return read_text(field, r->arena, &r->model.name, err);
    case 2:
        return read_version(field, r->arena, &r->model.version, err);
    case 3:
        WEIR_TRY(read_text(field, r->arena, &text, err));
        return text[0] != '\0' ? set_text(r->root, "id", text, err) : WEIR_OK;
    case 4:
        return add_parameter(field->bytes, r->parameters, r->arena, err);
    case 5:
        return read_input(r, field->bytes, err);
    case 6:
        return read_output(r, field->bytes, err);
    case 7:
        if (r->n_raw == OIP_TENSORS_MAX) {
            return weir_error_set(err, WEIR_ERR_INVALID, "the request has too many raw contents");
        }
        weir_arena_grow(r->arena, &r->raw, sizeof *r->raw, r->n_raw, &r->raw_cap);
        r->raw[r->n_raw++] = (struct iovec){(void *)field->bytes.at, /* borrowed, never written */
                                            weir_protobuf_len(&field->bytes)};
        return take_bytes(r, weir_protobuf_len(&field->bytes), err);
    default:
        return WEIR_OK;
    }
}

/* A piece for each input, and its size in the JSON. */
static weir_status place_tensors(struct reading *r, struct iovec *pieces, struct weir_error *err)
{
    if (r->n_raw > 0 && r->n_raw != r->n_inputs) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the request has %zu inputs and %zu raw contents", r->n_inputs,
                              r->n_raw);
    }
    for (size_t i = 0; i < r->n_inputs; i++) {
        const struct input *input = &r->items[i];
        if (r->n_raw > 0 && input->has_contents) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "input \"%.80s\" has contents besides the raw ones", input->name);
        }
        if (r->n_raw > 0) {
            pieces[i] = r->raw[i];
        } else {
            WEIR_TRY(make_raw(r, input, &pieces[i], err));
        }
        json_object_set_new(json_object_get(input->json, "parameters"), "binary_data_size",
                            json_integer((json_int_t)pieces[i].iov_len));
    }
    return WEIR_OK;
}

static weir_status read_all(struct reading *r, struct weir_protobuf message, struct oip_infer *out,
                            struct weir_error *err)
{
    struct weir_protobuf_field field;
    weir_status status;
    while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
        WEIR_TRY(read_field(r, &field, err));
    }
    WEIR_TRY(end_of(status));
    struct iovec *pieces = WEIR_ARENA_ARRAY(r->arena, r->n_inputs + 1, struct iovec);
    WEIR_TRY(place_tensors(r, pieces + 1, err));
    json_object_set_new(r->parameters, "binary_data_output", json_true());
    if (json_array_size(r->outputs) == 0) {
        json_object_del(r->root, "outputs");
    }
    char *text = json_dumps(r->root, JSON_COMPACT);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the request holds what is no JSON");
    }
    size_t len = strlen(text);
    pieces[0] = (struct iovec){weir_arena_memdup(r->arena, text, len), len};
    free(text);
    *out = (struct oip_infer){.model = r->model,
                              .pieces = pieces,
                              .n_pieces = r->n_inputs + 1,
                              .json_bytes = len,
                              .body_bytes = len + r->n_bytes};
    return WEIR_OK;
}

weir_status oip_read_infer(struct weir_protobuf message, size_t max_bytes, struct weir_arena *arena,
                           struct oip_infer *out, struct weir_error *err)
{
    struct reading r = {.arena = arena, .max_bytes = max_bytes, .model = {.name = ""}};
    r.root = json_object();
    r.inputs = json_array();
    r.outputs = json_array();
    r.parameters = json_object();
    json_object_set_new(r.root, "parameters", r.parameters);
    json_object_set_new(r.root, "inputs", r.inputs);
    json_object_set_new(r.root, "outputs", r.outputs);
    weir_status status = read_all(&r, message, out, err);
    json_decref(r.root);
    return status;
}
