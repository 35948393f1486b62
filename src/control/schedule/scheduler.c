#include "control/scheduler.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "control/schedule/demand.h"
#include "control/schedule/eviction.h"
#include "control/schedule/explain.h"
#include "control/schedule/guarantee.h"
#include "job/changes.h"
#include "job/elastic.h"
#include "job/task_device.h"
#include "sched/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Expected starts move with the clock; they are looked at again so often. */
#define FORECAST_EVERY_MS 60000
#define MINUTE_MS         60000
/* Clusters are looked at at most so often, and the look takes at most a twentieth of the time. */
#define DEMAND_LEAST_MS  100
#define DEMAND_MOST_MS   2000
#define DEMAND_PART      20
#define DEMAND_MAX_BYTES ((size_t)4 << 30)

/* The tasks of one job that a plan starts. */
struct binding {
    struct snapshot_job *job;
    struct control_bind *tasks;
    size_t n_tasks, cap;
    bool is_bound; /* Of the last run of its transaction. */
};

/* What a plan says of a job that waits. */
struct note {
    struct snapshot_job *job;
    const char *text;
    int64_t expected_start_ms;
    bool is_forecast; /* It moves with the clock: jobs may end earlier or later. */
    bool is_due;
};

enum node_check { NODE_UNKNOWN, NODE_TAKES_TASKS, NODE_TAKES_NONE };

struct scheduler {
    struct scheduler_config config;
    struct snapshot snapshot;
    struct weir_sched_profile profile;
    struct weir_arena arena; /* Of what a plan came to; freed by the commit. */
    struct binding *bindings;
    int32_t *binding_of; /* Per task row: the job's binding, +1; 0: none. */
    bool *is_placed;     /* Per task row: the plan gives it a place. */
    struct note *notes;
    size_t n_bindings, n_notes;
    /** While a plan is taken apart: what it nominates, and what stands. */
    struct nominated nominated;
    struct evictions evictions;
    uint8_t *checked;     /* Per node: enum node_check, of one transaction. */
    struct demand demand; /* What the last look at clusters found. */
    struct weir_arena demand_arena;
    int64_t demanded_ms, demand_due_ms, demand_pace_ms;
    uint64_t told;      /* Hash of what jobs were told of clusters last. */
    bool is_demand_old; /* Something was planned with since. */
    int64_t replan_ms;  /* Plan by then though nothing has changed. */
    int32_t n_bound, n_evicted;
    bool is_again; /* Something was left out: another cycle, at once. */
};

struct scheduler *scheduler_create(const struct scheduler_config *config)
{
    struct scheduler *scheduler = weir_xalloc(sizeof *scheduler);
    scheduler->config = *config;
    scheduler->replan_ms = scheduler->demand_due_ms = INT64_MAX;
    snapshot_init(&scheduler->snapshot);
    if (config->drivers != NULL) {
        scheduler->snapshot.offers.drivers = config->drivers;
    }
    weir_arena_init(&scheduler->arena, (size_t)4 << 30);
    weir_arena_init(&scheduler->demand_arena, DEMAND_MAX_BYTES);
    return scheduler;
}

void scheduler_destroy(struct scheduler *scheduler)
{
    if (scheduler != NULL) {
        snapshot_fini(&scheduler->snapshot);
        weir_arena_fini(&scheduler->arena);
        weir_arena_fini(&scheduler->demand_arena);
        free(scheduler);
    }
}

const struct snapshot *scheduler_snapshot(const struct scheduler *scheduler)
{
    return &scheduler->snapshot;
}

int32_t scheduler_n_evicted(const struct scheduler *scheduler)
{
    return scheduler->n_evicted;
}

int32_t scheduler_n_bound(const struct scheduler *scheduler)
{
    return scheduler->n_bound;
}

/* ---- read ------------------------------------------------------------------------------------ */

struct reading {
    struct scheduler *scheduler;
    int64_t now_ms, since_ms;
};

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct reading *reading = context;
    return snapshot_read(&reading->scheduler->snapshot, txn, reading->now_ms, reading->since_ms,
                         err);
}

