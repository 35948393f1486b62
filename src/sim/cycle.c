#include "sim/cycle.h"

#include "sched/apply.h"
#include "sim/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_MS           ((int64_t)1 << 40) /**< Snapshots' time of the first submission. */
#define USAGE_HALF_LIFE_MS (84.0 * 3600000)   /**< Of past use: half a window of a week. */

struct cycle {
    struct timeline *timeline;
    const struct weir_sched_profile *profile;
    struct ledger ledger;
    struct weir_sched_queue *queues;
    int32_t n_queues;
    double *usage; /**< Per queue: decayed, milli × ms. */
    double usage_capacity;
    int64_t usage_ms;

    int32_t *live; /**< Jobs that wait or run, by index. */
    int32_t n_live, live_cap;
    struct weir_sched_job *jobs; /**< The snapshot's; as live. */
    struct weir_sched_task *tasks;
    int32_t jobs_cap, tasks_cap;
    int32_t *first_task; /**< As live. */

    bool is_dirty;
    int64_t last_ms; /**< Last cycle; -1: none yet. */
    int64_t n_cycles, n_decisions;
    float *took_ms;
    int32_t n_took, took_cap;
    char never_reason[WEIR_SCHED_TEXT_BYTES];
};

/** Room for `n` of `size` bytes; keeps what is there. */
static void *grown(void *old, int32_t *cap, int32_t n, size_t size)
{
    if (n <= *cap) {
        return old;
    }
    int32_t now = WEIR_MAX(n, *cap * 2);
    void *memory = weir_xalloc((size_t)now * size);
    if (*cap > 0) {
        memcpy(memory, old, (size_t)*cap * size);
    }
    free(old);
    *cap = now;
    return memory;
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static void fill_job(const struct cycle *cycle, int32_t index, struct weir_sched_job *row)
{
    const struct timeline_job *job = &cycle->timeline->jobs[index];
    const struct weir_sim_job *given = &cycle->timeline->trace->jobs[index];
    int64_t every = cycle->timeline->checkpoint_every_ms, checkpoint_ms = 0;
    if (job->state == TIMELINE_RUNNING && every > 0 && cycle->timeline->now_ms > job->since_ms) {
        int64_t worked_ms = cycle->timeline->now_ms - job->since_ms;
        checkpoint_ms = EPOCH_MS + job->since_ms + worked_ms / every * every;
    }
    *row = (struct weir_sched_job){
        .name = given->name,
        .user = given->user,
        .queue = job->queue,
        .priority = given->priority,
        .preemptibility =
            given->is_preemptible ? WEIR_SCHED_PREEMPTIBLE : WEIR_SCHED_NON_PREEMPTIBLE,
        .n_tasks = job->n_tasks,
        .min_member = job->min_tasks,
        .created_ms = EPOCH_MS + job->submit_ms,
        .queued_ms = EPOCH_MS + job->queued_ms,
        .started_ms = job->state == TIMELINE_RUNNING ? EPOCH_MS + job->started_ms : 0,
        .stale_since_ms =
            job->state == TIMELINE_WAITING && job->n_running > 0 ? EPOCH_MS + job->queued_ms : 0,
        .stale_grace_ms = INT64_MIN,
        .time_limit_ms = given->time_limit_ms,
        .expected_run_ms = cycle->timeline->options->is_duration_known ? given->duration_ms : 0,
        .checkpoint_ms = checkpoint_ms,
        .utilisation_pct = -1,
    };
}

static void fill_task(const struct cycle *cycle, int32_t index, int32_t task,
                      struct weir_sched_task *row)
{
    const struct weir_sim_job *given = &cycle->timeline->trace->jobs[index];
    const struct timeline_job *job = &cycle->timeline->jobs[index];
    int32_t node = ledger_node(&cycle->ledger, index, task);
    /* What a job asks for as a whole is divided evenly. */
    int64_t parts = given->n_tasks == 0 ? job->n_tasks : 1;
    *row = (struct weir_sched_task){
        .name = given->name,
        .state = node >= 0 ? WEIR_SCHED_RUNNING : WEIR_SCHED_PENDING,
        .node = node,
        .order = job->n_tasks - task,
        .devices = node >= 0 ? ledger_devices(&cycle->ledger, index, task) : NULL,
        .demand = {.cpu_milli = given->cpu_milli / parts,
                   .memory_bytes = given->memory_bytes / parts,
                   .n_devices = timeline_task_devices(cycle->timeline, index, task),
                   .device_milli = given->device_milli},
    };
    row->demand.device_milli = row->demand.n_devices > 0 ? given->device_milli : 0;
    row->selector = ledger_selector(&cycle->ledger, given->model);
    row->n_selector = row->selector != NULL;
}

/** Finished jobs leave the list; the others become rows. */
static void fill(struct cycle *cycle)
{
    int32_t n = 0, n_tasks = 0, cap = cycle->jobs_cap;
    for (int32_t i = 0; i < cycle->n_live; i++) {
        int32_t job = cycle->live[i];
        if (cycle->timeline->jobs[job].state != TIMELINE_DONE) {
            cycle->live[n++] = job;
            n_tasks += cycle->timeline->jobs[job].n_tasks;
        }
    }
    cycle->n_live = n;
    cycle->jobs = grown(cycle->jobs, &cap, n, sizeof *cycle->jobs);
    cycle->first_task = grown(cycle->first_task, &cycle->jobs_cap, n, sizeof *cycle->first_task);
    cycle->tasks = grown(cycle->tasks, &cycle->tasks_cap, n_tasks, sizeof *cycle->tasks);
    int32_t t = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t job = cycle->live[i];
        fill_job(cycle, job, &cycle->jobs[i]);
        cycle->jobs[i].first_task = cycle->first_task[i] = t;
        for (int32_t k = 0; k < cycle->timeline->jobs[job].n_tasks; k++, t++) {
            fill_task(cycle, job, k, &cycle->tasks[t]);
        }
    }
}

