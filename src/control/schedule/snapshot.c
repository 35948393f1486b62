#include "control/snapshot.h"
#include "control/schedule/snapshot_private.h"

#include "base/grow.h"
#include "job/changes.h"
#include "job/task_device.h"

#include <stdlib.h>
#include <string.h>

void *snapshot_grown(void *old, int32_t *cap, int32_t n, size_t size)
{
    if (n <= *cap) {
        return old;
    }
    int32_t wanted = WEIR_MAX(n, WEIR_MAX(2 * *cap, 64));
    void *memory = weir_xalloc((size_t)wanted * size);
    if (*cap > 0) {
        memcpy(memory, old, (size_t)*cap * size);
    }
    free(old);
    *cap = wanted;
    return memory;
}

void snapshot_init(struct snapshot *snapshot)
{
    *snapshot = (struct snapshot){.revision = -1};
    queue_tree_init(&snapshot->queues);
    offers_init(&snapshot->offers);
    weir_arena_init(&snapshot->rows_arena, 0);
    weir_arena_init(&snapshot->reservations_arena, 0);
    nominated_init(&snapshot->nominated);
}

static void free_job(struct snapshot_job *job)
{
    ask_free(job->ask);
    free(job);
}

static void free_node(struct snapshot_node *node)
{
    free(node->facts.name);
    supply_fini(node->supply);
    free(node->supply);
}

static void forget_jobs(struct snapshot *snapshot)
{
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        free_job(snapshot->jobs[i]);
    }
    snapshot->n_jobs = 0;
}

void snapshot_fini(struct snapshot *snapshot)
{
    forget_jobs(snapshot);
    run_history_fini(&snapshot->history);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        free_node(&snapshot->nodes[i]);
    }
    weir_arena_fini(&snapshot->rows_arena);
    weir_arena_fini(&snapshot->reservations_arena);
    nominated_fini(&snapshot->nominated);
    free(snapshot->left);
    free(snapshot->jobs);
    free(snapshot->nodes);
    free(snapshot->row_nodes);
    queue_tree_fini(&snapshot->queues);
    offers_fini(&snapshot->offers);
    for (size_t i = 0; i < snapshot->n_served; i++) {
        free(snapshot->served[i].project);
    }
    free(snapshot->served);
    free(snapshot->row_jobs);
    free(snapshot->row_topologies);
    free(snapshot->row_tasks);
    free(snapshot->tasks);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct node_reading {
    struct snapshot *snapshot;
    int64_t now_ms, since_ms;
    int32_t n;
    bool is_other; /* Nodes came or went: indices are out of date. */
    bool is_refit; /* A node has other devices. */
};

static void drop_nodes(struct snapshot *snapshot, int32_t first)
{
    for (int32_t i = first; i < snapshot->n_nodes; i++) {
        free_node(&snapshot->nodes[i]);
    }
    snapshot->n_nodes = first;
}

static bool is_same_node(const struct snapshot_node *left, const struct snapshot_node *right)
{
    return left->facts.cpu_slots == right->facts.cpu_slots &&
           left->facts.memory_bytes == right->facts.memory_bytes &&
           left->facts.is_draining == right->facts.is_draining &&
           left->facts.closed_from_ms == right->facts.closed_from_ms &&
           left->facts.closed_until_ms == right->facts.closed_until_ms &&
           left->facts.ends_ms == right->facts.ends_ms && left->takes_tasks == right->takes_tasks &&
           left->is_closed == right->is_closed && left->is_lost == right->is_lost;
}

