/** Drift of an ION as people look at it: its drift table (ion/drift_table.h). */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/ion/ion.h"

#include "base/clock.h"
#include "ion/drift_table.h"

#define SPAN_DEFAULT_MS ((int64_t)6 * 3600 * 1000)

weir_status api_ion_drift(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_drift_table table = {.until_ms = api_query_time(call, "until", call->now_ms + 1),
                                     .n_points = api_query_int(call, "points")};
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    table.since_ms = api_query_time(call, "since", table.until_ms - SPAN_DEFAULT_MS);
    if (table.since_ms >= table.until_ms || table.since_ms <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter since: expected a time before until");
    }
    WEIR_TRY(weir_drift_table_read(txn, call->params[0], api_query_text(call, "pipeline"),
                                   call->arena, &table, err));
    char **times = WEIR_ARENA_ARRAY(call->arena, (size_t)table.n_points, char *);
    for (int64_t i = 0; i < table.n_points; i++) {
        times[i] = weir_arena_alloc(call->arena, WEIR_TIME_TEXT_BYTES);
        weir_time_format(table.since_ms + (table.until_ms - table.since_ms) * i / table.n_points,
                         times[i]);
    }
    API_ANSWER(call, api_ion_drift, .ion = call->params[0], .since_ms = table.since_ms,
               .until_ms = table.until_ms, .times = times, .n_times = (size_t)table.n_points,
               .signals = table.signals, .n_signals = table.n, .is_cut = table.is_cut);
    return WEIR_OK;
}
