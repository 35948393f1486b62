/**
 * Members: the processes of a task, known to its supervisor as members of its control group, as descendants
 * of the supervisor and, where there is no group, by what they were started with. Supervisor only, from
 * one thread.
 */
#ifndef WEIR_AGENT_MEMBERS_H
#define WEIR_AGENT_MEMBERS_H

#include "agent/isolation.h"
#include "agent/namespaces.h"
#include "agent/process.h"

/** Most processes of one task that are found at once. */
#define MEMBERS_MAX 4096

/** The task that they belong to; all is borrowed, and filled while the task starts. */
struct members {
    const char *dir; /**< The attempt's. */
    const struct weir_group *group;
    const struct namespaces *ns;
    pid_t helper; /**< A child of the supervisor that is no process of the task; 0: none. */
};

/**
 * Every process of the task, its tunnel's child with them. Cost: a look at all processes of the machine.
 * @param context  struct members: the function is one of disk_watch.h.
 * @return how many went to `ids`.
 */
size_t members_find(void *context, struct process_id *ids, size_t max);

/** Signal each; returns how many were there to get it. */
size_t members_signal(const struct members *members, int signal_number);

/** Kill each; returns how many there still were. */
size_t members_kill(const struct members *members);

/** How many live, without the process `except`; 0: without none. */
size_t members_count(const struct members *members, pid_t except);

#endif
