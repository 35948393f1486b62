/** IONs: each is looked at, and stepped when its time has come. */
#include "control/engine_private.h"

#include "control/observe.h"
#include "control/rollout.h"

#define OBSERVE_EVERY_MS 30000 /* what triggers of IONs look at */

static weir_status list_ions(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return weir_ion_list_active(txn, work->control.arena, &work->ids, &work->n_ids, err);
}

static weir_status peek_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    work->is_due = false;
    WEIR_TRY(weir_ion_load(txn, work->ion, work->control.arena, &state, err));
    work->next_ms = weir_ion_next_tick_ms(&state, work->control.now_ms);
    if (work->observes) {
        WEIR_TRY(control_rollout_is_refused(&work->control, txn, &state, &work->is_due, err));
    }
    if (work->observes && work->next_ms > work->control.now_ms) {
        bool is_due;
        WEIR_TRY(control_observe_is_due(&work->control, txn, &state, &is_due, err));
        work->next_ms = is_due ? work->control.now_ms : work->next_ms;
    }
    return control_rollout_look(&work->control, txn, &state, &work->next_ms, err);
}

static weir_status tick_ion(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_ion_tick(&work->control, txn, work->ion, err);
}

static weir_status shift_again(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_rollout_again(&work->control, txn, work->ion, err);
}

static void run_ion(struct work *work)
{
    if (!work_take_unit(work, "ion", work->ion) ||
        work_run_unit(work, peek_ion, false) != WEIR_OK) {
        return;
    }
    if (work->is_due) {
        (void)work_run_unit(work, shift_again, true);
    }
    if (work->next_ms <= work->control.now_ms) {
        (void)work_run_unit(work, tick_ion, true);
    }
}

int64_t engine_run_ions(struct work *work)
{
    struct weir_error err;
    int64_t next_ms = INT64_MAX;
    work->observes = weir_mono_ms() >= work->engine->next_observe_mono_ms;
    if (work->observes) {
        work->engine->next_observe_mono_ms = weir_mono_ms() + OBSERVE_EVERY_MS;
    }
    if (work_read(work, list_ions, &err) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    for (size_t i = 0; i < work->n_ids; i++) {
        work->ion = work->ids[i];
        run_ion(work);
        next_ms = WEIR_MIN(next_ms, work->next_ms);
    }
    return next_ms;
}
