/** Why a job waits, and what would help. */
#include "control/schedule/live_private.h"
#include "control/schedule/past_share.h"
#include "control/schedule/start_spread.h"

#include "sim/what_if.h"
#include "store/table.h"

#include <string.h>

#define NODES_TRIED 3
#define AHEAD_NAMED 5
#define HELPS_MAX   (NODES_TRIED + 3)

struct explanation {
    struct live *live;
    int32_t row;                        /* The job's; of a service the first that waits. */
    const struct weir_sched_wait *wait; /* NULL: the planner does not let it wait. */
    struct control_explanation out;
    struct control_help helps[HELPS_MAX];
};

/* ---- what would help ------------------------------------------------------------------------- */

/* Plan with a change; keep it if the job then starts, or has a place that others leave. */
static weir_status try_change(struct explanation *explanation, const struct live_change *change,
                              const char *what, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *next = NULL;
    struct weir_sched_plan *plan;
    WEIR_TRY(weir_sim_next_plan(&change->rows, &explanation->live->profile, &next, &plan, err));
    weir_sched_plan_destroy(plan);
    const json_t *effect = json_array_get(json_object_get(next, "jobs"), (size_t)explanation->row);
    const char *outcome = json_string_value(json_object_get(effect, "outcome"));
    if (strcmp(outcome, "waits") != 0) {
        struct weir_arena *arena = &explanation->live->arena;
        explanation->helps[explanation->out.n_helps++] = (struct control_help){
            .change = what,
            .outcome = weir_arena_strdup(arena, outcome),
            .why = weir_arena_strdup(arena, json_string_value(json_object_get(effect, "why")))};
    }
    return WEIR_OK;
}

static weir_status try_first(struct explanation *explanation, struct weir_error *err)
{
    struct live_change change;
    live_change_begin(explanation->live, 0, &change);
    live_put_first(&change, explanation->row);
    return try_change(explanation, &change, "go before the others of its queue", err);
}

static bool is_alike(const struct live *live, int32_t l, int32_t r)
{
    const struct weir_sched_node *left = &live->rows->nodes[l], *right = &live->rows->nodes[r];
    const struct snapshot_node *nodes = live->snapshot.nodes;
    bool is_same_model =
        left->model == right->model ||
        (left->model != NULL && right->model != NULL && strcmp(left->model, right->model) == 0);
    return nodes[l].facts.cpu_slots == nodes[r].facts.cpu_slots &&
           left->memory_bytes == right->memory_bytes && left->n_devices == right->n_devices &&
           is_same_model;
}

/* One more of each of the first few sorts of nodes. */
static weir_status try_nodes(struct explanation *explanation, struct weir_error *err)
{
    const struct weir_sched_snapshot *rows = explanation->live->rows;
    int32_t tried[NODES_TRIED];
    int32_t n = 0;
    for (int32_t i = 0; i < rows->n_nodes && n < NODES_TRIED; i++) {
        bool is_new = true;
        for (int32_t k = 0; k < n; k++) {
            is_new = is_new && !is_alike(explanation->live, i, tried[k]);
        }
        if (!is_new) {
            continue;
        }
        struct live_change change;
        tried[n++] = i;
        live_change_begin(explanation->live, 1, &change);
        live_add_nodes(explanation->live, &change, i, 1);
        WEIR_TRY(try_change(explanation, &change,
                            weir_arena_printf(&explanation->live->arena, "one more node like %s",
                                              rows->nodes[i].name),
                            err));
    }
    return WEIR_OK;
}

static void add(int64_t *amount, int64_t more)
{
    *amount = *amount == WEIR_SCHED_UNLIMITED ? *amount : *amount + more;
}

