#include "retain/retain_private.h"

#include "base/grow.h"
#include "store/stmt.h"

#include <stdio.h>
#include <string.h>

#define TIMES_MAX 100000

/* ---- times ----------------------------------------------------------------------------------- */

int64_t retain_span(int64_t keep_ms)
{
    return keep_ms < 0 ? INT64_MAX : keep_ms;
}

bool weir_retain_bounds_have(const struct weir_retain_bounds *bounds, int64_t keep_ms)
{
    return retain_span(keep_ms) >= retain_span(bounds->min_ms) &&
           retain_span(keep_ms) <= retain_span(bounds->max_ms);
}

bool weir_retain_projects_have(const struct weir_retain_projects *projects, int kind)
{
    bool have = false;
    for (size_t i = 0; i < projects->n_times; i++) {
        have = have || projects->times[i].kind == kind;
    }
    return have;
}

const struct weir_retain_time *weir_retain_project_time(const struct weir_retain_projects *projects,
                                                        const char *project, int kind)
{
    for (size_t i = 0; i < projects->n_times; i++) {
        const struct weir_retain_time *time = &projects->times[i];
        if (time->kind == kind && strcmp(time->project, project) == 0) {
            return time;
        }
    }
    return NULL;
}

int64_t weir_retain_project_keep(const struct weir_retain_projects *projects,
                                 const struct weir_retain_policy *policy, const char *project,
                                 int kind)
{
    const struct weir_retain_bounds *bounds = &projects->bounds[kind];
    const struct weir_retain_time *time = weir_retain_project_time(projects, project, kind);
    if (time == NULL) {
        return policy->limits[kind].keep_ms;
    }
    if (retain_span(time->keep_ms) > retain_span(bounds->max_ms)) {
        return bounds->max_ms;
    }
    return retain_span(time->keep_ms) < retain_span(bounds->min_ms) ? bounds->min_ms
                                                                    : time->keep_ms;
}

int64_t weir_retain_pipeline_keep(const struct weir_retain_projects *projects,
                                  const struct weir_retain_policy *policy,
                                  const struct weir_retain_pipeline *pipeline)
{
    int kind = weir_retain_kind_from_text(RETAIN_PICTURES);
    int64_t most = weir_retain_project_keep(projects, policy, pipeline->project, kind);
    int64_t least = projects->bounds[kind].min_ms;
    int64_t own = retain_span(pipeline->keep_ms) < retain_span(least) ? least : pipeline->keep_ms;
    return retain_span(own) < retain_span(most) ? own : most;
}

/* ---- as text --------------------------------------------------------------------------------- */

static bool read_age(const char *text, int64_t *out_ms)
{
    const struct weir_retain_limit untouched = {.keep_ms = INT64_MIN, .max_bytes = INT64_MIN};
    struct weir_retain_limit limit = untouched;
    struct weir_error ignored;
    bool is_read = strcmp(text, "default") != 0 &&
                   weir_retain_limit_parse(text, 0, &limit, &ignored) == WEIR_OK &&
                   limit.max_bytes == untouched.max_bytes && limit.keep_ms != untouched.keep_ms;
    if (is_read) {
        *out_ms = limit.keep_ms;
    }
    return is_read;
}

weir_status weir_retain_age_parse(const char *text, int64_t *out_ms, struct weir_error *err)
{
    return read_age(text, out_ms)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "\"%.80s\": expected an age (30d, 12h, forever); sizes are the "
                                "platform's",
                                text);
}

weir_status weir_retain_bounds_parse(const char *text, struct weir_retain_bounds *out,
                                     struct weir_error *err)
{
    char first[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    struct weir_retain_bounds bounds;
    const char *dots = strstr(text, "..");
    int len = dots != NULL
                  ? snprintf(first, sizeof first, "%.*s", (int)WEIR_MIN(dots - text, 1000), text)
                  : -1;
    if (len <= 0 || (size_t)len >= sizeof first || !read_age(first, &bounds.min_ms) ||
        !read_age(dots + 2, &bounds.max_ms) ||
        retain_span(bounds.min_ms) > retain_span(bounds.max_ms)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "\"%.80s\": expected a shortest and a longest age, such as 1d..90d or "
            "0s..forever, or default",
            text);
    }
    *out = bounds;
    return WEIR_OK;
}