/** Past use decays by half every USAGE_HALF_LIFE_MS. */
static void fill_usage(struct cycle *cycle)
{
    double span = (double)(cycle->timeline->now_ms - cycle->usage_ms);
    double decay = pow(0.5, span / USAGE_HALF_LIFE_MS);
    const struct metrics *metrics = &cycle->timeline->metrics;
    cycle->usage_capacity = cycle->usage_capacity * decay + (double)metrics->capacity_milli * span;
    for (int32_t q = 0; q < cycle->n_queues; q++) {
        cycle->usage[q] = cycle->usage[q] * decay + (double)metrics->queues[q].held_milli * span;
        cycle->queues[q].usage_ppm[WEIR_SCHED_ACCELERATOR] =
            cycle->usage_capacity > 0 ? (int64_t)(cycle->usage[q] / cycle->usage_capacity * 1e6)
                                      : 0;
    }
    cycle->usage_ms = cycle->timeline->now_ms;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/** How many tasks of a job have a place, and how many devices. */
static int32_t count_placed(const struct cycle *cycle, int32_t job, int64_t *out_milli)
{
    int32_t n = 0;
    *out_milli = 0;
    for (int32_t k = 0; k < cycle->timeline->jobs[job].n_tasks; k++) {
        if (ledger_node(&cycle->ledger, job, k) >= 0) {
            n++;
            *out_milli += (int64_t)timeline_task_devices(cycle->timeline, job, k) *
                          cycle->timeline->trace->jobs[job].device_milli;
        }
    }
    return n;
}

/** Evictions take effect at once, so that what is to follow them can start at once as well. */
static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    struct cycle *cycle = context;
    int32_t job = cycle->live[part->job];
    int64_t milli;
    for (int32_t i = 0; i < part->n_actions; i++) {
        if (part->actions[i]->kind != WEIR_SCHED_EVICT) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "the plan asks for something that a replay does not do");
        }
        ledger_free(&cycle->ledger, job, part->actions[i]->task - cycle->first_task[part->job]);
    }
    int32_t n = count_placed(cycle, job, &milli);
    timeline_evict(cycle->timeline, job, n, milli);
    return WEIR_OK;
}

/** Is all that the part places free? A placement may be nominated where others leave in their own
 *  time. */
static bool is_free(const struct cycle *cycle, const struct weir_sched_action *action, int32_t job,
                    int32_t k)
{
    return action->kind != WEIR_SCHED_PIPELINE || ledger_is_free(&cycle->ledger, job, k, action);
}

