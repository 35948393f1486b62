/**
 * Cluster: where tasks can run, and how an agent gets there.
 *
 * A node tells what it has (inventory); a driver says how an agent reaches a node. `local` is the
 * driver of the server's own machine: it starts the agent as a process of its own that outlives the
 * server. Slurm and Kubernetes are not supported yet and say so.
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

struct weir_cluster_agent {
    const char *dir;     /**< The agent's folder; its token file lies there. */
    const char *server;  /**< URL the agent calls. */
    const char *ca_file; /**< Authorities to trust for https; NULL: the system's. */
    const char *node;    /**< NULL: weir_cluster_node_name. */
    int64_t cpu_slots;
    const char *shares; /**< Folders for tasks, in lines; NULL: none. */
    int64_t task_users; /**< First of the users of jobs; 0: the agent's default. */
};

/**
 * Make sure that an agent with this folder runs: if none holds its lock, start one, detached, with
 * its log in dir/agent.log, and its options noted in dir/options. One that runs learns a new server
 * address from dir/server.url; its other options stay.
 * It is started as `PROGRAM agent --dir=DIR --server=URL --node=NAME --cpu-slots=N
 * [--ca-file=FILE] [--task-users=N] [--share=DIR …]`, where PROGRAM is the one that runs now; its
 * token is to be in DIR/token. Any thread.
 * @return the error of the folder or of starting the program.
 */
weir_status weir_cluster_start_local_agent(const struct weir_cluster_agent *agent,
                                           struct weir_error *err) WEIR_MUST_CHECK;

/** Does an agent with this folder run (is its lock held)? Takes and frees the lock for a moment if
 *  not. */
bool weir_cluster_has_local_agent(const char *dir);

/** Was the agent of this folder, the last that was started so, given other options than these (the
 *  server's address aside)? */
bool weir_cluster_agent_differs(const struct weir_cluster_agent *agent);

/** Reach a node of a cluster by its driver's name. @return UNSUPPORTED but for "local". */
weir_status weir_cluster_driver_check(const char *driver, struct weir_error *err) WEIR_MUST_CHECK;

#endif
