/** Sweeps: what people ask for, and how far it is. */
#include "control/sweep.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "base/secret.h"
#include "job/job.h"
#include "store/table.h"

#include "store/tenant.h"

#include <string.h>

weir_status api_sweep_create(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_sweep sweep;
    const char *project = json_string_value(json_object_get(call->body, "project"));
    if (project != NULL) {
        WEIR_TRY(api_check_project(call, txn, project, err));
    }
    /* A copy: a transaction may run twice, and the document is given its seed. */
    WEIR_AUTO(weir_json_auto_free) json_t *document = json_deep_copy(call->body);
    json_t *spec = json_object_get(json_object_get(document, "job"), "spec");
    WEIR_TRY(weir_secrets_restore(spec, NULL, WEIR_JOB_SECRETS, "$.job.spec", err));
    WEIR_TRY(control_sweep_create(&control, txn, document, &sweep, err));
    api_answer_record(call, &weir_sweep_resource, &sweep);
    return WEIR_OK;
}

weir_status api_sweep_trials(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_sweep sweep;
    const struct weir_query of = {WEIR_FILTERS(WEIR_FILTER_TEXT("sweep", EQ, call->params[0])),
                                  .order_by = "number", .limit = WEIR_SWEEP_TRIALS_MAX};
    WEIR_TRY(weir_txn_get(txn, &weir_sweep_resource, call->params[0], call->arena, &sweep, err));
    return api_list_of(call, txn, &of, err);
}

static weir_status apply(struct api_call *call, struct weir_txn *txn,
                         enum weir_sweep_event_type type, const char *what, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_sweep sweep;
    const struct weir_sweep_event event = {
        .type = type, .note = weir_arena_printf(call->arena, "%s by %s", what, call->actor)};
    WEIR_TRY(control_sweep_event(&control, txn, call->params[0], &event, err));
    WEIR_TRY(weir_txn_get(txn, &weir_sweep_resource, call->params[0], call->arena, &sweep, err));
    api_answer_record(call, &weir_sweep_resource, &sweep);
    return WEIR_OK;
}

weir_status api_sweep_stop(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return apply(call, txn, WEIR_SWEEP_EVENT_STOP, "stopped", err);
}

weir_status api_sweep_pause(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return apply(call, txn, WEIR_SWEEP_EVENT_PAUSE, "paused", err);
}

weir_status api_sweep_resume(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return apply(call, txn, WEIR_SWEEP_EVENT_RESUME, "resumed", err);
}

weir_status api_sweep_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(weir_sweep_delete(txn, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
