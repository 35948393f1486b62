/**
 * A snapshot as JSON: for files, replay, "what if" and people. References are by name.
 * Members that have their default may be left out. Unknown members are refused. Units are those of
 * sched/snapshot.h.
 *
 *     {"now_ms": 0,
 *      "nodes": [{"name": "n1", "model": "A100", "n_devices": 8, "device_memory_bytes": 0, "device_milli": 0,
 *        "cpu_milli": 64000, "memory_bytes": 0, "n_tasks_max": -1, "labels": {"rack": "r1"},
 *        "taints": [{"key": "", "value": ""}],
 *        "extras": [{"name": "", "count": 1, "device_milli": 0}],
 *        "zones": [{"cpu_milli": -1, "memory_bytes": -1, "n_devices": -1}],
 *        "numa_policy": "none | restricted | single | best-effort", "is_whole_only": false,
 *        "is_cordoned": false, "closed_from_ms": 0, "closed_until_ms": 0}],
 *      "queues": [{"name": "vision", "parent": "all", "priority": 100,
 *        "accelerator": {"quota": 8000, "weight": 1, "limit": -1}, "cpu": …, "memory": …,
 *        "models": {"A100": {"quota": 4000, "weight": 1, "limit": 8000}},
 *        "timed_quotas": [{"days": 127, "from_minute": 0, "until_minute": 1440, "accelerator": …,
 *                     "models": …}],
 *        "usage_ppm": [0, 0, 0], "preempt_min_run_ms": -1, "reclaim_min_run_ms": -1}],
 *      "topologies": [{"name": "t", "levels": ["zone", "rack"]}],
 *      "jobs": [{"name": "j", "user": "ada", "queue": "vision", "priority": 50,
 *        "preemptibility": "preemptible | non-preemptible | semi-preemptible",
 *        "min_member": -1, "created_ms": 0, … (the times and numbers of struct weir_sched_job),
 *        "groups": [{"name": "g", "parent": -1, "min_member": -1, "topology": "t",
 *                    "required_level": "zone", "preferred_level": "rack"}],
 *        "tasks": [{"name": "j-0",
 *          "state": "pending | running | releasing | stuck | pipelined | gated | done | failed",
 *          "node": "n1", "group": 0, "order": 0, "devices": [0], "zones": [], "n_devices": 1,
 *          "device_milli": 1000, "device_memory_bytes": 0, "cpu_milli": 0, "memory_bytes": 0,
 *          "extras": [], "numa_aligned": false, "selector": {"kind": null}, "tolerations": [],
 *          "labels": {}, "affinity_key": "zone", "anti_affinity_key": null, "spread": 0,
 *          "affinity_labels": {}, "is_leaving": false, "scores": {"n1": 5},
 *          "wishes": [{"weight": 1, "domains": {"n1": 0}, "labels": {}}],
 *          "nomination": {"node": "n1", "devices": [0], "zones": []}}]}],
 *      "reservations": [{"name": "r", "queue": "vision", "job": "j", "from_ms": 0, "until_ms": 0,
 *                        "nodes": ["n1"]}]}
 *
 * A queue that leaves out a share has quota and limit -1 and weight 1. A timed quota that leaves
 * out a share has the queue's.
 */
#ifndef WEIR_SCHED_SNAPSHOT_JSON_H
#define WEIR_SCHED_SNAPSHOT_JSON_H

#include "base/arena.h"
#include "base/json.h"
#include "sched/sched.h"

/**
 * Read a snapshot from JSON and check it (weir_sched_snapshot_check).
 *
 * @param document  Borrowed for as long as *out is used: its texts are.
 * @param arena     Holds the arrays. Give it room for some ten times the text.
 * @return INVALID, naming the member; else as the check says. *out is undefined on error.
 */
weir_status weir_sched_snapshot_from_json(const json_t *document, struct weir_arena *arena,
                                          struct weir_sched_snapshot *out,
                                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
