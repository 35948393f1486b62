/**
 * Reporter: tells the server what a replica of a deployment serves, and that it lives: at once when
 * that changes, and every REPORT_MS with its figures.
 *
 *     PUT /api/v1/deployments/{deployment}/replicas/{replica}
 *     {"url": "http://10.0.0.7:41234", "revision": 7, "n_running": 2,
 *      "versions": [{"version": 3, "state": "READY", "reason": "", "executor": "weir",
 *                    "place": "the GPU", "load_ms": 210.5}],
 *      "stats": {"success": 1200, "failure": 3, "rows": 2400, "batches": 800, "p50_ms": 1.2,
 *                "p99_ms": 4.5, "memory_bytes": 104857600,
 *                "versions": [{"version": 3, …the same…}]}}
 *
 * On a thread and a connection of its own: loading does not look like a replica that is dead.
 */
#ifndef WEIR_SERVE_REPORTER_H
#define WEIR_SERVE_REPORTER_H

#include "serve/host.h"
#include "serve/serve_spec.h"
#include "serve/versions.h"

#define REPORT_MS 2000

struct reporter;

struct reporter_config {
    const struct serve_spec *spec; /**< Must name a server. Borrowed, like the rest. */
    struct versions *versions;
    struct host *host;
};

weir_status reporter_start(const struct reporter_config *config, struct reporter **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted, here and below. */
void reporter_stop(struct reporter *reporter);

/** Something changed: report at once. Any thread. */
void reporter_notify(struct reporter *reporter);

/** This revision is what is served, or being made so. Any thread. */
void reporter_set_revision(struct reporter *reporter, int64_t revision);

#endif
