/** Groups of runs: how many have which value of a parameter, and what they measured. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/track/run.h"

#include "track/run_groups.h"

weir_status api_run_groups(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_run_search search = {.cursor = api_query_text(call, "cursor")};
    const char *text = api_query_text(call, "by");
    struct weir_search_order by;
    struct weir_run_group *groups = NULL;
    size_t n = 0;
    char *next = NULL;
    bool has_any;
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter by: missing; name a parameter, a tag or an "
                              "attribute, as params.lr");
    }
    WEIR_TRY(weir_run_groups_parse(text, call->arena, &by, err));
    WEIR_TRY(api_query_runs(call, txn, &search, &has_any, err));
    search.limit = (size_t)api_query_int(call, "limit");
    if (has_any) {
        WEIR_TRY(weir_run_groups(txn, &search, &by, api_query_text(call, "metric"), call->arena,
                                 &groups, &n, &next, err));
    }
    API_ANSWER(call, api_run_groups, .items = groups, .n_items = n, .next = next);
    return WEIR_OK;
}
