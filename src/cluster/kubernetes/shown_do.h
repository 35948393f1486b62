/** Doing what a plan (shown_plan.h) says of the objects that people see of jobs. Owned by one thread. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_SHOWN_DO_H
#define WEIR_CLUSTER_KUBERNETES_SHOWN_DO_H

#include "cluster/kubernetes/shown_plan.h"
#include "kube/client.h"

#define SHOWN_CALLS_MAX 256 /**< Objects that one round asks something of. */
#define SHOWN_REFUSALS  16  /**< The same of those that people have made. */

/** What was asked of an object last. */
struct shown_asked {
    char *key;
    uint64_t asked;    /**< Hash of what it was. */
    int64_t due_ms;    /**< Nothing is asked of it before, monotonic. */
    int64_t again_ms;  /**< The same is not asked before. */
    unsigned n_failed; /**< One after another. */
};

struct shown_do {
    struct weir_kube *kube;    /**< Borrowed. */
    struct shown_asked *asked; /**< By key. */
    size_t n, cap;
    int64_t log_due_ms; /**< The next failure is logged from then on. */
    int64_t n_unlogged;
};

void shown_do_fini(struct shown_do *doing);

/**
 * Do what is due of a plan. What fails is logged, and due again after pauses that grow; so is all of it once the API server does
 * not answer.
 * @param server  Ours, for the objects.
 * @return When something is due again, monotonic; INT64_MAX: nothing is.
 */
int64_t shown_do(struct shown_do *doing, const struct shown_step *steps, size_t n,
                 const char *server, struct weir_arena *arena);

#endif
