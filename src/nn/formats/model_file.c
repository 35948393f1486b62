#include "nn/model_file.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "model_layer.h"

#include <stdlib.h>
#include <string.h>

/* Canonical text is the file's content again; only a description can grow, when it is escaped. */
#define TEXT_MAX_BYTES (8 * WEIR_MODEL_FILE_MAX_BYTES)
#define PATH_BYTES     64

struct weir_model_spec {
    char *what; /**< Source, for messages of build. */
    char *text;
    struct weir_shape input;
    struct model_layer *layers; /**< The loss is the last one. */
    int32_t n_layers;           /**< Without the loss. */
};

/* ---- reading ------------------------------------------------------------------------------ */

static weir_status input_read(const json_t *root, const struct model_place *place,
                              struct weir_shape *out)
{
    const json_t *input = json_object_get(root, "input");
    int32_t sides[3];
    bool is_good = json_is_array(input) && json_array_size(input) == WEIR_ARRAY_LEN(sides);
    for (size_t i = 0; is_good && i < WEIR_ARRAY_LEN(sides); i++) {
        const json_t *side = json_array_get(input, i);
        is_good = json_is_integer(side) && json_integer_value(side) > 0 &&
                  json_integer_value(side) <= 1 << 20;
        sides[i] = is_good ? (int32_t)json_integer_value(side) : 0;
    }
    if (!is_good) {
        return model_expected(place, "input", "[C, H, W], integers > 0", input);
    }
    *out = (struct weir_shape){sides[0], sides[1], sides[2]};
    return WEIR_OK;
}

/** Value number of a name: 0 the input, i + 1 layer i < n_layers; -1 if there is none. */
static int32_t value_find(const struct weir_model_spec *spec, int32_t n_layers, const char *name)
{
    if (strcmp(name, "input") == 0) {
        return 0;
    }
    for (int32_t i = 0; i < n_layers; i++) {
        if (strcmp(spec->layers[i].name, name) == 0) {
            return i + 1;
        }
    }
    return -1;
}

static weir_status reference_read(const struct weir_model_spec *spec, int32_t i_layer,
                                  const json_t *value, const struct model_place *place,
                                  int32_t *out)
{
    if (!json_is_string(value)) {
        return model_expected(place, "from", "the name of a layer before this one", value);
    }
    *out = value_find(spec, i_layer, json_string_value(value));
    if (*out < 0) {
        return weir_error_set(place->err, WEIR_ERR_INVALID,
                              "%s: %s.from: there is no layer \"%.80s\" before this one",
                              place->what, place->path, json_string_value(value));
    }
    return WEIR_OK;
}

static weir_status from_read(const struct weir_model_spec *spec, int32_t i_layer,
                             const json_t *object, const struct model_place *place,
                             struct model_layer *layer)
{
    int32_t n_min, n_max;
    model_layer_arity(layer, &n_min, &n_max);
    const json_t *from = json_object_get(object, "from");
    if (n_max == 1) {
        layer->n_from = 1;
        layer->from[0] = i_layer; /* The layer before, or the input. */
        return from == NULL ? WEIR_OK : reference_read(spec, i_layer, from, place, &layer->from[0]);
    }
    size_t n = json_array_size(from);
    if (n < (size_t)n_min || n > (size_t)n_max) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "a list of %d%s layer names", n_min,
                       n_max == n_min ? "" : " to 16");
        return model_expected(place, "from", expected, from);
    }
    layer->n_from = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(reference_read(spec, i_layer, json_array_get(from, i), place, &layer->from[i]));
    }
    return WEIR_OK;
}

static weir_status layer_read(struct weir_model_spec *spec, int32_t i_layer, const json_t *object,
                              const char *what, struct weir_error *err)
{
    bool is_loss = i_layer == spec->n_layers;
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, is_loss ? "$.loss" : "$.layers[%d]", i_layer);
    const struct model_place place = {.what = what, .path = path, .err = err};
    struct model_layer *layer = &spec->layers[i_layer];
    WEIR_TRY(model_layer_read(object, is_loss, (size_t)i_layer, &place, layer));
    if (value_find(spec, i_layer, layer->name) >= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: %s.name: \"%s\" is already the name of "
                              "another layer",
                              what, path, layer->name);
    }
    return from_read(spec, i_layer, object, &place, layer);
}

static weir_status keys_check(const json_t *root, const struct model_place *place)
{
    static const char *const known[] = {"name", "description", "input", "layers", "loss"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        size_t i = 0;
        while (i < WEIR_ARRAY_LEN(known) && strcmp(known[i], key) != 0) {
            i++;
        }
        if (i == WEIR_ARRAY_LEN(known)) {
            return weir_error_set(place->err, WEIR_ERR_INVALID,
                                  "%s: $.%.64s: a model has name, description, input, layers, loss "
                                  "and nothing else",
                                  place->what, key);
        }
        if (i < 2 && !json_is_string(value)) {
            return model_expected(place, key, "text", value);
        }
    }
    return WEIR_OK;
}

