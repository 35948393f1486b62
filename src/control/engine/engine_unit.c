/** Transactions of the engine, and units of its work: a job, an ION or a deployment that is loaded and stepped alone. */
#include "control/engine/engine_private.h"

#include "base/log.h"

#include <stdio.h>

/* One step, as a transaction runs it. */
struct step {
    struct work *work;
    work_fn fn;
    void *unit;
};

static weir_status run_step(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct step *step = context;
    json_array_clear(step->work->control.publish);
    return step->fn(step->work, step->unit, txn, err);
}

static weir_status run_write_quietly(struct work *work, work_fn fn, void *unit,
                                     struct weir_error *err)
{
    struct step step = {work, fn, unit};
    WEIR_TRY(weir_store_write(work->engine->config.store, run_step, &step, err));
    control_publish_all(&work->engine->config.listener, work->control.publish);
    json_array_clear(work->control.publish);
    return WEIR_OK;
}

weir_status work_write(struct work *work, work_fn fn, void *unit)
{
    struct weir_error err = {0};
    weir_status status = run_write_quietly(work, fn, unit, &err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("error", err.message));
    }
    return status;
}

weir_status work_read(struct work *work, work_fn fn, void *unit, struct weir_error *err)
{
    struct step step = {work, fn, unit};
    return weir_store_read(work->engine->config.store, run_step, &step, err);
}

static weir_status raise_unreadable(struct work *work, void *problem, struct weir_txn *txn,
                                    struct weir_error *err)
{
    return control_raise_unreadable(&work->control, txn, work->subject, problem, err);
}

static weir_status resolve_unreadable(struct work *work, void *none, struct weir_txn *txn,
                                      struct weir_error *err)
{
    (void)none;
    return control_resolve_unreadable(&work->control, txn, work->subject, err);
}

/* Name the one that cannot be loaded, once; the others go on. */
static void set_aside(struct work *work, const struct weir_error *why)
{
    if (aside_put(&work->engine->aside, work->subject, weir_mono_ms())) {
        weir_log(WEIR_LOG_ERROR, "engine_set_aside", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", why->message));
        (void)work_write(work, raise_unreadable, (void *)why->message);
    }
}

void work_note_outcome(struct work *work, weir_status status, const struct weir_error *err)
{
    if (control_is_unreadable(status)) {
        set_aside(work, err);
    } else if (status == WEIR_OK && aside_take(&work->engine->aside, work->subject)) {
        (void)work_write(work, resolve_unreadable, NULL);
    } else if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", err->message));
    }
}

weir_status work_run_unit(struct work *work, work_fn fn, void *unit, bool is_write)
{
    struct weir_error err = {0};
    struct weir_arena *round = work->control.arena, arena;
    weir_arena_init(&arena, WORK_UNIT_MAX_BYTES);
    work->control.arena = &arena;
    weir_status status =
        is_write ? run_write_quietly(work, fn, unit, &err) : work_read(work, fn, unit, &err);
    work_note_outcome(work, status, &err);
    work->control.arena = round;
    weir_arena_fini(&arena);
    return status;
}

bool work_take_unit(struct work *work, const char *kind, const char *id)
{
    (void)snprintf(work->subject, sizeof work->subject, "%s/%s", kind, id);
    return !aside_has(&work->engine->aside, work->subject, weir_mono_ms());
}
