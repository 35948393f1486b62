/** Everything that a plan relies on, asked of a snapshot that may come from anywhere. */
#include "sched/snapshot.h"

#include "base/macros.h"
#include "sched/place/zones.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 4096
#define EXTRAS_MAX  ((int64_t)1 << 20) /**< Of one name; and elements of all lists. */
#define WEIGHT_MAX  ((int64_t)1 << 40)
#define PARTS_MAX   ((int64_t)1 << 30) /**< Of all tasks and nodes together. */

struct check {
    const struct weir_sched_snapshot *snapshot;
    struct weir_error *err;
    int64_t n_devices, n_parts, n_extras;
    int64_t device_bytes; /**< That tasks ask for, together. */
    int64_t sums[WEIR_SCHED_N_RESOURCES];
};

static weir_status refuse(const struct check *check, const char *kind, const char *name,
                          const char *what)
{
    return weir_error_set(check->err, WEIR_ERR_INVALID, "%s \"%.80s\": %s", kind,
                          name == NULL ? "" : name, what);
}

static bool is_amount(int64_t value)
{
    return value >= 0 && value <= WEIR_SCHED_AMOUNT_MAX;
}

static bool is_bound(int64_t value)
{
    return value == WEIR_SCHED_UNLIMITED || is_amount(value);
}

static bool is_index(int32_t index, int32_t n)
{
    return index >= 0 && index < n;
}

static bool are_labels(const struct weir_sched_label *labels, int32_t n, bool needs_values)
{
    if (n < 0 || (n > 0 && labels == NULL)) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (labels[i].key == NULL || (needs_values && labels[i].value == NULL)) {
            return false;
        }
    }
    return true;
}

static bool are_extras(struct check *check, const struct weir_sched_extra *extras, int32_t n)
{
    if (n < 0 || (n > 0 && extras == NULL)) {
        return false;
    }
    check->n_extras += n;
    for (int32_t i = 0; i < n; i++) {
        if (extras[i].name == NULL || extras[i].count < 0 || extras[i].count > EXTRAS_MAX ||
            extras[i].device_milli < 0 || extras[i].device_milli > EXTRAS_MAX) {
            return false;
        }
    }
    return true;
}

/** Sums over the whole cluster must stay within an amount, so that nothing overflows later. */
static bool add_up(struct check *check, int64_t cpu, int64_t memory)
{
    check->sums[WEIR_SCHED_CPU] += cpu;
    check->sums[WEIR_SCHED_MEMORY] += memory;
    return check->sums[WEIR_SCHED_CPU] <= WEIR_SCHED_AMOUNT_MAX &&
           check->sums[WEIR_SCHED_MEMORY] <= WEIR_SCHED_AMOUNT_MAX;
}

static weir_status check_zones(const struct check *check, const struct weir_sched_node *node)
{
    if (node->n_zones < 0 || node->n_zones > ZONES_MAX ||
        (node->n_zones > 0 && node->zones == NULL)) {
        return refuse(check, "node", node->name, "more NUMA zones than are planned for");
    }
    for (int32_t i = 0; i < node->n_zones; i++) {
        if (!is_bound(node->zones[i].cpu_milli) || !is_bound(node->zones[i].memory_bytes) ||
            node->zones[i].n_devices < WEIR_SCHED_UNLIMITED ||
            node->zones[i].n_devices > DEVICES_MAX) {
            return refuse(check, "node", node->name,
                          "a NUMA zone has a negative amount or more than 4096 devices");
        }
    }
    return WEIR_OK;
}

