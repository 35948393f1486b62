#include "control/snapshot.h"

#include "job/changes.h"

#include <stdlib.h>
#include <string.h>

/* Within a queue: a replica is waited for at a door, a training is not. */
#define PRIORITY_SERVICE 125
#define PRIORITY_JOB     50

/* Room for `n` elements; what is there stays. */
static void *grown(void *old, int32_t *cap, int32_t n, size_t size)
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
}

static void forget_jobs(struct snapshot *snapshot)
{
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        free(snapshot->jobs[i]);
    }
    snapshot->n_jobs = 0;
}

void snapshot_fini(struct snapshot *snapshot)
{
    forget_jobs(snapshot);
    run_history_fini(&snapshot->history);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        free(snapshot->nodes[i].facts.name);
    }
    free(snapshot->jobs);
    free(snapshot->nodes);
    free(snapshot->row_nodes);
    free(snapshot->row_queues);
    free(snapshot->row_jobs);
    free(snapshot->row_tasks);
    free(snapshot->tasks);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct node_reading {
    struct snapshot *snapshot;
    int64_t now_ms, since_ms;
    int32_t n;
    bool is_other; /* Nodes came or went: indices are out of date. */
};

static void drop_nodes(struct snapshot *snapshot, int32_t first)
{
    for (int32_t i = first; i < snapshot->n_nodes; i++) {
        free(snapshot->nodes[i].facts.name);
    }
    snapshot->n_nodes = first;
}

static bool is_same_node(const struct snapshot_node *left, const struct snapshot_node *right)
{
    return left->facts.cpu_slots == right->facts.cpu_slots &&
           left->facts.memory_bytes == right->facts.memory_bytes &&
           left->facts.is_draining == right->facts.is_draining &&
           left->takes_tasks == right->takes_tasks && left->is_closed == right->is_closed &&
           left->is_lost == right->is_lost;
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
        .is_closed = node->unhealthy != NULL || node->taints != NULL,
        .takes_tasks = weir_node_takes_tasks(node, reading->now_ms, reading->since_ms),
        .is_lost = weir_node_is_lost(node, reading->now_ms, reading->since_ms, WEIR_NODE_LOST_MS)};
    seen.facts.unhealthy = seen.facts.labels = seen.facts.taints = NULL; /* of this call alone */
    if (!is_known) {
        drop_nodes(snapshot, at);
        snapshot->nodes =
            grown(snapshot->nodes, &snapshot->nodes_cap, at + 1, sizeof *snapshot->nodes);
        snapshot->n_nodes = at + 1;
        reading->is_other = true;
        seen.facts.name = weir_xstrdup(node->name);
    } else {
        snapshot->is_changed = snapshot->is_changed || !is_same_node(&snapshot->nodes[at], &seen);
        const struct snapshot_node *known = &snapshot->nodes[at];
        seen.facts.name = known->facts.name;
        seen.used_cpu_milli = known->used_cpu_milli;
        seen.used_memory_bytes = known->used_memory_bytes;
        seen.text_bytes = known->text_bytes;
    }
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

