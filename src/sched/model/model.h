/**
 * Devices by model: of which models queues have shares, which nodes are of them, which tasks must
 * run on one, and where a queue's shares of models tell nodes apart. The rules: struct
 * weir_sched_model_share.
 */
#ifndef WEIR_SCHED_MODEL_H
#define WEIR_SCHED_MODEL_H

#include "sched/model/cluster.h"

/** Number the models, note those of nodes and count their devices into cluster->total. */
void model_number(struct cluster *cluster);

/** The resource of this name; -1: no queue has a share of it. */
int32_t model_named(const struct cluster *cluster, const char *name);

/** After the tasks have their shapes: which shapes must run on one model. Without models nothing.
 *  Cost: nodes for each distinct set of selector and tolerations. */
weir_status model_bind_shapes(struct cluster *cluster) WEIR_MUST_CHECK;

#endif
