/* Deployments and replicas as they live on from one table to the next. */
#include "gateway/gateway_private.h"

#include "base/arena.h"
#include "base/log.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- on the thread that publishes --------------------------------------------------------------- */

static void resolve(const char *url, struct live_address *out)
{
    char host[WEIR_GATEWAY_HOST_BYTES], port_text[8];
    uint16_t port;
    *out = (struct live_address){.len = 0};
    if (url == NULL || !weir_gateway_url_split(url, host, &port)) {
        return;
    }
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int rc = getaddrinfo(host, port_text, &hints, &found);
    if (rc != 0) {
        weir_log(WEIR_LOG_WARN, "replica_unresolved", WEIR_KV_STR("url", url),
                 WEIR_KV_STR("because", gai_strerror(rc)));
        return;
    }
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
}

struct published *published_make(struct weir_gateway_table *table)
{
    struct published *published = weir_xalloc(sizeof *published);
    *published = (struct published){.table = table};
    for (size_t i = 0; i < weir_gateway_table_count(table); i++) {
        published->n_addresses += weir_gateway_table_at(table, i)->n_replicas;
    }
    published->addresses = weir_xalloc((published->n_addresses + 1) * sizeof *published->addresses);
    size_t at = 0;
    for (size_t i = 0; i < weir_gateway_table_count(table); i++) {
        const struct weir_gateway_deployment *row = weir_gateway_table_at(table, i);
        for (size_t j = 0; j < row->n_replicas; j++) {
            resolve(row->replicas[j].url, &published->addresses[at++]);
        }
    }
    return published;
}

void published_free(struct published *published)
{
    if (published != NULL) {
        weir_gateway_table_unref(published->table);
        free(published->addresses);
        free(published);
    }
}

/* ---- on the gateway's thread -------------------------------------------------------------------- */

struct live_replica *live_replica_unref(struct live_replica *replica)
{
    if (replica != NULL && --replica->n_refs == 0) {
        free(replica->id);
        free(replica);
    }
    return NULL;
}

static void forget_versions(struct live_deployment *deployment)
{
    for (size_t i = 0; i < WEIR_GATEWAY_VERSIONS_MAX; i++) {
        deployment->versions[i].figures = figures_unref(deployment->versions[i].figures);
    }
}

struct live_deployment *live_deployment_unref(struct live_deployment *deployment)
{
    if (deployment != NULL && --deployment->n_refs == 0) {
        forget_versions(deployment);
        figures_unref(deployment->figures);
        weir_gateway_table_unref(deployment->table);
        free(deployment->replicas);
        free(deployment->name);
        free(deployment);
    }
    return NULL;
}

struct live_deployment *live_find(const struct weir_gateway *gateway, const char *name)
{
    size_t lo = 0, hi = gateway->n_deployments;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        int order = strcmp(gateway->deployments[middle]->name, name);
        if (order == 0) {
            return gateway->deployments[middle];
        }
        if (order < 0) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    return NULL;
}

static struct live_project *project_of(struct weir_gateway *gateway, const char *name)
{
    struct live_project *project = gateway->projects;
    while (project != NULL && strcmp(project->name, name) != 0) {
        project = project->next;
    }
    if (project == NULL) {
        project = weir_xalloc(sizeof *project);
        *project = (struct live_project){.name = weir_xstrdup(name), .next = gateway->projects};
        gateway->projects = project;
    }
    return project;
}

static bool is_same(const struct live_replica *replica, const char *id,
                    const struct live_address *address)
{
    return strcmp(replica->id, id) == 0 && replica->address_len == address->len &&
           memcmp(&replica->address, &address->address, address->len) == 0;
}

static struct live_replica *find_replica(struct live_replica **replicas, size_t n, const char *id,
                                         const struct live_address *address)
{
    for (size_t i = 0; i < n; i++) {
        if (replicas[i] != NULL && is_same(replicas[i], id, address)) {
            struct live_replica *found = replicas[i];
            replicas[i] = NULL;
            return found;
        }
    }
    struct live_replica *made = weir_xalloc(sizeof *made);
    *made = (struct live_replica){.n_refs = 1,
                                  .id = weir_xstrdup(id),
                                  .address = address->address,
                                  .address_len = address->len};
    return made;
}

