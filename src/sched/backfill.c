#include "sched/backfill.h"

#include "base/macros.h"
#include "sched/calendar.h"
#include "sched/chunk.h"
#include "sched/shares.h"

#include <stdlib.h>
#include <string.h>

weir_status backfill_init(struct backfill *backfill, struct cluster *cluster, struct placer *placer)
{
    const struct weir_sched_profile *profile = cluster->profile;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    *backfill = (struct backfill){.cluster = cluster, .placer = placer, .active_version = -1};
    backfill->slots_cap = (int32_t)WEIR_MIN(profile->backfill_depth + profile->forecast_depth,
                                            (int64_t)snapshot->n_jobs);
    if (backfill->slots_cap == 0) {
        return WEIR_OK;
    }
    size_t n_ends = (size_t)snapshot->n_jobs + (size_t)backfill->slots_cap;
    backfill->slots = calloc((size_t)backfill->slots_cap, sizeof *backfill->slots);
    backfill->ends = calloc(n_ends, sizeof *backfill->ends);
    backfill->of_jobs = calloc((size_t)snapshot->n_jobs + 1, sizeof *backfill->of_jobs);
    backfill->is_active = calloc((size_t)snapshot->n_jobs + 1, sizeof *backfill->is_active);
    backfill->tasks = calloc((size_t)snapshot->n_tasks + 1, sizeof *backfill->tasks);
    backfill->touched = calloc((size_t)snapshot->n_nodes + 1, sizeof *backfill->touched);
    backfill->is_touched = calloc((size_t)snapshot->n_nodes + 1, sizeof *backfill->is_touched);
    backfill->late = calloc((size_t)backfill->slots_cap, sizeof *backfill->late);
    bool is_whole = backfill->slots != NULL && backfill->ends != NULL && backfill->tasks != NULL &&
                    backfill->touched != NULL && backfill->is_touched != NULL &&
                    backfill->late != NULL && backfill->of_jobs != NULL &&
                    backfill->is_active != NULL;
    return is_whole ? scan_init(&backfill->scan, cluster) : WEIR_ERR_NOMEM;
}

void backfill_fini(struct backfill *backfill)
{
    free(backfill->slots);
    free(backfill->places);
    free(backfill->devices);
    free(backfill->ends);
    free(backfill->of_jobs);
    free(backfill->is_active);
    scan_fini(&backfill->scan);
    free(backfill->tasks);
    free(backfill->touched);
    free(backfill->is_touched);
    free(backfill->late);
    *backfill = (struct backfill){0};
}

static void touch(struct backfill *backfill, int32_t node)
{
    if (!backfill->is_touched[node]) {
        backfill->is_touched[node] = true;
        backfill->touched[backfill->n_touched++] = node;
    }
}

/** Bring the indices up to date, each node once. */
static void settle_nodes(struct backfill *backfill)
{
    for (int32_t i = 0; i < backfill->n_touched; i++) {
        backfill->is_touched[backfill->touched[i]] = false;
        cluster_index_node(backfill->cluster, backfill->touched[i]);
    }
    backfill->n_touched = 0;
}

/** Call settle_nodes when done. */
static void hold(struct backfill *backfill, struct backfill_slot *slot, bool is_held)
{
    if (slot->is_held == is_held) {
        return;
    }
    slot->is_held = is_held;
    for (int32_t i = slot->first; i < slot->first + slot->n; i++) {
        const struct backfill_place *place = &backfill->places[i];
        cluster_hold(backfill->cluster, place->task, place->node,
                     backfill->devices + place->first_device, place->zones, is_held ? 1 : -1);
        touch(backfill, place->node);
    }
    backfill->cluster->n_freed += !is_held;
}

void backfill_hold_against(struct backfill *backfill, int32_t job)
{
    int64_t now = backfill->cluster->snapshot->now_ms, bound = 0;
    if (job >= 0) {
        bound = calendar_bound_ms(&backfill->cluster->snapshot->jobs[job]);
    }
    int64_t end = bound > 0 ? now + bound : CALENDAR_NEVER;
    bool is_later = false;
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        is_later = is_later || slot->job == job; /* Who is behind it keeps it from nothing. */
        int32_t task = backfill->places[slot->first].task;
        bool is_waiting = backfill->cluster->tasks[task].phase == PHASE_PENDING;
        hold(backfill, slot,
             slot->is_reservation && is_waiting && !is_later && slot->from_ms < end);
    }
    settle_nodes(backfill);
}

