#include "track/registry.h"

#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const stages[] = {WEIR_STAGE_NONE, WEIR_STAGE_STAGING, WEIR_STAGE_PRODUCTION,
                                     WEIR_STAGE_ARCHIVED};

const char *weir_stage_of(const char *text)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(stages); i++) {
        if (strcasecmp(stages[i], text) == 0) {
            return stages[i];
        }
    }
    return NULL;
}

weir_status weir_version_check_servable(const struct weir_model_version *version,
                                        struct weir_error *err)
{
    if (version->blob != NULL && version->blob[0] != '\0' && version->unservable == NULL) {
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_CONFLICT, "version %" PRId64 " of \"%s\" is not servable: %s",
        version->version, version->model,
        version->unservable != NULL ? version->unservable : "it has no file of a model");
}

/* ---- models ---------------------------------------------------------------------------------- */

static weir_status check_name(const char *name, struct weir_error *err)
{
    return weir_model_name_is_valid(name)
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     "model \"%.60s\": not a name (1 to %d bytes without \"/\" and \":\")", name,
                     WEIR_MODEL_NAME_MAX_BYTES);
}

weir_status weir_model_create(struct weir_txn *txn, const struct weir_model *model,
                              struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_model found;
    WEIR_TRY(check_name(model->name, err));
    struct weir_model made = *model;
    made.deleted_ms = 0;
    made.updated_ms = model->created_ms;
    weir_arena_init(&arena, 0);
    weir_status status = weir_txn_get(txn, &weir_model_resource, model->name, &arena, &found, err);
    if (status == WEIR_OK && found.deleted_ms != 0) {
        status = weir_txn_update(
            txn, &weir_model_resource, &made,
            WEIR_FIELDS("description", "created_by", "created_ms", "updated_ms", "deleted_ms"),
            err);
    } else if (status == WEIR_OK) {
        status = weir_error_set(err, WEIR_ERR_EXISTS, "model \"%s\" exists already", model->name);
    } else if (status == WEIR_ERR_NOT_FOUND) {
        status = weir_txn_insert(txn, &weir_model_resource, &made, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_model_describe(struct weir_txn *txn, const char *name, const char *description,
                                int64_t now_ms, struct weir_error *err)
{
    const struct weir_model model = {
        .name = (char *)name, .description = (char *)description, .updated_ms = now_ms};
    return weir_txn_update(txn, &weir_model_resource, &model,
                           WEIR_FIELDS("description", "updated_ms"), err);
}

/* What names a model, in an order in which no row names one that is not there. Aliases name versions of
 * it, and are put aside meanwhile. */
static const char *const sql_rename[] = {
    "CREATE TEMP TABLE IF NOT EXISTS moved_aliases (alias TEXT, version BIGINT, actor TEXT, "
    "updated_ms BIGINT)",
    "DELETE FROM moved_aliases",
    "INSERT INTO moved_aliases SELECT alias, version, actor, updated_ms FROM model_aliases"
    " WHERE model = :old",
    "DELETE FROM model_aliases WHERE model = :old",
    "UPDATE model_versions SET model = :new WHERE model = :old",
    "UPDATE model_tags SET model = :new WHERE model = :old",
    "INSERT INTO model_aliases (id, model, alias, version, actor, updated_ms)"
    " SELECT :new || ':' || alias, :new, alias, version, actor, updated_ms FROM moved_aliases",
    "DELETE FROM models WHERE name = :old",
};

weir_status weir_model_rename(struct weir_txn *txn, const char *name, const char *new_name,
                              int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_model model, other;
    struct weir_error missing;
    WEIR_TRY(weir_model_get(txn, name, arena, &model, err));
    WEIR_TRY(check_name(new_name, err));
    if (weir_txn_get(txn, &weir_model_resource, new_name, arena, &other, &missing) == WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "model \"%s\" exists already%s", new_name,
                              other.deleted_ms != 0 ? " (it was deleted; its numbers are kept)"
                                                    : "");
    }
    model.name = (char *)new_name;
    model.updated_ms = now_ms;
    WEIR_TRY(weir_txn_insert(txn, &weir_model_resource, &model, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(sql_rename); i++) {
        bool has_new = strstr(sql_rename[i], ":new") != NULL;
        bool has_old = strstr(sql_rename[i], ":old") != NULL;
        const struct weir_bind binds[] = {WEIR_BIND_TEXT("old", name),
                                          WEIR_BIND_TEXT("new", new_name)};
        const struct weir_bind *first = has_old ? binds : binds + 1;
        weir_status status =
            weir_txn_exec(txn, sql_rename[i], first, (size_t)has_old + (size_t)has_new, NULL, err);
        if (status == WEIR_ERR_CONFLICT) {
            return weir_error_set(err, status,
                                  "model \"%s\" is not renamed: a deployment serves it", name);
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

/* ---- tags ------------------------------------------------------------------------------------ */

/** The tags of one kind of thing. */
static const struct tags {
    const char *put, *remove, *list, *count;
} of_models =
    {
        "INSERT INTO model_tags (model, key, value) VALUES (:of, :key, :value)"
        " ON CONFLICT (model, key) DO UPDATE SET value = excluded.value",
        "DELETE FROM model_tags WHERE model = :of AND key = :key",
        "SELECT key, value FROM model_tags WHERE model = :of ORDER BY key",
        "SELECT count(*) FROM model_tags WHERE model = :of AND key <> :key",
},
  of_versions = {
      "INSERT INTO model_version_tags (version, key, value) VALUES (:of, :key, :value)"
      " ON CONFLICT (version, key) DO UPDATE SET value = excluded.value",
      "DELETE FROM model_version_tags WHERE version = :of AND key = :key",
      "SELECT key, value FROM model_version_tags WHERE version = :of ORDER BY key",
      "SELECT count(*) FROM model_version_tags WHERE version = :of AND key <> :key",
};

static weir_status put_tag(struct weir_txn *txn, const struct tags *tags, const char *of,
                           const struct weir_tag *tag, struct weir_error *err)
{
    int64_t n;
    const char *value = tag->value != NULL ? tag->value : "";
    if (tag->key == NULL || tag->key[0] == '\0' || strlen(tag->key) > WEIR_MODEL_TAG_KEY_MAX ||
        strlen(value) > WEIR_MODEL_TAG_VALUE_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "tag \"%.60s\": a key has 1 to %d bytes, a value at most %d",
            tag->key != NULL ? tag->key : "", WEIR_MODEL_TAG_KEY_MAX, WEIR_MODEL_TAG_VALUE_MAX);
    }
    WEIR_TRY(weir_txn_query_int(
        txn, tags->count, WEIR_BINDS(WEIR_BIND_TEXT("of", of), WEIR_BIND_TEXT("key", tag->key)), 0,
        &n, err));
    if (n >= WEIR_MODEL_TAGS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "tag \"%.60s\": there are %d tags already",
                              tag->key, WEIR_MODEL_TAGS_MAX);
    }
    return weir_txn_exec(txn, tags->put,
                         WEIR_BINDS(WEIR_BIND_TEXT("of", of), WEIR_BIND_TEXT("key", tag->key),
                                    WEIR_BIND_TEXT("value", value)),
                         NULL, err);
}

static weir_status remove_tag(struct weir_txn *txn, const struct tags *tags, const char *of,
                              const char *key, struct weir_error *err)
{
    return weir_txn_exec(txn, tags->remove,
                         WEIR_BINDS(WEIR_BIND_TEXT("of", of), WEIR_BIND_TEXT("key", key)), NULL,
                         err);
}

static weir_status list_tags(struct weir_txn *txn, const struct tags *tags, const char *of,
                             struct weir_arena *arena, struct weir_tag **out, size_t *out_n,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_tag *list = WEIR_ARENA_ARRAY(arena, WEIR_MODEL_TAGS_MAX, struct weir_tag);
    size_t n = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, tags->list, WEIR_BINDS(WEIR_BIND_TEXT("of", of)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && n < WEIR_MODEL_TAGS_MAX) {
        list[n++] =
            (struct weir_tag){weir_stmt_text(stmt, 0, arena), weir_stmt_text(stmt, 1, arena)};
        WEIR_TRY(weir_arena_check(arena, "tags", err));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}

weir_status weir_model_tag(struct weir_txn *txn, const char *model, const struct weir_tag *tag,
                           struct weir_error *err)
{
    return put_tag(txn, &of_models, model, tag, err);
}

weir_status weir_model_untag(struct weir_txn *txn, const char *model, const char *key,
                             struct weir_error *err)
{
    return remove_tag(txn, &of_models, model, key, err);
}

weir_status weir_model_tags(struct weir_txn *txn, const char *model, struct weir_arena *arena,
                            struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    return list_tags(txn, &of_models, model, arena, out, out_n, err);
}

weir_status weir_version_tag(struct weir_txn *txn, const char *version, const struct weir_tag *tag,
                             struct weir_error *err)
{
    return put_tag(txn, &of_versions, version, tag, err);
}

weir_status weir_version_untag(struct weir_txn *txn, const char *version, const char *key,
                               struct weir_error *err)
{
    return remove_tag(txn, &of_versions, version, key, err);
}

weir_status weir_version_tags(struct weir_txn *txn, const char *version, struct weir_arena *arena,
                              struct weir_tag **out, size_t *out_n, struct weir_error *err)
{
    return list_tags(txn, &of_versions, version, arena, out, out_n, err);
}

/* ---- versions -------------------------------------------------------------------------------- */

weir_status weir_version_describe(struct weir_txn *txn, struct weir_model_version *version,
                                  const char *description, int64_t now_ms, struct weir_error *err)
{
    version->description = (char *)description;
    version->updated_ms = now_ms;
    return weir_txn_update(txn, &weir_model_version_resource, version,
                           WEIR_FIELDS("description", "updated_ms"), err);
}

static const char sql_archive_others[] =
    "UPDATE model_versions SET stage = '" WEIR_STAGE_ARCHIVED "', updated_ms = :now"
    " WHERE model = :model AND stage = :stage AND version <> :version AND deleted_ms = 0";

weir_status weir_version_set_stage(struct weir_txn *txn, struct weir_model_version *version,
                                   const char *stage, bool archives_others, int64_t now_ms,
                                   struct weir_error *err)
{
    version->stage = (char *)stage;
    version->updated_ms = now_ms;
    if (archives_others) {
        WEIR_TRY(weir_txn_exec(
            txn, sql_archive_others,
            WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("model", version->model),
                       WEIR_BIND_TEXT("stage", stage), WEIR_BIND_INT("version", version->version)),
            NULL, err));
    }
    const struct weir_model model = {.name = version->model, .updated_ms = now_ms};
    WEIR_TRY(weir_txn_update(txn, &weir_model_resource, &model, WEIR_FIELDS("updated_ms"), err));
    return weir_txn_update(txn, &weir_model_version_resource, version,
                           WEIR_FIELDS("stage", "updated_ms"), err);
}

static int by_version(const void *a, const void *b)
{
    const struct weir_model_version *left = a, *right = b;
    return (left->version > right->version) - (left->version < right->version);
}

weir_status weir_model_latest(struct weir_txn *txn, const char *model, const char *stage,
                              struct weir_arena *arena, struct weir_model_version **out,
                              size_t *out_n, struct weir_error *err)
{
    struct weir_model_version *found =
        WEIR_ARENA_ARRAY(arena, WEIR_ARRAY_LEN(stages), struct weir_model_version);
    size_t n_found = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(stages); i++) {
        const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model),
                                                      WEIR_FILTER_TEXT("stage", EQ, stages[i]),
                                                      WEIR_FILTER_INT("deleted_ms", EQ, 0)),
                                         .order_by = "version", .is_descending = true, .limit = 1};
        void *items;
        size_t n;
        if (stage != NULL && strcmp(stage, stages[i]) != 0) {
            continue;
        }
        WEIR_TRY(
            weir_txn_list(txn, &weir_model_version_resource, &query, arena, &items, &n, NULL, err));
        if (n > 0) {
            found[n_found++] = *(struct weir_model_version *)items;
        }
    }
    qsort(found, n_found, sizeof *found, by_version);
    *out = found;
    *out_n = n_found;
    return WEIR_OK;
}