static weir_status read_nodes(struct snapshot *snapshot, struct weir_txn *txn, int64_t now_ms,
                              int64_t since_ms, struct weir_error *err)
{
    struct node_reading reading = {snapshot, now_ms, since_ms, 0, false};
    WEIR_TRY(weir_node_each(txn, see_node, &reading, err));
    if (reading.n < snapshot->n_nodes) {
        drop_nodes(snapshot, reading.n);
        reading.is_other = true;
    }
    for (int32_t i = 0; reading.is_other && i < snapshot->n_jobs; i++) {
        find_nodes_of(snapshot, snapshot->jobs[i]);
    }
    snapshot->is_changed = snapshot->is_changed || reading.is_other;
    return WEIR_OK;
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
                  text_size(job->ion) + text_size(job->pipeline) + text_size(job->created_by);
    for (size_t i = 0; i < n; i++) {
        size += text_size(state->tasks[i].id) + text_size(state->tasks[i].node) +
                text_size(state->tasks[i].state);
    }
    struct snapshot_job *copy =
        weir_xalloc(sizeof *copy + n * (sizeof(struct weir_task) + sizeof(int32_t) + 1) + size);
    struct weir_task *tasks = (struct weir_task *)(copy + 1);
    int32_t *nodes = (int32_t *)(tasks + n);
    uint8_t *phases = (uint8_t *)(nodes + n);
    char *at = (char *)(phases + n);
    *copy = (struct snapshot_job){
        .state = *state, .nodes = nodes, .phases = phases, .work = run_history_work(job)};
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
    for (size_t i = 0; i < n; i++) {
        int phase = weir_task_phase_from_text(state->tasks[i].state);
        tasks[i] = state->tasks[i];
        tasks[i].id = put_text(&at, state->tasks[i].id);
        tasks[i].node = put_text(&at, state->tasks[i].node);
        tasks[i].state = put_text(&at, state->tasks[i].state);
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

struct snapshot_job *snapshot_find(const struct snapshot *snapshot, const char *job)
{
    int32_t at = find_among(snapshot, snapshot->n_jobs, job);
    return at >= 0 ? snapshot->jobs[at] : NULL;
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
        free(copy);
        return;
    }
    if (at >= 0) {
        copy->noted_ms = snapshot->jobs[at]->noted_ms;
        copy->held_until_ms = snapshot->jobs[at]->held_until_ms > 0; /* Over, but remembered. */
        free(snapshot->jobs[at]);
        snapshot->jobs[at] = copy;
        return;
    }
    snapshot->jobs = grown(snapshot->jobs, &snapshot->jobs_cap, snapshot->n_jobs + 1,
                           sizeof(struct snapshot_job *));
    snapshot->jobs[snapshot->n_jobs++] = copy;
}

static void drop_finished(struct snapshot *snapshot)
{
    int32_t n = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        int phase = weir_job_phase_from_text(snapshot->jobs[i]->state.job.state);
        if (phase >= 0 && weir_job_phase_is_final((enum weir_job_phase)phase)) {
            free(snapshot->jobs[i]);
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

static void count_used(struct snapshot *snapshot)
{
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        struct snapshot_node *node = &snapshot->nodes[i];
        node->used_cpu_milli = node->used_memory_bytes = node->text_bytes = 0;
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        const struct snapshot_job *job = snapshot->jobs[i];
        for (size_t k = 0; k < job->state.n_tasks; k++) {
            if (job->nodes[k] >= 0 && snapshot_is_on_node(job, k)) {
                const struct weir_task *task = &job->state.tasks[k];
                struct snapshot_node *node = &snapshot->nodes[job->nodes[k]];
                node->used_cpu_milli += task->cpu_slots * 1000;
                node->used_memory_bytes += task->memory_bytes;
                node->text_bytes += task->definition_bytes;
            }
        }
    }
}

weir_status snapshot_read(struct snapshot *snapshot, struct weir_txn *txn, int64_t now_ms,
                          int64_t since_ms, struct weir_error *err)
{
    WEIR_TRY(read_nodes(snapshot, txn, now_ms, since_ms, err));
    WEIR_TRY(read_jobs(snapshot, txn, err));
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
    free(job);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Sums over the cluster must stay within WEIR_SCHED_AMOUNT_MAX, whatever a job asks for: a node
 * counts at most this much, and who wants more than it fits nowhere. */
static int64_t memory_most(const struct snapshot *snapshot)
{
    return WEIR_SCHED_AMOUNT_MAX / ((int64_t)SNAPSHOT_TASKS_MAX + snapshot->n_nodes + 1) - 1;
}

static void fill_nodes(struct snapshot *snapshot)
{
    int64_t most = memory_most(snapshot);
    snapshot->row_nodes = grown(snapshot->row_nodes, &snapshot->row_nodes_cap, snapshot->n_nodes,
                                sizeof *snapshot->row_nodes);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &snapshot->nodes[i];
        snapshot->row_nodes[i] = (struct weir_sched_node){
            .name = node->facts.name,
            .n_tasks_max = SNAPSHOT_NODE_TASKS_MAX,
            .cpu_milli = WEIR_MAX(node->facts.cpu_slots * 1000, node->used_cpu_milli),
            .memory_bytes =
                WEIR_MIN(WEIR_MAX(node->facts.memory_bytes, node->used_memory_bytes), most),
            .is_cordoned = !node->takes_tasks || node->text_bytes >= SNAPSHOT_NODE_TEXT_MAX_BYTES,
        };
    }
}

/* The queue of a project, by name; made if it is new. */
static int32_t queue_of(struct snapshot *snapshot, const char *project)
{
    int32_t low = 0, high = snapshot->rows.n_queues;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->row_queues[middle].name, project);
        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1 - low;
}

static void add_queue(struct snapshot *snapshot, const char *project)
{
    int32_t at = -1 - queue_of(snapshot, project);
    if (at < 0) {
        return;
    }
    int32_t n = snapshot->rows.n_queues++;
    snapshot->row_queues =
        grown(snapshot->row_queues, &snapshot->row_queues_cap, n + 1, sizeof *snapshot->row_queues);
    memmove(snapshot->row_queues + at + 1, snapshot->row_queues + at,
            (size_t)(n - at) * sizeof *snapshot->row_queues);
    const struct weir_sched_share share = {0, 1, WEIR_SCHED_UNLIMITED};
    snapshot->row_queues[at] = (struct weir_sched_queue){.name = project,
                                                         .parent = WEIR_SCHED_NONE,
                                                         .priority = 100,
                                                         .shares = {share, share, share},
                                                         .preempt_min_run_ms = -1,
                                                         .reclaim_min_run_ms = -1};
}

static struct weir_sched_job *add_row_job(struct snapshot *snapshot, const struct snapshot_job *job,
                                          int64_t now_ms)
{
    const struct weir_job *given = &job->state.job;
    int32_t n = snapshot->rows.n_jobs++;
    snapshot->row_jobs =
        grown(snapshot->row_jobs, &snapshot->row_jobs_cap, n + 1, sizeof *snapshot->row_jobs);
    bool is_service = weir_job_is_service(&job->state);
    bool has_started = given->started_ms > 0;
    struct weir_sched_job *row = &snapshot->row_jobs[n];
    *row = (struct weir_sched_job){
        .name = given->name,
        .user = given->created_by,
        .queue = queue_of(snapshot, given->project),
        .priority = is_service ? PRIORITY_SERVICE : PRIORITY_JOB,
        .preemptibility = WEIR_SCHED_PREEMPTIBLE,
        .first_task = snapshot->rows.n_tasks,
        .min_member = WEIR_SCHED_UNLIMITED,
        .created_ms = given->created_ms,
        .queued_ms = given->created_ms,
        .stale_grace_ms = -1,
        .expected_run_ms = run_history_expected_ms(&snapshot->history, job->work),
        .waited_ms = has_started ? 0 : WEIR_MAX(now_ms - given->created_ms, 0),
        .utilisation_pct = -1,
    };
    return row;
}

static void add_row_task(struct snapshot *snapshot, struct weir_sched_job *row,
                         struct snapshot_job *job, size_t index)
{
    const struct weir_task *task = &job->state.tasks[index];
    int64_t most = memory_most(snapshot);
    int32_t n = snapshot->rows.n_tasks++;
    snapshot->row_tasks =
        grown(snapshot->row_tasks, &snapshot->row_tasks_cap, n + 1, sizeof *snapshot->row_tasks);
    snapshot->tasks = grown(snapshot->tasks, &snapshot->tasks_cap, n + 1, sizeof *snapshot->tasks);
    bool is_there = snapshot_is_on_node(job, index);
    snapshot->row_tasks[n] = (struct weir_sched_task){
        .name = task->id,
        .state = !is_there                                  ? WEIR_SCHED_PENDING
                 : job->phases[index] == WEIR_TASK_STOPPING ? WEIR_SCHED_RELEASING
                                                            : WEIR_SCHED_RUNNING,
        .node = is_there ? job->nodes[index] : WEIR_SCHED_NONE,
        .order = (int32_t)(job->state.n_tasks - index),
        .demand = {.cpu_milli = task->cpu_slots * 1000,
                   .memory_bytes = WEIR_MIN(task->memory_bytes, most + 1)},
    };
    snapshot->tasks[n] = (struct snapshot_task){job, (int32_t)index};
    snapshot->n_pending += !is_there;
    row->n_tasks++;
    if (is_there && job->phases[index] != WEIR_TASK_STOPPING) {
        row->started_ms = WEIR_MAX(row->started_ms, task->started_ms);
    }
}

static bool has_room(const struct snapshot *snapshot, const struct snapshot_job *job)
{
    return snapshot->rows.n_tasks + (int64_t)job->state.n_tasks <= SNAPSHOT_TASKS_MAX;
}

/* Which of its tasks have a row: 1 on a node, 2 if it wants one. @return How many. */
static size_t choose_tasks(const struct snapshot *snapshot, const struct snapshot_job *job,
                           int64_t now_ms, size_t *wants, uint8_t *chosen)
{
    size_t n = 0, n_wants = 0;
    bool waits = false;
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        chosen[i] = job->nodes[i] >= 0 && snapshot_is_on_node(job, i);
        waits = waits || job->phases[i] == WEIR_TASK_WAITING;
        n += chosen[i];
    }
    if (waits && job->held_until_ms <= now_ms && has_room(snapshot, job)) {
        n_wants = weir_job_wants(&job->state, now_ms, wants);
    }
    for (size_t i = 0; i < n_wants; i++) {
        chosen[wants[i]] = 2;
    }
    return n + n_wants;
}