/* What the job's tasks ask for in all. */
static void sum_demand(const struct explanation *explanation, int64_t *out)
{
    const struct weir_sched_snapshot *rows = explanation->live->rows;
    const struct weir_sched_job *job = &rows->jobs[explanation->row];
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        const struct weir_sched_demand *demand = &rows->tasks[t].demand;
        int64_t of_each = demand->device_milli > 0 ? demand->device_milli : WEIR_SCHED_DEVICE;
        out[WEIR_SCHED_ACCELERATOR] += demand->n_devices * of_each;
        out[WEIR_SCHED_CPU] += demand->cpu_milli;
        out[WEIR_SCHED_MEMORY] += demand->memory_bytes;
    }
}

/* A guarantee that covers what its queue has and what it asks for. */
static weir_status try_guarantee(struct explanation *explanation,
                                 const struct weir_sched_plan *plan, struct weir_error *err)
{
    struct live *live = explanation->live;
    int64_t demand[WEIR_SCHED_N_RESOURCES] = {0};
    struct live_change change;
    int32_t queue = live->rows->jobs[explanation->row].queue;
    sum_demand(explanation, demand);
    live_change_begin(live, 0, &change);
    for (int32_t q = queue; q >= 0; q = change.queues[q].parent) {
        change.queues[q].n_timed_quotas = 0;
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            int64_t *quota = &change.queues[q].shares[r].quota;
            if (*quota != WEIR_SCHED_UNLIMITED) {
                *quota = WEIR_MAX(*quota, plan->queues[q].allocated.of[r]);
            }
            add(quota, demand[r]);
        }
    }
    const struct weir_sched_share *shares = change.queues[queue].shares;
    struct weir_sched_profile profile = live->profile;
    WEIR_TRY(queue_tree_rules(&live->snapshot.queues, true, &live->profile, err));
    weir_status status =
        try_change(explanation, &change,
                   weir_arena_printf(
                       &live->arena, "a guarantee of queue %s of %.10g CPUs and %.10g accelerators",
                       change.queues[queue].name, (double)shares[WEIR_SCHED_CPU].quota / 1000,
                       (double)shares[WEIR_SCHED_ACCELERATOR].quota / 1000),
                   err);
    live->profile = profile;
    return status;
}

static weir_status try_no_limit(struct explanation *explanation, struct weir_error *err)
{
    struct live *live = explanation->live;
    struct live_change change;
    live_change_begin(live, 0, &change);
    for (int32_t q = live->rows->jobs[explanation->row].queue; q >= 0;
         q = change.queues[q].parent) {
        change.queues[q].n_timed_quotas = change.queues[q].n_models = 0;
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            change.queues[q].shares[r].limit = WEIR_SCHED_UNLIMITED;
        }
    }
    return try_change(explanation, &change, "no limit of its queue and those above it", err);
}

static weir_status try_all(struct explanation *explanation, const struct weir_sched_plan *plan,
                           struct weir_error *err)
{
    bool is_limited = explanation->wait->code == WEIR_SCHED_WAIT_QUEUE_LIMIT;
    WEIR_TRY(try_first(explanation, err));
    WEIR_TRY(try_nodes(explanation, err));
    WEIR_TRY(try_guarantee(explanation, plan, err));
    return is_limited ? try_no_limit(explanation, err) : WEIR_OK;
}

/* ---- why ------------------------------------------------------------------------------------- */

/* Of the planner's resources by name; NULL: tasks. */
static const char *resource_name(const struct explanation *explanation)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    const struct weir_sched_wait *wait = explanation->wait;
    switch (wait->code) {
    case WEIR_SCHED_WAIT_QUEUE_LIMIT:
    case WEIR_SCHED_WAIT_QUEUE_QUOTA:
    case WEIR_SCHED_WAIT_TOO_LARGE:
    case WEIR_SCHED_WAIT_FULL:
        break;
    case WEIR_SCHED_WAIT_GANG:
    case WEIR_SCHED_WAIT_TOPOLOGY:
    case WEIR_SCHED_WAIT_MEMBERS:
        return "tasks";
    default:
        return NULL;
    }
    if (wait->resource >= WEIR_SCHED_FIRST_MODEL) {
        int32_t n = weir_sched_models(explanation->live->rows, models);
        int32_t m = (int32_t)wait->resource - WEIR_SCHED_FIRST_MODEL;
        return m < n ? models[m] : NULL;
    }
    return wait->resource == WEIR_SCHED_ACCELERATOR ? "accelerators"
           : wait->resource == WEIR_SCHED_CPU       ? "cpus"
                                                    : "memory";
}

