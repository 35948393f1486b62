#include "gateway/table.h"

#include "base/arena.h"
#include "base/grow.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define URL_PREFIX "http://"

struct weir_gateway_table {
    atomic_int n_refs;
    struct weir_arena arena;                     /* what the deployments point to */
    struct weir_gateway_deployment *deployments; /* ordered by name */
    size_t n, cap;
};

struct weir_gateway_table *weir_gateway_table_create(void)
{
    struct weir_gateway_table *table = weir_xalloc(sizeof *table);
    memset(table, 0, sizeof *table);
    atomic_init(&table->n_refs, 1);
    weir_arena_init(&table->arena, 0);
    return table;
}

struct weir_gateway_table *weir_gateway_table_ref(struct weir_gateway_table *table)
{
    (void)atomic_fetch_add_explicit(&table->n_refs, 1, memory_order_relaxed);
    return table;
}

struct weir_gateway_table *weir_gateway_table_unref(struct weir_gateway_table *table)
{
    if (table != NULL && atomic_fetch_sub_explicit(&table->n_refs, 1, memory_order_acq_rel) == 1) {
        weir_arena_fini(&table->arena);
        free(table->deployments);
        free(table);
    }
    return NULL;
}

bool weir_gateway_url_split(const char *url, char out_host[WEIR_GATEWAY_HOST_BYTES],
                            uint16_t *out_port)
{
    size_t n_prefix = sizeof URL_PREFIX - 1;
    if (strncmp(url, URL_PREFIX, n_prefix) != 0) {
        return false;
    }
    const char *host = url + n_prefix;
    bool is_v6 = *host == '[';
    host += is_v6;
    size_t len = strcspn(host, is_v6 ? "]" : ":/@");
    const char *colon = host + len + (is_v6 && host[len] == ']');
    if (len == 0 || len >= WEIR_GATEWAY_HOST_BYTES || *colon != ':') {
        return false;
    }
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || port == 0 || port > UINT16_MAX ||
        (*end != '\0' && strcmp(end, "/") != 0)) {
        return false;
    }
    memcpy(out_host, host, len);
    out_host[len] = '\0';
    *out_port = (uint16_t)port;
    return true;
}

int weir_gateway_version_find(const struct weir_gateway_deployment *deployment, int64_t version)
{
    for (size_t i = 0; i < deployment->n_versions; i++) {
        if (deployment->versions[i].version == version) {
            return (int)i;
        }
    }
    return -1;
}

/* Where the name is, or where it belongs. */
static size_t place_of(const struct weir_gateway_table *table, const char *name, bool *out_is_there)
{
    size_t lo = 0, hi = table->n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        int order = strcmp(table->deployments[middle].name, name);
        if (order == 0) {
            *out_is_there = true;
            return middle;
        }
        if (order < 0) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    *out_is_there = false;
    return lo;
}

static weir_status check_versions(const struct weir_gateway_deployment *d, struct weir_error *err)
{
    int64_t sum = 0;
    if (d->n_versions > WEIR_GATEWAY_VERSIONS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "deployment %s: %zu versions at a time; at most %d are possible",
                              d->name, d->n_versions, WEIR_GATEWAY_VERSIONS_MAX);
    }
    for (size_t i = 0; i < d->n_versions; i++) {
        const struct weir_gateway_version *v = &d->versions[i];
        if (v->version <= 0 || weir_gateway_version_find(d, v->version) != (int)i) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "deployment %s: version %lld is none, or is listed twice",
                                  d->name, (long long)v->version);
        }
        if (v->weight_ppm < 0 || (sum += v->weight_ppm) > WEIR_GATEWAY_PPM) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "deployment %s: the shares of its versions are below nothing or "
                                  "over the whole",
                                  d->name);
        }
    }
    if (d->mirror != 0 && weir_gateway_version_find(d, d->mirror) < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "deployment %s: its mirror, version %lld, is none of its versions",
                              d->name, (long long)d->mirror);
    }
    return WEIR_OK;
}

