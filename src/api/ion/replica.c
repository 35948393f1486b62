/** What replicas report of themselves, and what people are told of it. */
#include "ion/replica.h"
#include "api/core/functions.h"
#include "api/ion/ion.h"
#include "control/control.h"
#include "ion/order.h"

#define ORDERS_PER_REPORT 64

/* What its doors were told since the last report that was taken. */
static weir_status take_orders(struct api_call *call, struct weir_txn *txn, const json_t *list,
                               const struct weir_ion_replica *report, struct weir_error *err)
{
    struct weir_door_order orders[ORDERS_PER_REPORT] = {0};
    struct weir_error wrong = {0};
    size_t n = json_array_size(list);
    if (list != NULL && (!json_is_array(list) || n > ORDERS_PER_REPORT)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.orders: expected an array of at most %d",
                              ORDERS_PER_REPORT);
    }
    for (size_t i = 0; i < n; i++) {
        weir_status status =
            weir_record_from_json(&weir_door_order_resource, json_array_get(list, i),
                                  WEIR_RECORD_CREATE, call->arena, &orders[i], &wrong);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.orders[%zu]%s", i, wrong.message + 1);
        }
        orders[i].ion = report->ion;
        orders[i].pipeline = report->pipeline;
        orders[i].replica = report->replica;
    }
    return weir_door_orders_store(txn, orders, n, err);
}

static weir_status read_report(struct api_call *call, struct weir_ion_replica *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *fields = json_copy(call->body);
    (void)json_object_del(fields, "orders");
    WEIR_TRY(weir_record_from_json(&weir_ion_replica_resource, fields, WEIR_RECORD_CREATE,
                                   call->arena, out, err));
    out->ion = weir_arena_strdup(call->arena, call->params[0]);
    out->pipeline = weir_arena_strdup(call->arena, call->params[1]);
    out->replica = weir_arena_strdup(call->arena, call->params[2]);
    out->time_ms = call->now_ms;
    return WEIR_OK;
}

weir_status api_replica_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_replica report = {0};
    struct control control = api_control(call);
    bool has_changed;
    WEIR_TRY(read_report(call, &report, err));
    WEIR_TRY(weir_ion_replica_store(txn, &report, &has_changed, err));
    WEIR_TRY(take_orders(call, txn, json_object_get(call->body, "orders"), &report, err));
    if (has_changed) {
        struct weir_ion_event event = {
            .type = WEIR_ION_EVENT_REPLICA, .actor = report.replica, .pipeline = report.pipeline};
        WEIR_TRY(control_ion_event(&control, txn, report.ion, &event, err));
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