bool backfill_has_reserved(const struct backfill *backfill, int32_t job)
{
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        if (backfill->slots[i].job == job && backfill->slots[i].is_reservation) {
            return true;
        }
    }
    return false;
}

void backfill_let_go(struct backfill *backfill)
{
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        hold(backfill, &backfill->slots[i], false);
    }
    settle_nodes(backfill);
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
            (struct backfill_end){calendar_end_ms(&snapshot->jobs[j], snapshot->now_ms), j, -1};
    }
    ends_sort(backfill->of_jobs, backfill->ends, snapshot->n_jobs, snapshot->now_ms);
}

/** Look again at the jobs that have changed. */
static void update_active(struct backfill *backfill)
{
    const struct cluster *cluster = backfill->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        if (cluster->changed[j] > backfill->active_version) {
            const struct group_state *root = &cluster->groups[cluster->jobs[j].first_group];
            backfill->is_active[j] = root->n_alive + root->n_pipelined > 0;
        }
    }
    backfill->active_version = cluster->n_commits;
}

/** Put a slot's end among the ends that are to come. */
static void insert_end(struct backfill *backfill, int32_t at_slot)
{
    const struct backfill_slot *slot = &backfill->slots[at_slot];
    struct backfill_end added = {slot->until_ms, slot->job, at_slot};
    int32_t at = backfill->position;
    for (int32_t end = backfill->n_ends; at < end;) {
        int32_t middle = at + (end - at) / 2;
        if (ends_compare(&added, &backfill->ends[middle]) < 0) {
            end = middle;
        } else {
            at = middle + 1;
        }
    }
    memmove(&backfill->ends[at + 1], &backfill->ends[at],
            (size_t)(backfill->n_ends++ - at) * sizeof added);
    backfill->ends[at] = added;
}

/** Suppose now, with all slots held and charged: each begins at the latest when the job at hand
 *  could, so it may not lean on their room before they have ended. */
static void begin(struct backfill *backfill)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    sort_jobs(backfill);
    update_active(backfill);
    backfill->n_ends = backfill->position = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        if (backfill->is_active[backfill->of_jobs[i].job]) {
            backfill->ends[backfill->n_ends++] = backfill->of_jobs[i];
        }
    }
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        hold(backfill, slot, true);
        cluster_suppose_charged(cluster, snapshot->jobs[slot->job].queue, &slot->amount,
                                &slot->fixed, 1);
        insert_end(backfill, i);
    }
}

/** Suppose that something is over (sign 1), or is not after all. */
static void pass(struct backfill *backfill, const struct backfill_end *end, int sign)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_job *job = &cluster->snapshot->jobs[end->job];
    if (end->slot >= 0) {
        struct backfill_slot *slot = &backfill->slots[end->slot];
        hold(backfill, slot, sign < 0);
        cluster_suppose_charged(cluster, job->queue, &slot->amount, &slot->fixed, -sign);
        return;
    }
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].target >= 0 && cluster->tasks[t].phase != PHASE_STUCK) {
            cluster_suppose_gone(cluster, t, sign);
            touch(backfill, cluster->tasks[t].target);
        }
    }
    cluster->n_freed += sign > 0;
}

static void move_to(struct backfill *backfill, int32_t position)
{
    while (backfill->position < position) {
        pass(backfill, &backfill->ends[backfill->position++], 1);
    }
    while (backfill->position > position) {
        pass(backfill, &backfill->ends[--backfill->position], -1);
    }
    settle_nodes(backfill);
    int64_t now = backfill->cluster->snapshot->now_ms;
    backfill->cluster->at_ms = position == 0 ? now : backfill->ends[position - 1].at_ms;
}

