/**
 * Watch: what is wrong now, and whether the platform works.
 *
 * The server looks every few seconds. What it sees (nodes, IONs with their replicas' reports, jobs,
 * the disk) becomes *findings* by rules that are pure functions of it and the time; findings become
 * alerts, and an alert whose finding is gone is resolved: nothing needs a person to say that all is
 * well again. The bounds are here, once; pages and commands get their outcome from the server.
 *
 *     weir_watch_load(txn, &seen, arena, err)       what the store knows
 *     weir_watch_find(&seen, arena, &findings)      pure
 *     weir_watch_sync(txn, &findings, …)            raise and resolve
 *
 * *Health* is the worst that the alerts about something that are not resolved say of it.
 */
#ifndef WEIR_WATCH_WATCH_H
#define WEIR_WATCH_WATCH_H

#include "base/arena.h"
#include "ion/ion.h"
#include "job/cluster.h"
#include "job/device.h"
#include "job/job.h"
#include "store/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_WATCH_DEPLOYING_MS   60000 /**< A deployment may take so long before it is told. */
#define WEIR_WATCH_REPLICA_MS     WEIR_REPLICA_SILENT_MS
#define WEIR_WATCH_BACKLOG_MS     60000
#define WEIR_WATCH_REFUSED_MAX    0.10 /**< Share of the gallery's own photos. */
#define WEIR_WATCH_TARGET_MS      5000 /**< A deployment is made within this of what it serves. */
#define WEIR_WATCH_RESTARTS       3
#define WEIR_WATCH_FAILURES       3 /**< Jobs in a row; of one name, or trainings of one pipeline. */
#define WEIR_WATCH_DISK_LOW_PCT   10
#define WEIR_WATCH_DISK_LOW_BYTES ((int64_t)2 << 30)
#define WEIR_WATCH_DISK_LAST_PCT  3
#define WEIR_WATCH_CLUSTER_MS     60000  /**< A cluster that is silent for so long is told. */
#define WEIR_WATCH_AWAY_MS        600000 /**< So long it is told that the server was away. */
#define WEIR_WATCH_DOOR_MS        2000   /**< A door that is silent for so long is told. */
#define WEIR_WATCH_BARRED_MS                                                                       \
    600000 /**< A barred person who has not been seen for so long has gone. */
#define WEIR_WATCH_JOB_FAILED_MS ((int64_t)7 * 24 * 3600 * 1000)

struct weir_deploy_state;

/** What the rules look at. */
struct weir_watch_seen {
    int64_t now_ms;
    int64_t since_ms;         /**< Nodes and replicas could report since then (job/node_watch.h). */
    size_t n_silent, n_heard; /**< While the server counts as cut off: so many nodes of so many are
                                   silent; 0: it does not. */
    int64_t away_ms, back_ms; /**< How long the server did not run, and until when; 0: it did. */
    const struct weir_node *nodes;
    size_t n_nodes;
    const struct weir_cluster *clusters;
    size_t n_clusters;
    const struct weir_allocation *closed; /**< A node of which takes nothing new over there. */
    size_t n_closed;
    const struct weir_device *devices; /**< That are not ok. */
    size_t n_devices;
    const struct weir_ion_state *ions; /**< Active ones. */
    size_t n_ions;
    const struct weir_deploy_state *deployments;
    size_t n_deployments;
    const struct weir_job *jobs; /**< That are not over and have been started again often. */
    size_t n_jobs;
    const struct weir_task *kept; /**< Tasks whose program failed, and whose place is kept. */
    size_t n_kept;
    /** Of jobs and trainings that have failed so often in a row: none of them has succeeded
     *  since the alert was raised. */
    const struct weir_alert *failures;
    size_t n_failures;
    int64_t disk_bytes, disk_free_bytes; /**< Of the state folder; 0: not known. */
    const char *disk_id;                 /**< weir_disk_id of it; NULL: not known. */
};

/** One thing that is wrong. */
struct weir_watch_finding {
    const char *key;  /**< Of its alert. */
    const char *kind; /**< In store/alert_kind.c, is_watched. */
    const char *severity;
    const char *subject; /**< "ion/door" */
    const char *message; /**< The same as long as it is the same finding. */
};

struct weir_watch_findings {
    struct weir_watch_finding *items;
    size_t n, cap;
};

/** Add one; text is borrowed. severity NULL: the kind's. */
void weir_watch_add(struct weir_watch_findings *findings, struct weir_arena *arena,
                    struct weir_watch_finding finding);

/** All findings, in an order that is always the same. Pure. */
void weir_watch_find(const struct weir_watch_seen *seen, struct weir_arena *arena,
                     struct weir_watch_findings *out);

/** Fill in what the store knows: nodes, ions, jobs, failures. */
weir_status weir_watch_load(struct weir_txn *txn, struct weir_watch_seen *seen,
                            struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** What a sync would change; 0: a write transaction can be spared. */
weir_status weir_watch_differs(struct weir_txn *txn, const struct weir_watch_findings *findings,
                               const char *only_kind, int64_t now_ms, struct weir_arena *arena,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Raise the alerts of new findings, resolve watched ones without a finding, and those of failed
 * jobs that are old; each with an event. A finding of another severity is another alert.
 *
 * @param only_kind  Only alerts of this kind; WEIR_WATCH_SERVER: of all kinds about the server, which are found
 *                   without the store and synced first; NULL: of all other watched kinds but
 *                   member_not_enrolled, whose findings cost reading galleries and are synced on their own.
 */
#define WEIR_WATCH_SERVER "server"
weir_status weir_watch_sync(struct weir_txn *txn, const struct weir_watch_findings *findings,
                            const char *only_kind, int64_t now_ms, struct weir_arena *arena,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** How something is. status: "ok", "waiting" (for a first model), "degraded" or "down". */
struct weir_health {
    const char *status;
    const char *reason; /**< A sentence; NULL if it is ok. */
    int64_t since_ms;   /**< 0 if it is ok. */
};

/** The unresolved alerts about IONs, nodes, jobs and the server. */
weir_status weir_watch_alerts(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_alert **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Take those out that are about IONs in a sandbox: they say nothing of what is real. */
weir_status weir_watch_leave_sandboxes(struct weir_txn *txn, struct weir_alert *alerts,
                                       size_t *n_alerts, struct weir_error *err) WEIR_MUST_CHECK;

/** How an ION is, by the alerts about it. Pure. */
struct weir_health weir_watch_ion_health(const struct weir_ion_state *ion,
                                         const struct weir_alert *alerts, size_t n_alerts);

/** How the platform is: the worst of all. Pure. */
struct weir_health weir_watch_health(const struct weir_alert *alerts, size_t n_alerts);

#endif