static weir_status check_node(struct check *check, const struct weir_sched_node *node)
{
    if (node->name == NULL) {
        return refuse(check, "node", NULL, "has no name");
    }
    if (node->n_devices < 0 || node->n_devices > DEVICES_MAX) {
        return refuse(check, "node", node->name, "expected 0 to 4096 devices");
    }
    check->n_devices += node->n_devices;
    if (!is_amount(node->cpu_milli) || !is_amount(node->memory_bytes) ||
        !is_amount(node->device_memory_bytes) ||
        node->device_memory_bytes > WEIR_SCHED_AMOUNT_MAX / (check->snapshot->n_tasks + 1) ||
        node->n_tasks_max < WEIR_SCHED_UNLIMITED ||
        !add_up(check, node->cpu_milli, node->memory_bytes)) {
        return refuse(check, "node", node->name, "an amount is negative or too large");
    }
    if (node->device_milli < 0 || node->device_milli > WEIR_SCHED_DEVICE) {
        return refuse(check, "node", node->name, "expected 0 to 1000 of each device");
    }
    if (!are_labels(node->labels, node->n_labels, true)) {
        return refuse(check, "node", node->name, "a label has no key or no value");
    }
    if (node->n_taints < 0 || (node->n_taints > 0 && node->taints == NULL)) {
        return refuse(check, "node", node->name, "taints are missing");
    }
    for (int32_t i = 0; i < node->n_taints; i++) {
        if (node->taints[i].key == NULL || node->taints[i].value == NULL) {
            return refuse(check, "node", node->name, "a taint has no key or no value");
        }
    }
    if (!are_extras(check, node->extras, node->n_extras)) {
        return refuse(check, "node", node->name, "an extra has no name or a bad count");
    }
    return check_zones(check, node);
}

static bool is_share(const struct weir_sched_share *share)
{
    return is_bound(share->quota) && is_bound(share->limit) && share->weight <= WEIGHT_MAX;
}

static weir_status check_models(const struct check *check, const struct weir_sched_queue *queue,
                                const struct weir_sched_model_share *models, int32_t n)
{
    if (n < 0 || (n > 0 && models == NULL)) {
        return refuse(check, "queue", queue->name, "shares of models are missing");
    }
    if (n > WEIR_SCHED_MODELS_MAX) {
        return weir_error_set(check->err, WEIR_ERR_LIMIT,
                              "queue \"%.80s\": has shares of more than %d models", queue->name,
                              WEIR_SCHED_MODELS_MAX);
    }
    for (int32_t i = 0; i < n; i++) {
        if (models[i].model == NULL || models[i].model[0] == '\0' || !is_share(&models[i].share)) {
            return refuse(check, "queue", queue->name,
                          "the share of a model has no name, or is negative or too large");
        }
        for (int32_t j = 0; j < i; j++) {
            if (strcmp(models[j].model, models[i].model) == 0) {
                return refuse(check, "queue", queue->name, "names a model twice");
            }
        }
    }
    return WEIR_OK;
}

static bool are_among(const struct weir_sched_model_share *shares, int32_t n_shares,
                      const char *const *models, int32_t n)
{
    for (int32_t i = 0; i < n_shares; i++) {
        int32_t m = 0;
        while (m < n && strcmp(models[m], shares[i].model) != 0) {
            m++;
        }
        if (m == n) {
            return false;
        }
    }
    return true;
}

/** Names beyond the greatest number that queues may have shares of find no place in the list. */
static weir_status check_all_models(const struct check *check)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    const struct weir_sched_snapshot *snapshot = check->snapshot;
    int32_t n = weir_sched_models(snapshot, models);
    for (int32_t q = 0; q < snapshot->n_queues && n == WEIR_SCHED_MODELS_MAX; q++) {
        const struct weir_sched_queue *queue = &snapshot->queues[q];
        bool are_listed = are_among(queue->models, queue->n_models, models, n);
        for (int32_t w = 0; w < queue->n_timed_quotas; w++) {
            are_listed = are_listed && are_among(queue->timed_quotas[w].models,
                                                 queue->timed_quotas[w].n_models, models, n);
        }
        if (!are_listed) {
            return weir_error_set(check->err, WEIR_ERR_LIMIT,
                                  "queue \"%.80s\": names one more model than the %d of which "
                                  "queues may have shares",
                                  queue->name, WEIR_SCHED_MODELS_MAX);
        }
    }
    return WEIR_OK;
}

