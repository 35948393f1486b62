/** How long a project keeps what is its own, within the bounds that an admin sets. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/ion/kept.h"
#include "store/identity.h"
#include "store/table.h"

#include "retain/project.h"

#include <string.h>

#define CHANGES_MAX_BYTES 2000

static weir_status check_kind(const char *name, int *out, struct weir_error *err)
{
    int kind = weir_retain_kind_from_text(name);
    if (kind < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%.80s: no rule has that name; weir store retain lists them", name);
    }
    if (!weir_retain_rule(kind)->is_of_project) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s are kept for the platform as a whole: a project has no time of "
                              "its own for them",
                              name);
    }
    *out = kind;
    return WEIR_OK;
}

/* ---- a project's ----------------------------------------------------------------------------- */

static json_t *view_of(const struct api_kept_settings *settings, const char *project, int kind)
{
    char keep[WEIR_RETAIN_LIMIT_TEXT_BYTES], own[WEIR_RETAIN_LIMIT_TEXT_BYTES],
        platform[WEIR_RETAIN_LIMIT_TEXT_BYTES], bounds[WEIR_RETAIN_BOUNDS_TEXT_BYTES];
    const struct weir_retain_time *time =
        weir_retain_project_time(&settings->projects, project, kind);
    int64_t keep_ms =
        weir_retain_project_keep(&settings->projects, &settings->policy, project, kind);
    return WEIR_VIEW_JSON(
        api_project_time, .kind = weir_retain_rule(kind)->name,
        .what = weir_retain_rule(kind)->what, .rule = weir_retain_rule(kind)->rule,
        .keep = weir_retain_age_text(keep_ms, keep),
        .own = time != NULL ? weir_retain_age_text(time->keep_ms, own) : NULL,
        .platform = weir_retain_age_text(settings->policy.limits[kind].keep_ms, platform),
        .bounds = weir_retain_bounds_text(&settings->projects.bounds[kind], bounds));
}

static void answer_project(struct api_call *call, const struct api_kept_settings *settings)
{
    json_t *items = json_array();
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        if (weir_retain_rule(kind)->is_of_project) {
            json_array_append_new(items, view_of(settings, call->params[0], kind));
        }
    }
    json_t *pipelines = json_array();
    for (size_t i = 0; i < settings->projects.n_pipelines; i++) {
        const struct weir_retain_pipeline *one = &settings->projects.pipelines[i];
        if (strcmp(one->project, call->params[0]) == 0) {
            const struct api_pipeline_time view = api_kept_view(settings, one, call->arena);
            json_array_append_new(pipelines, weir_view_to_json(api_pipeline_time_view(), &view));
        }
    }
    API_ANSWER(call, api_project_retention, .items = items, .pipelines = pipelines);
}

static weir_status check_project(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_project project;
    return weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err);
}

weir_status api_project_retention_get(struct api_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct api_kept_settings settings;
    WEIR_TRY(check_project(call, txn, err));
    WEIR_TRY(api_kept_load(txn, call->arena, &settings, err));
    answer_project(call, &settings);
    return WEIR_OK;
}

/* "default": the platform's. Else an age within the bounds. */
static weir_status read_time(const struct api_kept_settings *settings, int kind, const char *text,
                             bool *out_is_own, int64_t *out_ms, struct weir_error *err)
{
    char bounds[WEIR_RETAIN_BOUNDS_TEXT_BYTES];
    const struct weir_retain_bounds *allowed = &settings->projects.bounds[kind];
    *out_is_own = strcmp(text, "default") != 0;
    if (!*out_is_own) {
        *out_ms = settings->policy.limits[kind].keep_ms;
        return WEIR_OK;
    }
    WEIR_TRY(weir_retain_age_parse(text, out_ms, err));
    return weir_retain_bounds_have(allowed, *out_ms)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.40s\" is not within %s, which the platform allows projects "
                                "for %s; an admin changes that (weir store bounds)",
                                text, weir_retain_bounds_text(allowed, bounds),
                                weir_retain_rule(kind)->name);
}

