/** What replicas report of themselves, and what people are told of it. */
#include "ion/replica.h"
#include "api/core/functions.h"
#include "api/ion/ion.h"
#include "control/control.h"

weir_status api_replica_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_replica report = {0};
    struct control control = api_control(call);
    bool has_changed;
    WEIR_TRY(weir_record_from_json(&weir_ion_replica_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &report, err));
    report.ion = weir_arena_strdup(call->arena, call->params[0]);
    report.pipeline = weir_arena_strdup(call->arena, call->params[1]);
    report.replica = weir_arena_strdup(call->arena, call->params[2]);
    report.time_ms = call->now_ms;
    WEIR_TRY(weir_ion_replica_store(txn, &report, &has_changed, err));
    if (has_changed) {
        struct weir_ion_event event = {
            .type = WEIR_ION_EVENT_REPLICA, .actor = report.replica, .pipeline = report.pipeline};
        WEIR_TRY(control_ion_event(&control, txn, report.ion, &event, err));
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
