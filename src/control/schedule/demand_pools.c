#include "control/schedule/demand_private.h"

#include <math.h>
#include <string.h>

#define PAYERS_MAX 64

/* ---- may it be asked for --------------------------------------------------------------------- */

static bool is_pending(const struct looking *looking, const struct weir_sched_job *job)
{
    bool is_any = false;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks && !is_any; t++) {
        is_any = looking->tasks[t].state == WEIR_SCHED_PENDING;
    }
    return is_any;
}

struct offers_where demand_where(const struct looking *looking, int32_t row)
{
    return offers_where(&looking->snapshot->queues, demand_job_of(looking, row)->ask,
                        looking->jobs[row].queue);
}

const char *demand_pod(const struct looking *looking, int32_t row)
{
    const struct ask *ask = demand_job_of(looking, row)->ask;
    return ask != NULL ? ask->pod : NULL;
}

bool demand_can_be(const struct looking *looking, int32_t row, const char *cluster)
{
    return demand_pod(looking, row) == NULL || offers_makes_pods(looking->offers, cluster);
}

int64_t demand_due_ms(const struct looking *looking, int32_t row, const struct offers_where *where,
                      const struct weir_cluster *cluster)
{
    const struct weir_sched_job *job = &looking->jobs[row];
    int64_t since_ms = job->queued_ms > 0 ? job->queued_ms : job->created_ms;
    return since_ms + (where->after_ms >= 0 ? where->after_ms : cluster->after_ms);
}

const struct offers_refusal *demand_refusal(const struct looking *looking, const char *job,
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

int64_t demand_again_ms(const struct offers_refusal *refusal)
{
    int64_t wait_ms = DEMAND_AGAIN_LEAST_MS << WEIR_MIN(refusal->n - 1, (int64_t)16);
    return refusal->ended_ms + WEIR_MIN(wait_ms, DEMAND_AGAIN_MOST_MS);
}

/* Once it has ended it counts as refused. */
static bool has_given_up(const struct looking *looking, const char *job,
                         const struct weir_pool *pool)
{
    bool has = false;
    for (size_t i = 0; looking->has_given_up && i < looking->offers->n_allocations && !has; i++) {
        const struct weir_allocation *of = &looking->offers->allocations[i];
        has = of->job != NULL && strcmp(of->job, job) == 0 &&
              strcmp(of->cluster, pool->cluster) == 0 && strcmp(of->pool, pool->name) == 0 &&
              demand_is_given_up(looking, of);
    }
    return has;
}

/* May nodes of this pool be asked for, for this job, in this turn? */
static bool may_ask(struct looking *looking, int32_t row, const struct weir_pool *pool,
                    int32_t turn)
{
    const struct weir_cluster *cluster = offers_cluster(looking->offers, pool->cluster);
    struct offers_where where = demand_where(looking, row);
    const char *job = demand_job_of(looking, row)->state.job.id;
    if (offers_rank(&where, pool->cluster) != turn || has_given_up(looking, job, pool) ||
        !demand_can_be(looking, row, pool->cluster)) {
        return false;
    }
    const struct offers_refusal *refusal = demand_refusal(looking, job, pool);
    int64_t due_ms = demand_due_ms(looking, row, &where, cluster);
    if (refusal != NULL) {
        due_ms = WEIR_MAX(due_ms, demand_again_ms(refusal));
    }
    if (due_ms > looking->now_ms) {
        demand_look_again(looking, due_ms);
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

/* ---- how many more --------------------------------------------------------------------------- */

/* What was asked of a pool, or is thought of. Nodes over there are shared: their parts add up. */
struct asked {
    double cpus, memory_bytes, devices;
    int64_t n_nodes; /* All that the cluster was asked for. */
};

static void add_asked(struct asked *asked, double n, int64_t cpu_milli, int64_t memory_bytes,
                      int64_t device_milli)
{
    asked->cpus += n * (double)cpu_milli / 1000;
    asked->memory_bytes += n * (double)memory_bytes;
    asked->devices += n * (double)device_milli / WEIR_SCHED_DEVICE;
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
                      of->n_accelerators *
                          (of->accelerator_milli > 0 ? of->accelerator_milli : WEIR_SCHED_DEVICE));
        }
    }
    for (int32_t i = looking->n_own; i < looking->rows.n_nodes; i++) {
        const struct thought *of = &looking->thoughts[i];
        asked.n_nodes += of->pool != NULL && strcmp(of->pool->cluster, pool->cluster) == 0;
        if (of->pool == pool) {
            add_asked(&asked, 1, of->cpu_milli, of->memory_bytes, of->device_milli);
        }
    }
    return asked;
}

