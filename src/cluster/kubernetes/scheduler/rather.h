/**
 * Rather: which of the nodes that a pod may have it had rather: preferred affinity to nodes and to pods, spread constraints of
 * ScheduleAnyway, taints of PreferNoSchedule. Each is a number for a node, and they add up. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_RATHER_H
#define WEIR_CLUSTER_KUBERNETES_RATHER_H

#include "cluster/kubernetes/scheduler/neighbours.h"

#define RATHER_WEIGHT_MAX 100     /**< That an affinity has. */
#define RATHER_SPREAD     (-100)  /**< For each pod that is there already. */
#define RATHER_NOWHERE    (-1000) /**< A node that is in no domain of a spread constraint. */
#define RATHER_TAINT      (-150)  /**< For each taint that the pod does not tolerate. */

/**
 * For each node what speaks for it, in the arena of the neighbours; of company only what the planner does not know of
 * (neighbours_pod). NULL: nothing speaks for any.
 */
const int32_t *rather_scores(struct neighbours *neighbours, const struct place_pod *pod);

/** Is it known which pods the term speaks of? */
bool rather_counts(const struct neighbours *neighbours, const struct place_term *term);

#endif
