/** Jobs and tasks of a case. */
#include "sched_cases/read.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000

static int32_t find_level(const struct weir_sched_topology *topology, const char *key)
{
    for (int32_t i = 0; i < topology->n_levels; i++) {
        if (is_same(topology->levels[i], key)) {
            return i;
        }
    }
    return WEIR_SCHED_NONE;
}

static void load_constraint(const struct world *world, const json_t *from,
                            struct weir_sched_group *out)
{
    out->topology = out->required_level = out->preferred_level = WEIR_SCHED_NONE;
    for (int32_t i = 0; i < world->snapshot.n_topologies; i++) {
        if (is_same(world->topologies[i].name, text(from, "topology"))) {
            out->topology = i;
            out->required_level = find_level(&world->topologies[i], text(from, "required_level"));
            out->preferred_level = find_level(&world->topologies[i], text(from, "preferred_level"));
        }
    }
}

/** Whether a constraint names a topology or a level that is not there, or no level. */
static bool is_nowhere(const struct world *world, const json_t *constraint)
{
    const char *required = text(constraint, "required_level"),
               *preferred = text(constraint, "preferred_level");
    if (text(constraint, "topology") == NULL) {
        return false;
    }
    struct weir_sched_group group;
    load_constraint(world, constraint, &group);
    return group.topology < 0 || (required == NULL && preferred == NULL) ||
           (required != NULL && group.required_level < 0) ||
           (preferred != NULL && group.preferred_level < 0);
}

/** Whether the constraint of a sub-group with this task in it, or of one around that, is such a
 * one; *out_is_found: whether the task is in there. */
static bool is_nowhere_for(const struct world *world, const json_t *gang, const char *subgroup,
                           bool *out_is_found)
{
    bool is_found = false, is_bad = false;
    size_t i;
    json_t *child;
    json_array_foreach(json_object_get(gang, "podsets"), i, child)
    {
        if (is_same(text(child, "name"), subgroup == NULL ? "default" : subgroup)) {
            is_found = true;
            is_bad = is_nowhere(world, json_object_get(child, "topology"));
        }
    }
    json_array_foreach(json_object_get(gang, "groups"), i, child)
    {
        bool is_below = false;
        is_bad = is_nowhere_for(world, child, subgroup, &is_below) || is_bad;
        is_found = is_found || is_below;
    }
    *out_is_found = is_found;
    return is_bad || (is_found && is_nowhere(world, json_object_get(gang, "topology")));
}

static size_t count_groups(const json_t *gang)
{
    size_t n = 1 + json_array_size(json_object_get(gang, "podsets")), i;
    json_t *child;
    json_array_foreach(json_object_get(gang, "groups"), i, child)
    {
        n += count_groups(child);
    }
    return n;
}

static int by_name(const void *left, const void *right)
{
    const json_t *l = *(const json_t *const *)left, *r = *(const json_t *const *)right;
    return strcmp(text(l, "name"), text(r, "name"));
}

/** The members of a list of the gang in the order of their names. */
static const json_t **sort_members(const struct world *world, const json_t *gang, const char *list,
                                   size_t *out_n)
{
    const json_t *from = json_object_get(gang, list);
    *out_n = json_array_size(from);
    const json_t **members = WEIR_ARENA_ARRAY(world->arena, *out_n + 1, const json_t *);
    for (size_t i = 0; i < *out_n; i++) {
        members[i] = json_array_get(from, i);
    }
    qsort(members, *out_n, sizeof(void *), by_name); /* Pointers, all alike. */
    return members;
}

