/* The planner's rows, made of the copy. */
#include "control/schedule/snapshot_private.h"
#include "control/small.h"

#include "base/hash.h"
#include "job/elastic.h"
#include "job/task_device.h"

#include <stdlib.h>
#include <string.h>

/* Beside the rows themselves: labels and devices of SNAPSHOT_TASKS_MAX tasks. */
#define ROWS_MAX_BYTES ((size_t)8 << 30)

/* Sums over the cluster must stay within WEIR_SCHED_AMOUNT_MAX, whatever a job asks for: a node
 * counts at most this much, and who wants more than it fits nowhere. */
static int64_t memory_most(const struct snapshot *snapshot)
{
    return WEIR_SCHED_AMOUNT_MAX / ((int64_t)SNAPSHOT_TASKS_MAX + snapshot->n_nodes + 1) - 1;
}

bool snapshot_has_clusters(const struct snapshot *snapshot)
{
    return snapshot->offers.n_clusters > 0 || snapshot->names_clusters;
}

static bool names_clusters(const struct snapshot *snapshot)
{
    bool is_any = queue_tree_names_clusters(&snapshot->queues);
    for (int32_t i = 0; i < snapshot->n_jobs && !is_any; i++) {
        const struct ask *ask = snapshot->jobs[i]->ask;
        is_any = ask != NULL && (ask->n_clusters > 0 || ask->pod != NULL);
    }
    return is_any;
}

/* An allocation's nodes end as one that closes for good does. */
static void end_node(const struct snapshot_node *node, struct weir_sched_node *row)
{
    int64_t ends_ms = node->facts.ends_ms > 0 ? node->facts.ends_ms + OFFERS_SPARE_MS : 0;
    if (ends_ms > 0 && (row->closed_from_ms == 0 || ends_ms < row->closed_from_ms)) {
        row->closed_from_ms = ends_ms;
        row->closed_until_ms = WEIR_SCHED_AMOUNT_MAX;
    }
}

static const char *mark_of(struct snapshot *snapshot, const struct snapshot_node *node)
{
    const struct offers *offers = &snapshot->offers;
    const char *cluster = node->supply->cluster != NULL ? node->supply->cluster : WEIR_CLUSTER_OWN;
    const struct weir_allocation *of = offers_allocation(offers, node->supply->allocation);
    return of != NULL ? offers_mark(offers, cluster, of->queue, of->pod, &snapshot->rows_arena)
                      : cluster;
}

static void taint_node(struct snapshot *snapshot, const struct snapshot_node *node,
                       struct weir_sched_node *row)
{
    size_t n = (size_t)row->n_taints;
    struct weir_sched_taint *taints =
        WEIR_ARENA_ARRAY(&snapshot->rows_arena, n + 1, struct weir_sched_taint);
    if (n > 0) {
        memcpy(taints, row->taints, n * sizeof *taints);
    }
    taints[n] = (struct weir_sched_taint){OFFERS_CLUSTER_KEY, mark_of(snapshot, node)};
    row->taints = taints;
    row->n_taints++;
}

static void fill_nodes(struct snapshot *snapshot)
{
    int64_t most = memory_most(snapshot);
    snapshot->row_nodes = snapshot_grown(snapshot->row_nodes, &snapshot->row_nodes_cap,
                                         snapshot->n_nodes, sizeof *snapshot->row_nodes);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &snapshot->nodes[i];
        snapshot->row_nodes[i] = (struct weir_sched_node){
            .name = node->facts.name,
            .n_tasks_max = SNAPSHOT_NODE_TASKS_MAX,
            .memory_bytes =
                WEIR_MIN(WEIR_MAX(node->facts.memory_bytes, node->used_memory_bytes), most),
            .is_cordoned = !node->takes_tasks || node->text_bytes >= SNAPSHOT_NODE_TEXT_MAX_BYTES,
        };
        if (node->facts.closed_from_ms > 0) {
            snapshot->row_nodes[i].closed_from_ms = node->facts.closed_from_ms;
            snapshot->row_nodes[i].closed_until_ms = node->facts.closed_until_ms > 0
                                                         ? node->facts.closed_until_ms
                                                         : WEIR_SCHED_AMOUNT_MAX;
        }
        supply_fill(node->supply, &snapshot->row_nodes[i]);
        end_node(node, &snapshot->row_nodes[i]);
        if (snapshot_has_clusters(snapshot)) {
            taint_node(snapshot, node, &snapshot->row_nodes[i]);
        }
    }
}

