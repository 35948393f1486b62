#include "control/schedule/demand_private.h"

#include <stdlib.h>
#include <string.h>

static int32_t job_row_of(const struct looking *looking, int32_t task)
{
    int32_t low = 0, high = looking->rows.n_jobs - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (looking->jobs[middle].first_task <= task) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

struct snapshot_job *demand_job_of(const struct looking *looking, int32_t row)
{
    return looking->snapshot->tasks[looking->jobs[row].first_task].job;
}

bool demand_is_state(const struct weir_allocation *allocation, const char *state)
{
    return strcmp(allocation->state, state) == 0;
}

void demand_look_again(struct looking *looking, int64_t at_ms)
{
    looking->out->next_ms = WEIR_MIN(looking->out->next_ms, at_ms);
}

/* ---- rows that plans are applied to ---------------------------------------------------------- */

static void *copy_rows(struct weir_arena *arena, const void *rows, size_t n, size_t cap,
                       size_t size)
{
    void *copy = weir_arena_alloc(arena, (cap + 1) * size);
    if (n > 0) {
        memcpy(copy, rows, n * size);
    }
    return copy;
}

static void begin(struct looking *looking, const struct weir_sched_snapshot *rows)
{
    struct weir_arena *arena = looking->arena;
    looking->rows = *rows;
    looking->n_own = rows->n_nodes;
    looking->nodes_cap = (size_t)rows->n_nodes;
    for (size_t i = 0; i < looking->offers->n_allocations; i++) {
        looking->nodes_cap += (size_t)looking->offers->allocations[i].n_nodes;
    }
    /* Nodes that are thought of stay where a waiting task is placed on them. */
    looking->nodes_cap += (size_t)looking->snapshot->n_pending + DEMAND_NODES_MAX;
    looking->nodes = copy_rows(arena, rows->nodes, (size_t)rows->n_nodes, looking->nodes_cap,
                               sizeof *looking->nodes);
    looking->thoughts = WEIR_ARENA_ARRAY(arena, looking->nodes_cap + 1, struct thought);
    looking->tasks = copy_rows(arena, rows->tasks, (size_t)rows->n_tasks, (size_t)rows->n_tasks,
                               sizeof *looking->tasks);
    looking->jobs = copy_rows(arena, rows->jobs, (size_t)rows->n_jobs, (size_t)rows->n_jobs,
                              sizeof *looking->jobs);
    for (int32_t i = 0; i < looking->n_own; i++) {
        looking->nodes[i].is_cordoned = true; /* what fits there needs no other */
    }
    looking->rows.nodes = looking->nodes;
    looking->rows.tasks = looking->tasks;
    looking->rows.jobs = looking->jobs;
    looking->plans = WEIR_ARENA_ARRAY(arena, looking->offers->n_pools * (WEIR_CLUSTERS_MAX + 1) + 2,
                                      struct weir_sched_plan *);
}

void demand_think_of(struct looking *looking, const struct weir_sched_node *node,
                     const struct thought *thought)
{
    int32_t at = looking->rows.n_nodes++;
    looking->nodes[at] = *node;
    looking->thoughts[at] = *thought;
    looking->thoughts[at].union_with = at;
    looking->thoughts[at].first_job = -1;
}

/* ---- nodes that were asked for --------------------------------------------------------------- */

/* A node tells of its devices a little after it has joined: before, it is still awaited. One that tells of too few for
 * long has no more. */
static bool is_complete(const struct looking *looking, const struct snapshot_node *node,
                        const struct weir_allocation *of)
{
    return node->supply->n_devices >= of->n_accelerators ||
           (of->started_ms > 0 && looking->now_ms - of->started_ms > DEMAND_DEVICES_MS);
}

/* Finds the allocation of each node that is there, and how many nodes of each allocation are. */
static void find_joined(struct looking *looking)
{
    const struct offers *offers = looking->offers;
    size_t n = offers->n_allocations;
    looking->allocation_of = WEIR_ARENA_ARRAY(looking->arena, (size_t)looking->n_own + 1, int32_t);
    looking->n_joined = WEIR_ARENA_ARRAY(looking->arena, n + 1, int32_t);
    looking->is_needed = WEIR_ARENA_ARRAY(looking->arena, n + 1, bool);
    for (int32_t i = 0; i < looking->n_own; i++) {
        const struct snapshot_node *node = &looking->snapshot->nodes[i];
        const struct weir_allocation *of =
            node->facts.left_ms == 0 ? offers_allocation(offers, node->supply->allocation) : NULL;
        looking->allocation_of[i] = of != NULL ? (int32_t)(of - offers->allocations) : -1;
        if (of != NULL && is_complete(looking, node, of)) {
            looking->n_joined[looking->allocation_of[i]]++;
        }
    }
}

bool demand_is_late(const struct looking *looking, const struct weir_allocation *of)
{
    return demand_is_state(of, WEIR_ALLOCATION_RUNS) && of->started_ms > 0 &&
           looking->now_ms - of->started_ms >= DEMAND_JOIN_MS;
}

/* Will what is wanted be asked for? */
static bool will_be_asked(const struct looking *looking, const struct weir_allocation *of)
{
    const struct weir_cluster *cluster = offers_cluster(looking->offers, of->cluster);
    return cluster != NULL && !cluster->is_draining &&
           strcmp(cluster->state, WEIR_CLUSTER_READY) == 0;
}

bool demand_is_given_up(const struct looking *looking, const struct weir_allocation *of)
{
    return (demand_is_state(of, WEIR_ALLOCATION_RELEASING) && of->ending != NULL) ||
           (demand_is_late(looking, of) &&
            looking->n_joined[of - looking->offers->allocations] < of->n_nodes);
}

/* Do its nodes come that are not there? */
static bool is_awaited(const struct looking *looking, const struct weir_allocation *of)
{
    return demand_is_state(of, WEIR_ALLOCATION_WANTED)
               ? will_be_asked(looking, of)
               : !demand_is_state(of, WEIR_ALLOCATION_RELEASING) && !demand_is_late(looking, of);
}

static void think_of_missing(struct looking *looking, const struct weir_allocation *allocation)
{
    const struct weir_pool shape = {.cluster = allocation->cluster,
                                    .cpu_slots = allocation->cpu_slots,
                                    .memory_bytes = allocation->memory_bytes,
                                    .n_accelerators = allocation->n_accelerators,
                                    .accelerator = allocation->accelerator};
    struct weir_sched_node node =
        offers_pool_node(&shape,
                         offers_mark(looking->offers, allocation->cluster, allocation->queue,
                                     allocation->pod, looking->arena),
                         looking->now_ms, looking->arena);
    node.device_milli = (int32_t)allocation->accelerator_milli;
    int64_t n = allocation->n_nodes - looking->n_joined[allocation - looking->offers->allocations];
    for (int64_t i = 0; i < n; i++) {
        node.name = weir_arena_printf(looking->arena, "%s#%lld", allocation->id, (long long)i);
        demand_think_of(looking, &node, &(struct thought){.allocation = allocation});
    }
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void unite(struct looking *looking, int32_t left, int32_t right)
{
    while (looking->thoughts[left].union_with != left) {
        left = looking->thoughts[left].union_with;
    }
    while (looking->thoughts[right].union_with != right) {
        right = looking->thoughts[right].union_with;
    }
    looking->thoughts[WEIR_MAX(left, right)].union_with = WEIR_MIN(left, right);
}

bool demand_is_like(const struct weir_sched_demand *left, const struct weir_sched_demand *right)
{
    return left != NULL && right != NULL && left->cpu_milli == right->cpu_milli &&
           left->memory_bytes == right->memory_bytes && left->n_devices == right->n_devices &&
           left->device_milli == right->device_milli && left->n_extras == 0 && right->n_extras == 0;
}

/* A share by memory counts as the whole device. */
static void take_devices(struct looking *looking, const struct weir_sched_action *action,
                         struct thought *thought)
{
    const struct weir_sched_demand *demand = &looking->tasks[action->task].demand;
    if (thought->taken == NULL && action->n_devices > 0) {
        size_t n = (size_t)looking->nodes[action->node].n_devices;
        thought->taken = WEIR_ARENA_ARRAY(looking->arena, n + 1, int64_t);
    }
    for (int32_t i = 0; i < action->n_devices; i++) {
        int64_t *taken = &thought->taken[action->devices[i]];
        int64_t wants = demand->device_milli > 0 ? demand->device_milli : WEIR_SCHED_DEVICE;
        wants = WEIR_MIN(wants, WEIR_SCHED_DEVICE - *taken);
        thought->n_devices += *taken == 0;
        thought->device_milli += wants;
        *taken += wants;
    }
}

static void place(struct looking *looking, const struct weir_sched_action *action, int32_t *first)
{
    struct weir_sched_task *task = &looking->tasks[action->task];
    int32_t row = job_row_of(looking, action->task);
    struct weir_sched_job *job = &looking->jobs[row];
    task->state = WEIR_SCHED_RUNNING;
    task->node = action->node;
    task->devices = action->devices;
    job->started_ms = job->started_ms > 0 ? job->started_ms : looking->now_ms;
    if (action->node < looking->n_own) {
        return;
    }
    struct thought *thought = &looking->thoughts[action->node];
    thought->like = thought->n_tasks == 0                          ? &task->demand
                    : demand_is_like(thought->like, &task->demand) ? thought->like
                                                                   : NULL;
    thought->n_tasks++;
    thought->cpu_milli += task->demand.cpu_milli;
    thought->memory_bytes += task->demand.memory_bytes;
    take_devices(looking, action, thought);
    thought->first_job = thought->first_job < 0 ? row : thought->first_job;
    thought->is_endless = thought->is_endless || job->time_limit_ms == 0;
    thought->time_ms = WEIR_MAX(thought->time_ms, job->time_limit_ms);
    if (first[row] >= 0) {
        unite(looking, first[row], action->node);
    }
    first[row] = action->node;
}

weir_status demand_plan(struct looking *looking, struct weir_error *err)
{
    struct weir_sched_plan *plan;
    int32_t *first = WEIR_ARENA_ARRAY(looking->arena, (size_t)looking->rows.n_jobs + 1, int32_t);
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        first[j] = -1;
    }
    WEIR_TRY(weir_sched_plan(&looking->rows, &looking->profile, &plan, err));
    looking->plans[looking->n_plans++] = plan;
    for (int32_t i = 0; i < plan->n_actions; i++) {
        if (plan->actions[i].kind == WEIR_SCHED_BIND) {
            place(looking, &plan->actions[i], first);
        }
    }
    return WEIR_OK;
}

/* ---- the look -------------------------------------------------------------------------------- */

static weir_status look(struct looking *looking, const struct weir_sched_snapshot *before,
                        struct weir_error *err)
{
    find_joined(looking);
    for (size_t i = 0; i < looking->offers->n_allocations; i++) {
        looking->has_given_up =
            looking->has_given_up || demand_is_given_up(looking, &looking->offers->allocations[i]);
        if (is_awaited(looking, &looking->offers->allocations[i])) {
            think_of_missing(looking, &looking->offers->allocations[i]);
        }
    }
    if (looking->snapshot->n_pending > 0) {
        if (looking->rows.n_nodes > looking->n_own) {
            WEIR_TRY(demand_plan(looking, err));
        }
        WEIR_TRY(demand_think_of_pools(looking, err));
    }
    demand_take_wanted(looking);
    demand_judge(looking);
    demand_tell(looking, before);
    return WEIR_OK;
}

weir_status demand_look(struct snapshot *snapshot, const struct weir_sched_profile *profile,
                        int64_t now_ms, struct weir_arena *arena, struct demand *out,
                        struct weir_error *err)
{
    const struct weir_sched_snapshot *rows = snapshot_rows(snapshot, now_ms);
    struct looking looking = {.snapshot = snapshot,
                              .offers = &snapshot->offers,
                              .profile = *profile,
                              .now_ms = now_ms,
                              .arena = arena,
                              .out = out};
    *out = (struct demand){.next_ms = INT64_MAX};
    looking.profile.actions = "allocate";
    looking.profile.backfill_depth = looking.profile.forecast_depth = 0;
    begin(&looking, rows);
    weir_status status = look(&looking, rows, err);
    for (size_t i = 0; i < looking.n_plans; i++) {
        weir_sched_plan_destroy(looking.plans[i]);
    }
    return status;
}
