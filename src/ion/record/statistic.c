#include "ion/statistic.h"

#include "base/json.h"
#include "base/macros.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

// clang-format off
static const struct weir_field statistic_fields[] = {
    WEIR_FIELD(weir_statistic, seq,      INT,  WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD_SIZED(weir_statistic, id, TEXT, 0, 64, "", "Identifier of whoever tells it: the same again changes nothing; a new one if not given"),
    WEIR_FIELD(weir_statistic, ion,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD_SIZED(weir_statistic, pipeline, TEXT, WEIR_FIELD_COLUMN, 128, "", "Pipeline; a task's own if not given"),
    WEIR_FIELD(weir_statistic, job,      TEXT, WEIR_FIELD_READ_ONLY, "", "Job whose task told it"),
    WEIR_FIELD_SIZED(weir_statistic, name, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 128, "", "What it is about"),
    WEIR_FIELD_SIZED(weir_statistic, kind, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, 32, "", "number, text, lines, bars, table, graph, heat-map, distribution, opaque"),
    WEIR_FIELD_SIZED(weir_statistic, value, JSON, WEIR_FIELD_REQUIRED, WEIR_STATISTIC_VALUE_MAX_BYTES, "", "Its value, in the form of its kind"),
    WEIR_FIELD(weir_statistic, model_version, INT, 0, "", "Of which model version; 0: of none"),
    WEIR_FIELD(weir_statistic, actor,    TEXT, WEIR_FIELD_READ_ONLY, "", "Who told it"),
    WEIR_FIELD(weir_statistic, time_ms,  TIME, WEIR_FIELD_COLUMN, "ms", "When it held; now if not given"),
};
// clang-format on

const struct weir_resource weir_statistic_resource =
    WEIR_RESOURCE("statistic", "statistics", weir_statistic, statistic_fields);

const struct weir_noun weir_noun_statistic = {
    "statistics", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE("statistics", "What programs of IONs told about themselves",
                        "The oldest go first.", 120, {WEIR_DAYS(90), WEIR_MB(20)}, 1000, 5,
                        .is_of_project = true, .by = WEIR_ROWS_NUMBERED, .time = "time_ms")},
    .captured = WEIR_CAPTURED("statistics", 140, .resource = &weir_statistic_resource, .by = "ion",
                              .time = "time_ms")};

/* ---- kinds ------------------------------------------------------------------------------------ */

static bool are_all(const json_t *list, bool (*is)(const json_t *value))
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if (!is(value)) {
            return false;
        }
    }
    return json_is_array(list);
}

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_any(const json_t *value)
{
    return value != NULL;
}

static bool are_numbers(const json_t *list)
{
    return are_all(list, is_number);
}

static bool is_map_of(const json_t *map, bool (*is)(const json_t *value))
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value)
    {
        if (!is(value)) {
            return false;
        }
    }
    return json_is_object(map) && json_object_size(map) > 0;
}

static bool is_lines(const json_t *value)
{
    return is_map_of(value, is_number);
}

static bool is_bars(const json_t *value)
{
    return are_all(json_object_get(value, "labels"), is_text) &&
           are_numbers(json_object_get(value, "values")) &&
           json_array_size(json_object_get(value, "labels")) ==
               json_array_size(json_object_get(value, "values"));
}

static bool is_row(const json_t *row)
{
    return json_is_array(row);
}

/* Rows as long as there are columns. */
static bool is_table(const json_t *value)
{
    const json_t *columns = json_object_get(value, "columns"),
                 *rows = json_object_get(value, "rows");
    size_t i;
    json_t *row;
    if (!are_all(columns, is_text) || !are_all(rows, is_row)) {
        return false;
    }
    json_array_foreach(rows, i, row)
    {
        if (json_array_size(row) != json_array_size(columns)) {
            return false;
        }
    }
    return true;
}

