#include "agent/agent_private.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>

extern char **environ;

weir_status spawn_supervisor(const char *executable, const char *task_dir, pid_t *out_pid,
                             struct weir_error *err)
{
    char log[TASK_PATH_BYTES];
    char *const argv[] = {(char *)executable, "agent", "--supervise", (char *)task_dir, NULL};
    sigset_t none;
    sigset_t all;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    sigemptyset(&none);
    sigfillset(&all);
    task_path(log, task_dir, "supervisor.log");
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    /* A session of its own: neither a terminal's signals nor the agent's end reach it. */
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    rc = rc != 0 ? rc
                 : posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND,
                                                    0600);
    rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&files, 1, 2);
    rc = rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(&files, 3);
    rc = rc != 0 ? rc : posix_spawn(out_pid, executable, &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start a supervisor (%s)", executable);
    }
    return WEIR_OK;
}
