#include "control/supplier.h"

#include "base/deadline.h"
#include "base/log.h"
#include "cluster/driver.h"
#include "control/cluster/supply_line.h"
#include "job/cluster.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 1000

/* A thread for one cluster. */
struct runner {
    struct supplier *supplier;
    struct supply_line line;
    pthread_t thread;
    bool is_over; /* Its cluster is gone, or all end: it can be joined. */
    struct runner *next;
};

struct supplier {
    struct supplier_config config;
    char *state_dir, *server_url, *ca_file;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    uint64_t n_notified; /* Each thread looks again once it is more than it knew. */
    bool is_stopping;
    pthread_t keeper; /* Starts a thread for each cluster. */
    struct runner *runners;
};

/* Until somebody notifies, or it is time. @return Go on? */
static bool wait_for_next(struct supplier *supplier, uint64_t *known)
{
    struct timespec until = weir_deadline_after(supplier->config.look_ms);
    pthread_mutex_lock(&supplier->lock);
    while (!supplier->is_stopping && supplier->n_notified == *known &&
           weir_cond_wait_until(&supplier->woken, &supplier->lock, &until) == 0) {
    }
    *known = supplier->n_notified;
    bool goes_on = !supplier->is_stopping;
    pthread_mutex_unlock(&supplier->lock);
    return goes_on;
}

static void *runner_main(void *context)
{
    struct runner *runner = context;
    uint64_t known = 0;
    weir_status status;
    do {
        struct weir_error err;
        status = supply_line_look(&runner->line, &err);
        if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
            weir_log(WEIR_LOG_ERROR, "cluster_not_looked_at",
                     WEIR_KV_STR("cluster", runner->line.cluster),
                     WEIR_KV_STR("error", err.message));
        }
    } while (status != WEIR_ERR_NOT_FOUND && wait_for_next(runner->supplier, &known));
    supply_line_end(&runner->line);
    pthread_mutex_lock(&runner->supplier->lock);
    runner->is_over = true;
    pthread_mutex_unlock(&runner->supplier->lock);
    return NULL;
}

/* ---- a thread for each cluster --------------------------------------------------------------- */

struct listing {
    struct weir_arena arena;
    struct weir_cluster *clusters;
    size_t n;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    return weir_cluster_list(txn, &listing->arena, &listing->clusters, &listing->n, err);
}

static void join_those_over(struct supplier *supplier, bool all)
{
    struct runner **at = &supplier->runners;
    while (*at != NULL) {
        struct runner *runner = *at;
        pthread_mutex_lock(&supplier->lock);
        bool is_over = runner->is_over || all;
        pthread_mutex_unlock(&supplier->lock);
        if (!is_over) {
            at = &runner->next;
            continue;
        }
        *at = runner->next;
        pthread_join(runner->thread, NULL);
        free(runner);
    }
}

static bool has_runner(const struct supplier *supplier, const char *cluster)
{
    const struct runner *runner = supplier->runners;
    while (runner != NULL && strcmp(runner->line.cluster, cluster) != 0) {
        runner = runner->next;
    }
    return runner != NULL;
}

static void start_runner(struct supplier *supplier, const char *cluster)
{
    struct runner *runner = weir_xalloc(sizeof *runner);
    *runner = (struct runner){.supplier = supplier, .line = {.config = &supplier->config}};
    (void)snprintf(runner->line.cluster, sizeof runner->line.cluster, "%s", cluster);
    int reason = pthread_create(&runner->thread, NULL, runner_main, runner);
    if (reason != 0) {
        weir_log(WEIR_LOG_ERROR, "cluster_has_no_thread", WEIR_KV_STR("cluster", cluster),
                 WEIR_KV_STR("error", strerror(reason)));
        free(runner);
        return;
    }
    runner->next = supplier->runners;
    supplier->runners = runner;
}

static void *keeper_main(void *context)
{
    struct supplier *supplier = context;
    uint64_t known = 0;
    do {
        struct listing listing = {.n = 0};
        struct weir_error err;
        weir_arena_init(&listing.arena, 0);
        join_those_over(supplier, false);
        if (weir_store_read(supplier->config.store, list_in, &listing, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "clusters_not_listed", WEIR_KV_STR("error", err.message));
            listing.n = 0;
        }
        for (size_t i = 0; i < listing.n; i++) {
            if (!has_runner(supplier, listing.clusters[i].name)) {
                start_runner(supplier, listing.clusters[i].name);
            }
        }
        weir_arena_fini(&listing.arena);
    } while (wait_for_next(supplier, &known));
    join_those_over(supplier, true);
    return NULL;
}

static void destroy(struct supplier *supplier)
{
    pthread_cond_destroy(&supplier->woken);
    pthread_mutex_destroy(&supplier->lock);
    free(supplier->state_dir);
    free(supplier->server_url);
    free(supplier->ca_file);
    free(supplier);
}

weir_status supplier_start(const struct supplier_config *config, struct supplier **out,
                           struct weir_error *err)
{
    struct supplier *supplier = weir_xalloc(sizeof *supplier);
    *supplier = (struct supplier){.config = *config};
    supplier->config.state_dir = supplier->state_dir = weir_xstrdup(config->state_dir);
    supplier->config.server_url = supplier->server_url = weir_xstrdup(config->server_url);
    supplier->config.ca_file = supplier->ca_file =
        config->ca_file != NULL ? weir_xstrdup(config->ca_file) : NULL;
    supplier->config.drivers = config->drivers != NULL ? config->drivers : &weir_drivers;
    supplier->config.clock = config->clock != NULL ? config->clock : &weir_system_clock;
    supplier->config.look_ms = config->look_ms > 0 ? config->look_ms : LOOK_MS;
    pthread_mutex_init(&supplier->lock, NULL);
    pthread_cond_init(&supplier->woken, NULL);
    int reason = pthread_create(&supplier->keeper, NULL, keeper_main, supplier);
    if (reason != 0) {
        destroy(supplier);
        return weir_error_set_errno(err, reason, "cannot start a thread");
    }
    *out = supplier;
    return WEIR_OK;
}

void supplier_notify(struct supplier *supplier)
{
    if (supplier != NULL) {
        pthread_mutex_lock(&supplier->lock);
        supplier->n_notified++;
        pthread_cond_broadcast(&supplier->woken);
        pthread_mutex_unlock(&supplier->lock);
    }
}

void supplier_stop(struct supplier *supplier)
{
    if (supplier == NULL) {
        return;
    }
    pthread_mutex_lock(&supplier->lock);
    supplier->is_stopping = true;
    pthread_cond_broadcast(&supplier->woken);
    pthread_mutex_unlock(&supplier->lock);
    pthread_join(supplier->keeper, NULL);
    destroy(supplier);
}