weir_status scheduler_read(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms,
                           struct weir_error *err)
{
    struct reading reading = {scheduler, now_ms, since_ms};
    return weir_store_read(scheduler->config.store, read_in, &reading, err);
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* What one plan is taken apart with. */
struct taking {
    struct scheduler *scheduler;
    const struct weir_sched_snapshot *rows;
};

static struct binding *binding_of(struct scheduler *scheduler, int32_t row)
{
    const struct snapshot_task *of = &scheduler->snapshot.tasks[row];
    /* The rows of one job lie together, so its first task's row stands for all. */
    int32_t first = row;
    while (first > 0 && scheduler->snapshot.tasks[first - 1].job == of->job) {
        first--;
    }
    if (scheduler->binding_of[first] == 0) {
        scheduler->bindings[scheduler->n_bindings++] =
            (struct binding){.job = of->job,
                             .tasks = WEIR_ARENA_ARRAY(&scheduler->arena, of->job->state.n_tasks,
                                                       struct control_bind)};
        scheduler->binding_of[first] = (int32_t)scheduler->n_bindings;
    }
    return &scheduler->bindings[scheduler->binding_of[first] - 1];
}

/* A node is given tasks until their text is too much: the rest of a plan goes elsewhere, next time. */
static bool has_room_for_text(const struct scheduler *scheduler, const struct weir_sched_part *part)
{
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct snapshot_node *node = &scheduler->snapshot.nodes[part->actions[i]->node];
        if (node->text_bytes >= SNAPSHOT_NODE_TEXT_MAX_BYTES) {
            return false;
        }
    }
    return true;
}

/* The first free slices of the profile; the planner has only counted them. @return Enough? */
static bool take_slices(struct supply *supply, const struct weir_task *task, int64_t *out)
{
    int64_t n = 0;
    for (int32_t i = 0; i < supply->n_devices && n < task->n_accelerators; i++) {
        const struct supply_device *device = &supply->devices[i];
        if (device->held_milli == 0 && supply_device_is_fit(device) &&
            strcmp(device->profile, task->mig_profile) == 0) {
            out[n++] = device->idx;
        }
    }
    return n == task->n_accelerators;
}

/* The devices of a planned task: "0,3". NULL: it has none, or (false) there are too few. */
static bool name_devices(struct scheduler *scheduler, const struct weir_sched_action *action,
                         const struct weir_task *task, const char **out)
{
    int64_t indices[WEIR_TASK_DEVICES_MAX];
    struct supply *supply = scheduler->snapshot.nodes[action->node].supply;
    bool is_enough = task->mig_profile != NULL ? take_slices(supply, task, indices)
                                               : task->n_accelerators == action->n_devices;
    *out = NULL;
    for (int64_t i = 0; i < task->n_accelerators && is_enough; i++) {
        int64_t idx = task->mig_profile != NULL ? indices[i] : supply->slots[action->devices[i]];
        *out = *out == NULL ? weir_arena_printf(&scheduler->arena, "%lld", (long long)idx)
                            : weir_arena_printf(&scheduler->arena, "%s,%lld", *out, (long long)idx);
        supply_hold(supply, idx, task);
    }
    return is_enough;
}

static void nominate(struct scheduler *scheduler, const struct weir_sched_action *action)
{
    const struct snapshot_node *node = &scheduler->snapshot.nodes[action->node];
    int64_t devices[WEIR_TASK_DEVICES_MAX];
    for (int32_t i = 0; i < action->n_devices; i++) {
        devices[i] = node->supply->slots[action->devices[i]];
    }
    const struct nominated_place place = {scheduler->snapshot.row_tasks[action->task].name,
                                          node->facts.name, devices, action->n_devices};
    nominated_add(&scheduler->nominated, &place);
}

/* Places of an earlier plan stand while their job waits for room that comes. What has become void among
 * them, the planner drops when it is told of it. */
static void keep_nominated(struct scheduler *scheduler, const struct weir_sched_snapshot *rows,
                           const struct weir_sched_wait *wait)
{
    const struct weir_sched_job *job = &rows->jobs[wait->job];
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        const struct weir_sched_task *row = &rows->tasks[t];
        const struct nominated_place *place =
            row->state == WEIR_SCHED_PIPELINED && !scheduler->is_placed[t]
                ? nominated_find(&scheduler->snapshot.nominated, row->name)
                : NULL;
        if (place != NULL) {
            nominated_add(&scheduler->nominated, place);
        }
    }
}

