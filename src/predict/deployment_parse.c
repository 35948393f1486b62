#include "predict/deployment.h"

#include <string.h>

/* Of a server that does not say it. */
#define FALSE_DENY_RATE 0.01

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static bool is_blob(const char *text)
{
    return text != NULL && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static weir_status read_list(const json_t *lists, const char *key, struct weir_arena *arena,
                             const char ***out, size_t *out_n, struct weir_error *err)
{
    const json_t *array = json_object_get(lists, key), *item;
    size_t i;
    *out = WEIR_ARENA_ARRAY(arena, json_array_size(array) + 1, const char *);
    *out_n = json_array_size(array);
    json_array_foreach(array, i, item)
    {
        if (!json_is_string(item)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "deployment: $.lists.%s[%zu]: expected text", key, i);
        }
        (*out)[i] = weir_arena_strdup(arena, json_string_value(item));
    }
    return WEIR_OK;
}

static weir_status read_model(const json_t *json, const char *key, struct weir_arena *arena,
                              struct model_name *out, struct weir_error *err)
{
    const json_t *model = json_object_get(json, key);
    const char *name = text_of(model, "name"), *id = text_of(model, "id"),
               *blob = text_of(model, "blob");
    if (name == NULL || !is_blob(blob)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment: $.%s: expected name, version and blob", key);
    }
    const json_t *signature = json_object_get(model, "signature");
    if (json_is_null(signature)) {
        signature = NULL;
    }
    if (signature != NULL && !json_is_object(signature)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment: $.%s.signature: expected an object", key);
    }
    *out = (struct model_name){.name = weir_arena_strdup(arena, name),
                               .id = weir_arena_strdup(arena, id != NULL ? id : ""),
                               .blob = weir_arena_strdup(arena, blob),
                               .version = json_integer_value(json_object_get(model, "version")),
                               .signature = signature};
    return WEIR_OK;
}

static weir_status read_impostors(const json_t *gallery, struct weir_arena *arena,
                                  struct deployment *out, struct weir_error *err)
{
    const json_t *impostors = json_object_get(gallery, "impostors");
    const char *blob = text_of(impostors, "blob");
    if (impostors == NULL || json_is_null(impostors)) {
        return WEIR_OK;
    }
    if (!is_blob(blob)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "deployment: $.gallery.impostors.blob: expected the manifest's SHA-256");
    }
    out->impostors_blob = weir_arena_strdup(arena, blob);
    out->impostors_path = weir_arena_strdup(arena, text_of(impostors, "path"));
    out->impostors_version = json_integer_value(json_object_get(impostors, "version"));
    return WEIR_OK;
}

static weir_status read_gallery(const json_t *json, struct weir_arena *arena,
                                struct deployment *out, struct weir_error *err)
{
    const json_t *gallery = json_object_get(json, "gallery");
    const char *blob = text_of(gallery, "blob");
    if (!json_is_object(gallery)) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "the gallery has no version yet, and a replica recognises people by it: freeze its "
            "dataset");
    }
    if (!is_blob(blob)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment: $.gallery.blob: expected the manifest's SHA-256");
    }
    out->gallery_blob = weir_arena_strdup(arena, blob);
    out->gallery_path = weir_arena_strdup(arena, text_of(gallery, "path"));
    out->gallery_version = json_integer_value(json_object_get(gallery, "version"));
    return read_impostors(gallery, arena, out, err);
}

static weir_status read_fallback(const json_t *json, enum verdict *out, struct weir_error *err)
{
    const char *text = text_of(json, "default");
    if (text == NULL || strcmp(text, "unknown") == 0) {
        *out = VERDICT_UNKNOWN;
    } else if (strcmp(text, "allow") == 0) {
        *out = VERDICT_GRANT;
    } else if (strcmp(text, "deny") == 0) {
        *out = VERDICT_DENY;
    } else {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment: $.default: \"%.40s\" is none of allow, deny, unknown",
                              text);
    }
    return WEIR_OK;
}

static weir_status read_rate(const json_t *value, const char *name, double *out,
                             struct weir_error *err)
{
    double rate = json_number_value(value);
    if (!(rate > 0 && rate < 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment: $.%s: expected a number between 0 and 1", name);
    }
    *out = rate;
    return WEIR_OK;
}

static weir_status read_rates(const json_t *json, struct calibration_rates *out,
                              struct weir_error *err)
{
    const json_t *deny_rate = json_object_get(json, "false_deny_rate");
    out->deny = FALSE_DENY_RATE;
    WEIR_TRY(read_rate(json_object_get(json, "false_accept_rate"), "false_accept_rate",
                       &out->accept, err));
    return deny_rate != NULL ? read_rate(deny_rate, "false_deny_rate", &out->deny, err) : WEIR_OK;
}

/* A server that does not name them has recognisers only. */
static weir_status read_stages(const json_t *json, struct weir_arena *arena, struct deployment *out,
                               struct weir_error *err)
{
    struct weir_stage_chain chain;
    const json_t *stages = json_object_get(json, "stages");
    WEIR_TRY(weir_stages_read(stages, true, "deployment: $.stages", arena, &chain, err));
    out->stages = json_is_null(stages) ? NULL : stages;
    out->has_model = weir_stages_model(&chain) != WEIR_STAGE_MODEL_NONE;
    out->has_gallery = weir_stages_need_gallery(&chain);
    out->has_detector = weir_stages_options(&chain, &weir_stage_detect_kind) != NULL;
    return out->has_detector ? read_model(json, "detector", arena, &out->detector, err) : WEIR_OK;
}

weir_status deployment_parse(const json_t *json, struct weir_arena *arena, struct deployment *out,
                             struct weir_error *err)
{
    struct deployment found = {
        .revision = json_integer_value(json_object_get(json, "revision")),
        .list_revision = json_integer_value(json_object_get(json, "list_revision")),
    };
    if (!json_is_object(json_object_get(json, "model"))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "nothing is deployed yet");
    }
    const json_t *lists = json_object_get(json, "lists");
    WEIR_TRY(read_model(json, "model", arena, &found.model, err));
    WEIR_TRY(read_stages(json, arena, &found, err));
    if (found.has_gallery) {
        WEIR_TRY(read_rates(json, &found.rates, err));
        WEIR_TRY(read_gallery(json, arena, &found, err));
    }
    WEIR_TRY(read_list(lists, "allow", arena, &found.lists.allow, &found.lists.n_allow, err));
    WEIR_TRY(read_list(lists, "deny", arena, &found.lists.deny, &found.lists.n_deny, err));
    WEIR_TRY(read_list(lists, "locked", arena, &found.lists.locked, &found.lists.n_locked, err));
    WEIR_TRY(read_fallback(json, &found.lists.fallback, err));
    *out = found;
    return WEIR_OK;
}
