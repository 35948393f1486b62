#include "sim/ledger.h"

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

static int32_t find_model(const struct ledger *ledger, const char *text)
{
    for (int32_t i = 0; i < ledger->n_models; i++) {
        if (ledger->models[i].text == text) {
            return i;
        }
    }
    return -1;
}

const struct weir_sched_label *ledger_selector(const struct ledger *ledger, const char *models)
{
    int32_t i = models == NULL ? -1 : find_model(ledger, models);
    return i < 0 ? NULL : &ledger->models[i].selector;
}

static void collect_models(struct ledger *ledger)
{
    const struct weir_sim_trace *trace = ledger->timeline->trace;
    int32_t cap = 64;
    ledger->models = weir_xalloc((size_t)cap * sizeof *ledger->models);
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        const char *text = trace->jobs[j].model;
        if (text == NULL || find_model(ledger, text) >= 0) {
            continue;
        }
        if (ledger->n_models == cap) {
            struct ledger_model *models = weir_xalloc((size_t)cap * 2 * sizeof *models);
            memcpy(models, ledger->models, (size_t)cap * sizeof *models);
            free(ledger->models);
            ledger->models = models;
            cap *= 2;
        }
        ledger->models[ledger->n_models++] = (struct ledger_model){
            .text = text,
            .selector = {.key = weir_arena_printf(ledger->timeline->arena, "models:%s", text)}};
    }
}

/** A node carries a label for each list of models that names its own. */
static void label_node(struct ledger *ledger, struct weir_sched_node *node)
{
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(ledger->timeline->arena, (size_t)(node->n_labels + ledger->n_models),
                         struct weir_sched_label);
    if (node->n_labels > 0) {
        memcpy(labels, node->labels, (size_t)node->n_labels * sizeof *labels);
    }
    for (int32_t i = 0; i < ledger->n_models; i++) {
        if (names_model(ledger->models[i].text, node->model)) {
            labels[node->n_labels++] =
                (struct weir_sched_label){.key = ledger->models[i].selector.key, .value = ""};
        }
    }
    node->labels = labels;
}

weir_status ledger_init(struct ledger *ledger, const struct timeline *timeline,
                        const struct weir_sim_cluster *cluster, struct weir_error *err)
{
    struct weir_arena *arena = timeline->arena;
    size_t n_nodes = (size_t)cluster->n_nodes;
    *ledger = (struct ledger){.timeline = timeline, .n_nodes = cluster->n_nodes};
    ledger->jobs = WEIR_ARENA_ARRAY(arena, (size_t)timeline->trace->n_jobs, struct ledger_job);
    ledger->nodes = WEIR_ARENA_ARRAY(arena, n_nodes, struct weir_sched_node);
    memcpy(ledger->nodes, cluster->nodes, n_nodes * sizeof *ledger->nodes);
    ledger->first_device = WEIR_ARENA_ARRAY(arena, n_nodes, int32_t);
    ledger->free_cpu = WEIR_ARENA_ARRAY(arena, n_nodes, int64_t);
    ledger->free_memory = WEIR_ARENA_ARRAY(arena, n_nodes, int64_t);
    collect_models(ledger);
    if ((int64_t)ledger->n_models * cluster->n_nodes > (int64_t)1 << 26) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the trace names too many sets of models");
    }
    int32_t n_devices = 0;
    for (int32_t n = 0; n < cluster->n_nodes; n++) {
        struct weir_sched_node *node = &ledger->nodes[n];
        label_node(ledger, node);
        ledger->first_device[n] = n_devices;
        ledger->free_cpu[n] = node->cpu_milli;
        ledger->free_memory[n] = node->memory_bytes;
        n_devices += node->n_devices;
    }
    ledger->taken_milli = WEIR_ARENA_ARRAY(arena, (size_t)n_devices, int32_t);
    return WEIR_OK;
}

void ledger_fini(struct ledger *ledger)
{
    for (int32_t j = 0; ledger->jobs != NULL && j < ledger->timeline->trace->n_jobs; j++) {
        free(ledger->jobs[j].tasks);
    }
    free(ledger->models);
}

/** Places of a task: its node, then room for its devices. */
static int32_t *row_of(const struct ledger *ledger, int32_t job, int32_t task)
{
    const struct timeline_job *state = &ledger->timeline->jobs[job];
    int64_t width = 1 + state->devices_per_task + (state->devices_rest > 0);
    return &ledger->jobs[job].tasks[width * task];
}

