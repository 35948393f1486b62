#include "control/schedule/live_private.h"

#include <string.h>

/* A project's queue with its project, and the departments above it. */
static void mark_named(struct live *live)
{
    const struct queue_tree *tree = &live->snapshot.queues;
    live->named = WEIR_ARENA_ARRAY(&live->arena, (size_t)live->rows->n_queues + 1, bool);
    for (int32_t q = 0; q < live->rows->n_queues; q++) {
        live->named[q] = live->names == NULL || live->names->is_all;
    }
    for (size_t i = 0; i < tree->n_projects; i++) {
        bool is_named = weir_row_scope_sees(live->names, tree->projects[i].name);
        for (int32_t q = tree->projects[i].row; is_named && q >= 0;
             q = live->rows->queues[q].parent) {
            live->named[q] = true;
        }
    }
}

weir_status live_open(struct live *live, struct weir_txn *txn, const struct control_live *at,
                      struct weir_error *err)
{
    live->names = at->names;
    live->now_ms = at->now_ms;
    snapshot_init(&live->snapshot);
    if (at->drivers != NULL) {
        live->snapshot.offers.drivers = at->drivers;
    }
    weir_arena_init(&live->arena, 0);
    weir_status status = snapshot_read(&live->snapshot, txn, at->now_ms, at->since_ms, err);
    if (status == WEIR_OK) {
        status = queue_tree_rules(&live->snapshot.queues, live->snapshot.queues.n_set > 0,
                                  &live->profile, err);
    }
    if (status != WEIR_OK) {
        live_close(live);
        return status;
    }
    live->rows = snapshot_rows(&live->snapshot, at->now_ms);
    mark_named(live);
    return WEIR_OK;
}

void live_close(struct live *live)
{
    snapshot_fini(&live->snapshot);
    weir_arena_fini(&live->arena);
}

const struct weir_job *live_job(const struct live *live, int32_t row)
{
    return &live->snapshot.tasks[live->rows->jobs[row].first_task].job->state.job;
}

bool live_names_job(const struct live *live, int32_t row)
{
    return weir_row_scope_sees(live->names, live_job(live, row)->project);
}

int32_t live_find_queue(const struct live *live, const char *name)
{
    for (int32_t q = 0; q < live->rows->n_queues; q++) {
        if (live->named[q] && strcmp(live->rows->queues[q].name, name) == 0) {
            return q;
        }
    }
    return -1;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void *copy_rows(struct weir_arena *arena, const void *rows, size_t n, size_t more,
                       size_t row_bytes)
{
    void *copy = weir_arena_alloc(arena, (n + more + 1) * row_bytes);
    if (n > 0) {
        memcpy(copy, rows, n * row_bytes);
    }
    return copy;
}

void live_change_begin(struct live *live, int64_t n_nodes, struct live_change *out)
{
    const struct weir_sched_snapshot *rows = live->rows;
    struct weir_arena *arena = &live->arena;
    out->rows = *rows;
    out->rows.nodes = out->nodes =
        copy_rows(arena, rows->nodes, (size_t)rows->n_nodes, (size_t)n_nodes, sizeof *out->nodes);
    out->rows.queues = out->queues =
        copy_rows(arena, rows->queues, (size_t)rows->n_queues, 1, sizeof *out->queues);
    out->i_queue = -1;
    out->rows.jobs = out->jobs =
        copy_rows(arena, rows->jobs, (size_t)rows->n_jobs, 0, sizeof *out->jobs);
}

void live_add_nodes(struct live *live, struct live_change *change, int32_t like, int64_t n)
{
    const struct weir_node *facts = &live->snapshot.nodes[like].facts;
    for (int64_t i = 0; i < n; i++) {
        struct weir_sched_node *node = &change->nodes[change->rows.n_nodes++];
        *node = change->nodes[like];
        node->name = weir_arena_printf(&live->arena, "another %s", facts->name);
        node->cpu_milli = WEIR_MIN(node->cpu_milli, facts->cpu_slots * 1000);
        node->is_cordoned = false;
    }
}

const struct ask *live_ask(const struct live *live, int32_t job)
{
    return live->snapshot.tasks[live->rows->jobs[job].first_task].job->ask;
}

/* The mark of nodes of a cluster that are asked for, for this job. */
static const char *mark_for(struct live *live, int32_t job, const char *cluster)
{
    const struct ask *ask = job >= 0 ? live_ask(live, job) : NULL;
    return job >= 0 ? snapshot_mark(&live->snapshot, live->rows->jobs[job].queue, cluster,
                                    ask != NULL ? ask->pod : NULL)
                    : offers_mark(&live->snapshot.offers, cluster, NULL, NULL, &live->arena);
}

void live_add_pool_nodes(struct live *live, struct live_change *change,
                         const struct weir_pool *pool, int32_t job, int64_t n)
{
    const char *mark = mark_for(live, job, pool->cluster);
    struct weir_sched_node node = offers_pool_node(pool, mark, live->now_ms, &live->arena);
    for (int64_t i = 0; i < n; i++) {
        node.name = weir_arena_printf(&live->arena, "another of %s", pool->id);
        change->nodes[change->rows.n_nodes++] = node;
    }
}

void live_put_first(struct live_change *change, int32_t job)
{
    struct weir_sched_job *first = &change->jobs[job];
    for (int32_t i = 0; i < change->rows.n_jobs; i++) {
        if (change->jobs[i].queue == first->queue) {
            first->priority = WEIR_MAX(first->priority, change->jobs[i].priority);
        }
    }
    first->created_ms = 1;
}

json_t *live_amount(int64_t amount, bool is_memory)
{
    if (amount < 0) {
        return json_null();
    }
    return is_memory ? json_integer((json_int_t)amount) : weir_json_milli(amount);
}
