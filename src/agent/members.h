/** Members: the processes of a task attempt, wherever they went. Supervisor only. */
#ifndef WEIR_AGENT_MEMBERS_H
#define WEIR_AGENT_MEMBERS_H

#include "agent/isolation.h"
#include "agent/namespaces.h"
#include "agent/process.h"

/** Whose they are. Borrowed. */
struct members {
    const char *dir; /**< Of the attempt. */
    const struct weir_group *group;
    const struct namespaces *ns;
};

/** Those of its group, and the descendants of this process; at most `max`. Returns how many. */
size_t members_find(void *members, struct process_id *ids, size_t max);

/** Signal them all. Returns how many were alive. */
size_t members_signal(const struct members *members, int signal_number);

#endif
