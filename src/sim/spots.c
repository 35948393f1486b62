#include "sim/spots.h"

#include <stdlib.h>
#include <string.h>

/** Whether "A|B|C" names `model`. */
static bool names_model(const char *models, const char *model)
{
    for (const char *at = models; model != NULL;) {
        size_t len = strcspn(at, "|");
        if (len == strlen(model) && memcmp(at, model, len) == 0) {
            return true;
        }
        if (at[len] == '\0') {
            break;
        }
        at += len + 1;
    }
    return false;
}

static int32_t find_model(const struct spots *spots, const char *text)
{
    for (int32_t i = 0; i < spots->n_models; i++) {
        if (spots->models[i].text == text) {
            return i;
        }
    }
    return -1;
}

const struct weir_sched_label *spots_selector(const struct spots *spots, const char *models)
{
    int32_t i = models == NULL ? -1 : find_model(spots, models);
    return i < 0 ? NULL : &spots->models[i].selector;
}

static void collect_models(struct spots *spots)
{
    const struct weir_sim_trace *trace = spots->engine->trace;
    int32_t cap = 64;
    spots->models = weir_xalloc((size_t)cap * sizeof *spots->models);
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        const char *text = trace->jobs[j].model;
        if (text == NULL || find_model(spots, text) >= 0) {
            continue;
        }
        if (spots->n_models == cap) {
            struct spots_model *models = weir_xalloc((size_t)cap * 2 * sizeof *models);
            memcpy(models, spots->models, (size_t)cap * sizeof *models);
            free(spots->models);
            spots->models = models;
            cap *= 2;
        }
        spots->models[spots->n_models++] = (struct spots_model){
            .text = text,
            .selector = {.key = weir_arena_printf(spots->engine->arena, "models:%s", text)}};
    }
}

/** A node carries a label for each list of models that names its own. */
static void label_node(struct spots *spots, struct weir_sched_node *node)
{
    struct weir_sched_label *labels = WEIR_ARENA_ARRAY(
        spots->engine->arena, (size_t)(node->n_labels + spots->n_models), struct weir_sched_label);
    if (node->n_labels > 0) {
        memcpy(labels, node->labels, (size_t)node->n_labels * sizeof *labels);
    }
    for (int32_t i = 0; i < spots->n_models; i++) {
        if (names_model(spots->models[i].text, node->model)) {
            labels[node->n_labels++] =
                (struct weir_sched_label){.key = spots->models[i].selector.key, .value = ""};
        }
    }
    node->labels = labels;
}

weir_status spots_init(struct spots *spots, const struct engine *engine,
                       const struct weir_sim_cluster *cluster, struct weir_error *err)
{
    struct weir_arena *arena = engine->arena;
    size_t n_nodes = (size_t)cluster->n_nodes;
    *spots = (struct spots){.engine = engine, .n_nodes = cluster->n_nodes};
    spots->jobs = WEIR_ARENA_ARRAY(arena, (size_t)engine->trace->n_jobs, struct spots_job);
    spots->nodes = WEIR_ARENA_ARRAY(arena, n_nodes, struct weir_sched_node);
    memcpy(spots->nodes, cluster->nodes, n_nodes * sizeof *spots->nodes);
    spots->first_device = WEIR_ARENA_ARRAY(arena, n_nodes, int32_t);
    spots->free_cpu = WEIR_ARENA_ARRAY(arena, n_nodes, int64_t);
    spots->free_memory = WEIR_ARENA_ARRAY(arena, n_nodes, int64_t);
    collect_models(spots);
    if ((int64_t)spots->n_models * cluster->n_nodes > (int64_t)1 << 26) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the trace names too many sets of models");
    }
    int32_t n_devices = 0;
    for (int32_t n = 0; n < cluster->n_nodes; n++) {
        struct weir_sched_node *node = &spots->nodes[n];
        label_node(spots, node);
        spots->first_device[n] = n_devices;
        spots->free_cpu[n] = node->cpu_milli;
        spots->free_memory[n] = node->memory_bytes;
        n_devices += node->n_devices;
    }
    spots->taken_milli = WEIR_ARENA_ARRAY(arena, (size_t)n_devices, int32_t);
    return WEIR_OK;
}

void spots_fini(struct spots *spots)
{
    for (int32_t j = 0; spots->jobs != NULL && j < spots->engine->trace->n_jobs; j++) {
        free(spots->jobs[j].tasks);
    }
    free(spots->models);
}

/** Places of a task: its node, then room for its devices. */
static int32_t *row_of(const struct spots *spots, int32_t job, int32_t task)
{
    const struct engine_job *state = &spots->engine->jobs[job];
    int64_t width = 1 + state->devices_per_task + (state->devices_rest > 0);
    return &spots->jobs[job].tasks[width * task];
}

