/** What the driver keeps of a cluster from call to call: its client, and mirrors of its nodes and pods. For the driver's own
 *  files. */
#ifndef WEIR_CLUSTER_KUBERNETES_LINK_H
#define WEIR_CLUSTER_KUBERNETES_LINK_H

#include "cluster/driver.h"
#include "cluster/kubernetes/node.h"
#include "cluster/kubernetes/pod.h"
#include "kube/mirror.h"

struct kubernetes_link;

/** Have it, made at the first call. @return INVALID with kubernetes_options_wrong's sentence, and weir_kube_config_load's
 *  errors. */
weir_status kubernetes_link_get(struct weir_driver_link *link, struct kubernetes_link **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** ops->close. */
void kubernetes_link_close(void *kept);

struct weir_kube *kubernetes_link_kube(struct kubernetes_link *link);

/** These are the server's queues: have a scheduler that places pods by them, made at the first call. */
weir_status kubernetes_link_tend(struct kubernetes_link *link,
                                 const struct kubernetes_options *options,
                                 const struct weir_sched_queue *queues, size_t n_queues,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The namespace of what is asked for a queue. Borrowed. */
const char *kubernetes_link_namespace(const struct kubernetes_link *link,
                                      const struct kubernetes_options *options, const char *queue);

/** Each namespace in which something may have been asked for, in the arena. */
const char **kubernetes_link_namespaces(const struct kubernetes_link *link,
                                        const struct kubernetes_options *options,
                                        struct weir_arena *arena, size_t *out_n);

struct kubernetes_shown; /* shown.h */

/** What shows jobs to people over there, made at the first call. */
weir_status kubernetes_link_shown(struct kubernetes_link *link,
                                  const struct kubernetes_options *options,
                                  struct weir_arena *arena, struct kubernetes_shown **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** The pools as the mirrors have them. @return UNAVAILABLE: the API server has not been heard of late. */
weir_status kubernetes_link_pools(struct kubernetes_link *link, struct weir_arena *arena,
                                  struct kubernetes_pool **out, size_t *out_n,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** ops->poll. */
weir_status kubernetes_poll(struct kubernetes_link *link, const struct kubernetes_options *options,
                            const char *const *tags, size_t n, struct weir_arena *arena,
                            struct weir_allocation_report *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
