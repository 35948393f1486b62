#include "control/schedule/demand_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* They run, and not all of their agents are here. */
static const char *tell_start(struct looking *looking, const struct weir_allocation *of,
                              const char *nodes, const char *id)
{
    char since[WEIR_TIME_TEXT_BYTES];
    if (looking->now_ms - of->started_ms < DEMAND_DEVICES_MS) {
        demand_look_again(looking, of->started_ms + DEMAND_DEVICES_MS);
        return weir_arena_printf(
            looking->arena, "%s: they are there (%s), and their agents are starting", nodes, id);
    }
    weir_time_format(of->started_ms, since);
    return weir_arena_printf(looking->arena,
                             "%s: they are there (%s) since %s, and their agents have not all "
                             "joined: can those nodes reach this server at its address?",
                             nodes, id, since);
}

static const char *tell_allocation(struct looking *looking, const struct weir_allocation *of)
{
    struct weir_arena *arena = looking->arena;
    const char *id = of->their_id != NULL ? of->their_id : of->id;
    const char *nodes = of->n_nodes == 1
                            ? weir_arena_printf(arena, "a node of cluster %s", of->cluster)
                            : weir_arena_printf(arena, "%lld nodes of cluster %s",
                                                (long long)of->n_nodes, of->cluster);
    const char *why = of->why != NULL ? weir_arena_printf(arena, ": %s", of->why) : "";
    if (demand_is_state(of, WEIR_ALLOCATION_RUNS)) {
        return tell_start(looking, of, nodes, id);
    }
    if (demand_is_state(of, WEIR_ALLOCATION_WANTED)) {
        return weir_arena_printf(arena, "asks for %s%s", nodes, why);
    }
    return weir_arena_printf(arena, "waits for %s (%s there%s%s)%s", nodes, id,
                             of->said != NULL ? ": " : "", of->said != NULL ? of->said : "", why);
}

/* The first refusal of a cluster's pools; NULL. */
static const struct offers_refusal *find_refusal(const struct looking *looking, const char *job,
                                                 const struct weir_cluster *cluster)
{
    const struct offers_refusal *found = NULL;
    for (size_t i = 0; i < looking->offers->n_pools && found == NULL; i++) {
        const struct weir_pool *pool = &looking->offers->pools[i];
        found =
            strcmp(pool->cluster, cluster->name) == 0 ? demand_refusal(looking, job, pool) : NULL;
    }
    return found;
}

/* A pool that could be asked, and in which the job finds no place beside what was asked for. */
static const char *tell_room(struct looking *looking, const struct weir_pool *pool)
{
    struct weir_arena *arena = looking->arena;
    int64_t n = demand_n_left(looking, pool);
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

/* Why no pool of a cluster gives a job a place: what the first of them says. */
static const char *tell_pools(struct looking *looking, const struct weir_cluster *cluster)
{
    struct weir_arena *arena = looking->arena;
    for (size_t i = 0; i < looking->offers->n_pools; i++) {
        const struct weir_pool *pool = &looking->offers->pools[i];
        if (strcmp(pool->cluster, cluster->name) == 0) {
            return pool->why != NULL
                       ? weir_arena_printf(arena, "pool %s of cluster %s gives no nodes now: %s",
                                           pool->name, cluster->name, pool->why)
                       : tell_room(looking, pool);
        }
    }
    return weir_arena_printf(
        arena, "no pool of cluster %s gives it a place: `weir get pools` shows their nodes",
        cluster->name);
}

/* Why nothing was asked of a cluster that the job may run on. */
static const char *tell_cluster(struct looking *looking, int32_t row,
                                const struct offers_where *where,
                                const struct weir_cluster *cluster)
{
    struct weir_arena *arena = looking->arena;
    char at[WEIR_TIME_TEXT_BYTES];
    if (strcmp(cluster->state, WEIR_CLUSTER_READY) != 0) {
        return weir_arena_printf(arena, "cluster %s is %s%s%s", cluster->name, cluster->state,
                                 cluster->said != NULL ? ": " : "",
                                 cluster->said != NULL ? cluster->said : "");
    }
    if (cluster->is_draining) {
        return weir_arena_printf(arena, "nothing is asked of cluster %s: it is being drained",
                                 cluster->name);
    }
    const struct offers_refusal *refusal =
        find_refusal(looking, demand_job_of(looking, row)->state.job.id, cluster);
    if (refusal != NULL) {
        weir_time_format(demand_again_ms(refusal), at);
        return weir_arena_printf(arena, "cluster %s: %s; it is asked again at %s", cluster->name,
                                 refusal->why != NULL ? refusal->why : "refused", at);
    }
    int64_t due_ms = demand_due_ms(looking, row, where, cluster);
    if (due_ms > looking->now_ms) {
        weir_time_format(due_ms, at);
        return weir_arena_printf(arena, "nodes of cluster %s are asked for at %s", cluster->name,
                                 at);
    }
    return tell_pools(looking, cluster);
}

/* It names clusters, and its queue lists none of them. NULL: it does. */
static const char *refused_by_queue(struct looking *looking, const struct offers_where *where)
{
    bool allows = where->n == 0;
    for (size_t i = 0; i < where->n && !allows; i++) {
        allows = offers_allows(where, where->names[i]);
    }
    return allows
               ? NULL
               : weir_arena_printf(looking->arena,
                                   "it is to run on %s%s, and queue %s does not let its jobs run "
                                   "there: `weir get queues` says where",
                                   where->names[0], where->n > 1 ? ", …" : "", where->bound_by);
}

/* Why nothing was asked for, for a job that waits: what the first cluster that it may run on says. */
static const char *tell_none(struct looking *looking, int32_t row)
{
    struct offers_where where = demand_where(looking, row);
    const char *refused = refused_by_queue(looking, &where);
    if (refused != NULL) {
        return refused;
    }
    for (size_t i = 0; i < where.n; i++) {
        if (strcmp(where.names[i], WEIR_CLUSTER_OWN) != 0 &&
            offers_cluster(looking->offers, where.names[i]) == NULL) {
            return weir_arena_printf(looking->arena, "there is no cluster %s (`weir get clusters`)",
                                     where.names[i]);
        }
    }
    for (size_t i = 0; i < looking->offers->n_clusters; i++) {
        const struct weir_cluster *cluster = &looking->offers->clusters[i];
        if (offers_rank(&where, cluster->name) >= 0 && demand_can_be(looking, row, cluster->name)) {
            return tell_cluster(looking, row, &where, cluster);
        }
    }
    return demand_pod(looking, row) != NULL
               ? "no cluster that it may run on makes pods: `weir get clusters`"
               : NULL;
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

void demand_tell(struct looking *looking, const struct weir_sched_snapshot *before)
{
    struct demand *out = looking->out;
    out->waits =
        WEIR_ARENA_ARRAY(looking->arena, (size_t)looking->rows.n_jobs + 1, struct demand_wait);
    for (int32_t j = 0; j < looking->rows.n_jobs; j++) {
        const struct weir_sched_job *job = &looking->jobs[j];
        const char *id = demand_job_of(looking, j)->state.job.id;
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