static weir_status check_timed_quotas(const struct check *check,
                                      const struct weir_sched_queue *queue)
{
    if (queue->n_timed_quotas < 0 || (queue->n_timed_quotas > 0 && queue->timed_quotas == NULL)) {
        return refuse(check, "queue", queue->name, "windows are missing");
    }
    for (int32_t i = 0; i < queue->n_timed_quotas; i++) {
        const struct weir_sched_timed_quota *timed = &queue->timed_quotas[i];
        bool are_shares = true;
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            are_shares = are_shares && is_share(&timed->shares[r]);
        }
        if (timed->days < 0 || timed->days > 127 || timed->from_minute < 0 ||
            timed->from_minute > 1440 || timed->until_minute < 0 || timed->until_minute > 1440 ||
            !are_shares) {
            return refuse(
                check, "queue", queue->name,
                "a window is outside days 0 to 127, minutes 0 to 1440, or has a bad share");
        }
        WEIR_TRY(check_models(check, queue, timed->models, timed->n_models));
    }
    return WEIR_OK;
}

static weir_status check_queue(const struct check *check, int32_t index)
{
    const struct weir_sched_queue *queue = &check->snapshot->queues[index];
    if (queue->name == NULL) {
        return refuse(check, "queue", NULL, "has no name");
    }
    if (queue->parent != WEIR_SCHED_NONE && !is_index(queue->parent, index)) {
        return refuse(check, "queue", queue->name, "its parent must come before it");
    }
    for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
        if (!is_share(&queue->shares[r]) || !is_amount(queue->usage_ppm[r])) {
            return refuse(check, "queue", queue->name, "a share is negative or too large");
        }
    }
    WEIR_TRY(check_models(check, queue, queue->models, queue->n_models));
    return check_timed_quotas(check, queue);
}

static weir_status check_demand(struct check *check, const struct weir_sched_task *task)
{
    const struct weir_sched_demand *demand = &task->demand;
    bool is_by_share = demand->device_milli > 0, is_by_memory = demand->device_memory_bytes > 0;
    if (demand->n_devices < 0 || demand->n_devices > DEVICES_MAX || demand->device_milli < 0 ||
        demand->device_milli > WEIR_SCHED_DEVICE || !is_amount(demand->device_memory_bytes)) {
        return refuse(check, "task", task->name,
                      "expected up to 4096 devices, each by a share of 1 to 1000 or by memory");
    }
    if (demand->n_devices > 0 && is_by_share == is_by_memory) {
        return refuse(check, "task", task->name,
                      "devices are asked for either by share or by memory");
    }
    if (!is_amount(demand->cpu_milli) || !is_amount(demand->memory_bytes) ||
        !add_up(check, demand->cpu_milli, demand->memory_bytes)) {
        return refuse(check, "task", task->name, "an amount is negative or too large");
    }
    if (!are_extras(check, demand->extras, demand->n_extras)) {
        return refuse(check, "task", task->name, "an extra has no name or a bad count");
    }
    check->n_parts += demand->n_devices;
    __int128 bytes = (__int128)demand->device_memory_bytes * demand->n_devices;
    if (bytes > WEIR_SCHED_AMOUNT_MAX - check->device_bytes) {
        return refuse(check, "task", task->name, "asks for more device memory than can be counted");
    }
    check->device_bytes += (int64_t)bytes;
    return WEIR_OK;
}

static weir_status check_devices(const struct check *check, const struct weir_sched_task *task,
                                 const int32_t *devices, int32_t n_devices)
{
    for (int32_t i = 0; i < task->demand.n_devices && devices != NULL; i++) {
        if (!is_index(devices[i], n_devices)) {
            return refuse(check, "task", task->name, "has a device that its node has not");
        }
        for (int32_t j = 0; j < i; j++) {
            if (devices[j] == devices[i]) {
                return refuse(check, "task", task->name, "names a device twice");
            }
        }
    }
    return WEIR_OK;
}

