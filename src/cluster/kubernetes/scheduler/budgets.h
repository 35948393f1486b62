/** PodDisruptionBudgets: which pods may not be told to end just now. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_BUDGETS_H
#define WEIR_CLUSTER_KUBERNETES_BUDGETS_H

#include "cluster/kubernetes/scheduler/world.h"
#include "kube/client.h"

struct budgets_one {
    const char *space;
    struct select_all pods;
    int64_t n_allowed; /**< So many pods may go. */
};

struct budgets {
    struct weir_arena arena;
    struct budgets_one *rows;
    size_t n, cap;
    int64_t listed_ms; /**< Monotonic; 0: never. */
};

void budgets_init(struct budgets *budgets);
void budgets_fini(struct budgets *budgets);

/** List them, unless that was done in the last few seconds. @return As weir_kube_call; then those of before stand. */
weir_status budgets_list(struct budgets *budgets, struct weir_kube *kube,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** Mark those that are spared: with a gang of more than may go, all of it. @return Are there any? */
bool budgets_spare(const struct budgets *budgets, struct world_pod *pods, size_t n_pods);

#endif