static void end(struct backfill *backfill)
{
    move_to(backfill, 0);
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        cluster_suppose_charged(backfill->cluster,
                                backfill->cluster->snapshot->jobs[slot->job].queue, &slot->amount,
                                &slot->fixed, -1);
    }
}

/** Place the job's n tasks in what is supposed; the caller rolls back. */
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
        if (fit == backfill->n_ends || backfill->cluster->status != WEIR_OK) {
            return -1;
        }
        misfit = fit;
        fit = WEIR_MIN(fit + step, backfill->n_ends);
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
    const struct weir_sched_task *task = &cluster->snapshot->tasks[backfill->tasks[0]];
    return n == 1 && job->n_groups == 1 && cluster->groups[job->first_group].topology < 0 &&
           task->affinity_key == NULL && task->anti_affinity_key == NULL &&
           cluster->queues[job->queue].bounds_model < 0 && !cluster->has_closings &&
           cluster->kept == NULL;
}

/** Tell the scan what is over with an end, as pass does the cluster. */
static void scan_end(struct backfill *backfill, const struct backfill_end *end)
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
        if (state->target >= 0 && state->phase != PHASE_STUCK) {
            scan_pass(scan, t, state->target, cluster->target_devices + state->first_spot,
                      state->zones);
        }
    }
}

#define SCAN_AHEAD 4

/** Begin to load what the ends after `at` refer to: step by step, as jobs, tasks and nodes lie in
 * no order. */
static void fetch_ends(const struct backfill *backfill, int32_t at)
{
    const struct cluster *cluster = backfill->cluster;
    const struct backfill_end *ends = backfill->ends;
    int32_t last = backfill->n_ends - 1;
    __builtin_prefetch(&cluster->jobs[ends[WEIR_MIN(at + 3 * SCAN_AHEAD, last)].job]);
    int32_t job = ends[WEIR_MIN(at + 2 * SCAN_AHEAD, last)].job;
    __builtin_prefetch(&cluster->tasks[cluster->jobs[job].first_task]);
    job = ends[WEIR_MIN(at + SCAN_AHEAD, last)].job;
    int32_t node = cluster->tasks[cluster->jobs[job].first_task].target;
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
    for (int32_t i = 0; i < backfill->n_ends && backfill->cluster->status == WEIR_OK; i++) {
        fetch_ends(backfill, i);
        scan_end(backfill, &backfill->ends[i]);
        if (i + 1 >= least && scan_fits(&backfill->scan, task, backfill->placer->devices)) {
            return i + 1;
        }
    }
    return -1;
}

/** The fewest ends, `least` or more, after which the job fits; -1: it never does. */
static int32_t find_position(struct backfill *backfill, const struct backfill_slot *slot, int32_t n,
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

static bool reserve_memory(struct backfill *backfill, int32_t n)
{
    size_t n_devices = 0;
    for (int32_t i = 0; i < n; i++) {
        n_devices += (size_t)cluster_demand(backfill->cluster, backfill->tasks[i])->n_devices;
    }
    size_t n_places = backfill->n_places + (size_t)n;
    n_devices += backfill->n_devices;
    if (n_places > backfill->places_cap) {
        void *grown = realloc(backfill->places, 2 * n_places * sizeof *backfill->places);
        if (grown == NULL) {
            return false;
        }
        backfill->places = grown;
        backfill->places_cap = 2 * n_places;
    }
    if (n_devices > backfill->devices_cap) {
        void *grown = realloc(backfill->devices, 2 * n_devices * sizeof *backfill->devices);
        if (grown == NULL) {
            return false;
        }
        backfill->devices = grown;
        backfill->devices_cap = 2 * n_devices;
    }
    return true;
}

/** Note where the job's tasks lie in what is supposed, and of which models their devices are then.
 */
static void record(struct backfill *backfill, struct backfill_slot *slot, int32_t n)
{
    const struct cluster *cluster = backfill->cluster;
    slot->first = (int32_t)backfill->n_places;
    slot->n = n;
    for (int32_t i = 0; i < n; i++) {
        int32_t task = backfill->tasks[i];
        const struct task_state *state = &cluster->tasks[task];
        size_t n_devices = (size_t)cluster_demand(cluster, task)->n_devices;
        backfill->places[backfill->n_places++] =
            (struct backfill_place){.task = task,
                                    .node = state->target,
                                    .first_device = (int32_t)backfill->n_devices,
                                    .zones = state->zones};
        if (n_devices > 0) {
            memcpy(backfill->devices + backfill->n_devices,
                   cluster->target_devices + state->first_spot, n_devices * sizeof(int32_t));
        }
        backfill->n_devices += n_devices;
        int32_t model = cluster->nodes[state->target].model;
        if (model >= 0 && cluster->shape_models[state->shape] < 0) {
            int64_t devices = cluster_charge(cluster, task, state->target).accelerators;
            slot->amount.of[model] += devices;
            slot->fixed.of[model] += state->is_fixed ? devices : 0;
        }
    }
}

/** Whether the job would start if nothing were held. */
static bool waits_for_others(struct backfill *backfill, const struct backfill_slot *slot, int32_t n)
{
    bool is_any = false;
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        is_any = is_any || backfill->slots[i].is_held;
    }
    if (!is_any) {
        return false;
    }
    backfill_let_go(backfill);
    bool fits = placer_place(backfill->placer, slot->job, backfill->tasks, n, NULL);
    cluster_rollback(backfill->cluster, 0);
    return fits;
}

