#include "endpoint/stage.h"

#include "endpoint/stage/count.h"
#include "endpoint/stage/detect.h"
#include "endpoint/stage/track.h"

#include <string.h>

static const struct weir_kind *const stages[] = {
#define WEIR_KIND(name) &weir_stage_##name##_kind,
#include "endpoint/stages.def"
#undef WEIR_KIND
};

const struct weir_registry weir_stages = {
    .noun = "stage",
    .plural = "stages",
    .doc = "What a prediction pipeline makes of a frame, step by step.",
    .kinds = stages,
    .n_kinds = WEIR_ARRAY_LEN(stages),
};

static const char *const value_texts[] = {
    [WEIR_STAGE_FRAME] = "a frame",          [WEIR_STAGE_PICTURE] = "a picture",
    [WEIR_STAGE_OBJECTS] = "objects",        [WEIR_STAGE_FACES] = "faces",
    [WEIR_STAGE_EMBEDDING] = "an embedding", [WEIR_STAGE_FINDING] = "a finding",
    [WEIR_STAGE_TRACK] = "a track",          [WEIR_STAGE_DECISION] = "a decision"};

/* "a picture or faces"; where nothing is found yet, what needs no detector goes without saying that. */
static const char *takes_text(unsigned takes, bool has_objects, struct weir_arena *arena)
{
    const unsigned plain = takes & ~(WEIR_STAGE_TAKES(OBJECTS) | WEIR_STAGE_TAKES(FACES));
    const char *text = "";
    takes = !has_objects && plain != 0 ? plain : takes;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(value_texts); i++) {
        if ((takes & (1u << i)) != 0) {
            text = weir_arena_printf(arena, "%s%s%s", text, text[0] != '\0' ? " or " : "",
                                     value_texts[i]);
        }
    }
    return text;
}

static const struct weir_stage_facts *facts_of(const struct weir_configured *stage)
{
    return stage->kind->ops;
}

const char *weir_stages_default(bool has_gallery)
{
    return has_gallery ? "[\"decode\",\"embed\",\"match\",\"decide\"]"
                       : "[\"decode\",\"classify\",\"decide\"]";
}

enum weir_stage_model weir_stages_model(const struct weir_stage_chain *chain)
{
    enum weir_stage_model model = WEIR_STAGE_MODEL_NONE;
    for (size_t i = 0; i < chain->n && model == WEIR_STAGE_MODEL_NONE; i++) {
        model = facts_of(&chain->items[i])->model;
    }
    return model;
}

const void *weir_stages_options(const struct weir_stage_chain *chain, const struct weir_kind *kind)
{
    for (size_t i = 0; i < chain->n; i++) {
        if (chain->items[i].kind == kind) {
            return chain->items[i].options;
        }
    }
    return NULL;
}

bool weir_stages_need_gallery(const struct weir_stage_chain *chain)
{
    bool needs_gallery = false;
    for (size_t i = 0; i < chain->n; i++) {
        needs_gallery = needs_gallery || facts_of(&chain->items[i])->needs_gallery;
    }
    return needs_gallery;
}

/* Does each take what the one before gives? */
static weir_status check_chain(const struct weir_stage_chain *chain, const char *where,
                               struct weir_arena *arena, struct weir_error *err)
{
    enum weir_stage_value value = WEIR_STAGE_FRAME;
    bool has_objects = false;
    for (size_t i = 0; i < chain->n; i++) {
        const struct weir_stage_facts *facts = facts_of(&chain->items[i]);
        const char *name = chain->items[i].kind->name;
        if ((facts->takes & (1u << value)) == 0) {
            return weir_error_set(
                err, WEIR_ERR_INVALID, "%s[%zu]: \"%s\" takes %s, and what comes to it is %s",
                where, i, name, takes_text(facts->takes, has_objects, arena), value_texts[value]);
        }
        if (facts->needs_objects && !has_objects) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s[%zu]: \"%s\" needs what a detector finds in the picture: "
                                  "write {kind: detect, model: NAME} behind decode",
                                  where, i, name);
        }
        value = facts->gives;
        has_objects = has_objects || value == WEIR_STAGE_OBJECTS;
    }
    if (value != WEIR_STAGE_DECISION) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: they end in %s, and must end in a decision: the last stage is "
                              "decide",
                              where, value_texts[value]);
    }
    return WEIR_OK;
}

