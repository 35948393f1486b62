#include "control/offers.h"

#include "cluster/driver.h"
#include "control/snapshot.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define REFUSALS_MS  ((int64_t)3600 * 1000)
#define REFUSALS_MAX 4096

/* By the index of ends. */
static const char sql_refusals[] =
    "SELECT job, pool, cluster, max(why), max(ended_ms), count(*) FROM allocations"
    " WHERE ended_ms > :since AND ending IN ('refused', 'failed') AND job IS NOT NULL"
    " GROUP BY job, pool, cluster ORDER BY job LIMIT :n";

/* A pool that does not tell its memory has so much. */
#define MEMORY_UNTOLD_BYTES ((int64_t)1 << 42)

void offers_init(struct offers *offers)
{
    *offers = (struct offers){.revision = -1, .drivers = &weir_drivers};
    weir_arena_init(&offers->arena, 0);
}

void offers_fini(struct offers *offers)
{
    for (size_t i = 0; offers->of != NULL && i < offers->n_clusters; i++) {
        json_decref(offers->of[i].document);
    }
    offers->of = NULL;
    weir_arena_fini(&offers->arena);
}

static void forget(struct offers *offers)
{
    const struct weir_registry *drivers = offers->drivers;
    offers_fini(offers);
    offers_init(offers);
    offers->drivers = drivers;
}

/* Options that cannot be read say no payer: nothing is asked of such a cluster. */
static void read_drivers(struct offers *offers)
{
    struct weir_configured configured;
    struct weir_error ignored;
    offers->of = WEIR_ARENA_ARRAY(&offers->arena, offers->n_clusters + 1, struct offers_driver);
    for (size_t i = 0; i < offers->n_clusters; i++) {
        const struct weir_cluster *cluster = &offers->clusters[i];
        const struct weir_kind *kind = weir_registry_get(offers->drivers, cluster->driver);
        struct offers_driver *of = &offers->of[i];
        of->document = json_loads(cluster->options, 0, NULL);
        if (kind != NULL && kind->options_bytes > 0 &&
            weir_kind_read(kind, of->document, "$.options", &offers->arena, &configured,
                           &ignored) == WEIR_OK) {
            of->ops = kind->ops;
            of->options = configured.options;
        }
    }
}

static int by_id(const void *left, const void *right)
{
    const struct weir_allocation *const *l = left, *const *r = right;
    return strcmp((*l)->id, (*r)->id);
}

static void sort_allocations(struct offers *offers)
{
    size_t n = offers->n_allocations;
    offers->by_id = WEIR_ARENA_ARRAY(&offers->arena, n + 1, const struct weir_allocation *);
    for (size_t i = 0; i < n; i++) {
        offers->by_id[i] = &offers->allocations[i];
    }
    if (n > 0) {
        qsort(offers->by_id, n, sizeof(struct weir_allocation *), by_id);
    }
}

const struct weir_allocation *offers_allocation(const struct offers *offers, const char *id)
{
    const struct weir_allocation key = {.id = (char *)id}, *wanted = &key;
    const struct weir_allocation **found =
        id != NULL && offers->by_id != NULL && offers->n_allocations > 0
            ? bsearch(&wanted, offers->by_id, offers->n_allocations,
                      sizeof(struct weir_allocation *), by_id)
            : NULL;
    return found != NULL ? *found : NULL;
}

/* NULL: there is no such cluster, or its options cannot be read. */
static const struct offers_driver *driver_of(const struct offers *offers, const char *cluster)
{
    for (size_t i = 0; offers->of != NULL && i < offers->n_clusters; i++) {
        if (strcmp(offers->clusters[i].name, cluster) == 0) {
            return offers->of[i].ops != NULL ? &offers->of[i] : NULL;
        }
    }
    return NULL;
}

const char *offers_mark(const struct offers *offers, const char *cluster, const char *queue,
                        const char *pod, struct weir_arena *arena)
{
    const struct offers_driver *of = driver_of(offers, cluster);
    const char *mark = cluster;
    if (of != NULL && of->ops->payer != NULL) {
        mark =
            weir_arena_printf(arena, "%s/%s", cluster, of->ops->payer(of->options, queue, arena));
    }
    return pod != NULL ? weir_arena_printf(arena, "%s %s", mark, pod) : mark;
}

bool offers_makes_pods(const struct offers *offers, const char *cluster)
{
    const struct offers_driver *of = driver_of(offers, cluster);
    return of != NULL && of->ops->makes_pods;
}

