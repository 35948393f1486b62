/**
 * The jobs of Weir's, shown to the people of a cluster as WeirJobs (`kubectl get weirjobs`), wherever its administrator has
 * installed their definition; where it is not, it is asked for once a minute, and that is all. A thread of its own keeps a
 * mirror of the objects, and makes them what they should be; nothing that allocations wait for waits for it. What a
 * person deletes stays until its job is known to end: a finalizer holds it, so that it is seen whenever it was done.
 *
 *     kubernetes_shown_start(kube, spaces, n_spaces, &shown, err)
 *     kubernetes_shown_look(shown, arena, &seen)
 *     kubernetes_shown_tell(shown, &showing, spaces)
 *     kubernetes_shown_stop(shown)
 */
#ifndef WEIR_CLUSTER_KUBERNETES_SHOWN_H
#define WEIR_CLUSTER_KUBERNETES_SHOWN_H

#include "cluster/driver.h"
#include "kube/client.h"

struct kubernetes_shown;

/** Is there a definition of WeirJobs in the cluster? */
enum kubernetes_shown_place {
    KUBERNETES_SHOWN_NOWHERE,
    KUBERNETES_SHOWN_THERE,
    KUBERNETES_SHOWN_WITHDRAWN, /**< It is being deleted, and all WeirJobs with it. */
};

/** Ask. @return As weir_kube_call; where asking is denied, *out is NOWHERE. */
weir_status kubernetes_shown_place(struct weir_kube *kube, struct weir_arena *arena,
                                   enum kubernetes_shown_place *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** @param kube  Copied. @param spaces  The namespaces in which jobs are shown; copied. */
weir_status kubernetes_shown_start(const struct weir_kube_config *kube, const char *const *spaces,
                                   size_t n_spaces, struct kubernetes_shown **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** What is seen, by the last round. Any thread. */
void kubernetes_shown_look(struct kubernetes_shown *shown, struct weir_arena *arena,
                           struct weir_shown *out);

/** These are the jobs now. Copied. @param spaces  The namespace of each. Any thread. */
void kubernetes_shown_tell(struct kubernetes_shown *shown, const struct weir_showing *showing,
                           const char *const *spaces);

/** End it, at once. NULL is accepted. */
void kubernetes_shown_stop(struct kubernetes_shown *shown);

#endif