static weir_status check_nomination(const struct check *check, const struct weir_sched_task *task)
{
    if (task->nomination == NULL) {
        return WEIR_OK;
    }
    if (!is_index(task->nomination->node, check->snapshot->n_nodes)) {
        return refuse(check, "task", task->name, "is promised a node that is not there");
    }
    int32_t n_devices = check->snapshot->nodes[task->nomination->node].n_devices;
    if (task->demand.n_devices > n_devices ||
        (task->demand.n_devices > 0 && task->nomination->devices == NULL)) {
        return refuse(check, "task", task->name, "is promised devices that the node has not");
    }
    if (task->nomination->zones >> check->snapshot->nodes[task->nomination->node].n_zones != 0) {
        return refuse(check, "task", task->name, "is promised a NUMA zone that the node has not");
    }
    return check_devices(check, task, task->nomination->devices, n_devices);
}

static weir_status check_assignment(const struct check *check, const struct weir_sched_task *task)
{
    if (task->state < WEIR_SCHED_PENDING || task->state > WEIR_SCHED_FAILED) {
        return refuse(check, "task", task->name, "its state is none");
    }
    if (!weir_sched_task_has_node(task->state)) {
        return WEIR_OK;
    }
    if (!is_index(task->node, check->snapshot->n_nodes)) {
        return refuse(check, "task", task->name, "runs on a node that is not there");
    }
    int32_t n_devices = check->snapshot->nodes[task->node].n_devices;
    if (task->demand.n_devices > n_devices) {
        return refuse(check, "task", task->name, "runs on more devices than its node has");
    }
    if (task->zones >> check->snapshot->nodes[task->node].n_zones != 0) {
        return refuse(check, "task", task->name, "runs in a NUMA zone that its node has not");
    }
    return check_devices(check, task, task->devices, n_devices);
}

static weir_status check_wishes(struct check *check, const struct weir_sched_task *task)
{
    int32_t n_nodes = check->snapshot->n_nodes;
    if (task->n_wishes < 0 || (task->n_wishes > 0 && task->wishes == NULL)) {
        return refuse(check, "task", task->name, "wishes are missing");
    }
    for (int32_t i = 0; i < task->n_wishes; i++) {
        const struct weir_sched_wish *wish = &task->wishes[i];
        bool is_right = wish->domains != NULL && are_labels(wish->labels, wish->n_labels, true);
        for (int32_t k = 0; k < n_nodes && is_right; k++) {
            is_right = wish->domains[k] >= -1 && wish->domains[k] < n_nodes;
        }
        if (!is_right) {
            return refuse(check, "task", task->name,
                          "a wish has no domains, one that is out of range, or a bad label");
        }
    }
    return WEIR_OK;
}

static weir_status check_task(struct check *check, const struct weir_sched_task *task)
{
    if (task->name == NULL) {
        return refuse(check, "task", NULL, "has no name");
    }
    WEIR_TRY(check_demand(check, task));
    WEIR_TRY(check_assignment(check, task));
    WEIR_TRY(check_nomination(check, task));
    WEIR_TRY(check_wishes(check, task));
    if (!are_labels(task->selector, task->n_selector, false) ||
        !are_labels(task->labels, task->n_labels, true) ||
        !are_labels(task->affinity_labels, task->n_affinity_labels, true)) {
        return refuse(check, "task", task->name, "a label or selector has no key or no value");
    }
    if (task->n_tolerations < 0 || (task->n_tolerations > 0 && task->tolerations == NULL)) {
        return refuse(check, "task", task->name, "tolerations are missing");
    }
    for (int32_t i = 0; i < task->n_tolerations; i++) {
        if (task->tolerations[i].key == NULL) {
            return refuse(check, "task", task->name, "a toleration has no key");
        }
    }
    return WEIR_OK;
}

