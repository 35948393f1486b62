/** What the state folder takes, and by which rules it goes. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "control/control.h"

#include "retain/retain.h"

weir_status api_store_usage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_retain_report report;
    (void)txn;
    WEIR_TRY(weir_retainer_usage(call->api->retainer, call->arena, &report, err));
    API_ANSWER(call, api_store_usage, .items = report.items, .n_items = report.n,
               .total_bytes = (int64_t)report.total_bytes, .disk_bytes = (int64_t)report.disk_bytes,
               .disk_free_bytes = (int64_t)report.disk_free_bytes,
               .steps = {(int64_t)report.n_steps, (int64_t)report.n_long_steps,
                         (double)report.longest_step_us / 1000.0});
    return WEIR_OK;
}

weir_status api_store_sweep(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    WEIR_TRY(control_log(&control, txn, "system", "store_swept", "store",
                         "What the rules of retention do not keep is removed now.", err));
    weir_retainer_notify(call->api->retainer);
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

static void answer_policy(struct api_call *call, const struct weir_retain_policy *policy)
{
    json_t *items = json_array();
    for (int i = 0; i < weir_retain_n(); i++) {
        char limit[WEIR_RETAIN_LIMIT_TEXT_BYTES], fallback[WEIR_RETAIN_LIMIT_TEXT_BYTES];
        const struct weir_retain_rule *rule = weir_retain_rule(i);
        weir_retain_limit_text(&policy->limits[i], limit);
        weir_retain_limit_text(&rule->limit, fallback);
        json_array_append_new(items, WEIR_VIEW_JSON(api_retention_limit, .kind = rule->name,
                                                    .what = rule->what, .rule = rule->rule,
                                                    .limit = limit, .standard = fallback));
    }
    API_ANSWER(call, api_retention, .items = items);
}

weir_status api_retention_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_retain_policy policy;
    WEIR_TRY(weir_retain_policy_load(txn, call->arena, &policy, err));
    answer_policy(call, &policy);
    return WEIR_OK;
}

/* One member of the body: "decisions": "30d,10GB". */
static weir_status change_limit(struct api_call *call, struct weir_txn *txn, const char *name,
                                const json_t *value, struct weir_retain_policy *policy,
                                struct weir_error *err)
{
    struct control control = api_control(call);
    char before[WEIR_RETAIN_LIMIT_TEXT_BYTES], after[WEIR_RETAIN_LIMIT_TEXT_BYTES];
    int kind = weir_retain_kind_from_text(name);
    if (kind < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.%.80s: no rule has that name; weir store retain lists them", name);
    }
    if (!json_is_string(value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a limit, such as \"30d,10GB\"",
                              name);
    }
    weir_retain_limit_text(&policy->limits[kind], before);
    weir_status status =
        weir_retain_limit_parse(json_string_value(value), kind, &policy->limits[kind], err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "$.%s: ", name);
    }
    weir_retain_limit_text(&policy->limits[kind], after);
    return control_log(
        &control, txn, "system", "retention_changed",
        weir_arena_printf(call->arena, "retention/%s", name),
        weir_arena_printf(call->arena, "limit of %s: %s, before %s", name, after, before), err);
}

weir_status api_retention_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_retain_policy policy;
    const char *name;
    json_t *value;
    WEIR_TRY(weir_retain_policy_load(txn, call->arena, &policy, err));
    json_object_foreach(call->body, name, value)
    {
        WEIR_TRY(change_limit(call, txn, name, value, &policy, err));
    }
    WEIR_TRY(weir_retain_policy_save(txn, &policy, call->now_ms, call->arena, err));
    answer_policy(call, &policy);
    return WEIR_OK;
}
