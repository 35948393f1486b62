#include "sim/fill.h"

#include "base/rng.h"
#include "sim/csv.h"
#include "sim/import.h"

#include <stdlib.h>
#include <string.h>

struct fill {
    const struct weir_sim_trace *trace;
    const struct weir_sim_cluster *cluster;
    struct weir_arena arena;
    uint32_t *order; /**< Jobs of the trace, as they arrive. */
    size_t n;
    int64_t capacity_milli;
};

static int64_t milli_of(const struct weir_sim_job *job)
{
    return (int64_t)job->n_devices * job->device_milli;
}

/** The trace, drawn jobs behind it, all shuffled. */
static weir_status draw(struct fill *fill, uint64_t seed, struct weir_error *err)
{
    const struct weir_sim_trace *trace = fill->trace;
    int64_t asked = 0, wanted = fill->capacity_milli / 100 * WEIR_SIM_FILL_PCT;
    size_t cap = (size_t)trace->n_jobs * 2 + 1024;
    struct weir_rng rng;
    fill->order = weir_xalloc(cap * sizeof *fill->order);
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        if (trace->jobs[j].n_tasks > 1) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "job \"%.80s\" has several tasks: a filling places single ones",
                                  trace->jobs[j].name);
        }
        fill->order[fill->n++] = (uint32_t)j;
        asked += milli_of(&trace->jobs[j]);
    }
    if (asked == 0 || fill->capacity_milli == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "nobody asks for an accelerator, or there is none: nothing to fill");
    }
    weir_rng_init(&rng, seed, 0);
    while (asked < wanted && fill->n < WEIR_SIM_JOBS_MAX) {
        if (fill->n == cap) {
            uint32_t *order = weir_xalloc(cap * 2 * sizeof *order);
            memcpy(order, fill->order, cap * sizeof *order);
            free(fill->order);
            fill->order = order;
            cap *= 2;
        }
        uint32_t job = (uint32_t)weir_rng_below(&rng, (uint64_t)trace->n_jobs);
        fill->order[fill->n++] = job;
        asked += milli_of(&trace->jobs[job]);
    }
    weir_rng_shuffle_u32(&rng, fill->order, fill->n);
    return WEIR_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool names_model(const char *models, const char *model)
{
    for (const char *at = models; model != NULL && *at != '\0';) {
        size_t len = strcspn(at, "|");
        if (len == strlen(model) && memcmp(at, model, len) == 0) {
            return true;
        }
        at += len + (at[len] == '|');
    }
    return false;
}

/** The lists of models that the trace names, each a label of the nodes that have one of them. */
static struct weir_sched_label *list_models(struct fill *fill, int32_t *out_n)
{
    const struct weir_sim_trace *trace = fill->trace;
    struct weir_sched_label *list =
        WEIR_ARENA_ARRAY(&fill->arena, (size_t)trace->n_jobs, struct weir_sched_label);
    int32_t n = 0;
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        int32_t i = 0;
        while (i < n && list[i].key != trace->jobs[j].model) {
            i++;
        }
        if (trace->jobs[j].model != NULL && i == n) {
            list[n++] = (struct weir_sched_label){.key = trace->jobs[j].model, .value = NULL};
        }
    }
    *out_n = n;
    return list;
}

