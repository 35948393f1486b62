/** Where a run stands: the data that it read, and the model versions that came of it. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/model/model.h"
#include "store/table.h"

#include "track/run.h"

#define VERSIONS_MAX 1000

/* What the caller may see of them; what is large is left out. */
static weir_status add_versions(struct api_call *call, struct weir_txn *txn, json_t *list,
                                struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("run", EQ, call->params[0]),
                                                  WEIR_FILTER_INT("deleted_ms", EQ, 0)),
                                     .order_by = "created_ms", .limit = VERSIONS_MAX};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_model_version_resource, &query, call->arena, &items, &n, NULL,
                           err));
    for (size_t i = 0; i < n; i++) {
        struct weir_model_version *version = (struct weir_model_version *)items + i;
        json_t *view;
        version->baseline = NULL;
        version->signature = NULL;
        version->parameters = NULL;
        WEIR_TRY(api_version_view(call, txn, version, &view, err));
        json_array_append_new(list, view);
    }
    return WEIR_OK;
}

weir_status api_run_lineage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *versions = json_array();
    struct weir_run run;
    struct weir_run_input *inputs;
    int64_t number;
    size_t n;
    WEIR_TRY(weir_txn_get(txn, &weir_run_resource, call->params[0], call->arena, &run, err));
    WEIR_TRY(weir_run_number(txn, call->params[0], &number, err));
    WEIR_TRY(weir_run_inputs(txn, number, call->arena, &inputs, &n, err));
    WEIR_TRY(add_versions(call, txn, versions, err));
    API_ANSWER(call, api_run_lineage, .inputs = inputs, .n_inputs = n,
               .versions = json_incref(versions));
    return WEIR_OK;
}
