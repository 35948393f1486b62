#include "sched/forecast/backfill.h"

#include "base/macros.h"
#include "sched/forecast/future.h"
#include "sched/forecast/run_time.h"
#include "sched/model/quantum.h"
#include "sched/share/shares.h"

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
    size_t n_completions = (size_t)snapshot->n_jobs + (size_t)backfill->slots_cap;
    backfill->slots = calloc((size_t)backfill->slots_cap, sizeof *backfill->slots);
    backfill->completions = calloc(n_completions, sizeof *backfill->completions);
    backfill->of_jobs = calloc((size_t)snapshot->n_jobs + 1, sizeof *backfill->of_jobs);
    backfill->is_active = calloc((size_t)snapshot->n_jobs + 1, sizeof *backfill->is_active);
    backfill->tasks = calloc((size_t)snapshot->n_tasks + 1, sizeof *backfill->tasks);
    backfill->touched = calloc((size_t)snapshot->n_nodes + 1, sizeof *backfill->touched);
    backfill->is_touched = calloc((size_t)snapshot->n_nodes + 1, sizeof *backfill->is_touched);
    backfill->late = calloc((size_t)backfill->slots_cap, sizeof *backfill->late);
    bool is_whole = backfill->slots != NULL && backfill->completions != NULL &&
                    backfill->tasks != NULL && backfill->touched != NULL &&
                    backfill->is_touched != NULL && backfill->late != NULL &&
                    backfill->of_jobs != NULL && backfill->is_active != NULL;
    return is_whole ? scan_init(&backfill->scan, cluster) : WEIR_ERR_NOMEM;
}

void backfill_fini(struct backfill *backfill)
{
    free(backfill->slots);
    free(backfill->places);
    free(backfill->devices);
    free(backfill->completions);
    free(backfill->of_jobs);
    free(backfill->is_active);
    scan_fini(&backfill->scan);
    free(backfill->tasks);
    free(backfill->touched);
    free(backfill->is_touched);
    free(backfill->late);
    *backfill = (struct backfill){0};
}

/** Whether room that is held for a slot is held against a job whose run may last until end_ms. */
static bool stands_against(const struct backfill *backfill, const struct backfill_slot *slot,
                           int64_t end_ms, bool is_guaranteed)
{
    const struct cluster *cluster = backfill->cluster;
    int32_t task = backfill->places[slot->first].task;
    return slot->is_reservation && cluster->tasks[task].phase == PHASE_PENDING &&
           slot->from_ms < end_ms &&
           (!is_guaranteed ||
            shares_is_guaranteed(cluster, cluster->jobs[slot->job].queue, &slot->amount, false));
}

static void hold_against(struct backfill *backfill, int32_t job, bool is_guaranteed)
{
    int64_t now = backfill->cluster->snapshot->now_ms, bound = 0;
    if (job >= 0) {
        bound = run_time_bound_ms(&backfill->cluster->snapshot->jobs[job]);
    }
    int64_t end_ms = bound > 0 ? now + bound : RUN_TIME_NEVER;
    bool is_later = false;
    for (int32_t i = 0; i < backfill->n_slots; i++) {
        struct backfill_slot *slot = &backfill->slots[i];
        is_later = is_later || slot->job == job; /* Who is behind it keeps it from nothing. */
        future_hold(backfill, slot,
                    !is_later && stands_against(backfill, slot, end_ms, is_guaranteed));
    }
    future_update(backfill);
}

void backfill_hold_against(struct backfill *backfill, int32_t job)
{
    hold_against(backfill, job, false);
}