static double part(double asked, int64_t has)
{
    return has > 0 ? asked / (double)has : 0;
}

/* What does not fit beside what was asked for waits over there. */
int64_t demand_n_left(const struct looking *looking, const struct weir_pool *pool)
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

/* ---- nodes that are thought of --------------------------------------------------------------- */

/* Only a job that may ask tolerates them (open_to). */
static void think_of_pool(struct looking *looking, const struct weir_pool *pool, const char *mark,
                          int64_t n)
{
    struct weir_sched_node node = offers_pool_node(pool, mark, looking->now_ms, looking->arena);
    struct weir_sched_taint *taints = WEIR_ARENA_ARRAY(looking->arena, 2, struct weir_sched_taint);
    taints[0] = node.taints[0];
    taints[1] = (struct weir_sched_taint){DEMAND_ASK_KEY, pool->cluster};
    node.taints = taints;
    node.n_taints = 2;
    for (int64_t i = 0; i < n && (size_t)looking->rows.n_nodes < looking->nodes_cap; i++) {
        node.name = weir_arena_printf(looking->arena, "%s#%d", pool->id, looking->rows.n_nodes);
        demand_think_of(looking, &node, &(struct thought){.pool = pool});
    }
}

/* The mark of the nodes that are asked for there for the job of a row: it says the payer, and what its pods are to be. */
static const char *mark_of(struct looking *looking, int32_t row, const struct weir_pool *pool)
{
    return snapshot_mark(looking->snapshot, looking->jobs[row].queue, pool->cluster,
                         demand_pod(looking, row));
}

/* The marks of those that may ask, each once: a look thinks of so many payers of a pool at most. */
static size_t marks_of(struct looking *looking, const struct weir_pool *pool, int32_t turn,
                       const char *out[PAYERS_MAX])
{
    size_t n = 0;
    for (int32_t j = 0; j < looking->rows.n_jobs && n < PAYERS_MAX; j++) {
        if (!is_pending(looking, &looking->jobs[j]) || !may_ask(looking, j, pool, turn)) {
            continue;
        }
        const char *mark = mark_of(looking, j, pool);
        size_t i = 0;
        while (i < n && strcmp(out[i], mark) != 0) {
            i++;
        }
        out[n] = mark;
        n += i == n;
    }
    return n;
}

/* Those that may ask, and for whom this payer pays, tolerate the nodes that are thought of. @return Tasks that do. */
static int64_t open_to(struct looking *looking, const struct weir_pool *pool, const char *mark,
                       int32_t turn)
{
    int64_t n = 0;
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        const struct weir_sched_job *job = &looking->jobs[j];
        if (!is_pending(looking, job)) {
            continue;
        }
        struct snapshot_job *of = demand_job_of(looking, j);
        bool may = may_ask(looking, j, pool, turn) && strcmp(mark_of(looking, j, pool), mark) == 0;
        of->tolerations[of->n_tolerations] =
            (struct weir_sched_toleration){DEMAND_ASK_KEY, pool->cluster};
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

/* As many as the longest list of clusters has. */
static int32_t n_turns(const struct looking *looking)
{
    int32_t n = 1;
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        struct offers_where where = demand_where(looking, j);
        n = WEIR_MAX(n, (int32_t)WEIR_MIN(where.n, (size_t)WEIR_CLUSTERS_MAX));
    }
    return n;
}

/* An allocation has one payer: of each in turn. */
static weir_status think_of_payers(struct looking *looking, const struct weir_pool *pool,
                                   int32_t turn, struct weir_error *err)
{
    const char *marks[PAYERS_MAX];
    size_t n_marks = is_open(looking, pool) ? marks_of(looking, pool, turn, marks) : 0;
    for (size_t i = 0; i < n_marks; i++) {
        int64_t n = demand_n_left(looking, pool);
        int64_t n_tasks = n > 0 ? open_to(looking, pool, marks[i], turn) : 0;
        if (n_tasks > 0) {
            think_of_pool(looking, pool, marks[i], WEIR_MIN(n, n_tasks));
            WEIR_TRY(demand_plan(looking, err));
            drop_unused(looking);
        }
    }
    return WEIR_OK;
}

weir_status demand_think_of_pools(struct looking *looking, struct weir_error *err)
{
    for (int32_t turn = 0, n_all = n_turns(looking); turn < n_all; turn++) {
        for (size_t i = 0; i < looking->offers->n_pools; i++) {
            WEIR_TRY(think_of_payers(looking, &looking->offers->pools[i], turn, err));
        }
    }
    return WEIR_OK;
}
