#include "sched/place/fgd_index.h"

#include "base/macros.h"
#include "sched/place/fgd.h"
#include "sched/place/fgd_nodes.h"
#include "sched/place/fgd_ranking.h"
#include "sched/share/shares.h"

#include <stdlib.h>
#include <string.h>

#define INDICES_BYTES_MAX ((int64_t)64 << 20)
#define ROOM_BITS         20
#define ROOM_MAX          (((int64_t)1 << ROOM_BITS) - 1)
#define LOSS_MAX          ((int64_t)1 << 42)
#define CHANGES_MIN       64 /* Of tasks, between two weighings. */

/** The nodes for one shape, by cost. */
struct ranking {
    struct fgd_ranking nodes;
    bool is_made;
    int64_t seen;    /**< Of the log. */
    int64_t weighed; /**< With weights of this weighing. */
    int64_t asked;
};

/** A node with room, and what most tasks find too little of. */
struct roomy {
    int32_t node;
    int32_t n_whole; /**< Devices that are free as a whole. */
    int32_t largest; /**< Thousandths free on the emptiest. */
};

/** A node that was looked at and is to be ranked again. */
struct skipped {
    int64_t cost;
    int32_t node;
};

struct fgd_index {
    struct cluster *cluster;
    struct fgd_nodes nodes;
    struct fgd_state scratch;
    int64_t *sums; /**< Per kind. */
    int64_t room, room_weighed, n_weighings;
    int64_t n_changes; /**< Tasks that were given or lost a place since the last weighing. */
    int32_t *stale;    /**< Nodes whose states are to be looked at again. */
    int32_t n_stale;
    bool *is_stale;
    struct roomy *roomy; /**< Nodes with something free on a device, in any order, */
    int32_t n_roomy;
    int32_t *roomy_at; /**< and per node its place among them; -1. */
    int32_t *log;      /**< The last nodes that changed, a ring. */
    int64_t n_logged, log_mask;
    int64_t *noted;           /**< Per node: n_logged just after it changed last; 0 = it has not. */
    int64_t *values, *valued; /**< Per node, and in which weighing it was computed; 0 = not. */
    struct fgd_layout layout;
    struct ranking *rankings; /**< Per shape. */
    struct skipped *skipped;  /**< Room for all nodes. */
    int32_t n_made, n_made_max;
    int64_t n_requested;
};

static void weigh(struct fgd_index *index)
{
    fgd_nodes_sum(&index->nodes, index->sums);
    fgd_weigh(&index->nodes.mix, index->sums, index->room);
    index->room_weighed = index->room;
    index->n_changes = 0;
    index->n_weighings++;
}

/** Keep the list of nodes with room. */
static void note_room(struct fgd_index *index, int32_t node)
{
    int32_t at = index->roomy_at[node];
    const struct fgd_state *state = &index->nodes.states[node];
    if (index->nodes.rooms[node] > 0) {
        int32_t n_whole = 0;
        while (n_whole < state->n_devices && state->free[n_whole] == WEIR_SCHED_DEVICE) {
            n_whole++;
        }
        at = at < 0 ? index->n_roomy++ : at;
        index->roomy_at[node] = at;
        index->roomy[at] = (struct roomy){node, n_whole, state->free[0]};
    } else if (at >= 0) {
        index->roomy[at] = index->roomy[--index->n_roomy];
        index->roomy_at[index->roomy[at].node] = at;
        index->roomy_at[node] = -1;
    }
}

/** Look at the nodes that have changed, each once. */
static void refresh(struct fgd_index *index)
{
    for (int32_t i = 0; i < index->n_stale; i++) {
        int32_t node = index->stale[i];
        index->is_stale[node] = false;
        index->room -= index->nodes.rooms[node];
        bool is_changed = fgd_nodes_update(&index->nodes, node);
        index->room += index->nodes.rooms[node];
        if (is_changed) { /* What was only supposed has left no trace. */
            index->valued[node] = 0;
            index->log[index->n_logged & index->log_mask] = node;
            index->noted[node] = ++index->n_logged;
            note_room(index, node);
        }
    }
    index->n_stale = 0;
}