/* Can something of it start now? An elastic gang begins without what has to wait for its place. */
static bool is_begun(const struct weir_sched_part *part, const struct snapshot_job *job)
{
    bool has_bind = false;
    for (int32_t i = 0; i < part->n_actions; i++) {
        has_bind = has_bind || part->actions[i]->kind == WEIR_SCHED_BIND;
    }
    return weir_job_is_elastic(&job->state) ? has_bind : weir_sched_part_is_bound(part);
}

static weir_status take_places(void *context, const struct weir_sched_part *part,
                               struct weir_error *err)
{
    (void)err;
    struct taking *taking = context;
    struct scheduler *scheduler = taking->scheduler;
    const struct snapshot_job *job = scheduler->snapshot.tasks[part->actions[0]->task].job;
    for (int32_t i = 0; i < part->n_actions; i++) {
        scheduler->is_placed[part->actions[i]->task] = true;
        if (part->actions[i]->kind == WEIR_SCHED_PIPELINE) {
            nominate(scheduler, part->actions[i]);
        }
    }
    if (!is_begun(part, job)) {
        return WEIR_OK; /* It has a place that others still leave: it waits. */
    }
    if (!has_room_for_text(scheduler, part)) {
        scheduler->is_again = true;
        return WEIR_OK;
    }
    struct binding *binding = binding_of(scheduler, part->actions[0]->task);
    for (int32_t i = 0; i < part->n_actions; i++) {
        const struct weir_sched_action *action = part->actions[i];
        if (action->kind != WEIR_SCHED_BIND) {
            continue;
        }
        int32_t task = scheduler->snapshot.tasks[action->task].task;
        struct snapshot_node *node = &scheduler->snapshot.nodes[action->node];
        const struct weir_task *asks = &binding->job->state.tasks[task];
        const char *devices;
        node->text_bytes += asks->definition_bytes;
        if (name_devices(scheduler, action, asks, &devices)) {
            binding->tasks[binding->n_tasks++] = (struct control_bind){
                .task = (size_t)task, .node = node->facts.name, .devices = devices};
        }
    }
    return WEIR_OK;
}

/* Nearer than this no start is told: what has not begun by then goes on longer than was expected. */
#define START_LEAST_MS 5000

/* Does an expected start rest on a run time that is known, of a job that runs? Of others the planner
 * supposes something, which is good enough to keep room by, but is not told to people. */
static bool is_start_known(const struct weir_sched_snapshot *rows,
                           const struct weir_sched_wait *wait)
{
    bool is_of_time =
        wait->code == WEIR_SCHED_WAIT_CLOSING || wait->code == WEIR_SCHED_WAIT_NODE_RESERVED;
    if (wait->expected_start_ms <= 0 || wait->after_job < 0) {
        return wait->expected_start_ms > 0 && is_of_time; /* The end of a window is known. */
    }
    /* One that is about to end, as it was expected to, often goes on: nothing is known of when it ends. */
    const struct weir_sched_job *after = &rows->jobs[wait->after_job];
    return after->started_ms > 0 &&
           rows->now_ms + START_LEAST_MS < after->started_ms + after->expected_run_ms &&
           rows->now_ms + START_LEAST_MS < wait->expected_start_ms;
}

static weir_status take_evictions(void *context, const struct weir_sched_part *part,
                                  struct weir_error *err)
{
    (void)err;
    struct taking *taking = context;
    evictions_take(&taking->scheduler->evictions, &taking->scheduler->snapshot, part,
                   &taking->scheduler->arena);
    return WEIR_OK;
}

/* Why it waits. Who was stopped for others is told so until it is placed again. */
static const char *tell_wait(struct scheduler *scheduler, const struct snapshot_job *job,
                             const struct weir_sched_wait *wait)
{
    const char *eviction = job->state.job.eviction;
    const char *why = explain_wait(&scheduler->snapshot, job, wait, &scheduler->arena);
    const struct demand_wait *asked = demand_wait_of(&scheduler->demand, job->state.job.id);
    if (asked != NULL) {
        why = weir_arena_printf(&scheduler->arena, "%s; %s", why, asked->text);
    }
    return eviction == NULL ? why
                            : weir_arena_printf(&scheduler->arena, "%s; now %s", eviction, why);
}

/* When a cluster expects to give what was asked of it for the job; 0: nobody says. */
static int64_t asked_start_ms(const struct scheduler *scheduler, const struct snapshot_job *job)
{
    const struct demand_wait *asked = demand_wait_of(&scheduler->demand, job->state.job.id);
    return asked != NULL ? asked->starts_ms : 0;
}

