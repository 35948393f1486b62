#include "control/serving.h"

#include "base/log.h"
#include "base/macros.h"
#include "deploy/deploy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS       1000
#define FAILURES_HELD 3 /* In a row: then requests are refused, not held. */
#define ALL_MAX_BYTES ((size_t)256 << 20)

struct serving {
    struct weir_store *store;
    serving_publish_fn publish;
    void *context;
    pthread_t thread;
    atomic_bool is_stopping;
    int64_t change; /* Of the table that is published; -1: none. */
};

/* ---- from rows to a table -------------------------------------------------------------------- */

/* The shares among what is ready; as they are if nothing is. What rounding leaves the last one gets. */
static void weigh(const struct weir_deploy_state *state, struct weir_gateway_version *versions,
                  size_t n)
{
    int64_t sum = 0, given = 0, last = -1;
    for (size_t i = 0; i < n; i++) {
        bool is_ready = weir_deploy_n_ready(state, versions[i].version) > 0;
        sum += is_ready ? versions[i].weight_ppm : 0;
    }
    for (size_t i = 0; i < n && sum > 0; i++) {
        bool is_ready = weir_deploy_n_ready(state, versions[i].version) > 0;
        int64_t ppm = is_ready ? (int64_t)versions[i].weight_ppm * WEIR_GATEWAY_PPM / sum : 0;
        versions[i].weight_ppm = (int32_t)ppm;
        given += ppm;
        last = ppm > 0 ? (int64_t)i : last;
    }
    if (last >= 0) {
        versions[last].weight_ppm += (int32_t)(WEIR_GATEWAY_PPM - given);
    }
}

static size_t list_versions(const struct weir_deploy_state *state,
                            struct weir_gateway_version versions[WEIR_GATEWAY_VERSIONS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_versions && n < WEIR_GATEWAY_VERSIONS_MAX; i++) {
        if (!state->versions[i].is_gone) {
            versions[n++] = (struct weir_gateway_version){
                .version = state->versions[i].row.version,
                .weight_ppm = (int32_t)state->versions[i].row.live_ppm};
        }
    }
    weigh(state, versions, n);
    return n;
}

static size_t list_replicas(const struct weir_deploy_state *state,
                            const struct weir_gateway_version *versions, size_t n_versions,
                            struct weir_gateway_replica replicas[WEIR_GATEWAY_REPLICAS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < state->n_replicas && n < WEIR_GATEWAY_REPLICAS_MAX; i++) {
        const struct weir_deploy_replica *replica = &state->replicas[i];
        struct weir_gateway_replica row = {.id = replica->row.id, .url = replica->row.url};
        for (size_t k = 0; k < n_versions; k++) {
            bool has = weir_deploy_replica_has(replica, versions[k].version);
            row.ready |= has ? (uint32_t)1 << k : 0;
        }
        row.is_silent = strcmp(replica->row.state, WEIR_DEPLOYED_SILENT) == 0;
        if (!replica->is_gone && (row.ready != 0 || row.is_silent)) {
            replicas[n++] = row;
        }
    }
    return n;
}

/** Add a deployment to a table. Pure but for the table. @return As weir_gateway_table_add. */
static weir_status add_deployment(struct weir_gateway_table *table,
                                  const struct weir_deploy_state *state, struct weir_error *err)
{
    const struct weir_deployment *deployment = &state->deployment;
    struct weir_gateway_version versions[WEIR_GATEWAY_VERSIONS_MAX];
    size_t n_versions = list_versions(state, versions);
    WEIR_AUTO(weir_auto_free)
    struct weir_gateway_replica *replicas =
        weir_xalloc(WEIR_GATEWAY_REPLICAS_MAX * sizeof *replicas);
    bool has_mirror = deployment->mirror > 0 && weir_deploy_n_ready(state, deployment->mirror) > 0;
    const struct weir_gateway_deployment row = {
        .name = deployment->name,
        .project = deployment->project,
        .secret = deployment->secret,
        .versions = versions,
        .n_versions = n_versions,
        .mirror = has_mirror ? deployment->mirror : 0,
        .replicas = replicas,
        .n_replicas = list_replicas(state, versions, n_versions, replicas),
        .can_start =
            weir_deploy_shares(state, true).n > 0 && deployment->n_failures < FAILURES_HELD,
        .hold_ms = deployment->hold_ms};
    return weir_gateway_table_add(table, &row, err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

struct look {
    struct serving *serving;
    struct weir_arena arena;
    int64_t change;
    struct weir_deploy_state *states;
    size_t n;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    WEIR_TRY(weir_deploy_change(txn, &look->change, err));
    return look->change == look->serving->change
               ? WEIR_OK
               : weir_deploy_load_all(txn, &look->arena, &look->states, &look->n, err);
}

static void publish(struct look *look)
{
    struct weir_error err;
    struct weir_gateway_table *table = weir_gateway_table_create();
    for (size_t i = 0; i < look->n; i++) {
        if (add_deployment(table, &look->states[i], &err) != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "deployment_not_routed",
                     WEIR_KV_STR("deployment", look->states[i].deployment.name),
                     WEIR_KV_STR("error", err.message));
        }
    }
    look->serving->publish(look->serving->context, table);
    look->serving->change = look->change;
}

static weir_status refresh(struct serving *serving, struct weir_error *err)
{
    struct look look = {.serving = serving};
    weir_arena_init(&look.arena, ALL_MAX_BYTES);
    weir_status status = weir_store_read(serving->store, look_in, &look, err);
    if (status == WEIR_OK && look.change != serving->change) {
        publish(&look);
    }
    weir_arena_fini(&look.arena);
    return status;
}

static void *serving_main(void *context)
{
    struct serving *serving = context;
    uint64_t seen = 0; /* What came between the first table and this thread is seen at once. */
    while (!atomic_load(&serving->is_stopping)) {
        struct weir_error err;
        uint64_t now = weir_store_wait(serving->store, seen, WAIT_MS);
        if (!atomic_load(&serving->is_stopping) && now != seen &&
            refresh(serving, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "serving_not_refreshed", WEIR_KV_STR("error", err.message));
        }
        seen = now;
    }
    return NULL;
}

weir_status serving_start(struct weir_store *store, serving_publish_fn publish_fn, void *context,
                          struct serving **out, struct weir_error *err)
{
    struct serving *serving = weir_xalloc(sizeof *serving);
    *serving =
        (struct serving){.store = store, .publish = publish_fn, .context = context, .change = -1};
    weir_status status = refresh(serving, err);
    int reason =
        status == WEIR_OK ? pthread_create(&serving->thread, NULL, serving_main, serving) : 0;
    if (status == WEIR_OK && reason == 0) {
        *out = serving;
        return WEIR_OK;
    }
    free(serving);
    return status != WEIR_OK ? status : weir_error_set_errno(err, reason, "cannot start a thread");
}

void serving_stop(struct serving *serving)
{
    if (serving == NULL) {
        return;
    }
    atomic_store(&serving->is_stopping, true);
    weir_store_wake(serving->store);
    pthread_join(serving->thread, NULL);
    free(serving);
}
