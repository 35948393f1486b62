/**
 * The cluster that a trace is played on: nodes and queues. It comes from a YAML file
 * (docs/reference/simulator.md), from a list of nodes as Alibaba published it
 * (sn,cpu_milli,memory_mib,gpu,model), or as a number of devices in nodes of one size.
 */
#ifndef WEIR_SIM_CLUSTER_FILE_H
#define WEIR_SIM_CLUSTER_FILE_H

#include "base/arena.h"
#include "base/status.h"
#include "sched/snapshot.h"

#define WEIR_SIM_NODES_MAX 200000

struct weir_sim_cluster {
    struct weir_sched_node *nodes;
    int32_t n_nodes;
    struct weir_sched_queue *queues;
    int32_t n_queues;
    struct weir_arena arena; /**< Of everything above. */
};

/**
 * Read a cluster from memory.
 *
 * @param what  Names the source in errors. If it ends in ".csv" the text is a list of nodes, else
 *              YAML.
 * @param out   weir_sim_cluster_fini frees it. Undefined on error.
 * @return INVALID: source, place and what was expected; LIMIT: more than WEIR_SIM_NODES_MAX nodes,
 *         or more models with shares than weir_sched_snapshot_check allows.
 */
weir_status weir_sim_cluster_parse(const char *text, size_t len, const char *what,
                                   struct weir_sim_cluster *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The same from a file. Also the errors of weir_file_read. */
weir_status weir_sim_cluster_load(const char *path, struct weir_sim_cluster *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Nodes of `per_node` devices, the last one of what is left, without queues. They have more CPU and
 * memory than any job asks for.
 */
weir_status weir_sim_cluster_uniform(int64_t n_devices, int64_t per_node,
                                     struct weir_sim_cluster *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Free a cluster. NULL and a zeroed cluster are accepted. */
void weir_sim_cluster_fini(struct weir_sim_cluster *cluster);

#endif
