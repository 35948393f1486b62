/** What Prometheus is told. */
#include "api/core/metrics.h"

#include "api/core/call.h"
#include "api/core/functions.h"
#include "api/ion/health.h"
#include "control/vitals.h"
#include "gateway/figures.h"
#include "http/http.h"
#include "job/job.h"
#include "store/live.h"
#include "store/space.h"
#include "store/stmt.h"
#include "store/table.h"
#include "watch/watch.h"

#include <math.h>
#include <string.h>

#define ANSWER_MAX_BYTES ((size_t)64 << 20)
#define LABELS_MAX       8
/* By the index of nodes and states. */
#define ON_NODE "node IN (SELECT name FROM nodes) AND state IN ('STARTING', 'RUNNING', 'STOPPING')"

static void add(const struct api_collecting *of, const char *const *values, double value)
{
    exposition_sample(of->out, of->metric->labels, values, value);
}

static weir_status collect_build(const struct api_collecting *of, struct weir_error *err)
{
    (void)err;
    add(of, (const char *[]){WEIR_VERSION}, 1);
    return WEIR_OK;
}

static weir_status collect_start(const struct api_collecting *of, struct weir_error *err)
{
    (void)err;
    add(of, NULL, (double)of->call->api->started_ms / 1000);
    return WEIR_OK;
}

static weir_status collect_http(const struct api_collecting *of, struct weir_error *err)
{
    struct weir_http_counts counts = {0};
    (void)err;
    if (of->call->api->http != NULL) {
        weir_http_server_counts(of->call->api->http, &counts);
    }
    const char *value = (const char *)&counts + of->metric->offset;
    add(of, NULL, (double)*(const int64_t *)(const void *)value);
    return WEIR_OK;
}

static weir_status collect_engine(const struct api_collecting *of, struct weir_error *err)
{
    struct vitals_part parts[VITALS_PARTS_MAX];
    size_t n = vitals_parts(of->call->api->vitals, parts);
    bool is_time = strcmp(of->metric->name, "weir_engine_seconds_total") == 0;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        add(of, &parts[i].name, is_time ? (double)parts[i].spent_us / 1e6 : (double)parts[i].n);
    }
    return WEIR_OK;
}

static weir_status collect_health(const struct api_collecting *of, struct weir_error *err)
{
    static const char *const states[] = {"ok", "waiting", "degraded", "down"};
    struct weir_alert *alerts;
    size_t n;
    WEIR_TRY(weir_watch_alerts(of->txn, of->call->arena, &alerts, &n, err));
    api_add_vitals(of->call, &alerts, &n);
    struct weir_health health = weir_watch_health(alerts, n);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(states); i++) {
        add(of, &states[i], strcmp(states[i], health.status) == 0);
    }
    return WEIR_OK;
}

static weir_status collect_nodes(const struct api_collecting *of, struct weir_error *err)
{
    static const char *const states[] = {WEIR_NODE_READY, WEIR_NODE_SILENT, WEIR_NODE_LOST};
    const struct weir_query query = {.limit = EXPOSITION_SAMPLES_MAX};
    struct api_call *call = of->call;
    void *items;
    size_t n;
    WEIR_TRY(
        weir_txn_list(of->txn, &weir_node_resource, &query, call->arena, &items, &n, NULL, err));
    const struct weir_node *nodes = items;
    for (size_t i = 0; i < n; i++) {
        const char *state = weir_node_state(&nodes[i], call->now_ms, call->api->since_ms);
        for (size_t s = 0; s < WEIR_ARRAY_LEN(states); s++) {
            add(of, (const char *[]){nodes[i].name, states[s]}, strcmp(state, states[s]) == 0);
        }
    }
    return WEIR_OK;
}

static weir_status collect_space(const struct api_collecting *of, struct weir_error *err)
{
    struct weir_store_space space;
    WEIR_TRY(weir_txn_space(of->txn, &space, err));
    bool is_free = strcmp(of->metric->name, "weir_store_database_free_bytes") == 0;
    add(of, NULL, (double)(is_free ? space.free_bytes : space.bytes));
    return WEIR_OK;
}

static weir_status collect_left_out(const struct api_collecting *of, struct weir_error *err)
{
    (void)err;
    add(of, NULL, (double)of->out->n_left_out);
    return WEIR_OK;
}

static int count_words(const char *words)
{
    int n = 0;
    for (; *words != '\0'; n++) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    return n;
}

