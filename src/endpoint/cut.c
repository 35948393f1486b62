#include "endpoint/cut.h"

#include "endpoint/stage.h"

#include <string.h>

/* An object; an empty one for NULL. */
static weir_status read_object(const char *text, const char *what, json_t **out,
                               struct weir_error *err)
{
    if (text == NULL) {
        *out = json_object();
        return WEIR_OK;
    }
    WEIR_TRY(weir_json_parse(text, strlen(text), what, out, err));
    if (json_is_object(*out)) {
        return WEIR_OK;
    }
    json_decref(*out);
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "%s: expected the stage's options, an object as JSON", what);
}

static weir_status read_align(const char *text, struct weir_arena *arena,
                              struct weir_stage_align *out, struct weir_error *err)
{
    struct weir_configured read;
    json_t *object;
    WEIR_TRY(read_object(text, "align", &object, err));
    weir_status status = weir_kind_read(&weir_stage_align_kind, object, "align", arena, &read, err);
    json_decref(object);
    WEIR_TRY(status);
    *out = *(const struct weir_stage_align *)read.options;
    return WEIR_OK;
}

/* `object` is the caller's, and gets the model. */
static weir_status read_detect(json_t *object, const char *model, struct weir_arena *arena,
                               struct weir_stage_detect *out, struct weir_error *err)
{
    struct weir_configured read;
    if (json_object_get(object, "model") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "detect.model: the detector is named beside it: leave it out");
    }
    json_object_set_new(object, "model", json_string(model));
    WEIR_TRY(weir_kind_read(&weir_stage_detect_kind, object, "detect", arena, &read, err));
    *out = *(const struct weir_stage_detect *)read.options;
    return WEIR_OK;
}

weir_status weir_cut_read(const char *model, const char *detect, const char *align,
                          struct weir_arena *arena, struct weir_cut *out, struct weir_error *err)
{
    struct weir_cut cut = {0};
    WEIR_TRY(read_align(align, arena, &cut.align, err));
    WEIR_TRY(read_object(detect, "detect", &cut.json, err));
    weir_status status = read_detect(cut.json, model, arena, &cut.detect, err);
    if (status != WEIR_OK) {
        weir_cut_fini(&cut);
        return status;
    }
    *out = cut;
    return WEIR_OK;
}

void weir_cut_fini(struct weir_cut *cut)
{
    json_decref(cut->json);
    cut->json = NULL;
}

/* The options of the first stage of that kind, a new reference; NULL: there is none. */
static json_t *options_of(const json_t *stages, const char *kind)
{
    const json_t *stage;
    size_t i;
    json_array_foreach(stages, i, stage)
    {
        const char *name =
            json_string_value(json_is_object(stage) ? json_object_get(stage, "kind") : stage);
        if (name != NULL && strcmp(name, kind) == 0) {
            json_t *options = json_is_object(stage) ? json_copy((json_t *)stage) : json_object();
            json_object_del(options, "kind");
            return options;
        }
    }
    return NULL;
}

bool weir_cut_of_stages(const json_t *stages, struct weir_arena *arena, struct weir_cut_texts *out)
{
    WEIR_AUTO(weir_json_auto_free) json_t *detect = options_of(stages, "detect");
    WEIR_AUTO(weir_json_auto_free) json_t *align = options_of(stages, "align");
    const char *model = json_string_value(json_object_get(detect, "model"));
    if (model == NULL || align == NULL) {
        return false;
    }
    out->model = weir_arena_strdup(arena, model);
    json_object_del(detect, "model");
    out->detect = weir_json_text(detect, arena);
    out->align = weir_json_text(align, arena);
    return true;
}