static weir_status check_group(const struct check *check, const struct weir_sched_job *job,
                               int32_t index)
{
    const struct weir_sched_group *group = &job->groups[index];
    bool is_root = index == 0 && group->parent == WEIR_SCHED_NONE;
    if (!is_root && !is_index(group->parent, index)) {
        return refuse(check, "job", job->name, "the parent of a sub-group must come before it");
    }
    if (group->min_member < WEIR_SCHED_UNLIMITED) {
        return refuse(check, "job", job->name, "a sub-group's minimum is negative");
    }
    if (group->topology == WEIR_SCHED_NONE) {
        return WEIR_OK;
    }
    if (!is_index(group->topology, check->snapshot->n_topologies)) {
        return refuse(check, "job", job->name, "a sub-group's topology is not there");
    }
    int32_t n_levels = check->snapshot->topologies[group->topology].n_levels;
    if (group->required_level < WEIR_SCHED_NONE || group->required_level >= n_levels ||
        group->preferred_level < WEIR_SCHED_NONE || group->preferred_level >= n_levels) {
        return refuse(check, "job", job->name, "a sub-group's topology has no such level");
    }
    return WEIR_OK;
}

static weir_status check_members(const struct check *check, const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && job->n_groups > 0;
         t++) {
        int32_t group = check->snapshot->tasks[t].group;
        if (!is_index(group, job->n_groups)) {
            return refuse(check, "job", job->name, "a task's sub-group is not there");
        }
        for (int32_t g = group + 1; g < job->n_groups; g++) {
            if (job->groups[g].parent == group) {
                return refuse(check, "job", job->name,
                              "only sub-groups without children have tasks");
            }
        }
    }
    return WEIR_OK;
}

/** Jobs lie one after another over the tasks, so that each task has one. */
static weir_status check_job(struct check *check, const struct weir_sched_job *job,
                             const bool *has_children, int32_t *at_task)
{
    const struct weir_sched_snapshot *snapshot = check->snapshot;
    if (job->name == NULL) {
        return refuse(check, "job", NULL, "has no name");
    }
    if (!is_index(job->queue, snapshot->n_queues) || has_children[job->queue]) {
        return refuse(check, "job", job->name, "its queue is not there or is not a leaf");
    }
    if (job->first_task != *at_task || job->n_tasks < 0 ||
        job->n_tasks > snapshot->n_tasks - *at_task) {
        return refuse(check, "job", job->name, "jobs must hold the tasks one after another");
    }
    *at_task += job->n_tasks;
    if (job->n_groups < 0 || (job->n_groups > 0 && job->groups == NULL) ||
        (job->n_groups == 0 && job->min_member < WEIR_SCHED_UNLIMITED) ||
        job->preemptibility < WEIR_SCHED_PREEMPTIBLE ||
        job->preemptibility > WEIR_SCHED_SEMI_PREEMPTIBLE) {
        return refuse(check, "job", job->name, "its sub-groups or its minimum make no sense");
    }
    check->n_parts += job->n_groups;
    const int64_t times[] = {
        job->created_ms,     job->queued_ms,       job->started_ms,
        job->stale_since_ms, job->expected_run_ms, job->preemption_delay_ms,
        job->time_limit_ms,  job->checkpoint_ms,   job->checkpoint_requested_ms,
        job->idle_since_ms,
    };
    for (size_t i = 0; i < WEIR_ARRAY_LEN(times); i++) {
        if (times[i] < -WEIR_SCHED_AMOUNT_MAX || times[i] > WEIR_SCHED_AMOUNT_MAX) {
            return refuse(check, "job", job->name, "a time is too large");
        }
    }
    for (int32_t i = 0; i < job->n_groups; i++) {
        WEIR_TRY(check_group(check, job, i));
    }
    return check_members(check, job);
}

static weir_status check_jobs(struct check *check, bool *has_children)
{
    const struct weir_sched_snapshot *snapshot = check->snapshot;
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        if (snapshot->queues[i].parent >= 0) {
            has_children[snapshot->queues[i].parent] = true;
        }
    }
    int32_t at_task = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        WEIR_TRY(check_job(check, &snapshot->jobs[i], has_children, &at_task));
    }
    return at_task == snapshot->n_tasks
               ? WEIR_OK
               : weir_error_set(check->err, WEIR_ERR_INVALID, "there are tasks without a job");
}

