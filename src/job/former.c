#include "job/former.h"

#include "base/file.h"
#include "store/event.h"
#include "store/stmt.h"

#include <string.h>

#define SETTING "former_task_token"

/* weir_attempt_load says the same of one attempt. */
/* There are few, and many tasks. */
#define LIVING                                                                                     \
    " FROM former_attempts f CROSS JOIN tasks t"                                                   \
    " JOIN jobs j ON j.id = t.job WHERE t.id = f.task AND t.attempt = f.number AND t.exit_code = " \
    "-1 AND t.signal = 0"                                                                          \
    " AND j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"

static const char sql_count[] = "SELECT count(*)" LIVING;
static const char sql_find[] =
    "SELECT t.id, t.attempt" LIVING " AND (j.id || '-' || t.rank = :replica OR :replica IS NULL)"
    " ORDER BY t.id LIMIT 1";
static const char sql_projects[] = "SELECT DISTINCT j.project" LIVING;

weir_status weir_former_keep(struct weir_txn *txn, const char *secret_hash, int64_t now_ms,
                             struct weir_error *err)
{
    int64_t n;
    char value[WEIR_SHA256_TEXT_BYTES + 2];
    WEIR_TRY(weir_txn_query_int(txn, sql_count, WEIR_NO_BINDS, 0, &n, err));
    (void)snprintf(value, sizeof value, "\"%s\"", secret_hash);
    return n > 0 ? weir_setting_put(txn, SETTING, value, now_ms, err) : WEIR_OK;
}

static bool is_token(struct weir_txn *txn, const char *secret_hash, struct weir_arena *arena)
{
    char *value;
    return weir_setting_get(txn, SETTING, arena, &value, NULL) == WEIR_OK &&
           strlen(value) == strlen(secret_hash) + 2 &&
           strncmp(value + 1, secret_hash, strlen(secret_hash)) == 0;
}

weir_status weir_former_attempt(struct weir_txn *txn, const char *secret_hash, const char *replica,
                                struct weir_arena *arena, struct weir_attempt *out,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row = false;
    if (is_token(txn, secret_hash, arena)) {
        WEIR_TRY(weir_stmt_open(txn, sql_find, WEIR_BINDS(WEIR_BIND_TEXT("replica", replica)), &row,
                                err));
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    if (!has_row) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "no attempt that runs was begun with this token");
    }
    return weir_attempt_load(txn, weir_stmt_text(row, 0, arena), weir_stmt_int(row, 1), arena, out,
                             err);
}

weir_status weir_former_projects(struct weir_txn *txn, struct weir_arena *arena, char ***out,
                                 size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_projects, WEIR_NO_BINDS, arena, out, out_n, err);
}