void ledger_open(struct ledger *ledger, int32_t job)
{
    const struct timeline_job *state = &ledger->timeline->jobs[job];
    size_t width = (size_t)(1 + state->devices_per_task + (state->devices_rest > 0));
    ledger->jobs[job].tasks = weir_xalloc((size_t)state->n_tasks * width * sizeof(int32_t));
    for (int32_t k = 0; k < state->n_tasks; k++) {
        *row_of(ledger, job, k) = -1;
    }
}

void ledger_close(struct ledger *ledger, int32_t job)
{
    free(ledger->jobs[job].tasks);
    ledger->jobs[job].tasks = NULL;
}

int32_t ledger_node(const struct ledger *ledger, int32_t job, int32_t task)
{
    return *row_of(ledger, job, task);
}

const int32_t *ledger_devices(const struct ledger *ledger, int32_t job, int32_t task)
{
    return row_of(ledger, job, task) + 1;
}

static int64_t parts_of(const struct ledger *ledger, int32_t job)
{
    return ledger->timeline->trace->jobs[job].n_tasks == 0 ? ledger->timeline->jobs[job].n_tasks
                                                           : 1;
}

/** What is free of a device of which something is taken. */
static int64_t free_part(int32_t taken_milli)
{
    return taken_milli > 0 && taken_milli < WEIR_SCHED_DEVICE ? WEIR_SCHED_DEVICE - taken_milli : 0;
}

/** Add a task to its node, or take it away. @return Whether all of it was there. */
static bool charge(struct ledger *ledger, int32_t job, int32_t task, int sign)
{
    const struct weir_sim_job *given = &ledger->timeline->trace->jobs[job];
    const int32_t *row = row_of(ledger, job, task);
    int32_t node = row[0], n_devices = timeline_task_devices(ledger->timeline, job, task);
    int64_t parts = parts_of(ledger, job);
    bool fits = true;
    ledger->free_cpu[node] -= sign * (given->cpu_milli / parts);
    ledger->free_memory[node] -= sign * (given->memory_bytes / parts);
    for (int32_t i = 0; i < n_devices; i++) {
        int32_t *taken = &ledger->taken_milli[ledger->first_device[node] + row[1 + i]];
        ledger->parts_milli -= free_part(*taken);
        *taken += sign * given->device_milli;
        ledger->parts_milli += free_part(*taken);
        fits = fits && *taken <= WEIR_SCHED_DEVICE && *taken >= 0;
    }
    return fits && ledger->free_cpu[node] >= 0 && ledger->free_memory[node] >= 0;
}

bool ledger_is_free(const struct ledger *ledger, int32_t job, int32_t task,
                    const struct weir_sched_action *action)
{
    const struct weir_sim_job *given = &ledger->timeline->trace->jobs[job];
    int64_t parts = parts_of(ledger, job);
    if (*row_of(ledger, job, task) >= 0 || action->node < 0 || action->node >= ledger->n_nodes ||
        ledger->free_cpu[action->node] < given->cpu_milli / parts ||
        ledger->free_memory[action->node] < given->memory_bytes / parts) {
        return false;
    }
    for (int32_t i = 0; i < action->n_devices; i++) {
        int32_t device = action->devices[i];
        if (device < 0 || device >= ledger->nodes[action->node].n_devices ||
            ledger->taken_milli[ledger->first_device[action->node] + device] + given->device_milli >
                WEIR_SCHED_DEVICE) {
            return false;
        }
    }
    return true;
}

weir_status ledger_take(struct ledger *ledger, int32_t job, int32_t task,
                        const struct weir_sched_action *action, struct weir_error *err)
{
    const char *name = ledger->timeline->trace->jobs[job].name;
    int32_t *row = row_of(ledger, job, task);
    bool is_known = action->node >= 0 && action->node < ledger->n_nodes;
    for (int32_t i = 0; is_known && i < action->n_devices; i++) {
        is_known =
            action->devices[i] >= 0 && action->devices[i] < ledger->nodes[action->node].n_devices;
    }
    if (row[0] >= 0 || !is_known ||
        action->n_devices != timeline_task_devices(ledger->timeline, job, task)) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "the plan places job \"%.80s\" twice, or where nothing is", name);
    }
    row[0] = action->node;
    if (action->n_devices > 0) {
        memcpy(row + 1, action->devices, (size_t)action->n_devices * sizeof *row);
    }
    if (!charge(ledger, job, task, 1)) {
        return weir_error_set(err, WEIR_ERR_INTERNAL,
                              "the plan gives job \"%.80s\" more than node \"%.80s\" has left",
                              name, ledger->nodes[action->node].name);
    }
    return WEIR_OK;
}

void ledger_free(struct ledger *ledger, int32_t job, int32_t task)
{
    int32_t *row = row_of(ledger, job, task);
    if (row[0] >= 0) {
        (void)charge(ledger, job, task, -1);
        row[0] = -1;
    }
}