/* One member of the body; adds to what the audit says. */
static weir_status change_time(struct api_call *call, struct weir_txn *txn, const char *name,
                               const json_t *value, struct api_kept_settings *settings,
                               char **changes, struct weir_error *err)
{
    char before[WEIR_RETAIN_LIMIT_TEXT_BYTES], after[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    int64_t keep_ms;
    bool is_own;
    int kind;
    WEIR_TRY(check_kind(name, &kind, err));
    if (!json_is_string(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected an age, such as \"30d\"");
    }
    WEIR_TRY(read_time(settings, kind, json_string_value(value), &is_own, &keep_ms, err));
    weir_retain_age_text(
        weir_retain_project_keep(&settings->projects, &settings->policy, call->params[0], kind),
        before);
    WEIR_TRY(weir_retain_project_set(txn, call->params[0], kind, is_own ? &keep_ms : NULL,
                                     call->actor, call->now_ms, err));
    if (strlen(*changes) < CHANGES_MAX_BYTES) {
        *changes = weir_arena_printf(
            call->arena, "%s%s%s %s%s, before %s", *changes, **changes != '\0' ? "; " : "", name,
            weir_retain_age_text(keep_ms, after), is_own ? "" : " as the platform", before);
    }
    return WEIR_OK;
}

weir_status api_project_retention_put(struct api_call *call, struct weir_txn *txn,
                                      struct weir_error *err)
{
    struct api_kept_settings settings;
    char *changes = weir_arena_strdup(call->arena, "");
    const char *name;
    json_t *value;
    WEIR_TRY(check_project(call, txn, err));
    WEIR_TRY(api_kept_load(txn, call->arena, &settings, err));
    json_object_foreach(call->body, name, value)
    {
        if (change_time(call, txn, name, value, &settings, &changes, err) != WEIR_OK) {
            return weir_error_prefix(err, "$.%.80s: ", name);
        }
    }
    WEIR_TRY(api_kept_load(txn, call->arena, &settings, err));
    answer_project(call, &settings);
    return audit_act(call, txn, "project_retention_changed",
                     weir_arena_printf(call->arena, "project/%s", call->params[0]),
                     weir_arena_printf(call->arena, "Project %s keeps: %s", call->params[0],
                                       *changes != '\0' ? changes : "what it kept"),
                     err);
}

/* ---- before it goes -------------------------------------------------------------------------- */

struct previewing {
    struct api_call *call;
    struct api_kept_settings settings;
    int kind; /**< -1: all. */
    int64_t keep_ms;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct previewing *previewing = context;
    struct api_call *call = previewing->call;
    const char *kind = api_query_text(call, "kind");
    const char *keep = api_query_text(call, "keep");
    bool is_own;
    WEIR_TRY(check_project(call, txn, err));
    WEIR_TRY(api_kept_load(txn, call->arena, &previewing->settings, err));
    if (kind == NULL) {
        return keep == NULL ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_INVALID, "keep: name a kind too");
    }
    WEIR_TRY(check_kind(kind, &previewing->kind, err));
    previewing->keep_ms =
        weir_retain_project_keep(&previewing->settings.projects, &previewing->settings.policy,
                                 call->params[0], previewing->kind);
    return keep == NULL ? WEIR_OK
                        : read_time(&previewing->settings, previewing->kind, keep, &is_own,
                                    &previewing->keep_ms, err);
}