/* Of a service's replicas the first that waits speaks for it. */
static weir_status take_wait(void *context, const struct weir_sched_wait *wait,
                             struct weir_error *err)
{
    (void)err;
    struct taking *taking = context;
    struct scheduler *scheduler = taking->scheduler;
    struct weir_sched_wait said = *wait;
    if (!is_start_known(taking->rows, wait)) {
        said.expected_start_ms = 0;
        said.text[said.why_bytes] = '\0';
    }
    const struct weir_sched_job *row = &taking->rows->jobs[wait->job];
    struct snapshot_job *job = scheduler->snapshot.tasks[row->first_task].job;
    if (wait->code == WEIR_SCHED_WAIT_ROOM_COMING) {
        keep_nominated(scheduler, taking->rows, wait);
    }
    if (said.expected_start_ms == 0) {
        said.expected_start_ms = asked_start_ms(scheduler, job);
    }
    bool is_another = scheduler->n_notes > 0 && scheduler->notes[scheduler->n_notes - 1].job == job;
    if (wait->code != WEIR_SCHED_WAIT_NONE && !is_another) {
        scheduler->notes[scheduler->n_notes++] =
            (struct note){.job = job,
                          .text = tell_wait(scheduler, job, &said),
                          .expected_start_ms = said.expected_start_ms,
                          .is_forecast = said.expected_start_ms > 0 && said.after_job >= 0};
    }
    return WEIR_OK;
}

static weir_status take_plan(struct scheduler *scheduler, const struct weir_sched_snapshot *rows,
                             const struct weir_sched_plan *plan, struct weir_error *err)
{
    struct taking taking = {scheduler, rows};
    const struct weir_sched_executor executor = {
        .evict = take_evictions, .place = take_places, .wait = take_wait, .context = &taking};
    struct weir_arena *arena = &scheduler->arena;
    evictions_begin(&scheduler->evictions, plan, arena);
    scheduler->bindings = WEIR_ARENA_ARRAY(arena, (size_t)plan->n_actions + 1, struct binding);
    scheduler->binding_of = WEIR_ARENA_ARRAY(arena, (size_t)rows->n_tasks + 1, int32_t);
    scheduler->notes = WEIR_ARENA_ARRAY(arena, (size_t)plan->n_waits + 1, struct note);
    scheduler->checked = WEIR_ARENA_ARRAY(arena, (size_t)rows->n_nodes + 1, uint8_t);
    scheduler->is_placed = WEIR_ARENA_ARRAY(arena, (size_t)rows->n_tasks + 1, bool);
    nominated_init(&scheduler->nominated);
    weir_status status = weir_sched_apply(rows, plan, &executor, err);
    nominated_end(&scheduler->nominated, &scheduler->snapshot.nominated);
    return status;
}

static void forget_plan(struct scheduler *scheduler)
{
    weir_arena_fini(&scheduler->arena);
    scheduler->n_bindings = scheduler->n_notes = 0;
    scheduler->evictions = (struct evictions){0};
}

weir_status scheduler_plan(struct scheduler *scheduler, int64_t now_ms, struct weir_error *err)
{
    struct snapshot *snapshot = &scheduler->snapshot;
    struct weir_sched_plan *plan;
    forget_plan(scheduler);
    scheduler->is_again = false;
    if (!snapshot->is_changed && now_ms < scheduler->replan_ms) {
        return WEIR_OK;
    }
    scheduler->replan_ms = snapshot->queues.is_timed ? now_ms + MINUTE_MS - now_ms % MINUTE_MS
                                                     : INT64_MAX; /* Shares may be others then. */
    WEIR_TRY(
        queue_tree_rules(&snapshot->queues, snapshot->queues.n_set > 0, &scheduler->profile, err));
    const struct weir_sched_snapshot *rows = snapshot_rows(snapshot, now_ms);
    if (snapshot->n_pending > 0 || snapshot->n_leaving > 0) {
        WEIR_TRY(weir_sched_plan(rows, &scheduler->profile, &plan, err));
        weir_status status = take_plan(scheduler, rows, plan, err);
        weir_sched_plan_destroy(plan);
        if (status != WEIR_OK) {
            forget_plan(scheduler);
            return status;
        }
    }
    snapshot->is_changed = false;
    scheduler->is_demand_old = true;
    return WEIR_OK;
}

/* ---- commit: binds --------------------------------------------------------------------------- */