static bool is_graph(const json_t *value)
{
    const json_t *x = json_object_get(value, "x"), *lines = json_object_get(value, "y");
    const char *key;
    json_t *y;
    json_object_foreach((json_t *)lines, key, y)
    {
        if (!are_numbers(y) || json_array_size(y) != json_array_size(x)) {
            return false;
        }
    }
    return are_numbers(x) && json_is_object(lines);
}

static bool is_heat_map(const json_t *value)
{
    const json_t *rows = json_object_get(value, "rows"),
                 *columns = json_object_get(value, "columns"),
                 *cells = json_object_get(value, "cells");
    size_t i;
    json_t *row;
    if (!are_all(rows, is_text) || !are_all(columns, is_text) || !json_is_array(cells) ||
        json_array_size(cells) != json_array_size(rows)) {
        return false;
    }
    json_array_foreach(cells, i, row)
    {
        if (!are_numbers(row) || json_array_size(row) != json_array_size(columns)) {
            return false;
        }
    }
    return true;
}

/* Numbers between edges, one fewer than there are edges; or counts by category. */
static bool is_distribution(const json_t *value)
{
    const json_t *edges = json_object_get(value, "edges"),
                 *counts = json_object_get(value, "counts");
    return json_is_object(counts) ? is_map_of(counts, is_number)
                                  : are_numbers(edges) && are_numbers(counts) &&
                                        json_array_size(edges) == json_array_size(counts) + 1;
}

/* What a value of a kind looks like. */
static const struct kind {
    const char *name, *doc;
    bool (*is_form)(const json_t *value);
} kinds[] = {
    {"number", "a number", is_number},
    {"text", "a text", is_text},
    {"lines", "{NAME: number}, a point of each line", is_lines},
    {"bars", "{labels: [text], values: [number]}", is_bars},
    {"table", "{columns: [text], rows: [[…]]}", is_table},
    {"graph", "{x: [number], y: {NAME: [number]}}", is_graph},
    {"heat-map", "{rows: [text], columns: [text], cells: [[number]]}", is_heat_map},
    {"distribution", "{edges: [number], counts: [number]}, or {counts: {CATEGORY: number}}",
     is_distribution},
    {"opaque", "any JSON", is_any},
};

static weir_status check_form(const struct weir_statistic *statistic, struct weir_error *err)
{
    const struct kind *kind = NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds) && kind == NULL; i++) {
        kind = strcmp(kinds[i].name, statistic->kind) == 0 ? &kinds[i] : NULL;
    }
    if (kind == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.kind: \"%.32s\" is no kind of statistic: expected number, text, "
                              "lines, bars, table, graph, heat-map, distribution or opaque",
                              statistic->kind);
    }
    json_t *value = NULL;
    WEIR_TRY(weir_json_parse(statistic->value, strlen(statistic->value), "$.value", &value, err));
    bool is_form = kind->is_form(value);
    json_decref(value);
    return is_form
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "$.value: expected %s, as of kind \"%s\"",
                                kind->doc, kind->name);
}

/* ---- the store -------------------------------------------------------------------------------- */

weir_status weir_statistic_add(struct weir_txn *txn, struct weir_statistic *statistic,
                               int64_t now_ms, bool *out_is_new, struct weir_error *err)
{
    int64_t n_there;
    *out_is_new = false;
    if (statistic->time_ms <= 0 || statistic->time_ms > now_ms + DAY_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.time_ms: expected a time after 1970 and not in the future");
    }
    WEIR_TRY(check_form(statistic, err));
    WEIR_TRY(weir_txn_query_int(
        txn, "SELECT count(*) FROM statistics WHERE ion = :ion AND id = :id",
        WEIR_BINDS(WEIR_BIND_TEXT("ion", statistic->ion), WEIR_BIND_TEXT("id", statistic->id)), 0,
        &n_there, err));
    if (n_there > 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_next(txn, "statistics", &statistic->seq, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_statistic_resource, statistic, err));
    *out_is_new = true;
    return WEIR_OK;
}