static weir_status make_arrays(struct fgd_index *index, size_t n_log)
{
    const struct cluster *cluster = index->cluster;
    const struct node_index *like = &cluster->index.by.by_cpu;
    size_t n_nodes = (size_t)cluster->snapshot->n_nodes;
    WEIR_TRY(fgd_nodes_init(&index->nodes, cluster));
    WEIR_TRY(fgd_layout_init(&index->layout, (int32_t)n_nodes, like->parts, like->n_parts));
    index->stale = calloc(n_nodes + 1, sizeof *index->stale);
    index->is_stale = calloc(n_nodes + 1, sizeof *index->is_stale);
    index->roomy = calloc(n_nodes + 1, sizeof *index->roomy);
    index->roomy_at = calloc(n_nodes + 1, sizeof *index->roomy_at);
    index->skipped = calloc(n_nodes + 1, sizeof *index->skipped);
    index->log = calloc(n_log, sizeof *index->log);
    index->noted = calloc(n_nodes + 1, sizeof *index->noted);
    index->values = calloc(n_nodes + 1, sizeof *index->values);
    index->valued = calloc(n_nodes + 1, sizeof *index->valued);
    index->rankings = calloc((size_t)cluster->shapes.n + 1, sizeof *index->rankings);
    index->scratch.free = calloc((size_t)index->nodes.max_devices + 1, sizeof *index->scratch.free);
    index->sums = calloc((size_t)index->nodes.mix.n_kinds + 1, sizeof *index->sums);
    bool is_whole = index->stale != NULL && index->is_stale != NULL && index->roomy != NULL &&
                    index->roomy_at != NULL && index->skipped != NULL && index->log != NULL &&
                    index->noted != NULL && index->values != NULL && index->valued != NULL &&
                    index->rankings != NULL && index->scratch.free != NULL && index->sums != NULL;
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}

weir_status fgd_index_create(struct cluster *cluster, struct fgd_index **out)
{
    size_t n_log = 64;
    struct fgd_index *index = calloc(1, sizeof *index);
    if (index == NULL) {
        return WEIR_ERR_NOMEM;
    }
    while (n_log < (size_t)cluster->snapshot->n_nodes) {
        n_log *= 2;
    }
    index->cluster = cluster;
    index->log_mask = (int64_t)n_log - 1;
    if (make_arrays(index, n_log) != WEIR_OK) {
        fgd_index_destroy(index);
        return WEIR_ERR_NOMEM;
    }
    int64_t bytes = (int64_t)fgd_ranking_bytes(&index->layout) + 1;
    index->n_made_max = (int32_t)WEIR_MAX(INDICES_BYTES_MAX / bytes, 1);
    for (int32_t i = 0; i < cluster->snapshot->n_nodes; i++) {
        index->room += index->nodes.rooms[i];
        index->roomy_at[i] = -1;
        note_room(index, i);
    }
    weigh(index);
    *out = index;
    return WEIR_OK;
}

void fgd_index_destroy(struct fgd_index *index)
{
    if (index == NULL) {
        return;
    }
    for (int32_t i = 0; index->rankings != NULL && i < index->cluster->shapes.n; i++) {
        fgd_ranking_fini(&index->rankings[i].nodes);
    }
    fgd_nodes_fini(&index->nodes);
    fgd_layout_fini(&index->layout);
    free(index->stale);
    free(index->is_stale);
    free(index->roomy);
    free(index->roomy_at);
    free(index->skipped);
    free(index->log);
    free(index->noted);
    free(index->values);
    free(index->valued);
    free(index->rankings);
    free(index->scratch.free);
    free(index->sums);
    free(index);
}

void fgd_index_note(struct fgd_index *index, int32_t node)
{
    if (!index->is_stale[node]) {
        index->is_stale[node] = true;
        index->stale[index->n_stale++] = node;
    }
}

void fgd_index_commit(struct fgd_index *index, size_t n_changes)
{
    refresh(index);
    index->n_changes += (int64_t)n_changes;
    int64_t change = index->room - index->room_weighed;
    change = change < 0 ? -change : change;
    if (index->n_changes >= CHANGES_MIN && change * 8 > index->room_weighed) {
        weigh(index);
    }
}

static int64_t value_now(struct fgd_index *index, int32_t node)
{
    if (index->valued[node] != index->n_weighings) {
        index->values[node] = fgd_value(&index->nodes.mix, &index->nodes.states[node]);
        index->valued[node] = index->n_weighings;
    }
    return index->values[node];
}

