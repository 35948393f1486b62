#include "control/schedule/demand.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASK_KEY "weir/ask" /* taint of nodes that are thought of: by those that may ask for them */

/* What stands behind the node of a row that is not there. */
struct thought {
    const struct weir_allocation *allocation; /* It was asked for; NULL: it is thought of. */
    const struct weir_pool *pool;
    int32_t union_with; /* Nodes that belong to one gang: another's index, at last its own. */
    int64_t cpu_milli, memory_bytes;
    int64_t n_devices, device_milli;
    const struct weir_sched_demand
        *like; /* Of the first task there, if all of the gang's are like it; NULL. */
    int32_t n_tasks;
    int32_t first_job; /* Row; -1: nothing was placed there. */
    bool is_endless;   /* A job of unknown length was. */
    int64_t time_ms;   /* The longest limit of those there. */
};

struct looking {
    struct snapshot *snapshot;
    const struct offers *offers;
    struct weir_sched_profile profile;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_sched_snapshot rows; /* Copies that plans are applied to. */
    struct weir_sched_node *nodes;
    struct weir_sched_task *tasks;
    struct weir_sched_job *jobs;
    int32_t n_own; /* Nodes that are there. */
    struct thought *thoughts;
    size_t nodes_cap;
    struct weir_sched_plan **plans; /* What was placed points into them. */
    size_t n_plans;
    int32_t *
        allocation_of; /* Per node that is there: index of its allocation; -1: of none that is open. */
    int32_t *n_joined; /* Per allocation: nodes of it that are there. */
    bool *is_needed;   /* Per allocation: something runs, or is placed, on a node of it. */
    struct demand *out;
};

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

static struct snapshot_job *job_of(const struct looking *looking, int32_t row)
{
    return looking->snapshot->tasks[looking->jobs[row].first_task].job;
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
    looking->nodes_cap += looking->offers->n_pools * DEMAND_NODES_MAX;
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

static void think_of(struct looking *looking, const struct weir_sched_node *node,
                     const struct thought *thought)
{
    int32_t at = looking->rows.n_nodes++;
    looking->nodes[at] = *node;
    looking->thoughts[at] = *thought;
    looking->thoughts[at].union_with = at;
    looking->thoughts[at].first_job = -1;
}

static struct weir_sched_label *labels_of(struct looking *looking, const char *cluster,
                                          const char *model, int32_t *out_n)
{
    struct weir_sched_label *labels = WEIR_ARENA_ARRAY(looking->arena, 2, struct weir_sched_label);
    *out_n = 0;
    labels[(*out_n)++] = (struct weir_sched_label){OFFERS_CLUSTER_KEY, cluster};
    if (model != NULL) {
        labels[(*out_n)++] = (struct weir_sched_label){SUPPLY_LABEL_MODEL, model};
    }
    return labels;
}

static struct weir_sched_taint *taints_of(struct looking *looking, const char *cluster)
{
    struct weir_sched_taint *taints = WEIR_ARENA_ARRAY(looking->arena, 2, struct weir_sched_taint);
    taints[0] = (struct weir_sched_taint){OFFERS_CLUSTER_KEY, cluster};
    taints[1] = (struct weir_sched_taint){ASK_KEY, cluster};
    return taints;
}

static int64_t memory_bound(int64_t bytes)
{
    return bytes > 0 ? WEIR_MIN(bytes, (int64_t)1 << 42) : (int64_t)1 << 42; /* 0: not told */
}

/* ---- nodes that were asked for --------------------------------------------------------------- */

static bool is_state(const struct weir_allocation *allocation, const char *state)
{
    return strcmp(allocation->state, state) == 0;
}

static int by_id(const void *left, const void *right)
{
    const struct weir_allocation *const *l = left, *const *r = right;
    return strcmp((*l)->id, (*r)->id);
}

/* A node tells of its devices a little after it has joined: before, it is still awaited. One that tells of too few for
 * long has no more. */
static bool is_complete(const struct looking *looking, const struct snapshot_node *node,
                        const struct weir_allocation *of)
{
    return node->supply->n_devices >= of->n_accelerators ||
           (of->started_ms > 0 && looking->now_ms - of->started_ms > DEMAND_DEVICES_MS);
}

/* Which allocation a node is of that is there, and how many of each are. */
static void find_joined(struct looking *looking)
{
    const struct offers *offers = looking->offers;
    size_t n = offers->n_allocations;
    const struct weir_allocation **sorted =
        WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    looking->allocation_of = WEIR_ARENA_ARRAY(looking->arena, (size_t)looking->n_own + 1, int32_t);
    looking->n_joined = WEIR_ARENA_ARRAY(looking->arena, n + 1, int32_t);
    looking->is_needed = WEIR_ARENA_ARRAY(looking->arena, n + 1, bool);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &offers->allocations[i];
    }
    if (n > 0) {
        qsort(sorted, n, sizeof(struct weir_allocation *), by_id);
    }
    for (int32_t i = 0; i < looking->n_own; i++) {
        const struct snapshot_node *node = &looking->snapshot->nodes[i];
        const struct weir_allocation key = {.id = (char *)node->supply->allocation}, *wanted = &key;
        const struct weir_allocation **found =
            n > 0 && key.id != NULL && node->facts.left_ms == 0
                ? bsearch(&wanted, sorted, n, sizeof(struct weir_allocation *), by_id)
                : NULL;
        looking->allocation_of[i] = found != NULL ? (int32_t)(*found - offers->allocations) : -1;
        if (found != NULL && is_complete(looking, node, *found)) {
            looking->n_joined[looking->allocation_of[i]]++;
        }
    }
}