static struct weir_sched_node *label_nodes(struct fill *fill, const struct weir_sched_label *lists,
                                           int32_t n_lists)
{
    size_t n_nodes = (size_t)fill->cluster->n_nodes;
    struct weir_sched_node *nodes = WEIR_ARENA_ARRAY(&fill->arena, n_nodes, struct weir_sched_node);
    memcpy(nodes, fill->cluster->nodes, n_nodes * sizeof *nodes);
    for (size_t n = 0; n < n_nodes; n++) {
        struct weir_sched_label *labels =
            WEIR_ARENA_ARRAY(&fill->arena, (size_t)n_lists, struct weir_sched_label);
        nodes[n].n_labels = 0;
        for (int32_t i = 0; i < n_lists; i++) {
            if (names_model(lists[i].key, nodes[n].model)) {
                labels[nodes[n].n_labels++] =
                    (struct weir_sched_label){.key = lists[i].key, .value = ""};
            }
        }
        nodes[n].labels = labels;
    }
    return nodes;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void make_jobs(struct fill *fill, const struct weir_sched_label *lists, int32_t n_lists,
                      struct weir_sched_job *jobs, struct weir_sched_task *tasks)
{
    for (size_t i = 0; i < fill->n; i++) {
        const struct weir_sim_job *given = &fill->trace->jobs[fill->order[i]];
        jobs[i] = (struct weir_sched_job){.name = given->name,
                                          .priority = 50,
                                          .first_task = (int32_t)i,
                                          .n_tasks = 1,
                                          .min_member = 1,
                                          .created_ms = 1 + (int64_t)i,
                                          .queued_ms = 1 + (int64_t)i,
                                          .stale_grace_ms = INT64_MIN,
                                          .utilisation_pct = -1};
        tasks[i] = (struct weir_sched_task){
            .name = given->name,
            .state = WEIR_SCHED_PENDING,
            .node = WEIR_SCHED_NONE,
            .demand = {.cpu_milli = given->cpu_milli,
                       .memory_bytes = given->memory_bytes,
                       .n_devices = given->n_devices,
                       .device_milli = given->n_devices > 0 ? given->device_milli : 0}};
        for (int32_t k = 0; given->model != NULL && k < n_lists; k++) {
            if (lists[k].key == given->model) {
                tasks[i].selector = &lists[k];
                tasks[i].n_selector = 1;
            }
        }
    }
}

/** A second account of what is given away. */
static weir_status check_plan(struct fill *fill, const struct weir_sched_plan *plan,
                              bool *is_placed, struct weir_error *err)
{
    size_t n_nodes = (size_t)fill->cluster->n_nodes, n_devices = 0;
    size_t *first = WEIR_ARENA_ARRAY(&fill->arena, n_nodes, size_t);
    int64_t *cpu = WEIR_ARENA_ARRAY(&fill->arena, n_nodes, int64_t),
            *memory = WEIR_ARENA_ARRAY(&fill->arena, n_nodes, int64_t);
    for (size_t n = 0; n < n_nodes; n++) {
        first[n] = n_devices;
        n_devices += (size_t)fill->cluster->nodes[n].n_devices;
    }
    int32_t *taken = WEIR_ARENA_ARRAY(&fill->arena, n_devices, int32_t);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        const struct weir_sim_job *job = &fill->trace->jobs[fill->order[action->task]];
        const struct weir_sched_node *node = &fill->cluster->nodes[action->node];
        bool fits = action->kind == WEIR_SCHED_BIND && !is_placed[action->task] &&
                    action->n_devices == job->n_devices &&
                    (job->model == NULL || names_model(job->model, node->model));
        cpu[action->node] += job->cpu_milli;
        memory[action->node] += job->memory_bytes;
        fits = fits && cpu[action->node] <= node->cpu_milli &&
               memory[action->node] <= node->memory_bytes;
        for (int32_t d = 0; fits && d < action->n_devices; d++) {
            int32_t *device = &taken[first[action->node] + (size_t)action->devices[d]];
            *device += job->device_milli;
            fits = *device <= WEIR_SCHED_DEVICE;
        }
        if (!fits) {
            return weir_error_set(err, WEIR_ERR_INTERNAL,
                                  "the plan places job \"%.80s\" on node \"%.80s\", where it does "
                                  "not fit",
                                  job->name, node->name);
        }
        is_placed[action->task] = true;
    }
    return WEIR_OK;
}

/** Allocation by arrived load: where the arrived reach each whole percent. */
static void tell(const struct fill *fill, const bool *is_placed, struct weir_sim_fill *out)
{
    int64_t arrived = 0, allocated = 0;
    int pct = 0;
    for (size_t i = 0; i < fill->n; i++) {
        int64_t milli = milli_of(&fill->trace->jobs[fill->order[i]]);
        arrived += milli;
        allocated += is_placed[i] ? milli : 0;
        out->n_dropped += !is_placed[i];
        while (pct <= WEIR_SIM_FILL_PCT && arrived * 100 >= fill->capacity_milli * pct) {
            out->allocated_pct[pct++] = 100.0 * (double)allocated / (double)fill->capacity_milli;
        }
    }
    for (; pct <= WEIR_SIM_FILL_PCT; pct++) {
        out->allocated_pct[pct] = 100.0 * (double)allocated / (double)fill->capacity_milli;
    }
    out->n_tasks = (int32_t)fill->n;
}

