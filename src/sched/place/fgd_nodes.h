/**
 * The cluster as fgd.h sees it: its mix of tasks, the classes of its nodes, and what each node has
 * free.
 */
#ifndef WEIR_SCHED_FGD_NODES_H
#define WEIR_SCHED_FGD_NODES_H

#include "sched/model/cluster.h"
#include "sched/place/fgd.h"

/** Beyond so many sets of selector and tolerations, those left count as allowed anywhere. */
#define FGD_CONSTRAINTS_MAX 64

struct fgd_nodes {
    const struct cluster *cluster;
    struct fgd_mix mix;
    struct fgd_class *classes;
    bool *allows; /**< FGD_CONSTRAINTS_MAX per class. */
    int32_t n_classes;
    int32_t *constraints; /**< Per shape. */
    int32_t n_constraints;
    int32_t *examples; /**< Per constraint a task that has it. */
    struct fgd_state *states;
    int32_t *scratch; /**< Room for one node's devices. */
    int64_t *rooms;   /**< Per node, thousandths free; 0 if it is closed. */
    int32_t *pool;
    int32_t max_devices;
};

weir_status fgd_nodes_init(struct fgd_nodes *nodes, const struct cluster *cluster) WEIR_MUST_CHECK;
void fgd_nodes_fini(struct fgd_nodes *nodes);

/** Look at a node's counters again. @return Whether its state has changed. */
bool fgd_nodes_update(struct fgd_nodes *nodes, int32_t node);

/** Thousandths of a device that are free in the future. */
int32_t fgd_nodes_free(const struct cluster *cluster, int32_t node, int32_t device);

/** Whether the node's labels and taints allow the task. */
bool fgd_nodes_allow(const struct fgd_nodes *nodes, int32_t task, int32_t node);

/** What is usable per kind, over all nodes that are open. */
void fgd_nodes_sum(const struct fgd_nodes *nodes, int64_t *sums);

#endif
