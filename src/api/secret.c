/** Secrets of projects: set, listed by name, deleted; no route answers a value. */
#include "api/api_private.h"

#include "job/secret.h"

#include <string.h>

weir_status api_secret_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_project project;
    void *items;
    size_t n;
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err));
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("project", EQ, call->params[0])),
                                     .order_by = "name", .limit = WEIR_SECRETS_OF_PROJECT};
    WEIR_TRY(weir_txn_list(txn, &weir_secret_resource, &query, call->arena, &items, &n, NULL, err));
    api_answer_list(call, &weir_secret_resource, items, n, NULL);
    return WEIR_OK;
}

weir_status api_secret_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"value", NULL};
    struct weir_project project;
    struct weir_secret secret;
    const json_t *value = json_object_get(call->body, "value");
    WEIR_TRY(api_body_only(call, fields, err));
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.value: expected a string without NUL");
    }
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err));
    WEIR_TRY(weir_secret_set(txn, call->api->state_dir, project.name, call->params[1],
                             json_string_value(value), call->actor, call->now_ms, call->arena,
                             &secret, err));
    api_answer_record(call, &weir_secret_resource, &secret);
    return audit_act(call, txn, "secret_set",
                     weir_arena_printf(call->arena, "project/%s", project.name),
                     weir_arena_printf(call->arena, "Secret %s of project %s was set", secret.name,
                                       project.name),
                     err);
}

weir_status api_secret_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *id = weir_arena_printf(call->arena, "%s/%s", call->params[0], call->params[1]);
    WEIR_TRY(weir_txn_delete(txn, &weir_secret_resource, id, err));
    weir_http_response_empty(call->response);
    return audit_act(call, txn, "secret_deleted",
                     weir_arena_printf(call->arena, "project/%s", call->params[0]),
                     weir_arena_printf(call->arena, "Secret %s of project %s was deleted",
                                       call->params[1], call->params[0]),
                     err);
}
