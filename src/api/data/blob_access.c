#include "api/data/blob_access.h"

#include "api/data/blob_files.h"
#include "framework/framework.h"
#include "job/attempt.h"
#include "job/code.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

/* Rows that name a blob; run in a scope, so that others' are hidden. An imported snapshot names what it
 * likes, and stands not here. */
static const char sql_named[] =
    "SELECT EXISTS (SELECT 1 FROM model_versions WHERE (blob = :blob OR golden = :blob)"
    "     AND deleted_ms = 0)"
    " OR EXISTS (SELECT 1 FROM dataset_versions WHERE blob = :blob)"
    " OR EXISTS (SELECT 1 FROM code_manifests WHERE sha256 = :blob)"
    " OR EXISTS (SELECT 1 FROM run_artifacts WHERE blob = :blob)";

/* Lists of files, the newest first. */
static const char sql_manifests[] =
    "SELECT blob FROM (SELECT blob, max(created_ms) AS time_ms FROM dataset_versions"
    " WHERE blob IS NOT NULL GROUP BY blob UNION ALL SELECT sha256, time_ms FROM code_manifests) "
    "AS lists"
    " ORDER BY time_ms DESC";

/* What the server itself gave a task to work with. */
static const char sql_given[] =
    "SELECT blob FROM ion_candidates WHERE ion = :ion AND blob <> ''"
    " UNION SELECT v.golden FROM ion_candidates c JOIN model_versions v ON v.id = c.model_version"
    "     WHERE c.ion = :ion AND v.golden IS NOT NULL"
    " UNION SELECT detector_blob FROM ion_pipelines WHERE ion = :ion AND detector_blob IS NOT NULL"
    " UNION SELECT v.blob FROM deployment_replicas r JOIN deployment_versions d ON d.deployment ="
    "     r.deployment JOIN model_versions v ON v.model = d.model AND v.version = d.version"
    "     WHERE r.job = :job";
static const char sql_galleries[] =
    "SELECT gallery_blob FROM ion_pipelines WHERE ion = :ion AND gallery_blob IS NOT NULL"
    " UNION SELECT impostors_blob FROM ion_pipelines WHERE ion = :ion AND impostors_blob IS NOT "
    "NULL";

struct looking {
    struct api_call *call;
    const struct weir_row_scope *projects;
    const char *sha256;
    bool found;
    char **manifests, **blobs;
    size_t n_manifests, n_blobs;
    json_t *definition; /* Of the task; owned. */
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    int64_t n = 0;
    looking->found = false;
    for (size_t i = 0; i < looking->projects->n_projects && !looking->found; i++) {
        WEIR_TRY(weir_code_has_sent(txn, looking->projects->projects[i], &looking->sha256, 1,
                                    &looking->found, err));
    }
    if (!looking->found) {
        WEIR_TRY(weir_txn_query_int(
            txn, sql_named, WEIR_BINDS(WEIR_BIND_TEXT("blob", looking->sha256)), 0, &n, err));
        looking->found = n > 0;
    }
    return looking->found
               ? WEIR_OK
               : weir_txn_query_texts(txn, sql_manifests, WEIR_NO_BINDS, looking->call->arena,
                                      &looking->manifests, &looking->n_manifests, err);
}

static weir_status look_in_manifests(struct looking *looking, struct weir_error *err)
{
    for (size_t i = 0; i < looking->n_manifests && !looking->found; i++) {
        WEIR_TRY(blob_files_have(looking->call->api->blob_files, looking->manifests[i],
                                 looking->sha256, &looking->found, err));
    }
    return WEIR_OK;
}

static weir_status count_named(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    int64_t n = 0;
    WEIR_TRY(weir_txn_query_int(txn, sql_named, WEIR_BINDS(WEIR_BIND_TEXT("blob", looking->sha256)),
                                0, &n, err));
    looking->found = n > 0;
    return WEIR_OK;
}

weir_status blob_is_named(struct api_call *call, const char *sha256, bool *out,
                          struct weir_error *err)
{
    struct looking looking = {.call = call, .sha256 = sha256};
    WEIR_TRY(weir_store_read(call->api->store, count_named, &looking, err));
    *out = looking.found;
    return WEIR_OK;
}

