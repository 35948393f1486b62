/** The tables of members that snapshot_json.c reads and writes, apart from its code. */
#ifndef WEIR_SCHED_SNAPSHOT_FIELDS_H
#define WEIR_SCHED_SNAPSHOT_FIELDS_H

#include "sched/io/json_fields.h"
#include "sched/snapshot.h"

#include <stddef.h>

// clang-format off
#define F(strct, member, kind, dflt)  { .name = #member, .type = JSON_FIELD_##kind, .offset = offsetof(struct strct, member), .fallback = (dflt) }
#define W(strct, member, words_of)    { .name = #member, .type = JSON_FIELD_WORD, .offset = offsetof(struct strct, member), .words = (words_of) }
#define NEED(strct, member, kind)     { .name = #member, .type = JSON_FIELD_##kind, .offset = offsetof(struct strct, member), .is_required = true }
#define OTHER(key)                    { .name = (key), .type = JSON_FIELD_OTHER }

static const char *const numa_words[] = {"none", "restricted", "single", "best-effort", NULL};
static const char *const preemptibility_words[] = {"preemptible", "non-preemptible", "semi-preemptible", NULL};
static const char *const state_words[] = {"pending", "running", "releasing", "stuck", "pipelined", "gated", "done", "failed", NULL};

static const struct json_field node_fields[] = {
    NEED(weir_sched_node, name, TEXT), F(weir_sched_node, model, TEXT, 0),
    F(weir_sched_node, n_devices, I32, 0), F(weir_sched_node, n_tasks_max, I32, -1),
    F(weir_sched_node, device_memory_bytes, I64, 0), F(weir_sched_node, device_milli, I32, 0),
    F(weir_sched_node, cpu_milli, I64, 0), F(weir_sched_node, memory_bytes, I64, 0),
    W(weir_sched_node, numa_policy, numa_words),
    F(weir_sched_node, is_whole_only, BOOL, 0), F(weir_sched_node, is_cordoned, BOOL, 0),
    F(weir_sched_node, closed_from_ms, I64, 0), F(weir_sched_node, closed_until_ms, I64, 0),
    OTHER("labels"), OTHER("taints"), OTHER("extras"), OTHER("zones"),
};
static const struct json_field taint_fields[] = {
    NEED(weir_sched_taint, key, TEXT), NEED(weir_sched_taint, value, TEXT),
};
static const struct json_field toleration_fields[] = {
    NEED(weir_sched_toleration, key, TEXT), F(weir_sched_toleration, value, TEXT, 0),
};
static const struct json_field extra_fields[] = {
    NEED(weir_sched_extra, name, TEXT), F(weir_sched_extra, count, I64, 1), F(weir_sched_extra, device_milli, I64, 0),
};
static const struct json_field zone_fields[] = {
    F(weir_sched_numa_zone, cpu_milli, I64, -1), F(weir_sched_numa_zone, memory_bytes, I64, -1),
    F(weir_sched_numa_zone, n_devices, I32, -1),
};
static const struct json_field queue_fields[] = {
    NEED(weir_sched_queue, name, TEXT), F(weir_sched_queue, priority, I32, 100),
    F(weir_sched_queue, preempt_min_run_ms, I64, -1), F(weir_sched_queue, reclaim_min_run_ms, I64, -1),
    F(weir_sched_queue, served_ms, I64, 0),
    OTHER("parent"), OTHER("accelerator"), OTHER("cpu"), OTHER("memory"), OTHER("models"),
    OTHER("usage_ppm"), OTHER("timed_quotas"),
};
static const struct json_field share_fields[] = {
    F(weir_sched_share, quota, I64, -1), F(weir_sched_share, weight, I64, 1), F(weir_sched_share, limit, I64, -1),
};
static const struct json_field timed_quota_fields[] = {
    F(weir_sched_timed_quota, days, I32, 127), F(weir_sched_timed_quota, from_minute, I32, 0), F(weir_sched_timed_quota, until_minute, I32, 1440),
    OTHER("accelerator"), OTHER("cpu"), OTHER("memory"), OTHER("models"),
};
static const struct json_field topology_fields[] = {
    NEED(weir_sched_topology, name, TEXT), OTHER("levels"),
};
static const struct json_field reservation_fields[] = {
    NEED(weir_sched_reservation, name, TEXT),
    F(weir_sched_reservation, from_ms, I64, 0), F(weir_sched_reservation, until_ms, I64, 0),
    OTHER("queue"), OTHER("job"), OTHER("nodes"),
};
static const struct json_field group_fields[] = {
    F(weir_sched_group, name, TEXT, 0), F(weir_sched_group, parent, I32, -1),
    F(weir_sched_group, min_member, I32, -1),
    OTHER("topology"), OTHER("required_level"), OTHER("preferred_level"),
};
static const struct json_field job_fields[] = {
    NEED(weir_sched_job, name, TEXT), F(weir_sched_job, user, TEXT, 0), F(weir_sched_job, priority, I32, 0),
    W(weir_sched_job, preemptibility, preemptibility_words), F(weir_sched_job, min_member, I32, -1),
    F(weir_sched_job, created_ms, I64, 0), F(weir_sched_job, queued_ms, I64, 0),
    F(weir_sched_job, started_ms, I64, 0), F(weir_sched_job, preemption_delay_ms, I64, 0),
    F(weir_sched_job, stale_since_ms, I64, 0), F(weir_sched_job, stale_grace_ms, I64, INT64_MIN),
    F(weir_sched_job, time_limit_ms, I64, 0), F(weir_sched_job, expected_run_ms, I64, 0),
    F(weir_sched_job, checkpoint_ms, I64, 0), F(weir_sched_job, checkpoint_requested_ms, I64, 0),
    F(weir_sched_job, evict_acknowledged, BOOL, 0), F(weir_sched_job, utilisation_pct, I32, -1),
    F(weir_sched_job, can_checkpoint, BOOL, 0), F(weir_sched_job, idle_since_ms, I64, 0),
    OTHER("queue"), OTHER("groups"), OTHER("tasks"),
};
static const struct json_field task_fields[] = {
    NEED(weir_sched_task, name, TEXT), W(weir_sched_task, state, state_words),
    F(weir_sched_task, group, I32, 0), F(weir_sched_task, order, I32, 0),
    F(weir_sched_task, spread, I32, 0), F(weir_sched_task, affinity_key, TEXT, 0), F(weir_sched_task, anti_affinity_key, TEXT, 0),
    { .name = "n_devices", .type = JSON_FIELD_I32, .offset = offsetof(struct weir_sched_task, demand.n_devices) },
    { .name = "device_milli", .type = JSON_FIELD_I32, .offset = offsetof(struct weir_sched_task, demand.device_milli) },
    { .name = "device_memory_bytes", .type = JSON_FIELD_I64, .offset = offsetof(struct weir_sched_task, demand.device_memory_bytes) },
    { .name = "cpu_milli", .type = JSON_FIELD_I64, .offset = offsetof(struct weir_sched_task, demand.cpu_milli) },
    { .name = "memory_bytes", .type = JSON_FIELD_I64, .offset = offsetof(struct weir_sched_task, demand.memory_bytes) },
    { .name = "numa_aligned", .type = JSON_FIELD_BOOL, .offset = offsetof(struct weir_sched_task, demand.numa_aligned) },
    F(weir_sched_task, is_leaving, BOOL, 0), OTHER("nomination"),
    OTHER("node"), OTHER("devices"), OTHER("zones"), OTHER("extras"), OTHER("selector"), OTHER("tolerations"),
    OTHER("labels"), OTHER("affinity_labels"), OTHER("scores"), OTHER("wishes"),
};
static const struct json_field wish_fields[] = {
    NEED(weir_sched_wish, weight, I32), OTHER("domains"), OTHER("labels"),
};
static const struct json_field document_fields[] = {
    F(weir_sched_snapshot, now_ms, I64, 0), OTHER("nodes"), OTHER("queues"), OTHER("topologies"), OTHER("jobs"),
    OTHER("reservations"),
};
// clang-format on

#undef F
#undef W
#undef NEED
#undef OTHER

#endif
