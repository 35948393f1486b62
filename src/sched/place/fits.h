/** Whether a task fits a node, when, and on which of its devices. */
#ifndef WEIR_SCHED_FITS_H
#define WEIR_SCHED_FITS_H

#include "sched/model/cluster.h"

enum fits_when {
    FITS_NEVER,  /**< Labels, taints or sheer size: not even if the node were empty. */
    FITS_NO,     /**< Not with what stays there. */
    FITS_FUTURE, /**< When what leaves has left. */
    FITS_NOW,
};

/** Where a task goes and how. The caller gives `devices` room for the devices of any node. */
struct assignment {
    int32_t node;
    enum fits_when when;
    bool is_ready;  /**< The node has now what is asked for, if not on these devices. */
    bool is_shared; /**< It joins others on a device. */
    uint32_t zones;
    int32_t span; /**< Zones that it is taken to lie in; 0: they do not matter (zones.h). */
    int32_t *devices;
};

/** Whether selector, taints, the node's state and its whole size allow the task at all. */
bool fits_ever(const struct cluster *cluster, int32_t task, int32_t node);

/** Whether they do, but for NUMA zones that could not hold the task (zones.h). */
bool fits_but_for_zones(const struct cluster *cluster, int32_t task, int32_t node);

/** Whether they do, but for maintenance or a reservation of the node (run_time.h). */
bool fits_but_for_time(const struct cluster *cluster, int32_t task, int32_t node);

/** Whether the node's labels and taints allow the task. */
bool fits_allows(const struct cluster *cluster, int32_t task, int32_t node);

/** Find the best assignment on assignment->node. Its other members are written. */
void fits_find(const struct cluster *cluster, int32_t task, struct assignment *assignment);

/** The same, and FITS_NO also if the task's queues may take no more of the node's model. */
void fits_find_within_shares(const struct cluster *cluster, int32_t task,
                             struct assignment *assignment);

/** Whether a RELEASING task could keep running where it is. */
bool fits_back(const struct cluster *cluster, int32_t task);

/**
 * Whether a PIPELINED task could be bound on its planned node, with no other task waiting there.
 */
bool fits_now_where_planned(const struct cluster *cluster, int32_t task);

#endif
