#include "signature_private.h"

#include <stdio.h>
#include <string.h>

/** A signature as it is written. */
struct signature_options {
    char *format, *executor, *why, *output_kind;
    const json_t *inputs, *outputs, *picture, *labels;
    bool is_batched;
};

struct port_options {
    char *name, *datatype;
    const json_t *shape;
};

#define NEEDED WEIR_OPTION_REQUIRED

#define MEMBER(strct, member, name, type, flags, dflt, doc)                                        \
    WEIR_OPT_JSON(strct, member, name, type, flags, dflt, 0, 0, doc)

static const struct weir_option signature_table[] = {
    MEMBER(signature_options, format, "format", TEXT, NEEDED, NULL, "weir or onnx"),
    MEMBER(signature_options, executor, "executor", TEXT, NEEDED, NULL, "What runs the model"),
    MEMBER(signature_options, why, "why", TEXT, 0, "", "Why this executor"),
    MEMBER(signature_options, inputs, "inputs", JSON, 0, NULL, "What goes in"),
    MEMBER(signature_options, outputs, "outputs", JSON, NEEDED, NULL, "What comes out"),
    MEMBER(signature_options, is_batched, "is-batched", BOOL, 0, NULL,
           "Is the first dimension free?"),
    MEMBER(signature_options, picture, "picture", JSON, 0, NULL, "How a picture becomes an input"),
    MEMBER(signature_options, output_kind, "output-kind", TEXT, 0, "tensor", "What the output is"),
    MEMBER(signature_options, labels, "labels", TEXTS, 0, NULL, "Names of the classes"),
};

static const struct weir_option port_table[] = {
    MEMBER(port_options, name, "name", TEXT, NEEDED, NULL, "Its name"),
    MEMBER(port_options, datatype, "datatype", TEXT, NEEDED, NULL, "Type of the elements"),
    MEMBER(port_options, shape, "shape", JSON, 0, NULL, "Dimensions, -1: free"),
};

#undef MEMBER

/* ---- words ------------------------------------------------------------------------------------ */

static const struct {
    enum weir_dtype dtype;
    const char *datatype;
} datatypes[] = {
    {WEIR_DTYPE_BOOL, "BOOL"},     {WEIR_DTYPE_UINT8, "UINT8"},   {WEIR_DTYPE_UINT16, "UINT16"},
    {WEIR_DTYPE_UINT32, "UINT32"}, {WEIR_DTYPE_UINT64, "UINT64"}, {WEIR_DTYPE_INT8, "INT8"},
    {WEIR_DTYPE_INT16, "INT16"},   {WEIR_DTYPE_INT32, "INT32"},   {WEIR_DTYPE_INT64, "INT64"},
    {WEIR_DTYPE_FLOAT16, "FP16"},  {WEIR_DTYPE_FLOAT, "FP32"},    {WEIR_DTYPE_DOUBLE, "FP64"},
    {WEIR_DTYPE_BFLOAT16, "BF16"}, {WEIR_DTYPE_STRING, "BYTES"},
};

const char *signature_datatype(enum weir_dtype dtype)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(datatypes); i++) {
        if (datatypes[i].dtype == dtype) {
            return datatypes[i].datatype;
        }
    }
    return NULL;
}

enum weir_dtype signature_dtype_of(const char *datatype)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(datatypes); i++) {
        if (strcmp(datatypes[i].datatype, datatype) == 0) {
            return datatypes[i].dtype;
        }
    }
    return WEIR_DTYPE_NONE;
}

static const char *const output_kinds[] = {
    [SIGNATURE_TENSOR] = "tensor",
    [SIGNATURE_LOGITS] = "logits",
    [SIGNATURE_PROBABILITIES] = "probabilities",
    [SIGNATURE_EMBEDDING] = "embedding",
};

/** "tensor", "logits", "probabilities", "embedding". */
static const char *output_kind_text(enum signature_output_kind kind)
{
    return output_kinds[kind];
}

bool output_kind_of(const char *text, enum signature_output_kind *out)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(output_kinds); i++) {
        if (strcmp(output_kinds[i], text) == 0) {
            *out = (enum signature_output_kind)i;
            return true;
        }
    }
    return false;
}

/* ---- read ------------------------------------------------------------------------------------- */

static weir_status read_shape(const json_t *array, const char *where, struct serve_port *out,
                              struct weir_error *err)
{
    size_t rank = json_array_size(array);
    if (!json_is_array(array) || rank > WEIR_TENSOR_RANK_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.shape: expected an array of at most %d dimensions", where,
                              WEIR_TENSOR_RANK_MAX);
    }
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(array, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < -1) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.shape[%zu]: expected an integer, or -1 where it is free",
                                  where, i);
        }
        out->dims[i] = json_integer_value(dim);
    }
    return WEIR_OK;
}