static weir_status check_replicas(const struct weir_gateway_deployment *d, struct weir_error *err)
{
    if (d->n_replicas > WEIR_GATEWAY_REPLICAS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "deployment %s: %zu replicas; at most %d are possible", d->name,
                              d->n_replicas, WEIR_GATEWAY_REPLICAS_MAX);
    }
    for (size_t i = 0; i < d->n_replicas; i++) {
        const struct weir_gateway_replica *r = &d->replicas[i];
        char host[WEIR_GATEWAY_HOST_BYTES];
        uint16_t port;
        if (r->url != NULL && r->url[0] != '\0' && !weir_gateway_url_split(r->url, host, &port)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "deployment %s, replica %s: \"%.80s\" is not http://HOST:PORT",
                                  d->name, r->id, r->url);
        }
    }
    return WEIR_OK;
}

static struct weir_gateway_deployment copy(struct weir_arena *arena,
                                           const struct weir_gateway_deployment *from)
{
    struct weir_gateway_deployment to = *from;
    to.name = weir_arena_strdup(arena, from->name);
    to.project = weir_arena_strdup(arena, from->project);
    to.secret = weir_arena_strdup(arena, from->secret);
    struct weir_gateway_version *versions =
        WEIR_ARENA_ARRAY(arena, from->n_versions, struct weir_gateway_version);
    struct weir_gateway_replica *replicas =
        WEIR_ARENA_ARRAY(arena, from->n_replicas, struct weir_gateway_replica);
    for (size_t i = 0; i < from->n_versions; i++) {
        versions[i] = from->versions[i];
    }
    for (size_t i = 0; i < from->n_replicas; i++) {
        replicas[i] = from->replicas[i];
        replicas[i].id = weir_arena_strdup(arena, from->replicas[i].id);
        replicas[i].url = weir_arena_strdup(arena, from->replicas[i].url);
    }
    to.versions = versions;
    to.replicas = replicas;
    to.hold_ms = from->hold_ms > 0 ? from->hold_ms : 30 * 1000;
    to.timeout_ms = from->timeout_ms > 0 ? from->timeout_ms : 60 * 1000;
    to.n_calls_max = from->n_calls_max > 0 ? from->n_calls_max : 1024;
    return to;
}

bool weir_gateway_has_replica(const struct weir_gateway_deployment *deployment)
{
    size_t n = 0;
    for (size_t i = 0; i < deployment->n_replicas; i++) {
        n += !deployment->replicas[i].is_silent;
    }
    return n > 0;
}

weir_status weir_gateway_table_add(struct weir_gateway_table *table,
                                   const struct weir_gateway_deployment *deployment,
                                   struct weir_error *err)
{
    bool is_there;
    size_t place = place_of(table, deployment->name, &is_there);
    if (is_there) {
        return weir_error_set(err, WEIR_ERR_INVALID, "deployment %s is listed twice",
                              deployment->name);
    }
    WEIR_TRY(check_versions(deployment, err));
    WEIR_TRY(check_replicas(deployment, err));
    weir_xgrow(&table->deployments, sizeof *table->deployments, table->n, &table->cap);
    memmove(&table->deployments[place + 1], &table->deployments[place],
            (table->n - place) * sizeof *table->deployments);
    table->deployments[place] = copy(&table->arena, deployment);
    table->n++;
    return WEIR_OK;
}

const struct weir_gateway_deployment *
weir_gateway_table_find(const struct weir_gateway_table *table, const char *name)
{
    bool is_there;
    size_t place = place_of(table, name, &is_there);
    return is_there ? &table->deployments[place] : NULL;
}

size_t weir_gateway_table_count(const struct weir_gateway_table *table)
{
    return table->n;
}

const struct weir_gateway_deployment *weir_gateway_table_at(const struct weir_gateway_table *table,
                                                            size_t i)
{
    return &table->deployments[i];
}
