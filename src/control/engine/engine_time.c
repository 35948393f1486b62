/** Time: the wall clock is set, the server was away, or is cut off. None of it is the nodes' doing. */
#include "control/engine/engine_private.h"

#include "base/log.h"
#include "store/live.h"
#include "store/set_clock.h"

#define CLOCK_SET_MS   2000 /* A wall clock that is off by less was not set. */
#define NODES_EVERY_MS 500

static weir_status note_clock(struct work *work, void *set_by_ms, struct weir_txn *txn,
                              struct weir_error *err)
{
    int64_t by_ms = *(const int64_t *)set_by_ms;
    WEIR_TRY(weir_set_clock(txn, by_ms, err));
    WEIR_TRY(
        weir_clock_keep(txn, weir_clock_offset_ms() + by_ms, work->control.now_ms + by_ms, err));
    return control_log(&work->control, txn, "server", "clock_set", "server/clock",
                       weir_arena_printf(work->control.arena,
                                         "The wall clock was set by %+.1f s: what runs and waits "
                                         "takes no notice.",
                                         (double)by_ms / 1000),
                       err);
}

/* What is counted with is moved first; until then the clock goes on as before. */
static void follow_clock(struct work *work)
{
    struct engine *engine = work->engine;
    int64_t set_by_ms = engine->config.clock == &weir_system_clock ? weir_clock_set_by_ms() : 0;
    if ((set_by_ms > -CLOCK_SET_MS && set_by_ms < CLOCK_SET_MS) ||
        work_write(work, note_clock, &set_by_ms) != WEIR_OK) {
        return;
    }
    weir_live_move(engine->config.store, set_by_ms);
    weir_clock_follow(set_by_ms);
    weir_node_watch_move(&engine->watch, set_by_ms);
    engine->back_ms += engine->back_ms > 0 ? set_by_ms : 0;
    scheduler_destroy(engine->scheduler);
    engine_make_scheduler(engine);
    weir_log(WEIR_LOG_WARN, "wall_clock_was_set", WEIR_KV_INT("by_ms", set_by_ms));
}

static weir_status look_at_heartbeats(struct work *work, void *has_changed, struct weir_txn *txn,
                                      struct weir_error *err)
{
    return weir_node_watch_read(&work->engine->watch, txn, work->control.now_ms,
                                work->control.arena, has_changed, err);
}

static void look_at_nodes(struct work *work)
{
    struct weir_error err;
    struct engine *engine = work->engine;
    bool has_changed = false; /* how the server hears */
    if (weir_mono_ms() < engine->next_nodes_mono_ms ||
        work_read(work, look_at_heartbeats, &has_changed, &err) != WEIR_OK) {
        return; /* tried again with the next round */
    }
    engine->next_nodes_mono_ms = weir_mono_ms() + NODES_EVERY_MS;
    if (has_changed) {
        bool is_cut = engine->watch.cut_ms != 0;
        weir_log(WEIR_LOG_WARN, is_cut ? "server_cut_off" : "server_hears_again",
                 WEIR_KV_INT("silent", (int64_t)engine->watch.n_silent),
                 WEIR_KV_INT("nodes", (int64_t)engine->watch.n_heard));
    }
}

void engine_keep_time(struct work *work)
{
    struct engine *engine = work->engine;
    work->control.now_ms = weir_clock_now_ms(engine->config.clock);
    follow_clock(work);
    work->control.now_ms = weir_clock_now_ms(engine->config.clock);
    int64_t gap_ms = presence_take_gap_ms(engine->presence);
    if (gap_ms > 0) {
        engine->away_ms = gap_ms;
        engine->back_ms = work->control.now_ms;
        weir_node_watch_pause(&engine->watch, work->control.now_ms);
        weir_log(WEIR_LOG_WARN, "server_was_away", WEIR_KV_INT("for_ms", gap_ms),
                 WEIR_KV_STR("effect", "every node has the full time to report"));
    }
    look_at_nodes(work);
}