const char *weir_retain_age_text(int64_t keep_ms, char out[WEIR_RETAIN_LIMIT_TEXT_BYTES])
{
    const struct weir_retain_limit limit = {.keep_ms = keep_ms, .max_bytes = WEIR_RETAIN_ANY};
    weir_retain_limit_text(&limit, out);
    *strchr(out, ',') = '\0';
    return out;
}

const char *weir_retain_bounds_text(const struct weir_retain_bounds *bounds,
                                    char out[WEIR_RETAIN_BOUNDS_TEXT_BYTES])
{
    char min[WEIR_RETAIN_LIMIT_TEXT_BYTES], max[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    (void)snprintf(out, WEIR_RETAIN_BOUNDS_TEXT_BYTES, "%s..%s",
                   weir_retain_age_text(bounds->min_ms, min),
                   weir_retain_age_text(bounds->max_ms, max));
    return out;
}

/* ---- the store ------------------------------------------------------------------------------- */

static const char sql_projects[] = "SELECT name FROM projects ORDER BY name";
static const char sql_times[] = "SELECT project, kind, keep_ms FROM project_retention"
                                " ORDER BY project, kind LIMIT :n";
static const char sql_pipelines[] =
    "SELECT i.project, p.ion, p.name, p.keep_pictures_ms FROM ion_pipelines p JOIN ions i ON"
    " i.name = p.ion WHERE p.keep_pictures_ms <> 0 ORDER BY p.ion, p.name";
static const char sql_pipeline_keep[] =
    "SELECT keep_pictures_ms FROM ion_pipelines WHERE id = :ion || ':' || :pipeline";
static const char sql_bounds[] = "SELECT kind, min_ms, max_ms FROM retention_bounds";
static const char sql_set_time[] =
    "INSERT INTO project_retention (id, project, kind, keep_ms, actor, time_ms) VALUES"
    " (:project || '/' || :kind, :project, :kind, :keep, :actor, :now) ON CONFLICT (project, kind)"
    " DO UPDATE SET keep_ms = excluded.keep_ms, actor = excluded.actor, time_ms = excluded.time_ms";
static const char sql_set_bounds[] =
    "INSERT INTO retention_bounds (kind, min_ms, max_ms, actor, time_ms) VALUES (:kind, :min, :max,"
    " :actor, :now) ON CONFLICT (kind) DO UPDATE SET min_ms = excluded.min_ms,"
    " max_ms = excluded.max_ms, actor = excluded.actor, time_ms = excluded.time_ms";
static const char sql_no_bounds[] = "DELETE FROM retention_bounds WHERE kind = :kind";

static weir_status read_times(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_retain_projects *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_times, WEIR_BINDS(WEIR_BIND_INT("n", TIMES_MAX)), &stmt, err));
    for (;;) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        int kind = weir_retain_kind_from_text(weir_stmt_text(stmt, 1, arena));
        if (kind < 0 || !weir_retain_rule(kind)->is_of_project) { /* of another Weir */
            continue;
        }
        out->has_gaps[kind] = true;
        if (!weir_stmt_is_null(stmt, 2)) {
            weir_arena_grow(arena, &out->times, sizeof *out->times, out->n_times, &cap);
            out->times[out->n_times++] =
                (struct weir_retain_time){.project = weir_stmt_text(stmt, 0, arena),
                                          .kind = kind,
                                          .keep_ms = weir_stmt_int(stmt, 2)};
        }
    }
}

static weir_status read_pipelines(struct weir_txn *txn, struct weir_arena *arena,
                                  struct weir_retain_projects *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_pipelines, WEIR_NO_BINDS, &stmt, err));
    for (;;) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(arena, &out->pipelines, sizeof *out->pipelines, out->n_pipelines, &cap);
        out->pipelines[out->n_pipelines++] =
            (struct weir_retain_pipeline){.project = weir_stmt_text(stmt, 0, arena),
                                          .ion = weir_stmt_text(stmt, 1, arena),
                                          .name = weir_stmt_text(stmt, 2, arena),
                                          .keep_ms = WEIR_MAX(weir_stmt_int(stmt, 3), 0)};
    }
}

