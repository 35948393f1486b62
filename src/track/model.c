#include "track/track.h"

#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/registry.h"

#include <inttypes.h>
#include <string.h>

// clang-format off
static const struct weir_field model_fields[] = {
    WEIR_FIELD_SIZED(weir_model, name,  TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, WEIR_MODEL_NAME_MAX_BYTES, "", "Unique name"),
    WEIR_FIELD(weir_model, project,     TEXT, WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Project it belongs to"),
    WEIR_FIELD(weir_model, description, TEXT, WEIR_FIELD_MUTABLE, "", "What it is for"),
    WEIR_FIELD(weir_model, created_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_model, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_model, deleted_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was deleted; never told of one that is there"),
    WEIR_FIELD(weir_model, updated_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was changed last"),
};
static const struct weir_field model_version_fields[] = {
    WEIR_FIELD(weir_model_version, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED, "", "Identifier, made by the client: the same again is the same version"),
    WEIR_FIELD(weir_model_version, model,           TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model"),
    WEIR_FIELD(weir_model_version, version,         INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number"),
    WEIR_FIELD(weir_model_version, run,             TEXT, WEIR_FIELD_COLUMN, "", "Run that made it"),
    WEIR_FIELD(weir_model_version, blob,            TEXT, WEIR_FIELD_REQUIRED, "", "SHA-256 of the model file"),
    WEIR_FIELD(weir_model_version, bytes,           INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes", "Size of the model file"),
    WEIR_FIELD(weir_model_version, dataset,         TEXT, WEIR_FIELD_COLUMN, "", "Dataset it was trained on"),
    WEIR_FIELD(weir_model_version, dataset_version, INT,  WEIR_FIELD_COLUMN, "", "Version of the dataset; 0 = unknown"),
    WEIR_FIELD(weir_model_version, code_version,    TEXT, 0, "", "Version of the program that made it"),
    WEIR_FIELD(weir_model_version, parameters,      JSON, 0, "", "Training parameters"),
    WEIR_FIELD_SIZED(weir_model_version, metrics, JSON, 0, 64 << 10, "", "Measured quality"),
    WEIR_FIELD_SIZED(weir_model_version, baseline, JSON, 0, 4 << 20, "", "Histograms that drift is measured against"),
    WEIR_FIELD_SIZED(weir_model_version, signature, JSON, WEIR_FIELD_READ_ONLY, 4 << 20, "", "What it takes and gives, and what runs it; found in its file"),
    WEIR_FIELD(weir_model_version, golden,          TEXT, 0, "", "SHA-256 of the file of requests and answers that it is checked with before it takes traffic"),
    WEIR_FIELD(weir_model_version, created_by,      TEXT, WEIR_FIELD_READ_ONLY, "", "Who registered it"),
    WEIR_FIELD(weir_model_version, created_ms,      TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was registered"),
    WEIR_FIELD(weir_model_version, deleted_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was deleted; its row stays for what names it"),
    WEIR_FIELD(weir_model_version, deleted_by,      TEXT, WEIR_FIELD_READ_ONLY, "", "Who deleted it"),
    WEIR_FIELD(weir_model_version, source,          TEXT, 0, "", "Where its files came from, as its maker says"),
    WEIR_FIELD(weir_model_version, source_run,      TEXT, 0, "", "The run that made it, as its maker says, also of another server"),
    WEIR_FIELD(weir_model_version, run_link,        TEXT, 0, "", "Address of a page about that run"),
    WEIR_FIELD(weir_model_version, description,     TEXT, WEIR_FIELD_MUTABLE, "", "What it is"),
    WEIR_FIELD(weir_model_version, stage,           TEXT, WEIR_FIELD_READ_ONLY, "", "None, Staging, Production or Archived; changes nothing that runs"),
    WEIR_FIELD(weir_model_version, unservable,      TEXT, WEIR_FIELD_READ_ONLY, "", "Why it cannot be served; null: it can"),
    WEIR_FIELD(weir_model_version, updated_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was changed last"),
};
// clang-format on

const struct weir_resource weir_model_resource =
    WEIR_RESOURCE("model", "models", weir_model, model_fields);
const struct weir_resource weir_model_version_resource =
    WEIR_RESOURCE("model version", "model_versions", weir_model_version, model_version_fields);

const struct weir_noun weir_noun_model_version = {
    "model_versions", WEIR_OF(model, models, name), .stays = "until it is deleted",
    .captured = WEIR_CAPTURED("model-versions", 170, .resource = &weir_model_version_resource)};

static const char sql_touch_of_version[] =
    "UPDATE models SET updated_ms = :now"
    " WHERE name = (SELECT model FROM model_versions WHERE id = :version)";
static const char sql_next_version[] =
    "SELECT max(version) + 1 FROM model_versions WHERE model = :model";

weir_status weir_model_version_get(struct weir_txn *txn, const char *model, int64_t version,
                                   struct weir_arena *arena, struct weir_model_version *out,
                                   struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model), WEIR_FILTER_INT("version", GE, version),
                     WEIR_FILTER_INT("version", LE, version != 0 ? version : INT64_MAX),
                     WEIR_FILTER_INT("deleted_ms", LE, version != 0 ? INT64_MAX : 0)),
        .order_by = "version", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(
        weir_txn_list(txn, &weir_model_version_resource, &query, arena, &items, &n, NULL, err));
    if (n == 0 && version == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "model \"%s\" has no version", model);
    }
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "model \"%s\" has no version %" PRId64,
                              model, version);
    }
    const struct weir_model_version *found = items;
    if (found->deleted_ms != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "version %" PRId64 " of model \"%s\" was deleted by %s", version,
                              model, found->deleted_by);
    }
    *out = *found;
    return WEIR_OK;
}

weir_status weir_model_get(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                           struct weir_model *out, struct weir_error *err)
{
    struct weir_model model;
    WEIR_TRY(weir_txn_get(txn, &weir_model_resource, name, arena, &model, err));
    if (model.deleted_ms != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "model \"%s\" was deleted", name);
    }
    *out = model;
    return WEIR_OK;
}

weir_status weir_model_version_delete(struct weir_txn *txn, const char *id, const char *actor,
                                      int64_t now_ms, struct weir_error *err)
{
    const struct weir_model_version version = {
        .id = (char *)id, .deleted_ms = now_ms, .deleted_by = (char *)actor};
    WEIR_TRY(weir_txn_exec(txn, sql_touch_of_version,
                           WEIR_BINDS(WEIR_BIND_TEXT("version", id), WEIR_BIND_INT("now", now_ms)),
                           NULL, err));
    return weir_txn_update(txn, &weir_model_version_resource, &version,
                           WEIR_FIELDS("deleted_ms", "deleted_by"), err);
}

/** The model by name, changed now; made if this is its first version. */
static weir_status ensure_model(struct weir_txn *txn, const struct weir_model_version *version,
                                const char *project, int64_t now_ms, struct weir_arena *arena,
                                struct weir_error *err)
{
    struct weir_model model;
    weir_status status =
        weir_txn_get(txn, &weir_model_resource, version->model, arena, &model, err);
    if (status == WEIR_OK && model.deleted_ms != 0) {
        model.deleted_ms = 0; /* it is there again; numbers go on */
    }
    if (status == WEIR_OK) {
        model.updated_ms = now_ms;
        return weir_txn_update(txn, &weir_model_resource, &model,
                               WEIR_FIELDS("deleted_ms", "updated_ms"), err);
    }
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    model = (struct weir_model){.name = version->model,
                                .project = (char *)project,
                                .created_by = version->created_by,
                                .created_ms = now_ms};
    return weir_txn_insert(txn, &weir_model_resource, &model, err);
}

weir_status weir_model_register(struct weir_txn *txn, const struct weir_model_version *version,
                                const char *project, int64_t now_ms, struct weir_arena *arena,
                                struct weir_model_version *out, bool *out_is_new,
                                struct weir_error *err)
{
    struct weir_model_version stored;
    weir_status status =
        weir_txn_get(txn, &weir_model_version_resource, version->id, arena, &stored, err);
    bool is_new = status == WEIR_ERR_NOT_FOUND;
    if (status != WEIR_OK && !is_new) {
        return status;
    }
    if (!is_new &&
        (strcmp(stored.model, version->model) != 0 || strcmp(stored.blob, version->blob) != 0)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "model version %s exists already, as version %" PRId64
                              " of \"%s\" with other content",
                              version->id, stored.version, stored.model);
    }
    if (!is_new && stored.deleted_ms != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "model version %s was version %" PRId64 " of \"%s\", and was deleted",
                              version->id, stored.version, stored.model);
    }
    if (is_new) {
        WEIR_TRY(ensure_model(txn, version, project, now_ms, arena, err));
        stored = *version;
        stored.created_ms = now_ms;
        stored.stage = stored.stage != NULL ? stored.stage : WEIR_STAGE_NONE;
        WEIR_TRY(weir_txn_query_int(txn, sql_next_version,
                                    WEIR_BINDS(WEIR_BIND_TEXT("model", version->model)), 1,
                                    &stored.version, err));
        status = weir_txn_insert(txn, &weir_model_version_resource, &stored, err);
        if (status == WEIR_ERR_CONFLICT) {
            return weir_error_set(err, status,
                                  "model version %s names run \"%s\", which is not there",
                                  version->id, version->run != NULL ? version->run : "");
        }
        WEIR_TRY(status);
    }
    *out = stored;
    if (out_is_new != NULL) {
        *out_is_new = is_new;
    }
    return WEIR_OK;
}
