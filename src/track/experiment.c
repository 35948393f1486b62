#include "track/experiment.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// clang-format off
static const struct weir_field experiment_fields[] = {
    WEIR_FIELD(weir_experiment, id,         INT,  WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number"),
    WEIR_FIELD_SIZED(weir_experiment, name, TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, WEIR_EXPERIMENT_NAME_MAX, "", "Name, once in a project"),
    WEIR_FIELD(weir_experiment, project,    TEXT, WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Project it belongs to"),
    WEIR_FIELD_SIZED(weir_experiment, artifact_location, TEXT, 0, WEIR_EXPERIMENT_LOCATION_MAX, "", "Where its runs' artifacts go; null = to the server"),
    WEIR_FIELD(weir_experiment, created_by, TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_experiment, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_experiment, updated_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was changed last"),
    WEIR_FIELD(weir_experiment, deleted_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was deleted; null = it is there"),
};
// clang-format on

const struct weir_resource weir_experiment_resource =
    WEIR_RESOURCE("experiment", "experiments", weir_experiment, experiment_fields);

static const char sql_find[] =
    "SELECT id FROM experiments WHERE project = :project AND name = :name";
static const char sql_delete_runs[] =
    "UPDATE runs SET deleted_ms = :now WHERE experiment = :id AND deleted_ms = 0";
static const char sql_restore_runs[] =
    "UPDATE runs SET deleted_ms = 0 WHERE experiment = :id AND deleted_ms = :deleted";
static const char sql_touch[] = "UPDATE experiments SET updated_ms = :now WHERE id = :id";
static const char sql_tag[] =
    "INSERT INTO experiment_tags (experiment, key, value) VALUES (:id, :key, :value)"
    " ON CONFLICT (experiment, key) DO UPDATE SET value = excluded.value";
static const char sql_untag[] = "DELETE FROM experiment_tags WHERE experiment = :id AND key = :key";
static const char sql_tags[] =
    "SELECT key, value FROM experiment_tags WHERE experiment = :id ORDER BY key";

static weir_status check_name(const char *name, struct weir_error *err)
{
    size_t len = name != NULL ? strlen(name) : 0;
    return len > 0 && len <= WEIR_EXPERIMENT_NAME_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "an experiment's name has 1 to %d bytes, not %zu",
                                WEIR_EXPERIMENT_NAME_MAX, len);
}

weir_status weir_experiment_create(struct weir_txn *txn, const struct weir_experiment *experiment,
                                   int64_t *out_id, struct weir_error *err)
{
    struct weir_experiment row = *experiment;
    bool is_first = row.project != NULL && strcmp(row.project, "default") == 0 &&
                    row.name != NULL && strcmp(row.name, WEIR_EXPERIMENT_DEFAULT) == 0;
    WEIR_TRY(check_name(row.name, err));
    row.id = 0;
    row.updated_ms = row.created_ms;
    row.deleted_ms = 0;
    if (!is_first) {
        WEIR_TRY(weir_txn_next(txn, "experiment", &row.id, err));
    }
    weir_status status = weir_txn_insert(txn, &weir_experiment_resource, &row, err);
    if (status == WEIR_ERR_EXISTS) {
        return weir_error_set(err, status, "project \"%s\" has an experiment \"%.200s\" already",
                              row.project != NULL ? row.project : "", row.name);
    }
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(err, WEIR_ERR_INVALID, "there is no project \"%.80s\"", row.project);
    }
    WEIR_TRY(status);
    *out_id = row.id;
    return WEIR_OK;
}

weir_status weir_experiment_ensure(struct weir_txn *txn, const char *project, const char *name,
                                   const char *actor, int64_t now_ms, int64_t *out_id,
                                   struct weir_error *err)
{
    const struct weir_experiment made = {.project = (char *)project,
                                         .name = (char *)name,
                                         .created_by = (char *)actor,
                                         .created_ms = now_ms};
    WEIR_TRY(weir_txn_query_int(
        txn, sql_find, WEIR_BINDS(WEIR_BIND_TEXT("project", project), WEIR_BIND_TEXT("name", name)),
        -1, out_id, err));
    return *out_id >= 0 ? WEIR_OK : weir_experiment_create(txn, &made, out_id, err);
}

weir_status weir_experiment_get(struct weir_txn *txn, int64_t id, struct weir_arena *arena,
                                struct weir_experiment *out, struct weir_error *err)
{
    char key[24];
    (void)snprintf(key, sizeof key, "%" PRId64, id);
    return weir_txn_get(txn, &weir_experiment_resource, key, arena, out, err);
}

weir_status weir_experiment_find(struct weir_txn *txn, const char *project, const char *name,
                                 struct weir_arena *arena, struct weir_experiment *out,
                                 struct weir_error *err)
{
    int64_t id;
    WEIR_TRY(weir_txn_query_int(
        txn, sql_find, WEIR_BINDS(WEIR_BIND_TEXT("project", project), WEIR_BIND_TEXT("name", name)),
        -1, &id, err));
    return id >= 0
               ? weir_experiment_get(txn, id, arena, out, err)
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "project \"%.80s\" has no experiment \"%.200s\"", project, name);
}

static weir_status get_and_save(struct weir_txn *txn, int64_t id, const char *name, int64_t now_ms,
                                struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_experiment row;
    weir_arena_init(&arena, 0);
    weir_status status = weir_experiment_get(txn, id, &arena, &row, err);
    if (status == WEIR_OK && row.deleted_ms != 0) {
        status = weir_error_set(err, WEIR_ERR_CONFLICT,
                                "experiment %" PRId64 " is deleted: restore it first", id);
    }
    if (status == WEIR_OK) {
        row.name = (char *)name;
        row.updated_ms = now_ms;
        status = weir_txn_update(txn, &weir_experiment_resource, &row,
                                 WEIR_FIELDS("name", "updated_ms"), err);
    }
    if (status == WEIR_ERR_EXISTS) {
        status = weir_error_set(err, status, "project \"%s\" has an experiment \"%.200s\" already",
                                row.project, name);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_experiment_rename(struct weir_txn *txn, int64_t id, const char *name,
                                   int64_t now_ms, struct weir_error *err)
{
    WEIR_TRY(check_name(name, err));
    return get_and_save(txn, id, name, now_ms, err);
}

/* Runs that were deleted before it stay so when it is restored: they have another time. */
static weir_status set_deleted(struct weir_txn *txn, int64_t id, bool is_deleted, int64_t now_ms,
                               struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_experiment row;
    weir_arena_init(&arena, 0);
    weir_status status = weir_experiment_get(txn, id, &arena, &row, err);
    bool is_default = status == WEIR_OK && strcmp(row.name, WEIR_EXPERIMENT_DEFAULT) == 0;
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    if (is_default && is_deleted) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "experiment %" PRId64 " is the project's \"" WEIR_EXPERIMENT_DEFAULT
                              "\": runs that name no other go there",
                              id);
    }
    if (is_deleted == (row.deleted_ms != 0)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "experiment %" PRId64 " is %s", id,
                              is_deleted ? "deleted already" : "not deleted");
    }
    if (is_deleted) {
        status = weir_txn_exec(txn, sql_delete_runs,
                               WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("id", id)),
                               NULL, err);
    } else {
        status = weir_txn_exec(
            txn, sql_restore_runs,
            WEIR_BINDS(WEIR_BIND_INT("id", id), WEIR_BIND_INT("deleted", row.deleted_ms)), NULL,
            err);
    }
    WEIR_TRY(status);
    row.deleted_ms = is_deleted ? now_ms : 0;
    row.updated_ms = now_ms;
    return weir_txn_update(txn, &weir_experiment_resource, &row,
                           WEIR_FIELDS("deleted_ms", "updated_ms"), err);
}

