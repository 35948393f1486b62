#include "control/schedule/demand_private.h"

#include "base/rng.h"

#include <string.h>

/* ---- what is to be asked for ----------------------------------------------------------------- */

static int32_t root_of(const struct looking *looking, int32_t node)
{
    while (looking->thoughts[node].union_with != node) {
        node = looking->thoughts[node].union_with;
    }
    return node;
}

/* What of one device is asked for where parts of a device in this sum are placed: as many of the pool's parts as hold them, in
 * thousandths; 0: a whole one. */
static int64_t part_of(const struct weir_pool *pool, int64_t milli)
{
    int64_t parts = pool->accelerator_parts;
    int64_t n = (milli * parts + WEIR_SCHED_DEVICE - 1) / WEIR_SCHED_DEVICE;
    return n < parts ? n * WEIR_SCHED_DEVICE / parts : 0;
}

/* Each node is asked for as large as what was placed there. If no task asks for memory, it is the node's part by CPUs, as
 * some clusters bound it. */
static void add_node(struct weir_allocation *wanted, const struct thought *thought)
{
    const struct weir_pool *pool = thought->pool;
    int64_t cpus = WEIR_MAX((thought->cpu_milli + 999) / 1000, (int64_t)1);
    int64_t part = pool->cpu_slots > 0 ? pool->memory_bytes / pool->cpu_slots * cpus : 0;
    int64_t milli = thought->n_devices == 1 ? part_of(pool, thought->device_milli) : 0;
    wanted->n_nodes++;
    wanted->cpu_slots = WEIR_MAX(wanted->cpu_slots, cpus);
    wanted->memory_bytes =
        WEIR_MAX(wanted->memory_bytes, WEIR_MIN(WEIR_MAX(thought->memory_bytes, part),
                                                WEIR_MAX(pool->memory_bytes, (int64_t)0)));
    wanted->n_accelerators = WEIR_MAX(wanted->n_accelerators, thought->n_devices);
    if (thought->n_devices > 0) {
        wanted->accelerator_milli =
            WEIR_MAX(wanted->accelerator_milli, milli > 0 ? milli : (int64_t)WEIR_SCHED_DEVICE);
    }
}

/* What n tasks that are alike take of devices, packed. */
static void share_devices(struct thought *thought, const struct weir_sched_demand *like, int32_t n)
{
    int64_t each = like->device_milli > 0 ? like->device_milli : WEIR_SCHED_DEVICE;
    int64_t n_shares = (int64_t)n * like->n_devices, on_one = WEIR_SCHED_DEVICE / each;
    int64_t n_packed = (n_shares + on_one - 1) / on_one;
    thought->n_devices = n > 0 ? WEIR_MAX(n_packed, (int64_t)like->n_devices) : 0;
    thought->device_milli = n_shares * each;
}

/* All nodes of an allocation are alike, so tasks that are alike are spread evenly: 5 tasks on 2 nodes are 3 for each, not
 * 4 and 1. */