static void think_of_missing(struct looking *looking, const struct weir_allocation *allocation)
{
    struct weir_sched_node node = {.name = allocation->id,
                                   .model = allocation->accelerator,
                                   .n_devices = (int32_t)allocation->n_accelerators,
                                   .n_tasks_max = SNAPSHOT_NODE_TASKS_MAX,
                                   .cpu_milli = allocation->cpu_slots * 1000,
                                   .memory_bytes = memory_bound(allocation->memory_bytes),
                                   .taints = taints_of(looking, allocation->cluster),
                                   .n_taints = 1};
    node.labels = labels_of(looking, allocation->cluster, allocation->accelerator, &node.n_labels);
    int64_t n = allocation->n_nodes - looking->n_joined[allocation - looking->offers->allocations];
    for (int64_t i = 0; i < n; i++) {
        node.name = weir_arena_printf(looking->arena, "%s#%lld", allocation->id, (long long)i);
        think_of(looking, &node, &(struct thought){.allocation = allocation});
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

static bool is_like(const struct weir_sched_demand *left, const struct weir_sched_demand *right)
{
    return left != NULL && left->cpu_milli == right->cpu_milli &&
           left->memory_bytes == right->memory_bytes && left->n_devices == right->n_devices &&
           left->device_milli == right->device_milli && left->n_extras == 0 && right->n_extras == 0;
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
    thought->like = thought->n_tasks == 0                   ? &task->demand
                    : is_like(thought->like, &task->demand) ? thought->like
                                                            : NULL;
    thought->n_tasks++;
    thought->cpu_milli += task->demand.cpu_milli;
    thought->memory_bytes += task->demand.memory_bytes;
    if (task->demand.device_milli > 0 && task->demand.device_milli < WEIR_SCHED_DEVICE) {
        thought->device_milli += (int64_t)task->demand.n_devices * task->demand.device_milli;
    } else {
        thought->n_devices += task->demand.n_devices;
    }
    thought->first_job = thought->first_job < 0 ? row : thought->first_job;
    thought->is_endless = thought->is_endless || job->time_limit_ms == 0;
    thought->time_ms = WEIR_MAX(thought->time_ms, job->time_limit_ms);
    if (first[row] >= 0) {
        unite(looking, first[row], action->node);
    }
    first[row] = action->node;
}

static weir_status plan_once(struct looking *looking, struct weir_error *err)
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

/* ---- what may be asked for ------------------------------------------------------------------- */

static int64_t waited_since_ms(const struct weir_sched_job *job)
{
    return job->queued_ms > 0 ? job->queued_ms : job->created_ms;
}

static bool is_pending(const struct looking *looking, const struct weir_sched_job *job)
{
    bool is_any = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && !is_any; t++) {
        is_any = looking->tasks[t].state == WEIR_SCHED_PENDING;
    }
    return is_any;
}

static struct offers_where where_of(const struct looking *looking, int32_t row)
{
    return offers_where(&looking->snapshot->queues, job_of(looking, row)->ask,
                        looking->jobs[row].queue);
}

static const struct offers_refusal *refusal_of(const struct looking *looking, const char *job,
                                               const struct weir_pool *pool)
{
    for (size_t i = 0; i < looking->offers->n_refusals; i++) {
        const struct offers_refusal *refusal = &looking->offers->refusals[i];
        if (strcmp(refusal->job, job) == 0 && strcmp(refusal->cluster, pool->cluster) == 0 &&
            strcmp(refusal->pool, pool->name) == 0) {
            return refusal;
        }
    }
    return NULL;
}

static int64_t again_ms(const struct offers_refusal *refusal)
{
    int64_t wait_ms = DEMAND_AGAIN_LEAST_MS << WEIR_MIN(refusal->n - 1, (int64_t)16);
    return refusal->ended_ms + WEIR_MIN(wait_ms, DEMAND_AGAIN_MOST_MS);
}

static void look_again(struct looking *looking, int64_t at_ms)
{
    looking->out->next_ms = WEIR_MIN(looking->out->next_ms, at_ms);
}

/* May nodes of this pool be asked for, for this job, in this turn? */
static bool may_ask(struct looking *looking, int32_t row, const struct weir_pool *pool,
                    int32_t turn)
{
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    struct offers_where where = where_of(looking, row);
    const struct offers_refusal *refusal =
        refusal_of(looking, job_of(looking, row)->state.job.id, pool);
    if (offers_rank(&where, pool->cluster) != turn) {
        return false;
    }
    int64_t after_ms = where.after_ms >= 0 ? where.after_ms : cluster->after_ms;
    int64_t due_ms = waited_since_ms(&looking->jobs[row]) + after_ms;
    if (refusal != NULL) {
        due_ms = WEIR_MAX(due_ms, again_ms(refusal));
    }
    if (due_ms > looking->now_ms) {
        look_again(looking, due_ms);
        return false;
    }
    return true;
}

static bool is_open(const struct looking *looking, const struct weir_pool *pool)
{
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    return pool->why == NULL && cluster != NULL && !cluster->is_draining &&
           strcmp(cluster->state, WEIR_CLUSTER_READY) == 0;
}

/* What was asked of a pool, or is thought of. Nodes over there are shared: their parts add up. */
struct asked {
    double cpus, memory_bytes, devices;
    int64_t n_nodes; /* Of the whole cluster. */
};

static void add_asked(struct asked *asked, double n, int64_t cpu_milli, int64_t memory_bytes,
                      int64_t n_devices)
{
    asked->cpus += n * (double)cpu_milli / 1000;
    asked->memory_bytes += n * (double)memory_bytes;
    asked->devices += n * (double)n_devices;
}

static struct asked asked_of(const struct looking *looking, const struct weir_pool *pool)
{
    struct asked asked = {0};
    for (size_t i = 0; i < looking->offers->n_allocations; i++) {
        const struct weir_allocation *of = &looking->offers->allocations[i];
        bool is_same = strcmp(of->cluster, pool->cluster) == 0;
        asked.n_nodes += is_same ? of->n_nodes : 0;
        if (is_same && strcmp(of->pool, pool->name) == 0) {
            add_asked(&asked, (double)of->n_nodes, of->cpu_slots * 1000, of->memory_bytes,
                      of->n_accelerators);
        }
    }
    for (int32_t i = looking->n_own; i < looking->rows.n_nodes; i++) {
        const struct thought *of = &looking->thoughts[i];
        asked.n_nodes += of->pool != NULL && strcmp(of->pool->cluster, pool->cluster) == 0;
        if (of->pool == pool) {
            add_asked(&asked, 1, of->cpu_milli, of->memory_bytes, of->n_devices);
        }
    }
    return asked;
}

static double part(double asked, int64_t has)
{
    return has > 0 ? asked / (double)has : 0;
}

/* How many more nodes of the pool may be asked for. What does not fit beside what was asked for waits over there. */
static int64_t n_left(const struct looking *looking, const struct weir_pool *pool)
{
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    struct asked asked = asked_of(looking, pool);
    double nodes = WEIR_MAX(part(asked.cpus, pool->cpu_slots),
                            WEIR_MAX(part(asked.memory_bytes, pool->memory_bytes),
                                     part(asked.devices, pool->n_accelerators)));
    int64_t of_pool =
        pool->max_nodes > 0 ? (int64_t)ceil((double)pool->max_nodes - nodes - 1e-9) : INT32_MAX;
    int64_t of_cluster = cluster->max_nodes > 0 ? cluster->max_nodes - asked.n_nodes : INT32_MAX;
    return WEIR_MAX(WEIR_MIN(WEIR_MIN(of_pool, of_cluster), (int64_t)DEMAND_NODES_MAX), (int64_t)0);
}

static void think_of_pool(struct looking *looking, const struct weir_pool *pool, int64_t n)
{
    struct weir_sched_node node = {.model = pool->accelerator,
                                   .n_devices = (int32_t)pool->n_accelerators,
                                   .n_tasks_max = SNAPSHOT_NODE_TASKS_MAX,
                                   .cpu_milli = pool->cpu_slots * 1000,
                                   .memory_bytes = memory_bound(pool->memory_bytes),
                                   .taints = taints_of(looking, pool->cluster),
                                   .n_taints = 2};
    if (pool->time_max_ms > 0) {
        node.closed_from_ms = looking->now_ms + pool->time_max_ms;
        node.closed_until_ms = WEIR_SCHED_AMOUNT_MAX;
    }
    node.labels = labels_of(looking, pool->cluster, pool->accelerator, &node.n_labels);
    for (int64_t i = 0; i < n && (size_t)looking->rows.n_nodes < looking->nodes_cap; i++) {
        node.name = weir_arena_printf(looking->arena, "%s#%d", pool->id, looking->rows.n_nodes);
        think_of(looking, &node, &(struct thought){.pool = pool});
    }
}

/* Those that may ask tolerate the nodes that are thought of. @return Tasks that do. */
static int64_t open_to(struct looking *looking, const struct weir_pool *pool, int32_t turn)
{
    int64_t n = 0;
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        const struct weir_sched_job *job = &looking->jobs[j];
        if (!is_pending(looking, job)) {
            continue;
        }
        struct snapshot_job *of = job_of(looking, j);
        bool may = may_ask(looking, j, pool, turn);
        of->tolerations[of->n_tolerations] = (struct weir_sched_toleration){ASK_KEY, pool->cluster};
        for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
            if (looking->tasks[t].state == WEIR_SCHED_PENDING) {
                looking->tasks[t].tolerations = of->tolerations;
                looking->tasks[t].n_tolerations = of->n_tolerations + may;
                n += may;
            }
        }
    }
    return n;
}

