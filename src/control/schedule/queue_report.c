/** What each queue has, is owed and waits for. */
#include "control/schedule/guarantee.h"
#include "control/schedule/live_private.h"
#include "control/schedule/past_share.h"

#include "base/view_table.h"

#include "control/live_views.def"

#include "base/view_end.h"

#include <math.h>
#include <string.h>

/* Of a queue and all below it. */
struct counts {
    int64_t n_running, n_waiting;
};

struct report {
    struct live *live;
    struct weir_sched_plan *plan; /* Of no action: what is. */
    struct counts *counts;        /* Per row. */
    struct weir_queue *queues;    /* Of the store. */
    size_t n_queues;
};

static void count_jobs(struct report *report)
{
    const struct weir_sched_snapshot *rows = report->live->rows;
    for (int32_t j = 0; j < rows->n_jobs; j++) {
        const struct weir_sched_job *job = &rows->jobs[j];
        bool is_running = false;
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            is_running = is_running || weir_sched_task_has_node(rows->tasks[t].state);
        }
        for (int32_t q = job->queue; q >= 0; q = rows->queues[q].parent) {
            report->counts[q].n_running += is_running;
            report->counts[q].n_waiting += !is_running;
        }
    }
}

static json_t *amounts_of(const struct weir_sched_amount *amount, const char *const *models,
                          int32_t n_models)
{
    static const enum weir_sched_resource resources[WEIR_QUEUE_N_RESOURCES] = {
        [WEIR_QUEUE_ACCELERATORS] = WEIR_SCHED_ACCELERATOR,
        [WEIR_QUEUE_CPUS] = WEIR_SCHED_CPU,
        [WEIR_QUEUE_MEMORY] = WEIR_SCHED_MEMORY};

    json_t *object = json_object();
    for (int r = 0; r < WEIR_QUEUE_N_RESOURCES; r++) {
        json_object_set_new(object, weir_queue_amount_name((enum weir_queue_amount)r),
                            live_amount(amount->of[resources[r]], r == WEIR_QUEUE_MEMORY));
    }
    for (int32_t m = 0; m < n_models; m++) {
        json_object_set_new(object, models[m],
                            live_amount(amount->of[WEIR_SCHED_FIRST_MODEL + m], false));
    }
    return object;
}

json_t *live_amounts(const struct weir_sched_snapshot *rows, const struct weir_sched_amount *amount)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    int32_t n = weir_sched_models(rows, models);
    return amounts_of(amount, models, n);
}

struct control_queue_share live_shares(const struct weir_sched_snapshot *rows,
                                       const struct weir_sched_plan *plan, int32_t row)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    int32_t n = weir_sched_models(rows, models);
    const struct weir_sched_queue_share *has = &plan->queues[row];
    struct weir_sched_amount quota = {{0}}, borrowed = {{0}}, waiting = {{0}};
    for (int32_t r = 0; r < WEIR_SCHED_FIRST_MODEL + n; r++) {
        const struct weir_sched_share *share = guarantee_share(rows, &rows->queues[row], r, models);
        /* Who has no share of a model borrows none of it. */
        bool is_bounded = share != NULL && share->quota != WEIR_SCHED_UNLIMITED;
        quota.of[r] = share != NULL ? share->quota : 0;
        borrowed.of[r] = is_bounded ? WEIR_MAX(has->allocated.of[r] - share->quota, (int64_t)0) : 0;
        waiting.of[r] = WEIR_MAX(has->requested.of[r] - has->allocated.of[r], (int64_t)0);
    }
    return (struct control_queue_share){.guarantee = amounts_of(&quota, models, n),
                                        .fair_share = amounts_of(&has->fair_share, models, n),
                                        .used = amounts_of(&has->allocated, models, n),
                                        .borrowed = amounts_of(&borrowed, models, n),
                                        .waiting = amounts_of(&waiting, models, n)};
}