/* One write transaction: a range of bindings, or the notes. */
struct writing {
    struct scheduler *scheduler;
    struct control control;
    int64_t since_ms;
    size_t first, n;
};

/* A node may have gone silent, been drained, tainted or become smaller since the plan. */
static bool is_node_there(struct writing *writing, struct weir_txn *txn, const char *name)
{
    struct scheduler *scheduler = writing->scheduler;
    const struct snapshot *snapshot = &scheduler->snapshot;
    struct weir_error err;
    struct weir_node node;
    int32_t at = snapshot_find_node(snapshot, name);
    if (scheduler->checked[at] == NODE_UNKNOWN) {
        const struct weir_node *planned = &snapshot->nodes[at].facts;
        bool takes = weir_node_look(txn, name, writing->control.arena, &node, &err) == WEIR_OK &&
                     weir_node_takes_tasks(&node, writing->control.now_ms, writing->since_ms) &&
                     node.cpu_slots >= planned->cpu_slots &&
                     node.memory_bytes >= planned->memory_bytes &&
                     supply_is_of(snapshot->nodes[at].supply, &node);
        scheduler->checked[at] = takes ? NODE_TAKES_TASKS : NODE_TAKES_NONE;
    }
    return scheduler->checked[at] == NODE_TAKES_TASKS;
}

static weir_status bind_one(struct writing *writing, struct weir_txn *txn, struct binding *binding,
                            struct weir_error *err)
{
    const struct weir_job *job = &binding->job->state.job;
    binding->is_bound = false;
    for (size_t i = 0; i < binding->n_tasks; i++) {
        if (!is_node_there(writing, txn, binding->tasks[i].node)) {
            return WEIR_OK;
        }
    }
    return control_job_bind(&writing->control, txn, job->id, job->revision, binding->tasks,
                            binding->n_tasks, &binding->is_bound, err);
}

static weir_status bind_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct writing *writing = context;
    struct scheduler *scheduler = writing->scheduler;
    json_array_clear(writing->control.publish);
    memset(scheduler->checked, NODE_UNKNOWN, (size_t)scheduler->snapshot.n_nodes);
    for (size_t i = 0; i < writing->n; i++) {
        WEIR_TRY(bind_one(writing, txn, &scheduler->bindings[writing->first + i], err));
    }
    return WEIR_OK;
}

static weir_status evict_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct writing *writing = context;
    json_array_clear(writing->control.publish);
    return evictions_write(&writing->scheduler->evictions, writing->first, writing->n,
                           &writing->control, txn, err);
}

/* Run a transaction with an arena and publications of its own. */
static weir_status write_range(struct scheduler *scheduler, weir_txn_fn fn, size_t first, size_t n,
                               int64_t now_ms, int64_t since_ms, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct writing writing = {.scheduler = scheduler,
                              .control = {.arena = &arena,
                                          .now_ms = now_ms,
                                          .actor = "system",
                                          .state_dir = scheduler->config.state_dir,
                                          .server_url = scheduler->config.server_url,
                                          .publish = json_array()},
                              .since_ms = since_ms,
                              .first = first,
                              .n = n};
    weir_status status = weir_store_write(scheduler->config.store, fn, &writing, err);
    if (status == WEIR_OK) {
        control_publish_all(&scheduler->config.listener, writing.control.publish);
    }
    json_decref(writing.control.publish);
    weir_arena_fini(&arena);
    return status;
}

/* A job that asks for devices and was left out is tried again a little later: were it for ever that
 * the store says no where the planner says yes, nothing else would be done. */
static void count_bound(struct scheduler *scheduler, size_t first, size_t n, int64_t now_ms)
{
    for (size_t i = first; i < first + n; i++) {
        const struct binding *binding = &scheduler->bindings[i];
        bool has_devices = binding->n_tasks > 0 && binding->tasks[0].devices != NULL;
        scheduler->n_bound += binding->is_bound ? (int32_t)binding->n_tasks : 0;
        scheduler->is_again = scheduler->is_again || (!binding->is_bound && !has_devices);
        if (!binding->is_bound && has_devices) {
            binding->job->held_until_ms = now_ms + SCHEDULER_DEVICES_AGAIN_MS;
        }
    }
}