/** The reservation that the job would delay: the first of those it reaches into. */
static int32_t first_reservation(const struct backfill *backfill)
{
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        if (backfill->slots[i].is_reservation) {
            return backfill->slots[i].job;
        }
    }
    return WEIR_SCHED_NONE;
}

/** Hold the new slot, which begins where the present position is. */
static void add_end(struct backfill *backfill, int32_t at_slot)
{
    struct backfill_slot *slot = &backfill->slots[at_slot];
    insert_end(backfill, at_slot);
    hold(backfill, slot, true);
    settle_nodes(backfill);
    cluster_suppose_charged(backfill->cluster, backfill->cluster->snapshot->jobs[slot->job].queue,
                            &slot->amount, &slot->fixed, 1);
}

/** Of equal jobs the later one does not start before the earlier: it need not be looked for there.
 */
static int32_t least_position(const struct backfill *backfill, const struct backfill_slot *slot,
                              int32_t n)
{
    if (backfill->n_slots == 0) {
        return 0;
    }
    const struct cluster *cluster = backfill->cluster;
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    const struct backfill_slot *last = &backfill->slots[backfill->n_slots - 1];
    const struct weir_sched_job *l = &jobs[last->job], *r = &jobs[slot->job];
    int32_t last_task = backfill->places[last->first].task;
    bool is_alike = last->n == n && n == r->n_tasks && n == l->n_tasks && l->n_groups == 0 &&
                    r->n_groups == 0 && l->queue == r->queue && !cluster->has_closings &&
                    cluster->kept == NULL && last->shape == slot->shape &&
                    cluster->tasks[last_task].shape == slot->shape;
    int32_t least = 0;
    while (is_alike && least < backfill->n_ends && backfill->ends[least].at_ms < last->from_ms) {
        least++;
    }
    return least;
}

/** The shape of all the job's n tasks; -1 if they differ. */
static int32_t common_shape(const struct backfill *backfill, int32_t n)
{
    const struct task_state *tasks = backfill->cluster->tasks;
    for (int32_t i = 1; i < n; i++) {
        if (tasks[backfill->tasks[i]].shape != tasks[backfill->tasks[0]].shape) {
            return -1;
        }
    }
    return tasks[backfill->tasks[0]].shape;
}

/** Place the job's task on one of the nodes where the scan found that it fits, which are supposed
 * so until the caller has rolled back. */
static bool try_found(struct backfill *backfill, const struct backfill_slot *slot)
{
    struct scan *scan = &backfill->scan;
    scan_suppose(scan, 1);
    backfill->placer->only = (struct place_nodes){.list = scan->found, .n = scan->n_found};
    bool is_placed = placer_place(backfill->placer, slot->job, backfill->tasks, 1, NULL);
    backfill->placer->only = (struct place_nodes){0};
    return is_placed;
}

