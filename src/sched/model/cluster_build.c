/** From a snapshot to the state of a cycle. */
#include "sched/model/cluster.h"

#include "base/macros.h"
#include "sched/forecast/run_time.h"
#include "sched/model/fraction.h"
#include "sched/model/model.h"
#include "sched/model/shape.h"
#include "sched/order/users.h"
#include "sched/place/affinity.h"
#include "sched/place/wishes.h"
#include "sched/share/shares.h"

#include <stdlib.h>
#include <string.h>

static weir_status make(void **out, int32_t n, size_t size)
{
    *out = calloc((size_t)n + 1, size);
    return *out == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

static weir_status make_arrays(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t n_devices = 0, n_extras = 0, n_zones = 0, n_groups = 0, n_assigned = 0, n_wants = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        n_devices += snapshot->nodes[i].n_devices;
        n_extras += snapshot->nodes[i].n_extras;
        n_zones += snapshot->nodes[i].n_zones;
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        n_assigned += snapshot->tasks[i].demand.n_devices;
        n_wants += snapshot->tasks[i].demand.n_extras;
    }
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        n_groups += WEIR_MAX(snapshot->jobs[i].n_groups, 1);
    }
    cluster->n_groups = n_groups;
    cluster->capacity.n_extra_names = n_extras + n_wants;
    WEIR_TRY(make((void **)&cluster->nodes, snapshot->n_nodes, sizeof *cluster->nodes));
    WEIR_TRY(make((void **)&cluster->devices, n_devices, sizeof *cluster->devices));
    WEIR_TRY(make((void **)&cluster->node_holds, snapshot->n_nodes, sizeof *cluster->node_holds));
    WEIR_TRY(make((void **)&cluster->unit_holds, n_devices, sizeof *cluster->unit_holds));
    WEIR_TRY(make((void **)&cluster->extras, n_extras, sizeof *cluster->extras));
    WEIR_TRY(make((void **)&cluster->numa.zones, n_zones, sizeof *cluster->numa.zones));
    WEIR_TRY(make((void **)&cluster->tasks, snapshot->n_tasks, sizeof *cluster->tasks));
    WEIR_TRY(make((void **)&cluster->current_devices, n_assigned, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->planned_devices, n_assigned, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->wants, n_wants, sizeof *cluster->wants));
    WEIR_TRY(make((void **)&cluster->capacity.extra_milli, n_extras + n_wants, sizeof(int64_t)));
    WEIR_TRY(make((void **)&cluster->jobs, snapshot->n_jobs, sizeof *cluster->jobs));
    WEIR_TRY(make((void **)&cluster->queue_first, snapshot->n_queues + 1, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->queue_jobs, snapshot->n_jobs, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->changes.of_jobs, snapshot->n_jobs,
                  sizeof *cluster->changes.of_jobs));
    WEIR_TRY(make((void **)&cluster->groups, n_groups, sizeof *cluster->groups));
    WEIR_TRY(make((void **)&cluster->task_order, snapshot->n_tasks, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->queues, snapshot->n_queues, sizeof *cluster->queues));
    WEIR_TRY(make((void **)&cluster->index.stale, snapshot->n_nodes, sizeof(int32_t)));
    WEIR_TRY(make((void **)&cluster->index.is_stale, snapshot->n_nodes, sizeof(bool)));
    WEIR_TRY(make((void **)&cluster->is_excluded, snapshot->n_nodes, sizeof(bool)));
    return make((void **)&cluster->index.parts, snapshot->n_nodes, sizeof *cluster->index.parts);
}

/** How many zones nodes have, and room for what tasks draw of them. */
static weir_status make_numa(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct weir_sched_node *node = &snapshot->nodes[i];
        cluster->numa.max_zones = WEIR_MAX(cluster->numa.max_zones, node->n_zones);
        for (int32_t z = 0; z < node->n_zones; z++) {
            bool has_devices =
                node->numa_policy != WEIR_SCHED_NUMA_NONE && node->zones[z].n_devices >= 0;
            cluster->numa.zones_have_devices = cluster->numa.zones_have_devices || has_devices;
        }
    }
    size_t n = (size_t)snapshot->n_tasks * (size_t)cluster->numa.max_zones;
    if (cluster->numa.max_zones == 0) {
        return WEIR_OK;
    }
    cluster->numa.current = calloc(n + 1, sizeof *cluster->numa.current);
    cluster->numa.planned = calloc(n + 1, sizeof *cluster->numa.planned);
    return cluster->numa.current == NULL || cluster->numa.planned == NULL ? WEIR_ERR_NOMEM
                                                                          : WEIR_OK;
}