static weir_status add_preview(const struct previewing *previewing, int kind, int64_t keep_ms,
                               json_t *items, struct weir_error *err)
{
    struct weir_retain_preview preview;
    struct api_call *call = previewing->call;
    char keep[WEIR_RETAIN_LIMIT_TEXT_BYTES], now[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    const struct weir_retain_rule *rule = weir_retain_rule(kind);
    WEIR_TRY(weir_retainer_preview(call->api->retainer, call->params[0], kind, keep_ms, call->arena,
                                   &preview, err));
    weir_retain_age_text(weir_retain_project_keep(&previewing->settings.projects,
                                                  &previewing->settings.policy, call->params[0],
                                                  kind),
                         now);
    json_array_append_new(items, WEIR_VIEW_JSON(api_kept_preview, .kind = rule->name,
                                                .keep = weir_retain_age_text(keep_ms, keep),
                                                .keep_now = now,
                                                .unit = rule->row_bytes > 0 ? "rows" : "files",
                                                .n_going = (int64_t)preview.n_going,
                                                .bytes_going = (int64_t)preview.bytes_going));
    return WEIR_OK;
}

weir_status api_project_retention_preview(struct api_call *call, struct weir_txn *txn,
                                          struct weir_error *err)
{
    struct previewing previewing = {.call = call, .kind = -1};
    weir_status status = WEIR_OK;
    (void)txn;
    WEIR_TRY(api_read(call, look_in, &previewing, err));
    json_t *items = json_array();
    for (int kind = 0; kind < weir_retain_n() && status == WEIR_OK; kind++) {
        if (kind == previewing.kind) {
            status = add_preview(&previewing, kind, previewing.keep_ms, items, err);
        } else if (previewing.kind < 0 && weir_retain_rule(kind)->is_of_project) {
            int64_t keep_ms = weir_retain_project_keep(
                &previewing.settings.projects, &previewing.settings.policy, call->params[0], kind);
            status = add_preview(&previewing, kind, keep_ms, items, err);
        }
    }
    if (status != WEIR_OK) {
        json_decref(items);
        return status;
    }
    API_ANSWER(call, api_retention_preview, .items = items);
    return WEIR_OK;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void answer_bounds(struct api_call *call, const struct api_kept_settings *settings)
{
    json_t *items = json_array();
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        char bounds[WEIR_RETAIN_BOUNDS_TEXT_BYTES], platform[WEIR_RETAIN_LIMIT_TEXT_BYTES];
        json_t *projects = json_array();
        for (size_t i = 0; i < settings->projects.n_times; i++) {
            const struct weir_retain_time *time = &settings->projects.times[i];
            char own[WEIR_RETAIN_LIMIT_TEXT_BYTES];
            if (time->kind == kind) {
                json_array_append_new(
                    projects, WEIR_VIEW_JSON(api_set_time, .project = time->project,
                                             .own = weir_retain_age_text(time->keep_ms, own)));
            }
        }
        if (!weir_retain_rule(kind)->is_of_project) {
            json_decref(projects);
            continue;
        }
        json_array_append_new(
            items,
            WEIR_VIEW_JSON(
                api_kind_bounds, .kind = weir_retain_rule(kind)->name,
                .bounds = weir_retain_bounds_text(&settings->projects.bounds[kind], bounds),
                .is_set = settings->projects.has_bounds[kind],
                .platform = weir_retain_age_text(settings->policy.limits[kind].keep_ms, platform),
                .projects = projects));
    }
    API_ANSWER(call, api_retention_bounds, .items = items);
}

weir_status api_retention_bounds_get(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct api_kept_settings settings;
    WEIR_TRY(api_kept_load(txn, call->arena, &settings, err));
    answer_bounds(call, &settings);
    return WEIR_OK;
}

static weir_status change_bounds(struct api_call *call, struct weir_txn *txn, const char *name,
                                 const json_t *value, char **changes, struct weir_error *err)
{
    struct weir_retain_bounds bounds;
    const char *text = json_string_value(value);
    int kind;
    WEIR_TRY(check_kind(name, &kind, err));
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "expected bounds, such as \"1d..90d\"");
    }
    bool is_default = strcmp(text, "default") == 0;
    if (!is_default) {
        WEIR_TRY(weir_retain_bounds_parse(text, &bounds, err));
    }
    if (strlen(*changes) < CHANGES_MAX_BYTES) {
        *changes = weir_arena_printf(call->arena, "%s%s%s %s", *changes,
                                     **changes != '\0' ? "; " : "", name, text);
    }
    return weir_retain_bounds_set(txn, kind, is_default ? NULL : &bounds, call->actor, call->now_ms,
                                  err);
}

weir_status api_retention_bounds_put(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    struct api_kept_settings settings;
    char *changes = weir_arena_strdup(call->arena, "");
    const char *name;
    json_t *value;
    json_object_foreach(call->body, name, value)
    {
        if (change_bounds(call, txn, name, value, &changes, err) != WEIR_OK) {
            return weir_error_prefix(err, "$.%.80s: ", name);
        }
    }
    WEIR_TRY(api_kept_load(txn, call->arena, &settings, err));
    answer_bounds(call, &settings);
    return audit_act(call, txn, "retention_bounds_changed", "retention",
                     weir_arena_printf(call->arena, "What projects may keep: %s",
                                       *changes != '\0' ? changes : "as before"),
                     err);
}