/* Jobs that cannot be written together are written one by one, so that one fails alone. */
static void bind_alone(struct scheduler *scheduler, size_t i, int64_t now_ms, int64_t since_ms)
{
    struct weir_error err = {0};
    struct binding *binding = &scheduler->bindings[i];
    const char *job = binding->job->state.job.id;
    int64_t held_ms = SCHEDULER_AGAIN_MS;
    weir_status status = write_range(scheduler, bind_in, i, 1, now_ms, since_ms, &err);
    if (scheduler->config.wrote != NULL) {
        held_ms = scheduler->config.wrote(scheduler->config.context, job, status, &err);
    } else if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "scheduler_cannot_bind", WEIR_KV_STR("job", job),
                 WEIR_KV_STR("error", err.message));
    }
    binding->job->held_until_ms = status == WEIR_OK ? 0 : now_ms + held_ms;
    if (status == WEIR_OK) {
        count_bound(scheduler, i, 1, now_ms);
    }
}

/* Bindings from `first` on that share a transaction; who could not be bound before is alone. */
static size_t batch_size(const struct scheduler *scheduler, size_t first)
{
    size_t n = 0;
    while (n < SCHEDULER_BATCH_JOBS && first + n < scheduler->n_bindings &&
           scheduler->bindings[first + n].job->held_until_ms == 0) {
        n++;
    }
    return WEIR_MAX(n, (size_t)1);
}

static void commit_binds(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms)
{
    struct weir_error err;
    for (size_t i = 0, n; i < scheduler->n_bindings; i += n) {
        n = batch_size(scheduler, i);
        bool is_held = scheduler->bindings[i].job->held_until_ms > 0;
        if (!is_held && write_range(scheduler, bind_in, i, n, now_ms, since_ms, &err) == WEIR_OK) {
            count_bound(scheduler, i, n, now_ms);
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            bind_alone(scheduler, i + k, now_ms, since_ms);
        }
    }
}

/* Before the binds, so that what is asked to leave is known to be. Who cannot be written is left as it
 * is: the next plan asks again. */
static void commit_evictions(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms)
{
    size_t n_all = scheduler->evictions.n;
    for (size_t i = 0, n; i < n_all; i += n) {
        struct weir_error err;
        n = WEIR_MIN(n_all - i, (size_t)SCHEDULER_BATCH_JOBS);
        if (write_range(scheduler, evict_in, i, n, now_ms, since_ms, &err) == WEIR_OK) {
            continue;
        }
        for (size_t k = i; k < i + n; k++) {
            if (write_range(scheduler, evict_in, k, 1, now_ms, since_ms, &err) != WEIR_OK) {
                weir_log(WEIR_LOG_ERROR, "scheduler_cannot_evict",
                         WEIR_KV_STR("job", scheduler->evictions.items[k].job->state.job.id),
                         WEIR_KV_STR("error", err.message));
                scheduler->replan_ms = WEIR_MIN(scheduler->replan_ms, now_ms + SCHEDULER_AGAIN_MS);
            }
        }
    }
}

/* ---- commit: reasons ------------------------------------------------------------------------- */

static bool says_something_new(const struct note *note)
{
    const struct weir_job *job = &note->job->state.job;
    return job->reason == NULL || strcmp(job->reason, note->text) != 0 ||
           job->expected_start_ms != note->expected_start_ms;
}

/* Which reasons are written now. Those that have to wait are looked at again in time. */
static size_t choose_notes(struct scheduler *scheduler, int64_t now_ms)
{
    size_t n = 0;
    for (size_t i = 0; i < scheduler->n_notes; i++) {
        struct note *note = &scheduler->notes[i];
        int64_t due_ms = note->job->state.job.reason == NULL
                             ? now_ms
                             : note->job->noted_ms + SCHEDULER_NOTE_EVERY_MS;
        int64_t told_ms = note->job->state.job.expected_start_ms;
        if (note->is_forecast) {
            scheduler->replan_ms = WEIR_MIN(scheduler->replan_ms, now_ms + FORECAST_EVERY_MS);
            scheduler->replan_ms =
                WEIR_MIN(scheduler->replan_ms, note->expected_start_ms - START_LEAST_MS);
        }
        if (told_ms > 0 && told_ms <= now_ms + START_LEAST_MS) {
            due_ms = now_ms; /* what was said has not come true */
        }
        if (!says_something_new(note)) {
            continue;
        }
        note->is_due = due_ms <= now_ms && n < SCHEDULER_NOTES_MAX;
        n += note->is_due;
        if (!note->is_due) {
            scheduler->replan_ms = WEIR_MIN(scheduler->replan_ms, WEIR_MAX(due_ms, now_ms));
        }
    }
    return n;
}