/* They come by name, as they are kept: while names agree, facts are put in place. */
static void see_node(void *context, const struct weir_node *node)
{
    struct node_reading *reading = context;
    struct snapshot *snapshot = reading->snapshot;
    int32_t at = reading->n++;
    bool is_known =
        at < snapshot->n_nodes && strcmp(snapshot->nodes[at].facts.name, node->name) == 0;
    struct snapshot_node seen = {
        .facts = *node,
        .is_closed = node->unhealthy != NULL,
        .is_end_foreseen = weir_node_end_is_foreseen(node, reading->now_ms),
        .takes_tasks = weir_node_takes_tasks(node, reading->now_ms, reading->since_ms),
        .is_lost =
            weir_node_is_lost(node, reading->now_ms, reading->since_ms, weir_node_lost_ms())};
    seen.facts.unhealthy = seen.facts.labels = seen.facts.taints = NULL; /* of this call alone */
    seen.facts.accelerators = seen.facts.cluster = seen.facts.allocation = seen.facts.leaving =
        NULL;
    if (!is_known) {
        drop_nodes(snapshot, at);
        snapshot->nodes =
            snapshot_grown(snapshot->nodes, &snapshot->nodes_cap, at + 1, sizeof *snapshot->nodes);
        snapshot->n_nodes = at + 1;
        reading->is_other = true;
        seen.facts.name = weir_xstrdup(node->name);
        seen.supply = weir_xalloc(sizeof *seen.supply);
        supply_init(seen.supply);
    } else {
        snapshot->is_changed = snapshot->is_changed || !is_same_node(&snapshot->nodes[at], &seen);
        const struct snapshot_node *known = &snapshot->nodes[at];
        seen.facts.name = known->facts.name;
        seen.used_cpu_milli = known->used_cpu_milli;
        seen.used_memory_bytes = known->used_memory_bytes;
        seen.text_bytes = known->text_bytes;
        seen.supply = known->supply;
    }
    reading->is_refit = supply_read(seen.supply, node) || reading->is_refit;
    snapshot->nodes[at] = seen;
}

int32_t snapshot_find_node(const struct snapshot *snapshot, const char *name)
{
    int32_t low = 0, high = snapshot->n_nodes;
    while (name != NULL && low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->nodes[middle].facts.name, name);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

static void find_nodes_of(const struct snapshot *snapshot, struct snapshot_job *job)
{
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        job->nodes[i] = snapshot_find_node(snapshot, job->state.tasks[i].node);
    }
}

/* ---- what is left of devices ---- */

struct left_reading {
    struct snapshot *snapshot;
    size_t n;
    bool is_other;
};

static void see_left(void *context, const char *node, int64_t idx)
{
    struct left_reading *reading = context;
    struct snapshot *snapshot = reading->snapshot;
    const struct snapshot_left seen = {snapshot_find_node(snapshot, node), idx};
    size_t at = reading->n++;
    weir_xgrow(&snapshot->left, sizeof *snapshot->left, at, &snapshot->left_cap);
    bool is_known = at < snapshot->n_left && snapshot->left[at].node == seen.node &&
                    snapshot->left[at].idx == idx;
    reading->is_other = reading->is_other || !is_known;
    snapshot->left[at] = seen;
}

/* A device of which something is left has no slot. */
static weir_status read_left(struct snapshot *snapshot, struct weir_txn *txn, bool is_refit,
                             struct weir_error *err)
{
    struct left_reading reading = {snapshot, 0, is_refit};
    WEIR_TRY(weir_task_devices_each_left(txn, see_left, &reading, err));
    bool is_other = reading.is_other || reading.n != snapshot->n_left;
    snapshot->n_left = reading.n;
    for (int32_t i = 0; is_other && i < snapshot->n_nodes; i++) {
        supply_clear_left(snapshot->nodes[i].supply);
    }
    for (size_t i = 0; is_other && i < snapshot->n_left; i++) {
        const struct snapshot_left *left = &snapshot->left[i];
        if (left->node >= 0) {
            supply_mark_left(snapshot->nodes[left->node].supply, left->idx);
        }
    }
    for (int32_t i = 0; is_other && i < snapshot->n_nodes; i++) {
        supply_number(snapshot->nodes[i].supply);
    }
    snapshot->is_changed = snapshot->is_changed || is_other;
    return WEIR_OK;
}

