/* What the store knows, and alerts as they should be. */
#include "watch/watch.h"

#include "base/uuid.h"
#include "deploy/step.h"
#include "job/restart.h"
#include "store/alert_kind.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

#define ENROLLED_KIND "member_not_enrolled"

/* A replica's number begins again only with its next end: one that runs is told no more once it is stable. */
static const char sql_restarting[] =
    "SELECT id FROM jobs WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') AND"
    " (n_restarts >= :n OR EXISTS (SELECT 1 FROM tasks WHERE tasks.job = jobs.id"
    " AND tasks.n_restarts >= :n AND NOT (jobs.is_service = 1 AND tasks.state = 'RUNNING'"
    " AND tasks.started_ms <= :stable))) ORDER BY created_ms, id";
static const char sql_kept[] =
    "SELECT t.id FROM jobs j CROSS JOIN tasks t"
    " WHERE t.job = j.id AND j.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
    " AND t.state = 'RUNNING' AND t.message IS NOT NULL ORDER BY t.id";
static const char sql_failing[] =
    "SELECT id FROM alerts WHERE kind IN ('job_failed', 'training_failed', 'pipeline_failed')"
    " AND state <> 'resolved' AND count >= :n ORDER BY key";
static const char sql_old_failures[] =
    "UPDATE alerts SET state = 'resolved', resolved_ms = :now, looked = 0"
    " WHERE state <> 'resolved' AND (kind = 'job_failed' AND last_ms < :before"
    " OR kind = 'barred_at_door' AND last_ms < :seen)";
static const char sql_count_old_failures[] =
    "SELECT count(*) FROM alerts"
    " WHERE state <> 'resolved' AND (kind = 'job_failed' AND last_ms < :before"
    " OR kind = 'barred_at_door' AND last_ms < :seen)";

static weir_status load_ions(struct weir_txn *txn, struct weir_watch_seen *seen,
                             struct weir_arena *arena, struct weir_error *err)
{
    char **names;
    size_t n, n_loaded = 0;
    WEIR_TRY(weir_ion_list_active(txn, arena, &names, &n, err));
    struct weir_ion_state *ions = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_ion_state);
    for (size_t i = 0; i < n; i++) {
        struct weir_error ignored; /* The engine says that it cannot be loaded. */
        if (weir_ion_load(txn, names[i], arena, &ions[n_loaded], &ignored) == WEIR_OK) {
            n_loaded++;
        }
    }
    seen->ions = ions;
    seen->n_ions = n_loaded;
    return WEIR_OK;
}

static weir_status load_jobs(struct weir_txn *txn, struct weir_watch_seen *seen,
                             struct weir_arena *arena, struct weir_error *err)
{
    char **ids;
    size_t n;
    WEIR_TRY(
        weir_txn_query_texts(txn, sql_restarting,
                             WEIR_BINDS(WEIR_BIND_INT("n", WEIR_WATCH_RESTARTS),
                                        WEIR_BIND_INT("stable", seen->now_ms - WEIR_JOB_STABLE_MS)),
                             arena, &ids, &n, err));
    struct weir_job *jobs = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_job);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_txn_get(txn, &weir_job_resource, ids[i], arena, &jobs[i], err));
    }
    seen->jobs = jobs;
    seen->n_jobs = n;
    return WEIR_OK;
}

static weir_status load_kept(struct weir_txn *txn, struct weir_watch_seen *seen,
                             struct weir_arena *arena, struct weir_error *err)
{
    char **ids;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql_kept, WEIR_NO_BINDS, arena, &ids, &n, err));
    struct weir_task *tasks = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_task);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_txn_get(txn, &weir_task_resource, ids[i], arena, &tasks[i], err));
    }
    seen->kept = tasks;
    seen->n_kept = n;
    return WEIR_OK;
}

static weir_status load_failures(struct weir_txn *txn, struct weir_watch_seen *seen,
                                 struct weir_arena *arena, struct weir_error *err)
{
    char **ids;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(txn, sql_failing,
                                  WEIR_BINDS(WEIR_BIND_INT("n", WEIR_WATCH_FAILURES)), arena, &ids,
                                  &n, err));
    struct weir_alert *alerts = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_alert);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_txn_get(txn, &weir_alert_resource, ids[i], arena, &alerts[i], err));
    }
    seen->failures = alerts;
    seen->n_failures = n;
    return WEIR_OK;
}