static weir_status note_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct writing *writing = context;
    for (size_t i = 0; i < writing->scheduler->n_notes; i++) {
        const struct note *note = &writing->scheduler->notes[i];
        const struct weir_job *job = &note->job->state.job;
        if (note->is_due) {
            WEIR_TRY(weir_job_note_wait(txn, job->id, job->revision, note->text,
                                        note->expected_start_ms, err));
        }
    }
    return WEIR_OK;
}

static void commit_notes(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms)
{
    struct weir_error err;
    if (choose_notes(scheduler, now_ms) == 0) {
        return;
    }
    if (write_range(scheduler, note_in, 0, 0, now_ms, since_ms, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "scheduler_cannot_note", WEIR_KV_STR("error", err.message));
        scheduler->replan_ms = WEIR_MIN(scheduler->replan_ms, now_ms + SCHEDULER_AGAIN_MS);
        return;
    }
    for (size_t i = 0; i < scheduler->n_notes; i++) {
        const struct note *note = &scheduler->notes[i];
        if (note->is_due) {
            snapshot_note_wait(&scheduler->snapshot, note->job, note->text, note->expected_start_ms,
                               now_ms);
        }
    }
}

/* When a held job asks again, or time makes a job want something. */
static int64_t next_of_jobs(const struct scheduler *scheduler, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (int32_t i = 0; i < scheduler->snapshot.n_jobs; i++) {
        const struct snapshot_job *job = scheduler->snapshot.jobs[i];
        next_ms = WEIR_MIN(next_ms, weir_job_next_tick_ms(&job->state, now_ms));
        if (job->held_until_ms > now_ms) {
            next_ms = WEIR_MIN(next_ms, job->held_until_ms);
        }
    }
    return next_ms;
}

int64_t scheduler_commit(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms)
{
    scheduler->n_bound = 0;
    commit_evictions(scheduler, now_ms, since_ms);
    scheduler->n_evicted = evictions_n_told(&scheduler->evictions);
    commit_binds(scheduler, now_ms, since_ms);
    commit_notes(scheduler, now_ms, since_ms);
    forget_plan(scheduler);
    if (scheduler->is_again) {
        scheduler->snapshot.is_changed = true;
        scheduler->replan_ms = now_ms;
    }
    int64_t next_ms =
        WEIR_MIN(next_of_jobs(scheduler, now_ms), snapshot_next_ms(&scheduler->snapshot, now_ms));
    if (scheduler->snapshot.save_due_ms > now_ms) {
        next_ms = WEIR_MIN(next_ms, scheduler->snapshot.save_due_ms);
    }
    scheduler->replan_ms = WEIR_MIN(scheduler->replan_ms, next_ms);
    return scheduler->replan_ms;
}

/* ---- what is asked of clusters --------------------------------------------------------------- */

static weir_status demand_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct writing *writing = context;
    const struct demand *demand = &writing->scheduler->demand;
    int64_t now_ms = writing->control.now_ms;
    for (size_t i = 0; i < demand->n_wanted; i++) {
        WEIR_TRY(weir_allocation_insert(txn, &demand->wanted[i], now_ms, err));
    }
    for (size_t i = 0; i < demand->n_idle; i++) {
        WEIR_TRY(weir_allocation_note_idle(txn, demand->idle[i]->id, now_ms, err));
    }
    for (size_t i = 0; i < demand->n_needed; i++) {
        WEIR_TRY(weir_allocation_note_idle(txn, demand->needed[i]->id, 0, err));
    }
    for (size_t i = 0; i < demand->n_over; i++) {
        WEIR_TRY(weir_allocation_release(txn, demand->over[i]->id, "nothing needed it any more",
                                         now_ms, err));
    }
    for (size_t i = 0; i < demand->n_missing; i++) {
        WEIR_TRY(weir_allocation_give_up(
            txn, demand->missing[i]->id,
            "not all of its nodes have joined: can they reach this server at its address?", now_ms,
            err));
    }
    return WEIR_OK;
}

static int64_t demand_due_ms(const struct scheduler *scheduler)
{
    int64_t soon_ms = scheduler->demanded_ms + scheduler->demand_pace_ms;
    return scheduler->is_demand_old ? WEIR_MIN(soon_ms, scheduler->demand_due_ms)
                                    : scheduler->demand_due_ms;
}

