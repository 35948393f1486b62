/** Rows of projects, by the age that each project keeps. */
#include "retain/retain_private.h"

#include "store/stmt.h"

#include <string.h>

#define KEYS_MAX 500 /* of one project at a time */

/* What a project keeps no longer, one ION, run or job after the other. */
static weir_status sweep_project(const struct retain_look *look, const char *project,
                                 int64_t before, int64_t *n_removed, struct weir_error *err)
{
    const struct retain_sql *sql = &retain_kind(look->kind)->sql;
    bool is_numbered = sql->own_remove[0] != NULL;
    char **keys;
    size_t n_keys;
    if (look->kind ==
        weir_retain_kind_from_text(RETAIN_DECISIONS)) { /* nobody finds a picture without its row */
        WEIR_TRY(retain_pictures_erase(look, project, before, err));
    }
    WEIR_TRY(retain_query_texts(look, sql->own_keys,
                                WEIR_BINDS(WEIR_BIND_TEXT("project", project),
                                           WEIR_BIND_INT("before", before),
                                           WEIR_BIND_INT("n", KEYS_MAX)),
                                &keys, &n_keys, err));
    for (size_t i = 0; i < n_keys && !retain_is_stopping(look->retainer); i++) {
        WEIR_TRY(retain_rows_remove(look, is_numbered ? sql->own_remove : sql->remove,
                                    is_numbered ? 1 : RETAIN_REMOVE_MAX, keys[i], before, n_removed,
                                    err));
    }
    return WEIR_OK;
}

weir_status retain_own_sweep(const struct retain_look *look, int64_t *n_removed,
                             struct weir_error *err)
{
    const struct weir_retain_projects *projects = look->projects;
    for (size_t i = 0; i < projects->n_names && !retain_is_stopping(look->retainer); i++) {
        int64_t keep_ms = retain_keep(look, projects->names[i], look->kind);
        if (keep_ms >= 0) {
            WEIR_TRY(sweep_project(look, projects->names[i], retain_before(look, keep_ms),
                                   n_removed, err));
        }
    }
    return WEIR_OK;
}

static weir_status count_project(const struct retain_look *look, const char *project,
                                 int64_t keep_ms, int64_t *out, struct weir_error *err)
{
    const char *sql = retain_kind(look->kind)->sql.own_count;
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("project", project),
                                      WEIR_BIND_INT("before", retain_before(look, keep_ms)),
                                      WEIR_BIND_INT("n", INT64_MAX)};
    return retain_query_int(look, sql, binds, strstr(sql, ":n)") != NULL ? 3 : 2, out, err);
}

weir_status retain_own_count(const struct retain_look *look, int64_t *out_n, struct weir_error *err)
{
    const struct weir_retain_projects *projects = look->projects;
    int64_t total = 0;
    for (size_t i = 0; i < projects->n_names; i++) {
        int64_t n = 0, keep_ms = retain_keep(look, projects->names[i], look->kind);
        if (keep_ms >= 0) {
            WEIR_TRY(count_project(look, projects->names[i], keep_ms, &n, err));
        }
        total += n;
    }
    *out_n = total;
    return WEIR_OK;
}

/* ---- before it goes -------------------------------------------------------------------------- */

weir_status retain_own_preview(const struct retain_look *look, struct weir_retain_preview *out,
                               struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(count_project(look, look->preview_project, look->preview_keep_ms, &n, err));
    *out = (struct weir_retain_preview){n, n * weir_retain_rule(look->kind)->row_bytes};
    return WEIR_OK;
}

weir_status weir_retainer_preview(struct weir_retainer *retainer, const char *project, int kind,
                                  int64_t keep_ms, struct weir_arena *arena,
                                  struct weir_retain_preview *out, struct weir_error *err)
{
    struct retain_look look;
    if (!weir_retain_rule(kind)->is_of_project) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "%s are the platform's, not a project's",
                              weir_retain_rule(kind)->name);
    }
    WEIR_TRY(retain_look_begin(retainer, arena, &look, err));
    retain_look_at(&look, kind);
    look.preview_project = project;
    look.preview_keep_ms = keep_ms;
    if (keep_ms < 0) {
        *out = (struct weir_retain_preview){0};
        return WEIR_OK;
    }
    return retain_kind(kind)->ops->preview(&look, out, err);
}
