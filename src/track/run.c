#include "track/run.h"

#include "base/grow.h"
#include "base/secret.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

#define PARAMETERS_OF_RECORD_MAX 256
#define HIDDEN                   "env.* files.* source.token"

// clang-format off
static const struct weir_field run_fields[] = {
    WEIR_FIELD(weir_run, id,              TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_run, name,            TEXT, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_run, project,         TEXT, WEIR_FIELD_NAME, "", "Project it belongs to"),
    WEIR_FIELD(weir_run, experiment,      INT,  0, "", "Number of its experiment"),
    WEIR_FIELD(weir_run, kind,            TEXT, 0, "", "train, evaluate …; external: Weir did not start it"),
    WEIR_FIELD(weir_run, status,          TEXT, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "RUNNING, SCHEDULED, FINISHED, FAILED or KILLED"),
    WEIR_FIELD(weir_run, job,             TEXT, 0, "", "Job that does it"),
    WEIR_FIELD(weir_run, ion,             TEXT, 0, "", "ION it works for"),
    WEIR_FIELD(weir_run, pipeline,        TEXT, 0, "", "Pipeline of that ION"),
    WEIR_FIELD(weir_run, dataset,         TEXT, 0, "", "Dataset it reads"),
    WEIR_FIELD(weir_run, dataset_version, INT,  0, "", "Version of the dataset; 0 = unknown"),
    WEIR_FIELD(weir_run, code_version,    TEXT, 0, "", "Version of the program"),
    WEIR_FIELD_HIDING(weir_run, parameters, 0, HIDDEN, "", "What it was started with; secrets are shown as ***"),
    WEIR_FIELD(weir_run, summary,         JSON, WEIR_FIELD_MUTABLE, "", "What came out"),
    WEIR_FIELD(weir_run, artifact_root,   TEXT, WEIR_FIELD_READ_ONLY, "", "Where its artifacts are; null = with the server"),
    WEIR_FIELD_SIZED(weir_run, user,      TEXT, 0, 256, "", "Whom its program names as its user"),
    WEIR_FIELD(weir_run, created_by,      TEXT, WEIR_FIELD_READ_ONLY, "", "Who started it"),
    WEIR_FIELD(weir_run, created_ms,      TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_run, start_ms,        TIME, 0, "ms", "When it began, as its program says"),
    WEIR_FIELD(weir_run, finished_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it ended"),
    WEIR_FIELD(weir_run, deleted_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was deleted; null = it is there"),
};
// clang-format on

const struct weir_resource weir_run_resource = WEIR_RESOURCE("run", "runs", weir_run, run_fields);

const struct weir_noun weir_noun_run = {
    "runs", .project = "project", WEIR_SUBJECT(run, id),
    .stays = "goes with its job, else made by people and programs",
    .captured = WEIR_CAPTURED("runs", 150, .resource = &weir_run_resource, .by = "ion",
                              .time = "created_ms", .since_always = true, .ended = "finished_ms")};

static const char sql_number[] = "SELECT number FROM runs WHERE id = :id";
static const char sql_move[] =
    "UPDATE runs SET experiment = :experiment WHERE id = :id AND experiment <> :experiment"
    " AND project = (SELECT e.project FROM experiments e WHERE e.id = :experiment)"
    " AND NOT EXISTS (SELECT 1 FROM latest_metrics m JOIN track_keys k ON k.id = m.key"
    " WHERE m.run = runs.number AND k.name NOT LIKE 'system/%')";
static const char sql_key[] = "SELECT id FROM track_keys WHERE name = :name";
static const char sql_key_add[] = "INSERT INTO track_keys (name) VALUES (:name)";
static const char sql_parameter_add[] =
    "INSERT INTO run_parameters (run, key, value) VALUES (:run, :key, :value)"
    " ON CONFLICT (run, key) DO NOTHING";
static const char sql_parameter_get[] =
    "SELECT value FROM run_parameters WHERE run = :run AND key = :key";
static const char sql_tag_put[] =
    "INSERT INTO run_tags (run, key, value) VALUES (:run, :key, :value)"
    " ON CONFLICT (run, key) DO UPDATE SET value = excluded.value";
static const char sql_tag_delete[] = "DELETE FROM run_tags WHERE run = :run AND key ="
                                     " (SELECT id FROM track_keys WHERE name = :name)";
static const char sql_parameters[] =
    "SELECT k.name, p.value FROM run_parameters p JOIN track_keys k ON k.id = p.key"
    " WHERE p.run = :run ORDER BY k.name";
static const char sql_tags[] =
    "SELECT k.name, t.value FROM run_tags t JOIN track_keys k ON k.id = t.key"
    " WHERE t.run = :run ORDER BY k.name";

weir_status weir_run_number(struct weir_txn *txn, const char *id, int64_t *out,
                            struct weir_error *err)
{
    WEIR_TRY(
        weir_txn_query_int(txn, sql_number, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), 0, out, err));
    return *out != 0 ? WEIR_OK
                     : weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no run \"%.256s\"", id);
}

