/** Which tasks fit the same nodes: equal demand, selector, tolerations and affinity. */
#ifndef WEIR_SCHED_SHAPE_H
#define WEIR_SCHED_SHAPE_H

#include "sched/cluster.h"

/** Give every task its shape's number; n_shapes and shape_failed are made. Cost: linear. */
weir_status shape_assign(struct cluster *cluster) WEIR_MUST_CHECK;

#endif