void spots_open(struct spots *spots, int32_t job)
{
    const struct engine_job *state = &spots->engine->jobs[job];
    size_t width = (size_t)(1 + state->devices_per_task + (state->devices_rest > 0));
    spots->jobs[job].tasks = weir_xalloc((size_t)state->n_tasks * width * sizeof(int32_t));
    for (int32_t k = 0; k < state->n_tasks; k++) {
        *row_of(spots, job, k) = -1;
    }
}

void spots_close(struct spots *spots, int32_t job)
{
    free(spots->jobs[job].tasks);
    spots->jobs[job].tasks = NULL;
}

int32_t spots_node(const struct spots *spots, int32_t job, int32_t task)
{
    return *row_of(spots, job, task);
}

const int32_t *spots_devices(const struct spots *spots, int32_t job, int32_t task)
{
    return row_of(spots, job, task) + 1;
}

static int64_t parts_of(const struct spots *spots, int32_t job)
{
    return spots->engine->trace->jobs[job].n_tasks == 0 ? spots->engine->jobs[job].n_tasks : 1;
}

/** What is free of a device of which something is taken. */
static int64_t free_part(int32_t taken_milli)
{
    return taken_milli > 0 && taken_milli < WEIR_SCHED_DEVICE ? WEIR_SCHED_DEVICE - taken_milli : 0;
}

/** Add a task to its node, or take it away. @return Whether all of it was there. */
static bool charge(struct spots *spots, int32_t job, int32_t task, int sign)
{
    const struct weir_sim_job *given = &spots->engine->trace->jobs[job];
    const int32_t *row = row_of(spots, job, task);
    int32_t node = row[0], n_devices = engine_task_devices(spots->engine, job, task);
    int64_t parts = parts_of(spots, job);
    bool fits = true;
    spots->free_cpu[node] -= sign * (given->cpu_milli / parts);
    spots->free_memory[node] -= sign * (given->memory_bytes / parts);
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t *taken = &spots->taken_milli[spots->first_device[node] + row[1 + i]];
        spots->parts_milli -= free_part(*taken);
        *taken += sign * given->device_milli;
        spots->parts_milli += free_part(*taken);
        fits = fits && *taken <= WEIR_SCHED_DEVICE && *taken >= 0;
    }
    return fits && spots->free_cpu[node] >= 0 && spots->free_memory[node] >= 0;
}

bool spots_is_free(const struct spots *spots, int32_t job, int32_t task,
                   const struct weir_sched_action *action)
{
    const struct weir_sim_job *given = &spots->engine->trace->jobs[job];
    int64_t parts = parts_of(spots, job);
    if (*row_of(spots, job, task) >= 0 || action->node < 0 || action->node >= spots->n_nodes ||
        spots->free_cpu[action->node] < given->cpu_milli / parts ||
        spots->free_memory[action->node] < given->memory_bytes / parts) {
        return false;
    }
    for (int32_t i = 0; i < action->n_devices; i++) {
        int32_t device = action->devices[i];
        if (device < 0 || device >= spots->nodes[action->node].n_devices ||
            spots->taken_milli[spots->first_device[action->node] + device] + given->device_milli >
                WEIR_SCHED_DEVICE) {
            return false;
        }
    }
    return true;
}

weir_status spots_take(struct spots *spots, int32_t job, int32_t task,
                       const struct weir_sched_action *action, struct weir_error *err)
{
    const char *name = spots->engine->trace->jobs[job].name;
    int32_t *row = row_of(spots, job, task);
    bool is_known = action->node >= 0 && action->node < spots->n_nodes;
    for (int32_t i = 0; is_known && i < action->n_devices; i++) {
        is_known =
            action->devices[i] >= 0 && action->devices[i] < spots->nodes[action->node].n_devices;
    }
    if (row[0] >= 0 || !is_known ||
        action->n_devices != engine_task_devices(spots->engine, job, task)) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "the plan places job \"%.80s\" twice, or where nothing is", name);
    }
    row[0] = action->node;
    if (action->n_devices > 0) {
        memcpy(row + 1, action->devices, (size_t)action->n_devices * sizeof *row);
    }
    if (!charge(spots, job, task, 1)) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "the plan gives job \"%.80s\" more than node \"%.80s\" has left",
                              name, spots->nodes[action->node].name);
    }
    return WEIR_OK;
}

void spots_free(struct spots *spots, int32_t job, int32_t task)
{
    int32_t *row = row_of(spots, job, task);
    if (row[0] >= 0) {
        (void)charge(spots, job, task, -1);
        row[0] = -1;
    }
}
