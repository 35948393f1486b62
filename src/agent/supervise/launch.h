/** Start the program of a task, held back until its identity is on disk. Supervisor only. */
#ifndef WEIR_AGENT_LAUNCH_H
#define WEIR_AGENT_LAUNCH_H

#include "agent/namespaces.h"
#include "agent/task.h"

/** A process that has been forked and waits; end it with launch_release or launch_abandon. */
struct launch {
    pid_t pid;
    int log_fd;     /**< What it writes; non-blocking. The caller's. */
    int barrier_fd; /**< Closed without a byte: it exits without executing anything. */
    int status_fd;  /**< What went wrong before or at exec comes here. */
    int user_fd; /**< After launch_release, the caller's: namespaces of its sandbox; -1: of an image, or */
    int mount_fd; /**< it did not come so far. */
};

/** Why the program was not executed. */
struct launch_failure {
    int errno_value;                        /**< exec's; 0: it runs, or see message. */
    weir_status status;                     /**< What its sandbox came to. */
    char message[WEIR_ERROR_MESSAGE_BYTES]; /**< The same; "": none. */
};

/** Make DIR/work with the task's files. */
weir_status launch_prepare(const char *dir, const struct task *task, struct weir_arena *arena,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Write a file into DIR/work, with the folders of its name, which stays inside (task.h). */
weir_status launch_write_file(const char *dir, const struct task_pair *file,
                              struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** The task's program as it is executed: "weir" and "weir-worker" are the ones of this node, by the paths
 *  that the task has them at. May lie in the arena. */
const char *launch_program(const struct task *task, struct weir_arena *arena);

/** Its program's environment; NULL at the end. In the arena. */
char **launch_environment(const char *dir, const struct task *task, struct weir_arena *arena);

/** Unlike its supervisor, this process may be chosen when memory is out. */
void launch_be_expendable(void);

/** Its privileges, as little as they are, and its filter of system calls. `user`: to become; 0: stay. False: errno. */
bool launch_give_up_privileges(const struct task *task, uid_t user);

/** Fork into the namespaces. The process is its own session; it waits for launch_release. */
weir_status launch_fork(const char *dir, const struct task *task, const struct namespaces *ns,
                        struct weir_arena *arena, struct launch *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Let it build its sandbox and execute the program, under limits of its own: those that its group does
 * not set.
 * @return false: the process has ended; *out says why.
 */
bool launch_release(struct launch *launch, const struct weir_limits *limits,
                    struct launch_failure *out);

/** What is recorded of a process that never became the program, and what may help.
 *  @param dir  The attempt's folder. */
void launch_explain(const struct launch_failure *failure, const char *dir, const struct task *task,
                    struct task_exit *record);

/** It exits without having executed anything. */
void launch_abandon(struct launch *launch);

#endif