static weir_status root_read(struct weir_model_spec *spec, const json_t *root, const char *what,
                             struct weir_error *err)
{
    const struct model_place place = {.what = what, .path = "$", .err = err};
    if (!json_is_object(root)) {
        return model_expected(&place, "", "an object with input, layers and loss", root);
    }
    WEIR_TRY(keys_check(root, &place));
    WEIR_TRY(input_read(root, &place, &spec->input));
    const json_t *layers = json_object_get(root, "layers");
    if (!json_is_array(layers) || json_array_size(layers) == 0) {
        return model_expected(&place, "layers", "a list of layers", layers);
    }
    if (json_array_size(layers) > WEIR_MODEL_FILE_LAYERS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: $.layers: %zu layers, at most %d are read",
                              what, json_array_size(layers), WEIR_MODEL_FILE_LAYERS_MAX);
    }
    spec->n_layers = (int32_t)json_array_size(layers);
    spec->layers = calloc((size_t)spec->n_layers + 1, sizeof *spec->layers);
    if (spec->layers == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", what);
    }
    for (int32_t i = 0; i < spec->n_layers; i++) {
        WEIR_TRY(layer_read(spec, i, json_array_get(layers, (size_t)i), what, err));
    }
    const json_t *loss = json_object_get(root, "loss");
    if (loss == NULL) {
        return model_expected(&place, "loss", "{type: softmax}, {type: margin} or {type: detect}",
                              NULL);
    }
    return layer_read(spec, spec->n_layers, loss, what, err);
}

/* ---- text --------------------------------------------------------------------------------- */

static void value_write(struct weir_buf *buf, const char *before, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) {
        buf->status = WEIR_ERR_NOMEM;
        return;
    }
    (void)weir_buf_printf(buf, "%s%s", before, text);
    free(text);
}

/** One layer per line: what a person reads, compares and edits. */
static weir_status text_make(struct weir_model_spec *spec, const json_t *root)
{
    WEIR_AUTO(weir_buf_fini) struct weir_buf buf;
    weir_buf_init(&buf, TEXT_MAX_BYTES);
    const json_t *name = json_object_get(root, "name");
    const json_t *description = json_object_get(root, "description");
    const json_t *layers = json_object_get(root, "layers");
    const char *before = "{";
    if (name != NULL) {
        value_write(&buf, "{\"name\":", name);
        before = ",\n ";
    }
    if (description != NULL) {
        (void)weir_buf_puts(&buf, before);
        value_write(&buf, "\"description\":", description);
        before = ",\n ";
    }
    (void)weir_buf_puts(&buf, before);
    value_write(&buf, "\"input\":", json_object_get(root, "input"));
    for (size_t i = 0; i < json_array_size(layers); i++) {
        value_write(&buf, i == 0 ? ",\n \"layers\":[\n  " : ",\n  ", json_array_get(layers, i));
    }
    value_write(&buf, "],\n \"loss\":", json_object_get(root, "loss"));
    (void)weir_buf_puts(&buf, "}\n");
    WEIR_TRY(buf.status);
    size_t len;
    spec->text = weir_buf_detach(&buf, &len);
    return spec->text == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

/* ---- specs -------------------------------------------------------------------------------- */

static weir_status tree_parse(const char *text, size_t len, const char *what, json_t **out,
                              struct weir_error *err)
{
    if (len > WEIR_MODEL_FILE_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %zu bytes, at most %zu are read", what, len,
                              WEIR_MODEL_FILE_MAX_BYTES);
    }
    size_t i = 0;
    while (i < len && strchr(" \t\r\n", text[i]) != NULL && text[i] != '\0') {
        i++;
    }
    return i < len && text[i] == '{' ? weir_json_parse(text, len, what, out, err)
                                     : weir_yaml_parse(text, len, what, false, out, err);
}

weir_status weir_model_spec_parse(const char *text, size_t len, const char *what,
                                  struct weir_model_spec **out, struct weir_error *err)
{
    json_t *root = NULL;
    WEIR_TRY(tree_parse(text, len, what, &root, err));
    weir_status status = WEIR_OK;
    struct weir_model_spec *spec = calloc(1, sizeof *spec);
    if (spec == NULL || (spec->what = strdup(what)) == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", what);
        goto destroy;
    }
    WEIR_TRY_GOTO(root_read(spec, root, what, err), status, destroy);
    status = text_make(spec, root);
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "%s: no room for the text of the model", what);
        goto destroy;
    }
    json_decref(root);
    *out = spec;
    return WEIR_OK;
destroy:
    json_decref(root);
    weir_model_spec_destroy(spec);
    return status;
}