/* Nodes that are thought of and that nothing was placed on go: they are the last ones. */
static void drop_unused(struct looking *looking)
{
    while (looking->rows.n_nodes > looking->n_own &&
           looking->thoughts[looking->rows.n_nodes - 1].pool != NULL &&
           looking->thoughts[looking->rows.n_nodes - 1].first_job < 0) {
        looking->rows.n_nodes--;
    }
}

static weir_status think_of_pools(struct looking *looking, struct weir_error *err)
{
    for (int32_t turn = 0; turn < WEIR_CLUSTERS_MAX; turn++) {
        bool is_any = false;
        for (size_t i = 0; i < looking->offers->n_pools; i++) {
            const struct weir_pool *pool = &looking->offers->pools[i];
            int64_t n = is_open(looking, pool) ? n_left(looking, pool) : 0;
            int64_t n_tasks = n > 0 ? open_to(looking, pool, turn) : 0;
            if (n_tasks == 0) {
                continue;
            }
            is_any = true;
            think_of_pool(looking, pool, WEIR_MIN(n, n_tasks));
            WEIR_TRY(plan_once(looking, err));
            drop_unused(looking);
        }
        if (!is_any && turn > 0) {
            break;
        }
    }
    return WEIR_OK;
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static int32_t root_of(const struct looking *looking, int32_t node)
{
    while (looking->thoughts[node].union_with != node) {
        node = looking->thoughts[node].union_with;
    }
    return node;
}

/* Of each node just what was placed there; of memory that nobody asks for its part by CPUs, as some clusters bound it. */
static void add_node(struct weir_allocation *wanted, const struct thought *thought)
{
    const struct weir_pool *pool = thought->pool;
    int64_t cpus = WEIR_MAX((thought->cpu_milli + 999) / 1000, (int64_t)1);
    int64_t part = pool->cpu_slots > 0 ? pool->memory_bytes / pool->cpu_slots * cpus : 0;
    int64_t devices =
        thought->n_devices + (thought->device_milli + WEIR_SCHED_DEVICE - 1) / WEIR_SCHED_DEVICE;
    wanted->n_nodes++;
    wanted->cpu_slots = WEIR_MAX(wanted->cpu_slots, cpus);
    wanted->memory_bytes =
        WEIR_MAX(wanted->memory_bytes, WEIR_MIN(WEIR_MAX(thought->memory_bytes, part),
                                                WEIR_MAX(pool->memory_bytes, (int64_t)0)));
    wanted->n_accelerators = WEIR_MAX(wanted->n_accelerators, devices);
}

/* All nodes of an allocation are alike, so tasks that are, are spread evenly: of 5 on 4 + 1 nodes ask for 3 each. */
static void even_out(struct looking *looking, int32_t root)
{
    const struct weir_sched_demand *like = looking->thoughts[root].like;
    int32_t n_nodes = 0, n_tasks = 0;
    for (int32_t i = root; i < looking->rows.n_nodes; i++) {
        const struct thought *thought = &looking->thoughts[i];
        if (thought->first_job >= 0 && root_of(looking, i) == root) {
            like =
                is_like(like, thought->like != NULL ? thought->like : like) && thought->like != NULL
                    ? like
                    : NULL;
            n_nodes++;
            n_tasks += thought->n_tasks;
        }
    }
    int32_t each = n_nodes > 0 ? (n_tasks + n_nodes - 1) / n_nodes : 0;
    bool is_part = like != NULL && like->device_milli > 0 && like->device_milli < WEIR_SCHED_DEVICE;
    for (int32_t i = root; like != NULL && n_nodes > 1 && i < looking->rows.n_nodes; i++) {
        struct thought *thought = &looking->thoughts[i];
        if (thought->first_job >= 0 && root_of(looking, i) == root) {
            thought->cpu_milli = each * like->cpu_milli;
            thought->memory_bytes = each * like->memory_bytes;
            thought->n_devices = is_part ? 0 : (int64_t)each * like->n_devices;
            thought->device_milli =
                is_part ? (int64_t)each * like->n_devices * like->device_milli : 0;
        }
    }
}

static char *new_id(struct looking *looking, const char *cluster)
{
    uint32_t drawn;
    weir_random_bytes(&drawn, sizeof drawn);
    return weir_arena_printf(looking->arena, "%s-%08x", cluster, drawn);
}

static int64_t time_of(const struct weir_cluster *cluster, const struct weir_pool *pool,
                       bool is_endless, int64_t time_ms)
{
    int64_t wanted_ms = is_endless ? cluster->time_ms : time_ms;
    return pool->time_max_ms > 0 && wanted_ms > pool->time_max_ms ? pool->time_max_ms : wanted_ms;
}

static void want(struct looking *looking, int32_t root)
{
    const struct thought *first = &looking->thoughts[root];
    const struct weir_pool *pool = first->pool;
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    const struct weir_job *job = &job_of(looking, first->first_job)->state.job;
    struct weir_allocation *wanted = &looking->out->wanted[looking->out->n_wanted++];
    bool is_endless = false;
    int64_t time_ms = 0;
    even_out(looking, root);
    *wanted = (struct weir_allocation){
        .id = new_id(looking, pool->cluster),
        .cluster = pool->cluster,
        .pool = pool->name,
        .job = job->id,
        .project = job->project,
        .queue = (char *)looking->rows.queues[looking->jobs[first->first_job].queue].name,
        .accelerator = NULL};
    for (int32_t i = root; i < looking->rows.n_nodes; i++) {
        const struct thought *thought = &looking->thoughts[i];
        if (thought->first_job >= 0 && root_of(looking, i) == root) {
            add_node(wanted, thought);
            is_endless = is_endless || thought->is_endless;
            time_ms = WEIR_MAX(time_ms, thought->time_ms);
        }
    }
    wanted->accelerator = wanted->n_accelerators > 0 ? pool->accelerator : NULL;
    wanted->time_ms = time_of(cluster, pool, is_endless, time_ms);
}

static void take_wanted(struct looking *looking)
{
    looking->out->wanted =
        WEIR_ARENA_ARRAY(looking->arena, (size_t)(looking->rows.n_nodes - looking->n_own) + 1,
                         struct weir_allocation);
    for (int32_t i = looking->n_own; i < looking->rows.n_nodes; i++) {
        const struct thought *thought = &looking->thoughts[i];
        if (thought->pool != NULL && thought->first_job >= 0 && root_of(looking, i) == i) {
            want(looking, i);
        }
    }
}

/* Those on a node of which anything runs, or is placed. */
static void find_needed(struct looking *looking)
{
    for (int32_t i = looking->n_own; i < looking->rows.n_nodes; i++) {
        const struct thought *thought = &looking->thoughts[i];
        if (thought->allocation != NULL && thought->first_job >= 0) {
            looking->is_needed[thought->allocation - looking->offers->allocations] = true;
        }
    }
    for (int32_t t = 0; t < looking->rows.n_tasks; t++) {
        const struct weir_sched_task *task = &looking->tasks[t];
        bool is_there = weir_sched_task_has_node(task->state) && task->node < looking->n_own;
        int32_t of = is_there ? looking->allocation_of[task->node] : -1;
        if (of >= 0) {
            looking->is_needed[of] = true;
        }
    }
}

/* Does another allocation wait over there, perhaps for nodes that an idle one of ours holds? */
static bool has_waiting(const struct looking *looking, const char *cluster)
{
    bool has = false;
    for (size_t i = 0; i < looking->offers->n_allocations && !has; i++) {
        const struct weir_allocation *other = &looking->offers->allocations[i];
        has = looking->is_needed[i] && is_state(other, WEIR_ALLOCATION_PENDS) &&
              strcmp(other->cluster, cluster) == 0;
    }
    return has;
}

static void judge(struct looking *looking, const struct weir_allocation *allocation)
{
    struct demand *out = looking->out;
    const struct weir_cluster *cluster = offers_cluster(looking->offers, allocation->cluster);
    int64_t idle_ms = cluster != NULL ? cluster->idle_ms : 0;
    if (!is_state(allocation, WEIR_ALLOCATION_RUNS)) {
        idle_ms = WEIR_MIN(idle_ms, (int64_t)DEMAND_PENDING_IDLE_MS);
    } else if (has_waiting(looking, allocation->cluster)) {
        idle_ms = WEIR_MIN(idle_ms, (int64_t)DEMAND_WAITED_IDLE_MS);
    }
    if (looking->is_needed[allocation - looking->offers->allocations]) {
        if (allocation->idle_since_ms > 0) {
            out->needed[out->n_needed++] = allocation;
        }
    } else if (allocation->idle_since_ms == 0) {
        out->idle[out->n_idle++] = allocation;
        look_again(looking, looking->now_ms + idle_ms);
    } else if (looking->now_ms - allocation->idle_since_ms >= idle_ms) {
        out->over[out->n_over++] = allocation;
    } else {
        look_again(looking, allocation->idle_since_ms + idle_ms);
    }
}

static void judge_all(struct looking *looking)
{
    size_t n = looking->offers->n_allocations;
    struct demand *out = looking->out;
    out->idle = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    out->needed = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    out->over = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    find_needed(looking);
    for (size_t i = 0; i < n; i++) {
        if (!is_state(&looking->offers->allocations[i], WEIR_ALLOCATION_RELEASING)) {
            judge(looking, &looking->offers->allocations[i]);
        }
    }
}

/* ---- what jobs are told ---------------------------------------------------------------------- */

static const char *tell_allocation(struct looking *looking, const struct weir_allocation *of)
{
    struct weir_arena *arena = looking->arena;
    const char *id = of->their_id != NULL ? of->their_id : of->id;
    const char *nodes = of->n_nodes == 1
                            ? weir_arena_printf(arena, "a node of cluster %s", of->cluster)
                            : weir_arena_printf(arena, "%lld nodes of cluster %s",
                                                (long long)of->n_nodes, of->cluster);
    const char *why = of->why != NULL ? weir_arena_printf(arena, ": %s", of->why) : "";
    if (is_state(of, WEIR_ALLOCATION_RUNS)) {
        return weir_arena_printf(arena, "%s: they are there (%s), and their agents are starting",
                                 nodes, id);
    }
    if (is_state(of, WEIR_ALLOCATION_WANTED)) {
        return weir_arena_printf(arena, "asks for %s%s", nodes, why);
    }
    return weir_arena_printf(arena, "waits for %s (%s there%s%s)%s", nodes, id,
                             of->said != NULL ? ": " : "", of->said != NULL ? of->said : "", why);
}

/* A pool that could be asked, and in which the job finds no place beside what was asked for. */
static const char *tell_room(struct looking *looking, const struct weir_pool *pool)
{
    struct weir_arena *arena = looking->arena;
    int64_t n = n_left(looking, pool);
    const char *devices =
        pool->n_accelerators > 0
            ? weir_arena_printf(arena, " and %lld %s", (long long)pool->n_accelerators,
                                pool->accelerator != NULL ? pool->accelerator : "accelerators")
            : "";
    return weir_arena_printf(
        arena,
        "of pool %s of cluster %s %lld more node%s of %lld CPUs%s can be asked "
        "for, and that is no place for it",
        pool->name, pool->cluster, (long long)n, n == 1 ? "" : "s", (long long)pool->cpu_slots,
        devices);
}

/* Why nothing was asked for, for a job that waits: of the first cluster that it may run on. */
static const char *tell_none(struct looking *looking, int32_t row)
{
    struct weir_arena *arena = looking->arena;
    struct offers_where where = where_of(looking, row);
    const char *job = job_of(looking, row)->state.job.id;
    for (size_t i = 0; i < where.n; i++) {
        if (strcmp(where.names[i], WEIR_CLUSTER_OWN) != 0 &&
            offers_cluster(looking->offers, where.names[i]) == NULL) {
            return weir_arena_printf(arena, "there is no cluster %s (`weir get clusters`)",
                                     where.names[i]);
        }
    }
    for (size_t i = 0; i < looking->offers->n_clusters; i++) {
        const struct weir_cluster *cluster = &looking->offers->clusters[i];
        char at[WEIR_TIME_TEXT_BYTES];
        int64_t after_ms = where.after_ms >= 0 ? where.after_ms : cluster->after_ms;
        int64_t due_ms = waited_since_ms(&looking->jobs[row]) + after_ms;
        if (offers_rank(&where, cluster->name) < 0) {
            continue;
        }
        if (strcmp(cluster->state, WEIR_CLUSTER_READY) != 0) {
            return weir_arena_printf(arena, "cluster %s is %s%s%s", cluster->name, cluster->state,
                                     cluster->said != NULL ? ": " : "",
                                     cluster->said != NULL ? cluster->said : "");
        }
        if (cluster->is_draining) {
            return weir_arena_printf(arena, "nothing is asked of cluster %s: it is being drained",
                                     cluster->name);
        }
        for (size_t k = 0; k < looking->offers->n_pools; k++) {
            const struct offers_refusal *refusal =
                strcmp(looking->offers->pools[k].cluster, cluster->name) == 0
                    ? refusal_of(looking, job, &looking->offers->pools[k])
                    : NULL;
            if (refusal != NULL) {
                weir_time_format(again_ms(refusal), at);
                return weir_arena_printf(arena, "cluster %s: %s; it is asked again at %s",
                                         cluster->name,
                                         refusal->why != NULL ? refusal->why : "refused", at);
            }
        }
        if (due_ms > looking->now_ms) {
            weir_time_format(due_ms, at);
            return weir_arena_printf(arena, "nodes of cluster %s are asked for at %s",
                                     cluster->name, at);
        }
        for (size_t k = 0; k < looking->offers->n_pools; k++) {
            const struct weir_pool *pool = &looking->offers->pools[k];
            if (strcmp(pool->cluster, cluster->name) != 0) {
                continue;
            }
            return pool->why != NULL
                       ? weir_arena_printf(arena, "pool %s of cluster %s gives no nodes now: %s",
                                           pool->name, cluster->name, pool->why)
                       : tell_room(looking, pool);
        }
        return weir_arena_printf(
            arena, "no pool of cluster %s gives it a place: `weir get pools` shows their nodes",
            cluster->name);
    }
    return NULL;
}

static const struct weir_allocation *allocation_of(const struct looking *looking,
                                                   const struct weir_sched_job *job)
{
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        const struct weir_sched_task *task = &looking->tasks[t];
        if (task->state == WEIR_SCHED_RUNNING && task->node >= looking->n_own) {
            return looking->thoughts[task->node].allocation;
        }
    }
    return NULL;
}