static weir_status read_port(const json_t *object, const char *where, struct weir_arena *arena,
                             struct serve_port *out, struct weir_error *err)
{
    struct port_options from = {0};
    WEIR_TRY(weir_options_read(port_table, WEIR_ARRAY_LEN(port_table), object, where, NULL, arena,
                               &from, err));
    *out = (struct serve_port){.name = from.name, .dtype = signature_dtype_of(from.datatype)};
    if (out->dtype == WEIR_DTYPE_NONE) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.datatype: \"%.20s\" is none of the Open Inference Protocol",
                              where, from.datatype);
    }
    return read_shape(from.shape, where, out, err);
}

static weir_status read_ports(const json_t *array, const char *where, const char *member,
                              struct weir_arena *arena, struct serve_port **out, size_t *out_n,
                              struct weir_error *err)
{
    char place[SIGNATURE_WHERE_BYTES];
    size_t n = json_array_size(array);
    if ((array != NULL && !json_is_array(array)) || n > SERVE_PORTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.%s: expected an array of at most %d",
                              where, member, SERVE_PORTS_MAX);
    }
    *out = WEIR_ARENA_ARRAY(arena, n, struct serve_port);
    *out_n = n;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(place, sizeof place, "%.80s.%s[%zu]", where, member, i);
        WEIR_TRY(read_port(json_array_get(array, i), place, arena, &(*out)[i], err));
        for (size_t k = 0; k < i; k++) {
            if (strcmp((*out)[k].name, (*out)[i].name) == 0) {
                return weir_error_set(err, WEIR_ERR_INVALID, "%s.name: \"%.80s\" is there twice",
                                      place, (*out)[i].name);
            }
        }
    }
    return WEIR_OK;
}

weir_status labels_read(const json_t *array, const char *where, struct weir_arena *arena,
                        struct weir_signature *out, struct weir_error *err)
{
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n == 0 || n > SIGNATURE_LABELS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected an array of 1 to %zu names",
                              where, SIGNATURE_LABELS_MAX);
    }
    const char **labels = WEIR_ARENA_ARRAY(arena, n, const char *);
    for (size_t i = 0; i < n; i++) {
        const json_t *label = json_array_get(array, i);
        if (!json_is_string(label) ||
            strlen(json_string_value(label)) != json_string_length(label)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s[%zu]: expected a name", where, i);
        }
        labels[i] = weir_arena_strdup(arena, json_string_value(label));
        WEIR_TRY(weir_arena_check(arena, "labels", err));
    }
    out->labels = labels;
    out->n_labels = n;
    return WEIR_OK;
}

static weir_status read_words(const struct signature_options *from, const char *where,
                              struct weir_signature *out, struct weir_error *err)
{
    out->format = strcmp(from->format, "weir") == 0   ? WEIR_MODEL_FORMAT_WEIR
                  : strcmp(from->format, "onnx") == 0 ? WEIR_MODEL_FORMAT_ONNX
                                                      : WEIR_MODEL_FORMAT_UNKNOWN;
    if (out->format == WEIR_MODEL_FORMAT_UNKNOWN) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.format: expected weir or onnx, got "
                              "\"%.40s\"",
                              where, from->format);
    }
    out->executor = from->executor;
    out->why = from->why;
    out->is_batched = from->is_batched;
    if (!output_kind_of(from->output_kind, &out->output_kind)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.output_kind: expected tensor, logits, probabilities or "
                              "embedding, got \"%.40s\"",
                              where, from->output_kind);
    }
    return WEIR_OK;
}

weir_status weir_signature_read(const json_t *object, const char *where, struct weir_arena *arena,
                                struct weir_signature *out, struct weir_error *err)
{
    struct signature_options from = {0};
    struct weir_signature made = {0};
    char place[SIGNATURE_WHERE_BYTES];
    WEIR_TRY(weir_options_read(signature_table, WEIR_ARRAY_LEN(signature_table), object, where,
                               NULL, arena, &from, err));
    WEIR_TRY(read_words(&from, where, &made, err));
    WEIR_TRY(read_ports(from.inputs, where, "inputs", arena, &made.inputs, &made.n_inputs, err));
    WEIR_TRY(
        read_ports(from.outputs, where, "outputs", arena, &made.outputs, &made.n_outputs, err));
    if (from.labels != NULL) {
        (void)snprintf(place, sizeof place, "%.80s.labels", where);
        WEIR_TRY(labels_read(from.labels, place, arena, &made, err));
    }
    if (from.picture != NULL) {
        (void)snprintf(place, sizeof place, "%.80s.picture", where);
        WEIR_TRY(picture_read(from.picture, place, made.inputs, made.n_inputs, arena, &made.picture,
                              err));
        made.has_picture = true;
    }
    WEIR_TRY(weir_signature_check(&made, where, err));
    *out = made;
    return WEIR_OK;
}

