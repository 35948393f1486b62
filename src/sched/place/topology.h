/**
 * Domains of nodes: for each topology the nodes sorted by their path of labels. A domain of any
 * level is a span of that order.
 */
#ifndef WEIR_SCHED_TOPOLOGY_H
#define WEIR_SCHED_TOPOLOGY_H

#include "sched/model/cluster.h"

struct topology_domain {
    int32_t first, n; /**< Span of topology.nodes. */
    int32_t level;
    int32_t parent; /**< Domain of the level above; -1. */
};

struct topology {
    int32_t *nodes; /**< Those that carry every label of the topology, by path. */
    int32_t n_nodes;
    struct topology_domain *domains; /**< By level, then by path. */
    int32_t n_domains;
    int32_t *level_first; /**< First domain of each level, and the end. */
    int32_t n_levels;
};

/** Make all topologies of a snapshot, an array that topology_free frees. NOMEM. */
weir_status topology_make(const struct weir_sched_snapshot *snapshot,
                          struct topology **out) WEIR_MUST_CHECK;
void topology_free(struct topology *topologies, int32_t n);

#endif
