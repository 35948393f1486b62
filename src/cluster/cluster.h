/**
 * Cluster: where tasks can run, and how an agent gets there.
 *
 * A node tells what it has (inventory); a driver says how an agent gets to a node. Drivers are kinds
 * (base/kind.h), each a file of this folder. Slurm and Kubernetes are planned and say so.
 */
#ifndef WEIR_CLUSTER_CLUSTER_H
#define WEIR_CLUSTER_CLUSTER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/kind.h"
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

struct weir_cluster_agent {
    const char *dir;     /**< The agent's folder; its token file lies there. */
    const char *server;  /**< URL the agent calls. */
    const char *ca_file; /**< Authorities to trust for https; NULL: the system's. */
    const char *node;    /**< NULL: weir_cluster_node_name. */
    int64_t cpu_slots;
    const char *shares;      /**< Folders for tasks, in lines; NULL: none. */
    const char *onnxruntime; /**< Library or its folder, for tasks; NULL: the system's. */
    int64_t task_users;      /**< First of the users of jobs; 0: the agent's default. */
};

/** `ops` of a driver. Any thread. */
struct weir_cluster_driver {
    /**
     * Make sure that an agent with this folder runs. One that runs learns a new server address; its
     * other options stay. Its token is to be in DIR/token.
     * @return the error of the folder or of starting it.
     */
    weir_status (*start)(const struct weir_cluster_agent *agent, struct weir_error *err);
    /** Does an agent with this folder run? */
    bool (*is_running)(const char *dir);
    /** Was the agent of this folder, the last that was started so, given other options than these
     *  (the server's address aside)? */
    bool (*differs)(const struct weir_cluster_agent *agent);
};

extern const struct weir_registry weir_drivers;

#define WEIR_KIND(name) extern const struct weir_kind weir_driver_##name;
#include "cluster/drivers.def"
#undef WEIR_KIND

#endif
