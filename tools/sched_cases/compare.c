#include "sched_cases/read.h"

#include "base/buf.h"
#include "base/macros.h"

#include <inttypes.h>
#include <limits.h>

#define GROUPS_MAX 512

/** Names of shared devices, as they turn up: the same name on a node must be the same device, and
 *  another name another one. */
struct group_names {
    struct {
        const char *name;
        int32_t node, device;
    } known[GROUPS_MAX];

    int32_t n;
};

struct compare {
    const struct world *world;
    struct weir_buf *out;
    struct group_names names;
    int32_t n_wrong;
};

static const char *node_name(const struct world *world, int32_t node)
{
    return node < 0 ? "(none)" : world->nodes[node].name;
}

static void report(struct compare *compare, const char *object, const char *what,
                   const char *expected, const char *got)
{
    weir_buf_printf(compare->out, "    %s: %s: expected %s, got %s\n", object, what, expected, got);
    compare->n_wrong++;
}

static void report_number(struct compare *compare, const char *object, const char *what,
                          double expected, double got)
{
    char expected_text[32], got_text[32];
    snprintf(expected_text, sizeof expected_text, "%g", expected);
    snprintf(got_text, sizeof got_text, "%g", got);
    report(compare, object, what, expected_text, got_text);
}

static void compare_spot(struct compare *compare, int32_t task, const json_t *expected)
{
    const struct world *world = compare->world;
    const struct world_task *got = &world->states[task];
    const char *name = world->tasks[task].name;
    const char *state = json_string_value(json_object_get(expected, "state"));
    const char *node = json_string_value(json_object_get(expected, "node"));
    if (state != NULL && strcmp(state, got->state) != 0) {
        report(compare, name, "state", state, got->state);
    }
    if (node != NULL && strcmp(node, node_name(world, got->node)) != 0) {
        report(compare, name, "node", node, node_name(world, got->node));
    }
}

static bool agrees(struct group_names *names, const char *name, int32_t node, int32_t device)
{
    for (int32_t i = 0; i < names->n; i++) {
        bool is_name = strcmp(names->known[i].name, name) == 0;
        bool is_device = names->known[i].device == device;
        if (names->known[i].node == node && (is_name || is_device)) {
            return is_name && is_device;
        }
    }
    if (names->n < GROUPS_MAX) {
        names->known[names->n].name = name;
        names->known[names->n].node = node;
        names->known[names->n++].device = device;
    }
    return true;
}

static void compare_groups(struct compare *compare, int32_t task, const json_t *expected)
{
    const struct world *world = compare->world;
    const struct weir_sched_demand *demand = &world->tasks[task].demand;
    const json_t *groups = json_object_get(expected, "gpu_groups");
    const struct world_task *got = &world->states[task];
    bool is_shared = demand->n_devices > 0 && demand->device_milli < WEIR_SCHED_DEVICE;
    if (!is_shared || got->node < 0 || strcmp(got->state, "Pending") == 0) {
        return;
    }
    for (int32_t i = 0; i < demand->n_devices && i < (int32_t)json_array_size(groups); i++) {
        const char *name = json_string_value(json_array_get(groups, (size_t)i));
        if (name != NULL && !agrees(&compare->names, name, got->node, got->devices[i])) {
            char device[32];
            snprintf(device, sizeof device, "device %" PRId32, got->devices[i]);
            report(compare, world->tasks[task].name, "shared device", name, device);
        }
    }
}

static void compare_zones(struct compare *compare, int32_t task, const json_t *expected)
{
    const json_t *zones = json_object_get(expected, "numa_zones");
    const struct world_task *got = &compare->world->states[task];
    uint32_t mask = 0;
    for (size_t i = 0; i < json_array_size(zones); i++) {
        mask |= 1U << json_integer_value(json_array_get(zones, i));
    }
    if (zones != NULL && mask != got->zones) {
        report_number(compare, compare->world->tasks[task].name, "NUMA zones (mask)", mask,
                      got->zones);
    }
}

static double devices_of(const struct weir_sched_demand *demand)
{
    return demand->n_devices * (double)demand->device_milli / WEIR_SCHED_DEVICE;
}

static void compare_sum(struct compare *compare, const char *object, const json_t *expected,
                        const char *key, double got)
{
    const json_t *value = json_object_get(expected, key);
    if (json_is_number(value) && fabs(json_number_value(value) - got) > 1e-6 * (1 + fabs(got))) {
        report_number(compare, object, key, json_number_value(value), got);
    }
}

static void compare_job(struct compare *compare, const struct weir_sched_job *job,
                        const json_t *expected)
{
    double devices = 0, cpu = 0, memory = 0;
    bool is_by_memory = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        const struct weir_sched_demand *demand = &compare->world->tasks[t].demand;
        compare_spot(compare, t, expected);
        compare_groups(compare, t, expected);
        compare_zones(compare, t, expected);
        devices += devices_of(demand);
        cpu += (double)demand->cpu_milli;
        memory += (double)demand->memory_bytes;
        is_by_memory = is_by_memory || demand->device_memory_bytes > 0;
    }
    if (!is_by_memory) {
        compare_sum(compare, job->name, expected, "gpus", devices);
    }
    compare_sum(compare, job->name, expected, "cpu_milli", cpu);
    compare_sum(compare, job->name, expected, "memory_bytes", memory);
}

static void compare_task(struct compare *compare, const char *name, const json_t *expected)
{
    const struct world *world = compare->world;
    for (int32_t t = 0; t < world->snapshot.n_tasks; t++) {
        if (strcmp(world->tasks[t].name, name) == 0) {
            compare_spot(compare, t, expected);
            compare_groups(compare, t, expected);
            compare_zones(compare, t, expected);
        }
    }
}