static weir_status make_indices(struct cluster *cluster)
{
    int32_t n = cluster->snapshot->n_nodes;
    int32_t n_parts = cluster->capacity.n_resources - WEIR_SCHED_FIRST_MODEL + 1;
    WEIR_TRY(node_index_init(&cluster->index.by.by_room, n, cluster->index.parts, n_parts));
    WEIR_TRY(node_index_init(&cluster->index.by.by_shared, n, cluster->index.parts, n_parts));
    return node_index_init(&cluster->index.by.by_cpu, n, cluster->index.parts, n_parts);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int32_t find_name(const char *const *names, int32_t n, const char *name)
{
    const char *const *found = bsearch(&name, names, (size_t)n, sizeof *names, by_text);
    return (int32_t)(found - names);
}

/** Number the names of extras, on nodes and in demands. */
static weir_status intern_extras(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t n = cluster->capacity.n_extra_names, n_names = 0; /* So many, not told apart. */
    if (n == 0) {
        return WEIR_OK;
    }
    const char **names = calloc((size_t)n + 1, sizeof *names);
    if (names == NULL) {
        return WEIR_ERR_NOMEM;
    }
    n = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        for (int32_t j = 0; j < snapshot->nodes[i].n_extras; j++) {
            names[n++] = snapshot->nodes[i].extras[j].name;
        }
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        for (int32_t j = 0; j < snapshot->tasks[i].demand.n_extras; j++) {
            names[n++] = snapshot->tasks[i].demand.extras[j].name;
        }
    }
    qsort(names, (size_t)n, sizeof *names, by_text);
    for (int32_t i = 0; i < n; i++) {
        if (n_names == 0 || strcmp(names[n_names - 1], names[i]) != 0) {
            names[n_names++] = names[i];
        }
    }
    cluster->capacity.n_extra_names = n_names;
    int32_t at = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        cluster->nodes[i].first_extra = at;
        for (int32_t j = 0; j < snapshot->nodes[i].n_extras; j++) {
            const struct weir_sched_extra *extra = &snapshot->nodes[i].extras[j];
            int32_t name = find_name(names, n_names, extra->name);
            cluster->extras[at++] = (struct extra_state){
                .name = name, .count = extra->count, .device_milli = extra->device_milli};
            cluster->capacity.extra_milli[name] =
                WEIR_MAX(cluster->capacity.extra_milli[name], extra->device_milli);
            cluster->capacity.total.of[WEIR_SCHED_ACCELERATOR] +=
                extra->count * extra->device_milli;
        }
    }
    at = 0;
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        cluster->tasks[i].first_extra = at;
        for (int32_t j = 0; j < snapshot->tasks[i].demand.n_extras; j++) {
            const struct weir_sched_extra *extra = &snapshot->tasks[i].demand.extras[j];
            cluster->wants[at++] = (struct extra_want){
                .name = find_name(names, n_names, extra->name), .count = extra->count};
        }
        cluster->tasks[i].n_extras = snapshot->tasks[i].demand.n_extras;
    }
    free(names);
    return WEIR_OK;
}

static void build_nodes(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t at_device = 0, at_zone = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        const struct weir_sched_node *given = &snapshot->nodes[i];
        struct node_state *node = &cluster->nodes[i];
        node->first_device = at_device;
        node->first_zone = at_zone;
        node->device_size = fraction_device_size(given->device_memory_bytes);
        int64_t milli = weir_sched_device_milli(given);
        node->others_units = fraction_of(node->device_size, WEIR_SCHED_DEVICE - milli);
        node->whole_now = node->whole_future = node->others_units == 0 ? given->n_devices : 0;
        node->n_shared = given->n_devices - node->whole_future;
        node->room_milli = given->n_devices * milli;
        node->is_open = !given->is_cordoned && !(given->closed_until_ms > given->closed_from_ms &&
                                                 given->closed_from_ms <= snapshot->now_ms &&
                                                 snapshot->now_ms < given->closed_until_ms);
        cluster->capacity.room_milli += node->is_open ? node->room_milli : 0;
        for (int32_t d = at_device; d < at_device + given->n_devices; d++) {
            cluster->devices[d].now = cluster->devices[d].future = node->others_units;
            cluster->devices[d].room_milli = (int32_t)milli;
        }
        at_device += given->n_devices;
        at_zone += given->n_zones;
        cluster->capacity.total.of[WEIR_SCHED_ACCELERATOR] += node->room_milli;
        cluster->capacity.total.of[WEIR_SCHED_CPU] += given->cpu_milli;
        cluster->capacity.total.of[WEIR_SCHED_MEMORY] += given->memory_bytes;
        if (given->device_memory_bytes > 0 && given->n_devices > 0) {
            int64_t size = node->device_size, least = cluster->capacity.min_device_size;
            cluster->capacity.min_device_size = least == 0 ? size : WEIR_MIN(least, size);
            cluster->capacity.max_device_size = WEIR_MAX(cluster->capacity.max_device_size, size);
        }
    }
}

