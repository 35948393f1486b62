/**
 * Run a task in the root file system of its image, by crun.
 *
 * The task's sandbox (sandbox_enter.h) is built as for any task; inside of it crun exchanges the root: the
 * image's, read-only, with the job's folders, /tmp, /dev and /proc mounted into it, and the node's
 * names of hosts. Namespaces, control group, user and filter of system calls are the sandbox's: crun
 * gives up root's rights and enters the filter right before the program. crun stays as its parent
 * and ends as it ends.
 *
 * Where the agent is not root, crun runs in a user namespace in which the agent's user is called
 * root, which has no rights beyond that user's.
 *
 * In the attempt's folder: image/up and image/wk (what crun adds to the root: mount points), root,
 * bundle (config.json) and run (crun's own state).
 */
#ifndef WEIR_AGENT_IMAGE_RUN_H
#define WEIR_AGENT_IMAGE_RUN_H

#include "agent/supervise/log_sink.h"
#include "agent/task.h"
#include "base/arena.h"
#include "base/status.h"

/** The whole path of crun; NULL: it is not here. In the arena. */
char *image_run_program(struct weir_arena *arena);

/**
 * In the supervisor: fetch and hold the task's image; its folder and variables go to the task. How far that
 * is, is said in the task's log.
 * @return UNSUPPORTED with what this node lacks; as image_get.
 */
weir_status image_run_get(const char *dir, struct task *task, struct log_sink *log,
                          struct weir_arena *arena, int *out_lock_fd,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** In the child, in place of sandbox_enter. `env` ends with NULL. */
weir_status image_run_build(const char *dir, const struct task *task, char *const env[],
                            struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/** Become crun. Returns, with errno, only if that fails. */
void image_run_execute(const char *dir, struct weir_arena *arena);

/** crun's exit status 1 for a program that is not in the image, or may not be run, becomes a shell's
 *  127 or 126: a second try would not help. */
void image_run_explain(struct task_exit *record);

/** In the supervisor: the program that crun runs. false: it is not yet there, or has ended. */
bool image_run_find(const char *dir, pid_t crun, struct process_id *out);

/**
 * In the supervisor, now and then while crun runs: crun waits for what its program left behind too, and
 * does not say before how that ended. Once the program has ended, signal what is left.
 * @return false: the program is not yet there, or runs.
 */
bool image_run_end(const char *dir, pid_t crun, int signal_number);

#endif
