/* Pictures of projects: a pack has those of all projects, so it stays as long as the project that keeps its pictures
 * longest, and those of the others, and of pipelines with a shorter time of their own, are erased in it, one by one. */
#include "retain/retain_private.h"

#include "base/log.h"
#include "store/stmt.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PICTURES_PER_STEP 200
#define UNNAMED_QUIET_MS  ((int64_t)3600000)

#define OLD                                                                                        \
    " FROM decisions WHERE image IS NOT NULL AND pack > 0 AND time_ms <= :before AND ion IN"       \
    " (SELECT name FROM ions WHERE project = :project)"
static const char sql_old[] = "SELECT id, pack, pack_offset, pack_bytes" OLD " LIMIT :n";
const char retain_sql_old_of_pipeline[] =
    "SELECT id, pack, pack_offset, pack_bytes FROM decisions WHERE image IS NOT NULL AND pack > 0"
    " AND ion = :ion AND pipeline = :pipeline AND time_ms <= :before LIMIT :n";
static const char sql_count[] = "SELECT count(*)" OLD;
static const char sql_bytes[] = "SELECT coalesce(sum(pack_bytes), 0)" OLD;
static const char sql_unpicture[] =
    "UPDATE decisions SET image = NULL, pack = 0, pack_offset = 0, pack_bytes = 0 WHERE id = :id";

struct picture {
    char *id;
    struct weir_pack_place place;
};

struct erasing {
    const struct retain_look *look;
    const char *project, *ion,
        *pipeline; /* with a pipeline: its own alone; else all the project's */
    int64_t before;
    struct weir_arena *arena;
    struct picture items[PICTURES_PER_STEP];
    size_t n;
};

int64_t retain_pictures_longest(const struct retain_look *look)
{
    const struct weir_retain_projects *projects = look->projects;
    int kind = weir_retain_kind_from_text(RETAIN_PICTURES);
    int64_t longest = projects->n_names == 0 ? look->policy->limits[kind].keep_ms : 0;
    for (size_t i = 0; i < projects->n_names; i++) {
        int64_t keep_ms =
            weir_retain_project_keep(projects, look->policy, projects->names[i], kind);
        longest = retain_span(keep_ms) > retain_span(longest) ? keep_ms : longest;
    }
    return longest;
}

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct erasing *erasing = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    erasing->n = 0;
    if (erasing->pipeline != NULL) {
        WEIR_TRY(weir_stmt_open(txn, retain_sql_old_of_pipeline,
                                WEIR_BINDS(WEIR_BIND_TEXT("ion", erasing->ion),
                                           WEIR_BIND_TEXT("pipeline", erasing->pipeline),
                                           WEIR_BIND_INT("before", erasing->before),
                                           WEIR_BIND_INT("n", PICTURES_PER_STEP)),
                                &stmt, err));
    } else {
        WEIR_TRY(weir_stmt_open(txn, sql_old,
                                WEIR_BINDS(WEIR_BIND_TEXT("project", erasing->project),
                                           WEIR_BIND_INT("before", erasing->before),
                                           WEIR_BIND_INT("n", PICTURES_PER_STEP)),
                                &stmt, err));
    }
    while (erasing->n < PICTURES_PER_STEP) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        erasing->items[erasing->n++] = (struct picture){
            .id = weir_stmt_text(stmt, 0, erasing->arena),
            .place = {weir_stmt_int(stmt, 1), weir_stmt_int(stmt, 2), weir_stmt_int(stmt, 3)}};
    }
    return WEIR_OK;
}

static weir_status unpicture_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct erasing *erasing = context;
    for (size_t i = 0; i < erasing->n; i++) {
        WEIR_TRY(weir_txn_exec(txn, sql_unpicture,
                               WEIR_BINDS(WEIR_BIND_TEXT("id", erasing->items[i].id)), NULL, err));
    }
    return WEIR_OK;
}

/* The picture first: a row that says "none" must be true. */
static weir_status erase_some(struct erasing *erasing, struct weir_error *err)
{
    struct weir_retainer *retainer = erasing->look->retainer;
    WEIR_TRY(weir_store_read(retainer->config.store, find_in, erasing, err));
    for (size_t i = 0; i < erasing->n; i++) {
        WEIR_TRY(weir_packs_erase(retainer->config.pictures, erasing->items[i].id,
                                  &erasing->items[i].place, err));
    }
    return erasing->n > 0 ? weir_store_write(retainer->config.store, unpicture_in, erasing, err)
                          : WEIR_OK;
}