weir_status weir_run_move(struct weir_txn *txn, const char *id, int64_t experiment,
                          struct weir_error *err)
{
    return weir_txn_exec(
        txn, sql_move,
        WEIR_BINDS(WEIR_BIND_TEXT("id", id), WEIR_BIND_INT("experiment", experiment)), NULL, err);
}

weir_status weir_track_key(struct weir_txn *txn, const char *name, int64_t *out,
                           struct weir_error *err)
{
    const struct weir_bind bind = WEIR_BIND_TEXT("name", name);
    size_t len = strlen(name);
    if (len == 0 || len > WEIR_RUN_KEY_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a name of a parameter, a tag or a measurement has 1 to %d bytes, "
                              "not %zu: \"%.80s\"",
                              WEIR_RUN_KEY_MAX, len, name);
    }
    WEIR_TRY(weir_txn_query_int(txn, sql_key, &bind, 1, 0, out, err));
    if (*out == 0) {
        WEIR_TRY(weir_txn_exec(txn, sql_key_add, &bind, 1, NULL, err));
        WEIR_TRY(weir_txn_query_int(txn, sql_key, &bind, 1, 0, out, err));
    }
    return WEIR_OK;
}

static weir_status check_value(const char *what, const struct weir_tag *tag, size_t max_bytes,
                               struct weir_error *err)
{
    size_t len = strlen(tag->value);
    return len <= max_bytes
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "the value of %s \"%.80s\" has %zu bytes; at most %zu are allowed",
                                what, tag->key, len, max_bytes);
}

/* The row is there: with the same value, or the parameter would change. */
static weir_status check_same(struct weir_txn *txn, int64_t run, int64_t key,
                              const struct weir_tag *parameter, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    char **values;
    size_t n;
    weir_arena_init(&arena, 0);
    WEIR_TRY(weir_txn_query_texts(txn, sql_parameter_get,
                                  WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_INT("key", key)),
                                  &arena, &values, &n, err));
    if (n > 0 && strcmp(values[0], parameter->value) != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "Changing param values is not allowed. Param with key='%.80s' was "
                              "already logged with value='%.80s'. Attempted logging new value "
                              "'%.80s'.",
                              parameter->key, values[0], parameter->value);
    }
    return WEIR_OK;
}

weir_status weir_run_parameters_put(struct weir_txn *txn, int64_t run,
                                    const struct weir_tag *parameters, size_t n,
                                    struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t key, n_added;
        WEIR_TRY(check_value("parameter", &parameters[i], WEIR_RUN_PARAMETER_MAX, err));
        WEIR_TRY(weir_track_key(txn, parameters[i].key, &key, err));
        WEIR_TRY(weir_txn_exec(txn, sql_parameter_add,
                               WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_INT("key", key),
                                          WEIR_BIND_TEXT("value", parameters[i].value)),
                               &n_added, err));
        if (n_added == 0) {
            WEIR_TRY(check_same(txn, run, key, &parameters[i], err));
        }
    }
    return WEIR_OK;
}

