/** Groups of runs: how many have which value of a parameter, and what they measured. */
#include "api/answer.h"
#include "api/functions.h"
#include "api/query.h"
#include "api/run.h"

#include "track/run_groups.h"

#include <math.h>

static json_t *number_view(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

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
    json_t *views = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            views,
            json_pack("{s:s?,s:I,s:I,s:o,s:o,s:o}", "value", groups[i].value, "n_runs",
                      (json_int_t)groups[i].n_runs, "n_measured", (json_int_t)groups[i].n_measured,
                      "mean", number_view(groups[i].mean), "least", number_view(groups[i].least),
                      "greatest", number_view(groups[i].greatest)));
    }
    api_answer(call, json_pack("{s:o,s:s?}", "items", views, "next", next));
    return WEIR_OK;
}