static weir_status read_bounds(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_retain_projects *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_bounds, WEIR_NO_BINDS, &stmt, err));
    for (;;) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        int kind = weir_retain_kind_from_text(weir_stmt_text(stmt, 0, arena));
        if (kind >= 0) {
            out->has_bounds[kind] = true;
            out->bounds[kind] =
                (struct weir_retain_bounds){weir_stmt_int(stmt, 1), weir_stmt_int(stmt, 2)};
        }
    }
}

weir_status weir_retain_projects_load(struct weir_txn *txn, struct weir_arena *arena,
                                      const struct weir_retain_policy *policy,
                                      struct weir_retain_projects *out, struct weir_error *err)
{
    struct weir_retain_projects projects = {.names = NULL};
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        projects.bounds[kind] = (struct weir_retain_bounds){0, policy->limits[kind].keep_ms};
    }
    WEIR_TRY(weir_txn_query_texts(txn, sql_projects, WEIR_NO_BINDS, arena, &projects.names,
                                  &projects.n_names, err));
    WEIR_TRY(read_times(txn, arena, &projects, err));
    WEIR_TRY(read_bounds(txn, arena, &projects, err));
    WEIR_TRY(read_pipelines(txn, arena, &projects, err));
    *out = projects;
    return WEIR_OK;
}

weir_status weir_retain_pictures_before(struct weir_txn *txn, struct weir_arena *arena,
                                        const char *ion, const char *pipeline, int64_t now_ms,
                                        int64_t *out_before, struct weir_error *err)
{
    struct weir_retain_policy policy;
    struct weir_retain_projects *projects = WEIR_ARENA_NEW(arena, struct weir_retain_projects);
    int64_t keep_ms = 0;
    WEIR_TRY(weir_txn_query_int(
        txn, sql_pipeline_keep,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_TEXT("pipeline", pipeline)), 0, &keep_ms,
        err));
    *out_before = INT64_MIN;
    if (keep_ms == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_retain_policy_load(txn, arena, &policy, err));
    WEIR_TRY(weir_retain_projects_load(txn, arena, &policy, projects, err));
    for (size_t i = 0; i < projects->n_pipelines; i++) {
        const struct weir_retain_pipeline *one = &projects->pipelines[i];
        if (strcmp(one->ion, ion) == 0 && strcmp(one->name, pipeline) == 0) {
            keep_ms = weir_retain_pipeline_keep(projects, &policy, one);
            *out_before = keep_ms == 0 ? INT64_MAX : keep_ms < 0 ? INT64_MIN : now_ms - keep_ms;
        }
    }
    return WEIR_OK;
}

weir_status weir_retain_project_set(struct weir_txn *txn, const char *project, int kind,
                                    const int64_t *keep_ms, const char *actor, int64_t now_ms,
                                    struct weir_error *err)
{
    return weir_txn_exec(
        txn, sql_set_time,
        WEIR_BINDS(WEIR_BIND_TEXT("project", project),
                   WEIR_BIND_TEXT("kind", weir_retain_rule(kind)->name),
                   keep_ms != NULL ? WEIR_BIND_INT("keep", *keep_ms) : WEIR_BIND_NULL("keep"),
                   WEIR_BIND_TEXT("actor", actor), WEIR_BIND_INT("now", now_ms)),
        NULL, err);
}

weir_status weir_retain_bounds_set(struct weir_txn *txn, int kind,
                                   const struct weir_retain_bounds *bounds, const char *actor,
                                   int64_t now_ms, struct weir_error *err)
{
    const char *name = weir_retain_rule(kind)->name;
    if (bounds == NULL) {
        return weir_txn_exec(txn, sql_no_bounds, WEIR_BINDS(WEIR_BIND_TEXT("kind", name)), NULL,
                             err);
    }
    return weir_txn_exec(txn, sql_set_bounds,
                         WEIR_BINDS(WEIR_BIND_TEXT("kind", name),
                                    WEIR_BIND_INT("min", bounds->min_ms),
                                    WEIR_BIND_INT("max", bounds->max_ms),
                                    WEIR_BIND_TEXT("actor", actor), WEIR_BIND_INT("now", now_ms)),
                         NULL, err);
}
