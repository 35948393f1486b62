/** What people read of a pod: its condition, and events. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_TELL_H
#define WEIR_CLUSTER_KUBERNETES_TELL_H

#include "cluster/kubernetes/scheduler/carry_out.h"

/** Say in its condition why it waits, and where room is made for it, if that is another than before; and now and then in
 *  an event. */
void tell_waiting(struct carry_out *carry, const struct place_pod *pod, struct memory_item *item,
                  const char *sentence);

/** @param type  "Normal", "Warning" */
void tell_event(struct carry_out *carry, const struct place_pod *pod, const char *type,
                const char *reason, const char *message);

#endif
