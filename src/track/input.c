/** Data that runs read. */
#include "track/run.h"

#include "base/grow.h"
#include "store/stmt.h"

#include <string.h>

#define NAME_MAX_BYTES    500
#define DIGEST_MAX_BYTES  36
#define SOURCE_MAX_BYTES  ((size_t)64 << 10)
#define SCHEMA_MAX_BYTES  ((size_t)1 << 20)
#define PROFILE_MAX_BYTES ((size_t)16 << 20)

static const char sql_add[] =
    "INSERT INTO input_datasets (experiment, name, digest, source_type, source, schema, profile)"
    " VALUES (:experiment, :name, :digest, :source_type, :source, :schema, :profile)"
    " ON CONFLICT (experiment, name, digest) DO NOTHING";
static const char sql_find[] = "SELECT id FROM input_datasets WHERE experiment = :experiment AND"
                               " name = :name AND digest = :digest";
static const char sql_link[] =
    "INSERT INTO run_inputs (run, dataset, context, tags) VALUES (:run, :dataset, :context, :tags)"
    " ON CONFLICT (run, dataset) DO NOTHING";
static const char sql_list[] =
    "SELECT d.name, d.digest, d.source_type, d.source, d.schema, d.profile, i.context, i.tags"
    " FROM run_inputs i JOIN input_datasets d ON d.id = i.dataset WHERE i.run = :run"
    " ORDER BY d.id";

static weir_status check_text(const char *what, const char *text, size_t max_bytes,
                              struct weir_error *err)
{
    return text == NULL || strlen(text) <= max_bytes
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "the %s of a dataset has %zu bytes; at most %zu are allowed", what,
                                strlen(text), max_bytes);
}

static weir_status check(const struct weir_run_input *input, struct weir_error *err)
{
    if (input->name == NULL || *input->name == '\0' || input->digest == NULL ||
        *input->digest == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "a dataset needs a name and a digest");
    }
    WEIR_TRY(check_text("name", input->name, NAME_MAX_BYTES, err));
    WEIR_TRY(check_text("digest", input->digest, DIGEST_MAX_BYTES, err));
    WEIR_TRY(check_text("source", input->source, SOURCE_MAX_BYTES, err));
    WEIR_TRY(check_text("schema", input->schema, SCHEMA_MAX_BYTES, err));
    return check_text("profile", input->profile, PROFILE_MAX_BYTES, err);
}

weir_status weir_run_input_put(struct weir_txn *txn, int64_t run, int64_t experiment,
                               const struct weir_run_input *input, struct weir_error *err)
{
    const struct weir_bind binds[] = {
        WEIR_BIND_INT("experiment", experiment),  WEIR_BIND_TEXT("name", input->name),
        WEIR_BIND_TEXT("digest", input->digest),  WEIR_BIND_TEXT("source_type", input->source_type),
        WEIR_BIND_TEXT("source", input->source),  WEIR_BIND_TEXT("schema", input->schema),
        WEIR_BIND_TEXT("profile", input->profile)};
    int64_t dataset;
    WEIR_TRY(check(input, err));
    WEIR_TRY(weir_txn_exec(txn, sql_add, binds, WEIR_ARRAY_LEN(binds), NULL, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_find, binds, 3, 0, &dataset, err));
    return weir_txn_exec(txn, sql_link,
                         WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_INT("dataset", dataset),
                                    WEIR_BIND_TEXT("context", input->context),
                                    WEIR_BIND_TEXT("tags", input->tags)),
                         NULL, err);
}

weir_status weir_run_inputs(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                            struct weir_run_input **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_list, WEIR_BINDS(WEIR_BIND_INT("run", run)), &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
        struct weir_run_input *input = &(*out)[(*out_n)++];
        char **const texts[] = {&input->name,    &input->digest, &input->source_type,
                                &input->source,  &input->schema, &input->profile,
                                &input->context, &input->tags};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
            *texts[i] = weir_stmt_text(stmt, (int)i, arena);
        }
        WEIR_TRY(weir_arena_check(arena, "a run's inputs", err));
    }
}
