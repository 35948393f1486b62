/** IONs: each is looked at, and stepped when its time has come. */
#include "control/engine/engine_private.h"

#include "control/engine/observe.h"
#include "control/rollout.h"

#define OBSERVE_EVERY_MS 30000 /* what triggers of IONs look at */

/** One of them, in a round. */
struct ion_unit {
    const char *name;
    bool observes;   /**< In this round triggers look at the store. */
    bool is_refused; /**< Out: a deployment has refused what a link wants. */
    int64_t next_ms; /**< Out: when to look again. */
};

static weir_status list_ions(struct work *work, void *names, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct work_names *out = names;
    return weir_ion_list_active(txn, work->control.arena, &out->items, &out->n, err);
}

static weir_status peek_ion(struct work *work, void *unit, struct weir_txn *txn,
                            struct weir_error *err)
{
    struct ion_unit *ion = unit;
    struct weir_ion_state state;
    ion->is_refused = false;
    WEIR_TRY(weir_ion_load(txn, ion->name, work->control.arena, &state, err));
    ion->next_ms = weir_ion_next_tick_ms(&state, work->control.now_ms);
    if (ion->observes) {
        WEIR_TRY(control_rollout_is_refused(&work->control, txn, &state, &ion->is_refused, err));
    }
    if (ion->observes && ion->next_ms > work->control.now_ms) {
        bool is_due;
        WEIR_TRY(control_observe_is_due(&work->control, txn, &state, &is_due, err));
        ion->next_ms = is_due ? work->control.now_ms : ion->next_ms;
    }
    return control_rollout_look(&work->control, txn, &state, &ion->next_ms, err);
}

static weir_status tick_ion(struct work *work, void *unit, struct weir_txn *txn,
                            struct weir_error *err)
{
    return control_ion_tick(&work->control, txn, ((struct ion_unit *)unit)->name, err);
}

static weir_status shift_again(struct work *work, void *unit, struct weir_txn *txn,
                               struct weir_error *err)
{
    return control_rollout_again(&work->control, txn, ((struct ion_unit *)unit)->name, err);
}

static void run_ion(struct work *work, struct ion_unit *ion)
{
    if (!work_take_unit(work, "ion", ion->name) ||
        work_run_unit(work, peek_ion, ion, false) != WEIR_OK) {
        return;
    }
    if (ion->is_refused) {
        (void)work_run_unit(work, shift_again, ion, true);
    }
    if (ion->next_ms <= work->control.now_ms) {
        (void)work_run_unit(work, tick_ion, ion, true);
    }
}

int64_t engine_run_ions(struct work *work)
{
    struct weir_error err;
    struct work_names names;
    int64_t next_ms = INT64_MAX;
    bool observes = weir_mono_ms() >= work->engine->next_observe_mono_ms;
    if (observes) {
        work->engine->next_observe_mono_ms = weir_mono_ms() + OBSERVE_EVERY_MS;
    }
    if (work_read(work, list_ions, &names, &err) != WEIR_OK) {
        return work->control.now_ms + ENGINE_IDLE_MAX_MS;
    }
    for (size_t i = 0; i < names.n; i++) {
        struct ion_unit unit = {.name = names.items[i], .observes = observes, .next_ms = INT64_MAX};
        run_ion(work, &unit);
        next_ms = WEIR_MIN(next_ms, unit.next_ms);
    }
    return next_ms;
}
