#include "sched/place/fits.h"

#include "base/macros.h"
#include "sched/forecast/run_time.h"
#include "sched/place/affinity.h"
#include "sched/place/zones.h"
#include "sched/share/shares.h"

#include <string.h>

static const char *label_of(const struct weir_sched_node *node, const char *key)
{
    for (int32_t i = 0; i < node->n_labels; i++) {
        if (strcmp(node->labels[i].key, key) == 0) {
            return node->labels[i].value;
        }
    }
    return NULL;
}

static bool is_selected(const struct weir_sched_task *task, const struct weir_sched_node *node)
{
    for (int32_t i = 0; i < task->n_selector; i++) {
        const char *value = label_of(node, task->selector[i].key);
        if (value == NULL ||
            (task->selector[i].value != NULL && strcmp(value, task->selector[i].value) != 0)) {
            return false;
        }
    }
    return true;
}

static bool is_tolerated(const struct weir_sched_task *task, const struct weir_sched_taint *taint)
{
    for (int32_t i = 0; i < task->n_tolerations; i++) {
        const struct weir_sched_toleration *toleration = &task->tolerations[i];
        bool is_key = toleration->key[0] == '\0' || strcmp(toleration->key, taint->key) == 0;
        if (is_key && (toleration->value == NULL || strcmp(toleration->value, taint->value) == 0)) {
            return true;
        }
    }
    return false;
}

static const struct extra_state *extra_at(const struct cluster *cluster, int32_t node, int32_t name)
{
    const struct extra_state *extras = cluster->extras + cluster->nodes[node].first_extra;
    for (int32_t i = 0; i < cluster->snapshot->nodes[node].n_extras; i++) {
        if (extras[i].name == name) {
            return &extras[i];
        }
    }
    return NULL;
}

/** Extras that fit beside `used` ones: 0 = the empty node, 1 = the future, 2 = now as well. */
static bool extras_fit(const struct cluster *cluster, int32_t task, int32_t node, int used)
{
    const struct task_state *state = &cluster->tasks[task];
    for (int32_t i = 0; i < state->n_extras; i++) {
        const struct extra_want *want = &cluster->wants[state->first_extra + i];
        const struct extra_state *extra = extra_at(cluster, node, want->name);
        if (extra == NULL || want->count > extra->count - (used > 0 ? extra->future : 0) ||
            (used > 1 && want->count > extra->count - extra->now)) {
            return false;
        }
    }
    return true;
}

bool fits_allows(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[task];
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    for (int32_t i = 0; i < node->n_taints; i++) {
        if (!is_tolerated(wants, &node->taints[i])) {
            return false;
        }
    }
    return is_selected(wants, node);
}

/** All of fits_ever but the zones, the time, and whether the node takes new work. */
static bool fits_whole(const struct cluster *cluster, int32_t task, int32_t at)
{
    const struct weir_sched_task *wants = &cluster->snapshot->tasks[task];
    const struct weir_sched_node *node = &cluster->snapshot->nodes[at];
    const struct weir_sched_demand *demand = &wants->demand;
    if (demand->cpu_milli > node->cpu_milli || demand->memory_bytes > node->memory_bytes ||
        demand->n_devices > node->n_devices || node->n_tasks_max == 0) {
        return false;
    }
    bool is_part = demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE;
    const struct node_state *state = &cluster->nodes[at];
    if ((is_part && node->is_whole_only) ||
        (demand->n_devices > 0 &&
         cluster_device_units(cluster, task, at) > state->device_size - state->others_units)) {
        return false;
    }
    return fits_allows(cluster, task, at) && extras_fit(cluster, task, at, 0);
}

/** Whether neither cordon, maintenance nor reservation keeps the task from the node. */
static bool is_allowed_now(const struct cluster *cluster, int32_t task, int32_t at)
{
    return cluster->nodes[at].is_open && run_time_is_allowed(cluster, cluster->tasks[task].job, at);
}

bool fits_ever(const struct cluster *cluster, int32_t task, int32_t at)
{
    return is_allowed_now(cluster, task, at) && fits_whole(cluster, task, at) &&
           zones_fit_empty(cluster, task, at);
}

bool fits_but_for_zones(const struct cluster *cluster, int32_t task, int32_t at)
{
    return !zones_fit_empty(cluster, task, at) && fits_whole(cluster, task, at) &&
           is_allowed_now(cluster, task, at);
}

