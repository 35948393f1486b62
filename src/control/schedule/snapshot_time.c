/* What of the snapshot changes with time alone: windows of nodes, and reservations. */
#include "control/schedule/snapshot_private.h"

#include "base/hash.h"
#include "base/json.h"
#include "job/node_window.h"
#include "job/reservation.h"

#include <string.h>

static uint64_t hash_of(const struct weir_reservation *list, size_t n)
{
    uint64_t hash = weir_hash_bytes(WEIR_HASH_BEGIN, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        hash = weir_hash_text(hash, list[i].name);
        hash = weir_hash_text(hash, list[i].project != NULL ? list[i].project : "");
        hash = weir_hash_text(hash, list[i].queue != NULL ? list[i].queue : "");
        hash = weir_hash_text(hash, list[i].nodes);
        hash = weir_hash_bytes(hash, &list[i].from_ms, sizeof list[i].from_ms);
        hash = weir_hash_bytes(hash, &list[i].until_ms, sizeof list[i].until_ms);
    }
    return hash;
}

static void copy_reservation(const struct weir_reservation *from, struct weir_arena *arena,
                             struct snapshot_reservation *out)
{
    WEIR_AUTO(weir_json_auto_free) json_t *names = json_loads(from->nodes, 0, NULL);
    const char **nodes = WEIR_ARENA_ARRAY(arena, json_array_size(names) + 1, const char *);
    const json_t *name;
    size_t i;
    *out = (struct snapshot_reservation){.name = from->name,
                                         .project = from->project,
                                         .queue = from->queue,
                                         .nodes = nodes,
                                         .from_ms = from->from_ms,
                                         .until_ms = from->until_ms};
    json_array_foreach(names, i, name)
    {
        if (json_is_string(name)) {
            nodes[out->n_nodes++] = weir_arena_strdup(arena, json_string_value(name));
        }
    }
}

weir_status snapshot_read_reservations(struct snapshot *snapshot, struct weir_txn *txn,
                                       int64_t now_ms, struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_reservation *list;
    size_t n;
    weir_arena_init(&arena, 0);
    weir_status status = weir_reservation_list(txn, now_ms, &arena, &list, &n, err);
    uint64_t hash = status == WEIR_OK ? hash_of(list, n) : snapshot->reservations_hash;
    if (hash == snapshot->reservations_hash) {
        weir_arena_fini(&arena);
        return status;
    }
    weir_arena_fini(&snapshot->reservations_arena);
    snapshot->reservations_arena = arena;
    snapshot->reservations =
        WEIR_ARENA_ARRAY(&snapshot->reservations_arena, n + 1, struct snapshot_reservation);
    for (size_t i = 0; i < n; i++) {
        copy_reservation(&list[i], &snapshot->reservations_arena, &snapshot->reservations[i]);
    }
    snapshot->n_reservations = n;
    snapshot->reservations_hash = hash;
    snapshot->is_changed = true;
    return WEIR_OK;
}

static int32_t queue_of(const struct snapshot *snapshot, const struct snapshot_reservation *of)
{
    if (of->project != NULL) {
        return queue_tree_find(&snapshot->queues, of->project);
    }
    for (int32_t q = 0; q < snapshot->queues.n_set; q++) {
        if (strcmp(snapshot->queues.rows[q].name, of->queue) == 0) {
            return q;
        }
    }
    return WEIR_SCHED_NONE;
}

void snapshot_fill_reservations(struct snapshot *snapshot, int64_t now_ms)
{
    struct weir_arena *arena = &snapshot->rows_arena;
    struct weir_sched_reservation *rows =
        WEIR_ARENA_ARRAY(arena, snapshot->n_reservations + 1, struct weir_sched_reservation);
    int32_t n = 0;
    for (size_t i = 0; i < snapshot->n_reservations; i++) {
        const struct snapshot_reservation *of = &snapshot->reservations[i];
        int32_t *nodes = WEIR_ARENA_ARRAY(arena, of->n_nodes + 1, int32_t);
        struct weir_sched_reservation row = {.name = of->name,
                                             .queue = queue_of(snapshot, of),
                                             .job = WEIR_SCHED_NONE,
                                             .from_ms = of->from_ms,
                                             .until_ms = of->until_ms,
                                             .nodes = nodes};
        for (size_t k = 0; k < of->n_nodes; k++) {
            int32_t node = snapshot_find_node(snapshot, of->nodes[k]);
            nodes[row.n_nodes] = node;
            row.n_nodes += node >= 0;
        }
        if (row.n_nodes > 0 && of->until_ms > now_ms) {
            rows[n++] = row;
        }
    }
    snapshot->rows.reservations = rows;
    snapshot->rows.n_reservations = n;
}

int64_t snapshot_next_ms(const struct snapshot *snapshot, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        next_ms = WEIR_MIN(next_ms, weir_node_window_next_ms(&snapshot->nodes[i].facts, now_ms));
    }
    for (size_t i = 0; i < snapshot->n_reservations; i++) {
        const struct snapshot_reservation *of = &snapshot->reservations[i];
        next_ms = of->from_ms > now_ms ? WEIR_MIN(next_ms, of->from_ms) : next_ms;
        next_ms = of->until_ms > now_ms ? WEIR_MIN(next_ms, of->until_ms) : next_ms;
    }
    return next_ms;
}
