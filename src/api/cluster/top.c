/** What is kept and what is used, now: of nodes, and of the jobs that run. */
#include "api/cluster/node.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/uses.h"

#include "base/clock.h"
#include "base/grow.h"
#include "control/small.h"
#include "store/stmt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 1000

/* By the index of nodes and states. */
#define TASKS(of)                                                                                  \
    "SELECT " of ", t.node, t.id, t.cpu_millis, t.memory_bytes, t.n_accelerators,"                 \
    " t.accelerator_milli, j.name, j.project, j.kind, j.created_by, t.state = 'RUNNING'"           \
    " FROM tasks t JOIN jobs j ON j.id = t.job"                                                    \
    " WHERE t.node IN (SELECT name FROM nodes WHERE name = :node OR :node IS NULL)"                \
    " AND t.state IN ('STARTING', 'RUNNING', 'STOPPING') ORDER BY 1"

static const char sql_by_node[] = TASKS("t.node");
static const char sql_by_job[] = TASKS("j.id");

enum {
    OF,
    NODE,
    TASK,
    CPU_MILLIS,
    MEMORY,
    ACCELERATORS,
    ACCELERATOR_MILLI,
    NAME,
    PROJECT,
    KIND,
    BY,
    IS_RUNNING
};

/* Of a node, or of a job. */
struct load {
    char *of;
    int64_t n_tasks, cpu_millis, small_millis, memory_bytes, accelerator_milli;
    double cpus_busy;
    int64_t memory_used_bytes;
    int64_t n_known, n_unknown; /* tasks of which their agent said what they use; others that run */
    char *name, *project, *kind, *created_by;
};

static void add_task(const struct api_call *call, struct weir_stmt *row, struct load *load)
{
    struct use_of_task use;
    int64_t millis = weir_stmt_int(row, CPU_MILLIS), each = weir_stmt_int(row, ACCELERATOR_MILLI);
    load->n_tasks++;
    load->cpu_millis += millis;
    load->small_millis += millis < CONTROL_SMALL_MILLIS ? millis : 0;
    load->memory_bytes += weir_stmt_int(row, MEMORY);
    load->accelerator_milli += weir_stmt_int(row, ACCELERATORS) * (each > 0 ? each : 1000);
    if (uses_get(call->api->uses, weir_stmt_text(row, NODE, call->arena),
                 weir_stmt_text(row, TASK, call->arena), weir_mono_ms(), &use)) {
        load->cpus_busy += use.cpu_cores;
        load->memory_used_bytes += use.memory_bytes;
        load->n_known++;
    } else {
        load->n_unknown += weir_stmt_int(row, IS_RUNNING);
    }
}

static weir_status read_loads(const struct api_call *call, struct weir_txn *txn, const char *sql,
                              const char *node, struct load **out, size_t *out_n,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct load *loads = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        char *of = weir_stmt_text(row, OF, call->arena);
        if (n == 0 || strcmp(loads[n - 1].of, of) != 0) {
            weir_arena_grow(call->arena, &loads, sizeof *loads, n, &cap);
            loads[n++] = (struct load){.of = of,
                                       .name = weir_stmt_text(row, NAME, call->arena),
                                       .project = weir_stmt_text(row, PROJECT, call->arena),
                                       .kind = weir_stmt_text(row, KIND, call->arena),
                                       .created_by = weir_stmt_text(row, BY, call->arena)};
        }
        add_task(call, row, &loads[n - 1]);
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = loads;
    *out_n = n;
    return WEIR_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int by_name(const void *key, const void *item)
{
    return strcmp(key, ((const struct load *)item)->of);
}

/* What a task of whole CPUs could get: what is small lies beside them first (control/small.h). */
static int64_t free_millis(const struct weir_node *node, const struct load *load)
{
    int64_t beside = WEIR_MIN(load->small_millis, (int64_t)CONTROL_SMALL_ROOM_MILLIS);
    return WEIR_MAX(node->cpu_slots * 1000 - (load->cpu_millis - beside), (int64_t)0);
}

/* A sum of which a part is missing would be taken for all of it: right after a start of the server, say. */
static struct api_use use_of(const struct load *load)
{
    bool is_known = load->n_known > 0 && load->n_unknown == 0;
    return (struct api_use){.cpus_busy = is_known ? load->cpus_busy : NAN,
                            .memory_used_bytes = is_known ? load->memory_used_bytes : WEIR_INT_NONE,
                            .memory_kept_bytes = load->memory_bytes,
                            .accelerators_used = load->accelerator_milli,
                            .n_tasks = load->n_tasks};
}

weir_status api_node_views(const struct api_call *call, struct weir_txn *txn,
                           const struct weir_node *nodes, size_t n_nodes, struct api_node **out,
                           struct weir_error *err)
{
    static const struct load nothing;
    struct load *loads;
    size_t n;
    WEIR_TRY(
        read_loads(call, txn, sql_by_node, n_nodes == 1 ? nodes[0].name : NULL, &loads, &n, err));
    struct api_node *views = WEIR_ARENA_ARRAY(call->arena, n_nodes, struct api_node);
    struct api_load *its = WEIR_ARENA_ARRAY(call->arena, n_nodes, struct api_load);
    for (size_t i = 0; i < n_nodes; i++) {
        const struct load *load =
            n > 0 ? bsearch(nodes[i].name, loads, n, sizeof *loads, by_name) : NULL;
        load = load != NULL ? load : &nothing;
        its[i] = (struct api_load){.cpus_used = load->cpu_millis,
                                   .cpus_free = free_millis(&nodes[i], load),
                                   .use = use_of(load)};
        views[i] = (struct api_node){
            .row = &nodes[i],
            .state = weir_node_state(&nodes[i], call->now_ms, call->api->since_ms),
            .load = &its[i]};
    }
    *out = views;
    return WEIR_OK;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Who uses most comes first, then who keeps most; the older of equals. */
static int by_use(const void *left, const void *right)
{
    const struct load *l = left, *r = right;
    int order = (l->cpus_busy < r->cpus_busy) - (l->cpus_busy > r->cpus_busy);
    order = order != 0 ? order : (l->cpu_millis < r->cpu_millis) - (l->cpu_millis > r->cpu_millis);
    return order != 0 ? order : strcmp(l->of, r->of);
}

weir_status api_top_jobs(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct load *loads;
    size_t n;
    const char *node = api_query_text(call, "node");
    WEIR_TRY(read_loads(call, txn, sql_by_job, node, &loads, &n, err));
    if (n > 0) {
        qsort(loads, n, sizeof *loads, by_use);
    }
    n = WEIR_MIN(n, (size_t)JOBS_MAX);
    struct api_busy_job *items = WEIR_ARENA_ARRAY(call->arena, n, struct api_busy_job);
    for (size_t i = 0; i < n; i++) {
        items[i] = (struct api_busy_job){.id = loads[i].of,
                                         .name = loads[i].name,
                                         .project = loads[i].project,
                                         .kind = loads[i].kind,
                                         .created_by = loads[i].created_by,
                                         .cpus_used = loads[i].cpu_millis,
                                         .use = use_of(&loads[i])};
    }
    API_ANSWER(call, api_busy_jobs, .items = items, .n_items = n);
    return WEIR_OK;
}
