/**
 * Cluster: where tasks can run. A node tells what it has (its inventory); a driver supplies nodes (cluster/driver.h), of
 * which this machine is one (cluster/local_agent.h).
 */
#ifndef WEIR_CLUSTER_CLUSTER_H
#define WEIR_CLUSTER_CLUSTER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * What this machine offers, as the agent registers it: {"cpu_slots","memory_bytes",
 * "n_accelerators","inventory":{"hostname","kernel","processors","cpu_model","cgroup",
 * "accelerators":[{"index","model","uuid"}]}}. A new reference. Processors are those this process
 * may use (affinity and CPU quota), memory is what its control group leaves of the machine's.
 * cpu_slots 0 means one per usable processor, at least 2.
 */
json_t *weir_cluster_inventory(int64_t cpu_slots);

/** The accelerators that the driver's folder lists (/proc/driver/nvidia/gpus): a new array. */
json_t *weir_cluster_accelerators(const char *folder);

/**
 * Whole processors in a CPU quota (rounded up, at least 1), or 0 if there is none. Texts of
 * cpu.max (version 2: "max 100000", "150000 100000") or of cpu.cfs_quota_us and cpu.cfs_period_us.
 */
int weir_cluster_quota_processors(const char *quota, const char *period);

/** This machine's name as a node: its host name in a name's form (a-z 0-9 . _ -). In the arena. */
char *weir_cluster_node_name(struct weir_arena *arena);

#endif