static void tell_wait(struct explanation *explanation)
{
    const struct weir_sched_wait *wait = explanation->wait;
    struct control_explanation *out = &explanation->out;
    out->code = weir_sched_wait_name(wait->code);
    out->resource = resource_name(explanation);
    if (out->resource != NULL) {
        bool is_plain = strcmp(out->resource, "tasks") == 0 || strcmp(out->resource, "memory") == 0;
        out->need = live_amount(wait->need, is_plain);
        out->have = live_amount(wait->have, is_plain);
    }
}

/* Who goes before it in its queue. @return How many; the first of them are named in `names`. */
static int64_t tell_ahead(const struct explanation *explanation, json_t *names)
{
    const struct weir_sched_snapshot *rows = explanation->live->rows;
    const struct weir_sched_job *job = &rows->jobs[explanation->row];
    int64_t n = 0;
    for (int32_t j = 0; j < rows->n_jobs; j++) {
        const struct weir_sched_job *other = &rows->jobs[j];
        bool is_before = other->priority > job->priority ||
                         (other->priority == job->priority && other->created_ms < job->created_ms);
        if (j != explanation->row && other->queue == job->queue && is_before &&
            rows->tasks[other->first_task].state == WEIR_SCHED_PENDING) {
            if (n++ < AHEAD_NAMED) {
                json_array_append_new(names, json_string(other->name));
            }
        }
    }
    return n;
}

/* The work of the job that a row stands for. */
static const struct snapshot_job *copy_of(const struct live *live, int32_t row)
{
    return live->snapshot.tasks[live->rows->jobs[row].first_task].job;
}

/* A job that runs and will end by itself. */
static bool is_ending(const struct live *live, int32_t row)
{
    const struct weir_sched_job *job = &live->rows->jobs[row];
    return job->started_ms > 0 && !copy_of(live, row)->state.job.is_service &&
           live->rows->tasks[job->first_task].state != WEIR_SCHED_PENDING;
}

/* Between when and when it may start, by the last runs of the jobs that run (start_spread.h). */
static void tell_spread(struct explanation *explanation, int64_t expected_ms)
{
    struct live *live = explanation->live;
    const struct weir_sched_snapshot *rows = live->rows;
    struct start_spread_job *jobs =
        WEIR_ARENA_ARRAY(&live->arena, (size_t)rows->n_jobs + 1, struct start_spread_job);
    struct start_spread spread;
    int32_t after = explanation->wait->after_job;
    size_t n = 0;
    if (expected_ms <= 0 || after < 0 || rows->jobs[after].started_ms <= 0) {
        return;
    }
    for (int32_t i = 0; i < rows->n_jobs; i++) {
        const struct weir_sched_job *job = &rows->jobs[i];
        if (is_ending(live, i)) {
            struct start_spread_job *to = &jobs[n++];
            *to = (struct start_spread_job){
                .started_ms = job->started_ms,
                .expected_end_ms = weir_sched_job_end_ms(job, rows->now_ms),
                .limit_ms = job->time_limit_ms > 0 ? job->started_ms + job->time_limit_ms : 0};
            to->n_runs =
                run_history_spread(&live->snapshot.history, copy_of(live, i)->work,
                                   rows->now_ms - job->started_ms, &to->least_ms, &to->most_ms);
        }
    }
    if (start_spread_tell(jobs, n, rows->now_ms, WEIR_MAX(expected_ms, rows->now_ms), &spread)) {
        explanation->out.expected_earliest = spread.earliest_ms;
        explanation->out.expected_latest = spread.latest_ms;
        explanation->out.expected_by = spread.n_runs;
    }
}

