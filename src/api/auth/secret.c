/** Secrets of projects: set, listed by name, deleted; no route answers a value. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "control/uses.h"
#include "store/table.h"

#include "job/secret.h"
#include "store/stmt.h"

#include <string.h>

#define USES_MAX 1000 /* of all secrets of a project */

/* What names a secret and may start, or start again; by name. Jobs that are over are many, so the open ones are looked
 * through, and not those of the project. */
static const struct {
    const char *kind, *sql;
} users[] = {
    {"ion", "SELECT name, name, state, document FROM ions WHERE project = :project"
            " AND state = 'ACTIVE' AND document LIKE '%\"secrets\"%' ORDER BY name"},
    {"job", "SELECT id, name, state, spec FROM jobs WHERE project || '' = :project"
            " AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
            " AND spec LIKE '%\"secrets\"%' ORDER BY name, id"},
    {"service", "SELECT id, name, kind, spec FROM services WHERE project = :project"
                " AND spec LIKE '%\"secrets\"%' ORDER BY name, id"},
    {"sweep", "SELECT id, name, state, document FROM sweeps WHERE project = :project"
              " AND state = 'RUNNING' AND document LIKE '%\"secrets\"%' ORDER BY name, id"},
};

/** Uses by their kinds, then by the name of the user. */
struct uses {
    struct weir_arena *arena;
    struct api_secret_use user; /**< It has the document that is looked at, */
    size_t first;               /**< and this is its first use. */
    char *secrets[USES_MAX];
    struct api_secret_use items[USES_MAX];
    size_t n;
};

static void add_use(void *context, const char *secret)
{
    struct uses *uses = context;
    for (size_t i = uses->first; i < uses->n; i++) {
        if (strcmp(uses->secrets[i], secret) == 0) {
            return;
        }
    }
    if (uses->n < USES_MAX) {
        uses->secrets[uses->n] = weir_arena_strdup(uses->arena, secret);
        uses->items[uses->n++] = uses->user;
    }
}

static weir_status list_uses(struct api_call *call, struct weir_txn *txn, size_t i_kind,
                             struct uses *uses, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, users[i_kind].sql,
                            WEIR_BINDS(WEIR_BIND_TEXT("project", call->params[0])), &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && uses->n < USES_MAX) {
        json_t *document = weir_stmt_json(stmt, 3);
        uses->first = uses->n;
        uses->user = (struct api_secret_use){
            (char *)users[i_kind].kind, weir_stmt_text(stmt, 0, call->arena),
            weir_stmt_text(stmt, 1, call->arena), weir_stmt_text(stmt, 2, call->arena)};
        control_each_secret(document, add_use, uses);
        json_decref(document);
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

/* Those of one secret. */
static struct api_secret_use *uses_of(const struct uses *uses, const char *secret, size_t *out_n)
{
    size_t n = 0;
    for (size_t i = 0; i < uses->n; i++) {
        n += strcmp(uses->secrets[i], secret) == 0;
    }
    struct api_secret_use *items = WEIR_ARENA_ARRAY(uses->arena, n, struct api_secret_use);
    *out_n = 0;
    for (size_t i = 0; *out_n < n; i++) {
        if (strcmp(uses->secrets[i], secret) == 0) {
            items[(*out_n)++] = uses->items[i];
        }
    }
    return items;
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
    uses->arena = call->arena;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(users); i++) {
        WEIR_TRY(list_uses(call, txn, i, uses, err));
    }
    struct api_secret *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_secret);
    for (size_t i = 0; i < rows.n; i++) {
        views[i].row = &secrets[i];
        views[i].used_by = uses_of(uses, views[i].row->name, &views[i].n_used_by);
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
