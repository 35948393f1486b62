#include "control/engine/alerter.h"

#include "base/log.h"
#include "ion/ion.h"
#include "notify/notify.h"

#define LOOKS_MAX      10 /* of one call; what is left is due again in the next */
#define LOOK_MAX_BYTES ((size_t)256 << 20)

struct looking {
    const struct weir_clock *clock;
    struct weir_arena *arena;
    struct weir_notify_look look;
    bool is_due;
};

static weir_status is_sandbox(struct weir_txn *txn, const char *subject, struct weir_arena *arena,
                              bool *out, struct weir_error *err)
{
    (void)arena;
    return weir_ion_is_sandbox(txn, subject, out, err);
}

/* What is decided twice is done once: the key is of the rule and the alert. */
static weir_status enqueue(struct weir_txn *txn, const struct weir_notify_action *action,
                           int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    json_t *payload =
        json_pack("{s:s,s:s,s:s?,s:s,s:s,s:s,s:I}", "firing", action->firing, "rule", action->rule,
                  "maker", action->maker, "subject", action->subject, "alert", action->alert,
                  "action", action->action, "number", (json_int_t)action->number);
    const char *text = weir_json_text(payload, arena);
    json_decref(payload);
    return weir_outbox_add(
        txn,
        weir_arena_printf(arena, "alert_action:%s/%lld", action->firing, (long long)action->number),
        "alert_action", text, now_ms, now_ms, err);
}

static weir_status is_due_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    return weir_notify_is_due(txn, looking->look.now_ms, &looking->is_due, err);
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct looking *looking = context;
    /* Within the transaction: what it sees was raised before, and does not lie ahead. */
    looking->look.now_ms = weir_clock_now_ms(looking->clock);
    return weir_notify_look(txn, &looking->look, looking->arena, err);
}

static weir_status look_once(const struct alerter *alerter, bool *out_was_due,
                             struct weir_error *err)
{
    struct weir_arena arena;
    struct looking looking = {.clock = alerter->clock,
                              .arena = &arena,
                              .look = {.now_ms = weir_clock_now_ms(alerter->clock),
                                       .server_url = alerter->server_url,
                                       .is_sandbox = is_sandbox,
                                       .act = enqueue}};
    weir_arena_init(&arena, LOOK_MAX_BYTES);
    weir_status status = weir_store_read(alerter->store, is_due_in, &looking, err);
    if (status == WEIR_OK && looking.is_due) {
        status = weir_store_write(alerter->store, look_in, &looking, err);
    }
    weir_arena_fini(&arena);
    *out_was_due = status == WEIR_OK && looking.is_due;
    if (*out_was_due && looking.look.n_deliveries > 0 && alerter->told != NULL) {
        alerter->told(alerter->context);
    }
    return status;
}

void alerter_look(const struct alerter *alerter)
{
    struct weir_error err = {0};
    weir_status status = WEIR_OK;
    bool was_due = true, was_any = false;
    for (int i = 0; i < LOOKS_MAX && was_due && status == WEIR_OK; i++) {
        status = look_once(alerter, &was_due, &err);
        was_any = was_any || was_due;
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "alert_rules_failed", WEIR_KV_STR("error", err.message));
    }
    if (was_any) {
        json_t *news = json_pack("[[s,{s:b}]]", "alerts", "new", 1);
        control_publish_all(&alerter->listener, news);
        json_decref(news);
    }
}
