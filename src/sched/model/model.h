/**
 * Models of devices: of which models queues have shares, which nodes have them, and which tasks
 * must run on one. The rules are at struct weir_sched_model_share.
 */
#ifndef WEIR_SCHED_MODEL_H
#define WEIR_SCHED_MODEL_H

#include "sched/model/cluster.h"

/**
 * Number the models, note the model of each node, and count devices by model into
 * cluster->capacity.total.
 */
void model_number(struct cluster *cluster);

/** The resource of this name; -1: no queue has a share of it. */
int32_t model_named(const struct cluster *cluster, const char *name);

/**
 * Find the shapes that must run on one model. Call after shape_assign. Without shares of models it
 * does nothing. Cost: nodes for each distinct set of selector and tolerations.
 */
weir_status model_bind_shapes(struct cluster *cluster) WEIR_MUST_CHECK;

#endif
