#include "ion/kpi.h"

#include "ion/arms.h"
#include "ion/outcome.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

// clang-format off
static const struct weir_field kpi_fields[] = {
    WEIR_FIELD(weir_kpi, seq,     INT,  WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_kpi, ion,     TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_kpi, name,    TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Name of the figure"),
    WEIR_FIELD(weir_kpi, value,   F64,  WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Its value"),
    WEIR_FIELD_SIZED(weir_kpi, unit, TEXT, WEIR_FIELD_COLUMN, 32, "", "Its unit"),
    WEIR_FIELD(weir_kpi, model,   TEXT, WEIR_FIELD_MODEL, "", "Model whose version it is of"),
    WEIR_FIELD(weir_kpi, model_version, INT, WEIR_FIELD_COLUMN, "", "Version that it is of; 0: it is the ION's"),
    WEIR_FIELD(weir_kpi, actor,   TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who told it"),
    WEIR_FIELD(weir_kpi, time_ms, TIME, WEIR_FIELD_COLUMN, "ms", "When it held; now if not given"),
};
// clang-format on

const struct weir_resource weir_kpi_resource = WEIR_RESOURCE("kpi", "kpis", weir_kpi, kpi_fields);

const struct weir_noun weir_noun_kpi = {
    "kpis", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("kpis", "Business figures of IONs", "The oldest go first.", 90,
                        {WEIR_DAYS(730), WEIR_MB(10)}, 180, 4, .is_of_project = true,
                        .by = WEIR_ROWS_NUMBERED, .time = "time_ms")},
    .captured =
        WEIR_CAPTURED("kpis", 130, .resource = &weir_kpi_resource, .by = "ion", .time = "time_ms")};

static const char sql_has_name[] = "SELECT count(*) FROM (SELECT 1 FROM kpis WHERE ion = :ion AND "
                                   "name = :name LIMIT 1) AS these";
/* From one name to the next in the index: as many steps as names, and not as rows. */
#define NAMES                                                                                      \
    "WITH RECURSIVE names (name) AS (SELECT min(name) FROM kpis WHERE ion = :ion UNION ALL"        \
    " SELECT (SELECT min(name) FROM kpis WHERE ion = :ion AND name > names.name) FROM names"       \
    " WHERE name IS NOT NULL) "
static const char sql_names[] = NAMES "SELECT count(name) FROM names";
static const char sql_same[] =
    "SELECT seq FROM kpis WHERE ion = :ion AND name = :name AND model_version = :version AND"
    " time_ms = :time AND coalesce(model, '') = coalesce(:model, '')";
/* Name by name and version by version through the index, however many values each has. */
static const char sql_latest[] =
    "WITH RECURSIVE"
    " named(name) AS (SELECT min(name) FROM kpis WHERE ion = :ion UNION ALL"
    "  SELECT (SELECT min(k.name) FROM kpis k WHERE k.ion = :ion AND k.name > named.name)"
    "  FROM named WHERE named.name IS NOT NULL),"
    " versioned(name, version) AS (SELECT name, (SELECT min(k.model_version) FROM kpis k"
    "  WHERE k.ion = :ion AND k.name = named.name) FROM named WHERE name IS NOT NULL UNION ALL"
    "  SELECT v.name, (SELECT min(k.model_version) FROM kpis k WHERE k.ion = :ion"
    "  AND k.name = v.name AND k.model_version > v.version) FROM versioned v"
    "  WHERE v.version IS NOT NULL)"
    " SELECT (SELECT k.seq FROM kpis k WHERE k.ion = :ion AND k.name = v.name"
    "  AND k.model_version = v.version ORDER BY k.time_ms DESC LIMIT 1)"
    " FROM versioned v WHERE v.version IS NOT NULL ORDER BY v.name, v.version LIMIT :max";

static weir_status check_name(struct weir_txn *txn, const struct weir_kpi *kpi,
                              struct weir_error *err)
{
    int64_t n_there, n_names = 0;
    WEIR_TRY(weir_txn_query_int(
        txn, sql_has_name,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", kpi->ion), WEIR_BIND_TEXT("name", kpi->name)), 0, &n_there,
        err));
    if (n_there == 0) {
        WEIR_TRY(weir_txn_query_int(txn, sql_names, WEIR_BINDS(WEIR_BIND_TEXT("ion", kpi->ion)), 0,
                                    &n_names, err));
    }
    return n_names < WEIR_KPI_NAMES_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "ion \"%s\" has %d KPIs, as many as it may: \"%s\" is one more",
                                kpi->ion, WEIR_KPI_NAMES_MAX, kpi->name);
}

static weir_status check(const struct weir_kpi *kpi, int64_t now_ms, struct weir_error *err)
{
    if (!isfinite(kpi->value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.value: expected a number");
    }
    if (kpi->time_ms <= 0 || kpi->time_ms > now_ms + DAY_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.time_ms: expected a time after 1970 and not in the future");
    }
    if (kpi->model_version < 0 || (kpi->model != NULL) != (kpi->model_version > 0)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$: model and model_version belong together: the name of a model, and "
            "the number of its version");
    }
    return WEIR_OK;
}

/** Of its version: it is counted, and what it replaces is not any more. */
static weir_status count(struct weir_txn *txn, const struct weir_kpi *kpi, const double *old,
                         struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_ion_sample sample = {.ion = kpi->ion,
                                           .model = kpi->model,
                                           .version = kpi->model_version,
                                           .metric = kpi->name,
                                           .time_ms = kpi->time_ms};
    bool counts = kpi->model != NULL && strcmp(kpi->name, WEIR_OUTCOME_SUCCESS) != 0;
    return counts ? weir_ion_arms_count(txn, &sample, &kpi->value, old, arena, err) : WEIR_OK;
}

weir_status weir_kpi_add(struct weir_txn *txn, struct weir_kpi *kpi, int64_t now_ms,
                         struct weir_arena *arena, struct weir_error *err)
{
    struct weir_kpi before = {0};
    int64_t same;
    WEIR_TRY(check(kpi, now_ms, err));
    WEIR_TRY(check_name(txn, kpi, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_same,
                                WEIR_BINDS(WEIR_BIND_TEXT("ion", kpi->ion),
                                           WEIR_BIND_TEXT("name", kpi->name),
                                           WEIR_BIND_TEXT("model", kpi->model),
                                           WEIR_BIND_INT("version", kpi->model_version),
                                           WEIR_BIND_INT("time", kpi->time_ms)),
                                0, &same, err));
    if (same > 0) {
        const char *key = weir_arena_printf(arena, "%" PRId64, same);
        WEIR_TRY(weir_txn_get(txn, &weir_kpi_resource, key, arena, &before, err));
        WEIR_TRY(weir_txn_delete(txn, &weir_kpi_resource, key, err));
    }
    WEIR_TRY(weir_txn_next(txn, "kpis", &kpi->seq, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_kpi_resource, kpi, err));
    return count(txn, kpi, same > 0 ? &before.value : NULL, arena, err);
}

weir_status weir_kpi_latest(struct weir_txn *txn, const char *ion, const char *name,
                            struct weir_arena *arena, struct weir_kpi *out, struct weir_error *err)
{
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, ion),
                                            WEIR_FILTER_TEXT("name", EQ, name),
                                            WEIR_FILTER_INT("model_version", EQ, 0)),
                               .order_by = "time_ms", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_kpi_resource, &query, arena, &items, &n, NULL, err));
    if (n == 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "ion \"%s\" has no KPI \"%s\"", ion, name);
    }
    *out = *(struct weir_kpi *)items;
    return WEIR_OK;
}

weir_status weir_kpis_latest(struct weir_txn *txn, const char *ion, struct weir_arena *arena,
                             struct weir_kpi **out, size_t *out_n, struct weir_error *err)
{
    char **keys;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_latest,
        WEIR_BINDS(WEIR_BIND_TEXT("ion", ion), WEIR_BIND_INT("max", WEIR_KPIS_LATEST_MAX)), arena,
        &keys, &n, err));
    struct weir_kpi *items = n > 0 ? WEIR_ARENA_ARRAY(arena, n, struct weir_kpi) : NULL;
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_txn_get(txn, &weir_kpi_resource, keys[i], arena, &items[i], err));
    }
    *out = items;
    *out_n = n;
    return WEIR_OK;
}
