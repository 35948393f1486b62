/** Carry out a plan: what is asked of the API server for it. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_CARRY_OUT_H
#define WEIR_CLUSTER_KUBERNETES_CARRY_OUT_H

#include "cluster/kubernetes/scheduler/calls.h"
#include "cluster/kubernetes/scheduler/memory.h"
#include "cluster/kubernetes/scheduler/world.h"

#include "sched/sched.h"

#define CARRY_OUT_SAID_MS  5000  /**< From one change of a pod's condition to the next. */
#define CARRY_OUT_EVENT_MS 60000 /**< From one event of a pod that waits to the next. */
#define CARRY_OUT_REFUSALS 3 /**< Places that break rules for neighbours, before that is said. */
#define CARRY_OUT_SPARE_MS                                                                         \
    30000 /**< So long a pod is spared that a PodDisruptionBudget protects. */

/** What is to be asked for the claims of a pod. */
struct carry_out_choices {
    struct volumes_choice *rows;
    size_t n;
};

struct carry_out {
    struct world *world;
    const struct world_input *input;
    struct memory *memory; /**< Held by the caller while it goes on. */
    struct calls *calls;
    struct weir_arena *arena;
    bool are_some_spared;      /**< Budgets stand in somebody's way. */
    int64_t cycle;             /**< Its number. */
    const json_t *reservation; /**< What pods that hold devices have (reservation_template). */
    /* Its own. */
    int64_t now_ms;                       /**< Monotonic. */
    const struct weir_sched_wait **waits; /**< For each job; NULL: it does not wait. */
    bool *nominated;                   /**< For each task: the plan makes room for it somewhere. */
    struct carry_out_choices *choices; /**< For each task. */
    struct volumes_assumed kept;       /**< Before the part that is looked at just now. */
    bool are_kept;                     /**< It has claims. */
};

/** A part of a device that a pod is bound with. */
struct carry_out_part {
    const char *group, *device;
};

/** Ask that a pod is bound. @param part  NULL: it gets none. */
void carry_out_bind(struct carry_out *carry, const struct place_pod *pod, const char *node,
                    const struct carry_out_part *part);

/** Ask that a pod is told to end. */
void carry_out_evict(struct carry_out *carry, const struct place_pod *pod, const char *why);

/** Hand everything to the calls, and note what is assumed from now on. */
weir_status carry_out(struct carry_out *carry, const struct weir_sched_plan *plan,
                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * It was answered: note what that means.
 * @return Is there something new to be planned?
 */
bool carry_out_done(struct memory *memory, const struct calls_one *one, weir_status status,
                    const struct weir_kube_refusal *refusal, const struct weir_error *err);

#endif
