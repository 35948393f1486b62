#include "sched/forecast/future.h"

#include "base/macros.h"
#include "sched/forecast/run_time.h"
#include "sched/place/affinity.h"
#include "sched/share/shares.h"

#include <string.h>

static void touch(struct backfill *backfill, int32_t node)
{
    if (!backfill->is_touched[node]) {
        backfill->is_touched[node] = true;
        backfill->touched[backfill->n_touched++] = node;
    }
}

void future_update(struct backfill *backfill)
{
    for (int32_t i = 0; i < backfill->n_touched; i++) {
        backfill->is_touched[backfill->touched[i]] = false;
        cluster_index_node(backfill->cluster, backfill->touched[i]);
    }
    backfill->n_touched = 0;
}

void future_hold(struct backfill *backfill, struct backfill_slot *slot, bool holds_room)
{
    if (slot->holds_room == holds_room) {
        return;
    }
    slot->holds_room = holds_room;
    for (int32_t i = slot->first; i < slot->first + slot->n; i++) {
        const struct backfill_place *place = &backfill->places[i];
        cluster_hold(backfill->cluster, place->task, place->node,
                     backfill->devices + place->first_device, place->zones, holds_room ? 1 : -1);
        touch(backfill, place->node);
    }
    backfill->cluster->changes.n_freed += !holds_room;
}

/** When each job ends if it runs does not change within a cycle: the order is made once. */
static void sort_jobs(struct backfill *backfill)
{
    const struct weir_sched_snapshot *snapshot = backfill->cluster->snapshot;
    if (backfill->are_sorted) {
        return;
    }
    backfill->are_sorted = true;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        backfill->of_jobs[j] =
            (struct completion){run_time_end_ms(&snapshot->jobs[j], snapshot->now_ms), j, -1};
    }
    completions_sort(backfill->of_jobs, backfill->completions, snapshot->n_jobs, snapshot->now_ms);
}

/** Look again at the jobs that have changed. */
static void update_active(struct backfill *backfill)
{
    const struct cluster *cluster = backfill->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        if (cluster->changes.of_jobs[j] > backfill->active_version) {
            const struct group_state *root = &cluster->groups[cluster->jobs[j].first_group];
            backfill->is_active[j] = root->n_alive + root->n_pipelined > 0;
        }
    }
    backfill->active_version = cluster->changes.n_commits;
}

/** Put a slot's end among the ends that are to come. */
static void insert_end(struct backfill *backfill, int32_t at_slot)
{
    const struct backfill_slot *slot = &backfill->slots[at_slot];
    struct completion added = {slot->until_ms, slot->job, at_slot};
    int32_t at = backfill->position;
    for (int32_t end = backfill->n_completions; at < end;) {
        int32_t middle = at + (end - at) / 2;
        if (completions_compare(&added, &backfill->completions[middle]) < 0) {
            end = middle;
        } else {
            at = middle + 1;
        }
    }
    memmove(&backfill->completions[at + 1], &backfill->completions[at],
            (size_t)(backfill->n_completions++ - at) * sizeof added);
    backfill->completions[at] = added;
}

void future_begin(struct backfill *backfill)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    sort_jobs(backfill);
    update_active(backfill);
    backfill->n_completions = backfill->position = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        if (backfill->is_active[backfill->of_jobs[i].job]) {
            backfill->completions[backfill->n_completions++] = backfill->of_jobs[i];
        }
    }
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        future_hold(backfill, slot, true);
        cluster_suppose_charged(cluster, snapshot->jobs[slot->job].queue, &slot->amount,
                                &slot->fixed, 1);
        insert_end(backfill, i);
    }
}

/** Suppose that something is over (sign 1), or is not after all. */
static void pass(struct backfill *backfill, const struct completion *end, int sign)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_job *job = &cluster->snapshot->jobs[end->job];
    if (end->slot >= 0) {
        struct backfill_slot *slot = &backfill->slots[end->slot];
        future_hold(backfill, slot, sign < 0);
        cluster_suppose_charged(cluster, job->queue, &slot->amount, &slot->fixed, -sign);
        return;
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].planned_node >= 0 && cluster->tasks[t].phase != PHASE_STUCK) {
            cluster_suppose_gone(cluster, t, sign);
            touch(backfill, cluster->tasks[t].planned_node);
        }
    }
    cluster->changes.n_freed += sign > 0;
}

