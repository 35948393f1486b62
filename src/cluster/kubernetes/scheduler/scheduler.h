/**
 * The scheduler of a cluster under Kubernetes: each pod with spec.schedulerName "weir" is placed by Weir's planner under the
 * server's queues. A thread of its own plans whenever something has changed, and now and then; it keeps mirrors of pods and
 * nodes. Nothing that it knows is kept but by the API server.
 *
 *     kubernetes_scheduler_start(kube, options, &scheduler, err)
 *     kubernetes_scheduler_tend(scheduler, queues, n)              as often as they are known; it plans from the first time on
 *     kubernetes_scheduler_stop(scheduler)
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SCHEDULER_H
#define WEIR_CLUSTER_KUBERNETES_SCHEDULER_H

#include "cluster/kubernetes/options.h"
#include "kube/client.h"
#include "sched/snapshot.h"

struct kubernetes_scheduler;

/** @param kube  Copied. @param options  What of them is used is copied. */
weir_status kubernetes_scheduler_start(const struct weir_kube_config *kube,
                                       const struct kubernetes_options *options,
                                       struct kubernetes_scheduler **out,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** These are the queues now. Copied. */
void kubernetes_scheduler_tend(struct kubernetes_scheduler *scheduler,
                               const struct weir_sched_queue *queues, size_t n_queues);

/** End it, at once. NULL is accepted. */
void kubernetes_scheduler_stop(struct kubernetes_scheduler *scheduler);

#endif