weir_status weir_stages_check_gallery(const struct weir_stage_chain *chain, bool has_gallery,
                                      const char *where, struct weir_error *err)
{
    bool needs_gallery = weir_stages_need_gallery(chain);
    if (needs_gallery && !has_gallery) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: \"match\" compares with a gallery, and there is none: add "
                              "gallery: {dataset: NAME}, of a dataset that has a class per person",
                              where);
    }
    if (!needs_gallery && has_gallery) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: none of them compares with the gallery: take gallery out, or "
                              "write the stages decode, embed, match, decide",
                              where);
    }
    return WEIR_OK;
}

/* What an option's own range does not say. */
static weir_status check_options(const struct weir_configured *stage, const char *where,
                                 struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_stage_detect *detect = stage->options;
    const struct weir_stage_track *track = stage->options;
    struct weir_detector_name ignored;
    if (stage->kind == &weir_stage_detect_kind) {
        const char *place = weir_arena_printf(arena, "%s.model", where);
        return weir_detector_name_parse(detect->model, place, arena, &ignored, err);
    }
    if (stage->kind == &weir_stage_count_kind) {
        return weir_stage_count_check(stage->options, where, err);
    }
    if (stage->kind == &weir_stage_track_kind && track->n > track->m) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.n: %lld of the last %lld: n is at most m",
                              where, (long long)track->n, (long long)track->m);
    }
    return WEIR_OK;
}

/* Places are known by their names. */
static weir_status check_places(const struct weir_stage_chain *chain, const char *where,
                                struct weir_error *err)
{
    for (size_t i = 0; i < chain->n; i++) {
        for (size_t k = 0; k < i && chain->items[i].kind == &weir_stage_count_kind; k++) {
            const struct weir_stage_count *one = chain->items[i].options;
            const struct weir_stage_count *other = chain->items[k].options;
            if (chain->items[k].kind == &weir_stage_count_kind &&
                strcmp(one->name, other->name) == 0) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "%s[%zu].name: there are two places \"%.60s\"", where, i,
                                      one->name);
            }
        }
    }
    return WEIR_OK;
}

static weir_status read_list(const json_t *list, const char *where, struct weir_arena *arena,
                             struct weir_stage_chain *out, struct weir_error *err)
{
    const json_t *stage;
    size_t i;
    struct weir_stage_chain chain = {.n = json_array_size(list)};
    if (!json_is_array(list) || chain.n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected a list of stages", where);
    }
    if (chain.n > WEIR_STAGES_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%s: %zu stages; at most %d are allowed", where,
                              chain.n, WEIR_STAGES_MAX);
    }
    json_array_foreach(list, i, stage)
    {
        const char *place = weir_arena_printf(arena, "%s[%zu]", where, i);
        WEIR_TRY(weir_registry_read_named(&weir_stages, stage, place, arena, &chain.items[i], NULL,
                                          err));
        WEIR_TRY(check_options(&chain.items[i], place, arena, err));
    }
    WEIR_TRY(check_chain(&chain, where, arena, err));
    WEIR_TRY(check_places(&chain, where, err));
    *out = chain;
    return WEIR_OK;
}

weir_status weir_stages_read(const json_t *list, bool has_gallery, const char *where,
                             struct weir_arena *arena, struct weir_stage_chain *out,
                             struct weir_error *err)
{
    if (list != NULL && !json_is_null(list)) {
        return read_list(list, where, arena, out, err);
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *fallback = json_loads(weir_stages_default(has_gallery), 0, NULL);
    return read_list(fallback, where, arena, out, err);
}
