/**
 * Hold: pods that get parts of devices have their place before they are bound. Each device is held by a pod of its own
 * (reservation.h), which tells which one it is; a pod is bound when its device is known, and a gang when those of all its pods
 * are. For the scheduler's own files.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_HOLD_H
#define WEIR_CLUSTER_KUBERNETES_HOLD_H

#include "cluster/kubernetes/scheduler/carry_out.h"

#include "sched/apply.h"

#define HOLD_START_MS 60000 /**< So long the pod that is to hold a device may take to start. */
#define HOLD_TOLD_MS  3000  /**< After so long a pod that waits for that is told. */
#define HOLD_IDLE_MS  3000  /**< A device of which nobody has a part is held so much longer. */

/** What becomes of pods that the plan binds? Those that are held have their places from now on. */
enum shares_answer hold_place(struct carry_out *carry, const struct weir_sched_part *part);

/** Is what holds the device of a pod's group known to hold the one that the pod was bound with? A pod of none: yes. */
bool hold_is_sure(const struct memory *memory, const struct place_pod *pod,
                  struct weir_arena *arena);

/** Look after all devices that are divided, and bind pods when their devices are known. Once a cycle, after the plan. */
void hold_tend(struct carry_out *carry);

/** It was answered. @return Is there something new to be planned? */
bool hold_done(struct memory_item *item, const struct calls_one *one, weir_status status,
               const struct weir_kube_refusal *refusal, const struct weir_error *err);

/** It failed: what was asked for, and the API server's sentence, become what the pod is told. */
void hold_trouble(struct memory_item *item, const char *what, weir_status status,
                  const struct weir_error *err);

#endif