static weir_status load_clusters(struct weir_txn *txn, struct weir_watch_seen *seen,
                                 struct weir_arena *arena, struct weir_error *err)
{
    struct weir_cluster *clusters;
    struct weir_allocation *closed;
    WEIR_TRY(weir_cluster_list(txn, arena, &clusters, &seen->n_clusters, err));
    WEIR_TRY(weir_allocation_list_closed(txn, arena, &closed, &seen->n_closed, err));
    seen->clusters = clusters;
    seen->closed = closed;
    return WEIR_OK;
}

weir_status weir_watch_load(struct weir_txn *txn, struct weir_watch_seen *seen,
                            struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_query query = {.limit = WEIR_QUERY_LIMIT_MAX};
    void *nodes;
    WEIR_TRY(
        weir_txn_list(txn, &weir_node_resource, &query, arena, &nodes, &seen->n_nodes, NULL, err));
    seen->nodes = nodes;
    WEIR_TRY(load_clusters(txn, seen, arena, err));
    const struct weir_query unwell = {WEIR_FILTERS(WEIR_FILTER_TEXT("state", NE, WEIR_DEVICE_OK)),
                                      .limit = WEIR_QUERY_LIMIT_MAX};
    void *devices;
    WEIR_TRY(weir_txn_list(txn, &weir_device_resource, &unwell, arena, &devices, &seen->n_devices,
                           NULL, err));
    seen->devices = devices;
    struct weir_deploy_state *deployments;
    WEIR_TRY(weir_deploy_load_all(txn, arena, &deployments, &seen->n_deployments, err));
    seen->deployments = deployments;
    WEIR_TRY(load_ions(txn, seen, arena, err));
    WEIR_TRY(load_jobs(txn, seen, arena, err));
    WEIR_TRY(load_kept(txn, seen, arena, err));
    return load_failures(txn, seen, arena, err);
}

weir_status weir_watch_alerts(struct weir_txn *txn, struct weir_arena *arena,
                              struct weir_alert **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {.condition = "state <> 'resolved'",
                                     .limit = WEIR_QUERY_LIMIT_MAX};
    void *alerts;
    WEIR_TRY(weir_txn_list(txn, &weir_alert_resource, &query, arena, &alerts, out_n, NULL, err));
    *out = alerts;
    return WEIR_OK;
}

weir_status weir_watch_leave_sandboxes(struct weir_txn *txn, struct weir_alert *alerts,
                                       size_t *n_alerts, struct weir_error *err)
{
    size_t n_left = 0;
    for (size_t i = 0; i < *n_alerts; i++) {
        bool is_tried;
        WEIR_TRY(weir_ion_is_sandbox(txn, alerts[i].subject, &is_tried, err));
        if (!is_tried) {
            alerts[n_left++] = alerts[i];
        }
    }
    *n_alerts = n_left;
    return WEIR_OK;
}

/* ---- sync ----------------------------------------------------------------------------------- */

/** Does this sync look after alerts of the kind? */
static bool is_meant(const char *kind, const char *only_kind)
{
    const struct weir_alert_kind *known = weir_alert_kind_find(kind);
    if (known == NULL || !known->is_watched) {
        return false;
    }
    bool is_servers = strcmp(known->noun, WEIR_WATCH_SERVER) == 0;
    if (only_kind == NULL) {
        return !is_servers && strcmp(kind, ENROLLED_KIND) != 0;
    }
    return strcmp(only_kind, WEIR_WATCH_SERVER) == 0 ? is_servers : strcmp(kind, only_kind) == 0;
}

static bool is_same(const struct weir_watch_finding *finding, const struct weir_alert *alert)
{
    return strcmp(finding->key, alert->key) == 0 && strcmp(finding->severity, alert->severity) == 0;
}

static bool is_found(const struct weir_watch_findings *findings, const struct weir_alert *alert)
{
    for (size_t i = 0; i < findings->n; i++) {
        if (is_same(&findings->items[i], alert)) {
            return true;
        }
    }
    return false;
}