weir_status weir_signature_parse(const char *text, size_t len, const char *what,
                                 struct weir_arena *arena, struct weir_signature *out,
                                 struct weir_error *err)
{
    if (len > SIGNATURE_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %zu bytes, a signature has at most %zu",
                              what, len, SIGNATURE_MAX_BYTES);
    }
    json_t *object;
    WEIR_TRY(weir_json_parse(text, len, what, &object, err));
    weir_status status = weir_signature_read(object, "$", arena, out, err);
    json_decref(object);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", what);
}

/* ---- check ------------------------------------------------------------------------------------ */

static weir_status check_batched(const struct serve_port *ports, size_t n, const char *where,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ports[i].rank < 1 || ports[i].dims[0] >= 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.is_batched: the first dimension of \"%.80s\" is not free",
                                  where, ports[i].name);
        }
    }
    return WEIR_OK;
}

#define SIGNATURE_VALUES_MAX ((int64_t)1 << 31)

/* Values of one row: the dimensions behind the first. -1: the model does not say. */
static int64_t row_values(const struct serve_port *port)
{
    int64_t n = port->rank < 0 ? -1 : 1;
    for (int32_t i = port->rank > 1 ? 1 : 0; i < port->rank && n >= 0; i++) {
        n = port->dims[i] < 0 || port->dims[i] > SIGNATURE_VALUES_MAX ? -1 : n * port->dims[i];
        n = WEIR_MIN(n, SIGNATURE_VALUES_MAX);
    }
    return n;
}

/* A row has a value for each label ([N,1000], [N,1000,1,1]), or several times that ([N,T,9]). */
static weir_status check_labels(const struct weir_signature *signature, const char *where,
                                struct weir_error *err)
{
    const struct serve_port *output = &signature->outputs[0];
    int64_t n_values = row_values(output);
    int64_t n_last = output->rank > 0 ? output->dims[output->rank - 1] : n_values;
    if (signature->labels == NULL || n_values < 0 || n_values == (int64_t)signature->n_labels ||
        n_last == (int64_t)signature->n_labels) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "%s.labels: %zu names, but output \"%.80s\" has %lld values", where,
                          signature->n_labels, output->name, (long long)n_values);
}

weir_status weir_signature_check(const struct weir_signature *signature, const char *where,
                                 struct weir_error *err)
{
    if (signature->is_batched) {
        WEIR_TRY(check_batched(signature->inputs, signature->n_inputs, where, err));
        WEIR_TRY(check_batched(signature->outputs, signature->n_outputs, where, err));
    }
    WEIR_TRY(check_labels(signature, where, err));
    char place[SIGNATURE_WHERE_BYTES];
    (void)snprintf(place, sizeof place, "%.80s.picture", where);
    return signature->has_picture ? picture_check(&signature->picture, signature->inputs,
                                                  signature->n_inputs, place, err)
                                  : WEIR_OK;
}

/* ---- print ------------------------------------------------------------------------------------ */

static json_t *ports_json(const struct serve_port *ports, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (int32_t k = 0; k < ports[i].rank; k++) {
            (void)json_array_append_new(shape, json_integer(ports[i].dims[k]));
        }
        (void)json_array_append_new(array,
                                    json_pack("{s:s, s:s, s:o}", "name", ports[i].name, "datatype",
                                              signature_datatype(ports[i].dtype), "shape", shape));
    }
    return array;
}

static json_t *labels_json(const struct weir_signature *signature)
{
    if (signature->labels == NULL) {
        return json_null();
    }
    json_t *array = json_array();
    for (size_t i = 0; i < signature->n_labels; i++) {
        (void)json_array_append_new(array, json_string(signature->labels[i]));
    }
    return array;
}

json_t *weir_signature_json(const struct weir_signature *signature)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:b, s:o, s:s, s:o}", "format",
        weir_model_format_text(signature->format), "executor", signature->executor, "why",
        signature->why, "inputs", ports_json(signature->inputs, signature->n_inputs), "outputs",
        ports_json(signature->outputs, signature->n_outputs), "is_batched", signature->is_batched,
        "picture",
        signature->has_picture ? picture_json(&signature->picture, signature->inputs) : json_null(),
        "output_kind", output_kind_text(signature->output_kind), "labels", labels_json(signature));
}