static weir_status read_nodes(struct snapshot *snapshot, struct weir_txn *txn, int64_t now_ms,
                              int64_t since_ms, struct weir_error *err)
{
    struct node_reading reading = {snapshot, now_ms, since_ms, 0, false, false};
    WEIR_TRY(weir_node_each(txn, see_node, &reading, err));
    if (reading.n < snapshot->n_nodes) {
        drop_nodes(snapshot, reading.n);
        reading.is_other = true;
    }
    for (int32_t i = 0; reading.is_other && i < snapshot->n_jobs; i++) {
        find_nodes_of(snapshot, snapshot->jobs[i]);
    }
    snapshot->is_changed = snapshot->is_changed || reading.is_other;
    return read_left(snapshot, txn, reading.is_other || reading.is_refit, err);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static char *put_text(char **at, const char *text)
{
    if (text == NULL) {
        return NULL;
    }
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

/* One block: the job, its tasks, what is known of each, then text. */
static struct snapshot_job *copy_job(const struct weir_job_state *state)
{
    size_t n = state->n_tasks;
    const struct weir_job *job = &state->job;
    size_t size = text_size(job->id) + text_size(job->name) + text_size(job->project) +
                  text_size(job->kind) + text_size(job->state) + text_size(job->reason) +
                  text_size(job->ion) + text_size(job->pipeline) + text_size(job->created_by) +
                  text_size(job->placement) + text_size(job->eviction);
    for (size_t i = 0; i < n; i++) {
        size += text_size(state->tasks[i].id) + text_size(state->tasks[i].node) +
                text_size(state->tasks[i].state) + text_size(state->tasks[i].devices) +
                text_size(state->tasks[i].accelerator_model) +
                text_size(state->tasks[i].mig_profile) + text_size(state->tasks[i].desired);
    }
    struct snapshot_job *copy =
        weir_xalloc(sizeof *copy + n * (sizeof(struct weir_task) + sizeof(int32_t) + 1) + size);
    struct weir_task *tasks = (struct weir_task *)(copy + 1);
    int32_t *nodes = (int32_t *)(tasks + n);
    uint8_t *phases = (uint8_t *)(nodes + n);
    char *at = (char *)(phases + n);
    *copy = (struct snapshot_job){
        .state = *state, .nodes = nodes, .phases = phases, .work = run_history_work(job)};
    copy->ask = ask_read(job->placement);
    copy->state.tasks = tasks;
    copy->state.job.id = put_text(&at, job->id);
    copy->state.job.name = put_text(&at, job->name);
    copy->state.job.project = put_text(&at, job->project);
    copy->state.job.kind = put_text(&at, job->kind);
    copy->state.job.state = put_text(&at, job->state);
    copy->state.job.reason = put_text(&at, job->reason);
    copy->state.job.ion = put_text(&at, job->ion);
    copy->state.job.pipeline = put_text(&at, job->pipeline);
    copy->state.job.created_by = put_text(&at, job->created_by);
    copy->state.job.placement = put_text(&at, job->placement);
    copy->state.job.eviction = put_text(&at, job->eviction);
    for (size_t i = 0; i < n; i++) {
        int phase = weir_task_phase_from_text(state->tasks[i].state);
        tasks[i] = state->tasks[i];
        tasks[i].id = put_text(&at, state->tasks[i].id);
        tasks[i].node = put_text(&at, state->tasks[i].node);
        tasks[i].state = put_text(&at, state->tasks[i].state);
        tasks[i].devices = put_text(&at, state->tasks[i].devices);
        tasks[i].accelerator_model = put_text(&at, state->tasks[i].accelerator_model);
        tasks[i].mig_profile = put_text(&at, state->tasks[i].mig_profile);
        tasks[i].desired = put_text(&at, state->tasks[i].desired);
        phases[i] = (uint8_t)(phase < 0 ? WEIR_TASK_LOST : phase);
    }
    return copy;
}

static int compare_jobs(const void *left, const void *right)
{
    const struct snapshot_job *const *a = left, *const *b = right;
    return strcmp((*a)->state.job.id, (*b)->state.job.id);
}

/* Among the first `n`, which are in order. @return Its index, or -1. */
static int32_t find_among(const struct snapshot *snapshot, int32_t n, const char *id)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->jobs[middle]->state.job.id, id);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

struct job_reading {
    struct snapshot *snapshot;
    int32_t n_sorted; /* Those before are in order; what is new comes behind them. */
};

static void see_job(void *context, const struct weir_job_state *state)
{
    struct job_reading *reading = context;
    struct snapshot *snapshot = reading->snapshot;
    int phase = weir_job_phase_from_text(state->job.state);
    struct snapshot_job *copy = copy_job(state);
    int32_t at = find_among(snapshot, reading->n_sorted, state->job.id);
    snapshot->is_changed = true;
    run_history_note(&snapshot->history, &copy->state.job);
    find_nodes_of(snapshot, copy);
    if (at < 0 && weir_job_phase_is_final((enum weir_job_phase)phase)) {
        free_job(copy);
        return;
    }
    if (at >= 0) {
        copy->noted_ms = snapshot->jobs[at]->noted_ms;
        copy->held_until_ms = snapshot->jobs[at]->held_until_ms > 0; /* Over, but remembered. */
        free_job(snapshot->jobs[at]);
        snapshot->jobs[at] = copy;
        return;
    }
    snapshot->jobs = snapshot_grown(snapshot->jobs, &snapshot->jobs_cap, snapshot->n_jobs + 1,
                                    sizeof(struct snapshot_job *));
    snapshot->jobs[snapshot->n_jobs++] = copy;
}

/* Projects are few. */
static void note_served(struct snapshot *snapshot, const struct weir_job *job)
{
    size_t i = 0;
    if (job->attempt == 0) {
        return;
    }
    while (i < snapshot->n_served && strcmp(snapshot->served[i].project, job->project) != 0) {
        i++;
    }
    if (i == snapshot->n_served) {
        weir_xgrow(&snapshot->served, sizeof *snapshot->served, i, &snapshot->served_cap);
        snapshot->served[snapshot->n_served++] =
            (struct snapshot_served){.project = weir_xstrdup(job->project)};
    }
    snapshot->served[i].ended_ms = WEIR_MAX(snapshot->served[i].ended_ms, job->finished_ms);
}

static void drop_finished(struct snapshot *snapshot)
{
    int32_t n = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        int phase = weir_job_phase_from_text(snapshot->jobs[i]->state.job.state);
        if (phase >= 0 && weir_job_phase_is_final((enum weir_job_phase)phase)) {
            note_served(snapshot, &snapshot->jobs[i]->state.job);
            free_job(snapshot->jobs[i]);
        } else {
            snapshot->jobs[n++] = snapshot->jobs[i];
        }
    }
    snapshot->n_jobs = n;
}