static bool is_placed(const struct looking *looking, const struct weir_sched_job *job)
{
    return job->n_tasks > 0 && looking->tasks[job->first_task].state == WEIR_SCHED_RUNNING;
}

static int by_job(const void *left, const void *right)
{
    return strcmp(((const struct demand_wait *)left)->job,
                  ((const struct demand_wait *)right)->job);
}

/* Of jobs that waited before these plans. */
static void take_waits(struct looking *looking, const struct weir_sched_snapshot *before)
{
    struct demand *out = looking->out;
    out->waits =
        WEIR_ARENA_ARRAY(looking->arena, (size_t)looking->rows.n_jobs + 1, struct demand_wait);
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        const struct weir_sched_job *job = &looking->jobs[j];
        const char *id = job_of(looking, j)->state.job.id;
        bool waited = before->tasks[job->first_task].state == WEIR_SCHED_PENDING;
        bool is_told = out->n_waits > 0 && strcmp(out->waits[out->n_waits - 1].job, id) == 0;
        if (!waited || is_told) {
            continue;
        }
        const struct weir_allocation *of = allocation_of(looking, job);
        const char *text = of != NULL                 ? tell_allocation(looking, of)
                           : !is_placed(looking, job) ? tell_none(looking, j)
                                                      : NULL;
        if (text != NULL) {
            out->waits[out->n_waits++] = (struct demand_wait){weir_arena_strdup(looking->arena, id),
                                                              text, of != NULL ? of->starts_ms : 0};
        }
    }
    if (out->n_waits > 0) {
        qsort(out->waits, out->n_waits, sizeof *out->waits, by_job);
    }
}

const struct demand_wait *demand_wait_of(const struct demand *demand, const char *job)
{
    const struct demand_wait key = {.job = (char *)job};
    return demand->n_waits > 0 ? bsearch(&key, demand->waits, demand->n_waits, sizeof key, by_job)
                               : NULL;
}

static weir_status look(struct looking *looking, struct weir_error *err)
{
    find_joined(looking);
    for (size_t i = 0; i < looking->offers->n_allocations; i++) {
        if (!is_state(&looking->offers->allocations[i], WEIR_ALLOCATION_RELEASING)) {
            think_of_missing(looking, &looking->offers->allocations[i]);
        }
    }
    if (looking->snapshot->n_pending > 0) {
        if (looking->rows.n_nodes > looking->n_own) {
            WEIR_TRY(plan_once(looking, err));
        }
        WEIR_TRY(think_of_pools(looking, err));
    }
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
    weir_status status = look(&looking, err);
    if (status == WEIR_OK) {
        take_wanted(&looking);
        judge_all(&looking);
        take_waits(&looking, rows);
    }
    for (size_t i = 0; i < looking.n_plans; i++) {
        weir_sched_plan_destroy(looking.plans[i]);
    }
    return status;
}