const char *snapshot_mark(struct snapshot *snapshot, int32_t queue, const char *cluster,
                          const char *pod)
{
    const struct offers *offers = &snapshot->offers;
    const struct weir_cluster *of = offers_cluster(offers, cluster);
    const char *name = snapshot->queues.rows[queue].name;
    if (of == NULL || pod != NULL) {
        return offers_mark(offers, cluster, name, pod, &snapshot->rows_arena);
    }
    size_t row = (size_t)queue * offers->n_clusters + (size_t)(of - offers->clusters);
    if (snapshot->marks[row] == NULL) {
        snapshot->marks[row] = offers_mark(offers, cluster, name, NULL, &snapshot->rows_arena);
    }
    return snapshot->marks[row];
}

/* What a job tolerates where there are clusters: what it says, and those that it may run on. */
static void fill_tolerations(struct snapshot *snapshot, struct snapshot_job *job)
{
    const struct ask *ask = job->ask;
    int32_t n = ask != NULL ? ask->n_tolerations : 0;
    const char *pod = ask != NULL ? ask->pod : NULL;
    const struct offers *offers = &snapshot->offers;
    int32_t queue = queue_tree_find(&snapshot->queues, job->state.job.project);
    struct offers_where where = offers_where(&snapshot->queues, ask, queue);
    struct weir_sched_toleration *list =
        WEIR_ARENA_ARRAY(&snapshot->rows_arena, (size_t)n + where.n + offers->n_clusters + 2,
                         struct weir_sched_toleration);
    if (n > 0) {
        memcpy(list, ask->tolerations, (size_t)n * sizeof *list);
    }
    for (size_t i = 0; i < where.n; i++) {
        list[n] = (struct weir_sched_toleration){
            OFFERS_CLUSTER_KEY, snapshot_mark(snapshot, queue, where.names[i], pod)};
        n += offers_allows(&where, where.names[i]);
    }
    if (where.names == NULL) {
        list[n++] = (struct weir_sched_toleration){
            OFFERS_CLUSTER_KEY, snapshot_mark(snapshot, queue, WEIR_CLUSTER_OWN, pod)};
    }
    for (size_t i = 0; where.names == NULL && i < offers->n_clusters; i++) {
        list[n++] = (struct weir_sched_toleration){
            OFFERS_CLUSTER_KEY, snapshot_mark(snapshot, queue, offers->clusters[i].name, pod)};
    }
    job->tolerations = list;
    job->n_tolerations = n;
}

/* Of the projects that have jobs. */
static void fill_queues(struct snapshot *snapshot)
{
    queue_tree_begin(&snapshot->queues);
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        queue_tree_add(&snapshot->queues, snapshot->jobs[i]->state.job.project);
    }
    queue_tree_end(&snapshot->queues);
    for (int32_t q = 0; q < snapshot->queues.n_rows; q++) {
        snapshot->queues.rows[q].served_ms = 0;
    }
    for (size_t i = 0; i < snapshot->n_served; i++) {
        int32_t q = queue_tree_find(&snapshot->queues, snapshot->served[i].project);
        if (q >= 0) {
            snapshot->queues.rows[q].served_ms = snapshot->served[i].ended_ms;
        }
    }
    snapshot->rows.queues = snapshot->queues.rows;
    snapshot->rows.n_queues = snapshot->queues.n_rows;
}

