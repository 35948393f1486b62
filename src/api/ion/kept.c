#include "api/ion/kept.h"

static char *age_text(int64_t keep_ms, struct weir_arena *arena)
{
    char text[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    return weir_arena_strdup(arena, keep_ms == 0 ? "none" : weir_retain_age_text(keep_ms, text));
}

weir_status api_kept_load(struct weir_txn *txn, struct weir_arena *arena,
                          struct api_kept_settings *out, struct weir_error *err)
{
    WEIR_TRY(weir_retain_policy_load(txn, arena, &out->policy, err));
    return weir_retain_projects_load(txn, arena, &out->policy, &out->projects, err);
}

struct api_pipeline_time api_kept_view(const struct api_kept_settings *settings,
                                       const struct weir_retain_pipeline *pipeline,
                                       struct weir_arena *arena)
{
    int64_t keep_ms = weir_retain_pipeline_keep(&settings->projects, &settings->policy, pipeline);
    return (struct api_pipeline_time){.ion = pipeline->ion,
                                      .pipeline = pipeline->name,
                                      .kind = WEIR_RETAIN_PICTURES,
                                      .own = age_text(pipeline->keep_ms, arena),
                                      .keep = age_text(keep_ms, arena)};
}

weir_status api_kept_of(struct weir_txn *txn, const struct weir_ion *ion,
                        const struct weir_ion_pipeline *pipeline, struct weir_arena *arena,
                        const struct api_pipeline_time **out, struct weir_error *err)
{
    const struct weir_ion_service *service = weir_ion_service_of(pipeline);
    struct api_kept_settings settings;
    *out = NULL;
    if (service == NULL || service->keep_pictures_ms == 0) {
        return WEIR_OK;
    }
    const struct weir_retain_pipeline kept = {ion->project, pipeline->ion, pipeline->name,
                                              WEIR_MAX(service->keep_pictures_ms, 0)};
    WEIR_TRY(api_kept_load(txn, arena, &settings, err));
    struct api_pipeline_time *view = WEIR_ARENA_NEW(arena, struct api_pipeline_time);
    *view = api_kept_view(&settings, &kept, arena);
    *out = view;
    return WEIR_OK;
}

static weir_status check_one(const struct api_kept_settings *settings,
                             const struct weir_ion_doc *doc, size_t i, struct weir_arena *arena,
                             struct weir_error *err)
{
    int kind = weir_retain_kind_from_text(WEIR_RETAIN_PICTURES);
    int64_t own = WEIR_MAX(doc->pipelines[i].keep_pictures_ms, 0);
    int64_t most =
        weir_retain_project_keep(&settings->projects, &settings->policy, doc->project, kind);
    const struct weir_retain_bounds upper = {0, most},
                                    lower = {settings->projects.bounds[kind].min_ms,
                                             WEIR_RETAIN_ANY};
    if (!weir_retain_bounds_have(&lower, own)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.pipelines[%zu].keep.pictures: %s is shorter than the %s that "
                              "pictures must be kept; an admin changes that (weir store bounds)",
                              i, age_text(own, arena), age_text(lower.min_ms, arena));
    }
    return weir_retain_bounds_have(&upper, own)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.pipelines[%zu].keep.pictures: %s is longer than the %s that "
                                "project %s keeps pictures: who administers it changes that (weir "
                                "project set %s --retention pictures=%s)",
                                i, age_text(own, arena), age_text(most, arena), doc->project,
                                doc->project, age_text(own, arena));
}

weir_status api_kept_check(const struct ion_apply *apply, struct weir_txn *txn,
                           struct weir_error *err)
{
    struct api_kept_settings settings;
    bool is_loaded = false;
    struct weir_arena *arena = apply->call->arena;
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type != WEIR_PIPELINE_PREDICTION || pipeline->keep_pictures_ms == 0) {
            continue;
        }
        if (!is_loaded) {
            WEIR_TRY(api_kept_load(txn, arena, &settings, err));
            is_loaded = true;
        }
        WEIR_TRY(check_one(&settings, &apply->doc, i, arena, err));
    }
    return WEIR_OK;
}
