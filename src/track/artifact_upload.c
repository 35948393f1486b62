/** Artifacts that come in parts: the rows; the bytes are of blob/parts.h. */
#include "track/artifact.h"

#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field upload_fields[] = {
    WEIR_FIELD(weir_artifact_upload, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_artifact_upload, run,        TEXT, WEIR_FIELD_READ_ONLY, "", "Run"),
    WEIR_FIELD(weir_artifact_upload, path,       TEXT, WEIR_FIELD_READ_ONLY, "", "Path within the run that it will have"),
    WEIR_FIELD(weir_artifact_upload, n_parts,    INT,  WEIR_FIELD_READ_ONLY, "", "Parts that it has"),
    WEIR_FIELD(weir_artifact_upload, created_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who sends it"),
    WEIR_FIELD(weir_artifact_upload, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it began"),
};
// clang-format on

const struct weir_resource weir_artifact_upload_resource =
    WEIR_RESOURCE("upload", "artifact_uploads", weir_artifact_upload, upload_fields);

static const char sql_forget_old[] =
    "DELETE FROM artifact_uploads WHERE run = :run AND created_ms <= :before";
static const char sql_count[] = "SELECT count(*) FROM artifact_uploads WHERE run = :run";

weir_status weir_artifact_upload_begin(struct weir_txn *txn,
                                       const struct weir_artifact_upload *upload, int64_t now_ms,
                                       struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(
        weir_txn_exec(txn, sql_forget_old,
                      WEIR_BINDS(WEIR_BIND_TEXT("run", upload->run),
                                 WEIR_BIND_INT("before", now_ms - WEIR_ARTIFACT_UPLOAD_KEEP_MS)),
                      NULL, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_count, WEIR_BINDS(WEIR_BIND_TEXT("run", upload->run)), 0,
                                &n, err));
    if (n >= WEIR_ARTIFACT_UPLOADS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "run %s has %d uploads that are not whole: end one first",
                              upload->run, WEIR_ARTIFACT_UPLOADS_MAX);
    }
    weir_status status = weir_txn_insert(txn, &weir_artifact_upload_resource, upload, err);
    return status == WEIR_ERR_CONFLICT
               ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "Run '%s' not found", upload->run)
               : status;
}

weir_status weir_artifact_upload_get(struct weir_txn *txn, const char *run, const char *id,
                                     int64_t now_ms, struct weir_arena *arena,
                                     struct weir_artifact_upload *out, struct weir_error *err)
{
    struct weir_artifact_upload found;
    struct weir_error missing;
    weir_status status =
        weir_txn_get(txn, &weir_artifact_upload_resource, id, arena, &found, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    if (status == WEIR_ERR_NOT_FOUND || strcmp(found.run, run) != 0 ||
        found.created_ms <= now_ms - WEIR_ARTIFACT_UPLOAD_KEEP_MS) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no upload \"%.60s\" of run %s: it was ended, or is too old",
                              id, run);
    }
    *out = found;
    return WEIR_OK;
}

weir_status weir_artifact_upload_forget(struct weir_txn *txn, const char *id,
                                        struct weir_error *err)
{
    return weir_txn_delete(txn, &weir_artifact_upload_resource, id, err);
}

weir_status weir_artifact_upload_end(struct weir_txn *txn, const char *id,
                                     const struct weir_artifact *artifact, struct weir_error *err)
{
    WEIR_TRY(weir_txn_delete(txn, &weir_artifact_upload_resource, id, err));
    return weir_artifact_put(txn, artifact, err);
}