/** The node's value with the task; INT64_MIN if it does not fit. */
static int64_t value_with(struct fgd_index *index, int32_t task, int32_t node, int32_t *free_of)
{
    const struct weir_sched_demand *demand = cluster_demand(index->cluster, task);
    const struct fgd_state *state = &index->nodes.states[node];
    struct fgd_state *after = &index->scratch;
    int64_t need = demand->n_devices == 0
                       ? 0
                       : fgd_need(&index->nodes.classes[state->class_], demand->device_milli,
                                  demand->device_memory_bytes);
    if (demand->cpu_milli > state->cpu_milli || demand->memory_bytes > state->memory_bytes ||
        demand->n_devices > state->n_devices ||
        (demand->n_devices > 0 && state->free[demand->n_devices - 1] < need) ||
        !fgd_nodes_allow(&index->nodes, task, node)) {
        return INT64_MIN;
    }
    int32_t *pool = after->free;
    *after = *state;
    after->free = pool;
    memcpy(pool, state->free, (size_t)state->n_devices * sizeof *pool);
    return fgd_take(&index->nodes.mix, after, demand->cpu_milli, demand->memory_bytes,
                    demand->n_devices, need, free_of);
}

/** With nothing stale. */
static int64_t cost_of(struct fgd_index *index, int32_t task, int32_t node)
{
    int32_t free_of;
    int64_t value = value_with(index, task, node, &free_of);
    if (value == INT64_MIN) {
        return INT64_MAX;
    }
    int64_t loss = value_now(index, node) - value;
    loss = WEIR_MIN(WEIR_MAX(loss, -LOSS_MAX), LOSS_MAX);
    const struct fgd_state *state = &index->nodes.states[node];
    int64_t room = state->n_devices > 0 ? index->nodes.rooms[node] : state->cpu_milli / 1000;
    return loss * ((int64_t)1 << ROOM_BITS) + WEIR_MIN(room, ROOM_MAX);
}

int64_t fgd_index_cost(struct fgd_index *index, int32_t task, int32_t node)
{
    refresh(index);
    return cost_of(index, task, node);
}

static void rank_node(struct fgd_index *index, struct ranking *ranking, int32_t task, int32_t node)
{
    bool is_open = index->cluster->nodes[node].is_open;
    fgd_ranking_set(&ranking->nodes, node, is_open ? cost_of(index, task, node) : FGD_RANKING_NONE);
}

/** What a task without devices costs where nothing is free on devices: nothing, so that only its
 *  CPUs and memory have to be there. */
static int64_t cost_beside(const struct fgd_index *index, int32_t task, int32_t node)
{
    const struct weir_sched_demand *demand = cluster_demand(index->cluster, task);
    const struct fgd_state *state = &index->nodes.states[node];
    if (demand->cpu_milli > state->cpu_milli || demand->memory_bytes > state->memory_bytes ||
        !fgd_nodes_allow(&index->nodes, task, node)) {
        return FGD_RANKING_NONE;
    }
    return state->n_devices > 0 ? 0 : WEIR_MIN(state->cpu_milli / 1000, ROOM_MAX);
}

/** Rank all nodes again; for devices those that have some are enough. */
static void rank_all(struct fgd_index *index, struct ranking *ranking, int32_t task)
{
    fgd_ranking_clear(&ranking->nodes);
    const struct weir_sched_demand *demand = cluster_demand(index->cluster, task);
    if (demand->n_devices > 0) {
        bool is_whole = demand->device_milli == WEIR_SCHED_DEVICE;
        for (int32_t i = 0; i < index->n_roomy; i++) {
            const struct roomy *node = &index->roomy[i];
            if (is_whole ? node->n_whole >= demand->n_devices
                         : node->largest >= demand->device_milli) {
                fgd_ranking_set(&ranking->nodes, node->node, cost_of(index, task, node->node));
            }
        }
        return;
    }
    for (int32_t i = 0; i < index->cluster->snapshot->n_nodes; i++) {
        if (index->cluster->nodes[i].is_open) {
            fgd_ranking_put(&ranking->nodes, i,
                            index->nodes.rooms[i] > 0 ? cost_of(index, task, i)
                                                      : cost_beside(index, task, i));
        }
    }
    fgd_ranking_sort(&ranking->nodes);
}

/** Rank each node once that has changed since the ranking was made: by the log as far as it goes
 *  back, and else by looking at all. */
