#include "track/forgotten.h"

#include "store/table.h"

// clang-format off
static const struct weir_field forgotten_fields[] = {
    WEIR_FIELD(weir_forgotten, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_forgotten, person,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Whose photos were deleted"),
    WEIR_FIELD(weir_forgotten, project,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "In which project; empty: in all"),
    WEIR_FIELD(weir_forgotten, state,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "running or done"),
    WEIR_FIELD(weir_forgotten, actor,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who had it done"),
    WEIR_FIELD(weir_forgotten, reason,     TEXT, WEIR_FIELD_READ_ONLY, "", "Why"),
    WEIR_FIELD(weir_forgotten, summary,    JSON, WEIR_FIELD_READ_ONLY, "", "What went: photos, pictures of decisions, files of embeddings, entries of lists"),
    WEIR_FIELD(weir_forgotten, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was asked for"),
    WEIR_FIELD(weir_forgotten, done_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was done"),
};
static const struct weir_field tombstone_fields[] = {
    WEIR_FIELD(weir_tombstone, id,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_tombstone, forgotten, TEXT, WEIR_FIELD_READ_ONLY, "", "Of which deletion"),
    WEIR_FIELD(weir_tombstone, dataset,   TEXT, WEIR_FIELD_READ_ONLY, "", "Dataset"),
    WEIR_FIELD(weir_tombstone, version,   INT,  WEIR_FIELD_READ_ONLY, "", "Version that had the photos"),
    WEIR_FIELD(weir_tombstone, person,    TEXT, WEIR_FIELD_READ_ONLY, "", "Whose photos"),
    WEIR_FIELD(weir_tombstone, n_files,   INT,  WEIR_FIELD_READ_ONLY, "", "How many"),
    WEIR_FIELD(weir_tombstone, bytes,     INT,  WEIR_FIELD_READ_ONLY, "bytes", "Their size"),
    WEIR_FIELD(weir_tombstone, time_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "When they went"),
};
// clang-format on

const struct weir_resource weir_forgotten_resource =
    WEIR_RESOURCE("forgotten person", "forgotten_people", weir_forgotten, forgotten_fields);
const struct weir_resource weir_tombstone_resource =
    WEIR_RESOURCE("tombstone", "dataset_tombstones", weir_tombstone, tombstone_fields);

weir_status weir_tombstones_list(struct weir_txn *txn, const char *dataset, int64_t version,
                                 struct weir_arena *arena, struct weir_tombstone **out,
                                 size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("dataset", EQ, dataset),
                     WEIR_FILTER_INT("version", GE, version),
                     WEIR_FILTER_INT("version", LE, version != 0 ? version : INT64_MAX)),
        .order_by = "version", .limit = 10000};
    void *items;
    WEIR_TRY(weir_txn_list(txn, &weir_tombstone_resource, &query, arena, &items, out_n, NULL, err));
    *out = items;
    return WEIR_OK;
}