/** An inner group, its inner groups, then its leaves: in which order they are placed. */
static int32_t load_group(const struct world *world, const json_t *gang, int32_t parent,
                          struct weir_sched_group *groups, int32_t n)
{
    int32_t self = n++;
    groups[self] = (struct weir_sched_group){
        .name = text(gang, "name"), .parent = parent, .min_member = WEIR_SCHED_UNLIMITED};
    groups[self].min_member = (int32_t)integer(gang, "min_member", WEIR_SCHED_UNLIMITED);
    load_constraint(world, json_object_get(gang, "topology"), &groups[self]);
    size_t n_members = 0;
    const json_t **members = sort_members(world, gang, "groups", &n_members);
    for (size_t i = 0; i < n_members; i++) {
        n = load_group(world, members[i], self, groups, n);
    }
    members = sort_members(world, gang, "podsets", &n_members);
    for (size_t i = 0; i < n_members; i++) {
        groups[n] = (struct weir_sched_group){.name = text(members[i], "name"), .parent = self};
        groups[n].min_member = (int32_t)integer(members[i], "min_member", WEIR_SCHED_UNLIMITED);
        load_constraint(world, json_object_get(members[i], "topology"), &groups[n]);
        n++;
    }
    return n;
}

/** Of a claim on devices: the queue it is labelled with, without which nobody may use it. */
static bool is_usable(const json_t *claim)
{
    return !is_same(text(claim, "DeviceClassName"), CASE_DEVICE_CLASS) ||
           json_object_size(json_object_get(claim, "Labels")) > 0;
}

/** What a task claims by name: so many of a class on one node. */
static weir_status load_claims(struct world *world, const json_t *task, struct weir_sched_task *out,
                               struct weir_error *err)
{
    const json_t *claims = json_object_get(task, "claims");
    const json_t *known =
        json_object_get(json_object_get(world->document, "dra"), "ResourceClaims");
    struct weir_sched_demand *demand = &out->demand;
    struct weir_sched_extra *extras = load_extras(world, json_object_get(task, "mig"),
                                                  json_array_size(claims), &demand->n_extras);
    for (size_t i = 0; i < json_array_size(claims); i++) {
        const char *name = json_string_value(json_array_get(claims, i));
        const json_t *claim = find_named(known, "Name", name);
        const char *class = text(claim, "DeviceClassName");
        if (class == NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "a task names a claim that is not there");
        }
        if (!is_usable(claim) && out->state == WEIR_SCHED_PENDING) {
            out->state = WEIR_SCHED_GATED;
        }
        extras[demand->n_extras++] =
            (struct weir_sched_extra){.name = class, .count = integer(claim, "Count", 1)};
    }
    demand->extras = extras;
    return WEIR_OK;
}

static void load_demand(struct world *world, const json_t *job, const json_t *task,
                        struct weir_sched_demand *out)
{
    double gpus = number(task, "gpus", number(job, "gpus_per_task", 0));
    int64_t memory_mib = integer(job, "gpu_memory_mib", 0);
    int32_t n_shared = (int32_t)integer(job, "fraction_devices", 1);
    *out = (struct weir_sched_demand){
        .cpu_milli =
            integer(job, "cpu_milli_per_task", integer(world->defaults, "task_cpu_milli", 1000)),
        .memory_bytes = integer(job, "memory_bytes_per_task",
                                integer(world->defaults, "task_memory_bytes", 1000000000)),
        .numa_aligned = is_same(text(job, "qos"), "Guaranteed"),
    };
    if (memory_mib > 0) {
        out->n_devices = n_shared;
        out->device_memory_bytes = memory_mib << 20;
    } else if (gpus >= 1) {
        out->n_devices = (int32_t)llround(gpus);
        out->device_milli = WEIR_SCHED_DEVICE;
    } else if (gpus > 0) {
        out->n_devices = n_shared;
        out->device_milli = (int32_t)llround(gpus * WEIR_SCHED_DEVICE);
    }
}

static weir_status load_wishes(struct world *world, const json_t *task, struct weir_sched_task *out,
                               struct weir_error *err)
{
    const json_t *allowed = json_object_get(task, "allowed_nodes");
    if (json_array_size(allowed) > 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "a choice of several values in a node selector is Kubernetes' own");
    }
    if (json_array_size(allowed) == 1) {
        struct weir_sched_label *selector = WEIR_ARENA_NEW(world->arena, struct weir_sched_label);
        *selector = (struct weir_sched_label){CASE_NODE_NAME_KEY,
                                              json_string_value(json_array_get(allowed, 0))};
        out->selector = selector;
        out->n_selector = 1;
    }
    out->labels = load_labels(world, json_object_get(task, "labels"), NULL, &out->n_labels);
    out->affinity_key = text(task, "affinity_key");
    out->anti_affinity_key = text(task, "anti_affinity_key");
    out->affinity_labels = out->labels;
    out->n_affinity_labels = out->n_labels;
    return WEIR_OK;
}