weir_status weir_experiment_delete(struct weir_txn *txn, int64_t id, int64_t now_ms,
                                   struct weir_error *err)
{
    return set_deleted(txn, id, true, now_ms, err);
}

weir_status weir_experiment_restore(struct weir_txn *txn, int64_t id, int64_t now_ms,
                                    struct weir_error *err)
{
    return set_deleted(txn, id, false, now_ms, err);
}

static weir_status touch(struct weir_txn *txn, int64_t id, int64_t now_ms, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_touch,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_INT("id", id)), NULL,
                         err);
}

weir_status weir_experiment_tag(struct weir_txn *txn, int64_t id, const struct weir_tag *tag,
                                int64_t now_ms, struct weir_error *err)
{
    size_t key_len = strlen(tag->key);
    if (key_len == 0 || key_len > WEIR_EXPERIMENT_TAG_KEY_MAX ||
        strlen(tag->value) > WEIR_EXPERIMENT_TAG_VALUE_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a tag of an experiment has a key of 1 to %d bytes and a value of at "
                              "most %d",
                              WEIR_EXPERIMENT_TAG_KEY_MAX, WEIR_EXPERIMENT_TAG_VALUE_MAX);
    }
    WEIR_TRY(weir_txn_exec(txn, sql_tag,
                           WEIR_BINDS(WEIR_BIND_INT("id", id), WEIR_BIND_TEXT("key", tag->key),
                                      WEIR_BIND_TEXT("value", tag->value)),
                           NULL, err));
    return touch(txn, id, now_ms, err);
}

weir_status weir_experiment_untag(struct weir_txn *txn, int64_t id, const char *key, int64_t now_ms,
                                  struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(weir_txn_exec(
        txn, sql_untag, WEIR_BINDS(WEIR_BIND_INT("id", id), WEIR_BIND_TEXT("key", key)), &n, err));
    return n > 0 ? touch(txn, id, now_ms, err)
                 : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "experiment %" PRId64 " has no tag \"%.250s\"", id, key);
}

weir_status weir_experiment_tags(struct weir_txn *txn, int64_t id, struct weir_arena *arena,
                                 struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    *out = NULL;
    *out_n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_tags, WEIR_BINDS(WEIR_BIND_INT("id", id)), &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(arena, out, sizeof **out, *out_n, &cap);
        (*out)[(*out_n)++] =
            (struct weir_tag){weir_stmt_text(stmt, 0, arena), weir_stmt_text(stmt, 1, arena)};
        WEIR_TRY(weir_arena_check(arena, "tags", err));
    }
}
