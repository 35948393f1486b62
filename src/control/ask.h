/**
 * Ask: what the tasks of one job ask the planner for beside CPUs and memory, in the planner's terms:
 * labels that a node must have, taints that are tolerated, topology, devices. It is read from the
 * job's record once, when the job changes.
 *
 * Owned by the snapshot's thread. Memory: aborts if there is none.
 */
#ifndef WEIR_CONTROL_ASK_H
#define WEIR_CONTROL_ASK_H

#include "base/arena.h"
#include "job/job.h"
#include "sched/sched.h"

/** Labels and tolerations of one job that count. */
#define ASK_MARKS_MAX 32

struct ask {
    struct weir_sched_label labels[ASK_MARKS_MAX + 1]; /**< The last is a task's model. */
    struct weir_sched_toleration tolerations[ASK_MARKS_MAX];
    int32_t n_labels, n_tolerations;
    const char *required, *preferred; /**< Labels of a topology; NULL. */
    const char **clusters;            /**< Where it may run, in order (schedule/offers.h). */
    int32_t n_clusters;               /**< 0: as its queue says. */
    /** What it wants of its pods (framework/pod.h), as JSON; NULL: nothing, and what wants something is not for it. */
    const char *pod;
    /** It has waited so long before nodes are asked of a cluster for it; -1: as its queue says. */
    int64_t after_ms;
    struct weir_arena arena; /**< Holds the texts. */
};

/** NULL: the job says nothing of it. Else ask_free. */
struct ask *ask_read(const char *placement);
void ask_free(struct ask *ask);

/** What a task asks for of devices, without MIG slices. */
void ask_devices(const struct weir_task *task, struct weir_sched_demand *demand);

/**
 * The labels that a node must have for this task.
 * @param ask   Of its job; NULL.
 * @param out   Room for ASK_MARKS_MAX + 1.
 * @return How many.
 */
int32_t ask_labels(const struct ask *ask, const struct weir_task *task,
                   struct weir_sched_label *out);

/** Does a node with these taints take it? */
bool ask_tolerates(const struct ask *ask, const struct weir_sched_taint *taints, int32_t n);

#endif