static enum weir_sched_task_state snapshot_state(const char *state)
{
    if (is_same(state, "Running") || is_same(state, "Binding")) {
        return WEIR_SCHED_RUNNING;
    }
    if (is_same(state, "Releasing")) {
        return WEIR_SCHED_RELEASING;
    }
    if (is_same(state, "StuckInReleasing")) {
        return WEIR_SCHED_STUCK;
    }
    if (is_same(state, "Pipelined")) {
        return WEIR_SCHED_PIPELINED;
    }
    if (is_same(state, "Succeeded")) {
        return WEIR_SCHED_DONE;
    }
    if (is_same(state, "Failed")) {
        return WEIR_SCHED_FAILED;
    }
    return is_same(state, "Gated") ? WEIR_SCHED_GATED : WEIR_SCHED_PENDING;
}

/** Groups of a node are numbered as devices in the order in which the file names them. */
static void load_devices(struct world *world, const json_t *task, int32_t index,
                         const char ***node_groups)
{
    const json_t *groups = json_object_get(task, "gpu_groups");
    struct weir_sched_task *out = &world->tasks[index];
    bool is_shared = out->demand.n_devices > 0 && out->demand.device_milli < WEIR_SCHED_DEVICE;
    if (!is_shared || out->node < 0 || json_array_size(groups) < (size_t)out->demand.n_devices) {
        return;
    }
    const char **known = node_groups[out->node];
    for (int32_t i = 0; i < out->demand.n_devices; i++) {
        const char *name = json_string_value(json_array_get(groups, (size_t)i));
        int32_t d = 0, n = world->nodes[out->node].n_devices;
        while (d < n - 1 && known[d] != NULL && !is_same(known[d], name)) {
            d++;
        }
        known[d] = name;
        world->states[index].devices[i] = d;
    }
    out->devices = world->states[index].devices;
}

static weir_status load_task(struct world *world, const json_t *job, const json_t *task,
                             int32_t index, struct weir_error *err)
{
    struct weir_sched_task *out = &world->tasks[index];
    struct world_task *state = &world->states[index];
    state->state = text(task, "state");
    *out = (struct weir_sched_task){.name = text(task, "name"),
                                    .state = snapshot_state(state->state),
                                    .node = WEIR_SCHED_NONE,
                                    .order = (int32_t)integer(task, "order", INT32_MIN)};
    if (json_is_true(json_object_get(task, "legacy_mig")) && out->state == WEIR_SCHED_PENDING) {
        out->state = WEIR_SCHED_GATED; /* Nothing can say what it needs. */
    }
    if (weir_sched_task_has_node(out->state)) {
        out->node = world_find_node(world, text(task, "node"));
    }
    state->node = world_find_node(world, text(task, "node"));
    state->is_deleted_in_test = json_is_true(json_object_get(job, "delete_in_test"));
    load_demand(world, job, task, &out->demand);
    WEIR_TRY(load_claims(world, task, out, err));
    state->devices = WEIR_ARENA_ARRAY(world->arena, (size_t)out->demand.n_devices + 1, int32_t);
    return load_wishes(world, task, out, err);
}

