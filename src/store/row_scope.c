#include "store/row_scope.h"

#include "store/scope_map.h"
#include "store/stmt.h"
#include "store/store_private.h"

#include <string.h>

bool weir_row_scope_sees(const struct weir_row_scope *scope, const char *project)
{
    bool sees = scope == NULL || scope->is_all;
    for (size_t i = 0; !sees && project != NULL && i < scope->n_projects; i++) {
        sees = strcmp(scope->projects[i], project) == 0;
    }
    return sees;
}

weir_status weir_subject_project(struct weir_txn *txn, const char *subject,
                                 struct weir_arena *arena, char **out, struct weir_error *err)
{
    const struct scope_map *map = txn->connection->map;
    size_t len = subject != NULL ? strcspn(subject, "/") : 0;
    const char *at = len > 0 && subject[len] == '/' ? subject + len + 1 : "";
    const struct scope_owner *owner = map != NULL ? scope_map_subject(map, subject, len) : NULL;
    char *key = weir_arena_memdup(arena, at, strcspn(at, "/"));
    const char *project =
        owner != NULL ? owner->noun->project : NULL; /* NULL too: of another row */
    if (owner == NULL || (project != NULL && strcmp(owner->key, project) == 0)) {
        *out = owner != NULL ? key : NULL;
        return weir_arena_check(arena, "a subject", err);
    }
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(
        stmt_open_unscoped(txn, owner->sql, WEIR_BINDS(WEIR_BIND_TEXT(NULL, key)), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    *out = has_row ? weir_stmt_text(stmt, 0, arena) : NULL;
    return weir_arena_check(arena, "a subject", err);
}

void row_scope_deny(struct weir_txn *txn, const char *project)
{
    if (txn->broken.status != WEIR_OK) {
        return;
    }
    (void)(project != NULL
               ? weir_error_set(&txn->broken, WEIR_ERR_DENIED,
                                "you may not do this in project \"%s\": name one of yours, or ask "
                                "who administers it",
                                project)
               : weir_error_set(&txn->broken, WEIR_ERR_DENIED,
                                "this is of a project in which you may not do it: name what is "
                                "yours, or ask who administers it"));
}

weir_status row_scope_set(struct weir_txn *txn, const struct weir_row_scope *scope,
                          struct weir_error *err)
{
    const struct weir_row_scope *limit = scope != NULL && !scope->is_all ? scope : NULL;
    if (limit != NULL && txn->connection->guard == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "this transaction sees all and cannot have a scope");
    }
    txn->connection->ops->limit(txn, limit);
    return WEIR_OK;
}

void row_scope_end(struct weir_txn *txn)
{
    txn->connection->ops->unlimit(txn);
}

struct weir_proven weir_txn_proven(const struct weir_txn *txn, const char *project)
{
    const struct weir_row_scope *scope = txn->scope;
    struct weir_proven proven = {NULL};
    for (size_t i = 0; scope != NULL && i < scope->n_projects; i++) {
        if (strcmp(scope->projects[i], project) == 0) {
            proven.project = &scope->projects[i];
        }
    }
    return proven;
}

bool row_scope_has_proven(const struct weir_txn *txn, struct weir_proven proven)
{
    bool has = false;
    for (size_t i = 0; txn->scope != NULL && i < txn->scope->n_projects; i++) {
        has = has || proven.project == &txn->scope->projects[i];
    }
    return has;
}

const struct weir_row_scope *weir_txn_scope(const struct weir_txn *txn)
{
    return txn->scope;
}

weir_status weir_txn_as(struct weir_txn *txn, const struct weir_row_scope *scope, weir_txn_fn fn,
                        void *context, struct weir_error *err)
{
    const struct weir_row_scope *before = txn->scope;
    WEIR_TRY(row_scope_set(txn, scope, err));
    weir_status status = fn(txn, context, err);
    txn->connection->ops->limit(txn, before);
    return status;
}
