#include "sched_cases/world.h"

#include "base/macros.h"
#include "sched_cases/read.h"

#include <stdlib.h>

#define PODS_OF_A_NODE 110

/** What one unit of a MIG profile counts as: the 3 of "nvidia.com/mig-3g.20gb". */
static int64_t mig_milli(const char *profile)
{
    const char *at = strstr(profile, "mig-");
    return at == NULL ? 0 : strtol(at + 4, NULL, 10) * WEIR_SCHED_DEVICE;
}

struct weir_sched_label *load_labels(struct world *world, const json_t *object,
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
    if (node_name != NULL && json_object_get(object, CASE_NODE_NAME_KEY) == NULL) {
        labels[(*out_n)++] = (struct weir_sched_label){CASE_NODE_NAME_KEY, node_name};
    }
    return labels;
}

/** Names with counts: MIG profiles, and device classes of the claims side of the fixture. */
struct weir_sched_extra *load_extras(struct world *world, const json_t *object, size_t n_more,
                                     int32_t *out_n)
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

static void load_zone(const json_t *zone, struct weir_sched_numa_zone *out)
{
    const json_t *has = json_object_get(zone, "allocatable");
    const char *cpu = text(has, "ResourceCPU"), *memory = text(has, "ResourceMemory");
    const char *devices = text(has, "nvidia.com/gpu");
    *out = (struct weir_sched_numa_zone){
        .cpu_milli = cpu == NULL ? WEIR_SCHED_UNLIMITED : quantity_milli(cpu),
        .memory_bytes = memory == NULL ? WEIR_SCHED_UNLIMITED : quantity_bytes(memory),
        .n_devices = devices == NULL ? WEIR_SCHED_UNLIMITED : (int32_t)strtol(devices, NULL, 10)};
}

static void load_numa(struct world *world, const json_t *numa, struct weir_sched_node *out)
{
    const json_t *zones = json_object_get(numa, "zones");
    struct weir_sched_numa_zone *list =
        WEIR_ARENA_ARRAY(world->arena, json_array_size(zones) + 1, struct weir_sched_numa_zone);
    for (size_t i = 0; i < json_array_size(zones); i++) {
        load_zone(json_array_get(zones, i), &list[i]);
    }
    out->zones = list;
    out->n_zones = (int32_t)json_array_size(zones);
    const char *policy = text(numa, "policy");
    out->numa_policy = is_same(policy, "single-numa-node") ? WEIR_SCHED_NUMA_SINGLE
                       : is_same(policy, "restricted")     ? WEIR_SCHED_NUMA_RESTRICTED
                       : is_same(policy, "best-effort")    ? WEIR_SCHED_NUMA_BEST_EFFORT
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
                .device_milli = is_same(class, CASE_DEVICE_CLASS) ? WEIR_SCHED_DEVICE : 0};
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

/** The plugins of a case's own configuration, as the options that mean the same. */
static weir_status load_profile(struct world *world, const char *profile, struct weir_error *err)
{
    WEIR_TRY(weir_sched_profile_named(profile, &world->profile, err));
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

weir_status world_load(struct world *world, const char *profile, const json_t *document,
                       const json_t *defaults, struct weir_arena *arena, struct weir_error *err)
{
    *world = (struct world){.arena = arena, .document = document, .defaults = defaults};
    const json_t *nodes = json_object_get(document, "nodes");
    world->snapshot.now_ms = CASE_NOW_MS;
    world->snapshot.n_nodes = (int32_t)json_array_size(nodes);
    world->nodes =
        WEIR_ARENA_ARRAY(arena, (size_t)world->snapshot.n_nodes + 1, struct weir_sched_node);
    for (int32_t i = 0; i < world->snapshot.n_nodes; i++) {
        load_node(world, json_array_get(nodes, (size_t)i), &world->nodes[i]);
    }
    load_queues(world);
    load_topologies(world);
    WEIR_TRY(load_jobs(world, err));
    WEIR_TRY(load_profile(world, profile, err));
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