static const struct weir_queue *record_of(struct report *report, int32_t row)
{
    const struct queue_tree *tree = &report->live->snapshot.queues;
    for (size_t i = 0; row < tree->n_set && i < report->n_queues; i++) {
        if (strcmp(report->queues[i].name, tree->rows[row].name) == 0) {
            return &report->queues[i];
        }
    }
    struct weir_queue *implied = WEIR_ARENA_NEW(&report->live->arena, struct weir_queue);
    *implied = (struct weir_queue){.name = (char *)tree->rows[row].name,
                                   .project = (char *)tree->rows[row].name,
                                   .priority = tree->rows[row].priority,
                                   .min_run_ms = -1,
                                   .idle_after_ms = -1,
                                   .overflow_after_ms = -1};
    return implied;
}

static struct control_past_use past_of(const struct weir_sched_snapshot *rows, int32_t row)
{
    const int64_t *ppm = rows->queues[row].usage_ppm;
    double times = past_share(rows, row);
    return (struct control_past_use){.accelerators = (double)ppm[WEIR_SCHED_ACCELERATOR] / 1e6,
                                     .cpus = (double)ppm[WEIR_SCHED_CPU] / 1e6,
                                     .memory = (double)ppm[WEIR_SCHED_MEMORY] / 1e6,
                                     .times_share = times >= 0 ? times : NAN};
}

static json_t *queue_json(struct report *report, int32_t row)
{
    const struct control_queue_share has = live_shares(report->live->rows, report->plan, row);
    return WEIR_VIEW_JSON(
        control_queue, .row = record_of(report, row),
        .is_set = row < report->live->snapshot.queues.n_set, .guarantee = has.guarantee,
        .fair_share = has.fair_share, .used = has.used, .borrowed = has.borrowed,
        .waiting = has.waiting, .n_running = report->counts[row].n_running,
        .n_waiting = report->counts[row].n_waiting, .past_use = past_of(report->live->rows, row));
}

/* A plan of no action says what is, and what is fair. */
static weir_status plan_nothing(struct report *report, struct weir_error *err)
{
    struct weir_sched_profile profile = report->live->profile;
    profile.actions = "";
    profile.backfill_depth = profile.forecast_depth = 0;
    return weir_sched_plan(report->live->rows, &profile, &report->plan, err);
}

/* Of the leaves that are not named. */
static json_t *others_json(const struct report *report)
{
    const struct weir_sched_snapshot *rows = report->live->rows;
    int64_t n_queues = 0, n_running = 0, n_waiting = 0;
    for (int32_t j = 0; j < rows->n_queues; j++) {
        n_queues += !report->live->named[j];
    }
    for (size_t i = 0; i < report->live->snapshot.queues.n_projects; i++) {
        int32_t row = report->live->snapshot.queues.projects[i].row;
        if (!report->live->named[row]) {
            n_running += report->counts[row].n_running;
            n_waiting += report->counts[row].n_waiting;
        }
    }
    return json_pack("{s:I,s:I,s:I}", "n_queues", (json_int_t)n_queues, "n_running",
                     (json_int_t)n_running, "n_waiting", (json_int_t)n_waiting);
}

static weir_status report_in(struct report *report, struct weir_txn *txn, const char *name,
                             json_t **out, json_t **out_others, struct weir_error *err)
{
    struct live *live = report->live;
    WEIR_TRY(weir_queue_list(txn, &live->arena, &report->queues, &report->n_queues, err));
    WEIR_TRY(plan_nothing(report, err));
    report->counts =
        WEIR_ARENA_ARRAY(&live->arena, (size_t)live->rows->n_queues + 1, struct counts);
    count_jobs(report);
    json_t *list = json_array();
    for (int32_t q = 0; q < live->rows->n_queues; q++) {
        if (live->named[q] && (name == NULL || strcmp(live->rows->queues[q].name, name) == 0)) {
            json_array_append_new(list, queue_json(report, q));
        }
    }
    weir_sched_plan_destroy(report->plan);
    *out_others = others_json(report);
    if (name != NULL && json_array_size(list) == 0) {
        json_decref(list);
        json_decref(*out_others);
        *out_others = NULL;
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "queue \"%.60s\" not found", name);
    }
    *out = list;
    return WEIR_OK;
}

weir_status control_queues(struct weir_txn *txn, const struct control_live *at, const char *name,
                           json_t **out, json_t **out_others, struct weir_error *err)
{
    struct live live;
    struct report report = {.live = &live};
    WEIR_TRY(live_open(&live, txn, at, err));
    weir_status status = report_in(&report, txn, name, out, out_others, err);
    live_close(&live);
    return status;
}
