#include "job/code.h"

#include "store/noun.h"
#include "store/stmt.h"

#include <string.h>

const struct weir_noun weir_noun_sent_blob = {
    "sent_blobs", .project = "project",
    .rules = {WEIR_RULE("sent-blobs", "Which project has sent which file of its jobs' code",
                        "What was sent longest ago goes first; it is sent again with the next job "
                        "that brings it along.",
                        230, {WEIR_DAYS(90), WEIR_MB(60)}, 300, 3, .by = WEIR_ROWS_TIMED,
                        .time = "hour_ms", .key = "project, sha256")}};

#define HOUR_MS ((int64_t)3600000)

static const char sql_sent[] =
    "INSERT INTO sent_blobs (project, sha256, hour_ms) VALUES (:project, :sha256, :hour)"
    " ON CONFLICT (project, sha256) DO UPDATE SET hour_ms = excluded.hour_ms"
    " WHERE sent_blobs.hour_ms < excluded.hour_ms";
static const char sql_has_sent[] =
    "SELECT 1 FROM sent_blobs WHERE project = :project AND sha256 = :sha256";
static const char sql_know[] =
    "INSERT INTO code_manifests (project, sha256, files, bytes, time_ms)"
    " VALUES (:project, :sha256, :files, :bytes, :now) ON CONFLICT (project, sha256)"
    " DO UPDATE SET time_ms = excluded.time_ms"
    " WHERE code_manifests.time_ms < excluded.time_ms";
static const char sql_bring[] = "UPDATE code_manifests SET time_ms ="
                                " CASE WHEN time_ms < :now THEN :now ELSE time_ms END"
                                " WHERE project = :project AND sha256 = :sha256";

weir_status weir_code_sent(struct weir_txn *txn, const char *project, const char *sha256,
                           int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_sent,
                         WEIR_BINDS(WEIR_BIND_TEXT("project", project),
                                    WEIR_BIND_TEXT("sha256", sha256),
                                    WEIR_BIND_INT("hour", now_ms / HOUR_MS * HOUR_MS)),
                         NULL, err);
}

weir_status weir_code_has_sent(struct weir_txn *txn, const char *project, const char *const *sha256,
                               size_t n, bool *out, struct weir_error *err)
{
    struct weir_stmt *stmt WEIR_AUTO(weir_stmt_auto_close) = NULL;
    struct weir_bind binds[] = {WEIR_BIND_TEXT("project", project), WEIR_BIND_TEXT("sha256", "")};
    WEIR_TRY(weir_stmt_open(txn, sql_has_sent, binds, 2, &stmt, err));
    for (size_t i = 0; i < n; i++) {
        binds[1].text = sha256[i];
        WEIR_TRY(weir_stmt_rebind(stmt, binds, 2, err));
        WEIR_TRY(weir_stmt_step(stmt, &out[i], err));
    }
    return WEIR_OK;
}

weir_status weir_code_know(struct weir_txn *txn, const char *project, const char *manifest,
                           int64_t n_files, int64_t n_bytes, int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_know,
                         WEIR_BINDS(WEIR_BIND_TEXT("project", project),
                                    WEIR_BIND_TEXT("sha256", manifest),
                                    WEIR_BIND_INT("files", n_files),
                                    WEIR_BIND_INT("bytes", n_bytes), WEIR_BIND_INT("now", now_ms)),
                         NULL, err);
}

weir_status weir_code_bring(struct weir_txn *txn, const char *project, const json_t *spec,
                            int64_t now_ms, struct weir_error *err)
{
    const json_t *code = json_object_get(spec, "code");
    const char *manifest = json_string_value(json_object_get(code, "manifest"));
    const char *patch = json_string_value(json_object_get(code, "patch"));
    if (manifest != NULL) {
        int64_t n = 0;
        WEIR_TRY(weir_txn_exec(txn, sql_bring,
                               WEIR_BINDS(WEIR_BIND_TEXT("project", project),
                                          WEIR_BIND_TEXT("sha256", manifest),
                                          WEIR_BIND_INT("now", now_ms)),
                               &n, err));
        if (n == 0) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "$.spec.code.manifest: project %s has sent no folder %.64s, or it "
                "was forgotten: `weir job run` sends it (PUT /api/v1/blobs/… "
                "?as=code)",
                project, manifest);
        }
    }
    if (patch != NULL) {
        bool is_sent;
        WEIR_TRY(weir_code_has_sent(txn, project, &patch, 1, &is_sent, err));
        if (!is_sent) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.code.patch: project %s has not sent the blob %.64s",
                                  project, patch);
        }
    }
    return WEIR_OK;
}