bool fits_but_for_time(const struct cluster *cluster, int32_t task, int32_t at)
{
    return !cluster->snapshot->nodes[at].is_cordoned && !is_allowed_now(cluster, task, at) &&
           fits_whole(cluster, task, at) && zones_fit_empty(cluster, task, at);
}

static bool has_room_beside(const struct cluster *cluster, int32_t task, int32_t at, int64_t cpu,
                            int64_t memory, int32_t n_tasks)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct weir_sched_node *given = &cluster->snapshot->nodes[at];
    return (demand->cpu_milli == 0 || demand->cpu_milli <= given->cpu_milli - cpu) &&
           (demand->memory_bytes == 0 || demand->memory_bytes <= given->memory_bytes - memory) &&
           (given->n_tasks_max < 0 || n_tasks < given->n_tasks_max);
}

static bool has_room(const struct cluster *cluster, int32_t task, int32_t at, bool is_now)
{
    const struct node_state *node = &cluster->nodes[at];
    int64_t cpu = is_now ? WEIR_MAX(node->cpu_now, node->cpu_future) : node->cpu_future;
    int64_t memory = is_now ? WEIR_MAX(node->memory_now, node->memory_future) : node->memory_future;
    int32_t n_tasks = is_now ? WEIR_MAX(node->tasks_now, node->tasks_future) : node->tasks_future;
    return has_room_beside(cluster, task, at, cpu, memory, n_tasks) &&
           extras_fit(cluster, task, at, is_now ? 2 : 1);
}

/** Whether all but the devices is there now. */
static bool can_start(const struct cluster *cluster, int32_t task, int32_t at)
{
    return has_room(cluster, task, at, true) && affinity_allows(cluster, task, at, true);
}

/** Whether the rule of placement weighs devices itself: then this only looks for some that do, and
 *  at what is free now first. */
static bool is_weighed_later(const struct cluster *cluster)
{
    return cluster->profile->placement[0] == 'f';
}

/** What a device counts as taken when shares choose: what leaves is there too. But if nobody stays
 *  there, those who wait for it start on it again. */
static int64_t taken_of(const struct cluster *cluster, const struct device_state *device)
{
    if (is_weighed_later(cluster)) {
        return device->future;
    }
    return device->waiting + (device->future > device->waiting ? device->now : 0);
}

/** What a device on which nobody stays counts for shares that pack: less than any company. Of those
 *  the one who starts takes what is free already, and who must wait leaves it to others. */
static int64_t score_of_free_for_packing(const struct device_state *device, bool starts)
{
    return INT64_MIN + ((device->now == 0) == starts);
}

/** The same for shares that spread: more than any company; but who could start does not wait for a
 *  device that somebody leaves. */
static int64_t score_of_free_for_spreading(const struct device_state *device, bool starts)
{
    if (starts && device->now > 0) {
        return INT64_MIN;
    }
    return INT64_MAX - ((device->now == 0) != starts);
}

/** Which device shares choose: the highest score. Packing takes the fullest, spreading the
 *  emptiest. */
static int64_t device_score(const struct cluster *cluster, const struct device_state *device,
                            bool starts)
{
    bool is_pack = cluster->profile->placement_gpu[0] == 'p';
    if (device->future == 0) {
        return is_pack ? score_of_free_for_packing(device, starts)
                       : score_of_free_for_spreading(device, starts);
    }
    return is_pack ? taken_of(cluster, device) : -taken_of(cluster, device);
}

static bool is_chosen(const int32_t *chosen, int32_t n, int32_t device)
{
    for (int32_t i = 0; i < n; i++) {
        if (chosen[i] == device) {
            return true;
        }
    }
    return false;
}

static int32_t best_device(const struct cluster *cluster, const struct assignment *assignment,
                           int64_t units, bool is_now, bool starts, int32_t n_chosen)
{
    const struct node_state *node = &cluster->nodes[assignment->node];
    int32_t best = -1;
    int64_t best_score = 0;
    for (int32_t d = 0; d < cluster->snapshot->nodes[assignment->node].n_devices; d++) {
        const struct device_state *device = &cluster->devices[node->first_device + d];
        if (device->future + units > node->device_size ||
            (is_now && (device->now + units > node->device_size || device->n_waiting > 0)) ||
            is_chosen(assignment->devices, n_chosen, d)) {
            continue;
        }
        if (best < 0 || device_score(cluster, device, starts) > best_score) {
            best = d;
            best_score = device_score(cluster, device, starts);
        }
    }
    return best;
}

