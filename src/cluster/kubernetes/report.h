/** An allocation's report, made of its pods and its Job. Pure. For the driver's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_REPORT_H
#define WEIR_CLUSTER_KUBERNETES_REPORT_H

#include "cluster/kubernetes/pod.h"

struct kubernetes_facts {
    const char *tag;
    const struct kubernetes_pod **pods; /**< Also those that are gone, as they were at the end. */
    const bool *is_gone;                /**< For each. */
    size_t n_pods;
    const json_t *job; /**< NULL: there is none, or it was not asked for. */
    const char *event; /**< What the API last told of the Job; NULL: nothing. */
};

/** Is its Job to be asked for: do its pods alone not tell? */
bool kubernetes_needs_job(const struct kubernetes_facts *facts);

/** Is the last event to be asked for: has a Job no pods, and says nothing itself? */
bool kubernetes_needs_event(const struct kubernetes_facts *facts);

/** Say what it is. closed_node and closed_why are left out. Text lies in the arena. */
void kubernetes_report(const struct kubernetes_facts *facts, struct weir_arena *arena,
                       struct weir_allocation_report *out);

#endif