static void build_queues(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    cluster->first_root = -1;
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        cluster->queues[i].first_child = -1;
    }
    for (int32_t i = snapshot->n_queues - 1; i >= 0; i--) { /* Backwards: children in order. */
        int32_t parent = snapshot->queues[i].parent;
        int32_t *first = parent < 0 ? &cluster->first_root : &cluster->queues[parent].first_child;
        cluster->queues[i].next_sibling = *first;
        *first = i;
    }
    for (int32_t i = 0; i < snapshot->n_queues; i++) {
        int32_t parent = snapshot->queues[i].parent;
        cluster->queues[i].depth = parent < 0 ? 0 : cluster->queues[parent].depth + 1;
    }
}

static void build_job_groups(struct cluster *cluster, int32_t job, int32_t first)
{
    const struct weir_sched_job *given = &cluster->snapshot->jobs[job];
    int32_t n = WEIR_MAX(given->n_groups, 1);
    cluster->jobs[job].first_group = first;
    cluster->jobs[job].n_groups = n;
    cluster->jobs[job].queue = given->queue;
    cluster->jobs[job].first_task = given->first_task;
    cluster->jobs[job].n_tasks = given->n_tasks;
    cluster->jobs[job].priority = given->priority;
    cluster->jobs[job].preemptibility = (uint8_t)given->preemptibility;
    for (int32_t i = 0; i < n; i++) {
        struct group_state *group = &cluster->groups[first + i];
        *group = (struct group_state){.job = job,
                                      .parent = -1,
                                      .min_member = given->min_member,
                                      .first_child = -1,
                                      .next_sibling = -1,
                                      .topology = -1,
                                      .required_level = -1,
                                      .preferred_level = -1};
        if (given->n_groups > 0) {
            const struct weir_sched_group *of = &given->groups[i];
            group->parent = of->parent < 0 ? -1 : first + of->parent;
            group->min_member = of->min_member;
            group->topology = of->topology;
            group->required_level = of->required_level;
            group->preferred_level = of->preferred_level;
        }
    }
    for (int32_t i = n - 1; i > 0; i--) {
        struct group_state *group = &cluster->groups[first + i];
        group->next_sibling = cluster->groups[group->parent].first_child;
        cluster->groups[group->parent].first_child = first + i;
    }
}

/** Sort key of a task inside its group; qsort has no context, so it carries what it compares. */
struct task_key {
    int32_t group, order, task;
    const char *name;
};

static int by_order(const void *left, const void *right)
{
    const struct task_key *l = left, *r = right;
    if (l->group != r->group) {
        return l->group < r->group ? -1 : 1;
    }
    if (l->order != r->order) {
        return l->order > r->order ? -1 : 1;
    }
    int by_name = strcmp(l->name, r->name);
    return by_name != 0 ? by_name : (l->task < r->task ? -1 : l->task > r->task);
}

static void build_task_order(struct cluster *cluster, struct task_key *keys)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    bool is_sorted = true;
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        keys[i] = (struct task_key){.group = cluster->tasks[i].group,
                                    .order = snapshot->tasks[i].order,
                                    .task = i,
                                    .name = snapshot->tasks[i].name};
        is_sorted = is_sorted && (i == 0 || by_order(&keys[i - 1], &keys[i]) <= 0);
    }
    if (!is_sorted) {
        qsort(keys, (size_t)snapshot->n_tasks, sizeof *keys, by_order);
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        struct group_state *group = &cluster->groups[keys[i].group];
        group->first_task = group->n_tasks == 0 ? i : group->first_task;
        group->n_tasks++;
        cluster->task_order[i] = keys[i].task;
    }
}

/** min_member -1 means all: now that members are counted, say how many. */
static void fix_minimums(struct cluster *cluster)
{
    for (int32_t i = 0; i < cluster->n_groups; i++) {
        struct group_state *group = &cluster->groups[i];
        if (group->min_member < 0) {
            group->min_member = group->n_tasks;
            for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
                group->min_member++;
            }
        }
    }
}

static void list_jobs_by_queue(struct cluster *cluster)
{
    int32_t *first = cluster->queue_first; /* Counts, then ends, that become starts. */
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        first[cluster->jobs[j].queue]++;
    }
    for (int32_t q = 1; q <= cluster->snapshot->n_queues; q++) {
        first[q] += first[q - 1];
    }
    for (int32_t j = cluster->snapshot->n_jobs - 1; j >= 0; j--) {
        cluster->queue_jobs[--first[cluster->jobs[j].queue]] = j;
    }
}