weir_status weir_model_spec_load(const char *path, struct weir_model_spec **out,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, WEIR_MODEL_FILE_MAX_BYTES + ((size_t)64 << 10));
    char *text;
    size_t len;
    WEIR_TRY(weir_file_read(path, WEIR_MODEL_FILE_MAX_BYTES, &arena, &text, &len, err));
    return weir_model_spec_parse(text, len, path, out, err);
}

void weir_model_spec_destroy(struct weir_model_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    free(spec->layers);
    free(spec->text);
    free(spec->what);
    free(spec);
}

const char *weir_model_spec_text(const struct weir_model_spec *spec)
{
    return spec->text;
}

const char *weir_model_spec_loss(const struct weir_model_spec *spec)
{
    return model_layer_type_name(&spec->layers[spec->n_layers]);
}

struct weir_shape weir_model_spec_input(const struct weir_model_spec *spec)
{
    return spec->input;
}

/* ---- building ----------------------------------------------------------------------------- */

/** The graph's error, behind the position in the file that caused it. */
static weir_status graph_error(const struct weir_model_spec *spec, const char *path,
                               const struct weir_graph *graph, struct weir_error *err)
{
    struct weir_error reason;
    weir_status status = weir_graph_check(graph, &reason);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "%s: %s: %.400s", spec->what, path, reason.message);
}

static weir_status layers_build(const struct weir_model_spec *spec, int32_t n_classes,
                                weir_value_t *values, struct weir_graph *graph,
                                struct weir_error *err)
{
    values[0] = weir_graph_input(graph, spec->input);
    if (values[0] < 0) {
        return graph_error(spec, "$.input", graph, err);
    }
    for (int32_t i = 0; i <= spec->n_layers; i++) {
        const struct model_layer *layer = &spec->layers[i];
        if (n_classes == 0 && model_layer_needs_classes(layer)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s: layer %s is as wide as there are classes, and their number "
                                  "is not known here",
                                  spec->what, layer->name);
        }
        weir_value_t xs[MODEL_FROM_MAX];
        for (int32_t j = 0; j < layer->n_from; j++) {
            xs[j] = values[layer->from[j]];
        }
        weir_value_t value = model_layer_add(layer, graph, xs, n_classes);
        if (i == spec->n_layers) {
            break;
        }
        if (value < 0) {
            char path[PATH_BYTES];
            (void)snprintf(path, sizeof path, "$.layers[%d]", i);
            return graph_error(spec, path, graph, err);
        }
        values[i + 1] = value;
    }
    /* The loss, and what can only be said of the whole: a value that nothing uses. */
    return graph_error(spec, "$", graph, err);
}

static weir_status classes_check(const struct weir_model_spec *spec, int32_t n_classes,
                                 const struct weir_graph *graph, struct weir_error *err)
{
    if (n_classes > 0 && !weir_graph_is_detector(graph) &&
        weir_graph_n_classes(graph) != n_classes) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: the model tells %d classes apart, the data has %d (\"k: "
                              "classes\" in the last layer fits any data)",
                              spec->what, weir_graph_n_classes(graph), n_classes);
    }
    return WEIR_OK;
}

weir_status weir_model_spec_build(const struct weir_model_spec *spec, int32_t n_classes,
                                  struct weir_graph **out, struct weir_error *err)
{
    if (n_classes < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: %d classes", spec->what, n_classes);
    }
    weir_status status = WEIR_OK;
    struct weir_graph *graph = weir_graph_create();
    weir_value_t *values = calloc((size_t)spec->n_layers + 1, sizeof *values);
    if (graph == NULL || values == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", spec->what);
        goto destroy;
    }
    WEIR_TRY_GOTO(layers_build(spec, n_classes, values, graph, err), status, destroy);
    WEIR_TRY_GOTO(classes_check(spec, n_classes, graph, err), status, destroy);
    free(values);
    *out = graph;
    return WEIR_OK;
destroy:
    free(values);
    weir_graph_destroy(graph);
    return status;
}

weir_status weir_model_build(const char *text, int32_t n_classes, struct weir_graph **out,
                             struct weir_error *err)
{
    return weir_model_build_sized(text, n_classes, 0, 0, out, err);
}

weir_status weir_model_build_sized(const char *text, int32_t n_classes, int32_t h, int32_t w,
                                   struct weir_graph **out, struct weir_error *err)
{
    struct weir_model_spec *spec = NULL;
    WEIR_TRY(weir_model_spec_parse(text, strlen(text), "model", &spec, err));
    spec->input.h = h > 0 ? h : spec->input.h;
    spec->input.w = w > 0 ? w : spec->input.w;
    weir_status status = weir_model_spec_build(spec, n_classes, out, err);
    weir_model_spec_destroy(spec);
    return status;
}
