#include "track/logged_model.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_logged_model, id,             TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "Identifier"),
    WEIR_FIELD(weir_logged_model, project,        TEXT, WEIR_FIELD_READ_ONLY, "", "Project it belongs to"),
    WEIR_FIELD(weir_logged_model, experiment,     INT,  WEIR_FIELD_READ_ONLY, "", "Experiment"),
    WEIR_FIELD(weir_logged_model, run,            TEXT, WEIR_FIELD_READ_ONLY, "", "Run whose artifacts its files are"),
    WEIR_FIELD(weir_logged_model, source_run,     TEXT, WEIR_FIELD_READ_ONLY, "", "Run that made it; null: its maker named none"),
    WEIR_FIELD_SIZED(weir_logged_model, name,     TEXT, WEIR_FIELD_READ_ONLY, WEIR_LOGGED_MODEL_NAME_MAX, "", "Name"),
    WEIR_FIELD(weir_logged_model, type,           TEXT, WEIR_FIELD_READ_ONLY, "", "What its maker says it is"),
    WEIR_FIELD(weir_logged_model, status,         TEXT, WEIR_FIELD_READ_ONLY, "", "PENDING, READY or FAILED"),
    WEIR_FIELD(weir_logged_model, status_message, TEXT, WEIR_FIELD_READ_ONLY, "", "Why"),
    WEIR_FIELD(weir_logged_model, created_by,     TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_logged_model, created_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(weir_logged_model, updated_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was changed last"),
    WEIR_FIELD(weir_logged_model, deleted_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was deleted; 0: it is there"),
};
// clang-format on

const struct weir_resource weir_logged_model_resource =
    WEIR_RESOURCE("logged model", "logged_models", weir_logged_model, fields);

bool weir_logged_model_is_id(const char *text)
{
    size_t n = 0;
    if (strncmp(text, "m-", 2) != 0) {
        return false;
    }
    for (const char *c = text + 2; *c != '\0' && n < WEIR_LOGGED_MODEL_ID_BYTES; c++) {
        n += isdigit((unsigned char)*c) || (*c >= 'a' && *c <= 'f')
                 ? (size_t)1
                 : (size_t)WEIR_LOGGED_MODEL_ID_BYTES;
    }
    return n == WEIR_LOGGED_MODEL_ID_BYTES - 3;
}

weir_status weir_logged_model_get(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                  struct weir_logged_model *out, struct weir_error *err)
{
    struct weir_error missing = {0};
    weir_status status = weir_txn_get(txn, &weir_logged_model_resource, id, arena, out, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "Logged model with ID '%.100s' not found.", id);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", missing.message);
}

/* ---- parameters and tags --------------------------------------------------------------------- */

/** The pairs of one kind. */
static const struct pairs {
    const char *what, *put, *value, *list, *count;
} params =
    {
        "parameter",
        "INSERT INTO logged_model_params (model, key, value) VALUES (:model, :key, :value)",
        "SELECT value FROM logged_model_params WHERE model = :model AND key = :key",
        "SELECT key, value FROM logged_model_params WHERE model = :model ORDER BY key",
        "SELECT count(*) FROM logged_model_params WHERE model = :model",
},
  tags = {
      "tag",
      "INSERT INTO logged_model_tags (model, key, value) VALUES (:model, :key, :value)"
      " ON CONFLICT (model, key) DO UPDATE SET value = excluded.value",
      "SELECT value FROM logged_model_tags WHERE model = :model AND key = :key",
      "SELECT key, value FROM logged_model_tags WHERE model = :model ORDER BY key",
      "SELECT count(*) FROM logged_model_tags WHERE model = :model",
};

static const char sql_untag[] = "DELETE FROM logged_model_tags WHERE model = :model AND key = :key";

/* What it has there already; NULL: nothing. */
static weir_status value_of(struct weir_txn *txn, const struct pairs *pairs, const char *model,
                            const char *key, struct weir_arena *arena, const char **out,
                            struct weir_error *err)
{
    char **found;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(
        txn, pairs->value, WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_TEXT("key", key)),
        arena, &found, &n, err));
    *out = n > 0 ? found[0] : NULL;
    return WEIR_OK;
}

