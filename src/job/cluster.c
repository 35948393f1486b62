#include "job/cluster.h"

#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

#define OPTIONS_MAX_BYTES ((size_t)64 << 10)
#define NODES_MAX_BYTES   ((size_t)256 << 10)
#define POD_MAX_BYTES     ((size_t)16 << 10)
#define REVISIONS         "cluster_revisions"

// clang-format off
static const struct weir_field cluster_fields[] = {
    WEIR_FIELD(weir_cluster, name,        TEXT, WEIR_FIELD_KEY | WEIR_FIELD_REQUIRED | WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_cluster, driver,      TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "Kind of its supplier: `weir explain drivers`"),
    WEIR_FIELD_SIZED(weir_cluster, options, JSON, WEIR_FIELD_MUTABLE, OPTIONS_MAX_BYTES, "", "Options of the driver: `weir explain driver NAME`"),
    WEIR_FIELD(weir_cluster, is_draining, BOOL, WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "Nothing new is asked for"),
    WEIR_FIELD(weir_cluster, after_ms,    INT,  WEIR_FIELD_MUTABLE, "ms", "A job has waited for so long before nodes are asked for it here"),
    WEIR_FIELD(weir_cluster, idle_ms,     INT,  WEIR_FIELD_MUTABLE, "ms", "Nodes on which nothing has run for so long are given back"),
    WEIR_FIELD(weir_cluster, time_ms,     INT,  WEIR_FIELD_MUTABLE, "ms", "For how long nodes are asked for, if no job says how long it runs; 0: for as long as may be"),
    WEIR_FIELD(weir_cluster, max_nodes,   INT,  WEIR_FIELD_MUTABLE | WEIR_FIELD_COLUMN, "", "Nodes at a time; 0: no bound of Weir's"),
    WEIR_FIELD(weir_cluster, state,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "new, ready, wrong (something lacks) or silent (it does not answer)"),
    WEIR_FIELD(weir_cluster, said,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What lacks, or why it does not answer"),
    WEIR_FIELD(weir_cluster, heard_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "Its last answer"),
    WEIR_FIELD(weir_cluster, created_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "The user that added it"),
    WEIR_FIELD(weir_cluster, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
static const struct weir_field pool_fields[] = {
    WEIR_FIELD(weir_pool, id,             TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "CLUSTER/NAME"),
    WEIR_FIELD(weir_pool, cluster,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Cluster"),
    WEIR_FIELD(weir_pool, name,           TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_pool, cpu_slots,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "CPUs of a node"),
    WEIR_FIELD(weir_pool, memory_bytes,   INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "bytes", "Memory of a node"),
    WEIR_FIELD(weir_pool, n_accelerators, INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Accelerators of a node"),
    WEIR_FIELD(weir_pool, accelerator,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Their model"),
    WEIR_FIELD(weir_pool, accelerator_parts, INT, WEIR_FIELD_READ_ONLY, "", "Into how many parts one can be had; 0: whole ones only"),
    WEIR_FIELD(weir_pool, max_nodes,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Nodes there are; 0: nobody says"),
    WEIR_FIELD(weir_pool, time_max_ms,    INT,  WEIR_FIELD_READ_ONLY, "ms", "For how long they are given at the most; 0: nobody says"),
    WEIR_FIELD(weir_pool, weight,         F64,  WEIR_FIELD_READ_ONLY, "", "What a node costs beside those of other pools"),
    WEIR_FIELD(weir_pool, cpus_busy,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "CPUs of its nodes that are in use there, also by others; -1: nobody says"),
    WEIR_FIELD(weir_pool, why,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why none can be had now"),
};
static const struct weir_field allocation_fields[] = {
    WEIR_FIELD(weir_allocation, id,             TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier, also over there"),
    WEIR_FIELD(weir_allocation, cluster,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Cluster"),
    WEIR_FIELD(weir_allocation, pool,           TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pool"),
    WEIR_FIELD(weir_allocation, state,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "wanted, pending, running, releasing or ended"),
    WEIR_FIELD(weir_allocation, their_id,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What it is called over there: the number of Slurm's job"),
    WEIR_FIELD(weir_allocation, job,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "The first job that it was asked for"),
    WEIR_FIELD(weir_allocation, project,        TEXT, WEIR_FIELD_READ_ONLY, "", "Project of that job"),
    WEIR_FIELD(weir_allocation, queue,          TEXT, WEIR_FIELD_READ_ONLY, "", "Queue; its account pays. null: the cluster's own account"),
    WEIR_FIELD(weir_allocation, n_nodes,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Nodes"),
    WEIR_FIELD(weir_allocation, cpu_slots,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "CPUs of each, at least"),
    WEIR_FIELD(weir_allocation, memory_bytes,   INT,  WEIR_FIELD_READ_ONLY, "bytes", "Memory of each, at least"),
    WEIR_FIELD(weir_allocation, n_accelerators, INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Accelerators of each"),
    WEIR_FIELD(weir_allocation, accelerator_milli, INT, WEIR_FIELD_READ_ONLY, "", "What of each accelerator, in thousandths; 0: all of it"),
    WEIR_FIELD(weir_allocation, accelerator,    TEXT, WEIR_FIELD_READ_ONLY, "", "Their model; null: any"),
    WEIR_FIELD_SIZED(weir_allocation, pod, JSON, WEIR_FIELD_READ_ONLY, POD_MAX_BYTES, "", "Image and volumes that jobs want of its pods; null: as the cluster's document says"),
    WEIR_FIELD(weir_allocation, time_ms,        INT,  WEIR_FIELD_READ_ONLY, "ms", "For how long it was asked for; 0: for as long as may be"),
    WEIR_FIELD_SIZED(weir_allocation, nodes, JSON, WEIR_FIELD_READ_ONLY, NODES_MAX_BYTES, "", "What its nodes are called over there"),
    WEIR_FIELD(weir_allocation, said,           TEXT, WEIR_FIELD_READ_ONLY, "", "State or reason in the words of the other side"),
    WEIR_FIELD(weir_allocation, why,            TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it waits, or how it ended"),
    WEIR_FIELD(weir_allocation, ending,         TEXT, WEIR_FIELD_READ_ONLY, "", "released, time, preempted, cancelled, failed or refused"),
    WEIR_FIELD(weir_allocation, closed,         TEXT, WEIR_FIELD_READ_ONLY, "", "A node of it that takes nothing new over there, and why"),
    WEIR_FIELD(weir_allocation, starts_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "While it waits: when it is expected to start over there"),
    WEIR_FIELD(weir_allocation, ends_ms,        TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "While it runs: when it ends at the latest"),
    WEIR_FIELD(weir_allocation, created_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was wanted"),
    WEIR_FIELD(weir_allocation, asked_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was asked for"),
    WEIR_FIELD(weir_allocation, started_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it began to run"),
    WEIR_FIELD(weir_allocation, idle_since_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when nothing needs it"),
    WEIR_FIELD(weir_allocation, ended_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "When it had ended"),
};
// clang-format on

const struct weir_resource weir_cluster_resource =
    WEIR_RESOURCE("cluster", "clusters", weir_cluster, cluster_fields);
const struct weir_resource weir_pool_resource =
    WEIR_RESOURCE("pool", "pools", weir_pool, pool_fields);
const struct weir_resource weir_allocation_resource =
    WEIR_RESOURCE("allocation", "allocations", weir_allocation, allocation_fields);

const struct weir_noun weir_noun_allocation = {
    "allocations", .project = "project",
    .rules = {WEIR_RULE("allocations", "Nodes that were asked of clusters, and have ended",
                        "Those that ended longest ago go first.", 75, {WEIR_DAYS(365), WEIR_MB(5)},
                        900, 4, .time = "ended_ms", .where = "state = 'ended'")}};

#define OPEN "state <> 'ended'"

static const char sql_revision[] = "SELECT value FROM counters WHERE name = '" REVISIONS "'";
static const char sql_remove_pools[] = "DELETE FROM pools WHERE cluster = :cluster";
static const char sql_note_idle[] =
    "UPDATE allocations SET idle_since_ms = :since WHERE id = :id AND " OPEN;
static const char sql_close_nodes[] =
    "UPDATE nodes SET is_draining = 1 WHERE allocation = :id AND left_ms = 0";
static const char sql_nodes[] =
    "SELECT name FROM nodes WHERE allocation = :id AND left_ms = 0 ORDER BY name";

weir_status weir_cluster_revision(struct weir_txn *txn, int64_t *out, struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_revision, WEIR_NO_BINDS, 0, out, err);
}

static weir_status count_change(struct weir_txn *txn, struct weir_error *err)
{
    int64_t n;
    return weir_txn_next(txn, REVISIONS, &n, err);
}

/* ---- clusters -------------------------------------------------------------------------------- */

weir_status weir_cluster_list(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_cluster **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {.limit = WEIR_CLUSTERS_MAX};
    return weir_txn_list(txn, &weir_cluster_resource, &query, arena, (void **)out, out_n, NULL,
                         err);
}

weir_status weir_cluster_set(struct weir_txn *txn, const struct weir_cluster *cluster,
                             struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(count_change(txn, err));
    weir_status status = weir_txn_update(txn, &weir_cluster_resource, cluster,
                                         WEIR_FIELDS("driver", "options", "is_draining", "after_ms",
                                                     "idle_ms", "time_ms", "max_nodes"),
                                         err);
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    WEIR_TRY(weir_txn_count(txn, &weir_cluster_resource, NULL, &n, err));
    return n < WEIR_CLUSTERS_MAX
               ? weir_txn_insert(txn, &weir_cluster_resource, cluster, err)
               : weir_error_set(err, WEIR_ERR_LIMIT, "there are %d clusters: no more can be added",
                                WEIR_CLUSTERS_MAX);
}

weir_status weir_cluster_note(struct weir_txn *txn, const struct weir_cluster *cluster,
                              struct weir_error *err)
{
    struct weir_error gone;
    WEIR_TRY(count_change(txn, err));
    weir_status status = weir_txn_update(txn, &weir_cluster_resource, cluster,
                                         WEIR_FIELDS("state", "said", "heard_ms"), &gone);
    return status == WEIR_OK || status == WEIR_ERR_NOT_FOUND
               ? WEIR_OK
               : weir_error_set(err, status, "%s", gone.message);
}

static const struct weir_filter *open_of(const char *cluster, struct weir_filter *out)
{
    *out = WEIR_FILTER_TEXT("cluster", EQ, cluster);
    return out;
}

weir_status weir_cluster_remove(struct weir_txn *txn, const char *name, struct weir_error *err)
{
    struct weir_filter of;
    const struct weir_query open = {
        .filters = open_of(name, &of), .n_filters = 1, .condition = OPEN};
    int64_t n;
    WEIR_TRY(weir_txn_count(txn, &weir_allocation_resource, &open, &n, err));
    if (n > 0) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "cluster %s has %lld allocations that have not ended: drain it first "
            "(`weir cluster drain %s`), and wait until they have, or release them",
            name, (long long)n, name);
    }
    WEIR_TRY(count_change(txn, err));
    WEIR_TRY(weir_txn_exec(txn, sql_remove_pools, WEIR_BINDS(WEIR_BIND_TEXT("cluster", name)), NULL,
                           err));
    return weir_txn_delete(txn, &weir_cluster_resource, name, err);
}

/* ---- pools ----------------------------------------------------------------------------------- */

weir_status weir_pools_put(struct weir_txn *txn, const char *cluster, const struct weir_pool *pools,
                           size_t n, struct weir_error *err)
{
    WEIR_TRY(count_change(txn, err));
    WEIR_TRY(weir_txn_exec(txn, sql_remove_pools, WEIR_BINDS(WEIR_BIND_TEXT("cluster", cluster)),
                           NULL, err));
    for (size_t i = 0; i < n && i < WEIR_POOLS_MAX; i++) {
        WEIR_TRY(weir_txn_upsert(txn, &weir_pool_resource, &pools[i], err));
    }
    return WEIR_OK;
}

weir_status weir_pool_list(struct weir_txn *txn, const char *cluster, struct weir_arena *arena,
                           struct weir_pool **out, size_t *out_n, struct weir_error *err)
{
    struct weir_filter of;
    const struct weir_query query = {.filters = open_of(cluster, &of),
                                     .n_filters = cluster != NULL,
                                     .limit = (size_t)WEIR_CLUSTERS_MAX * WEIR_POOLS_MAX};
    return weir_txn_list(txn, &weir_pool_resource, &query, arena, (void **)out, out_n, NULL, err);
}

/* ---- allocations ----------------------------------------------------------------------------- */

weir_status weir_allocation_list_open(struct weir_txn *txn, const char *cluster,
                                      struct weir_arena *arena, struct weir_allocation **out,
                                      size_t *out_n, struct weir_error *err)
{
    struct weir_filter of;
    const struct weir_query query = {.filters = open_of(cluster, &of),
                                     .n_filters = cluster != NULL,
                                     .condition = OPEN,
                                     .order_by = "cluster",
                                     .limit = WEIR_ALLOCATIONS_OPEN_MAX};
    return weir_txn_list(txn, &weir_allocation_resource, &query, arena, (void **)out, out_n, NULL,
                         err);
}

weir_status weir_allocation_list_closed(struct weir_txn *txn, struct weir_arena *arena,
                                        struct weir_allocation **out, size_t *out_n,
                                        struct weir_error *err)
{
    const struct weir_query query = {.condition = OPEN " AND closed IS NOT NULL",
                                     .limit = WEIR_ALLOCATIONS_OPEN_MAX};
    return weir_txn_list(txn, &weir_allocation_resource, &query, arena, (void **)out, out_n, NULL,
                         err);
}

weir_status weir_allocation_insert(struct weir_txn *txn, const struct weir_allocation *allocation,
                                   int64_t now_ms, struct weir_error *err)
{
    const struct weir_query open = {.condition = OPEN};
    struct weir_allocation made = *allocation;
    int64_t n;
    WEIR_TRY(weir_txn_count(txn, &weir_allocation_resource, &open, &n, err));
    if (n >= WEIR_ALLOCATIONS_OPEN_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%d allocations are open: no more is asked for",
                              WEIR_ALLOCATIONS_OPEN_MAX);
    }
    made.state = (char *)WEIR_ALLOCATION_WANTED;
    made.their_id = made.nodes = made.said = made.why = made.ending = made.closed = NULL;
    made.starts_ms = made.ends_ms = made.asked_ms = made.started_ms = made.idle_since_ms =
        made.ended_ms = 0;
    made.created_ms = now_ms;
    WEIR_TRY(count_change(txn, err));
    return weir_txn_insert(txn, &weir_allocation_resource, &made, err);
}

/* Has it ended? NOT_FOUND without such a row. */
static weir_status load(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                        struct weir_allocation *out, bool *out_is_over, struct weir_error *err)
{
    WEIR_TRY(weir_txn_get(txn, &weir_allocation_resource, id, arena, out, err));
    *out_is_over = strcmp(out->state, WEIR_ALLOCATION_OVER) == 0;
    return WEIR_OK;
}

static weir_status save(struct weir_txn *txn, const struct weir_allocation *allocation,
                        struct weir_error *err)
{
    WEIR_TRY(count_change(txn, err));
    return weir_txn_update(txn, &weir_allocation_resource, allocation,
                           WEIR_FIELDS("state", "their_id", "nodes", "said", "why", "ending",
                                       "closed", "starts_ms", "ends_ms", "asked_ms", "started_ms",
                                       "ended_ms"),
                           err);
}

weir_status weir_allocation_begin(struct weir_txn *txn, const char *id, int64_t now_ms,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_allocation allocation;
    bool is_over;
    weir_arena_init(&arena, 0);
    WEIR_TRY(load(txn, id, &arena, &allocation, &is_over, err));
    if (strcmp(allocation.state, WEIR_ALLOCATION_WANTED) != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "allocation %s is %s: it is not wanted", id,
                              allocation.state);
    }
    allocation.asked_ms = now_ms;
    return save(txn, &allocation, err);
}

weir_status weir_allocation_save(struct weir_txn *txn, const struct weir_allocation *allocation,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_allocation was, is = *allocation;
    bool is_over;
    weir_arena_init(&arena, 0);
    WEIR_TRY(load(txn, allocation->id, &arena, &was, &is_over, err));
    if (strcmp(was.state, WEIR_ALLOCATION_RELEASING) == 0) {
        bool has_ended = strcmp(is.state, WEIR_ALLOCATION_OVER) == 0;
        is.state = has_ended ? is.state : was.state;
        is.why = has_ended && is.why != NULL ? is.why : was.why;
        is.ending = was.ending != NULL ? was.ending : is.ending;
    }
    return is_over ? WEIR_OK : save(txn, &is, err);
}

weir_status weir_allocation_note_idle(struct weir_txn *txn, const char *id, int64_t since_ms,
                                      struct weir_error *err)
{
    WEIR_TRY(count_change(txn, err));
    return weir_txn_exec(txn, sql_note_idle,
                         WEIR_BINDS(WEIR_BIND_INT("since", since_ms), WEIR_BIND_TEXT("id", id)),
                         NULL, err);
}

static weir_status give_back(struct weir_txn *txn, const char *id, const char *ending,
                             const char *why, int64_t now_ms, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_allocation allocation;
    bool is_over;
    weir_arena_init(&arena, 0);
    WEIR_TRY(load(txn, id, &arena, &allocation, &is_over, err));
    if (is_over || strcmp(allocation.state, WEIR_ALLOCATION_RELEASING) == 0) {
        return WEIR_OK;
    }
    bool was_asked = allocation.asked_ms > 0;
    allocation.state = (char *)(was_asked ? WEIR_ALLOCATION_RELEASING : WEIR_ALLOCATION_OVER);
    allocation.why = (char *)why;
    allocation.ending = (char *)(was_asked ? ending : "released");
    allocation.ended_ms = was_asked ? 0 : now_ms;
    /* A task that came before its agent is told would only be begun, and begun again elsewhere. */
    WEIR_TRY(weir_txn_exec(txn, sql_close_nodes, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), NULL, err));
    return save(txn, &allocation, err);
}

weir_status weir_allocation_release(struct weir_txn *txn, const char *id, const char *why,
                                    int64_t now_ms, struct weir_error *err)
{
    return give_back(txn, id, NULL, why, now_ms, err);
}

weir_status weir_allocation_give_up(struct weir_txn *txn, const char *id, const char *why,
                                    int64_t now_ms, struct weir_error *err)
{
    return give_back(txn, id, "failed", why, now_ms, err);
}

weir_status weir_allocation_nodes(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                                  char ***out, size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_nodes, WEIR_BINDS(WEIR_BIND_TEXT("id", id)), arena, out,
                                out_n, err);
}
