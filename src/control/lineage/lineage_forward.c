/** Forward: from a dataset version to the runs that read it, and to all that came of those. */
#include "control/lineage/lineage_private.h"

#include "store/stmt.h"

#include <inttypes.h>

/* In each the newest first: of what is more than is named, the oldest is left out. */
static const char sql_runs[] =
    "SELECT id FROM (SELECT id, created_ms FROM runs WHERE dataset = :dataset AND"
    " dataset_version = :version UNION SELECT r.id, r.created_ms FROM input_datasets d"
    " JOIN run_inputs i ON i.dataset = d.id JOIN runs r ON r.number = i.run"
    " WHERE d.source_type = 'weir' AND d.source = :source) AS found ORDER BY created_ms DESC, id "
    "LIMIT :max";
static const char sql_made[] = "SELECT dataset, version FROM dataset_versions WHERE run = :run";
static const char sql_versions_of_run[] =
    "SELECT id FROM model_versions WHERE run = :run ORDER BY version DESC LIMIT :max";
static const char sql_versions_of_dataset[] =
    "SELECT id FROM model_versions WHERE dataset = :dataset AND dataset_version = :version"
    " ORDER BY created_ms DESC LIMIT :max";

/* One more than is named, so that it is noticed. */
#define MAX_BIND WEIR_BIND_INT("max", CONTROL_LINEAGE_MAX + 1)

static weir_status add_all(struct lineage *lineage, const char *sql, const struct weir_bind *binds,
                           size_t n_binds, struct lineage_names *names, struct weir_error *err)
{
    char **found;
    size_t n;
    WEIR_TRY(
        weir_txn_query_texts(lineage->txn, sql, binds, n_binds, lineage->arena, &found, &n, err));
    for (size_t i = 0; i < n; i++) {
        (void)lineage_add(lineage, names, found[i], 0);
    }
    return WEIR_OK;
}

static weir_status from_dataset(struct lineage *lineage, const struct lineage_name *name,
                                struct weir_error *err)
{
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("dataset", name->name), WEIR_BIND_INT("version", name->version), MAX_BIND,
        WEIR_BIND_TEXT("source", weir_arena_printf(lineage->arena, "%s@v%" PRId64, name->name,
                                                   name->version))};
    WEIR_TRY(add_all(lineage, sql_runs, binds, 4, &lineage->run_names, err));
    return add_all(lineage, sql_versions_of_dataset, binds, 3, &lineage->version_names, err);
}

static weir_status from_run(struct lineage *lineage, const char *run, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(add_all(lineage, sql_versions_of_run, WEIR_BINDS(WEIR_BIND_TEXT("run", run), MAX_BIND),
                     &lineage->version_names, err));
    WEIR_TRY(
        weir_stmt_open(lineage->txn, sql_made, WEIR_BINDS(WEIR_BIND_TEXT("run", run)), &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        (void)lineage_add(lineage, &lineage->dataset_names, weir_stmt_text(stmt, 0, lineage->arena),
                          weir_stmt_int(stmt, 1));
    }
}

weir_status lineage_go_forward(struct lineage *lineage, const char *dataset, int64_t version,
                               struct weir_error *err)
{
    struct lineage_names *runs = &lineage->run_names, *datasets = &lineage->dataset_names;
    (void)lineage_add(lineage, datasets, dataset, version);
    while (runs->n_done < runs->n || datasets->n_done < datasets->n) {
        if (runs->n_done < runs->n) {
            WEIR_TRY(from_run(lineage, runs->items[runs->n_done++].name, err));
        } else {
            const struct lineage_name name = datasets->items[datasets->n_done++];
            WEIR_TRY(from_dataset(lineage, &name, err));
        }
    }
    for (size_t i = 0; i < lineage->version_names.n; i++) {
        struct weir_model_version row;
        bool is_there;
        WEIR_TRY(lineage_find_version(lineage, lineage->version_names.items[i].name, &row,
                                      &is_there, err));
        if (is_there) {
            *LINEAGE_ADD(lineage, versions) = row;
            WEIR_TRY(lineage_add_places(lineage, &row, err));
        }
    }
    for (size_t i = 0; i < datasets->n; i++) {
        WEIR_TRY(lineage_add_galleries(lineage, datasets->items[i].name, datasets->items[i].version,
                                       err));
    }
    return weir_arena_check(lineage->arena, "a lineage", err);
}
