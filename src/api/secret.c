/** Secrets of projects: set, listed by name, deleted; no route answers a value. */
#include "api/answer.h"
#include "api/args.h"
#include "api/audit.h"
#include "api/functions.h"
#include "api/query.h"
#include "api/records.h"
#include "api/views.h"
#include "control/uses.h"
#include "store/table.h"

#include "job/secret.h"
#include "store/stmt.h"

#include <string.h>

#define USES_MAX 1000 /* of all secrets of a project */

/* What names a secret and may start, or start again: the secret's name stands behind "=", or alone. */
#define NAMED "substr(s.value, instr(s.value, '=') + 1)"
static const char sql_uses[] =
    "SELECT " NAMED " AS secret, 'job' AS kind, j.id, j.name, j.state FROM jobs j,"
    " json_each(j.spec, '$.secrets') s WHERE +j.project = :project AND"
    " j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
    " UNION SELECT " NAMED ", 'service', v.id, v.name, v.kind FROM services v,"
    " json_each(v.spec, '$.secrets') s WHERE v.project = :project"
    " UNION SELECT " NAMED ", 'sweep', w.id, w.name, w.state FROM sweeps w,"
    " json_each(w.document, '$.job.spec.secrets') s WHERE w.project = :project AND"
    " w.state = 'RUNNING'"
    " UNION SELECT " NAMED ", 'ion', i.name, i.name, i.state FROM ions i, json_tree(i.document) t,"
    " json_each(t.value) s WHERE i.project = :project AND i.state = 'ACTIVE' AND"
    " t.key = 'secrets' AND t.type = 'array' ORDER BY 1, 2, 4 LIMIT :limit";

/** Uses in the order of their secrets' names. */
struct uses {
    char *secrets[USES_MAX];
    struct api_secret_use items[USES_MAX];
    size_t n;
};

static weir_status list_uses(struct api_call *call, struct weir_txn *txn, struct uses *uses,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    WEIR_TRY(weir_stmt_open(
        txn, sql_uses,
        WEIR_BINDS(WEIR_BIND_TEXT("project", call->params[0]), WEIR_BIND_INT("limit", USES_MAX)),
        &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        char *secret = weir_stmt_text(stmt, 0, call->arena);
        if (secret == NULL) {
            continue;
        }
        uses->secrets[uses->n] = secret;
        uses->items[uses->n++] = (struct api_secret_use){
            weir_stmt_text(stmt, 1, call->arena), weir_stmt_text(stmt, 2, call->arena),
            weir_stmt_text(stmt, 3, call->arena), weir_stmt_text(stmt, 4, call->arena)};
    }
}

weir_status api_secret_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_project project;
    struct api_rows rows;
    WEIR_TRY(
        weir_txn_get(txn, &weir_project_resource, call->params[0], call->arena, &project, err));
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("project", EQ, call->params[0])),
                                  .order_by = "name", .limit = WEIR_SECRETS_OF_PROJECT};
    WEIR_TRY(api_rows_read(call, txn, &of, &rows, err));
    const struct weir_secret *secrets = rows.items;
    struct uses *uses = WEIR_ARENA_ARRAY(call->arena, 1, struct uses);
    WEIR_TRY(list_uses(call, txn, uses, err));
    struct api_secret *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_secret);
    for (size_t i = 0; i < rows.n; i++) {
        const struct weir_secret *secret = &secrets[i];
        size_t first = 0, n_uses = 0;
        while (first < uses->n && strcmp(uses->secrets[first], secret->name) != 0) {
            first++;
        }
        while (first + n_uses < uses->n &&
               strcmp(uses->secrets[first + n_uses], secret->name) == 0) {
            n_uses++;
        }
        views[i] =
            (struct api_secret){.row = secret, .used_by = &uses->items[first], .n_used_by = n_uses};
    }
    api_answer_views(call, api_secret_view(), views, rows.n, rows.next);
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
    struct control control = api_control(call);
    if (!api_query_bool(call, "force")) {
        WEIR_TRY(control_check_secret_unused(&control, txn, call->params[0], call->params[1], err));
    }
    WEIR_TRY(weir_txn_delete(txn, &weir_secret_resource, id, err));
    weir_http_response_empty(call->response);
    return audit_act(call, txn, "secret_deleted",
                     weir_arena_printf(call->arena, "project/%s", call->params[0]),
                     weir_arena_printf(call->arena, "Secret %s of project %s was deleted",
                                       call->params[1], call->params[0]),
                     err);
}