/** With must_share only devices that have company. */
static bool shares_fit(const struct cluster *cluster, int32_t task, bool is_now, bool must_share,
                       struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct node_state *node = &cluster->nodes[assignment->node];
    int64_t units = cluster_device_units(cluster, task, assignment->node);
    bool is_shared = true;
    for (int32_t i = 0; i < demand->n_devices; i++) {
        int32_t device = best_device(cluster, assignment, units, is_now, is_now, i);
        if (device < 0) {
            return false;
        }
        assignment->devices[i] = device;
        const struct device_state *state = &cluster->devices[node->first_device + device];
        is_shared = is_shared && state->future > 0;
        if (must_share && !is_shared) {
            return false;
        }
    }
    assignment->is_shared = is_shared;
    return true;
}

/** Whether a share could start on the device now: it is free, or somebody stays there whom it can
 *  join. Who joins those that wait waits with them. */
static bool is_free_now(const struct node_state *node, const struct device_state *device,
                        int64_t units)
{
    if (device->future == 0) {
        return device->now == 0;
    }
    return device->future > device->waiting && device->now + units <= node->device_size;
}

/** Choose devices in the order of the rule, whether they are free now or have to be waited for.
 *  @return Whether there are enough; *out_now: all of them are free now. */
static bool choose_in_order(const struct cluster *cluster, int32_t task,
                            struct assignment *assignment, bool *out_now)
{
    const struct node_state *node = &cluster->nodes[assignment->node];
    int64_t units = cluster_device_units(cluster, task, assignment->node);
    int32_t n_wanted = cluster_demand(cluster, task)->n_devices, n_company = 0, n_free = 0;
    for (int32_t d = 0; d < cluster->snapshot->nodes[assignment->node].n_devices; d++) {
        const struct device_state *device = &cluster->devices[node->first_device + d];
        n_company += device->future > 0 && device->future + units <= node->device_size;
        n_free += device->now == 0;
    }
    assignment->is_shared = n_company > 0;
    assignment->is_ready =
        n_free + n_company >= n_wanted && can_start(cluster, task, assignment->node);
    *out_now = assignment->is_ready;
    for (int32_t i = 0; i < n_wanted; i++) {
        int32_t d = best_device(cluster, assignment, units, false, assignment->is_ready, i);
        if (d < 0) {
            return false;
        }
        assignment->devices[i] = d;
        *out_now = *out_now && is_free_now(node, &cluster->devices[node->first_device + d], units);
    }
    return true;
}

/** Company on a device comes before an early start: it keeps whole devices free. */
static void find_for_share(const struct cluster *cluster, int32_t task,
                           struct assignment *assignment)
{
    bool is_now = false;
    if (!choose_in_order(cluster, task, assignment, &is_now)) {
        return;
    }
    if (is_now && zones_find(cluster, task, assignment->node, true, assignment->devices,
                             &assignment->zones, &assignment->span)) {
        assignment->when = FITS_NOW;
    } else if (zones_find(cluster, task, assignment->node, false, assignment->devices,
                          &assignment->zones, &assignment->span)) {
        assignment->when = FITS_FUTURE;
    }
}

static bool whole_fit(const struct cluster *cluster, int32_t task, bool is_now,
                      struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct node_state *node = &cluster->nodes[assignment->node];
    assignment->is_shared = false;
    if (demand->n_devices > (is_now ? node->whole_now : node->whole_future)) {
        return false;
    }
    /* Who must wait anyway leaves what is free already to those who need not. */
    int32_t n = 0, n_given = cluster->snapshot->nodes[assignment->node].n_devices;
    for (int32_t turn = is_now ? 1 : 0; turn < 2; turn++) {
        for (int32_t d = 0; d < n_given && n < demand->n_devices; d++) {
            const struct device_state *device = &cluster->devices[node->first_device + d];
            if (device->future == 0 && (device->now == 0) == (turn == 1)) {
                assignment->devices[n++] = d;
            }
        }
    }
    return true;
}

static bool devices_fit(const struct cluster *cluster, int32_t task, bool is_now, bool must_share,
                        struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    if (demand->n_devices == 0) {
        assignment->is_shared = false;
        return !must_share;
    }
    if (demand->device_milli == WEIR_SCHED_DEVICE) {
        return !must_share && whole_fit(cluster, task, is_now, assignment);
    }
    return shares_fit(cluster, task, is_now, must_share, assignment);
}