/** Between begin and end: a slot for the job, if there is one. */
static void find_slot(struct backfill *backfill, struct backfill_slot *slot)
{
    struct cluster *cluster = backfill->cluster;
    struct weir_sched_wait *wait = cluster_wait(cluster, slot->job);
    int32_t n = chunk_next(cluster, slot->job, backfill->tasks);
    slot->shape = common_shape(backfill, n);
    int32_t least = slot->shape < 0 ? 0 : least_position(backfill, slot, n);
    if (!reserve_memory(backfill, n)) { /* Now: the scan refers to what is there. */
        cluster->status = WEIR_ERR_NOMEM;
        return;
    }
    int32_t position = find_position(backfill, slot, n, least);
    if (position < 0) {
        return;
    }
    if (backfill->scan.n_found > 0 ? try_found(backfill, slot)
                                   : try_at(backfill, position, slot, n)) {
        record(backfill, slot, n);
        slot->from_ms =
            position == 0 ? cluster->snapshot->now_ms : backfill->ends[position - 1].at_ms;
        slot->after_job = position > 0 ? backfill->ends[position - 1].job : WEIR_SCHED_NONE;
        slot->until_ms = calendar_end_ms(&cluster->snapshot->jobs[slot->job], slot->from_ms);
    }
    cluster_rollback(cluster, 0);
    scan_suppose(&backfill->scan, -1);
    if (slot->n > 0) {
        wait->expected_start_ms = slot->from_ms;
        wait->after_job = slot->after_job;
        backfill->slots[backfill->n_slots++] = *slot;
        backfill->n_reservations += slot->is_reservation;
        add_end(backfill, backfill->n_slots - 1);
    }
}

/** Look for slots without a trace in what placing remembers of the present. */
static void find_slots(struct backfill *backfill, struct backfill_slot *slots, int32_t n)
{
    struct cluster *cluster = backfill->cluster;
    backfill->placer->pipeline_only = backfill->placer->future_only = true;
    begin(backfill);
    for (int32_t i = 0; i < n && cluster->status == WEIR_OK; i++) {
        find_slot(backfill, &slots[i]);
    }
    end(backfill);
    backfill->placer->pipeline_only = backfill->placer->future_only = false;
    for (int32_t i = 0; i < cluster->n_shapes; i++) {
        cluster->shape_failed[i] = -1;
    }
}

void backfill_add(struct backfill *backfill, int32_t job)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_profile *profile = cluster->profile;
    struct weir_sched_wait *wait = cluster_wait(cluster, job);
    bool is_hopeless =
        wait->code == WEIR_SCHED_WAIT_TOO_LARGE || wait->code == WEIR_SCHED_WAIT_NO_NODE;
    if (backfill->slots_cap == 0 || is_hopeless || chunk_rank(cluster, job) != CHUNK_BELOW) {
        return;
    }
    struct backfill_slot slot = {.job = job};
    int32_t n = chunk_next(cluster, job, backfill->tasks);
    chunk_amount(cluster, backfill->tasks, n, &slot.amount, &slot.fixed);
    bool is_limited =
        !shares_admit(cluster, cluster->snapshot->jobs[job].queue, &slot.amount, &slot.fixed, NULL);
    if (!is_limited && waits_for_others(backfill, &slot, n)) {
        wait->code = WEIR_SCHED_WAIT_RESERVED;
        wait->object = first_reservation(backfill);
    }
    /* A job at its own queue's limit keeps nobody from anything. */
    slot.is_reservation = !is_limited && backfill->n_reservations < profile->backfill_depth;
    if (backfill->n_tried == backfill->slots_cap) {
        return;
    }
    backfill->n_tried++;
    if (slot.is_reservation) {
        find_slots(backfill, &slot, 1);
    } else {
        backfill->late[backfill->n_late++] = slot;
    }
}

void backfill_forecast(struct backfill *backfill)
{
    if (backfill->n_late > 0) {
        find_slots(backfill, backfill->late, backfill->n_late);
    }
    backfill->n_late = 0;
}
