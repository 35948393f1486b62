#include "track/track.h"

#include "store/table.h"

#include <inttypes.h>
#include <string.h>

// clang-format off
static const struct weir_field dataset_fields[] = {
    WEIR_FIELD(weir_dataset, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Unique name"),
    WEIR_FIELD(weir_dataset, project,     TEXT, WEIR_FIELD_NAME, "", "Project it belongs to"),
    WEIR_FIELD(weir_dataset, kind,        TEXT, WEIR_FIELD_COLUMN, "", "folder (classes are folders) or idx"),
    WEIR_FIELD(weir_dataset, path,        TEXT, WEIR_FIELD_COLUMN, "", "Folder on the server; absent = files are uploaded"),
    WEIR_FIELD(weir_dataset, is_uploaded, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Files came through the API"),
    WEIR_FIELD(weir_dataset, created_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_dataset, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
};
static const struct weir_field dataset_version_fields[] = {
    WEIR_FIELD(weir_dataset_version, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_dataset_version, dataset,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Dataset"),
    WEIR_FIELD(weir_dataset_version, version,    INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number"),
    WEIR_FIELD(weir_dataset_version, digest,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "SHA-256 over names and contents"),
    WEIR_FIELD(weir_dataset_version, blob,       TEXT, WEIR_FIELD_READ_ONLY, "", "SHA-256 of the manifest"),
    WEIR_FIELD(weir_dataset_version, n_files,    INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Files"),
    WEIR_FIELD(weir_dataset_version, n_rows,     INT,  WEIR_FIELD_READ_ONLY, "", "Rows of its .csv, .tsv and .jsonl files"),
    WEIR_FIELD(weir_dataset_version, n_unread,   INT,  WEIR_FIELD_READ_ONLY, "", "Files that Weir's own trainings skip: damaged, or no pictures; 0 of kind idx"),
    WEIR_FIELD(weir_dataset_version, n_classes,  INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Classes"),
    WEIR_FIELD(weir_dataset_version, bytes,      INT,  WEIR_FIELD_READ_ONLY, "bytes", "Size of all files"),
    WEIR_FIELD(weir_dataset_version, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
    WEIR_FIELD(weir_dataset_version, created_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it: a user, or ion/NAME for a preparation"),
    WEIR_FIELD(weir_dataset_version, run,        TEXT, WEIR_FIELD_READ_ONLY, "", "Run whose program wrote its files"),
};
// clang-format on

const struct weir_resource weir_dataset_resource =
    WEIR_RESOURCE("dataset", "datasets", weir_dataset, dataset_fields);
const struct weir_resource weir_dataset_version_resource = WEIR_RESOURCE(
    "dataset version", "dataset_versions", weir_dataset_version, dataset_version_fields);

weir_status weir_dataset_version_get(struct weir_txn *txn, const char *dataset, int64_t version,
                                     struct weir_arena *arena, struct weir_dataset_version *out,
                                     struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("dataset", EQ, dataset),
                     WEIR_FILTER_INT("version", GE, version),
                     WEIR_FILTER_INT("version", LE, version != 0 ? version : INT64_MAX)),
        .order_by = "version", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(
        weir_txn_list(txn, &weir_dataset_version_resource, &query, arena, &items, &n, NULL, err));
    if (n == 0 && version == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "dataset \"%s\" has no version", dataset);
    }
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "dataset \"%s\" has no version %" PRId64,
                              dataset, version);
    }
    *out = *(struct weir_dataset_version *)items;
    return WEIR_OK;
}

weir_status weir_dataset_add_version(struct weir_txn *txn,
                                     const struct weir_dataset_version *version, int64_t now_ms,
                                     struct weir_arena *arena, struct weir_dataset_version *out,
                                     bool *out_is_new, struct weir_error *err)
{
    struct weir_dataset dataset;
    WEIR_TRY(weir_txn_get(txn, &weir_dataset_resource, version->dataset, arena, &dataset, err));
    struct weir_dataset_version latest = {0};
    weir_status status = weir_dataset_version_get(txn, version->dataset, 0, arena, &latest, err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    bool is_new = status == WEIR_ERR_NOT_FOUND || strcmp(latest.digest, version->digest) != 0;
    if (is_new) {
        struct weir_dataset_version added = *version;
        added.version = latest.version + 1;
        added.created_ms = now_ms;
        WEIR_TRY(weir_txn_insert(txn, &weir_dataset_version_resource, &added, err));
        latest = added;
    }
    *out = latest;
    if (out_is_new != NULL) {
        *out_is_new = is_new;
    }
    return WEIR_OK;
}