static weir_status check_pair(struct weir_txn *txn, const struct pairs *pairs, const char *model,
                              const struct weir_tag *pair, bool is_there, struct weir_error *err)
{
    int64_t n = 0;
    if (pair->key[0] == '\0' || strlen(pair->key) > WEIR_RUN_KEY_MAX ||
        strlen(pair->value) > WEIR_LOGGED_MODEL_VALUE_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "%s \"%.60s\": a key has 1 to %d bytes, a value at most %d",
            pairs->what, pair->key, WEIR_RUN_KEY_MAX, WEIR_LOGGED_MODEL_VALUE_MAX);
    }
    if (!is_there) {
        WEIR_TRY(weir_txn_query_int(txn, pairs->count, WEIR_BINDS(WEIR_BIND_TEXT("model", model)),
                                    0, &n, err));
    }
    return n < WEIR_LOGGED_MODEL_PAIRS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "%s \"%.60s\": the model has %d already",
                                pairs->what, pair->key, WEIR_LOGGED_MODEL_PAIRS_MAX);
}

static weir_status put_pair(struct weir_txn *txn, const struct pairs *pairs, const char *model,
                            const struct weir_tag *pair, struct weir_arena *arena,
                            struct weir_error *err)
{
    const char *old;
    WEIR_TRY(value_of(txn, pairs, model, pair->key, arena, &old, err));
    WEIR_TRY(check_pair(txn, pairs, model, pair, old != NULL, err));
    if (old != NULL && strcmp(old, pair->value) == 0) {
        return WEIR_OK;
    }
    if (old != NULL && pairs == &params) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "Changing param values is not allowed: param '%.60s' of logged model "
                              "%s is '%.100s', not '%.100s'.",
                              pair->key, model, old, pair->value);
    }
    return weir_txn_exec(txn, pairs->put,
                         WEIR_BINDS(WEIR_BIND_TEXT("model", model),
                                    WEIR_BIND_TEXT("key", pair->key),
                                    WEIR_BIND_TEXT("value", pair->value)),
                         NULL, err);
}

static weir_status put_pairs(struct weir_txn *txn, const struct pairs *pairs, const char *model,
                             const struct weir_tag *list, size_t n, struct weir_error *err)
{
    struct weir_arena arena;
    weir_status status = WEIR_OK;
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < n && status == WEIR_OK; i++) {
        status = put_pair(txn, pairs, model, &list[i], &arena, err);
    }
    weir_arena_fini(&arena);
    return status;
}