static void load_job(struct world *world, const json_t *from, struct weir_sched_job *out)
{
    const json_t *gang = json_object_get(from, "gang");
    double stale = number(from, "stale_seconds", 0), grace = number(from, "stale_grace_seconds", 0);
    out->name = text(from, "name");
    out->queue = find_queue(world, text(from, "queue"));
    out->priority = (int32_t)integer(from, "priority", 0);
    out->preemptibility = json_is_true(json_object_get(from, "preemptible"))
                              ? WEIR_SCHED_PREEMPTIBLE
                              : WEIR_SCHED_NON_PREEMPTIBLE;
    out->min_member = (int32_t)integer(from, "min_member", WEIR_SCHED_UNLIMITED);
    out->created_ms = CASE_NOW_MS - (int64_t)llround(number(from, "age_minutes", 0) * MINUTE_MS);
    out->queued_ms = out->created_ms;
    out->preemption_delay_ms = (int64_t)llround(number(from, "preemption_delay_seconds", 0) * 1000);
    out->stale_since_ms = CASE_NOW_MS - (int64_t)llround(stale * 1000); /* If it is at all. */
    out->stale_grace_ms = json_object_get(from, "stale_grace_seconds") == NULL
                              ? INT64_MIN
                              : (int64_t)llround(grace * 1000);
    out->utilisation_pct = -1;
    if (gang != NULL) {
        struct weir_sched_group *groups =
            WEIR_ARENA_ARRAY(world->arena, count_groups(gang), struct weir_sched_group);
        out->n_groups = load_group(world, gang, WEIR_SCHED_NONE, groups, 0);
        out->groups = groups;
    }
}

/** A constraint that nothing meets is like a selector that no node has. */
static void load_nowhere(const struct world *world, const json_t *job, const json_t *task,
                         struct weir_sched_task *out)
{
    bool is_found = false;
    if (is_nowhere_for(world, json_object_get(job, "gang"), text(task, "subgroup"), &is_found)) {
        struct weir_sched_label *selector = WEIR_ARENA_NEW(world->arena, struct weir_sched_label);
        *selector = (struct weir_sched_label){CASE_NODE_NAME_KEY, ""};
        out->selector = selector;
        out->n_selector = 1;
    }
}

static weir_status find_group(const struct weir_sched_job *job, const json_t *task, int32_t *out,
                              struct weir_error *err)
{
    const char *name = text(task, "subgroup");
    *out = 0;
    for (int32_t g = 1; g < job->n_groups; g++) {
        if (is_same(job->groups[g].name, name == NULL ? "default" : name)) {
            *out = g;
            return WEIR_OK;
        }
    }
    return job->n_groups == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "task \"%.60s\" is of no sub-group",
                                text(task, "name"));
}

weir_status load_jobs(struct world *world, struct weir_error *err)
{
    const json_t *jobs = json_object_get(world->document, "jobs");
    size_t n_jobs = json_array_size(jobs), n_tasks = 0, i, j;
    json_t *job, *task;
    json_array_foreach((json_t *)jobs, i, job)
    {
        n_tasks += json_array_size(json_object_get(job, "tasks"));
    }
    world->jobs = WEIR_ARENA_ARRAY(world->arena, n_jobs + 1, struct weir_sched_job);
    world->tasks = WEIR_ARENA_ARRAY(world->arena, n_tasks + 1, struct weir_sched_task);
    world->states = WEIR_ARENA_ARRAY(world->arena, n_tasks + 1, struct world_task);
    const char ***groups =
        WEIR_ARENA_ARRAY(world->arena, (size_t)world->snapshot.n_nodes + 1, const char **);
    for (int32_t n = 0; n < world->snapshot.n_nodes; n++) {
        size_t n_devices = (size_t)world->nodes[n].n_devices;
        groups[n] = WEIR_ARENA_ARRAY(world->arena, n_devices + 1, const char *);
    }
    json_array_foreach((json_t *)jobs, i, job)
    {
        struct weir_sched_job *out = &world->jobs[i];
        out->first_task = world->snapshot.n_tasks;
        load_job(world, job, out);
        json_array_foreach(json_object_get(job, "tasks"), j, task)
        {
            int32_t index = world->snapshot.n_tasks++;
            WEIR_TRY(load_task(world, job, task, index, err));
            load_nowhere(world, job, task, &world->tasks[index]);
            WEIR_TRY(find_group(out, task, &world->tasks[index].group, err));
            load_devices(world, task, index, groups);
            out->n_tasks++;
        }
    }
    world->snapshot.n_jobs = (int32_t)n_jobs;
    return WEIR_OK;
}
