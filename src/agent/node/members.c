#include "agent/node/members.h"

#include "agent/task.h"

#include <signal.h>
#include <stdio.h>

/* Orphans of a task in namespaces are its job's, not this process's; without a control group they
 * are known by what they were started with. */
static size_t add_orphans(const struct members *members, struct process_id ids[], size_t n)
{
    static struct process_id marked[MEMBERS_MAX];
    char mark[TASK_MARK_BYTES], entry[TASK_MARK_BYTES + 16];
    if (members->group->n_dirs > 0 || members->ns->pid_fd < 0) {
        return n;
    }
    (void)snprintf(entry, sizeof entry, "WEIR_TASK_KEY=%s", task_mark(mark, members->dir));
    size_t n_marked = process_with_environment(entry, marked, MEMBERS_MAX), n_known = n;
    for (size_t i = 0; i < n_marked && n < MEMBERS_MAX; i++) {
        bool is_known = false;
        for (size_t j = 0; j < n_known && !is_known; j++) {
            is_known = ids[j].pid == marked[i].pid;
        }
        if (!is_known) {
            ids[n++] = marked[i];
        }
    }
    return n;
}

static size_t leave_out(pid_t helper, struct process_id ids[], size_t n)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i].pid != helper) {
            ids[n_left++] = ids[i];
        }
    }
    return n_left;
}

size_t members_find(void *context, struct process_id *ids, size_t max)
{
    const struct members *members = context;
    static pid_t pids[MEMBERS_MAX];
    size_t n = leave_out(members->helper, ids, process_descendants(getpid(), ids, max));
    size_t n_group = weir_group_members(members->group, pids, MEMBERS_MAX);
    for (size_t i = 0; i < n_group && n < max; i++) {
        bool is_known = false;
        for (size_t j = 0; j < n && !is_known; j++) {
            is_known = ids[j].pid == pids[i];
        }
        struct process_id id;
        /* The group is asked again after the identity was taken: the pid was in it all the time. */
        if (!is_known && process_identify(pids[i], &id) &&
            weir_group_has(members->group, pids[i])) {
            ids[n++] = id;
        }
    }
    return add_orphans(members, ids, n);
}

size_t members_signal(const struct members *members, int signal_number)
{
    static struct process_id ids[MEMBERS_MAX];
    size_t n = members_find((void *)members, ids, MEMBERS_MAX), n_alive = 0;
    for (size_t i = 0; i < n; i++) {
        n_alive += process_signal(&ids[i], signal_number);
    }
    return n_alive;
}

size_t members_kill(const struct members *members)
{
    weir_group_kill(members->group);
    return members_signal(members, SIGKILL);
}

size_t members_count(const struct members *members, pid_t except)
{
    static struct process_id ids[MEMBERS_MAX];
    size_t n = members_find((void *)members, ids, MEMBERS_MAX), n_alive = 0;
    for (size_t i = 0; i < n; i++) {
        n_alive += ids[i].pid != except && process_is_alive(&ids[i]);
    }
    return n_alive;
}
