/** Lineage, both ways, as routes: control/lineage.h finds it. */
#include "control/lineage.h"
#include "api/answer.h"
#include "api/functions.h"
#include "api/model.h"
#include "api/records.h"

weir_status api_decision_lineage(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    json_t *view;
    WEIR_TRY(control_lineage_decision(txn, call->params[0], call->arena, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

weir_status api_version_lineage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t number = 0;
    json_t *view;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    WEIR_TRY(control_lineage_version(txn, call->params[0], number, call->arena, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

weir_status api_dataset_lineage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t number = 0;
    json_t *view;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    WEIR_TRY(control_lineage_dataset(txn, call->params[0], number, call->arena, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}

typedef weir_status (*page_fn)(struct weir_txn *txn, const char *name, int64_t version,
                               struct weir_arena *arena, struct control_lineage_page *page,
                               struct weir_error *err);

static weir_status answer_page(struct api_call *call, struct weir_txn *txn, page_fn fn,
                               struct weir_error *err)
{
    struct control_lineage_page page = {.cursor = weir_http_request_query(call->request, "cursor")};
    int64_t number = 0, limit;
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    WEIR_TRY(api_query_limit(call, &limit, err));
    page.limit = (size_t)limit;
    WEIR_TRY(fn(txn, call->params[0], number, call->arena, &page, err));
    api_answer_list(call, &weir_decision_resource, page.items, page.n, page.next);
    return WEIR_OK;
}

weir_status api_version_decisions(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    return answer_page(call, txn, control_lineage_version_decisions, err);
}

weir_status api_dataset_decisions(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    return answer_page(call, txn, control_lineage_dataset_decisions, err);
}
