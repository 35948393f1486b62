/** Start the program of a task, held back until its identity is on disk. Supervisor only. */
#ifndef WEIR_AGENT_LAUNCH_H
#define WEIR_AGENT_LAUNCH_H

#include "agent/task.h"

/** A process that has been forked and waits; end it with launch_release or launch_abandon. */
struct launch {
    pid_t pid;
    int log_fd;     /**< What it writes; non-blocking. The caller's. */
    int barrier_fd; /**< Closed without a byte: it exits without executing anything. */
    int status_fd;  /**< errno of a failed exec comes here. */
};

/** Make DIR/work with the task's files. */
weir_status launch_prepare(const char *dir, const struct task *task, struct weir_arena *arena,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Fork. The process is its own session; it waits for launch_release. */
weir_status launch_fork(const char *dir, const struct task *task, struct weir_arena *arena,
                        struct launch *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Let it execute the program, under limits of its own: those that its group does not set.
 * @return the errno of a failed exec (the process has then ended), or 0.
 */
int launch_release(struct launch *launch, const struct weir_limits *limits);

/** It exits without having executed anything. */
void launch_abandon(struct launch *launch);

#endif