static void even_out(struct looking *looking, int32_t root)
{
    const struct weir_sched_demand *like = looking->thoughts[root].like;
    int32_t n_nodes = 0, n_tasks = 0;
    for (int32_t i = root; i < looking->rows.n_nodes; i++) {
        const struct thought *thought = &looking->thoughts[i];
        if (thought->first_job >= 0 && root_of(looking, i) == root) {
            like = demand_is_like(like, thought->like) ? like : NULL;
            n_nodes++;
            n_tasks += thought->n_tasks;
        }
    }
    int32_t each = n_nodes > 0 ? (n_tasks + n_nodes - 1) / n_nodes : 0;
    for (int32_t i = root; like != NULL && n_nodes > 1 && i < looking->rows.n_nodes; i++) {
        struct thought *thought = &looking->thoughts[i];
        if (thought->first_job >= 0 && root_of(looking, i) == root) {
            thought->cpu_milli = each * like->cpu_milli;
            thought->memory_bytes = each * like->memory_bytes;
            share_devices(thought, like, each);
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
    int64_t wanted_ms = is_endless ? cluster->time_ms : time_ms + OFFERS_SPARE_MS;
    return pool->time_max_ms > 0 && wanted_ms > pool->time_max_ms ? pool->time_max_ms : wanted_ms;
}

static void want(struct looking *looking, int32_t root)
{
    const struct thought *first = &looking->thoughts[root];
    const struct weir_pool *pool = first->pool;
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    const struct weir_job *job = &demand_job_of(looking, first->first_job)->state.job;
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
        .pod = (char *)demand_pod(looking, first->first_job),
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
    wanted->accelerator_milli %= WEIR_SCHED_DEVICE; /* 0: all of each */
    wanted->time_ms = time_of(cluster, pool, is_endless, time_ms);
}

void demand_take_wanted(struct looking *looking)
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

/* ---- what nothing needs ---------------------------------------------------------------------- */

/* An allocation is needed if anything runs, or is placed, on a node of it. */
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
        has = looking->is_needed[i] && demand_is_state(other, WEIR_ALLOCATION_PENDS) &&
              strcmp(other->cluster, cluster) == 0;
    }
    return has;
}

/* Has one of its nodes gone? What needed all of them cannot run on the others. */
static bool is_broken(const struct weir_allocation *allocation)
{
    int64_t n = 0;
    for (const char *at = allocation->nodes; at != NULL && *at != '\0'; at++) {
        n += *at == ',';
    }
    return demand_is_state(allocation, WEIR_ALLOCATION_RUNS) && allocation->nodes != NULL &&
           n + 1 < allocation->n_nodes;
}

static void judge(struct looking *looking, const struct weir_allocation *allocation)
{
    struct demand *out = looking->out;
    const struct weir_cluster *cluster = offers_cluster(looking->offers, allocation->cluster);
    int64_t idle_ms = cluster != NULL ? cluster->idle_ms : 0;
    if (!demand_is_state(allocation, WEIR_ALLOCATION_RUNS)) {
        idle_ms = WEIR_MIN(idle_ms, (int64_t)DEMAND_PENDING_IDLE_MS);
    } else if (has_waiting(looking, allocation->cluster) || is_broken(allocation)) {
        idle_ms = WEIR_MIN(idle_ms, (int64_t)DEMAND_WAITED_IDLE_MS);
    }
    size_t i = (size_t)(allocation - looking->offers->allocations);
    bool is_whole = looking->n_joined[i] >= allocation->n_nodes;
    if (demand_is_state(allocation, WEIR_ALLOCATION_RUNS) && !is_whole &&
        !demand_is_late(looking, allocation)) {
        demand_look_again(looking, allocation->started_ms + DEMAND_JOIN_MS);
    }
    if (!looking->is_needed[i] && demand_is_given_up(looking, allocation)) {
        out->missing[out->n_missing++] = allocation;
    } else if (looking->is_needed[i]) {
        if (allocation->idle_since_ms > 0) {
            out->needed[out->n_needed++] = allocation;
        }
    } else if (allocation->idle_since_ms == 0) {
        out->idle[out->n_idle++] = allocation;
        demand_look_again(looking, looking->now_ms + idle_ms);
    } else if (looking->now_ms - allocation->idle_since_ms >= idle_ms) {
        out->over[out->n_over++] = allocation;
    } else {
        demand_look_again(looking, allocation->idle_since_ms + idle_ms);
    }
}

void demand_judge(struct looking *looking)
{
    size_t n = looking->offers->n_allocations;
    struct demand *out = looking->out;
    out->idle = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    out->needed = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    out->over = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    out->missing = WEIR_ARENA_ARRAY(looking->arena, n + 1, const struct weir_allocation *);
    find_needed(looking);
    for (size_t i = 0; i < n; i++) {
        if (!demand_is_state(&looking->offers->allocations[i], WEIR_ALLOCATION_RELEASING)) {
            judge(looking, &looking->offers->allocations[i]);
        }
    }
}
