#include "signature_private.h"

#include "base/file.h"

#include <string.h>

static weir_status copy_port(const struct serve_port *port, bool is_input, struct weir_arena *arena,
                             struct serve_port *out, struct weir_error *err)
{
    bool is_name = port->name[0] != '\0' && weir_text_is_utf8(port->name) &&
                   strlen(port->name) <= WEIR_OPTION_TEXT_MAX_BYTES;
    bool is_known = port->rank >= 0 && port->dtype != WEIR_DTYPE_NONE;
    bool has_datatype = signature_datatype(port->dtype) != NULL;
    if (!is_name || (is_input && !is_known) || (port->dtype != WEIR_DTYPE_NONE && !has_datatype)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s \"%.80s\" %s",
                              is_input ? "input" : "output", is_name ? port->name : "?",
                              !is_name    ? "has a name that JSON cannot have"
                              : !is_known ? "has no type or no shape"
                                          : "has a type that clients do not have");
    }
    *out = *port;
    out->name = weir_arena_strdup(arena, port->name);
    return WEIR_OK;
}

static weir_status copy_ports(const struct serve_port *ports, size_t n, bool is_input,
                              struct weir_arena *arena, struct serve_port **out,
                              struct weir_error *err)
{
    *out = WEIR_ARENA_ARRAY(arena, n, struct serve_port);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(copy_port(&ports[i], is_input, arena, &(*out)[i], err));
    }
    return WEIR_OK;
}

/* ---- labels ----------------------------------------------------------------------------------- */

/* One a line; a last line end is no empty label. */
static json_t *lines(const char *text, size_t len)
{
    json_t *array = json_array();
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end != NULL ? (size_t)(end - text) : len;
        size_t n_shown = n > 0 && text[n - 1] == '\r' ? n - 1 : n;
        (void)json_array_append_new(array, json_stringn(text, n_shown));
        size_t n_taken = end != NULL ? n + 1 : n;
        text += n_taken;
        len -= n_taken;
    }
    return array;
}

static weir_status parse_labels(const char *text, size_t len, struct weir_arena *arena,
                                struct weir_signature *out, struct weir_error *err)
{
    json_t *array = NULL;
    if (len > 0 && text[0] == '[') {
        WEIR_TRY(weir_json_parse(text, len, "labels", &array, err));
    } else {
        array = lines(text, len);
    }
    weir_status status = labels_read(array, "labels", arena, out, err);
    json_decref(array);
    return status;
}

static weir_status make_labels(struct serve_model *model, const struct signature_extras *extras,
                               struct weir_arena *arena, struct weir_signature *out,
                               struct weir_error *err)
{
    if (extras->labels != NULL) {
        return parse_labels(extras->labels, extras->labels_len, arena, out, err);
    }
    const char *text = serve_model_metadata(model, "weir.labels");
    return text != NULL && text[0] == '[' ? parse_labels(text, strlen(text), arena, out, err)
                                          : WEIR_OK;
}

/* ---- picture ---------------------------------------------------------------------------------- */

/* What people write goes before what the file says, member by member. */
static weir_status merge_preprocess(const struct signature_extras *extras, json_t *rule,
                                    bool *out_is_given, struct weir_error *err)
{
    json_t *given;
    if (extras->preprocess == NULL) {
        return WEIR_OK;
    }
    if (extras->preprocess_len > SIGNATURE_PREPROCESS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "preprocess: at most %zu bytes",
                              SIGNATURE_PREPROCESS_MAX);
    }
    WEIR_TRY(weir_yaml_parse(extras->preprocess, extras->preprocess_len, "preprocess", false,
                             &given, err));
    weir_status status = WEIR_OK;
    if (json_is_object(given)) {
        (void)json_object_update(rule, given);
        *out_is_given = true;
    } else {
        status = weir_error_set(err, WEIR_ERR_INVALID,
                                "preprocess: expected members such as width, mean and std");
    }
    json_decref(given);
    return status;
}

