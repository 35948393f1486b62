#include "sched/cases/world.h"

#include "base/macros.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS         ((int64_t)1700000000000)
#define MINUTE_MS      60000
#define DEVICE_CLASS   "nvidia.com/gpu"
#define PODS_OF_A_NODE 110
#define NODE_NAME_KEY  "kai.scheduler/type" /**< The fixture labels each node with its name. */

static double number(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static int64_t integer(const json_t *object, const char *key, int64_t fallback)
{
    return (int64_t)llround(number(object, key, (double)fallback));
}

static int64_t milli(const json_t *object, const char *key, double fallback)
{
    double value = number(object, key, fallback);
    return value < 0 ? WEIR_SCHED_UNLIMITED : (int64_t)llround(value * WEIR_SCHED_DEVICE);
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool is_same(const char *left, const char *right)
{
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

/** What one unit of a MIG profile counts as: the 3 of "nvidia.com/mig-3g.20gb". */
static int64_t mig_milli(const char *profile)
{
    const char *at = strstr(profile, "mig-");
    return at == NULL ? 0 : strtol(at + 4, NULL, 10) * WEIR_SCHED_DEVICE;
}

static struct weir_sched_label *load_labels(struct world *world, const json_t *object,
                                            const char *node_name, int32_t *out_n)
{
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(world->arena, json_object_size(object) + 1, struct weir_sched_label);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        labels[(*out_n)++] = (struct weir_sched_label){key, json_string_value(value)};
    }
    if (node_name != NULL && json_object_get(object, NODE_NAME_KEY) == NULL) {
        labels[(*out_n)++] = (struct weir_sched_label){NODE_NAME_KEY, node_name};
    }
    return labels;
}

/** Names with counts: MIG profiles, and device classes of the claims side of the fixture. */
static struct weir_sched_extra *load_extras(struct world *world, const json_t *object,
                                            size_t n_more, int32_t *out_n)
{
    struct weir_sched_extra *extras = WEIR_ARENA_ARRAY(
        world->arena, json_object_size(object) + n_more + 1, struct weir_sched_extra);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        extras[(*out_n)++] = (struct weir_sched_extra){
            .name = key, .count = json_integer_value(value), .device_milli = mig_milli(key)};
    }
    return extras;
}

static const json_t *find_named(const json_t *array, const char *key, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        if (is_same(text(item, key), name)) {
            return item;
        }
    }
    return NULL;
}

static int64_t zone_cpu(const json_t *zone)
{
    const char *cpu = text(json_object_get(zone, "allocatable"), "ResourceCPU");
    return cpu == NULL ? WEIR_SCHED_UNLIMITED : strtoll(cpu, NULL, 10) * WEIR_SCHED_DEVICE;
}

static void load_numa(struct world *world, const json_t *numa, struct weir_sched_node *out)
{
    const json_t *zones = json_object_get(numa, "zones");
    struct weir_sched_numa_zone *list =
        WEIR_ARENA_ARRAY(world->arena, json_array_size(zones) + 1, struct weir_sched_numa_zone);
    for (size_t i = 0; i < json_array_size(zones); i++) {
        list[i] = (struct weir_sched_numa_zone){.cpu_milli = zone_cpu(json_array_get(zones, i)),
                                                .memory_bytes = WEIR_SCHED_UNLIMITED,
                                                .n_devices = WEIR_SCHED_UNLIMITED};
    }
    out->zones = list;
    out->n_zones = (int32_t)json_array_size(zones);
    const char *policy = text(numa, "policy");
    out->numa_policy = is_same(policy, "single-numa-node") ? WEIR_SCHED_NUMA_SINGLE
                       : is_same(policy, "restricted")     ? WEIR_SCHED_NUMA_RESTRICTED
                                                           : WEIR_SCHED_NUMA_NONE;
}

/** Whether a task without a stated share of devices runs on the node and uses MIG unseen. */
static bool has_legacy_mig(const struct world *world, const char *node)
{
    size_t i, j;
    json_t *job, *task;
    json_array_foreach(json_object_get(world->document, "jobs"), i, job)
    {
        json_array_foreach(json_object_get(job, "tasks"), j, task)
        {
            if (json_is_true(json_object_get(task, "legacy_mig")) &&
                is_same(text(task, "node"), node)) {
                return true;
            }
        }
    }
    return false;
}