/* Is it worth a look: has something changed, or is it time? What was bound or evicted just now is planned with first. */
static bool is_demand_due(const struct scheduler *scheduler, int64_t now_ms)
{
    const struct snapshot *snapshot = &scheduler->snapshot;
    return snapshot_has_clusters(snapshot) && !scheduler->is_again && scheduler->n_bound == 0 &&
           scheduler->n_evicted == 0 && now_ms >= demand_due_ms(scheduler);
}

static uint64_t hash_of_waits(const struct demand *demand)
{
    uint64_t hash = WEIR_HASH_BEGIN;
    for (size_t i = 0; i < demand->n_waits; i++) {
        hash = weir_hash_text(weir_hash_text(hash, demand->waits[i].job), demand->waits[i].text);
    }
    return hash;
}

weir_status scheduler_demand(struct scheduler *scheduler, int64_t now_ms, int64_t since_ms,
                             int64_t *out_next_ms, bool *out_is_asked, struct weir_error *err)
{
    struct snapshot *snapshot = &scheduler->snapshot;
    struct demand *demand = &scheduler->demand;
    *out_is_asked = false;
    *out_next_ms = INT64_MAX;
    if (!is_demand_due(scheduler, now_ms)) {
        *out_next_ms = snapshot_has_clusters(snapshot) ? demand_due_ms(scheduler) : INT64_MAX;
        return WEIR_OK;
    }
    *demand = (struct demand){.next_ms = INT64_MAX};
    weir_arena_fini(&scheduler->demand_arena);
    weir_arena_init(&scheduler->demand_arena, DEMAND_MAX_BYTES);
    scheduler->demanded_ms = now_ms;
    scheduler->is_demand_old = false;
    int64_t began_ms = weir_mono_ms();
    WEIR_TRY(
        demand_look(snapshot, &scheduler->profile, now_ms, &scheduler->demand_arena, demand, err));
    int64_t pace_ms = DEMAND_PART * (weir_mono_ms() - began_ms);
    scheduler->demand_pace_ms =
        WEIR_MIN(WEIR_MAX(pace_ms, (int64_t)DEMAND_LEAST_MS), (int64_t)DEMAND_MOST_MS);
    scheduler->demand_due_ms = demand->next_ms;
    uint64_t told = hash_of_waits(demand);
    snapshot->is_changed =
        snapshot->is_changed || told != scheduler->told; /* written by the next plan */
    scheduler->told = told;
    if (demand->n_wanted + demand->n_idle + demand->n_needed + demand->n_over + demand->n_missing >
        0) {
        WEIR_TRY(write_range(scheduler, demand_in, 0, 0, now_ms, since_ms, err));
    }
    *out_is_asked = demand->n_wanted + demand->n_over + demand->n_missing > 0;
    *out_next_ms = demand->next_ms;
    return WEIR_OK;
}

void scheduler_sample_queues(struct scheduler *scheduler, int64_t now_ms, struct weir_arena *arena,
                             struct weir_queue_sample **out, size_t *out_n)
{
    const struct weir_sched_snapshot *rows = snapshot_rows(&scheduler->snapshot, now_ms);
    *out = WEIR_ARENA_ARRAY(arena, (size_t)rows->n_queues + 1, struct weir_queue_sample);
    *out_n = (size_t)rows->n_queues;
    queue_sample(&scheduler->snapshot, *out);
}

void scheduler_past_now(const struct scheduler *scheduler, const struct weir_queue_sample *samples,
                        size_t n, struct weir_arena *arena, struct weir_past_now *out)
{
    struct weir_past_level *levels = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_past_level);
    struct weir_sched_amount has;
    guarantee_capacity(&scheduler->snapshot.rows, &has);
    *out = (struct weir_past_now){.device_milli = (double)has.of[WEIR_SCHED_ACCELERATOR],
                                  .cpu_milli = (double)has.of[WEIR_SCHED_CPU],
                                  .memory_bytes = (double)has.of[WEIR_SCHED_MEMORY],
                                  .levels = levels};
    for (size_t i = 0; i < n; i++) {
        if (samples[i].project != NULL && samples[i].memory_bytes > 0) {
            levels[out->n_levels++] =
                (struct weir_past_level){samples[i].project, (double)samples[i].memory_bytes};
        }
    }
}
