/** A snapshot and a plan to JSON: for tests, which compare them. */
#ifndef WEIR_SCHED_TEST_SNAPSHOT_H
#define WEIR_SCHED_TEST_SNAPSHOT_H

#include "base/json.h"
#include "sched/sched.h"

/**
 * Write a snapshot in the form that weir_sched_snapshot_from_json reads, defaults left out. The caller owns the result; NULL: no
 * memory.
 */
json_t *weir_sched_snapshot_to_json(const struct weir_sched_snapshot *snapshot);

/**
 * {"actions": [{"kind": "bind | pipeline | evict", "task", "node", "devices", "reason", "by"}],
 *  "waits": [{"job", "code", "resource", "model", "need", "have", "object", "text"}],
 *  "queues": [{"name", "fair_share": [a, c, m], "requested", "allocated",
 *              "models": {"A100": {"fair_share": a, "requested", "allocated"}}}]}, all by name.
 * Models are there if it is about a model, or queues have shares of them.
 * The caller owns it; NULL: no memory.
 */
json_t *weir_sched_plan_to_json(const struct weir_sched_snapshot *snapshot,
                                const struct weir_sched_plan *plan);

#endif