static void load_node(struct world *world, const json_t *from, struct weir_sched_node *out)
{
    const char *strategy = text(from, "mig_strategy");
    const json_t *slices =
        json_object_get(json_object_get(world->document, "dra"), "ResourceSlices");
    *out = (struct weir_sched_node){
        .name = text(from, "name"),
        .model = text(from, "gpu_model"),
        .n_devices = is_same(strategy, "mixed") ? 0 : (int32_t)integer(from, "gpus", 0),
        .n_tasks_max = PODS_OF_A_NODE,
        .device_memory_bytes = integer(from, "gpu_memory_mib", 100) << 20,
        .cpu_milli = integer(from, "cpu_milli", 0),
        .memory_bytes = integer(from, "memory_bytes", 0),
        .is_whole_only = strategy != NULL,
    };
    out->labels = load_labels(world, json_object_get(from, "labels"), out->name, &out->n_labels);
    struct weir_sched_extra *extras = load_extras(world, json_object_get(from, "mig_instances"),
                                                  json_array_size(slices), &out->n_extras);
    for (int32_t i = 0; i < out->n_extras && has_legacy_mig(world, out->name); i++) {
        extras[i].count = 0; /* Which instances it uses is not known. */
    }
    size_t i;
    json_t *slice;
    json_array_foreach((json_t *)slices, i, slice)
    {
        if (is_same(text(slice, "NodeName"), out->name)) {
            const char *class = text(slice, "DeviceClassName");
            extras[out->n_extras++] = (struct weir_sched_extra){
                .name = class,
                .count = integer(slice, "Count", 0),
                .device_milli = is_same(class, DEVICE_CLASS) ? WEIR_SCHED_DEVICE : 0};
        }
    }
    out->extras = extras;
    if (json_object_get(from, "numa") != NULL) {
        load_numa(world, json_object_get(from, "numa"), out);
    }
}

static void load_share(const json_t *from, bool is_device, struct weir_sched_share *out)
{
    out->quota = is_device ? milli(from, "quota", 0) : integer(from, "quota", 0);
    out->limit = is_device ? milli(from, "limit", -1) : integer(from, "limit", -1);
    out->weight = (int64_t)llround(number(from, "weight", 1) * WEIR_SCHED_DEVICE);
}

static int32_t find_queue(const struct world *world, const char *name)
{
    for (int32_t i = 0; i < world->snapshot.n_queues; i++) {
        if (is_same(world->queues[i].name, name)) {
            return i;
        }
    }
    return WEIR_SCHED_NONE;
}

/** Queues in the order of the file, but parents first. */
static void load_queues(struct world *world)
{
    const json_t *queues = json_object_get(world->document, "queues");
    size_t n = json_array_size(queues);
    world->queues = WEIR_ARENA_ARRAY(world->arena, n + 1, struct weir_sched_queue);
    for (size_t pass = 0; pass < n; pass++) {
        for (size_t i = 0; i < n; i++) {
            const json_t *from = json_array_get(queues, i);
            const char *parent = text(from, "parent");
            if (find_queue(world, text(from, "name")) >= 0 ||
                (parent != NULL && find_queue(world, parent) < 0)) {
                continue;
            }
            struct weir_sched_queue *out = &world->queues[world->snapshot.n_queues];
            *out = (struct weir_sched_queue){.name = text(from, "name"),
                                             .parent = parent == NULL ? WEIR_SCHED_NONE
                                                                      : find_queue(world, parent),
                                             .priority = (int32_t)integer(from, "priority", 100),
                                             .preempt_min_run_ms = -1,
                                             .reclaim_min_run_ms = -1};
            load_share(json_object_get(from, "gpu"), true, &out->shares[WEIR_SCHED_ACCELERATOR]);
            load_share(json_object_get(from, "cpu_milli"), false, &out->shares[WEIR_SCHED_CPU]);
            load_share(json_object_get(from, "memory_bytes"), false,
                       &out->shares[WEIR_SCHED_MEMORY]);
            world->snapshot.n_queues++;
        }
    }
}

static void load_topologies(struct world *world)
{
    const json_t *topologies = json_object_get(world->document, "topologies");
    size_t n = json_array_size(topologies);
    world->topologies = WEIR_ARENA_ARRAY(world->arena, n + 1, struct weir_sched_topology);
    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(topologies, i),
                     *levels = json_object_get(from, "levels");
        const char **keys =
            WEIR_ARENA_ARRAY(world->arena, json_array_size(levels) + 1, const char *);
        for (size_t l = 0; l < json_array_size(levels); l++) {
            keys[l] = json_string_value(json_array_get(levels, l));
        }
        world->topologies[i] =
            (struct weir_sched_topology){.name = text(from, "name"),
                                         .levels = keys,
                                         .n_levels = (int32_t)json_array_size(levels)};
    }
    world->snapshot.n_topologies = (int32_t)n;
}

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

/** An inner group, its leaves, then its inner groups. */
static int32_t load_group(const struct world *world, const json_t *gang, int32_t parent,
                          struct weir_sched_group *groups, int32_t n)
{
    int32_t self = n++;
    groups[self] = (struct weir_sched_group){
        .name = text(gang, "name"), .parent = parent, .min_member = WEIR_SCHED_UNLIMITED};
    groups[self].min_member = (int32_t)integer(gang, "min_member", WEIR_SCHED_UNLIMITED);
    load_constraint(world, json_object_get(gang, "topology"), &groups[self]);
    size_t i;
    json_t *child;
    json_array_foreach(json_object_get(gang, "podsets"), i, child)
    {
        groups[n] = (struct weir_sched_group){.name = text(child, "name"), .parent = self};
        groups[n].min_member = (int32_t)integer(child, "min_member", WEIR_SCHED_UNLIMITED);
        load_constraint(world, json_object_get(child, "topology"), &groups[n]);
        n++;
    }
    json_array_foreach(json_object_get(gang, "groups"), i, child)
    {
        n = load_group(world, child, self, groups, n);
    }
    return n;
}

