#include "job/node_watch.h"

#include "base/grow.h"
#include "base/macros.h"
#include "job/heard.h"
#include "store/live.h"
#include "store/stmt.h"

#define REPORT_MS 5000 /* Agents report so often. */

static int64_t lost_ms = WEIR_NODE_TIMEOUT_MS;

void weir_node_set_timeout_ms(int64_t timeout_ms)
{
    lost_ms = timeout_ms;
}

int64_t weir_node_lost_ms(void)
{
    return lost_ms;
}

int64_t weir_node_silent_ms(void)
{
    return lost_ms * 2 / 3;
}

void weir_node_watch_start(struct weir_node_watch *watch, int64_t now_ms)
{
    *watch = (struct weir_node_watch){.since_ms = now_ms};
}

void weir_node_watch_pause(struct weir_node_watch *watch, int64_t now_ms)
{
    watch->since_ms = watch->before_ms = now_ms;
}

void weir_node_watch_move(struct weir_node_watch *watch, int64_t by_ms)
{
    int64_t *times[] = {&watch->since_ms, &watch->cut_ms,  &watch->looked_ms,
                        &watch->alive_ms, &watch->from_ms, &watch->before_ms};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(times); i++) {
        *times[i] += *times[i] != 0 ? by_ms : 0;
    }
}

/* Until when a node was heard: one that was there when the server began to listen has the time since then. */
static int64_t until_ms(const struct weir_node_watch *watch, int64_t heard_ms)
{
    return heard_ms >= watch->alive_ms ? WEIR_MAX(heard_ms, watch->since_ms) : heard_ms;
}

/* Those that were heard just before the server started were there, as far as it was kept when (job/heard.h); the others
 * had been lost already. */
static void note_alive(struct weir_node_watch *watch, const int64_t *heard_ms, size_t n)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < n; i++) {
        last_ms = WEIR_MAX(last_ms, WEIR_MIN(heard_ms[i], watch->since_ms));
    }
    watch->alive_ms = last_ms - lost_ms - REPORT_MS - WEIR_HEARD_EVERY_MS;
}

/* Does the node count: was it not lost before? */
static bool counts(const struct weir_node_watch *watch, int64_t heard_ms)
{
    return watch->cut_ms != 0 ? heard_ms >= watch->from_ms
                              : watch->looked_ms - until_ms(watch, heard_ms) < lost_ms;
}

static void count(struct weir_node_watch *watch, const int64_t *heard_ms, size_t n, int64_t now_ms)
{
    watch->n_silent = watch->n_heard = 0;
    for (size_t i = 0; i < n; i++) {
        if (counts(watch, heard_ms[i])) {
            int64_t last_ms = watch->cut_ms != 0 ? heard_ms[i] : until_ms(watch, heard_ms[i]);
            watch->n_heard++;
            watch->n_silent += now_ms - last_ms >= weir_node_silent_ms();
        }
    }
}

static void begin_cut(struct weir_node_watch *watch, const int64_t *heard_ms, size_t n,
                      int64_t now_ms)
{
    watch->from_ms = now_ms;
    for (size_t i = 0; i < n; i++) {
        if (counts(watch, heard_ms[i])) {
            watch->from_ms = WEIR_MIN(watch->from_ms, heard_ms[i]);
        }
    }
    watch->cut_ms = now_ms;
    watch->before_ms = watch->since_ms;
}

/* It is over: half of the nodes or more speak; or it has lasted, and the silent ones are taken for gone. */
static bool end_cut(struct weir_node_watch *watch, bool is_most, int64_t now_ms)
{
    if (is_most && now_ms - watch->cut_ms < WEIR_NODE_CUT_MS) {
        return false;
    }
    watch->since_ms = is_most ? watch->before_ms : now_ms;
    watch->cut_ms = 0;
    return true;
}

bool weir_node_watch_look(struct weir_node_watch *watch, const int64_t *heard_ms, size_t n,
                          int64_t now_ms)
{
    if (watch->looked_ms == 0) {
        note_alive(watch, heard_ms, n);
    }
    watch->looked_ms = watch->looked_ms == 0 ? now_ms : watch->looked_ms;
    count(watch, heard_ms, n, now_ms);
    bool was_cut = watch->cut_ms != 0, is_changed = false;
    bool is_all = n >= 2 && watch->n_silent > 0 && watch->n_silent == watch->n_heard;
    bool is_most = is_all || (watch->n_silent >= 2 && 2 * watch->n_silent > watch->n_heard);
    if (!was_cut && is_most) {
        begin_cut(watch, heard_ms, n, now_ms);
        is_changed = true;
    } else if (was_cut && is_all) {
        watch->cut_ms = now_ms; /* nobody speaks: the bound is for when somebody does */
    } else if (was_cut) {
        is_changed = end_cut(watch, is_most, now_ms);
    }
    if (watch->cut_ms != 0) {
        watch->since_ms = now_ms - weir_node_silent_ms();
    }
    watch->looked_ms = now_ms;
    return is_changed;
}

static const char sql_heard[] =
    "SELECT " WEIR_LIVE_NODE("last_seen_ms") " FROM nodes WHERE left_ms = 0";

weir_status weir_node_watch_read(struct weir_node_watch *watch, struct weir_txn *txn,
                                 int64_t now_ms, struct weir_arena *arena, bool *out,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    int64_t *heard_ms = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_heard, WEIR_NO_BINDS, &row, err));
    for (;;) {
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
        if (!has_row) {
            break;
        }
        weir_arena_grow(arena, &heard_ms, sizeof *heard_ms, n, &cap);
        heard_ms[n++] = weir_stmt_int(row, 0);
    }
    *out = weir_node_watch_look(watch, heard_ms, n, now_ms);
    return WEIR_OK;
}