static void move_to(struct backfill *backfill, int32_t position)
{
    while (backfill->position < position) {
        pass(backfill, &backfill->completions[backfill->position++], 1);
    }
    while (backfill->position > position) {
        pass(backfill, &backfill->completions[--backfill->position], -1);
    }
    future_update(backfill);
    int64_t now = backfill->cluster->snapshot->now_ms;
    backfill->cluster->times.at_ms =
        position == 0 ? now : backfill->completions[position - 1].at_ms;
}

void future_end(struct backfill *backfill)
{
    move_to(backfill, 0);
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        cluster_suppose_charged(backfill->cluster,
                                backfill->cluster->snapshot->jobs[slot->job].queue, &slot->amount,
                                &slot->fixed, -1);
    }
}

/** Place the job's n tasks in what is supposed after so many ends; the caller rolls back. */
static bool try_at(struct backfill *backfill, int32_t position, const struct backfill_slot *slot,
                   int32_t n)
{
    const struct cluster *cluster = backfill->cluster;
    move_to(backfill, position);
    return shares_admit(cluster, cluster->snapshot->jobs[slot->job].queue, &slot->amount,
                        &slot->fixed, NULL) &&
           placer_place(backfill->placer, slot->job, backfill->tasks, n, NULL);
}

static bool fits_at(struct backfill *backfill, int32_t position, const struct backfill_slot *slot,
                    int32_t n)
{
    bool fits = try_at(backfill, position, slot, n);
    cluster_rollback(backfill->cluster, 0);
    return fits;
}

/** The fewest ends, `least` or more, after which the job fits; -1: it never does. More room never
 *  hurts, so steps from the present position are doubled, then halved. */
static int32_t search(struct backfill *backfill, const struct backfill_slot *slot, int32_t n,
                      int32_t least)
{
    int32_t misfit = least - 1, fit = WEIR_MAX(backfill->position, least), step = 1;
    while (!fits_at(backfill, fit, slot, n)) {
        if (fit == backfill->n_completions || backfill->cluster->status != WEIR_OK) {
            return -1;
        }
        misfit = fit;
        fit = WEIR_MIN(fit + step, backfill->n_completions);
        step *= 2;
    }
    while (fit - misfit > 1) {
        int32_t middle = WEIR_MAX(misfit + (fit - misfit) / 2, fit - step);
        step *= 2;
        if (fits_at(backfill, middle, slot, n)) {
            fit = middle;
        } else {
            misfit = middle;
        }
    }
    return fit;
}

/** Whether a time for one task alone is a matter of the nodes on which something ends. */
static bool is_plain(const struct backfill *backfill, const struct backfill_slot *slot, int32_t n)
{
    const struct cluster *cluster = backfill->cluster;
    const struct job_state *job = &cluster->jobs[slot->job];
    return n == 1 && job->n_groups == 1 && cluster->groups[job->first_group].topology < 0 &&
           !affinity_matters(cluster, backfill->tasks[0]) &&
           cluster->queues[job->queue].bounds_model < 0 && !cluster->times.has_closings &&
           cluster->times.reserved == NULL;
}

/** Tell the scan what is over with an end, as pass does the cluster. */
static void scan_end(struct backfill *backfill, const struct completion *end)
{
    struct cluster *cluster = backfill->cluster;
    struct scan *scan = &backfill->scan;
    const struct backfill_slot *slot = end->slot < 0 ? NULL : &backfill->slots[end->slot];
    for (int32_t i = 0; slot != NULL && i < slot->n; i++) {
        const struct backfill_place *place = &backfill->places[slot->first + i];
        scan_pass(scan, place->task, place->node, backfill->devices + place->first_device,
                  place->zones);
    }
    const struct job_state *job = &cluster->jobs[end->job];
    for (int32_t t = job->first_task; slot == NULL && t < job->first_task + job->n_tasks; t++) {
        const struct task_state *state = &cluster->tasks[t];
        if (state->planned_node >= 0 && state->phase != PHASE_STUCK) {
            scan_pass(scan, t, state->planned_node,
                      cluster->planned_devices + state->first_assigned, state->zones);
        }
    }
}