/** Is it a blob of one of these projects? */
static weir_status is_of(struct api_call *call, const struct weir_row_scope *projects,
                         const char *sha256, bool *out, struct weir_error *err)
{
    struct looking looking = {.call = call, .projects = projects, .sha256 = sha256};
    if (!projects->is_all) {
        WEIR_TRY(weir_store_read_scoped(call->api->store, projects, look_in, &looking, err));
        WEIR_TRY(look_in_manifests(&looking, err));
    }
    *out = projects->is_all || looking.found;
    return WEIR_OK;
}

weir_status blob_is_callers(struct api_call *call, const char *sha256, bool *out,
                            struct weir_error *err)
{
    if (call->attempt == NULL) {
        return is_of(call, &call->rows, sha256, out, err);
    }
    const char *projects[] = {call->attempt->project};
    const struct weir_row_scope own = {.projects = projects, .n_projects = 1};
    return is_of(call, &own, sha256, out, err);
}

/* ---- what a task was given ------------------------------------------------------------------------ */

static weir_status read_given(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    const struct weir_attempt *attempt = looking->call->attempt;
    struct weir_task task;
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_given,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", attempt->ion), WEIR_BIND_TEXT("job", attempt->job)),
        looking->call->arena, &looking->blobs, &looking->n_blobs, err));
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_galleries, WEIR_BINDS(WEIR_BIND_TEXT("ion", attempt->ion)), looking->call->arena,
        &looking->manifests, &looking->n_manifests, err));
    WEIR_TRY(
        weir_txn_get(txn, &weir_task_resource, attempt->task, looking->call->arena, &task, err));
    json_decref(looking->definition);
    looking->definition = task.definition != NULL ? json_loads(task.definition, 0, NULL) : NULL;
    return WEIR_OK;
}

/* In a specification the server alone says what these are (control/job/batch.c, job_names.c); elsewhere people may have. */
static json_t *pinned_of(const struct looking *looking)
{
    const struct weir_job_ops *ops = weir_job_ops_of(looking->call->attempt->kind);
    const json_t *files = json_object_get(looking->definition, "files");
    const char *spec = json_string_value(json_object_get(files, "spec.json"));
    return ops != NULL && (ops->pins_model || ops->is_training) && spec != NULL
               ? json_loads(spec, 0, NULL)
               : NULL;
}

/* Itself, or a file that it lists. */
static weir_status look_at(struct looking *looking, const char *given, bool is_list,
                           struct weir_error *err)
{
    if (given == NULL || looking->found) {
        return WEIR_OK;
    }
    looking->found = strcmp(given, looking->sha256) == 0;
    return looking->found || !is_list ? WEIR_OK
                                      : blob_files_have(looking->call->api->blob_files, given,
                                                        looking->sha256, &looking->found, err);
}

static weir_status look_at_given(struct looking *looking, const json_t *pinned,
                                 struct weir_error *err)
{
    static const struct {
        const char *name;
        bool is_list;
    } names[] = {
        {"blob", false}, {"live_blob", false}, {"detector_blob", false}, {"manifest", true}};

    const json_t *code = json_object_get(looking->definition, "code");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        const char *given = json_string_value(json_object_get(pinned, names[i].name));
        WEIR_TRY(look_at(looking, given, names[i].is_list, err));
    }
    WEIR_TRY(look_at(looking, json_string_value(json_object_get(code, "manifest")), true, err));
    WEIR_TRY(look_at(looking, json_string_value(json_object_get(code, "patch")), false, err));
    for (size_t i = 0; i < looking->n_blobs; i++) {
        WEIR_TRY(look_at(looking, looking->blobs[i], false, err));
    }
    const char *path;
    json_t *manifest;
    json_object_foreach(json_object_get(looking->definition, "manifests"), path, manifest)
    {
        WEIR_TRY(look_at(looking, json_string_value(manifest), true, err));
    }
    for (size_t i = 0; i < looking->n_manifests; i++) {
        WEIR_TRY(look_at(looking, looking->manifests[i], true, err));
    }
    return WEIR_OK;
}

weir_status blob_is_for_task(struct api_call *call, const char *sha256, bool *out,
                             struct weir_error *err)
{
    struct looking looking = {.call = call, .sha256 = sha256};
    weir_status status = weir_store_read(call->api->store, read_given, &looking, err);
    json_t *pinned = status == WEIR_OK ? pinned_of(&looking) : NULL;
    if (status == WEIR_OK) {
        status = look_at_given(&looking, pinned, err);
    }
    json_decref(pinned);
    json_decref(looking.definition);
    *out = looking.found;
    return status;
}
