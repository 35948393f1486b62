/** Detectors: which version a pipeline found with when it decided, and where a version finds. */
#include "control/lineage/lineage_private.h"

#include "store/stmt.h"

/* The database keeps them with each change of a pipeline (migration 0085). */
static const char sql_then[] =
    "SELECT id FROM pipeline_detectors WHERE ion = :ion AND pipeline = :pipeline"
    " AND since_ms <= :time ORDER BY since_ms DESC LIMIT 1";
static const char sql_has_any[] =
    "SELECT count(*) FROM pipeline_detectors WHERE ion = :ion AND pipeline = :pipeline";
static const char sql_where[] =
    "SELECT d.ion, d.pipeline, d.since_ms, (SELECT min(n.since_ms) FROM pipeline_detectors n"
    " WHERE n.ion = d.ion AND n.pipeline = d.pipeline AND n.since_ms > d.since_ms)"
    " FROM pipeline_detectors d WHERE d.id = :id ORDER BY d.ion, d.pipeline, d.since_ms LIMIT :max";

weir_status lineage_detector_of(struct lineage *lineage, const struct weir_decision *decision,
                                const struct weir_model_version **out, struct weir_error *err)
{
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("ion", decision->ion),
                                      WEIR_BIND_TEXT("pipeline", decision->pipeline),
                                      WEIR_BIND_INT("time", decision->time_ms)};
    struct weir_model_version *version = WEIR_ARENA_NEW(lineage->arena, struct weir_model_version);
    char **ids;
    size_t n;
    int64_t n_any = 0;
    bool is_there;
    *out = NULL;
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_then, binds, 3, lineage->arena, &ids, &n, err));
    if (n == 0) {
        WEIR_TRY(weir_txn_query_int(lineage->txn, sql_has_any, binds, 2, 0, &n_any, err));
    }
    if (n_any > 0) {
        lineage_say(lineage, "Which detector found what it is about is not known: none is noted "
                             "that is as old.");
    }
    if (n == 0 || ids[0] == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(lineage_find_version(lineage, ids[0], version, &is_there, err));
    if (!is_there) {
        lineage_say(lineage, "The detector that found what it is about is not there.");
        return WEIR_OK;
    }
    *out = version;
    return WEIR_OK;
}

weir_status lineage_finders(struct lineage *lineage, const struct weir_model_version *version,
                            struct control_lineage_finder **out, size_t *out_n,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(
        lineage->txn, sql_where,
        WEIR_BINDS(WEIR_BIND_TEXT("id", version->id), WEIR_BIND_INT("max", CONTROL_LINEAGE_MAX)),
        &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return weir_arena_check(lineage->arena, "a lineage", err);
        }
        weir_arena_grow(lineage->arena, out, sizeof **out, *out_n, &cap);
        (*out)[(*out_n)++] =
            (struct control_lineage_finder){.ion = weir_stmt_text(stmt, 0, lineage->arena),
                                            .pipeline = weir_stmt_text(stmt, 1, lineage->arena),
                                            .since_ms = weir_stmt_int(stmt, 2),
                                            .until_ms = weir_stmt_int(stmt, 3)};
    }
}
