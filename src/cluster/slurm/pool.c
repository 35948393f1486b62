#include "cluster/slurm/pool.h"

#include "cluster/shape.h"
#include "cluster/slurm/command.h"
#include "cluster/slurm/text.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTITION,
    MARKED,
    AVAILABLE,
    LIMIT,
    JOB_SIZE,
    CPUS,
    MEMORY,
    GRES,
    STATE,
    COUNT,
    USE, /* CPUs: allocated/idle/other/total */
    NODES,
    N_FIELDS
};

#define POOLS_MAX    1000
#define MEMORY_PARTS 32
#define PARTS_MAX    1000 /* an accelerator is told in thousandths */
#define MB           ((int64_t)1 << 20)

static bool is_wanted(const char *partitions, const char *const *fields)
{
    const char *name = fields[PARTITION];
    size_t len = strlen(name), marked_len = strlen(fields[MARKED]);
    if (partitions == NULL) {
        return marked_len > 0 && fields[MARKED][marked_len - 1] == '*';
    }
    for (const char *at = partitions; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n == len && strncmp(at, name, n) == 0) {
            return true;
        }
        at += n + (at[n] == ',');
    }
    return false;
}

/* A node in this state starts nothing. */
static bool is_closed(const char *state)
{
    static const char *const closed[] = {"down", "drain", "fail", "future", "maint"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(closed); i++) {
        if (strncmp(state, closed[i], strlen(closed[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Slurm divides a node's shards evenly among its GPUs. Those of a node that it cannot be told how are not asked for. */
static int64_t parts_of(const struct slurm_gres *gres)
{
    bool is_even = gres->n_gpus > 0 && gres->n_others == 0 && gres->n_shards % gres->n_gpus == 0;
    int64_t parts = is_even ? gres->n_shards / gres->n_gpus : 0;
    return parts > 1 && parts <= PARTS_MAX ? parts : 0;
}

static struct slurm_pool read_pool(const char *const *fields, struct weir_arena *arena)
{
    struct slurm_gres gres = slurm_gres_read(fields[GRES], arena);
    const char *most = strrchr(fields[JOB_SIZE], '-');
    int64_t n = slurm_number(fields[COUNT]),
            n_most = slurm_number(most != NULL ? most + 1 : fields[JOB_SIZE]);
    bool is_up = strncmp(fields[AVAILABLE], "up", 2) == 0;
    return (struct slurm_pool){
        .offer = {.name = fields[PARTITION],
                  .cpu_slots = slurm_number(fields[CPUS]),
                  .memory_bytes = slurm_number(fields[MEMORY]) * MB,
                  .n_accelerators = gres.n_gpus,
                  .accelerator = gres.n_gpus > 0 ? gres.model : NULL,
                  .accelerator_parts = parts_of(&gres),
                  .max_nodes = n_most > 0 ? n_most : INT64_MAX,
                  .time_max_ms = slurm_span_s(fields[LIMIT]) * 1000,
                  .weight = 1,
                  .cpus_busy = slurm_number(fields[USE]),
                  .why = is_up ? NULL
                               : weir_arena_printf(arena, "the partition %s is %s",
                                                   fields[PARTITION], fields[AVAILABLE])},
        .partition = fields[PARTITION],
        .nodes = fields[NODES],
        .has_type = gres.has_type,
        .n_usable = is_closed(fields[STATE]) ? 0 : n,
        .memory_mb = slurm_number(fields[MEMORY])};
}

static bool is_like(const struct slurm_pool *a, const struct slurm_pool *b)
{
    const char *model = a->offer.accelerator, *other = b->offer.accelerator;
    return strcmp(a->partition, b->partition) == 0 && a->offer.cpu_slots == b->offer.cpu_slots &&
           llabs(a->memory_mb - b->memory_mb) <= b->memory_mb / MEMORY_PARTS &&
           a->offer.n_accelerators == b->offer.n_accelerators &&
           a->offer.accelerator_parts == b->offer.accelerator_parts &&
           (model == other || (model != NULL && other != NULL && strcmp(model, other) == 0));
}

/* There are more nodes of a shape that is known already. */
static void join(struct slurm_pool *pool, const struct slurm_pool *more, struct weir_arena *arena)
{
    pool->n_usable += more->n_usable;
    pool->offer.cpus_busy += WEIR_MIN(more->offer.cpus_busy, INT64_MAX - pool->offer.cpus_busy);
    pool->memory_mb = WEIR_MIN(pool->memory_mb, more->memory_mb);
    pool->offer.memory_bytes = pool->memory_mb * MB;
    pool->nodes = weir_arena_printf(arena, "%s,%s", pool->nodes, more->nodes);
}

/* Names, and what is known once all are there. */
static void finish(struct slurm_pool *pools, const int64_t *counts, size_t n,
                   struct weir_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct slurm_pool *pool = &pools[i];
        for (size_t k = 0; k < n; k++) {
            if (k != i && strcmp(pools[k].partition, pool->partition) == 0) {
                pool->others =
                    pool->others == NULL
                        ? pools[k].nodes
                        : weir_arena_printf(arena, "%s,%s", pool->others, pools[k].nodes);
            }
        }
        if (pool->others != NULL) {
            const char *shape =
                weir_shape_name(pool->offer.cpu_slots, pool->memory_mb * MB,
                                pool->offer.n_accelerators, pool->offer.accelerator, arena);
            pool->offer.name = weir_arena_printf(arena, "%s-%s", pool->partition, shape);
        }
        pool->offer.max_nodes = WEIR_MIN(pool->offer.max_nodes, counts[i]);
        if (pool->offer.why == NULL && pool->n_usable == 0) {
            pool->offer.why = weir_arena_printf(
                arena, "all nodes of the pool %s are down or drained", pool->offer.name);
        }
    }
}

void slurm_pools_read(const char *text, const char *partitions, struct weir_arena *arena,
                      struct slurm_pool **out, size_t *out_n)
{
    struct slurm_pool *pools = WEIR_ARENA_ARRAY(arena, POOLS_MAX, struct slurm_pool);
    int64_t *counts = WEIR_ARENA_ARRAY(arena, POOLS_MAX, int64_t);
    const char *fields[N_FIELDS];
    size_t n = 0;
    while (n < POOLS_MAX && slurm_next_fields(&text, N_FIELDS, arena, fields)) {
        struct slurm_pool pool = read_pool(fields, arena);
        size_t i = 0;
        if (!is_wanted(partitions, fields) || slurm_number(fields[COUNT]) == 0) {
            continue;
        }
        while (i < n && !is_like(&pools[i], &pool)) {
            i++;
        }
        if (i == n) {
            pools[n++] = pool;
        } else {
            join(&pools[i], &pool, arena);
        }
        counts[i] += slurm_number(fields[COUNT]);
    }
    finish(pools, counts, n, arena);
    *out = pools;
    *out_n = n;
}

/* A partition that is asked for and has no node, or is not there. */
static const char *missing_partition(const char *partitions, const struct slurm_pool *pools,
                                     size_t n, struct weir_arena *arena)
{
    for (const char *at = partitions; *at != '\0';) {
        size_t len = strcspn(at, ","), i = 0;
        while (i < n &&
               (strlen(pools[i].partition) != len || strncmp(pools[i].partition, at, len) != 0)) {
            i++;
        }
        if (i == n) {
            return weir_arena_memdup(arena, at, len);
        }
        at += len + (at[len] == ',');
    }
    return NULL;
}

weir_status slurm_pools_list(const struct slurm_options *options, struct weir_arena *arena,
                             struct slurm_pool **out, size_t *out_n, struct weir_error *err)
{
    const char *text, *fields[N_FIELDS];
    struct weir_names names = {0};
    WEIR_TRY(slurm_ask(options, SLURM_WORDS("sinfo", "-h", "-e", "-a", "-o", SLURM_POOL_FORMAT),
                       arena, &text, err));
    slurm_pools_read(text, options->partition, arena, out, out_n);
    const char *missing = options->partition == NULL
                              ? NULL
                              : missing_partition(options->partition, *out, *out_n, arena);
    if (missing == NULL && *out_n > 0) {
        return WEIR_OK;
    }
    for (const char *last = ""; slurm_next_fields(&text, N_FIELDS, arena, fields);
         last = fields[PARTITION]) {
        if (strcmp(last, fields[PARTITION]) != 0) {
            weir_names_add(&names, fields[PARTITION], strlen(fields[PARTITION]));
        }
    }
    return missing != NULL
               ? weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "partition: Slurm has no \"%.60s\" with nodes: there are %s",
                                missing, names.text)
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "partition: Slurm has no default one: name one of %s", names.text);
}
