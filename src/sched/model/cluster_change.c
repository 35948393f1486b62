#include "sched/model/cluster.h"

#include "base/macros.h"
#include "sched/place/fgd_index.h"
#include "sched/place/zones.h"

#include <stdlib.h>
#include <string.h>

static void index_nodes_of(struct cluster *cluster, const struct task_state *state)
{
    if (state->current_node >= 0) {
        cluster_index_node(cluster, state->current_node);
    }
    if (state->planned_node >= 0 && state->planned_node != state->current_node) {
        cluster_index_node(cluster, state->planned_node);
    }
}

static bool grow(void **array, size_t *cap, size_t needed, size_t size)
{
    if (needed <= *cap) {
        return true;
    }
    size_t new_cap = WEIR_MAX(needed, *cap * 2 + 256);
    void *grown = realloc(*array, new_cap * size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *cap = new_cap;
    return true;
}

static size_t numa_size(const struct cluster *cluster)
{
    return (size_t)cluster->numa.max_zones * sizeof(struct numa_allocation);
}

/** Of a task in zones of NUMA nodes, what it draws of them. */
static bool log_numa(struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    size_t n = (size_t)cluster->numa.max_zones, size = numa_size(cluster);
    if ((state->current_zones | state->zones) == 0) {
        return true;
    }
    if (!grow((void **)&cluster->undo.numa, &cluster->undo.numa_cap, cluster->undo.n_numa + 2 * n,
              sizeof *cluster->undo.numa)) {
        return false;
    }
    struct numa_allocation *saved = cluster->undo.numa + cluster->undo.n_numa;
    memcpy(saved, cluster_current_numa(cluster, task), size);
    memcpy(saved + n, cluster_planned_numa(cluster, task), size);
    cluster->undo.n_numa += 2 * n;
    return true;
}

static void restore_numa(struct cluster *cluster, const struct undo_entry *undo)
{
    cluster->undo.n_numa = (size_t)undo->first_numa;
    if ((undo->current_zones | undo->zones) != 0) {
        const struct numa_allocation *saved = cluster->undo.numa + undo->first_numa;
        memcpy(cluster_current_numa(cluster, undo->task), saved, numa_size(cluster));
        memcpy(cluster_planned_numa(cluster, undo->task), saved + cluster->numa.max_zones,
               numa_size(cluster));
    }
}

/** Remember a task as it is. Without memory the log is cut short and `status` says so. */
static void log_task(struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    size_t n_assigned = 2 * (size_t)cluster_demand(cluster, task)->n_devices;
    size_t first_numa = cluster->undo.n_numa;
    if (!grow((void **)&cluster->undo.entries, &cluster->undo.cap, cluster->undo.n + 1,
              sizeof *cluster->undo.entries) ||
        !grow((void **)&cluster->undo.devices, &cluster->undo.devices_cap,
              cluster->undo.n_devices + n_assigned, sizeof *cluster->undo.devices) ||
        !log_numa(cluster, task)) {
        cluster->status = WEIR_ERR_NOMEM;
        return;
    }
    cluster->undo.entries[cluster->undo.n++] = (struct undo_entry){
        .task = task,
        .current_node = state->current_node,
        .planned_node = state->planned_node,
        .by_job = state->by_job,
        .current_zones = state->current_zones,
        .zones = state->zones,
        .first_device = (int32_t)cluster->undo.n_devices,
        .first_numa = (int32_t)first_numa,
        .phase = state->phase,
        .reason = state->reason,
        .is_fixed = state->is_fixed,
    };
    if (n_assigned > 0) {
        int32_t *saved = cluster->undo.devices + cluster->undo.n_devices;
        memcpy(saved, cluster->current_devices + state->first_assigned,
               n_assigned / 2 * sizeof *saved);
        memcpy(saved + n_assigned / 2, cluster->planned_devices + state->first_assigned,
               n_assigned / 2 * sizeof *saved);
        cluster->undo.n_devices += n_assigned;
    }
}

/** Begin and end a change of a task: in between it counts nowhere. */
static struct task_state *change_begin(struct cluster *cluster, int32_t task)
{
    log_task(cluster, task);
    cluster_count_task(cluster, task, -1);
    return &cluster->tasks[task];
}

static void change_end(struct cluster *cluster, int32_t task, int32_t old_planned)
{
    cluster_count_task(cluster, task, 1);
    if (old_planned >= 0 && old_planned != cluster->tasks[task].planned_node) {
        cluster_index_node(cluster, old_planned);
    }
    index_nodes_of(cluster, &cluster->tasks[task]);
}

size_t cluster_checkpoint(const struct cluster *cluster)
{
    return cluster->undo.n;
}

void cluster_rollback(struct cluster *cluster, size_t checkpoint)
{
    while (cluster->undo.n > checkpoint) {
        const struct undo_entry *undo = &cluster->undo.entries[--cluster->undo.n];
        struct task_state *state = &cluster->tasks[undo->task];
        int32_t old_planned = state->planned_node, old_current = state->current_node;
        cluster_count_task(cluster, undo->task, -1);
        state->current_node = undo->current_node;
        state->planned_node = undo->planned_node;
        state->by_job = undo->by_job;
        state->current_zones = undo->current_zones;
        state->zones = undo->zones;
        state->phase = undo->phase;
        state->reason = undo->reason;
        state->is_fixed = undo->is_fixed;
        size_t n_devices = (size_t)cluster_demand(cluster, undo->task)->n_devices;
        if (n_devices > 0) {
            const int32_t *saved = cluster->undo.devices + undo->first_device;
            memcpy(cluster->current_devices + state->first_assigned, saved,
                   n_devices * sizeof *saved);
            memcpy(cluster->planned_devices + state->first_assigned, saved + n_devices,
                   n_devices * sizeof *saved);
        }
        cluster->undo.n_devices = (size_t)undo->first_device;
        restore_numa(cluster, undo);
        change_end(cluster, undo->task, old_planned);
        if (old_current >= 0 && old_current != state->current_node) {
            cluster_index_node(cluster, old_current);
        }
    }
}

void cluster_commit(struct cluster *cluster)
{
    cluster->changes.n_commits += cluster->undo.n > 0;
    for (size_t i = 0; i < cluster->undo.n; i++) {
        const struct task_state *task = &cluster->tasks[cluster->undo.entries[i].task];
        uint8_t before = cluster->undo.entries[i].phase;
        bool was_given = before == PHASE_BOUND || before == PHASE_PIPELINED;
        cluster->changes.of_jobs[task->job] = cluster->changes.n_commits;
        cluster->changes.has_freed = cluster->changes.has_freed || task->phase == PHASE_RELEASING ||
                                     (was_given && task->phase == PHASE_PENDING);
    }
    if (cluster->fgd != NULL && cluster->undo.n > 0) {
        fgd_index_commit(cluster->fgd, cluster->undo.n);
    }
    cluster->undo.n = 0;
    cluster->undo.n_devices = 0;
    cluster->undo.n_numa = 0;
}

bool cluster_is_fixed(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    const struct group_state *group = &cluster->groups[state->group];
    switch ((enum weir_sched_preemptibility)cluster->jobs[state->job].preemptibility) {
    case WEIR_SCHED_NON_PREEMPTIBLE:
        return true;
    case WEIR_SCHED_SEMI_PREEMPTIBLE:
        return group->n_alive + group->n_pipelined < group->min_member;
    case WEIR_SCHED_PREEMPTIBLE:
        break;
    }
    return false;
}

/** It is now where it will be. */
static void hold_zones(struct cluster *cluster, int32_t task)
{
    struct task_state *state = &cluster->tasks[task];
    state->current_zones = state->zones;
    if (state->zones != 0) {
        memcpy(cluster_current_numa(cluster, task), cluster_planned_numa(cluster, task),
               numa_size(cluster));
    }
}

void cluster_place(struct cluster *cluster, int32_t task, enum task_phase phase, int32_t node,
                   const int32_t *devices, uint32_t zones)
{
    bool is_fixed = cluster_is_fixed(cluster, task);
    struct task_state *state = change_begin(cluster, task);
    size_t n_devices = (size_t)cluster_demand(cluster, task)->n_devices;
    state->planned_node = node;
    state->phase = (uint8_t)phase;
    state->is_fixed = is_fixed;
    state->zones = zones;
    if (zones != 0) {
        zones_allocate(cluster, task, node, zones, phase == PHASE_BOUND,
                       cluster_planned_numa(cluster, task));
    }
    if (n_devices > 0) {
        memcpy(cluster->planned_devices + state->first_assigned, devices,
               n_devices * sizeof *devices);
    }
    if (phase == PHASE_BOUND) {
        state->current_node = node;
        hold_zones(cluster, task);
        if (n_devices > 0) {
            memcpy(cluster->current_devices + state->first_assigned, devices,
                   n_devices * sizeof *devices);
        }
    }
    cluster->n_decisions++;
    change_end(cluster, task, -1);
}

void cluster_evict(struct cluster *cluster, int32_t task, enum weir_sched_evict_reason reason,
                   int32_t by_job)
{
    struct task_state *state = change_begin(cluster, task);
    int32_t old_planned = state->planned_node;
    if (state->phase == PHASE_BOUND ||
        (state->phase == PHASE_PIPELINED && state->current_node < 0)) {
        state->phase = PHASE_PENDING;
        state->current_node = -1;
    } else {
        state->phase = PHASE_RELEASING;
        state->reason = (uint8_t)reason;
    }
    state->by_job = by_job;
    state->planned_node = -1;
    cluster->changes.n_freed++;
    change_end(cluster, task, old_planned);
    if (old_planned >= 0) {
        cluster_index_node(cluster, old_planned);
    }
}

void cluster_unevict(struct cluster *cluster, int32_t task)
{
    bool is_fixed = cluster_is_fixed(cluster, task);
    struct task_state *state = change_begin(cluster, task);
    size_t n_devices = (size_t)cluster_demand(cluster, task)->n_devices;
    state->phase = PHASE_RUNNING;
    state->planned_node = state->current_node;
    state->zones = state->current_zones;
    if (state->zones != 0) {
        memcpy(cluster_planned_numa(cluster, task), cluster_current_numa(cluster, task),
               numa_size(cluster));
    }
    state->reason = WEIR_SCHED_EVICT_NONE;
    state->by_job = WEIR_SCHED_NONE;
    state->is_fixed = is_fixed;
    if (n_devices > 0) {
        memcpy(cluster->planned_devices + state->first_assigned,
               cluster->current_devices + state->first_assigned, n_devices * sizeof(int32_t));
    }
    change_end(cluster, task, -1);
}

void cluster_defer(struct cluster *cluster, int32_t task)
{
    struct task_state *state = change_begin(cluster, task);
    state->phase = PHASE_PIPELINED;
    state->current_node = -1;
    change_end(cluster, task, -1);
    cluster_index_node(cluster, state->planned_node);
}

void cluster_move(struct cluster *cluster, int32_t task, const int32_t *devices)
{
    struct task_state *state = change_begin(cluster, task);
    memcpy(cluster->planned_devices + state->first_assigned, devices,
           (size_t)cluster_demand(cluster, task)->n_devices * sizeof *devices);
    change_end(cluster, task, -1);
}

void cluster_bind(struct cluster *cluster, int32_t task)
{
    struct task_state *state = change_begin(cluster, task);
    state->phase = PHASE_BOUND;
    state->current_node = state->planned_node;
    hold_zones(cluster, task);
    memcpy(cluster->current_devices + state->first_assigned,
           cluster->planned_devices + state->first_assigned,
           (size_t)cluster_demand(cluster, task)->n_devices * sizeof(int32_t));
    change_end(cluster, task, -1);
}
