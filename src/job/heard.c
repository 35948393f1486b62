#include "job/heard.h"

#include "base/arena.h"
#include "store/live.h"
#include "store/stmt.h"

static const char sql_enough[] =
    "SELECT left_ms = 0 AND NOT EXISTS (SELECT 1 FROM task_devices WHERE node = :name"
    " AND is_left = 1) FROM nodes WHERE name = :name";
static const char sql_keep[] =
    "INSERT INTO nodes_heard (name, last_seen_ms) SELECT name, :seen FROM nodes WHERE name = :name"
    " ON CONFLICT (name) DO UPDATE SET last_seen_ms = excluded.last_seen_ms"
    " WHERE nodes_heard.last_seen_ms <> excluded.last_seen_ms";
static const char sql_restore[] =
    "UPDATE nodes SET last_seen_ms = (SELECT h.last_seen_ms FROM nodes_heard h"
    " WHERE h.name = nodes.name) WHERE EXISTS (SELECT 1 FROM nodes_heard h"
    " WHERE h.name = nodes.name AND h.last_seen_ms > nodes.last_seen_ms)";

void weir_heard_put(struct weir_store *store, const struct weir_node *node,
                    const struct weir_device_report *reports, size_t n_reports, bool is_news,
                    int64_t now_ms)
{
    struct weir_arena arena;
    const double heard[WEIR_LIVE_VALUES_MAX] = {[WEIR_LIVE_LAST_SEEN] = (double)now_ms,
                                                [WEIR_LIVE_DISK_FREE] =
                                                    (double)node->disk_free_bytes};
    weir_arena_init(&arena, 0);
    if (is_news) {
        weir_live_drop(store, WEIR_LIVE_DEVICES, node->name);
    }
    for (size_t i = 0; i < n_reports; i++) {
        const struct weir_device *device = &reports[i].device;
        const double readings[WEIR_LIVE_VALUES_MAX] = {
            [WEIR_LIVE_TEMPERATURE] = device->temperature_c,
            [WEIR_LIVE_POWER] = device->power_w,
            [WEIR_LIVE_UTILISATION] = device->utilisation_pct,
            [WEIR_LIVE_MEMORY_USED] = (double)device->memory_used_bytes,
            [WEIR_LIVE_ECC_ERRORS] = (double)device->ecc_errors};
        weir_live_put(store, WEIR_LIVE_DEVICES,
                      weir_arena_printf(&arena, "%s/%s", node->name, device->id), readings,
                      (1u << WEIR_LIVE_VALUES_MAX) - 1);
    }
    weir_live_put(store, WEIR_LIVE_NODES, node->name, heard,
                  1u << WEIR_LIVE_LAST_SEEN | 1u << WEIR_LIVE_DISK_FREE);
    weir_arena_fini(&arena);
}

weir_status weir_heard_is_enough(struct weir_txn *txn, const char *node, bool *out,
                                 struct weir_error *err)
{
    int64_t is_enough = 0;
    WEIR_TRY(weir_txn_query_int(txn, sql_enough, WEIR_BINDS(WEIR_BIND_TEXT("name", node)), 0,
                                &is_enough, err));
    *out = is_enough != 0;
    return WEIR_OK;
}

static weir_status keep_rows(struct weir_txn *txn, const struct weir_live_row *rows, size_t n,
                             struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if ((rows[i].mask >> WEIR_LIVE_LAST_SEEN & 1) != 0) {
            int64_t seen_ms = (int64_t)rows[i].values[WEIR_LIVE_LAST_SEEN];
            WEIR_TRY(weir_txn_exec(
                txn, sql_keep,
                WEIR_BINDS(WEIR_BIND_TEXT("name", rows[i].key), WEIR_BIND_INT("seen", seen_ms)),
                NULL, err));
        }
    }
    return WEIR_OK;
}

weir_status weir_heard_keep(struct weir_txn *txn, struct weir_store *store, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_live_row *rows;
    size_t n;
    weir_arena_init(&arena, 0);
    weir_live_list(store, WEIR_LIVE_NODES, &arena, &rows, &n);
    return keep_rows(txn, rows, n, err);
}

weir_status weir_heard_restore(struct weir_txn *txn, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_restore, WEIR_NO_BINDS, NULL, err);
}