static weir_status read_refusals(struct offers *offers, struct weir_txn *txn, int64_t now_ms,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    offers->refusals = WEIR_ARENA_ARRAY(&offers->arena, REFUSALS_MAX, struct offers_refusal);
    offers->n_refusals = 0;
    WEIR_TRY(weir_stmt_open(
        txn, sql_refusals,
        WEIR_BINDS(WEIR_BIND_INT("since", now_ms - REFUSALS_MS), WEIR_BIND_INT("n", REFUSALS_MAX)),
        &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row && offers->n_refusals < REFUSALS_MAX) {
        offers->refusals[offers->n_refusals++] =
            (struct offers_refusal){.job = weir_stmt_text(row, 0, &offers->arena),
                                    .pool = weir_stmt_text(row, 1, &offers->arena),
                                    .cluster = weir_stmt_text(row, 2, &offers->arena),
                                    .why = weir_stmt_text(row, 3, &offers->arena),
                                    .ended_ms = weir_stmt_int(row, 4),
                                    .n = weir_stmt_int(row, 5)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static int by_weight(const void *left, const void *right)
{
    const struct weir_pool *l = left, *r = right;
    return l->weight != r->weight ? (l->weight > r->weight) - (l->weight < r->weight)
                                  : strcmp(l->id, r->id);
}

weir_status offers_read(struct offers *offers, struct weir_txn *txn, int64_t now_ms,
                        bool *out_is_changed, struct weir_error *err)
{
    int64_t revision;
    WEIR_TRY(weir_cluster_revision(txn, &revision, err));
    if (revision == offers->revision) {
        return WEIR_OK;
    }
    struct weir_arena *arena = &offers->arena;
    forget(offers);
    WEIR_TRY(weir_cluster_list(txn, arena, &offers->clusters, &offers->n_clusters, err));
    WEIR_TRY(weir_pool_list(txn, NULL, arena, &offers->pools, &offers->n_pools, err));
    WEIR_TRY(weir_allocation_list_open(txn, NULL, arena, &offers->allocations,
                                       &offers->n_allocations, err));
    WEIR_TRY(read_refusals(offers, txn, now_ms, err));
    read_drivers(offers);
    sort_allocations(offers);
    if (offers->n_pools > 0) {
        qsort(offers->pools, offers->n_pools, sizeof *offers->pools, by_weight);
    }
    offers->revision = revision;
    *out_is_changed = true;
    return WEIR_OK;
}

const struct weir_cluster *offers_cluster(const struct offers *offers, const char *name)
{
    for (size_t i = 0; i < offers->n_clusters; i++) {
        if (strcmp(offers->clusters[i].name, name) == 0) {
            return &offers->clusters[i];
        }
    }
    return NULL;
}

const struct weir_pool *offers_pool(const struct offers *offers, const char *id)
{
    for (size_t i = 0; i < offers->n_pools; i++) {
        if (strcmp(offers->pools[i].id, id) == 0) {
            return &offers->pools[i];
        }
    }
    return NULL;
}

struct weir_sched_node offers_pool_node(const struct weir_pool *pool, const char *mark,
                                        int64_t now_ms, struct weir_arena *arena)
{
    struct weir_sched_taint *taint = WEIR_ARENA_ARRAY(arena, 1, struct weir_sched_taint);
    struct weir_sched_label *labels = WEIR_ARENA_ARRAY(arena, 2, struct weir_sched_label);
    int64_t memory_bytes = pool->memory_bytes > 0 ? pool->memory_bytes : MEMORY_UNTOLD_BYTES;
    struct weir_sched_node node = {.model = pool->accelerator,
                                   .n_devices = (int32_t)pool->n_accelerators,
                                   .n_tasks_max = SNAPSHOT_NODE_TASKS_MAX,
                                   .cpu_milli = pool->cpu_slots * 1000,
                                   .memory_bytes = WEIR_MIN(memory_bytes, MEMORY_UNTOLD_BYTES),
                                   .labels = labels,
                                   .n_labels = pool->accelerator != NULL ? 2 : 1,
                                   .taints = taint,
                                   .n_taints = 1};
    *taint = (struct weir_sched_taint){OFFERS_CLUSTER_KEY, mark};
    labels[0] = (struct weir_sched_label){OFFERS_CLUSTER_KEY, pool->cluster};
    labels[1] = (struct weir_sched_label){SUPPLY_LABEL_MODEL, pool->accelerator};
    if (pool->time_max_ms > 0) {
        node.closed_from_ms = now_ms + pool->time_max_ms;
        node.closed_until_ms = WEIR_SCHED_AMOUNT_MAX;
    }
    return node;
}

struct offers_where offers_where(const struct queue_tree *queues, const struct ask *ask,
                                 int32_t queue)
{
    struct offers_where where = {.after_ms = ask != NULL ? ask->after_ms : -1};
    for (int32_t q = queue; q >= 0; q = queues->rows[q].parent) {
        const struct queue_tree_where *of = queue_tree_where(queues, q);
        if (of != NULL && where.bound == NULL && of->n_names > 0) {
            where.bound = of->names;
            where.n_bound = of->n_names;
            where.bound_by = queues->rows[q].name;
        }
        if (of != NULL && where.after_ms < 0) {
            where.after_ms = of->after_ms;
        }
    }
    bool is_said = ask != NULL && ask->n_clusters > 0;
    where.names = is_said ? ask->clusters : where.bound;
    where.n = is_said ? (size_t)ask->n_clusters : where.n_bound;
    return where;
}

bool offers_allows(const struct offers_where *where, const char *cluster)
{
    bool allows = where->bound == NULL;
    for (size_t i = 0; i < where->n_bound && !allows; i++) {
        allows = strcmp(where->bound[i], cluster) == 0;
    }
    return allows;
}

int32_t offers_rank(const struct offers_where *where, const char *cluster)
{
    int32_t rank = 0;
    for (size_t i = 0; i < where->n; i++) {
        if (strcmp(where->names[i], cluster) == 0) {
            return offers_allows(where, cluster) ? rank : -1;
        }
        rank += strcmp(where->names[i], WEIR_CLUSTER_OWN) != 0;
    }
    return where->names == NULL ? 0 : -1;
}
