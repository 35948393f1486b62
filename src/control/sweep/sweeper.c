#include "control/sweep/sweeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/sweep.h"

#include <stdio.h>

#define LOOK_EVERY_MS  250
#define REST           20 /* times as long as a look took */
#define UNIT_MAX_BYTES ((size_t)256 << 20)

struct look {
    struct sweeper *sweeper;
    struct control control;
    char **ids;
    size_t n_ids;
    const char *id; /* Of the sweep in question. */
    bool is_news;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    return weir_sweep_list_open(txn, look->control.arena, &look->ids, &look->n_ids, err);
}

static weir_status peek_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    struct weir_sweep_event tick;
    WEIR_AUTO(weir_sweep_state_fini) struct weir_sweep_state state = {0};
    WEIR_TRY(weir_sweep_load(txn, look->id, look->control.arena, &state, err));
    return control_sweep_observe(&look->control, txn, &state, &tick, &look->is_news, err);
}

static weir_status tick_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    struct weir_sweep_event tick;
    WEIR_AUTO(weir_sweep_state_fini) struct weir_sweep_state state = {0};
    json_array_clear(look->control.publish);
    WEIR_TRY(weir_sweep_load(txn, look->id, look->control.arena, &state, err));
    WEIR_TRY(control_sweep_observe(&look->control, txn, &state, &tick, &look->is_news, err));
    return control_sweep_apply(&look->control, txn, &state, &tick, err);
}

static void note_failure(struct look *look, const char *subject, weir_status status,
                         const struct weir_error *err)
{
    struct sweeper *sweeper = look->sweeper;
    if (status == WEIR_OK) {
        (void)aside_take(&sweeper->aside, subject);
    } else if (!control_is_unreadable(status) ||
               aside_put(&sweeper->aside, subject, weir_mono_ms())) {
        weir_log(WEIR_LOG_ERROR, "sweep_step_failed", WEIR_KV_STR("subject", subject),
                 WEIR_KV_STR("error", err->message));
    }
}

/* In an arena of its own: one that is too large fails alone. */
static void look_at(struct look *look, const char *id)
{
    char subject[128];
    struct weir_arena *round = look->control.arena, unit;
    struct weir_error err = {0};
    (void)snprintf(subject, sizeof subject, "sweep/%s", id);
    if (aside_has(&look->sweeper->aside, subject, weir_mono_ms())) {
        return;
    }
    weir_arena_init(&unit, UNIT_MAX_BYTES);
    look->control.arena = &unit;
    look->id = id;
    weir_status status = weir_store_read(look->sweeper->store, peek_in, look, &err);
    if (status == WEIR_OK && look->is_news) {
        status = weir_store_write(look->sweeper->store, tick_in, look, &err);
        if (status == WEIR_OK) {
            control_publish_all(&look->sweeper->listener, look->control.publish);
        }
        json_array_clear(look->control.publish);
    }
    note_failure(look, subject, status, &err);
    look->control.arena = round;
    weir_arena_fini(&unit);
}

int64_t sweeper_look(struct sweeper *sweeper, int64_t now_ms)
{
    struct weir_arena arena;
    struct weir_error err;
    int64_t begun_ms = weir_mono_ms();
    if (begun_ms < sweeper->next_mono_ms) {
        return sweeper->next_mono_ms - begun_ms;
    }
    weir_arena_init(&arena, 0);
    struct look look = {
        .sweeper = sweeper,
        .control = {.arena = &arena, .now_ms = now_ms, .actor = "system", .publish = json_array()}};
    if (weir_store_read(sweeper->store, list_in, &look, &err) != WEIR_OK) {
        look.n_ids = 0;
    }
    for (size_t i = 0; i < look.n_ids; i++) {
        look_at(&look, look.ids[i]);
    }
    bool is_any = look.n_ids > 0;
    json_decref(look.control.publish);
    weir_arena_fini(&arena);
    int64_t rest_ms = WEIR_MAX((weir_mono_ms() - begun_ms) * REST, (int64_t)LOOK_EVERY_MS);
    sweeper->next_mono_ms = weir_mono_ms() + (is_any ? rest_ms : 0);
    return is_any ? rest_ms : INT64_MAX;
}