static void fill_job(struct snapshot *snapshot, struct snapshot_job *job, int64_t now_ms,
                     size_t *wants, uint8_t *chosen)
{
    struct weir_sched_job *row = NULL;
    bool is_service = weir_job_is_service(&job->state);
    if (choose_tasks(snapshot, job, now_ms, wants, chosen) == 0) {
        return;
    }
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        if (chosen[i] != 0) {
            row = row == NULL || is_service ? add_row_job(snapshot, job, now_ms) : row;
            add_row_task(snapshot, row, job, i);
        }
    }
}

const struct weir_sched_snapshot *snapshot_rows(struct snapshot *snapshot, int64_t now_ms)
{
    size_t n_most = 0;
    snapshot->rows = (struct weir_sched_snapshot){.now_ms = now_ms, .n_nodes = snapshot->n_nodes};
    snapshot->n_pending = 0;
    fill_nodes(snapshot);
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        add_queue(snapshot, snapshot->jobs[i]->state.job.project);
        n_most = WEIR_MAX(n_most, snapshot->jobs[i]->state.n_tasks);
    }
    size_t *wants = weir_xalloc((n_most + 1) * sizeof *wants);
    uint8_t *chosen = weir_xalloc(n_most + 1);
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        fill_job(snapshot, snapshot->jobs[i], now_ms, wants, chosen);
    }
    free(wants);
    free(chosen);
    snapshot->rows.nodes = snapshot->row_nodes;
    snapshot->rows.queues = snapshot->row_queues;
    snapshot->rows.jobs = snapshot->row_jobs;
    snapshot->rows.tasks = snapshot->row_tasks;
    return &snapshot->rows;
}