static bool is_raised(const struct weir_alert *alerts, size_t n,
                      const struct weir_watch_finding *finding)
{
    for (size_t i = 0; i < n; i++) {
        if (is_same(finding, &alerts[i])) {
            return true;
        }
    }
    return false;
}

static weir_status count_old_failures(struct weir_txn *txn, int64_t now_ms, int64_t *out,
                                      struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_count_old_failures,
                              WEIR_BINDS(WEIR_BIND_INT("before", now_ms - WEIR_WATCH_JOB_FAILED_MS),
                                         WEIR_BIND_INT("seen", now_ms - WEIR_WATCH_BARRED_MS)),
                              0, out, err);
}

weir_status weir_watch_differs(struct weir_txn *txn, const struct weir_watch_findings *findings,
                               const char *only_kind, int64_t now_ms, struct weir_arena *arena,
                               size_t *out_n, struct weir_error *err)
{
    struct weir_alert *alerts;
    size_t n_alerts;
    int64_t n_old;
    WEIR_TRY(weir_watch_alerts(txn, arena, &alerts, &n_alerts, err));
    WEIR_TRY(count_old_failures(txn, now_ms, &n_old, err));
    *out_n = (size_t)n_old;
    for (size_t i = 0; i < n_alerts; i++) {
        *out_n += is_meant(alerts[i].kind, only_kind) && !is_found(findings, &alerts[i]);
    }
    for (size_t i = 0; i < findings->n; i++) {
        *out_n += !is_raised(alerts, n_alerts, &findings->items[i]);
    }
    return WEIR_OK;
}

static weir_status tell(struct weir_txn *txn, const char *kind, const char *subject,
                        const char *message, int64_t now_ms, struct weir_error *err)
{
    const struct weir_event event = {.time_ms = now_ms,
                                     .topic = "alerts",
                                     .kind = (char *)kind,
                                     .subject = (char *)subject,
                                     .actor = "system",
                                     .message = (char *)message};
    return weir_event_append(txn, &event, NULL, err);
}

static weir_status raise(struct weir_txn *txn, const struct weir_watch_finding *finding,
                         int64_t now_ms, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    const struct weir_alert alert = {.id = id,
                                     .key = (char *)finding->key,
                                     .severity = (char *)finding->severity,
                                     .kind = (char *)finding->kind,
                                     .subject = (char *)finding->subject,
                                     .message = (char *)finding->message};
    WEIR_TRY(weir_alert_raise(txn, &alert, now_ms, NULL, err));
    return tell(txn, "alert_raised", finding->subject, finding->message, now_ms, err);
}

weir_status weir_watch_sync(struct weir_txn *txn, const struct weir_watch_findings *findings,
                            const char *only_kind, int64_t now_ms, struct weir_arena *arena,
                            struct weir_error *err)
{
    struct weir_alert *alerts;
    size_t n_alerts;
    WEIR_TRY(weir_watch_alerts(txn, arena, &alerts, &n_alerts, err));
    for (size_t i = 0; i < n_alerts; i++) {
        if (is_meant(alerts[i].kind, only_kind) && !is_found(findings, &alerts[i])) {
            WEIR_TRY(weir_alert_resolve(txn, alerts[i].key, now_ms, err));
            WEIR_TRY(tell(txn, "alert_resolved", alerts[i].subject,
                          weir_arena_printf(arena, "No longer: %s", alerts[i].message), now_ms,
                          err));
        }
    }
    for (size_t i = 0; i < findings->n; i++) {
        if (!is_raised(alerts, n_alerts, &findings->items[i])) {
            WEIR_TRY(raise(txn, &findings->items[i], now_ms, err));
        }
    }
    return weir_txn_exec(txn, sql_old_failures,
                         WEIR_BINDS(WEIR_BIND_INT("now", now_ms),
                                    WEIR_BIND_INT("before", now_ms - WEIR_WATCH_JOB_FAILED_MS),
                                    WEIR_BIND_INT("seen", now_ms - WEIR_WATCH_BARRED_MS)),
                         NULL, err);
}