static weir_status list_pairs(struct weir_txn *txn, const struct pairs *pairs, const char *model,
                              struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_tag *list = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(
        weir_stmt_open(txn, pairs->list, WEIR_BINDS(WEIR_BIND_TEXT("model", model)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        weir_arena_grow(arena, &list, sizeof *list, n, &cap);
        list[n++] =
            (struct weir_tag){weir_stmt_text(stmt, 0, arena), weir_stmt_text(stmt, 1, arena)};
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_logged_model_params_put(struct weir_txn *txn, const char *model,
                                         const struct weir_tag *list, size_t n,
                                         struct weir_error *err)
{
    return put_pairs(txn, &params, model, list, n, err);
}

weir_status weir_logged_model_params(struct weir_txn *txn, const char *model,
                                     struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                                     struct weir_error *err)
{
    return list_pairs(txn, &params, model, arena, out, out_n, err);
}

weir_status weir_logged_model_tags_put(struct weir_txn *txn, const char *model,
                                       const struct weir_tag *list, size_t n,
                                       struct weir_error *err)
{
    return put_pairs(txn, &tags, model, list, n, err);
}

weir_status weir_logged_model_tag_delete(struct weir_txn *txn, const char *model, const char *key,
                                         struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_exec(txn, sql_untag,
                           WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_TEXT("key", key)),
                           &n, err));
    return n > 0 ? WEIR_OK
                 : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "No tag with key '%.250s' found for model with ID '%.100s'.", key,
                                  model);
}

weir_status weir_logged_model_tags(struct weir_txn *txn, const char *model,
                                   struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                                   struct weir_error *err)
{
    return list_pairs(txn, &tags, model, arena, out, out_n, err);
}

/* ---- measurements ---------------------------------------------------------------------------- */

static const char sql_put_metric[] =
    "INSERT INTO logged_model_metrics (model, key, run, dataset, digest, step, time_ms, value,"
    " is_nan) VALUES (:model, :key, :run, :dataset, :digest, :step, :time, :value, :is_nan)"
    " ON CONFLICT (model, key, run, dataset, digest) DO UPDATE SET step = excluded.step,"
    " time_ms = excluded.time_ms, value = excluded.value, is_nan = excluded.is_nan"
    " WHERE (excluded.step, excluded.time_ms) >="
    " (logged_model_metrics.step, logged_model_metrics.time_ms)";
static const char sql_metrics[] =
    "SELECT key, run, dataset, digest, step, time_ms, value, is_nan FROM logged_model_metrics"
    " WHERE model = :model ORDER BY key, run, dataset, digest LIMIT :n";

weir_status weir_logged_model_metric_put(struct weir_txn *txn,
                                         const struct weir_logged_model_metric *metric,
                                         struct weir_error *err)
{
    const struct weir_metric *point = &metric->metric;
    bool is_nan = isnan(point->value);
    double value = is_nan                ? 0
                   : isinf(point->value) ? copysign(1.7976931348623157e308, point->value)
                                         : point->value;
    return weir_txn_exec(
        txn, sql_put_metric,
        WEIR_BINDS(WEIR_BIND_TEXT("model", metric->model), WEIR_BIND_TEXT("key", point->key),
                   WEIR_BIND_TEXT("run", metric->run), WEIR_BIND_TEXT("dataset", metric->dataset),
                   WEIR_BIND_TEXT("digest", metric->digest), WEIR_BIND_INT("step", point->step),
                   WEIR_BIND_INT("time", point->time_ms), WEIR_BIND_F64("value", value),
                   WEIR_BIND_INT("is_nan", is_nan)),
        NULL, err);
}

weir_status weir_logged_model_metrics(struct weir_txn *txn, const char *model,
                                      struct weir_arena *arena,
                                      struct weir_logged_model_metric **out, size_t *out_n,
                                      struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_logged_model_metric *list = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_metrics,
                            WEIR_BINDS(WEIR_BIND_TEXT("model", model),
                                       WEIR_BIND_INT("n", WEIR_LOGGED_MODEL_METRIC_MAX)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        weir_arena_grow(arena, &list, sizeof *list, n, &cap);
        list[n++] = (struct weir_logged_model_metric){
            .run = weir_stmt_text(stmt, 1, arena),
            .dataset = weir_stmt_text(stmt, 2, arena),
            .digest = weir_stmt_text(stmt, 3, arena),
            .metric = {.key = weir_stmt_text(stmt, 0, arena),
                       .step = weir_stmt_int(stmt, 4),
                       .time_ms = weir_stmt_int(stmt, 5),
                       .value =
                           weir_stmt_int(stmt, 7) != 0 ? (double)NAN : weir_stmt_f64(stmt, 6)}};
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static const char sql_use[] =
    "INSERT INTO run_logged_models (run, is_output, model, step) VALUES (:run, :is_output, :model,"
    " :step) ON CONFLICT (run, is_output, model) DO UPDATE SET step = excluded.step";
static const char sql_uses[] =
    "SELECT model, is_output, step FROM run_logged_models WHERE run = :run ORDER BY step, model";

weir_status weir_logged_model_use_put(struct weir_txn *txn, const char *run,
                                      const struct weir_logged_model_use *use,
                                      struct weir_error *err)
{
    return weir_txn_exec(txn, sql_use,
                         WEIR_BINDS(WEIR_BIND_TEXT("run", run), WEIR_BIND_TEXT("model", use->model),
                                    WEIR_BIND_INT("is_output", use->is_output),
                                    WEIR_BIND_INT("step", use->step)),
                         NULL, err);
}

weir_status weir_logged_model_uses(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                   struct weir_logged_model_use **out, size_t *out_n,
                                   struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_logged_model_use *list = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_uses, WEIR_BINDS(WEIR_BIND_TEXT("run", run)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        weir_arena_grow(arena, &list, sizeof *list, n, &cap);
        list[n++] = (struct weir_logged_model_use){.model = weir_stmt_text(stmt, 0, arena),
                                                   .is_output = weir_stmt_int(stmt, 1) != 0,
                                                   .step = weir_stmt_int(stmt, 2)};
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}
