/** A copy of the server's queues, as the scheduler of a cluster keeps them. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_QUEUES_H
#define WEIR_CLUSTER_KUBERNETES_QUEUES_H

#include "base/arena.h"
#include "sched/snapshot.h"

/** Rows and all that they point to, in the arena. */
struct weir_sched_queue *queues_copy(const struct weir_sched_queue *queues, size_t n,
                                     struct weir_arena *arena);

#endif