/** A job whose nominated placement is not free yet waits on, whole. */
static void put_off(struct cycle *cycle, int32_t job)
{
    if (cycle->timeline->jobs[job].state == TIMELINE_WAITING) {
        for (int32_t k = 0; k < cycle->timeline->jobs[job].n_tasks; k++) {
            ledger_free(&cycle->ledger, job, k);
        }
    }
}

static void note_served(struct cycle *cycle, int32_t job)
{
    cycle->queues[cycle->timeline->jobs[job].queue].served_ms = EPOCH_MS + cycle->timeline->now_ms;
}

static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    struct cycle *cycle = context;
    int32_t job = cycle->live[part->job];
    int64_t milli;
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        int32_t k = action->task - cycle->first_task[part->job];
        if (!is_free(cycle, action, job, k)) {
            put_off(cycle, job);
            break;
        }
        WEIR_TRY(ledger_take(&cycle->ledger, job, k, action, err));
    }
    int32_t n = count_placed(cycle, job, &milli);
    if (n != cycle->timeline->jobs[job].n_running) {
        note_served(cycle, job);
        timeline_grow(cycle->timeline, job, n, milli);
    }
    return WEIR_OK;
}

/** What was done may let the next plan do more, until one does nothing. */
static weir_status carry_out(struct cycle *cycle, const struct weir_sched_snapshot *snapshot,
                             const struct weir_sched_plan *plan, struct weir_error *err)
{
    const struct weir_sched_executor executor = {.evict = evict, .place = place, .context = cycle};
    cycle->is_dirty = plan->n_actions > 0;
    WEIR_TRY(weir_sched_apply(snapshot, plan, &executor, err));
    metrics_parts(&cycle->timeline->metrics, cycle->ledger.parts_milli);
    return WEIR_OK;
}

static void remember_time(struct cycle *cycle, uint64_t start_ns)
{
    uint64_t (*mono_ns)(void) = cycle->timeline->options->mono_ns;
    if (mono_ns != NULL) {
        cycle->took_ms =
            grown(cycle->took_ms, &cycle->took_cap, cycle->n_took + 1, sizeof *cycle->took_ms);
        cycle->took_ms[cycle->n_took++] = (float)(mono_ns() - start_ns) / 1e6F;
    }
}