static weir_status erase_all(struct erasing *erasing, struct weir_error *err)
{
    struct weir_retainer *retainer = erasing->look->retainer;
    int64_t n = 0;
    do {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        erasing->arena = &arena;
        weir_status status = erase_some(erasing, err);
        weir_arena_fini(&arena);
        WEIR_TRY(status);
        n += (int64_t)erasing->n;
        retain_pause(retainer, 1);
    } while (erasing->n == PICTURES_PER_STEP && !retain_is_stopping(retainer));
    if (n > 0) {
        weir_log(WEIR_LOG_INFO, "retention_erased", WEIR_KV_STR("project", erasing->project),
                 WEIR_KV_STR("ion", erasing->ion), WEIR_KV_STR("pipeline", erasing->pipeline),
                 WEIR_KV_INT("pictures", n));
    }
    return WEIR_OK;
}

weir_status retain_pictures_erase(const struct retain_look *look, const char *project,
                                  int64_t before, struct weir_error *err)
{
    struct erasing erasing = {.look = look, .project = project, .before = before};
    return erase_all(&erasing, err);
}

/* What pipelines keep less long than their project. */
static weir_status erase_of_pipelines(const struct retain_look *look, struct weir_error *err)
{
    const struct weir_retain_projects *projects = look->projects;
    for (size_t i = 0; i < projects->n_pipelines && !retain_is_stopping(look->retainer); i++) {
        const struct weir_retain_pipeline *one = &projects->pipelines[i];
        int64_t keep_ms = weir_retain_pipeline_keep(projects, look->policy, one);
        struct erasing erasing = {.look = look,
                                  .project = one->project,
                                  .ion = one->ion,
                                  .pipeline = one->name,
                                  .before =
                                      keep_ms == 0 ? INT64_MAX : retain_before(look, keep_ms)};
        if (keep_ms >= 0) {
            WEIR_TRY(erase_all(&erasing, err));
        }
    }
    return WEIR_OK;
}

/* ---- packs that no row refers to ------------------------------------------------------------- */

/* Rows and packs come in the same order, so packs before that of the oldest row with a picture have lost all of theirs. */
static const char sql_first[] = "SELECT pack FROM decisions WHERE pack > 0 ORDER BY seq LIMIT 1";

/* Has nobody written into it for a while? A row may be on its way. */
static bool is_quiet(const struct retain_look *look, const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 &&
           look->now_ms - (int64_t)info.st_mtim.tv_sec * 1000 >= UNNAMED_QUIET_MS;
}

static weir_status remove_unnamed(const struct retain_look *look, struct weir_error *err)
{
    int64_t first = 0;
    const char *dir =
        weir_arena_printf(look->arena, "%s/pictures", look->retainer->config.state_dir);
    WEIR_TRY(retain_query_int(look, sql_first, WEIR_NO_BINDS, &first, err));
    DIR *stream = first > 0 ? opendir(dir) : NULL;
    weir_status status = WEIR_OK;
    for (struct dirent *entry;
         stream != NULL && status == WEIR_OK && (entry = readdir(stream)) != NULL;) {
        char *end;
        int64_t number = strtoll(entry->d_name, &end, 10);
        if (strcmp(end, ".pack") == 0 && number > 0 && number < first &&
            is_quiet(look, weir_arena_printf(look->arena, "%s/%s", dir, entry->d_name))) {
            status = weir_packs_remove(look->retainer->config.pictures, entry->d_name, err);
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return status;
}

weir_status retain_pictures_sweep(const struct retain_look *look, struct weir_error *err)
{
    const struct weir_retain_projects *projects = look->projects;
    int64_t longest = retain_pictures_longest(look);
    for (size_t i = 0; look->has_own && i < projects->n_names; i++) {
        int64_t keep_ms = retain_keep(look, projects->names[i], look->kind);
        if (retain_span(keep_ms) < retain_span(longest)) {
            WEIR_TRY(
                retain_pictures_erase(look, projects->names[i], retain_before(look, keep_ms), err));
        }
    }
    WEIR_TRY(erase_of_pipelines(look, err));
    return remove_unnamed(look, err);
}

/* ---- before it goes -------------------------------------------------------------------------- */

weir_status retain_pictures_preview(const struct retain_look *look, struct weir_retain_preview *out,
                                    struct weir_error *err)
{
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("project", look->preview_project),
        WEIR_BIND_INT("before", retain_before(look, look->preview_keep_ms))};
    struct weir_retain_preview preview;
    WEIR_TRY(retain_query_int(look, sql_count, binds, 2, &preview.n_going, err));
    WEIR_TRY(retain_query_int(look, sql_bytes, binds, 2, &preview.bytes_going, err));
    *out = preview;
    return WEIR_OK;
}