void backfill_hold_against_guaranteed(struct backfill *backfill, int32_t job)
{
    hold_against(backfill, job, true);
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
        future_hold(backfill, &backfill->slots[i], false);
    }
    future_update(backfill);
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
                                    .node = state->planned_node,
                                    .first_device = (int32_t)backfill->n_devices,
                                    .zones = state->zones};
        if (n_devices > 0) {
            memcpy(backfill->devices + backfill->n_devices,
                   cluster->planned_devices + state->first_assigned, n_devices * sizeof(int32_t));
        }
        backfill->n_devices += n_devices;
        int32_t model = cluster->nodes[state->planned_node].model;
        if (model >= 0 && cluster->shapes.models[state->shape] < 0) {
            int64_t devices = cluster_charge(cluster, task, state->planned_node).accelerators;
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
        is_any = is_any || backfill->slots[i].holds_room;
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
                    r->n_groups == 0 && l->queue == r->queue && !cluster->times.has_closings &&
                    cluster->times.reserved == NULL && last->shape == slot->shape &&
                    cluster->tasks[last_task].shape == slot->shape;
    int32_t least = 0;
    while (is_alike && least < backfill->n_completions &&
           backfill->completions[least].at_ms < last->from_ms) {
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

/** Between future_begin and future_end: a slot for the job, if there is one. */
static void find_slot(struct backfill *backfill, struct backfill_slot *slot)
{
    struct cluster *cluster = backfill->cluster;
    struct weir_sched_wait *wait = cluster_wait(cluster, slot->job);
    int32_t n = quantum_next(cluster, slot->job, backfill->tasks);
    slot->shape = common_shape(backfill, n);
    int32_t least = slot->shape < 0 ? 0 : least_position(backfill, slot, n);
    if (!reserve_memory(backfill, n)) { /* Now: the scan refers to what is there. */
        cluster->status = WEIR_ERR_NOMEM;
        return;
    }
    int32_t position = future_find(backfill, slot, n, least);
    if (position < 0) {
        return;
    }
    if (future_place(backfill, position, slot, n)) {
        record(backfill, slot, n);
        slot->from_ms =
            position == 0 ? cluster->snapshot->now_ms : backfill->completions[position - 1].at_ms;
        slot->after_job = position > 0 ? backfill->completions[position - 1].job : WEIR_SCHED_NONE;
        slot->until_ms = run_time_end_ms(&cluster->snapshot->jobs[slot->job], slot->from_ms);
    }
    future_take_back(backfill);
    if (slot->n > 0) {
        wait->expected_start_ms = slot->from_ms;
        wait->after_job = slot->after_job;
        backfill->slots[backfill->n_slots++] = *slot;
        backfill->n_reservations += slot->is_reservation;
        future_add(backfill, backfill->n_slots - 1);
    }
}

/** Look for slots without a trace in what placing remembers of the present. */
static void find_slots(struct backfill *backfill, struct backfill_slot *slots, int32_t n)
{
    struct cluster *cluster = backfill->cluster;
    backfill->placer->pipeline_only = backfill->placer->future_only = true;
    future_begin(backfill);
    for (int32_t i = 0; i < n && cluster->status == WEIR_OK; i++) {
        find_slot(backfill, &slots[i]);
    }
    future_end(backfill);
    backfill->placer->pipeline_only = backfill->placer->future_only = false;
    for (int32_t i = 0; i < cluster->shapes.n; i++) {
        cluster->shapes.failed[i] = -1;
    }
}

void backfill_add(struct backfill *backfill, int32_t job)
{
    struct cluster *cluster = backfill->cluster;
    const struct weir_sched_profile *profile = cluster->profile;
    struct weir_sched_wait *wait = cluster_wait(cluster, job);
    bool is_of_time =
        wait->code == WEIR_SCHED_WAIT_CLOSING || wait->code == WEIR_SCHED_WAIT_NODE_RESERVED;
    bool is_infeasible =
        wait->code == WEIR_SCHED_WAIT_TOO_LARGE || wait->code == WEIR_SCHED_WAIT_NO_NODE ||
        (wait->code == WEIR_SCHED_WAIT_ZONES && wait->have == 0) || (is_of_time && wait->need == 0);
    if (backfill->slots_cap == 0 || is_infeasible || quantum_rank(cluster, job) != QUANTUM_BELOW) {
        return;
    }
    struct backfill_slot slot = {.job = job};
    int32_t n = quantum_next(cluster, job, backfill->tasks);
    quantum_amount(cluster, backfill->tasks, n, &slot.amount, &slot.fixed);
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
