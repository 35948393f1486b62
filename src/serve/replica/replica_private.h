/** A replica's inside, and what a host hosts of one of a deployment (host/host.h). */
#ifndef WEIR_SERVE_REPLICA_PRIVATE_H
#define WEIR_SERVE_REPLICA_PRIVATE_H

#include "host/host.h"
#include "serve/replica/replica.h"

struct serve_replica {
    const struct serve_options *options;
    struct versions *versions;
    struct front *front;
    struct weir_host *host;   /**< NULL: there is no deployment. */
    _Atomic int64_t revision; /**< Of the deployment: that is served, or being made so. */
    struct protocol_host ops;
};

/**
 * Loads what the server wants beside what runs (versions.h). Each version's file is got into the cache, and
 * what is not wanted any more is unloaded. A version that cannot be loaded is FAILED with its reason, and the
 * others serve. What another try may mend (no server, no memory) is tried again. Files are fetched and summed
 * at low priority. Loading is not: threads that a model makes while it is loaded would keep the priority.
 */
extern const struct weir_hosted serve_deployed;

/**
 * What the server is told, a new reference; NULL: it would be no UTF-8.
 *
 *     {"url": "http://10.0.0.7:41234", "revision": 7, "n_running": 2,
 *      "versions": [{"version": 3, "state": "READY", "reason": "", "executor": "weir",
 *                    "place": "the GPU", "load_ms": 210.5}],
 *      "stats": {"success": 1200, "failure": 3, "rows": 2400, "batches": 800, "p50_ms": 1.2,
 *                "p99_ms": 4.5, "memory_bytes": 104857600,
 *                "versions": [{"version": 3, …the same…}]}}
 */
json_t *serve_report(const struct serve_replica *replica);

#endif