/* Since when it waits: again, if it was placed before. */
static int64_t queued_ms(const struct weir_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

/* Topologies are few: one for each pair of labels that jobs name. @return Its index. */
static int32_t find_topology(struct snapshot *snapshot, const struct ask *ask)
{
    const char *keys[2];
    int32_t n_levels = 0;
    struct weir_sched_topology *rows = snapshot->row_topologies;
    int32_t n = snapshot->rows.n_topologies;
    if (ask->required != NULL) {
        keys[n_levels++] = ask->required;
    }
    if (ask->preferred != NULL) {
        keys[n_levels++] = ask->preferred;
    }
    for (int32_t i = 0; i < n; i++) {
        bool is_same = rows[i].n_levels == n_levels;
        for (int32_t k = 0; k < n_levels && is_same; k++) {
            is_same = strcmp(rows[i].levels[k], keys[k]) == 0;
        }
        if (is_same) {
            return i;
        }
    }
    snapshot->row_topologies = snapshot_grown(rows, &snapshot->row_topologies_cap, n + 1,
                                              sizeof *snapshot->row_topologies);
    const char **levels = WEIR_ARENA_ARRAY(&snapshot->rows_arena, 2, const char *);
    memcpy(levels, keys, (size_t)n_levels * sizeof *levels);
    snapshot->row_topologies[n] =
        (struct weir_sched_topology){.name = "job", .levels = levels, .n_levels = n_levels};
    snapshot->rows.n_topologies++;
    return n;
}

/* A gang's tasks lie in one domain of the label that it requires, and rather in one of the label
 * that it prefers. */
static void add_topology(struct snapshot *snapshot, const struct ask *ask,
                         struct weir_sched_job *row)
{
    if (ask == NULL || (ask->required == NULL && ask->preferred == NULL)) {
        return;
    }
    bool has_both = ask->required != NULL && ask->preferred != NULL;
    struct weir_sched_group *group =
        WEIR_ARENA_ARRAY(&snapshot->rows_arena, 1, struct weir_sched_group);
    *group =
        (struct weir_sched_group){.name = row->name,
                                  .parent = WEIR_SCHED_NONE,
                                  .min_member = row->min_member,
                                  .topology = find_topology(snapshot, ask),
                                  .required_level = ask->required != NULL ? 0 : WEIR_SCHED_NONE,
                                  .preferred_level = ask->preferred == NULL ? WEIR_SCHED_NONE
                                                     : has_both             ? 1
                                                                            : 0};
    row->groups = group;
    row->n_groups = 1;
}

/* It is asked to save while all of it runs: what only starts has nothing to save. Independent tasks have a row each,
 * which is about no other. */
static bool may_save(const struct snapshot_job *job, size_t task)
{
    bool is_alone = weir_job_has_independent_tasks(&job->state);
    bool may = job->state.job.save_within_ms > 0;
    for (size_t i = 0; may && i < job->state.n_tasks; i++) {
        may = job->phases[i] != WEIR_TASK_STARTING || (is_alone && i != task);
    }
    return may;
}

/* From this task on. */
static struct weir_sched_job *add_row_job(struct snapshot *snapshot, const struct snapshot_job *job,
                                          size_t task)
{
    const struct weir_job *given = &job->state.job;
    int32_t n = snapshot->rows.n_jobs++;
    snapshot->row_jobs = snapshot_grown(snapshot->row_jobs, &snapshot->row_jobs_cap, n + 1,
                                        sizeof *snapshot->row_jobs);
    struct weir_sched_job *row = &snapshot->row_jobs[n];
    *row = (struct weir_sched_job){
        .name = given->name,
        .user = given->created_by,
        .queue = queue_tree_find(&snapshot->queues, given->project),
        .priority = (int32_t)given->priority,
        .preemptibility =
            given->is_preemptible ? WEIR_SCHED_PREEMPTIBLE : WEIR_SCHED_NON_PREEMPTIBLE,
        .first_task = snapshot->rows.n_tasks,
        .min_member = WEIR_SCHED_UNLIMITED,
        .created_ms = given->created_ms,
        .queued_ms = queued_ms(given),
        .stale_grace_ms = -1,
        .time_limit_ms = given->time_limit_ms,
        .expected_run_ms = run_history_expected_ms(&snapshot->history, job->work),
        .utilisation_pct = -1,
        .can_checkpoint = may_save(job, task),
    };
    add_topology(snapshot, job->ask, row);
    return row;
}

/* A task that was asked to save: the job has acknowledged if all have, or have had their time. */
static void add_asked_to_save(struct snapshot *snapshot, struct weir_sched_job *row,
                              const struct snapshot_job *job, const struct weir_task *task)
{
    int64_t due_ms = task->asked_ms + job->state.job.save_within_ms;
    bool is_first = row->checkpoint_requested_ms == 0;
    bool has_answered = task->saved_ms > 0 || snapshot->rows.now_ms >= due_ms;
    row->checkpoint_requested_ms =
        is_first ? task->asked_ms : WEIR_MIN(row->checkpoint_requested_ms, task->asked_ms);
    row->evict_acknowledged = (is_first || row->evict_acknowledged) && has_answered;
    row->checkpoint_ms = WEIR_MAX(row->checkpoint_ms, task->saved_ms);
    snapshot->n_leaving++;
    if (!has_answered) {
        snapshot->save_due_ms = WEIR_MIN(snapshot->save_due_ms, due_ms);
    }
}

/* What a task that is on a node has of it; what is bad or gone the planner does not know. */
static void take_devices(struct snapshot *snapshot, const struct snapshot_job *job, size_t index,
                         struct weir_sched_task *row)
{
    struct supply_device *devices[WEIR_TASK_DEVICES_MAX];
    struct weir_sched_demand *demand = &row->demand;
    size_t n = snapshot_devices(snapshot, job, index, devices);
    int32_t *slots = WEIR_ARENA_ARRAY(&snapshot->rows_arena, n + 1, int32_t);
    int32_t n_slots = 0, n_slices = 0;
    for (size_t i = 0; i < n; i++) {
        if (devices[i] != NULL && devices[i]->slot >= 0) {
            slots[n_slots++] = devices[i]->slot;
        }
        n_slices += devices[i] != NULL && supply_device_is_fit(devices[i]);
    }
    if (demand->n_extras > 0) {
        ((struct weir_sched_extra *)demand->extras)->count = n_slices;
        return;
    }
    demand->n_devices = n_slots;
    row->devices = n_slots > 0 ? slots : NULL;
}

static void add_asked(struct snapshot *snapshot, const struct snapshot_job *job, size_t index,
                      struct weir_sched_task *row)
{
    const struct weir_task *task = &job->state.tasks[index];
    struct weir_sched_label labels[ASK_MARKS_MAX + 1];
    int32_t n = ask_labels(job->ask, task, labels);
    if (n > 0) {
        struct weir_sched_label *copy =
            WEIR_ARENA_ARRAY(&snapshot->rows_arena, (size_t)n, struct weir_sched_label);
        memcpy(copy, labels, (size_t)n * sizeof *copy);
        row->selector = copy;
        row->n_selector = n;
    }
    if (snapshot_has_clusters(snapshot)) {
        row->tolerations = job->tolerations;
        row->n_tolerations = job->n_tolerations;
    } else if (job->ask != NULL) {
        row->tolerations = job->ask->tolerations;
        row->n_tolerations = job->ask->n_tolerations;
    }
    if (task->n_accelerators == 0) {
        return;
    }
    ask_devices(task, &row->demand);
    if (task->mig_profile != NULL) {
        struct weir_sched_extra *extra =
            WEIR_ARENA_ARRAY(&snapshot->rows_arena, 1, struct weir_sched_extra);
        *extra = (struct weir_sched_extra){task->mig_profile, task->n_accelerators, 0};
        row->demand.extras = extra;
        row->demand.n_extras = 1;
    }
    if (snapshot_is_on_node(job, index)) {
        take_devices(snapshot, job, index, row);
    }
}

/* Replicas are there for when one is lost: those of one pipeline, or of one deployment (whose names end in a number),
 * are rather on different nodes. */
static int32_t spread_of(const struct weir_job *job)
{
    bool is_pipeline = job->ion != NULL;
    const char *name = is_pipeline ? job->id : job->name, *dash = strrchr(name, '-');
    size_t len = is_pipeline || dash == NULL ? strlen(name) : (size_t)(dash - name);
    if (!job->is_service || (!is_pipeline && strcmp(job->kind, "serve") != 0)) {
        return 0;
    }
    uint64_t hash = weir_hash_bytes(weir_hash_text(WEIR_HASH_BEGIN, job->project), name, len);
    return (int32_t)(hash % INT32_MAX) + 1;
}

/* The place that a plan nominated, if its node and all of its devices are still there. */
static void put_nominated(struct snapshot *snapshot, struct weir_sched_task *row)
{
    const struct nominated_place *place = nominated_find(&snapshot->nominated, row->name);
    int32_t node = place != NULL ? snapshot_find_node(snapshot, place->node) : -1;
    if (node < 0 || place->n_devices != row->demand.n_devices) {
        return;
    }
    int32_t *slots = WEIR_ARENA_ARRAY(&snapshot->rows_arena, (size_t)place->n_devices + 1, int32_t);
    for (int32_t i = 0; i < place->n_devices; i++) {
        const struct supply_device *device =
            supply_device(snapshot->nodes[node].supply, place->devices[i]);
        if (device == NULL || device->slot < 0) {
            return;
        }
        slots[i] = device->slot;
    }
    row->state = WEIR_SCHED_PIPELINED;
    row->node = node;
    row->devices = place->n_devices > 0 ? slots : NULL;
}

static void add_row_task(struct snapshot *snapshot, struct weir_sched_job *row,
                         struct snapshot_job *job, size_t index)
{
    const struct weir_task *task = &job->state.tasks[index];
    int64_t most = memory_most(snapshot);
    int32_t n = snapshot->rows.n_tasks++;
    snapshot->row_tasks = snapshot_grown(snapshot->row_tasks, &snapshot->row_tasks_cap, n + 1,
                                         sizeof *snapshot->row_tasks);
    snapshot->tasks =
        snapshot_grown(snapshot->tasks, &snapshot->tasks_cap, n + 1, sizeof *snapshot->tasks);
    bool is_there = snapshot_is_on_node(job, index);
    snapshot->row_tasks[n] = (struct weir_sched_task){
        .name = task->id,
        .state = !is_there                                  ? WEIR_SCHED_PENDING
                 : job->phases[index] == WEIR_TASK_STOPPING ? WEIR_SCHED_RELEASING
                                                            : WEIR_SCHED_RUNNING,
        .node = is_there ? job->nodes[index] : WEIR_SCHED_NONE,
        .order = (int32_t)(job->state.n_tasks - index),
        .spread = spread_of(&job->state.job),
        .demand = {.cpu_milli = task->cpu_millis,
                   .memory_bytes = WEIR_MIN(task->memory_bytes, most + 1)},
    };
    add_asked(snapshot, job, index, &snapshot->row_tasks[n]);
    if (!is_there) {
        put_nominated(snapshot, &snapshot->row_tasks[n]);
    }
    snapshot->tasks[n] = (struct snapshot_task){job, (int32_t)index};
    snapshot->n_pending += !is_there;
    row->n_tasks++;
    if (snapshot->row_tasks[n].state == WEIR_SCHED_RUNNING && task->asked_ms > 0) {
        snapshot->row_tasks[n].is_leaving = true;
        add_asked_to_save(snapshot, row, job, task);
    }
    if (is_there && job->phases[index] != WEIR_TASK_STOPPING) {
        int64_t *served_ms = &snapshot->queues.rows[row->queue].served_ms;
        row->started_ms = WEIR_MAX(row->started_ms, task->started_ms);
        *served_ms = WEIR_MAX(*served_ms, task->started_ms);
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
    bool is_service = weir_job_has_independent_tasks(&job->state);
    if (choose_tasks(snapshot, job, now_ms, wants, chosen) == 0) {
        return;
    }
    if (snapshot_has_clusters(snapshot)) {
        fill_tolerations(snapshot, job);
    }
    for (size_t i = 0; i < job->state.n_tasks; i++) {
        if (chosen[i] != 0) {
            row = row == NULL || is_service ? add_row_job(snapshot, job, i) : row;
            add_row_task(snapshot, row, job, i);
        }
    }
    if (row != NULL && weir_job_is_elastic(&job->state)) {
        row->min_member = (int32_t)WEIR_MIN(job->state.job.min_tasks, (int64_t)row->n_tasks);
        for (int32_t i = 0; i < row->n_groups; i++) {
            ((struct weir_sched_group *)row->groups)[i].min_member = row->min_member;
        }
    }
}

static int64_t small_milli(const struct weir_sched_task *task)
{
    return task->demand.cpu_milli < CONTROL_SMALL_MILLIS ? task->demand.cpu_milli : 0;
}

static int by_amount(const void *left, const void *right)
{
    int64_t l = *(const int64_t *)left, r = *(const int64_t *)right;
    return (l > r) - (l < r);
}

static size_t sort_once(int64_t *amounts, size_t n)
{
    size_t n_kept = 0;
    qsort(amounts, n, sizeof *amounts, by_amount);
    for (size_t i = 0; i < n; i++) {
        if (n_kept == 0 || amounts[n_kept - 1] != amounts[i]) {
            amounts[n_kept++] = amounts[i];
        }
    }
    return n_kept;
}

/* What a node has beside its CPUs for small tasks, those that want a node included. So where all tasks
 * are whole CPUs a node has exactly its own. */
static void open_small_room(struct snapshot *snapshot)
{
    struct weir_arena *arena = &snapshot->rows_arena;
    int64_t *small = WEIR_ARENA_ARRAY(arena, (size_t)snapshot->n_nodes + 1, int64_t);
    int64_t *large = WEIR_ARENA_ARRAY(arena, (size_t)snapshot->rows.n_tasks + 1, int64_t);
    struct small_waits waits = {.large = large};
    for (int32_t t = 0; t < snapshot->rows.n_tasks; t++) {
        const struct weir_sched_task *task = &snapshot->row_tasks[t];
        bool is_there = task->node >= 0 && task->state != WEIR_SCHED_PIPELINED;
        *(is_there ? &small[task->node] : &waits.small) += small_milli(task);
        if (!is_there && small_milli(task) == 0 && task->demand.cpu_milli > 0) {
            large[waits.n_large++] = task->demand.cpu_milli;
        }
    }
    waits.n_large = sort_once(large, waits.n_large);
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &snapshot->nodes[i];
        const struct small_node has = {.own = node->facts.cpu_slots * 1000,
                                       .small = small[i],
                                       .large = node->used_cpu_milli - small[i]};
        snapshot->row_nodes[i].cpu_milli =
            WEIR_MAX(has.own + control_small_room(&has, &waits), node->used_cpu_milli);
    }
}

const struct weir_sched_snapshot *snapshot_rows(struct snapshot *snapshot, int64_t now_ms)
{
    size_t n_most = 0;
    snapshot->rows = (struct weir_sched_snapshot){.now_ms = now_ms, .n_nodes = snapshot->n_nodes};
    snapshot->n_pending = snapshot->n_leaving = 0;
    snapshot->save_due_ms = INT64_MAX;
    weir_arena_fini(&snapshot->rows_arena);
    weir_arena_init(&snapshot->rows_arena, ROWS_MAX_BYTES);
    snapshot->names_clusters = names_clusters(snapshot);
    fill_nodes(snapshot);
    fill_queues(snapshot);
    snapshot_fill_reservations(snapshot, now_ms);
    snapshot->marks = WEIR_ARENA_ARRAY(
        &snapshot->rows_arena, (size_t)snapshot->queues.n_rows * snapshot->offers.n_clusters + 1,
        const char *);
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        n_most = WEIR_MAX(n_most, snapshot->jobs[i]->state.n_tasks);
    }
    size_t *wants = weir_xalloc((n_most + 1) * sizeof *wants);
    uint8_t *chosen = weir_xalloc(n_most + 1);
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        fill_job(snapshot, snapshot->jobs[i], now_ms, wants, chosen);
    }
    free(wants);
    free(chosen);
    open_small_room(snapshot);
    snapshot->rows.nodes = snapshot->row_nodes;
    snapshot->rows.jobs = snapshot->row_jobs;
    snapshot->rows.tasks = snapshot->row_tasks;
    snapshot->rows.topologies = snapshot->row_topologies;
    return &snapshot->rows;
}
