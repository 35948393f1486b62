/** A route's turn: its transactions, its act in the audit, and whom it tells. */
#include "api/core/dispatch.h"

#include "base/log.h"
#include "control/control.h"
#include "gateway/gateway.h"

weir_status api_read(struct api_call *call, weir_txn_fn fn, void *context, struct weir_error *err)
{
    return weir_store_read_scoped(call->api->store, &call->rows, fn, context, err);
}

/** A change, and its event in the audit. */
struct change {
    struct api_call *call;
    weir_txn_fn fn;
    void *context;
    bool was_audited; /**< By a transaction of the call before this one. */
};

static weir_status change_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct change *change = context;
    struct api_call *call = change->call;
    call->is_audited = change->was_audited;
    WEIR_TRY(change->fn(txn, change->context, err));
    return call->is_act && call->login_refused == NULL ? act_write(call, txn, err) : WEIR_OK;
}

weir_status api_write(struct api_call *call, weir_txn_fn fn, void *context, struct weir_error *err)
{
    struct change change = {call, fn, context, call->is_audited};
    if (call->is_trial) {
        return weir_store_try_scoped(call->api->store, &call->rows, fn, context, err);
    }
    weir_status status =
        weir_store_write_scoped(call->api->store, &call->rows, change_in, &change, err);
    call->is_audited = status == WEIR_OK ? call->is_audited : change.was_audited;
    return status;
}

static weir_status nothing_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)txn;
    (void)context;
    (void)err;
    return WEIR_OK;
}

weir_status api_act_first(struct api_call *call, struct weir_error *err)
{
    return call->is_act && !call->is_audited ? api_write(call, nothing_in, NULL, err) : WEIR_OK;
}

/* A disk that takes nothing stops what is written, and nobody who reads. */
static weir_status note_act(struct api_call *call, struct weir_error *err)
{
    weir_status status = api_act_first(call, err);
    if (!act_is_look(call) || (status != WEIR_ERR_NOSPACE && status != WEIR_ERR_IO)) {
        return status;
    }
    weir_log(WEIR_LOG_ERROR, "audit_not_written", WEIR_KV_STR("kind", "people_shown"),
             WEIR_KV_STR("actor", call->actor), WEIR_KV_STR("path", call->request->path),
             WEIR_KV_STR("error", err->message));
    return WEIR_OK;
}

/* Of a route without a transaction: what wrote nothing itself is in the audit all the same. */
static weir_status run_alone(struct api_call *call, struct weir_error *err)
{
    if (call->route->flags & ROUTE_ACT_FIRST) {
        WEIR_TRY(api_act_first(call, err));
    }
    WEIR_TRY(call->form->run(call, NULL, err));
    return weir_http_response_waits(call->response) ? WEIR_OK : note_act(call, err);
}

static weir_status run_in_transaction(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    json_array_clear(call->publish);
    return call->form->run(call, txn, err);
}

static weir_status run_by_access(struct api_call *call, struct weir_error *err)
{
    switch (call->route->access) {
    case ROUTE_READ:
        WEIR_TRY(api_read(call, run_in_transaction, call, err));
        return note_act(call, err);
    case ROUTE_WRITE:
        return api_write(call, run_in_transaction, call, err);
    default:
        return run_alone(call, err);
    }
}

static weir_status run_route(struct api_call *call, struct weir_error *err)
{
    call->is_act = act_is_wanted(call);
    weir_status status = run_by_access(call, err);
    act_is_kept(call);
    return status;
}

static void send_published(struct api_call *call)
{
    if (call->is_trial) {
        return; /* nothing has happened */
    }
    const struct control_listener listener = weir_api_listener(call->api);
    control_publish_all(&listener, call->publish);
    if ((call->route->flags & ROUTE_NOTIFY) && !call->is_routine && call->api->notify != NULL) {
        call->api->notify(call->api->notify_context);
    }
    if ((call->route->flags & ROUTE_TELLS) && call->api->told != NULL) {
        call->api->told(call->api->told_context);
    }
}

/* Before the answer leaves: an act may have changed rights. Files, and what flows in, never do. */
static void forget_callers(const struct api_call *call)
{
    if (call->api->gateway != NULL && call->is_act && call->route->access != ROUTE_READ &&
        (call->route->flags & (ROUTE_UPLOAD | ROUTE_BYTES_IN | ROUTE_FLOW)) == 0) {
        weir_gateway_forget_callers(call->api->gateway);
    }
}

weir_status api_perform(struct api_call *call, struct weir_error *err)
{
    WEIR_TRY(run_route(call, err));
    forget_callers(call);
    send_published(call);
    return WEIR_OK;
}