static weir_status tell_plan(struct explanation *explanation, int64_t expected_ms,
                             struct weir_error *err)
{
    struct weir_sched_plan *plan;
    struct live *live = explanation->live;
    WEIR_TRY(weir_sched_plan(live->rows, &live->profile, &plan, err));
    for (int32_t i = 0; i < plan->n_waits; i++) {
        if (strcmp(live_job(live, plan->waits[i].job)->id, live_job(live, explanation->row)->id) ==
            0) {
            explanation->wait = &plan->waits[i];
            explanation->row = plan->waits[i].job;
            break;
        }
    }
    weir_status status = WEIR_OK;
    if (explanation->wait != NULL) {
        tell_wait(explanation);
        explanation->out.n_ahead = tell_ahead(explanation, explanation->out.ahead);
        explanation->out.is_kept = explanation->wait->is_kept;
        tell_spread(explanation, expected_ms);
        if (live->snapshot.queues.past_rule.weight > 0) {
            explanation->out.past_use =
                past_share_tell(live->rows, live->rows->jobs[explanation->row].queue,
                                live->snapshot.queues.past_rule.half_life_ms, &live->arena);
        }
        if (explanation->wait->code != WEIR_SCHED_WAIT_ROOM_COMING) {
            status = try_all(explanation, plan, err);
        }
    }
    weir_sched_plan_destroy(plan);
    return status;
}

static const char *why_of(const struct weir_job *job, struct weir_arena *arena)
{
    if (job->is_held) {
        return weir_arena_printf(arena, "%s: `weir job resume %s` lets it go on",
                                 job->reason != NULL ? job->reason : "held", job->id);
    }
    return job->reason;
}

static struct control_explanation begin(struct live *live, const struct weir_job *job)
{
    int64_t since_ms = strcmp(job->state, "PENDING") != 0 ? job->started_ms
                       : job->queued_ms > 0               ? job->queued_ms
                                                          : job->created_ms;
    return (struct control_explanation){.id = job->id,
                                        .name = job->name,
                                        .project = job->project,
                                        .state = job->state,
                                        .why = why_of(job, &live->arena),
                                        .since = since_ms,
                                        .expected_start = job->expected_start_ms,
                                        .expected_by = WEIR_INT_NONE,
                                        .ahead = json_array()};
}

static weir_status explain(struct live *live, struct weir_txn *txn, const char *id, json_t **out,
                           struct weir_error *err)
{
    struct weir_job job;
    struct explanation explanation = {.live = live, .row = -1};
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, id, &live->arena, &job, err));
    for (int32_t j = 0; j < live->rows->n_jobs && explanation.row < 0; j++) {
        explanation.row = strcmp(live_job(live, j)->id, id) == 0 ? j : -1;
    }
    explanation.out = begin(live, &job);
    int32_t queue = queue_tree_find(&live->snapshot.queues, job.project);
    explanation.out.queue = queue >= 0 ? live->rows->queues[queue].name : NULL;
    explanation.out.helps = explanation.helps;
    weir_status status =
        explanation.row >= 0 ? tell_plan(&explanation, job.expected_start_ms, err) : WEIR_OK;
    json_t *answer = weir_view_to_json(control_explanation_view(), &explanation.out);
    if (status != WEIR_OK) {
        json_decref(answer);
        return status;
    }
    *out = answer;
    return WEIR_OK;
}

weir_status control_explain_job(struct weir_txn *txn, const struct control_live *at,
                                const char *job, json_t **out, struct weir_error *err)
{
    struct live live;
    WEIR_TRY(live_open(&live, txn, at, err));
    weir_status status = explain(&live, txn, job, out, err);
    live_close(&live);
    return status;
}
