/** The outbox: actions that transactions left to be done after them. */
#include "control/engine/engine_private.h"

#define OUTBOX_LEASE_MS  30000 /* Like the retry, within WEIR_OUTBOX_DELAY_MAX_MS. */
#define OUTBOX_RETRY_MS  1000
#define OUTBOX_MAX_TRIES 20
#define OUTBOX_BATCH     32

struct outbox_actions {
    struct weir_outbox *items;
    size_t n;
};

static weir_status take_actions(struct work *work, void *actions, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct outbox_actions *out = actions;
    return weir_outbox_take(txn, work->control.now_ms, OUTBOX_LEASE_MS, OUTBOX_BATCH,
                            work->control.arena, &out->items, &out->n, err);
}

static weir_status do_action(struct work *work, void *unit, struct weir_txn *txn,
                             struct weir_error *err)
{
    const struct weir_outbox *action = unit;
    WEIR_TRY(control_execute(&work->control, txn, action->kind, action->payload, err));
    return weir_outbox_done(txn, action->seq, work->control.now_ms, err);
}

static weir_status retry_action(struct work *work, void *unit, struct weir_txn *txn,
                                struct weir_error *err)
{
    const struct weir_outbox *action = unit;
    bool is_last = action->attempts >= OUTBOX_MAX_TRIES;
    return weir_outbox_fail(txn, action->seq, "the action failed; see the server's log",
                            is_last ? 0 : work->control.now_ms + OUTBOX_RETRY_MS,
                            work->control.now_ms, err);
}

static weir_status find_due(struct work *work, void *due_ms, struct weir_txn *txn,
                            struct weir_error *err)
{
    return weir_outbox_next_due(txn, work->control.now_ms, due_ms, err);
}

/* In an arena of its own, too. What fails is tried again by the outbox's own rule. */
static weir_status run_action(struct work *work, struct weir_outbox *action)
{
    struct weir_arena *round = work->control.arena, arena;
    weir_arena_init(&arena, WORK_UNIT_MAX_BYTES);
    work->control.arena = &arena;
    weir_status status = work_write(work, do_action, action);
    work->control.arena = round;
    weir_arena_fini(&arena);
    return status;
}

int64_t engine_run_outbox(struct work *work)
{
    struct weir_error err;
    struct outbox_actions actions;
    int64_t due_ms;
    if (work_read(work, find_due, &due_ms, &err) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    if (due_ms > work->control.now_ms) {
        return due_ms;
    }
    if (work_write(work, take_actions, &actions) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    for (size_t i = 0; i < actions.n; i++) {
        if (run_action(work, &actions.items[i]) != WEIR_OK) {
            (void)work_write(work, retry_action, &actions.items[i]);
        }
    }
    return work->control.now_ms; /* actions cause more */
}
