#include "cluster/kubernetes/node.h"

#include "base/amount.h"
#include "base/grow.h"
#include "cluster/kubernetes/block.h"
#include "cluster/shape.h"
#include "kube/client.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_PARTS 32
#define POOLS_MAX    1000

/* ---- one node -------------------------------------------------------------------------------- */

static int64_t amount(const json_t *amounts, const char *resource)
{
    int64_t milli = 0;
    const char *text = json_string_value(json_object_get(amounts, resource));
    return text != NULL && weir_amount_parse(text, &milli) ? milli : 0;
}

static bool is_selected(const struct kubernetes_options *options, const json_t *labels)
{
    const char *key;
    json_t *wanted;
    json_object_foreach((json_t *)(uintptr_t)options->node_selector, key, wanted)
    {
        const char *has = json_string_value(json_object_get(labels, key));
        if (has == NULL || strcmp(has, json_string_value(wanted)) != 0) {
            return false;
        }
    }
    return true;
}

/* Does one toleration, as Kubernetes has it, let a pod pass a taint? */
static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *key = weir_kube_text_or(toleration, "key", ""),
               *effect = weir_kube_text_or(toleration, "effect", "");
    bool has_key = key[0] == '\0' || weir_kube_is(taint, "key", key);
    bool has_effect = effect[0] == '\0' || weir_kube_is(taint, "effect", effect);
    bool has_value = weir_kube_is(toleration, "operator", "Exists") ||
                     (key[0] != '\0' && strcmp(weir_kube_text_or(toleration, "value", ""),
                                               weir_kube_text_or(taint, "value", "")) == 0);
    return has_key && has_effect && has_value;
}

/* That of accelerators is tolerated by those that ask for them. */
static bool is_tolerated(const struct kubernetes_options *options, const json_t *taint)
{
    size_t i;
    json_t *one;
    json_array_foreach(options->tolerations, i, one)
    {
        if (tolerates(one, taint)) {
            return true;
        }
    }
    return kubernetes_is_device(options, weir_kube_text_or(taint, "key", "")) ||
           weir_kube_is(taint, "effect", "PreferNoSchedule");
}

/* The sentence of a node that is not ready; NULL: it is. */
static const char *unready_of(const json_t *node, struct weir_arena *arena)
{
    const json_t *ready = weir_kube_condition(node, "Ready");
    if (ready == NULL) {
        return "it is not ready: it has not been heard yet";
    }
    return weir_kube_is(ready, "status", "True")
               ? NULL
               : weir_arena_printf(arena, "it is not ready: %.200s",
                                   weir_kube_text_or(ready, "message", "no reason is said"));
}

static const char *closed_of(const struct kubernetes_options *options, const json_t *node,
                             bool is_cordoned, struct weir_arena *arena)
{
    size_t i;
    json_t *taint;
    const char *unready = unready_of(node, arena);
    if (unready != NULL || is_cordoned) {
        return unready != NULL ? unready : "it is cordoned";
    }
    json_array_foreach(weir_kube_at(node, "spec.taints"), i, taint)
    {
        if (!is_tolerated(options, taint)) {
            const char *value = weir_kube_text_or(taint, "value", "");
            return weir_arena_printf(arena, "it has the taint %s%s%s:%s, which is not tolerated",
                                     weir_kube_text_or(taint, "key", "?"),
                                     value[0] != '\0' ? "=" : "", value,
                                     weir_kube_text_or(taint, "effect", "?"));
        }
    }
    return NULL;
}

const char *kubernetes_node_model(const json_t *labels, const char *device,
                                  struct weir_arena *arena)
{
    static const char *const known[] = {"nvidia.com/gpu.product", "amd.com/gpu.product-name",
                                        "gpu.intel.com/product"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        const char *model = json_string_value(json_object_get(labels, known[i]));
        if (model != NULL && model[0] != '\0') {
            return model;
        }
    }
    return weir_arena_memdup(arena, device, strcspn(device, "./"));
}