static weir_status check_topologies(const struct check *check)
{
    for (int32_t i = 0; i < check->snapshot->n_topologies; i++) {
        const struct weir_sched_topology *topology = &check->snapshot->topologies[i];
        if (topology->name == NULL || topology->n_levels < 1 || topology->n_levels > 16 ||
            topology->levels == NULL) {
            return refuse(check, "topology", topology->name, "expected 1 to 16 levels");
        }
        for (int32_t l = 0; l < topology->n_levels; l++) {
            if (topology->levels[l] == NULL) {
                return refuse(check, "topology", topology->name, "a level has no label");
            }
        }
    }
    return WEIR_OK;
}

static weir_status check_counts(const struct weir_sched_snapshot *snapshot, struct weir_error *err)
{
    const struct {
        const char *what;
        const void *array;
        int32_t n;
    } arrays[] = {{"nodes", snapshot->nodes, snapshot->n_nodes},
                  {"queues", snapshot->queues, snapshot->n_queues},
                  {"jobs", snapshot->jobs, snapshot->n_jobs},
                  {"tasks", snapshot->tasks, snapshot->n_tasks},
                  {"topologies", snapshot->topologies, snapshot->n_topologies},
                  {"reservations", snapshot->reservations, snapshot->n_reservations}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(arrays); i++) {
        if (arrays[i].n < 0 || (arrays[i].n > 0 && arrays[i].array == NULL)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s: the array is missing",
                                  arrays[i].what);
        }
    }
    if (snapshot->now_ms < 0 || snapshot->now_ms > WEIR_SCHED_AMOUNT_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "now_ms: expected a time after 1970");
    }
    return WEIR_OK;
}

static weir_status check_reservations(const struct check *check)
{
    const struct weir_sched_snapshot *snapshot = check->snapshot;
    int64_t n_nodes = 0;
    for (int32_t i = 0; i < snapshot->n_reservations; i++) {
        const struct weir_sched_reservation *given = &snapshot->reservations[i];
        if (given->queue < -1 || given->queue >= snapshot->n_queues || given->job < -1 ||
            given->job >= snapshot->n_jobs || given->from_ms < 0 ||
            given->until_ms <= given->from_ms) {
            return refuse(check, "reservation", given->name,
                          "expected a queue, a job or neither (-1), and an end after its start");
        }
        n_nodes += given->n_nodes;
        if (given->n_nodes < 0 || n_nodes > INT32_MAX ||
            (given->n_nodes > 0 && given->nodes == NULL)) {
            return refuse(check, "reservation", given->name, "its nodes are missing");
        }
        for (int32_t k = 0; k < given->n_nodes; k++) {
            if (given->nodes[k] < 0 || given->nodes[k] >= snapshot->n_nodes) {
                return refuse(check, "reservation", given->name, "a node of it does not exist");
            }
        }
    }
    return WEIR_OK;
}

weir_status weir_sched_snapshot_check(const struct weir_sched_snapshot *snapshot,
                                      struct weir_error *err)
{
    struct check check = {.snapshot = snapshot, .err = err};
    WEIR_TRY(check_counts(snapshot, err));
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        WEIR_TRY(check_node(&check, &snapshot->nodes[i]));
    }
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        WEIR_TRY(check_queue(&check, i));
    }
    WEIR_TRY(check_all_models(&check));
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        WEIR_TRY(check_task(&check, &snapshot->tasks[i]));
    }
    WEIR_TRY(check_topologies(&check));
    WEIR_TRY(check_reservations(&check));
    bool *has_children = calloc((size_t)snapshot->n_queues + 1, sizeof *has_children);
    if (has_children == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "checking a snapshot: out of memory");
    }
    weir_status status = check_jobs(&check, has_children);
    free(has_children);
    WEIR_TRY(status);
    if (check.n_devices + check.n_parts > PARTS_MAX || check.n_extras > EXTRAS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "more devices and parts than can be counted");
    }
    return WEIR_OK;
}