/** Of a claim on devices: the queue it is labelled with, without which nobody may use it. */
static bool is_usable(const json_t *claim)
{
    return !is_same(text(claim, "DeviceClassName"), DEVICE_CLASS) ||
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
            out->state = WEIR_SCHED_HELD;
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
        *selector =
            (struct weir_sched_label){NODE_NAME_KEY, json_string_value(json_array_get(allowed, 0))};
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
    return is_same(state, "Gated") ? WEIR_SCHED_HELD : WEIR_SCHED_PENDING;
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
                                    .order = (int32_t)integer(task, "order", 0)};
    if (json_is_true(json_object_get(task, "legacy_mig")) && out->state == WEIR_SCHED_PENDING) {
        out->state = WEIR_SCHED_HELD; /* Nothing can say what it needs. */
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
    out->created_ms = NOW_MS - (int64_t)llround(number(from, "age_minutes", 0) * MINUTE_MS);
    out->queued_ms = out->created_ms;
    out->preemption_delay_ms = (int64_t)llround(number(from, "preemption_delay_seconds", 0) * 1000);
    out->stale_since_ms = stale > 0 ? NOW_MS - (int64_t)llround(stale * 1000) : 0;
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

static weir_status load_jobs(struct world *world, struct weir_error *err)
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
            WEIR_TRY(find_group(out, task, &world->tasks[index].group, err));
            load_devices(world, task, index, groups);
            out->n_tasks++;
        }
    }
    world->snapshot.n_jobs = (int32_t)n_jobs;
    return WEIR_OK;
}

/** The plugins of a case's own configuration, as the options that mean the same. */
static weir_status load_profile(struct world *world, struct weir_error *err)
{
    WEIR_TRY(weir_sched_profile_named("kai", &world->profile, err));
    size_t i, j;
    json_t *tier, *plugin;
    json_array_foreach(json_object_get(json_object_get(world->document, "config"), "Tiers"), i,
                       tier)
    {
        json_array_foreach(json_object_get(tier, "Plugins"), j, plugin)
        {
            const char *name = text(plugin, "Name");
            const json_t *arguments = json_object_get(plugin, "Arguments");
            if (is_same(name, "gpuspread")) {
                world->profile.placement_gpu = "spread";
            }
            if (is_same(name, "nodeplacement") && is_same(text(arguments, "gpu"), "spread")) {
                world->profile.placement = "spread";
            }
            if (is_same(name, "nodeplacement") && is_same(text(arguments, "cpu"), "spread")) {
                world->profile.placement_cpu = "spread";
            }
        }
    }
    const json_t *actions = json_object_get(world->document, "actions");
    char *list = "";
    for (size_t a = 0; a < json_array_size(actions); a++) {
        list = weir_arena_printf(world->arena, "%s%s%s", list, a > 0 ? "," : "",
                                 json_string_value(json_array_get(actions, a)));
    }
    world->profile.actions = list;
    return WEIR_OK;
}

weir_status world_load(struct world *world, const json_t *document, const json_t *defaults,
                       struct weir_arena *arena, struct weir_error *err)
{
    *world = (struct world){.arena = arena, .document = document, .defaults = defaults};
    const json_t *nodes = json_object_get(document, "nodes");
    world->snapshot.now_ms = NOW_MS;
    world->snapshot.n_nodes = (int32_t)json_array_size(nodes);
    world->nodes =
        WEIR_ARENA_ARRAY(arena, (size_t)world->snapshot.n_nodes + 1, struct weir_sched_node);
    for (int32_t i = 0; i < world->snapshot.n_nodes; i++) {
        load_node(world, json_array_get(nodes, (size_t)i), &world->nodes[i]);
    }
    load_queues(world);
    load_topologies(world);
    WEIR_TRY(load_jobs(world, err));
    WEIR_TRY(load_profile(world, err));
    world->snapshot.nodes = world->nodes;
    world->snapshot.queues = world->queues;
    world->snapshot.jobs = world->jobs;
    world->snapshot.tasks = world->tasks;
    world->snapshot.topologies = world->topologies;
    return WEIR_OK;
}

int32_t world_find_node(const struct world *world, const char *name)
{
    for (int32_t i = 0; i < world->snapshot.n_nodes; i++) {
        if (is_same(world->nodes[i].name, name)) {
            return i;
        }
    }
    return WEIR_SCHED_NONE;
}