struct kubernetes_node *kubernetes_node_read(const struct kubernetes_options *options,
                                             const json_t *node)
{
    static const size_t texts[] = {
        offsetof(struct kubernetes_node, name), offsetof(struct kubernetes_node, pool),
        offsetof(struct kubernetes_node, model), offsetof(struct kubernetes_node, device),
        offsetof(struct kubernetes_node, closed)};
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const json_t *labels = weir_kube_at(node, "metadata.labels"),
                 *amounts = weir_kube_at(node, "status.allocatable");
    struct kubernetes_node read = {.name = weir_kube_text(node, "metadata.name")};
    const char *resource;
    json_t *value;
    weir_arena_init(&arena, 0);
    if (read.name == NULL || !is_selected(options, labels)) {
        return NULL;
    }
    read.pool = options->pool_label != NULL
                    ? json_string_value(json_object_get(labels, options->pool_label))
                    : NULL;
    if (options->pool_label != NULL && read.pool == NULL) {
        return NULL;
    }
    read.cpu_milli = amount(amounts, "cpu");
    read.memory_bytes = amount(amounts, "memory") / 1000;
    json_object_foreach((json_t *)(uintptr_t)amounts, resource, value)
    {
        int64_t n = kubernetes_is_device(options, resource) ? amount(amounts, resource) / 1000 : 0;
        if (n > read.n_devices) {
            read.n_devices = n;
            read.device = resource;
        }
    }
    read.model = read.device != NULL ? kubernetes_node_model(labels, read.device, &arena) : NULL;
    read.is_cordoned = json_is_true(weir_kube_at(node, "spec.unschedulable"));
    read.closed = closed_of(options, node, read.is_cordoned, &arena);
    return kubernetes_block(&read, sizeof read, texts, WEIR_ARRAY_LEN(texts));
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* A pool that grows. */
struct growing {
    struct kubernetes_pool pool;
    int64_t cpu_milli, memory_bytes;  /* the first node's: others are compared with it */
    int64_t least_milli, least_bytes; /* what every node of it leaves */
    int64_t busy_milli, n_open;
    size_t cap;
    const char *closed; /* why one of its nodes takes nothing new */
};

static int by_node(const void *key, const void *use)
{
    return strcmp(key, ((const struct kubernetes_use *)use)->node);
}

struct kubernetes_use *kubernetes_use_of(struct kubernetes_use *uses, size_t n, const char *node)
{
    return n > 0 ? bsearch(node, uses, n, sizeof uses[0], by_node) : NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_like(const struct growing *pool, const struct kubernetes_node *node)
{
    if (node->pool != NULL) {
        return is_same(pool->pool.label, node->pool);
    }
    return pool->cpu_milli / 1000 == node->cpu_milli / 1000 &&
           llabs(pool->memory_bytes - node->memory_bytes) <= pool->memory_bytes / MEMORY_PARTS &&
           pool->pool.offer.n_accelerators == node->n_devices &&
           is_same(pool->pool.offer.accelerator, node->model) &&
           is_same(pool->pool.device, node->device);
}

static void begin(struct growing *pool, const struct kubernetes_node *node,
                  struct weir_arena *arena)
{
    *pool =
        (struct growing){.pool = {.offer = {.n_accelerators = node->n_devices,
                                            .accelerator = weir_arena_strdup(arena, node->model),
                                            .weight = 1},
                                  .label = weir_arena_strdup(arena, node->pool),
                                  .device = weir_arena_strdup(arena, node->device)},
                         .cpu_milli = node->cpu_milli,
                         .memory_bytes = node->memory_bytes,
                         .least_milli = INT64_MAX,
                         .least_bytes = INT64_MAX};
}

static void join(struct growing *pool, const struct kubernetes_node *node,
                 const struct kubernetes_use *use, struct weir_arena *arena)
{
    int64_t own_milli = use != NULL ? use->own_cpu_milli : 0,
            own_bytes = use != NULL ? use->own_memory_bytes : 0;
    struct kubernetes_pool *out = &pool->pool;
    pool->least_milli =
        WEIR_MIN(pool->least_milli, WEIR_MAX(node->cpu_milli - own_milli, (int64_t)0));
    pool->least_bytes =
        WEIR_MIN(pool->least_bytes, WEIR_MAX(node->memory_bytes - own_bytes, (int64_t)0));
    out->offer.n_accelerators = WEIR_MIN(out->offer.n_accelerators, node->n_devices);
    pool->busy_milli += use != NULL ? use->cpu_milli : 0;
    pool->n_open += node->closed == NULL;
    if (node->closed != NULL) {
        pool->closed = weir_arena_printf(arena, "%s: %s", node->name, node->closed);
    }
    weir_arena_grow(arena, &out->node_names, sizeof out->node_names[0], out->n_nodes, &pool->cap);
    out->node_names[out->n_nodes++] = weir_arena_strdup(arena, node->name);
}

static void finish(struct growing *pool, struct weir_arena *arena)
{
    struct weir_pool_offer *offer = &pool->pool.offer;
    offer->cpu_slots = pool->least_milli / 1000;
    offer->memory_bytes = pool->least_bytes;
    offer->max_nodes = (int64_t)pool->pool.n_nodes;
    offer->cpus_busy = pool->busy_milli / 1000;
    offer->name = pool->pool.label != NULL
                      ? pool->pool.label
                      : weir_shape_name(pool->cpu_milli / 1000, pool->memory_bytes,
                                        offer->n_accelerators, offer->accelerator, arena);
    if (pool->n_open == 0) {
        offer->why = weir_arena_printf(arena, "all nodes of the pool %s take nothing new; %s",
                                       offer->name, pool->closed);
    }
}

/* Two shapes may round to one name. */
static void name_apart(struct kubernetes_pool *pools, size_t k, struct weir_arena *arena)
{
    size_t n_same = 1;
    for (size_t i = 0; i < k; i++) {
        n_same += strcmp(pools[i].offer.name, pools[k].offer.name) == 0;
    }
    if (n_same > 1) {
        pools[k].offer.name = weir_arena_printf(arena, "%s-%zu", pools[k].offer.name, n_same);
    }
}

void kubernetes_pools_make(const struct kubernetes_node *const *nodes, size_t n_nodes,
                           struct kubernetes_use *uses, size_t n_uses, struct weir_arena *arena,
                           struct kubernetes_pool **out, size_t *out_n)
{
    struct growing *pools = WEIR_ARENA_ARRAY(arena, POOLS_MAX, struct growing);
    size_t n = 0;
    for (size_t i = 0; i < n_nodes; i++) {
        size_t k = 0;
        while (k < n && !is_like(&pools[k], nodes[i])) {
            k++;
        }
        if (k == POOLS_MAX) {
            continue;
        }
        if (k == n) {
            begin(&pools[n++], nodes[i], arena);
        }
        join(&pools[k], nodes[i], kubernetes_use_of(uses, n_uses, nodes[i]->name), arena);
    }
    *out = WEIR_ARENA_ARRAY(arena, n + 1, struct kubernetes_pool);
    for (size_t k = 0; k < n; k++) {
        finish(&pools[k], arena);
        (*out)[k] = pools[k].pool;
        name_apart(*out, k, arena);
    }
    *out_n = n;
}