void fits_find(const struct cluster *cluster, int32_t task, struct assignment *assignment)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    assignment->when = FITS_NO;
    assignment->is_ready = false;
    assignment->zones = 0;
    assignment->span = 0;
    if (cluster->is_excluded[assignment->node] ||
        !has_room(cluster, task, assignment->node, false)) {
        return;
    }
    if (!fits_ever(cluster, task, assignment->node)) {
        assignment->when = FITS_NEVER;
        return;
    }
    if (!affinity_allows(cluster, task, assignment->node, false)) {
        return;
    }
    if (demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE &&
        !is_weighed_later(cluster)) {
        find_for_share(cluster, task, assignment);
        return;
    }
    for (int turn = 0; turn < 4; turn++) {
        bool is_now = turn % 2 == 0, must_share = turn < 2;
        if ((!is_now || can_start(cluster, task, assignment->node)) &&
            devices_fit(cluster, task, is_now, must_share, assignment) &&
            zones_find(cluster, task, assignment->node, is_now, assignment->devices,
                       &assignment->zones, &assignment->span)) {
            assignment->when = is_now ? FITS_NOW : FITS_FUTURE;
            assignment->is_ready = is_now;
            return;
        }
    }
}

void fits_find_within_shares(const struct cluster *cluster, int32_t task,
                             struct assignment *assignment)
{
    if (shares_admit_at(cluster, task, assignment->node, NULL)) {
        fits_find(cluster, task, assignment);
    } else {
        assignment->when = FITS_NO;
        assignment->is_ready = false;
        assignment->zones = 0;
        assignment->span = 0;
    }
}

bool fits_back(const struct cluster *cluster, int32_t task)
{
    const struct task_state *state = &cluster->tasks[task];
    const struct node_state *node = &cluster->nodes[state->current_node];
    const struct node_hold *current_node = &cluster->node_holds[state->current_node];
    if (state->phase != PHASE_RELEASING ||
        !has_room_beside(cluster, task, state->current_node, node->cpu_future - current_node->cpu,
                         node->memory_future - current_node->memory,
                         node->tasks_future - current_node->tasks) ||
        !extras_fit(cluster, task, state->current_node, 1) ||
        !zones_hold(cluster, state->current_node, state->current_zones,
                    cluster_current_numa(cluster, task), false) ||
        !shares_admit_at(cluster, task, state->current_node, NULL)) {
        return false;
    }
    int64_t units = cluster_device_units(cluster, task, state->current_node);
    int32_t n_devices = WEIR_MIN(cluster_demand(cluster, task)->n_devices,
                                 cluster->snapshot->nodes[state->current_node].n_devices);
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t d = node->first_device + cluster->current_devices[state->first_assigned + i];
        if (cluster->devices[d].future - cluster->unit_holds[d] + units > node->device_size) {
            return false;
        }
    }
    return true;
}

bool fits_now_where_planned(const struct cluster *cluster, int32_t task)
{
    const struct weir_sched_demand *demand = cluster_demand(cluster, task);
    const struct task_state *state = &cluster->tasks[task];
    const struct weir_sched_node *given = &cluster->snapshot->nodes[state->planned_node];
    const struct node_state *node = &cluster->nodes[state->planned_node];
    int64_t units = cluster_device_units(cluster, task, state->planned_node);
    for (int32_t i = 0; i < demand->n_devices; i++) {
        int32_t d = cluster->planned_devices[state->first_assigned + i];
        const struct device_state *device = &cluster->devices[node->first_device + d];
        bool is_reserved =
            cluster->has_nominations && !cluster->profile->nominations && device->n_waiting > 1;
        bool is_left = device->now > 0 && device->future == device->waiting;
        if (device->now + units > node->device_size || is_reserved ||
            (is_left && !is_weighed_later(cluster))) {
            return false;
        }
    }
    for (int32_t i = 0; i < state->n_extras; i++) {
        const struct extra_want *want = &cluster->wants[state->first_extra + i];
        const struct extra_state *extra = extra_at(cluster, state->planned_node, want->name);
        if (extra == NULL || extra->now + want->count > extra->count) {
            return false;
        }
    }
    return affinity_allows(cluster, task, state->planned_node, true) &&
           zones_hold(cluster, state->planned_node, state->zones,
                      cluster_planned_numa(cluster, task), true) &&
           node->cpu_now + demand->cpu_milli <= given->cpu_milli &&
           node->memory_now + demand->memory_bytes <= given->memory_bytes &&
           (given->n_tasks_max < 0 || node->tasks_now < given->n_tasks_max);
}