static void rank_changed(struct fgd_index *index, struct ranking *ranking, int32_t task)
{
    int32_t n_nodes = index->cluster->snapshot->n_nodes;
    if (index->n_logged - ranking->seen > index->log_mask) {
        for (int32_t i = 0; i < n_nodes; i++) {
            if (index->noted[i] > ranking->seen) {
                rank_node(index, ranking, task, i);
            }
        }
        return;
    }
    for (int64_t i = ranking->seen; i < index->n_logged; i++) {
        int32_t node = index->log[i & index->log_mask];
        if (index->noted[node] == i + 1) { /* It has not changed again after this. */
            rank_node(index, ranking, task, node);
        }
    }
}

/** Give up the ranking that was not asked for the longest. */
static void drop_oldest(struct fgd_index *index)
{
    struct ranking *oldest = NULL;
    for (int32_t i = 0; i < index->cluster->shapes.n; i++) {
        struct ranking *ranking = &index->rankings[i];
        if (ranking->is_made && (oldest == NULL || ranking->asked < oldest->asked)) {
            oldest = ranking;
        }
    }
    if (oldest != NULL) {
        fgd_ranking_fini(&oldest->nodes);
        *oldest = (struct ranking){0};
        index->n_made--;
    }
}

static struct ranking *ranking_for(struct fgd_index *index, int32_t task)
{
    struct ranking *ranking = &index->rankings[index->cluster->tasks[task].shape];
    refresh(index);
    if (!ranking->is_made) {
        if (index->n_made >= index->n_made_max) {
            drop_oldest(index);
        }
        if (fgd_ranking_init(&ranking->nodes, &index->layout) != WEIR_OK) {
            index->cluster->status = WEIR_ERR_NOMEM;
            return NULL;
        }
        ranking->is_made = true;
        index->n_made++;
    }
    ranking->asked = ++index->n_requested;
    if (ranking->weighed != index->n_weighings) {
        rank_all(index, ranking, task);
    } else {
        rank_changed(index, ranking, task);
    }
    ranking->weighed = index->n_weighings;
    ranking->seen = index->n_logged;
    return ranking;
}

void fgd_index_choose(struct fgd_index *index, int32_t task, struct assignment *assignment)
{
    const struct cluster *cluster = index->cluster;
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct node_state *node = &cluster->nodes[assignment->node];
    int32_t free_of;
    refresh(index);
    if (demand->n_devices != 1 || demand->device_milli == WEIR_SCHED_DEVICE ||
        assignment->zones != 0 ||
        value_with(index, task, assignment->node, &free_of) == INT64_MIN) {
        return;
    }
    int64_t units = cluster_device_units(cluster, task, assignment->node);
    for (int32_t d = 0; d < cluster->snapshot->nodes[assignment->node].n_devices; d++) {
        const struct device_state *device = &cluster->devices[node->first_device + d];
        bool is_free = device->future + units <= node->device_size &&
                       (assignment->when < FITS_NOW ||
                        (device->now + units <= node->device_size && device->n_waiting == 0));
        if (is_free && fgd_nodes_free(cluster, assignment->node, d) == free_of) {
            assignment->devices[0] = d;
            assignment->is_shared = device->future > 0;
            return;
        }
    }
}

bool fgd_index_find(struct fgd_index *index, int32_t task, enum fits_when when,
                    struct assignment *assignment)
{
    struct ranking *ranking = ranking_for(index, task);
    if (ranking == NULL) {
        return false;
    }
    struct fgd_ranking *nodes = &ranking->nodes;
    uint32_t open = shares_open_parts(index->cluster, task);
    int32_t n_skipped = 0;
    bool is_found = false;
    for (int32_t at = fgd_ranking_first(nodes, open); at >= 0 && !is_found;
         at = fgd_ranking_first(nodes, open)) {
        assignment->node = at;
        fits_find_within_shares(index->cluster, task, assignment);
        is_found = assignment->when >= when;
        if (!is_found) {
            index->skipped[n_skipped++] = (struct skipped){fgd_ranking_cost(nodes, at), at};
            fgd_ranking_set(nodes, at, FGD_RANKING_NONE);
        }
    }
    for (int32_t i = 0; i < n_skipped; i++) {
        fgd_ranking_set(nodes, index->skipped[i].node, index->skipped[i].cost);
    }
    if (is_found) {
        fgd_index_choose(index, task, assignment);
    }
    return is_found;
}