/* Identifiers grow with time, so what is new is mostly in order already. */
static void sort_jobs(struct snapshot *snapshot, int32_t n_sorted)
{
    for (int32_t i = WEIR_MAX(n_sorted, 1); i < snapshot->n_jobs; i++) {
        if (compare_jobs(&snapshot->jobs[i - 1], &snapshot->jobs[i]) > 0) {
            qsort(snapshot->jobs, (size_t)snapshot->n_jobs, sizeof(struct snapshot_job *),
                  compare_jobs);
            return;
        }
    }
}

static void see_ended(void *context, const struct weir_job_state *state)
{
    struct snapshot *snapshot = context;
    run_history_note(&snapshot->history, &state->job);
    note_served(snapshot, &state->job);
}

static weir_status read_jobs(struct snapshot *snapshot, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct job_reading reading = {snapshot, snapshot->n_jobs};
    int64_t revision;
    bool is_first = snapshot->revision < 0;
    if (is_first) {
        forget_jobs(snapshot);
        reading.n_sorted = 0;
        snapshot->is_changed = true;
        WEIR_TRY(weir_job_each_succeeded(txn, RUN_HISTORY_MAX, see_ended, snapshot, err));
    }
    weir_status status = is_first ? weir_job_each_open(txn, see_job, &reading, &revision, err)
                                  : weir_job_each_changed(txn, snapshot->revision, see_job,
                                                          &reading, &revision, err);
    sort_jobs(snapshot, reading.n_sorted);
    if (status == WEIR_OK && revision != snapshot->revision) {
        drop_finished(snapshot);
        snapshot->revision = revision;
    }
    return status;
}

