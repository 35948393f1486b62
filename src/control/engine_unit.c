/** Transactions of the engine, and units of its work: a job, an ION or a deployment that is loaded and stepped alone. */
#include "control/engine_private.h"

#include "base/log.h"

#include <stdio.h>

static weir_status run_work_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct work *work = context;
    json_array_clear(work->control.publish);
    return work->fn(work, txn, err);
}

static void publish_all(struct work *work)
{
    control_publish_all(&work->engine->config.listener, work->control.publish);
    json_array_clear(work->control.publish);
}

static weir_status run_write_quietly(struct work *work, work_fn fn, struct weir_error *err)
{
    work->fn = fn;
    WEIR_TRY(weir_store_write(work->engine->config.store, run_work_in, work, err));
    publish_all(work);
    return WEIR_OK;
}

weir_status work_write(struct work *work, work_fn fn)
{
    struct weir_error err = {0};
    weir_status status = run_write_quietly(work, fn, &err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("error", err.message));
    }
    return status;
}

weir_status work_read(struct work *work, work_fn fn, struct weir_error *err)
{
    work->fn = fn;
    return weir_store_read(work->engine->config.store, run_work_in, work, err);
}

static weir_status raise_unreadable(struct work *work, struct weir_txn *txn, struct weir_error *err)
{
    return control_raise_unreadable(&work->control, txn, work->subject, work->problem, err);
}

static weir_status resolve_unreadable(struct work *work, struct weir_txn *txn,
                                      struct weir_error *err)
{
    return control_resolve_unreadable(&work->control, txn, work->subject, err);
}

/* Name the one that cannot be loaded, once; the others go on. */
static void set_aside(struct work *work, const struct weir_error *why)
{
    if (aside_put(&work->engine->aside, work->subject, weir_mono_ms())) {
        weir_log(WEIR_LOG_ERROR, "engine_set_aside", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", why->message));
        work->problem = why->message;
        (void)work_write(work, raise_unreadable);
    }
}

void work_note_outcome(struct work *work, weir_status status, const struct weir_error *err)
{
    if (control_is_unreadable(status)) {
        set_aside(work, err);
    } else if (status == WEIR_OK && aside_take(&work->engine->aside, work->subject)) {
        (void)work_write(work, resolve_unreadable);
    } else if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        weir_log(WEIR_LOG_ERROR, "engine_step_failed", WEIR_KV_STR("subject", work->subject),
                 WEIR_KV_STR("error", err->message));
    }
}

weir_status work_run_unit(struct work *work, work_fn fn, bool is_write)
{
    struct weir_error err = {0};
    struct weir_arena *round = work->control.arena, unit;
    weir_arena_init(&unit, WORK_UNIT_MAX_BYTES);
    work->control.arena = &unit;
    weir_status status = is_write ? run_write_quietly(work, fn, &err) : work_read(work, fn, &err);
    work_note_outcome(work, status, &err);
    work->control.arena = round;
    weir_arena_fini(&unit);
    return status;
}

bool work_take_unit(struct work *work, const char *kind, const char *id)
{
    (void)snprintf(work->subject, sizeof work->subject, "%s/%s", kind, id);
    work->next_ms = INT64_MAX;
    return !aside_has(&work->engine->aside, work->subject, weir_mono_ms());
}
