/** Allocations, the nodes that were asked of clusters: job/cluster.h. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"

#include "job/cluster.h"
#include "store/event.h"

#include <string.h>

/* Those that have not ended by cluster; those that have, the last one first. */
static struct weir_query query_of(const char *view)
{
    if (view != NULL && strcmp(view, "all") == 0) {
        return (struct weir_query){0};
    }
    return view != NULL && strcmp(view, "ended") == 0
               ? (struct weir_query){.order_by = "ended_ms",
                                     .is_descending = true,
                                     .condition = "state = 'ended'"}
               : (struct weir_query){.order_by = "cluster", .condition = "state <> 'ended'"};
}

/* The names under which its nodes are here. */
static weir_status view_of(struct api_call *call, struct weir_txn *txn,
                           const struct weir_allocation *allocation, struct api_allocation *out,
                           struct weir_error *err)
{
    *out = (struct api_allocation){.row = allocation};
    char **names;
    WEIR_TRY(weir_allocation_nodes(txn, allocation->id, call->arena, &names, &out->n_joined, err));
    out->joined = names;
    return WEIR_OK;
}

weir_status api_allocation_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const struct weir_query query = query_of(api_query_text(call, "view"));
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &query, &rows, err));
    const struct weir_allocation *allocations = rows.items;
    struct api_allocation *views = WEIR_ARENA_ARRAY(call->arena, rows.n, struct api_allocation);
    for (size_t i = 0; i < rows.n; i++) {
        WEIR_TRY(view_of(call, txn, &allocations[i], &views[i], err));
    }
    api_answer_views(call, api_allocation_view(), views, rows.n, rows.next);
    return WEIR_OK;
}

static weir_status answer_allocation(struct api_call *call, struct weir_txn *txn, const char *id,
                                     struct weir_error *err)
{
    struct weir_allocation allocation;
    struct api_allocation view;
    WEIR_TRY(weir_txn_get(txn, &weir_allocation_resource, id, call->arena, &allocation, err));
    WEIR_TRY(view_of(call, txn, &allocation, &view, err));
    api_answer(call, weir_view_to_json(api_allocation_view(), &view));
    return WEIR_OK;
}

weir_status api_allocation_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return answer_allocation(call, txn, call->params[0], err);
}

weir_status api_allocation_release(struct api_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    const char *id = call->params[0];
    const char *why = weir_arena_printf(call->arena, "released by %s", call->actor);
    const struct weir_event event = {
        .time_ms = call->now_ms,
        .topic = "nodes",
        .kind = "allocation_released",
        .subject = weir_arena_printf(call->arena, "allocation/%s", id),
        .actor = (char *)call->actor,
        .message = weir_arena_printf(call->arena, "Allocation %s is %s.", id, why)};
    struct weir_allocation before;
    WEIR_TRY(weir_txn_get(txn, &weir_allocation_resource, id, call->arena, &before, err));
    bool is_going = strcmp(before.state, WEIR_ALLOCATION_RELEASING) == 0 ||
                    strcmp(before.state, WEIR_ALLOCATION_OVER) == 0;
    if (!is_going) {
        WEIR_TRY(weir_allocation_release(txn, id, why, call->now_ms, err));
        WEIR_TRY(weir_event_append(txn, &event, NULL, err));
    }
    return answer_allocation(call, txn, id, err);
}