weir_status weir_run_tags_put(struct weir_txn *txn, int64_t run, const struct weir_tag *tags,
                              size_t n, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t key;
        WEIR_TRY(check_value("tag", &tags[i], WEIR_RUN_TAG_MAX, err));
        WEIR_TRY(weir_track_key(txn, tags[i].key, &key, err));
        WEIR_TRY(weir_txn_exec(txn, sql_tag_put,
                               WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_INT("key", key),
                                          WEIR_BIND_TEXT("value", tags[i].value)),
                               NULL, err));
    }
    return WEIR_OK;
}

weir_status weir_run_tag_delete(struct weir_txn *txn, int64_t run, const char *key,
                                struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_exec(txn, sql_tag_delete,
                           WEIR_BINDS(WEIR_BIND_INT("run", run), WEIR_BIND_TEXT("name", key)), &n,
                           err));
    return n > 0 ? WEIR_OK
                 : weir_error_set(err, WEIR_ERR_NOT_FOUND, "the run has no tag \"%.250s\"", key);
}

static weir_status read_pairs(struct weir_txn *txn, const char *sql, int64_t run,
                              struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql, WEIR_BINDS(WEIR_BIND_INT("run", run)), &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
        (*out)[(*out_n)++] =
            (struct weir_tag){weir_stmt_text(stmt, 0, arena), weir_stmt_text(stmt, 1, arena)};
        WEIR_TRY(weir_arena_check(arena, "a run's parameters or tags", err));
    }
}

weir_status weir_run_parameters(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                                struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    return read_pairs(txn, sql_parameters, run, arena, out, out_n, err);
}

weir_status weir_run_tags(struct weir_txn *txn, int64_t run, struct weir_arena *arena,
                          struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    return read_pairs(txn, sql_tags, run, arena, out, out_n, err);
}

/* ---- a new run ------------------------------------------------------------------------------- */

struct flat {
    struct weir_arena *arena;
    struct weir_tag *items;
    size_t n;
};

static void flatten(struct flat *flat, const char *prefix, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char *name = weir_arena_printf(flat->arena, "%s%s", prefix, key);
        bool is_hidden =
            json_is_string(value) && strcmp(json_string_value(value), WEIR_SECRET_MASK) == 0;
        if (json_is_object(value)) {
            flatten(flat, weir_arena_printf(flat->arena, "%s.", name), value);
            continue;
        }
        char *text = json_is_string(value)
                         ? weir_arena_strdup(flat->arena, json_string_value(value))
                         : weir_json_text(value, flat->arena);
        if (is_hidden || json_is_null(value) || *name == '\0' || text == NULL ||
            strlen(name) > WEIR_RUN_KEY_MAX || strlen(text) > WEIR_RUN_PARAMETER_MAX ||
            flat->n == PARAMETERS_OF_RECORD_MAX) {
            continue;
        }
        flat->items[flat->n++] = (struct weir_tag){name, text};
    }
}

void weir_run_parameters_of(const char *text, struct weir_arena *arena, struct weir_tag **out,
                            size_t *out_n)
{
    WEIR_AUTO(weir_json_auto_free) json_t *parameters = NULL;
    struct weir_error ignored;
    struct flat flat = {arena, NULL, 0};
    if (text != NULL &&
        weir_json_parse(text, strlen(text), "parameters", &parameters, &ignored) == WEIR_OK) {
        flat.items = WEIR_ARENA_ARRAY(arena, PARAMETERS_OF_RECORD_MAX, struct weir_tag);
        weir_secrets_mask(parameters, HIDDEN);
        flatten(&flat, "", parameters);
    }
    *out = flat.items;
    *out_n = flat.n;
}

static weir_status put_parameters_of(struct weir_txn *txn, int64_t number, const char *text,
                                     struct weir_arena *arena, struct weir_error *err)
{
    struct weir_tag *items;
    size_t n;
    weir_run_parameters_of(text, arena, &items, &n);
    return weir_run_parameters_put(txn, number, items, n, err);
}

weir_status weir_run_insert(struct weir_txn *txn, const struct weir_run *run, int64_t *out_number,
                            struct weir_error *err)
{
    WEIR_TRY(weir_txn_insert(txn, &weir_run_resource, run, err));
    WEIR_TRY(weir_run_number(txn, run->id, out_number, err));
    if (run->parameters == NULL) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return put_parameters_of(txn, *out_number, run->parameters, &arena, err);
}
