/**
 * The first time at which a task fits as others end, one after the other: by sums per node, so that
 * nothing of the cluster changes on the way. Where the sums are enough, what has ended there is
 * supposed gone for a moment, and the task is tried on that node alone. For tasks whose placement
 * is a matter of one node and that fitted nowhere at first: then only nodes matter on which
 * something has ended.
 */
#ifndef WEIR_SCHED_SCAN_H
#define WEIR_SCHED_SCAN_H

#include "sched/evict/feasibility.h"

/** Something on a node that has ended. */
struct scan_end {
    int32_t task, node, previous; /**< Previous: of the same node; -1. */
    const int32_t *devices;       /**< Borrowed until the scan begins again. */
    uint32_t zones;
};

struct scan_node {
    struct reclaimable gain;
    int32_t last;  /**< Of scan.ends. */
    int32_t epoch; /**< Of another one the above is nothing. */
};

struct scan {
    struct cluster *cluster;
    struct scan_node *nodes; /**< Per node. */
    int32_t epoch;
    struct scan_end *completions;
    int32_t n_completions, completions_cap;
    int32_t n_tried;         /**< The first ends whose nodes were tried. */
    int32_t *found, n_found; /**< Nodes on which the task fits, in order. */
    int32_t found_cap;
};

weir_status scan_init(struct scan *scan, struct cluster *cluster) WEIR_MUST_CHECK;
void scan_fini(struct scan *scan);

/** Nothing has ended. */
void scan_begin(struct scan *scan);

/** What a task takes of a node ends. Lack of memory sets the cluster's status. O(1). */
void scan_pass(struct scan *scan, int32_t task, int32_t node, const int32_t *devices,
               uint32_t zones);

/** Whether the task fits on a node on which something has ended since this was asked last; those
 *  are found. `devices` has room for the devices of any node. */
bool scan_fits(struct scan *scan, int32_t task, int32_t *devices);

/** Suppose that on the nodes found all that has ended is gone (sign 1), or is not after all. */
void scan_suppose(struct scan *scan, int sign);

#endif
