/** The outbox: actions that transactions left to be done after them. */
#include "control/engine_private.h"

#define OUTBOX_LEASE_MS  30000 /* Like the retry, within WEIR_OUTBOX_DELAY_MAX_MS. */
#define OUTBOX_RETRY_MS  1000
#define OUTBOX_MAX_TRIES 20
#define OUTBOX_BATCH     32

static weir_status take_actions(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_outbox_take(txn, work->control.now_ms, OUTBOX_LEASE_MS, OUTBOX_BATCH,
                            work->control.arena, &work->actions, &work->n_actions, err);
}

static weir_status do_action(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_TRY(control_execute(&work->control, txn, work->action->kind, work->action->payload, err));
    return weir_outbox_done(txn, work->action->seq, work->control.now_ms, err);
}

static weir_status retry_action(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    bool is_last = work->action->attempts >= OUTBOX_MAX_TRIES;
    return weir_outbox_fail(txn, work->action->seq, "the action failed; see the server's log",
                            is_last ? 0 : work->control.now_ms + OUTBOX_RETRY_MS,
                            work->control.now_ms, err);
}

static weir_status is_outbox_due(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_outbox_next_due(txn, work->control.now_ms, &work->next_ms, err);
}

/* In an arena of its own, too. What fails is tried again by the outbox's own rule. */
static weir_status run_action(struct work *work)
{
    struct weir_arena *round = work->control.arena, unit;
    weir_arena_init(&unit, WORK_UNIT_MAX_BYTES);
    work->control.arena = &unit;
    weir_status status = work_write(work, do_action);
    work->control.arena = round;
    weir_arena_fini(&unit);
    return status;
}

int64_t engine_run_outbox(struct work *work)
{
    struct weir_error err;
    if (work_read(work, is_outbox_due, &err) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    if (work->next_ms > work->control.now_ms) {
        return work->next_ms;
    }
    if (work_write(work, take_actions) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_actions; i++) {
        work->action = &work->actions[i];
        if (run_action(work) != WEIR_OK) {
            (void)work_write(work, retry_action);
        }
    }
    return work->control.now_ms; /* actions cause more */
}