/** Whole devices of a node that nobody has, and that only leaving tasks have. */
static void count_devices(const struct world *world, int32_t node, int32_t *out_idle,
                          int32_t *out_releasing)
{
    *out_idle = world->nodes[node].n_devices;
    *out_releasing = 0;
    int32_t n_anonymous = 0, n_anonymous_releasing = 0;
    for (int32_t d = 0; d < world->nodes[node].n_devices; d++) {
        bool is_used = false, is_kept = false;
        for (int32_t t = 0; t < world->snapshot.n_tasks; t++) {
            const struct weir_sched_task *task = &world->tasks[t];
            bool is_here = world->states[t].node == node && task->devices != NULL;
            for (int32_t i = 0; is_here && i < task->demand.n_devices; i++) {
                bool is_releasing = task->state == WEIR_SCHED_RELEASING;
                is_used = is_used || task->devices[i] == d;
                is_kept = is_kept || (task->devices[i] == d && !is_releasing);
            }
        }
        *out_idle -= is_used;
        *out_releasing += is_used && !is_kept;
    }
    for (int32_t t = 0; t < world->snapshot.n_tasks; t++) {
        const struct weir_sched_task *task = &world->tasks[t];
        if (task->node == node && task->devices == NULL) {
            n_anonymous += task->demand.n_devices;
            n_anonymous_releasing +=
                task->state == WEIR_SCHED_RELEASING ? task->demand.n_devices : 0;
        }
    }
    *out_idle -= n_anonymous;
    *out_releasing += n_anonymous_releasing;
}

/** What a task takes of its zones: the first of them is used up before the next. */
static void draw_zones(const struct world *world, int32_t task, int64_t *room)
{
    int64_t rest = world->tasks[task].demand.cpu_milli;
    uint32_t zones = world->states[task].zones;
    for (int32_t z = 0; rest > 0 && zones >> z != 0; z++) {
        int64_t taken = (zones >> z & 1) != 0 ? WEIR_MIN(rest, room[z]) : 0;
        room[z] -= taken;
        rest -= taken;
    }
}

static void compare_zone_room(struct compare *compare, int32_t node, const json_t *expected)
{
    const struct world *world = compare->world;
    int64_t room[sizeof(uint32_t) * CHAR_BIT] = {0};
    int32_t n_zones = WEIR_MIN(world->nodes[node].n_zones, (int32_t)WEIR_ARRAY_LEN(room));
    for (int32_t z = 0; z < n_zones; z++) {
        room[z] = world->nodes[node].zones[z].cpu_milli;
    }
    for (int32_t n_parts = 1; n_parts <= n_zones; n_parts++) { /* Who lies in one has no choice. */
        for (int32_t t = 0; t < world->snapshot.n_tasks; t++) {
            const struct world_task *task = &world->states[t];
            if (task->node == node && __builtin_popcount(task->zones) == n_parts) {
                draw_zones(world, t, room);
            }
        }
    }
    for (int32_t z = 0; z < n_zones; z++) {
        char key[16];
        snprintf(key, sizeof key, "%" PRId32, z);
        const char *cpu = json_string_value(json_object_get(
            json_object_get(json_object_get(expected, "numa_available"), key), "ResourceCPU"));
        if (cpu != NULL && quantity_milli(cpu) != room[z]) {
            report_number(compare, world->nodes[node].name, "thousandths of CPUs left in a zone",
                          (double)quantity_milli(cpu), (double)room[z]);
        }
    }
}

static void compare_node(struct compare *compare, const char *name, const json_t *expected)
{
    int32_t node = world_find_node(compare->world, name), idle, releasing;
    if (node < 0) {
        report(compare, name, "node", "to be there", "none");
        return;
    }
    count_devices(compare->world, node, &idle, &releasing);
    compare_sum(compare, name, expected, "idle_gpus", idle);
    compare_sum(compare, name, expected, "releasing_gpus", releasing);
    compare_zone_room(compare, node, expected);
}

static void compare_limit(struct compare *compare, const char *key, int64_t got)
{
    const json_t *limit = json_object_get(json_object_get(compare->world->document, "limits"), key);
    if (json_is_integer(limit) && got > json_integer_value(limit)) {
        report_number(compare, "whole case", key, (double)json_integer_value(limit), (double)got);
    }
}

int32_t world_compare(const struct world *world, struct weir_buf *out)
{
    struct compare compare = {.world = world, .out = out};
    const json_t *expected = json_object_get(world->document, "expect");
    /* What the case itself names comes first: it settles which name is which device. */
    const char *name;
    json_t *value;
    for (int32_t j = 0; j < world->snapshot.n_jobs; j++) {
        const struct weir_sched_job *job = &world->jobs[j];
        value = json_object_get(json_object_get(expected, "jobs"), job->name);
        if (value != NULL) {
            compare_job(&compare, job, value);
        }
    }
    json_object_foreach(json_object_get(expected, "tasks"), name, value)
    {
        compare_task(&compare, name, value);
    }
    json_object_foreach(json_object_get(expected, "nodes"), name, value)
    {
        compare_node(&compare, name, value);
    }
    const char *mode = json_string_value(json_object_get(world->document, "mode"));
    if (mode != NULL && strcmp(mode, "one-action") == 0) {
        compare_limit(&compare, "max_binds", world->n_binds);
        compare_limit(&compare, "max_evictions", world->n_evictions);
        compare_limit(&compare, "max_pipelined", world->n_pipelined);
    }
    return compare.n_wrong;
}