static weir_status plan_fill(struct fill *fill, const struct weir_sched_profile *profile,
                             struct weir_sim_fill *out, struct weir_error *err)
{
    struct weir_sched_profile rules = *profile;
    struct weir_sched_job *jobs = WEIR_ARENA_ARRAY(&fill->arena, fill->n, struct weir_sched_job);
    struct weir_sched_task *tasks = WEIR_ARENA_ARRAY(&fill->arena, fill->n, struct weir_sched_task);
    bool *is_placed = WEIR_ARENA_ARRAY(&fill->arena, fill->n, bool);
    int32_t n_lists;
    struct weir_sched_label *lists = list_models(fill, &n_lists);
    static const struct weir_sched_share unlimited = {WEIR_SCHED_UNLIMITED, 1,
                                                      WEIR_SCHED_UNLIMITED};
    struct weir_sched_queue queue = {
        .name = "all", .parent = WEIR_SCHED_NONE, .shares = {unlimited, unlimited, unlimited}};
    make_jobs(fill, lists, n_lists, jobs, tasks);
    rules.actions = "allocate";
    struct weir_sched_snapshot snapshot = {.now_ms = 1 + (int64_t)fill->n,
                                           .nodes = label_nodes(fill, lists, n_lists),
                                           .n_nodes = fill->cluster->n_nodes,
                                           .queues = &queue,
                                           .n_queues = 1,
                                           .jobs = jobs,
                                           .n_jobs = (int32_t)fill->n,
                                           .tasks = tasks,
                                           .n_tasks = (int32_t)fill->n};
    struct weir_sched_plan *plan;
    WEIR_TRY(weir_sched_plan(&snapshot, &rules, &plan, err));
    weir_status status = check_plan(fill, plan, is_placed, err);
    weir_sched_plan_destroy(plan);
    if (status == WEIR_OK) {
        tell(fill, is_placed, out);
    }
    return status;
}

static void fill_fini(struct fill *fill)
{
    free(fill->order);
    weir_arena_fini(&fill->arena);
}

weir_status weir_sim_fill(const struct weir_sim_trace *trace,
                          const struct weir_sim_cluster *cluster,
                          const struct weir_sched_profile *profile, uint64_t seed,
                          struct weir_sim_fill *out, struct weir_error *err)
{
    WEIR_AUTO(fill_fini) struct fill fill = {.trace = trace, .cluster = cluster};
    struct weir_sim_fill result = {0};
    for (int32_t n = 0; n < cluster->n_nodes; n++) {
        fill.capacity_milli += (int64_t)cluster->nodes[n].n_devices * WEIR_SCHED_DEVICE;
    }
    weir_arena_init(&fill.arena, (size_t)8 << 30);
    WEIR_TRY(draw(&fill, seed, err));
    WEIR_TRY(plan_fill(&fill, profile, &result, err));
    *out = result;
    return WEIR_OK;
}

/* ---- what others got ------------------------------------------------------------------------- */

static bool is_field(const struct csv *csv, int column, const char *text)
{
    const struct csv_field *field = &csv->fields[column];
    return field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

static weir_status add_published(const struct csv *csv, int policy_column, double at_100,
                                 double at_130, struct weir_sim_published *out,
                                 struct weir_error *err)
{
    int32_t i = 0;
    while (i < out->n_policies && !is_field(csv, policy_column, out->policies[i].name)) {
        i++;
    }
    if (i == out->n_policies) {
        const struct csv_field *field = &csv->fields[policy_column];
        if (i == WEIR_SIM_POLICIES_MAX || field->len >= sizeof out->policies[i].name) {
            return csv_refuse(csv, policy_column, "at most 16 policies with short names", err);
        }
        memcpy(out->policies[i].name, field->text, field->len);
        out->n_policies++;
    }
    out->policies[i].at_100 += at_100;
    out->policies[i].at_130 += at_130;
    out->policies[i].n_seeds++;
    return WEIR_OK;
}

weir_status weir_sim_published_parse(const char *text, size_t len, const char *what,
                                     const char *workload, struct weir_sim_published *out,
                                     struct weir_error *err)
{
    struct csv csv;
    struct weir_sim_published result = {0};
    int workload_column, policy, at_100, at_130;
    WEIR_TRY(csv_open(&csv, text, len, what, err));
    WEIR_TRY(csv_need(&csv, "workload", &workload_column, err));
    WEIR_TRY(csv_need(&csv, "sc_policy", &policy, err));
    WEIR_TRY(csv_need(&csv, "100", &at_100, err));
    WEIR_TRY(csv_need(&csv, "130", &at_130, err));
    for (;;) {
        bool has;
        int64_t ppm_100, ppm_130;
        WEIR_TRY(csv_next(&csv, &has, err));
        if (!has) {
            break;
        }
        if (is_field(&csv, workload_column, workload)) {
            WEIR_TRY(csv_scaled(&csv, at_100, 0, 100, 1e4, 0, &ppm_100, err));
            WEIR_TRY(csv_scaled(&csv, at_130, 0, 100, 1e4, 0, &ppm_130, err));
            WEIR_TRY(add_published(&csv, policy, (double)ppm_100 / 1e4, (double)ppm_130 / 1e4,
                                   &result, err));
        }
    }
    for (int32_t i = 0; i < result.n_policies; i++) {
        result.policies[i].at_100 /= result.policies[i].n_seeds;
        result.policies[i].at_130 /= result.policies[i].n_seeds;
    }
    *out = result;
    return WEIR_OK;
}