static weir_status run_cycle(struct cycle *cycle, struct weir_error *err)
{
    fill(cycle);
    fill_usage(cycle);
    struct weir_sched_snapshot snapshot = {
        .now_ms = EPOCH_MS + cycle->timeline->now_ms,
        .nodes = cycle->ledger.nodes,
        .n_nodes = cycle->ledger.n_nodes,
        .queues = cycle->queues,
        .n_queues = cycle->n_queues,
        .jobs = cycle->jobs,
        .n_jobs = cycle->n_live,
        .tasks = cycle->tasks,
        .n_tasks = cycle->n_live > 0 ? cycle->first_task[cycle->n_live - 1] +
                                           cycle->jobs[cycle->n_live - 1].n_tasks
                                     : 0,
    };
    struct weir_sched_plan *plan;
    uint64_t (*mono_ns)(void) = cycle->timeline->options->mono_ns;
    uint64_t start_ns = mono_ns != NULL ? mono_ns() : 0;
    WEIR_TRY(weir_sched_plan(&snapshot, cycle->profile, &plan, err));
    remember_time(cycle, start_ns);
    cycle->last_ms = cycle->timeline->now_ms;
    cycle->n_cycles++;
    cycle->n_decisions += plan->n_decisions;
    if (plan->n_waits > 0) {
        memcpy(cycle->never_reason, plan->waits[0].text, sizeof cycle->never_reason);
    }
    weir_status status = carry_out(cycle, &snapshot, plan, err);
    weir_sched_plan_destroy(plan);
    return status;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void arrive(void *self, int32_t job)
{
    struct cycle *cycle = self;
    cycle->live = grown(cycle->live, &cycle->live_cap, cycle->n_live + 1, sizeof *cycle->live);
    cycle->live[cycle->n_live++] = job;
    ledger_open(&cycle->ledger, job);
    cycle->is_dirty = true;
}

static void leave(void *self, int32_t job)
{
    struct cycle *cycle = self;
    for (int32_t k = 0; k < cycle->timeline->jobs[job].n_tasks; k++) {
        ledger_free(&cycle->ledger, job, k);
    }
    note_served(cycle, job);
    ledger_close(&cycle->ledger, job);
    metrics_parts(&cycle->timeline->metrics, cycle->ledger.parts_milli);
    cycle->is_dirty = true;
}

static weir_status decide(void *self, int64_t *out_wake_ms, struct weir_error *err)
{
    struct cycle *cycle = self;
    const struct timeline *timeline = cycle->timeline;
    int64_t now_ms = timeline->now_ms;
    int64_t cycle_ms = (int64_t)(timeline->options->cycle_s * 1000),
            recheck_ms = (int64_t)(timeline->options->recheck_s * 1000);
    bool is_due = cycle->last_ms < 0 || now_ms >= cycle->last_ms + cycle_ms;
    bool is_stale = timeline->metrics.n_waiting > 0 && recheck_ms > 0 && cycle->last_ms >= 0 &&
                    now_ms >= cycle->last_ms + recheck_ms;
    if (is_due && (cycle->is_dirty || is_stale)) {
        WEIR_TRY(run_cycle(cycle, err));
    }
    bool may_change = timeline->metrics.n_running > 0 || timeline_has_more(timeline);
    if (cycle->is_dirty) {
        *out_wake_ms = WEIR_MAX(cycle->last_ms + WEIR_MAX(cycle_ms, 1), now_ms);
    } else if (timeline->metrics.n_waiting > 0 && recheck_ms > 0 && may_change) {
        *out_wake_ms = cycle->last_ms + recheck_ms;
    } else {
        *out_wake_ms = INT64_MAX;
    }
    return WEIR_OK;
}

struct timeline_driver cycle_driver(struct cycle *cycle)
{
    return (struct timeline_driver){cycle, arrive, leave, decide};
}

weir_status cycle_create(struct timeline *timeline, const struct weir_sim_cluster *cluster,
                         const struct weir_sched_queue *queues, int32_t n_queues,
                         const struct weir_sched_profile *profile, struct cycle **out,
                         struct weir_error *err)
{
    struct cycle *cycle = WEIR_ARENA_NEW(timeline->arena, struct cycle);
    cycle->timeline = timeline;
    cycle->profile = profile;
    cycle->last_ms = -1;
    cycle->n_queues = n_queues;
    cycle->queues = WEIR_ARENA_ARRAY(timeline->arena, (size_t)n_queues, struct weir_sched_queue);
    memcpy(cycle->queues, queues, (size_t)n_queues * sizeof *queues);
    cycle->usage = WEIR_ARENA_ARRAY(timeline->arena, (size_t)n_queues, double);
    WEIR_TRY(ledger_init(&cycle->ledger, timeline, cluster, err));
    *out = cycle;
    return WEIR_OK;
}

void cycle_destroy(struct cycle *cycle)
{
    if (cycle == NULL) {
        return;
    }
    ledger_fini(&cycle->ledger);
    free(cycle->live);
    free(cycle->jobs);
    free(cycle->tasks);
    free(cycle->first_task);
    free(cycle->took_ms);
}

static int compare_floats(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

void cycle_report(const struct cycle *cycle, struct weir_sim_report *report)
{
    report->n_cycles = cycle->n_cycles;
    report->n_decisions = cycle->n_decisions;
    if (cycle->timeline->metrics.n_waiting > 0 && cycle->never_reason[0] != '\0') {
        report->never_reason = weir_arena_strdup(&report->arena, cycle->never_reason);
    }
    if (cycle->n_took > 0) {
        double sum = 0;
        for (int32_t i = 0; i < cycle->n_took; i++) {
            sum += (double)cycle->took_ms[i];
        }
        qsort(cycle->took_ms, (size_t)cycle->n_took, sizeof(float), compare_floats);
        report->cycle_mean_ms = sum / cycle->n_took;
        report->cycle_p99_ms = (double)cycle->took_ms[(int64_t)cycle->n_took * 99 / 100];
        report->cycle_max_ms = (double)cycle->took_ms[cycle->n_took - 1];
    }
}