/* Labels and a value of each row of its statement. A value that says since when becomes how long. */
static weir_status collect_rows(const struct api_collecting *of, bool is_since,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    int n_labels = count_words(of->metric->labels);
    const char *values[LABELS_MAX];
    WEIR_TRY(weir_stmt_open(of->txn, of->metric->sql, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        for (int i = 0; i < n_labels; i++) {
            values[i] = weir_stmt_text(stmt, i, of->call->arena);
        }
        double value = weir_stmt_f64(stmt, n_labels);
        add(of, values, is_since ? fmax((double)of->call->now_ms - value, 0) / 1000 : value);
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status collect_figures(const struct api_collecting *of, struct weir_error *err)
{
    return collect_rows(of, false, err);
}

static weir_status collect_ages(const struct api_collecting *of, struct weir_error *err)
{
    return collect_rows(of, true, err);
}

#define HTTP(count) collect_http, offsetof(struct weir_http_counts, count)
#define BY(fn)      fn, 0

// clang-format off
const struct api_metric api_metrics[] = {
    {"weir_build_info", "gauge", "1, with the server's version", "version",
     NULL, BY(collect_build)},
    {"weir_start_time_seconds", "gauge", "When the server started, since 1970", "",
     NULL, BY(collect_start)},
    {"weir_http_requests_total", "counter", "Requests that were answered", "",
     NULL, HTTP(n_requests)},
    {"weir_http_refused_total", "counter", "Requests that were refused because too many waited", "",
     NULL, HTTP(n_refused_queue_full)},
    {"weir_http_connections", "gauge", "Open connections", "",
     NULL, HTTP(n_connections)},
    {"weir_http_streams", "gauge", "Open event streams", "",
     NULL, HTTP(n_streams)},
    {"weir_http_waiting_requests", "gauge", "Requests that wait for a change", "",
     NULL, HTTP(n_waiting)},
    {"weir_http_queued_requests", "gauge", "Requests that wait for a thread", "",
     NULL, HTTP(n_queued)},
    {"weir_engine_seconds_total", "counter", "Time that the parts of the engine's rounds took", "part",
     NULL, BY(collect_engine)},
    {"weir_engine_runs_total", "counter", "Times that the parts of the engine's rounds ran", "part",
     NULL, BY(collect_engine)},
    {"weir_health", "gauge", "1 for how the platform is: ok, waiting, degraded or down", "status",
     NULL, BY(collect_health)},
    {"weir_alerts", "gauge", "Alerts that are not resolved", "kind severity state",
     "SELECT kind, severity, state, count(*) FROM alerts WHERE state <> 'resolved' GROUP BY kind, severity, state", BY(collect_figures)},
    {"weir_node_state", "gauge", "1 for the node's state: ready, silent or lost", "node state",
     NULL, BY(collect_nodes)},
    {"weir_node_draining", "gauge", "1 if the node takes no new tasks because somebody drains it", "node",
     "SELECT name, is_draining FROM nodes ORDER BY name", BY(collect_figures)},
    {"weir_node_unhealthy", "gauge", "1 if the node takes no new tasks because a health check fails", "node",
     "SELECT name, unhealthy IS NOT NULL FROM nodes ORDER BY name", BY(collect_figures)},
    {"weir_node_last_seen_timestamp_seconds", "gauge", "The node's last heartbeat, since 1970", "node",
     "SELECT name, " WEIR_LIVE_NODE("last_seen_ms") " / 1000.0 FROM nodes ORDER BY name", BY(collect_figures)},
    {"weir_node_cpu_slots", "gauge", "CPUs of the node", "node",
     "SELECT name, cpu_slots FROM nodes ORDER BY name", BY(collect_figures)},
    {"weir_node_cpu_slots_used", "gauge", "CPUs that tasks on the node have asked for", "node",
     "SELECT node, sum(cpu_millis) / 1000.0 FROM tasks WHERE " ON_NODE " GROUP BY node", BY(collect_figures)},
    {"weir_node_tasks", "gauge", "Tasks on the node", "node",
     "SELECT node, count(*) FROM tasks WHERE " ON_NODE " GROUP BY node", BY(collect_figures)},
    {"weir_node_memory_bytes", "gauge", "Memory of the node", "node",
     "SELECT name, memory_bytes FROM nodes ORDER BY name", BY(collect_figures)},
    {"weir_node_disk_bytes", "gauge", "Size of the disk that holds the agent's folder", "node",
     "SELECT name, disk_bytes FROM nodes WHERE disk_bytes > 0 ORDER BY name", BY(collect_figures)},
    {"weir_node_disk_free_bytes", "gauge", "Free space of that disk", "node",
     "SELECT name, " WEIR_LIVE_NODE("disk_free_bytes") " FROM nodes WHERE disk_bytes > 0 ORDER BY name", BY(collect_figures)},
    {"weir_devices", "gauge", "Devices by kind, model and state", "node kind model state",
     "SELECT node, kind, model, state, count(*) FROM devices GROUP BY node, kind, model, state", BY(collect_figures)},
    {"weir_device_memory_bytes", "gauge", "Memory of the device; of a disk its size", "node device kind model",
     "SELECT node, idx, kind, model, memory_bytes FROM devices WHERE memory_bytes > 0 ORDER BY node, idx", BY(collect_figures)},
    {"weir_device_memory_used_bytes", "gauge", "Used memory of the device", "node device kind model",
     "SELECT node, idx, kind, model, value FROM (SELECT node, idx, kind, model, " WEIR_LIVE_DEVICE("devices", "memory_used_bytes") " AS value FROM devices) AS said WHERE value >= 0 ORDER BY node, idx", BY(collect_figures)},
    {"weir_device_utilisation_ratio", "gauge", "How busy the device is, 0 to 1", "node device kind model",
     "SELECT node, idx, kind, model, value / 100.0 FROM (SELECT node, idx, kind, model, " WEIR_LIVE_DEVICE("devices", "utilisation_pct") " AS value FROM devices) AS said WHERE value IS NOT NULL ORDER BY node, idx", BY(collect_figures)},
    {"weir_device_temperature_celsius", "gauge", "Temperature of the device", "node device kind model",
     "SELECT node, idx, kind, model, value FROM (SELECT node, idx, kind, model, " WEIR_LIVE_DEVICE("devices", "temperature_c") " AS value FROM devices) AS said WHERE value IS NOT NULL ORDER BY node, idx", BY(collect_figures)},
    {"weir_device_power_watts", "gauge", "Power that the device draws", "node device kind model",
     "SELECT node, idx, kind, model, value FROM (SELECT node, idx, kind, model, " WEIR_LIVE_DEVICE("devices", "power_w") " AS value FROM devices) AS said WHERE value IS NOT NULL ORDER BY node, idx", BY(collect_figures)},
    {"weir_device_ecc_errors", "gauge", "Memory errors that could not be corrected since the driver started", "node device kind model",
     "SELECT node, idx, kind, model, value FROM (SELECT node, idx, kind, model, " WEIR_LIVE_DEVICE("devices", "ecc_errors") " AS value FROM devices) AS said WHERE value >= 0 ORDER BY node, idx", BY(collect_figures)},
    {"weir_jobs", "gauge", "Jobs that the store holds", "project kind state",
     "SELECT project, kind, state, n FROM job_totals ORDER BY project, kind, state", BY(collect_figures)},
    {"weir_usage_device_seconds_total", "counter", "Device seconds that tasks had", "project model",
     "SELECT project, model, given / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_device_waited_seconds_total", "counter", "Device seconds that tasks asked for and waited for", "project model",
     "SELECT project, model, waited / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_device_used_seconds_total", "counter", "Of device seconds had: used, by what the devices said", "project model",
     "SELECT project, model, used / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_device_unknown_seconds_total", "counter", "Of device seconds had: while the devices said nothing", "project model",
     "SELECT project, model, unknown / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_device_idle_seconds_total", "counter", "Of device seconds had: while the devices did next to nothing", "project model",
     "SELECT project, model, idle / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_device_borrowed_seconds_total", "counter", "Of device seconds had: above the guarantee of the project's queue", "project model",
     "SELECT project, model, borrowed / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_usage_cpu_seconds_total", "counter", "CPU seconds that tasks had, by the model of the device they had too", "project model",
     "SELECT project, model, cpu_given / 1000000.0 FROM usage_totals ORDER BY project, model", BY(collect_figures)},
    {"weir_queue_guarantee", "gauge", "What the queue is guaranteed: accelerators or cpus", "queue project resource",
     "SELECT queue, project, 'accelerators', device_guarantee / 1000.0 FROM queue_history WHERE time_ms = 0 UNION ALL"
     " SELECT queue, project, 'cpus', cpu_guarantee / 1000.0 FROM queue_history WHERE time_ms = 0 ORDER BY 1, 3", BY(collect_figures)},
    {"weir_queue_used", "gauge", "What the queue's jobs have: accelerators or cpus", "queue project resource",
     "SELECT queue, project, 'accelerators', device_used / 1000.0 FROM queue_history WHERE time_ms = 0 UNION ALL"
     " SELECT queue, project, 'cpus', cpu_used / 1000.0 FROM queue_history WHERE time_ms = 0 ORDER BY 1, 3", BY(collect_figures)},
    {"weir_queue_borrowed", "gauge", "What of it is above the guarantee: accelerators or cpus", "queue project resource",
     "SELECT queue, project, 'accelerators', device_borrowed / 1000.0 FROM queue_history WHERE time_ms = 0 UNION ALL"
     " SELECT queue, project, 'cpus', cpu_borrowed / 1000.0 FROM queue_history WHERE time_ms = 0 ORDER BY 1, 3", BY(collect_figures)},
    {"weir_queue_waiting", "gauge", "What the queue's jobs wait for: accelerators or cpus", "queue project resource",
     "SELECT queue, project, 'accelerators', device_waiting / 1000.0 FROM queue_history WHERE time_ms = 0 UNION ALL"
     " SELECT queue, project, 'cpus', cpu_waiting / 1000.0 FROM queue_history WHERE time_ms = 0 ORDER BY 1, 3", BY(collect_figures)},
    {"weir_jobs_waiting_seconds", "gauge", "How long the job waits that waits longest", "project",
     "SELECT project, min(created_ms) FROM jobs WHERE state = 'PENDING' GROUP BY project", BY(collect_ages)},
    {"weir_job_restarts", "gauge", "Restarts of the jobs that the store holds", "project kind",
     "SELECT project, kind, sum(n_restarts) FROM job_totals GROUP BY project, kind", BY(collect_figures)},
    {"weir_ion_pipelines", "gauge", "Pipelines of IONs that are not deleted", "ion pipeline type state",
     "SELECT p.ion, p.name, p.type, p.state, 1 FROM ion_pipelines p JOIN ions i ON i.name = p.ion WHERE i.state <> 'DELETED' ORDER BY 1, 2", BY(collect_figures)},
    {"weir_replica_frames_taken_total", "counter", "Frames that the replica has taken since it started", "ion pipeline replica",
     "SELECT ion, pipeline, replica, frames_taken FROM ion_replicas ORDER BY 1, 2, 3", BY(collect_figures)},
    {"weir_replica_frames_decided_total", "counter", "Frames that the replica has decided since it started", "ion pipeline replica",
     "SELECT ion, pipeline, replica, frames_decided FROM ion_replicas ORDER BY 1, 2, 3", BY(collect_figures)},
    {"weir_replica_frames_waiting", "gauge", "Frames that wait in front of the replica", "ion pipeline replica",
     "SELECT ion, pipeline, replica, frames_waiting FROM ion_replicas ORDER BY 1, 2, 3", BY(collect_figures)},
    {"weir_replica_frames_ignored", "gauge", "Files and requests given to the replica's source now that are no frames", "ion pipeline replica",
     "SELECT ion, pipeline, replica, frames_ignored FROM ion_replicas ORDER BY 1, 2, 3", BY(collect_figures)},
    {"weir_replica_backlog_seconds", "gauge", "Age of the oldest decision that the replica has not shipped", "ion pipeline replica",
     "SELECT ion, pipeline, replica, backlog_ms / 1000.0 FROM ion_replicas ORDER BY 1, 2, 3", BY(collect_figures)},
    {"weir_decisions_total", "counter", "Decisions that were ever stored", "",
     "SELECT value FROM counters WHERE name = 'decisions'", BY(collect_figures)},
    {"weir_events_total", "counter", "Events that were ever stored", "",
     "SELECT value FROM counters WHERE name = 'events'", BY(collect_figures)},
    {"weir_candidates", "gauge", "Candidates by their state; PENDING_REVIEW waits for a person", "ion link state",
     "SELECT ion, link, state, count(*) FROM ion_candidates GROUP BY ion, link, state", BY(collect_figures)},
    {"weir_models", "gauge", "Versions of models", "model",
     "SELECT model, count(*) FROM model_versions WHERE deleted_ms = 0 GROUP BY model", BY(collect_figures)},
    {"weir_store_database_bytes", "gauge", "Size of the database", "",
     NULL, BY(collect_space)},
    {"weir_store_database_free_bytes", "gauge", "Space in the database that rows to come will use", "",
     NULL, BY(collect_space)},
    {"weir_metrics_left_out", "gauge", "Samples that this answer leaves out, since a family has more than 20000", "",
     NULL, BY(collect_left_out)},
};

// clang-format on
const size_t api_n_metrics = WEIR_ARRAY_LEN(api_metrics);

weir_status api_prometheus(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct exposition out;
    weir_status status = WEIR_OK;
    exposition_begin(&out, ANSWER_MAX_BYTES);
    for (size_t i = 0; i < api_n_metrics && status == WEIR_OK; i++) {
        const struct api_metric *metric = &api_metrics[i];
        const struct api_collecting of = {call, txn, metric, &out};
        exposition_family(&out, metric->name, metric->type, metric->help);
        status = metric->collect(&of, err);
    }
    if (status == WEIR_OK && call->api->gateway != NULL) {
        weir_gateway_prometheus(call->api->gateway, &out.buf);
    }
    if (status == WEIR_OK) {
        weir_http_response_buf(call->response, 200, "text/plain; version=0.0.4; charset=utf-8",
                               &out.buf);
    }
    weir_buf_fini(&out.buf);
    return status;
}