static weir_status file_picture(struct serve_model *model, json_t **out, bool *out_is_given,
                                struct weir_error *err)
{
    const char *text = serve_model_metadata(model, "weir.picture");
    *out_is_given = text != NULL;
    if (text == NULL) {
        *out = json_object();
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), "the model's weir.picture", out, err));
    if (!json_is_object(*out)) {
        json_decref(*out);
        return weir_error_set(err, WEIR_ERR_INVALID, "the model's weir.picture is no object");
    }
    return WEIR_OK;
}

static weir_status make_output_kind(const char *text, struct weir_signature *out,
                                    struct weir_error *err)
{
    out->is_kind_given = out->is_kind_given || text != NULL;
    if (text == NULL || output_kind_of(text, &out->output_kind)) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "preprocess: $.output_kind: expected tensor, logits, probabilities or "
                          "embedding, got \"%.40s\"",
                          text);
}

static weir_status make_picture(struct serve_model *model, json_t *rule, bool is_given,
                                const struct signature_extras *extras, struct weir_arena *arena,
                                struct weir_signature *out, struct weir_error *err)
{
    WEIR_TRY(merge_preprocess(extras, rule, &is_given, err));
    out->output_kind = out->labels != NULL ? SIGNATURE_LOGITS : SIGNATURE_TENSOR;
    WEIR_TRY(make_output_kind(serve_model_metadata(model, "weir.output_kind"), out, err));
    const json_t *kind = json_object_get(rule, "output_kind");
    if (kind != NULL && !json_is_string(kind)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "preprocess: $.output_kind: expected text");
    }
    WEIR_TRY(make_output_kind(json_string_value(kind), out, err));
    (void)json_object_del(rule, "output_kind");
    if (!is_given || json_object_size(rule) == 0) {
        return WEIR_OK;
    }
    weir_status status =
        picture_read(rule, "$", out->inputs, out->n_inputs, arena, &out->picture, err);
    out->has_picture = status == WEIR_OK;
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "preprocess: ");
}

weir_status signature_extra_read(const char *path, size_t max_bytes, struct weir_arena *arena,
                                 const char **out, size_t *out_len, struct weir_error *err)
{
    char *text;
    if (path == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_file_read(path, max_bytes, arena, &text, out_len, err));
    *out = text;
    return WEIR_OK;
}

/* With what people said of it, or could say. */
static const char *explain(const struct serve_model *model, const char *why,
                           const struct signature_extras *extras, struct weir_arena *arena)
{
    if (extras->inputs != NULL) {
        return weir_arena_printf(
            arena, "%.600s; its inputs have the shapes that were said when it was pushed", why);
    }
    return model->is_resizable
               ? weir_arena_printf(arena,
                                   "%.600s; its file fixes the size of pictures: pushed with "
                                   "--input \"%.80s=N,%lld,H,W\" it may take others",
                                   why, model->inputs[0].name, (long long)model->inputs[0].dims[1])
               : weir_arena_strdup(arena, why);
}

weir_status weir_signature_make(struct serve_model *model, enum weir_model_format format,
                                const char *why, const struct signature_extras *extras,
                                struct weir_arena *arena, struct weir_signature *out,
                                struct weir_error *err)
{
    struct weir_signature made = {.format = format,
                                  .executor = model->kind->name,
                                  .why = explain(model, why, extras, arena),
                                  .n_inputs = model->n_inputs,
                                  .n_outputs = model->n_outputs,
                                  .is_batched = serve_model_is_batched(model)};
    json_t *rule;
    bool is_given;
    WEIR_TRY(copy_ports(model->inputs, model->n_inputs, true, arena, &made.inputs, err));
    WEIR_TRY(copy_ports(model->outputs, model->n_outputs, false, arena, &made.outputs, err));
    WEIR_TRY(make_labels(model, extras, arena, &made, err));
    WEIR_TRY(file_picture(model, &rule, &is_given, err));
    weir_status status = make_picture(model, rule, is_given, extras, arena, &made, err);
    json_decref(rule);
    WEIR_TRY(status);
    WEIR_TRY(weir_signature_check(&made, "signature", err));
    *out = made;
    return WEIR_OK;
}