static weir_status build_jobs(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t at_group = 0, at_assigned = 0, n_waits = 0;
    for (int32_t i = 0; i < snapshot->n_jobs; i++) {
        const struct weir_sched_job *job = &snapshot->jobs[i];
        build_job_groups(cluster, i, at_group);
        cluster->jobs[i].wait = -1;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            struct task_state *task = &cluster->tasks[t];
            task->job = i;
            task->group = at_group + (job->n_groups > 0 ? snapshot->tasks[t].group : 0);
            task->current_node = task->planned_node = -1;
            task->by_job = WEIR_SCHED_NONE;
            task->first_assigned = at_assigned;
            at_assigned += snapshot->tasks[t].demand.n_devices;
            bool may_wait = snapshot->tasks[t].state == WEIR_SCHED_PENDING ||
                            snapshot->tasks[t].state == WEIR_SCHED_PIPELINED;
            if (may_wait && cluster->jobs[i].wait < 0) {
                cluster->jobs[i].wait = n_waits++;
            }
        }
        at_group += cluster->jobs[i].n_groups;
    }
    WEIR_TRY(make((void **)&cluster->waits, n_waits, sizeof *cluster->waits));
    list_jobs_by_queue(cluster);
    struct task_key *keys = malloc(((size_t)snapshot->n_tasks + 1) * sizeof *keys);
    if (keys == NULL) {
        return WEIR_ERR_NOMEM;
    }
    build_task_order(cluster, keys);
    free(keys);
    fix_minimums(cluster);
    return WEIR_OK;
}

/** Most clusters have none, and then no list. */
static weir_status list_spread(struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    int32_t n = 0;
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        n += snapshot->tasks[i].spread != 0;
    }
    if (n == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(make((void **)&cluster->spread, n, sizeof *cluster->spread));
    WEIR_TRY(make((void **)&cluster->alike, snapshot->n_nodes, sizeof *cluster->alike));
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        if (snapshot->tasks[i].spread != 0) {
            cluster->spread[cluster->n_spread++] = i;
        }
    }
    return WEIR_OK;
}

weir_status cluster_init(struct cluster *cluster, const struct weir_sched_snapshot *snapshot,
                         const struct weir_sched_profile *profile)
{
    *cluster = (struct cluster){.snapshot = snapshot, .profile = profile};
    WEIR_TRY(make_arrays(cluster));
    WEIR_TRY(make_numa(cluster));
    build_nodes(cluster);
    model_number(cluster);
    WEIR_TRY(make_indices(cluster));
    WEIR_TRY(intern_extras(cluster));
    build_queues(cluster);
    shares_read(cluster);
    WEIR_TRY(build_jobs(cluster));
    WEIR_TRY(run_time_init(cluster));
    affinity_init(cluster);
    WEIR_TRY(list_spread(cluster));
    WEIR_TRY(wishes_init(cluster));
    WEIR_TRY(shape_assign(cluster));
    WEIR_TRY(model_bind_shapes(cluster));
    WEIR_TRY(users_number(cluster));
    WEIR_TRY(cluster_put_tasks(cluster));
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        cluster_index_node(cluster, i);
    }
    return WEIR_OK;
}

void cluster_fini(struct cluster *cluster)
{
    free(cluster->nodes);
    free(cluster->devices);
    free(cluster->node_holds);
    free(cluster->unit_holds);
    free(cluster->extras);
    free(cluster->numa.zones);
    free(cluster->numa.current);
    free(cluster->numa.planned);
    free(cluster->tasks);
    free(cluster->spread);
    free(cluster->alike);
    free(cluster->wished);
    free(cluster->company);
    free(cluster->current_devices);
    free(cluster->planned_devices);
    free(cluster->wants);
    free(cluster->capacity.extra_milli);
    free(cluster->jobs);
    free(cluster->waits);
    free(cluster->queue_first);
    free(cluster->queue_jobs);
    free(cluster->changes.of_jobs);
    free(cluster->user_usage);
    free(cluster->groups);
    free(cluster->task_order);
    free(cluster->queues);
    free(cluster->is_excluded);
    free(cluster->index.stale);
    free(cluster->index.is_stale);
    free(cluster->index.parts);
    free(cluster->times.reserved_first);
    free(cluster->times.reserved);
    free(cluster->shapes.demands);
    free(cluster->shapes.failed);
    free(cluster->shapes.reasons);
    free(cluster->shapes.models);
    free(cluster->undo.entries);
    free(cluster->undo.devices);
    free(cluster->undo.numa);
    node_index_fini(&cluster->index.by.by_room);
    node_index_fini(&cluster->index.by.by_shared);
    node_index_fini(&cluster->index.by.by_cpu);
}
