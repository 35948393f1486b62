/** Devices, as people see them: whose tasks have them is told of the caller's own projects alone. */
#include "api/cluster/node.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/records.h"

#include "job/device.h"
#include "store/stmt.h"

static const char sql_holders[] =
    "SELECT j.project, j.name || '/' || t.rank FROM task_devices d JOIN tasks t ON t.id = d.task"
    " JOIN jobs j ON j.id = t.job WHERE d.node = :node AND d.idx = :idx ORDER BY j.name, t.rank";

/* "mine/0, 2 tasks of other projects" */
static weir_status name_holders(const struct api_call *call, struct weir_txn *txn,
                                const struct weir_row_scope *named, struct weir_device *device,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    int64_t n_others = 0;
    bool has_row;
    char *text = NULL;
    WEIR_TRY(weir_stmt_open(
        txn, sql_holders,
        WEIR_BINDS(WEIR_BIND_TEXT("node", device->node), WEIR_BIND_INT("idx", device->idx)), &row,
        err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        if (weir_row_scope_sees(named, weir_stmt_text(row, 0, call->arena))) {
            text = weir_arena_printf(call->arena, "%s%s%s", text != NULL ? text : "",
                                     text != NULL ? ", " : "", weir_stmt_text(row, 1, call->arena));
        } else {
            n_others++;
        }
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    if (n_others > 0) {
        text = weir_arena_printf(call->arena, "%s%s%lld task%s of other projects",
                                 text != NULL ? text : "", text != NULL ? ", " : "",
                                 (long long)n_others, n_others == 1 ? "" : "s");
    }
    device->holders = text;
    return WEIR_OK;
}

weir_status api_devices_name(const struct api_call *call, struct weir_txn *txn,
                             struct weir_device *devices, size_t n, struct weir_error *err)
{
    const struct weir_row_scope named = api_projects_with(call, WEIR_RIGHT_JOBS_READ);
    for (size_t i = 0; !named.is_all && i < n; i++) {
        if (devices[i].holders != NULL) {
            WEIR_TRY(name_holders(call, txn, &named, &devices[i], err));
        }
    }
    return WEIR_OK;
}

weir_status api_device_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){0}, &rows, err));
    WEIR_TRY(api_devices_name(call, txn, rows.items, rows.n, err));
    api_answer_list(call, &weir_device_resource, rows.items, rows.n, rows.next);
    return WEIR_OK;
}
