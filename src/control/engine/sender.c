#include "control/sender.h"

#include "store/stmt.h"

#include <string.h>

static const char sql_applied[] = "SELECT actor, limited_to FROM ion_revisions WHERE ion = :name"
                                  " ORDER BY revision DESC LIMIT 1";
static const char sql_deployed[] =
    "SELECT d.created_by, NULL FROM deployment_replicas r JOIN deployments d"
    " ON d.name = r.deployment WHERE r.job = :name";

/* Who, and the role that limits them; both stay as they are without a row. */
static weir_status read_pair(struct weir_txn *txn, const char *sql, const char *name,
                             struct weir_arena *arena, const char *pair[2], struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("name", name)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    for (int i = 0; has_row && i < 2; i++) {
        pair[i] = weir_stmt_text(row, i, arena);
    }
    return WEIR_OK;
}

weir_status control_sender_find(struct weir_txn *txn, const struct control_sender_of *of,
                                struct weir_arena *arena, const char **out_name,
                                struct weir_identity *out, struct weir_error *err)
{
    const char *pair[2] = {of->created_by, of->limited_to};
    struct weir_error gone;
    *out = (struct weir_identity){0};
    if (of->ion != NULL) {
        WEIR_TRY(read_pair(txn, sql_applied, of->ion, arena, pair, err));
    } else if (strcmp(of->kind, "serve") == 0) {
        WEIR_TRY(read_pair(txn, sql_deployed, of->job, arena, pair, err));
    }
    *out_name = pair[0];
    if (pair[0] == NULL) {
        return WEIR_OK;
    }
    weir_status status = weir_user_identify_as(txn, pair[0], pair[1], arena, out, &gone);
    return status == WEIR_OK || status == WEIR_ERR_UNAUTH
               ? WEIR_OK
               : weir_error_set(err, status, "%s", gone.message);
}