bool snapshot_is_on_node(const struct snapshot_job *job, size_t task)
{
    uint8_t phase = job->phases[task];
    return phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING || phase == WEIR_TASK_STOPPING;
}

size_t snapshot_devices(const struct snapshot *snapshot, const struct snapshot_job *job,
                        size_t task, struct supply_device **out)
{
    int64_t indices[WEIR_TASK_DEVICES_MAX];
    size_t n = job->nodes[task] >= 0
                   ? weir_task_device_indices(job->state.tasks[task].devices, indices)
                   : 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = supply_device(snapshot->nodes[job->nodes[task]].supply, indices[i]);
    }
    return n;
}

static void hold_devices(const struct snapshot *snapshot, const struct snapshot_job *job,
                         size_t index)
{
    int64_t indices[WEIR_TASK_DEVICES_MAX];
    const struct weir_task *task = &job->state.tasks[index];
    size_t n = weir_task_device_indices(task->devices, indices);
    for (size_t i = 0; i < n; i++) {
        supply_hold(snapshot->nodes[job->nodes[index]].supply, indices[i], task);
    }
}

static void count_used(struct snapshot *snapshot)
{
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        struct snapshot_node *node = &snapshot->nodes[i];
        node->used_cpu_milli = node->used_memory_bytes = node->text_bytes = 0;
        for (int32_t k = 0; k < node->supply->n_devices; k++) {
            node->supply->devices[k].held_milli = 0;
        }
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        const struct snapshot_job *job = snapshot->jobs[i];
        for (size_t k = 0; k < job->state.n_tasks; k++) {
            if (job->nodes[k] >= 0 && snapshot_is_on_node(job, k)) {
                const struct weir_task *task = &job->state.tasks[k];
                struct snapshot_node *node = &snapshot->nodes[job->nodes[k]];
                node->used_cpu_milli += task->cpu_millis;
                node->used_memory_bytes += task->memory_bytes;
                node->text_bytes += task->definition_bytes;
                hold_devices(snapshot, job, k);
            }
        }
    }
}

weir_status snapshot_read(struct snapshot *snapshot, struct weir_txn *txn, int64_t now_ms,
                          int64_t since_ms, struct weir_error *err)
{
    WEIR_TRY(read_nodes(snapshot, txn, now_ms, since_ms, err));
    WEIR_TRY(read_jobs(snapshot, txn, err));
    WEIR_TRY(queue_tree_read(&snapshot->queues, txn, &snapshot->is_changed, err));
    WEIR_TRY(offers_read(&snapshot->offers, txn, now_ms, &snapshot->is_changed, err));
    WEIR_TRY(snapshot_read_reservations(snapshot, txn, now_ms, err));
    if (snapshot->is_changed) {
        count_used(snapshot);
    }
    return WEIR_OK;
}

void snapshot_note_wait(struct snapshot *snapshot, struct snapshot_job *job, const char *reason,
                        int64_t expected_start_ms, int64_t now_ms)
{
    int32_t at = find_among(snapshot, snapshot->n_jobs, job->state.job.id);
    struct weir_job_state state = job->state;
    state.job.reason = (char *)reason;
    state.job.expected_start_ms = expected_start_ms;
    struct snapshot_job *copy = copy_job(&state);
    memcpy(copy->nodes, job->nodes, state.n_tasks * sizeof *copy->nodes);
    copy->noted_ms = now_ms;
    copy->held_until_ms = job->held_until_ms;
    snapshot->jobs[at] = copy;
    free_job(job);
}
