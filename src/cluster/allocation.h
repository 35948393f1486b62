/**
 * Allocation: what an agent that was started in somebody's cluster has of its node. It is read from the environment
 * that the agent was started with; here alone the agent knows of Slurm and of Kubernetes, and reads their variables.
 *
 *     SLURM_CPUS_ON_NODE, SLURM_MEM_PER_NODE, SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU (MiB)
 *     CUDA_VISIBLE_DEVICES, else SLURM_STEP_GPUS, else SLURM_JOB_GPUS    its accelerators, as a process there names them
 *     SLURM_SHARDS_ON_NODE    parts of an accelerator: of how large a one Slurm does not say
 *     WEIR_ACCELERATOR_MILLI    how much that is, in thousandths, where Weir asked for it: else a share in parts has no accelerator,
 *                               and neither has one in parts of several
 *     WEIR_ACCELERATOR_MODEL    what they are, where no library of a driver tells
 *     SLURMD_NODENAME, SLURM_JOB_ID, SLURM_JOB_PARTITION, SLURM_JOB_END_TIME (s since 1970)
 *
 * Where Weir itself says it (cluster/kubernetes/job.h), that counts first:
 *
 *     WEIR_ALLOCATION_CPUS, WEIR_ALLOCATION_MEMORY_MIB
 *     WEIR_ALLOCATION_IMAGE    the image of a registry that the pod has because jobs want it
 *     WEIR_ALLOCATION_INDEX    the node is TAG-INDEX
 *     WEIR_ALLOCATION_HOST, WEIR_ALLOCATION_NAMESPACE, WEIR_ALLOCATION_POD    its node and its pod in Kubernetes
 *
 * All of it may be missing or wrong: what cannot be read is as if it was not there. Pure; any thread.
 */
#ifndef WEIR_CLUSTER_ALLOCATION_H
#define WEIR_CLUSTER_ALLOCATION_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

/** Most accelerators of a share; others are left out. */
#define WEIR_NODE_SHARE_DEVICES_MAX 192

/** Text lies in the caller's arena. */
struct weir_node_share {
    const char *node;                 /**< Its name as a node: TAG-HOST. */
    const char *host;                 /**< Its name over there. */
    const char *pod, *namespace_name; /**< In Kubernetes; NULL: it is in none. */
    const char *image;                /**< The pod's, if it is one that jobs want; NULL. */
    const char *job_id;               /**< NULL: not told. */
    const char *partition;            /**< NULL: not told. */
    int64_t cpus, memory_bytes;       /**< 0: not told. */
    const char *devices;              /**< Indices or UUIDs, "0,3"; "": none. */
    int64_t n_devices, n_shards;      /**< 0: none. */
    int64_t device_milli; /**< What of the device the share is, in thousandths; 0: all of each. */
    const char *model;    /**< NULL: not told. */
    int64_t ends_ms;      /**< Since 1970; 0: not told. */
};

/**
 * @param environment  "NAME=VALUE", NULL at the end.
 * @param host_name  This machine's, for where the environment has none.
 * @return INVALID for a tag that is none (cluster/driver.h), or is too long to be followed by a host's name.
 */
weir_status weir_node_share_read(const char *tag, char *const *environment, const char *host_name,
                                 struct weir_arena *arena, struct weir_node_share *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Change what a node offers (weir_cluster_inventory) to the share: cpu_slots, memory_bytes, n_accelerators; and add
 *  inventory.slurm {job_id, node, partition} or inventory.kubernetes {namespace, pod, node, image}, and ends_ms. What is not
 *  told stays, but for accelerators: then there are none. */
void weir_node_share_apply(const struct weir_node_share *share, json_t *inventory);

#endif