#define SCAN_AHEAD 4

/** Begin to load what the ends after `at` refer to: step by step, as jobs, tasks and nodes lie in
 * no order. */
static void fetch_completions(const struct backfill *backfill, int32_t at)
{
    const struct cluster *cluster = backfill->cluster;
    const struct completion *completions = backfill->completions;
    int32_t last = backfill->n_completions - 1;
    __builtin_prefetch(&cluster->jobs[completions[WEIR_MIN(at + 3 * SCAN_AHEAD, last)].job]);
    int32_t job = completions[WEIR_MIN(at + 2 * SCAN_AHEAD, last)].job;
    __builtin_prefetch(&cluster->tasks[cluster->jobs[job].first_task]);
    job = completions[WEIR_MIN(at + SCAN_AHEAD, last)].job;
    int32_t node = cluster->tasks[cluster->jobs[job].first_task].planned_node;
    if (node >= 0) {
        __builtin_prefetch(&backfill->scan.nodes[node], 1);
        __builtin_prefetch(&cluster->nodes[node].cpu_future);
        __builtin_prefetch(&cluster->nodes[node].room_milli);
        __builtin_prefetch(&cluster->snapshot->nodes[node].n_devices);
    }
}

/** The same as search, for one task that its queues admit and that does not fit before `least`. */
static int32_t search_nodes(struct backfill *backfill, int32_t least)
{
    int32_t task = backfill->tasks[0];
    scan_begin(&backfill->scan);
    for (int32_t i = 0; i < backfill->n_completions && backfill->cluster->status == WEIR_OK; i++) {
        fetch_completions(backfill, i);
        scan_end(backfill, &backfill->completions[i]);
        if (i + 1 >= least && scan_fits(&backfill->scan, task, backfill->placer->devices)) {
            return i + 1;
        }
    }
    return -1;
}

int32_t future_find(struct backfill *backfill, const struct backfill_slot *slot, int32_t n,
                    int32_t least)
{
    const struct cluster *cluster = backfill->cluster;
    backfill->scan.n_found = 0;
    if (!is_plain(backfill, slot, n)) {
        return search(backfill, slot, n, least);
    }
    move_to(backfill, 0);
    if (!shares_admit(cluster, cluster->jobs[slot->job].queue, &slot->amount, &slot->fixed, NULL)) {
        return search(backfill, slot, n, least);
    }
    return least == 0 && fits_at(backfill, 0, slot, n) ? 0 : search_nodes(backfill, least);
}

void future_add(struct backfill *backfill, int32_t at_slot)
{
    struct backfill_slot *slot = &backfill->slots[at_slot];
    insert_end(backfill, at_slot);
    future_hold(backfill, slot, true);
    future_update(backfill);
    cluster_suppose_charged(backfill->cluster, backfill->cluster->snapshot->jobs[slot->job].queue,
                            &slot->amount, &slot->fixed, 1);
}

/** Place the job's task on one of the nodes where the scan found that it fits. */
static bool try_found(struct backfill *backfill, const struct backfill_slot *slot)
{
    struct scan *scan = &backfill->scan;
    scan_suppose(scan, 1);
    backfill->placer->only = (struct place_nodes){.list = scan->found, .n = scan->n_found};
    bool is_placed = placer_place(backfill->placer, slot->job, backfill->tasks, 1, NULL);
    backfill->placer->only = (struct place_nodes){0};
    return is_placed;
}

bool future_place(struct backfill *backfill, int32_t position, const struct backfill_slot *slot,
                  int32_t n)
{
    return backfill->scan.n_found > 0 ? try_found(backfill, slot)
                                      : try_at(backfill, position, slot, n);
}

void future_take_back(struct backfill *backfill)
{
    cluster_rollback(backfill->cluster, 0);
    scan_suppose(&backfill->scan, -1);
}