/* The replicas of the row in its order: those that were there live on. */
static void follow_replicas(struct weir_gateway *gateway, struct live_deployment *live,
                            const struct weir_gateway_deployment *row,
                            const struct live_address *addresses)
{
    size_t n_before = live->row != NULL ? live->row->n_replicas : 0;
    size_t n = row != NULL ? row->n_replicas : 0;
    struct live_replica **now = weir_xalloc((n + 1) * sizeof(struct live_replica *));
    for (size_t i = 0; i < n; i++) {
        now[i] = find_replica(live->replicas, n_before, row->replicas[i].id, &addresses[i]);
        now[i]->is_silent = row->replicas[i].is_silent;
        if (now[i]->n_outstanding == 0 && live->row != NULL) {
            now[i]->backoff_until_ms = 0; /* there is news: look again */
        }
    }
    for (size_t i = 0; i < n_before; i++) {
        if (live->replicas[i] != NULL) {
            live->replicas[i]->is_gone = true;
            upstream_trim(gateway, live->replicas[i]);
            live_replica_unref(live->replicas[i]);
        }
    }
    free(live->replicas);
    live->replicas = now;
}

static void follow_row(struct weir_gateway *gateway, struct live_deployment *live,
                       struct weir_gateway_table *table, const struct weir_gateway_deployment *row,
                       const struct live_address *addresses)
{
    follow_replicas(gateway, live, row, addresses);
    forget_versions(live);
    figures_unref(live->figures);
    for (size_t i = 0; i < row->n_versions; i++) {
        int64_t version = row->versions[i].version;
        live->versions[i] = (struct live_version){
            version, figures_get(&gateway->registry, row->name, row->project, version)};
    }
    live->figures = figures_get(&gateway->registry, row->name, row->project, 0);
    if (live->project == NULL || strcmp(live->project->name, row->project) != 0) {
        struct live_project *project = project_of(gateway, row->project);
        project->n_calls += live->n_calls;
        if (live->project != NULL) {
            live->project->n_calls -= live->n_calls;
        }
        live->project = project;
    }
    live->row = row;
    weir_gateway_table_unref(live->table);
    live->table = weir_gateway_table_ref(table);
}

/* No table has it any more. Calls at its replicas go on; those that are held end. */
static void let_go(struct weir_gateway *gateway, struct live_deployment *live)
{
    follow_replicas(gateway, live, NULL, NULL);
    live->row = NULL;
    while (live->held_first != NULL) {
        dispatch_fail(gateway, live->held_first, WEIR_ERR_NOT_FOUND,
                      "the deployment \"%s\" has ended", live->name);
    }
    live_deployment_unref(live);
}

void live_follow(struct weir_gateway *gateway, struct published *published)
{
    struct weir_gateway_table *table = published->table;
    size_t n = weir_gateway_table_count(table), n_before = gateway->n_deployments, i_before = 0;
    struct live_deployment **before = gateway->deployments;
    struct live_deployment **now = weir_xalloc((n + 1) * sizeof(struct live_deployment *));
    const struct live_address *addresses = published->addresses;
    figures_keep(&gateway->registry, table);
    for (size_t i = 0; i < n; i++) { /* both are ordered by name */
        const struct weir_gateway_deployment *row = weir_gateway_table_at(table, i);
        while (i_before < n_before && strcmp(before[i_before]->name, row->name) < 0) {
            let_go(gateway, before[i_before++]);
        }
        if (i_before < n_before && strcmp(before[i_before]->name, row->name) == 0) {
            now[i] = before[i_before++];
        } else {
            now[i] = weir_xalloc(sizeof(struct live_deployment));
            memset(now[i], 0, sizeof(struct live_deployment));
            now[i]->n_refs = 1;
            now[i]->name = weir_xstrdup(row->name);
        }
        follow_row(gateway, now[i], table, row, addresses);
        addresses += row->n_replicas;
    }
    while (i_before < n_before) {
        let_go(gateway, before[i_before++]);
    }
    free(before);
    gateway->deployments = now;
    gateway->n_deployments = n;
    published_free(published);
    for (size_t i = 0; i < n; i++) {
        dispatch_held(gateway, now[i]);
    }
}

void live_end(struct weir_gateway *gateway)
{
    for (size_t i = 0; i < gateway->n_deployments; i++) {
        let_go(gateway, gateway->deployments[i]);
    }
    free(gateway->deployments);
    gateway->deployments = NULL;
    gateway->n_deployments = 0;
    while (gateway->projects != NULL) {
        struct live_project *project = gateway->projects;
        gateway->projects = project->next;
        free(project->name);
        free(project);
    }
}
